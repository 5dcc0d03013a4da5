//! `lop`: lists.

use super::{Request, UNREADABLE_REQUEST, create as create_any, element_line, limits, removal_of, value_line};
use crate::tally::Op;
use command::{Ctx, Stop};
use engine::Type;
use proto::memcached::arcus::Family;
use proto::memcached::arcus::grammar::{Removal, parse_index, parse_index_range};
use types::attributed::List;

/// `lop create key attributes`
pub fn create(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    create_any(ctx, Family::List)
}

/// `lop insert key index [create attributes]`
pub fn insert(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::LopInsert) else { return Ok(()) };
    let index = parse_index(request.word(0)).ok_or(UNREADABLE_REQUEST)?;
    let new = request.created(ctx, 1, Family::List)?;
    request.note_cost(ctx, cost(index, 0));
    let added =
        List(&request.key).insert(ctx.ks, index, request.block, new.as_ref(), limits::allowed(ctx.host, Type::List))?;
    request.answer_added(ctx, added)
}

/// `lop delete key range [drop]`
pub fn delete(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::LopDelete) else { return Ok(()) };
    let range = parse_index_range(request.word(0)).ok_or(UNREADABLE_REQUEST)?;
    let removal = removal_of(Removal::of_delete(request.words_from(1)).ok_or(UNREADABLE_REQUEST)?);
    let mut count = 0;
    let taken = List(&request.key).take(ctx.ks, range, (removal, false), |span| count = span.count())?;
    request.note_cost(ctx, cost(range.0, count));
    request.answer_taken(ctx, taken)
}

/// `lop get key range [delete|drop]`
pub fn get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::LopGet) else { return Ok(()) };
    let range = parse_index_range(request.word(0)).ok_or(UNREADABLE_REQUEST)?;
    let removal = removal_of(Removal::of_read(request.words_from(1)).ok_or(UNREADABLE_REQUEST)?);
    let (reply, mut count) = (&mut *ctx.reply, 0);
    let taken = List(&request.key).take(ctx.ks, range, (removal, true), |span| {
        count = span.count();
        value_line(reply, span.flags, span.count());
        span.each(|element| element_line(reply, element));
    })?;
    request.note_cost(ctx, cost(range.0, count));
    request.answer_taken(ctx, taken)
}

/// What a range costs in ARCUS, whose lists are chains: the way to its beginning, and its elements.
fn cost(from: i32, count: u64) -> u64 {
    count.saturating_add(u64::from(from.unsigned_abs())).saturating_add(u64::from(from >= 0))
}
