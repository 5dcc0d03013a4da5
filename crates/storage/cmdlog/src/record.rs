//! The payload of a record: effects encoded as bytes.
//!
//! ```text
//! effect = operation (1) | keyspace (varint) | fields
//! string = length (varint) | bytes
//! time   = zigzag varint of milliseconds since 1970
//! ```
//!
//! The high bits of the operation byte are flags of that operation. An unknown operation or flag is an error, never
//! skipped.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

use base::hash::KeyHasher;
use base::{KeyspaceId, UnixMs, varint};
use codec::DictionaryNumber;
use codec::stored::Stored;
use engine::{Effect, Encoding, Key, SharedBytes, TaggedFields, Type, Value};
use std::collections::BTreeSet;
use value::Big;
use value::wire::{self, put_string, take_string};

/// Operation numbers. Never reused, never renumbered.
mod operation {
    pub const SET: u8 = 1;
    pub const SPLICE: u8 = 2;
    pub const DELETE: u8 = 3;
    pub const EXPIRE: u8 = 4;
    pub const PERSIST: u8 = 5;
    pub const RENAME: u8 = 6;
    pub const CLEAR: u8 = 7;
    pub const SWAP: u8 = 8;
    pub const STORE: u8 = 9;
    pub const EDIT: u8 = 10;
    pub const COPY: u8 = 11;
    pub const LEAVES: u8 = 12;
    pub const META: u8 = 13;
    pub const STORE_WITH: u8 = 14;
    pub const LIBRARY: u8 = 15;
    /// Numbers with a meaning that no version writes yet.
    pub const RESERVED: [(u8, &str); 2] = [(16, "prefix flush"), (17, "slot state")];
    pub const POSITION: u8 = 18;

    /// SET, STORE, STORE_WITH: an expiration follows.
    pub const WITH_EXPIRATION: u8 = 0x80;
    /// SET: an encoding byte other than 0 follows.
    pub const WITH_ENCODING: u8 = 0x40;
    /// SET, STORE, STORE_WITH: the value is compressed, in its stored form.
    pub const COMPRESSED: u8 = 0x20;
}

/// Changes up to this length are copied into the record, and so pass through the ring.
const SHARED_BYTES_MIN: usize = 32 << 10;

/// Collects the effects of one command or transaction. Reused, so a hot path does not allocate.
#[derive(Debug, Default)]
pub struct RecordBuilder {
    bytes: Vec<u8>,
    /// Bytes that are not copied, and their place among the others.
    shared: Option<(usize, SharedBytes)>,
}

/// A record's payload; a part of it may be shared.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The bytes before the shared part; all of them if there is none.
    pub head: &'a [u8],
    /// The shared part and the bytes after it.
    pub shared: Option<(&'a SharedBytes, &'a [u8])>,
}

impl Payload<'_> {
    /// A copy of the whole payload.
    pub fn to_vec(&self) -> Vec<u8> {
        match self.shared {
            Some((shared, tail)) => [self.head, shared, tail].concat(),
            None => self.head.to_vec(),
        }
    }
}

