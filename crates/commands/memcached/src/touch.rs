//! Commands about an item's time: `touch`, `gat`, `gats`, `delete`.

use crate::arguments::{Lifetime, answer, lifetime};
use crate::get::END;
use crate::item;
use crate::sticky;
use crate::tally::{Op, Outcome, count};
use command::{Ctx, Stop};
use engine::{Key, Type};
use proto::memcached::Command;
use types::generic;
use types::string::Expiration;

/// An item does not become sticky, nor does a sticky one cease to be.
const BAD_VALUE: Stop = Stop::error("CLIENT_ERROR bad value");

/// Gives the entry another expiration, if there is an entry.
fn expire(ctx: &mut Ctx<'_>, key: &Key<'_>, lifetime: Lifetime) -> Result<bool, Stop> {
    let Some(was_sticky) = ctx.ks.read_stored(key)?.map(|entry| entry.is_sticky()) else { return Ok(false) };
    if was_sticky != lifetime.is_sticky && sticky::bytes_max(ctx) > 0 {
        return Err(BAD_VALUE);
    }
    match lifetime.expiration {
        Expiration::At(at) => generic::expire_at(ctx.ks, key, at, Default::default())?,
        Expiration::Never | Expiration::Keep => generic::persist(ctx.ks, key)?,
    };
    Ok(true)
}

/// `touch key exptime`
pub fn touch(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, lifetime) = (ctx.key(1), lifetime(ctx, 2)?);
    let was_there = expire(ctx, &key, lifetime)?;
    count(ctx.stats, Op::Touch, if was_there { Outcome::Hit } else { Outcome::Miss });
    answer(ctx, 3, if was_there { "TOUCHED" } else { "NOT_FOUND" });
    Ok(())
}

/// `gat key exptime`, the last key of its line.
pub fn gat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    get_and_touch(ctx, Command::Gat)
}

/// `gat key exptime`, a key before others.
pub fn gat_more(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    get_and_touch(ctx, Command::GatMore)
}

/// `gats key exptime`, the last key of its line.
pub fn gats(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    get_and_touch(ctx, Command::Gats)
}

/// `gats key exptime`, a key before others.
pub fn gats_more(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    get_and_touch(ctx, Command::GatsMore)
}

fn get_and_touch(ctx: &mut Ctx<'_>, command: Command) -> Result<(), Stop> {
    let (key, lifetime) = (ctx.key(1), lifetime(ctx, 2)?);
    match command {
        Command::Gats | Command::GatsMore => item::get_with_id(ctx)?,
        _ => {
            let entry = ctx.ks.read(&key)?;
            if let Some(entry) = &entry {
                item::reply(ctx.reply, key.bytes, entry, None);
            }
        }
    }
    let is_item = ctx.ks.peek_head(&key)?.is_some_and(|entry| entry.kind == Type::String);
    count(ctx.stats, Op::Touch, if is_item { Outcome::Hit } else { Outcome::Miss });
    if is_item {
        expire(ctx, &key, lifetime)?;
    }
    if matches!(command, Command::Gat | Command::Gats) {
        ctx.reply.text_line(END);
    }
    Ok(())
}

/// `delete key`
pub fn delete(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let was_there = generic::delete(ctx.ks, &key)?;
    count(ctx.stats, Op::Delete, if was_there { Outcome::Hit } else { Outcome::Miss });
    answer(ctx, 2, if was_there { "DELETED" } else { "NOT_FOUND" });
    Ok(())
}
