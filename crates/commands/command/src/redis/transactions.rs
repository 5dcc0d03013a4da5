//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! A transaction runs as one command: EXEC holds the locks of all queued requests and watched keys at once, and its
//! changes are one record of the log. So it is strictly serializable, whatever its keys.

use crate::acl::{Origin, denial};
use crate::call::{call_at_once, fail};
use crate::error::{self, Stop};
use crate::session::{Transaction, WatchedKey};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Row, Run};
use base::DbIndex;
use base::integer::parse_integer;
use std::collections::BTreeSet;
use value::absent;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&MULTI, &EXEC, &DISCARD, &WATCH, &UNWATCH];

/// Documentation that all rows of this family share.
const fn docs(summary: &'static str, since: &'static str, complexity: &'static str) -> Docs {
    Docs { summary, since, group: "transactions", complexity, ..Docs::NONE }
}

static MULTI: CommandSpec = CommandSpec {
    name: "multi",
    arity: 1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NO_MULTI)
        .union(Flags::NOT_QUEUED),
    categories: Categories::TRANSACTION,
    keys: &[],
    locks: Locks::None,
    docs: &docs("Begins a transaction: commands that follow are queued.", "1.2.0", "O(1)"),
    run: Run::Call(multi),
};

fn multi(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.session.transaction.is_some() {
        return Err(Stop::error("ERR MULTI calls can not be nested"));
    }
    ctx.session.transaction = Some(Transaction::default());
    ctx.session.knows_transactions = true;
    ctx.reply.ok();
    Ok(())
}

static EXEC: CommandSpec = CommandSpec {
    name: "exec",
    arity: 1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::SKIP_COMMANDLOG)
        .union(Flags::NOT_QUEUED),
    categories: Categories::TRANSACTION,
    keys: &[],
    locks: Locks::Queue,
    docs: &docs("Runs the queued commands as one.", "1.2.0", "Depends on commands in the transaction"),
    run: Run::Call(exec),
};

fn exec(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(transaction) = &ctx.session.transaction else { return Err(Stop::error("ERR EXEC without MULTI")) };
    if transaction.poisoned {
        end(ctx);
        return Err(Stop::error("EXECABORT Transaction discarded because of previous errors."));
    }
    fetch_all(ctx)?;
    // Check the keys in any case: the reply depends on changes of them, which may still be on their way to the log.
    if any_watched_expired(ctx)? | ctx.session.watch.is_broken() {
        end(ctx);
        ctx.reply.null_array();
        return Ok(());
    }
    let Some(transaction) = ctx.session.transaction.take() else { return Ok(()) };
    ctx.session.watch = Default::default();
    ctx.session.running = Some(transaction.queue.len());
    // The queue has left the session, so that the request could not run again.
    let ran = absent::waiting(|| run(ctx, &transaction));
    ctx.session.running = None;
    ran
}

fn run(ctx: &mut Ctx<'_>, transaction: &Transaction<Run>) -> Result<(), Stop> {
    let observer = ctx.host.observer.as_ref();
    let (whole, mut fits) = (ctx.reply.mark(), Ok(()));
    ctx.reply.array(transaction.queue.len());
    for queued in &transaction.queue {
        if fits.is_err() {
            // Changes are made, since those before them were; what answers them is dropped.
            ctx.reply.rewind(whole);
            if queued.row.spec.flags.contains(Flags::READONLY) {
                continue;
            }
        }
        // INFO among them is to see what those before it have found.
        let (hits, misses) = ctx.ks.take_read_counts();
        ctx.stats.keyspace_hits.add(hits);
        ctx.stats.keyspace_misses.add(misses);
        let start = ctx.reply.len();
        let mut inner = Ctx {
            spec: queued.row.spec,
            args: queued.args.as_args(),
            reply: &mut *ctx.reply,
            ks: &mut *ctx.ks,
            session: &mut *ctx.session,
            host: ctx.host,
            stats: ctx.stats,
            hashed: None,
        };
        let started = ctx.stats.now();
        if inner.ks.may_fetch() {
            inner.ks.next_command();
        }
        if let Some(text) = no_longer_permitted(&inner, &queued.row) {
            let mark = inner.reply.mark();
            fail(inner.reply, mark, inner.stats, &queued.row, &text);
            continue;
        }
        // Every row that the queue names has been read once under these locks. A script before it may have brought
        // others into reach: SWAPDB does.
        call_at_once(&mut inner, &queued.row);
        let duration = inner.stats.now().saturating_sub(started);
        if let Some(stats) = inner.stats.command(queued.row.index.into()) {
            stats.record(duration);
        }
        if let Some(observer) = observer {
            let (request_bytes, reply_bytes) = (inner.args.total_bytes(), inner.reply.len().saturating_sub(start));
            inner.show_done(duration, request_bytes, reply_bytes, |done| observer.done(done));
        }
        if fits.is_ok() {
            fits = error::check_reply(ctx.reply);
        }
        if ctx.session.close_after_replies && queued.row.spec.categories.contains(Categories::SCRIPTING) {
            // The server ends, and nothing more is to be changed.
            break;
        }
    }
    fits
}

