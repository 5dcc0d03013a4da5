//! Commands on whole databases, and the server's time.

use base::KeyspaceId;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use engine::{Effect, Keyspace};
use std::sync::Arc;
use store::Store;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&DBSIZE, &FLUSHALL, &FLUSHDB, &SWAPDB, &TIME];

static DBSIZE: CommandSpec = CommandSpec {
    name: "dbsize",
    arity: 1,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[],
    locks: Locks::All,
    docs: &Docs {
        summary: "Counts the keys of the selected database.",
        since: "1.0.0",
        group: "server",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        ..Docs::NONE
    },
    run: Run::Call(dbsize),
};

static FLUSHALL: CommandSpec = CommandSpec {
    name: "flushall",
    arity: -1,
    flags: Flags::WRITE.union(Flags::AUDITED).union(Flags::FREES),
    categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
    keys: &[],
    locks: Locks::All,
    docs: &Docs {
        summary: "Empties all databases.",
        since: "1.0.0",
        group: "server",
        complexity: "O(N) where N is the total number of keys in all databases",
        history: &[("4.0.0", "Takes `ASYNC`."), ("6.2.0", "Takes `SYNC`.")],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        arguments: &[Argument::one_of(
            "flush-type",
            &[Argument::word("async", "ASYNC").since("4.0.0"), Argument::word("sync", "SYNC").since("6.2.0")],
        )
        .optional()],
        ..Docs::NONE
    },
    run: Run::Call(flushall),
};

static FLUSHDB: CommandSpec = CommandSpec {
    name: "flushdb",
    arity: -1,
    flags: Flags::WRITE.union(Flags::AUDITED).union(Flags::FREES),
    categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
    keys: &[],
    locks: Locks::All,
    docs: &Docs {
        summary: "Empties the selected database.",
        since: "1.0.0",
        group: "server",
        complexity: "O(N) where N is the number of keys in the selected database",
        history: &[("4.0.0", "Takes `ASYNC`."), ("6.2.0", "Takes `SYNC`.")],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        arguments: &[Argument::one_of(
            "flush-type",
            &[Argument::word("async", "ASYNC").since("4.0.0"), Argument::word("sync", "SYNC").since("6.2.0")],
        )
        .optional()],
        ..Docs::NONE
    },
    run: Run::Call(flushdb),
};

static SWAPDB: CommandSpec = CommandSpec {
    name: "swapdb",
    arity: 3,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::AUDITED),
    categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
    keys: &[],
    locks: Locks::All,
    docs: &Docs {
        summary: "Exchanges the contents of two databases.",
        since: "4.0.0",
        group: "server",
        complexity: "O(N) where N is the count of clients watching or blocking on keys from both databases.",
        arguments: &[Argument::integer("index1"), Argument::integer("index2")],
        ..Docs::NONE
    },
    run: Run::Call(swapdb),
};

static TIME: CommandSpec = CommandSpec {
    name: "time",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Tells the server's time.",
        since: "2.6.0",
        group: "server",
        complexity: "O(1)",
        tips: &["nondeterministic_output"],
        ..Docs::NONE
    },
    run: Run::Call(time),
};

fn dbsize(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let len = ctx.ks.len(ctx.ks.space());
    ctx.reply.integer(i64::try_from(len).unwrap_or(i64::MAX));
    Ok(())
}

/// Checks the argument of a flush. Both ways are the same here: entries are gone at once and their memory comes back in
/// small steps afterwards.
fn check_flush(ctx: &Ctx<'_>) -> Result<(), Stop> {
    match ctx.args.len() {
        1 => Ok(()),
        2 if ctx.is_word(1, "sync") || ctx.is_word(1, "async") => Ok(()),
        _ => Err(error::SYNTAX),
    }
}

/// Removes all entries of a keyspace. One without entries makes no effect: a record of a flush means that there was
/// something to lose.
pub fn clear(ks: &mut dyn Keyspace, space: KeyspaceId) {
    if !ks.is_empty(space) {
        ks.apply(&Effect::Clear { space });
    }
}

fn flushdb(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    check_flush(ctx)?;
    let space = ctx.ks.space();
    clear(ctx.ks, space);
    ctx.reply.ok();
    Ok(())
}

fn flushall(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    check_flush(ctx)?;
    for db in (0..).map(base::DbIndex) {
        let Some(space) = ctx.ks.space_of(db) else { break };
        clear(ctx.ks, space);
    }
    ctx.reply.ok();
    Ok(())
}

fn swapdb(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let number = |index, wrong| {
        let number = ctx.integer(index).ok().and_then(|number| i32::try_from(number).ok());
        number.ok_or(Stop::error(wrong))
    };
    let first = number(1, "ERR invalid first DB index")?;
    let second = number(2, "ERR invalid second DB index")?;
    let space = |number: i32| {
        let db = u32::try_from(number).map_err(|_| error::DB_OUT_OF_RANGE)?;
        ctx.ks.space_of(base::DbIndex(db)).ok_or(error::DB_OUT_OF_RANGE)
    };
    let (a, b) = (space(first)?, space(second)?);
    // A replay of another server's log has no store of its own.
    let is_on_disk = |space| ctx.host.find::<Arc<Store>>().is_some_and(|store| store.pressure.is_on_disk(space));
    if is_on_disk(a) != is_on_disk(b) {
        return Err(Stop::error(
            "ERR one of these databases is on disk and the other in memory: only databases with the same engine can be \
             exchanged",
        ));
    }
    if a != b {
        ctx.ks.apply(&Effect::Swap { a, b });
    }
    ctx.reply.ok();
    Ok(())
}

fn time(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    // The machine's wall clock as it is: expirations follow a slewed one.
    let now_us = ctx.host.part::<crate::Needed, Arc<Store>>().clock.wall_us();
    ctx.reply.array(2);
    ctx.reply.bulk_integer(now_us.div_euclid(1_000_000));
    ctx.reply.bulk_integer(now_us.rem_euclid(1_000_000));
    Ok(())
}
