//! The tree against a sorted vector, with leaves and values chosen so that everything splits and merges soon.

use super::*;
use proptest::prelude::*;

/// Up to eight numbers in order, equal ones allowed, eight bytes each.
#[derive(Clone, Default)]
struct Numbers(Chunk);

impl Numbers {
    fn values(&self) -> Vec<u64> {
        self.0.bytes().chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes"))).collect()
    }

    fn insert(&mut self, value: u64) {
        let index = self.values().partition_point(|old| *old < value);
        self.0.splice(index * 8..index * 8, 8).copy_from_slice(&value.to_le_bytes());
        self.0.set_count(self.0.count() + 1);
    }

    fn remove(&mut self, index: usize) -> u64 {
        let value = self.values()[index];
        self.0.splice(index * 8..index * 8 + 8, 0);
        self.0.set_count(self.0.count() - 1);
        value
    }
}

impl Leaf for Numbers {
    type Bound = u64;
    type Context = ();
    const MAX_BYTES: usize = 64;

    fn count(&self) -> usize {
        self.0.count()
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn split(&mut self, (): &(), cut: Cut) -> Option<(u64, Self)> {
        let index = match cut {
            Cut::Middle => self.count() / 2,
            Cut::First => 1,
            Cut::Last => self.count() - 1,
        };
        (self.count() > 1).then(|| self.split_at(index))
    }

    fn append(&mut self, right: &Self) {
        self.0.append(&right.0);
    }
}

impl OrderedLeaf for Numbers {
    fn split_at(&mut self, index: usize) -> (u64, Self) {
        let right = Self(self.0.split_off(index * 8, index));
        (right.values()[0], right)
    }
}

fn contents(tree: &Tree<Numbers>) -> Vec<u64> {
    let mut values = Vec::new();
    let mut place = tree.leaves_at(0);
    while let Some(leaves) = place {
        assert_eq!(leaves.before(), values.len() as u64);
        values.extend(leaves.leaf().values());
        place = leaves.next();
    }
    values
}

fn contents_backward(tree: &Tree<Numbers>) -> Vec<u64> {
    let mut values = Vec::new();
    let mut place = tree.len().checked_sub(1).and_then(|last| tree.leaves_at(last));
    while let Some(leaves) = place {
        values.extend(leaves.leaf().values().into_iter().rev());
        assert_eq!(leaves.before() + values.len() as u64, tree.len());
        place = leaves.previous();
    }
    values.reverse();
    values
}

impl<L: Leaf> Tree<L> {
    /// Checks counts and sums (B2, B5).
    pub(crate) fn check_sums(&self) {
        if let Some(root) = &self.root {
            assert_eq!(root.check(&|_, _, _| true), self.height);
            assert_eq!(root.count(), self.len);
        }
    }
}

fn check(tree: &Tree<Numbers>, model: &[u64]) {
    assert_eq!(tree.len(), model.len() as u64);
    assert_eq!(contents(tree), model);
    assert_eq!(contents_backward(tree), model);
    if let Some(root) = &tree.root {
        let parted = |bound: &u64, left: &Numbers, right: &Numbers| {
            left.values().iter().all(|value| value <= bound) && right.values().iter().all(|value| bound <= value)
        };
        assert_eq!(root.check(&parted), tree.height);
    } else {
        assert_eq!(tree.memory_bytes(), 0);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u64),
    InsertMany(u64, u16),
    Append(u16),
    RemoveAt(usize),
    RemoveRange(usize, usize),
    RemoveManyAt(usize, u16),
    Push(u8),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (0..10_000u64).prop_map(Op::Insert),
        2 => (0..10_000u64, 1..600u16).prop_map(|(seed, count)| Op::InsertMany(seed, count)),
        1 => (1..600u16).prop_map(Op::Append),
        4 => any::<usize>().prop_map(Op::RemoveAt),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(from, count)| Op::RemoveRange(from, count)),
        1 => (any::<usize>(), 1..300u16).prop_map(|(at, count)| Op::RemoveManyAt(at, count)),
        1 => (1..8u8).prop_map(Op::Push),
    ];
    proptest::collection::vec(op, 1..24)
}

fn insert(tree: &mut Tree<Numbers>, model: &mut Vec<u64>, value: u64) {
    let rank = model.partition_point(|old| *old < value);
    let before = tree.locate(|bound| *bound < value).map_or(0, |leaves| leaves.before());
    let index = tree.edit(
        &(),
        |bound| *bound < value,
        |leaf| {
            let index = leaf.values().partition_point(|old| *old < value) as u64;
            leaf.insert(value);
            index
        },
    );
    assert_eq!(before + index, rank as u64);
    model.insert(rank, value);
}

