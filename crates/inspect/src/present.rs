//! Which keys a set with missing blocks certainly has, and has not, as the log goes on.
//!
//! A key that is in no whole block may have been in a damaged one. It is unknown until the log sets it, deletes it, or clears its
//! database.

use base::KeyspaceId;
use engine::Key;
use std::collections::{BTreeMap, HashMap};

/// What is known of keys. Keeps hashes, 10 to 20 bytes a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Present(BTreeMap<KeyspaceId, Known>);

#[derive(Clone, Debug, Default)]
struct Known {
    /// By hash, whether the key is there.
    keys: HashMap<u64, bool>,
    /// All others are certainly absent.
    is_cleared: bool,
}

impl Present {
    /// Notes that the key is there, or not.
    pub fn note(&mut self, key: &Key<'_>, is_there: bool) {
        self.0.entry(key.space).or_default().keys.insert(key.hash, is_there);
    }

    /// Notes that a keyspace is empty.
    pub fn clear(&mut self, space: KeyspaceId) {
        self.0.insert(space, Known { keys: HashMap::new(), is_cleared: true });
    }

    /// Whether the key may have been in a damaged block.
    pub fn is_unknown(&self, key: &Key<'_>) -> bool {
        self.0.get(&key.space).is_none_or(|known| !known.is_cleared && !known.keys.contains_key(&key.hash))
    }
}
