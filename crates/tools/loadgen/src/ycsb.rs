//! The core workloads of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010), with the
//! commands of its binding for Redis (`site.ycsb.db.RedisClient`), so that figures can be put next to those of others.
//!
//! | Operation | Commands |
//! |---|---|
//! | read | HGETALL |
//! | update | HMSET of one field |
//! | insert | HMSET of all fields, then ZADD of the key to `_indices`, with the hash of its name as the score |
//! | scan | ZRANGEBYSCORE of `_indices` from a key's score on, with a LIMIT, then HGETALL for each key |
//! | read-modify-write | HGETALL, then HMSET of one field |
//!
//! A client waits for each reply before its next request, as the binding does.

mod client;
pub mod keys;
pub mod workload;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::client::{Client, Login};
use crate::error::{BenchError, Result};
use crate::generator::{Progress, new_histogram};
use crate::interrupt;
use crate::measure::{Latency, Measurement, Target};
use crate::process::{self, Cores, CpuTime, PinnedThread};
use base::random::Rng;
use client::{Ended, YcsbClient};
pub use keys::Inserted;
use workload::{Operation, Workload};

/// The sorted set of all keys.
const INDEX_KEY: &str = "_indices";

/// What the keys of records begin with.
pub const KEY_PREFIX: &str = "user";

/// Records that are loaded with one send.
const LOAD_AT_ONCE: u64 = 64;

/// How often the threads of a window are looked at.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The shape of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Fields of each record.
    pub fields: usize,
    /// Bytes of each field's value.
    pub field_bytes: usize,
}

/// One window on one server.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Operations and keys.
    pub workload: &'a Workload,
    /// Clients, each a thread with a connection.
    pub clients: usize,
    /// Operations per second of all clients; `None` for as fast as replies come.
    pub rate: Option<f64>,
    /// Before the window.
    pub warmup: Duration,
    /// Length of the window.
    pub measured: Duration,
    /// What an insertion or update writes.
    pub record: Record,
    /// The longest scan, in records.
    pub scan_max: u64,
    /// Fixes every random choice.
    pub seed: u64,
    /// Cores for the clients.
    pub cores: Option<&'a Cores>,
}

/// What a window gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All operations.
    pub all: Measurement,
    /// Their latencies.
    pub latency: Histogram<u64>,
    /// Latencies by operation, of those that the workload has.
    pub by_operation: Vec<(Operation, Histogram<u64>)>,
}

/// Empties nothing, and inserts records `0..count`.
///
/// # Errors
/// The connection breaks, or the server refuses a write.
pub fn load(target: &Target, record: Record, count: u64, seed: u64, watch: &mut dyn FnMut(f64)) -> Result<()> {
    let mut client = Client::connect(&target.address, &target.login)?;
    let mut rng = Rng::new(seed);
    let mut number = 0;
    while number < count {
        interrupt::check()?;
        let until = count.min(number + LOAD_AT_ONCE);
        let commands: Vec<_> = (number..until).flat_map(|number| client::insertion(number, record, &mut rng)).collect();
        for reply in client.ask_all(&commands)? {
            if let Some(error) = reply.as_error() {
                let reply = String::from_utf8_lossy(error).into_owned();
                return Err(refused(target, "HMSET", reply));
            }
        }
        number = until;
        watch(number as f64 / count as f64);
    }
    Ok(())
}

