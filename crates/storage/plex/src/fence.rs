//! Sorted keys reduced to a word each, so that a search among them touches a few cache lines in a row instead of one
//! allocation per comparison.
//!
//! ```text
//!   keys    user:1040  user:1043  user:2291          common   "user:"
//!   words        1040       1043       2291          the eight bytes after it, zeroes after the end, big-endian
//!   groups       [ 16 words ] [ 16 words ] ...       of many words, the last of each group; of many of these the same
//! ```
//!
//! A search halves the topmost list, which is short and often looked at, and then looks through one group of each list
//! below, which is two lines of memory side by side.

use std::ops::Range;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    /// What all keys begin with.
    common: Box<[u8]>,
    words: Box<[u64]>,
    /// Last words of the groups of `words`; none if there are few.
    groups: Box<[u64]>,
    /// The same of `groups`.
    tops: Box<[u64]>,
}

/// Words of a group.
const GROUP_LEN: usize = 16;

/// As many words are searched without groups.
const WORDS_FEW: usize = GROUP_LEN * GROUP_LEN;

impl Fences {
    /// `keys` ascend and may repeat.
    pub fn new<'a>(keys: impl DoubleEndedIterator<Item = &'a [u8]> + Clone) -> Self {
        let (first, last) = (keys.clone().next().unwrap_or_default(), keys.clone().next_back().unwrap_or_default());
        // What the first and the last of a sorted list have in common, all between them have, too.
        let common = &first[..common_len(first, last)];
        let words: Box<[u64]> = keys.map(|key| word(&key[common.len()..])).collect();
        let groups = last_of_groups(if words.len() > WORDS_FEW { &words } else { &[] });
        let tops = last_of_groups(&groups);
        Self { common: common.into(), words, groups, tops }
    }

    /// The place of the first word that is not smaller.
    fn position(&self, word: u64) -> usize {
        if self.groups.is_empty() {
            return self.words.partition_point(|fence| *fence < word);
        }
        let top = self.tops.partition_point(|last| *last < word);
        let group = position_in_group(&self.groups, top, word);
        position_in_group(&self.words, group, word)
    }

    /// Memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.common.len()
            + [&self.words, &self.groups, &self.tops].map(|words| size_of_val(&**words)).iter().sum::<usize>()
    }

    /// Keys before the range are smaller than `key`, and those after it are larger. For keys in the range only a
    /// comparison of whole keys decides: mostly it is empty.
    pub fn find(&self, key: &[u8]) -> Range<usize> {
        let Some(rest) = key.strip_prefix(&*self.common) else {
            let at = if *key < *self.common { 0 } else { self.words.len() };
            return at..at;
        };
        let word = word(rest);
        let start = self.position(word);
        let ties = self.words[start..].iter().take(2).take_while(|fence| **fence == word).count();
        let end = if ties < 2 { start + ties } else { self.words.partition_point(|fence| *fence <= word) };
        start..end
    }
}

fn last_of_groups(words: &[u64]) -> Box<[u64]> {
    words.chunks(GROUP_LEN).filter_map(|group| group.last().copied()).collect()
}

/// The place of the first word that is not smaller, which is in this group; the number of words if there is no such
/// group.
fn position_in_group(words: &[u64], group: usize, word: u64) -> usize {
    let from = group * GROUP_LEN;
    let Some(rest) = words.get(from..) else { return words.len() };
    // Without a branch: no guess can be wrong.
    from + rest[..rest.len().min(GROUP_LEN)].iter().filter(|fence| **fence < word).count()
}

/// The first eight bytes as a number that is ordered as they are, but for zeroes at the end of a key.
#[inline]
pub(crate) fn word(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    // Of a shorter key two pieces that overlap: a copy of a length that is not known before would cost a call.
    match (key.first_chunk(), key.last_chunk()) {
        (Some(first), Some(last)) => {
            let behind = u32::from_be_bytes(*last).checked_shl(8 * (8 - key.len() as u32)).unwrap_or(0);
            u64::from(u32::from_be_bytes(*first)) << 32 | u64::from(behind)
        }
        _ => key.iter().rev().fold(0, |word, byte| word >> 8 | u64::from(*byte) << 56),
    }
}

/// The first sixteen bytes as a number that is ordered as they are, but for zeroes at the end of a key.
#[inline]
pub(crate) fn leading(key: &[u8]) -> u128 {
    if let Some(first) = key.first_chunk() {
        return u128::from_be_bytes(*first);
    }
    let behind = match key.last_chunk().filter(|_| key.len() > 8) {
        Some(last) => u64::from_be_bytes(*last) << (8 * (16 - key.len() as u32)),
        None => 0,
    };
    u128::from(word(key)) << 64 | u128::from(behind)
}

/// How many bytes both begin with.
pub(crate) fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Numbers of keys of any length are their first bytes, padded with zeroes.
    #[test]
    fn numbers_are_first_bytes() {
        for len in 0..20 {
            let key: Vec<u8> = (1..=len).map(|at| at * 11).collect();
            let padded = [&key[..], &[0; 16]].concat();
            assert_eq!(word(&key).to_be_bytes(), padded[..8]);
            assert_eq!(leading(&key).to_be_bytes(), padded[..16]);
        }
    }

    /// What is before and after the range is smaller and larger, and the range is no longer than it must be.
    #[test]
    fn ranges_are_right_and_short() {
        let mut rng = Rng::new(3);
        for round in 0..400 {
            let prefix = &b"prefix"[..rng.below(7) as usize];
            let draw = |rng: &mut Rng| {
                let tail = (0..rng.below(12)).map(|_| [0, 1, b'a', 255][rng.below(4) as usize]);
                prefix.iter().copied().chain(tail).collect::<Vec<u8>>()
            };
            let mut keys: Vec<Vec<u8>> = (0..round % 20).map(|_| draw(&mut rng)).collect();
            keys.sort();
            let fences = Fences::new(keys.iter().map(|key| &key[..]));
            for _ in 0..40 {
                let mut key = draw(&mut rng);
                if rng.one_in(5) {
                    key.truncate(rng.below(8) as usize);
                }
                let range = fences.find(&key);
                assert!(keys[..range.start].iter().all(|k| *k < key), "{keys:?} {key:?} {range:?}");
                assert!(keys[range.end..].iter().all(|k| *k > key), "{keys:?} {key:?} {range:?}");
            }
        }
        for count in [255, 256, 257, 271, 272, 273, 4000, 4096, 4097] {
            let mut keys: Vec<_> = (0..count).map(|_| format!("k{:05}", rng.below(2 * count)).into_bytes()).collect();
            keys.sort();
            let fences = Fences::new(keys.iter().map(|key| &key[..]));
            for number in 0..=2 * count {
                let key = format!("k{number:05}").into_bytes();
                let range = fences.find(&key);
                let (start, end) = (keys.partition_point(|k| *k < key), keys.partition_point(|k| *k <= key));
                assert_eq!(range, start..end, "{number} of {count}");
            }
        }
        let keys = [&b"k00000001"[..], b"k00000003", b"k00000005"];
        let fences = Fences::new(keys.into_iter());
        assert_eq!([b"k00000000", b"k00000004", b"k00000009"].map(|k| fences.find(k)), [0..0, 2..2, 3..3]);
        assert_eq!(fences.find(b"k00000003"), 1..2);
    }
}
