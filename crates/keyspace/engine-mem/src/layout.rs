//! The bytes of an entry, all little-endian, in one slot:
//!
//! ```text
//! 0         4              5 or 8                                                      (order of the fields)
//! | header  | key length   | value length | fields | expiration   | key ...   | value ...  |  value inside
//! | u32     | u8, wide u32 | u8 or u16    | if any | i64, if any  |           |            |
//!
//! 0         4              8              16                       16 / 24
//! | header  | key length   | value        | fields | expiration    | key ...               |  value outside: shared
//! | u32     | u32          | SharedBytes  | if any | i64, if any   |                       |
//!
//! 0         4              8              16             24
//! | header  | key length   | value        | key          | fields | expiration            |  key above KEY_INLINE_MAX
//! | u32     | u32          | SharedBytes  | SharedBytes  | if any | i64, if any           |
//! ```
//!
//! The header word, from its lowest bit: type (4), encoding (3), has an expiration (1), has optional fields (1), key
//! length is wide (1), where and how long the value is (2), access stamp (20). Type 15 marks a free slot. So 16-byte
//! key and 16-byte value take 38 bytes, and 46 with an expiration.
//!
//! Optional fields, which few entries have, stand packed (`engine::fields`): a byte of presence bits, then the fields.
//! Entries without them have the layout that they would have without this feature, and are read by the same code: the
//! bit is one more in a mask that is tested anyway.
//!
//! A value outside is [`SharedBytes`], or [`SharedBig`] if and only if its encoding is [`Encoding::BIG`].
//!
//! L1. A live slot was written by [`write()`] and has not been destroyed since; only `entries.rs` writes slots.
//! L2. Outside values and keys are in place as pointers, at multiples of 8 in a slot that starts at a multiple of 8.

use crate::classes::{ENTRY_BYTES_MAX, aligned_class_of, class_of};
use base::UnixMs;
use engine::fields::PACKED_BYTES_MAX;
use engine::{Encoding, Entry, ExtFields, NewEntry, SharedBig, SharedBytes, Type, Value};

/// Keys above this length are kept outside the entry.
pub const KEY_INLINE_MAX: usize = 4096;

/// The type number of a free slot.
const FREE: u32 = 15;
const ENCODING_SHIFT: u32 = 4;
const EXPIRES: u32 = 1 << 7;
const FIELDS: u32 = 1 << 8;
const WIDE_KEY: u32 = 1 << 9;
const VALUE_SHIFT: u32 = 10;
const VALUE_MASK: u32 = 3 << VALUE_SHIFT;
const VALUE_OUTSIDE: u32 = 3 << VALUE_SHIFT;
const STAMP_SHIFT: u32 = 12;
/// The bits that say which layout an entry has.
const LAYOUT_MASK: u32 = EXPIRES | FIELDS | WIDE_KEY | VALUE_MASK;

/// Bits of an access stamp.
pub const STAMP_BITS: u32 = 20;
const _: () = assert!(STAMP_SHIFT + STAMP_BITS == u32::BITS);

const EXPIRATION_BYTES: usize = size_of::<UnixMs>();
const OUTSIDE_VALUE_AT: usize = 8;
const OUTSIDE_KEY_AT: usize = 16;
const _: () = assert!(size_of::<SharedBytes>() == 8 && align_of::<SharedBytes>() <= 8);
const _: () = assert!(size_of::<SharedBig>() == 8 && align_of::<SharedBig>() <= 8);
// With a value outside, the longest fields leave the entry in a slot.
const _: () = assert!(24 + PACKED_BYTES_MAX + EXPIRATION_BYTES + KEY_INLINE_MAX <= ENTRY_BYTES_MAX);
const _: () = assert!(class_fits(16, 16, false, 40) && class_fits(16, 16, true, 48) && class_fits(16, 64, false, 88));

const fn class_fits(key: usize, value: usize, expires: bool, slot: usize) -> bool {
    6 + if expires { EXPIRATION_BYTES } else { 0 } + key + value <= slot
}

