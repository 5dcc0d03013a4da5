//! The names of a database in the order of their bytes: those of its rows, which are in that order, and those that have
//! changed since rows were stored.
//!
//! ```text
//! under the locks, a shard at a time:  Engine::changed_names --> ChangedNames: a few of each shard
//! without locks, on another thread:    ChangedNames::step: the rows of all shards, and those names in between
//! ```
//!
//! N1. What has changed is looked up first, and the rows after it. So a name that is there all the time is found: a
//!     flush in between only brings it to the rows.
//! N2. A step takes time and memory by the names that it gives and by those that it passes over, never by the database.

use crate::{Names, Rows, Type};
use base::{ShardId, UnixMs};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// Rows that a step looks at, at most.
const LOOKS_MAX: usize = 4096;

/// Names of a range that have changed since rows were stored, a few of each shard.
#[derive(Default)]
pub struct ChangedNames {
    /// `None` for one that is gone.
    names: BTreeMap<Vec<u8>, Option<Type>>,
    /// The last name up to which all shards have said what has changed; `None` for the whole range.
    end: Option<Vec<u8>>,
    /// Shards whose rows are void.
    void: BTreeSet<ShardId>,
    rows: Option<Arc<dyn Rows>>,
}

impl ChangedNames {
    /// The rows of the database, any shard's.
    pub fn set_rows(&mut self, rows: &Arc<dyn Rows>) {
        self.rows.get_or_insert_with(|| rows.clone());
    }

    /// The rows of a shard count no more.
    pub fn set_void(&mut self, shard: ShardId) {
        self.void.insert(shard);
    }

    /// A name has changed: what is stored there now.
    pub fn add(&mut self, name: &[u8], kind: Option<Type>) {
        self.names.insert(name.to_vec(), kind);
    }

    /// A shard may have more behind this name.
    pub fn end_at(&mut self, range: &Names, name: &[u8]) {
        if self.end.as_ref().is_none_or(|end| range.is_before(name, end)) {
            self.end = Some(name.to_vec());
        }
    }

    /// Bytes of the names, about.
    pub fn held_bytes(&self) -> usize {
        self.names.keys().map(|name| name.len().saturating_add(64)).fold(0, usize::saturating_add)
    }

    /// The next names of the range, up to `limit` of them, of a type or of all. Reads rows, so that no worker should
    /// call it while it serves.
    ///
    /// # Errors
    /// When rows cannot be read.
    pub fn step(self, range: &Names, kind: Option<Type>, now: UnixMs, limit: usize) -> io::Result<NamesStep> {
        let Self { names: changed, mut end, void, rows } = self;
        let told = end.as_deref().map_or_else(|| range.clone(), |end| range.up_to(end));
        let is_meant = |found: Type| kind.is_none_or(|kind| kind == found);
        let mut names: Vec<(Vec<u8>, Type)> = Vec::new();
        let mut looked = 0usize;
        if let Some(rows) = rows.filter(|_| limit > 0 && !told.is_empty()) {
            rows.names(&told, &mut |row| {
                looked = looked.saturating_add(1);
                let is_over = row.expire_at.is_some_and(|at| at <= now);
                if !is_over && is_meant(row.kind) && !void.contains(&row.shard) && !changed.contains_key(row.name) {
                    names.push((row.name.to_vec(), row.kind));
                }
                if looked == LOOKS_MAX || names.len() == limit {
                    end = Some(row.name.to_vec());
                    return false;
                }
                true
            })?;
        }
        for (name, found) in changed {
            let is_told = end.as_ref().is_none_or(|end| !range.is_before(end, &name));
            if let Some(found) = found.filter(|found| is_told && is_meant(*found)) {
                names.push((name, found));
            }
        }
        match range.is_reversed() {
            false => names.sort_unstable_by(|one, other| one.0.cmp(&other.0)),
            true => names.sort_unstable_by(|one, other| other.0.cmp(&one.0)),
        }
        if names.len() > limit {
            names.truncate(limit);
            end = names.last().map(|(name, _)| name.clone());
        }
        Ok(NamesStep { names, end })
    }
}

/// What a step has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamesStep {
    /// Names in order, with their types. There may be none although there are more.
    pub names: Vec<(Vec<u8>, Type)>,
    /// The name behind which the next step begins; `None` when the range is over.
    pub end: Option<Vec<u8>>,
}
