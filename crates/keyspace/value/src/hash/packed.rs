//! A small hash: its cells in one buffer, in the order in which the fields came, after their number.
//!
//! ```text
//! count | cell 0 | cell 1 | ...        the count is a varint
//! ```

use super::cell::{Cell, Cells, write_varint};
use crate::Resize;
use base::{UnixMs, varint};
use std::ops::Range;

/// A packed hash, for reading. An empty buffer is an empty hash.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    count: usize,
    cells: &'a [u8],
}

impl<'a> Packed<'a> {
    /// Reads the buffer.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Self {
        let mut cells = bytes;
        let count = match bytes.split_first() {
            Some((&count, rest)) if count < 0x80 => {
                cells = rest;
                usize::from(count)
            }
            _ => varint::take(&mut cells).unwrap_or(0) as usize,
        };
        Self { count, cells }
    }

    /// How many fields, those that are due included.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// All cells.
    #[inline]
    pub fn cells(&self) -> Cells<'a> {
        Cells(self.cells)
    }

    /// The cell of the field.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Cell<'a>> {
        let mut cells = self.cells();
        cells.seek(field);
        cells.next()
    }

    /// The earliest time a field is due.
    pub fn first_due(&self) -> Option<UnixMs> {
        self.cells().filter_map(|cell| cell.expire_at).min()
    }
}

/// Whether the buffer is a packed hash with at least a field, none twice, each cell in its only form; with times only
/// if `may_be_timed`.
#[cfg(test)]
pub fn is_valid(bytes: &[u8], may_be_timed: bool) -> bool {
    let mut rest = bytes;
    let Some(count) = varint::take(&mut rest) else { return false };
    // A cell has two bytes at least, so this bounds what is reserved too.
    let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0 && *count <= rest.len()) else {
        return false;
    };
    let mut fields = std::collections::HashSet::with_capacity(count);
    while let Some(cell) = Cell::take(&mut rest) {
        if (cell.expire_at.is_some() && !may_be_timed) || !fields.insert(cell.field) {
            return false;
        }
    }
    rest.is_empty() && fields.len() == count
}

/// Sets a field. False, and no change, when the buffer would exceed `bytes_max`, or when the field is new and
/// `may_have` refuses that number of fields.
pub fn set(bytes: &mut impl Resize, cell: &Cell<'_>, bytes_max: usize, may_have: impl Fn(usize) -> bool) -> bool {
    let found = find(bytes, cell.field).map(|(_, range)| range);
    let count = Packed::of(bytes).len();
    // With a byte more for the count.
    let fits = |replaced: usize| bytes.len() - replaced + cell.packed_len() < bytes_max;
    match found {
        Some(range) if fits(range.len()) => put_cell(bytes, range, cell),
        None if fits(0) && may_have(count + 1) => {
            set_count(bytes, count + 1);
            let end = bytes.len();
            put_cell(bytes, end..end, cell);
        }
        _ => return false,
    }
    true
}

/// Removes the field if it is there.
pub fn remove(bytes: &mut impl Resize, field: &[u8]) {
    if let Some((_, range)) = find(bytes, field) {
        bytes.refit(range, 0);
        set_count(bytes, Packed::of(bytes).len() - 1);
    }
}

/// Sets the time of the field. False when it is not there.
pub fn expire(bytes: &mut impl Resize, field: &[u8], expire_at: Option<UnixMs>) -> bool {
    let Some((cell, range)) = find(bytes, field) else { return false };
    let value = cell.value.to_vec();
    put_cell(bytes, range, &Cell { field, value: &value, expire_at });
    true
}

/// The cell of the field and where it lies.
fn find<'a>(bytes: &'a [u8], field: &[u8]) -> Option<(Cell<'a>, Range<usize>)> {
    let mut cells = Packed::of(bytes).cells();
    cells.seek(field);
    let start = bytes.len() - cells.0.len();
    let cell = cells.next()?;
    Some((cell, start..bytes.len() - cells.0.len()))
}

/// Puts a cell in the place of these bytes.
fn put_cell(bytes: &mut impl Resize, range: Range<usize>, cell: &Cell<'_>) {
    cell.write(bytes.refit(range, cell.packed_len()));
}

fn set_count(bytes: &mut impl Resize, count: usize) {
    let old = if bytes.is_empty() { 0 } else { varint::len(Packed::of(bytes).len() as u64) };
    write_varint(bytes.refit(0..old, varint::len(count as u64)), count as u64);
}
