//! How far a group has come: counts that are kept while they can be known.
//!
//! A stream counts the entries it was ever given, and a group how many of them precede its last delivered id. Where
//! entries were deleted in between, the group's count is unknown until it has read up to the end.

use super::{Group, Id, Stream};

/// How many entries were ever added up to this id; `None` when that cannot be known.
pub(super) fn added_up_to(stream: &Stream, id: Id) -> Option<u64> {
    let (added, length) = (stream.entries_added(), stream.len());
    if added == 0 || (length == 0 && id <= stream.last_id()) {
        return Some(added);
    }
    if id != Id::MIN && id < stream.max_deleted_id() {
        return None;
    }
    if id == stream.last_id() {
        return Some(added);
    }
    if id > stream.last_id() {
        return None;
    }
    let has_no_gap = stream.max_deleted_id() < stream.first_id();
    let before_first = added.saturating_sub(length);
    match id.cmp(&stream.first_id()) {
        std::cmp::Ordering::Less if has_no_gap => Some(before_first),
        std::cmp::Ordering::Equal if has_no_gap => Some(before_first.saturating_add(1)),
        _ => None,
    }
}

/// Whether an entry after this id was deleted.
pub(super) fn has_gap_after(stream: &Stream, id: Id) -> bool {
    !stream.is_empty() && stream.max_deleted_id() != Id::MIN && id <= stream.max_deleted_id()
}

/// How many entries the group has not delivered yet; `None` when that cannot be known.
pub fn lag(stream: &Stream, group: &Group) -> Option<i64> {
    let added = stream.entries_added();
    let read = match group.entries_read() {
        _ if added == 0 => return Some(0),
        Some(read) if !has_gap_after(stream, group.last_delivered()) => read,
        _ => added_up_to(stream, group.last_delivered())?,
    };
    // Clients may set the group's count to anything.
    Some(added.wrapping_sub(read) as i64)
}
