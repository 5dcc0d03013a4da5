//! The load itself: several threads, each with an epoll loop over its share of the connections.
//!
//! ```text
//! coordinator --- sleeps to the window's edges, reads counters and the server's CPU time there
//!    | spawns
//! thread: poll -> read, walk over replies, record latency -> encode the next requests -> send
//! ```
//!
//! Closed loop: a connection sends `pipeline` requests at once, waits for all replies, then sends the next batch;
//! latency counts from the send of the batch. The load follows the server: a stalled server receives fewer requests, so
//! its percentiles hide the stall (coordinated omission).
//!
//! Fixed rate: request n is due at n / rate, whatever the server does. A connection has at most `pipeline` requests in
//! flight and the rest wait here. But latency always counts from the due time, so a stall shows in every request that
//! it delayed, even those not sent yet (Gil Tene's correction, as in wrk2).
//!
//! I1. Every request is recorded at most once: in a closed loop if its reply comes inside the window, at a fixed rate
//!     if its due time lies inside the window, however late the reply comes.
//! I2. Connection c of C sends the operations c, c + C, c + 2C, ...: all numbers exactly once, so that a load phase
//!     writes every key once, whatever the number of threads.

mod worker;

use crate::client::{Address, Client, Login, Socket};
use crate::error::{BenchError, Result};
use crate::interrupt;
use crate::keys::KeyStream;
use crate::payload::Payload;
use crate::process::{self, Cores, CpuTime, PinnedThread};
use crate::template::{Protocol, Template};
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use worker::Worker;

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As fast as replies come.
    Closed,
    /// This many operations per second over all connections.
    Rate(f64),
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// After a time; replies before and after the window are not counted.
    Time {
        /// Before the window.
        warmup: Duration,
        /// Length of the window.
        measured: Duration,
    },
    /// After this many operations, all counted.
    Operations(u64),
}

/// The parameters of a run.
pub struct Run<'a> {
    /// The server.
    pub address: &'a Address,
    /// How to log in on each connection.
    pub login: &'a Login,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its process, to read CPU time from; `None` when it is not on this machine.
    pub pid: Option<u32>,
    /// Connections over all threads.
    pub connections: usize,
    /// Threads of the generator.
    pub threads: usize,
    /// Requests in flight per connection.
    pub pipeline: usize,
    /// Closed loop or fixed rate.
    pub pace: Pace,
    /// When it ends.
    pub extent: Extent,
    /// Commands with their weights.
    pub commands: &'a [(Template, u32)],
    /// Written with the missed key after each nil reply, as an application with a cache does.
    pub fill: Option<&'a Template>,
    /// Which keys.
    pub keys: &'a KeyStream,
    /// Number of keys in `keys`.
    pub key_count: u64,
    /// The first key number that `{newkey}` takes.
    pub newest: u64,
    /// Which values.
    pub payload: &'a Payload,
    /// Field placeholders advance in order instead of being drawn.
    pub ordered_fields: bool,
    /// Fixes every random choice, per connection.
    pub seed: u64,
    /// Cores for the generator's threads.
    pub cores: Option<&'a Cores>,
    /// How long a fixed-rate run waits after its window for outstanding replies.
    pub drain: Duration,
    /// Ends the run, window included, as soon as it is set. Relaxed: it guards no other data.
    pub until: Option<&'a AtomicBool>,
}

/// The results of a run, over its window.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Replies received, those to fills included.
    pub operations: u64,
    /// Top-level nil replies to commands that were not fills.
    pub misses: u64,
    /// Requests sent to fill a miss.
    pub fills: u64,
    /// Error replies.
    pub errors: u64,
    /// The first error's text.
    pub first_error: Option<String>,
    /// Bytes of values sent, over the whole run.
    pub value_bytes: u64,
    /// Actual length of the window.
    pub elapsed: Duration,
    /// Latencies in nanoseconds.
    pub latency: Histogram<u64>,
    /// The server's CPU time in the window.
    pub server_cpu: Option<CpuTime>,
    /// The generator's own CPU time in the window, in microseconds.
    pub own_cpu_us: f64,
}

