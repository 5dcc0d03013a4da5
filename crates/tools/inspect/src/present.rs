//! Which keys a set with missing blocks is known to have, or not to have, as the log continues.
//!
//! A key in no whole block may have been in a damaged one. It is unknown until the log sets it, deletes it, or clears
//! its database.

use base::KeyspaceId;
use engine::Key;
use std::collections::{BTreeMap, HashMap};

/// What is known of keys. Stores hashes: 10 to 20 bytes per key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Present(BTreeMap<KeyspaceId, Known>);

#[derive(Clone, Debug, Default)]
struct Known {
    /// Whether the key exists, by hash.
    keys: HashMap<u64, bool>,
    /// Whether all other keys are known to be absent.
    is_cleared: bool,
}

impl Present {
    /// Records whether the key exists.
    pub fn note(&mut self, key: &Key<'_>, is_there: bool) {
        self.0.entry(key.space).or_default().keys.insert(key.hash, is_there);
    }

    /// Records that a keyspace is empty.
    pub fn clear(&mut self, space: KeyspaceId) {
        self.0.insert(space, Known { keys: HashMap::new(), is_cleared: true });
    }

    /// Whether the key may have been in a damaged block.
    pub fn is_unknown(&self, key: &Key<'_>) -> bool {
        self.0.get(&key.space).is_none_or(|known| !known.is_cleared && !known.keys.contains_key(&key.hash))
    }
}
