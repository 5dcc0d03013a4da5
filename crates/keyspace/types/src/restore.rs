//! A value that was made elsewhere takes a key: RESTORE.

use crate::collection::Made;
use crate::{TypeError, collection};
use base::UnixMs;
use engine::{Effect, Encoding, Key, Keyspace, NotifyClass, Type, Value};

/// The value.
#[derive(Clone, Copy, Debug)]
pub enum Restored<'a> {
    /// A string.
    String(Value<'a>),
    /// A collection, as the changes that build it.
    Collection {
        /// Its type.
        kind: Type,
        /// The changes.
        changes: &'a [u8],
    },
    /// A collection that is made already.
    Made(&'a Made),
}

/// Stores the value in place of whatever the key has. When it has expired already, only what the key has goes.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn restore(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    value: Restored<'_>,
    expire_at: Option<UnixMs>,
) -> Result<(), TypeError> {
    let is_taken = ks.peek_head(key)?.is_some();
    let has_expired = expire_at.is_some_and(|at| at <= ks.now());
    if is_taken {
        ks.apply(&Effect::Delete { key: *key });
    }
    if has_expired {
        if is_taken {
            ks.notify(NotifyClass::GENERIC, "del", key);
        }
        return Ok(());
    }
    let is_string = matches!(value, Restored::String(_));
    match value {
        Restored::String(value) => ks.apply(&Effect::Set { key: *key, value, encoding: Encoding::PLAIN, expire_at }),
        Restored::Collection { kind, changes } => collection::edit(ks, key, kind, changes),
        Restored::Made(made) => made.store(ks, key),
    }
    if let (false, Some(at)) = (is_string, expire_at) {
        ks.apply(&Effect::Expire { key: *key, at });
    }
    ks.notify(NotifyClass::GENERIC, "restore", key);
    Ok(())
}