/// Progress of a run, for a progress bar.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// 0 to 1.
    pub fraction: f64,
    /// Operations done since the start.
    pub operations: u64,
}

/// How often the coordinator wakes, and how often an idle thread checks whether another one failed.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Latencies are recorded up to a minute, to three digits.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// An empty latency histogram with this crate's bounds.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, LATENCY_NS_MAX, 3).expect("constant bounds are valid")
}

/// Runs the load and waits for its end, calling `watch` about every 50 ms.
///
/// # Errors
/// A connection cannot be opened or breaks, the server does not speak RESP, or its process cannot be examined.
pub fn run(run: &Run<'_>, watch: &mut dyn FnMut(Progress)) -> Result<Totals> {
    let threads = run.threads.clamp(1, run.connections.max(1));
    let mut shares: Vec<Vec<(usize, Socket)>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, socket) in open_connections(run)?.into_iter().enumerate() {
        shares[index % threads].push((index, socket));
    }
    let shared = Shared {
        counters: (0..threads).map(|_| Counters::default()).collect(),
        newest: AtomicU64::new(run.newest),
        stop: AtomicBool::new(false),
        running: AtomicU64::new(threads as u64),
    };
    let _pinned = PinnedThread::new(run.cores)?;
    let origin = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = shares
            .into_iter()
            .enumerate()
            .map(|(at, share)| {
                let shared = &shared;
                scope.spawn(move || {
                    let ended = Worker::new(run, shared, at, threads, share, origin).and_then(Worker::drive);
                    if ended.is_err() {
                        shared.stop.store(true, Ordering::Relaxed);
                    }
                    shared.running.fetch_sub(1, Ordering::Release);
                    ended
                })
            })
            .collect();
        let window = coordinate(run, &shared, origin, watch);
        if window.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        let mut latency = new_histogram();
        let mut finished = origin;
        let mut first_error = None;
        let mut failed = None;
        for worker in workers {
            match worker.join().expect("a generator thread does not panic") {
                Ok(mut end) => {
                    latency.add(&end.latency).expect("all histograms have the same bounds");
                    finished = finished.max(end.finished);
                    first_error = first_error.or(end.first_error.take());
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let window = window?;
        if let Some(error) = failed {
            return Err(error);
        }
        let elapsed = match run.extent {
            Extent::Time { .. } => window.elapsed,
            Extent::Operations(_) => finished - origin,
        };
        Ok(Totals {
            operations: window.count.operations,
            misses: window.count.misses,
            fills: window.count.fills,
            errors: window.count.errors,
            first_error,
            value_bytes: shared.counters.iter().map(|each| each.value_bytes.load(Ordering::Relaxed)).sum(),
            elapsed,
            latency,
            server_cpu: window.server_cpu,
            own_cpu_us: window.own_cpu_us,
        })
    })
}

