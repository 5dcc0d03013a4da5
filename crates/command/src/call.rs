//! The one place where a command runs: reply rolled back on error, figures kept, long calls reported.

use crate::table::Row;
use crate::{Ctx, Flags, KeyFlags, Stop};
use engine::Fetch;
use push::Tracking;
use std::sync::Arc;

/// Sees calls that are done. Implemented by whoever keeps the slow log; a part of the host as `Arc<dyn Observer>`, so that
/// EXEC can show what it ran.
pub trait Observer: Send + Sync {
    /// A call took so long, and was asked and answered in so many bytes.
    fn done(&self, ctx: &Ctx<'_>, duration_ns: u64, request_bytes: usize, reply_bytes: usize);
}

/// Remembers the keys of a read for a client that caches, while their shards are locked.
#[cold]
fn remember_keys(ctx: &mut Ctx<'_>, row: &Row) {
    let session = &*ctx.session;
    let remembers = session.tracking.as_ref().is_some_and(|caching| caching.remembers());
    if !remembers || !row.spec.flags.contains(Flags::READONLY) {
        return;
    }
    let tracking = ctx.host.part::<Arc<Tracking>>();
    row.spec.visit_keys(&ctx.args, |index, spec| {
        if !spec.flags.contains(KeyFlags::NOT_KEY) {
            tracking.remember(session.id, ctx.args.bytes(index).unwrap_or_default(), session.info.worker);
        }
    });
}

/// Runs a command whose arity is right and whose shards are locked. What it answers, an error included, is in the reply.
///
/// # Errors
/// [`Fetch`] when rows have to be fetched first: nothing was changed, the reply is as it was.
#[inline]
pub fn call(ctx: &mut Ctx<'_>, row: &Row) -> Result<(), Fetch> {
    let crate::Run::Call(run) = row.spec.run else { return Ok(()) };
    let mark = ctx.reply.mark();
    match run(ctx) {
        Ok(()) => {
            if ctx.session.tracking.is_some() {
                remember_keys(ctx, row);
            }
            Ok(())
        }
        Err(Stop::Fetch) => {
            ctx.reply.rewind(mark);
            Err(Fetch)
        }
        Err(Stop::Error(text)) => {
            ctx.reply.rewind(mark);
            ctx.reply.error(text.as_bytes());
            ctx.stats.count_error(text.as_bytes());
            if let Some(stats) = ctx.stats.command(row.index.into()) {
                stats.failed.add(1);
            }
            Ok(())
        }
    }
}
