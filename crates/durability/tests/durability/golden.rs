//! Data directories of earlier versions with leaves that are stored compressed, kept for good: every later program starts with them.
//!
//! `ONGGI_WRITE_GOLDEN=1` writes those that are missing. Never write one again: a change of the bytes is a new version.

use crate::dictionaries::pass_over_all;
use crate::life::{DIR, Life, log_off};
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

/// The directories (`testdata/leaves/`, `testdata/leaves-of-sets/`), and the collections in each, of which some leaves are compressed: those
/// named `doc:` with a dictionary.
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

/// A start with the golden files gives what was stored, with the leaves still compressed, and reads none of them where elements are
/// hashed as where they were written; what is then changed, compressed anew and saved again is so after the next start as well.
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

/// Whether a collection has compressed leaves, and whether it has the order in which it was saved, or one that is no hash's.
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
