//! XGROUP: groups and their consumers.

use super::stream_ids::{self, id_or_end};
use crate::error::{self, Stop, up_to_zero};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use types::stream::{CreateGroup, GroupStart, Id};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&XGROUP];

static XGROUP: CommandSpec = CommandSpec {
    name: "xgroup",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about groups and their consumers.",
        since: "5.0.0",
        group: "stream",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&CREATE, &CREATECONSUMER, &DELCONSUMER, &DESTROY, &HELP, &SETID]),
};

/// Where a group begins, for COMMAND DOCS.
const GROUP_START: Argument = Argument::one_of("id-selector", &[Argument::string("id"), Argument::word("new-id", "$")]);

static CREATE: CommandSpec = CommandSpec {
    name: "create",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Makes a group of consumers.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1)",
        history: &[("7.0.0", "Takes `ENTRIESREAD`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("group"),
            GROUP_START,
            Argument::word("mkstream", "MKSTREAM").optional(),
            Argument::integer("entriesread").displayed("entries-read").after("ENTRIESREAD").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(create),
};

fn create(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let options = options(ctx, true)?;
    let key = ctx.key(2);
    if !types::stream::exists(ctx.ks, &key)? && !options.makes_stream {
        return Err(NO_STREAM);
    }
    if ctx.args.len() > CREATE_WORDS_MAX {
        return Err(wrong_words(ctx));
    }
    let start = match &ctx.args[4] {
        b"$" => GroupStart::End,
        _ => GroupStart::After(stream_ids::id(ctx, 4)?),
    };
    let (group, read) = (&ctx.args[3], options.entries_read);
    match types::stream::create_group(ctx.ks, &key, group, start, options.makes_stream, read)? {
        CreateGroup::Created => ctx.reply.ok(),
        CreateGroup::Exists => return Err(Stop::error("BUSYGROUP Consumer Group name already exists")),
        CreateGroup::NoStream => return Err(NO_STREAM),
    }
    Ok(())
}

/// Words of XGROUP CREATE with every option once.
const CREATE_WORDS_MAX: usize = 8;

static SETID: CommandSpec = CommandSpec {
    name: "setid",
    arity: -5,
    flags: Flags::WRITE,
    categories: Categories::STREAM,
    keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets the last id that a group has delivered.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1)",
        history: &[("7.0.0", "Takes `ENTRIESREAD`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("group"),
            GROUP_START,
            Argument::integer("entriesread").displayed("entries-read").after("ENTRIESREAD").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(setid),
};

fn setid(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let options = options(ctx, false)?;
    check_group(ctx)?;
    if !matches!(ctx.args.len(), 5 | 7) {
        return Err(wrong_words(ctx));
    }
    let start = match &ctx.args[4] {
        b"$" => GroupStart::End,
        _ => GroupStart::After(id_or_end(ctx, 4, Id::MIN.seq)?),
    };
    let key = ctx.key(2);
    types::stream::set_group(ctx.ks, &key, &ctx.args[3], start, options.entries_read)?;
    ctx.reply.ok();
    Ok(())
}

/// The options after the id.
struct GroupOptions {
    makes_stream: bool,
    entries_read: Option<u64>,
}

fn options(ctx: &Ctx<'_>, may_make_stream: bool) -> Result<GroupOptions, Stop> {
    let mut options = GroupOptions { makes_stream: false, entries_read: None };
    let mut at = 5usize;
    while at < ctx.args.len() {
        let value = at.saturating_add(1);
        if may_make_stream && ctx.is_word(at, "mkstream") {
            options.makes_stream = true;
            at = value;
        } else if ctx.is_word(at, "entriesread") && value < ctx.args.len() {
            options.entries_read = match ctx.integer(value)? {
                -1 => None,
                number => Some(
                    u64::try_from(number)
                        .map_err(|_| Stop::error("ERR value for ENTRIESREAD must be positive or -1"))?,
                ),
            };
            at = value.saturating_add(1);
        } else {
            return Err(wrong_words(ctx));
        }
    }
    Ok(options)
}

static CREATECONSUMER: CommandSpec = CommandSpec {
    name: "createconsumer",
    arity: 5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Makes a consumer of a group.",
        since: "6.2.0",
        group: "stream",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("group"), Argument::string("consumer")],
        ..Docs::NONE
    },
    run: Run::Call(createconsumer),
};

