//! Startup and shutdown.

use crate::executor::Shared;
use crate::listen::{Listener, accept_loop};
use crate::mailbox::Mailbox;
use crate::worker::{Message, Worker};
use base::Entropy;
use base::clock::SystemClock;
use command::stats::WorkerStats;
use command::{CommandTable, Host, Session};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use store::shard::ShardEngine;
use store::{Store, StoreOptions, Wake, WorkerSet};

/// What a server is started with.
pub struct Options {
    /// Worker threads, at least 1.
    pub worker_count: usize,
    /// Shards.
    pub shard_count: usize,
    /// Databases.
    pub database_count: u32,
}

/// Longest stretch of upkeep between two turns of a worker's loop.
const UPKEEP_SLICE: Duration = Duration::from_micros(100);

/// Time between the beginnings of two rounds of upkeep: an expired entry's memory is back after a little more than this.
const UPKEEP_PERIOD: Duration = Duration::from_millis(100);

/// Wakes workers through their mailboxes.
#[derive(Default)]
struct WakeWorkers(OnceLock<Vec<Arc<Mailbox<Message>>>>);

impl Wake for WakeWorkers {
    fn wake(&self, workers: WorkerSet) {
        let mailboxes = self.0.get().map(Vec::as_slice).unwrap_or_default();
        mailboxes.iter().enumerate().filter(|(number, _)| workers.contains(*number)).for_each(|(_, it)| it.wake());
    }
}

/// Runs a server on these listeners until `stop` is set.
///
/// # Errors
/// When threads or event queues cannot be made.
pub fn serve(
    options: &Options,
    listeners: Vec<Listener>,
    entropy: Arc<dyn Entropy>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let wake = Arc::new(WakeWorkers::default());
    let store = Arc::new(Store::new(StoreOptions {
        shard_count: options.shard_count,
        database_count: options.database_count,
        clock: Arc::new(SystemClock::new()),
        entropy,
        wake: wake.clone(),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    }));
    let table = CommandTable::new(command::redis::FAMILIES);
    let row_count = table.rows().len();
    let shared = Arc::new(Shared { store: store.clone(), table, host: Host::default() });

    let queues = (0..options.worker_count).map(|_| Worker::event_queue()).collect::<io::Result<Vec<_>>>()?;
    let mailboxes: Vec<_> = queues.iter().map(|(_, mailbox)| mailbox.clone()).collect();
    let _ = wake.0.set(mailboxes.clone());

    thread::scope(|scope| {
        for (number, (poll, mailbox)) in queues.into_iter().enumerate() {
            let upkeep = upkeep(store.clone(), number, options.worker_count);
            let stats = Arc::new(WorkerStats::new(row_count));
            let worker = Worker::new(number, poll, mailbox, shared.clone(), stats, upkeep);
            thread::Builder::new().name(format!("worker-{number}")).spawn_scoped(scope, || worker.run())?;
        }
        let (ids, mut next) = (AtomicU64::new(1), 0);
        let deal = |socket| {
            let session = Session::new(ids.fetch_add(1, Ordering::Relaxed), true, store.clock.now_ms());
            mailboxes[next % mailboxes.len()].send(Message::Accept(socket, Box::new(session)));
            next += 1;
        };
        let result = accept_loop(listeners, deal, || stop.load(Ordering::Acquire));
        mailboxes.iter().for_each(|mailbox| mailbox.send(Message::Stop));
        result
    })
}

/// The upkeep of one worker's share of the shards: a round over them every [`UPKEEP_PERIOD`], a slice a call. True when
/// there is more to do at once.
fn upkeep(store: Arc<Store>, worker: usize, worker_count: usize) -> Box<dyn FnMut() -> bool + Send> {
    let shards: Vec<_> = store.shard_ids().skip(worker).step_by(worker_count).collect();
    let mut scratch = store::Scratch::default();
    let (mut next, mut round_at) = (0, Instant::now());
    Box::new(move || {
        let start = Instant::now();
        if next == 0 && start.duration_since(round_at) < UPKEEP_PERIOD {
            return false;
        }
        if next == 0 {
            round_at = start;
        }
        // A shard with more to do is stayed with; the round goes on in the next slice.
        while next < shards.len() {
            if !store.upkeep(shards[next], worker, &mut scratch) {
                next += 1;
            }
            if start.elapsed() >= UPKEEP_SLICE {
                return true;
            }
        }
        next = 0;
        false
    })
}
