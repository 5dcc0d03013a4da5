//! The policy that keeps keys by their hashes: look-ups agree with a map through flushes, merges, crashes, repairs and
//! reopenings, and what needs an order is refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base::Rng;
use plex::{Background, CompactionFilter, Db, Error, IterOptions, KeySpaceId, Options, Policy, Wal, WriteBatch};
use vfs::{FileSystem, SimFs};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The key that every batch gives its own number.
const COUNTER: &[u8] = b"counter";

fn options(fs: &SimFs) -> Options {
    Options::new()
        .file_system(Arc::new(fs.clone()))
        .seed(1)
        .background(Background::Inline)
        .policy(Policy::Trie { runs_per_node: 3 })
        .memtable_bytes(2 << 10)
        .table_bytes(1 << 10)
        .block_bytes(256)
}

fn key(rng: &mut Rng) -> Vec<u8> {
    rng.below(KEYS).to_string().into_bytes()
}

const KEYS: u64 = 60;

/// Every key that may be there, as the map has it.
fn check(map: &Map, get: impl Fn(&[u8]) -> plex::Result<Option<Vec<u8>>>, what: &str) {
    for key in (0..KEYS).map(|number| number.to_string().into_bytes()).chain([COUNTER.to_vec()]) {
        let found = get(&key).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found.as_ref(), map.get(&key), "{what}: {}", key.escape_ascii());
    }
}

fn write(db: &Db, rng: &mut Rng, number: u64, space: KeySpaceId, map: &mut Map) {
    let mut batch = WriteBatch::new();
    for _ in 0..rng.below(5) {
        let key = key(rng);
        if rng.one_in(4) {
            batch.delete_in(space, &key);
            map.remove(&key);
        } else {
            let value = vec![number as u8; rng.below(80) as usize];
            batch.put_in(space, &key, &value);
            map.insert(key, value);
        }
    }
    batch.put_in(space, COUNTER, &number.to_be_bytes());
    map.insert(COUNTER.to_vec(), number.to_be_bytes().to_vec());
    db.write(&batch).expect("it writes");
}

#[test]
fn look_ups_agree_with_a_map() {
    for seed in 0..5 {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut db = options(&fs).open("/db").expect("it opens");
        let spaces = [KeySpaceId::DEFAULT, db.key_space("second").expect("it is made")];
        let mut maps = [Map::new(), Map::new()];
        let mut view = None;
        for number in 0..1200 {
            let at = rng.below(2) as usize;
            write(&db, &mut rng, number, spaces[at], &mut maps[at]);
            match rng.below(200) {
                0 => db.flush().expect("it flushes"),
                1 => db.settle().expect("it merges"),
                2 => view = Some((db.view(), maps.clone())),
                3 => {
                    view = None;
                    drop(db);
                    db = options(&fs).open("/db").expect("it opens");
                }
                4..20 => check(&maps[at], |key| db.get_in(spaces[at], key), &format!("seed {seed}, {number}")),
                20..30 => {
                    if let Some((view, maps)) = &view {
                        check(&maps[at], |key| view.get_in(spaces[at], key), &format!("seed {seed}, view, {number}"));
                    }
                }
                _ => {}
            }
        }
        let keys: Vec<Vec<u8>> = (0..20).map(|_| key(&mut rng)).collect();
        let expected: Vec<_> = keys.iter().map(|key| maps[1].get(key).cloned()).collect();
        assert_eq!(db.multi_get(spaces[1], &keys).expect("it reads"), expected);
        db.verify().expect("all tables are sound");
        let levels = &db.stats().levels[0].1;
        assert!(levels.len() >= 3, "{levels:?}");
        // Nodes share runs: with a run of its own for each merge, the last levels would have hundreds.
        assert!(levels.iter().all(|(runs, _)| *runs <= 16), "{levels:?}");
    }
}

