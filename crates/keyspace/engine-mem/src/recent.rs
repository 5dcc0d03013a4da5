//! The cell found last. A command reads an entry, decides, changes it and perhaps reads it again: its key is looked up
//! once.
//!
//! R1. It is forgotten whenever a cell may move or go, or an entry gets another handle. So what it names is there, and
//!     comparing the entry's key is all it takes to know that it is wanted. A cell that was found ahead of the command,
//!     by its tag alone, serves as well (`hints`, W1).

use crate::entries::Entries;
use crate::table::Found;
use base::KeyspaceId;
use engine::Key;

/// See the module.
#[derive(Default)]
pub struct Recent(Option<Place>);

struct Place {
    space: KeyspaceId,
    hash: u64,
    found: Found,
}

impl Recent {
    /// The cell of this key, if that was found last.
    #[inline]
    pub fn find(&self, entries: &Entries, key: &Key<'_>) -> Option<Found> {
        let place = self.0.as_ref().filter(|place| place.hash == key.hash && place.space == key.space)?;
        // R1: the handle names a live entry.
        entries.key_is(place.found.handle, key.bytes).then_some(place.found)
    }

    /// Notes the cell of a key.
    #[inline]
    pub fn note(&mut self, key: &Key<'_>, found: Found) {
        self.0 = Some(Place { space: key.space, hash: key.hash, found });
    }

    /// Keeps R1.
    #[inline]
    pub fn forget(&mut self) {
        self.0 = None;
    }
}
