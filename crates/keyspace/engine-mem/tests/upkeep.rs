//! What happens over long runs: stale expiration indexes are rebuilt, marks repeat, memory of tables and pages comes
//! back.

use base::hash::KeyHasher;
use base::{KeyspaceId, Rng};
use engine::{Encoding, Engine, Entry, EntrySink, ExtFields, Key, NewEntry, Type, Value, WalkProgress};
use engine_mem::{MemEngine, MemoryKind, MemoryUse};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const SPACE: KeyspaceId = KeyspaceId(0);
const START: i64 = 1_700_000_000_000;

struct Shard {
    engine: MemEngine,
    hasher: KeyHasher,
    memory: Arc<MemoryUse>,
}

impl Shard {
    fn new() -> Self {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let memory = Arc::new(MemoryUse::default());
        let mut engine = MemEngine::new(hasher.clone(), Rng::new(2), Arc::clone(&memory));
        engine.set_time(START);
        Self { engine, hasher, memory }
    }

    fn set(&mut self, number: u64, expire_at: Option<i64>) {
        let bytes = number.to_le_bytes();
        let value = Value::Bytes(b"some value");
        let new = NewEntry { kind: Type::String, encoding: Encoding::PLAIN, value, expire_at, fields: ExtFields::NONE };
        self.engine.write(&Key::new(&self.hasher, SPACE, &bytes), &new);
    }

    fn string(&mut self, number: u64, length: usize) {
        let (bytes, string) = (number.to_le_bytes(), vec![number as u8; length]);
        let value = Value::Bytes(&string);
        let new =
            NewEntry { kind: Type::String, encoding: Encoding::PLAIN, value, expire_at: None, fields: ExtFields::NONE };
        self.engine.write(&Key::new(&self.hasher, SPACE, &bytes), &new);
    }

    fn expire(&mut self, number: u64, at: Option<i64>) {
        let bytes = number.to_le_bytes();
        assert!(self.engine.set_expiration(&Key::new(&self.hasher, SPACE, &bytes), at));
    }

    fn remove(&mut self, number: u64) {
        let bytes = number.to_le_bytes();
        assert!(self.engine.remove(&Key::new(&self.hasher, SPACE, &bytes)));
    }

    /// Removes what is due; returns how many keys that were.
    fn drain(&mut self) -> usize {
        let mut count = 0;
        while self.engine.has_due() {
            let mut due = Vec::new();
            self.engine.due(50, &mut |key, _| due.push((key.hash, key.slot, key.bytes.to_vec())));
            for (hash, slot, bytes) in &due {
                assert!(self.engine.remove(&Key { bytes, hash: *hash, slot: *slot, space: SPACE }));
            }
            count += due.len();
        }
        count
    }
}

/// Expirations moved back and forth leave stale items; the index stays in proportion to what expires, no key is
/// forgotten while it is rebuilt, and each comes up when it should.
#[test]
fn stale_indexes_are_rebuilt() {
    let mut shard = Shard::new();
    const COUNT: u64 = 5_000;
    (0..COUNT).for_each(|number| shard.set(number, None));
    let mut rng = Rng::new(3);
    let mut times = vec![0; COUNT as usize];
    let mut used_max = 0;
    for round in 0..40 {
        for number in 0..COUNT {
            shard.expire(number, None);
            times[number as usize] = START + 100_000 + rng.below(100_000) as i64;
            shard.expire(number, Some(times[number as usize]));
            if number % 8 == 0 {
                shard.engine.clean(64);
            }
        }
        if round > 5 {
            used_max = used_max.max(shard.memory.of(MemoryKind::Index));
        }
    }
    // Twice the live items and the fixed allowance, and two indexes at once while one is rebuilt.
    assert!(used_max < (3 * COUNT + 2 * 4_096) * 6, "{used_max} bytes for {COUNT} expirations");
    for now in (START..START + 210_000).step_by(777) {
        shard.engine.set_time(now);
        shard.drain();
        shard.engine.clean(64);
        let due = times.iter().filter(|&&at| at <= now).count() as u64;
        let late = times.iter().filter(|&&at| at <= now - 300).count() as u64;
        let gone = COUNT - shard.engine.len(SPACE);
        assert!((late..=due).contains(&gone), "{gone} gone at {now}, between {late} and {due} due");
    }
    assert_eq!(shard.engine.len(SPACE), 0);
}

/// A hundred thousand keys due at once come out in calls of the size asked for, all of them; far-future times stay.
#[test]
fn many_due_at_once() {
    let mut shard = Shard::new();
    (0..100_000).for_each(|number| shard.set(number, Some(START + 1_000 + number as i64 % 1_000)));
    (100_000..100_010).for_each(|number| shard.set(number, Some(i64::MAX)));
    shard.engine.set_time(START + 999);
    assert_eq!(shard.drain(), 0);
    shard.engine.set_time(START + 2_200);
    assert_eq!(shard.drain(), 100_000);
    assert_eq!((shard.engine.len(SPACE), shard.engine.expiring_len(SPACE)), (10, 10));
    while shard.engine.clean(1_000) {}
    assert!(shard.memory.total() < 200_000, "{:?}", shard.memory);
}

#[derive(Clone, Default)]
struct Counted(Arc<AtomicUsize>, Arc<Mutex<HashSet<Vec<u8>>>>);

impl EntrySink for Counted {
    fn save(&mut self, _space: KeyspaceId, entry: &Entry<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.1.lock().unwrap().insert(entry.key.to_vec());
    }
}

