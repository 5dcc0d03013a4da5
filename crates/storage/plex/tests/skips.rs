//! Scans pass over what deleted ranges hide, table by table, in both directions, and see what was written after them.

use std::sync::Arc;

use base::Rng;
use plex::{Background, Db, IterOptions, Options};
use vfs::SimFs;

const KEYS: u64 = 6000;

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// All keys in tables, nothing merged after this.
fn filled() -> Db {
    let options = Options::new().file_system(Arc::new(SimFs::new(1))).seed(1).background(Background::Manual);
    let db = options.open("/db").expect("it opens");
    for _ in 0..3 {
        for i in 0..KEYS {
            db.put(&key(i), &[i as u8; 200]).expect("it writes");
        }
        db.flush().expect("it flushes");
    }
    db
}

fn blocks(db: &Db, scan: impl FnOnce()) -> u64 {
    let looked_at = || db.stats().cache_hits + db.stats().cache_misses;
    let before = looked_at();
    scan();
    looked_at() - before
}

/// The first key after everything was deleted: 900 blocks of three runs used to be read, now one or two of each run.
#[test]
fn a_scan_does_not_read_what_a_range_hides() {
    let db = filled();
    db.delete_range(&key(0)[..]..&key(KEYS - 1)[..]).expect("it writes");
    for is_flushed in [false, true] {
        if is_flushed {
            db.flush().expect("it flushes");
        }
        let forward = blocks(&db, || {
            let mut iter = db.iter(IterOptions::default()).expect("it iterates");
            iter.seek_to_first().expect("it seeks");
            assert_eq!(iter.entry().map(|(key, _)| key), Some(&key(KEYS - 1)[..]));
            iter.step_back().expect("it steps");
            assert_eq!(iter.entry(), None);
        });
        let backward = blocks(&db, || {
            let mut iter = db.iter(IterOptions::default()).expect("it iterates");
            iter.seek_before(&key(KEYS - 1)).expect("it seeks");
            assert_eq!(iter.entry(), None);
        });
        assert!(forward <= 20 && backward <= 20, "{forward} and {backward} blocks");
    }
}

/// Random deleted ranges with keys written between them: walks in both directions agree with a list.
#[test]
fn what_was_written_after_a_range_shows() {
    let (db, mut rng) = (filled(), Rng::new(4));
    let mut alive = vec![true; KEYS as usize];
    let view_before = db.view();
    for round in 0..40 {
        let from = rng.below(KEYS);
        let to = (from + rng.below(KEYS / 10) + 1).min(KEYS);
        db.delete_range(&key(from)[..]..&key(to)[..]).expect("it writes");
        (from..to).for_each(|i| alive[i as usize] = false);
        for _ in 0..20 {
            let i = rng.below(KEYS);
            db.put(&key(i), b"again").expect("it writes");
            alive[i as usize] = true;
        }
        if round % 7 == 0 {
            db.flush().expect("it flushes");
        }
        let expected: Vec<u64> = (0..KEYS).filter(|i| alive[*i as usize]).collect();
        let mut iter = db.iter(IterOptions::default()).expect("it iterates");
        for turns in [false, true] {
            let mut found = Vec::new();
            if turns { iter.seek_to_last() } else { iter.seek_to_first() }.expect("it seeks");
            while let Some((key, _)) = iter.entry() {
                found.push(u64::from_be_bytes(key.try_into().expect("eight bytes")));
                if turns { iter.step_back() } else { iter.step_forward() }.expect("it steps");
            }
            if turns {
                found.reverse();
            }
            assert!(found == expected, "round {round}: {} keys, {} expected", found.len(), expected.len());
        }
    }
    assert_eq!(view_before.iter(IterOptions::default()).expect("it iterates").count() as u64, KEYS);
    assert_eq!(db.get(&key(0)).expect("it reads").is_some(), alive[0]);
}

/// A scan that begins where thousands of keys were deleted. They are too few for the policy to merge them for their
/// space; scans that step over them again and again make it worth it.
#[test]
fn deleted_keys_that_scans_meet_are_merged_away() {
    let options = Options::new().file_system(Arc::new(SimFs::new(1))).seed(1).background(Background::Inline);
    let db = options.memtable_bytes(256 << 10).reclaim_when_idle(false).open("/db").expect("it opens");
    for i in 0..KEYS {
        db.put(&key(i * 7919 % KEYS), &[i as u8; 200]).expect("it writes");
    }
    db.flush().and_then(|()| db.settle()).expect("it merges");
    let deleted = KEYS / 20;
    (0..deleted).for_each(|i| db.delete(&key(i)).expect("it writes"));
    db.flush().and_then(|()| db.settle()).expect("it merges");
    let head = || {
        blocks(&db, || {
            let mut iter = db.iter(IterOptions::default()).expect("it iterates");
            iter.seek_to_first().expect("it seeks");
            assert_eq!(iter.entry().map(|(key, _)| key), Some(&key(deleted)[..]));
        })
    };
    let before = head();
    assert!(before >= 10, "{before} blocks");
    for _ in 0..100 {
        head();
    }
    db.settle().expect("it merges");
    let after = head();
    assert!(after <= 3, "{before} blocks became {after}");
    assert!(!db.compact_step().expect("it merges"), "it has come to an end");
}
