//! Key spaces that are made, listed and dropped: random calls against maps, at every crash point, and with writers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Rng;
use plex::{Background, Db, IterOptions, KeySpaceId, Options, Policy, Wal};
use vfs::{Outage, SimFs};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Spaces = BTreeMap<String, Map>;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn options(fs: &SimFs, seed: u64) -> Options {
    let policy = match seed % 3 {
        0 => Policy::LdcRanged { space_amp_target: 1.3, runs_max: 3 },
        1 => Policy::Leveled { level0_runs_max: 2, level1_bytes: 4 << 10 },
        _ => Policy::Tiered { runs_per_level: 3 },
    };
    let wal = if seed.is_multiple_of(2) { Wal::Sync } else { Wal::Off };
    let options = Options::new().file_system(Arc::new(fs.clone())).seed(seed).wal(wal).policy(policy);
    options.background(Background::Inline).memtable_bytes(1500).table_bytes(1 << 10).block_bytes(256)
}

fn contents(db: &Db, space: KeySpaceId) -> Map {
    db.iter_in(space, IterOptions::default()).expect("it iterates").collect::<plex::Result<_>>().expect("it reads")
}

/// All key spaces but the default one.
fn all(db: &Db) -> Spaces {
    let spaces = db.key_spaces();
    assert!(spaces.contains(&("default".to_owned(), KeySpaceId::DEFAULT)));
    let others = spaces.into_iter().filter(|(_, id)| *id != KeySpaceId::DEFAULT);
    others.map(|(name, id)| (name, contents(db, id))).collect()
}

/// One random call, on the database and on the maps.
fn step(db: &Db, model: &mut Spaces, rng: &mut Rng) {
    let name = NAMES[rng.below(NAMES.len() as u64) as usize];
    let is_there = model.contains_key(name);
    if rng.below(20) == 0 {
        if is_there {
            let id = db.key_space(name).expect("it is there");
            db.drop_key_space(id).expect("it is dropped");
            model.remove(name);
            assert!(db.put_in(id, b"k", b"v").is_err(), "its id belongs to no other");
            assert!(db.drop_key_space(id).is_err() && contents(db, id).is_empty());
        }
        return;
    }
    let id = db.key_space(name).expect("it is made");
    let map = model.entry(name.to_owned()).or_default();
    let key = vec![b'a' + rng.below(20) as u8];
    if rng.below(4) == 0 {
        db.delete_in(id, &key).expect("it writes");
        map.remove(&key);
    } else {
        let value = vec![rng.below(256) as u8; 1 + rng.below(60) as usize];
        db.put_in(id, &key, &value).expect("it writes");
        map.insert(key, value);
    }
}

/// A key that has a value may have one; one that was never written has none, but for a few that filters let through.
#[test]
fn may_have_is_false_only_for_absent_keys() {
    let fs = SimFs::new(1);
    let db = options(&fs, 1).open("/db").expect("it opens");
    let (full, other) = (db.key_space("full").expect("it is made"), db.key_space("other").expect("it is made"));
    let key = |number: u32| format!("key{number:04}").into_bytes();
    for number in 0..400 {
        db.put_in(full, &key(number), b"value").expect("it writes");
    }
    for number in 0..400 {
        assert!(db.may_have(full, &key(number)), "{number}");
        assert!(!db.may_have(other, &key(number)), "{number}");
    }
    let passed = (400..2400).filter(|number| db.may_have(full, &key(*number))).count();
    assert!(passed < 40, "{passed} of 2000 absent keys");
    db.delete_in(full, &key(0)).expect("it writes");
    assert!(!db.may_have(full, &key(0)), "its tombstone is in memory");
    db.delete_range_in(full, &key(100)[..]..&key(200)[..]).expect("it writes");
    assert!(!db.may_have(full, &key(150)) && db.may_have(full, &key(200)));
    db.flush().expect("it flushes");
    let passed = (400..2400).filter(|number| db.may_have(full, &key(*number))).count();
    assert!(passed < 40, "{passed} of 2000 absent keys beside a deleted range");
    assert!((1..100).chain(200..400).all(|number| db.may_have(full, &key(number))));
    db.delete_range_in(full, ..).expect("it writes");
    db.put_in(full, &key(7), b"value").expect("it writes");
    db.flush().expect("it flushes");
    let found: Vec<u32> = (0..2400).filter(|number| db.may_have(full, &key(*number))).collect();
    assert!(found.contains(&7) && found.len() < 40, "{} keys after all were deleted", found.len());
}

#[test]
fn dropped_key_spaces_are_gone_and_the_others_are_not() {
    for seed in 0..12 {
        let (fs, mut rng, mut model) = (SimFs::new(seed), Rng::new(seed), Spaces::new());
        let mut db = options(&fs, seed).open("/db").expect("it opens");
        for call in 0..600 {
            step(&db, &mut model, &mut rng);
            if call % 100 == 99 {
                db.flush().expect("it flushes");
                drop(db);
                assert!(plex::check("/db", &options(&fs, seed)).expect("it reads").is_empty());
                db = options(&fs, seed).open("/db").expect("it opens");
            }
            if call % 20 == 19 {
                assert_eq!(all(&db), model, "seed {seed}, call {call}");
            }
        }
        for (_, id) in db.key_spaces().into_iter().filter(|(_, id)| *id != KeySpaceId::DEFAULT) {
            db.drop_key_space(id).expect("it is dropped");
        }
        let stats = db.stats();
        assert_eq!((stats.tables, stats.table_bytes), (0, 0), "seed {seed}: the space is back");
        assert!(db.drop_key_space(KeySpaceId::DEFAULT).is_err());
    }
}

