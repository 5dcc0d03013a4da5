//! Checkpoints that a client has asked for, and how it learns the outcome.

use std::sync::{Arc, OnceLock};

/// A checkpoint that was asked for. Clones are handles of the same.
#[derive(Clone, Debug, Default)]
pub struct Task(Arc<OnceLock<Result<(), String>>>);

impl Task {
    /// What became of it; `None` while it is not over. An error is a sentence without a code word.
    pub fn outcome(&self) -> Option<&Result<(), String>> {
        self.0.get()
    }

    pub(crate) fn end(&self, outcome: Result<(), String>) {
        // A task ends once: the keeper takes it out before it ends it.
        let _ = self.0.set(outcome);
    }
}

impl PartialEq for Task {
    /// Whether both are the same task.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Task {}

/// Why a checkpoint cannot be begun now: another one is being taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// It counts as a save (BGSAVE), not as a rewrite of the append-only file.
    pub is_save: bool,
}