/// A value that is an allocation of its own.
#[derive(Clone)]
pub enum Outside {
    /// A string or a packed collection.
    Bytes(SharedBytes),
    /// A tree.
    Big(SharedBig),
}

impl Outside {
    /// The value, borrowed.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Bytes(bytes) => Value::Shared(bytes),
            Self::Big(big) => Value::Big(big),
        }
    }

    /// The value, copied if it is not shared yet.
    pub fn of(value: Value<'_>) -> Self {
        match value {
            Value::Bytes(bytes) => Self::Bytes(SharedBytes::new(bytes.to_vec())),
            Value::Shared(shared) => Self::Bytes(SharedBytes::clone(shared)),
            Value::Big(big) => Self::Big(SharedBig::clone(big)),
        }
    }
}

/// Which of the layouts an entry has, and where its parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Header bits of the layout: expiration, optional fields, width of the key length, place of the value.
    bits: u32,
    /// Length of the packed optional fields: 0 exactly without [`FIELDS`].
    fields_len: usize,
    key_len: usize,
    value_len: usize,
}

impl Shape {
    /// The layout for an entry with these lengths.
    #[inline]
    pub fn new(key_len: usize, value_len: usize, fields_len: usize, expires: bool) -> Self {
        let expires_bit = if expires { EXPIRES } else { 0 } | if fields_len > 0 { FIELDS } else { 0 };
        let wide = if key_len > u8::MAX as usize { WIDE_KEY } else { 0 };
        let long = u32::from(value_len > u8::MAX as usize) << VALUE_SHIFT;
        let inside = Self { bits: expires_bit | wide | long, fields_len, key_len, value_len };
        if key_len <= KEY_INLINE_MAX && value_len <= ENTRY_BYTES_MAX && inside.size() <= ENTRY_BYTES_MAX {
            return inside;
        }
        Self { bits: expires_bit | WIDE_KEY | VALUE_OUTSIDE, fields_len, key_len, value_len: 0 }
    }

    /// The layout for this entry.
    #[inline]
    pub fn for_entry(key: &[u8], new: &NewEntry<'_>) -> Self {
        let value_len = if matches!(new.value, Value::Big(_)) { ENTRY_BYTES_MAX + 1 } else { new.value.len() };
        Self::new(key.len(), value_len, new.fields.packed().len(), new.expire_at.is_some())
    }

    /// The layout of a stored entry.
    #[inline]
    pub fn of(slot: &[u8]) -> Self {
        let bits = word(slot) & LAYOUT_MASK;
        let key_len = if bits & WIDE_KEY == 0 { slot[4] as usize } else { read_u32(slot, 4) as usize };
        let mut shape = Self { bits, fields_len: 0, key_len, value_len: 0 };
        let at = shape.value_length_at();
        shape.value_len = match bits & VALUE_MASK {
            0 => slot[at] as usize,
            VALUE_OUTSIDE => 0,
            _ => read_u16(slot, at) as usize,
        };
        if bits & FIELDS != 0 {
            shape.fields_len = ExtFields::at(&slot[shape.fields_at()..]).packed().len();
        }
        shape
    }

    /// Whether the value is an allocation of its own.
    #[inline]
    pub fn is_outside(self) -> bool {
        self.bits & VALUE_MASK == VALUE_OUTSIDE
    }

    /// Whether there are optional fields.
    #[inline]
    pub fn has_fields(self) -> bool {
        self.bits & FIELDS != 0
    }

    fn key_is_outside(self) -> bool {
        self.is_outside() && self.key_len > KEY_INLINE_MAX
    }

    fn expires(self) -> bool {
        self.bits & EXPIRES != 0
    }

    /// Bytes of the slot that are used.
    #[inline]
    pub fn size(self) -> usize {
        self.value_at() + self.value_len
    }

