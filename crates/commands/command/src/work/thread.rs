//! Work on big collections that a separate thread does. Sorting, searching or converting ten million elements takes
//! seconds, and cannot always be interrupted and resumed.
//!
//! ```text
//! under the locks:  command --operands, shared, and what to make of them--> queue --> work thread: makes it
//! without locks:    its worker serves other clients; the thread wakes the connection when it is made
//! under the locks:  command runs again: the same operands? -> uses what was made    no, one was changed -> restarts
//! ```
//!
//! It is a [`Work`] like those that are done in steps, and F1 to F4 of that module hold for it as well. An operand that
//! the request itself contains never changes.

use crate::work::steps::Work;
use crate::{Ctx, Stop};
use engine::{SharedBig, SharedBytes};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use value::reaper;

/// How nice work threads are: workers come first where processors are short.
const NICENESS: i32 = 5;

/// Trees with fewer bytes of elements are worked on at once: in some tenths of a millisecond.
const CONTENT_BYTES_MIN: usize = 128 << 10;

/// What the work is done with.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A collection.
    Tree(SharedBig),
    /// A string.
    Bytes(SharedBytes),
    /// The request alone.
    Nothing,
    /// Copies of this many bytes, which the function holds.
    Copies(usize),
}

impl Operand {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tree(one), Self::Tree(other)) => SharedBig::ptr_eq(one, other),
            (Self::Bytes(one), Self::Bytes(other)) => SharedBytes::ptr_eq(one, other),
            (Self::Nothing, Self::Nothing) => true,
            _ => false,
        }
    }

    fn content_bytes(&self) -> usize {
        match self {
            Self::Tree(tree) => tree.content_bytes(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Nothing => 0,
            Self::Copies(bytes) => *bytes,
        }
    }
}

/// Work of a thread, and what came of it.
struct ThreadWork<T: Send + 'static> {
    of: Operand,
    outcome: Arc<Outcome<T>>,
}

/// What the thread and the request share.
struct Outcome<T> {
    made: Mutex<Option<T>>,
    /// It is over: something was made, or it failed by a bug.
    is_over: AtomicBool,
    /// No request waits for it any more.
    is_cancelled: AtomicBool,
}

/// Ends the work, even by a panic, and wakes the connection that waits for it.
struct Ending<T> {
    outcome: Arc<Outcome<T>>,
    wake: Option<Wake>,
}

type Wake = Box<dyn FnOnce() + Send>;

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        self.outcome.is_over.store(true, Release);
        if let Some(wake) = self.wake.take() {
            wake();
        }
    }
}

impl<T: Send + 'static> ThreadWork<T> {
    fn begin(pool: &'static Pool, of: Operand, make: impl FnOnce() -> T + Send + 'static, wake: Wake) -> Self {
        let flag = || AtomicBool::new(false);
        let outcome = Arc::new(Outcome { made: Mutex::new(None), is_over: flag(), is_cancelled: flag() });
        let ending = Ending { outcome: outcome.clone(), wake: Some(wake) };
        pool.run(Box::new(move || {
            if !ending.outcome.is_cancelled.load(Relaxed) {
                let made = make();
                *ending.outcome.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            }
        }));
        Self { of, outcome }
    }

    fn take(&self) -> Option<T> {
        self.outcome.made.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T: Send + 'static> Work for ThreadWork<T> {
    fn step(&mut self) -> bool {
        self.is_elsewhere()
    }

    /// About as much as it was made of.
    fn held_bytes(&self) -> usize {
        self.of.content_bytes()
    }

    fn is_elsewhere(&self) -> bool {
        !self.outcome.is_over.load(Acquire)
    }
}

