//! The one place where a command runs: reply rolled back on error, figures kept, long calls reported.

use crate::spec::{Answer, Look};
use crate::stats::WorkerStats;
use crate::table::Row;
use crate::{Args, CommandSpec, Ctx, Flags, KeyFlags, Run, Session, Stop};
use base::UnixMs;
use engine::{Away, Fetch, Key, Type};
use proto::{ReplyBuffer, ReplyMark};

/// Sees calls that are done; the slow log implements it. A part of the host as `Arc<dyn Observer>`, so that EXEC can
/// show what it ran.
pub trait Observer: Send + Sync {
    /// A call was made.
    fn done(&self, done: &Done<'_>);
}

/// A call that is done.
pub struct Done<'d> {
    /// The row that ran.
    pub spec: &'static CommandSpec,
    /// The arguments.
    pub args: Args<'d>,
    /// The connection.
    pub session: &'d Session,
    /// The figures of the worker.
    pub stats: &'d WorkerStats,
    /// A key argument that was hashed on the way: its index and the key.
    pub hashed: Option<(usize, Key<'d>)>,
    /// Hashes another.
    pub hash: &'d dyn Fn(&'d [u8]) -> Key<'d>,
    /// Wall time of the command.
    pub now: UnixMs,
    /// How long it took.
    pub duration_ns: u64,
    /// How long the request was.
    pub request_bytes: usize,
    /// How long the reply is.
    pub reply_bytes: usize,
}

impl<'d> Done<'d> {
    /// Shows the call that has run in this context.
    pub fn show(ctx: &Ctx<'_>, duration_ns: u64, request_bytes: usize, reply_bytes: usize, to: impl FnOnce(&Done<'_>)) {
        to(&Done {
            spec: ctx.spec,
            args: ctx.args,
            session: ctx.session,
            stats: ctx.stats,
            hashed: ctx.hashed,
            hash: &|bytes| ctx.ks.key(bytes),
            now: ctx.now(),
            duration_ns,
            request_bytes,
            reply_bytes,
        });
    }

    /// The argument at `index` as a key.
    pub fn key(&self, index: usize) -> Key<'d> {
        match self.hashed {
            Some((at, key)) if at == index => key,
            _ => (self.hash)(self.args.bytes(index).unwrap_or_default()),
        }
    }
}

/// Remembers the keys of a read for a client that caches, while their shards are locked.
#[cold]
fn remember_keys(ctx: &mut Ctx<'_>, row: &Row) {
    let session = &*ctx.session;
    let remembers = session.tracking.as_ref().is_some_and(|caching| caching.remembers());
    if !remembers || !row.spec.flags.contains(Flags::READONLY) {
        return;
    }
    let tracking = &ctx.host.tracking;
    row.spec.visit_keys(&ctx.args, |index, spec| {
        if !spec.flags.contains(KeyFlags::NOT_KEY) {
            tracking.remember(session.id, ctx.args.bytes(index).unwrap_or_default(), session.info.worker());
        }
    });
}

/// Runs a command whose arity is right and whose shards are locked. What it answers, an error included, is in the
/// reply.
///
/// # Errors
/// [`Fetch`] when rows have to be fetched first: nothing was changed, the reply is as it was.
#[inline]
pub fn call(ctx: &mut Ctx<'_>, row: &Row) -> Result<(), Fetch> {
    let mark = ctx.reply.mark();
    let ran = match row.spec.run {
        Run::Call(run) => run(ctx),
        Run::Read(answer) => read(ctx, row, answer),
        Run::Container(_) => Ok(()),
    };
    match ran {
        Ok(()) => {
            if ctx.session.tracking.is_some() {
                remember_keys(ctx, row);
            }
            if is_audited(row) {
                note(ctx, row, true);
            }
            Ok(())
        }
        Err(Stop::Fetch) => {
            ctx.reply.rewind(mark);
            Err(Fetch)
        }
        Err(Stop::Error(text)) => {
            if is_audited(row) {
                note(ctx, row, false);
            }
            fail(ctx.reply, mark, ctx.stats, row, text.as_bytes());
            Ok(())
        }
    }
}

/// Answers with a value that is copied from where it is, once. False, with nothing written, when it cannot be, or when
/// the command answers something else.
#[cold]
pub fn send_away(row: &Row, away: &Away<'_>, reply: &mut ReplyBuffer) -> bool {
    row.spec.flags.contains(Flags::SENDS_STRING)
        && away.kind == Type::String
        && reply.bulk_with(away.len, |bytes| (away.append_to)(bytes))
}

/// Notes a command of an administrator that has run or failed in the audit log.
#[cold]
fn note(ctx: &Ctx<'_>, row: &Row, is_done: bool) {
    ctx.host.login.audit.ran(ctx, row, is_done);
}

#[inline]
fn is_audited(row: &Row) -> bool {
    row.spec.flags.intersects(Flags::ADMIN.union(Flags::AUDITED))
}

/// As [`call`], of a command that cannot run again from its start, since others of its script or transaction have made
/// changes before it: rows that it lacks are read at once, while the locks are held. A row that cannot be read is
/// answered with an error.
pub fn call_at_once(ctx: &mut Ctx<'_>, row: &Row) {
    let mark = ctx.reply.mark();
    while call(ctx, row).is_err() {
        if let Err(error) = ctx.ks.load_lacking() {
            let text = format!("IOERR {error}");
            return fail(ctx.reply, mark, ctx.stats, row, text.as_bytes());
        }
    }
}

/// Runs a command that answers from one entry, where that is read as all others are.
fn read(ctx: &mut Ctx<'_>, row: &Row, answer: Answer) -> Result<(), Stop> {
    let (key, now) = (ctx.key(row.first_key.into()), ctx.now());
    let entry = ctx.ks.read(&key)?;
    answer(&Look { entry: entry.as_ref(), args: ctx.args, now }, ctx.reply)
}

/// Answers an error in place of what was written of the reply, and counts it.
#[cold]
pub fn fail(reply: &mut ReplyBuffer, mark: ReplyMark, stats: &WorkerStats, row: &Row, text: &[u8]) {
    reply.rewind(mark);
    reply.error(text);
    stats.count_error(text);
    if let Some(stats) = stats.command(row.index.into()) {
        stats.failed.add(1);
    }
}
