//! Edits without a look: they leave what a look and an edit leave, or nothing at all.
#![cfg(not(shuttle))]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{DbIndex, KeyspaceId};
use engine::{Edited, Effect, Encoding, Key, Keyspace, Known, Left, NotifyClass, Type, Unedited, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::shard::ShardEngine;
use store::{At, LockSet, Scratch, Store, StoreOptions, Txn, Wake, WorkerSet, WriteClass};
use value::{hash, list};

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

const NOW: i64 = 1_000;

struct Bench {
    store: Store,
    scratch: Scratch,
}

impl Bench {
    fn new() -> Self {
        let store = Store::new(StoreOptions {
            shard_count: 1,
            database_count: 1,
            clock: Arc::new(ManualClock::new(NOW)),
            entropy: Arc::new(SeededEntropy::new(5)),
            wake: Arc::new(NobodyWaits),
            log: None,
            engine: |engine| ShardEngine::Memory(Box::new(engine)),
        });
        Self { store, scratch: Scratch::default() }
    }

    fn run<R>(&mut self, run: impl FnOnce(&mut Txn<'_>, &Key<'_>) -> R) -> R {
        let key = self.store.key(KeyspaceId(0), b"key");
        let at = At { now: NOW, db: DbIndex(0), touch: true, worker: 0, writes: WriteClass::Any };
        let set = LockSet::One(self.store.shard_of(&key));
        self.store.commit(&mut self.scratch, &set, &at, |txn| Ok(run(txn, &key))).expect("nobody else is here")
    }

    fn store(&mut self, kind: Type, encoding: Encoding, value: &[u8]) {
        let value = Value::Bytes(value);
        self.run(|txn, key| txn.apply(&Effect::Store { key: *key, kind, encoding, value, expire_at: None }));
    }

    fn expire(&mut self, at: i64) {
        self.run(|txn, key| txn.apply(&Effect::Expire { key: *key, at }));
    }

    fn delete(&mut self) {
        self.run(|txn, key| txn.apply(&Effect::Delete { key: *key }));
    }

    fn edit(&mut self, kind: Type, changes: &[u8]) {
        assert!(self.run(|txn, key| txn.edit(key, kind, changes, Known::Read)).is_ok());
    }

    fn edit_unread(&mut self, kind: Type, changes: &[u8]) -> Result<Edited, Unedited> {
        self.run(|txn, key| txn.edit(key, kind, changes, Known::Nothing))
    }

    fn digest(&mut self) -> Option<(Type, Vec<u8>)> {
        self.run(|txn, key| txn.peek(key).expect("in memory").map(|entry| (entry.kind, entry.value.bytes().to_vec())))
    }
}

fn push(value: &[u8]) -> Vec<u8> {
    let mut changes = Vec::new();
    list::Change::Push { end: list::End::Head, value }.put(&mut changes);
    changes
}

fn set(expire_at: Option<i64>) -> Vec<u8> {
    let mut changes = Vec::new();
    hash::Change::Set { field: b"field", value: b"value", expire_at }.put(&mut changes);
    changes
}

/// A watcher of the key is flagged; the edit counts as a change, and not as a read.
#[test]
fn an_edit_is_a_change_like_any_other() {
    let mut bench = Bench::new();
    bench.edit(Type::List, &push(b"first"));
    let changed = Arc::new(AtomicBool::new(false));
    bench.run(|txn, key| txn.watch(key, &changed));
    let changes = bench.scratch.changes;
    assert_eq!(bench.edit_unread(Type::List, &push(b"second")).map(|edited| edited.before), Ok(1));
    assert!(changed.load(Ordering::Relaxed));
    assert_eq!((bench.scratch.changes - changes, bench.scratch.hits, bench.scratch.misses), (1, 0, 0));
    let unread = bench.digest();
    let mut other = Bench::new();
    other.edit(Type::List, &push(b"first"));
    other.edit(Type::List, &push(b"second"));
    assert_eq!(unread, other.digest());
}

/// What only a read may find out is refused with its reason, and nothing is changed.
#[test]
fn what_needs_a_read_is_refused() {
    let mut bench = Bench::new();
    let is_refused = |bench: &mut Bench, kind: Type, changes: &[u8], why: Unedited| {
        let (before, counted) = (bench.digest(), bench.scratch.changes);
        assert_eq!(bench.edit_unread(kind, changes), Err(why));
        assert_eq!((bench.digest(), bench.scratch.changes), (before, counted), "{why:?}");
    };
    is_refused(&mut bench, Type::List, &push(b"value"), Unedited::Absent);
    bench.store(Type::String, Encoding::PLAIN, b"7");
    is_refused(&mut bench, Type::List, &push(b"value"), Unedited::OtherType);
    bench.delete();
    bench.edit(Type::List, &push(b"value"));
    is_refused(&mut bench, Type::Hash, &set(None), Unedited::OtherType);
    bench.expire(NOW + 1);
    assert!(bench.edit_unread(Type::List, &push(b"value")).is_ok(), "it is there for a moment more");
    bench.expire(NOW);
    is_refused(&mut bench, Type::List, &push(b"value"), Unedited::Expired);
    bench.delete();
    bench.edit(Type::Hash, &set(None));
    assert_eq!(bench.edit_unread(Type::Hash, &set(Some(NOW))), Ok(Edited { before: 1, left: Left::Elements(1) }));
    is_refused(&mut bench, Type::Hash, &set(None), Unedited::Timed);
    bench.delete();
    let mut stored = Vec::new();
    assert!(codec::stored::put_lzf(b"\x04aaaaa", 40, &mut stored));
    bench.store(Type::List, Encoding::PACKED.compressed(), &stored);
    is_refused(&mut bench, Type::List, &push(b"value"), Unedited::Compressed);
    bench.delete();
    bench.edit(Type::List, &push(b"value"));
    bench.store.notices.ask_for_events(NotifyClass::all());
    is_refused(&mut bench, Type::List, &push(b"value"), Unedited::Watched);
}
