//! The steps of a run. Each runs in a separate process, so that CPU time, memory and bytes written belong to one
//! engine, and prints its figures as JSON.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::random::splitmix64;
use serde::{Deserialize, Serialize};

use crate::engines::{self, Engine, Failure, Name, Settings};
use crate::process;
use crate::workload::{Distribution, RECORD_BYTES, Workload, digits};
use crate::ycsb::{self, Ycsb};

/// How often space and memory are looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);
/// Gets of each kind.
const READS: u64 = 200_000;
/// Scans, and their pairs: enough to measure more than a single merge that scans have triggered.
const SCANS: u64 = 20_000;
const SCAN_PAIRS: usize = 100;
/// Threads of each kind, and how long they run.
const MIXED_THREADS: u64 = 4;
const MIXED_SECONDS: f64 = 5.0;
/// Bytes of keys and values in the log to replay, and the memtable that holds all of them.
const LOG_BYTES: u64 = 64 << 20;
const LOG_MEMTABLE_BYTES: usize = 512 << 20;

/// Which step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Step {
    /// The workload, from an empty directory.
    Write,
    /// What reads of it cost.
    Read,
    /// The workloads of YCSB on it.
    Ycsb,
    /// A log, left by a process that ends without closing.
    LeaveLog,
    /// Its replay.
    Replay,
    /// One of the patterns.
    Pattern,
}

/// The database of a step.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub name: Name,
    pub dir: &'a Path,
    pub settings: Settings,
    pub keys: u64,
    pub distribution: Distribution,
}

/// The results of writing. Amplifications are per byte of keys and values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Writing {
    /// All bytes written until nothing was left to do.
    pub write_amplification: f64,
    /// The part for flushes and merges; the rest went to the log, except for a few bytes.
    pub flush: Option<f64>,
    pub compaction: Option<f64>,
    /// Space while updating, every 200 ms.
    pub space: Vec<f64>,
    pub space_end: f64,
    pub writes_per_second: f64,
    /// Flushes and merges included.
    pub cpu_us_per_write: f64,
    pub resident_peak_bytes: u64,
}

/// The results of reading, in microseconds of CPU time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reading {
    /// Nothing is in memory at the beginning.
    pub get_cold: f64,
    pub get_warm: f64,
    pub miss: f64,
    /// `None` for an engine without an order.
    pub scan: Option<f64>,
    /// Four threads of each kind, side by side.
    pub mixed_reads_per_second: f64,
    pub mixed_writes_per_second: f64,
}

/// Seconds until the log's last write could be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Replay {
    pub seconds: f64,
}

impl Writing {
    /// Space while updating.
    pub fn space_mean(&self) -> f64 {
        self.space.iter().sum::<f64>() / self.space.len().max(1) as f64
    }
}