/// A power cut at every operation leaves a prefix of the history.
#[test]
fn crashes_leave_a_prefix() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    fs.record_crash_points();
    let db = options(&fs).wal(Wal::Sync).open("/db").expect("it opens");
    let (mut states, mut durable) = (vec![Map::new()], vec![(fs.operations(), 0)]);
    for number in 1..=150 {
        let mut map = states[number as usize - 1].clone();
        write(&db, &mut rng, number, KeySpaceId::DEFAULT, &mut map);
        states.push(map);
        durable.push((fs.operations(), number));
    }
    assert!(db.stats().compactions > 5);
    for point in fs.take_crash_points() {
        let floor = durable.iter().rev().find(|(at, _)| *at < point.operation()).map_or(0, |(_, number)| *number);
        let db = options(&point.power_cut(1)).open("/db").unwrap_or_else(|error| panic!("{point:?}: {error}"));
        let counter = db.get(COUNTER).expect("it reads");
        let counter = counter.map_or(0, |bytes| u64::from_be_bytes(bytes[..].try_into().expect("8 bytes")));
        assert!(counter >= floor, "{point:?}: batch {counter} of {floor}");
        check(&states[counter as usize], |key| db.get(key), &format!("{point:?}"));
    }
}

#[test]
fn what_needs_an_order_is_refused() {
    let fs = SimFs::new(1);
    let db = options(&fs).open("/db").expect("it opens");
    db.put(b"a", b"1").expect("it writes");
    let is_unsupported = |error: Error| matches!(error, Error::Unsupported(_));
    assert!(is_unsupported(db.iter(IterOptions::default()).expect_err("there is no order")));
    assert!(is_unsupported(db.view().iter(IterOptions::prefix(b"a")).expect_err("there is no order")));
    assert!(is_unsupported(db.delete_range(&b"a"[..]..b"b").expect_err("there is no order")));
    assert!(matches!(db.put(&[0; 65_530], b"v"), Err(Error::InvalidArgument(_))));
    assert_eq!(db.get(b"a").expect("it reads"), Some(b"1".to_vec()), "nothing of the refused batches is there");
}

/// The order is for life: it is refused to open the one kind as the other.
#[test]
fn other_policies_do_not_open_it() {
    let fs = SimFs::new(1);
    drop(options(&fs).open("/hashed").expect("it opens"));
    drop(options(&fs).policy(Policy::leveled()).open("/sorted").expect("it opens"));
    let error = options(&fs).policy(Policy::leveled()).open("/hashed").expect_err("it is hashed");
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    let error = options(&fs).open("/sorted").expect_err("it is sorted");
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    let db = options(&fs).open("/hashed").expect("it opens");
    db.clone_to("/copy").expect("it clones");
    drop(options(&fs).open("/copy").expect("the clone is of the same kind"));
}

/// Without a manifest, the tables themselves say that their keys are hashed.
#[test]
fn a_repair_finds_the_order() {
    for keeps_tables in [true, false] {
        let (fs, mut rng, mut map) = (SimFs::new(1), Rng::new(3), Map::new());
        let db = options(&fs).open("/db").expect("it opens");
        for number in 0..if keeps_tables { 300 } else { 3 } {
            write(&db, &mut rng, number, KeySpaceId::DEFAULT, &mut map);
        }
        assert_eq!(db.stats().tables > 0, keeps_tables);
        drop(db);
        let is_manifest =
            |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"MANIFEST"));
        for path in fs.contents().into_keys().filter(|path| is_manifest(path)) {
            fs.remove_file(&path).expect("it goes");
        }
        // The options of the command line know nothing of the policy.
        plex::repair("/db", &Options::new().file_system(Arc::new(fs.clone()))).expect("it repairs");
        let db = options(&fs).open("/db").expect("it opens");
        check(&map, |key| db.get(key), "repaired");
    }
}

/// Lets keys go that end in a seven.
#[derive(Debug)]
struct NoSevens;

impl CompactionFilter for NoSevens {
    fn keeps(&self, _: KeySpaceId, key: &[u8], _: &[u8]) -> bool {
        !key.ends_with(b"7")
    }
}

/// A filter sees keys as they were given.
#[test]
fn filters_see_given_keys() {
    let fs = SimFs::new(1);
    let db = options(&fs).compaction_filter(Arc::new(NoSevens)).open("/db").expect("it opens");
    for number in 0..KEYS {
        db.put(number.to_string().as_bytes(), b"v").expect("it writes");
    }
    db.flush().expect("it flushes");
    for number in 0..KEYS {
        let is_there = db.get(number.to_string().as_bytes()).expect("it reads").is_some();
        assert_eq!(is_there, number % 10 != 7, "{number}");
    }
}
