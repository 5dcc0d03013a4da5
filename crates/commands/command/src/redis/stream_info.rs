//! XINFO: what is known about a stream, its groups and their consumers.

use super::stream::reply_entries;
use super::stream_groups::no_group_of;
use super::stream_ids::reply_entry;
use super::stream_ids::reply_id;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use proto::ReplyBuffer;
use types::stream::{Consumer, Entry, Group, Id, Stream};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&XINFO];

static XINFO: CommandSpec = CommandSpec {
    name: "xinfo",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands that look at a stream from outside.",
        since: "5.0.0",
        group: "stream",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&CONSUMERS, &GROUPS, &HELP, &STREAM]),
};

const KEY: &[KeySpec] = &[KeySpec::one(2, KeyFlags::RO.union(KeyFlags::ACCESS))];

static CONSUMERS: CommandSpec = CommandSpec {
    name: "consumers",
    arity: 4,
    flags: Flags::READONLY,
    categories: Categories::STREAM,
    keys: KEY,
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Lists the consumers of a group.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1)",
        history: &[("7.2.0", "Tells `inactive`; `idle` is about asking, not about being given something.")],
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0), Argument::string("group")],
        ..Docs::NONE
    },
    run: Run::Call(consumers),
};

fn consumers(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, name, now) = (ctx.key(2), &ctx.args[3], ctx.now());
    let stream = types::stream::read(ctx.ks, &key)?.ok_or(error::NO_SUCH_KEY)?;
    let group = stream.group(name).ok_or_else(|| no_group_of(name, key.bytes))?;
    let reply = &mut *ctx.reply;
    reply.array(group.consumer_count() as usize);
    for consumer in group.consumers() {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        reply.bulk(b"pending");
        reply.integer(consumer.pending_count() as i64);
        reply.bulk(b"idle");
        reply.integer(now.saturating_sub(consumer.seen()).max(0));
        reply.bulk(b"inactive");
        reply.integer(consumer.active().map_or(-1, |active| now.saturating_sub(active)));
    }
    Ok(())
}

static GROUPS: CommandSpec = CommandSpec {
    name: "groups",
    arity: 3,
    flags: Flags::READONLY,
    categories: Categories::STREAM,
    keys: KEY,
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Lists the groups of a stream.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1)",
        history: &[("7.0.0", "Tells `entries-read` and `lag`.")],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(groups),
};

fn groups(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(2);
    let stream = types::stream::read(ctx.ks, &key)?.ok_or(error::NO_SUCH_KEY)?;
    let reply = &mut *ctx.reply;
    reply.array(stream.group_count() as usize);
    for group in stream.groups() {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(group.name());
        reply.bulk(b"consumers");
        reply.integer(group.consumer_count() as i64);
        reply.bulk(b"pending");
        reply.integer(group.pending_count() as i64);
        reply_progress(reply, stream, group);
    }
    Ok(())
}

/// Writes how far a group has come: three pairs of a map.
fn reply_progress(reply: &mut ReplyBuffer, stream: &Stream, group: &Group) {
    reply.bulk(b"last-delivered-id");
    reply_id(reply, group.last_delivered());
    let numbers =
        [("entries-read", group.entries_read().map(|read| read as i64)), ("lag", types::stream::lag(stream, group))];
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        match number {
            Some(number) => reply.integer(number),
            None => reply.null(),
        }
    }
}

static STREAM: CommandSpec = CommandSpec {
    name: "stream",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::STREAM,
    keys: KEY,
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Describes a stream, and in full also what it holds.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1)",
        history: &[
            ("6.0.0", "Takes `FULL`."),
            (
                "7.0.0",
                "Tells `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag`.",
            ),
            ("7.2.0", "Tells `active-time`; `seen-time` is about asking, not about being given something."),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::block(
                "full-block",
                &[Argument::word("full", "FULL"), Argument::integer("count").after("COUNT").optional()],
            )
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(stream),
};

