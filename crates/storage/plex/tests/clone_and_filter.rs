//! Clones that share tables, and keys that go when tables are written.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use plex::{Background, CompactionFilter, IterOptions, KeySpaceId, Options, Policy, WriteBatch};
use vfs::{FileSystem, SimFs};

fn options(fs: &SimFs) -> Options {
    Options::new().file_system(Arc::new(fs.clone())).seed(1).background(Background::Inline).memtable_bytes(4 << 10)
}

/// A clone has everything, survives the original, goes its own way, and is durable or absent after a power cut.
#[test]
fn a_clone_is_a_database_of_its_own() {
    let fs = SimFs::new(1);
    let db = options(&fs).open("/db").expect("it opens");
    let other = db.key_space("other").expect("it is made");
    for i in 0..300u32 {
        let mut batch = WriteBatch::new();
        batch.put(&i.to_be_bytes(), &[1; 50]).put_in(other, &i.to_be_bytes(), b"o");
        db.write(&batch).expect("it writes");
    }
    fs.record_crash_points();
    db.clone_to("/copies/first").expect("it clones");
    let points = fs.take_crash_points();
    assert!(db.clone_to("/copies/first").is_err(), "the directory is in use");
    for i in 0..300u32 {
        db.put(&i.to_be_bytes(), b"changed").expect("it writes");
    }
    db.flush().expect("it flushes");
    db.settle().expect("it merges");
    drop(db);
    for path in fs.contents().into_keys().filter(|path| path.starts_with("/db")) {
        fs.remove_file(&path).expect("it goes");
    }
    let check = |fs: &SimFs| {
        let copy = options(fs).open("/copies/first").expect("it opens");
        assert_eq!(copy.key_space("other").expect("it is there"), other);
        for i in 0..300u32 {
            assert_eq!(copy.get(&i.to_be_bytes()).expect("it reads"), Some(vec![1; 50]));
            assert_eq!(copy.get_in(other, &i.to_be_bytes()).expect("it reads"), Some(b"o".to_vec()));
        }
        copy.verify().expect("all tables are sound");
        copy.put(b"new", b"value").expect("it writes");
    };
    check(&fs);
    check(&fs.recover(vfs::Outage::PowerCut { seed: 1 }));
    for point in points {
        let after = point.power_cut(2);
        if after.exists(Path::new("/copies/first/CURRENT")).expect("it looks") {
            check(&after);
        }
        drop(options(&after).open("/db").expect("the original opens"));
    }
}

/// Keeps what does not begin with this byte.
#[derive(Debug)]
struct Without(u8);

impl CompactionFilter for Without {
    fn keeps(&self, _: KeySpaceId, _: &[u8], value: &[u8]) -> bool {
        value.first() != Some(&self.0)
    }
}

/// Filtered keys go for good, older versions do not come back, and a view keeps what it sees.
#[test]
fn filtered_keys_go() {
    let fs = SimFs::new(1);
    let db = options(&fs).open("/db").expect("it opens");
    for i in 0..200u32 {
        db.put(&i.to_be_bytes(), b"old").expect("it writes");
    }
    db.flush().expect("it flushes");
    drop(db);
    let db = options(&fs).compaction_filter(Arc::new(Without(b'x'))).open("/db").expect("it opens");
    let view = db.view();
    for i in 0..200u32 {
        let value = if i % 2 == 0 { &b"x"[..] } else { b"new" };
        db.put(&i.to_be_bytes(), value).expect("it writes");
    }
    // What memtables that were flushed meanwhile held is filtered already, for no view sees it.
    let later = db.view();
    let seen = [2u32, 198].map(|i| db.get(&i.to_be_bytes()).expect("it reads"));
    db.flush().expect("it flushes");
    assert_eq!(view.iter(IterOptions::default()).expect("it iterates").count(), 200);
    assert_eq!([2u32, 198].map(|i| later.get(&i.to_be_bytes()).expect("it reads")), seen);
    assert_eq!(seen[1], Some(b"x".to_vec()));
    drop((view, later));
    // Rewritten, so that the flush meets them without a view.
    for i in 0..200u32 {
        let value = if i % 2 == 0 { &b"x"[..] } else { b"new" };
        db.put(&i.to_be_bytes(), value).expect("it writes");
    }
    db.flush().expect("it flushes");
    for i in 0..200u32 {
        let expected = (i % 2 == 1).then(|| b"new".to_vec());
        assert_eq!(db.get(&i.to_be_bytes()).expect("it reads"), expected, "{i}");
    }
}

