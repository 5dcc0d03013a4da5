//! What the keeper asks of the workers, since only they take shard locks.
//!
//! ```text
//! keeper: run(job), waits  --->  Work  <--- worker: step, in the slices of its upkeep
//! ```
//!
//! W1. At most one job at a time: only the keeper asks, and it waits for the end of what it asked.
//! W2. A worker that finds nothing to do has read one atomic.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest wait of the keeper before it looks around.
const PATIENCE: Duration = Duration::from_millis(20);

/// A job that needs shard locks. Says whether it could take them: when not, it has done nothing and is called again.
pub(crate) type Job = Box<dyn FnMut() -> bool + Send>;

/// The job in hand.
pub(crate) struct Work {
    is_asked: AtomicBool,
    job: Mutex<Option<Job>>,
    done: Condvar,
    /// No worker will run any job any more.
    ended: AtomicBool,
}

/// The workers have ended before they did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server is ending")]
pub struct Ended;

impl Work {
    /// Nothing to do.
    pub fn new() -> Self {
        Self {
            is_asked: AtomicBool::new(false),
            job: Mutex::new(None),
            done: Condvar::new(),
            ended: AtomicBool::new(false),
        }
    }

    /// Has a worker run the job, and waits until it has. `wake` wakes the workers.
    ///
    /// # Errors
    /// [`Ended`]: the job was not run, and never will be.
    pub fn run(&self, job: Job, wake: &dyn Fn()) -> Result<(), Ended> {
        let mut place = self.job.lock();
        *place = Some(job);
        self.is_asked.store(true, Ordering::Release);
        loop {
            wake();
            self.done.wait_for(&mut place, PATIENCE);
            if place.is_none() {
                return Ok(());
            }
            if self.ended.load(Ordering::Acquire) {
                self.is_asked.store(false, Ordering::Relaxed);
                *place = None;
                return Err(Ended);
            }
        }
    }

    /// Waits until the condition holds, which workers bring about and announce.
    ///
    /// # Errors
    /// [`Ended`]: no worker will bring it about any more.
    pub fn wait_until(&self, condition: impl Fn() -> bool) -> Result<(), Ended> {
        let mut place = self.job.lock();
        while !condition() {
            if self.ended.load(Ordering::Acquire) {
                return Err(Ended);
            }
            self.done.wait_for(&mut place, PATIENCE);
        }
        Ok(())
    }

    /// Says that what the keeper waits for may have come.
    pub fn announce(&self) {
        self.done.notify_all();
    }

    /// Whether there is a job.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Runs the job, if there is one. True when there is more to do at once.
    #[inline]
    pub fn step(&self) -> bool {
        self.is_asked() && self.try_job()
    }

    #[cold]
    fn try_job(&self) -> bool {
        // One worker is enough.
        let Some(mut place) = self.job.try_lock() else { return false };
        let Some(job) = place.as_mut() else { return false };
        if job() {
            *place = None;
            self.is_asked.store(false, Ordering::Relaxed);
            self.done.notify_all();
        }
        true
    }

    /// From now on no worker runs a job: a request for one fails.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    /// A job that cannot take its locks at first is tried again, and runs once.
    #[test]
    fn a_job_runs_once() {
        let work = Arc::new(Work::new());
        let runs = Arc::new(AtomicUsize::new(0));
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let work = work.clone();
                std::thread::spawn(move || {
                    while !work.ended.load(Ordering::Acquire) {
                        work.step();
                        std::thread::yield_now();
                    }
                })
            })
            .collect();
        let (mut tries, counted) = (0, runs.clone());
        let job = move || {
            tries += 1;
            if tries == 3 {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            tries == 3
        };
        assert_eq!(work.run(Box::new(job), &|| {}), Ok(()));
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        work.end();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    }

    #[test]
    fn nobody_is_there_any_more() {
        let work = Work::new();
        work.end();
        assert_eq!(work.run(Box::new(|| true), &|| {}), Err(Ended));
        assert!(!work.step());
    }
}