    /// The size class for it.
    pub fn class(self) -> u8 {
        if self.is_outside() { aligned_class_of(self.size()) } else { class_of(self.size()) }
    }

    #[inline]
    fn value_length_at(self) -> usize {
        if self.bits & WIDE_KEY == 0 { 5 } else { 8 }
    }

    #[inline]
    fn fields_at(self) -> usize {
        match self.bits & VALUE_MASK {
            VALUE_OUTSIDE if self.key_is_outside() => OUTSIDE_KEY_AT + size_of::<SharedBytes>(),
            VALUE_OUTSIDE => OUTSIDE_VALUE_AT + size_of::<SharedBytes>(),
            0 => self.value_length_at() + 1,
            _ => self.value_length_at() + 2,
        }
    }

    #[inline]
    fn expiration_at(self) -> usize {
        self.fields_at() + self.fields_len
    }

    #[inline]
    fn key_at(self) -> usize {
        self.expiration_at() + if self.bits & EXPIRES == 0 { 0 } else { EXPIRATION_BYTES }
    }

    /// Where the inside value begins.
    #[inline]
    pub fn value_at(self) -> usize {
        self.key_at() + if self.key_is_outside() { 0 } else { self.key_len }
    }

    /// Length of the inside value.
    pub fn value_len(self) -> usize {
        self.value_len
    }

    /// The same entry with another expiration.
    pub fn with_expiration(self, expires: bool) -> Self {
        Self::new(self.key_len, self.value_len_or_more(), self.fields_len, expires)
    }

    /// The same entry with optional fields of another length.
    pub fn with_fields_len(self, fields_len: usize) -> Self {
        Self::new(self.key_len, self.value_len_or_more(), fields_len, self.expires())
    }

    /// The value's length, or one that keeps it outside.
    fn value_len_or_more(self) -> usize {
        if self.is_outside() { ENTRY_BYTES_MAX + 1 } else { self.value_len }
    }

    /// Where the optional fields are: first byte and length.
    pub fn fields_place(self) -> (usize, usize) {
        (self.fields_at(), self.fields_len)
    }

    /// The same entry with a value of another length.
    pub fn with_value_len(self, value_len: usize) -> Self {
        Self::new(self.key_len, value_len, self.fields_len, self.expires())
    }
}

/// The header word.
#[inline]
pub fn word(slot: &[u8]) -> u32 {
    read_u32(slot, 0)
}

/// The access stamp in a header word.
#[inline]
pub fn stamp_of(word: u32) -> u32 {
    word >> STAMP_SHIFT
}

/// The entry in a slot. The common layouts are read without working out the whole shape.
#[inline]
pub fn entry(slot: &[u8]) -> Entry<'_> {
    let word = word(slot);
    if !is_common(word) {
        return match read_u32(slot, 4) as usize {
            key_len @ ..=KEY_INLINE_MAX if is_plain_outside(word) => outside_entry(slot, word, key_len),
            _ => unusual_entry(slot),
        };
    }
    let (kind, encoding) = kind_of(word);
    let is_long = word >> VALUE_SHIFT & 1 != 0;
    let (value_len, at) = if is_long { (read_u16(slot, 5) as usize, 7) } else { (slot[5] as usize, 6) };
    let (expire_at, at) = match word & EXPIRES {
        0 => (None, at),
        _ => (Some(read_time(slot, at)), at + EXPIRATION_BYTES),
    };
    let (key, rest) = slot[at..].split_at(slot[4] as usize);
    let (value, stamp, fields) = (Value::Bytes(&rest[..value_len]), stamp_of(word), ExtFields::NONE);
    Entry { key, kind, encoding, value, expire_at, stamp, fields }
}

/// Whether the value is inside, the key's length is one byte, and there are no optional fields.
#[inline]
fn is_common(word: u32) -> bool {
    word & (FIELDS | WIDE_KEY | VALUE_OUTSIDE & !(1 << VALUE_SHIFT)) == 0
}

