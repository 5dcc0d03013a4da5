//! Data directories of earlier versions with leaves that are stored compressed, kept for good: every later program
//! starts with them.
//!
//! `ONGGI_WRITE_GOLDEN=1` writes those that are missing. Never write one again: a change of the bytes is a new version.

use crate::dictionaries::{manifest, pass_over_all};
use crate::life::{DIR, Life, log_off, policy};
use crate::model::Model;
use base::{DbIndex, KeyspaceId};
use durability::Cause;
use engine::{Effect, Encoding, Engine, Keyspace, Type, Value};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use store::compression::{Codec, Pass, Settings};
use store::{At, LockSet, WriteClass};
use value::stream::{Change as StreamChange, Id};
use value::{hash, list, set, zset};
use vfs::{FileSystem, OpenOptions, SimFs};

/// The directories (`testdata/leaves/`, `testdata/leaves-of-sets/`), and the collections in each, of which some leaves
/// are compressed: those named `doc:` with a dictionary.
const GOLDEN: [(&str, &[(&str, Type)]); 2] = [
    ("leaves", &[("doc:hash", Type::Hash), ("list", Type::List), ("doc:stream", Type::Stream)]),
    ("leaves-of-sets", &[("doc:set", Type::Set), ("zset", Type::Zset), ("doc:zset", Type::Zset)]),
];

/// Elements of each collection.
const ELEMENTS: u64 = 600;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// The document of this number, which is what it is for good.
fn document(number: u64) -> String {
    let state = ["open", "closed", "waiting"][number as usize % 3];
    let (owner, updated) = (number * 7919 % 1000, 1_700_000_000 + number * 104_729 % (1 << 20));
    format!("{{\"id\": {number}, \"owner\": \"user{owner}\", \"state\": \"{state}\", \"updated_at\": {updated}}}")
}

/// Commits one effect on a key.
fn apply(life: &mut Life, name: &str, effect: impl Fn(engine::Key<'_>, &mut store::Txn<'_>)) {
    use base::Clock as _;
    let locks = LockSet::One(life.store.shard_of_bytes(name.as_bytes()));
    let at = At { now: life.clock.now_ms(), db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let commit = |txn: &mut store::Txn<'_>| {
        effect(txn.key(name.as_bytes()), txn);
        Ok(())
    };
    while life.store.commit(&mut life.scratch, &locks, &at, commit).is_err() {
        std::thread::yield_now();
    }
    life.end_turn();
}

/// Changes that add elements of these numbers, each with a document.
fn changes(kind: Type, numbers: std::ops::Range<u64>) -> Vec<u8> {
    let mut changes = Vec::new();
    for number in numbers {
        let (field, value) = (format!("field{number}"), document(number));
        let (field, value) = (field.as_bytes(), value.as_bytes());
        match kind {
            Type::Hash => {
                let expire_at = number.is_multiple_of(100).then_some(1 << 50);
                hash::Change::Set { field, value, expire_at }.put(&mut changes);
            }
            Type::List => list::Change::Push { end: list::End::Tail, value }.put(&mut changes),
            Type::Stream => {
                let id = Id { ms: 1 + number / 2, seq: number % 2 };
                StreamChange::put_add(&mut changes, id, 1, [&b"document"[..], value].into_iter());
            }
            Type::Set => set::Change::Add(value).put(&mut changes),
            Type::Zset => zset::Change::Add { score: (number % 7) as f64 / 2.0, member: value }.put(&mut changes),
            Type::Btree => {
                let bkey = value::btree::Bkey::Number(number);
                let element = value::btree::Element { bkey, eflag: b"flag", data: value };
                value::btree::Change::Put(element).put(&mut changes);
            }
            Type::String => unreachable!("a string is no tree"),
        }
    }
    if kind == Type::Stream {
        let last = Id { ms: 3, seq: 0 };
        StreamChange::SetGroup { group: b"readers", last, read: Some(4) }.put(&mut changes);
    }
    changes
}

/// Strings of which a dictionary is made, and the collections.
fn fill(life: &mut Life, collections: &[(&str, Type)]) {
    for number in 0..300 {
        let (name, value) = (format!("doc:{number}"), document(1_000_000 + number));
        apply(life, &name, |key, txn| {
            let value = Value::Bytes(value.as_bytes());
            txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
        });
    }
    for (name, kind) in collections {
        let changes = changes(*kind, 0..ELEMENTS);
        apply(life, name, |key, txn| txn.apply(&Effect::Edit { key, kind: *kind, changes: &changes }));
    }
}

