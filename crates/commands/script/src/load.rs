//! Libraries of an RDB file.

use crate::metadata;
use engine::Effect;
use store::Store;

/// Loads a library of an RDB file into the store, without the log. Returns false, without effect, if its first line is
/// invalid.
pub fn load_library(store: &Store, code: &[u8]) -> bool {
    let Ok(metadata) = metadata::read(code) else { return false };
    store.load(&Effect::Library { name: &metadata.name, code });
    true
}
