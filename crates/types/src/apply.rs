//! From an effect to stored bytes. Clients, replay of the log and replicas all come through here (T3).

use engine::{Effect, Engine, Key, NewEntry, Type, Value};

/// Leads to the engine that stores a key.
pub trait Engines {
    /// What stores a row.
    type Engine: Engine + ?Sized;

    /// The engine of the key's shard and keyspace; its shard is locked.
    fn engine(&mut self, key: &Key<'_>) -> &mut Self::Engine;
}

/// Applies an effect on entries. [`Effect::Clear`] and [`Effect::Swap`] concern whole keyspaces and are the store's.
///
/// # Panics
/// When the effect names an entry that is not there: the log and the store no longer agree, and going on would spread it.
#[inline]
pub fn apply<E: Engines + ?Sized>(engines: &mut E, effect: &Effect<'_>) {
    match *effect {
        Effect::Set { ref key, value, encoding, expire_at } => {
            engines.engine(key).write(key, &NewEntry { kind: Type::String, encoding, value, expire_at });
        }
        Effect::Splice { ref key, offset, bytes } => engines.engine(key).splice(key, offset, bytes),
        Effect::Delete { ref key } => {
            engines.engine(key).remove(key);
        }
        Effect::Expire { ref key, at } => {
            let stored = engines.engine(key).set_expiration(key, Some(at));
            assert!(stored, "an expiration was set on a key that is not stored");
        }
        Effect::Persist { ref key } => {
            let stored = engines.engine(key).set_expiration(key, None);
            assert!(stored, "an expiration was removed from a key that is not stored");
        }
        Effect::Rename { ref from, ref to } => rename(engines, from, to),
        Effect::Clear { .. } | Effect::Swap { .. } => unreachable!("keyspace effects are applied by the store"),
    }
}

/// Moves an entry to another key, perhaps in another shard.
fn rename<E: Engines + ?Sized>(engines: &mut E, from: &Key<'_>, to: &Key<'_>) {
    let Ok(Some(entry)) = engines.engine(from).read(from, false) else {
        panic!("a key was renamed that is not stored");
    };
    // The two engines may be one, so the value leaves its engine before the other is asked for.
    let (kind, encoding, expire_at) = (entry.kind, entry.encoding, entry.expire_at);
    let (copied, shared) = match entry.value {
        Value::Bytes(bytes) => (bytes.to_vec(), None),
        Value::Shared(shared) => (Vec::new(), Some(shared.clone())),
    };
    let value = shared.as_ref().map_or(Value::Bytes(&copied), Value::Shared);
    engines.engine(from).remove(from);
    engines.engine(to).write(to, &NewEntry { kind, encoding, value, expire_at });
}
