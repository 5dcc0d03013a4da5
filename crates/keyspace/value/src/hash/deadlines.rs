//! When the fields of a big hash are due: a tree in the order of time, so that those that are due are found and counted
//! without looking at the others.

use crate::position::Position;
use crate::tree::{self, Chunk, Cut, Leaves, Tree};
use base::UnixMs;

/// When a field is due, and where in the hash it is.
pub type Deadline = (UnixMs, Position);

const DEADLINE_BYTES: usize = 16;

/// The deadlines of a hash. A clone takes constant time.
#[derive(Clone, Debug, Default)]
pub struct Deadlines(Tree<Leaf>);

impl Deadlines {
    /// How many are due by `now`.
    pub fn count_due(&self, now: UnixMs) -> u64 {
        let end = now.saturating_add(1);
        let place = self.0.locate(|bound| bound.0 < end);
        place.map_or(0, |leaves| leaves.before() + leaves.leaf().partition(|deadline| deadline.0 < end) as u64)
    }

    /// The earliest.
    pub fn first(&self) -> Option<UnixMs> {
        self.0.at(0).map(|(leaf, place)| leaf.at(place).0)
    }

    /// All of them, the earliest first.
    pub fn iter(&self) -> impl Iterator<Item = Deadline> + '_ {
        let leaves = std::iter::successors(self.0.leaves_at(0), Leaves::next);
        leaves.flat_map(|leaves| leaves.leaf().iter())
    }

    /// Adds one.
    pub fn add(&mut self, at: UnixMs, position: Position) {
        let deadline = order(at, position);
        self.0.edit(&(), |bound| *bound <= deadline, |leaf| leaf.add(at, position));
    }

    /// Removes one, which is there.
    pub fn remove(&mut self, at: UnixMs, position: Position) {
        let deadline = order(at, position);
        self.0.edit(&(), |bound| *bound <= deadline, |leaf| leaf.remove(at, position));
    }

    /// Bytes of its allocations.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

fn order(at: UnixMs, position: Position) -> (UnixMs, u64) {
    (at, position.bits())
}

/// Deadlines in order, 16 bytes each: the time and the position, most significant bytes first.
#[derive(Clone, Debug, Default)]
struct Leaf(Chunk);

impl Leaf {
    fn at(&self, place: usize) -> Deadline {
        let bytes = self.0.bytes()[place * DEADLINE_BYTES..].first_chunk().expect("a leaf holds whole deadlines");
        decode(bytes)
    }

    fn iter(&self) -> impl Iterator<Item = Deadline> + '_ {
        self.0.bytes().as_chunks().0.iter().map(decode)
    }

    /// How many come before the first that does not satisfy `is_before`.
    fn partition(&self, is_before: impl Fn((UnixMs, u64)) -> bool) -> usize {
        let deadlines = self.0.bytes().as_chunks().0;
        deadlines.partition_point(|bytes| {
            let (at, position) = decode(bytes);
            is_before(order(at, position))
        })
    }

    fn add(&mut self, at: UnixMs, position: Position) {
        let new = order(at, position);
        let start = self.partition(|deadline| deadline < new) * DEADLINE_BYTES;
        let (time, place) = self.0.splice(start..start, DEADLINE_BYTES).split_at_mut(DEADLINE_BYTES / 2);
        time.copy_from_slice(&at.to_be_bytes());
        place.copy_from_slice(&position.bits().to_be_bytes());
        self.0.set_count(self.0.count() + 1);
    }

    fn remove(&mut self, at: UnixMs, position: Position) {
        let place = self.partition(|deadline| deadline < order(at, position));
        if place < self.0.count() && self.at(place) == (at, position) {
            let start = place * DEADLINE_BYTES;
            self.0.splice(start..start + DEADLINE_BYTES, 0);
            self.0.set_count(self.0.count() - 1);
        }
    }
}

impl tree::Leaf for Leaf {
    type Bound = (UnixMs, u64);
    type Context = ();
    const MAX_BYTES: usize = 1024;

    fn count(&self) -> usize {
        self.0.count()
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn split(&mut self, _: &(), cut: Cut) -> Option<(Self::Bound, Self)> {
        let count = self.0.count();
        let wanted = match cut {
            Cut::Middle => count / 2,
            Cut::First => 1,
            Cut::Last => count - 1,
        };
        // Equal ones stay together: a bound parts what is before it from what is not.
        let bound = |place: usize| {
            let (at, position) = self.at(place);
            order(at, position)
        };
        let at = (wanted.max(1)..count).chain(1..wanted).find(|place| bound(*place - 1) < bound(*place))?;
        let parts = bound(at);
        let right = self.0.split_off(at * DEADLINE_BYTES, at);
        Some((parts, Self(right)))
    }

    fn append(&mut self, right: &Self) {
        self.0.append(&right.0);
    }
}

fn decode(bytes: &[u8; DEADLINE_BYTES]) -> Deadline {
    let number = u128::from_be_bytes(*bytes);
    ((number >> 64) as UnixMs, Position::from_bits(number as u64))
}