impl RecordBuilder {
    /// Clears the builder.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        if self.shared.is_some() {
            self.shared = None;
        }
    }

    /// The payload so far, without its shared part ([`RecordBuilder::payload`] has both); empty when nothing was
    /// changed.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The payload so far, with its shared part if it has one.
    #[inline]
    pub fn payload(&self) -> Option<Payload<'_>> {
        let (at, shared) = self.shared.as_ref()?;
        let (head, tail) = self.bytes.split_at_checked(*at)?;
        Some(Payload { head, shared: Some((shared, tail)) })
    }

    /// Adds an [`Effect::Edit`] by reference, unless the record already has a shared part.
    fn push_edit_of_shared(&mut self, key: &Key<'_>, kind: Type, changes: &SharedBytes) {
        put_edit_head(&mut self.bytes, key.space, key.bytes, kind, changes.len());
        if self.shared.is_none() && changes.len() > SHARED_BYTES_MIN {
            self.shared = Some((self.bytes.len(), changes.clone()));
        } else {
            self.bytes.extend_from_slice(changes);
        }
    }

    /// Adds an effect.
    pub fn push(&mut self, effect: &Effect<'_>) {
        let out = &mut self.bytes;
        match *effect {
            Effect::Set { ref key, value, encoding, expire_at } => {
                put_set_head(out, key.space, key.bytes, encoding, expire_at, value.len());
                out.extend_from_slice(value.bytes());
            }
            Effect::Store { ref key, kind, encoding, value, expire_at } => {
                put_store_head(out, key.space, key.bytes, kind, encoding, expire_at, value.len());
                out.extend_from_slice(value.bytes());
            }
            Effect::StoreWith { ref key, kind, encoding, value, expire_at, fields } => {
                let head = StoreHead { kind, encoding, expire_at, fields, value_len: value.len() };
                head.put(out, key.space, key.bytes);
                out.extend_from_slice(value.bytes());
            }
            Effect::Meta { ref key, fields } => put_meta(out, key.space, key.bytes, fields),
            Effect::Edit { ref key, kind, changes } => {
                put_edit_head(out, key.space, key.bytes, kind, changes.len());
                out.extend_from_slice(changes);
            }
            Effect::Leaves { ref key, kind, leaves } => {
                put_leaves_head(out, key.space, key.bytes, kind, leaves.len());
                out.extend_from_slice(leaves);
            }
            Effect::Replace { ref key, tree, changes } => self.push_edit_of_shared(key, tree.kind(), changes),
            Effect::Copy { ref from, ref to } => {
                put_key(out, operation::COPY, from);
                varint::put(out, u64::from(to.space.0));
                put_string(out, to.bytes);
            }
            Effect::Splice { ref key, offset, bytes } => {
                put_key(out, operation::SPLICE, key);
                varint::put(out, offset);
                put_string(out, bytes);
            }
            Effect::Delete { ref key } => put_key(out, operation::DELETE, key),
            Effect::Expire { ref key, at } => put_expire(out, key.space, key.bytes, at),
            Effect::Persist { ref key } => put_key(out, operation::PERSIST, key),
            Effect::Rename { ref from, ref to } => {
                put_key(out, operation::RENAME, from);
                put_string(out, to.bytes);
            }
            Effect::Clear { space } => put_space(out, operation::CLEAR, space),
            Effect::Swap { a, b } => {
                put_space(out, operation::SWAP, a);
                varint::put(out, u64::from(b.0));
            }
            Effect::Library { name, code } => put_library(out, name, code),
            Effect::Position { text } => put_position(out, text),
        }
    }
}

/// An [`Effect::Library`].
pub fn put_library(out: &mut Vec<u8>, name: &[u8], code: &[u8]) {
    put_space(out, operation::LIBRARY, NO_SPACE);
    put_string(out, name);
    put_string(out, code);
}

/// An [`Effect::Position`].
pub fn put_position(out: &mut Vec<u8>, text: &[u8]) {
    put_space(out, operation::POSITION, NO_SPACE);
    put_string(out, text);
}

/// What an effect that concerns no keyspace has as its keyspace id.
const NO_SPACE: KeyspaceId = KeyspaceId(0);

/// Everything of an [`Effect::Set`] before the value's bytes: for writers that do not copy large values.
pub fn put_set_head(
    out: &mut Vec<u8>,
    space: KeyspaceId,
    key: &[u8],
    encoding: Encoding,
    expire_at: Option<UnixMs>,
    value_len: usize,
) {
    let with_expiration = if expire_at.is_some() { operation::WITH_EXPIRATION } else { 0 };
    let compressed = if encoding.is_compressed() { operation::COMPRESSED } else { 0 };
    let encoding = encoding.decompressed();
    let with_encoding = if encoding == Encoding::PLAIN { 0 } else { operation::WITH_ENCODING };
    put_space(out, operation::SET | with_expiration | with_encoding | compressed, space);
    put_string(out, key);
    if let Some(at) = expire_at {
        varint::put(out, varint::zigzag(at));
    }
    if encoding != Encoding::PLAIN {
        out.push(encoding.0);
    }
    varint::put(out, value_len as u64);
}

/// Everything of an [`Effect::Store`] before the value's bytes.
pub fn put_store_head(
    out: &mut Vec<u8>,
    space: KeyspaceId,
    key: &[u8],
    kind: Type,
    encoding: Encoding,
    expire_at: Option<UnixMs>,
    value_len: usize,
) {
    let with_expiration = if expire_at.is_some() { operation::WITH_EXPIRATION } else { 0 };
    let compressed = if encoding.is_compressed() { operation::COMPRESSED } else { 0 };
    put_space(out, operation::STORE | with_expiration | compressed, space);
    put_string(out, key);
    out.extend_from_slice(&[kind as u8, encoding.decompressed().0]);
    if let Some(at) = expire_at {
        varint::put(out, varint::zigzag(at));
    }
    varint::put(out, value_len as u64);
}

