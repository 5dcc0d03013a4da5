//! From an effect to stored bytes. Clients, replay of the log and replicas all come through here (T3).

use crate::Kept;
use base::UnixMs;
use base::hash::KeyHasher;
use engine::{
    Effect, Encoding, Engine, Entry, ExtFields, Fields, Key, Known, Left, NewEntry, PackedFields, SharedBig, Type,
    Value,
};
use std::sync::Arc;
use value::Big;
use value::cold::Keeper;

/// Leads to the engine that stores a key.
pub trait Engines {
    /// What stores a row.
    type Engine: Engine + ?Sized;

    /// The engine of the key's shard and keyspace; its shard is locked.
    fn engine(&mut self, key: &Key<'_>) -> &mut Self::Engine;

    /// What orders the elements of collections that are made.
    fn order(&self) -> &KeyHasher;

    /// The reader of compressed leaves of trees.
    fn keeper(&self) -> Arc<dyn Keeper>;

    /// Has the value under the key, which is compressed, stored as it is:
    /// [`Decoder::decompress_in_place`](crate::Decoder). False, with nothing done, when replay changes a value that is
    /// away and could not be read: it stays away, and reads of it answer an error.
    fn decompress(&mut self, key: &Key<'_>) -> bool;
}

/// Applies an effect on entries. Returns what an edit leaves; `None` for other effects. The store applies
/// [`Effect::Clear`] and [`Effect::Swap`], which concern whole keyspaces, [`Effect::Library`] and [`Effect::Position`].
///
/// # Panics
/// When the effect names an entry that is not there: the log and the store no longer agree, and continuing would spread
/// it.
#[inline]
pub fn apply<E: Engines + ?Sized>(engines: &mut E, effect: &Effect<'_>) -> Option<Left> {
    match *effect {
        Effect::Set { ref key, value, encoding, expire_at } => {
            let fields = ExtFields::NONE;
            engines.engine(key).write(key, &NewEntry { kind: Type::String, encoding, value, expire_at, fields });
        }
        Effect::Store { ref key, kind, encoding, value, expire_at } => {
            let fields = ExtFields::NONE;
            engines.engine(key).write(key, &NewEntry { kind, encoding, value, expire_at, fields });
        }
        Effect::StoreWith { .. } | Effect::Meta { .. } => apply_fields(engines, effect),
        Effect::Edit { ref key, kind, changes } => return Some(edit(engines, key, kind, changes)),
        Effect::Leaves { ref key, kind, leaves } => push_leaves(engines, key, kind, leaves),
        Effect::Replace { ref key, tree, .. } => replace(engines, key, tree),
        Effect::Copy { ref from, ref to } => duplicate(engines, from, to),
        Effect::Splice { ref key, offset, bytes } => splice(engines, key, offset, bytes),
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
        Effect::Clear { .. } | Effect::Swap { .. } | Effect::Library { .. } | Effect::Position { .. } => {
            unreachable!("the store applies effects that are not about entries")
        }
    }
    None
}

/// Applies an effect that is about optional fields. Few are, so [`apply`] is spared their registers and stack.
#[cold]
#[inline(never)]
fn apply_fields<E: Engines + ?Sized>(engines: &mut E, effect: &Effect<'_>) {
    match *effect {
        Effect::StoreWith { ref key, kind, encoding, value, expire_at, fields } => {
            let fields = fields.get().pack();
            // Checkpoints have addresses, and so has the log where a tier is durable at once.
            let encoding = if fields.get().tier().is_some() { Encoding::AWAY } else { encoding };
            let entry = NewEntry { kind, encoding, value, expire_at, fields: fields.get() };
            let engine = engines.engine(key);
            engine.write(key, &entry);
            if fields.get().is_sticky() {
                engine.sticky_stored(key);
            }
        }
        Effect::Meta { ref key, fields } => set_fields(engines, key, &fields.get()),
        _ => unreachable!("only these have fields"),
    }
}

/// Puts a tree in the place of an earlier version of it. The expiration and the optional fields stay.
fn replace<E: Engines + ?Sized>(engines: &mut E, key: &Key<'_>, tree: &SharedBig) {
    let engine = engines.engine(key);
    let before = engine.read(key, false).ok().flatten();
    let expire_at = before.and_then(|entry| entry.expire_at);
    let fields = before.map(|entry| entry.fields.get().logged().pack()).unwrap_or_default();
    let (kind, encoding, value) = (tree.kind(), Encoding::BIG, Value::Big(tree));
    engine.write(key, &NewEntry { kind, encoding, value, expire_at, fields: fields.get() });
}

/// Replaces the optional fields that are logged; CAS id and residency are no part of the history.
fn set_fields<E: Engines + ?Sized>(engines: &mut E, key: &Key<'_>, fields: &Fields<'_>) {
    let engine = engines.engine(key);
    let before = engine.read(key, false).ok().flatten().map(|entry| entry.fields.get()).unwrap_or_default();
    let fields = Fields { cas: before.cas, residency: before.residency, ..*fields }.pack();
    let stored = engine.set_fields(key, fields.get());
    assert!(stored, "optional fields were set on a key that is not stored");
}

/// Adds leaves to a tree that is being loaded.
fn push_leaves<E: Engines + ?Sized>(engines: &mut E, key: &Key<'_>, kind: Type, leaves: &[u8]) {
    let (keeper, hasher) = (engines.keeper(), engines.order().clone());
    let engine = engines.engine(key);
    if !matches!(engine.read(key, false), Ok(Some(_))) {
        let tree = SharedBig::new(Big::empty(kind, &hasher));
        let (encoding, value, fields) = (Encoding::BIG, Value::Big(&tree), ExtFields::NONE);
        engine.write(key, &NewEntry { kind, encoding, value, expire_at: None, fields });
    }
    engine.reform(key, &mut |tree| tree.push_leaves(leaves, &keeper));
}

/// Writes into a string; one that is compressed is stored decompressed from then on.
fn splice<E: Engines + ?Sized>(engines: &mut E, key: &Key<'_>, offset: u64, bytes: &[u8]) {
    if !engines.engine(key).splice(key, offset, bytes) {
        if !engines.decompress(key) {
            return;
        }
        let is_spliced = engines.engine(key).splice(key, offset, bytes);
        assert!(is_spliced, "a string is compressed after it was decompressed");
    }
}

/// Changes a collection; one that is compressed is stored decompressed from then on. Not inlined, so that [`apply`] is
/// spared its registers and stack: 2 instructions of a SET.
#[inline(never)]
fn edit<E: Engines + ?Sized>(engines: &mut E, key: &Key<'_>, kind: Type, changes: &[u8]) -> Left {
    match engines.engine(key).edit(key, kind, changes, Known::Read, false) {
        Ok(edited) => edited.left,
        Err(_) => edit_decompressed(engines, key, kind, changes),
    }
}

#[cold]
fn edit_decompressed<E: Engines + ?Sized>(engines: &mut E, key: &Key<'_>, kind: Type, changes: &[u8]) -> Left {
    if !engines.decompress(key) {
        return Left::Elements(1);
    }
    let edited = engines.engine(key).edit(key, kind, changes, Known::Read, false);
    edited.expect("a collection is not compressed after it was decompressed").left
}

/// Moves an entry to another key, perhaps in another shard.
fn rename<E: Engines + ?Sized>(engines: &mut E, from: &Key<'_>, to: &Key<'_>) {
    let entry = take(engines, from);
    engines.engine(from).remove(from);
    entry.put(engines, to);
}

/// Stores the same again under another key.
fn duplicate<E: Engines + ?Sized>(engines: &mut E, from: &Key<'_>, to: &Key<'_>) {
    take(engines, from).put(engines, to);
}

/// An entry outside its engine: two keys may lead to one engine, so it is left before it is asked for again.
struct Taken {
    kind: Type,
    encoding: Encoding,
    value: Kept,
    expire_at: Option<UnixMs>,
    fields: PackedFields,
}

fn take<E: Engines + ?Sized>(engines: &mut E, from: &Key<'_>) -> Taken {
    let Ok(Some(entry)) = engines.engine(from).read(from, false) else {
        panic!("a key was renamed or copied that is not stored");
    };
    let Entry { kind, encoding, value, expire_at, fields, .. } = entry;
    // One that is away could not be read. It takes its address along, so that a read still answers an error.
    let fields = if entry.is_away() { fields.to_owned() } else { fields.get().logged().pack() };
    Taken { kind, encoding, value: Kept::new(value), expire_at, fields }
}

impl Taken {
    fn put<E: Engines + ?Sized>(&self, engines: &mut E, to: &Key<'_>) {
        let Self { kind, encoding, ref value, expire_at, ref fields } = *self;
        let (value, fields) = (value.value(), fields.get());
        let engine = engines.engine(to);
        engine.write(to, &NewEntry { kind, encoding, value, expire_at, fields });
        if fields.is_sticky() {
            engine.sticky_stored(to);
        }
    }
}
