//! The write path: lock, run, record, unlock - and every command's way, since reads take it too.

use crate::lock_set::{HeldShards, LockSet};
use crate::store::Store;
use crate::txn::{At, Scratch, Txn};
use base::ShardId;
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
        self.commit_locked(scratch, held, at, run)
    }

    /// [`Store::commit`] for what needs one shard.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn commit_one<R>(
        &self,
        scratch: &mut Scratch,
        shard: ShardId,
        at: &At,
        run: impl FnOnce(&mut Txn<'_>) -> Result<R, Fetch>,
    ) -> Result<R, Blocked> {
        let held = self.lock_one(shard, at.worker).ok_or(Blocked::Shard)?;
        self.commit_locked(scratch, HeldShards::One(shard, held), at, run)
    }

    #[inline]
    fn commit_locked<R>(
        &self,
        scratch: &mut Scratch,
        held: HeldShards<'_>,
        at: &At,
        run: impl FnOnce(&mut Txn<'_>) -> Result<R, Fetch>,
    ) -> Result<R, Blocked> {
        let mut running = Running(Txn::new(self, held, scratch, at));
        let result = run(&mut running.0);
        let Txn { held, scratch, changed, .. } = &mut running.0;
        if *changed {
            assert!(result.is_ok(), "a command asked for a fetch after its first change");
            if let Some(log) = &self.log {
                log.append(scratch.record.bytes());
                scratch.record.clear();
            }
            *changed = false;
        }
        let held = std::mem::take(held);
        std::mem::forget(running);
        self.unlock(held);
        result.map_err(|Fetch| Blocked::Fetch)
    }
}

/// Unlocks when `run` panics, or ends the process when it is too late for that. Forgotten after the run.
struct Running<'s>(Txn<'s>);

impl Drop for Running<'_> {
    #[cold]
    fn drop(&mut self) {
        if self.0.changed {
            eprintln!("onggi: a command failed after its first change; ending the process to keep the data whole");
            std::process::abort();
        }
        self.0.store.unlock(std::mem::take(&mut self.0.held));
    }
}
