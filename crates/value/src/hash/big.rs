//! A big hash: a tree in the order of the fields' keyed hashes, and the deadlines of fields that have a time.

use super::Change;
use super::cell::{Cell, Cells};
use super::deadlines::Deadlines;
use super::leaf::Leaf;
use crate::Progress;
use crate::position::Position;
use crate::tree::{Leaves, TOGETHER, Tree, positions};
use base::UnixMs;
use base::hash::KeyHasher;

/// The tree.
#[derive(Clone, Debug)]
pub struct Big {
    fields: Tree<Leaf>,
    /// One for each cell with a time.
    deadlines: Deadlines,
    hasher: KeyHasher,
}

impl Big {
    /// A hash without fields, which keeps the hasher.
    pub(crate) fn new(hasher: &KeyHasher) -> Self {
        Self { fields: Tree::new(), deadlines: Deadlines::default(), hasher: hasher.clone() }
    }

    /// How many fields, those that are due included.
    #[inline]
    pub fn len(&self) -> usize {
        self.fields.len() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// When fields are due.
    pub(super) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// The cell of the field.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Cell<'_>> {
        let position = Position::of(&self.hasher, field);
        let leaf = self.fields.find(|bound| *bound <= position.place())?;
        leaf.find(position, field).map(|place| leaf.at(place))
    }

    /// See [`crate::Big::load`].
    pub fn load(&self, requests: &[[&[u8]; 2]], is_edit: bool) {
        for requests in requests.chunks(TOGETHER) {
            let positions = positions(&self.hasher, requests.iter().map(|[field, _]| *field));
            self.fields.load_together(&positions[..requests.len()], is_edit);
        }
    }

    /// The cell at this place of the tree's order.
    pub fn at(&self, index: usize) -> Option<Cell<'_>> {
        let (leaf, place) = self.fields.at(index as u64)?;
        Some(leaf.at(place))
    }

    /// The cells from this number on, leaf by leaf.
    pub fn iter_from(&self, index: usize) -> Iter<'_> {
        let leaves = self.fields.leaves_at(index as u64);
        let mut cells = leaves.map(|leaves| leaves.leaf().cells()).unwrap_or_default();
        let before = leaves.map_or(0, |leaves| index - leaves.before() as usize);
        cells.by_ref().take(before).for_each(drop);
        Iter { leaves, cells }
    }

    /// Visits the cells that are due by `now`, until `visit` says false.
    pub fn due<'a>(&'a self, now: UnixMs, visit: &mut dyn FnMut(Cell<'a>) -> bool) {
        for (_, position) in self.deadlines.iter().take_while(|(at, _)| *at <= now) {
            let Some(leaf) = self.fields.find(|bound| *bound <= position.place()) else { return };
            let is_here = |cell: &Cell<'_>| Position::of(&self.hasher, cell.field) == position && cell.is_due(now);
            let mut here = leaf.cells().filter(is_here);
            if !here.all(&mut *visit) {
                return;
            }
        }
    }

    /// See [`super::View::scan`]. The cursor is the place where the next leaf begins.
    pub fn scan<'a>(&'a self, cursor: u64, count: u64, visit: &mut dyn FnMut(Cell<'a>)) -> u64 {
        let mut leaves = self.fields.locate(|bound| *bound <= cursor);
        // Only of the first leaf some may have been visited before, when it has been merged since.
        let (mut visited, mut skips) = (0, cursor > 0);
        while let Some(here) = leaves {
            for cell in here.leaf().cells() {
                if !skips || Position::of(&self.hasher, cell.field).place() >= cursor {
                    visit(cell);
                    visited += 1;
                }
            }
            skips = false;
            if visited >= count {
                return self.fields.bound_at(here.after()).copied().unwrap_or(0);
            }
            leaves = here.next();
        }
        0
    }

    /// Sets a field.
    pub(super) fn set(&mut self, new: &Cell<'_>) {
        let position = Position::of(&self.hasher, new.field);
        let reaches = |bound: &u64| *bound <= position.place();
        let old = self.fields.edit(&self.hasher, reaches, |leaf| match leaf.find(position, new.field) {
            Some(place) => leaf.replace(place, new),
            None => {
                leaf.push(position, new);
                None
            }
        });
        self.note_time(position, old, new.expire_at);
    }

    /// Sets the time of a field if it is there.
    pub(super) fn expire(&mut self, field: &[u8], expire_at: Option<UnixMs>) {
        if let Some(cell) = self.get(field) {
            let value = cell.value.to_vec();
            self.set(&Cell { field, value: &value, expire_at });
        }
    }

    /// Removes the field if it is there.
    pub(super) fn remove(&mut self, field: &[u8]) {
        let position = Position::of(&self.hasher, field);
        let reaches = |bound: &u64| *bound <= position.place();
        let old = self.fields.edit(&self.hasher, reaches, |leaf| {
            let place = leaf.find(position, field)?;
            let old = leaf.at(place).expire_at;
            leaf.remove(place);
            old
        });
        self.note_time(position, old, None);
    }

    /// The deadline of the field that stands there has changed.
    fn note_time(&mut self, position: Position, old: Option<UnixMs>, new: Option<UnixMs>) {
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.deadlines.remove(old, position);
        }
        if let Some(new) = new {
            self.deadlines.add(new, position);
        }
    }

    /// See [`crate::Big::memory_bytes`].
    pub fn memory_bytes(&self) -> usize {
        self.fields.memory_bytes() + self.deadlines.memory_bytes()
    }

    /// See [`crate::Big::content_bytes`].
    pub fn content_bytes(&self) -> usize {
        self.fields.content_bytes()
    }

    /// See [`crate::Big::write_changes`]. Progress is the cursor of [`Big::scan`].
    pub fn write_changes(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        let end = out.len().saturating_add(budget);
        let mut cursor = from.0;
        if cursor == 0 {
            Change::Expect(self.fields.len()).put(out);
        }
        loop {
            cursor = self.scan(cursor, 1, &mut |cell| Change::from(cell).put(out));
            if cursor == 0 {
                return None;
            }
            if out.len() >= end {
                return Some(Progress(cursor, 0));
            }
        }
    }
}

/// Over the cells of a big hash.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    leaves: Option<Leaves<'a, Leaf>>,
    cells: Cells<'a>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Cell<'a>;

    #[inline]
    fn next(&mut self) -> Option<Cell<'a>> {
        loop {
            if let Some(cell) = self.cells.next() {
                return Some(cell);
            }
            self.leaves = self.leaves?.next();
            self.cells = self.leaves?.leaf().cells();
        }
    }
}
