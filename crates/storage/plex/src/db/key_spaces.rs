//! Key spaces: made, listed and dropped.
//!
//! ```text
//!   drop: refuse writes -> flush what memtables have -> no merge runs -> one edit: the name and all tables are gone
//! ```
//!
//! The edit is the only step that a crash can show. An id is never used again, so what a log or a writer still has of a
//! dropped key space belongs to no other one.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Inner;
use super::maintain::Cause;
use super::write::no_key_space;
use crate::KeySpaceId;
use crate::error::{Error, Result};
use crate::key_space_options::{KeySpaceOptions, OptionsOfSpaces};
use crate::version::{TablePlace, VersionEdit};

/// The key spaces of a database: found by name, and by id at each write.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySpaces {
    by_name: BTreeMap<Vec<u8>, u32>,
    ids: HashSet<u32>,
    /// Of those that have any.
    options: Arc<OptionsOfSpaces>,
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
    pub fn change(&mut self, edit: &VersionEdit) {
        let VersionEdit { key_spaces, key_space_options, dropped, .. } = edit;
        key_spaces.iter().for_each(|(id, name)| self.add(*id, name.clone()));
        if !key_space_options.is_empty() || !dropped.is_empty() {
            let options = Arc::make_mut(&mut self.options);
            options.extend(key_space_options.iter().cloned());
            options.retain(|id, of_space| *of_space != KeySpaceOptions::new() && !dropped.contains(id));
        }
        if !dropped.is_empty() {
            self.by_name.retain(|_, id| !dropped.contains(id));
            self.ids.retain(|id| !dropped.contains(id));
        }
    }

    pub fn has(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// Options of those that have any.
    pub fn options(&self) -> &Arc<OptionsOfSpaces> {
        &self.options
    }

    /// The same, as an edit of the manifest says it.
    pub fn options_as_set(&self) -> Vec<(u32, KeySpaceOptions)> {
        self.options.iter().map(|(id, options)| (*id, options.clone())).collect()
    }

    /// Whether values have the times of their writes.
    pub fn has_times(&self, id: u32) -> bool {
        self.options.get(&id).is_some_and(|options| options.has_times)
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
    /// The key space of this name, made with these options; one that exists gets them, if there are any.
    pub(super) fn key_space(&self, name: &[u8], options: Option<&KeySpaceOptions>) -> Result<KeySpaceId> {
        let _making = self.making_key_space.lock();
        options.map_or(Ok(()), KeySpaceOptions::check)?;
        let found = self.key_spaces.read().id(name);
        if let Some(id) = found {
            return options.map_or(Ok(()), |options| self.change_options(id, options)).map(|()| KeySpaceId(id));
        }
        let id = self.next_key_space.load(Ordering::Acquire);
        if id == u32::MAX {
            return Err(Error::InvalidArgument("there are too many key spaces".into()));
        }
        self.wait_for_space()?;
        // Used even if the edit fails: it may be durable.
        self.next_key_space.store(id + 1, Ordering::Release);
        let key_space_options = options.map(|options| (id, options.clone())).into_iter().collect();
        let key_spaces = vec![(id, name.to_vec())];
        self.install(VersionEdit { key_spaces, key_space_options, ..VersionEdit::default() }, Cause::Merged)?;
        Ok(KeySpaceId(id))
    }

    fn change_options(&self, id: u32, new: &KeySpaceOptions) -> Result<()> {
        let before = self.options_of(id);
        if new.has_times && !before.has_times {
            let what = "a key space that was made without a time to live cannot get one, since its values do not say \
                        when they were written; make another one";
            return Err(Error::InvalidArgument(what.into()));
        }
        let new = KeySpaceOptions { has_times: before.has_times, ..new.clone() };
        if new == before {
            return Ok(());
        }
        self.wait_for_space()?;
        self.install(VersionEdit { key_space_options: vec![(id, new)], ..VersionEdit::default() }, Cause::Merged)?;
        // What has expired by now may be merged.
        self.bell.ring();
        Ok(())
    }

    /// The options of a key space that exists.
    pub(super) fn options_of(&self, id: u32) -> KeySpaceOptions {
        self.key_spaces.read().options().get(&id).cloned().unwrap_or_default()
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
            self.install(VersionEdit { removed, dropped: vec![space], ..VersionEdit::default() }, Cause::Merged)
        })
    }
}