/// Whether the value is outside and there are no optional fields.
#[inline]
fn is_plain_outside(word: u32) -> bool {
    word & (FIELDS | VALUE_MASK) == VALUE_OUTSIDE
}

/// Whether the value is an allocation of its own.
#[inline]
pub fn is_outside(slot: &[u8]) -> bool {
    word(slot) & VALUE_MASK == VALUE_OUTSIDE
}

/// An entry with a value outside and without optional fields.
#[inline(never)]
fn outside_entry(slot: &[u8], word: u32, key_len: usize) -> Entry<'_> {
    let (kind, encoding) = kind_of(word);
    let value = match encoding {
        Encoding::BIG => Value::Big(outside_big(slot)),
        _ => Value::Shared(outside_value(slot)),
    };
    let at = OUTSIDE_VALUE_AT + size_of::<SharedBytes>();
    let (expire_at, at) = match word & EXPIRES {
        0 => (None, at),
        _ => (Some(read_time(slot, at)), at + EXPIRATION_BYTES),
    };
    let (key, stamp, fields) = (&slot[at..][..key_len], stamp_of(word), ExtFields::NONE);
    Entry { key, kind, encoding, value, expire_at, stamp, fields }
}

#[inline(never)]
fn unusual_entry(slot: &[u8]) -> Entry<'_> {
    let (word, shape) = (word(slot), Shape::of(slot));
    let (kind, encoding) = kind_of(word);
    let value = match shape.is_outside() {
        true if encoding == Encoding::BIG => Value::Big(outside_big(slot)),
        true => Value::Shared(outside_value(slot)),
        false => Value::Bytes(value(slot, shape)),
    };
    let expire_at = expiration(slot, shape);
    let (key, stamp, fields) = (key(slot, shape), stamp_of(word), fields(slot, shape));
    Entry { key, kind, encoding, value, expire_at, stamp, fields }
}

/// Replaces the access stamp.
#[inline]
pub fn set_stamp(slot: &mut [u8], stamp: u32) {
    let word = word(slot) & ((1 << STAMP_SHIFT) - 1) | stamp << STAMP_SHIFT;
    slot[..4].copy_from_slice(&word.to_le_bytes());
}

/// Whether the value is stored compressed, or a tree.
#[inline]
pub fn is_compressed_or_big(word: u32) -> bool {
    encoding_of(word).is_compressed_or_big()
}

/// Whether the entry counts elsewhere: its value is stored compressed or a tree, or it has optional fields, which may
/// lead to a tier. One comparison, since the bit of the fields is above those of the encoding.
#[inline]
pub fn is_counted(word: u32) -> bool {
    word & (FIELDS | 7 << ENCODING_SHIFT) >= u32::from(Encoding::FIRST_OTHER) << ENCODING_SHIFT
}
const _: () = assert!(FIELDS > 7 << ENCODING_SHIFT);

/// Whether the value is stored compressed.
#[inline]
pub fn is_compressed(word: u32) -> bool {
    encoding_of(word).is_compressed()
}

#[inline]
fn encoding_of(word: u32) -> Encoding {
    Encoding((word >> ENCODING_SHIFT & 7) as u8)
}

/// Type and encoding in a header word.
#[inline]
pub fn kind_of(word: u32) -> (Type, Encoding) {
    let kind = Type::from_number((word & 15) as u8).expect("L1: a live entry has a type");
    (kind, encoding_of(word))
}

/// Whether an entry may lie in a slot of any class that holds it: its slot needs neither a certain alignment nor the
/// room that collections are edited in.
#[inline]
pub fn is_movable(shape: Shape, kind: Type) -> bool {
    kind == Type::String && !shape.is_outside()
}

/// The smallest class for the entry in the slot, if it [may lie in any](is_movable).
pub fn movable_class(slot: &[u8]) -> Option<u8> {
    let (shape, (kind, _)) = (Shape::of(slot), kind_of(word(slot)));
    is_movable(shape, kind).then(|| shape.class())
}

