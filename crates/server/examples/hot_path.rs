//! What a request costs between the bytes that were read and the bytes to be sent: parser, batch, locks, engine, reply, without
//! sockets. Best of some rounds, in nanoseconds of this thread's CPU time; for counts of instructions, run it under callgrind.
//!
//!     cargo run --release -p onggi-server --example hot_path -- [KEYS [VALUE_BYTES [ROUNDS [SHARDS [ONLY]]]]]

use admin::{CommandLog, LatencyMonitor};
use base::random::SeededEntropy;
use base::{Clock as _, Rng};
use command::limits::{SparseLimit, StampMeaning, StringLimit};
use command::pause::Pause;
use command::stats::WorkerStats;
use command::{CommandTable, Host, Session};
use config::Settings;
use parking_lot::RwLock;
use server::connection::Connection;
use server::executor::{ClientLimits, Executor, Shared};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use store::shard::ShardEngine;
use store::{Store, StoreOptions, Wake, WorkerSet};

const CONNECTIONS: usize = 50;
/// Requests of a round.
const ROUND_REQUESTS: usize = 400_000;

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

fn executor(shard_count: usize) -> Executor {
    let clock = Arc::new(base::clock::SystemClock::new());
    let store = Arc::new(Store::new(StoreOptions {
        shard_count,
        database_count: 16,
        clock: clock.clone(),
        entropy: Arc::new(SeededEntropy::new(1)),
        wake: Arc::new(NobodyWaits),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    }));
    let table = Arc::new(CommandTable::new(command::redis::FAMILIES));
    let stats = Arc::new(WorkerStats::new(table.rows().len()));
    let settings = Settings::default();
    let host = Host::default()
        .with(StringLimit::default())
        .with(SparseLimit::default())
        .with(StampMeaning::default())
        .with(Pause::default());
    let log = Arc::new(CommandLog::new(&settings, Arc::new(LatencyMonitor::new(&settings))));
    let shared = Arc::new(Shared {
        store,
        table,
        host,
        log,
        monitors: AtomicUsize::new(0),
        show: Box::new(|_| {}),
        outlets: Arc::new(push::Outlets::new(1, |_| {})),
        limits: RwLock::new(ClientLimits::of(&settings)),
    });
    let mut executor = Executor::new(0, shared, stats);
    for id in 0..CONNECTIONS {
        executor.open(Connection::new(Session::new(id as u64 + 1, true, clock.now_ms())));
    }
    executor
}

/// Sends each connection one buffer, runs all, and drops the replies.
#[inline(never)]
fn turn(executor: &mut Executor, buffers: &[Vec<u8>]) {
    executor.begin_turn();
    for (client, bytes) in buffers.iter().enumerate() {
        executor
            .receive(client, |room| {
                room[..bytes.len()].copy_from_slice(bytes);
                Ok::<_, Infallible>(bytes.len())
            })
            .unwrap_or_else(|never| match never {});
    }
    executor.run_batch();
    let mut ids = Vec::new();
    executor.take_to_send(&mut ids);
    for id in ids {
        let reply = &mut executor.connection(id).expect("connections stay open here").reply;
        let length = reply.len();
        reply.advance(length);
    }
}

fn buffers(pipeline: usize, mut request: impl FnMut(&mut Vec<u8>)) -> Vec<Vec<Vec<u8>>> {
    let turns = ROUND_REQUESTS.div_ceil(pipeline * CONNECTIONS);
    let mut buffer = || {
        let mut bytes = Vec::new();
        (0..pipeline).for_each(|_| request(&mut bytes));
        bytes
    };
    (0..turns).map(|_| (0..CONNECTIONS).map(|_| buffer()).collect()).collect()
}

/// CPU time of this thread, as the scheduler counts it.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.expect("three numbers"))
}

fn main() {
    let only = std::env::args().nth(5);
    let mut arguments = std::env::args().skip(1).take(4).map(|text| text.parse::<usize>().expect("a number"));
    let keys = arguments.next().unwrap_or(1_000_000);
    let value = "x".repeat(arguments.next().unwrap_or(64));
    let rounds = arguments.next().unwrap_or(7);
    let shards = arguments.next().unwrap_or(64);
    let mut executor = executor(shards);
    let set = |bytes: &mut Vec<u8>, key: u64| {
        bytes.extend(format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:{key:012}\r\n${}\r\n{value}\r\n", value.len()).bytes());
    };
    let mut next = 0;
    while next < keys as u64 {
        let mut load = || {
            let mut bytes = Vec::new();
            for _ in 0..16 {
                set(&mut bytes, next);
                next += 1;
            }
            bytes
        };
        let all: Vec<Vec<u8>> = (0..CONNECTIONS).map(|_| load()).collect();
        turn(&mut executor, &all);
    }
    // What workers do between batches: here, merging the memory just filled into huge pages.
    (0..shards as u16).for_each(|shard| while executor.upkeep(base::ShardId(shard)) {});
    let mut rng = Rng::new(1);
    for pipeline in [1, 16, 64] {
        for name in ["GET", "SET"] {
            if only.as_ref().is_some_and(|only| *only != format!("{name}{pipeline}")) {
                continue;
            }
            let turns = buffers(pipeline, |bytes| {
                let key = rng.below(keys as u64);
                match name {
                    "GET" => bytes.extend(format!("*2\r\n$3\r\nGET\r\n$16\r\nkey:{key:012}\r\n").bytes()),
                    _ => set(bytes, key),
                }
            });
            let best = (0..rounds)
                .map(|_| {
                    let before = thread_time();
                    turns.iter().for_each(|buffers| turn(&mut executor, buffers));
                    (thread_time() - before).as_secs_f64() * 1e9 / (turns.len() * CONNECTIONS * pipeline) as f64
                })
                .fold(f64::INFINITY, f64::min);
            println!("{name} pipeline {pipeline:2}: {best:6.1} ns");
        }
    }
}