fn open_connections(run: &Run<'_>) -> Result<Vec<Socket>> {
    let mut sockets = Vec::with_capacity(run.connections);
    while sockets.len() < run.connections {
        match Client::connect(run.address, run.login) {
            Ok(client) => sockets.push(client.into_socket()),
            Err(BenchError::Connect { source, .. }) if source.raw_os_error() == Some(EMFILE) => {
                return Err(BenchError::Descriptors {
                    address: run.address.to_string(),
                    opened: sockets.len(),
                    limit: process::raise_descriptor_limit(),
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
}

const EMFILE: i32 = rustix::io::Errno::MFILE.raw_os_error();

/// What the threads of one run share.
struct Shared {
    counters: Vec<Counters>,
    /// Keys that exist by now; raised by `{newkey}`.
    newest: AtomicU64,
    /// Set when a thread or the coordinator failed. Relaxed: it guards no other data.
    stop: AtomicBool,
    /// Threads still at work.
    running: AtomicU64,
}

/// One thread's counts, written by it alone, read by the coordinator. Relaxed: each is meaningful alone.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    operations: AtomicU64,
    misses: AtomicU64,
    fills: AtomicU64,
    errors: AtomicU64,
    value_bytes: AtomicU64,
}

#[derive(Clone, Copy, Default)]
struct Count {
    operations: u64,
    misses: u64,
    fills: u64,
    errors: u64,
}

impl Shared {
    fn count(&self) -> Count {
        let sum = |field: fn(&Counters) -> &AtomicU64| -> u64 {
            self.counters.iter().map(|counters| field(counters).load(Ordering::Relaxed)).sum()
        };
        Count {
            operations: sum(|counters| &counters.operations),
            misses: sum(|counters| &counters.misses),
            fills: sum(|counters| &counters.fills),
            errors: sum(|counters| &counters.errors),
        }
    }
}

/// The figures between the edges of the window.
struct Window {
    count: Count,
    elapsed: Duration,
    server_cpu: Option<CpuTime>,
    own_cpu_us: f64,
}

/// Counters and clocks, read together.
struct Edge {
    at: Instant,
    count: Count,
    server: Option<CpuTime>,
    own_us: f64,
}

impl Edge {
    fn read(run: &Run<'_>, shared: &Shared) -> Result<Self> {
        let server = run.pid.map(process::cpu_time).transpose()?;
        Ok(Self { at: Instant::now(), count: shared.count(), server, own_us: process::own_cpu_us() })
    }

    fn since(&self, earlier: &Self) -> Window {
        Window {
            count: Count {
                operations: self.count.operations - earlier.count.operations,
                misses: self.count.misses - earlier.count.misses,
                fills: self.count.fills - earlier.count.fills,
                errors: self.count.errors - earlier.count.errors,
            },
            elapsed: self.at - earlier.at,
            server_cpu: self.server.zip(earlier.server).map(|(now, before)| now.since(before)),
            own_cpu_us: self.own_us - earlier.own_us,
        }
    }
}

/// Waits for the edges of the window while the threads work.
fn coordinate(run: &Run<'_>, shared: &Shared, origin: Instant, watch: &mut dyn FnMut(Progress)) -> Result<Window> {
    let total = match run.extent {
        Extent::Time { warmup, measured } => warmup + measured,
        Extent::Operations(_) => Duration::ZERO,
    };
    let mut look_up_until = |until: Option<Instant>| -> Result<()> {
        loop {
            interrupt::check()?;
            if run.until.is_some_and(|until| until.load(Ordering::Relaxed)) {
                shared.stop.store(true, Ordering::Relaxed);
            }
            let now = Instant::now();
            let ended = shared.running.load(Ordering::Acquire) == 0 || shared.stop.load(Ordering::Relaxed);
            if ended || until.is_some_and(|until| now >= until) {
                return Ok(());
            }
            let operations = shared.count().operations;
            let fraction = match run.extent {
                Extent::Time { .. } => (now - origin).as_secs_f64() / total.as_secs_f64(),
                Extent::Operations(count) => operations as f64 / count.max(1) as f64,
            };
            watch(Progress { fraction, operations });
            std::thread::sleep(until.map_or(LOOK_UP, |until| (until - now).min(LOOK_UP)));
        }
    };
    match run.extent {
        Extent::Time { warmup, .. } => {
            look_up_until(Some(origin + warmup))?;
            let start = Edge::read(run, shared)?;
            look_up_until(Some(origin + total))?;
            Ok(Edge::read(run, shared)?.since(&start))
        }
        Extent::Operations(_) => {
            let start = Edge { at: origin, count: Count::default(), ..Edge::read(run, shared)? };
            look_up_until(None)?;
            Ok(Edge::read(run, shared)?.since(&start))
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