/// Replaces the encoding.
pub fn set_encoding(slot: &mut [u8], encoding: Encoding) {
    let word = word(slot) & !(7 << ENCODING_SHIFT) | u32::from(encoding.0) << ENCODING_SHIFT;
    slot[..4].copy_from_slice(&word.to_le_bytes());
}

/// Whether there are optional fields.
#[inline]
pub fn has_fields(word: u32) -> bool {
    word & FIELDS != 0
}

/// The optional fields.
pub fn fields(slot: &[u8], shape: Shape) -> ExtFields<'_> {
    match shape.fields_place() {
        (_, 0) => ExtFields::NONE,
        (at, _) => ExtFields::at(&slot[at..]),
    }
}

/// Writes optional fields of the length that the shape has.
#[cold]
#[inline(never)]
pub fn write_fields(slot: &mut [u8], shape: Shape, fields: ExtFields<'_>) {
    let (at, len) = shape.fields_place();
    slot[at..at + len].copy_from_slice(fields.packed());
}

/// When the entry expires.
#[inline]
pub fn expiration(slot: &[u8], shape: Shape) -> Option<UnixMs> {
    shape.expires().then(|| read_time(slot, shape.expiration_at()))
}

#[inline]
fn read_time(slot: &[u8], at: usize) -> UnixMs {
    UnixMs::from_le_bytes(slot[at..at + EXPIRATION_BYTES].try_into().expect("eight bytes"))
}

/// Replaces the expiration of an entry that has one.
pub fn set_expiration(slot: &mut [u8], shape: Shape, at: UnixMs) {
    let place = shape.expiration_at();
    slot[place..place + EXPIRATION_BYTES].copy_from_slice(&at.to_le_bytes());
}

/// The key.
#[inline]
pub fn key(slot: &[u8], shape: Shape) -> &[u8] {
    if shape.key_is_outside() {
        return outside(slot, OUTSIDE_KEY_AT);
    }
    &slot[shape.key_at()..][..shape.key_len]
}

/// Whether the entry is stored under this key. The common layouts are decided without working out the whole shape.
#[inline]
pub fn key_is(slot: &[u8], key: &[u8]) -> bool {
    let word = word(slot);
    if !is_common(word) {
        let at = OUTSIDE_VALUE_AT + size_of::<SharedBytes>() + (word >> 4 & EXPIRES >> 4) as usize;
        return match read_u32(slot, 4) as usize {
            key_len @ ..=KEY_INLINE_MAX if is_plain_outside(word) => {
                key_len == key.len() && equal(&slot[at..at + key.len()], key)
            }
            _ => unusual_key_is(slot, key),
        };
    }
    let at = 6 + (word >> VALUE_SHIFT & 1) as usize + (word >> 4 & EXPIRES >> 4) as usize;
    slot[4] as usize == key.len() && equal(&slot[at..at + key.len()], key)
}

/// [`key_is`] of the other layouts: apart, so that the common ones save no registers for it.
#[cold]
#[inline(never)]
fn unusual_key_is(slot: &[u8], key: &[u8]) -> bool {
    self::key(slot, Shape::of(slot)) == key
}

/// Compares slices of equal length. Keys are short: eight bytes at a time are done before a call of `memcmp` has begun.
#[inline]
fn equal(a: &[u8], b: &[u8]) -> bool {
    match a.len() {
        4..=7 => return a.first_chunk::<4>() == b.first_chunk() && a.last_chunk::<4>() == b.last_chunk(),
        8..=16 => return a.first_chunk::<8>() == b.first_chunk() && a.last_chunk::<8>() == b.last_chunk(),
        17..=64 => {}
        _ => return a == b,
    }
    let (a_words, _) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    let (a_last, b_last) = (a.last_chunk::<8>(), b.last_chunk::<8>());
    a_words.iter().zip(b_words).all(|(a, b)| u64::from_le_bytes(*a) == u64::from_le_bytes(*b)) && a_last == b_last
}