/// Marks are twelve bits: after thousands of checkpoints given up half-way, one that is completed still takes
/// everything, once.
#[test]
fn marks_may_repeat() {
    let mut shard = Shard::new();
    (0..2_000).for_each(|number| shard.set(number, None));
    for checkpoint in 0..9_000 {
        let sink = Counted::default();
        shard.engine.begin_checkpoint(Box::new(sink.clone()));
        if checkpoint % 1_000 == 999 {
            shard.set(1_000_000, None);
            shard.remove(1_000_000);
            shard.set(checkpoint % 2_000, Some(START + 1));
            while shard.engine.walk_checkpoint(100) == WalkProgress::More {}
            assert_eq!((sink.0.load(Ordering::Relaxed), sink.1.lock().unwrap().len()), (2_000, 2_000));
        } else if checkpoint < 5_000 {
            shard.engine.walk_checkpoint(1);
        }
        assert!(shard.engine.end_checkpoint().is_some());
    }
    assert!(shard.engine.end_checkpoint().is_none());
}

/// The same where none is completed before marks repeat.
#[test]
fn marks_may_repeat_without_a_complete_walk() {
    let mut shard = Shard::new();
    (0..2_000).for_each(|number| shard.set(number, None));
    // Which bits are left depends on the last complete walk, so several distances are tried around the repetition.
    for abandoned in [4_093, 4_094, 4_095, 4_096, 4_097] {
        for complete in [false, true] {
            let sink = Counted::default();
            shard.engine.begin_checkpoint(Box::new(sink.clone()));
            if complete {
                shard.engine.walk_checkpoint(1);
                shard.engine.end_checkpoint();
                for _ in 1..abandoned {
                    shard.engine.begin_checkpoint(Box::new(Counted::default()));
                    shard.engine.end_checkpoint();
                }
                shard.engine.begin_checkpoint(Box::new(sink.clone()));
                sink.0.store(0, Ordering::Relaxed);
            }
            while shard.engine.walk_checkpoint(100) == WalkProgress::More {}
            assert_eq!(sink.0.load(Ordering::Relaxed), 2_000, "after {abandoned}");
            shard.engine.end_checkpoint();
        }
    }
}

/// Holes among entries are left to coming writes while there are any, and closed when a few rounds of cleaning have
/// seen none: then pages take little more than their entries.
#[test]
fn holes_are_closed_when_it_is_calm() {
    let mut shard = Shard::new();
    (0..20_000).for_each(|number| shard.set(number, None));
    let full = shard.memory.of(MemoryKind::Values);
    (0..20_000).filter(|number| number % 3 == 0).for_each(|number| shard.remove(number));
    for round in 0..20 {
        shard.set(20_000 + round, None);
        while shard.engine.clean(1_000) {}
    }
    assert!(shard.memory.of(MemoryKind::Values) > full / 5 * 4, "holes are closed under writes");
    for _ in 0..10 {
        while shard.engine.clean(1_000) {}
    }
    let values = shard.memory.of(MemoryKind::Values);
    assert!(values < full / 100 * 69 + (8 << 10), "{values} bytes of {full} for two thirds of the keys");
}

/// Tables shrink with their keys, and their memory comes back.
#[test]
fn table_memory_comes_back() {
    let mut shard = Shard::new();
    (0..300_000).for_each(|number| shard.set(number, None));
    let table = shard.memory.of(MemoryKind::Table);
    assert!((300_000 * 6..300_000 * 8).contains(&table), "{table} bytes of table for 300,000 keys");
    (0..300_000).filter(|number| number % 10 != 0).for_each(|number| shard.remove(number));
    while shard.engine.clean(1_000) {}
    let table = shard.memory.of(MemoryKind::Table);
    assert!(table < 30_000 * 10 + (256 << 10), "{table} bytes of table for 30,000 keys");
    let values = shard.memory.of(MemoryKind::Values);
    assert!(values < 30_000 * 26 + (512 << 10), "{values} bytes of pages for 30,000 keys");
}

/// A small shard of strings of all lengths, made shorter one by one, ends with little more memory than they need: pages
/// are shared by lengths that are next to each other, and hardly a line is half used. Everything stays as it was.
#[test]
fn few_strings_of_many_lengths_share_pages() {
    let mut shard = Shard::new();
    let mut rng = Rng::new(4);
    let count: u64 = if cfg!(miri) { 100 } else { 5_000 };
    let mut lengths = Vec::new();
    for number in 0..count {
        // From 100 bytes to 2 KB, short ones more often.
        let length = 100 + (rng.below(1000) * rng.below(1000) / 512) as usize;
        shard.string(number, length);
        lengths.push(length);
    }
    // A quarter stays long.
    for number in (0..count).filter(|number| number % 4 > 0) {
        let length = &mut lengths[number as usize];
        *length /= 3;
        shard.string(number, *length);
        shard.engine.clean(10);
    }
    for _ in 0..20 {
        while shard.engine.clean(50) {}
    }
    let needed: usize = lengths.iter().map(|length| (2 + 4 + 2 + 8 + length).next_multiple_of(4)).sum();
    let used = shard.memory.of(MemoryKind::Values) as usize;
    assert!(used < needed + needed / 12, "{used} bytes for {needed}");
    for (number, length) in lengths.iter().enumerate() {
        let bytes = (number as u64).to_le_bytes();
        let found = shard.engine.read(&Key::new(&shard.hasher, SPACE, &bytes), false).unwrap().unwrap();
        assert_eq!(found.value.bytes(), vec![number as u8; *length], "{number}");
    }
    (0..count).for_each(|number| shard.remove(number));
    for _ in 0..20 {
        while shard.engine.clean(50) {}
    }
    assert_eq!(shard.memory.of(MemoryKind::Values), 0);
}
