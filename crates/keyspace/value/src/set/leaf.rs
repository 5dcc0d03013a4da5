//! A leaf of a big set: members whose hashes lie in one range, in the order they came.
//!
//! ```text
//! member 0 | member 1 | ... | member n-1 || tag, length of n-1 | ... | of 1 | of 0
//! ```
//!
//! A tag is a byte of the member's hash. A lookup compares tag and length of all members, some of them at a time, and
//! then the one or two members left; where a member begins is the sum of the lengths before it (`tree::index`). A
//! member of 255 bytes or more has [`LONG`] for its length, and its length as a varint before its bytes.
//!
//! A new member and its index entry go where the two parts meet, so an insertion moves nothing but the index; and
//! appending a leaf is an insertion of its bytes at that place.

use crate::position::Position;
use crate::saved::hashed::SavedLeaf;
use crate::tree::index::{self, ENTRY_BYTES, LONG, Wanted};
use crate::tree::{self, Chunk, ChunkLeaf, ColdLeaf as _, Cut, HashedLeaf};
use crate::wire;
use base::hash::KeyHasher;
use base::varint;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Leaf(Chunk);

impl Leaf {
    /// The place of a member; `None` when it is not here.
    #[inline]
    pub fn find(&self, position: Position, member: &[u8]) -> Option<usize> {
        let wanted = Wanted::entry(entry(position, member.len()));
        index::find(self.index(), wanted, |place| (self.at(place) == member).then_some(place))
    }

    /// The member at this place, which is less than the count.
    #[inline]
    pub fn at(&self, place: usize) -> &[u8] {
        let start = self.start(place);
        text(&self.0.bytes()[start..], self.entry_at(place))
    }

    /// All members.
    pub fn iter(&self) -> Iter<'_> {
        let (rest, index) = self.0.bytes().split_at(self.members_end());
        Iter { rest, index }
    }

    /// All members, without counting this as a use.
    pub fn iter_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> Iter<'a> {
        let (rest, index) = self.bytes_once(scratch).split_at(self.members_end());
        Iter { rest, index }
    }

    /// Adds a member that is not here.
    pub fn push(&mut self, position: Position, member: &[u8]) {
        let (end, entry) = (self.members_end(), entry(position, member.len()));
        let length_bytes = if entry[1] == LONG { varint::len(member.len() as u64) } else { 0 };
        let gap = self.0.splice(end..end, length_bytes + member.len() + ENTRY_BYTES);
        if length_bytes > 0 {
            let mut length = Vec::with_capacity(length_bytes);
            varint::put(&mut length, member.len() as u64);
            gap[..length_bytes].copy_from_slice(&length);
        }
        let (text, last) = gap[length_bytes..].split_at_mut(member.len());
        text.copy_from_slice(member);
        last.copy_from_slice(&entry);
        self.0.set_count(self.0.count() + 1);
    }

    /// Removes the member at this place.
    pub fn remove(&mut self, place: usize) {
        let (start, count) = (self.start(place), self.0.count());
        let bytes = stored_bytes(&self.0.bytes()[start..], self.entry_at(place));
        let entry = self.members_end() + (count - 1 - place) * ENTRY_BYTES;
        self.0.splice(entry..entry + ENTRY_BYTES, 0);
        self.0.splice(start..start + bytes, 0);
        self.0.set_count(count - 1);
    }

    fn members_end(&self) -> usize {
        self.0.len() - self.0.count() * ENTRY_BYTES
    }

    fn entry_at(&self, place: usize) -> [u8; ENTRY_BYTES] {
        let at = self.0.len() - (place + 1) * ENTRY_BYTES;
        [self.0.bytes()[at], self.0.bytes()[at + 1]]
    }

    /// Where the member at this place begins.
    #[inline]
    fn start(&self, place: usize) -> usize {
        index::length_before(self.index(), place).unwrap_or_else(|| self.start_behind_long(place))
    }

    #[cold]
    fn start_behind_long(&self, place: usize) -> usize {
        let bytes = self.0.bytes();
        (0..place).fold(0, |start, place| start + stored_bytes(&bytes[start..], self.entry_at(place)))
    }
}