/// The files of a directory whose leaves are compressed, some with a dictionary and some without.
fn written(collections: &[(&str, Type)]) -> SimFs {
    let fs = SimFs::new(1);
    let mut life = Life::start(&fs, log_off()).expect("it starts");
    let mut pass = Pass::new(life.store.shard_ids().collect());
    life.store.compression.set(Settings { codec: Codec::Zstd, idle_seconds: 0, ..Settings::default() });
    fill(&mut life, collections);
    pass_over_all(&life, &mut pass);
    assert!(life.durability.train_one(), "a dictionary came");
    pass_over_all(&life, &mut pass);
    assert!(life.store.memory.values_by_dictionary().values().sum::<u64>() > 100);
    // Split again by changes, which leave plain leaves among the others.
    for (name, kind) in collections {
        let changes = changes(*kind, ELEMENTS..ELEMENTS + 3);
        apply(&mut life, name, |key, txn| txn.apply(&Effect::Edit { key, kind: *kind, changes: &changes }));
    }
    life.checkpoint(Cause::Asked).expect("the disk works");
    life.stop();
    fs
}

/// A disk that has the golden files.
fn disk_of(directory: &Path) -> SimFs {
    let fs = SimFs::new(2);
    fs.create_dir_all(Path::new(DIR)).expect("the disk works");
    for entry in std::fs::read_dir(directory).expect("the golden directory is there") {
        let entry = entry.expect("it can be read");
        let bytes = std::fs::read(entry.path()).expect("it can be read");
        let path = Path::new(DIR).join(entry.file_name());
        let file = fs.open(&path, OpenOptions::write().create_new()).expect("the disk works");
        file.write_all_at(&bytes, 0).expect("the disk works");
    }
    fs
}

/// Writes what is missing.
fn write_if_asked(directory: &Path, collections: &[(&str, Type)]) {
    if std::env::var_os("ONGGI_WRITE_GOLDEN").is_none() || directory.exists() {
        return;
    }
    std::fs::create_dir_all(directory).expect("it is in the crate");
    for (path, bytes) in written(collections).contents() {
        if path.starts_with(DIR) && !path.ends_with("LOCK") {
            let name = path.file_name().expect("a file has a name");
            std::fs::write(directory.join(name), bytes).expect("it is in the crate");
        }
    }
}

/// A start with the golden files gives what was stored, with the leaves still compressed, and reads none of them where
/// elements are hashed as where they were written; what is then changed, compressed anew and saved again is so after
/// the next start as well.
#[test]
fn compressed_leaves_of_before_are_read() {
    for (name, collections) in GOLDEN {
        let directory = testdata(name);
        write_if_asked(&directory, collections);
        let mut plain = Life::start(&SimFs::new(3), log_off()).expect("it starts");
        fill(&mut plain, collections);
        for (name, kind) in collections {
            let changes = changes(*kind, ELEMENTS..ELEMENTS + 3);
            apply(&mut plain, name, |key, txn| txn.apply(&Effect::Edit { key, kind: *kind, changes: &changes }));
        }
        let expected = Model::digest(&plain.store);
        plain.stop();

        let fs = disk_of(&directory);
        let mut life = Life::start(&fs, log_off()).expect("every version is read");
        let figures = &life.store.compression.figures;
        assert_eq!(figures.decompressed.load(Ordering::Relaxed), 0, "{name}");
        for (key, kind) in collections {
            let (is_cold, is_as_written) = look(&life, key);
            // Elsewhere fields have other hashes, and the hash is built anew.
            assert!(is_cold || !is_as_written, "{name}: {key}");
            assert!(is_as_written || *kind != Type::List && *kind != Type::Stream, "{name}: {key}");
        }
        assert_eq!(Model::digest(&life.store), expected, "{name}");

        let mut pass = Pass::new(life.store.shard_ids().collect());
        life.store.compression.set(Settings { codec: Codec::Lz4, idle_seconds: 0, ..Settings::default() });
        pass_over_all(&life, &mut pass);
        for (name, kind) in collections {
            let changes = changes(*kind, ELEMENTS + 3..ELEMENTS + 9);
            apply(&mut life, name, |key, txn| txn.apply(&Effect::Edit { key, kind: *kind, changes: &changes }));
        }
        let expected = Model::digest(&life.store);
        life.checkpoint(Cause::Asked).expect("the disk works");
        life.stop();
        let life = Life::start(&fs, log_off()).expect("it starts");
        assert_eq!(Model::digest(&life.store), expected, "{name}");
        life.stop();
    }
}

/// Whether a collection has compressed leaves, and whether it has the order in which it was saved, or one that is no
/// hash's.
fn look(life: &Life, name: &str) -> (bool, bool) {
    let key = life.store.key(KeyspaceId(0), name.as_bytes());
    let (mut is_cold, mut is_as_written) = (false, false);
    let look = |shard: &mut store::shard::Shard| {
        if let Ok(Some(entry)) = shard.engine.read(&key, false)
            && let Value::Big(tree) = entry.value
        {
            is_cold |= tree.has_cold();
            let is_hashed = matches!(tree.kind(), Type::Hash | Type::Set | Type::Zset);
            is_as_written |= !is_hashed || !tree.is_ordered_by(&life.store.hasher);
        }
    };
    life.store.each_shard(look).for_each(drop);
    (is_cold, is_as_written)
}

