//! The write path: admit, lock, run, record, unlock, reply or hold - and every command's way, since reads take it too.

use crate::lock_set::LockSet;
use crate::locking::HeldShards;
use crate::record_sink::Admission;
use crate::shard::ShardEngine;
use crate::store::Store;
use crate::txn::{At, Scratch, Txn};
use base::{Lsn, ShardId};
use engine::{Fetch, Key, WriteClass};
use engine_mem::Way;

/// Why a command could not run now. It has changed nothing and is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// A shard lock is taken; the worker will be woken.
    Shard,
    /// Rows are not in memory: [`Scratch::take_wants`] says which.
    Fetch,
    /// The log, or a running checkpoint, has no room; the worker will be woken.
    Log,
    /// Memory in use is beyond the budget, and some of it is being freed: evicted entries, pages that are cleaned.
    Memory,
    /// The log takes no record of this class until it works again: [`RecordSink::refusal`] says why. Or rows cannot be
    /// flushed: [`Store::refusal_by_flush`]. It is not tried again but answered.
    ///
    /// [`RecordSink::refusal`]: crate::RecordSink::refusal
    Refused,
}

impl Store {
    /// Runs one command, or one transaction, under the locks it needs; what it changed is one record of the log.
    ///
    /// Order: (1) be admitted to the log, before any lock; (2) lock all shards, or none and be woken, including the
    /// shards that waiting commands reach; (3) run, applying effects and building the record, and serve commands that
    /// wait for what was changed; (4) append the record, still under the locks, so that the log has the order of the
    /// changes; (5) unlock, and announce the notices; (6) the caller replies, and holds the reply back until the log is
    /// durable up to [`Scratch::hold`].
    ///
    /// # Errors
    /// [`Blocked`], with nothing changed.
    ///
    /// # Panics
    /// A panic of `run` before its first change unlocks and propagates to the caller. After a change it ends the
    /// process: half a command must not be seen.
    #[inline]
    pub fn commit<R>(
        &self,
        scratch: &mut Scratch,
        locks: &LockSet,
        at: &At,
        run: impl FnOnce(&mut Txn<'_>) -> Result<R, Fetch>,
    ) -> Result<R, Blocked> {
        self.admit(scratch, at)?;
        let held = self.lock(locks, at.worker).ok_or(Blocked::Shard)?;
        let held = self.lock_beside(held, None, at.writes, at.worker).ok_or(Blocked::Shard)?;
        self.commit_locked(scratch, held, at, run)
    }

    /// [`Store::commit`] for what needs one key, which was hashed for its keyspace then, with the way that was gone to
    /// it.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn commit_one<R>(
        &self,
        scratch: &mut Scratch,
        (shard, key, way): (ShardId, &Key<'_>, &Way),
        at: &At,
        run: impl FnOnce(&mut Txn<'_>) -> Result<R, Fetch>,
    ) -> Result<R, Blocked> {
        self.admit(scratch, at)?;
        let mut held = self.lock_one(shard, at.worker).ok_or(Blocked::Shard)?;
        if let ShardEngine::Memory(engine) = &mut held.engine {
            engine.follow(key, way);
        }
        let held = HeldShards::One(shard, held);
        let held = self.lock_beside(held, Some(key.hash), at.writes, at.worker).ok_or(Blocked::Shard)?;
        self.commit_locked(scratch, held, at, run)
    }

    /// Asks whether a running checkpoint can take what a command of this class may overwrite, and the log, if there is
    /// one, whether it may append to it.
    #[inline]
    fn admit(&self, scratch: &mut Scratch, at: &At) -> Result<(), Blocked> {
        if at.writes == WriteClass::Nothing {
            return Ok(());
        }
        if self.waits_for_checkpoint(at.worker) {
            return Err(Blocked::Log);
        }
        if self.pressure.is_behind() {
            self.admit_by_flushes(scratch, at)?;
        }
        match self.log_of(scratch).map_or(Admission::Go, |log| log.admit(at.worker, at.writes)) {
            Admission::Go => Ok(()),
            Admission::Wait => Err(Blocked::Log),
            Admission::Refused => Err(Blocked::Refused),
        }
    }

    #[inline]
    fn commit_locked<R>(
        &self,
        scratch: &mut Scratch,
        held: HeldShards<'_>,
        at: &At,
        run: impl FnOnce(&mut Txn<'_>) -> Result<R, Fetch>,
    ) -> Result<R, Blocked> {
        self.log.refresh(&mut scratch.log);
        let mut running = Running(Txn::new(self, held, scratch, at));
        let result = running.0.prepare_to_serve(at.writes).and_then(|()| run(&mut running.0));
        if running.0.scratch.decoder.keeps() {
            running.0.keep_hot();
        }
        if running.0.scratch.serving.has_ready() {
            running.0.serve_waiters();
        }
        let Txn { held, scratch, changed, hold, .. } = &mut running.0;
        if !scratch.wants.is_empty() {
            scratch.ask_for_wants(held, result.is_err());
        }
        assert!(!*changed || result.is_ok(), "a command asked for a fetch after its first change");
        if scratch.log.sink.is_some() {
            scratch.hold = hold.get();
            scratch.wrote = if *changed { append(self, held, scratch, at) } else { Lsn(0) };
        }
        *changed = false;
        if result.is_err() {
            // It runs again, and then notes again what it has noted.
            scratch.notices.clear();
        }
        let is_told = scratch.hand_over_notices(&self.notices);
        let served = scratch.take_served();
        let held = std::mem::take(held);
        std::mem::forget(running);
        self.unlock(held);
        // A served client finds its reply before the messages about its changes; it is woken when all clients have
        // theirs.
        if let Some(served) = &served {
            served.settle();
        }
        if is_told {
            self.notices.announce(at.worker);
        }
        if let Some(served) = served {
            served.wake();
        }
        result.map_err(|Fetch| Blocked::Fetch)
    }
}

/// Appends the record of what was changed, and holds back replies that show it.
fn append(store: &Store, held: &mut HeldShards<'_>, scratch: &mut Scratch, at: &At) -> Lsn {
    let Some(sink) = &scratch.log.sink else { return Lsn(0) };
    let lsn = match scratch.record.payload() {
        None => sink.append(at.worker, scratch.record.bytes()),
        Some(payload) => sink.append_shared(at.worker, &payload),
    };
    scratch.record.clear();
    if scratch.log.holds {
        scratch.hold = lsn;
        scratch.touched.apply(store, held, lsn);
    }
    lsn
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
        self.0.scratch.notices.clear();
        self.0.scratch.forget_wants();
        self.0.store.unlock(std::mem::take(&mut self.0.held));
    }
}
