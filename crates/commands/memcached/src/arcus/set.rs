//! `sop`: sets.

use super::{Request, UNREADABLE_REQUEST, create as create_any, element_line, limits, removal_of, value_line};
use crate::tally::Op;
use command::{Ctx, Stop};
use engine::Type;
use proto::memcached::arcus::Family;
use proto::memcached::arcus::grammar::Removal;
use proto::memcached::parse_unsigned;
use types::attributed::{Set, Taken};
use types::string::IntegerText;

/// `sop create key attributes`
pub fn create(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    create_any(ctx, Family::Set)
}

/// `sop insert key [create attributes]`
pub fn insert(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::SopInsert) else { return Ok(()) };
    let new = request.created(ctx, 0, Family::Set)?;
    let added = Set(&request.key).insert(ctx.ks, request.block, new.as_ref(), limits::allowed(ctx.host, Type::Set))?;
    request.answer_added(ctx, added)
}

/// `sop delete key [drop]`
pub fn delete(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::SopDelete) else { return Ok(()) };
    let removal = removal_of(Removal::of_delete(request.words_from(0)).ok_or(UNREADABLE_REQUEST)?);
    let taken = Set(&request.key).delete(ctx.ks, request.block, removal)?;
    request.answer_taken(ctx, taken)
}

/// `sop exist key`
pub fn exist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::SopExist) else { return Ok(()) };
    match Set(&request.key).contains(ctx.ks, request.block)? {
        Taken::Shown => request.answer(ctx, "EXIST"),
        Taken::NoElements => request.answer(ctx, "NOT_EXIST"),
        other => request.answer_taken(ctx, other),
    }
}

/// `sop get key count [delete|drop]`
pub fn get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::SopGet) else { return Ok(()) };
    let count = parse_unsigned(request.word(0)).ok_or(UNREADABLE_REQUEST)?;
    let removal = removal_of(Removal::of_read(request.words_from(1)).ok_or(UNREADABLE_REQUEST)?);
    let (reply, mut found) = (&mut *ctx.reply, 0);
    let begin = |flags, count| {
        found = count;
        value_line(reply, flags, count);
        reply
    };
    let taken = Set(&request.key).take(ctx.ks, count, removal, begin, |reply, member| {
        element_line(reply, member.bytes(&mut IntegerText::default()));
    })?;
    request.note_cost(ctx, found);
    request.answer_taken(ctx, taken)
}