/// A read view keeps what it sees.
#[test]
fn a_view_outlives_the_drop() {
    let fs = SimFs::new(1);
    let db = options(&fs, 0).open("/db").expect("it opens");
    let id = db.key_space("a").expect("it is made");
    db.put_in(id, b"k", b"v").expect("it writes");
    db.flush().expect("it flushes");
    let mut iter = db.iter_in(id, IterOptions::default()).expect("it iterates");
    db.drop_key_space(id).expect("it is dropped");
    assert_eq!(iter.next().expect("it is seen").expect("it reads"), (b"k".to_vec(), b"v".to_vec()));
    assert_ne!(db.key_space("a").expect("it is made"), id);
}

/// A power cut or a kill at any operation of a drop: the key space is whole or gone, and the others are whole.
#[test]
fn a_crash_shows_the_key_space_whole_or_gone() {
    for seed in 0..6 {
        let (fs, mut rng, mut model) = (SimFs::new(seed), Rng::new(seed), Spaces::new());
        let db = options(&fs, seed).open("/db").expect("it opens");
        while model.len() < NAMES.len() || model.values().any(|map| map.len() < 5) {
            step(&db, &mut model, &mut rng);
        }
        db.flush().expect("it flushes");
        let id = db.key_space("b").expect("it is there");
        fs.record_crash_points();
        db.drop_key_space(id).expect("it is dropped");
        let mut gone = model.clone();
        gone.remove("b");
        let mut seen = [0, 0];
        for point in fs.take_crash_points() {
            for outage in [Outage::ProcessKill, Outage::PowerCut { seed: 1 }, Outage::PowerCut { seed: 2 }] {
                let after = point.after(outage);
                let db = options(&after, seed).open("/db").unwrap_or_else(|e| panic!("seed {seed}, {point:?}: {e}"));
                let found = all(&db);
                assert!(found == model || found == gone, "seed {seed}, {point:?}, {outage:?}");
                seen[usize::from(found == gone)] += 1;
                let again = db.key_space("b").expect("it is made");
                assert_eq!(again == id, found == model, "seed {seed}, {point:?}");
            }
        }
        assert!(seen[0] > 0, "seed {seed}: {seen:?}");
        drop(db);
        assert_eq!(all(&options(&fs, seed).open("/db").expect("it opens")), gone);
    }
}

/// Writers of a key space that is dropped get an error, and others continue.
#[test]
fn drops_beside_writers() {
    let fs = SimFs::new(1);
    let db = options(&fs, 0).background(Background::Threads).open("/db").expect("it opens");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for name in ["x", "y"] {
            let (db, is_over) = (&db, &is_over);
            scope.spawn(move || {
                let mut number = 0_u32;
                while !is_over.load(Ordering::Acquire) {
                    number += 1;
                    let id = db.key_space(name).expect("it is made");
                    let _ = db.put_in(id, &number.to_be_bytes(), &[7; 50]);
                    db.put(&[name.as_bytes(), &number.to_be_bytes()].concat(), &[7; 50]).expect("it writes");
                }
            });
        }
        for _ in 0..20 {
            let id = db.key_space("x").expect("it is made");
            db.drop_key_space(id).expect("it is dropped");
            assert!(contents(&db, id).is_empty());
        }
        is_over.store(true, Ordering::Release);
    });
    let id = db.key_space("x").expect("it is made");
    db.drop_key_space(id).expect("it is dropped");
    db.verify().expect("it is sound");
    let expected = (all(&db), contents(&db, KeySpaceId::DEFAULT));
    drop(db);
    let db = options(&fs, 0).open("/db").expect("it opens");
    assert_eq!((all(&db), contents(&db, KeySpaceId::DEFAULT)), expected);
}

/// Merges go round among key spaces. The first one that wanted a merge used to get all of them.
#[test]
fn every_key_space_has_its_turn_to_be_merged() {
    let db = Options::new()
        .file_system(Arc::new(SimFs::new(1)))
        .seed(1)
        .background(Background::Manual)
        .policy(Policy::tiered())
        .open("/db")
        .expect("it opens");
    let spaces: Vec<_> = (0..4).map(|i| db.key_space(&format!("{i}")).expect("it is made")).collect();
    for i in 0..64u64 {
        for &space in &spaces {
            db.put_in(space, &i.to_be_bytes(), b"value").expect("it writes");
        }
        db.flush().expect("it flushes");
    }
    let runs = || -> Vec<usize> {
        db.stats().levels.iter().map(|(_, levels)| levels.iter().map(|(runs, _)| runs).sum()).collect()
    };
    let before = runs();
    for _ in 0..spaces.len() {
        assert!(db.compact_step().expect("it merges"));
    }
    assert!(runs().iter().zip(&before).all(|(after, before)| after < before), "{before:?} {:?}", runs());
}

/// A write finds its key space at once: with 3,000 of them it takes no longer than without a key space of its own,
/// where a look through all took five times as long.
#[test]
fn a_write_does_not_look_through_all_key_spaces() {
    let db = Options::new().file_system(Arc::new(SimFs::new(1))).wal(Wal::Off).open("/db").expect("it opens");
    let spaces: Vec<_> = (0..3000).map(|i| db.key_space(&format!("{i}")).expect("it is made")).collect();
    let fastest = |space| {
        let write = |_| {
            let begin = std::time::Instant::now();
            db.put_in(space, b"key", b"value").expect("it writes");
            begin.elapsed()
        };
        (0..5000).map(write).min().unwrap_or_default()
    };
    let (default, last) = (fastest(KeySpaceId::DEFAULT), fastest(spaces[2999]));
    println!("{default:?} {last:?}");
    assert!(last < 3 * default, "{default:?} {last:?}");
}