/// The bytes of an inside value.
#[inline]
pub fn value(slot: &[u8], shape: Shape) -> &[u8] {
    &slot[shape.value_at()..][..shape.value_len]
}

#[inline]
fn is_big(slot: &[u8]) -> bool {
    kind_of(word(slot)).1 == Encoding::BIG
}

/// The bytes of an entry whose value is outside and no tree.
pub fn outside_value(slot: &[u8]) -> &SharedBytes {
    assert!(!is_big(slot));
    outside(slot, OUTSIDE_VALUE_AT)
}

/// The tree of an entry that has one.
#[inline]
pub fn outside_big(slot: &[u8]) -> &SharedBig {
    assert!(is_big(slot));
    let place: *const SharedBig = slot[OUTSIDE_VALUE_AT..][..size_of::<SharedBig>()].as_ptr().cast();
    assert!(place.is_aligned());
    // SAFETY: the header says that a `SharedBig` is in place (L1), aligned (L2); the slot is borrowed.
    unsafe { &*place }
}

/// The bytes of an entry whose value is outside and no tree, for writing.
pub fn outside_value_mut(slot: &mut [u8]) -> &mut SharedBytes {
    assert!(!is_big(slot));
    let place: *mut SharedBytes = slot[OUTSIDE_VALUE_AT..][..size_of::<SharedBytes>()].as_mut_ptr().cast();
    assert!(place.is_aligned());
    // SAFETY: the header says that a `SharedBytes` is in place (L1), aligned (L2); the slot is borrowed exclusively.
    unsafe { &mut *place }
}

/// The tree of an entry that has one, for writing.
#[inline]
pub fn outside_big_mut(slot: &mut [u8]) -> &mut SharedBig {
    assert!(is_big(slot));
    let place: *mut SharedBig = slot[OUTSIDE_VALUE_AT..][..size_of::<SharedBig>()].as_mut_ptr().cast();
    assert!(place.is_aligned());
    // SAFETY: the header says that a `SharedBig` is in place (L1), aligned (L2); the slot is borrowed exclusively.
    unsafe { &mut *place }
}

fn outside(slot: &[u8], at: usize) -> &SharedBytes {
    let place: *const SharedBytes = slot[at..][..size_of::<SharedBytes>()].as_ptr().cast();
    assert!(place.is_aligned());
    // SAFETY: the shape says that a `SharedBytes` is in place (L1), aligned (L2); the slot is borrowed.
    unsafe { &*place }
}

/// Takes what is outside out of an entry that is to be overwritten or freed: value, and key if that is outside too.
pub fn take_outside(slot: &mut [u8], shape: Shape) -> Option<(Outside, Option<SharedBytes>)> {
    if !shape.is_outside() {
        return None;
    }
    let value = match is_big(slot) {
        true => Outside::Big(take(slot, OUTSIDE_VALUE_AT)),
        false => Outside::Bytes(take(slot, OUTSIDE_VALUE_AT)),
    };
    Some((value, shape.key_is_outside().then(|| take(slot, OUTSIDE_KEY_AT))))
}

/// Moves a shared value out of an entry that is destroyed.
fn take<T>(slot: &mut [u8], at: usize) -> T {
    let place: *const T = slot[at..][..size_of::<T>()].as_ptr().cast();
    assert!(place.is_aligned());
    // SAFETY: a value of this type is in place (L1), aligned (L2); the caller destroys the entry, so it is moved out
    // once.
    unsafe { place.read() }
}

/// Writes an entry whose value is inside.
pub fn write(slot: &mut [u8], shape: Shape, key: &[u8], new: &NewEntry<'_>, stamp: u32) {
    write_head(slot, shape, new, stamp);
    let (key_at, value_at) = (shape.key_at(), shape.value_at());
    slot[key_at..value_at].copy_from_slice(key);
    slot[value_at..value_at + shape.value_len].copy_from_slice(new.value.bytes());
}

