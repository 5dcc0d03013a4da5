//! COMMAND: the command table, for client libraries and people.

mod docs;
mod info;

use crate::reply_help;
use base::glob;
use command::acl;
use command::spec::{Argument, Docs};
use command::{Args, Categories, CommandSpec, CommandTable, Ctx, Flags, KeyFlags, Locks, Run, Stop, error};
use proto::Span;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&COMMAND];

static COMMAND: CommandSpec = CommandSpec {
    name: "command",
    arity: -1,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Describes commands for client libraries.",
        since: "2.8.13",
        group: "server",
        complexity: "O(N) where N is the total number of commands",
        tips: &["nondeterministic_output_order"],
        ..Docs::NONE
    },
    run: Run::Container(&[
        &COMMAND_INFO,
        &COMMAND_COUNT,
        &COMMAND_DOCS,
        &COMMAND_GETKEYS,
        &COMMAND_GETKEYSANDFLAGS,
        &COMMAND_HELP,
        &COMMAND_LIST,
    ]),
};

static COMMAND_INFO: CommandSpec = CommandSpec {
    name: "info",
    arity: -2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Describes some or all commands for client libraries.",
        since: "2.8.13",
        group: "server",
        complexity: "O(N) where N is the number of commands to look up",
        history: &[("7.0.0", "Without names it describes all commands.")],
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::string("command-name").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(command_info),
};

static COMMAND_COUNT: CommandSpec = CommandSpec {
    name: "count",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs { summary: "Counts the commands.", since: "2.8.13", group: "server", complexity: "O(1)", ..Docs::NONE },
    run: Run::Call(command_count),
};

static COMMAND_DOCS: CommandSpec = CommandSpec {
    name: "docs",
    arity: -2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Describes commands for people.",
        since: "7.0.0",
        group: "server",
        complexity: "O(N) where N is the number of commands to look up",
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::string("command-name").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(command_docs),
};

static COMMAND_GETKEYS: CommandSpec = CommandSpec {
    name: "getkeys",
    arity: -3,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Finds the keys in a request.",
        since: "2.8.13",
        group: "server",
        complexity: "O(N) where N is the number of arguments to the command",
        arguments: &[Argument::string("command"), Argument::string("arg").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(command_getkeys),
};

static COMMAND_GETKEYSANDFLAGS: CommandSpec = CommandSpec {
    name: "getkeysandflags",
    arity: -3,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Finds the keys in a request, and what would happen to them.",
        since: "7.0.0",
        group: "server",
        complexity: "O(N) where N is the number of arguments to the command",
        arguments: &[Argument::string("command"), Argument::string("arg").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(command_getkeysandflags),
};

static COMMAND_HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the subcommands.",
        since: "5.0.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(command_help),
};

static COMMAND_LIST: CommandSpec = CommandSpec {
    name: "list",
    arity: -2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the names of commands.",
        since: "7.0.0",
        group: "server",
        complexity: "O(N) where N is the total number of commands",
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::one_of(
            "filterby",
            &[
                Argument::string("module-name").after("MODULE"),
                Argument::string("category").after("ACLCAT"),
                Argument::pattern("pattern").after("PATTERN"),
            ],
        )
        .after("FILTERBY")
        .optional()],
        ..Docs::NONE
    },
    run: Run::Call(command_list),
};

fn table<'c>(ctx: &Ctx<'c>) -> &'c CommandTable {
    &ctx.host.table
}

/// The row of a full name (`config|get`), in any case.
fn find<'t>(table: &'t CommandTable, name: &[u8]) -> Option<(&'t str, &'static CommandSpec)> {
    let found = table.resp_rows().iter().find(|(full, _)| name.eq_ignore_ascii_case(full.as_bytes()));
    found.map(|(full, spec)| (full.as_str(), *spec))
}

fn command_count(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.integer(table(ctx).commands().len() as i64);
    Ok(())
}

/// Also what COMMAND alone does.
fn command_info(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let table = table(ctx);
    if ctx.args.len() <= 2 {
        ctx.reply.array(table.commands().len());
        table.commands().iter().for_each(|spec| info::reply(ctx.reply, spec.name, spec));
        return Ok(());
    }
    ctx.reply.array(ctx.args.len() - 2);
    for name in ctx.args.from(2) {
        match find(table, name) {
            Some((name, spec)) => info::reply(ctx.reply, name, spec),
            None => ctx.reply.null(),
        }
    }
    Ok(())
}

