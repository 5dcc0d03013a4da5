//! What keys cost in this engine: resident bytes per key, insertion and look-up times, and what comes back after values
//! shrink. Prints Markdown tables.
//!
//!     cargo run --release -p onggi-engine-mem --example footprint [growth | ttl | shrink | speed | idle]...
//!
//! Keys are 16 bytes, spread over 64 engines with shares proportional to 2^(i/64), as a store spreads them. Resident
//! bytes are the growth of the process's resident set. Times are of the thread's CPU clock, so that being pre-empted
//! does not count.

use base::hash::KeyHasher;
use base::slot::SLOT_COUNT;
use base::{KeyspaceId, Rng};
use engine::{Encoding, Engine, ExtFields, Key, NewEntry, Type, Value};
use engine_mem::{MemEngine, MemHints, MemoryUse};
use std::sync::Arc;

const SHARD_COUNT: usize = 64;
const SPACE: KeyspaceId = KeyspaceId(0);
const NOW: i64 = 1_700_000_000_000;

/// Keys of a batch that is prefetched together.
const BATCH: usize = 16;

struct Store {
    shards: Vec<MemEngine>,
    hints: Vec<Arc<MemHints>>,
    shard_of_slot: Vec<u8>,
    hasher: KeyHasher,
    memory: Arc<MemoryUse>,
}

impl Store {
    fn new() -> Self {
        let mut rng = Rng::new(42);
        let hasher = KeyHasher::new(&mut rng);
        let memory = Arc::new(MemoryUse::default());
        let new = |i: usize| {
            let mut engine = MemEngine::new(hasher.clone(), Rng::new(i as u64), Arc::clone(&memory));
            engine.set_time(NOW);
            engine
        };
        let shards: Vec<_> = (0..SHARD_COUNT).map(new).collect();
        let share = |i: usize| 2f64.powf(i as f64 / SHARD_COUNT as f64);
        let total: f64 = (0..SHARD_COUNT).map(share).sum();
        let mut shard_of_slot = Vec::with_capacity(SLOT_COUNT);
        let mut border = 0.0;
        for shard in 0..SHARD_COUNT {
            border += share(shard) / total * SLOT_COUNT as f64;
            while (shard_of_slot.len() as f64) < border && shard_of_slot.len() < SLOT_COUNT {
                shard_of_slot.push(shard as u8);
            }
        }
        shard_of_slot.resize(SLOT_COUNT, SHARD_COUNT as u8 - 1);
        let hints = shards.iter().map(MemEngine::hints).collect();
        Self { shards, hints, shard_of_slot, hasher, memory }
    }

    fn shard(&self, slot: base::SlotId) -> usize {
        self.shard_of_slot[slot.index()] as usize
    }

    fn set(&mut self, key: &[u8], value: &[u8], expire_at: Option<i64>) {
        let key = Key::new(&self.hasher, SPACE, key);
        let new = NewEntry {
            kind: Type::String,
            encoding: Encoding::PLAIN,
            value: Value::Bytes(value),
            expire_at,
            fields: ExtFields::NONE,
        };
        let shard = self.shard(key.slot);
        self.shards[shard].write(&key, &new);
    }

    /// Upkeep as workers do it: a small step of every shard, until there is nothing to do.
    fn clean(&mut self) -> u64 {
        let start = cpu_ns();
        while self.shards.iter_mut().map(|shard| shard.clean(64)).filter(|&more| more).count() > 0 {}
        cpu_ns() - start
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("procfs is there");
    let pages: f64 =
        statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("the second number is resident");
    pages * 4096.0
}

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let parts: [(&str, fn()); 5] =
        [("idle", idle), ("growth", growth), ("ttl", ttl), ("shrink", shrink), ("speed", speed)];
    for (name, part) in parts {
        if chosen.is_empty() || chosen.iter().any(|chosen| chosen == name) {
            part();
        }
    }
}

fn idle() {
    let before = resident();
    let mut store = Store::new();
    let fresh = resident() - before;
    for space in 0..16 {
        for shard in &mut store.shards {
            let bytes = key(space);
            let key = Key::new(&store.hasher, KeyspaceId(space as u32), &bytes);
            let value = Value::Bytes(b"x");
            shard.write(
                &key,
                &NewEntry {
                    kind: Type::String,
                    encoding: Encoding::PLAIN,
                    value,
                    expire_at: None,
                    fields: ExtFields::NONE,
                },
            );
        }
    }
    println!(
        "idle: 64 shards {:.0} KiB; with one key in each of 16 databases {:.0} KiB\n",
        fresh / 1024.0,
        (resident() - before) / 1024.0
    );
}

