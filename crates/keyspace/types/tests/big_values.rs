//! Big values are shared, not copied, where they are only stored again, and edited only where they change.

use base::hash::KeyHasher;
use base::{DbIndex, KeyspaceId, Rng, UnixMs};
use engine::{
    Edited, Effect, Encoding, Entry, ExtFields, Fetch, Key, Keyspace, Known, ScanStep, SharedBytes, Type, Unedited,
    Value,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use types::generic::{IfTaken, Moved};
use types::string::{Condition, Expiration};

/// What an effect carried.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// A value by reference.
    Shared(usize),
    /// Bytes, this many.
    Bytes(usize),
    Other,
}

/// One big string under the key `big`, and what happened to it.
struct OneValue {
    hasher: KeyHasher,
    value: SharedBytes,
    seen: Vec<Seen>,
}

impl OneValue {
    fn new() -> Self {
        let value = SharedBytes::new(vec![b'v'; 1 << 20]);
        Self { hasher: KeyHasher::new(&mut Rng::new(1)), value, seen: Vec::new() }
    }
}

impl Keyspace for OneValue {
    fn now(&self) -> UnixMs {
        0
    }

    fn space(&self) -> KeyspaceId {
        KeyspaceId(0)
    }

    fn may_fetch(&self) -> bool {
        false
    }

    fn select(&mut self, _index: DbIndex) {}

    fn watch(&mut self, _key: &Key<'_>, _changed: &Arc<AtomicBool>) {}

    fn space_of(&self, index: DbIndex) -> Option<KeyspaceId> {
        Some(KeyspaceId(index.0))
    }

    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key::new(&self.hasher, KeyspaceId(0), bytes)
    }

    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn read(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.peek(key)
    }

    fn cas_id(&mut self, _key: &Key<'_>) -> Result<Option<u64>, Fetch> {
        Ok(None)
    }

    fn peek(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        let entry = Entry {
            key: b"big",
            kind: Type::String,
            encoding: Encoding::PLAIN,
            value: Value::Shared(&self.value),
            expire_at: None,
            stamp: 0,
            fields: ExtFields::NONE,
        };
        Ok((key.bytes == b"big" && key.space == KeyspaceId(0)).then_some(entry))
    }

    fn apply(&mut self, effect: &Effect<'_>) {
        self.seen.push(match effect {
            Effect::Set { value: Value::Shared(shared), .. } => {
                assert!(Arc::ptr_eq(shared, &self.value), "another allocation");
                Seen::Shared(shared.len())
            }
            Effect::Set { value: Value::Bytes(bytes), .. } | Effect::Splice { bytes, .. } => Seen::Bytes(bytes.len()),
            _ => Seen::Other,
        });
    }

    fn edit(&mut self, _key: &Key<'_>, _kind: Type, _changes: &[u8], _known: Known) -> Result<Edited, Unedited> {
        unreachable!("a string is no collection")
    }

    fn len(&self, _space: KeyspaceId) -> u64 {
        1
    }

    fn expiring_len(&self, _space: KeyspaceId) -> u64 {
        0
    }

    fn scan(&mut self, _space: KeyspaceId, _cursor: u64, _visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep {
        ScanStep { next: None }
    }

    fn random_entry(&mut self, _space: KeyspaceId) -> Option<Entry<'_>> {
        None
    }

    fn random_below(&mut self, _bound: u64) -> u64 {
        0
    }

    fn idle_seconds(&self, _stamp: u32) -> u64 {
        0
    }

    fn frequency(&self, _stamp: u32) -> u8 {
        0
    }

    fn cost_bytes(&mut self, _key: &Key<'_>) -> Option<u64> {
        None
    }
}

const LIMIT: u64 = 512 << 20;

/// SET, APPEND to an absent key, COPY and MOVE hand the allocation on.
#[test]
fn storing_again_shares() {
    let mut ks = OneValue::new();
    let (value, big, new) = (ks.value.clone(), ks.key(b"big"), ks.key(b"new"));
    let value = Value::Shared(&value);
    types::string::set(&mut ks, &new, value, Condition::IfAbsent, Expiration::Keep).expect("stored");
    types::range::append(&mut ks, &new, value, LIMIT).expect("stored");
    assert_eq!(types::generic::copy(&mut ks, &big, &new, IfTaken::Replace), Ok(Moved::Done));
    assert_eq!(types::generic::move_to(&mut ks, &big, KeyspaceId(1)), Ok(Moved::Done));
    let len = 1 << 20;
    let expected = [Seen::Shared(len), Seen::Shared(len), Seen::Shared(len), Seen::Shared(len), Seen::Other];
    assert_eq!(ks.seen, expected);
}

/// A whole GETRANGE is the value itself; a part of it is a part of its allocation.
#[test]
fn reading_borrows() {
    let mut ks = OneValue::new();
    let (big, shared) = (ks.key(b"big"), ks.value.clone());
    match types::range::get(&mut ks, &big, 0, -1) {
        Ok(Value::Shared(whole)) => assert!(Arc::ptr_eq(whole, &shared)),
        other => panic!("not the value itself: {:?}", other.map(Value::len)),
    }
    let part = types::range::get(&mut ks, &big, 1000, 1009).expect("a part").bytes();
    assert_eq!((part.len(), part.as_ptr()), (10, shared[1000..].as_ptr()));
}

/// Edits carry the bytes they write and no others, wherever they write.
#[test]
fn edits_are_small() {
    let mut ks = OneValue::new();
    let (big, new) = (ks.key(b"big"), ks.key(b"new"));
    types::range::append(&mut ks, &big, Value::Bytes(b"abc"), LIMIT).expect("appended");
    types::range::set(&mut ks, &big, 500_000_000, Value::Bytes(b"x"), LIMIT).expect("written");
    types::bitmap::set_bit(&mut ks, &big, 4_000_000_000, true).expect("set");
    assert_eq!(ks.seen, [Seen::Bytes(3), Seen::Bytes(1), Seen::Bytes(1)]);
    ks.seen.clear();
    types::bitmap::set_bit(&mut ks, &new, 4_000_000_000, true).expect("set");
    types::range::set(&mut ks, &new, 500_000_000, Value::Bytes(b"x"), LIMIT).expect("written");
    assert_eq!(ks.seen, [Seen::Bytes(0), Seen::Bytes(1), Seen::Bytes(0), Seen::Bytes(1)]);
}
