//! The one place where a command runs: reply rolled back on error, figures kept, long calls reported.

use crate::audit::Ended;
use crate::observer::Done;
use crate::spec::{Answer, Look};
use crate::stats::WorkerStats;
use crate::{Ctx, Flags, KeyFlags, Row, Run, Stop};
use engine::{Away, Fetch, Type};
use proto::{ReplyBuffer, ReplyMark};

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

impl Ctx<'_> {
    /// Shows an observer the call that has run in this context.
    pub fn show_done(&self, duration_ns: u64, request_bytes: usize, reply_bytes: usize, to: impl FnOnce(&Done<'_>)) {
        to(&Done {
            flags: self.spec.flags,
            keys: self.spec.keys,
            args: self.args,
            client: &self.session.info,
            stats: self.stats,
            hashed: self.hashed,
            hash: &|bytes| self.ks.key(bytes),
            now: self.now(),
            duration_ns,
            request_bytes,
            reply_bytes,
        });
    }
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
    let session = &*ctx.session;
    let name = ctx.host.clients.command_name(row.index.into()).unwrap_or(row.spec.name);
    let ended = match (is_done, session.block.is_some()) {
        (false, _) => Ended::Failed,
        (true, true) => Ended::Begun,
        (true, false) => Ended::Done,
    };
    ctx.host.login.audit.ran((&session.info, session.user.name()), (name, &ctx.args), ended, ctx.now());
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
