//! What is deleted gives its space back: key by key or by range, in small key spaces, and after a read view that held
//! it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Rng;
use plex::{Background, Db, IterOptions, KeySpaceId, Options, Policy, WriteBatch};
use vfs::SimFs;

const KEYS: u64 = 5000;

fn options() -> Options {
    Options::new().file_system(Arc::new(SimFs::new(1))).seed(1).background(Background::Inline).memtable_bytes(64 << 10)
}

fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// The policies that have an order of keys.
fn policies() -> [Policy; 4] {
    let leveled = Policy::Leveled { level0_runs_max: 4, level1_bytes: 100 << 10 };
    [Policy::ldc_ranged(), leveled, Policy::tiered(), Policy::ldc()]
}

fn fill(db: &Db) {
    for i in 0..KEYS {
        db.put(&key(i * 7919 % KEYS), &[i as u8; 200]).expect("it writes");
    }
    db.flush().and_then(|()| db.settle()).expect("it merges");
}

fn delete_everything(db: &Db) {
    for i in 0..KEYS / 2 {
        db.delete(&key(i)).expect("it writes");
    }
    db.delete_range(&key(KEYS / 2)[..]..&key(KEYS)[..]).expect("it writes");
}

/// Everything is deleted, half of it key by key and half by a range. Tombstones and what they hide used to stay for
/// ever where files took less than four memtables, and deleted ranges were not counted at all.
#[test]
fn nothing_is_left_of_what_was_deleted() {
    for policy in policies() {
        let db = options().policy(policy.clone()).open("/db").expect("it opens");
        fill(&db);
        let view = db.view();
        delete_everything(&db);
        db.reclaim().expect("it merges");
        assert_eq!(view.iter(IterOptions::default()).expect("it iterates").count() as u64, KEYS, "{policy:?}");
        assert_eq!((db.stats().views, db.stats().oldest_view), (1, Some(view.seqno())));
        drop(view);
        db.reclaim().expect("it merges");
        let stats = db.stats();
        assert_eq!((stats.tables, stats.table_bytes, stats.views), (0, 0, 0), "{policy:?}");
        assert_eq!(db.iter(IterOptions::default()).expect("it iterates").count(), 0);
        fill(&db);
        assert_eq!(db.iter(IterOptions::default()).expect("it iterates").count() as u64, KEYS);
    }
}

/// The same where keys are kept by their hashes.
#[test]
fn nothing_is_left_of_deleted_hashes() {
    let db = options().policy(Policy::trie()).open("/db").expect("it opens");
    fill(&db);
    for i in 0..KEYS {
        db.delete(&key(i)).expect("it writes");
    }
    db.put(&key(7), b"left").expect("it writes");
    db.reclaim().expect("it merges");
    assert_eq!(db.stats().tables, 1, "{:?}", db.stats());
    assert_eq!(db.get(&key(7)).expect("it reads").as_deref(), Some(&b"left"[..]));
    db.delete(&key(7)).expect("it writes");
    db.reclaim().expect("it merges");
    assert_eq!((db.stats().tables, db.stats().table_bytes), (0, 0));
}