/// What the filter does not keep any more goes once its range is asked for, also out of tables that nothing is merged
/// with, and the rest of the keys stays as it is.
#[test]
fn a_range_is_merged_when_asked_for() {
    for policy in [Policy::ldc_ranged(), Policy::leveled(), Policy::tiered()] {
        let (fs, key) = (SimFs::new(1), |i: u32| i.to_be_bytes());
        let db = options(&fs).policy(policy.clone()).open("/db").expect("it opens");
        for i in 0..2000 {
            db.put(&key(i), &[b'x'; 40]).expect("it writes");
        }
        db.flush().and_then(|()| db.settle()).expect("it merges");
        drop(db);
        let filtered = || options(&fs).policy(policy.clone()).compaction_filter(Arc::new(Without(b'x')));
        let db = filtered().open("/db").expect("it opens");
        db.settle().expect("there is nothing to merge");
        let is_there = |i| db.get(&key(i)).expect("it reads").is_some();
        assert!((0..2000).all(is_there), "{policy:?}");
        let view = db.view();
        db.compact_range(KeySpaceId::DEFAULT, &key(500)[..]..&key(1000)[..]).expect("it merges");
        assert!((0..2000).all(is_there), "a view keeps what it sees");
        drop(view);
        db.compact_range(KeySpaceId::DEFAULT, &key(500)[..]..&key(1000)[..]).expect("it merges");
        assert!(!(500..1000).any(is_there), "{policy:?}");
        assert!((0..200).chain(1500..2000).all(is_there), "{policy:?}: tables of other ranges were merged");
        db.compact_range(KeySpaceId::DEFAULT, ..).expect("it merges");
        assert_eq!((db.stats().tables, db.iter(IterOptions::default()).expect("it iterates").count()), (0, 0));
        db.compact_range(KeySpaceId::DEFAULT, ..).expect("there is nothing");
        db.put(&key(7), b"new").expect("it writes");
        drop(db);
        let db = filtered().open("/db").expect("it opens again");
        assert_eq!(db.get(&key(7)).expect("it reads"), Some(b"new".to_vec()));
    }
}

/// A backup of a live database: it has all that was acknowledged before the call, and of what is written meanwhile a
/// beginning, across key spaces.
#[test]
fn a_clone_beside_writers_has_a_beginning_of_what_they_write() {
    const WRITERS: u32 = 3;
    let fs = SimFs::new(1);
    let options = || options(&fs).background(Background::Threads);
    let db = options().open("/db").expect("it opens");
    let other = db.key_space("other").expect("it is made");
    let done: [AtomicU32; WRITERS as usize] = Default::default();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, done, is_over) = (&db, &done[writer as usize], &is_over);
            scope.spawn(move || {
                for number in 1_u32.. {
                    if is_over.load(Ordering::Acquire) {
                        return;
                    }
                    let key = [writer.to_be_bytes(), number.to_be_bytes()].concat();
                    let mut batch = WriteBatch::new();
                    batch.put(&key, &[7; 60]).put_in(other, &key, b"o");
                    db.write(&batch).expect("it writes");
                    done.store(number, Ordering::Release);
                }
            });
        }
        for round in 0..8 {
            let before: Vec<u32> = done.iter().map(|done| done.load(Ordering::Acquire)).collect();
            let path = format!("/copies/{round}");
            db.clone_to(&path).expect("it clones");
            let copy = options().open(&path).expect("it opens");
            copy.verify().expect("it is sound");
            let keys = |space| -> Vec<Vec<u8>> {
                let pairs = copy.iter_in(space, IterOptions::default()).expect("it iterates");
                pairs.map(|pair| pair.expect("it reads").0).collect()
            };
            let found = keys(KeySpaceId::DEFAULT);
            assert!(found == keys(other), "round {round}: batches are whole");
            for writer in 0..WRITERS {
                let of = found.iter().filter(|key| key.starts_with(&writer.to_be_bytes()));
                let count = of.clone().count() as u32;
                assert!(count >= before[writer as usize], "round {round}, writer {writer}: {count}");
                let expected = (1..=count).map(|number: u32| [writer.to_be_bytes(), number.to_be_bytes()].concat());
                assert!(of.cloned().eq(expected), "round {round}, writer {writer}: none is missing in between");
            }
        }
        is_over.store(true, Ordering::Release);
    });
}
