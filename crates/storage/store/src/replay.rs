//! The mirror of `commit`: from a record back to stored entries.

use crate::lock_set::LockSet;
use crate::recovery_points::RecoveryPoints;
use crate::shard::ShardEngine;
use crate::store::Store;
use crate::txn::{At, Scratch, Txn};
use crate::wants::want::{Want, unreadable_leaf};
use base::hash::KeyHasher;
use base::{DbIndex, KeyspaceId, Lsn, UnixMs};
use cmdlog::DecodeError;
use codec::DictionaryNumber;
use engine::{Effect, Engine, Key, Keyspace, WriteClass};
use std::sync::{Arc, PoisonError};
use value::absent;
use value::cold::Keeper;

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
    /// It has a string that needs a dictionary which is not there.
    #[error("the record has a string that needs dictionary {0}, which is not there")]
    Dictionary(DictionaryNumber),
    /// It changes a row that cannot be read.
    #[error("the record changes the row of key '{key}', which cannot be read: {why}")]
    Row {
        /// The key.
        key: String,
        /// The error.
        why: String,
    },
}

impl Store {
    /// Applies one effect of a checkpoint that is being loaded: about one key, a library, or the position. Nothing else
    /// runs yet.
    pub fn load(&self, effect: &Effect<'_>) {
        match effect {
            Effect::Library { name, code } => return self.libraries.apply(name, code),
            Effect::Position { text } => return self.position.set(text),
            _ => {}
        }
        let Some(key) = effect.keys().next() else { return };
        let lock = &self.shard(self.shard_of(key)).lock;
        loop {
            if let Some(mut held) = lock.spin_lock() {
                types::apply::apply(&mut Loading { engine: &mut held.engine, store: self }, effect);
                self.unlock_one(held);
                return self.demote_while_loading(self.shard_of(key));
            }
            std::thread::yield_now();
        }
    }

    /// A dictionary that a stored value needs and that is not known; `None` when all are. After a load: nothing was
    /// read then.
    pub fn missing_dictionary(&self) -> Option<DictionaryNumber> {
        let known = &self.compression.dictionaries;
        self.memory.values_by_dictionary().into_keys().find(|number| known.get(*number).is_none())
    }

    /// Says from where on the log counts, before it is replayed. Without this, all of it does.
    pub fn set_recovery_points(&self, points: RecoveryPoints) {
        *self.recovery_points.write().unwrap_or_else(PoisonError::into_inner) = points;
    }

