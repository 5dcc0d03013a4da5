//! Replies to lines that are refused.

use crate::tally;
use command::Handler;
use command::{Ctx, Stop};
use proto::memcached::Refusal;

/// The command that answers this refusal.
pub const fn handler(refusal: Refusal) -> Handler {
    match refusal {
        Refusal::Unknown => unknown,
        Refusal::Format => format,
        Refusal::DeleteFormat => delete_format,
        Refusal::Data => data,
        Refusal::TooLarge => too_large,
        Refusal::Expiration => expiration,
        Refusal::Delta => delta,
        Refusal::FlagCount => flag_count,
        Refusal::Key => key,
        Refusal::ElementTooLarge => element_too_large,
        Refusal::FieldTooLong => field_too_long,
        Refusal::BadValue => bad_value,
        Refusal::TooManyMembers => too_many_members,
        Refusal::TooManyNeighbours => too_many_neighbours,
    }
}

fn refuse(refusal: Refusal) -> Result<(), Stop> {
    Err(Stop::error(refusal.text()))
}

fn unknown(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::Unknown)
}

fn format(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::Format)
}

fn delete_format(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::DeleteFormat)
}

fn data(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::Data)
}

fn too_large(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    tally::count_too_large(ctx.stats);
    refuse(Refusal::TooLarge)
}

fn expiration(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::Expiration)
}

fn delta(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::Delta)
}

fn flag_count(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::FlagCount)
}

fn key(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::Key)
}

fn element_too_large(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::ElementTooLarge)
}

fn field_too_long(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::FieldTooLong)
}

fn bad_value(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::BadValue)
}

fn too_many_members(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::TooManyMembers)
}

fn too_many_neighbours(_: &mut Ctx<'_>) -> Result<(), Stop> {
    refuse(Refusal::TooManyNeighbours)
}
