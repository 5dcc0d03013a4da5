//! Entries of an RDB file into a store that serves no client.

use crate::build::stored_string;
use base::DbIndex;
use engine::{Effect, SharedBytes, Value};
use rdb::FileEntry;
use rdb::stored::put_changes;
use store::Store;

/// Room that is kept from entry to entry.
const ROOM_MAX: usize = 1 << 20;

/// Puts an entry into the store, past the log. What only a module can read, collections without elements, and entries
/// of databases that the store lacks are left out. `room` is used for the changes.
pub(crate) fn load(store: &Store, entry: FileEntry, room: &mut Vec<u8>) {
    let FileEntry { db, key, expire_at, form, value, lzf, .. } = entry;
    let Some(space) = store.spaces.get(DbIndex(db)) else { return };
    let key = store.key(space, &key);
    let value = match value {
        rdb::Value::String(string) => {
            let (encoding, bytes) = stored_string(string, lzf.as_deref());
            let bytes = SharedBytes::new(bytes);
            return store.load(&Effect::Set { key, value: Value::Shared(&bytes), encoding, expire_at });
        }
        value => value,
    };
    room.clear();
    let Some(kind) = put_changes(&value, form, room) else { return };
    drop(value);
    store.load(&Effect::Edit { key, kind, changes: room });
    if let Some(at) = expire_at {
        store.load(&Effect::Expire { key, at });
    }
    room.shrink_to(ROOM_MAX);
}