    /// Applies the record that ends at `lsn`, whole or not at all, but for keyspaces that have it already
    /// ([`RecoveryPoints`]). No clock is looked at: during replay nothing is expired (E3). Reads rows that it changes.
    ///
    /// # Errors
    /// [`ReplayError`] when the payload is no record, or none of this store's databases, or has a value that cannot be
    /// read here; nothing is applied then.
    pub fn replay(&self, scratch: &mut Scratch, lsn: Lsn, payload: &[u8]) -> Result<(), ReplayError> {
        let mut effects = cmdlog::effects(payload, &self.hasher).collect::<Result<Vec<_>, _>>()?;
        // Keyspaces are numbered as the databases were when there were no exchanges yet.
        let count = self.spaces.count();
        if let Some(highest) = effects.iter().map(|effect| highest_space(effect).0 as usize).max()
            && highest >= count
        {
            return Err(ReplayError::Databases { count, needed: highest.saturating_add(1) });
        }
        let is_missing = |number: &DictionaryNumber| self.compression.dictionaries.get(*number).is_none();
        if let Some(missing) = effects.iter().flat_map(cmdlog::dictionaries_of).find(is_missing) {
            return Err(ReplayError::Dictionary(missing));
        }
        let points = self.recovery_points.read().unwrap_or_else(PoisonError::into_inner);
        effects.retain(|effect| points.lacks(effect, lsn));
        drop(points);
        if effects.is_empty() {
            return Ok(());
        }
        let wants = self.load_rows_of(&effects)?;
        // The time by which a transaction knows that it is no client's.
        let at = At { now: UnixMs::MIN, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Nothing };
        let apply = |txn: &mut Txn<'_>| {
            effects.iter().for_each(|effect| txn.apply(effect));
            // It was announced when it happened.
            txn.scratch.notices.clear();
            Ok(())
        };
        let applied = absent::catch(|| {
            absent::waiting(|| {
                while self.commit(scratch, &LockSet::All, &at, apply).is_err() {
                    std::thread::yield_now();
                }
            })
        });
        self.release(&wants);
        applied.map_err(|absent| {
            let key = effects.iter().flat_map(Effect::keys).next().map(|key| key.bytes.escape_ascii().to_string());
            let why = absent.error.map_or_else(String::new, |error| unreadable_leaf(&error));
            ReplayError::Row { key: key.unwrap_or_default(), why }
        })?;
        if self.wants_demotion() {
            effects.iter().flat_map(Effect::keys).for_each(|key| self.demote_while_loading(self.shard_of(key)));
        }
        Ok(())
    }

    fn is_away(&self, key: &Key<'_>) -> bool {
        let mut held = self.lock_patiently(self.shard_of(key));
        let is_away = matches!(held.engine.read(key, false), Ok(Some(entry)) if entry.is_away());
        self.unlock_one(held);
        is_away
    }

    /// Loads every row that these effects edit. The caller releases them when the effects are applied.
    fn load_rows_of(&self, effects: &[Effect<'_>]) -> Result<Vec<Want>, ReplayError> {
        let mut wants = Vec::new();
        for key in effects.iter().filter_map(changed_row) {
            match self.load_row(key) {
                Ok(want) => wants.extend(want),
                // It stays away: damage on a tier costs the keys of the damaged values, and no start.
                Err(_) if self.is_away(key) => {}
                Err(error) => {
                    self.release(&wants);
                    let (key, why) = (key.bytes.escape_ascii().to_string(), error.to_string());
                    return Err(ReplayError::Row { key, why });
                }
            }
        }
        Ok(wants)
    }
}

/// The entry that an effect edits; `None` when it stores a new one, or removes one.
fn changed_row<'e>(effect: &'e Effect<'_>) -> Option<&'e Key<'e>> {
    match effect {
        Effect::Splice { key, .. }
        | Effect::Expire { key, .. }
        | Effect::Persist { key }
        | Effect::Meta { key, .. } => Some(key),
        Effect::Edit { key, .. } | Effect::Leaves { key, .. } | Effect::Replace { key, .. } => Some(key),
        Effect::Rename { from, .. } | Effect::Copy { from, .. } => Some(from),
        Effect::Set { .. } | Effect::Store { .. } | Effect::StoreWith { .. } | Effect::Delete { .. } => None,
        Effect::Clear { .. } | Effect::Swap { .. } | Effect::Library { .. } | Effect::Position { .. } => None,
    }
}

/// The engine of the only key there is.
struct Loading<'e> {
    engine: &'e mut ShardEngine,
    store: &'e Store,
}

impl types::apply::Engines for Loading<'_> {
    type Engine = ShardEngine;

    fn engine(&mut self, _key: &Key<'_>) -> &mut ShardEngine {
        self.engine
    }

    fn order(&self) -> &KeyHasher {
        &self.store.hasher
    }

    fn keeper(&self) -> Arc<dyn Keeper> {
        self.store.compression.keeper()
    }

    fn decompress(&mut self, _key: &Key<'_>) -> bool {
        unreachable!("a checkpoint holds nothing compressed and its changes")
    }
}

/// The keyspace with the highest number among those that an effect changes.
fn highest_space(effect: &Effect<'_>) -> KeyspaceId {
    match *effect {
        Effect::Clear { space } => space,
        Effect::Swap { a, b } => a.max(b),
        Effect::Copy { ref from, ref to } => from.space.max(to.space),
        _ => effect.keys().map(|key| key.space).max().unwrap_or_default(),
    }
}