/// A stored entry without its key and its value's bytes: for writers of any entry that is not a tree.
#[derive(Clone, Copy, Debug)]
pub struct StoreHead<'a> {
    /// Its type.
    pub kind: Type,
    /// How the value is encoded.
    pub encoding: Encoding,
    /// When it expires.
    pub expire_at: Option<UnixMs>,
    /// Its optional fields.
    pub fields: TaggedFields<'a>,
    /// Bytes of the value.
    pub value_len: usize,
}

impl StoreHead<'_> {
    /// Everything of an [`Effect::StoreWith`] before the value's bytes. An entry without fields is encoded as an
    /// [`Effect::Set`] or [`Effect::Store`], with the same bytes as before fields existed.
    pub fn put(&self, out: &mut Vec<u8>, space: KeyspaceId, key: &[u8]) {
        let Self { kind, encoding, expire_at, fields, value_len } = *self;
        match kind {
            _ if !fields.is_none() => {}
            Type::String => return put_set_head(out, space, key, encoding, expire_at, value_len),
            _ => return put_store_head(out, space, key, kind, encoding, expire_at, value_len),
        }
        let with_expiration = if expire_at.is_some() { operation::WITH_EXPIRATION } else { 0 };
        let compressed = if encoding.is_compressed() { operation::COMPRESSED } else { 0 };
        put_space(out, operation::STORE_WITH | with_expiration | compressed, space);
        put_string(out, key);
        out.extend_from_slice(&[kind as u8, encoding.decompressed().0]);
        if let Some(at) = expire_at {
            varint::put(out, varint::zigzag(at));
        }
        put_string(out, fields.bytes());
        varint::put(out, value_len as u64);
    }
}

/// An [`Effect::Meta`].
pub fn put_meta(out: &mut Vec<u8>, space: KeyspaceId, key: &[u8], fields: TaggedFields<'_>) {
    put_space(out, operation::META, space);
    put_string(out, key);
    put_string(out, fields.bytes());
}

/// Everything of an [`Effect::Edit`] before the changes.
pub fn put_edit_head(out: &mut Vec<u8>, space: KeyspaceId, key: &[u8], kind: Type, changes_len: usize) {
    put_space(out, operation::EDIT, space);
    put_string(out, key);
    out.push(kind as u8);
    varint::put(out, changes_len as u64);
}

/// Everything of an [`Effect::Leaves`] before the leaves.
pub fn put_leaves_head(out: &mut Vec<u8>, space: KeyspaceId, key: &[u8], kind: Type, leaves_len: usize) {
    put_space(out, operation::LEAVES, space);
    put_string(out, key);
    out.push(kind as u8);
    varint::put(out, leaves_len as u64);
}

/// An [`Effect::Expire`].
pub fn put_expire(out: &mut Vec<u8>, space: KeyspaceId, key: &[u8], at: UnixMs) {
    put_space(out, operation::EXPIRE, space);
    put_string(out, key);
    varint::put(out, varint::zigzag(at));
}

fn put_space(out: &mut Vec<u8>, operation: u8, space: KeyspaceId) {
    out.push(operation);
    varint::put(out, u64::from(space.0));
}

fn put_key(out: &mut Vec<u8>, operation: u8, key: &Key<'_>) {
    put_space(out, operation, key.space);
    put_string(out, key.bytes);
}

/// Why bytes are not a valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The payload ends inside an effect, or a number in it is malformed.
    #[error("effect at byte {offset} of the record is cut short or malformed")]
    Malformed {
        /// Where the effect begins.
        offset: usize,
    },
    /// A newer program wrote it: the number is reserved for an effect that this version cannot apply.
    #[error("effect at byte {offset} of the record is a {what}, which this version cannot apply; use a newer one")]
    Reserved {
        /// What the number is reserved for.
        what: &'static str,
        /// Where the effect begins.
        offset: usize,
    },
    /// A newer program wrote it.
    #[error("operation {operation:#04x} at byte {offset} of the record is unknown to this version")]
    UnknownOperation {
        /// The operation byte.
        operation: u8,
        /// Its position in the record.
        offset: usize,
    },
}

