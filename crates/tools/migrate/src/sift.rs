//! Which entries of a file are taken. Both readings of a file ask here, so that they agree.

use base::UnixMs;
use rdb::{FileEntry, Module, Value};

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is taken.
    Taken,
    /// Its time has come.
    Expired,
    /// A collection without elements, which no server keeps.
    Empty,
    /// Only the module can read it.
    Module(Module),
}

/// Decides by a moment that is the same for all entries.
#[derive(Clone, Copy)]
pub(crate) struct Sieve {
    now: UnixMs,
}

impl Sieve {
    /// Of this moment.
    pub fn new(now: UnixMs) -> Self {
        Self { now }
    }

    /// What becomes of the entry, and how many fields were dropped from it since their time has come.
    pub fn sift(self, entry: &mut FileEntry) -> (Fate, u64) {
        if entry.expire_at.is_some_and(|at| at <= self.now) {
            return (Fate::Expired, 0);
        }
        if entry.value.is_empty_collection() {
            return (Fate::Empty, 0);
        }
        match &mut entry.value {
            Value::Module(module) => (Fate::Module(module.clone()), 0),
            Value::Hash(hash) => {
                let dropped = hash.drop_due(self.now) as u64;
                (if hash.is_empty() { Fate::Expired } else { Fate::Taken }, dropped)
            }
            _ => (Fate::Taken, 0),
        }
    }
}
