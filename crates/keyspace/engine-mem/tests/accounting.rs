//! What entries are said to cost adds up to what the store counts, for every type, packed and as a tree; and a survey
//! meets every entry once while the table changes.

use base::hash::KeyHasher;
use base::{KeyspaceId, Rng};
use engine::{Encoding, Engine, ExtFields, Key, Known, NewEntry, SharedBytes, Type, Value};
use engine_mem::{MemEngine, MemoryKind, MemoryUse};
use std::collections::HashMap;
use std::sync::Arc;
use value::list::End;
use value::stream::Id;
use value::{btree, hash, list, set, stream, zset};

const SPACE: KeyspaceId = KeyspaceId(0);
const NOW: i64 = 1_700_000_000_000;
/// The least unit in which pages are counted.
const LINE_BYTES: u64 = 4096;
/// Sizes of slots there can be.
const CLASS_COUNT_MAX: u64 = 256;
/// What an entry costs in the table.
const CELL_BYTES: u64 = 7;
/// What a time costs in the expiration index.
const ITEM_BYTES: u64 = 5;

struct Shard {
    engine: MemEngine,
    hasher: KeyHasher,
    memory: Arc<MemoryUse>,
}

/// Sums over all entries.
#[derive(Default)]
struct Sums {
    /// Of entries, without their share of the table and of the expiration index.
    entries: u64,
    content: u64,
    /// Slots at most of entries whose values are allocations of their own, and these with the values.
    outside_count: u64,
    outside: u64,
}

impl Shard {
    fn new() -> Self {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let memory = Arc::new(MemoryUse::default());
        let mut engine = MemEngine::new(hasher.clone(), Rng::new(2), Arc::clone(&memory));
        engine.set_time(NOW);
        Self { engine, hasher, memory }
    }

    fn string(&mut self, bytes: &[u8], length: usize, expire_at: Option<i64>) {
        let shared;
        let value = match length {
            0..4096 => Value::Bytes(&[b'x'; 4096][..length]),
            _ => {
                shared = SharedBytes::new(vec![b'x'; length]);
                Value::Shared(&shared)
            }
        };
        let new = NewEntry { kind: Type::String, encoding: Encoding::PLAIN, value, expire_at, fields: ExtFields::NONE };
        self.engine.write(&Key::new(&self.hasher, SPACE, bytes), &new);
    }

    fn edit(&mut self, bytes: &[u8], kind: Type, changes: &[u8]) {
        assert!(self.engine.edit(&Key::new(&self.hasher, SPACE, bytes), kind, changes, Known::Read, false).is_ok());
    }

    fn remove(&mut self, bytes: &[u8]) {
        self.engine.remove(&Key::new(&self.hasher, SPACE, bytes));
    }

    fn sums(&mut self) -> Sums {
        let (mut sums, mut from) = (Sums::default(), Some(0));
        while let Some(bound) = from {
            from = self
                .engine
                .survey(SPACE, bound, &mut |entry, cost| {
                    let items = entry.expire_at.iter().chain(&entry.first_due()).count() as u64;
                    let alone = cost - CELL_BYTES - items * ITEM_BYTES;
                    sums.entries += alone;
                    sums.content += entry.content_bytes() as u64;
                    assert!(alone >= entry.content_bytes() as u64, "{alone} {:?}", entry.kind);
                    if !matches!(entry.value, Value::Bytes(_)) {
                        sums.outside_count += 1;
                        sums.outside += alone;
                    }
                })
                .next;
        }
        sums
    }

    /// Values that are allocations of their own are counted to the byte, pages in whole lines of each class.
    fn check(&mut self) {
        let sums = self.sums();
        let (pages, large) = (self.memory.of(MemoryKind::Values), self.memory.of(MemoryKind::Large));
        let slots = sums.outside - large;
        assert!(slots <= sums.outside_count * 64, "{slots} bytes of slots for {} values", sums.outside_count);
        let counted = pages + large;
        assert!(sums.entries <= counted, "{} of {counted}", sums.entries);
        let free = counted - sums.entries;
        let bound = CLASS_COUNT_MAX * LINE_BYTES + pages / 50;
        assert!(free <= bound, "{free} bytes of {counted} belong to nothing, of {bound} that may");
    }
}