fn createconsumer(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    check_group(ctx)?;
    let key = ctx.key(2);
    let is_new = types::stream::create_consumer(ctx.ks, &key, &ctx.args[3], &ctx.args[4])?;
    ctx.reply.integer(i64::from(is_new));
    Ok(())
}

static DELCONSUMER: CommandSpec = CommandSpec {
    name: "delconsumer",
    arity: 5,
    flags: Flags::WRITE,
    categories: Categories::STREAM,
    keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes a consumer of a group, and counts what was pending for it.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("group"), Argument::string("consumer")],
        ..Docs::NONE
    },
    run: Run::Call(delconsumer),
};

fn delconsumer(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    check_group(ctx)?;
    let key = ctx.key(2);
    let pending = types::stream::delete_consumer(ctx.ks, &key, &ctx.args[3], &ctx.args[4])?;
    ctx.reply.integer(pending as i64);
    Ok(())
}

static DESTROY: CommandSpec = CommandSpec {
    name: "destroy",
    arity: 4,
    flags: Flags::WRITE,
    categories: Categories::STREAM,
    keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes a group, with its consumers and what is pending.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(N) where N is the number of entries in the group's pending entries list (PEL).",
        arguments: &[Argument::key("key", 0), Argument::string("group")],
        ..Docs::NONE
    },
    run: Run::Call(destroy),
};

fn destroy(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(2);
    if !types::stream::exists(ctx.ks, &key)? {
        return Err(NO_STREAM);
    }
    let was_there = types::stream::destroy_group(ctx.ks, &key, &ctx.args[3])?;
    ctx.reply.integer(i64::from(was_there));
    Ok(())
}

const NO_STREAM: Stop = Stop::error(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
);

/// An error when the stream or the group is missing.
fn check_group(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, group) = (ctx.key(2), &ctx.args[3]);
    if !types::stream::exists(ctx.ks, &key)? {
        return Err(NO_STREAM);
    }
    if types::stream::has_group_to_edit(ctx.ks, &key, group)? { Ok(()) } else { Err(no_group_of(group, key.bytes)) }
}

/// There is no such group in a stream that is there.
pub(super) fn no_group_of(group: &[u8], key: &[u8]) -> Stop {
    let words: [&[u8]; 5] =
        [b"NOGROUP No such consumer group '", up_to_zero(group), b"' for key name '", up_to_zero(key), b"'"];
    Stop::error_with(words.concat())
}

fn wrong_words(ctx: &Ctx<'_>) -> Stop {
    let before = "ERR unknown subcommand or wrong number of arguments for '";
    error::repeating(before, &ctx.args[1], "'. Try XGROUP HELP.")
}

static HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::STREAM,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists what XGROUP can do.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(help),
};

fn help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.array(HELP_LINES.len());
    HELP_LINES.iter().for_each(|line| ctx.reply.simple(line));
    Ok(())
}

const HELP_LINES: &[&str] = &[
    "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CREATE <key> <groupname> <id|$> [option]",
    "    Make a group that reads after the id, or after the last entry ($). Options:",
    "    MKSTREAM makes the stream too; ENTRIESREAD entries_read says how many entries",
    "    were ever added up to the id.",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Make a consumer of the group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the consumer. What is pending for it is pending no more.",
    "DESTROY <key> <groupname>",
    "    Remove the group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Have the group continue after the id.",
    "HELP",
    "    Print this help.",
];
