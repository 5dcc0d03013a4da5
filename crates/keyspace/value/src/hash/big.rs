//! A big hash: a tree in the order of the fields' keyed hashes, and the deadlines of fields that have a time.

use super::Change;
use super::cell::{Cell, Cells};
use super::deadlines::Deadlines;
use super::leaf::Leaf;
use crate::Progress;
use crate::position::Position;
use crate::saved::OfRows;
use crate::saved::hashed::{self, HashedTree};
use crate::tree::{Leaves, Run, TOGETHER, Tree, positions};
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

    pub(crate) fn tree(&self) -> &Tree<Leaf> {
        &self.fields
    }

    /// The tree, for changes of its form.
    pub(crate) fn tree_mut(&mut self) -> &mut Tree<Leaf> {
        &mut self.fields
    }

    /// See [`Tree::warm_run`].
    pub(crate) fn warm_run(&mut self, run: &Run<Leaf>) -> bool {
        self.fields.warm_run(&self.hasher, run)
    }

    /// See [`crate::Big::is_ordered_by`].
    pub(crate) fn is_ordered_by(&self, hasher: &KeyHasher) -> bool {
        self.hasher.is(hasher)
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
        leaf.find(position, field).map(|(_, cell)| cell)
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
        if self.fields.edit_in_place(reaches, |leaf| leaf.overwrite(position, new)) {
            return;
        }
        let old = self.fields.edit(&self.hasher, reaches, |leaf| {
            let old = leaf.find(position, new.field).map(|(spot, cell)| (spot, cell.expire_at));
            match old {
                Some((spot, _)) => leaf.replace(spot, new),
                None => leaf.push(position, new),
            }
            old.and_then(|(_, expire_at)| expire_at)
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
            let (spot, Cell { expire_at, .. }) = leaf.find(position, field)?;
            leaf.remove(spot);
            expire_at
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

    /// See [`crate::Big::write_changes`]. Progress is the place where the next leaf begins.
    pub fn write_changes(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        let (end, start) = (out.len().saturating_add(budget), from.0);
        if start == 0 {
            Change::Expect(self.fields.len()).put(out);
        }
        let (mut scratch, mut leaves) = (Vec::new(), self.fields.locate(|bound| *bound <= start));
        while let Some(here) = leaves {
            here.leaf().cells_once(&mut scratch).for_each(|cell| Change::from(cell).put(out));
            if out.len() >= end {
                return self.fields.bound_at(here.after()).map(|bound| Progress(*bound, 0));
            }
            leaves = here.next();
        }
        None
    }

    /// See [`crate::Big::write_leaves`]. Progress is how many fields are done.
    pub(crate) fn write_leaves(&self, from: Progress, budget: (usize, OfRows), out: &mut Vec<u8>) -> Option<Progress> {
        hashed::write(&self.fields, &self.hasher, from.0, budget, out).map(|done| Progress(done, 0))
    }
}

impl HashedTree for Big {
    type Leaf = Leaf;

    fn tree(&mut self) -> (&mut Tree<Leaf>, &mut KeyHasher) {
        (&mut self.fields, &mut self.hasher)
    }

    fn push_leaf(&mut self, bound: u64, cells: &[u8]) {
        let mut leaf = Leaf::default();
        for cell in Cells(cells) {
            let position = Position::of(&self.hasher, cell.field);
            leaf.push(position, &cell);
            self.note_time(position, None, cell.expire_at);
        }
        self.fields.push(bound, leaf);
    }

    fn add_each(&mut self, cells: &[u8]) {
        Cells(cells).for_each(|cell| self.set(&cell));
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
