//! What scans know of deleted keys: it spares later ones the walk, and never hides a value.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::Rng;
use vfs::SimFs;

use crate::options::{Background, Options, Wal};
use crate::{Db, IterOptions, ReadView, SortedFile};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(fs: &SimFs) -> Options {
    Options::new().file_system(Arc::new(fs.clone())).seed(1).background(Background::Inline)
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

/// Steps over deleted keys to the first key, and that key.
fn first(db: &Db) -> (u64, Option<Vec<u8>>) {
    let mut iter = db.iter(IterOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    (iter.deleted_steps(), iter.entry().map(|(key, _)| key.to_vec()))
}

/// The deleted keys of a queue are walked over once, in the memtable, in those before it and in tables; each look at
/// the head used to walk over all.
#[test]
fn a_look_at_the_head_of_a_queue_is_short() {
    let fs = SimFs::new(1);
    let db = options(&fs).memtable_bytes(64 << 10).open("/db").unwrap();
    let (window, mut tail, mut head, mut steps, mut most) = (500, 0, 0, 0, 0);
    for _ in 0..20_000 {
        db.put(&key(tail), &[7; 50]).unwrap();
        tail += 1;
        if tail - head > window {
            db.delete(&key(head)).unwrap();
            head += 1;
            let (walked, found) = first(&db);
            assert_eq!(found, Some(key(head)));
            (steps, most) = (steps + walked, most.max(walked));
        }
    }
    assert!(db.stats().flushes > 10, "{:?}", db.stats());
    assert!(steps < 5 * head && most < 20, "{steps} steps for {head} looks, {most} at most");
    // All of it goes: the first look may walk, the next ones do not.
    (head..tail).for_each(|number| db.delete(&key(number)).unwrap());
    assert_eq!(first(&db).1, None);
    assert_eq!(first(&db), (0, None));
    // A value in it shows at once, and what is before it is still skipped.
    db.put(&key(window / 2), b"back").unwrap();
    assert_eq!(first(&db), (0, Some(key(window / 2))));
    // What was deleted in one range is skipped as ever.
    db.delete_range(&key(0)[..]..&key(tail)[..]).unwrap();
    assert_eq!(first(&db).1, None);
}

/// What one memtable has of values and their deletions is passed leaf by leaf, in whatever order they were deleted; the
/// first look took a step for each key. A view from before them sees all.
#[test]
fn a_first_look_steps_over_few_of_many_deleted_keys() {
    for stride in [1, 7919] {
        let db = options(&SimFs::new(1)).open("/db").unwrap();
        let count = 20_000;
        (0..count).for_each(|number| db.put(&key(number), b"value").unwrap());
        let view = db.view();
        (0..count).for_each(|at| db.delete(&key(at * stride % count)).unwrap());
        let (steps, found) = first(&db);
        assert!(steps < 200 && found.is_none(), "{steps} steps");
        assert_eq!(view.iter(IterOptions::default()).unwrap().count() as u64, count);
        db.put(&key(count / 2), b"back").unwrap();
        assert_eq!(first(&db).1, Some(key(count / 2)));
    }
}

fn expect(found: crate::iter::Iter, map: &Map, bounds: &(Vec<u8>, Vec<u8>), what: &str) {
    let found: Map = found.map(Result::unwrap).collect();
    let expected: Map = map
        .range(bounds.0.clone()..)
        .take_while(|(key, _)| **key < bounds.1)
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    assert!(found == expected, "{what}: {found:?}, expected {expected:?}");
}

/// Random calls against a map: puts, deletions of keys and ranges, files that are taken in, flushes, merges, views that
/// are held, scans of any part, and seeks to any place. The keys are few, so gaps come and go.
#[test]
fn random_calls_agree_with_a_map() {
    let seeds = std::env::var("PLEX_SEEDS").map_or(6, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let db = options(&fs).memtable_bytes(2 << 10).table_bytes(1 << 10).block_bytes(128).open("/db").unwrap();
        let (mut map, mut views): (Map, Vec<(ReadView, Map)>) = Default::default();
        let keys = 30 + rng.below(200);
        for step in 0..1500u64 {
            let at = rng.below(keys);
            match rng.below(24) {
                0..=3 => {
                    db.put(&key(at), &step.to_le_bytes()).unwrap();
                    map.insert(key(at), step.to_le_bytes().to_vec());
                }
                4..=9 => {
                    let to = (at + rng.below(12)).min(keys);
                    for number in at..to {
                        db.delete(&key(number)).unwrap();
                        map.remove(&key(number));
                    }
                }
                10 => {
                    let end = key(at + rng.below(20));
                    db.delete_range(&key(at)[..]..&end[..]).unwrap();
                    map.retain(|other, _| *other < key(at) || *other >= end);
                }
                11 if rng.one_in(8) => {
                    let path = format!("/file-{step}");
                    let mut file = SortedFile::create(Path::new(&path), &options(&fs)).unwrap();
                    for number in (at..keys).step_by(3) {
                        file.put(&key(number), b"taken in").unwrap();
                        map.insert(key(number), b"taken in".to_vec());
                    }
                    let is_empty = at >= keys;
                    file.finish().unwrap();
                    if !is_empty {
                        db.ingest(crate::KeySpaceId::DEFAULT, &[path]).unwrap();
                    }
                }
                12 if rng.one_in(10) => db.flush().unwrap(),
                13 if rng.one_in(10) => db.settle().unwrap(),
                14 if views.len() < 3 => views.push((db.view(), map.clone())),
                15 if !views.is_empty() => drop(views.swap_remove(rng.below(views.len() as u64) as usize)),
                16..=18 => {
                    let mut iter = db.iter(IterOptions::default()).unwrap();
                    iter.seek(&key(at)).unwrap();
                    let expected = map.range(key(at)..).next().map(|(key, _)| key.clone());
                    assert_eq!(iter.entry().map(|(key, _)| key.to_vec()), expected, "seed {seed}, step {step}");
                }
                _ => {
                    let bounds = if rng.one_in(2) { (key(0), key(keys)) } else { (key(at), key(at + rng.below(60))) };
                    let options = || IterOptions::range(&bounds.0[..]..&bounds.1[..]);
                    let what = format!("seed {seed}, step {step}");
                    expect(db.iter(options()).unwrap(), &map, &bounds, &what);
                    for (view, map) in &views {
                        expect(view.iter(options()).unwrap(), map, &bounds, &what);
                    }
                }
            }
        }
    }
}

/// With threads: a key that was acknowledged before a scan began, and is not deleted, is in it.
#[test]
fn no_scan_misses_an_acknowledged_value() {
    for wal in [Wal::Async, Wal::Sync] {
        let fs = SimFs::new(1);
        let db = options(&fs).background(Background::Threads).wal(wal).memtable_bytes(16 << 10).open("/db").unwrap();
        const KEYS: u64 = 200;
        // One writer for each third of the keys: puts the ones that are due, deletes the others.
        let acknowledged: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let (db, acknowledged, is_over) = (&db, &acknowledged, &is_over);
                scope.spawn(move || {
                    let mut rng = Rng::new(writer);
                    for round in 1..4000u64 {
                        let at = rng.below(KEYS / 3) * 3 + writer;
                        if at >= KEYS {
                            continue;
                        }
                        if rng.one_in(8) {
                            db.put(&key(at), &round.to_le_bytes()).unwrap();
                            acknowledged[at as usize].store(round, Ordering::SeqCst);
                        } else {
                            acknowledged[at as usize].store(0, Ordering::SeqCst);
                            db.delete(&key(at)).unwrap();
                        }
                    }
                    is_over.store(true, Ordering::SeqCst);
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    let read = || acknowledged.iter().map(|round| round.load(Ordering::SeqCst)).collect::<Vec<_>>();
                    while !is_over.load(Ordering::SeqCst) {
                        let before = read();
                        let iter = db.iter(IterOptions::default()).unwrap();
                        let after = read();
                        let found: Map = iter.map(Result::unwrap).collect();
                        for (number, round) in (0..).zip(&before) {
                            // Whatever did not change while the iterator was made is in it.
                            if *round > 0 && after[number as usize] == *round {
                                let shown = found.get(&key(number)).expect("it is there");
                                let shown = u64::from_le_bytes(shown[..].try_into().unwrap());
                                assert!(shown >= *round, "{shown} in place of {round}");
                            }
                        }
                    }
                });
            }
        });
    }
}