/// Why the user may not run a queued command any more, if its rights have changed.
fn no_longer_permitted(ctx: &Ctx<'_>, row: &Row) -> Option<Vec<u8>> {
    if ctx.session.is_unrestricted() {
        return None;
    }
    let denial = denial(ctx.session, ctx.host, (row, &ctx.args), Origin::Multi, ctx.now())?;
    let text = format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no \
         longer allowed for the following reason: {}",
        denial.reason.at_exec()
    );
    Some(text.into_bytes())
}

/// Reads every row the transaction can reach, so that a fetch happens before the first change and not between two.
fn fetch_all(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(transaction) = &ctx.session.transaction else { return Ok(()) };
    if !ctx.ks.may_fetch() {
        return Ok(());
    }
    let (selected, mut result) = (ctx.session.db, Ok(()));
    for db in databases(selected, transaction) {
        ctx.ks.select(db);
        for queued in &transaction.queue {
            let args = queued.args.as_args();
            queued.row.spec.visit_keys(&args, |index, spec| {
                // A channel is no row, and its shard is not locked.
                if spec.flags.contains(KeyFlags::NOT_KEY) {
                    return;
                }
                let key = ctx.ks.key(args.bytes(index).unwrap_or_default());
                // All are asked for, so that they come together and the transaction waits once.
                result = ctx.ks.peek(&key).map(|_| ()).and(result);
            });
        }
    }
    ctx.ks.select(selected);
    Ok(result?)
}

/// The databases a transaction can reach: the one selected, and those its SELECT, SWAPDB, MOVE and COPY name.
fn databases(selected: DbIndex, transaction: &Transaction<Run>) -> BTreeSet<DbIndex> {
    let named = transaction.queue.iter().flat_map(|queued| {
        let args = queued.args.as_args();
        let first = match queued.row.spec.name {
            "select" | "swapdb" => 1,
            "move" => 2,
            "copy" => 4,
            _ => args.len(),
        };
        args.from(first).filter_map(|word| u32::try_from(parse_integer(word)?).ok().map(DbIndex)).collect::<Vec<_>>()
    });
    named.chain([selected]).collect()
}

/// A watched key that has expired since WATCH counts as changed, even while its entry is still there.
fn any_watched_expired(ctx: &mut Ctx<'_>) -> Result<bool, Stop> {
    let selected = ctx.session.db;
    let mut expired = false;
    for watched in &ctx.session.watch.keys {
        ctx.ks.select(watched.db);
        let key = ctx.ks.key(&watched.key);
        let is_gone = ctx.ks.peek_head(&key)?.is_none();
        expired |= watched.was_live && is_gone;
    }
    ctx.ks.select(selected);
    Ok(expired)
}

/// Leaves the transaction and forgets what was watched.
fn end(ctx: &mut Ctx<'_>) {
    ctx.session.transaction = None;
    ctx.session.watch = Default::default();
}

static DISCARD: CommandSpec = CommandSpec {
    name: "discard",
    arity: 1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NOT_QUEUED),
    categories: Categories::TRANSACTION,
    keys: &[],
    locks: Locks::None,
    docs: &docs("Drops the queued commands.", "2.0.0", "O(N), when N is the number of queued commands"),
    run: Run::Call(discard),
};

fn discard(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.session.transaction.is_none() {
        return Err(Stop::error("ERR DISCARD without MULTI"));
    }
    end(ctx);
    ctx.reply.ok();
    Ok(())
}

static WATCH: CommandSpec = CommandSpec {
    name: "watch",
    arity: -2,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::ALLOW_BUSY)
        .union(Flags::NO_MULTI)
        .union(Flags::NOT_QUEUED),
    categories: Categories::TRANSACTION,
    keys: &[KeySpec::range(1, -1, 1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0).repeated()],
        ..docs("Makes the next transaction run only if these keys stay as they are.", "2.2.0", "O(1) for every key.")
    },
    run: Run::Call(watch),
};

fn watch(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.session.transaction.is_some() {
        return Err(Stop::error("ERR WATCH inside MULTI is not allowed"));
    }
    let mut live = Vec::new();
    for index in 1..ctx.args.len() {
        let key = ctx.key(index);
        live.push(ctx.ks.peek_head(&key)?.is_some());
    }
    ctx.session.knows_transactions = true;
    let changed = ctx.session.watch.changed.get_or_insert_default().clone();
    for (index, was_live) in (1..).zip(live) {
        let key = ctx.key(index);
        let watched = WatchedKey { db: ctx.session.db, key: key.bytes.to_vec(), was_live };
        if ctx.session.watch.add(watched) {
            ctx.ks.watch(&key, &changed);
        }
    }
    ctx.reply.ok();
    Ok(())
}

static UNWATCH: CommandSpec = CommandSpec {
    name: "unwatch",
    arity: 1,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST).union(Flags::ALLOW_BUSY),
    categories: Categories::TRANSACTION,
    keys: &[],
    locks: Locks::None,
    docs: &docs("Forgets the keys watched.", "2.2.0", "O(1)"),
    run: Run::Call(unwatch),
};

fn unwatch(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.session.watch = Default::default();
    ctx.reply.ok();
    Ok(())
}
