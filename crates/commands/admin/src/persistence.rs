//! Saving. A server that keeps its data in memory only refuses commands that save, since a client that receives "OK"
//! would rely on it.

use crate::replication::{block_or_answer, replicas_and_end};
use command::blocking::{Awaited, Block, LOG_IS_OFF, Task};
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use durability::{Busy, Cancelled, Cause, Durability};
use proto::ReplyBuffer;
use rdb::Target;
use std::sync::Arc;
use store::Store;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&SAVE, &BGSAVE, &BGREWRITEAOF, &LASTSAVE, &WAITAOF];

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
                        Argument::word("rdb", "RDB").since("0.1.0"),
                        Argument::integer("version").after("VERSION").optional(),
                    ],
                )
                .since("0.1.0"),
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
pub(crate) const MEMORY_ONLY: Stop =
    Stop::error("ERR this server keeps its data in memory only and cannot save it to disk");

/// What Redis answers when a save cannot begin for another one.
const SAVING: Stop = Stop::error("ERR Background save already in progress");

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
        None => ctx.host.about.started_at,
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
    let durable = ctx.host.part::<crate::Needed, Arc<Store>>().log().map(|log| log.durable());
    if local > 0 && durable.is_none() {
        return Err(Stop::error(LOG_IS_OFF));
    }
    let what = Awaited::Durable { position: ctx.session.last_write, local: local > 0, replicas };
    block_or_answer(ctx, what, until, durable);
    Ok(())
}
