//! Leaves by the hash of the member, to find a score.
//!
//! ```text
//! | tag 0 | tag 1 | ... | size 0 | size 1 | ... | entry 0 | entry 1 | ...      entry: score, length, member
//! ```
//!
//! Leaves are in the order of the hash; within one, entries are in no order. A tag is the low byte of the hash, so that
//! a look-up nearly always compares one member. Sizes are those of the entries, so that the place of an entry is a sum
//! of bytes. A size of 255 stands for any that is not smaller, which is then found by walking.

use super::super::entry::{Entries, Head, are_entries};
use crate::position::Position;
use crate::saved::hashed::SavedLeaf;
use crate::tree::{Chunk, ChunkLeaf, Cut, HashedLeaf, Leaf};
use crate::zset::Entry;
use base::hash::KeyHasher;

/// A size that does not fit into its byte.
const LONG: u8 = u8::MAX;

/// Entries whose hashes are next to each other.
#[derive(Clone, Debug, Default)]
pub struct Members(Chunk);

impl Members {
    /// The entries, in no order.
    pub(in crate::zset) fn entries(&self) -> Entries<'_> {
        Entries::new(self.0.bytes(), self.first())
    }

    /// The score of a member.
    #[inline]
    pub(in crate::zset) fn score(&self, hash: u64, member: &[u8]) -> Option<f64> {
        self.find(hash, member).map(|found| found.score)
    }

    /// The member of this entry has its score from now on; gives the one before.
    pub(in crate::zset) fn set(&mut self, hash: u64, entry: &Entry<'_>) -> Option<f64> {
        let found = self.find(hash, entry.member);
        match &found {
            Some(found) if found.score == entry.score => {}
            Some(found) => self.replace(found, entry),
            None => self.push(hash as u8, entry),
        }
        found.map(|found| found.score)
    }

    /// Removes a member and gives its score.
    pub(in crate::zset) fn remove(&mut self, hash: u64, member: &[u8]) -> Option<f64> {
        let found = self.find(hash, member)?;
        let count = self.0.count();
        // From the back, so that the places in front stay right.
        self.0.splice(found.at..found.at + found.length, 0);
        self.0.splice(count + found.index..count + found.index + 1, 0);
        self.0.splice(found.index..found.index + 1, 0);
        self.0.set_count(count - 1);
        Some(found.score)
    }

    /// Where the entries begin.
    #[inline]
    fn first(&self) -> usize {
        2 * self.0.count()
    }

    #[inline]
    fn find(&self, hash: u64, member: &[u8]) -> Option<Found> {
        let (tags, _) = self.0.bytes().split_at_checked(self.0.count())?;
        let tag = hash as u8;
        let mut from = 0;
        while let Some(index) = tags.get(from..)?.iter().position(|other| *other == tag) {
            let index = from + index;
            let mut entries = Entries::new(self.0.bytes(), self.start(index));
            let at = entries.at();
            let entry = entries.next()?;
            if entry.member == member {
                return Some(Found { index, at, length: entries.at() - at, score: entry.score });
            }
            from = index + 1;
        }
        None
    }

    /// Where entry `index` begins.
    #[inline]
    fn start(&self, index: usize) -> usize {
        let count = self.0.count();
        let sizes = &self.0.bytes()[count..count + index];
        if sizes.contains(&LONG) {
            return self.entries().skip(index).at();
        }
        self.first() + sizes.iter().map(|size| usize::from(*size)).sum::<usize>()
    }

    /// Adds an entry that is not here.
    pub(super) fn push(&mut self, tag: u8, entry: &Entry<'_>) {
        let head = Head::new(entry);
        let (count, length, len) = (self.0.count(), head.entry_len(entry), self.0.len());
        self.0.splice(len..len, length + 2);
        let bytes = self.0.bytes_mut();
        bytes.copy_within(2 * count..len, 2 * count + 2);
        bytes.copy_within(count..2 * count, count + 1);
        bytes[count] = tag;
        bytes[2 * count + 1] = size(length);
        head.write(entry, &mut bytes[len + 2..]);
        self.0.set_count(count + 1);
    }

    fn replace(&mut self, found: &Found, entry: &Entry<'_>) {
        let head = Head::new(entry);
        let length = head.entry_len(entry);
        head.write(entry, self.0.splice(found.at..found.at + found.length, length));
        if length != found.length {
            let place = self.0.count() + found.index;
            self.0.bytes_mut()[place] = size(length);
        }
    }

    /// A leaf of the entries that `chosen` has for their index.
    fn of(&self, chosen: impl Fn(usize) -> bool) -> Self {
        let (tags, _) = self.0.bytes().split_at(self.0.count());
        let mut leaf = Self::default();
        for (index, entry) in self.entries().enumerate().filter(|(index, _)| chosen(*index)) {
            leaf.push(tags[index], &entry);
        }
        leaf
    }
}

impl ChunkLeaf for Members {
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

impl SavedLeaf for Members {
    fn put_elements(bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Option<()> {
        out.extend_from_slice(bytes.get(2 * count..)?);
        Some(())
    }

    fn are_elements(bytes: &[u8]) -> bool {
        are_entries(bytes)
    }
}

impl HashedLeaf for Members {
    #[inline]
    fn place(position: Position) -> u64 {
        position.bits()
    }

    #[inline]
    fn index(&self) -> &[u8] {
        &self.0.bytes()[..self.first()]
    }

    /// Of a long entry the beginning.
    #[inline]
    fn candidate(&self, position: Position) -> &[u8] {
        let (tags, rest) = self.0.bytes().split_at(self.0.count());
        tags.iter().position(|tag| *tag == position.tag()).map_or(&[], |index| {
            let start = self.start(index);
            &self.0.bytes()[start..start + usize::from(rest[index])]
        })
    }

    #[inline]
    fn owners(&self) -> usize {
        self.0.owners()
    }
}

fn size(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(LONG)
}

/// Where an entry is.
struct Found {
    index: usize,
    at: usize,
    length: usize,
    score: f64,
}

impl Leaf for Members {
    /// A hash: entries on the left have a smaller one, those on the right have not.
    type Bound = u64;
    type Context = KeyHasher;
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

    /// In the middle of the hashes, whatever the cut.
    fn split(&mut self, hasher: &KeyHasher, _: Cut) -> Option<(u64, Self)> {
        let hashes: Vec<u64> = self.entries().map(|entry| hasher.hash(entry.member)).collect();
        let mut sorted = hashes.clone();
        sorted.sort_unstable();
        let least = *sorted.first()?;
        // The first in the upper half that is not the least of all, since equal hashes stay together.
        let bound = *sorted.iter().skip(sorted.len() / 2).find(|hash| **hash > least)?;
        let right = self.of(|index| hashes[index] >= bound);
        *self = self.of(|index| hashes[index] < bound);
        Some((bound, right))
    }

    fn append(&mut self, right: &Self) {
        let (count, len, right_count) = (self.0.count(), self.0.len(), right.0.count());
        let (tags, rest) = right.0.bytes().split_at(right_count);
        let (sizes, entries) = rest.split_at(right_count);
        // From the back, so that the places in front stay right.
        for (at, bytes) in [(len, entries), (2 * count, sizes), (count, tags)] {
            self.0.splice(at..at, bytes.len()).copy_from_slice(bytes);
        }
        self.0.set_count(count + right_count);
    }
}
