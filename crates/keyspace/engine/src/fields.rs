//! Optional fields of an entry, which few entries have: memcached flags, CAS id, sticky mark, ARCUS attributes, the
//! address of a value on a tier, residency in a backed keyspace.
//!
//! There are two encodings. An engine keeps them *packed*, next to the entry. Log records and snapshot files hold them
//! *tagged*, so that a program carries fields which it does not know.
//!
//! ```text
//! packed = presence (1) | one field for each bit, lowest bit first; without any field: no bytes
//!          bit 0 flags (4) | 1 CAS id (8) | 2 sticky (0) | 3 attributes: length (1), bytes | 4 tier address (16)
//!          bit 5 residency (1) | 6 unknown fields, tagged: length (2), bytes | 7 reserved
//! tagged = fields by ascending tag: tag (1) | length (varint) | bytes
//!          tag 1 flags (4) | 2 sticky (0) | 3 attributes | 4 tier address (16) | others: unknown
//! ```
//!
//! Integers are little-endian. Both encodings are canonical: equal fields have equal bytes. The page about them:
//! docs/formats/entry-fields.md.
//!
//! # For dialects
//!
//! | To | Call |
//! |---|---|
//! | store a string with fields, in one record | `types::fields::set(ks, key, value, expire_at, &fields)` |
//! | change fields alone, in one record | `types::fields::replace(ks, key, &fields)` |
//! | read fields | [`Keyspace::read`](crate::Keyspace::read) or `peek`, then `entry.fields.get()` |
//! | read the CAS id, or give one | [`Keyspace::cas_id`](crate::Keyspace::cas_id), before the read of the entry |
//!
//! ```
//! use engine::{Fetch, Key, Keyspace, Type};
//!
//! /// What `gets` of memcached answers: flags, CAS id, value.
//! fn gets(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<Option<(u32, u64, Vec<u8>)>, Fetch> {
//!     let Some(id) = ks.cas_id(key)? else { return Ok(None) };
//!     let entry = ks.read(key)?;
//!     Ok(entry.map(|entry| (entry.fields.get().flags, id, entry.value.bytes().to_vec())))
//! }
//!
//! /// Whether `cas` of memcached with this id may store: only if the string has not changed since `gets` gave the id.
//! fn may_store(ks: &mut dyn Keyspace, key: &Key<'_>, id: u64) -> Result<bool, Fetch> {
//!     Ok(ks.cas_id(key)? == Some(id))
//! }
//! ```
//!
//! A CAS id is in memory only and costs no record. A string that an edit changes in place gets another one. A string
//! that is stored anew, or under another key, has none until the next call of `cas_id`, which gives a new one. No id is
//! given twice, so a client that compares ids sees every change. After a restart all ids are new.
//!
//! # Invariants
//!
//! X1. [`ExtFields`] holds whole, canonical packed bytes: [`Fields::pack`] wrote them.
//! X2. [`TaggedFields`] holds whole, canonical tagged bytes: [`Fields::put_saved`] wrote them, or
//!     [`TaggedFields::check`] accepted them.
//! X3. CAS id and residency describe this process' memory only. They are never tagged, so neither log nor checkpoint
//!     holds them. A tier address belongs to one key and one version of its value: checkpoints hold it, the log does
//!     not. A new entry that takes over the fields of another one ([`Fields::logged`]) begins without all three.

use base::varint;

/// The longest attributes.
pub const ATTRIBUTES_BYTES_MAX: usize = u8::MAX as usize;
/// The longest tagged encoding. Longer ones are refused when a record is read.
pub const TAGGED_BYTES_MAX: usize = 1024;
/// The longest packed encoding.
pub const PACKED_BYTES_MAX: usize =
    1 + 4 + 8 + 1 + ATTRIBUTES_BYTES_MAX + TierAddress::BYTES + 1 + 2 + TAGGED_BYTES_MAX;

const FLAGS: u8 = 1 << 0;
const CAS: u8 = 1 << 1;
const STICKY: u8 = 1 << 2;
const ATTRIBUTES: u8 = 1 << 3;
const TIER: u8 = 1 << 4;
const RESIDENCY: u8 = 1 << 5;
const UNKNOWN: u8 = 1 << 6;

