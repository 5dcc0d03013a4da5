//! Operations on keys of any type: delete, expire, rename.

use crate::TypeError;
use base::UnixMs;
use engine::{Effect, Key, Keyspace};

/// Removes the key. False when it was absent.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn delete(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<bool, TypeError> {
    if ks.peek(key)?.is_none() {
        return Ok(false);
    }
    ks.apply(&Effect::Delete { key: *key });
    Ok(true)
}

/// Whether an expiration is set only under a condition (EXPIRE's options).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireCondition {
    /// Only if it has none.
    pub if_none: bool,
    /// Only if it has one.
    pub if_some: bool,
    /// Only if later than the present one; no expiration counts as infinitely late.
    pub if_later: bool,
    /// Only if earlier than the present one.
    pub if_earlier: bool,
}

impl ExpireCondition {
    fn allows(self, present: Option<UnixMs>, at: UnixMs) -> bool {
        !(self.if_none && present.is_some()
            || self.if_some && present.is_none()
            || self.if_later && present.is_none_or(|present| at <= present)
            || self.if_earlier && present.is_some_and(|present| at >= present))
    }
}

/// Sets when the key expires; a time in the past removes it. False when the key is absent or the condition does not hold.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn expire_at(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    at: UnixMs,
    condition: ExpireCondition,
) -> Result<bool, TypeError> {
    let now = ks.now();
    let Some(entry) = ks.peek(key)? else { return Ok(false) };
    if !condition.allows(entry.expire_at, at) {
        return Ok(false);
    }
    if at <= now {
        ks.apply(&Effect::Delete { key: *key });
    } else {
        ks.apply(&Effect::Expire { key: *key, at });
    }
    Ok(true)
}
