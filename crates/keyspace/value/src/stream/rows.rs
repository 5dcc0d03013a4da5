//! Rows of a fixed size in the order of a key: nodes, pending entries, consumers, groups.

use crate::tree::{Cut, Leaf, Leaves, Tree, allocated};
use std::borrow::Borrow;
use std::sync::Arc;

/// A row of [`Rows`].
pub(super) trait Row: Clone + Send + Sync + 'static {
    /// What orders rows. No two are equal.
    type Key: Ord + ?Sized;
    /// A key of its own, which parts leaves of the tree.
    type Bound: Borrow<Self::Key> + Clone + Default + Send + Sync;
    /// Chunks that a row has of its own: [`Leaf::ELEMENT_CHUNKS`].
    const CHUNKS: usize = 0;

    /// The key.
    fn key(&self) -> &Self::Key;

    /// The key, to keep.
    fn bound(&self) -> Self::Bound;
}

/// Rows by key. A clone takes constant time and shares them.
#[derive(Clone, Debug)]
pub(super) struct Rows<R: Row>(Tree<RowLeaf<R>>);

/// Neighbouring rows.
#[derive(Clone, Debug)]
pub(super) struct RowLeaf<R>(Arc<Vec<R>>);

impl<R: Row> Default for Rows<R> {
    fn default() -> Self {
        Self(Tree::new())
    }
}

impl<R: Row> Rows<R> {
    /// How many.
    pub(super) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Bytes of all rows, not of what they own.
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// The row with this key.
    pub(super) fn get(&self, key: &R::Key) -> Option<&R> {
        let leaf = self.0.find(|bound| bound.borrow() <= key)?;
        leaf.0.get(leaf.position(key).ok()?)
    }

    /// Edits the row with this key, if there is one; its key stays.
    pub(super) fn edit<T>(&mut self, key: &R::Key, edit: impl FnOnce(&mut R) -> T) -> Option<T> {
        self.0.edit(
            &(),
            |bound| bound.borrow() <= key,
            |leaf| {
                let index = leaf.position(key).ok()?;
                leaf.rows().get_mut(index).map(edit)
            },
        )
    }

    /// Adds a row. Gives the one with its key that it replaces.
    pub(super) fn insert(&mut self, row: R) -> Option<R> {
        let bound = row.bound();
        self.0.edit(
            &(),
            |other| other.borrow() <= bound.borrow(),
            |leaf| match leaf.position(row.key()) {
                Ok(index) => Some(std::mem::replace(&mut leaf.rows()[index], row)),
                Err(index) => {
                    leaf.rows().insert(index, row);
                    None
                }
            },
        )
    }

    /// Takes out the row with this key.
    pub(super) fn remove(&mut self, key: &R::Key) -> Option<R> {
        self.0.edit(
            &(),
            |bound| bound.borrow() <= key,
            |leaf| {
                let index = leaf.position(key).ok()?;
                Some(leaf.rows().remove(index))
            },
        )
    }

    /// The last row.
    pub(super) fn last(&self) -> Option<&R> {
        self.skipping(self.len().checked_sub(1)?).next()
    }

    /// All rows.
    pub(super) fn iter(&self) -> impl Iterator<Item = &R> {
        self.skipping(0)
    }

    /// The rows but the first `count`.
    pub(super) fn skipping(&self, count: u64) -> impl Iterator<Item = &R> {
        let leaves = self.0.leaves_at(count);
        let skipped = leaves.map_or(0, |leaves| count - leaves.before());
        rows(leaves, Leaves::next).flat_map(|leaf| leaf.0.iter()).skip(skipped as usize)
    }