/// Tags. Never reused, never renumbered.
mod tag {
    pub const FLAGS: u8 = 1;
    pub const STICKY: u8 = 2;
    pub const ATTRIBUTES: u8 = 3;
    pub const TIER: u8 = 4;
    /// Tags from here on have no meaning in this version.
    pub const UNKNOWN_MIN: u8 = 5;
}

/// Where a value lies on a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierAddress {
    /// The segment.
    pub segment: u32,
    /// The offset in the segment, in units of 16 bytes.
    pub offset: u32,
    /// The length of the stored value in bytes.
    pub len: u32,
    /// A checksum of the key's hash and the value, which detects a stale address.
    pub tag: u32,
}

impl TierAddress {
    /// Length of its encoding.
    pub const BYTES: usize = 16;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let parts = [self.segment, self.offset, self.len, self.tag];
        for (place, part) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(parts) {
            *place = part.to_le_bytes();
        }
        bytes
    }

    fn of_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let part = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { segment: part(0), offset: part(4), len: part(8), tag: part(12) }
    }
}

/// State of an entry of a backed keyspace, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency(pub u8);

impl Residency {
    /// Neither: an entry of a keyspace in memory.
    pub const NONE: Self = Self(0);
    /// It was changed since the last flush.
    pub const DIRTY: Self = Self(1);
    /// A version of it is on disk.
    pub const ON_DISK: Self = Self(2);
    /// A command waits for it, so it must not be dropped.
    pub const PINNED: Self = Self(4);

    /// Whether all bits of `other` are set.
    #[inline]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other` set.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The fields one by one. A field with its default value is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// Flags of a memcached item; 0 means absent.
    pub flags: u32,
    /// CAS id of a memcached item; 0 means that none was given (X3).
    pub cas: u64,
    /// Whether the item is never to be evicted while it has no expiration.
    pub is_sticky: bool,
    /// Attributes of an ARCUS item, at most [`ATTRIBUTES_BYTES_MAX`]; empty means absent.
    pub attributes: &'a [u8],
    /// Where the value lies, if that is a tier.
    pub tier: Option<TierAddress>,
    /// State in a backed keyspace (X3).
    pub residency: Residency,
    /// Tagged fields that this version does not know.
    pub unknown: &'a [u8],
}

impl Fields<'_> {
    /// The fields that the log holds, and that another entry takes over (X3).
    #[must_use]
    pub fn logged(self) -> Self {
        Self { cas: 0, tier: None, residency: Residency::NONE, ..self }
    }

    fn presence(&self) -> u8 {
        [
            (FLAGS, self.flags != 0),
            (CAS, self.cas != 0),
            (STICKY, self.is_sticky),
            (ATTRIBUTES, !self.attributes.is_empty()),
            (TIER, self.tier.is_some()),
            (RESIDENCY, self.residency != Residency::NONE),
            (UNKNOWN, !self.unknown.is_empty()),
        ]
        .into_iter()
        .fold(0, |bits, (bit, is_present)| if is_present { bits | bit } else { bits })
    }

    /// Their packed encoding.
    ///
    /// # Panics
    /// When the attributes or the unknown fields are longer than allowed.
    pub fn pack(&self) -> PackedFields {
        assert!(self.attributes.len() <= ATTRIBUTES_BYTES_MAX && self.unknown.len() <= TAGGED_BYTES_MAX);
        let presence = self.presence();
        let mut out = Vec::new();
        if presence == 0 {
            return PackedFields(out);
        }
        out.push(presence);
        if presence & FLAGS != 0 {
            out.extend_from_slice(&self.flags.to_le_bytes());
        }
        if presence & CAS != 0 {
            out.extend_from_slice(&self.cas.to_le_bytes());
        }
        if presence & ATTRIBUTES != 0 {
            out.push(self.attributes.len() as u8);
            out.extend_from_slice(self.attributes);
        }
        if let Some(address) = self.tier {
            out.extend_from_slice(&address.to_bytes());
        }
        if presence & RESIDENCY != 0 {
            out.push(self.residency.0);
        }
        if presence & UNKNOWN != 0 {
            out.extend_from_slice(&(self.unknown.len() as u16).to_le_bytes());
            out.extend_from_slice(self.unknown);
        }
        PackedFields(out)
    }

    /// Adds their tagged encoding as the log holds it: without CAS id, tier address and residency (X3).
    pub fn put_tagged(&self, out: &mut Vec<u8>) {
        self.logged().put_saved(out);
    }

    /// Adds their tagged encoding as a checkpoint holds it: with the tier address, without CAS id and residency (X3).
    pub fn put_saved(&self, out: &mut Vec<u8>) {
        let mut put = |tag: u8, bytes: &[u8]| {
            out.push(tag);
            varint::put(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        };
        if self.flags != 0 {
            put(tag::FLAGS, &self.flags.to_le_bytes());
        }
        if self.is_sticky {
            put(tag::STICKY, &[]);
        }
        if !self.attributes.is_empty() {
            put(tag::ATTRIBUTES, self.attributes);
        }
        if let Some(address) = self.tier {
            put(tag::TIER, &address.to_bytes());
        }
        out.extend_from_slice(self.unknown);
    }
}

