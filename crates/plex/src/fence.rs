//! Sorted keys reduced to a word each, so that a search among them touches a few cache lines in a row instead of one
//! allocation per comparison.
//!
//! ```text
//!   keys    user:1040  user:1043  user:2291          common   "user:"
//!   words        1040       1043       2291          the eight bytes behind it, zeroes behind the end, big-endian
//! ```

use std::ops::Range;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    /// What all keys begin with.
    common: Box<[u8]>,
    words: Box<[u64]>,
}

impl Fences {
    /// `keys` ascend and may repeat.
    pub fn new<'a>(keys: impl DoubleEndedIterator<Item = &'a [u8]> + Clone) -> Self {
        let (first, last) = (keys.clone().next().unwrap_or_default(), keys.clone().next_back().unwrap_or_default());
        // What the first and the last of a sorted list have in common, all between them have, too.
        let common = &first[..common_len(first, last)];
        let words = keys.map(|key| word(&key[common.len()..])).collect();
        Self { common: common.into(), words }
    }

    /// Memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.common.len() + size_of_val(&*self.words)
    }

    /// Keys before the range are smaller than `key`, and those behind it are larger. Of those in it only the keys
    /// themselves can tell: mostly it is empty.
    pub fn find(&self, key: &[u8]) -> Range<usize> {
        let Some(rest) = key.strip_prefix(&*self.common) else {
            let at = if *key < *self.common { 0 } else { self.words.len() };
            return at..at;
        };
        let word = word(rest);
        let start = self.words.partition_point(|fence| *fence < word);
        let ties = self.words[start..].iter().take(2).take_while(|fence| **fence == word).count();
        let end = if ties < 2 { start + ties } else { self.words.partition_point(|fence| *fence <= word) };
        start..end
    }
}

/// The first eight bytes as a number that is ordered as they are, but for zeroes at the end of a key.
fn word(key: &[u8]) -> u64 {
    u64::from_be_bytes(leading(key))
}

/// The first bytes, with zeroes behind the end of a key that is shorter.
#[inline]
pub(crate) fn leading<const LEN: usize>(key: &[u8]) -> [u8; LEN] {
    match key.first_chunk() {
        Some(first) => *first,
        None => {
            let mut bytes = [0; LEN];
            bytes[..key.len()].copy_from_slice(key);
            bytes
        }
    }
}

/// How many bytes both begin with.
pub(crate) fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// What lies before and behind the range is smaller and larger, and the range is no longer than it must be.
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
        let keys = [&b"k00000001"[..], b"k00000003", b"k00000005"];
        let fences = Fences::new(keys.into_iter());
        assert_eq!([b"k00000000", b"k00000004", b"k00000009"].map(|k| fences.find(k)), [0..0, 2..2, 3..3]);
        assert_eq!(fences.find(b"k00000003"), 1..2);
    }
}
