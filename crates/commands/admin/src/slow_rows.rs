//! SLOWLOG and COMMANDLOG.

use crate::command_log::{CommandLog, Reason};
use crate::reply_help;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use std::sync::Arc;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&SLOWLOG, &COMMANDLOG];

static SLOWLOG: CommandSpec = CommandSpec {
    name: "slowlog",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about slow calls.",
        since: "2.2.12",
        group: "server",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&SLOWLOG_GET, &SLOWLOG_HELP, &SLOWLOG_LEN, &SLOWLOG_RESET]),
};

static SLOWLOG_GET: CommandSpec = CommandSpec {
    name: "get",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives the newest slow calls.",
        since: "2.2.12",
        group: "server",
        complexity: "O(N) where N is the number of entries returned",
        history: &[("4.0.0", "Entries name the client and its address.")],
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        arguments: &[Argument::integer("count").optional()],
        ..Docs::NONE
    },
    run: Run::Call(slowlog_get),
};

static SLOWLOG_HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the subcommands.",
        since: "6.2.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(slowlog_help),
};

static SLOWLOG_LEN: CommandSpec = CommandSpec {
    name: "len",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Counts the slow calls kept.",
        since: "2.2.12",
        group: "server",
        complexity: "O(1)",
        tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
        ..Docs::NONE
    },
    run: Run::Call(slowlog_len),
};

static SLOWLOG_RESET: CommandSpec = CommandSpec {
    name: "reset",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Forgets the slow calls.",
        since: "2.2.12",
        group: "server",
        complexity: "O(N) where N is the number of entries in the slowlog",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..Docs::NONE
    },
    run: Run::Call(slowlog_reset),
};

static COMMANDLOG: CommandSpec = CommandSpec {
    name: "commandlog",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about calls that were slow or large.",
        since: "8.1.0",
        group: "server",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&COMMANDLOG_GET, &COMMANDLOG_HELP, &COMMANDLOG_LEN, &COMMANDLOG_RESET]),
};

static COMMANDLOG_GET: CommandSpec = CommandSpec {
    name: "get",
    arity: 4,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives the newest calls kept of one type.",
        since: "8.1.0",
        group: "server",
        complexity: "O(N) where N is the number of entries returned",
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        arguments: &[
            Argument::integer("count"),
            Argument::one_of(
                "type",
                &[
                    Argument::word("slow", "SLOW"),
                    Argument::word("large-request", "LARGE-REQUEST"),
                    Argument::word("large-reply", "LARGE-REPLY"),
                ],
            ),
        ],
        ..Docs::NONE
    },
    run: Run::Call(commandlog_get),
};

static COMMANDLOG_HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the subcommands.",
        since: "8.1.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(commandlog_help),
};

static COMMANDLOG_LEN: CommandSpec = CommandSpec {
    name: "len",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Counts the calls kept of one type.",
        since: "8.1.0",
        group: "server",
        complexity: "O(1)",
        tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
        arguments: &[Argument::one_of(
            "type",
            &[
                Argument::word("slow", "SLOW"),
                Argument::word("large-request", "LARGE-REQUEST"),
                Argument::word("large-reply", "LARGE-REPLY"),
            ],
        )],
        ..Docs::NONE
    },
    run: Run::Call(commandlog_len),
};

static COMMANDLOG_RESET: CommandSpec = CommandSpec {
    name: "reset",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Forgets the calls kept of one type.",
        since: "8.1.0",
        group: "server",
        complexity: "O(N) where N is the number of entries in the commandlog",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        arguments: &[Argument::one_of(
            "type",
            &[
                Argument::word("slow", "SLOW"),
                Argument::word("large-request", "LARGE-REQUEST"),
                Argument::word("large-reply", "LARGE-REPLY"),
            ],
        )],
        ..Docs::NONE
    },
    run: Run::Call(commandlog_reset),
};

/// Entries that SLOWLOG GET shows when no count is given.
const SHOWN_DEFAULT: usize = 10;

fn log<'c>(ctx: &Ctx<'c>) -> &'c CommandLog {
    ctx.host.part::<crate::Needed, Arc<CommandLog>>()
}

/// The count at this argument; -1 is all.
fn count(ctx: &Ctx<'_>, index: usize) -> Result<usize, Stop> {
    match ctx.integer(index) {
        Ok(-1) => Ok(usize::MAX),
        Ok(count) if count >= 0 => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err(Stop::error("ERR count should be greater than or equal to -1")),
    }
}

/// The type at this argument.
fn reason(ctx: &Ctx<'_>, index: usize) -> Result<Reason, Stop> {
    let unknown = Stop::error("ERR type should be one of the following: slow, large-request, large-reply");
    Reason::of_word(&ctx.args[index]).ok_or(unknown)
}

fn reply_entries(ctx: &mut Ctx<'_>, reason: Reason, count: usize) {
    let entries = log(ctx).newest(reason, count);
    ctx.reply.array(entries.len());
    for entry in entries {
        ctx.reply.array(6);
        ctx.reply.integer(entry.id as i64);
        ctx.reply.integer(entry.at_seconds);
        ctx.reply.integer(entry.amount as i64);
        ctx.reply.array(entry.arguments.len());
        entry.arguments.iter().for_each(|argument| ctx.reply.bulk(argument));
        ctx.reply.bulk(entry.address.as_bytes());
        ctx.reply.bulk(&entry.name);
    }
}

fn slowlog_get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.args.len() > 3 {
        let before = "ERR unknown subcommand or wrong number of arguments for '";
        return Err(error::repeating(before, &ctx.args[1], "'. Try SLOWLOG HELP."));
    }
    let count = if ctx.args.len() > 2 { count(ctx, 2)? } else { SHOWN_DEFAULT };
    reply_entries(ctx, Reason::Slow, count);
    Ok(())
}

fn slowlog_len(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.integer(log(ctx).len(Reason::Slow) as i64);
    Ok(())
}

fn slowlog_reset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    log(ctx).reset(Reason::Slow);
    ctx.reply.ok();
    Ok(())
}

fn commandlog_get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let count = count(ctx, 2)?;
    let reason = reason(ctx, 3)?;
    reply_entries(ctx, reason, count);
    Ok(())
}

fn commandlog_len(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let len = log(ctx).len(reason(ctx, 2)?);
    ctx.reply.integer(len as i64);
    Ok(())
}

fn commandlog_reset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    log(ctx).reset(reason(ctx, 2)?);
    ctx.reply.ok();
    Ok(())
}

fn slowlog_help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(
        ctx,
        &[
            "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "GET [<count>]",
            "    Give the newest slow calls, 10 when no count is given, all for -1.",
            "    Each is: number, time, microseconds it took, arguments, address and name",
            "    of the client.",
            "LEN",
            "    Give how many slow calls are kept.",
            "RESET",
            "    Forget them.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}

fn commandlog_help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(
        ctx,
        &[
            "COMMANDLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "GET <count> <type>",
            "    Give the newest calls kept of a type (slow, large-request, large-reply),",
            "    all for a count of -1. Each is: number, time, microseconds it took or bytes",
            "    it had, arguments, address and name of the client.",
            "LEN <type>",
            "    Give how many calls of the type are kept.",
            "RESET <type>",
            "    Forget them.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
