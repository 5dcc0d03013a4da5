//! What keys cost, by their prefixes: a table of bounded size, filled in one pass over the keys in random order.
//!
//! ```text
//! PREFIX app:  DEPTH 1     app:user:17:name -> app:user:      app:version -> app:      other:1 -> not counted
//! PREFIX app:  DEPTH 2     app:user:17:name -> app:user:17:   app:user:x -> app:user:
//! ```
//!
//! P1. Each key is counted under one prefix: what was asked for and as many parts more as were asked for, or as it has.
//!     A part ends with the separator.
//! P2. When the table is full, the smaller half of the prefixes becomes one sum. A prefix that comes again begins anew
//!     and says how much of it may be in that sum: never more than the largest that went, summed over each time this
//!     was done (G. S. Manku, R. Motwani: Approximate Frequency Counts over Data Streams, VLDB 2002).

use std::collections::HashMap;
use store::compression::Taken;

/// Prefixes kept; [`Prefixes::shrink`] leaves half of these.
pub const PREFIXES_MAX: usize = 2048;
/// Bytes of a key, after the prefix asked for, that are searched for separators.
pub const PART_BYTES_MAX: usize = 512;
/// Values of the sample of each prefix, and their bytes: some for [`PREFIXES_MAX`] prefixes at a time.
pub const SAMPLE_VALUES_MAX: usize = 16;
/// See [`SAMPLE_VALUES_MAX`].
pub const SAMPLE_BYTES_MAX: usize = 8 << 10;
/// Largest keys kept of each prefix.
pub const LARGEST_MAX: usize = 3;
/// Bytes kept of one of these.
pub const LARGEST_KEY_BYTES_MAX: usize = 512;

/// How keys are grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// Keys that begin otherwise are not counted.
    pub prefix: Box<[u8]>,
    /// Parts after that.
    pub depth: usize,
    /// What ends a part.
    pub separator: u8,
}

impl Grouping {
    /// What a key is counted under, without the prefix asked for; `None` when it does not begin with that.
    fn group_of<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let rest = key.strip_prefix(&*self.prefix)?;
        let searched = rest.get(..PART_BYTES_MAX).unwrap_or(rest);
        let ends = searched.iter().enumerate().filter(|(_, byte)| **byte == self.separator);
        let end = ends.take(self.depth).last().map_or(0, |(index, _)| index.saturating_add(1));
        rest.get(..end)
    }
}

/// Sums over keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// How many.
    pub keys: u64,
    /// Bytes of keys and contents.
    pub logical_bytes: u64,
    /// Bytes they cost.
    pub stored_bytes: u64,
    /// How many have a value that is stored compressed.
    pub compressed: u64,
    /// Bytes that this saves.
    pub saved_bytes: u64,
    /// Those that cost most, in descending order: the first bytes of the key, and what it costs.
    pub largest: Vec<(Box<[u8]>, u64)>,
}

impl Sums {
    fn add(&mut self, key: &[u8], cost: &Cost) {
        self.keys = self.keys.saturating_add(1);
        self.logical_bytes = self.logical_bytes.saturating_add(cost.logical_bytes);
        self.stored_bytes = self.stored_bytes.saturating_add(cost.stored_bytes);
        self.compressed = self.compressed.saturating_add(u64::from(cost.saved_bytes.is_some()));
        self.saved_bytes = self.saved_bytes.saturating_add(cost.saved_bytes.unwrap_or(0));
        self.rank(key, cost.stored_bytes);
    }

    /// Lists the key if it is among the largest.
    fn rank(&mut self, key: &[u8], stored_bytes: u64) {
        let place = self.largest.partition_point(|(_, other)| *other >= stored_bytes);
        if place < LARGEST_MAX {
            self.largest.truncate(LARGEST_MAX.saturating_sub(1));
            self.largest.insert(place, (key.get(..LARGEST_KEY_BYTES_MAX).unwrap_or(key).into(), stored_bytes));
        }
    }

    /// Adds other keys.
    pub fn merge(&mut self, other: &Self) {
        self.keys = self.keys.saturating_add(other.keys);
        self.logical_bytes = self.logical_bytes.saturating_add(other.logical_bytes);
        self.stored_bytes = self.stored_bytes.saturating_add(other.stored_bytes);
        self.compressed = self.compressed.saturating_add(other.compressed);
        self.saved_bytes = self.saved_bytes.saturating_add(other.saved_bytes);
        other.largest.iter().for_each(|(key, bytes)| self.rank(key, *bytes));
    }

    /// Bytes they cost beyond their contents as these are stored.
    pub fn overhead_bytes(&self) -> u64 {
        self.stored_bytes.saturating_sub(self.logical_bytes.saturating_sub(self.saved_bytes))
    }

