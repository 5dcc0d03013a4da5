//! Random operations against a plain map: whatever the table, the pages and the index do inside, what is stored is what
//! was written.

use base::hash::KeyHasher;
use base::{KeyspaceId, Rng};
use engine::{Encoding, Engine, ExtFields, Key, NewEntry, SharedBytes, Type, Value};
use engine_mem::{MemEngine, MemoryUse};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
struct Stored {
    value: Vec<u8>,
    encoding: Encoding,
    expire_at: Option<i64>,
}

struct Pair {
    engine: MemEngine,
    hasher: KeyHasher,
    memory: Arc<MemoryUse>,
    model: BTreeMap<(u32, Vec<u8>), Stored>,
    now: i64,
    rng: Rng,
}

fn key_bytes(number: u64) -> Vec<u8> {
    let mut key = format!("key:{number}").into_bytes();
    match number % 97 {
        0 => key.resize(300, b'w'),
        1 => key.resize(5000, b'x'),
        _ => {}
    }
    key
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let hasher = KeyHasher::new(&mut rng);
        let memory = Arc::new(MemoryUse::default());
        let mut engine = MemEngine::new(hasher.clone(), Rng::new(seed), Arc::clone(&memory));
        engine.set_time(1_000);
        Self { engine, hasher, memory, model: BTreeMap::new(), now: 1_000, rng }
    }

    fn value(&mut self) -> Vec<u8> {
        let spread = [3, 40, 300, 2_000, 9_000, 40_000][self.rng.below(12).saturating_sub(6) as usize];
        let mut value = vec![0; self.rng.below(spread) as usize];
        self.rng.fill(&mut value);
        value
    }

    fn expiration(&mut self) -> Option<i64> {
        match self.rng.below(4) {
            0 => Some(self.now + self.rng.below(20_000) as i64),
            1 if self.rng.one_in(10) => Some(i64::MAX),
            _ => None,
        }
    }

    fn step(&mut self, key_count: u64) {
        let space = KeyspaceId(self.rng.below(3) as u32);
        let bytes = key_bytes(self.rng.below(key_count));
        let key = Key::new(&self.hasher, space, &bytes);
        let id = (space.0, bytes.clone());
        match self.rng.below(100) {
            0..45 => {
                let (value, expire_at) = (self.value(), self.expiration());
                let shared = SharedBytes::new(value.clone());
                let given = if self.rng.one_in(2) { Value::Bytes(&value) } else { Value::Shared(&shared) };
                let new = NewEntry {
                    kind: Type::String,
                    encoding: Encoding::PLAIN,
                    value: given,
                    expire_at,
                    fields: ExtFields::NONE,
                };
                self.engine.write(&key, &new);
                self.model.insert(id, Stored { value, encoding: Encoding::PLAIN, expire_at });
            }
            45..60 => assert_eq!(self.engine.remove(&key), self.model.remove(&id).is_some()),
            60..75 => {
                let at = self.expiration();
                let stored = self.model.get_mut(&id);
                assert_eq!(self.engine.set_expiration(&key, at), stored.is_some());
                if let Some(stored) = stored {
                    stored.expire_at = at;
                }
            }
            75..90 => {
                let patch = self.value();
                let Some(stored) = self.model.get_mut(&id) else { return };
                let offset = self.rng.below(stored.value.len() as u64 + 10) as usize;
                assert!(self.engine.splice(&key, offset as u64, &patch));
                let end = offset + patch.len();
                stored.value.resize(stored.value.len().max(end), 0);
                stored.value[offset..end].copy_from_slice(&patch);
                stored.encoding = Encoding::EDITED;
            }
            90..98 => self.check(&id),
            98 => {
                self.now += self.rng.below(3_000) as i64;
                self.engine.set_time(self.now);
                self.expire();
            }
            _ => {
                if self.rng.one_in(20) {
                    self.engine.clear(space);
                    self.model.retain(|(id, _), _| *id != space.0);
                }
                self.engine.clean(500);
            }
        }
    }

    fn expire(&mut self) {
        let mut due = Vec::new();
        loop {
            due.clear();
            self.engine.due(20, &mut |key, _| due.push((key.space, key.bytes.to_vec())));
            if due.is_empty() && !self.engine.has_due() {
                break;
            }
            for (space, bytes) in &due {
                let stored = self.model.remove(&(space.0, bytes.clone())).expect("due keys exist");
                assert!(stored.expire_at.unwrap() <= self.now);
                assert!(self.engine.remove(&Key::new(&self.hasher, *space, bytes)));
            }
        }
        // What is left may be late by a tick of the index at most.
        let late = self.model.values().filter(|stored| stored.expire_at.is_some_and(|at| at <= self.now - 32));
        assert_eq!(late.count(), 0, "entries that should have been due at {}", self.now);
    }

    fn check(&mut self, id: &(u32, Vec<u8>)) {
        let key = Key::new(&self.hasher, KeyspaceId(id.0), &id.1);
        let entry = self.engine.read(&key, true).unwrap();
        let expected = self.model.get(id).filter(|stored| stored.expire_at.is_none_or(|at| at > self.now));
        let got = entry.map(|entry| {
            assert_eq!(entry.key, id.1);
            Stored { value: entry.value.bytes().to_vec(), encoding: entry.encoding, expire_at: entry.expire_at }
        });
        assert_eq!(got.as_ref(), expected);
    }

    fn check_all(&mut self) {
        let ids: Vec<_> = self.model.keys().cloned().collect();
        ids.iter().for_each(|id| self.check(id));
        for space in 0..4 {
            let space = KeyspaceId(space);
            let expected: Vec<_> = ids.iter().filter(|id| id.0 == space.0).map(|id| id.1.clone()).collect();
            assert_eq!(self.engine.len(space), expected.len() as u64);
            let expiring = self.model.iter().filter(|(id, stored)| id.0 == space.0 && stored.expire_at.is_some());
            assert_eq!(self.engine.expiring_len(space), expiring.count() as u64);
            let (mut seen, mut from) = (Vec::new(), Some(0));
            while let Some(bound) = from {
                assert_eq!(bound & u64::from(u32::MAX), 0, "the low half of a bound is the store's");
                from = self.engine.scan(space, bound, &mut |entry| seen.push(entry.key.to_vec())).next;
            }
            seen.sort();
            assert_eq!(seen, expected);
            assert_eq!(self.engine.random_entry(space).is_some(), !expected.is_empty());
        }
    }
}

/// Few keys under much change, then growth, then decline to nothing: contents agree all along, memory returns.
#[test]
fn engine_agrees_with_a_map() {
    for seed in 0..6 {
        let mut pair = Pair::new(seed);
        for (key_count, steps) in [(50, 3_000), (20_000, 60_000), (300, 30_000)] {
            for _ in 0..steps {
                pair.step(key_count);
            }
            pair.check_all();
        }
        while pair.engine.clean(10_000) {}
        pair.check_all();
        pair.now = i64::MAX / 2;
        pair.engine.set_time(pair.now);
        pair.expire();
        (0..3).for_each(|space| pair.engine.clear(KeyspaceId(space)));
        pair.model.clear();
        while pair.engine.clean(10_000) {}
        pair.check_all();
        assert!(pair.memory.total() < 256 << 10, "{:?} is still in use", pair.memory);
        let memory = Arc::clone(&pair.memory);
        drop(pair);
        assert_eq!(memory.total(), 0);
    }
}