/// Replaces the value, and what goes with it, of an entry of a common layout by one of the same length that expires if
/// the old one did. Neither is compressed, and neither has optional fields. Gives when the old one expired; `None` when
/// the entry is not so, with nothing changed.
#[inline]
pub fn overwrite(slot: &mut [u8], new: &NewEntry<'_>, restamp: impl FnOnce(u32) -> u32) -> Option<Option<UnixMs>> {
    let word = word(slot);
    let is_long = word >> VALUE_SHIFT & 1 != 0;
    let (value_len, at) = if is_long { (read_u16(slot, 5) as usize, 7) } else { (slot[5] as usize, 6) };
    let bytes = new.value.bytes();
    if !is_common(word)
        || value_len != bytes.len()
        || is_compressed_or_big(word)
        || new.encoding.is_compressed_or_big()
        || (word & EXPIRES != 0) != new.expire_at.is_some()
        || !new.fields.is_none()
    {
        return None;
    }
    let (before, at) = match new.expire_at {
        None => (None, at),
        Some(time) => {
            let before = read_time(slot, at);
            slot[at..at + EXPIRATION_BYTES].copy_from_slice(&time.to_le_bytes());
            (Some(before), at + EXPIRATION_BYTES)
        }
    };
    let kept = word & LAYOUT_MASK;
    let stamp = restamp(stamp_of(word));
    let word = new.kind as u32 | u32::from(new.encoding.0) << ENCODING_SHIFT | kept | stamp << STAMP_SHIFT;
    slot[..4].copy_from_slice(&word.to_le_bytes());
    let value_at = at + slot[4] as usize;
    slot[value_at..value_at + value_len].copy_from_slice(bytes);
    Some(before)
}

/// Replaces the value inside an entry, and its encoding, by one of any length that keeps the common layout and makes
/// the entry a size that `fits`. False when that cannot be, with nothing changed.
#[inline]
pub fn rewrite(slot: &mut [u8], value: &[u8], encoding: Encoding, fits: impl FnOnce(usize) -> bool) -> bool {
    let word = word(slot);
    let is_long = value.len() > u8::MAX as usize;
    if !is_common(word) || (word >> VALUE_SHIFT & 1 != 0) != is_long {
        return false;
    }
    let at = if is_long { 7 } else { 6 } + if word & EXPIRES == 0 { 0 } else { EXPIRATION_BYTES };
    let value_at = at + slot[4] as usize;
    let end = value_at + value.len();
    if !fits(end) {
        return false;
    }
    slot[5] = value.len() as u8;
    if is_long {
        slot[6] = (value.len() >> 8) as u8;
    }
    set_encoding(slot, encoding);
    slot[value_at..end].copy_from_slice(value);
    true
}

/// The value inside an entry, and the room after it: up to the end of the slot, and to the longest value that its
/// length field can express. Also returns how long it is.
#[inline]
pub fn value_with_room(slot: &mut [u8], shape: Shape) -> (&mut [u8], usize) {
    let room_max = if shape.bits & VALUE_MASK == 0 { u8::MAX as usize } else { ENTRY_BYTES_MAX };
    let room = &mut slot[shape.value_at()..];
    let end = room.len().min(room_max);
    (&mut room[..end], shape.value_len)
}

/// Sets the length and encoding of a value inside an entry of this shape, which was changed in place. False, with
/// nothing changed, when such a length has another layout or makes the entry a size that does not fit.
#[inline]
pub fn resize_value(
    slot: &mut [u8],
    shape: Shape,
    (len, encoding): (usize, Encoding),
    fits: impl FnOnce(usize) -> bool,
) -> bool {
    let is_long = shape.bits & VALUE_MASK != 0;
    if is_long != (len > u8::MAX as usize) || !fits(shape.value_at() + len) {
        return false;
    }
    if len != shape.value_len {
        write_lengths(slot, Shape { value_len: len, ..shape });
    }
    set_encoding(slot, encoding);
    true
}

