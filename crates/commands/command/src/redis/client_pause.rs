//! CLIENT PAUSE, UNPAUSE and UNBLOCK.

use crate::clients::Unblock;
use crate::error::{self, Stop};
use crate::pause::Paused;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, Locks, Run};
use types::string::parse_integer;

pub(super) static PAUSE: CommandSpec = CommandSpec {
    name: "pause",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds clients' commands back for a while.",
        since: "3.0.0",
        group: "connection",
        complexity: "O(1)",
        history: &[("6.2.0", "Takes the mode, `WRITE` among them.")],
        arguments: &[
            Argument::integer("timeout"),
            Argument::one_of("mode", &[Argument::word("write", "WRITE"), Argument::word("all", "ALL")])
                .since("6.2.0")
                .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(pause),
};

fn pause(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    // As in Valkey the mode counts only when nothing follows it.
    let what = match ctx.args.len() {
        4 if ctx.is_word(3, "write") => Paused::Writes,
        4 if !ctx.is_word(3, "all") => return Err(Stop::error("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => Paused::All,
    };
    let timeout_ms = parse_integer(&ctx.args[2]).ok_or(Stop::error("ERR timeout is not an integer or out of range"))?;
    if timeout_ms < 0 {
        return Err(Stop::error("ERR timeout is negative"));
    }
    let now = ctx.now();
    let until = now.checked_add(timeout_ms).ok_or(Stop::error("ERR timeout is out of range"))?;
    ctx.host.pause.pause(now, until, what);
    ctx.reply.ok();
    Ok(())
}

pub(super) static UNPAUSE: CommandSpec = CommandSpec {
    name: "unpause",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Ends a pause.",
        since: "6.2.0",
        group: "connection",
        complexity: "O(N) Where N is the number of paused clients",
        ..Docs::NONE
    },
    run: Run::Call(unpause),
};

fn unpause(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.host.pause.unpause();
    ctx.reply.ok();
    Ok(())
}

pub(super) static UNBLOCK: CommandSpec = CommandSpec {
    name: "unblock",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE).union(Flags::KEEPS_CACHING),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Wakes a connection that waits in a blocking command.",
        since: "5.0.0",
        group: "connection",
        complexity: "O(log N) where N is the number of client connections",
        arguments: &[
            Argument::integer("client-id"),
            Argument::one_of("unblock-type", &[Argument::word("timeout", "TIMEOUT"), Argument::word("error", "ERROR")])
                .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(unblock),
};

fn unblock(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.args.len() == 4 && !ctx.is_word(3, "timeout") && !ctx.is_word(3, "error") {
        return Err(Stop::error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
    }
    let id = parse_integer(&ctx.args[2]).ok_or(error::NOT_INTEGER)?;
    let how = if ctx.args.len() == 4 && ctx.is_word(3, "error") { Unblock::Error } else { Unblock::Timeout };
    let is_unblocked = u64::try_from(id).is_ok_and(|id| ctx.host.clients.unblock(id, how));
    ctx.reply.integer(i64::from(is_unblocked));
    Ok(())
}
