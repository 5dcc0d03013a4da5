//! The core workloads of YCSB (Cooper et al., SoCC 2010), run in sequence on the database of the writing step: one
//! client, zipfian keys scattered over the key space, or the latest (D); scans of up to 100 pairs (E).

use std::time::Instant;

use base::random::splitmix64;
use serde::{Deserialize, Serialize};

use crate::engines::{Engine, Failure};
use crate::process;
use crate::workload::{Zipfian, digits, scattered};

/// Operations of a workload; E has a tenth.
const OPERATIONS: u64 = 200_000;

/// Longest scan, in pairs.
const SCAN_PAIRS_MAX: u64 = 100;

/// What an operation that is no read does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Update,
    Insert,
    ReadAndUpdate,
}

/// A workload: its name, how many of a hundred operations change something, and what the others do.
struct Mix {
    name: &'static str,
    change_percent: u64,
    change: Change,
    reads_latest: bool,
    scans: bool,
}

const MIXES: [Mix; 6] = [
    mix("A", 50, Change::Update),
    mix("B", 5, Change::Update),
    mix("C", 0, Change::Update),
    Mix { reads_latest: true, ..mix("D", 5, Change::Insert) },
    Mix { scans: true, ..mix("E", 5, Change::Insert) },
    mix("F", 50, Change::ReadAndUpdate),
];

const fn mix(name: &'static str, change_percent: u64, change: Change) -> Mix {
    Mix { name, change_percent, change, reads_latest: false, scans: false }
}

/// What a workload came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ycsb {
    pub workload: String,
    /// Includes flushes and merges. `None` for scans of an engine without an order.
    pub cpu_us: Option<f64>,
    pub operations_per_second: Option<f64>,
}

/// Runs all workloads on a database of `keys` keys.
pub fn run(engine: &dyn Engine, keys: u64) -> Result<Vec<Ycsb>, Failure> {
    let (mut all, mut client) = (Vec::new(), Client { keys, inserted: keys, zipfian: Zipfian::new(keys), state: 7 });
    for mix in &MIXES {
        let workload = mix.name.to_owned();
        if mix.scans && !engine.can_scan() {
            all.push(Ycsb { workload, cpu_us: None, operations_per_second: None });
            continue;
        }
        process::await_quiet()?;
        let count = if mix.scans { OPERATIONS / 10 } else { OPERATIONS };
        let (begin, begin_cpu) = (Instant::now(), process::cpu());
        (0..count).try_for_each(|_| client.operate(engine, mix))?;
        let seconds = begin.elapsed().as_secs_f64();
        // Background work that the writes leave counts for them.
        process::await_quiet()?;
        all.push(Ycsb {
            workload,
            cpu_us: Some((process::cpu() - begin_cpu) / count as f64 * 1e6),
            operations_per_second: Some(count as f64 / seconds),
        });
    }
    Ok(all)
}

struct Client {
    /// Number of keys at the beginning, among which updates choose.
    keys: u64,
    /// Keys there are now.
    inserted: u64,
    zipfian: Zipfian,
    state: u64,
}

impl Client {
    fn operate(&mut self, engine: &dyn Engine, mix: &Mix) -> Result<(), Failure> {
        if splitmix64(&mut self.state) % 100 >= mix.change_percent {
            return self.read(engine, mix);
        }
        let id = match mix.change {
            Change::Insert => {
                self.inserted += 1;
                self.inserted - 1
            }
            Change::Update => self.popular(),
            Change::ReadAndUpdate => {
                let id = self.popular();
                get(engine, id)?;
                id
            }
        };
        let mut value = [0; 200];
        for chunk in value.chunks_exact_mut(8) {
            chunk.copy_from_slice(&splitmix64(&mut self.state).to_le_bytes());
        }
        engine.put(&digits(2 * id), &value)
    }

    fn read(&mut self, engine: &dyn Engine, mix: &Mix) -> Result<(), Failure> {
        if mix.reads_latest {
            let age = self.zipfian.rank(splitmix64(&mut self.state));
            return get(engine, self.inserted - 1 - age);
        }
        let id = self.popular();
        if !mix.scans {
            return get(engine, id);
        }
        let pairs = 1 + splitmix64(&mut self.state) % SCAN_PAIRS_MAX;
        match engine.scan(&digits(2 * id), pairs as usize)? {
            0 => Err(format!("a scan from key {id} found nothing").into()),
            _ => Ok(()),
        }
    }

    fn popular(&mut self) -> u64 {
        scattered(self.zipfian.rank(splitmix64(&mut self.state)), self.keys)
    }
}

fn get(engine: &dyn Engine, id: u64) -> Result<(), Failure> {
    match engine.get(&digits(2 * id), &mut |value| assert_eq!(value.len(), 200))? {
        true => Ok(()),
        false => Err(format!("key {id} is lost").into()),
    }
}
