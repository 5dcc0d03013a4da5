//! Where pipes begin and end.

use command::{Ctx, Stop};

/// Before the first request of a pipe.
pub fn begin(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.begin_pipe();
    Ok(())
}

/// After its last.
pub fn end(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.end_pipe();
    Ok(())
}
