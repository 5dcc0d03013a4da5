//! Which classes of keys hold strings that do not compress. A class is a keyspace and the first part of a key, as for
//! dictionaries ([`codec::training::key_prefix`]).

use base::KeyspaceId;
use engine::Key;
use std::collections::BTreeMap;

/// Values after which a class is judged.
const WINDOW: u32 = 64;

/// A class whose values keep this many thousandths of their bytes is not worth the time.
const RAW_FROM_PERMILLE: u64 = 930;

/// For how long such a class is not tried, at first and at most: twice as long each time.
const REST_FIRST_NS: u64 = 60_000_000_000;
const REST_MAX_NS: u64 = 4 * 3600 * 1_000_000_000;

/// Classes of a keyspace that are told apart; keys of others share one.
const CLASSES_MAX: usize = 1024;

/// What was learned.
#[derive(Default)]
pub struct Classes(BTreeMap<KeyspaceId, BTreeMap<Box<[u8]>, Class>>);

#[derive(Default)]
struct Class {
    values: u32,
    bytes: u64,
    stored: u64,
    /// Windows in a row that were not worth it.
    failures: u32,
    /// Not tried before then.
    rests_until_ns: u64,
}

impl Classes {
    /// Whether values of the key's class are tried now.
    pub fn may_compress(&mut self, key: &Key<'_>, now_ns: u64) -> bool {
        self.class(key).rests_until_ns <= now_ns
    }

    /// Notes what became of a value: its bytes, and those stored for it.
    pub fn note(&mut self, key: &Key<'_>, bytes: usize, stored: usize, now_ns: u64) {
        let class = self.class(key);
        class.values += 1;
        class.bytes += bytes as u64;
        class.stored += stored as u64;
        if class.values < WINDOW {
            return;
        }
        let is_worth_it = class.stored * 1000 < class.bytes * RAW_FROM_PERMILLE;
        let rest_ns = REST_FIRST_NS.saturating_mul(1 << class.failures.min(20)).min(REST_MAX_NS);
        *class = match is_worth_it {
            true => Class::default(),
            false => {
                let failures = class.failures.saturating_add(1);
                Class { failures, rests_until_ns: now_ns.saturating_add(rest_ns), ..Class::default() }
            }
        };
    }

    /// How many classes are not tried now.
    pub fn resting(&self, now_ns: u64) -> usize {
        self.0.values().flat_map(BTreeMap::values).filter(|class| class.rests_until_ns > now_ns).count()
    }

    fn class(&mut self, key: &Key<'_>) -> &mut Class {
        let classes = self.0.entry(key.space).or_default();
        let mut prefix = codec::training::key_prefix(key.bytes);
        if !classes.contains_key(prefix) {
            if classes.len() >= CLASSES_MAX {
                prefix = &[];
            }
            classes.entry(prefix.into()).or_default();
        }
        classes.get_mut(prefix).expect("it was made if it was missing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use base::hash::KeyHasher;

    /// A class that does not shrink rests, for longer each time, and others go on; one that shrinks again is as new.
    #[test]
    fn classes_that_do_not_compress_rest() {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let (noise, text) = (Key::new(&hasher, KeyspaceId(0), b"n:1"), Key::new(&hasher, KeyspaceId(0), b"t:1"));
        let elsewhere = noise.in_space(KeyspaceId(1));
        let mut classes = Classes::default();
        let fail = |classes: &mut Classes, now| (0..WINDOW).for_each(|_| classes.note(&noise, 100, 99, now));
        fail(&mut classes, 5);
        (0..WINDOW).for_each(|_| classes.note(&text, 100, 50, 5));
        let until = 5 + REST_FIRST_NS;
        assert!(!classes.may_compress(&noise, until - 1) && classes.may_compress(&noise, until));
        assert!(classes.may_compress(&text, 5) && classes.may_compress(&elsewhere, 5));
        assert_eq!((classes.resting(5), classes.resting(until)), (1, 0));
        fail(&mut classes, until);
        assert!(!classes.may_compress(&noise, until + 2 * REST_FIRST_NS - 1));
        (0..WINDOW).for_each(|_| classes.note(&noise, 100, 50, until));
        assert!(classes.may_compress(&noise, until));
    }

    #[test]
    fn classes_are_bounded() {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let mut classes = Classes::default();
        for n in 0..5000 {
            let bytes = format!("{n}:x");
            classes.note(&Key::new(&hasher, KeyspaceId(0), bytes.as_bytes()), 1, 1, 0);
        }
        assert!(classes.0[&KeyspaceId(0)].len() <= CLASSES_MAX + 1);
    }
}