fn growth() {
    println!(
        "| value | keys | resident B/key | overhead B/key | counted B/key (values, table) | insert ns | worst insert us | > 100 us |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (value_len, key_counts) in
        [(2, vec![1, 2, 5]), (16, vec![1, 2, 5, 10]), (64, vec![1, 2, 5]), (512, vec![1, 2, 4]), (1024, vec![1, 2, 4])]
    {
        let value = vec![b'v'; value_len];
        let before = resident();
        let mut store = Store::new();
        let (mut done, mut worst, mut slow) = (0u64, 0, 0u32);
        for millions in key_counts {
            let start = cpu_ns();
            let target = millions * 1_000_000;
            let first = done;
            // The clock is read for every insert of the last tenth only: reading it costs as much as an insert.
            while done < target - (target - first) / 10 {
                store.set(&key(done), &value, None);
                done += 1;
            }
            let insert_ns = (cpu_ns() - start) as f64 / (done - first) as f64;
            while done < target {
                let bytes = key(done);
                let start = cpu_ns();
                store.set(&bytes, &value, None);
                let spent = cpu_ns() - start;
                worst = worst.max(spent);
                slow += u32::from(spent > 100_000);
                done += 1;
            }
            let per_key = (resident() - before) / done as f64;
            let counted = |kind| store.memory.of(kind) as f64 / done as f64;
            println!(
                "| {value_len} | {millions} M | {per_key:.1} | {:.1} | {:.1} + {:.1} | {insert_ns:.0} | {:.0} | {slow} |",
                per_key - 16.0 - value_len as f64,
                counted(engine_mem::MemoryKind::Values),
                counted(engine_mem::MemoryKind::Table),
                worst as f64 / 1000.0,
            );
        }
    }
    println!();
}

fn ttl() {
    println!("| keys | expirations within | resident B/key | added by TTL | drain ns/key | late |");
    println!("|---|---|---|---|---|---|");
    for (millions, spread_s) in [(1, 3600), (5, 3600), (5, 86_400 * 30), (5, 1)] {
        let count = millions * 1_000_000u64;
        let mut per_key = [0.0; 2];
        for with_ttl in [false, true] {
            let mut rng = Rng::new(7);
            let before = resident();
            let mut store = Store::new();
            for number in 0..count {
                let at = NOW + 10_000 + rng.below(spread_s * 1000) as i64;
                store.set(&key(number), &[b'v'; 16], with_ttl.then_some(at));
            }
            per_key[usize::from(with_ttl)] = (resident() - before) / count as f64;
            if with_ttl {
                let start = cpu_ns();
                let mut removed = 0;
                let mut due = Vec::new();
                let end = NOW + 11_000 + spread_s as i64 * 1000;
                for step in 1..=8 {
                    let now = NOW + (end - NOW) / 8 * step + 1000;
                    for shard in &mut store.shards {
                        shard.set_time(now);
                        loop {
                            shard.due(32, &mut |key, _| due.push((key.hash, key.slot, key.bytes.to_vec())));
                            if due.is_empty() && !shard.has_due() {
                                break;
                            }
                            for (hash, slot, bytes) in due.drain(..) {
                                shard.remove(&Key { bytes: &bytes, hash, slot, space: SPACE });
                                removed += 1;
                            }
                        }
                    }
                }
                println!(
                    "| {millions} M | {spread_s} s | {:.1} | {:.1} | {:.0} | {} |",
                    per_key[1],
                    per_key[1] - per_key[0],
                    (cpu_ns() - start) as f64 / removed as f64,
                    count - removed
                );
            }
        }
    }
    println!();
}

fn shrink() {
    println!("| phase | live payload MB | resident MB | ratio | write ns | cleaning ns/write |");
    println!("|---|---|---|---|---|---|");
    let count = 2_000_000u64;
    let mut rng = Rng::new(3);
    let before = resident();
    let mut store = Store::new();
    let mut lens = vec![0u32; count as usize];
    let value = [b'v'; 600];
    let phases: [(&str, u64, u64, f64); 5] = [
        ("load 300-500 B", 300, 500, 0.0),
        ("overwrite 300-500 B", 300, 500, 1.0),
        ("shrink to 20-60 B", 20, 60, 3.0),
        ("20-500 B, 2 passes", 20, 500, 2.0),
        ("delete 9 of 10", 0, 0, 0.0),
    ];
    for (name, low, high, passes) in phases {
        let start = cpu_ns();
        let mut writes = 0u64;
        let mut cleaning = 0;
        let mut one = |number: u64, store: &mut Store, rng: &mut Rng| {
            if high == 0 {
                let bytes = key(number);
                let key = Key::new(&store.hasher, SPACE, &bytes);
                let shard = store.shard(key.slot);
                assert!(store.shards[shard].remove(&key));
                lens[number as usize] = u32::MAX;
            } else {
                let len = low + rng.below(high - low + 1);
                store.set(&key(number), &value[..len as usize], None);
                lens[number as usize] = len as u32;
            }
            writes += 1;
            if writes.is_multiple_of(1024) {
                let start = cpu_ns();
                store.shards.iter_mut().for_each(|shard| {
                    shard.clean(16);
                });
                cleaning += cpu_ns() - start;
            }
        };
        if high == 0 {
            (0..count).filter(|number| number % 10 != 0).for_each(|number| one(number, &mut store, &mut rng));
        } else if passes == 0.0 {
            (0..count).for_each(|number| one(number, &mut store, &mut rng));
        } else {
            (0..(passes * count as f64) as u64).for_each(|_| {
                let number = rng.below(count);
                one(number, &mut store, &mut rng);
            });
        }
        let spent = cpu_ns() - start - cleaning;
        let at_once = resident() - before;
        cleaning += store.clean();
        let payload: u64 = lens.iter().filter(|&&len| len != u32::MAX).map(|&len| u64::from(len) + 16).sum();
        let resident = resident() - before;
        let writes = writes as f64;
        println!(
            "| {name} | {:.0} | {:.0} (before the last cleaning {:.0}) | {:.2} | {:.0} | {:.0} |",
            payload as f64 / 1e6,
            resident / 1e6,
            at_once / 1e6,
            resident / payload as f64,
            spent as f64 / writes,
            cleaning as f64 / writes,
        );
    }
    println!();
}

fn speed() {
    println!("| keys, 16 B values | hits M/s | hits, batches of 16 prefetched M/s | misses M/s | overwrites ns |");
    println!("|---|---|---|---|---|");
    for count in [10_000u64, 1_000_000, 5_000_000] {
        let mut store = Store::new();
        for number in 0..count {
            store.set(&key(number), &[b'v'; 16], None);
        }
        let mut rng = Rng::new(9);
        let looks = 4_000_000u64;
        let rate = |start: u64| looks as f64 * 1000.0 / (cpu_ns() - start) as f64;
        let mut sum = 0;
        let mut get = |store: &mut Store, key: &Key<'_>| {
            let shard = store.shard(key.slot);
            let found = store.shards[shard].read(key, true).expect("memory never fetches");
            sum += found.map_or(0, |entry| entry.value.len());
        };
        let start = cpu_ns();
        for _ in 0..looks {
            let bytes = key(rng.below(count));
            let key = Key::new(&store.hasher, SPACE, &bytes);
            get(&mut store, &key);
        }
        let plain = rate(start);
        let start = cpu_ns();
        for _ in 0..looks / BATCH as u64 {
            let bytes: [[u8; 16]; BATCH] = std::array::from_fn(|_| key(rng.below(count)));
            let keys: [Key<'_>; BATCH] = std::array::from_fn(|i| Key::new(&store.hasher, SPACE, &bytes[i]));
            let hints = keys.map(|key| Arc::clone(&store.hints[store.shard(key.slot)]));
            let mut ways: [_; BATCH] = std::array::from_fn(|i| hints[i].prefetch_bucket(SPACE, keys[i].hash, || false));
            for ((key, way), hints) in keys.iter().zip(&mut ways).zip(&hints) {
                hints.prefetch_entry(way, key.hash);
            }
            keys.iter().for_each(|key| get(&mut store, key));
        }
        let batched = rate(start);
        let start = cpu_ns();
        for _ in 0..looks {
            let bytes = key(count + rng.below(count));
            let key = Key::new(&store.hasher, SPACE, &bytes);
            get(&mut store, &key);
        }
        let misses = rate(start);
        let start = cpu_ns();
        for _ in 0..looks {
            store.set(&key(rng.below(count)), &[b'w'; 16], None);
        }
        let overwrite = (cpu_ns() - start) as f64 / looks as f64;
        println!("| {count} | {plain:.1} | {batched:.1} | {misses:.1} | {overwrite:.0} |");
        assert!(sum > 0);
    }
    println!();
}
