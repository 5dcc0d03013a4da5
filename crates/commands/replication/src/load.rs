//! Entries of an RDB file into keyspaces that no client sees meanwhile.

use base::{DbIndex, KeyspaceId};
use codec::stored::put_lzf;
use engine::{Effect, Encoding, SharedBytes, Type, Value};
use rdb::FileEntry;
use rdb::stored::put_changes;
use store::Store;
use types::decoder::may_be_compressed;

/// Room that is kept from entry to entry.
const ROOM_MAX: usize = 1 << 20;

/// Puts an entry into its database, past the log. Entries of databases that the store lacks are left out. Else as
/// [`load_into`].
pub fn load(store: &Store, entry: FileEntry, room: &mut Vec<u8>) {
    if let Some(space) = store.spaces.get(DbIndex(entry.db)) {
        load_into(store, space, entry, room);
    }
}

/// Puts an entry into a keyspace, past the log. What only a module can read and collections without elements are left
/// out. `room` is used for the changes.
pub fn load_into(store: &Store, space: KeyspaceId, entry: FileEntry, room: &mut Vec<u8>) {
    let FileEntry { key, expire_at, form, value, lzf, .. } = entry;
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

/// The string, or what it is compressed to in the file: LZF is one of the forms in which values are stored.
pub fn stored_string(string: Vec<u8>, lzf: Option<&[u8]>) -> (Encoding, Vec<u8>) {
    let mut stored = Vec::new();
    match lzf {
        Some(lzf) if may_be_compressed(Type::String, &string) && put_lzf(lzf, string.len(), &mut stored) => {
            (Encoding::PLAIN.compressed(), stored)
        }
        _ => (Encoding::PLAIN, string),
    }
}