impl tree::Leaf for Leaf {
    type Bound = u64;
    type Context = KeyHasher;
    const MAX_BYTES: usize = 768;

    fn count(&self) -> usize {
        self.0.count()
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// Parts it so that about as many members are on either side. They have no order, so `cut` means nothing.
    fn split(&mut self, hasher: &KeyHasher, _cut: Cut) -> Option<(u64, Self)> {
        let mut places: Vec<u64> = self.iter().map(|member| Position::of(hasher, member).place()).collect();
        places.sort_unstable();
        let (least, middle) = (places[0], places[places.len() / 2]);
        // If all of the first half share a place, the next one is where to part.
        let bound = *places.iter().find(|place| **place > least && **place >= middle)?;
        let (mut left, mut right) = (Self::default(), Self::default());
        for member in self.iter() {
            let position = Position::of(hasher, member);
            let side = if position.place() < bound { &mut left } else { &mut right };
            side.push(position, member);
        }
        *self = left;
        Some((bound, right))
    }

    fn append(&mut self, right: &Self) {
        let (end, count) = (self.members_end(), self.0.count());
        self.0.splice(end..end, right.0.len()).copy_from_slice(right.0.bytes());
        self.0.set_count(count + right.0.count());
    }
}

impl ChunkLeaf for Leaf {
    fn chunk(&self) -> &Chunk {
        &self.0
    }

    fn chunk_mut(&mut self) -> &mut Chunk {
        &mut self.0
    }

    fn of_chunk(chunk: Chunk) -> Self {
        Self(chunk)
    }
}

impl SavedLeaf for Leaf {
    fn put_elements(bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Option<()> {
        let (rest, index) = bytes.split_at_checked(bytes.len().checked_sub(count * ENTRY_BYTES)?)?;
        Iter { rest, index }.for_each(|member| wire::put_string(out, member));
        Some(())
    }

    fn are_elements(mut bytes: &[u8]) -> bool {
        let has_any = !bytes.is_empty();
        while !bytes.is_empty() {
            if wire::take_string(&mut bytes).is_none() {
                return false;
            }
        }
        has_any
    }
}

impl HashedLeaf for Leaf {
    #[inline]
    fn place(position: Position) -> u64 {
        position.place()
    }

    #[inline]
    fn index(&self) -> &[u8] {
        &self.0.bytes()[self.members_end()..]
    }

    /// A long member does not say in the index how long it is: of that the beginning.
    #[inline]
    fn candidate(&self, position: Position) -> &[u8] {
        let first = index::find(self.index(), Wanted::tag(position.tag()), Some);
        first.map_or(&[], |place| {
            let [_, length] = self.entry_at(place);
            let start = self.start(place);
            &self.0.bytes()[start..start + usize::from(length)]
        })
    }

    #[inline]
    fn owners(&self) -> usize {
        self.0.owners()
    }
}

/// Over the members of a leaf.
#[derive(Clone, Debug, Default)]
pub struct Iter<'a> {
    /// From the next member on.
    rest: &'a [u8],
    /// Up to the next member's entry.
    index: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (index, entry) = self.index.split_last_chunk()?;
        let (stored, rest) = self.rest.split_at(stored_bytes(self.rest, *entry));
        (self.rest, self.index) = (rest, index);
        Some(text(stored, *entry))
    }
}

fn entry(position: Position, length: usize) -> [u8; ENTRY_BYTES] {
    [position.tag(), u8::try_from(length).unwrap_or(LONG)]
}

/// Bytes of the member that `stored` begins with, its length included where it has one.
#[inline]
fn stored_bytes(stored: &[u8], entry: [u8; ENTRY_BYTES]) -> usize {
    match entry[1] {
        LONG => {
            let length = text(stored, entry).len();
            varint::len(length as u64) + length
        }
        length => usize::from(length),
    }
}

/// The member that `stored` begins with.
#[inline]
fn text(stored: &[u8], entry: [u8; ENTRY_BYTES]) -> &[u8] {
    match entry[1] {
        LONG => {
            let mut rest = stored;
            wire::take_string(&mut rest).unwrap_or_default()
        }
        length => &stored[..usize::from(length)],
    }
}
