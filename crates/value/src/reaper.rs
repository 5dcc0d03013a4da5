//! Where the chunks of big collections are freed: a thread of its own, since a million of them take longer than any command
//! may (V4). Another frees long strings and the like.
//!
//! ```text
//! reaper: free 512 chunks -> next batch, once every worker has tidied up, or has had time to
//! worker: turn begins -> has a batch been freed? -> tidy: one request that has the allocator sort them
//! ```
//!
//! A freed chunk goes back to the arena of the thread that allocated it, and the C library's `malloc` sorts what has come back to an
//! arena when that thread asks for memory next: up to ten thousand chunks in each call, a millisecond or more, and on and on while
//! there are more. So chunks are freed no faster than workers have them sorted, some at the beginning of a turn.

use std::any::Any;
use std::borrow::Borrow;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Chunks freed in a batch: sorting them takes a worker some tens of microseconds.
const BATCH_CHUNKS: usize = 512;

/// So long the reaper waits for a worker that does not begin a turn: it is idle, or about something long.
const PATIENCE: Duration = Duration::from_millis(50);

/// How often it looks.
const LOOKS_EVERY: Duration = Duration::from_micros(50);

/// A request that no free list holds just so, and for which the allocator therefore sorts what was freed.
const TIDYING_BYTES: usize = 48 << 10;

/// Batches freed so far by the process.
static BATCHES: AtomicU64 = AtomicU64::new(0);

/// The batches that each worker has tidied up after.
static WORKERS: Mutex<Vec<Weak<AtomicU64>>> = Mutex::new(Vec::new());

/// Something that is freed in steps.
pub trait Garbage: Send {
    /// Frees some chunks and gives how many; 0 when nothing is left.
    fn free_some(&mut self) -> usize;
}

/// Bytes that are freed elsewhere: what goes back to the system takes time in proportion to it, 1.5 ms for 15 MB.
const BYTES_MIN: usize = 1 << 20;

/// What is on its way to a thread; `None` when the system grants none.
type Queue<T> = OnceLock<Option<Sender<T>>>;

/// Sends `garbage` to the thread that frees such, begun by the first. Gives it back when there is none.
fn send<T: Send + 'static>(queue: &Queue<T>, name: &str, free: fn(T), garbage: T) -> Result<(), T> {
    let begin = || {
        let (sender, receiver) = mpsc::channel::<T>();
        let run = move || receiver.into_iter().for_each(free);
        std::thread::Builder::new().name(name.to_owned()).spawn(run).ok().map(|_| sender)
    };
    match queue.get_or_init(begin) {
        // The thread ends with the process only.
        Some(sender) => sender.send(garbage).map_err(|unsent| unsent.0),
        None => Err(garbage),
    }
}

/// Drops `garbage`, which is few chunks, on a thread for such, soon. On the caller's when the system grants no thread.
pub fn free(garbage: Box<dyn Any + Send>) {
    // Its own queue: long ones do not wait behind millions of chunks.
    static LONG: Queue<Box<dyn Any + Send>> = OnceLock::new();
    drop(send(&LONG, "reaper-long", drop, garbage));
}

/// Drops bytes, shared or not: if they are many, by [`free`].
#[inline]
pub fn free_bytes<B: Borrow<Vec<u8>> + Send + 'static>(bytes: B) {
    if bytes.borrow().capacity() >= BYTES_MIN {
        free(Box::new(bytes));
    }
}

/// Frees what is many chunks, batch by batch, on the reaper's thread. On the caller's when the system grants none.
pub fn free_in_steps(garbage: Box<dyn Garbage>) {
    static CHUNKS: Queue<Box<dyn Garbage>> = OnceLock::new();
    if let Err(mut garbage) = send(&CHUNKS, "reaper", reap, garbage) {
        while garbage.free_some() > 0 {}
    }
}

