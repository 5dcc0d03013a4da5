//! Elements of several b+trees in one order.

use super::Snapshot;
use super::btree::{Query, Tree};
use crate::TypeError;
use engine::{Key, Keyspace};
use std::cmp::Ordering;
use value::btree::Bkey;

/// An element that was merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Of which key, by its place in the request.
    pub of: usize,
    /// Flags of its tree.
    pub flags: u32,
    /// Its key.
    pub bkey: Bkey,
    /// Its eflag.
    pub eflag: Vec<u8>,
    /// Its data.
    pub data: Vec<u8>,
}

/// Why a tree gives no elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// There is no such key.
    NoKey,
    /// It may not be read.
    Unreadable,
    /// Elements at the beginning of the range may have been dropped at its bound.
    OutOfRange,
}

/// What several trees have in a range.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    /// Elements in the order of the range.
    pub elements: Vec<Merged>,
    /// Trees that give none, by their places in the request.
    pub missed: Vec<(usize, Missed)>,
    /// Trees that may have had further elements before the last one here, with their last one.
    pub trimmed: Vec<(usize, Bkey)>,
    /// Two of the elements have one key.
    pub has_duplicates: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum MergeOutcome {
    /// Elements.
    Merged(Merge),
    /// One of the trees has keys of another kind.
    OtherKind,
}

/// The trees that are merged, by their places in the request.
pub trait Trees {
    /// The name of a tree, which decides between equal keys of elements.
    fn name(&self, of: usize) -> &[u8];

    /// How many there are.
    fn count(&self) -> usize;

    /// Shows a tree to a function, unless its key is absent.
    ///
    /// # Errors
    /// Another type, or a fetch.
    fn show(&mut self, of: usize, show: &mut dyn FnMut(&Tree<'_>)) -> Result<(), TypeError>;
}

/// Those under these keys.
impl Trees for (&mut (dyn Keyspace + '_), &[Key<'_>]) {
    fn name(&self, of: usize) -> &[u8] {
        self.1.get(of).map_or(&[], |key| key.bytes)
    }

    fn count(&self) -> usize {
        self.1.len()
    }

    fn show(&mut self, of: usize, show: &mut dyn FnMut(&Tree<'_>)) -> Result<(), TypeError> {
        let Some(key) = self.1.get(of) else { return Ok(()) };
        let Some(entry) = self.0.read(key)? else { return Ok(()) };
        show(&Tree::of_entry(&entry)?);
        Ok(())
    }
}

/// Snapshots with their names.
impl Trees for &[(Vec<u8>, Option<Snapshot>)] {
    fn name(&self, of: usize) -> &[u8] {
        self.get(of).map_or(&[], |(name, _)| name)
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn show(&mut self, of: usize, show: &mut dyn FnMut(&Tree<'_>)) -> Result<(), TypeError> {
        let Some((_, Some(snapshot))) = self.get(of) else { return Ok(()) };
        show(&snapshot.tree()?);
        Ok(())
    }
}

/// The order of a range.
struct Order {
    /// The places of the trees in the order of their names.
    ranks: Vec<usize>,
    is_descending: bool,
}

impl Order {
    fn of(trees: &dyn Trees, is_descending: bool) -> Self {
        let mut by_name: Vec<usize> = (0..trees.count()).collect();
        by_name.sort_by(|left, right| trees.name(*left).cmp(trees.name(*right)));
        let mut ranks = vec![0; by_name.len()];
        for (rank, of) in by_name.into_iter().enumerate() {
            if let Some(place) = ranks.get_mut(of) {
                *place = rank;
            }
        }
        Self { ranks, is_descending }
    }

    fn compare(&self, left: (&Bkey, usize), right: (&Bkey, usize)) -> Ordering {
        let rank = |of: usize| self.ranks.get(of);
        let order = left.0.cmp(right.0).then_with(|| rank(left.1).cmp(&rank(right.1)));
        if self.is_descending { order.reverse() } else { order }
    }
}

/// The first elements of the query in all trees; with `is_unique` one for each key of elements.
///
/// # Errors
/// Another type, or a fetch.
pub fn merge(trees: &mut dyn Trees, query: &Query, is_unique: bool) -> Result<MergeOutcome, TypeError> {
    let order = Order::of(trees, query.range.is_descending());
    let wanted = usize::try_from(query.offset.saturating_add(query.count)).unwrap_or(usize::MAX);
    let (mut merge, mut edges, mut has_other_kind) = (Merge::default(), Vec::new(), false);
    let of_one = Query { offset: 0, count: wanted as u64, ..query.clone() };
    for of in 0..trees.count() {
        let mut missed = Some(Missed::NoKey);
        trees.show(of, &mut |tree| {
            missed = None;
            if !tree.attributes.is_readable {
                missed = Some(Missed::Unreadable);
            } else if !tree.takes(&query.range.from) {
                has_other_kind = true;
            } else if tree.is_trimmed_at_start(&query.range) {
                missed = Some(Missed::OutOfRange);
            } else {
                if tree.is_trimmed_in(&query.range) {
                    edges.extend(tree.edge().map(|edge| (of, edge)));
                }
                take_elements(&mut merge.elements, (tree, of), (&of_one, wanted, is_unique), &order);
            }
        })?;
        if has_other_kind {
            return Ok(MergeOutcome::OtherKind);
        }
        merge.missed.extend(missed.map(|missed| (of, missed)));
    }
    let is_full = merge.elements.len() >= wanted;
    merge.elements.drain(..merge.elements.len().min(usize::try_from(query.offset).unwrap_or(usize::MAX)));
    merge.has_duplicates = !merge.elements.is_sorted_by(|left, right| left.bkey != right.bkey);
    let last = merge.elements.last().map(|last| last.bkey).filter(|_| is_full);
    edges.retain(|(_, edge)| last.is_none_or(|last| if order.is_descending { *edge > last } else { *edge < last }));
    edges.sort_by(|left, right| order.compare((&left.1, left.0), (&right.1, right.0)));
    merge.trimmed = edges;
    Ok(MergeOutcome::Merged(merge))
}

/// Adds elements of a tree that are among the first of all.
fn take_elements(
    elements: &mut Vec<Merged>,
    (tree, of): (&Tree<'_>, usize),
    (query, wanted, is_unique): (&Query, usize, bool),
    order: &Order,
) {
    for (_, element) in tree.select(query) {
        let found = elements.binary_search_by(|other| order.compare((&other.bkey, other.of), (&element.bkey, of)));
        let Err(at) = found else { continue };
        if at >= wanted {
            return;
        }
        if is_unique {
            let is_same =
                |at: Option<usize>| at.and_then(|at| elements.get(at)).is_some_and(|other| other.bkey == element.bkey);
            if is_same(at.checked_sub(1)) {
                continue;
            }
            // This one precedes it.
            if is_same(Some(at)) {
                elements.remove(at);
            }
        }
        let (eflag, data) = (element.eflag.to_vec(), element.data.to_vec());
        elements.insert(at, Merged { of, flags: tree.flags, bkey: element.bkey, eflag, data });
        elements.truncate(wanted);
    }
}
