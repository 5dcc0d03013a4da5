//! Optimistic transactions: read as of one moment, write at commit, unless another writer changed a key meanwhile.
//!
//! ```text
//!   begin: a read view -> get, put, delete: in the view and the transaction's memory
//!   commit, under the write lock: has a key that was read or written a version newer than the view? -> one batch
//! ```
//!
//! X1. The view stays until the commit, so flushes and merges keep every version that is newer than it, tombstones
//!     included: no conflict is missed.
//! X2. The check and the batch are under one hold of the write lock, so no other write comes between them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Inner, ReadView, State};
use crate::KeySpaceId;
use crate::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::key::{self, SEQNO_MAX, Seqno};
use crate::sstable::Probe;

/// A key of a key space.
type Place = (KeySpaceId, Vec<u8>);

/// Reads and writes that take effect together, or not at all; made by [`Db::transaction`](crate::Db::transaction).
///
/// Reads see the moment when the transaction began, and what it wrote itself. [`commit`](Self::commit) fails if a key
/// that it read or wrote was changed since, so committed transactions have the effect of one after the other. Keys that
/// iterators show are not watched. Dropped without a commit, a transaction changes nothing.
#[derive(Debug)]
pub struct Transaction {
    view: ReadView,
    read: BTreeSet<Place>,
    /// Values; `None` for deletions.
    written: BTreeMap<Place, Option<Vec<u8>>>,
}

impl Transaction {
    pub(super) fn new(view: ReadView) -> Self {
        Self { view, read: BTreeSet::new(), written: BTreeMap::new() }
    }

    /// The value of a key of the default key space.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_in(KeySpaceId::DEFAULT, key)
    }

    /// The value of a key.
    pub fn get_in(&mut self, space: KeySpaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let place = (space, key.to_vec());
        if let Some(own) = self.written.get(&place) {
            return Ok(own.clone());
        }
        let value = self.view.get_in(space, key)?;
        self.read.insert(place);
        Ok(value)
    }

    /// Gives a key of the default key space a value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.put_in(KeySpaceId::DEFAULT, key, value);
    }

    /// Gives a key a value.
    pub fn put_in(&mut self, space: KeySpaceId, key: &[u8], value: &[u8]) {
        self.written.insert((space, key.to_vec()), Some(value.to_vec()));
    }

    /// Deletes a key of the default key space.
    pub fn delete(&mut self, key: &[u8]) {
        self.delete_in(KeySpaceId::DEFAULT, key);
    }

    /// Deletes a key.
    pub fn delete_in(&mut self, space: KeySpaceId, key: &[u8]) {
        self.written.insert((space, key.to_vec()), None);
    }

    /// Makes all changes. A transaction that only read has no conflict.
    ///
    /// # Errors
    /// [`Error::Conflict`], if a key that was read or written has changed since the transaction began: nothing was
    /// written, and the transaction may be run again. Else those of [`Db::write`](crate::Db::write).
    pub fn commit(self) -> Result<()> {
        let mut batch = WriteBatch::new();
        for ((space, key), value) in &self.written {
            match value {
                Some(value) => batch.put_in(*space, key, value),
                None => batch.delete_in(*space, key),
            };
        }
        let began = self.view.seqno();
        let watched = || self.read.iter().chain(self.written.keys());
        self.view.db.inner().write_if(&batch, |inner| {
            let state = inner.state();
            watched().try_for_each(|(space, key)| inner.check_unchanged(&state, *space, key, began))
        })
    }
}

impl Inner {
    /// Whether the key has no version that is newer than `since`. The caller holds the write lock.
    fn check_unchanged(&self, state: &State, space: KeySpaceId, key: &[u8], since: Seqno) -> Result<()> {
        match state.newest_change(space.0, &self.key_order.stored(key), since)? {
            newest if newest > since => Err(Error::Conflict { space, key: key.to_vec() }),
            _ => Ok(()),
        }
    }
}

impl State {
    /// The number of the newest change of a key, if it is newer than `since`; any number up to it otherwise.
    fn newest_change(&self, space: u32, key: &[u8], since: Seqno) -> Result<Seqno> {
        for memtable in self.memtables() {
            let newest = memtable.get(space, key, SEQNO_MAX).map_or(0, |(seqno, ..)| seqno);
            let newest = newest.max(memtable.covering(space, key, SEQNO_MAX));
            if newest > 0 {
                return Ok(newest);
            }
        }
        let Some(tree) = self.version.tree(space) else { return Ok(0) };
        let probe = Probe::new(key::hash(key));
        // Mostly everything in tables is older than the transaction, and no file is read.
        let may_know = tree.candidates(key).iter().filter(|candidate| candidate.may_know(&probe));
        for table in may_know.map(|candidate| &candidate.table).filter(|table| table.seqno_max() > since) {
            let newest = table.get(key, SEQNO_MAX, &probe)?.map_or(0, |(seqno, ..)| seqno);
            let newest = newest.max(table.covering(key, SEQNO_MAX));
            if newest > 0 {
                return Ok(newest);
            }
        }
        Ok(0)
    }
}
