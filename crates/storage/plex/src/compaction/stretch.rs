//! A stretch of keys that is merged, and what lies below it.

use std::sync::Arc;

use crate::key;
use crate::sstable::{Probe, Table};

/// Keys from one (included) to another (excluded).
#[derive(Clone, Debug, Default)]
pub(super) struct Stretch {
    pub from: Option<Vec<u8>>,
    pub to: Option<Vec<u8>>,
}

impl Stretch {
    /// Some of the table lies in the stretch.
    pub fn meets(&self, table: &Table) -> bool {
        let ends = self.from.as_ref().is_none_or(|from| !table.info.ends_before(from));
        ends && self.to.as_ref().is_none_or(|to| *table.info.smallest < **to)
    }

    /// Something of the stretch lies before the key, and the key in it.
    pub fn has_inside(&self, key: &[u8]) -> bool {
        self.from.as_ref().is_none_or(|from| **from < *key) && self.to.as_ref().is_none_or(|to| *key < **to)
    }

    /// All of the table lies in the stretch.
    pub fn has_all_of(&self, table: &Table) -> bool {
        self.from.as_ref().is_none_or(|from| *table.info.smallest >= **from) && self.has_end_of(table)
    }

    /// Whether the table ends within the stretch.
    pub fn has_end_of(&self, table: &Table) -> bool {
        self.to.as_ref().is_none_or(|to| table.info.ends_before(to))
    }
}

/// What an entry of the output may have to hide.
pub(super) struct Below<'a> {
    /// Nothing older than the inputs overlaps them.
    pub is_bottom: bool,
    /// Inputs that stay, after the output.
    pub left: Vec<&'a Arc<Table>>,
}

impl Below<'_> {
    /// Whatever there may be.
    pub fn unknown() -> Self {
        Self { is_bottom: false, left: Vec::new() }
    }

    /// There is no older version of the key.
    pub fn has_none(&self, key: &[u8]) -> bool {
        self.is_bottom
            && (self.left.is_empty() || {
                let probe = Probe::new(key::hash(key));
                !self.left.iter().any(|table| *table.info.smallest <= *key && table.may_contain(&probe))
            })
    }
}
