//! Saving and ending. A server that keeps its data in memory only refuses what would save, since a client that is told
//! "OK" would rely on it.

use crate::About;
use crate::replication::{block_or_answer, replicas_and_end};
use base::UnixMs;
use command::blocking::{Awaited, Block, LOG_IS_OFF, Task};
use command::pause::{Pause, Paused};
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use durability::{Busy, Cancelled, Cause, Durability};
use proto::ReplyBuffer;
use rdb::Target;
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
            &[
                Argument::word("schedule", "SCHEDULE").since("3.2.2"),
                Argument::word("cancel", "CANCEL").since("8.1.0"),
                Argument::block(
                    "rdb",
                    &[
                        Argument::word("rdb", "RDB").since("9.1.0"),
                        Argument::integer("version").after("VERSION").optional(),
                    ],
                )
                .since("9.1.0"),
            ],
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

/// What a server without a data directory answers.
const MEMORY_ONLY: Stop = Stop::error("ERR this server keeps its data in memory only and cannot save it to disk");

/// What Redis answers when a save cannot begin for another one.
const SAVING: Stop = Stop::error("ERR Background save already in progress");

/// Asks a server to end. Clones are handles of the same.
#[derive(Clone)]
pub struct ShutdownRequest(Arc<Request>);

struct Request {
    requested: AtomicBool,
    settled: AtomicBool,
    stop: Box<dyn Fn() + Send + Sync>,
}

impl ShutdownRequest {
    /// `stop` is called on a worker and makes the server end soon: it sets a flag or wakes a thread, and returns.
    pub fn new(stop: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Request {
            requested: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            stop: Box::new(stop),
        }))
    }

    /// Whether a client has asked for it.
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Acquire)
    }

    /// Whether it is settled what is saved before: it was saved, or is not to be.
    pub fn is_settled(&self) -> bool {
        self.0.settled.load(Ordering::Acquire)
    }

    fn request(&self) {
        self.0.settled.store(true, Ordering::Release);
        self.0.requested.store(true, Ordering::Release);
        (self.0.stop)();
    }
}

/// SAVE, waited for.
#[derive(Debug)]
struct Saving(durability::Task);

impl Task for Saving {
    fn is_over(&self) -> bool {
        self.0.outcome().is_some()
    }

    fn answer(&self, reply: &mut ReplyBuffer) -> Option<String> {
        match self.0.outcome()? {
            Ok(()) => {
                reply.simple("OK");
                None
            }
            Err(error) => {
                let text = format!("ERR the checkpoint failed, and what was saved before stands: {error}");
                reply.error(&text);
                Some(text)
            }
        }
    }
}

/// SHUTDOWN, whose checkpoint is waited for.
struct Ending {
    task: durability::Task,
    is_forced: bool,
    pause: Pause,
    request: ShutdownRequest,
}

impl std::fmt::Debug for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ending").field("task", &self.task).finish_non_exhaustive()
    }
}

impl Task for Ending {
    fn is_over(&self) -> bool {
        self.task.outcome().is_some()
    }

    fn answer(&self, reply: &mut ReplyBuffer) -> Option<String> {
        match self.task.outcome()? {
            Err(_) if !self.is_forced => {
                self.pause.unpause();
                let text = "ERR Errors trying to SHUTDOWN. Check logs.";
                reply.error(text);
                Some(text.to_owned())
            }
            _ => {
                self.request.request();
                None
            }
        }
    }
}

fn shutdown(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut save, mut abort, mut force) = (None, false, false);
    for word in ctx.args.from(1) {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        force |= is("force");
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
        // A shutdown waits for no replica here, so there is never one to be called off.
        return Err(Stop::error("ERR No shutdown in progress."));
    }
    let request = ctx.host.part::<ShutdownRequest>().clone();
    let durability = ctx.host.find::<Arc<Durability>>();
    let saves = match (save, durability) {
        (Some(true), None) => return Err(MEMORY_ONLY),
        (Some(save), Some(_)) => save,
        (None, Some(durability)) => durability.saves_at_end(),
        (_, None) => false,
    };
    let Some(durability) = durability.filter(|_| saves) else {
        request.request();
        ctx.session.close_after_replies = true;
        return Ok(());
    };
    // What is written from here on would not be in the checkpoint.
    let pause = ctx.host.part::<Pause>().clone();
    pause.pause(ctx.now(), UnixMs::MAX, Paused::Writes);
    let task = durability.schedule(Cause::Shutdown);
    let what = Awaited::Task(Arc::new(Ending { task, is_forced: force, pause, request }));
    ctx.session.block = Some(Block::begin(&ctx.session.info, what, None));
    Ok(())
}