/// Packed fields, borrowed from an entry or from [`PackedFields`] (X1).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtFields<'a>(&'a [u8]);

impl<'a> ExtFields<'a> {
    /// No field: what nearly all entries have.
    pub const NONE: Self = Self(&[]);

    /// The fields that `bytes` begins with, which an engine copied from [`ExtFields::packed`] of some fields.
    pub fn at(bytes: &'a [u8]) -> Self {
        Self(&bytes[..packed_len(bytes)])
    }

    /// Whether there is no field.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are attributes. A collection that has some stays when its last element goes.
    #[inline]
    pub fn has_attributes(self) -> bool {
        self.0.first().is_some_and(|presence| presence & ATTRIBUTES != 0)
    }

    /// Whether there is the mark of an entry that is never evicted.
    #[inline]
    pub fn is_sticky(self) -> bool {
        self.0.first().is_some_and(|presence| presence & STICKY != 0)
    }

    /// The packed bytes; none without any field.
    #[inline]
    pub fn packed(self) -> &'a [u8] {
        self.0
    }

    /// The fields one by one.
    pub fn get(self) -> Fields<'a> {
        let mut fields = Fields::default();
        let Some((&presence, mut rest)) = self.0.split_first() else { return fields };
        if presence & FLAGS != 0 {
            fields.flags = u32::from_le_bytes(take(&mut rest));
        }
        if presence & CAS != 0 {
            fields.cas = u64::from_le_bytes(take(&mut rest));
        }
        fields.is_sticky = presence & STICKY != 0;
        if presence & ATTRIBUTES != 0 {
            let [len] = take(&mut rest);
            (fields.attributes, rest) = rest.split_at(usize::from(len));
        }
        if presence & TIER != 0 {
            fields.tier = Some(TierAddress::of_bytes(take(&mut rest)));
        }
        if presence & RESIDENCY != 0 {
            fields.residency = Residency(take::<1>(&mut rest)[0]);
        }
        if presence & UNKNOWN != 0 {
            let len = u16::from_le_bytes(take(&mut rest));
            (fields.unknown, rest) = rest.split_at(usize::from(len));
        }
        debug_assert!(rest.is_empty(), "X1");
        fields
    }

    /// The address on a tier, if the entry has one.
    #[inline]
    pub fn tier(self) -> Option<TierAddress> {
        let has_one = self.0.first().is_some_and(|presence| presence & TIER != 0);
        if has_one { self.get().tier } else { None }
    }

    /// Where the CAS id is in the packed bytes: eight bytes, little-endian. `None` without one.
    pub fn cas_at(self) -> Option<usize> {
        let presence = self.0.first().filter(|presence| *presence & CAS != 0)?;
        Some(1 + if presence & FLAGS == 0 { 0 } else { size_of::<u32>() })
    }

    /// A copy.
    #[inline]
    pub fn to_owned(self) -> PackedFields {
        if self.is_none() { PackedFields::default() } else { self.copied() }
    }

    #[cold]
    #[inline(never)]
    fn copied(self) -> PackedFields {
        PackedFields(self.0.to_vec())
    }

    /// The tagged encoding, which is put into the buffer. See [`Fields::put_tagged`].
    pub fn tagged(self, buffer: &mut Vec<u8>) -> TaggedFields<'_> {
        buffer.clear();
        if !self.is_none() {
            self.get().put_tagged(buffer);
        }
        TaggedFields(buffer)
    }

    /// The tagged encoding of a checkpoint, which is put into the buffer. See [`Fields::put_saved`].
    pub fn saved(self, buffer: &mut Vec<u8>) -> TaggedFields<'_> {
        buffer.clear();
        if !self.is_none() {
            self.get().put_saved(buffer);
        }
        TaggedFields(buffer)
    }
}

