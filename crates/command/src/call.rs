//! The one place where a command runs: reply rolled back on error, figures kept, long calls reported.

use crate::table::Row;
use crate::{Ctx, Stop};
use engine::Fetch;

/// Sees calls that are done. Implemented by whoever keeps the slow log; a part of the host as `Arc<dyn Observer>`, so that
/// EXEC can show what it ran.
pub trait Observer: Send + Sync {
    /// A call took so long, and was asked and answered in so many bytes.
    fn done(&self, ctx: &Ctx<'_>, duration_ns: u64, request_bytes: usize, reply_bytes: usize);
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
            ctx.stats.count_error(text.as_bytes());
            if let Some(stats) = ctx.stats.command(row.index) {
                stats.failed.add(1);
            }
            Ok(())
        }
    }
}