    /// The rows from this key on.
    pub(super) fn from(&self, key: &R::Key) -> impl Iterator<Item = &R> + use<'_, R> {
        let leaves = self.0.locate(|bound| bound.borrow() <= key);
        let skipped = leaves.map_or(0, |leaves| leaves.leaf().position(key).unwrap_or_else(|index| index));
        rows(leaves, Leaves::next).flat_map(|leaf| leaf.0.iter()).skip(skipped)
    }

    /// The rows from this key on down.
    pub(super) fn up_to(&self, key: &R::Key) -> impl Iterator<Item = &R> + use<'_, R> {
        let leaves = self.0.locate(|bound| bound.borrow() <= key);
        let skipped = leaves.map_or(0, |leaves| {
            let end = leaves.leaf().position(key).map_or_else(|index| index, |index| index + 1);
            leaves.leaf().count() - end
        });
        rows(leaves, Leaves::previous).flat_map(|leaf| leaf.0.iter().rev()).skip(skipped)
    }
}

/// Leaf by leaf.
fn rows<'t, R: Row>(
    first: Option<Leaves<'t, RowLeaf<R>>>,
    next: impl Fn(&Leaves<'t, RowLeaf<R>>) -> Option<Leaves<'t, RowLeaf<R>>>,
) -> impl Iterator<Item = &'t RowLeaf<R>> {
    std::iter::successors(first, move |leaves| next(leaves)).map(|leaves| leaves.leaf())
}

impl<R: Row> RowLeaf<R> {
    fn position(&self, key: &R::Key) -> Result<usize, usize> {
        self.0.binary_search_by(|row| row.key().cmp(key))
    }

    fn rows(&mut self) -> &mut Vec<R> {
        Arc::make_mut(&mut self.0)
    }
}

impl<R> Default for RowLeaf<R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<R: Row> Leaf for RowLeaf<R> {
    type Bound = R::Bound;
    type Context = ();
    const MAX_BYTES: usize = 2048;
    const ELEMENT_CHUNKS: usize = R::CHUNKS;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        self.0.len() * size_of::<R>()
    }

    fn memory_bytes(&self) -> usize {
        // An Arc has two counters before its value.
        allocated(size_of::<Vec<R>>() + 16) + allocated(self.0.capacity() * size_of::<R>())
    }

    fn split(&mut self, _cx: &(), cut: Cut) -> Option<(R::Bound, Self)> {
        let at = match cut {
            Cut::Middle => self.0.len() / 2,
            Cut::First => 1,
            Cut::Last => self.0.len() - 1,
        };
        let right = self.rows().split_off(at);
        let bound = right.first()?.bound();
        Some((bound, Self(Arc::new(right))))
    }

    fn append(&mut self, right: &Self) {
        self.rows().extend_from_slice(&right.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// Reports the thread on which it is freed.
    #[derive(Clone)]
    struct Told(u64, #[expect(dead_code, reason = "dropped")] Arc<Teller>);

    struct Teller(Sender<Option<String>>);

    impl Drop for Teller {
        fn drop(&mut self) {
            drop(self.0.send(std::thread::current().name().map(str::to_owned)));
        }
    }

    impl Row for Told {
        type Key = u64;
        type Bound = u64;
        const CHUNKS: usize = 1;

        fn key(&self) -> &u64 {
            &self.0
        }

        fn bound(&self) -> u64 {
            self.0
        }
    }

    fn rows(count: u64) -> (Rows<Told>, Receiver<Option<String>>) {
        let (sender, receiver) = channel();
        let mut rows = Rows::default();
        for number in 0..count {
            assert!(rows.insert(Told(number, Arc::new(Teller(sender.clone())))).is_none());
        }
        (rows, receiver)
    }

    /// The reaper frees few bytes with many chunks too: the worker freed a stream of a million entries itself, two
    /// chunks for each hundred entries, because its rows are only 400 KB.
    #[test]
    fn many_chunks_go_to_the_reaper() {
        for (count, thread) in
            [(100, std::thread::current().name().map(str::to_owned)), (2000, Some("reaper".to_owned()))]
        {
            let (rows, freed) = rows(count);
            let other = rows.clone();
            drop(rows);
            drop(other);
            for _ in 0..count {
                assert_eq!(freed.recv_timeout(Duration::from_secs(60)).expect("it is freed"), thread);
            }
        }
    }
}
