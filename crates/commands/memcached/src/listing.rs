//! How ARCUS lists an item: a letter for its type, and when it expires.

use crate::arguments::remaining_seconds;
use crate::sticky;
use base::UnixMs;
use engine::{Entry, Type};

/// The types that ARCUS knows, by their letters.
pub const TYPES: [(u8, Type); 5] =
    [(b'K', Type::String), (b'L', Type::List), (b'S', Type::Set), (b'M', Type::Hash), (b'B', Type::Btree)];

/// The letter of a type, if ARCUS has it.
pub fn letter_of(kind: Type) -> Option<u8> {
    TYPES.iter().find(|(_, of)| *of == kind).map(|(letter, _)| *letter)
}

/// Seconds until an entry expires: 0 for never, and -1 for a sticky one.
pub fn seconds_left(entry: &Entry<'_>, now: UnixMs) -> i64 {
    match entry.is_sticky() {
        true => sticky::SECONDS,
        false => entry.expire_at.map_or(0, |at| remaining_seconds(at, now)),
    }
}
