//! Merges that are split by key: the same contents as without, the same files every time, and threads that do the parts
//! concurrently with readers and writers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base::Rng;
use plex::{Background, Db, IterOptions, Options, Policy};
use vfs::SimFs;

fn options(fs: &SimFs, policy: &Policy, parts: usize) -> Options {
    let options = Options::new().file_system(Arc::new(fs.clone())).seed(5).background(Background::Inline);
    options.policy(policy.clone()).memtable_bytes(16 << 10).table_bytes(4 << 10).block_bytes(512).merge_parts_max(parts)
}

/// Random puts, deletions and deleted ranges.
fn fill(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut rng, mut model) = (Rng::new(9), BTreeMap::new());
    for number in 0..6000u64 {
        let key = format!("{:05}", rng.below(3000)).into_bytes();
        match rng.below(200) {
            0 => {
                let end = format!("{:05}", rng.below(3000)).into_bytes();
                db.delete_range(&key[..]..&end[..]).expect("it deletes");
                model.retain(|k, _| *k < key || *k >= end);
            }
            1..10 => {
                db.delete(&key).expect("it deletes");
                model.remove(&key);
            }
            _ => {
                let value = vec![number as u8; 20 + rng.below(60) as usize];
                db.put(&key, &value).expect("it writes");
                model.insert(key, value);
            }
        }
    }
    model
}

fn files(fs: &SimFs) -> BTreeMap<PathBuf, Vec<u8>> {
    fs.contents()
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.iter(IterOptions::default()).and_then(Iterator::collect).expect("it reads")
}

#[test]
fn parts_give_what_one_merge_gives() {
    for policy in [Policy::ldc_ranged(), Policy::leveled(), Policy::Tiered { runs_per_level: 4 }] {
        for parts in [1, 2, 4] {
            let [first, again] = [SimFs::new(1), SimFs::new(1)].map(|fs| {
                let db = options(&fs, &policy, parts).open("/db").expect("it opens");
                let model = fill(&db);
                db.flush().and_then(|()| db.settle()).expect("it merges");
                assert!(contents(&db) == model, "{policy:?}, {parts} parts");
                db.verify().expect("tables are sound");
                let stats = db.stats();
                assert!(parts == 1 || stats.compaction_parts > stats.compactions, "{policy:?}: {stats:?}");
                drop(db);
                files(&fs)
            });
            assert!(first == again, "{policy:?}: the same calls gave other files");
        }
    }
}

#[test]
fn threads_do_the_parts() {
    let fs = SimFs::new(1);
    let policy = Policy::Tiered { runs_per_level: 3 };
    let db = options(&fs, &policy, 4).background(Background::Threads).open("/db").expect("it opens");
    let model = fill(&db);
    db.flush().and_then(|()| db.settle()).expect("it merges");
    assert!(contents(&db) == model);
    assert!(db.stats().compaction_parts > db.stats().compactions, "{:?}", db.stats());
    drop(db);
    let db = options(&fs, &policy, 4).open("/db").expect("it opens");
    assert!(contents(&db) == model);
    db.verify().expect("tables are sound");
}