    /// Hundredths of the contents' bytes for each byte that is stored of them.
    pub fn ratio_percent(&self) -> u64 {
        let stored = self.logical_bytes.saturating_sub(self.saved_bytes);
        self.logical_bytes.saturating_mul(100).checked_div(stored).unwrap_or(100)
    }
}

/// What one key costs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Bytes of key and content.
    pub logical_bytes: u64,
    /// Bytes it costs.
    pub stored_bytes: u64,
    /// Bytes that compression saves of its content; `None` when it is not compressed.
    pub saved_bytes: Option<u64>,
}

/// One prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its keys.
    pub sums: Sums,
    /// Stored bytes of it that may have been counted elsewhere, at most.
    pub missed_bytes: u64,
    /// Some of its values: the first that were met, in an order that is random.
    pub sample: Vec<Taken>,
    /// Bytes of these.
    sample_bytes: usize,
}

impl Group {
    /// How many bytes a further value of the sample may have; 0 when there are enough.
    fn sample_room(&self) -> usize {
        if self.sample.len() < SAMPLE_VALUES_MAX { SAMPLE_BYTES_MAX.saturating_sub(self.sample_bytes) } else { 0 }
    }
}

/// The prefixes met so far.
#[derive(Debug)]
pub struct Prefixes {
    grouping: Grouping,
    /// By what follows the prefix asked for.
    groups: HashMap<Box<[u8]>, Group>,
    /// Keys whose prefixes are not kept.
    others: Sums,
    /// What a prefix that comes now may have in there.
    missed_bytes: u64,
}

impl Prefixes {
    /// No key was met yet.
    pub fn new(grouping: Grouping) -> Self {
        Self { grouping, groups: HashMap::new(), others: Sums::default(), missed_bytes: 0 }
    }

    /// Counts a key. Between calls of [`Prefixes::shrink`] the table grows with new prefixes. `take` returns the value
    /// for a sample, if it has at most as many bytes as its argument says.
    pub fn add(&mut self, key: &[u8], cost: &Cost, take: impl FnOnce(usize) -> Option<Taken>) {
        let Some(name) = self.grouping.group_of(key) else { return };
        let group = match self.groups.get_mut(name) {
            Some(group) => group,
            None => {
                let new = Group { missed_bytes: self.missed_bytes, ..Group::default() };
                self.groups.entry(name.into()).or_insert(new)
            }
        };
        group.sums.add(key, cost);
        let room = group.sample_room();
        if room > 0
            && let Some(taken) = take(room)
        {
            group.sample_bytes = group.sample_bytes.saturating_add(taken.held_bytes());
            group.sample.push(taken);
        }
    }

    /// Brings the table back to its size, if it has grown beyond that.
    pub fn shrink(&mut self) {
        if self.groups.len() > PREFIXES_MAX {
            self.keep(PREFIXES_MAX / 2);
        }
    }

    /// Keeps the prefixes that cost most.
    fn keep(&mut self, count: usize) {
        let mut sizes: Vec<u64> = self.groups.values().map(|group| group.sums.stored_bytes).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        // What costs as much as the first that goes, goes too.
        let Some(limit) = sizes.get(count).copied() else { return };
        let others = &mut self.others;
        self.groups.retain(|_, group| {
            let stays = group.sums.stored_bytes > limit;
            if !stays {
                others.merge(&group.sums);
            }
            stays
        });
        self.missed_bytes = self.missed_bytes.saturating_add(limit);
    }

    /// All keys, those of the prefixes that cost most, at most `count` of them, in descending order, and all others.
    pub fn finish(self, count: usize) -> Explained {
        let mut total = self.others.clone();
        self.groups.values().for_each(|group| total.merge(&group.sums));
        let mut groups: Vec<(Box<[u8]>, Group)> = self.groups.into_iter().collect();
        groups.sort_unstable_by(|(a_name, a), (b_name, b)| {
            b.sums.stored_bytes.cmp(&a.sums.stored_bytes).then_with(|| a_name.cmp(b_name))
        });
        let mut others = self.others;
        groups.drain(count.min(groups.len())..).for_each(|(_, group)| others.merge(&group.sums));
        for (name, _) in &mut groups {
            *name = [&*self.grouping.prefix, name].concat().into();
        }
        Explained { total, groups, others }
    }
}

