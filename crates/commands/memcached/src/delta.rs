//! `incr` and `decr`.

use crate::arguments::{answer, answer_number, number, refuse};
use crate::item::{self, TYPE_MISMATCH};
use command::{Ctx, Stop};
use engine::{Key, Type};
use proto::memcached::parse_unsigned;

/// The item is no number.
pub const NOT_NUMERIC: Stop = Stop::error("CLIENT_ERROR cannot increment or decrement non-numeric value");

/// `incr key delta`: beyond 64 bits it goes on at 0.
pub fn incr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    change_and_answer(ctx, u64::wrapping_add)
}

/// `decr key delta`: it stops at 0. The number is stored without the spaces that memcached leaves behind a shorter one.
pub fn decr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    change_and_answer(ctx, u64::saturating_sub)
}

/// What has become of a number.
pub enum Outcome {
    /// It is this now.
    Changed(u64),
    /// There is none.
    NotFound,
    /// The item is no number.
    NotNumeric,
    /// The key holds another type.
    OtherType,
}

/// Changes the number under the key.
pub fn change(ctx: &mut Ctx<'_>, key: &Key<'_>, change: impl FnOnce(u64) -> u64) -> Result<Outcome, Stop> {
    let Some(entry) = ctx.ks.read_to_edit(key)? else { return Ok(Outcome::NotFound) };
    if entry.kind != Type::String {
        return Ok(Outcome::OtherType);
    }
    let Some(old) = parse_unsigned(entry.value.bytes().trim_ascii_end()) else { return Ok(Outcome::NotNumeric) };
    let new = change(old);
    item::rewrite(ctx, key, new.to_string().as_bytes())?;
    Ok(Outcome::Changed(new))
}

fn change_and_answer(ctx: &mut Ctx<'_>, by: fn(u64, u64) -> u64) -> Result<(), Stop> {
    let (key, delta) = (ctx.key(1), number(&ctx.args, 2)?);
    match change(ctx, &key, |old| by(old, delta))? {
        Outcome::Changed(new) => answer_number(ctx, 3, new),
        Outcome::NotFound => answer(ctx, 3, "NOT_FOUND"),
        Outcome::NotNumeric => return refuse(ctx, 3, NOT_NUMERIC),
        Outcome::OtherType => return refuse(ctx, 3, TYPE_MISMATCH),
    }
    Ok(())
}
