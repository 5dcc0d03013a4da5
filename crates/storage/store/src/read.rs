//! The fast path of a command that answers from one entry, which is what most requests are: lock, read, answer, unlock.
//!
//! It leaves out what only changes and waits need. Any other case takes the path of all commands,
//! [`Store::commit_one`]. So this path must detect such a case before it has done anything.

use crate::lock::Held;
use crate::shard::{Shard, ShardEngine};
use crate::store::Store;
use crate::txn::{At, Scratch};
use base::{Lsn, ShardId};
use engine::{Engine, Key, Seen};
use engine_mem::Way;

impl Store {
    /// Calls `answer` with the entry under a key of the selected database as it is now, as one read of a [`Txn`] does.
    /// `key` is right but for its keyspace, and `way` is one to it there. It may decline what is [`Seen::Away`] with
    /// `None`.
    ///
    /// `None`, with nothing done, when the command must take the path of all commands: the lock is taken, the entry is
    /// a compressed string or has to be fetched, or a client has asked for events of missing keys.
    ///
    /// [`Txn`]: crate::Txn
    #[inline]
    pub fn read_one<R>(
        &self,
        scratch: &mut Scratch,
        (shard, mut key, way): (ShardId, Key<'_>, &Way),
        at: &At,
        mut answer: impl FnMut(Seen<'_>) -> Option<R>,
    ) -> Option<R> {
        if self.notices.any() {
            return None;
        }
        let mut reading = Reading { store: self, held: Some(self.shard(shard).lock.spin_lock()?) };
        let held = reading.held.as_mut()?;
        self.log.refresh(&mut scratch.log);
        let space = self.spaces.get(at.db).unwrap_or_default();
        let way = if space == key.space { way } else { &Way::NONE };
        key.space = space;
        let hold = match &held.holds {
            Some(holds) if scratch.log.holds => holds.of(key.hash),
            _ => Lsn(0),
        };
        let ShardEngine::Memory(engine) = &mut held.engine else { return None };
        engine.set_time(at.now);
        let mut is_found = false;
        let answered = engine.read_as_it_is(&key, way, at.touch, |seen| {
            is_found = !matches!(seen, Seen::Entry(None));
            answer(seen)
        })?;
        match is_found {
            true => scratch.hits += 1,
            false => scratch.misses += 1,
        }
        (scratch.hold, scratch.wrote) = (hold, Lsn(0));
        Some(answered)
    }
}

/// Opens the lock at the end, also when what answers panics: nothing was changed.
struct Reading<'s> {
    store: &'s Store,
    held: Option<Held<'s, Shard>>,
}

impl Drop for Reading<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.store.unlock_one(held);
        }
    }
}
