//! Keys that are written and deleted in turns, and trees of tiny tables: tables stay few, whatever the policy thinks is
//! alive.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Rng;
use plex::{Background, Db, IterOptions, Options, Policy};
use vfs::SimFs;

fn options(fs: &SimFs) -> Options {
    Options::new().file_system(Arc::new(fs.clone())).seed(1).background(Background::Inline)
}

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// All keys are put and deleted in turns. Each merge into the last run used to write one table per key: the tombstones
/// of all versions were subtracted from the distinct keys, so nothing seemed to be alive.
#[test]
fn put_and_delete_of_the_same_keys_keeps_tables_few() {
    const KEYS: u64 = 3000;
    let db = options(&SimFs::new(1)).open("/db").expect("it opens");
    for turn in 0..22u8 {
        for i in 0..KEYS {
            match turn % 2 {
                0 => db.put(&key(i), &[turn; 200]).expect("it writes"),
                _ => db.delete(&key(i)).expect("it writes"),
            }
        }
        db.flush().and_then(|()| db.settle()).expect("it merges");
        let tables = db.stats().tables;
        assert!(tables <= 30, "turn {turn}: {tables} tables");
        let found = db.iter(IterOptions::default()).expect("it iterates").count();
        assert_eq!(found as u64, if turn % 2 == 0 { KEYS } else { 0 });
    }
    let stats = db.stats();
    assert!(stats.table_bytes < 100_000, "nothing is alive: {stats:?}");
}

/// Keys at random: what is there is deleted, what is not there is put. Half of the keys are alive, and files take about
/// as much.
#[test]
fn random_toggles_cost_what_they_keep() {
    const KEYS: u64 = 5000;
    let db = options(&SimFs::new(1)).memtable_bytes(64 << 10).open("/db").expect("it opens");
    let (mut rng, mut model) = (Rng::new(5), BTreeMap::new());
    let (mut live, mut peak) = (0, 0.0_f64);
    for i in 0..40 * KEYS {
        let id = rng.below(KEYS);
        if model.remove(&id).is_some() {
            db.delete(&key(id)).expect("it writes");
            live -= 208;
        } else {
            db.put(&key(id), &[i as u8; 200]).expect("it writes");
            model.insert(id, i as u8);
            live += 208;
        }
        if i > 10 * KEYS && i % 100 == 0 {
            peak = peak.max(db.stats().table_bytes as f64 / f64::from(live));
        }
    }
    let stats = db.stats();
    println!("WA {:.2}, SA {peak:.2}, {} tables", stats.write_amplification(), stats.tables);
    assert!(peak < 2.0 && stats.write_amplification() < 7.0 && stats.tables < 200, "{peak} {stats:?}");
    let found: Vec<u64> = db
        .iter(IterOptions::default())
        .expect("it iterates")
        .map(|pair| u64::from_be_bytes(pair.expect("it reads").0.try_into().expect("eight bytes")))
        .collect();
    assert_eq!(found, model.into_keys().collect::<Vec<_>>());
}

fn fill(db: &Db, keys: u64) {
    for i in 0..keys {
        db.put(&key(i * 7919 % keys), &[i as u8; 200]).expect("it writes");
    }
    db.flush().and_then(|()| db.settle()).expect("it merges");
}

/// A tree of hundreds of tiny tables, as an older release may have left it: the default policy joins them, and flushes
/// are cut at the new borders only.
#[test]
fn a_tree_of_tiny_tables_heals() {
    let fs = SimFs::new(1);
    let tiny = || {
        let small = options(&fs).memtable_bytes(16 << 10).table_bytes(1 << 10);
        small.policy(Policy::Leveled { level0_runs_max: 1, level1_bytes: 1 << 20 })
    };
    let db = tiny().open("/db").expect("it opens");
    fill(&db, 3000);
    let before = db.stats().tables;
    assert!(before > 300, "{before} tables");
    drop(db);
    let db = options(&fs).open("/db").expect("it opens");
    db.settle().expect("it merges");
    let after = db.stats().tables;
    assert!(after <= 16, "{before} tables became {after}");
    fill(&db, 3000);
    let later = db.stats().tables;
    assert!(later <= 32, "{after} tables became {later}");
    db.verify().expect("all tables are sound");
    assert_eq!(db.iter(IterOptions::default()).expect("it iterates").count(), 3000);
}
