//! Saving and ending. This server keeps its data in memory only: what would save is refused, since a client that is told
//! "OK" would rely on it.

use crate::About;
use crate::replication::{block_or_answer, replicas_and_end};
use command::blocking::{Awaited, LOG_IS_OFF};
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&SHUTDOWN, &SAVE, &BGSAVE, &BGREWRITEAOF, &LASTSAVE, &WAITAOF];

static SHUTDOWN: CommandSpec = CommandSpec {
    name: "shutdown",
    arity: -1,
    flags: Flags::ADMIN
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::NO_MULTI)
        .union(Flags::ALLOW_BUSY),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Ends the server.",
        since: "1.0.0",
        group: "server",
        complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
        history: &[("7.0.0", "Takes `NOW`, `FORCE` and `ABORT`."), ("9.0.0", "Takes `SAFE` and `FAILOVER`.")],
        arguments: &[Argument::one_of(
            "abort-selector",
            &[
                Argument::block(
                    "save-selector-block",
                    &[
                        Argument::one_of(
                            "save-selector",
                            &[Argument::word("nosave", "NOSAVE"), Argument::word("save", "SAVE")],
                        )
                        .optional(),
                        Argument::word("now", "NOW").since("7.0.0").optional(),
                        Argument::word("force", "FORCE").since("7.0.0").optional(),
                        Argument::word("safe", "SAFE").since("9.0.0").optional(),
                        Argument::word("failover", "FAILOVER").since("9.0.0").optional(),
                    ],
                ),
                Argument::word("abort", "ABORT").since("7.0.0"),
            ],
        )
        .optional()],
        ..Docs::NONE
    },
    run: Run::Call(shutdown),
};

static SAVE: CommandSpec = CommandSpec {
    name: "save",
    arity: 1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING).union(Flags::NO_MULTI),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Saves all databases.",
        since: "1.0.0",
        group: "server",
        complexity: "O(N) where N is the total number of keys in all databases",
        ..Docs::NONE
    },
    run: Run::Call(save),
};

static BGSAVE: CommandSpec = CommandSpec {
    name: "bgsave",
    arity: -1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Saves all databases in the background.",
        since: "1.0.0",
        group: "server",
        complexity: "O(1)",
        history: &[("3.2.2", "Takes `SCHEDULE`."), ("8.1.0", "Takes `CANCEL`.")],
        arguments: &[Argument::one_of(
            "operation",
            &[Argument::word("schedule", "SCHEDULE").since("3.2.2"), Argument::word("cancel", "CANCEL").since("8.1.0")],
        )
        .optional()],
        ..Docs::NONE
    },
    run: Run::Call(bgsave),
};

static BGREWRITEAOF: CommandSpec = CommandSpec {
    name: "bgrewriteaof",
    arity: 1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Makes the append-only file short again in the background.",
        since: "1.0.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(bgrewriteaof),
};

static LASTSAVE: CommandSpec = CommandSpec {
    name: "lastsave",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    categories: Categories::DANGEROUS,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Tells when data was last saved.",
        since: "1.0.0",
        group: "server",
        complexity: "O(1)",
        tips: &["nondeterministic_output"],
        ..Docs::NONE
    },
    run: Run::Call(lastsave),
};

static WAITAOF: CommandSpec = CommandSpec {
    name: "waitaof",
    arity: 4,
    flags: Flags::BLOCKING,
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Waits until the connection's writes are in append-only files.",
        since: "7.2.0",
        group: "generic",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        arguments: &[Argument::integer("numlocal"), Argument::integer("numreplicas"), Argument::integer("timeout")],
        ..Docs::NONE
    },
    run: Run::Call(waitaof),
};

/// Why nothing is saved.
const MEMORY_ONLY: Stop = Stop::error("ERR this server keeps its data in memory only and cannot save it to disk");

/// Asks a server to end.
pub struct ShutdownRequest {
    requested: AtomicBool,
    stop: Box<dyn Fn() + Send + Sync>,
}

impl ShutdownRequest {
    /// `stop` is called on a worker and makes the server end soon: it sets a flag or wakes a thread, and returns.
    pub fn new(stop: impl Fn() + Send + Sync + 'static) -> Self {
        Self { requested: AtomicBool::new(false), stop: Box::new(stop) }
    }

    /// Whether a client has asked for it.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    fn request(&self) {
        self.requested.store(true, Ordering::Release);
        (self.stop)();
    }
}

fn shutdown(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut save, mut abort) = (None, false);
    for word in ctx.args.from(1) {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        match save {
            _ if is("now") || is("force") || is("safe") || is("failover") => {}
            None | Some(false) if is("nosave") => save = Some(false),
            None | Some(true) if is("save") => save = Some(true),
            _ if is("abort") => abort = true,
            _ => return Err(error::SYNTAX),
        }
    }
    if abort && ctx.args.len() > 2 {
        return Err(error::SYNTAX);
    }
    if abort {
        // A shutdown waits for nothing here, so there is never one to be called off.
        return Err(Stop::error("ERR No shutdown in progress."));
    }
    if save == Some(true) {
        return Err(MEMORY_ONLY);
    }
    ctx.host.part::<ShutdownRequest>().request();
    ctx.session.close_after_replies = true;
    Ok(())
}

fn save(_ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    Err(MEMORY_ONLY)
}

fn bgsave(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    match ctx.args.len() {
        1 => Err(MEMORY_ONLY),
        2 if ctx.is_word(1, "schedule") => Err(MEMORY_ONLY),
        2 if ctx.is_word(1, "cancel") => {
            Err(Stop::error("ERR Background saving is currently not in progress or scheduled"))
        }
        _ => Err(error::SYNTAX),
    }
}

fn bgrewriteaof(_ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    Err(MEMORY_ONLY)
}

/// As Redis answers before its first save: the time of the start.
fn lastsave(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let seconds = ctx.host.part::<About>().started_at / 1000;
    ctx.reply.integer(seconds);
    Ok(())
}

fn waitaof(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let local = ctx.integer(1)?;
    if !(0..=1).contains(&local) {
        return Err(Stop::error("ERR value is out of range, value must between 0 and 1"));
    }
    // What is no number is out of range as well, in Valkey's words.
    if !ctx.integer(2).is_ok_and(|replicas| replicas >= 0) {
        return Err(Stop::error("ERR value is out of range, must be positive"));
    }
    let (replicas, until) = replicas_and_end(ctx, 2)?;
    let durable = ctx.host.part::<Arc<Store>>().log().map(|log| log.durable());
    if local > 0 && durable.is_none() {
        return Err(Stop::error(LOG_IS_OFF));
    }
    let what = Awaited::Durable { position: ctx.session.last_write, local: local > 0, replicas };
    block_or_answer(ctx, what, until, durable);
    Ok(())
}
