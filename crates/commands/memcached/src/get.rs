//! `get` and `gets`: items by their keys.

use crate::item;
use command::spec::Look;
use command::{Ctx, Stop};
use proto::ReplyBuffer;

/// The last line of what was got.
pub const END: &str = "END";

/// `get`, the last key of its line.
pub fn get(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    get_more(look, reply)?;
    reply.text_line(END);
    Ok(())
}

/// `get`, a key before others.
pub fn get_more(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    if let Some(entry) = look.entry {
        item::reply(reply, look.args.bytes(1).unwrap_or_default(), entry, None);
    }
    Ok(())
}

/// [`get`] as a call, which `stats detail` needs.
pub fn get_by_call(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    get_more_by_call(ctx)?;
    ctx.reply.text_line(END);
    Ok(())
}

/// [`get_more`] as a call.
pub fn get_more_by_call(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    if let Some(entry) = &ctx.ks.read(&key)? {
        item::reply(ctx.reply, key.bytes, entry, None);
    }
    Ok(())
}

/// `gets`, the last key of its line.
pub fn gets(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    gets_more(ctx)?;
    ctx.reply.text_line(END);
    Ok(())
}

/// `gets`, a key before others.
pub fn gets_more(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    item::get_with_id(ctx)
}

/// `gat` without a key.
pub fn nothing(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.text_line(END);
    Ok(())
}
