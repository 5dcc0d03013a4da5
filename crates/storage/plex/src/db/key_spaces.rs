//! Key spaces: made, listed and dropped.
//!
//! ```text
//!   drop: refuse writes -> flush what memtables have -> no merge runs -> one edit: the name and all tables are gone
//! ```
//!
//! The edit is the only step that a crash can show. An id is never used again, so what a log or a writer still has of a
//! dropped key space belongs to no other one.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use super::write::no_key_space;
use super::{Inner, KeySpaceId};
use crate::error::{Error, Result};
use crate::version::{TablePlace, VersionEdit};

/// The key spaces of a database: found by name, and by id at each write.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySpaces {
    by_name: BTreeMap<Vec<u8>, u32>,
    ids: HashSet<u32>,
}

impl KeySpaces {
    /// Adds one, unless the name is taken.
    pub fn add(&mut self, id: u32, name: Vec<u8>) {
        if let std::collections::btree_map::Entry::Vacant(free) = self.by_name.entry(name) {
            free.insert(id);
            self.ids.insert(id);
        }
    }

    /// Takes over what an edit says.
    pub fn change(&mut self, made: Vec<(u32, Vec<u8>)>, dropped: &[u32]) {
        made.into_iter().for_each(|(id, name)| self.add(id, name));
        if !dropped.is_empty() {
            self.by_name.retain(|_, id| !dropped.contains(id));
            self.ids.retain(|id| !dropped.contains(id));
        }
    }

    pub fn has(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// With their ids, in the order of the names.
    pub fn all(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.by_name.iter().map(|(name, id)| (*id, &name[..]))
    }

    /// As an edit of the manifest says it.
    pub fn as_made(&self) -> Vec<(u32, Vec<u8>)> {
        self.all().map(|(id, name)| (id, name.to_vec())).collect()
    }

    fn id(&self, name: &[u8]) -> Option<u32> {
        self.by_name.get(name).copied()
    }
}

impl Inner {
    pub(super) fn key_space(&self, name: &[u8]) -> Result<KeySpaceId> {
        let _making = self.making_key_space.lock();
        if let Some(id) = self.key_spaces.read().id(name) {
            return Ok(KeySpaceId(id));
        }
        let id = self.next_key_space.load(Ordering::Acquire);
        if id == u32::MAX {
            return Err(Error::InvalidArgument("there are too many key spaces".into()));
        }
        self.wait_for_space()?;
        // Used even if the edit fails: it may be durable.
        self.next_key_space.store(id + 1, Ordering::Release);
        self.install(VersionEdit { key_spaces: vec![(id, name.to_vec())], ..VersionEdit::default() }, None)?;
        Ok(KeySpaceId(id))
    }

    pub(super) fn list_key_spaces(&self) -> Vec<(String, KeySpaceId)> {
        let spaces = self.key_spaces.read();
        spaces.all().map(|(id, name)| (String::from_utf8_lossy(name).into_owned(), KeySpaceId(id))).collect()
    }

    pub(super) fn has_key_space(&self, space: u32) -> bool {
        self.key_spaces.read().has(space)
    }

    pub(super) fn drop_key_space(&self, space: KeySpaceId) -> Result<()> {
        if space == KeySpaceId::DEFAULT {
            return Err(Error::InvalidArgument("the default key space cannot be dropped".into()));
        }
        let _making = self.making_key_space.lock();
        if !self.has_key_space(space.0) {
            return Err(no_key_space(space.0));
        }
        self.wait_for_space()?;
        self.writer.lock().dropping.insert(space.0);
        let dropped = self.flush_and_drop(space.0);
        if dropped.is_err() {
            self.writer.lock().dropping.remove(&space.0);
        }
        dropped
    }

    fn flush_and_drop(&self, space: u32) -> Result<()> {
        self.switch_memtable()?;
        while self.flush_oldest()? {}
        self.merging.alone(|| {
            let state = self.state();
            let tables = state.version.tree(space).into_iter().flat_map(|tree| tree.tables());
            let places =
                tables.map(|(level, run, table)| TablePlace { key_space: space, level, run, number: table.number });
            let removed = places.collect();
            self.install(VersionEdit { removed, dropped: vec![space], ..VersionEdit::default() }, None)
        })
    }
}
