//! Leaves of elements in the order of their hashes: of hashes, of sets, and of sorted sets by member.

use super::{Leaf, OfRows, Order, put_stored};
use crate::cold::Keeper;
use crate::tree::{ColdLeaf, HashedLeaf, Tree};
use base::hash::KeyHasher;
use base::varint;
use std::sync::Arc;

/// A leaf that knows how its uncompressed elements are saved, which is without anything that depends on their hashes.
pub trait SavedLeaf: ColdLeaf + HashedLeaf {
    /// Appends the elements in these bytes of a leaf of `count` elements; `None` when they do not hold that many.
    fn put_elements(bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Option<()>;

    /// Whether bytes are elements as [`Self::put_elements`] appends them, one at least.
    fn are_elements(bytes: &[u8]) -> bool;
}

/// What has a tree of such leaves.
pub trait HashedTree {
    /// Its leaves.
    type Leaf: SavedLeaf;

    /// The tree, and what orders it.
    fn tree(&mut self) -> (&mut Tree<Self::Leaf>, &mut KeyHasher);

    /// Adds a leaf of these elements, which follow all existing ones.
    fn push_leaf(&mut self, bound: u64, elements: &[u8]);

    /// The elements are added one by one.
    fn add_each(&mut self, elements: &[u8]);
}

/// Appends the order, and leaves from `from` on (the number of elements done), until `out` has grown by about `budget`
/// bytes. Returns where to continue; `None` at the end.
pub fn write<L: SavedLeaf>(
    tree: &Tree<L>,
    hasher: &KeyHasher,
    from: u64,
    (budget, rows): (usize, OfRows),
    out: &mut Vec<u8>,
) -> Option<u64> {
    let end = out.len().saturating_add(budget);
    Order::of(hasher).put(out);
    let (mut scratch, mut elements) = (Vec::new(), Vec::new());
    let mut leaves = tree.leaves_at(from);
    while let Some(here) = leaves {
        let leaf = here.leaf();
        varint::put(out, tree.bound_at(here.before()).copied().unwrap_or(0));
        if !put_stored(leaf.cold(), leaf.count(), rows, out) {
            elements.clear();
            let is_put = L::put_elements(leaf.bytes_once(&mut scratch), leaf.count(), &mut elements);
            debug_assert!(is_put.is_some(), "a leaf holds whole elements");
            Leaf::Plain(&elements).put(out);
        }
        leaves = here.next();
        if out.len() >= end && leaves.is_some() {
            return Some(here.after());
        }
    }
    None
}

/// Adds leaves that [`write()`] has written. `None` when these are none.
pub fn push<T: HashedTree>(into: &mut T, mut rest: &[u8], keeper: &Arc<dyn Keeper>) -> Option<()> {
    let saved = Order::take(&mut rest)?.hasher();
    let (tree, hasher) = into.tree();
    let saved = saved.filter(|saved| tree.is_empty() || hasher.is(saved));
    let is_ordered = saved.is_some();
    *hasher = saved.unwrap_or_else(|| hasher.clone());
    let (mut thawed, mut elements) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let bound = varint::take(&mut rest)?;
        match Leaf::take(&mut rest)? {
            Leaf::Plain(elements) if is_ordered => into.push_leaf(bound, elements),
            Leaf::Plain(elements) => into.add_each(elements),
            leaf if is_ordered => {
                let leaf = leaf.stored(keeper)?;
                into.tree().0.push_saved(bound, leaf);
            }
            leaf => {
                thawed.clear();
                elements.clear();
                let count = match leaf {
                    Leaf::Cold { count, stored } => {
                        keeper.thaw(stored, &mut thawed);
                        count
                    }
                    leaf => {
                        let (cold, count) = leaf.cold(keeper)?;
                        cold.bytes_at_once(&mut thawed).ok()?;
                        count
                    }
                };
                T::Leaf::put_elements(&thawed, count, &mut elements)?;
                into.add_each(&elements);
            }
        }
    }
    Some(())
}

/// Whether these bytes are an order and leaves, one at least. `is_stored` says of a stored form whether it is one.
pub fn check<L: SavedLeaf>(mut rest: &[u8], is_stored: impl Fn(&[u8]) -> bool) -> bool {
    let is_leaf = |rest: &mut &[u8]| {
        varint::take(rest).is_some()
            && match Leaf::take(rest) {
                Some(Leaf::Cold { stored, .. }) => is_stored(stored),
                Some(Leaf::Plain(elements)) => L::are_elements(elements),
                Some(Leaf::Row { .. }) | None => false,
            }
    };
    if Order::take(&mut rest).is_none() || rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        if !is_leaf(&mut rest) {
            return false;
        }
    }
    true
}

/// Visits leaves that are stored in another form or as rows, in what was checked.
pub fn stored_forms<'a>(mut rest: &'a [u8], visit: &mut dyn FnMut(Leaf<'a>)) {
    let _ = Order::take(&mut rest);
    while varint::take(&mut rest).is_some()
        && let Some(leaf) = Leaf::take(&mut rest)
    {
        visit(leaf);
    }
}
