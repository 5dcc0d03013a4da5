//! The packed form: the number of entries, then the entries in order.

use super::entry::{Entries, Head, find};
use super::{Change, Entry};
use crate::limits::PACKED_LONG_BYTES_MAX;
use crate::{Limits, Resize};
use base::varint;

/// How many entries there are; none in an empty buffer.
pub(super) fn count(bytes: &[u8]) -> u64 {
    varint::take(&mut &bytes[..]).unwrap_or(0)
}

/// The entries.
pub(super) fn entries(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    varint::take(&mut rest);
    rest
}

/// Whether these bytes are a sorted set in this encoding: what every edit is to leave.
#[cfg(test)]
pub(super) fn validate(encoding: crate::Encoding, bytes: &[u8]) -> bool {
    let is_known = match encoding {
        crate::Encoding::PACKED => true,
        crate::Encoding::PACKED_LONG => bytes.len() <= PACKED_LONG_BYTES_MAX,
        _ => false,
    };
    is_known && check(bytes).is_some()
}

#[cfg(test)]
fn check(mut rest: &[u8]) -> Option<()> {
    let count = varint::take(&mut rest).filter(|count| *count > 0)?;
    let mut last: Option<Entry<'_>> = None;
    let mut members = std::collections::HashSet::new();
    for _ in 0..count {
        let entry = Entry { score: super::score::take(&mut rest)?, member: crate::wire::take_string(&mut rest)? };
        let is_after = last.is_none_or(|last| last.order(&entry).is_lt());
        if !is_after || !members.insert(entry.member) {
            return None;
        }
        last = Some(entry);
    }
    rest.is_empty().then_some(())
}

/// Whether the change adds a member that is longer than those of a packed set are to be.
pub(super) fn is_long(change: &Change<'_>, limits: &Limits) -> bool {
    matches!(change, Change::Add { member, .. } if !is_at_most(member.len() as u64, limits.zset_value()))
}

/// Whether the set may stay packed with this change. `is_long`: a member is or was long.
pub(super) fn fits(bytes: &[u8], change: &Change<'_>, is_long: bool, limits: &Limits) -> bool {
    let Change::Add { score, member } = *change else { return true };
    let added = Entry { score, member };
    // Without looking for the member, which is enough for most.
    let may_be_one_more = is_at_most(count(bytes) + 1, limits.zset_entries());
    if may_be_one_more && (!is_long || len_with(bytes, &added, None) <= PACKED_LONG_BYTES_MAX) {
        return true;
    }
    let Some((_, old)) = by_member(bytes, member) else { return false };
    !is_long || len_with(bytes, &added, Some(&old)) <= PACKED_LONG_BYTES_MAX
}

fn is_at_most(size: u64, limit: i64) -> bool {
    i64::try_from(size).is_ok_and(|size| size <= limit)
}

/// Bytes of the set, at most, with this entry, in the place of one or as one more.
fn len_with(bytes: &[u8], added: &Entry<'_>, old: Option<&Entry<'_>>) -> usize {
    let len = |entry: &Entry<'_>| Head::new(entry).entry_len(entry);
    // The count may become longer.
    bytes.len() + 1 + len(added) - old.map_or(0, len)
}

/// The entry of a member, and where it is.
pub(super) fn by_member<'a>(bytes: &'a [u8], member: &[u8]) -> Option<(u64, Entry<'a>)> {
    let position = |(rank, entry): (u64, Entry<'a>)| (entry.member == member).then_some((rank, entry));
    (0..).zip(Entries::new(entries(bytes), 0)).find_map(position)
}

/// Applies one change.
pub(super) fn apply(bytes: &mut impl Resize, change: &Change<'_>) {
    match *change {
        Change::Add { score, member } => {
            let entry = Entry { score, member };
            let old = by_member(bytes, member).map(|(_, old)| old.score);
            if old == Some(score) {
                return;
            }
            if let Some(score) = old {
                remove(bytes, &Entry { score, member });
            }
            insert(bytes, &entry);
        }
        Change::Remove { member } => {
            if let Some(score) = by_member(bytes, member).map(|(_, old)| old.score) {
                remove(bytes, &Entry { score, member });
            }
        }
        Change::RemoveRange { start, count: removed } => {
            let len = count(bytes);
            let start = start.min(len);
            let removed = removed.min(len - start);
            let run = Entries::new(entries(bytes), 0).skip(start as usize);
            let range = run.at()..run.skip(removed as usize).at();
            let first = bytes.len() - entries(bytes).len();
            bytes.refit(first + range.start..first + range.end, 0);
            set_count(bytes, len - removed);
        }
    }
}

fn insert(bytes: &mut impl Resize, entry: &Entry<'_>) {
    set_count(bytes, count(bytes) + 1);
    let head = Head::new(entry);
    let at = bytes.len() - entries(bytes).len() + find(entries(bytes), entry).at;
    head.write(entry, bytes.refit(at..at, head.entry_len(entry)));
}

fn remove(bytes: &mut impl Resize, entry: &Entry<'_>) {
    let place = find(entries(bytes), entry);
    let at = bytes.len() - entries(bytes).len() + place.at;
    bytes.refit(at..at + place.length, 0);
    set_count(bytes, count(bytes) - 1);
}

fn set_count(bytes: &mut impl Resize, count: u64) {
    let old = bytes.len() - entries(bytes).len();
    varint::write(bytes.refit(0..old, varint::len(count)), count);
}