/// The dictionaries needed to read the value of an effect: none unless the value is stored with one.
pub fn dictionaries_of(effect: &Effect<'_>) -> BTreeSet<DictionaryNumber> {
    let mut needed = BTreeSet::new();
    let mut note =
        |stored: &[u8]| needed.extend(Stored::parse(stored).ok().and_then(|stored| stored.form.dictionary()));
    match effect {
        Effect::Set { value, encoding, .. }
        | Effect::Store { value, encoding, .. }
        | Effect::StoreWith { value, encoding, .. }
            if encoding.is_compressed() =>
        {
            note(value.bytes());
        }
        Effect::Leaves { kind, leaves, .. } => Big::stored_in_leaves(*kind, leaves, &mut note),
        _ => {}
    }
    needed
}

/// The effects of a record's payload, in order. After an error the iterator ends.
pub fn effects<'a>(payload: &'a [u8], hasher: &'a KeyHasher) -> impl Iterator<Item = Result<Effect<'a>, DecodeError>> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let offset = payload.len().saturating_sub(rest.len());
        let effect = take_effect(&mut rest, hasher, offset);
        if effect.is_err() {
            rest = &[];
        }
        Some(effect)
    })
}

fn take_effect<'a>(rest: &mut &'a [u8], hasher: &KeyHasher, offset: usize) -> Result<Effect<'a>, DecodeError> {
    let Some((&first, tail)) = rest.split_first() else { return Err(DecodeError::Malformed { offset }) };
    *rest = tail;
    const FLAGS_OF_SET: u8 = operation::WITH_EXPIRATION | operation::WITH_ENCODING | operation::COMPRESSED;
    let operation = first & !FLAGS_OF_SET;
    let flags = match operation {
        operation::SET => FLAGS_OF_SET,
        operation::STORE | operation::STORE_WITH => operation::WITH_EXPIRATION | operation::COMPRESSED,
        _ => 0,
    };
    if let Some((_, what)) = operation::RESERVED.into_iter().find(|(number, _)| *number == operation) {
        return Err(DecodeError::Reserved { what, offset });
    }
    if first & !flags != operation || !(operation::SET..=operation::POSITION).contains(&operation) {
        return Err(DecodeError::UnknownOperation { operation: first, offset });
    }
    take_fields(rest, hasher, first, operation).ok_or(DecodeError::Malformed { offset })
}

fn take_fields<'a>(rest: &mut &'a [u8], hasher: &KeyHasher, first: u8, operation: u8) -> Option<Effect<'a>> {
    let space = take_space(rest)?;
    match operation {
        operation::CLEAR => return Some(Effect::Clear { space }),
        operation::SWAP => return Some(Effect::Swap { a: space, b: take_space(rest)? }),
        operation::LIBRARY => {
            let (name, code) = (take_string(rest)?, take_string(rest)?);
            return (space == NO_SPACE && !name.is_empty()).then_some(Effect::Library { name, code });
        }
        operation::POSITION => {
            let text = take_string(rest)?;
            return (space == NO_SPACE).then_some(Effect::Position { text });
        }
        _ => {}
    }
    let key = Key::new(hasher, space, take_string(rest)?);
    Some(match operation {
        operation::SET => {
            let expire_at = if first & operation::WITH_EXPIRATION == 0 { None } else { Some(take_time(rest)?) };
            let encoding = if first & operation::WITH_ENCODING == 0 { Encoding::PLAIN } else { take_encoding(rest)? };
            let value = take_string(rest)?;
            let encoding = match first & operation::COMPRESSED {
                0 => encoding,
                _ => Stored::parse(value).is_ok().then(|| encoding.compressed())?,
            };
            Effect::Set { key, value: Value::Bytes(value), encoding, expire_at }
        }
        operation::SPLICE => Effect::Splice { key, offset: varint::take(rest)?, bytes: take_string(rest)? },
        operation::DELETE => Effect::Delete { key },
        operation::EXPIRE => Effect::Expire { key, at: take_time(rest)? },
        operation::PERSIST => Effect::Persist { key },
        operation::STORE => {
            let (kind, encoding) = (take_collection(rest)?, wire::take_byte(rest)?);
            let expire_at = if first & operation::WITH_EXPIRATION == 0 { None } else { Some(take_time(rest)?) };
            let value = take_string(rest)?;
            let encoding = match first & operation::COMPRESSED {
                0 => Encoding::of_bytes(encoding)?,
                _ => take_compressed(encoding, value)?,
            };
            Effect::Store { key, kind, encoding, value: Value::Bytes(value), expire_at }
        }
        operation::STORE_WITH => {
            let kind = wire::take_byte(rest).and_then(Type::from_number)?;
            let encoding = wire::take_byte(rest)?;
            let expire_at = if first & operation::WITH_EXPIRATION == 0 { None } else { Some(take_time(rest)?) };
            let fields = TaggedFields::check(take_string(rest)?).filter(|fields| !fields.is_none())?;
            let value = take_string(rest)?;
            let encoding = match first & operation::COMPRESSED {
                0 => Encoding::of_bytes(encoding)?,
                _ if kind == Type::String => {
                    let encoding = Encoding::of_bytes(encoding)?;
                    Stored::parse(value).is_ok().then(|| encoding.compressed())?
                }
                _ => take_compressed(encoding, value)?,
            };
            Effect::StoreWith { key, kind, encoding, value: Value::Bytes(value), expire_at, fields }
        }
        operation::META => Effect::Meta { key, fields: TaggedFields::check(take_string(rest)?)? },
        operation::EDIT => {
            let kind = take_collection(rest)?;
            let changes = take_string(rest)?;
            (!changes.is_empty() && value::check_changes(kind, changes)).then_some(Effect::Edit {
                key,
                kind,
                changes,
            })?
        }
        operation::LEAVES => {
            let (kind, leaves) = (take_collection(rest)?, take_string(rest)?);
            let is_good = Big::check_leaves(kind, leaves, |stored| Stored::parse(stored).is_ok());
            is_good.then_some(Effect::Leaves { key, kind, leaves })?
        }
        operation::COPY => {
            let space = take_space(rest)?;
            Effect::Copy { from: key, to: Key::new(hasher, space, take_string(rest)?) }
        }
        _ => Effect::Rename { from: key, to: Key::new(hasher, space, take_string(rest)?) },
    })
}

