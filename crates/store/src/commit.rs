//! The write path: lock, run, record, unlock - and every command's way, since reads take it too.

use crate::lock_set::LockSet;
use crate::store::Store;
use crate::txn::{At, Scratch, Txn};
use engine::Fetch;

/// Why a command could not run now. It has changed nothing and is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// A shard lock is taken; the worker will be woken.
    Shard,
    /// Rows are being fetched.
    Fetch,
}

impl Store {
    /// Runs one command, or one transaction, under the locks it needs; what it changed is one record of the log.
    ///
    /// Order: (1) lock all shards, or none and be woken; (2) run, applying effects and building the record; (3) append the
    /// record, still under the locks, so that the log has the order of the changes; (4) unlock; (5) the caller replies.
    ///
    /// # Errors
    /// [`Blocked`], with nothing changed.
    ///
    /// # Panics
    /// A panic of `run` before its first change unlocks and goes on to the caller. After a change it ends the process:
    /// half a command must not be seen.
    #[inline]
    pub fn commit<R>(
        &self,
        scratch: &mut Scratch,
        locks: &LockSet,
        at: &At,
        run: impl FnOnce(&mut Txn<'_>) -> Result<R, Fetch>,
    ) -> Result<R, Blocked> {
        let held = self.lock(locks, at.worker).ok_or(Blocked::Shard)?;
        let mut txn = Finish(Some(Txn::new(self, held, scratch, at)));
        let result = run(txn.get());
        let Some(Txn { held, scratch, changed, .. }) = txn.0.take() else { unreachable!("taken once, here") };
        if changed {
            assert!(result.is_ok(), "a command asked for a fetch after its first change");
            if let Some(log) = &self.log {
                log.append(scratch.record.bytes());
                scratch.record.clear();
            }
        }
        self.unlock(held);
        result.map_err(|Fetch| Blocked::Fetch)
    }
}

/// Unlocks when `run` panics, or ends the process when it is too late for that.
struct Finish<'s>(Option<Txn<'s>>);

impl<'s> Finish<'s> {
    #[inline]
    fn get(&mut self) -> &mut Txn<'s> {
        match &mut self.0 {
            Some(txn) => txn,
            None => unreachable!("taken only after the run"),
        }
    }
}

impl Drop for Finish<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(txn) = self.0.take() {
            if txn.changed {
                eprintln!("onggi: a command failed after its first change; ending the process to keep the data whole");
                std::process::abort();
            }
            txn.store.unlock(txn.held);
        }
    }
}