/// What came of a pass over all keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Explained {
    /// All keys with the prefix asked for.
    pub total: Sums,
    /// The prefixes.
    pub groups: Vec<(Box<[u8]>, Group)>,
    /// All keys of none of these.
    pub others: Sums,
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn grouping(prefix: &[u8], depth: usize) -> Grouping {
        Grouping { prefix: prefix.into(), depth, separator: b':' }
    }

    #[test]
    fn a_key_has_one_group() {
        let group = |prefix: &[u8], depth, key| grouping(prefix, depth).group_of(key).map(<[u8]>::to_vec);
        for (depth, expected) in [(1, &b"a:"[..]), (2, b"a:b:"), (3, b"a:b:"), (32, b"a:b:")] {
            assert_eq!(group(b"", depth, b"a:b:c").as_deref(), Some(expected), "{depth}");
        }
        assert_eq!(group(b"a", 1, b"a:b:c").as_deref(), Some(&b":"[..]));
        assert_eq!(group(b"a:", 1, b"a:b:c").as_deref(), Some(&b"b:"[..]));
        assert_eq!(group(b"a:b:", 1, b"a:b:c").as_deref(), Some(&b""[..]));
        assert_eq!(group(b"a:b:c", 1, b"a:b:c").as_deref(), Some(&b""[..]));
        assert_eq!(group(b"b", 1, b"a:b:c"), None);
        assert_eq!(group(b"", 2, b":::").as_deref(), Some(&b"::"[..]));
        let long = [&[b'x'; PART_BYTES_MAX][..], b":y"].concat();
        assert_eq!(group(b"", 1, &long).as_deref(), Some(&b""[..]), "the separator comes too late");
    }

    /// With far more prefixes than are kept, sums stay exact, and each prefix shown is short by no more than it says;
    /// those with a large part of all are shown to the byte.
    #[test]
    fn what_is_merged_is_accounted_for() {
        let mut rng = Rng::new(5);
        let mut prefixes = Prefixes::new(grouping(b"", 1));
        let (mut truth, mut total) = (HashMap::<String, (u64, u64)>::new(), 0);
        for number in 0..200_000u64 {
            // A hundred big ones and any number of small ones.
            let name = match rng.below(2) {
                0 => format!("big{}:", rng.below(100)),
                _ => format!("small{}:", rng.below(50_000)),
            };
            let stored = 50 + rng.below(100);
            let cost = Cost {
                logical_bytes: 40,
                stored_bytes: stored,
                saved_bytes: Some(15).filter(|_| number.is_multiple_of(4)),
            };
            prefixes.add(format!("{name}{number}").as_bytes(), &cost, |_| None);
            let sums = truth.entry(name).or_default();
            *sums = (sums.0 + 1, sums.1 + stored);
            total += stored;
            prefixes.shrink();
            assert!(prefixes.groups.len() <= PREFIXES_MAX);
        }
        let explained = prefixes.finish(100);
        assert_eq!((explained.total.keys, explained.total.stored_bytes), (200_000, total));
        assert_eq!(explained.total.logical_bytes, 200_000 * 40);
        assert_eq!((explained.total.compressed, explained.total.saved_bytes), (50_000, 50_000 * 15));
        assert_eq!(explained.total.ratio_percent(), 110);
        let shown: u64 = explained.groups.iter().map(|(_, group)| group.sums.stored_bytes).sum();
        assert_eq!(shown + explained.others.stored_bytes, total);
        assert_eq!(explained.groups.len(), 100);
        for (name, group) in &explained.groups {
            let name = String::from_utf8(name.to_vec()).unwrap();
            assert!(name.starts_with("big"), "{name}");
            let (keys, stored) = truth[&name];
            assert!(group.sums.stored_bytes <= stored && stored <= group.sums.stored_bytes + group.missed_bytes);
            assert!(group.sums.keys <= keys);
            assert!(group.missed_bytes > 0 || group.sums.stored_bytes == stored);
        }
        let exact = explained.groups.iter().filter(|(_, group)| group.missed_bytes == 0).count();
        assert!(exact > 90, "{exact}");
    }

    #[test]
    fn the_largest_keys_are_in_order() {
        let mut sums = Sums::default();
        for (key, bytes) in [("b", 5), ("c", 9), ("a", 7), ("d", 1), ("e", 9)] {
            sums.add(key.as_bytes(), &Cost { logical_bytes: 1, stored_bytes: bytes, saved_bytes: None });
        }
        let keys: Vec<&[u8]> = sums.largest.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, [b"c", b"e", b"a"]);
        sums.add(&[b'k'; 5000], &Cost { logical_bytes: 1, stored_bytes: 50, saved_bytes: None });
        assert_eq!(sums.largest[0].0.len(), LARGEST_KEY_BYTES_MAX);
        assert_eq!(sums.overhead_bytes(), 81 - 6);
    }
}
