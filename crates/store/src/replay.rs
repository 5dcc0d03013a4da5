//! The mirror of `commit`: from a record back to stored entries.

use crate::lock_set::LockSet;
use crate::store::Store;
use crate::txn::{At, Scratch};
use base::{DbIndex, KeyspaceId, UnixMs};
use cmdlog::DecodeError;
use engine::{Effect, Engine, Key, Keyspace, NewEntry, WriteClass};

/// Why a record cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// It is no record.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It changes a database that this store does not have.
    #[error("the record changes one of {needed} databases, and this server is configured for {count}")]
    Databases {
        /// What the store has.
        count: usize,
        /// What the record needs.
        needed: usize,
    },
}

impl Store {
    /// Stores one entry of a checkpoint that is being loaded. Nothing else runs yet.
    pub fn load(&self, key: &Key<'_>, entry: &NewEntry<'_>) {
        let lock = &self.shard(self.shard_of(key)).lock;
        loop {
            if let Some(mut held) = lock.spin_lock() {
                held.engine.write(key, entry);
                return self.unlock_one(held);
            }
            std::thread::yield_now();
        }
    }

    /// Applies one record, whole or not at all. No clock is looked at: during replay nothing is expired (E3).
    ///
    /// # Errors
    /// [`ReplayError`] when the payload is no record, or none of this store's databases; nothing is applied then.
    pub fn replay(&self, scratch: &mut Scratch, payload: &[u8]) -> Result<(), ReplayError> {
        let effects = cmdlog::effects(payload, &self.hasher).collect::<Result<Vec<_>, _>>()?;
        // Keyspaces are numbered as the databases were when there were no exchanges yet.
        let count = self.spaces.count();
        if let Some(highest) = effects.iter().map(|effect| highest_space(effect).0 as usize).max()
            && highest >= count
        {
            return Err(ReplayError::Databases { count, needed: highest.saturating_add(1) });
        }
        let at = At { now: UnixMs::MIN, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Nothing };
        while self
            .commit(scratch, &LockSet::All, &at, |txn| {
                effects.iter().for_each(|effect| txn.apply(effect));
                Ok(())
            })
            .is_err()
        {
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// The keyspace with the highest number among those that an effect changes.
fn highest_space(effect: &Effect<'_>) -> KeyspaceId {
    match *effect {
        Effect::Set { ref key, .. }
        | Effect::Splice { ref key, .. }
        | Effect::Delete { ref key }
        | Effect::Expire { ref key, .. }
        | Effect::Persist { ref key } => key.space,
        Effect::Rename { ref from, ref to } => from.space.max(to.space),
        Effect::Clear { space } => space,
        Effect::Swap { a, b } => a.max(b),
    }
}
