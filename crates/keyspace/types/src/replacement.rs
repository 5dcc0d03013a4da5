//! A stored string that becomes a slightly different one: only what differs is written and logged.

use crate::fields::Extras;
use engine::{Effect, Encoding, Entry, Key, Keyspace, Value};
use std::ops::Range;

/// Bytes compared at once.
const BLOCK_BYTES: usize = 32;

/// Up to this many equal bytes between two differences, one effect covers both: about the size of a second effect in
/// the log.
const GAP_BYTES_MAX: usize = 32;

/// A string that takes the place of another one, whose expiration and optional fields it keeps.
pub(crate) struct Replacement {
    bytes: Vec<u8>,
    change: Change,
}

enum Change {
    /// Only these parts differ.
    Parts(Vec<Range<usize>>),
    /// It is shorter, which no part can say.
    Whole(Extras),
}

impl Replacement {
    /// These bytes in place of the string in the entry.
    pub(crate) fn of(entry: &Entry<'_>, bytes: Vec<u8>) -> Self {
        let old = entry.value.bytes();
        let change = match bytes.len() < old.len() {
            true => Change::Whole(Extras::of(entry)),
            false => Change::Parts(differences(old, &bytes)),
        };
        Self { bytes, change }
    }

    /// Stores it under the key, which holds that entry.
    pub(crate) fn apply(&self, ks: &mut dyn Keyspace, key: &Key<'_>) {
        let mut splice = |range: Range<usize>| {
            let (offset, bytes) = (range.start as u64, self.bytes.get(range).unwrap_or_default());
            ks.apply(&Effect::Splice { key: *key, offset, bytes });
        };
        match &self.change {
            // For WATCH it is a change all the same.
            Change::Parts(ranges) if ranges.is_empty() => splice(self.bytes.len().saturating_sub(1)..self.bytes.len()),
            Change::Parts(ranges) => ranges.iter().cloned().for_each(splice),
            Change::Whole(extras) => extras.store(ks, key, Value::Bytes(&self.bytes), Encoding::EDITED),
        }
    }
}

/// Where the new string differs from the old one, which is not longer, in ascending order.
fn differences(old: &[u8], new: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let blocks = new.chunks(BLOCK_BYTES).zip((0..).step_by(BLOCK_BYTES));
    for (block, start) in blocks {
        let before = old.get(start..).unwrap_or_default();
        if before.starts_with(block) {
            continue;
        }
        let differs = |(at, byte): (usize, &u8)| (before.get(at) != Some(byte)).then_some(at);
        let first = block.iter().enumerate().find_map(differs).unwrap_or(0);
        let last = block.iter().enumerate().rev().find_map(differs).unwrap_or(0);
        let range = start.saturating_add(first)..start.saturating_add(last).saturating_add(1);
        match found.last_mut() {
            Some(previous) if range.start.saturating_sub(previous.end) <= GAP_BYTES_MAX => previous.end = range.end,
            _ => found.push(range),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The differences always lead from the old string to the new one, and leave out long equal stretches between them.
    #[test]
    fn differences_lead_to_the_new_string() {
        let mut rng = base::Rng::new(1);
        for _ in 0..2000 {
            let length = rng.below(400) as usize;
            let old: Vec<u8> = (0..length).map(|_| rng.below(3) as u8).collect();
            let mut new = old.clone();
            new.extend((0..rng.below(3) * 20).map(|_| 1));
            for _ in 0..rng.below(4) {
                let at = rng.below(new.len() as u64 + 1) as usize;
                if let Some(byte) = new.get_mut(at) {
                    *byte ^= 1;
                }
            }
            let ranges = differences(&old, &new);
            assert!(ranges.windows(2).all(|pair| pair[1].start - pair[0].end > GAP_BYTES_MAX));
            let mut rebuilt = old.clone();
            rebuilt.resize(new.len(), 9);
            for range in ranges {
                assert!(old.get(range.start) != new.get(range.start), "begins with a difference");
                rebuilt[range.clone()].copy_from_slice(&new[range]);
            }
            assert_eq!(rebuilt, new);
        }
    }
}
