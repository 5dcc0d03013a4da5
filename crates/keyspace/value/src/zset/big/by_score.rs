//! Leaves by score: runs of entries in order.

use super::super::entry::{self, Entries, Head, Place};
use super::super::score;
use crate::tree::{Chunk, ChunkLeaf, ColdLeaf as _, Cut, Leaf, OrderedLeaf};
use crate::wire;
use crate::zset::Entry;

/// Entries in order.
#[derive(Clone, Debug, Default)]
pub struct Run(Chunk);

/// The bound between two runs: the score of the first entry on the right and, if the last on the left has the same
/// score, as much of the member as separates the two.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    score: f64,
    member: Box<[u8]>,
}

impl Bound {
    fn between(left: &Entry<'_>, right: &Entry<'_>) -> Self {
        let common = || left.member.iter().zip(right.member).take_while(|(left, right)| left == right).count();
        let length = if left.score < right.score { 0 } else { common() + 1 };
        Self { score: right.score, member: right.member[..length].into() }
    }

    /// As an entry, which need not be in the set.
    #[inline]
    pub(in crate::zset) fn entry(&self) -> Entry<'_> {
        Entry { score: self.score, member: &self.member }
    }

    /// Whether the place of an entry is here or further right.
    #[inline]
    pub(in crate::zset) fn reaches(&self, entry: &Entry<'_>) -> bool {
        self.entry().order(entry).is_le()
    }

    /// Appends it, as it is saved.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; score::MAX_LEN];
        let length = score::write(self.score, &mut bytes);
        out.extend_from_slice(&bytes[..length]);
        wire::put_string(out, &self.member);
    }

    /// Takes one from the front.
    pub(super) fn take(rest: &mut &[u8]) -> Option<Self> {
        let score = score::take(rest)?;
        Some(Self { score, member: wire::take_string(rest)?.into() })
    }
}

impl Run {
    /// A run of these entries, which are in order.
    pub(super) fn of(entries: &[u8]) -> Self {
        Self(Chunk::new(entries, Entries::new(entries, 0).count()))
    }

    /// The entries.
    #[inline]
    pub(in crate::zset) fn entries(&self) -> Entries<'_> {
        Entries::new(self.0.bytes(), 0)
    }

    /// The entries, without counting this as a use.
    pub(super) fn entries_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> Entries<'a> {
        Entries::new(self.bytes_once(scratch), 0)
    }

    /// The packed entries.
    #[inline]
    pub(in crate::zset) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Where an entry is or belongs.
    #[inline]
    pub(in crate::zset) fn find(&self, entry: &Entry<'_>) -> Place {
        entry::find(self.0.bytes(), entry)
    }

    /// See [`entry::count_before`].
    pub(in crate::zset) fn count_before(&self, is_before: impl Fn(&Entry<'_>) -> bool) -> usize {
        entry::count_before(self.0.bytes(), is_before)
    }

    /// Inserts an entry that is not there.
    pub(in crate::zset) fn insert(&mut self, entry: &Entry<'_>) {
        let place = self.find(entry);
        let head = Head::new(entry);
        head.write(entry, self.0.splice(place.at..place.at, head.entry_len(entry)));
        self.0.set_count(self.0.count() + 1);
    }

    /// Removes an entry that is there.
    pub(in crate::zset) fn remove(&mut self, entry: &Entry<'_>) {
        let place = self.find(entry);
        debug_assert!(place.length > 0, "the trees hold the same entries");
        self.0.splice(place.at..place.at + place.length, 0);
        self.0.set_count(self.0.count() - 1);
    }

    /// Parts before entry `index`, which begins at byte `at`, and follows `last`.
    fn part(&mut self, index: usize, at: usize) -> Option<(Bound, Self)> {
        let last = self.entries().nth(index.checked_sub(1)?)?;
        let bound = Bound::between(&last, &Entries::new(self.0.bytes(), at).next()?);
        Some((bound, Self(self.0.split_off(at, index))))
    }
}

impl Leaf for Run {
    type Bound = Bound;
    type Context = ();
    const MAX_BYTES: usize = 512;

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

    fn split(&mut self, (): &(), cut: Cut) -> Option<(Bound, Self)> {
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
        if index == self.count() { None } else { self.part(index, at) }
    }

    fn append(&mut self, right: &Self) {
        self.0.append(&right.0);
    }

    fn bound_bytes(bound: &Bound) -> usize {
        crate::tree::allocated(bound.member.len())
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
    fn split_at(&mut self, index: usize) -> (Bound, Self) {
        let at = self.entries().skip(index).at();
        self.part(index, at).unwrap_or_default()
    }
}
