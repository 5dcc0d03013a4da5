//! Work on big collections that a thread of its own does: sorting, searching, putting into other forms what ten million elements
//! are takes seconds, and cannot always be left off and taken up again.
//!
//! ```text
//! under the locks:  command --operands, shared, and what to make of them--> queue --> errand thread: makes it
//! without locks:    its worker goes on with other clients, and looks now and then whether it is made
//! under the locks:  command runs again: the same operands? --> uses what was made      no, one was changed --> begins anew
//! ```
//!
//! It is a [`Work`](crate::preparing::Work) like those that are done in steps, and F1 to F3 hold for it as well. An operand that a
//! request brings along is never another one.

use crate::preparing::Work;
use crate::{Ctx, Stop};
use engine::{SharedBig, SharedBytes};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use value::reaper;

/// So many errands are done at a time; others wait for their turn.
const THREADS: usize = 2;

/// How nice errand threads are: workers come first where processors are short.
const NICENESS: i32 = 5;

/// Trees with fewer bytes of elements are worked on at once: in some tenths of a millisecond.
const CONTENT_BYTES_MIN: usize = 128 << 10;

/// What an errand is done with.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A collection.
    Tree(SharedBig),
    /// A string.
    Bytes(SharedBytes),
}

impl Operand {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tree(one), Self::Tree(other)) => Arc::ptr_eq(one, other),
            (Self::Bytes(one), Self::Bytes(other)) => SharedBytes::ptr_eq(one, other),
            _ => false,
        }
    }

    fn content_bytes(&self) -> usize {
        match self {
            Self::Tree(tree) => tree.content_bytes(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// An errand, and what came of it.
struct Errand<T: Send + 'static> {
    of: Operand,
    made: Made<T>,
    /// Nobody waits for it any more.
    is_cancelled: Arc<AtomicBool>,
}

enum Made<T> {
    NotYet(Receiver<T>),
    Here(T),
    /// It ended without, by a bug, or it was taken.
    Nothing,
}

impl<T: Send + 'static> Errand<T> {
    fn begin(of: Operand, make: impl FnOnce() -> T + Send + 'static) -> Self {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = mpsc::sync_channel(1);
        let is_unwanted = is_cancelled.clone();
        run(Box::new(move || {
            if is_unwanted.load(Relaxed) {
                return;
            }
            if let Err(mpsc::SendError(made)) = sender.send(make()) {
                drop(made);
            }
        }));
        Self { of, made: Made::NotYet(receiver), is_cancelled }
    }

    fn take(&mut self) -> Option<T> {
        match std::mem::replace(&mut self.made, Made::Nothing) {
            Made::Here(made) => Some(made),
            Made::NotYet(_) | Made::Nothing => None,
        }
    }
}

impl<T: Send + 'static> Work for Errand<T> {
    fn step(&mut self) -> bool {
        self.is_elsewhere()
    }

    fn is_elsewhere(&mut self) -> bool {
        if let Made::NotYet(receiver) = &self.made {
            match receiver.try_recv() {
                Ok(made) => self.made = Made::Here(made),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => self.made = Made::Nothing,
            }
        }
        false
    }

    /// About as much as it was made of.
    fn held_bytes(&self) -> usize {
        self.of.content_bytes()
    }
}

impl<T: Send + 'static> Drop for Errand<T> {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Relaxed);
        if let Some(made) = self.take() {
            reaper::free(Box::new(made));
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Has a thread do it, soon; the caller does when the system grants no thread.
fn run(job: Job) {
    static QUEUE: OnceLock<Option<Sender<Job>>> = OnceLock::new();
    match QUEUE.get_or_init(begin_threads) {
        // The threads end with the process only.
        Some(queue) => drop(queue.send(job)),
        None => job(),
    }
}

fn begin_threads() -> Option<Sender<Job>> {
    let (sender, receiver) = mpsc::channel::<Job>();
    let jobs = Arc::new(Mutex::new(receiver));
    let begun = (0..THREADS).filter(|_| {
        let jobs = jobs.clone();
        std::thread::Builder::new().name("errand".to_owned()).spawn(move || do_all(&jobs)).is_ok()
    });
    (begun.count() > 0).then_some(sender)
}

fn do_all(jobs: &Mutex<Receiver<Job>>) {
    // Without the right to it, the thread keeps its priority.
    let _ = rustix::process::setpriority_process(None, NICENESS);
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        // A bug: the request meets it again where it is answered.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

impl Ctx<'_> {
    /// What `make` makes of the operand, which it holds itself: made by another thread if it is big, and then the request runs
    /// again with it. Nothing is to have changed so far, and `make` is to depend on nothing but the operand and the request.
    ///
    /// # Errors
    /// It has to be made first.
    pub fn made_elsewhere<T: Send + 'static>(
        &mut self,
        of: Operand,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stop> {
        if let Some(mut errand) = self.take_prepared::<Errand<T>>()
            && errand.of.is(&of)
            && let Some(made) = errand.take()
        {
            return Ok(made);
        }
        if of.content_bytes() < CONTENT_BYTES_MIN || !self.may_prepare() {
            return Ok(make());
        }
        Err(self.prepare(Errand::begin(of, make)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn operand() -> Operand {
        Operand::Bytes(SharedBytes::new(vec![0; 10]))
    }

    fn wait_for<T: Send + 'static>(errand: &mut Errand<T>) {
        let since = Instant::now();
        while errand.step() {
            assert!(since.elapsed() < Duration::from_secs(60), "an errand ends");
            std::thread::yield_now();
        }
    }

    /// What was made comes back once, and an errand that fails ends too, as do those behind it.
    #[test]
    fn errands_end() {
        let mut failing: Vec<_> =
            (0..5).map(|_| Errand::<u32>::begin(operand(), || panic!("as a test does"))).collect();
        let mut others: Vec<_> = (0..5).map(|number| Errand::begin(operand(), move || number)).collect();
        for errand in &mut failing {
            wait_for(errand);
            assert_eq!(errand.take(), None);
        }
        for (number, errand) in others.iter_mut().enumerate() {
            wait_for(errand);
            assert_eq!(errand.take(), Some(number));
            assert_eq!(errand.take(), None);
        }
    }

    #[test]
    fn operands_are_told_by_what_they_are() {
        let (one, other) = (operand(), operand());
        assert!(one.is(&one.clone()) && !one.is(&other));
    }
}