fn remove_at(tree: &mut Tree<Numbers>, model: &mut Vec<u64>, at: usize) {
    if model.is_empty() {
        return;
    }
    let at = at % model.len();
    assert_eq!(tree.edit_at(&(), at as u64, |leaf, offset| leaf.remove(offset)), model.remove(at));
}

fn run(tree: &mut Tree<Numbers>, model: &mut Vec<u64>, op: &Op) {
    let last = model.last().copied().unwrap_or(0);
    match *op {
        Op::Insert(value) => insert(tree, model, value),
        Op::InsertMany(seed, count) => {
            (0..u64::from(count)).for_each(|i| insert(tree, model, (seed + i * 7919) % 10_007));
        }
        Op::Append(count) => (1..=u64::from(count)).for_each(|i| insert(tree, model, last + i)),
        Op::RemoveAt(at) => remove_at(tree, model, at),
        Op::RemoveManyAt(at, count) => {
            (0..count).for_each(|i| remove_at(tree, model, at.wrapping_add(usize::from(i) * 3)))
        }
        Op::RemoveRange(from, count) => {
            let from = from % (model.len() + 1);
            let end = from + count % (model.len() - from + 1);
            let removed = tree.remove_range(&(), from as u64..end as u64);
            check(&removed, &model.drain(from..end).collect::<Vec<_>>());
        }
        Op::Push(count) => {
            let mut leaf = Numbers::default();
            (0..u64::from(count)).for_each(|i| leaf.insert(last + i));
            model.extend(leaf.values());
            tree.push(last, leaf);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any sequence of edits gives the model's result. A clone taken in between keeps its contents, as a reader on
    /// another thread sees while the edits continue.
    #[test]
    fn agrees_with_a_vector(ops in ops()) {
        let (mut tree, mut model) = (Tree::new(), Vec::new());
        std::thread::scope(|scope| {
            for op in &ops {
                let (clone, expected) = (tree.clone(), model.clone());
                scope.spawn(move || check(&clone, &expected));
                run(&mut tree, &mut model, op);
                check(&tree, &model);
            }
        });
        for value in model.iter().copied().step_by(17) {
            let place = tree.locate(|bound| *bound < value).expect("not empty");
            let mut place = Some(place);
            while let Some(leaves) = place.filter(|leaves| leaves.leaf().values().last() < Some(&value)) {
                place = leaves.next();
            }
            let leaves = place.expect("it is there");
            let rank = leaves.before() + leaves.leaf().values().partition_point(|old| *old < value) as u64;
            prop_assert_eq!(rank, model.partition_point(|old| *old < value) as u64);
            let (leaf, offset) = tree.at(rank).expect("it is there");
            prop_assert_eq!(leaf.values()[offset], value);
            if let Some(bound) = tree.bound_at(rank) {
                prop_assert!(*bound <= value);
            }
        }
    }
}

/// Appending one by one leaves full leaves, at either end (B3).
#[test]
fn growing_at_an_end_fills_leaves() {
    let (mut right, mut left) = (Tree::<Numbers>::new(), Tree::<Numbers>::new());
    for value in 0..100_000 {
        right.edit_at(&(), u64::MAX, |leaf, _| leaf.insert(value));
        left.edit_at(&(), 0, |leaf, _| leaf.insert(100_000 - value));
    }
    for tree in [&right, &left] {
        let mut leaves = 0;
        let mut place = tree.leaves_at(0);
        while let Some(at) = place {
            leaves += 1;
            place = at.next();
        }
        assert!(leaves <= 100_000 / 8 + 8, "{leaves}");
    }
    assert!(right.height <= 3, "{}", right.height);
}

/// An edit of a shared tree copies a path, not the tree (B4), which the memory of the two together would show.
#[test]
fn a_shared_tree_is_copied_by_paths() {
    let mut tree = Tree::<Numbers>::new();
    for value in 0..100_000u64 {
        let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        tree.edit(&(), |bound| *bound <= value, |leaf| leaf.insert(value));
    }
    let clone = tree.clone();
    tree.edit_at(&(), 50_000, |leaf, offset| leaf.remove(offset));
    let shared = |a: &Tree<Numbers>, b: &Tree<Numbers>| {
        let (mut a, mut b) = (a.leaves_at(0), b.leaves_at(0));
        let mut same = 0;
        while let (Some(x), Some(y)) = (a, b) {
            same += usize::from(std::ptr::eq(x.leaf().0.bytes(), y.leaf().0.bytes()));
            (a, b) = (x.next(), y.next());
        }
        same
    };
    let mut leaves = 0;
    let mut place = clone.leaves_at(0);
    while let Some(at) = place {
        leaves += 1;
        place = at.next();
    }
    assert!(shared(&tree, &clone) >= leaves - 2, "{} of {leaves}", shared(&tree, &clone));
    assert_eq!((tree.len(), clone.len()), (99_999, 100_000));
}
