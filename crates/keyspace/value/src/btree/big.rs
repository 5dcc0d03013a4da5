//! The big form: runs of elements in a tree, in the order of their keys.

use super::entry::{self, Entries, Place, are_entries};
use super::{Bkey, Change, Element, packed};
use crate::Progress;
use crate::cold::Keeper;
use crate::saved::{self, OfRows, put_stored};
use crate::tree::{Chunk, ChunkLeaf, ColdLeaf as _, Cut, Leaf, Leaves, OrderedLeaf, Tree};
use std::sync::Arc;

/// The tree.
#[derive(Clone, Debug, Default)]
pub struct Big {
    tree: Tree<Run>,
}

impl Big {
    /// The tree of a packed collection.
    pub(super) fn unpack(bytes: &[u8]) -> Self {
        let mut big = Self::default();
        for element in Entries::new(packed::entries(bytes), 0) {
            big.put(&element);
        }
        big
    }

    /// How many elements there are.
    pub fn len(&self) -> u64 {
        self.tree.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    pub(crate) fn tree(&self) -> &Tree<Run> {
        &self.tree
    }

    /// The tree, for changes of its form.
    pub(crate) fn tree_mut(&mut self) -> &mut Tree<Run> {
        &mut self.tree
    }

    /// Whether its elements would be packed: those of a tree stay one.
    pub fn may_be_packed(&self) -> bool {
        self.content_bytes() <= packed::BYTES_MAX
    }

    /// The run where an element with this key is, or would be. `None` when there are no elements.
    pub(super) fn runs_of(&self, bkey: &Bkey) -> Option<Leaves<'_, Run>> {
        self.tree.locate(|bound| bound <= bkey)
    }

    /// See [`super::View::position`].
    pub(super) fn position(&self, bkey: &Bkey) -> (u64, bool) {
        let Some(runs) = self.runs_of(bkey) else { return (0, false) };
        let place = runs.leaf().find(bkey);
        (runs.before() + place.index as u64, place.length > 0)
    }

    /// The element with this key.
    pub(super) fn get(&self, bkey: &Bkey) -> Option<Element<'_>> {
        let run = self.tree.find(|bound| bound <= bkey)?;
        let place = run.find(bkey);
        Entries::new(run.bytes(), place.at).next().filter(|_| place.length > 0)
    }

    /// The run with the element at this position.
    pub(super) fn runs_at(&self, position: u64) -> Option<Leaves<'_, Run>> {
        self.tree.leaves_at(position)
    }

    /// Removes `count` elements from a position on, or as many as there are.
    pub fn remove_range(&mut self, start: u64, count: u64) {
        drop(self.tree.remove_range(&(), start..start.saturating_add(count)));
    }

    /// Applies one change.
    pub(super) fn apply(&mut self, change: &Change<'_>) {
        match *change {
            Change::Put(element) => self.put(&element),
            Change::Remove(bkey) => {
                if self.get(&bkey).is_some() {
                    self.tree.edit(&(), |bound| *bound <= bkey, |run| run.remove(&bkey));
                }
            }
            Change::RemoveRange { start, count } => self.remove_range(start, count),
        }
    }

    fn put(&mut self, element: &Element<'_>) {
        self.tree.edit(&(), |bound| *bound <= element.bkey, |run| run.put(element));
    }

    /// See [`crate::Big::memory_bytes`].
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes()
    }

    /// See [`crate::Big::content_bytes`].
    pub fn content_bytes(&self) -> usize {
        self.tree.content_bytes()
    }

    /// See [`crate::Big::write_changes`]. Continues by position.
    pub fn write_changes(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        let end = out.len().saturating_add(budget.max(1));
        let (mut position, mut scratch) = (from.0, Vec::new());
        let mut place = self.runs_at(position);
        while let Some(runs) = place {
            let bytes = runs.leaf().bytes_once(&mut scratch);
            for element in Entries::new(bytes, 0).skip((position - runs.before()) as usize) {
                Change::Put(element).put(out);
                position += 1;
                if out.len() >= end {
                    return (position < self.len()).then_some(Progress(position, 0));
                }
            }
            place = runs.next();
        }
        None
    }

    /// See [`crate::Big::write_leaves`]. Progress is how many elements are done.
    pub(crate) fn write_leaves(
        &self,
        from: Progress,
        (budget, rows): (usize, OfRows),
        out: &mut Vec<u8>,
    ) -> Option<Progress> {
        let end = out.len().saturating_add(budget);
        let (mut scratch, mut runs) = (Vec::new(), self.runs_at(from.0));
        while let Some(here) = runs {
            let run = here.leaf();
            self.tree.bound_at(here.before()).unwrap_or(&Bkey::default()).put(out);
            if !put_stored(run.cold(), run.count(), rows, out) {
                saved::Leaf::Plain(run.bytes_once(&mut scratch)).put(out);
            }
            runs = here.next();
            if out.len() >= end && runs.is_some() {
                return Some(Progress(here.after(), 0));
            }
        }
        None
    }

    /// See [`crate::Big::push_leaves`]. `None` when these are none.
    pub(crate) fn push_leaves(&mut self, mut rest: &[u8], keeper: &Arc<dyn Keeper>) -> Option<()> {
        while !rest.is_empty() {
            let bound = Bkey::take(&mut rest)?;
            let run = match saved::Leaf::take(&mut rest)? {
                saved::Leaf::Plain(bytes) => Run(Chunk::new(bytes, Entries::new(bytes, 0).count())),
                stored => stored.stored(keeper)?,
            };
            self.tree.push_saved(bound, run);
        }
        Some(())
    }

    /// See [`crate::Big::check_leaves`].
    pub(crate) fn check_leaves(mut rest: &[u8], is_stored: impl Fn(&[u8]) -> bool) -> bool {
        let has_any = !rest.is_empty();
        while !rest.is_empty() {
            let leaf = Bkey::take(&mut rest).and_then(|_| saved::Leaf::take(&mut rest));
            let is_good = match leaf {
                Some(saved::Leaf::Plain(bytes)) => are_entries(bytes),
                Some(saved::Leaf::Cold { stored, .. }) => is_stored(stored),
                Some(saved::Leaf::Row { .. }) | None => false,
            };
            if !is_good {
                return false;
            }
        }
        has_any
    }

    /// See [`crate::Big::stored_in_leaves`].
    pub(crate) fn stored_in_leaves<'a>(mut rest: &'a [u8], visit: &mut dyn FnMut(saved::Leaf<'a>)) {
        while Bkey::take(&mut rest).is_some()
            && let Some(leaf) = saved::Leaf::take(&mut rest)
        {
            visit(leaf);
        }
    }
}

