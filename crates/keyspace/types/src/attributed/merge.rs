//! Elements of several b+trees in one order.

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

/// The order of a range.
struct Order<'k> {
    keys: &'k [Key<'k>],
    is_descending: bool,
}

impl Order<'_> {
    fn compare(&self, left: (&Bkey, usize), right: (&Bkey, usize)) -> Ordering {
        let name = |of: usize| self.keys.get(of).map(|key| key.bytes);
        let order = left.0.cmp(right.0).then_with(|| name(left.1).cmp(&name(right.1)));
        if self.is_descending { order.reverse() } else { order }
    }
}

/// The first elements of the query in all trees; with `is_unique` one for each key of elements.
///
/// # Errors
/// Another type, or a fetch.
pub fn merge(
    ks: &mut dyn Keyspace,
    keys: &[Key<'_>],
    query: &Query,
    is_unique: bool,
) -> Result<MergeOutcome, TypeError> {
    let order = Order { keys, is_descending: query.range.is_descending() };
    let wanted = usize::try_from(query.offset.saturating_add(query.count)).unwrap_or(usize::MAX);
    let (mut merge, mut edges) = (Merge::default(), Vec::new());
    let of_one = Query { offset: 0, count: wanted as u64, ..query.clone() };
    for (of, key) in keys.iter().enumerate() {
        let Some(entry) = ks.read(key)? else {
            merge.missed.push((of, Missed::NoKey));
            continue;
        };
        let tree = Tree::of_entry(&entry)?;
        if !tree.attributes.is_readable {
            merge.missed.push((of, Missed::Unreadable));
        } else if !tree.takes(&query.range.from) {
            return Ok(MergeOutcome::OtherKind);
        } else if tree.is_trimmed_at_start(&query.range) {
            merge.missed.push((of, Missed::OutOfRange));
        } else {
            if tree.is_trimmed_in(&query.range) {
                edges.extend(tree.edge().map(|edge| (of, edge)));
            }
            take_elements(&mut merge.elements, (&tree, of), (&of_one, wanted, is_unique), &order);
        }
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
    order: &Order<'_>,
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
