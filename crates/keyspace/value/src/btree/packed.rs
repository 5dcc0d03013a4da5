//! The packed form: the number of elements, then the elements in order.

use super::entry::{Entries, find};
use super::{Change, Element};
use crate::Resize;
use base::varint;

/// The longest packed buffer.
pub(super) const BYTES_MAX: usize = 8 << 10;

/// How many elements there are; none in an empty buffer.
pub(super) fn count(bytes: &[u8]) -> u64 {
    varint::take(&mut &bytes[..]).unwrap_or(0)
}

/// The elements.
pub(super) fn entries(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    varint::take(&mut rest);
    rest
}

/// Whether the collection stays packed with this change.
pub(super) fn fits(bytes: &[u8], change: &Change<'_>) -> bool {
    match change {
        Change::Put(element) => bytes.len() + varint::MAX_LEN + element.encoded().len() <= BYTES_MAX,
        Change::Remove(_) | Change::RemoveRange { .. } => true,
    }
}

/// Applies one change.
pub(super) fn apply(bytes: &mut impl Resize, change: &Change<'_>) {
    match *change {
        Change::Put(element) => put(bytes, &element),
        Change::Remove(bkey) => {
            let place = find(entries(bytes), &bkey);
            if place.length > 0 {
                let at = bytes.len() - entries(bytes).len() + place.at;
                bytes.refit(at..at + place.length, 0);
                let left = count(bytes) - 1;
                set_count(bytes, left);
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

/// Inserts an element, or puts it in the place of the one with its key.
fn put(bytes: &mut impl Resize, element: &Element<'_>) {
    let encoded = element.encoded();
    let place = find(entries(bytes), &element.bkey);
    let count = count(bytes) + u64::from(place.length == 0);
    set_count(bytes, count);
    let at = bytes.len() - entries(bytes).len() + place.at;
    bytes.refit(at..at + place.length, encoded.len()).copy_from_slice(&encoded);
}

fn set_count(bytes: &mut impl Resize, count: u64) {
    let old = bytes.len() - entries(bytes).len();
    varint::write(bytes.refit(0..old, varint::len(count)), count);
}