impl<T: Send + 'static> Drop for ThreadWork<T> {
    fn drop(&mut self) {
        self.outcome.is_cancelled.store(true, Relaxed);
        // What comes after this, the thread drops.
        if let Some(made) = self.take() {
            reaper::free(Box::new(made));
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that do one kind of work. They begin with the first job, and end with the process.
struct Pool {
    name: &'static str,
    /// Jobs that are done at a time; others wait for their turn.
    threads: usize,
    queue: OnceLock<Option<Sender<Job>>>,
}

/// Work on big collections.
static LONG: Pool = Pool { name: "work", threads: 2, queue: OnceLock::new() };

/// Checking and making slow hashes of passwords. Each thread takes 20 MiB while it does. They are not those of the
/// work, so clients that guess passwords do not delay others' SORT.
static PASSWORDS: Pool = Pool { name: "password", threads: 2, queue: OnceLock::new() };

/// Reads of rows in the order of their names, which wait for a device.
static NAMES: Pool = Pool { name: "names", threads: 4, queue: OnceLock::new() };

impl Pool {
    /// Has a thread do it, soon; the caller does when the system grants no thread.
    fn run(&'static self, job: Job) {
        match self.queue.get_or_init(|| self.begin()) {
            Some(queue) => drop(queue.send(job)),
            None => job(),
        }
    }

    fn begin(&self) -> Option<Sender<Job>> {
        let (sender, receiver) = mpsc::channel::<Job>();
        let jobs = Arc::new(Mutex::new(receiver));
        let begun = (0..self.threads).filter(|_| {
            let jobs = jobs.clone();
            std::thread::Builder::new().name(self.name.to_owned()).spawn(move || do_all(&jobs)).is_ok()
        });
        (begun.count() > 0).then_some(sender)
    }
}

fn do_all(jobs: &Mutex<Receiver<Job>>) {
    // Without the right to it, the thread keeps its priority.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        let _entered = heap::enter();
        // A bug: the request meets it again where it is answered.
        let _ = catch_unwind(AssertUnwindSafe(|| value::absent::waiting(job)));
    }
}

impl Ctx<'_> {
    /// What `make` makes of the operand, which it holds itself: made by another thread if it is big, and then the
    /// request runs again with it. Nothing is to have changed so far, and `make` is to depend on nothing but the
    /// operand and the request.
    ///
    /// # Errors
    /// It has to be made first.
    pub fn made_elsewhere<T: Send + 'static>(
        &mut self,
        of: Operand,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stop> {
        if let Some(work) = self.take_work::<ThreadWork<T>>()
            && work.of.is(&of)
            && let Some(made) = work.take()
        {
            return Ok(made);
        }
        if of.content_bytes() < CONTENT_BYTES_MIN || !self.may_begin_work() {
            return Ok(make());
        }
        let wake = self.wake();
        Err(self.begin_work(ThreadWork::begin(&LONG, of, make, wake)))
    }

    /// What [`Ctx::make_of_copies`] has made for this request, which runs again.
    pub fn made_of_copies<T: Send + 'static>(&mut self) -> Option<T> {
        self.take_work::<ThreadWork<T>>().and_then(|work| work.take())
    }

    /// Has another thread make the reply to a read of much, from copies and shared trees that `make` holds: this many
    /// bytes. Then the request runs again, and [`Ctx::made_of_copies`] gives it. The reply shows what was there when
    /// the copies were made, a moment between the request and its reply. Call it where [`Ctx::may_begin_work`] says so.
    pub fn make_of_copies<T: Send + 'static>(
        &mut self,
        bytes: usize,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Stop {
        let wake = self.wake();
        self.begin_work(ThreadWork::begin(&LONG, Operand::Copies(bytes), make, wake))
    }

    /// As [`Ctx::make_of_copies`], where `make` reads rows: other work does not delay it.
    pub fn make_of_rows<T: Send + 'static>(&mut self, bytes: usize, make: impl FnOnce() -> T + Send + 'static) -> Stop {
        let wake = self.wake();
        self.begin_work(ThreadWork::begin(&NAMES, Operand::Copies(bytes), make, wake))
    }

    /// What a slow function makes of the request alone, on a thread for passwords. The request then runs again with it.
    /// Inside EXEC the caller makes it.
    ///
    /// # Errors
    /// It has to be made first.
    pub fn made_of_passwords<T: Send + 'static>(
        &mut self,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stop> {
        if let Some(made) = self.take_work::<ThreadWork<T>>().and_then(|work| work.take()) {
            return Ok(made);
        }
        if !self.may_begin_work() {
            return Ok(make());
        }
        let wake = self.wake();
        Err(self.begin_work(ThreadWork::begin(&PASSWORDS, Operand::Nothing, make, wake)))
    }

    /// Has this client's worker run the request again.
    fn wake(&self) -> Wake {
        let (worker, client) = (self.session.info.worker(), self.session.info.id);
        let closer = self.host.clients.closer();
        Box::new(move || closer.into_iter().for_each(|closer| closer.end_wait(worker, client)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn operand() -> Operand {
        Operand::Bytes(SharedBytes::new(vec![0; 10]))
    }

    fn begin<T: Send + 'static>(make: impl FnOnce() -> T + Send + 'static) -> (ThreadWork<T>, Receiver<()>) {
        let (sender, receiver) = mpsc::channel();
        (
            ThreadWork::begin(&LONG, operand(), make, Box::new(move || sender.send(()).expect("somebody waits"))),
            receiver,
        )
    }

    /// The result comes back once, and work that panics ends too, as do those queued after it.
    #[test]
    fn the_work_of_threads_ends() {
        let within = Duration::from_secs(60);
        let failing: Vec<_> = (0..5).map(|_| begin::<u32>(|| panic!("as a test does"))).collect();
        let others: Vec<_> = (0..5).map(|number| begin(move || number)).collect();
        for (mut work, woken) in failing {
            woken.recv_timeout(within).expect("it ends");
            assert!(!work.step() && work.take().is_none());
        }
        for (number, (mut work, woken)) in others.into_iter().enumerate() {
            woken.recv_timeout(within).expect("it ends");
            assert!(!work.step());
            assert_eq!(work.take(), Some(number));
            assert_eq!(work.take(), None);
        }
    }

    #[test]
    fn operands_are_told_by_what_they_are() {
        let (one, other) = (operand(), operand());
        assert!(one.is(&one.clone()) && !one.is(&other));
    }
}