/// What version 0.1.0 left in `testdata/v0.1.0/` for each of its five databases: the number of keys.
const KEYS_OF_0_1_0: [u64; 5] = [26, 1, 1, 0, 1];

/// Some of its strings in the first database: from the checkpoint, changed by the log after it, and made by that log.
const STRINGS_OF_0_1_0: [(&str, &str); 7] = [
    ("plain", "replaced"),
    ("renamed", "abcdef"),
    ("sum", "1.5"),
    ("expiring", "until 2100"),
    ("later", "after THE checkpoint"),
    ("tx", "2"),
    ("bits", "\0\0\0\0\0\0\0\0\0\0\0\0\u{8}"),
];

/// Its collections, and how many elements each has.
const COLLECTIONS_OF_0_1_0: [(&str, Type, u64); 13] = [
    ("list", Type::List, 5),
    ("big-list", Type::List, 599),
    ("ints", Type::Set, 4),
    ("set", Type::Set, 3),
    ("copied", Type::Set, 3),
    ("big-set", Type::Set, 599),
    ("union", Type::Set, 602),
    ("zset", Type::Zset, 4),
    ("big-zset", Type::Zset, 599),
    ("hash", Type::Hash, 3),
    ("big-hash", Type::Hash, 599),
    ("timed-hash", Type::Hash, 2),
    ("stream", Type::Stream, 6),
];

/// A data directory of version 0.1.0, which was killed with a checkpoint and a log after it, starts: with every key,
/// value, expiration and number of elements. The directory then has a hash key, which stays, and what is saved is read
/// again.
#[test]
fn a_directory_of_0_1_0_starts() {
    let fs = disk_of(&testdata("v0.1.0"));
    let mut hash_keys = Vec::new();
    let mut digests = Vec::new();
    for start in 0..3 {
        let life = Life::start_with(&fs, policy(), 16).expect("every version is read");
        for (db, keys) in KEYS_OF_0_1_0.iter().enumerate() {
            assert_eq!(life.store.len(DbIndex(db as u32)).0, *keys, "database {db}, start {start}");
        }
        STRINGS_OF_0_1_0.iter().for_each(|(key, value)| assert_eq!(string(&life, key), value.as_bytes(), "{key}"));
        assert_eq!(string(&life, "squeezed"), "abcdefgh".repeat(40).as_bytes());
        assert_eq!(string(&life, "squeezed2"), "hgfedcba".repeat(40).as_bytes());
        assert_eq!(string(&life, "long"), "0123456789".repeat(2000).as_bytes());
        assert_eq!(string(&life, &"k".repeat(5000)), b"long key");
        for (key, kind, len) in COLLECTIONS_OF_0_1_0 {
            let found =
                with_entry(&life, key, |entry| (entry.kind, value::len(kind, entry.encoding, entry.value.stored())));
            assert_eq!(found, Some((kind, len)), "{key}");
        }
        let expires = |key| with_entry(&life, key, |entry| entry.expire_at).expect("it is stored");
        assert_eq!((expires("list"), expires("expiring")), (Some(4_102_444_800_000), None));
        digests.push(Model::digest(&life.store));
        hash_keys.push(manifest(&fs).hash_key.expect("a start gives the directory a hash key"));
        life.checkpoint(Cause::Asked).expect("the disk works");
        life.stop();
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]));
    assert!(hash_keys.iter().all(|key| *key == hash_keys[0]), "the hash key is the directory's for good");
}

/// The string under a key of the first database, decompressed.
fn string(life: &Life, name: &str) -> Vec<u8> {
    let bytes = with_entry(life, name, |entry| {
        types::Decoder::default().show(life.store.source(), *entry).value.bytes().to_vec()
    });
    bytes.unwrap_or_else(|| panic!("{name} is not stored"))
}

/// What `look` finds in the entry under a key of the first database, or `None` if there is none.
fn with_entry<R>(life: &Life, name: &str, look: impl Fn(&engine::Entry<'_>) -> R) -> Option<R> {
    let key = life.store.key(KeyspaceId(0), name.as_bytes());
    let mut found = None;
    let visit = |shard: &mut store::shard::Shard| {
        if let Ok(Some(entry)) = shard.engine.read(&key, false) {
            found = Some(look(&entry));
        }
    };
    life.store.each_shard(visit).for_each(drop);
    found
}
