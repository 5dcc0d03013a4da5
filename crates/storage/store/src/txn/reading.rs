//! How what an engine read is shown to a command: decompressed, or noted as a row that is missing.

use crate::store::Store;
use crate::txn::scratch::Scratch;
use engine::{Entry, Fetch, Key};

/// How an entry is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// As an access that counts as a hit.
    Hit,
    /// As an access.
    Access,
    /// Without a trace.
    Peek,
}

/// What was read, decompressed if it is compressed.
#[inline]
pub(super) fn shown<'a>(
    store: &Store,
    scratch: &'a mut Scratch,
    key: &Key<'_>,
    read: Result<Option<Entry<'a>>, Fetch>,
    reading: Reading,
) -> Result<Option<Entry<'a>>, Fetch> {
    match read {
        Ok(Some(entry)) if entry.is_compressed() => show_compressed(store, scratch, key, entry, reading),
        read => read,
    }
}

/// An entry whose bytes are not its value: compressed, or away.
#[cold]
fn show_compressed<'a>(
    store: &Store,
    scratch: &'a mut Scratch,
    key: &Key<'_>,
    entry: Entry<'a>,
    reading: Reading,
) -> Result<Option<Entry<'a>>, Fetch> {
    if entry.is_away() {
        // The command runs again, and then it counts.
        scratch.hits -= u64::from(reading == Reading::Hit);
        lacks(store, scratch, key);
        return Err(Fetch);
    }
    Ok(Some(scratch.decoder.show_and_keep(store.source(), key, entry, reading != Reading::Peek)))
}

/// What was read, as it is stored, unless it is away.
#[inline]
pub(super) fn stored_here<'a>(
    store: &Store,
    scratch: &mut Scratch,
    key: &Key<'_>,
    read: Result<Option<Entry<'a>>, Fetch>,
) -> Result<Option<Entry<'a>>, Fetch> {
    match read {
        Err(Fetch) => {}
        Ok(Some(entry)) if entry.is_away() => {}
        here => return here,
    }
    lacks(store, scratch, key);
    Err(Fetch)
}

/// Notes that a row is missing. Finds out the shard anew, so that readers keep no register for it.
#[cold]
#[inline(never)]
pub(super) fn lacks(store: &Store, scratch: &mut Scratch, key: &Key<'_>) {
    scratch.want(store.shard_of(key), key);
}
