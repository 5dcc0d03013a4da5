//! The order in which a database keeps its keys: as they are, or by their hashes.
//!
//! Hashed, a key is stored after its hash (8 bytes, the largest byte first), in the log, in memtables and in tables, so
//! that everything below the API sorts and cuts as ever. Scans would show the order of hashes and are refused.

use std::borrow::Cow;

use crate::batch::{Change, WriteBatch};
use crate::error::{Error, Result};
use crate::key::{KEY_LEN_MAX, hash};

/// Bytes in front of a stored key.
const HASH_LEN: usize = 8;

/// Longest key that follows its hash.
const HASHED_KEY_LEN_MAX: usize = KEY_LEN_MAX - HASH_LEN;

/// A database has one order for life; the manifest says which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeyOrder {
    #[default]
    Bytes,
    Hash,
}

impl KeyOrder {
    /// The form in which a key is stored.
    pub fn stored(self, key: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Bytes => Cow::Borrowed(key),
            Self::Hash => Cow::Owned([&hash(key).to_be_bytes(), key].concat()),
        }
    }

    /// Undoes [`stored`](Self::stored).
    pub fn given(self, stored: &[u8]) -> &[u8] {
        match self {
            Self::Bytes => stored,
            Self::Hash => stored.get(HASH_LEN..).unwrap_or_default(),
        }
    }

    /// The order of a database that has this stored key: one that follows its own hash got there on purpose.
    pub fn of(stored: &[u8]) -> Self {
        match stored.split_first_chunk::<HASH_LEN>() {
            Some((first, key)) if u64::from_be_bytes(*first) == hash(key) => Self::Hash,
            _ => Self::Bytes,
        }
    }

    /// The batch with all keys as they are stored.
    ///
    /// # Errors
    /// Hashed, a deleted range is not supported, and a key must leave room for its hash.
    pub fn stored_batch(self, batch: &WriteBatch) -> Result<Cow<'_, WriteBatch>> {
        if self == Self::Bytes {
            return Ok(Cow::Borrowed(batch));
        }
        let mut stored = WriteBatch::new();
        stored.set_lsn(batch.lsn());
        for (space, change) in batch.changes() {
            let space = crate::KeySpaceId(space);
            match change {
                Change::Put { key, value } => stored.put_in(space, &self.stored_checked(key)?, value),
                Change::Delete { key } => stored.delete_in(space, &self.stored_checked(key)?),
                Change::DeleteRange { .. } => return Err(unordered("no range can be deleted")),
            };
        }
        Ok(Cow::Owned(stored))
    }

    fn stored_checked(self, key: &[u8]) -> Result<Cow<'_, [u8]>> {
        if key.len() > HASHED_KEY_LEN_MAX {
            return Err(Error::InvalidArgument(format!(
                "a key kept by its hash has more than {HASHED_KEY_LEN_MAX} bytes"
            )));
        }
        Ok(self.stored(key))
    }

    /// # Errors
    /// Unsupported, unless keys stand in their own order.
    pub fn check_scan(self) -> Result<()> {
        match self {
            Self::Bytes => Ok(()),
            Self::Hash => Err(unordered("there is nothing to iterate over")),
        }
    }
}

fn unordered(what: &str) -> Error {
    Error::Unsupported(format!("keys are kept in the order of their hashes (Policy::Trie): {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_keys_come_back_and_tell_their_order() {
        for key in [&b""[..], b"a", b"a longer key than a hash"] {
            let stored = KeyOrder::Hash.stored(key);
            assert_eq!(KeyOrder::Hash.given(&stored), key);
            assert_eq!(KeyOrder::of(&stored), KeyOrder::Hash);
            assert_eq!(KeyOrder::of(key), KeyOrder::Bytes);
        }
    }

    #[test]
    fn long_keys_and_ranges_are_refused() {
        let mut batch = WriteBatch::new();
        batch.put(&[0; HASHED_KEY_LEN_MAX], b"v");
        assert!(KeyOrder::Hash.stored_batch(&batch).is_ok_and(|stored| stored.check().is_ok()));
        batch.put(&[0; HASHED_KEY_LEN_MAX + 1], b"v");
        assert!(matches!(KeyOrder::Hash.stored_batch(&batch), Err(Error::InvalidArgument(_))));
        batch.clear();
        batch.delete_range(&b"a"[..]..&b"b"[..]);
        assert!(matches!(KeyOrder::Hash.stored_batch(&batch), Err(Error::Unsupported(_))));
        assert!(KeyOrder::Bytes.stored_batch(&batch).is_ok());
    }
}
