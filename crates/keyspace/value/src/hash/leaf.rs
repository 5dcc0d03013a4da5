//! A leaf of a big hash: cells of fields whose hashes lie in one range, in the order they came.
//!
//! ```text
//! cell 0 | cell 1 | ... | cell n-1 || tag, length of n-1 | ... | of 1 | of 0
//! ```
//!
//! A tag is a byte of the field's hash. A lookup compares the tags of all cells, some of them at a time, and then the
//! one or two fields left; where a cell begins is the sum of the lengths before it (`tree::index`). A cell of 255 bytes
//! or more has [`LONG`] for its length, which then follows from the cell itself.
//!
//! A new cell and its index entry go where the two parts meet, so an insertion moves nothing but the index; and
//! appending a leaf is an insertion of its bytes at that place.

use super::cell::{Cell, Cells};
use crate::position::Position;
use crate::saved::hashed::SavedLeaf;
use crate::tree::index::{self, ENTRY_BYTES, LONG, Wanted};
use crate::tree::{self, Chunk, ChunkLeaf, Cut, HashedLeaf};
use base::hash::KeyHasher;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Leaf(Chunk);

/// Where a cell is, and how many bytes it has there.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    place: usize,
    start: usize,
    len: usize,
}

impl Leaf {
    /// The cell of a field, and where it is; `None` when it is not here.
    #[inline]
    pub fn find(&self, position: Position, field: &[u8]) -> Option<(Spot, Cell<'_>)> {
        index::find(self.index(), Wanted::tag(position.tag()), |place| {
            let start = self.start(place);
            let mut rest = &self.0.bytes()[start..];
            let before = rest.len();
            let cell = take(&mut rest);
            (cell.field == field).then(|| (Spot { place, start, len: before - rest.len() }, cell))
        })
    }

    /// The cell at this place, which is less than the count.
    #[inline]
    pub fn at(&self, place: usize) -> Cell<'_> {
        take(&mut &self.0.bytes()[self.start(place)..])
    }

    /// All cells.
    pub fn cells(&self) -> Cells<'_> {
        Cells(&self.0.bytes()[..self.cells_end()])
    }

    /// All cells, without counting this as a use.
    pub fn cells_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> Cells<'a> {
        Cells(&self.0.bytes_once(scratch)[..self.cells_end()])
    }

    /// Adds a field that is not here.
    pub fn push(&mut self, position: Position, cell: &Cell<'_>) {
        let (end, len) = (self.cells_end(), cell.packed_len());
        let gap = self.0.splice(end..end, len + ENTRY_BYTES);
        let (place, entry) = gap.split_at_mut(len);
        cell.write(place);
        entry.copy_from_slice(&[position.tag(), length_byte(len)]);
        self.0.set_count(self.0.count() + 1);
    }

    /// Puts another cell of the same field in the place of one.
    pub fn replace(&mut self, Spot { place, start, len: old }: Spot, cell: &Cell<'_>) {
        let len = cell.packed_len();
        cell.write(self.0.splice(start..start + old, len));
        if length_byte(len) != length_byte(old) {
            let entry = self.entry_start(place);
            self.0.splice(entry + 1..entry + ENTRY_BYTES, 1).fill(length_byte(len));
        }
    }

    /// Overwrites the value of the field, if the rest of the cell stays as it is and the bytes are not shared. False
    /// when nothing was done.
    #[inline]
    pub fn overwrite(&mut self, position: Position, new: &Cell<'_>) -> bool {
        let Some((Spot { start, len, .. }, old)) = self.find(position, new.field) else { return false };
        if old.value.len() != new.value.len() || old.expire_at != new.expire_at {
            return false;
        }
        let end = start + len;
        let Some(bytes) = self.0.own_bytes() else { return false };
        bytes[end - new.value.len()..end].copy_from_slice(new.value);
        true
    }

    /// Removes a cell.
    pub fn remove(&mut self, Spot { place, start, len }: Spot) {
        let entry = self.entry_start(place);
        self.0.splice(entry..entry + ENTRY_BYTES, 0);
        self.0.splice(start..start + len, 0);
        self.0.set_count(self.0.count() - 1);
    }

    fn cells_end(&self) -> usize {
        self.0.len() - self.0.count() * ENTRY_BYTES
    }

    fn entry_start(&self, place: usize) -> usize {
        self.0.len() - (place + 1) * ENTRY_BYTES
    }

    /// Where the cell at this place begins.
    #[inline]
    fn start(&self, place: usize) -> usize {
        index::length_before(self.index(), place).unwrap_or_else(|| self.start_behind_long(place))
    }

    #[cold]
    fn start_behind_long(&self, place: usize) -> usize {
        let mut cells = self.cells();
        let all = cells.0.len();
        cells.by_ref().take(place).for_each(drop);
        all - cells.0.len()
    }
}

impl tree::Leaf for Leaf {
    type Bound = u64;
    type Context = KeyHasher;
    const MAX_BYTES: usize = 1024;

    fn count(&self) -> usize {
        self.0.count()
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// Parts it so that about as many fields are on either side. They have no order, so `cut` means nothing.
    fn split(&mut self, hasher: &KeyHasher, _cut: Cut) -> Option<(u64, Self)> {
        let mut places: Vec<u64> = self.cells().map(|cell| Position::of(hasher, cell.field).place()).collect();
        places.sort_unstable();
        let (least, middle) = (places[0], places[places.len() / 2]);
        // If all of the first half share a place, the next one is where to part.
        let bound = *places.iter().find(|place| **place > least && **place >= middle)?;
        let (mut left, mut right) = (Self::default(), Self::default());
        for cell in self.cells() {
            let position = Position::of(hasher, cell.field);
            let side = if position.place() < bound { &mut left } else { &mut right };
            side.push(position, &cell);
        }
        *self = left;
        Some((bound, right))
    }

    fn append(&mut self, right: &Self) {
        let (end, count) = (self.cells_end(), self.0.count());
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

    /// When a field is due must be known without reading the leaf, as where a checkpoint is loaded.
    fn may_be_compressed(&self) -> bool {
        self.cells_once(&mut Vec::new()).all(|cell| cell.expire_at.is_none())
    }
}

impl SavedLeaf for Leaf {
    fn put_elements(bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Option<()> {
        out.extend_from_slice(bytes.get(..bytes.len().checked_sub(count * ENTRY_BYTES)?)?);
        Some(())
    }

    fn are_elements(mut bytes: &[u8]) -> bool {
        let has_any = !bytes.is_empty();
        while !bytes.is_empty() {
            if Cell::take(&mut bytes).is_none() {
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
        &self.0.bytes()[self.cells_end()..]
    }

    /// A long cell does not say in the index how long it is: of that the beginning.
    #[inline]
    fn candidate(&self, position: Position) -> &[u8] {
        let first = index::find(self.index(), Wanted::tag(position.tag()), Some);
        first.map_or(&[], |place| {
            let start = self.start(place);
            let length = self.0.bytes()[self.entry_start(place) + 1];
            &self.0.bytes()[start..start + usize::from(length)]
        })
    }

    #[inline]
    fn owners(&self) -> usize {
        self.0.owners()
    }
}

/// Takes the cell that these bytes begin with.
#[inline]
fn take<'a>(rest: &mut &'a [u8]) -> Cell<'a> {
    Cell::take(rest).expect("a leaf holds whole cells")
}

fn length_byte(len: usize) -> u8 {
    u8::try_from(len).unwrap_or(LONG)
}