impl std::fmt::Debug for ExtFields<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// Takes bytes that are there (X1).
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (bytes, behind) = rest.split_first_chunk::<N>().expect("X1: packed fields are whole");
    *rest = behind;
    *bytes
}

/// Length of the packed fields at the front of `bytes`.
fn packed_len(bytes: &[u8]) -> usize {
    let presence = bytes[0];
    let sized = [(FLAGS, 4), (CAS, 8)].into_iter().filter(|(bit, _)| presence & bit != 0).map(|(_, len)| len);
    let mut len = 1 + sized.sum::<usize>();
    if presence & ATTRIBUTES != 0 {
        len += 1 + usize::from(bytes[len]);
    }
    if presence & TIER != 0 {
        len += TierAddress::BYTES;
    }
    if presence & RESIDENCY != 0 {
        len += 1;
    }
    if presence & UNKNOWN != 0 {
        len += 2 + usize::from(u16::from_le_bytes([bytes[len], bytes[len + 1]]));
    }
    len
}

/// Packed fields that own their bytes. Without any field they own no memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PackedFields(Vec<u8>);

impl PackedFields {
    /// The fields, borrowed.
    #[inline]
    pub fn get(&self) -> ExtFields<'_> {
        ExtFields(&self.0)
    }
}

impl std::fmt::Debug for PackedFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// Tagged fields, borrowed from a record or from a buffer (X2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaggedFields<'a>(&'a [u8]);

impl<'a> TaggedFields<'a> {
    /// No field.
    pub const NONE: Self = Self(&[]);

    /// The fields, if these bytes are their tagged encoding: tags ascend, and fields that this version knows have the
    /// length and the form that [`Fields::put_tagged`] gives them.
    pub fn check(bytes: &'a [u8]) -> Option<Self> {
        parse_tagged(bytes).map(|_| Self(bytes))
    }

    /// The tagged bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether there is no field.
    pub fn is_none(self) -> bool {
        self.0.is_empty()
    }

    /// The fields one by one.
    pub fn get(self) -> Fields<'a> {
        parse_tagged(self.0).expect("X2: tagged fields were checked")
    }
}

fn parse_tagged(bytes: &[u8]) -> Option<Fields<'_>> {
    if bytes.len() > TAGGED_BYTES_MAX {
        return None;
    }
    let (mut fields, mut rest, mut last) = (Fields::default(), bytes, 0);
    while let Some((&tag, mut behind)) = rest.split_first() {
        let len = usize::try_from(varint::take(&mut behind)?).ok()?;
        let (field, behind) = behind.split_at_checked(len)?;
        if tag <= last {
            return None;
        }
        match tag {
            tag::FLAGS => fields.flags = u32::from_le_bytes(field.try_into().ok()?),
            tag::STICKY => fields.is_sticky = field.is_empty(),
            tag::ATTRIBUTES if field.len() <= ATTRIBUTES_BYTES_MAX => fields.attributes = field,
            tag::TIER => fields.tier = Some(TierAddress::of_bytes(field.try_into().ok()?)),
            tag::UNKNOWN_MIN.. => {
                check_tags(rest)?;
                fields.unknown = rest;
                break;
            }
            _ => return None,
        }
        (rest, last) = (behind, tag);
    }
    // A field that holds its default value would not be canonical.
    let mut again = Vec::new();
    fields.put_saved(&mut again);
    (again == bytes).then_some(fields)
}

