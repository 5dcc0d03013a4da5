//! `incr` and `decr`.

use crate::arguments::{answer, answer_number, lifetime, number, refuse};
use crate::item::{self, Attributes, Marks, TYPE_MISMATCH};
use crate::tally::{self, Op};
use command::{Ctx, Stop};
use engine::{Key, Type, Value};
use proto::memcached::parse_unsigned;

/// The item is no number.
pub const NOT_NUMERIC: Stop = Stop::error("CLIENT_ERROR cannot increment or decrement non-numeric value");

/// Arguments without an initial value, and with one, without `noreply`.
const COUNT: usize = 3;
const COUNT_WITH_INITIAL: usize = 6;

/// `incr key delta [flags exptime initial]`: beyond 64 bits it wraps to 0. With an initial value, as ARCUS has it, a
/// key that is absent gets that value, and the delta is not applied.
pub fn incr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    change_and_answer(ctx, Op::Incr, u64::wrapping_add)
}

/// `decr key delta [flags exptime initial]`: it stops at 0. The number is stored without the
/// spaces that memcached appends to a shorter one.
pub fn decr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    change_and_answer(ctx, Op::Decr, u64::saturating_sub)
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

impl Outcome {
    /// Counts it for `stats`.
    pub fn count(&self, ctx: &Ctx<'_>, op: Op) {
        match self {
            Self::Changed(_) => tally::count(ctx.stats, op, tally::Outcome::Hit),
            Self::NotFound => tally::count(ctx.stats, op, tally::Outcome::Miss),
            Self::NotNumeric | Self::OtherType => {}
        }
    }
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

fn change_and_answer(ctx: &mut Ctx<'_>, op: Op, by: fn(u64, u64) -> u64) -> Result<(), Stop> {
    let (key, delta) = (ctx.key(1), number(&ctx.args, 2)?);
    let has_initial = ctx.args.len() >= COUNT_WITH_INITIAL;
    let count = if has_initial { COUNT_WITH_INITIAL } else { COUNT };
    let outcome = change(ctx, &key, |old| by(old, delta))?;
    outcome.count(ctx, op);
    match outcome {
        Outcome::Changed(new) => answer_number(ctx, count, new),
        Outcome::NotFound if has_initial => {
            let initial = store_initial(ctx, &key)?;
            answer_number(ctx, count, initial);
        }
        Outcome::NotFound => answer(ctx, count, "NOT_FOUND"),
        Outcome::NotNumeric => return refuse(ctx, count, NOT_NUMERIC),
        Outcome::OtherType => return refuse(ctx, count, TYPE_MISMATCH),
    }
    Ok(())
}

/// Stores the initial value of the request and returns it.
fn store_initial(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<u64, Stop> {
    // The parser has seen that it fits.
    let flags = number(&ctx.args, 3)? as u32;
    let lifetime = lifetime(ctx, 4)?;
    let initial = number(&ctx.args, 5)?;
    let attributes = Attributes { flags, lifetime, marks: Marks::NONE };
    item::store(ctx, key, Value::Bytes(initial.to_string().as_bytes()), &attributes)?;
    Ok(initial)
}