fn save(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let task = durability(ctx)?.begin(Cause::Asked).map_err(|_| SAVING)?;
    let what = Awaited::Task(Arc::new(Saving(task)));
    ctx.session.block = Some(Block::begin(&ctx.session.info, what, None));
    Ok(())
}

fn bgsave(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let schedule = match ctx.args.len() {
        1 => false,
        2 if ctx.is_word(1, "schedule") => true,
        2 if ctx.is_word(1, "cancel") => return cancel(ctx),
        2 if ctx.is_word(1, "rdb") => return save_rdb(ctx, Target::V11),
        4 if ctx.is_word(1, "rdb") && ctx.is_word(2, "version") => {
            let version = ctx.integer(3)?;
            let target = Target::of_version(version).ok_or_else(|| {
                Stop::error_with(format!(
                    "ERR RDB version {version} is not written: 10 (Redis 7.0), 11 (Redis 7.2, Valkey) or 80 (Valkey 9)"
                ))
            })?;
            return save_rdb(ctx, target);
        }
        _ => return Err(error::SYNTAX),
    };
    let durability = durability(ctx)?;
    let text = match durability.begin(Cause::Asked) {
        Ok(_) => "Background saving started",
        Err(Busy { is_save: true }) => return Err(SAVING),
        Err(Busy { is_save: false }) if schedule => {
            durability.schedule(Cause::Asked);
            "Background saving scheduled"
        }
        Err(Busy { is_save: false }) => {
            return Err(Stop::error(
                "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to \
                 schedule a BGSAVE whenever possible.",
            ));
        }
    };
    ctx.reply.simple(text);
    Ok(())
}

/// Takes a checkpoint and has an RDB file made of it.
fn save_rdb(ctx: &mut Ctx<'_>, target: Target) -> Result<(), Stop> {
    durability(ctx)?.begin(Cause::Rdb(target)).map_err(|busy| match busy.is_save {
        true => SAVING,
        false => Stop::error("ERR a checkpoint is being taken: ask again when it is over (INFO persistence)"),
    })?;
    ctx.reply.simple("Background saving started");
    Ok(())
}

fn cancel(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let text = match ctx.host.find::<Arc<Durability>>().and_then(|durability| durability.cancel()) {
        Some(Cancelled::Running) => "Background saving cancelled",
        Some(Cancelled::Scheduled) => "Scheduled background saving cancelled",
        None => return Err(Stop::error("ERR Background saving is currently not in progress or scheduled")),
    };
    ctx.reply.simple(text);
    Ok(())
}

/// A checkpoint makes the log before it obsolete: what a rewritten append-only file is for.
fn bgrewriteaof(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let durability = durability(ctx)?;
    let text = match durability.begin(Cause::Rewrite) {
        Ok(_) => "Background append only file rewriting started",
        Err(Busy { is_save: true }) => {
            durability.schedule(Cause::Rewrite);
            "Background append only file rewriting scheduled"
        }
        Err(Busy { is_save: false }) => {
            return Err(Stop::error("ERR Background append only file rewriting already in progress"));
        }
    };
    ctx.reply.simple(text);
    Ok(())
}

/// As Redis answers before its first save: the time of the start.
fn lastsave(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let ms = match ctx.host.find::<Arc<Durability>>() {
        Some(durability) => durability.status().last_save_ms,
        None => ctx.host.part::<About>().started_at,
    };
    ctx.reply.integer(ms / 1000);
    Ok(())
}

fn durability<'c>(ctx: &Ctx<'c>) -> Result<&'c Durability, Stop> {
    ctx.host.find::<Arc<Durability>>().map(|durability| &**durability).ok_or(MEMORY_ONLY)
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