/// Writes an entry whose value is outside, and its key too if it is long.
pub fn write_outside(slot: &mut [u8], shape: Shape, key: &[u8], value: Outside, new: &NewEntry<'_>, stamp: u32) {
    write_head(slot, shape, new, stamp);
    match value {
        Outside::Bytes(bytes) => put(slot, OUTSIDE_VALUE_AT, bytes),
        Outside::Big(big) => put(slot, OUTSIDE_VALUE_AT, big),
    }
    if shape.key_is_outside() {
        put(slot, OUTSIDE_KEY_AT, SharedBytes::new(key.to_vec()));
    } else {
        slot[shape.key_at()..][..key.len()].copy_from_slice(key);
    }
}

fn put<T>(slot: &mut [u8], at: usize, shared: T) {
    let place: *mut T = slot[at..][..size_of::<T>()].as_mut_ptr().cast();
    assert!(place.is_aligned(), "L2");
    // SAFETY: eight aligned bytes of the slot that hold no value to be dropped.
    unsafe { place.write(shared) };
}

fn write_head(slot: &mut [u8], shape: Shape, new: &NewEntry<'_>, stamp: u32) {
    let word = new.kind as u32 | u32::from(new.encoding.0) << ENCODING_SHIFT | shape.bits | stamp << STAMP_SHIFT;
    slot[..4].copy_from_slice(&word.to_le_bytes());
    write_lengths(slot, shape);
    if shape.bits & FIELDS != 0 {
        write_fields(slot, shape, new.fields);
    }
    if let Some(at) = new.expire_at {
        set_expiration(slot, shape, at);
    }
}

fn write_lengths(slot: &mut [u8], shape: Shape) {
    if shape.bits & WIDE_KEY == 0 {
        slot[4] = shape.key_len as u8;
    } else {
        slot[4..8].copy_from_slice(&(shape.key_len as u32).to_le_bytes());
    }
    let at = shape.value_length_at();
    match shape.bits & VALUE_MASK {
        0 => slot[at] = shape.value_len as u8,
        VALUE_OUTSIDE => {}
        _ => slot[at..at + 2].copy_from_slice(&(shape.value_len as u16).to_le_bytes()),
    }
}

/// Begins a copy of an entry in another shape: header and lengths of `shape`, the rest of `word`. Key, value, optional
/// fields and expiration are still to be written.
pub fn write_reshaped(slot: &mut [u8], shape: Shape, word: u32) {
    let word = word & !LAYOUT_MASK | shape.bits;
    slot[..4].copy_from_slice(&word.to_le_bytes());
    write_lengths(slot, shape);
}

/// Places of the parts that a reshaped copy takes over unchanged.
pub fn key_place(shape: Shape) -> (usize, usize) {
    (shape.key_at(), if shape.key_is_outside() { 0 } else { shape.key_len })
}

/// Places of the outside references, if any: first byte and length.
pub fn outside_place(shape: Shape) -> (usize, usize) {
    match (shape.is_outside(), shape.key_is_outside()) {
        (false, _) => (0, 0),
        (true, false) => (OUTSIDE_VALUE_AT, size_of::<SharedBytes>()),
        (true, true) => (OUTSIDE_VALUE_AT, 2 * size_of::<SharedBytes>()),
    }
}

/// Marks a slot free, keeping a link in it.
pub fn mark_free(slot: &mut [u8], link: u16) {
    let word = FREE | u32::from(link) << 16;
    slot[..4].copy_from_slice(&word.to_le_bytes());
}

/// The link in a free slot; `None` when the slot is live.
#[inline]
pub fn free_link(slot: &[u8]) -> Option<u16> {
    let word = word(slot);
    (word & 15 == FREE).then_some((word >> 16) as u16)
}

#[inline]
fn read_u32(slot: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(slot[at..at + 4].try_into().expect("four bytes"))
}

#[inline]
fn read_u16(slot: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(slot[at..at + 2].try_into().expect("two bytes"))
}
