//! Key spaces: made, listed and dropped.
//!
//! ```text
//!   drop: refuse writes -> flush what memtables have -> no merge runs -> one edit: the name and all tables are gone
//! ```
//!
//! The edit is the only step that a crash can show. An id is never used again, so what a log or a writer still has of a
//! dropped key space belongs to no other one.

use std::sync::atomic::Ordering;

use super::write::no_key_space;
use super::{Inner, KeySpaceId};
use crate::error::{Error, Result};
use crate::version::{TablePlace, VersionEdit};

impl Inner {
    pub(super) fn key_space(&self, name: &[u8]) -> Result<KeySpaceId> {
        let _making = self.making_key_space.lock();
        if let Some(&id) = self.key_spaces.read().get(name) {
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
        spaces.iter().map(|(name, id)| (String::from_utf8_lossy(name).into_owned(), KeySpaceId(*id))).collect()
    }

    pub(super) fn has_key_space(&self, space: u32) -> bool {
        self.key_spaces.read().values().any(|id| *id == space)
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
