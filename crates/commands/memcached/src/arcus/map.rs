//! `mop`: maps.

use super::{Request, UNREADABLE_REQUEST, create as create_any, limits, removal_of, value_line};
use crate::tally::Op;
use command::{Ctx, Stop};
use engine::Type;
use proto::memcached::arcus::Family;
use proto::memcached::arcus::grammar::{Removal, split_keys};
use types::attributed::{Added, Fields, Map, Store};

/// `mop create key attributes`
pub fn create(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    create_any(ctx, Family::Map)
}

/// `mop insert key field [create attributes]`
pub fn insert(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set(ctx, Op::MopInsert, Store::Insert)
}

/// `mop upsert key field [create attributes]`
pub fn upsert(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set(ctx, Op::MopInsert, Store::Upsert)
}

/// `mop update key field`
pub fn update(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set(ctx, Op::MopUpdate, Store::Update)
}

fn set(ctx: &mut Ctx<'_>, op: Op, store: Store) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, op) else { return Ok(()) };
    let new = request.created(ctx, 1, Family::Map)?;
    let allowed = limits::allowed(ctx.host, Type::Hash);
    match Map(&request.key).set(ctx.ks, (request.word(0), request.block), store, new.as_ref(), allowed)? {
        Added::Replaced if store == Store::Update => request.answer(ctx, "UPDATED"),
        added => request.answer_added(ctx, added),
    }
}

/// `mop delete key lenfields numfields [drop]`
pub fn delete(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::MopDelete) else { return Ok(()) };
    let removal = removal_of(Removal::of_delete(request.words_from(2)).ok_or(UNREADABLE_REQUEST)?);
    let (names, mut found) = (names(&request), 0);
    let taken =
        Map(&request.key).take(ctx.ks, fields(&names), (removal, false), |_, count| found = count, |(), _| ())?;
    request.note_cost(ctx, found);
    request.answer_taken(ctx, taken)
}

/// `mop get key lenfields numfields [delete|drop]`
pub fn get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::MopGet) else { return Ok(()) };
    let removal = removal_of(Removal::of_read(request.words_from(2)).ok_or(UNREADABLE_REQUEST)?);
    let names = names(&request);
    let (reply, mut found) = (&mut *ctx.reply, 0);
    let begin = |flags, count| {
        found = count;
        value_line(reply, flags, count);
        reply
    };
    let taken = Map(&request.key).take(ctx.ks, fields(&names), (removal, true), begin, |reply, cell| {
        reply.words_line(&[cell.field], Some(cell.value.len()), cell.value);
    })?;
    request.note_cost(ctx, found);
    request.answer_taken(ctx, taken)
}

/// The fields that the block names; none for all.
fn names<'a>(request: &Request<'a>) -> Vec<&'a [u8]> {
    if request.block.is_empty() { Vec::new() } else { split_keys(request.block).collect() }
}

fn fields<'a>(names: &'a [&'a [u8]]) -> Fields<'a> {
    if names.is_empty() { Fields::All } else { Fields::Named(names) }
}
