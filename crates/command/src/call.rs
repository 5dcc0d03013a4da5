//! The one place where a command runs: reply rolled back on error, figures kept, long calls reported.

use crate::table::Row;
use crate::{Ctx, Stop};
use engine::Fetch;

/// Sees calls that took long. Implemented by whoever keeps the slow log.
pub trait Observer: Send + Sync {
    /// Calls at least this long are shown, in nanoseconds; `u64::MAX` shows none.
    fn slow_ns(&self) -> u64;

    /// A call took at least [`Observer::slow_ns`].
    fn slow_call(&self, ctx: &Ctx<'_>, duration_ns: u64);
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
        Ok(()) => Ok(()),
        Err(Stop::Fetch) => {
            ctx.reply.rewind(mark);
            Err(Fetch)
        }
        Err(Stop::Error(text)) => {
            ctx.reply.rewind(mark);
            ctx.reply.error(text.as_bytes());
            ctx.stats.error_replies.add(1);
            if let Some(stats) = ctx.stats.command(row.index) {
                stats.failed.add(1);
            }
            Ok(())
        }
    }
}
