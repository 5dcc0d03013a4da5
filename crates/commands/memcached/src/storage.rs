//! Commands that store items: `set`, `add`, `replace`, `append`, `prepend`, `cas`.

use crate::arguments::{answer, lifetime, number, refuse};
use crate::item::{self, Attributes, Marks, TYPE_MISMATCH};
use crate::sticky;
use crate::tally::{self, Op, Outcome};
use command::{Ctx, Stop};
use engine::{Key, Type};
use proto::memcached::Refusal;
use types::generic;

const STORED: &str = "STORED";
const NOT_STORED: &str = "NOT_STORED";

/// Arguments of all but `cas`, without `noreply`.
const COUNT: usize = 5;

/// What is stored under a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Item,
    Other,
}

fn look(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Found, Stop> {
    Ok(match ctx.ks.read_stored(key)? {
        None => Found::Nothing,
        Some(entry) if entry.kind == Type::String => Found::Item,
        Some(_) => Found::Other,
    })
}

/// Stores what the request holds.
fn store(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<(), Stop> {
    // The parser has seen that it fits.
    let flags = number(&ctx.args, 3)? as u32;
    let lifetime = lifetime(ctx, 4)?;
    let value = ctx.value(2);
    item::store(ctx, key, value, &Attributes { flags, lifetime, marks: Marks::NONE })
}

fn store_if(ctx: &mut Ctx<'_>, holds: fn(Found) -> bool) -> Result<(), Stop> {
    let key = ctx.key(1);
    let found = look(ctx, &key)?;
    if found == Found::Other {
        return refuse(ctx, COUNT, TYPE_MISMATCH);
    }
    let holds = holds(found);
    if holds {
        store(ctx, &key)?;
    }
    answer(ctx, COUNT, if holds { STORED } else { NOT_STORED });
    Ok(())
}

/// `set`
pub fn set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    store_if(ctx, |_| true)
}

/// `add`: only if there is no item.
pub fn add(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    store_if(ctx, |found| found == Found::Nothing)
}

/// `replace`: only if there is an item.
pub fn replace(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    store_if(ctx, |found| found == Found::Item)
}

/// `append`: after the data; flags and expiration stay.
pub fn append(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    extend(ctx, |old, new| [old, new].concat())
}

/// `prepend`: before the data; flags and expiration stay.
pub fn prepend(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    extend(ctx, |old, new| [new, old].concat())
}

fn extend(ctx: &mut Ctx<'_>, join: fn(&[u8], &[u8]) -> Vec<u8>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let value = ctx.value(2);
    let bytes_max = item::bytes_max(ctx);
    sticky::check_growth(ctx, &key, value.bytes().len(), item::NO_ROOM)?;
    let joined = match ctx.ks.read_to_edit(&key)? {
        None => None,
        Some(entry) if entry.kind != Type::String => return refuse(ctx, COUNT, TYPE_MISMATCH),
        Some(entry) if entry.value.bytes().len().saturating_add(value.bytes().len()) > bytes_max => {
            tally::count_too_large(ctx.stats);
            return refuse(ctx, COUNT, Stop::error(Refusal::TooLarge.text()));
        }
        Some(entry) => Some(join(entry.value.bytes(), value.bytes())),
    };
    if let Some(joined) = &joined {
        item::extend(ctx, &key, joined)?;
    }
    answer(ctx, COUNT, if joined.is_some() { STORED } else { NOT_STORED });
    Ok(())
}

/// `cas`: only if the item has still this id.
pub fn cas(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, id) = (ctx.key(1), number(&ctx.args, 5)?);
    let count = COUNT.saturating_add(1);
    let (text, outcome) = match look(ctx, &key)? {
        Found::Nothing => ("NOT_FOUND", Outcome::Miss),
        Found::Other => return refuse(ctx, count, TYPE_MISMATCH),
        Found::Item if item::id(ctx, &key)? != Some(id) => ("EXISTS", Outcome::None),
        Found::Item => {
            store(ctx, &key)?;
            (STORED, Outcome::Hit)
        }
    };
    tally::count(ctx.stats, Op::Cas, outcome);
    answer(ctx, count, text);
    Ok(())
}

/// `set` of data that is too long: what was stored goes, so that no client gets an outdated item.
pub fn set_too_large(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    if look(ctx, &key)? == Found::Item {
        generic::delete(ctx.ks, &key)?;
    }
    tally::count_too_large(ctx.stats);
    answer(ctx, 2, Refusal::TooLarge.text());
    Ok(())
}