/// Runs the clients of one window, and calls `watch` about every 50 ms.
///
/// # Errors
/// A connection cannot be opened or breaks, all replies are errors, or the server's process cannot be examined.
pub fn run(
    target: &Target,
    inserted: &Inserted,
    window: &Window<'_>,
    watch: &mut dyn FnMut(Progress),
) -> Result<Outcome> {
    let connect = || Client::connect(&target.address, &Login { resp3: false, ..target.login.clone() });
    let connections = (0..window.clients).map(|_| connect()).collect::<Result<Vec<_>>>()?;
    let _pinned = PinnedThread::new(window.cores)?;
    let (origin, stop) = (Instant::now(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let start = |(at, connection)| {
            let stop = &stop;
            scope.spawn(move || {
                let ended = YcsbClient::new(connection, inserted, window, at, origin).and_then(|c| c.drive(stop));
                if ended.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                ended
            })
        };
        let threads: Vec<_> = connections.into_iter().enumerate().map(start).collect();
        let begun = wait(origin + window.warmup, origin, window, &stop, watch).and_then(|()| Edge::read(target));
        let ended = begun.and_then(|begun| {
            wait(origin + window.warmup + window.measured, origin, window, &stop, watch)?;
            Ok((begun, Edge::read(target)?))
        });
        if ended.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        let clients: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect();
        let (begun, ended) = ended?;
        let clients = clients.into_iter().collect::<Result<Vec<_>>>()?;
        outcome(target, window, &clients, &begun, &ended)
    })
}

/// Waits for an edge of the window, or until a client failed.
fn wait(
    until: Instant,
    origin: Instant,
    window: &Window<'_>,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress),
) -> Result<()> {
    let whole = (window.warmup + window.measured).as_secs_f64();
    loop {
        interrupt::check()?;
        let now = Instant::now();
        if now >= until || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        watch(Progress { fraction: (now - origin).as_secs_f64() / whole, operations: 0 });
        std::thread::sleep((until - now).min(LOOK_UP));
    }
}

/// Clocks at an edge of the window.
struct Edge {
    at: Instant,
    server: Option<CpuTime>,
    own_us: f64,
}

impl Edge {
    fn read(target: &Target) -> Result<Self> {
        let server = target.pid.map(process::cpu_time).transpose()?;
        Ok(Self { at: Instant::now(), server, own_us: process::own_cpu_us() })
    }
}

fn outcome(target: &Target, window: &Window<'_>, clients: &[Ended], begun: &Edge, ended: &Edge) -> Result<Outcome> {
    let mut latency = new_histogram();
    let mut by_operation = Vec::new();
    for operation in window.workload.operations() {
        let mut of_operation = new_histogram();
        for client in clients {
            let own = &client.latency[operation as usize];
            of_operation.add(own).expect("all histograms have the same bounds");
        }
        latency.add(&of_operation).expect("all histograms have the same bounds");
        by_operation.push((operation, of_operation));
    }
    let errors: u64 = clients.iter().map(|client| client.errors).sum();
    let first_error = clients.iter().find_map(|client| client.first_error.clone());
    let operations = latency.len();
    if operations == 0 || errors >= operations {
        let command = format!("workload {}", window.workload.name);
        return Err(match first_error {
            Some(reply) => refused(target, &command, reply),
            None => {
                let (address, seconds) = (target.address.to_string(), window.measured.as_secs_f64());
                BenchError::Silent { address, command, seconds }
            }
        });
    }
    let elapsed = ended.at - begun.at;
    let per_operation = |cpu: CpuTime| CpuTime {
        total_us: cpu.total_us / operations as f64,
        user_us: cpu.user_us / operations as f64,
        system_us: cpu.system_us / operations as f64,
    };
    let server_cpu = ended.server.zip(begun.server).map(|(end, begin)| end.since(begin));
    let all = Measurement {
        seconds: elapsed.as_secs_f64(),
        operations,
        operations_per_second: operations as f64 / elapsed.as_secs_f64().max(1e-9),
        cpu_per_operation: server_cpu.map(per_operation),
        generator_us_per_operation: (ended.own_us - begun.own_us) / operations as f64,
        latency: Latency::of(&latency),
        misses: clients.iter().map(|client| client.misses).sum(),
        errors,
        first_error,
    };
    Ok(Outcome { all, latency, by_operation })
}

fn refused(target: &Target, command: &str, reply: String) -> BenchError {
    BenchError::Refused { address: target.address.to_string(), command: command.to_owned(), reply }
}
