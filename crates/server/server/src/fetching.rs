//! Reads of rows that are not in memory: workers ask for them, separate threads make them.
//!
//! ```text
//! worker: command lacks rows -> fetch(want) -----> RowIo: a thread reads the row -----> mailboxes of all waiters
//!            ^                     '- already being read: waits with the others                    |
//!            '------------- install under the shard's lock, run the command again <----------------'
//! ```
//!
//! O1. One read serves all waiters of the row (`Ticket`). They are notified in the order in which they asked.
//! O2. A thread that reads takes no lock of a shard: the notified worker installs the row.

use base::ShardId;
use engine::Ticket;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use store::Want;

/// Threads that read rows at most: what one device serves side by side.
const THREADS_MAX: usize = 16;

/// What a read has found: the row, nothing, or why it failed.
pub type Found = Result<Option<Arc<[u8]>>, Arc<str>>;

/// A row that has come for a worker.
pub struct Fetched {
    /// The number under which the worker asked.
    pub number: u64,
    /// What it asked for.
    pub want: Want,
    /// What was found.
    pub found: Found,
    /// How long it took, with the wait for a thread.
    pub took: Duration,
}

/// Has reads made, each by [`Read::run`]. A seam for tests, which choose when a row comes.
pub trait RowIo: Send + Sync {
    /// Has the read made some time, by a thread that may wait for a device.
    fn submit(&self, read: Read);
}

/// A waiter for a row.
struct Waiter {
    worker: usize,
    number: u64,
}

/// All rows that are being read, and their waiters.
pub struct Fetches {
    waiters: Mutex<HashMap<(ShardId, Ticket), Vec<Waiter>>>,
    io: Box<dyn RowIo>,
    tell: Box<dyn Fn(usize, Fetched) + Send + Sync>,
}

impl Fetches {
    /// Reads by `io`; `tell` gives a worker the rows that have arrived for it.
    pub fn new(io: Box<dyn RowIo>, tell: impl Fn(usize, Fetched) + Send + Sync + 'static) -> Self {
        Self { waiters: Mutex::default(), io, tell: Box::new(tell) }
    }

    /// Has a row read for a worker, which is notified under this number.
    pub fn fetch(self: &Arc<Self>, want: &Want, worker: usize, number: u64) {
        let waiter = Waiter { worker, number };
        let mut waiters = self.waiters.lock();
        let of_row = waiters.entry((want.shard, want.ticket)).or_default();
        of_row.push(waiter);
        if of_row.len() == 1 {
            drop(waiters);
            self.io.submit(Read { fetches: self.clone(), want: want.clone(), since: Instant::now() });
        }
    }

    fn end(&self, want: &Want, found: &Found, took: Duration) {
        let waiters = self.waiters.lock().remove(&(want.shard, want.ticket)).unwrap_or_default();
        for Waiter { worker, number } in waiters {
            (self.tell)(worker, Fetched { number, want: want.clone(), found: found.clone(), took });
        }
    }
}

/// One read of a row.
pub struct Read {
    fetches: Arc<Fetches>,
    want: Want,
    since: Instant,
}

impl Read {
    /// Reads the row and notifies every waiter. May wait for a device.
    pub fn run(self) {
        let found = match self.want.read() {
            Ok(row) => Ok(row.map(Arc::from)),
            Err(text) => {
                tracing::error!("{text}");
                Err(text.into())
            }
        };
        self.fetches.end(&self.want, &found, self.since.elapsed());
    }
}

/// Threads that read rows. They begin when there are reads, and end with this.
pub struct RowThreads(Arc<Pool>);

#[derive(Default)]
struct Pool {
    state: Mutex<PoolState>,
    changed: Condvar,
}

#[derive(Default)]
struct PoolState {
    reads: VecDeque<Read>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl RowThreads {
    /// No thread yet.
    pub fn new() -> Self {
        Self(Arc::default())
    }
}

impl Default for RowThreads {
    fn default() -> Self {
        Self::new()
    }
}

impl RowIo for RowThreads {
    fn submit(&self, read: Read) {
        let mut state = self.0.state.lock();
        state.reads.push_back(read);
        if state.idle < state.reads.len() && state.threads < THREADS_MAX {
            let pool = self.0.clone();
            match thread::Builder::new().name(format!("rows-{}", state.threads)).spawn(move || pool.read_rows()) {
                Ok(_) => state.threads += 1,
                // Those that run already take it.
                Err(_) if state.threads > 0 => {}
                Err(error) => {
                    tracing::error!("no thread for reads of rows: {error}; the worker reads");
                    let read = state.reads.pop_back();
                    drop(state);
                    return read.into_iter().for_each(Read::run);
                }
            }
        }
        self.0.changed.notify_one();
    }
}

impl Drop for RowThreads {
    fn drop(&mut self) {
        self.0.state.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Pool {
    fn read_rows(&self) {
        let mut state = self.state.lock();
        while !state.is_closed {
            match state.reads.pop_front() {
                Some(read) => {
                    drop(state);
                    read.run();
                    state = self.state.lock();
                }
                None => {
                    state.idle += 1;
                    self.changed.wait(&mut state);
                    state.idle -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::KeyspaceId;
    use engine::SortedRows;
    use std::sync::mpsc::channel;

    fn want(number: u64, rows: &Arc<SortedRows>) -> Want {
        let (key, ticket) = (number.to_string().into_bytes().into(), Ticket(number));
        Want {
            shard: ShardId(0),
            space: KeyspaceId(0),
            hash: number,
            key,
            ticket,
            rows: Some(rows.clone()),
            is_loaded: false,
            leaf: None,
        }
    }

    /// Every waiter is notified under its number, though threads begin and share reads in any order.
    #[test]
    fn everybody_who_waits_for_a_row_is_told() {
        const ROWS: u64 = 200;
        let (sender, receiver) = channel();
        let tell = move |worker, fetched: Fetched| sender.send((worker, fetched)).expect("the test listens");
        let fetches = Arc::new(Fetches::new(Box::new(RowThreads::new()), tell));
        let rows = SortedRows::new();
        for number in 0..ROWS {
            (0..3).for_each(|worker| fetches.fetch(&want(number, &rows), worker, number));
        }
        let mut told = vec![0; 3];
        for _ in 0..3 * ROWS {
            let (worker, fetched) = receiver.recv().expect("somebody is still to be told");
            assert_eq!((fetched.number, fetched.found), (fetched.want.ticket.0, Ok(None)));
            told[worker] += 1;
        }
        assert_eq!(told, [ROWS; 3]);
    }

    #[test]
    fn a_read_that_fails_is_told_with_its_reason() {
        let (sender, receiver) = channel();
        let tell = move |_, fetched: Fetched| sender.send(fetched.found).expect("the test listens");
        let fetches = Arc::new(Fetches::new(Box::new(RowThreads::new()), tell));
        let rows = SortedRows::new();
        rows.set_failing(true);
        fetches.fetch(&want(1, &rows), 0, 1);
        assert_eq!(
            receiver.recv().expect("it is told"),
            Err("the row of key '1' cannot be read: the test has reads fail".into())
        );
    }
}
