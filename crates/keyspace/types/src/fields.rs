//! The optional fields of entries ([`engine::fields`]), as commands read and store them.
//!
//! A command that stores a new value drops the fields of the entry that it replaces. A command that edits a value keeps
//! them: a change in place keeps them implicitly, and a string that is stored again gets them from [`Extras`].

use crate::TypeError;
use base::UnixMs;
use engine::{Effect, Encoding, Entry, Fields, Key, Keyspace, NotifyClass, PackedFields, Type, Value};

/// Stores a string with exactly these fields, in one effect; a CAS id and a residency are not stored. What was there is
/// gone. Without fields it is what SET does.
pub fn set(ks: &mut dyn Keyspace, key: &Key<'_>, value: Value<'_>, expire_at: Option<UnixMs>, fields: &Fields<'_>) {
    Extras { expire_at, fields: fields.pack() }.store(ks, key, value, Encoding::PLAIN);
    ks.notify(NotifyClass::STRING, "set", key);
}

/// Gives the entry under the key exactly these fields; its value, expiration, CAS id and residency stay. False when the
/// key is absent.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn replace(ks: &mut dyn Keyspace, key: &Key<'_>, fields: &Fields<'_>) -> Result<bool, TypeError> {
    let is_stored = ks.peek_head(key)?.is_some();
    if is_stored {
        let (fields, mut buffer) = (fields.pack(), Vec::new());
        ks.apply(&Effect::Meta { key: *key, fields: fields.get().tagged(&mut buffer) });
    }
    Ok(is_stored)
}

/// What an edited string keeps of its entry.
#[derive(Default)]
pub(crate) struct Extras {
    expire_at: Option<UnixMs>,
    fields: PackedFields,
}

impl Extras {
    /// Those of the entry.
    #[inline]
    pub(crate) fn of(entry: &Entry<'_>) -> Self {
        Self { expire_at: entry.expire_at, fields: entry.fields.to_owned() }
    }

    /// Stores a string with them.
    #[inline]
    pub(crate) fn store(&self, ks: &mut dyn Keyspace, key: &Key<'_>, value: Value<'_>, encoding: Encoding) {
        let expire_at = self.expire_at;
        match self.fields.get().is_none() {
            true => ks.apply(&Effect::Set { key: *key, value, encoding, expire_at }),
            false => self.store_with(ks, key, value, encoding),
        }
    }

    #[cold]
    fn store_with(&self, ks: &mut dyn Keyspace, key: &Key<'_>, value: Value<'_>, encoding: Encoding) {
        let (kind, expire_at, mut buffer) = (Type::String, self.expire_at, Vec::new());
        let fields = self.fields.get().tagged(&mut buffer);
        ks.apply(&match fields.is_none() {
            // There were some that are in memory only.
            true => Effect::Set { key: *key, value, encoding, expire_at },
            false => Effect::StoreWith { key: *key, kind, encoding, value, expire_at, fields },
        });
    }
}
