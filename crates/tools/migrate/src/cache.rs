//! The items of a running memcached, as a data directory.
//!
//! ```text
//! memcached --lru_crawler metadump hash-> names --> mg NAME v f t, in batches --> store --entries--> Feed
//! ```
//!
//! C1. An item is taken as it is when it is read. One that is stored after the crawler has passed its place is not
//!     taken, nor is one that expires or is evicted before it is read.
//! C2. Names of the binary protocol may have spaces and control characters. The text protocol cannot ask for them, so
//!     they are counted and left out.
//!
//! Source: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>, and what memcached 1.6 answers.

mod connection;

use crate::MigrateError;
use crate::appendonly::Played;
use crate::import::{Kept, keep, refuse_files};
use base::random::Entropy;
use base::{Clock, DbIndex, UnixMs};
use checkpoint::SetInfo;
use connection::{Connection, Found};
use engine::fields::Fields;
use engine::{Effect, Encoding, SharedBytes, TaggedFields, Type, Value};
use replication::host_and_port;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use store::Store;
use vfs::FileSystem;

const SCHEME: &str = "memcached://";
const PORT: u16 = 11211;

/// Items that are asked for at once.
const BATCH: usize = 256;

/// Where a memcached listens: `memcached://HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Cache {
    /// Whether a text is meant as an address of a memcached.
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(SCHEME)
    }
}

/// A text that is no address of a memcached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: expected memcached://HOST[:PORT], with a port from 1 to 65535")]
pub struct CacheAddressError(String);

impl FromStr for Cache {
    type Err = CacheAddressError;

    fn from_str(text: &str) -> Result<Self, CacheAddressError> {
        let place = text.strip_prefix(SCHEME).and_then(|place| host_and_port(place.trim_end_matches('/'), PORT).ok());
        let (host, port) = place.ok_or_else(|| CacheAddressError(text.to_owned()))?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What was read of a memcached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Items {
    /// Items that are taken.
    pub taken: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Those of them that expire.
    pub expiring: u64,
    /// Those of them that have flags.
    pub flagged: u64,
    /// Names that the text protocol cannot ask for (C2).
    pub unnamed: u64,
    /// Items that had expired or were evicted when they were read (C1).
    pub gone: u64,
}

/// Reads all items of a memcached; with a directory, which is empty or missing, makes a data directory of them. Calls
/// `read` with the items so far.
///
/// # Errors
/// The connection, the directory, or the disk. The directory holds no data then.
pub fn import_cache(
    (cache, dir): (&Cache, Option<&Path>),
    fs: &Arc<dyn FileSystem>,
    clock: &dyn Clock,
    entropy: &Arc<dyn Entropy>,
    read: &mut dyn FnMut(&Items),
) -> Result<(Items, Option<SetInfo>), MigrateError> {
    dir.map_or(Ok(()), |dir| refuse_files(&**fs, dir))?;
    let store = crate::appendonly::empty_store(Arc::clone(entropy));
    let items = read_all(cache, &store, clock, read)?;
    let Some(dir) = dir else { return Ok((items, None)) };
    let now = clock.now_ms();
    let kept = Kept { now, databases: 1, libraries: Arc::default(), expected_bytes: items.bytes };
    let set = keep(fs, dir, &kept, &**entropy, &Played::of(store, now))?;
    Ok((items, Some(set)))
}

fn read_all(
    cache: &Cache,
    store: &Store,
    clock: &dyn Clock,
    read: &mut dyn FnMut(&Items),
) -> Result<Items, MigrateError> {
    let (mut names, mut values) = (Connection::open(cache)?, Connection::open(cache)?);
    let (mut items, mut batch) = (Items::default(), Vec::new());
    names.begin_dump()?;
    loop {
        let name = names.next_name()?;
        let is_end = name.is_none();
        match name {
            Some(name) if name.iter().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control()) => {
                items.unnamed += 1;
            }
            Some(name) => batch.push(name),
            None => {}
        }
        if batch.len() == BATCH || is_end {
            values.ask(&batch)?;
            for name in batch.drain(..) {
                match values.next_value()? {
                    Some(found) => put(store, &name, found, clock.now_ms(), &mut items),
                    None => items.gone += 1,
                }
            }
            read(&items);
        }
        if is_end {
            return Ok(items);
        }
    }
}

/// Puts an item into database 0, where clients of the memcached port find it.
fn put(store: &Store, name: &[u8], found: Found, now: UnixMs, items: &mut Items) {
    let Some(space) = store.spaces.get(DbIndex(0)) else { return };
    items.taken += 1;
    items.bytes += found.value.len() as u64;
    items.expiring += u64::from(found.seconds_left.is_some());
    items.flagged += u64::from(found.flags != 0);
    let (key, encoding) = (store.key(space, name), Encoding::PLAIN);
    let expire_at = found.seconds_left.map(|seconds| now.saturating_add(seconds.saturating_mul(1000)));
    let value = SharedBytes::new(found.value);
    let value = Value::Shared(&value);
    let mut tagged = Vec::new();
    Fields { flags: found.flags, ..Fields::default() }.put_tagged(&mut tagged);
    match TaggedFields::check(&tagged).filter(|_| found.flags != 0) {
        Some(fields) => {
            store.load(&Effect::StoreWith { key, kind: Type::String, encoding, value, expire_at, fields });
        }
        None => store.load(&Effect::Set { key, value, encoding, expire_at }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let cache = |text: &str| text.parse::<Cache>().map(|cache| cache.to_string());
        assert_eq!(cache("memcached://10.0.0.7").unwrap(), "10.0.0.7:11211");
        assert_eq!(cache("memcached://cache.local:1122/").unwrap(), "cache.local:1122");
        for text in ["memcached://", "memcached://h:0", "memcached://h:x", "redis://h"] {
            assert!(cache(text).is_err(), "{text}");
        }
    }
}
