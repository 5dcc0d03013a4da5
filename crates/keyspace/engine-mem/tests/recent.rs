//! The cell found last is used again only while it is where it was: between the read of an entry and its change,
//! everything that moves cells and entries happens.

use base::hash::KeyHasher;
use base::{KeyspaceId, Rng};
use engine::{Encoding, Engine, ExtFields, Key, Known, NewEntry, Type, Value};
use engine_mem::{MemEngine, MemoryUse};
use std::collections::HashMap;
use std::sync::Arc;

const SPACES: [KeyspaceId; 2] = [KeyspaceId(0), KeyspaceId(1)];

struct Shard {
    engine: MemEngine,
    hasher: KeyHasher,
    /// The values of lists under keys that are numbers.
    model: HashMap<(KeyspaceId, u32), Vec<Vec<u8>>>,
}

impl Shard {
    fn push(&mut self, space: KeyspaceId, number: u32, value: &[u8]) {
        let mut changes = Vec::new();
        value::list::Change::Push { end: value::list::End::Tail, value }.put(&mut changes);
        assert!(
            self.engine
                .edit(&Key::new(&self.hasher, space, &number.to_le_bytes()), Type::List, &changes, Known::Read, false)
                .is_ok()
        );
        self.model.entry((space, number)).or_default().push(value.to_vec());
    }

    fn remove(&mut self, space: KeyspaceId, number: u32) {
        let was_there = self.engine.remove(&Key::new(&self.hasher, space, &number.to_le_bytes()));
        assert_eq!(was_there, self.model.remove(&(space, number)).is_some());
    }

    /// Reads a list, and compares it.
    fn read(&mut self, space: KeyspaceId, number: u32) {
        let bytes = number.to_le_bytes();
        let entry = self.engine.read(&Key::new(&self.hasher, space, &bytes), true).expect("memory fetches nothing");
        let read = entry.map(|entry| {
            assert_eq!((entry.key, entry.kind), (&bytes[..], Type::List));
            let view = value::list::View::of(entry.encoding, entry.value.stored());
            view.forward(0).map(<[u8]>::to_vec).collect::<Vec<_>>()
        });
        assert_eq!(read.as_ref(), self.model.get(&(space, number)), "key {number} of {space:?}");
    }
}

#[test]
fn what_moved_is_looked_up_again() {
    let hasher = KeyHasher::new(&mut Rng::new(1));
    let engine = MemEngine::new(hasher.clone(), Rng::new(2), Arc::new(MemoryUse::default()));
    let mut shard = Shard { engine, hasher, model: HashMap::new() };
    let mut rng = Rng::new(3);
    let mut filled = 0;
    for round in 0..if cfg!(miri) { 100u32 } else { 6_000 } {
        let (space, number) = (SPACES[rng.below(2) as usize], rng.below(40) as u32);
        shard.read(space, number);
        match rng.below(8) {
            // Extents grow and split.
            0 => (0..50).for_each(|_| {
                filled += 1;
                let value = Value::Bytes(&[7; 40]);
                let new = NewEntry {
                    kind: Type::String,
                    encoding: Encoding::PLAIN,
                    value,
                    expire_at: None,
                    fields: ExtFields::NONE,
                };
                shard.engine.write(&Key::new(&shard.hasher, space, &filled_key(filled)), &new);
            }),
            // They shrink, and pages become sparse.
            1 => {
                for key in filled.saturating_sub(50)..filled {
                    let bytes = filled_key(key + 1);
                    for space in SPACES {
                        shard.engine.remove(&Key::new(&shard.hasher, space, &bytes));
                    }
                }
                filled = filled.saturating_sub(50);
            }
            2 => drop(shard.engine.clean(500)),
            3 => shard.remove(space, number),
            4 => {
                let at = (round % 2 == 0).then_some(i64::MAX);
                let stored = shard.engine.set_expiration(&Key::new(&shard.hasher, space, &number.to_le_bytes()), at);
                assert_eq!(stored, shard.model.contains_key(&(space, number)));
            }
            5 if round % 100 == 0 => {
                shard.engine.clear(space);
                shard.model.retain(|(other, _), _| *other != space);
            }
            5 => (0..20).for_each(|value| shard.push(space, number, &[value; 30])),
            // The same key of the other database.
            6 => shard.read(SPACES[usize::from(space == SPACES[0])], number),
            _ => {}
        }
        shard.push(space, number, &round.to_le_bytes());
        shard.read(space, number);
    }
    let all: Vec<_> = shard.model.keys().copied().collect();
    all.into_iter().for_each(|(space, number)| shard.read(space, number));
}

/// A key that is no list's.
fn filled_key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}
