//! Work that is done before a command may change anything. To make the value that it will store from ten million
//! elements takes seconds, and during that time neither its shards nor its worker may be blocked.
//!
//! ```text
//! under the locks:  command reads, sees that there is much to do -> leaves a Work in its session, has changed nothing
//! without locks:    worker, a step a turn, over the collections as they were (trees are shared); or another thread
//! under the locks:  command runs again from its start: the same collections? -> stores the result, in constant time
//!                                                     no, one was changed   -> restarts; the last attempt does it here
//! ```
//!
//! F1. What is stored is what the command would have made at the moment at which it stores it: a collection that the
//!     work holds is never changed in place, so that it is still the one under its key exactly if it is the same
//!     allocation.
//! F2. A command begins at most [`ATTEMPTS_MAX`] times. A hot operand delays it by no more restarts than that.
//! F3. Work of other threads ([`thread`](crate::work::thread), [`remote`](crate::work::remote)) is not stepped: the
//!     thread that ends it wakes the connection.
//! F4. Inside EXEC, and where a waiting command is served, everything is done at once.

use crate::work::reply::Stepwise;
use engine::{SharedBig, SharedBytes};
use std::any::Any;
use value::{Progress, reaper};

/// How often work is begun for one request.
pub const ATTEMPTS_MAX: u32 = 3;

/// Bytes of changes written in a step.
const STEP_BYTES: usize = 32 << 10;

/// Something to be done in steps.
pub trait Work: Any + Send {
    /// Runs for at most a tenth of a millisecond or so. True while there is more to do.
    fn step(&mut self) -> bool;

    /// Bytes that nothing but this keeps.
    fn held_bytes(&self) -> usize;

    /// Whether another thread does it, and wakes the connection when it is done
    /// ([`Closer::end_wait`](crate::clients::Closer)): until then there is no step to do.
    fn is_elsewhere(&self) -> bool {
        false
    }
}

/// What a request has begun, and will look for when it runs again.
pub struct PendingWork {
    /// Gone once the request has taken it.
    work: Option<Box<dyn Work>>,
    goes_on: bool,
    attempt: u32,
}

impl PendingWork {
    /// Work that its request has begun for the `attempt`th time.
    pub(super) fn new(work: impl Work, goes_on: bool, attempt: u32) -> Self {
        Self { work: Some(Box::new(work)), goes_on, attempt }
    }

    /// How often work was begun for the request.
    pub(super) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The work, when it is done and of this kind.
    pub(super) fn take<W: Work>(&mut self) -> Option<Box<W>> {
        if self.goes_on || !self.is::<W>() {
            return None;
        }
        let work: Box<dyn Any> = self.work.take()?;
        work.downcast().ok()
    }

    /// Does a step; true while there is more to do, and false when the request is to run again.
    pub fn step(&mut self) -> bool {
        self.goes_on = self.goes_on && self.work.as_mut().is_some_and(|work| work.step());
        self.goes_on
    }

    /// Whether there is more to do.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Whether there is no step to do until another thread wakes the connection.
    pub fn is_elsewhere(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.is_elsewhere())
    }

    /// Whether it is of this kind.
    pub fn is<W: Work>(&self) -> bool {
        self.work.as_ref().is_some_and(|work| (&**work as &dyn Any).is::<W>())
    }

    /// Gives the work up: the request does it all at once.
    pub fn abandon(&mut self) {
        *self = Self { work: None, goes_on: false, attempt: ATTEMPTS_MAX };
    }

    /// The memory that nothing but this keeps.
    pub fn held_bytes(&self) -> usize {
        self.work.as_ref().map_or(0, |work| work.held_bytes())
    }
}

/// A collection that is being made, to be stored.
pub struct Building<M> {
    /// How it is made, and of what.
    pub making: M,
    made: Option<SharedBig>,
    /// The changes that build it, and where to continue with them; nothing where there is no log.
    changes: SharedBytes,
    progress: Option<Progress>,
}

impl<M: Stepwise> Building<M> {
    /// Begins. `is_recorded`: with the changes for the record.
    pub fn new(making: M, is_recorded: bool) -> Self {
        let progress = is_recorded.then(Progress::default);
        Self { making, made: None, changes: SharedBytes::default(), progress }
    }

    /// What was made, and the changes that build it. `None` when there is a log by now that there was not before.
    pub fn made(&self, is_recorded: bool) -> Option<(&SharedBig, &SharedBytes)> {
        let tree = self.made.as_ref()?;
        let has_changes = !self.changes.is_empty() || !is_recorded;
        has_changes.then_some((tree, &self.changes))
    }
}

impl<M: Stepwise + 'static> Work for Building<M> {
    fn step(&mut self) -> bool {
        let Some(tree) = &self.made else {
            if !self.making.step() {
                self.made = Some(SharedBig::new(self.making.take()));
            }
            return true;
        };
        if let (Some(from), Some(changes)) = (self.progress, SharedBytes::get_mut(&mut self.changes)) {
            if changes.is_empty() {
                // Room for all, which is no memory before it is written: when a large buffer grows, the system moves it
                // page by page.
                changes.reserve_exact(tree.content_bytes().saturating_add(tree.content_bytes() / 4));
            }
            self.progress = tree.write_changes(from, STEP_BYTES, changes);
        }
        self.progress.is_some()
    }

    fn held_bytes(&self) -> usize {
        let made = self.made.as_ref().map_or(0, |tree| tree.memory_bytes());
        self.making.held_bytes().saturating_add(made).saturating_add(self.changes.capacity())
    }
}

impl<M> Drop for Building<M> {
    fn drop(&mut self) {
        reaper::free_bytes(std::mem::take(&mut self.changes));
    }
}