fn take_space(rest: &mut &[u8]) -> Option<KeyspaceId> {
    u32::try_from(varint::take(rest)?).ok().map(KeyspaceId)
}

fn take_time(rest: &mut &[u8]) -> Option<UnixMs> {
    varint::take(rest).map(varint::unzigzag)
}

/// The encoding of a string, if it is not [`Encoding::PLAIN`], which has no byte (R2).
fn take_encoding(rest: &mut &[u8]) -> Option<Encoding> {
    wire::take_byte(rest).and_then(Encoding::of_bytes).filter(|encoding| *encoding != Encoding::PLAIN)
}

/// The encoding of a compressed collection, derived from its uncompressed encoding.
fn take_compressed(encoding: u8, value: &[u8]) -> Option<Encoding> {
    let encoding = if encoding == Encoding::BIG.0 { Encoding::BIG } else { Encoding::of_bytes(encoding)? };
    Stored::parse(value).is_ok().then_some(encoding.compressed())
}

/// A type other than string.
fn take_collection(rest: &mut &[u8]) -> Option<Type> {
    wire::take_byte(rest).and_then(Type::from_number).filter(|kind| *kind != Type::String)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use proptest::prelude::*;

    fn hasher() -> KeyHasher {
        KeyHasher::new(&mut Rng::new(1))
    }

    /// The bytes of every operation, as docs/formats/command-log.md gives them: a change here changes the format.
    #[test]
    fn golden_bytes() {
        let hasher = hasher();
        let key = Key::new(&hasher, KeyspaceId(2), b"k");
        let (plain_compressed, edited_compressed) = (Encoding::PLAIN.compressed(), Encoding::EDITED.compressed());
        let [list, hash, stream, set, by_score, by_member] = golden_leaves();
        let mut record = RecordBuilder::default();
        for effect in [
            Effect::Set { key, value: Value::Bytes(b"v"), encoding: Encoding::PLAIN, expire_at: None },
            Effect::Set { key, value: Value::Bytes(b"v"), encoding: Encoding::EDITED, expire_at: Some(-2) },
            Effect::Set { key, value: Value::Bytes(b"\x11\x05\0v"), encoding: plain_compressed, expire_at: None },
            Effect::Set { key, value: Value::Bytes(b"\x11\x05\0v"), encoding: edited_compressed, expire_at: Some(-2) },
            Effect::Splice { key, offset: 300, bytes: b"xy" },
            Effect::Delete { key },
            Effect::Expire { key, at: 1 },
            Effect::Persist { key },
            Effect::Rename { from: key, to: Key::new(&hasher, KeyspaceId(2), b"to") },
            Effect::Clear { space: KeyspaceId(2) },
            Effect::Swap { a: KeyspaceId(0), b: KeyspaceId(2) },
            Effect::Store {
                key,
                kind: Type::Hash,
                encoding: Encoding(1),
                value: Value::Bytes(b"p"),
                expire_at: Some(1),
            },
            Effect::Copy { from: key, to: Key::new(&hasher, KeyspaceId(3), b"to") },
            Effect::Store {
                key,
                kind: Type::Hash,
                encoding: edited_compressed,
                value: Value::Bytes(b"\x11\x05\0v"),
                expire_at: None,
            },
            Effect::Store {
                key,
                kind: Type::Zset,
                encoding: Encoding::BIG.compressed(),
                value: Value::Bytes(b"\x11\x05\0v"),
                expire_at: Some(1),
            },
            Effect::Leaves { key, kind: Type::List, leaves: &list },
            Effect::Leaves { key, kind: Type::Hash, leaves: &hash },
            Effect::Leaves { key, kind: Type::Stream, leaves: &stream },
            Effect::Leaves { key, kind: Type::Set, leaves: &set },
            Effect::Leaves { key, kind: Type::Zset, leaves: &by_score },
            Effect::Leaves { key, kind: Type::Zset, leaves: &by_member },
        ] {
            record.push(&effect);
        }
        let fields = TaggedFields::check(b"\x01\x04\x07\0\0\0\x63\x01x").unwrap();
        let (string, zset, big) = (Type::String, Type::Zset, Encoding::BIG.compressed());
        let store_with = |kind, encoding, value, expire_at| Effect::StoreWith {
            key,
            kind,
            encoding,
            value: Value::Bytes(value),
            expire_at,
            fields,
        };
        for effect in [
            store_with(string, Encoding::PLAIN, b"v", None),
            store_with(string, edited_compressed, b"\x11\x05\0v", Some(-2)),
            store_with(Type::Hash, Encoding(1), b"p", None),
            store_with(zset, big, b"\x11\x05\0v", Some(1)),
            Effect::Meta { key, fields },
            Effect::Meta { key, fields: TaggedFields::NONE },
            Effect::Library { name: b"lib", code: b"#!lua" },
            Effect::Library { name: b"lib", code: b"" },
            Effect::Position { text: b"id 7 0" },
            Effect::Position { text: b"" },
        ] {
            record.push(&effect);
        }
        let expected = [
            &b"\x01\x02\x01k\x01v"[..],
            b"\xc1\x02\x01k\x03\x01\x01v",
            b"\x21\x02\x01k\x04\x11\x05\0v",
            b"\xe1\x02\x01k\x03\x01\x04\x11\x05\0v",
            b"\x02\x02\x01k\xac\x02\x02xy",
            b"\x03\x02\x01k",
            b"\x04\x02\x01k\x02",
            b"\x05\x02\x01k",
            b"\x06\x02\x01k\x02to",
            b"\x07\x02",
            b"\x08\x00\x02",
            b"\x89\x02\x01k\x04\x01\x02\x01p",
            b"\x0b\x02\x01k\x03\x02to",
            b"\x29\x02\x01k\x04\x01\x04\x11\x05\0v",
            b"\xa9\x02\x01k\x03\x07\x02\x04\x11\x05\0v",
            b"\x0c\x02\x01k\x01\x0e",
            &list,
            b"\x0c\x02\x01k\x04\x38",
            &hash,
            b"\x0c\x02\x01k\x06\x14",
            &stream,
            b"\x0c\x02\x01k\x02\x38",
            &set,
            b"\x0c\x02\x01k\x03\x16",
            &by_score,
            b"\x0c\x02\x01k\x03\x38",
            &by_member,
            b"\x0e\x02\x01k\x00\x00\x09\x01\x04\x07\0\0\0\x63\x01x\x01v",
            b"\xae\x02\x01k\x00\x01\x03\x09\x01\x04\x07\0\0\0\x63\x01x\x04\x11\x05\0v",
            b"\x0e\x02\x01k\x04\x01\x09\x01\x04\x07\0\0\0\x63\x01x\x01p",
            b"\xae\x02\x01k\x03\x07\x02\x09\x01\x04\x07\0\0\0\x63\x01x\x04\x11\x05\0v",
            b"\x0d\x02\x01k\x09\x01\x04\x07\0\0\0\x63\x01x",
            b"\x0d\x02\x01k\x00",
            b"\x0f\x00\x03lib\x05#!lua",
            b"\x0f\x00\x03lib\x00",
            b"\x12\x00\x06id 7 0",
            b"\x12\x00\x00",
        ]
        .concat();
        assert_eq!(record.bytes(), expected);
        assert_eq!(reencode(&expected), Ok(expected));
    }

    /// One plain and one compressed leaf of a list, a hash, a stream, a set and both trees of a sorted set, as
    /// docs/formats/collections.md gives them.
    fn golden_leaves() -> [Vec<u8>; 6] {
        let list = b"\x01\x05ab\x02\x01\x04\x02\x03\x04\x11\x05\0v";
        let order = [7; 40];
        let hash = b"\x05\x01\x04\x02\x01fv\x80\x01\x02\x09\x04\x11\x05\0v";
        let node = b"\x02\x02\x04\x11\x05\0v\x01\0\x05\0\0\x01\x04\x01\0";
        let rest = b"\x01\x02\x03\x01";
        let set = b"\x05\x01\x04\x01a\x01b\x80\x01\x02\x09\x04\x11\x05\0v";
        let by_score = b"\x01\0\0\x01\x07\x01\x01a\x07\x02bc\x07\x01d\x02\x05\x04\x11\x05\0v";
        let by_member = b"\x05\x01\x03\x01\x01a\x80\x01\x02\x09\x04\x11\x05\0v";
        [
            list.to_vec(),
            [&order[..], hash].concat(),
            [&node[..], rest].concat(),
            [&order[..], set].concat(),
            by_score.to_vec(),
            [b"\x02", &order[..], by_member].concat(),
        ]
    }

    /// Truncated leaves, malformed leaves and leaves of another type are rejected.
    #[test]
    fn leaves_are_whole() {
        let hasher = hasher();
        let key = Key::new(&hasher, KeyspaceId(2), b"k");
        let kinds = [Type::List, Type::Hash, Type::Stream, Type::Set, Type::Zset, Type::Zset];
        for (leaves, kind) in golden_leaves().iter().zip(kinds) {
            let other = if kind == Type::Zset { Type::List } else { Type::Zset };
            for (kind, leaves) in [(kind, &leaves[..leaves.len() - 1]), (kind, &[][..]), (other, leaves)] {
                let mut record = RecordBuilder::default();
                record.push(&Effect::Leaves { key, kind, leaves });
                assert_eq!(reencode(record.bytes()), Err(DecodeError::Malformed { offset: 0 }), "{kind:?}");
            }
        }
    }

    /// A prepared change is recorded as the edit it represents, copied or shared, alone or among other effects.
    #[test]
    fn what_was_made_is_an_edit() {
        let hasher = hasher();
        let key = Key::new(&hasher, KeyspaceId(2), b"k");
        let tree = engine::SharedBig::new(value::Big::List(value::list::Big::default()));
        for elements in [1, 10_000] {
            let mut changes = Vec::new();
            for element in 0..elements {
                let value = format!("element {element}");
                value::list::Change::Push { end: value::list::End::Tail, value: value.as_bytes() }.put(&mut changes);
            }
            let changes = SharedBytes::new(changes);
            let (mut one, mut other) = (RecordBuilder::default(), RecordBuilder::default());
            for record in [&mut one, &mut other] {
                record.push(&Effect::Delete { key });
            }
            for _ in 0..2 {
                one.push(&Effect::Replace { key, tree: &tree, changes: &changes });
                other.push(&Effect::Edit { key, kind: Type::List, changes: &changes });
            }
            one.push(&Effect::Persist { key });
            other.push(&Effect::Persist { key });
            assert_eq!(one.payload().is_some(), elements > 1, "many changes are shared");
            assert_eq!(one.payload().map_or(one.bytes().to_vec(), |payload| payload.to_vec()), other.bytes());
            one.clear();
            assert!(one.payload().is_none() && one.bytes().is_empty());
        }
    }

    fn reencode(payload: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let hasher = hasher();
        let mut record = RecordBuilder::default();
        for effect in effects(payload, &hasher) {
            record.push(&effect?);
        }
        Ok(record.bytes)
    }

    /// An entry without optional fields is recorded as it was before fields existed.
    #[test]
    fn without_fields_a_record_stays() {
        let hasher = hasher();
        let key = Key::new(&hasher, KeyspaceId(2), b"k");
        let (value, fields, expire_at) = (Value::Bytes(b"v"), TaggedFields::NONE, Some(1));
        for kind in [Type::String, Type::Hash] {
            let (mut plain, mut with) = (RecordBuilder::default(), RecordBuilder::default());
            let encoding = Encoding::EDITED;
            plain.push(&match kind {
                Type::String => Effect::Set { key, value, encoding, expire_at },
                _ => Effect::Store { key, kind, encoding, value, expire_at },
            });
            with.push(&Effect::StoreWith { key, kind, encoding, value, expire_at, fields });
            assert_eq!(plain.bytes(), with.bytes());
        }
    }

    /// Reserved numbers are refused by name, and nothing is skipped.
    #[test]
    fn reserved_effects_are_refused_by_name() {
        for (payload, what) in [(&b"\x10\0\x01p"[..], "prefix flush"), (b"\x11\0", "slot state")] {
            assert_eq!(reencode(payload), Err(DecodeError::Reserved { what, offset: 0 }), "{payload:?}");
        }
    }

    /// A library has a name and no keyspace.
    #[test]
    fn libraries_are_named_and_in_no_keyspace() {
        for payload in [&b"\x0f\0\0\x01x"[..], b"\x0f\x01\x01n\x01x", b"\x0f\0\x01n\x02x", b"\x0f\0\x01n"] {
            assert_eq!(reencode(payload), Err(DecodeError::Malformed { offset: 0 }), "{payload:?}");
        }
        assert_eq!(reencode(&[0x8f, 0]), Err(DecodeError::UnknownOperation { operation: 0x8f, offset: 0 }));
    }

    /// Malformed or non-canonical optional fields are rejected.
    #[test]
    fn fields_are_whole() {
        for payload in [&b"\x0e\0\x01k\0\0\0\x01v"[..], b"\x0e\0\x01k\0\0\x02\x01\0\x01v", b"\x0d\0\x01k\x03\x03\0\x03"]
        {
            assert_eq!(reencode(payload), Err(DecodeError::Malformed { offset: 0 }), "{payload:?}");
        }
    }

    #[test]
    fn unknown_operations_are_refused_by_name() {
        assert_eq!(reencode(&[0x13, 0]), Err(DecodeError::UnknownOperation { operation: 19, offset: 0 }));
        assert_eq!(
            reencode(&[0x03, 0, 0, 0x83, 0, 0]),
            Err(DecodeError::UnknownOperation { operation: 0x83, offset: 3 })
        );
    }

    /// Rejects a value that is marked as compressed and has no stored form's header, and an encoding that repeats the
    /// flag or that no value has.
    #[test]
    fn compressed_values_have_their_header() {
        let malformed = Err(DecodeError::Malformed { offset: 0 });
        for payload in [
            &b"\x21\0\x01k\x01v"[..],
            b"\x21\0\x01k\0",
            b"\x41\0\x01k\x04\x04\x11\x05\0v",
            b"\x09\0\x01k\x04\x03\x01v",
            b"\x09\0\x01k\x04\x07\x01v",
            b"\x29\0\x01k\x04\x03\x04\x11\x05\0v",
            b"\x29\0\x01k\x04\x06\x04\x11\x05\0v",
        ] {
            assert_eq!(reencode(payload), malformed);
        }
        for payload in [&b"\x09\0\x01k\x04\x02\x01v"[..], b"\x29\0\x01k\x04\x02\x04\x11\x05\0v"] {
            assert_eq!(reencode(payload).as_deref(), Ok(payload));
        }
    }

    proptest! {
        /// Arbitrary bytes either fail or decode to effects that encode back to the same bytes (R2); nothing panics.
        #[test]
        fn decoding_is_total_and_canonical(payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(bytes) = reencode(&payload) {
                prop_assert_eq!(bytes, payload);
            }
        }

        /// Every truncation of a valid record fails or decodes to fewer whole effects.
        #[test]
        fn cuts_never_invent_effects(key in proptest::collection::vec(any::<u8>(), 0..20), at in any::<i64>()) {
            let hasher = hasher();
            let key = Key::new(&hasher, KeyspaceId(7), &key);
            let mut record = RecordBuilder::default();
            record.push(&Effect::Expire { key, at });
            for end in 0..record.bytes().len() {
                let cut = reencode(&record.bytes()[..end]);
                prop_assert!(end == 0 || cut.is_err());
            }
        }
    }
}
