//! A server without sockets, for examples that measure what a request costs between the bytes that were read and the
//! bytes to be sent: parser, batch, locks, engine, reply.

// Each example uses a part of this module.
#![allow(dead_code)]

pub mod on_tier;

use base::Clock as _;
use base::random::SeededEntropy;
use command::Session;
use config::Settings;
use server::assembly::ServerBuilder;
use server::connection::Connection;
use server::executor::Executor;
use server::fetching::{Fetches, RowThreads};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use store::{Store, Wake, WorkerSet};

/// Clients, each of which sends one buffer a turn.
pub const CONNECTIONS: usize = 50;
/// Requests of a round.
pub const ROUND_REQUESTS: usize = 400_000;

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

/// A worker with its connections, over a store of `shard_count` shards, without a log.
pub fn executor(shard_count: usize) -> Executor {
    executor_with(shard_count, Settings::default())
}

/// The same with these settings of the command log and of clients.
pub fn executor_with(shard_count: usize, settings: Settings) -> Executor {
    executor_on(shard_count, settings, |_| ())
}

/// The same with a store that `prepare` has prepared, still empty.
pub fn executor_on(shard_count: usize, settings: Settings, prepare: impl FnOnce(&Arc<Store>)) -> Executor {
    let clock = Arc::new(base::clock::SystemClock::new());
    let shards = u32::try_from(shard_count).expect("few shards");
    let settings = Settings { shards, workers: 1, ..settings };
    let entropy = Arc::new(SeededEntropy::new(1));
    let assembly = ServerBuilder::new(settings, clock.clone(), entropy, Arc::new(NobodyWaits)).assemble();
    prepare(&assembly.store);
    let stats = assembly.workers[0].stats.clone();
    let fetches = Fetches::new(Box::new(RowThreads::new()), |_, _| {});
    let shared = assembly.finish(Box::new(()), fetches, Box::new(|_| {})).expect("default users");
    let mut executor = Executor::new(0, shared, stats);
    // No next turn would continue them; under a tool that counts instructions all batches are long.
    executor.limit_batches(u64::MAX);
    for id in 0..CONNECTIONS {
        executor.open(Connection::new(Session::new(id as u64 + 1, true, clock.now_ms())));
    }
    executor
}

/// Sends each connection one buffer, runs all, and drops the replies.
#[inline(never)]
pub fn turn(executor: &mut Executor, buffers: &[Vec<u8>]) {
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

/// A round: for each turn a buffer of `pipeline` requests for each connection.
pub fn buffers(pipeline: usize, mut request: impl FnMut(&mut Vec<u8>)) -> Vec<Vec<Vec<u8>>> {
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

/// What workers do between batches: here, merging the memory just filled into huge pages.
pub fn settle(executor: &mut Executor, shards: usize) {
    while executor.merge_pages() {}
    (0..shards as u16).for_each(|shard| while executor.upkeep(base::ShardId(shard)) {});
}

/// Runs a round so often and gives the least time of one of its requests, in nanoseconds.
pub fn best_of(executor: &mut Executor, rounds: usize, turns: &[Vec<Vec<u8>>], pipeline: usize) -> f64 {
    let mut once = || {
        let before = thread_time();
        turns.iter().for_each(|buffers| turn(executor, buffers));
        (thread_time() - before).as_secs_f64() * 1e9 / (turns.len() * CONNECTIONS * pipeline) as f64
    };
    (0..rounds).map(|_| once()).fold(f64::INFINITY, f64::min)
}