fn stream(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(2);
    types::stream::read(ctx.ks, &key)?.ok_or(error::NO_SUCH_KEY)?;
    let full = full_count(ctx)?;
    let stream = types::stream::read_again(ctx.ks, &key)?.ok_or(error::NO_SUCH_KEY)?;
    let reply = &mut *ctx.reply;
    reply.map(if full.is_some() { 9 } else { 10 });
    reply.bulk(b"length");
    reply.integer(stream.len() as i64);
    reply.bulk(b"radix-tree-keys");
    reply.integer(stream.node_count() as i64);
    reply.bulk(b"radix-tree-nodes");
    // What holds the nodes is no radix tree here: counted is a root above them.
    reply.integer(stream.node_count().saturating_add(1) as i64);
    reply.bulk(b"last-generated-id");
    reply_id(reply, stream.last_id());
    reply.bulk(b"max-deleted-entry-id");
    reply_id(reply, stream.max_deleted_id());
    reply.bulk(b"entries-added");
    reply.integer(stream.entries_added() as i64);
    reply.bulk(b"recorded-first-entry-id");
    reply_id(reply, stream.first_id());
    match full {
        Some(count) => reply_in_full(reply, stream, count),
        None => {
            reply.bulk(b"groups");
            reply.integer(stream.group_count() as i64);
            reply.bulk(b"first-entry");
            reply_entry_or_null(reply, stream.range(Id::MIN, Id::MAX).next());
            reply.bulk(b"last-entry");
            reply_entry_or_null(reply, stream.last_entry());
            Ok(())
        }
    }
}

/// Elements of each kind that FULL shows by default.
const FULL_COUNT: usize = 10;

/// How many elements of each kind FULL shows; `None` without it.
fn full_count(ctx: &Ctx<'_>) -> Result<Option<usize>, Stop> {
    let words = ctx.args.len().saturating_sub(3);
    let is_known = match words {
        0 => return Ok(None),
        1 => ctx.is_word(3, "full"),
        3 => ctx.is_word(3, "full") && ctx.is_word(4, "count"),
        _ => false,
    };
    if !is_known {
        let before = "ERR unknown subcommand or wrong number of arguments for '";
        return Err(error::repeating(before, &ctx.args[1], "'. Try XINFO HELP."));
    }
    if words == 1 {
        return Ok(Some(FULL_COUNT));
    }
    Ok(Some(match usize::try_from(ctx.integer(5)?) {
        Ok(0) => usize::MAX,
        Ok(count) => count,
        Err(_) => FULL_COUNT,
    }))
}

fn reply_entry_or_null(reply: &mut ReplyBuffer, entry: Option<Entry<'_>>) {
    match entry {
        Some(entry) => reply_entry(reply, &entry),
        None => reply.null(),
    }
}

fn reply_in_full(reply: &mut ReplyBuffer, stream: &Stream, count: usize) -> Result<(), Stop> {
    reply.bulk(b"entries");
    reply_entries(reply, stream.range(Id::MIN, Id::MAX), Some(count))?;
    reply.bulk(b"groups");
    reply.array(stream.group_count() as usize);
    for group in stream.groups() {
        reply.map(7);
        reply.bulk(b"name");
        reply.bulk(group.name());
        reply_progress(reply, stream, group);
        reply.bulk(b"pel-count");
        reply.integer(group.pending_count() as i64);
        reply.bulk(b"pending");
        reply.array(count.min(group.pending_count() as usize));
        for pending in group.pending(Id::MIN).take(count) {
            reply.array(4);
            reply_id(reply, pending.id());
            reply.bulk(pending.owner());
            reply.integer(pending.claim().delivered);
            reply.integer(pending.claim().deliveries as i64);
        }
        reply.bulk(b"consumers");
        reply.array(group.consumer_count() as usize);
        for consumer in group.consumers() {
            reply_consumer_in_full(reply, group, consumer, count);
            error::check_reply(reply)?;
        }
        error::check_reply(reply)?;
    }
    Ok(())
}

fn reply_consumer_in_full(reply: &mut ReplyBuffer, group: &Group, consumer: &Consumer, count: usize) {
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(consumer.name());
    reply.bulk(b"seen-time");
    reply.integer(consumer.seen());
    reply.bulk(b"active-time");
    reply.integer(consumer.active().unwrap_or(-1));
    reply.bulk(b"pel-count");
    reply.integer(consumer.pending_count() as i64);
    reply.bulk(b"pending");
    reply.array(count.min(consumer.pending_count() as usize));
    let pending = consumer.pending_ids(Id::MIN).filter_map(|id| group.pending_entry(id));
    for pending in pending.take(count) {
        reply.array(3);
        reply_id(reply, pending.id());
        reply.integer(pending.claim().delivered);
        reply.integer(pending.claim().deliveries as i64);
    }
}

static HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::STREAM,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists what XINFO can do.",
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
    "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CONSUMERS <key> <groupname>",
    "    List the consumers of the group.",
    "GROUPS <key>",
    "    List the groups of the stream.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Describe the stream. FULL also shows up to 10, or <count>, entries, and of",
    "    each group and consumer as many pending ones; 0 is no limit.",
    "HELP",
    "    Print this help.",
];
