//! Reading a hash in either form.

use super::big::{self, Big};
use super::cell::{Cell, Cells};
use super::packed::Packed;
use super::{TIMED, wrong_type};
use crate::{Encoding, Stored};
use base::UnixMs;

/// A hash, for reading. It shows due fields like all others; readers on behalf of a client leave them out
/// ([`Cell::is_due`]).
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Packed { hash: Packed<'a>, may_be_timed: bool },
    Big(&'a Big),
}

impl<'a> View<'a> {
    /// A view of the stored form.
    #[inline]
    pub fn of(encoding: Encoding, stored: Stored<'a>) -> Self {
        Self(match stored {
            Stored::Packed(bytes) => Form::Packed { hash: Packed::of(bytes), may_be_timed: encoding == TIMED },
            Stored::Big(crate::Big::Hash(big)) => Form::Big(big),
            Stored::Big(_) => wrong_type(),
        })
    }

    /// How many fields, those that are due included.
    #[inline]
    pub fn len(&self) -> usize {
        match self.0 {
            Form::Packed { hash, .. } => hash.len(),
            Form::Big(big) => big.len(),
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many fields are due by `now`.
    #[inline]
    pub fn count_due(&self, now: UnixMs) -> usize {
        match self.0 {
            Form::Packed { may_be_timed: false, .. } => 0,
            Form::Packed { hash, .. } => hash.cells().filter(|cell| cell.is_due(now)).count(),
            Form::Big(big) => big.deadlines().count_due(now) as usize,
        }
    }

    /// The earliest time a field is due; `None` when none has a time.
    #[inline]
    pub fn first_due(&self) -> Option<UnixMs> {
        match self.0 {
            Form::Packed { may_be_timed: false, .. } => None,
            Form::Packed { hash, .. } => hash.first_due(),
            Form::Big(big) => big.deadlines().first(),
        }
    }

    /// Visits fields that are due by `now`, until `visit` says false.
    pub fn due(&self, now: UnixMs, visit: &mut dyn FnMut(Cell<'a>) -> bool) {
        match self.0 {
            Form::Packed { hash, .. } => {
                let mut due = hash.cells().filter(|cell| cell.is_due(now));
                due.all(visit);
            }
            Form::Big(big) => big.due(now, visit),
        }
    }

    /// The field's cell.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Cell<'a>> {
        match self.0 {
            Form::Packed { hash, .. } => hash.get(field),
            Form::Big(big) => big.get(field),
        }
    }

    /// The cell with this number in the order of [`Self::iter`]. In time to the place while packed, logarithmic in a
    /// tree.
    pub fn at(&self, index: usize) -> Option<Cell<'a>> {
        match self.0 {
            Form::Packed { hash, .. } => hash.cells().nth(index),
            Form::Big(big) => big.at(index),
        }
    }

    /// All cells: in the order in which the fields came, or of their hashes.
    #[inline]
    pub fn iter(&self) -> Iter<'a> {
        self.iter_from(0)
    }

    /// The cells from this number on. Found as by [`Self::at`].
    #[inline]
    pub fn iter_from(&self, index: usize) -> Iter<'a> {
        match self.0 {
            Form::Packed { hash, .. } => {
                let mut cells = hash.cells();
                cells.by_ref().take(index).for_each(drop);
                Iter::Packed(cells)
            }
            Form::Big(big) => Iter::Big(big.iter_from(index)),
        }
    }

    /// One step of HSCAN: visits about `count` cells from `cursor` on (0 begins) and gives the next cursor, 0 at the
    /// end. Every field that is there throughout a scan is visited, whatever comes and goes meanwhile.
    pub fn scan(&self, cursor: u64, count: u64, visit: &mut dyn FnMut(Cell<'a>)) -> u64 {
        match self.0 {
            // All at once, so that there is no order to keep while the buffer is edited.
            Form::Packed { hash, .. } => {
                hash.cells().for_each(visit);
                0
            }
            Form::Big(big) => big.scan(cursor, count, visit),
        }
    }

    /// Whether it is a tree: random places of it are found fast.
    pub fn is_big(&self) -> bool {
        matches!(self.0, Form::Big(_))
    }
}

/// Over the cells of a hash.
#[derive(Clone, Debug)]
pub enum Iter<'a> {
    /// In one buffer.
    Packed(Cells<'a>),
    /// In a tree.
    Big(big::Iter<'a>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Cell<'a>;

    #[inline]
    fn next(&mut self) -> Option<Cell<'a>> {
        match self {
            Self::Packed(cells) => cells.next(),
            Self::Big(cells) => cells.next(),
        }
    }
}