/// Frees all of it, at the pace at which workers tidy up.
fn reap(mut garbage: Box<dyn Garbage>) {
    let mut freed = 0;
    loop {
        let some = garbage.free_some();
        freed += some;
        if some == 0 || freed >= BATCH_CHUNKS {
            if freed >= BATCH_CHUNKS {
                await_workers(BATCHES.fetch_add(1, Release) + 1);
            }
            freed = 0;
        }
        if some == 0 {
            return;
        }
    }
}

/// Waits until every worker has tidied up after this many batches, but not for ever.
fn await_workers(batches: u64) {
    let workers: Vec<_> = {
        let mut workers = WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| worker.strong_count() > 0);
        workers.clone()
    };
    let since = Instant::now();
    let lags = |worker: &Weak<AtomicU64>| worker.upgrade().is_some_and(|tidied| tidied.load(Acquire) < batches);
    while workers.iter().any(lags) && since.elapsed() < PATIENCE {
        std::thread::sleep(LOOKS_EVERY);
    }
}

/// A thread that allocates what the reaper frees, and has not much time.
#[derive(Debug)]
pub struct Worker {
    tidied: Arc<AtomicU64>,
}

impl Default for Worker {
    fn default() -> Self {
        let tidied = Arc::new(AtomicU64::new(BATCHES.load(Acquire)));
        WORKERS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&tidied));
        Self { tidied }
    }
}

impl Worker {
    /// Has the allocator sort what was freed since the last call, on the worker's own thread. Costs a load when nothing was. True
    /// when there was something, so that more is to be expected soon.
    #[inline]
    pub fn tidy(&self) -> bool {
        let batches = BATCHES.load(Acquire);
        batches != self.tidied.load(Relaxed) && self.tidy_after(batches)
    }

    #[cold]
    fn tidy_after(&self, batches: u64) -> bool {
        std::hint::black_box(Vec::<u8>::with_capacity(TIDYING_BYTES));
        self.tidied.store(batches, Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks that count themselves when they are freed.
    struct Counted(Arc<AtomicU64>, usize);

    impl Garbage for Counted {
        fn free_some(&mut self) -> usize {
            let some = self.1.min(100);
            self.1 -= some;
            self.0.fetch_add(some as u64, SeqCst);
            some
        }
    }

    /// Long strings are freed while the reaper still waits for workers, and none of them by the caller.
    #[test]
    fn long_strings_do_not_wait_behind_chunks() {
        /// Frees nothing until its other end is gone.
        struct Stuck(std::sync::mpsc::Receiver<()>);
        impl Garbage for Stuck {
            fn free_some(&mut self) -> usize {
                // Until the test is over.
                let _ended = self.0.recv();
                0
            }
        }
        let (held, told) = mpsc::channel();
        free_in_steps(Box::new(Stuck(told)));
        let bytes = Arc::new(vec![1; BYTES_MIN]);
        let gone = Arc::downgrade(&bytes);
        free_bytes(bytes);
        let since = Instant::now();
        while gone.strong_count() > 0 {
            assert!(since.elapsed() < Duration::from_secs(60), "it is freed in the end");
            std::thread::yield_now();
        }
        drop(held);
    }

    /// Garbage is freed batch by batch: no faster than a worker tidies up, and all of it in the end, also when there is a worker
    /// that never does.
    #[test]
    fn batches_wait_for_workers() {
        let (worker, idle) = (Worker::default(), Worker::default());
        let freed = Arc::new(AtomicU64::new(0));
        let all = 5 * BATCH_CHUNKS;
        free_in_steps(Box::new(Counted(freed.clone(), all)));
        let (mut tidied, since) = (0, Instant::now());
        while freed.load(SeqCst) < all as u64 {
            assert!(since.elapsed() < Duration::from_secs(60), "it is freed in the end");
            tidied += usize::from(worker.tidy());
            std::thread::yield_now();
        }
        assert!(tidied > 0, "there was something to tidy up after");
        assert!(idle.tidy() && !idle.tidy());
    }
}