/// A few changes of one of the types, with elements of random sizes.
fn changes(kind: Type, rng: &mut Rng, serial: &mut u64) -> Vec<u8> {
    let mut changes = Vec::new();
    for _ in 0..=rng.below(30) {
        *serial += 1;
        let member = [serial.to_string().as_bytes(), &vec![b'm'; rng.below(60) as usize]].concat();
        let other = rng.below(*serial).to_string();
        let removes = rng.below(4) == 0;
        match kind {
            Type::Hash if removes => hash::Change::Delete(other.as_bytes()).put(&mut changes),
            Type::Hash => {
                let expire_at = (rng.below(8) == 0).then_some(NOW + 1000 + rng.below(100_000) as i64);
                hash::Change::Set { field: &member, value: &member, expire_at }.put(&mut changes);
            }
            Type::Set if removes => set::Change::Remove(other.as_bytes()).put(&mut changes),
            Type::Set => set::Change::Add(&member).put(&mut changes),
            Type::Zset if removes => zset::Change::Remove { member: other.as_bytes() }.put(&mut changes),
            Type::Zset => zset::Change::Add { score: *serial as f64 / 3.0, member: &member }.put(&mut changes),
            Type::List if removes => list::Change::Pop { end: End::Head, count: 1 }.put(&mut changes),
            Type::List => list::Change::Push { end: End::Tail, value: &member }.put(&mut changes),
            Type::Btree if removes => btree::Change::RemoveRange { start: 0, count: 1 }.put(&mut changes),
            Type::Btree => {
                let element = btree::Element { bkey: btree::Bkey::Number(*serial), eflag: b"", data: &member };
                btree::Change::Put(element).put(&mut changes);
            }
            Type::Stream if removes => stream::Change::Trim { count: 1 }.put(&mut changes),
            Type::Stream => {
                let strings: [&[u8]; 2] = [b"name", &member];
                stream::Change::put_add(&mut changes, Id { ms: *serial, seq: 0 }, 1, strings.into_iter());
            }
            Type::String => unreachable!("no collection"),
        }
    }
    changes
}

/// Headers and buckets of a small table lie in one line of the system's memory: there is one such table for each shard.
/// One that grows and shrinks again and again takes no more each time.
#[test]
fn a_small_table_takes_one_line() {
    let mut shard = Shard::new();
    let table = |shard: &Shard| shard.memory.of(MemoryKind::Table);
    for number in 0..400u32 {
        shard.string(&number.to_le_bytes(), 1, None);
    }
    assert_eq!(table(&shard), LINE_BYTES);
    let mut after_first = None;
    for round in 0..4 {
        for number in 400..6_000u32 {
            shard.string(&number.to_le_bytes(), 1, None);
        }
        assert!(table(&shard) >= 6_000 * 6, "round {round}");
        for number in 400..6_000u32 {
            shard.remove(&number.to_le_bytes());
        }
        while shard.engine.clean(100) {}
        let after = table(&shard);
        assert!(after <= *after_first.get_or_insert(after) + LINE_BYTES, "{after} bytes in round {round}");
    }
}

#[test]
fn costs_of_entries_add_up_to_what_is_counted() {
    let (mut shard, mut rng, mut serial) = (Shard::new(), Rng::new(7), 0);
    let kinds = [Type::Hash, Type::Set, Type::Zset, Type::List, Type::Stream, Type::Btree];
    let steps = if cfg!(miri) { 200 } else { 60_000 };
    for step in 0..steps {
        // A tenth of the keys gets most of the changes, so that some collections are trees.
        let number = if rng.below(10) < 8 { rng.below(100) } else { rng.below(4000) };
        let key = format!("key:{number}");
        match number % 6 {
            5 => {
                let length = if rng.below(20) == 0 { rng.below(100_000) } else { rng.below(300) };
                let expire_at = (rng.below(3) == 0).then_some(NOW + 5000);
                shard.string(key.as_bytes(), length as usize, expire_at);
            }
            kind if rng.below(400) > 0 => {
                let kind = kinds[kind as usize];
                shard.edit(key.as_bytes(), kind, &changes(kind, &mut rng, &mut serial));
            }
            _ => shard.remove(key.as_bytes()),
        }
        if step % 1000 == 999 {
            while shard.engine.clean(1000) {}
            shard.check();
        }
    }
    (0..4000).for_each(|number| shard.remove(format!("key:{number}").as_bytes()));
    while shard.engine.clean(1000) {}
    let sums = shard.sums();
    assert_eq!((sums.entries, sums.content, shard.memory.of(MemoryKind::Large)), (0, 0, 0));
}

/// Entries that stay are met once in a survey, while others come and go so that extents split and merge.
#[test]
fn a_survey_meets_what_stays_once() {
    let (mut shard, mut rng) = (Shard::new(), Rng::new(3));
    let (staying, total) = if cfg!(miri) { (20, 200) } else { (5_000, 60_000) };
    let key = |number: u64| number.to_string().into_bytes();
    (0..total).for_each(|number| shard.string(&key(number), 10, None));
    for is_growing in [false, true, false] {
        let (mut met, mut from) = (HashMap::<Vec<u8>, u32>::new(), Some(0));
        while let Some(bound) = from {
            let step =
                shard.engine.survey(SPACE, bound, &mut |entry, _| *met.entry(entry.key.to_vec()).or_default() += 1);
            from = step.next;
            for _ in 0..total / 50 {
                let number = staying + rng.below(total - staying);
                if is_growing { shard.string(&key(number), 10, None) } else { shard.remove(&key(number)) }
            }
        }
        assert!((0..staying).all(|number| met.get(&key(number)) == Some(&1)), "growing: {is_growing}");
        assert!(is_growing || met.values().all(|count| *count == 1), "what is gone does not come back");
    }
}