fn command_docs(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let table = table(ctx);
    let shown: Vec<(&str, &CommandSpec)> = match ctx.args.len() {
        2 => table.commands().iter().map(|spec| (spec.name, *spec)).collect(),
        _ => ctx.args.from(2).filter_map(|name| find(table, name)).collect(),
    };
    ctx.reply.map(shown.len());
    for (name, spec) in shown {
        ctx.reply.bulk(name.as_bytes());
        docs::reply(ctx.reply, name, spec);
    }
    Ok(())
}

/// Whether a row is listed; its name in full.
type Filter = dyn Fn(&str, &CommandSpec) -> bool;

fn command_list(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let rows = table(ctx).resp_rows();
    let filter: Box<Filter> = match ctx.args.len() {
        2 => Box::new(|_, _| true),
        5 if ctx.is_word(2, "filterby") && ctx.is_word(3, "pattern") => {
            let pattern = ctx.args[4].to_vec();
            Box::new(move |name, _| glob::matches_ignore_case(&pattern, name.as_bytes()))
        }
        5 if ctx.is_word(2, "filterby") && ctx.is_word(3, "aclcat") => {
            let category = ctx.args[4].to_ascii_lowercase();
            Box::new(move |_, spec| acl::categories(spec).any(|known| known.name().as_bytes() == category))
        }
        // There are no modules, so none has commands.
        5 if ctx.is_word(2, "filterby") && ctx.is_word(3, "module") => Box::new(|_, _| false),
        _ => return Err(error::SYNTAX),
    };
    let found: Vec<&str> =
        rows.iter().filter(|(name, spec)| filter(name, spec)).map(|(name, _)| name.as_str()).collect();
    ctx.reply.array(found.len());
    found.iter().for_each(|name| ctx.reply.bulk(name.as_bytes()));
    Ok(())
}

fn command_getkeys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let keys = keys_of(ctx)?;
    ctx.reply.array(keys.len());
    keys.iter().for_each(|(key, _)| ctx.reply.bulk(key));
    Ok(())
}

fn command_getkeysandflags(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let keys = keys_of(ctx)?;
    ctx.reply.array(keys.len());
    for (key, flags) in keys {
        ctx.reply.array(2);
        ctx.reply.bulk(&key);
        info::reply_key_flags(ctx.reply, flags);
    }
    Ok(())
}

/// The keys of the request that follows the first two words.
fn keys_of(ctx: &Ctx<'_>) -> Result<Vec<(Vec<u8>, KeyFlags)>, Stop> {
    let unknown = || Stop::error("ERR Invalid command specified");
    let mut spec = table(ctx).find(&ctx.args[2]).ok_or_else(unknown)?.spec;
    if let (Run::Container(_), Some(word)) = (spec.run, ctx.args.bytes(3)) {
        spec = spec.subcommand(word).ok_or_else(unknown)?;
    }
    // Channels are routed like keys, but they are not keys.
    if spec.keys.iter().all(|key| key.flags.contains(KeyFlags::NOT_KEY)) {
        return Err(Stop::error("ERR The command has no key arguments"));
    }
    let input: Vec<u8> = ctx.args.from(2).collect::<Vec<_>>().concat();
    let (mut spans, mut at) = (Vec::new(), 0usize);
    for word in ctx.args.from(2) {
        spans.push(Span::new(at, word.len()).ok_or_else(unknown)?);
        at += word.len();
    }
    let args = Args::new(&input, &spans, &[]);
    if !spec.accepts(args.len()) {
        return Err(Stop::error("ERR Invalid number of arguments specified for command"));
    }
    let mut keys = Vec::new();
    if !spec.visit_keys(&args, |index, key| keys.push((args[index].to_vec(), key.flags_in(&args)))) {
        return Err(Stop::error("ERR Invalid arguments specified for command"));
    }
    Ok(keys)
}

fn command_help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(
        ctx,
        &[
            "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "(no subcommand)",
            "    Describe all commands for client libraries.",
            "COUNT",
            "    Count the commands.",
            "DOCS [<command> ...]",
            "    Describe these commands, or all, for people.",
            "GETKEYS <request>",
            "    Find the keys in a request.",
            "GETKEYSANDFLAGS <request>",
            "    Find the keys in a request, and what would happen to them.",
            "INFO [<command> ...]",
            "    Describe these commands, or all, for client libraries.",
            "LIST [FILTERBY (ACLCAT <category> | MODULE <name> | PATTERN <pattern>)]",
            "    List the names of all commands, or of some.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
