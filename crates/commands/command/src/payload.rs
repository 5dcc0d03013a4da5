//! What DUMP gives, and MIGRATE sends: an entry as bytes that other servers load.

use crate::error::{self, Stop};
use crate::limits::REPLY_BYTES_MAX;
use engine::{Encoding, Entry, Type};
use rdb::{WriteError, stored};
use value::{Big, Stored};

const NOTHING: rdb::Value = rdb::Value::String(Vec::new());

/// What DUMP gives of an entry.
///
/// # Errors
/// It is too long to be sent.
pub fn payload(entry: &Entry<'_>) -> Result<Vec<u8>, Stop> {
    if content_bytes(entry) > REPLY_BYTES_MAX {
        return Err(error::REPLY_TOO_LONG);
    }
    payload_of(match entry.kind {
        Type::String => rdb::Value::String(entry.value.bytes().to_vec()),
        Type::Btree => return Err(BTREE),
        kind => stored::of_collection(kind, entry.encoding, entry.value.stored()).unwrap_or(NOTHING),
    })
}

/// A type of ARCUS.
pub const BTREE: Stop = Stop::error("ERR a btree has no form that Redis could load: DUMP and MIGRATE cannot take it");

/// No server loads one.
const EMPTY: Stop = Stop::error("ERR the collection has no elements, only attributes, which DUMP has no form for");

fn payload_of(value: rdb::Value) -> Result<Vec<u8>, Stop> {
    if value.is_empty_collection() {
        return Err(EMPTY);
    }
    rdb::dump::write_for_oldest(&value).map_err(|error| stop_of(&error))
}

/// What DUMP gives of a collection that is a tree.
///
/// # Errors
/// The format has no form for it.
pub fn payload_of_tree(kind: Type, tree: &Big) -> Result<Vec<u8>, WriteError> {
    rdb::dump::write_for_oldest(&stored::of_collection(kind, Encoding::BIG, Stored::Big(tree)).unwrap_or(NOTHING))
}

/// Why an entry has no such form, as a reply.
pub fn stop_of(error: &WriteError) -> Stop {
    Stop::error_with(format!("ERR {error}"))
}

/// Bytes of the elements, about.
pub fn content_bytes(entry: &Entry<'_>) -> usize {
    match entry.value {
        engine::Value::Big(big) => big.content_bytes(),
        value => value.len(),
    }
}