/// Elements in order.
#[derive(Clone, Debug, Default)]
pub struct Run(Chunk);

impl Run {
    /// The elements.
    #[inline]
    pub(super) fn entries(&self) -> Entries<'_> {
        Entries::new(self.0.bytes(), 0)
    }

    /// The packed elements.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn find(&self, bkey: &Bkey) -> Place {
        entry::find(self.0.bytes(), bkey)
    }

    /// Inserts an element, or puts it in the place of the one with its key.
    fn put(&mut self, element: &Element<'_>) {
        let (place, encoded) = (self.find(&element.bkey), element.encoded());
        self.0.splice(place.at..place.at + place.length, encoded.len()).copy_from_slice(&encoded);
        self.0.set_count(self.0.count() + usize::from(place.length == 0));
    }

    /// Removes an element that is there.
    fn remove(&mut self, bkey: &Bkey) {
        let place = self.find(bkey);
        self.0.splice(place.at..place.at + place.length, 0);
        self.0.set_count(self.0.count() - 1);
    }

    /// Parts before element `index`, which begins at byte `at`.
    fn part(&mut self, index: usize, at: usize) -> Option<(Bkey, Self)> {
        let bound = Entries::new(self.0.bytes(), at).next()?.bkey;
        Some((bound, Self(self.0.split_off(at, index))))
    }
}

impl Leaf for Run {
    type Bound = Bkey;
    type Context = ();
    const MAX_BYTES: usize = 768;

    #[inline]
    fn count(&self) -> usize {
        self.0.count()
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn split(&mut self, (): &(), cut: Cut) -> Option<(Bkey, Self)> {
        let mut entries = self.entries();
        let index = match cut {
            Cut::First => entries.next().map(|_| 1)?,
            Cut::Last => {
                let index = self.count() - 1;
                entries = entries.skip(index);
                index
            }
            Cut::Middle => {
                let mut index = 0;
                while index == 0 || (entries.at() < self.0.len() / 2 && index + 1 < self.count()) {
                    entries.next()?;
                    index += 1;
                }
                index
            }
        };
        let at = entries.at();
        if index == 0 || index == self.count() { None } else { self.part(index, at) }
    }

    fn append(&mut self, right: &Self) {
        self.0.append(&right.0);
    }
}

impl ChunkLeaf for Run {
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

impl OrderedLeaf for Run {
    fn split_at(&mut self, index: usize) -> (Bkey, Self) {
        let at = self.entries().skip(index).at();
        self.part(index, at).unwrap_or_default()
    }
}