/// The same by the policy alone or by an idle database with threads. The policies of papers must be asked to.
#[test]
fn an_idle_database_gives_space_back() {
    let gives_back = |policy: Policy| {
        let options = Options::new().file_system(Arc::new(SimFs::new(1))).policy(policy.clone());
        let is_of_a_paper = matches!(policy, Policy::Tiered { .. } | Policy::Ldc { .. });
        let options = if is_of_a_paper { options.reclaim_when_idle(true) } else { options };
        let db = options.open("/db").expect("it opens");
        fill(&db);
        delete_everything(&db);
        let deadline = Instant::now() + Duration::from_secs(120);
        while db.stats().tables > 0 || db.stats().memtable_bytes > 0 {
            assert!(Instant::now() < deadline, "{policy:?}: {:?}", db.stats());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    std::thread::scope(|scope| {
        policies().into_iter().for_each(|policy| drop(scope.spawn(|| gives_back(policy))));
    });
}

/// Nine tenths are deleted by a range: the default policy gives their space back automatically.
#[test]
fn deleted_ranges_are_garbage() {
    let db = options().open("/db").expect("it opens");
    fill(&db);
    db.delete_range(&key(KEYS / 20)[..]..&key(KEYS / 20 * 19)[..]).expect("it writes");
    db.flush().and_then(|()| db.settle()).expect("it merges");
    let live = (KEYS / 10 * 208) as f64;
    let amplification = db.stats().table_bytes as f64 / live;
    assert!(amplification < 1.7, "{amplification}");
    assert_eq!(db.iter(IterOptions::default()).expect("it iterates").count() as u64, KEYS / 10);
}

/// Key spaces with less than half of a memtable each. Below four memtables, garbage used to be left alone: 14 times the
/// live data on average with 100 KB in each, 13 with 1 KB.
#[test]
fn small_key_spaces_stay_small() {
    for (spaces, keys) in [(20, 500), (200, 5)] {
        let db = options().memtable_bytes(1 << 20).open("/db").expect("it opens");
        let ids: Vec<KeySpaceId> = (0..spaces).map(|i| db.key_space(&format!("{i}")).expect("it is made")).collect();
        let (count, live) = (spaces * keys, (spaces * keys) as f64 * 208.0);
        let (mut rng, mut peak) = (Rng::new(1), 0.0_f64);
        for i in 0..count * if keys == 5 { 120 } else { 12 } {
            let space = ids[(i % spaces) as usize];
            let id = if i < count { i / spaces } else { rng.below(keys) };
            db.put_in(space, &key(id), &[i as u8; 200]).expect("it writes");
            if i > count && i % 1000 == 0 {
                peak = peak.max(db.stats().table_bytes as f64 / live);
            }
        }
        let stats = db.stats();
        println!("{spaces} key spaces: SA {peak:.2}, WA {:.2}", stats.write_amplification());
        assert!(peak < 2.0 && stats.write_amplification() < 6.0, "{spaces} key spaces: {peak} {stats:?}");
    }
}

/// Queues without scans. Of half a memtable, each flush has tombstones of the values of the one before, and they are
/// merged with it. Of nine memtables, the head is merged away and the tail stays as it is: tables from head to tail had
/// all between written again (WA 3.25).
#[test]
fn queues_stay_small() {
    for (window, writes_most) in [(2500, 2.6), (26_000, 2.3)] {
        let db = options().memtable_bytes(1 << 20).open("/db").expect("it opens");
        let (mut sum, mut looks, mut peak) = (0.0, 0.0, 0.0_f64);
        for number in 0..150_000 {
            db.put(&key(number), &[number as u8; 200]).expect("it writes");
            if number >= window {
                db.delete(&key(number - window)).expect("it writes");
            }
            if number > 2 * window && number % 100 == 0 {
                let amplification = db.stats().table_bytes as f64 / (window * 208) as f64;
                (sum, looks, peak) = (sum + amplification, looks + 1.0, peak.max(amplification));
            }
        }
        let (mean, written) = (sum / looks, db.stats().write_amplification());
        println!("{window}: SA {mean:.2} on average, {peak:.2} at its peak, WA {written:.2}");
        let stats = db.stats();
        assert!(mean < 1.6 && peak < 1.8 && written < writes_most, "{window}: {mean} {peak} {written} {stats:?}");
    }
}

/// A view pins the versions that it sees, and no merge is made for what it pins: about as much is written as without
/// it.
#[test]
fn a_held_view_costs_what_it_pins() {
    let written = |holds: bool| {
        let db = options().open("/db").expect("it opens");
        fill(&db);
        let view = holds.then(|| db.view());
        let mut rng = Rng::new(1);
        for i in 0..15 * KEYS {
            db.put(&key(rng.below(KEYS)), &[i as u8; 200]).expect("it writes");
        }
        let stats = db.stats();
        if let Some(view) = view {
            let pairs =
                view.iter(IterOptions::default()).expect("it iterates").map(|pair| pair.expect("it reads").1[0]);
            assert_eq!(pairs.count() as u64, KEYS);
        }
        (stats.write_amplification(), stats.table_bytes as f64 / (KEYS * 208) as f64)
    };
    let (free, held) = (written(false), written(true));
    println!("without a view {free:?}, with one {held:?}");
    assert!(held.0 < 1.5 * free.0, "{free:?} {held:?}");
    assert!(held.1 < 1.5 + 2.0, "{free:?} {held:?}");
}

/// A range without an end reaches beyond the largest key, in tables, in memory and in the batch, even where no key is
/// longer; and it costs as little as any other.
#[test]
fn a_range_without_an_end_has_all_keys() {
    let largest = vec![255; 65_535];
    for policy in policies() {
        let db = options().policy(policy).open("/db").expect("it opens");
        let other = db.key_space("other").expect("it is made");
        db.put_in(other, b"z", b"stays").expect("it writes");
        db.delete_range(..).expect("there is nothing");
        fill(&db);
        db.flush().expect("it flushes");
        let mut batch = WriteBatch::new();
        batch.put(b"~in the batch", b"old").delete_range(&key(9)[..]..).put(b"~behind", b"new");
        db.write(&batch).expect("it writes");
        let keys = |db: &Db| {
            db.iter(IterOptions::default())
                .expect("it iterates")
                .map(|pair| pair.expect("it reads").0)
                .collect::<Vec<_>>()
        };
        let mut expected: Vec<Vec<u8>> = (0..9).map(|id| key(id).to_vec()).collect();
        expected.push(b"~behind".to_vec());
        assert_eq!(keys(&db), expected);
        db.put(&largest, b"").expect("it writes");
        let bytes = db.stats().wal_bytes;
        db.delete_range(&b"~"[..]..).expect("it writes");
        assert!(db.stats().wal_bytes - bytes < 3 * 65_535);
        expected.pop();
        assert_eq!(keys(&db), expected);
        db.reclaim().expect("it merges");
        assert_eq!(keys(&db), expected);
        db.delete_range(..=&key(7)[..]).expect("it writes");
        assert_eq!(keys(&db), [key(8).to_vec()]);
        assert_eq!(db.get_in(other, b"z").expect("it reads"), Some(b"stays".to_vec()));
    }
}

/// A batch that deletes a range and puts a key of it again keeps the key.
#[test]
fn what_is_put_after_a_deleted_range_stays() {
    for policy in policies() {
        let db = options().policy(policy).open("/db").expect("it opens");
        fill(&db);
        let mut batch = WriteBatch::new();
        batch.delete_range(&key(0)[..]..&key(KEYS)[..]).put(&key(7), b"new");
        db.write(&batch).expect("it writes");
        db.reclaim().expect("it merges");
        let pairs: Vec<_> =
            db.iter(IterOptions::default()).expect("it iterates").map(|pair| pair.expect("it reads")).collect();
        assert_eq!(pairs, [(key(7).to_vec(), b"new".to_vec())]);
        assert!(db.stats().table_bytes < 8 << 10);
    }
}
