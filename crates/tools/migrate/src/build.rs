//! From an entry of a file to what is stored, and into a checkpoint's feed.

use base::KeyspaceId;
use base::hash::KeyHasher;
use engine::{Encoding, Entry, EntrySink, ExtFields, SharedBytes, Type, Value};
use rdb::FileEntry;
use rdb::stored::put_changes;
use replication::load::stored_string;
use value::{Body, Limits, Slot};

/// Makes entries, one after the other. Small collections are packed by Valkey's default limits; an edit on the server
/// packs by those that are configured.
pub(crate) struct Builder {
    limits: Limits,
    hasher: KeyHasher,
    changes: Vec<u8>,
    packed: Vec<u8>,
}

/// Room that is kept from entry to entry.
const ROOM_MAX: usize = 1 << 20;

impl Builder {
    pub fn new(hasher: KeyHasher) -> Self {
        Self { limits: Limits::default(), hasher, changes: Vec::new(), packed: Vec::new() }
    }

    /// Gives an entry that is taken to the sink, in the keyspace of its database.
    pub fn save(&mut self, entry: FileEntry, sink: &mut dyn EntrySink) {
        let FileEntry { db, key, expire_at, form, value, lzf, .. } = entry;
        let mut put = |kind, encoding, value: Value<'_>| {
            sink.save(
                KeyspaceId(db),
                &Entry { key: &key, kind, encoding, value, expire_at, stamp: 0, fields: ExtFields::NONE },
            );
        };
        let value = match value {
            rdb::Value::String(string) => {
                let (encoding, bytes) = stored_string(string, lzf.as_deref());
                return put(Type::String, encoding, Value::Shared(&SharedBytes::new(bytes)));
            }
            value => value,
        };

        self.changes.clear();
        let Some(kind) = put_changes(&value, form, &mut self.changes) else { return };
        // What is huge is not held twice.
        drop(value);
        self.packed.clear();
        let body = Body::Packed((&mut self.packed).into());
        let mut slot = Slot { body, encoding: Encoding::PACKED, limits: &self.limits, hasher: &self.hasher };
        value::apply(kind, &mut slot, &self.changes);
        self.changes.shrink_to(ROOM_MAX);
        let encoding = slot.encoding;
        match slot.body {
            Body::Packed(bytes) => put(kind, encoding, Value::Bytes(&bytes)),
            Body::Grown(big) => put(kind, encoding, Value::Big(&big)),
            // It was packed.
            Body::Big(_) => {}
        }
        self.packed.shrink_to(ROOM_MAX);
    }
}
