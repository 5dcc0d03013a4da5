//! Scans of one prefix skip tables that have no key with it, and find all the same: in both directions, from any place,
//! under every policy, over deleted ranges, and in databases of which only some tables know prefixes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use base::Rng;
use plex::{Background, Db, IterOptions, Options, Policy};
use vfs::SimFs;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(fs: &SimFs, policy: &Policy, prefix_bytes: usize) -> Options {
    let options = Options::new().file_system(Arc::new(fs.clone())).seed(5).background(Background::Inline);
    options
        .policy(policy.clone())
        .memtable_bytes(4 << 10)
        .table_bytes(2 << 10)
        .block_bytes(256)
        .prefix_filter_bytes(prefix_bytes)
}

/// A key of one of many groups, some of which have none.
fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(30) {
        0 => vec![b'g'; rng.below(5) as usize],
        1 => vec![255; 1 + rng.below(6) as usize],
        _ => format!("g{:03}/{:02}", 2 * rng.below(100), rng.below(30)).into_bytes(),
    }
}

fn check(db: &Db, map: &Map, rng: &mut Rng, what: &str) {
    for _ in 0..60 {
        let (options, from, to) = if rng.one_in(2) {
            let prefix = if rng.one_in(8) {
                vec![255; 1 + rng.below(5) as usize]
            } else {
                format!("g{:03}", rng.below(203)).into_bytes()
            };
            let mut end = prefix.clone();
            while end.last() == Some(&255) {
                end.pop();
            }
            if let Some(last) = end.last_mut() {
                *last += 1;
            }
            (IterOptions::prefix(&prefix), prefix, (!end.is_empty()).then_some(end))
        } else {
            let (a, b) = (key(rng), key(rng));
            let (from, to) = if a <= b { (a, b) } else { (b, a) };
            (IterOptions::range(&from[..]..&to[..]), from, Some(to))
        };
        let bound = to.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let expected: Vec<(&[u8], &[u8])> =
            map.range::<Vec<u8>, _>((Bound::Included(&from), bound)).map(|(k, v)| (&k[..], &v[..])).collect();
        let mut iter = db.iter(options).expect("it iterates");
        iter.seek_to_first().expect("it seeks");
        for pair in &expected {
            assert_eq!(iter.entry(), Some(*pair), "{what}, from {from:?} to {to:?}");
            iter.step_forward().expect("it steps");
        }
        assert_eq!(iter.entry(), None, "{what}");
        iter.seek_to_last().expect("it seeks");
        for pair in expected.iter().rev() {
            assert_eq!(iter.entry(), Some(*pair), "{what}, backwards from {to:?} to {from:?}");
            iter.step_back().expect("it steps");
        }
        assert_eq!(iter.entry(), None, "{what}");
        let place = key(rng);
        iter.seek(&place).expect("it seeks");
        let at = expected.partition_point(|(key, _)| **key < *place);
        assert_eq!(iter.entry(), expected.get(at).copied(), "{what}, to {place:?}");
        if at > 0 && at < expected.len() {
            iter.step_back().expect("it turns");
            assert_eq!(iter.entry(), expected.get(at - 1).copied(), "{what}, before {place:?}");
        }
    }
}

#[test]
fn scans_of_a_prefix_find_all() {
    for policy in [Policy::ldc_ranged(), Policy::leveled(), Policy::Tiered { runs_per_level: 6 }] {
        let (fs, mut rng, mut map) = (SimFs::new(2), Rng::new(3), Map::new());
        // Some tables know other prefixes, and some none.
        for prefix_bytes in [4, 0, 4, 2, 4] {
            let db = options(&fs, &policy, prefix_bytes).open("/db").expect("it opens");
            for round in 0..6 {
                for number in 0..150u8 {
                    let at = key(&mut rng);
                    if number % 50 == 49 {
                        let end = [&at[..], b"~"].concat();
                        db.delete_range(&at[..]..&end[..]).expect("it deletes");
                        map.retain(|k, _| *k < at || *k >= end);
                    } else if number % 9 == 8 {
                        db.delete(&at).expect("it deletes");
                        map.remove(&at);
                    } else {
                        db.put(&at, &[number; 20]).expect("it writes");
                        map.insert(at, vec![number; 20]);
                    }
                }
                check(&db, &map, &mut rng, &format!("{policy:?}, {prefix_bytes} bytes, round {round}"));
            }
        }
    }
}

/// Of many runs, only those with the prefix are looked into.
#[test]
fn scans_of_a_prefix_read_few_blocks() {
    let blocks = [0, 4].map(|prefix_bytes| {
        let fs = SimFs::new(2);
        let policy = Policy::Tiered { runs_per_level: 100 };
        let db = options(&fs, &policy, prefix_bytes)
            .block_cache_bytes(0)
            .memtable_bytes(64 << 10)
            .open("/db")
            .expect("it opens");
        // Each run has a twentieth of the groups.
        for run in 0..20u64 {
            for number in 0..100u64 {
                db.put(format!("{:04}/{}", (number * 20 + run) % 2000, run).as_bytes(), &[7; 30]).expect("it writes");
            }
            db.flush().expect("it flushes");
        }
        let before = db.stats().cache_misses;
        for group in 0..2000u64 {
            let found = db.iter(IterOptions::prefix(format!("{group:04}").as_bytes())).expect("it iterates").count();
            assert_eq!(found, 1);
        }
        db.stats().cache_misses - before
    });
    assert!(blocks[1] * 8 < blocks[0], "{blocks:?}");
}
