//! Which commands keep the optional fields of an entry: those that edit its value, its expiration or its key. Commands
//! that store a new value drop them.
#![cfg(not(shuttle))]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{DbIndex, KeyspaceId, Rng};
use engine::{Effect, Encoding, Engine as _, Fields, Key, Keyspace, PackedFields, Type, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::shard::ShardEngine;
use store::{At, LockSet, Scratch, Store, StoreOptions, Txn, Wake, WorkerSet, WriteClass};
use types::bitmap::Operation;
use types::generic::{IfTaken, Moved};
use types::restore::Restored;
use types::string::{Condition, Expiration};
use types::{TypeError, bitmap, counter, generic, list, range, restore, string};
use value::list::End;

const NOW: i64 = 1_000;
const DATABASES: u32 = 2;
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

fn store() -> Store {
    Store::new(StoreOptions {
        shard_count: 4,
        database_count: DATABASES,
        clock: Arc::new(ManualClock::new(NOW)),
        entropy: Arc::new(SeededEntropy::new(5)),
        wake: Arc::new(NobodyWaits),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    })
}

/// The fields that entries should have; one without fields is not in it.
type Expected = BTreeMap<(KeyspaceId, &'static str), PackedFields>;

/// What a command does with the fields of its key.
enum Effects {
    /// They stay.
    Kept,
    /// They are gone.
    Dropped,
    /// They are these.
    Set(PackedFields),
    /// The other key of this keyspace has them, too.
    Copied(KeyspaceId),
    /// The other key of this keyspace has them, and this key has no entry.
    Moved(KeyspaceId),
}

fn some_fields(rng: &mut Rng) -> PackedFields {
    let flags = rng.below(3) as u32;
    Fields {
        flags,
        is_sticky: rng.one_in(3),
        attributes: &b"attributes"[..rng.below(10) as usize],
        ..Fields::default()
    }
    .pack()
}

/// Runs a random command on `name`, perhaps with `other` as its second key.
fn command(
    txn: &mut Txn<'_>,
    rng: &mut Rng,
    (name, other): (&Key<'_>, &Key<'_>),
    elsewhere: KeyspaceId,
) -> Result<Effects, TypeError> {
    let number = rng.below(200).to_string();
    let value = Value::Bytes(number.as_bytes());
    let moved_as = |moved, effects| if moved == Moved::Done { effects } else { Effects::Kept };
    let is_stored = txn.peek(name)?.is_some();
    let mut buffer = Vec::new();
    match rng.below(20) {
        0 | 1 => {
            let fields = some_fields(rng);
            let (key, kind, encoding, expire_at) = (*name, Type::String, Encoding::PLAIN, None);
            let tagged = fields.get().tagged(&mut buffer);
            txn.apply(&Effect::StoreWith { key, kind, encoding, value, expire_at, fields: tagged });
            return Ok(Effects::Set(fields));
        }
        2 | 3 if is_stored => {
            let fields = some_fields(rng);
            txn.apply(&Effect::Meta { key: *name, fields: fields.get().tagged(&mut buffer) });
            return Ok(Effects::Set(fields));
        }
        4 => _ = string::set(txn, name, value, Condition::Always, Expiration::Never)?,
        5 => _ = string::set(txn, name, value, Condition::Always, Expiration::Keep)?,
        6 => restore::restore(txn, name, Restored::String(value), None)?,
        7 => _ = bitmap::combine(txn, Operation::Or, name, std::iter::once(other.bytes))?,
        8 => _ = generic::delete(txn, name)?,
        9 => {
            let pairs = [(name.bytes, value)].into_iter();
            string::set_all(txn, pairs, Condition::Always, Expiration::Never)?;
        }
        10 => {
            counter::increment(txn, name, 7)?;
            return Ok(Effects::Kept);
        }
        11 => {
            counter::increment_float(txn, name, b"0.5")?;
            return Ok(Effects::Kept);
        }
        12 => {
            let added = if rng.one_in(3) { Value::Bytes(b"") } else { value };
            range::append(txn, name, added, 10_000)?;
            return Ok(Effects::Kept);
        }
        13 => {
            range::set(txn, name, rng.below(300), value, 10_000)?;
            return Ok(Effects::Kept);
        }
        14 => {
            bitmap::set_bit(txn, name, rng.below(300), true)?;
            return Ok(Effects::Kept);
        }
        15 if is_stored => {
            txn.apply(&Effect::Expire { key: *name, at: NOW + 1_000 });
            return Ok(Effects::Kept);
        }
        15 => {
            generic::persist(txn, name)?;
            return Ok(Effects::Kept);
        }
        16 => {
            // Sometimes so many that the list becomes a tree, which stays one.
            let count = if rng.one_in(4) { 2_000 } else { 1 };
            list::push(txn, name, End::Tail, std::iter::repeat_n(number.as_bytes(), count), false)?;
            return Ok(Effects::Kept);
        }
        17 => {
            let moved = generic::rename(txn, name, other, IfTaken::Replace)?;
            let is_itself = name.bytes == other.bytes;
            return Ok(if is_itself { Effects::Kept } else { moved_as(moved, Effects::Moved(name.space)) });
        }
        18 => {
            let to = if rng.one_in(2) { *other } else { other.in_space(elsewhere) };
            return Ok(moved_as(generic::copy(txn, name, &to, IfTaken::Replace)?, Effects::Copied(to.space)));
        }
        19 => return Ok(moved_as(generic::move_to(txn, name, elsewhere)?, Effects::Moved(elsewhere))),
        _ => return Ok(Effects::Kept),
    }
    Ok(Effects::Dropped)
}

struct Bench {
    store: Store,
    scratch: Scratch,
}

impl Bench {
    fn run<R>(&mut self, run: impl FnOnce(&mut Txn<'_>, &Key<'_>) -> R) -> R {
        let key = self.store.key(KeyspaceId(0), b"key");
        let at = At { now: NOW, db: DbIndex(0), touch: true, worker: 0, writes: WriteClass::Any };
        let run = |txn: &mut Txn<'_>| Ok(run(txn, &key));
        self.store.commit(&mut self.scratch, &LockSet::All, &at, run).expect("nothing blocks")
    }

    /// The CAS id of the key; giving it is no change.
    fn cas_id(&mut self) -> Option<u64> {
        let before = (self.scratch.changes, self.store.digest(NOW));
        let id = self.run(|txn, key| txn.cas_id(key)).expect("in memory");
        assert_eq!((self.scratch.changes, self.store.digest(NOW)), before);
        assert_eq!(self.run(|txn, key| txn.cas_id(key)), Ok(id), "it stays");
        let shown = self.run(|txn, key| txn.peek(key).expect("in memory").map(|entry| entry.fields.get().cas));
        assert_eq!(shown.unwrap_or(0), id.unwrap_or(0));
        id
    }
}

/// A string has another CAS id after each change of its value, whatever makes it, and the same one after other changes.
#[test]
fn a_cas_id_changes_with_the_value() {
    type Run = fn(&mut Txn<'_>, &Key<'_>);
    let mut bench = Bench { store: store(), scratch: Scratch::default() };
    assert_eq!(bench.cas_id(), None, "nothing is stored");
    bench.run(|txn, key| types::fields::set(txn, key, Value::Bytes(b"7"), None, &Fields::default()));
    let mut ids = vec![bench.cas_id().expect("it is stored")];
    let same: [Run; 4] = [
        |txn, key| txn.apply(&Effect::Expire { key: *key, at: NOW + 1_000 }),
        |txn, key| assert_eq!(types::fields::replace(txn, key, &Fields { flags: 5, ..Fields::default() }), Ok(true)),
        |txn, key| assert_eq!(generic::persist(txn, key), Ok(true)),
        |txn, key| assert!(string::get(txn, key).is_ok()),
    ];
    for (number, run) in same.into_iter().enumerate() {
        bench.run(run);
        assert_eq!(bench.cas_id(), ids.last().copied(), "{number}");
    }
    let other: [Run; 7] = [
        |txn, key| assert_eq!(counter::increment(txn, key, 1), Ok(8)),
        |txn, key| assert_eq!(range::append(txn, key, Value::Bytes(b"0"), 100), Ok(2)),
        |txn, key| assert_eq!(range::append(txn, key, Value::Bytes(&[b'x'; 90_000]), 100_000), Ok(90_002)),
        |txn, key| assert_eq!(range::set(txn, key, 5, Value::Bytes(b"0"), 100_000), Ok(90_002)),
        |txn, key| types::fields::set(txn, key, Value::Bytes(b"7"), None, &Fields { flags: 5, ..Fields::default() }),
        |txn, key| {
            let stored = string::set(txn, key, Value::Bytes(b"7"), Condition::Always, Expiration::Never);
            assert!(stored.is_ok());
        },
        |txn, key| {
            let other = txn.key(b"another key, of another shard");
            assert_eq!(generic::rename(txn, key, &other, IfTaken::Leave), Ok(Moved::Done));
            assert_eq!(generic::rename(txn, &other, key, IfTaken::Leave), Ok(Moved::Done));
        },
    ];
    for (number, run) in other.into_iter().enumerate() {
        bench.run(run);
        let id = bench.cas_id().expect("it is stored");
        assert!(!ids.contains(&id), "{number}");
        ids.push(id);
    }
    bench.run(|txn, key| txn.apply(&Effect::Expire { key: *key, at: NOW - 1 }));
    assert_eq!(bench.cas_id(), None, "it has expired");
    bench.run(|txn, key| {
        assert_eq!(generic::delete(txn, key), Ok(false));
        list::push(txn, key, End::Tail, std::iter::once(&b"element"[..]), false).expect("there is none");
    });
    assert_eq!(bench.cas_id(), None, "a list has none");
}

/// The fields of all entries that have some.
fn stored(store: &Store) -> Expected {
    let mut found = Expected::new();
    for space in (0..DATABASES).map(KeyspaceId) {
        for name in KEYS {
            let key = store.key(space, name.as_bytes());
            let visit = |shard: &mut store::shard::Shard| {
                let entry = shard.engine.read(&key, false).expect("in memory");
                entry.map(|entry| entry.fields.to_owned()).filter(|fields| !fields.get().is_none())
            };
            found.extend(store.each_shard(visit).flatten().map(|fields| ((space, name), fields)));
        }
    }
    found
}

/// Random commands, and after each the fields of all entries.
#[test]
fn edits_keep_fields_and_new_values_drop_them() {
    for seed in 0..8 {
        let (store, mut scratch, mut rng) = (store(), Scratch::default(), Rng::new(seed));
        let mut expected = Expected::new();
        for step in 0..3_000 {
            let (here, there) = (rng.below(2) as u32, rng.below(2) as u32);
            let at = At { now: NOW, db: DbIndex(here), touch: true, worker: 0, writes: WriteClass::Any };
            let mut pick = || KEYS[rng.below(KEYS.len() as u64) as usize];
            let (name, other) = (pick(), pick());
            let [space, elsewhere] = [here, there].map(|db| store.spaces.get(DbIndex(db)).expect("a database"));
            let effects = store
                .commit(&mut scratch, &LockSet::All, &at, |txn| {
                    let (name, other) = (txn.key(name.as_bytes()), txn.key(other.as_bytes()));
                    Ok(command(txn, &mut rng, (&name, &other), elsewhere))
                })
                .expect("nothing blocks");
            let before = expected.get(&(space, name)).cloned().unwrap_or_default();
            let mut set = |place, fields: PackedFields| match fields.get().is_none() {
                true => drop(expected.remove(&place)),
                false => drop(expected.insert(place, fields)),
            };
            match effects {
                // Another type, or a number that is none: nothing happened.
                Err(_) | Ok(Effects::Kept) => {}
                Ok(Effects::Dropped) => set((space, name), PackedFields::default()),
                Ok(Effects::Set(fields)) => set((space, name), fields),
                Ok(Effects::Copied(to)) => set((to, other), before),
                Ok(Effects::Moved(to)) => {
                    set((space, name), PackedFields::default());
                    set((to, if to == space { other } else { name }), before);
                }
            }
            assert_eq!(stored(&store), expected, "seed {seed}, step {step}");
        }
    }
}