/// Checks tags and lengths of fields that this version does not know.
fn check_tags(mut rest: &[u8]) -> Option<()> {
    let mut last = 0;
    while let Some((&tag, mut behind)) = rest.split_first() {
        let len = usize::try_from(varint::take(&mut behind)?).ok()?;
        rest = behind.split_at_checked(len)?.1;
        if tag <= last {
            return None;
        }
        last = tag;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    const ADDRESS: TierAddress = TierAddress { segment: 1, offset: 2, len: 3, tag: 0x0403_0201 };

    fn full() -> Fields<'static> {
        Fields {
            flags: 0x0102,
            cas: 5,
            is_sticky: true,
            attributes: b"attr",
            tier: Some(ADDRESS),
            residency: Residency::DIRTY.with(Residency::PINNED),
            unknown: b"\x09\x01x\xff\0",
        }
    }

    fn tagged(fields: &Fields<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        fields.put_saved(&mut out);
        out
    }

    /// The bytes of both encodings, as docs/formats/entry-fields.md gives them. A change here is a change of the
    /// format.
    #[test]
    fn golden_bytes() {
        let address = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3, 4];
        let expected = [&b"\x7f\x02\x01\0\0\x05\0\0\0\0\0\0\0\x04attr"[..], &address, b"\x05\x05\0\x09\x01x\xff\0"];
        assert_eq!(full().pack().get().packed(), expected.concat());
        let expected = [&b"\x01\x04\x02\x01\0\0\x02\0\x03\x04attr\x04\x10"[..], &address, b"\x09\x01x\xff\0"];
        assert_eq!(tagged(&full()), expected.concat());
    }

    /// Each field alone, and none, comes back from both encodings. CAS id and residency are packed only.
    #[test]
    fn each_field_comes_back() {
        let none = Fields::default();
        assert!(none.pack().get().is_none() && tagged(&none).is_empty());
        for fields in [
            none,
            Fields { flags: 7, ..none },
            Fields { cas: u64::MAX, ..none },
            Fields { is_sticky: true, ..none },
            Fields { attributes: &[1; 255], ..none },
            Fields { tier: Some(ADDRESS), ..none },
            Fields { residency: Residency::ON_DISK, ..none },
            Fields { unknown: b"\x06\0", ..none },
            full(),
        ] {
            let packed = fields.pack();
            assert_eq!(packed.get().get(), fields);
            let behind = [packed.get().packed(), b"what follows"].concat();
            if !packed.get().is_none() {
                assert_eq!(ExtFields::at(&behind), packed.get());
            }
            let tagged = tagged(&fields);
            let read = TaggedFields::check(&tagged).expect("it was just written").get();
            assert_eq!(read, Fields { tier: fields.tier, ..fields.logged() });
            let mut logged = Vec::new();
            fields.put_tagged(&mut logged);
            assert_eq!(TaggedFields::check(&logged).expect("it was just written").get(), fields.logged());
        }
    }

    /// Tags out of order, a known field of another length or with its default value, and too many bytes are refused.
    #[test]
    fn other_bytes_are_refused() {
        for bytes in [
            &b"\0\0"[..],
            b"\x01",
            b"\x01\x03abc",
            b"\x01\x04\0\0\0\0",
            b"\x02\x01x",
            b"\x02\0\x01\x04abcd",
            b"\x03\0",
            b"\x04\x0f123456789012345",
            b"\x06\0\x06\0",
            b"\x07\0\x06\0",
            b"\x07\0\x01\x04abcd",
            b"\x06\x05abc",
            b"\x06\x80\0",
        ] {
            assert_eq!(TaggedFields::check(bytes), None, "{bytes:?}");
        }
        let long = [&[6, 0xff, 0x07][..], &[0; 1023]].concat();
        assert_eq!(TaggedFields::check(&long), None, "{} bytes", long.len());
        let longest = [&[6, 0xfd, 0x07][..], &[0; 1021]].concat();
        let fields = TaggedFields::check(&longest).expect("1,024 bytes are allowed").get();
        assert!(fields.pack().get().packed().len() <= PACKED_BYTES_MAX);
    }

    /// Any bytes are either refused or come back unchanged through the packed encoding.
    #[test]
    fn tagged_fields_are_canonical() {
        let (mut rng, mut accepted) = (Rng::new(1), 0);
        for _ in 0..if cfg!(miri) { 500 } else { 100_000 } {
            let bytes: Vec<u8> = (0..rng.below(14)).map(|_| rng.below(10) as u8).collect();
            if let Some(fields) = TaggedFields::check(&bytes) {
                assert_eq!(fields.get().pack().get().saved(&mut Vec::new()), fields);
                accepted += usize::from(!bytes.is_empty());
            }
        }
        assert!(cfg!(miri) || accepted > 500, "only {accepted} were accepted");
    }
}