pub fn write(subject: &Subject<'_>) -> Result<Writing, Failure> {
    let (dir, live_bytes) = (subject.dir, (subject.keys * RECORD_BYTES) as f64);
    std::fs::create_dir_all(dir)?;
    let engine = engines::open(subject.name, dir, &subject.settings)?;
    let mut workload = Workload::new(subject.keys, subject.distribution);
    let (begin, begin_cpu, begin_written) = (Instant::now(), process::cpu(), process::written()?);
    let (is_updating, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
    let (space, resident_peak_bytes, seconds) = std::thread::scope(|scope| -> Result<_, Failure> {
        let sampler = scope.spawn(|| -> Result<_, Failure> {
            let (mut space, mut resident) = (Vec::new(), 0);
            while !is_done.load(Ordering::Acquire) {
                if is_updating.load(Ordering::Acquire) {
                    space.push(process::bytes_of_files(dir) as f64 / live_bytes);
                }
                resident = resident.max(process::resident()?);
                std::thread::sleep(SAMPLE_EVERY);
            }
            Ok((space, resident))
        });
        let outcome = (0..workload.len()).try_for_each(|at| {
            if at == subject.keys || subject.distribution == Distribution::Sequential {
                is_updating.store(true, Ordering::Release);
            }
            let (key, value) = workload.next();
            engine.put(key, value)
        });
        let seconds = begin.elapsed().as_secs_f64();
        is_done.store(true, Ordering::Release);
        let (space, resident) = sampler.join().expect("the sampler does not panic")?;
        outcome.map(|()| (space, resident, seconds))
    })?;
    engine.flush()?;
    process::await_quiet()?;
    let (writes, user_bytes) = (workload.len() as f64, (workload.len() * RECORD_BYTES) as f64);
    let tables = engine.table_bytes()?;
    Ok(Writing {
        write_amplification: (process::written()? - begin_written) as f64 / user_bytes,
        flush: tables.map(|tables| tables.flush as f64 / user_bytes),
        compaction: tables.map(|tables| tables.compaction as f64 / user_bytes),
        space,
        space_end: process::bytes_of_files(dir) as f64 / live_bytes,
        writes_per_second: writes / seconds,
        cpu_us_per_write: (process::cpu() - begin_cpu) / writes * 1e6,
        resident_peak_bytes,
    })
}

pub fn read(subject: &Subject<'_>) -> Result<Reading, Failure> {
    process::drop_page_cache(subject.dir)?;
    let engine = engines::open(subject.name, subject.dir, &subject.settings)?;
    // Background work after an open does not count for the reads.
    process::await_quiet()?;
    let keys = subject.keys;
    let present = |random: u64| digits(random % keys * 2);
    let get = |key: [u8; 10], is_there: bool| -> Result<(), Failure> {
        let mut id = [0; 8];
        let found = engine.get(&key, &mut |value| id.copy_from_slice(&value[..8]))?;
        if found != is_there || (found && digits(u64::from_le_bytes(id) * 2) != key) {
            return Err(format!("a wrong answer for key {}", String::from_utf8_lossy(&key)).into());
        }
        Ok(())
    };
    let scan = |key: [u8; 10]| {
        engine.scan(&key, SCAN_PAIRS).and_then(|pairs| match pairs {
            0 => Err("a scan found nothing".into()),
            _ => Ok(()),
        })
    };
    let get_cold = cost(READS, |random| get(present(random), true))?;
    // Once without measuring: cold reads leave most blocks unread.
    cost(READS, |random| get(present(random), true))?;
    let get_warm = cost(READS, |random| get(present(random), true))?;
    let miss = cost(READS, |random| get(digits(random % keys * 2 + 1), false))?;
    let scans = || cost(SCANS, |random| scan(present(random)));
    let scan = match engine.can_scan() {
        true => {
            scans()?;
            // An engine may merge ranges that are scanned often; it is measured after that.
            process::await_quiet()?;
            Some(scans()?)
        }
        false => None,
    };
    let (reads, writes) = mixed(&*engine, subject)?;
    Ok(Reading { get_cold, get_warm, miss, scan, mixed_reads_per_second: reads, mixed_writes_per_second: writes })
}

/// Whatever happened to the database, all keys exist.
pub fn ycsb(subject: &Subject<'_>) -> Result<Vec<Ycsb>, Failure> {
    let engine = engines::open(subject.name, subject.dir, &subject.settings)?;
    ycsb::run(&*engine, subject.keys)
}

/// Microseconds of CPU time per operation, each given a random word.
fn cost(count: u64, operation: impl Fn(u64) -> Result<(), Failure>) -> Result<f64, Failure> {
    let (mut state, begin) = (count, process::cpu());
    (0..count).try_for_each(|_| operation(splitmix64(&mut state)))?;
    Ok((process::cpu() - begin) / count as f64 * 1e6)
}

/// Reads and writes per second of several threads of each kind.
fn mixed(engine: &dyn Engine, subject: &Subject<'_>) -> Result<(f64, f64), Failure> {
    let (reads, writes) = (AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2 * MIXED_THREADS)
            .map(|number| {
                let (reads, writes) = (&reads, &writes);
                scope.spawn(move || -> Result<(), Failure> {
                    let mut state = number;
                    let value = [number as u8; 200];
                    while begin.elapsed().as_secs_f64() < MIXED_SECONDS {
                        let key = digits(splitmix64(&mut state) % subject.keys * 2);
                        if number % 2 == 0 {
                            engine.put(&key, &value)?;
                            writes.fetch_add(1, Ordering::Relaxed);
                        } else {
                            engine.get(&key, &mut |value| assert_eq!(value.len(), 200))?;
                            reads.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok((reads.into_inner() as f64 / seconds, writes.into_inner() as f64 / seconds))
}

/// The subject of the two steps about the log: one whose memtable is never full.
fn with_log<'a>(subject: &Subject<'a>) -> (Subject<'a>, u64) {
    let keys = LOG_BYTES / RECORD_BYTES;
    let settings = Settings { memtable_bytes: LOG_MEMTABLE_BYTES, ..subject.settings };
    (Subject { settings, keys, ..*subject }, keys)
}

/// Does not return: the process ends with the database open.
pub fn leave_log(subject: &Subject<'_>) -> Result<(), Failure> {
    let (subject, keys) = with_log(subject);
    std::fs::create_dir_all(subject.dir)?;
    let engine = engines::open(subject.name, subject.dir, &subject.settings)?;
    let mut workload = Workload::new(keys, Distribution::Uniform);
    for _ in 0..keys {
        let (key, value) = workload.next();
        engine.put(key, value)?;
    }
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    unreachable!("the signal cannot be held off")
}

pub fn replay(subject: &Subject<'_>) -> Result<Replay, Failure> {
    let (subject, keys) = with_log(subject);
    let mut workload = Workload::new(keys, Distribution::Uniform);
    for _ in 1..keys {
        workload.next();
    }
    let (key, value) = workload.next();
    let begin = Instant::now();
    let engine = engines::open(subject.name, subject.dir, &subject.settings)?;
    if !engine.get(key, &mut |found| assert_eq!(found, value))? {
        return Err("the last write of the log is lost".into());
    }
    Ok(Replay { seconds: begin.elapsed().as_secs_f64() })
}
