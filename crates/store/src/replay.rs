//! The mirror of `commit`: from a record back to stored entries.

use crate::lock_set::LockSet;
use crate::store::Store;
use crate::txn::{At, Scratch};
use base::{DbIndex, UnixMs};
use cmdlog::DecodeError;
use engine::{Engine, Key, Keyspace, NewEntry, WriteClass};

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
    /// [`DecodeError`] when the payload is no record; nothing is applied then.
    pub fn replay(&self, scratch: &mut Scratch, payload: &[u8]) -> Result<(), DecodeError> {
        let effects = cmdlog::effects(payload, &self.hasher).collect::<Result<Vec<_>, _>>()?;
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
