//! The big form: entries by score in one tree, by the hash of the member in another.

mod by_member;
mod by_score;
mod removal;
mod saved;

use super::entry::Entries;
use super::{Change, Entry, packed};
use crate::tree::{Leaves, Purpose, TOGETHER, Tree, load_lines, positions};
use crate::{Progress, set};
use base::hash::KeyHasher;
pub use by_member::Members;
use by_score::Bound;
pub use by_score::Run;
pub use removal::Removal;

/// The two trees, which hold the same entries.
#[derive(Clone, Debug)]
pub struct Big {
    by_score: Tree<Run>,
    by_member: Tree<Members>,
    hasher: KeyHasher,
}

/// The member that a request names: it follows the score, if the request gives one.
fn member_of<'a>([first, second]: &[&'a [u8]; 2]) -> &'a [u8] {
    if second.is_empty() { first } else { second }
}

/// Entries whose places in the order are to be loaded.
#[derive(Default)]
struct Goals<'a> {
    entries: [Entry<'a>; TOGETHER],
    len: usize,
}

impl<'a> Goals<'a> {
    fn push(&mut self, entry: Entry<'a>) {
        self.entries[self.len] = entry;
        self.len += 1;
    }

    fn entries(&self) -> &[Entry<'a>] {
        &self.entries[..self.len]
    }
}

impl Big {
    /// The big form of a packed one.
    pub(super) fn unpack(bytes: &[u8], hasher: &KeyHasher) -> Self {
        let mut big = Self::new(hasher);
        for entry in Entries::new(packed::entries(bytes), 0) {
            big.add(&entry);
        }
        big
    }

    /// A set without entries.
    pub(crate) fn new(hasher: &KeyHasher) -> Self {
        Self { by_score: Tree::new(), by_member: Tree::new(), hasher: hasher.clone() }
    }

    /// A set without entries that has their members in the same order.
    pub fn empty_alike(&self) -> Self {
        Self::new(&self.hasher)
    }

    /// A sorted set without entries that has members in the order of this set.
    pub fn empty_like_set(set: &set::Big) -> Self {
        Self::new(set.hasher())
    }

    /// See [`crate::Big::memory_bytes`].
    pub fn memory_bytes(&self) -> usize {
        self.by_score.memory_bytes() + self.by_member.memory_bytes()
    }

    /// See [`crate::Big::is_ordered_by`].
    pub(crate) fn is_ordered_by(&self, hasher: &KeyHasher) -> bool {
        self.hasher.is(hasher)
    }

    /// The tree by score.
    pub(crate) fn by_score(&self) -> &Tree<Run> {
        &self.by_score
    }

    /// The tree by score, for changes of its form.
    pub(crate) fn by_score_mut(&mut self) -> &mut Tree<Run> {
        &mut self.by_score
    }

    /// The tree by member.
    pub(crate) fn by_member(&self) -> &Tree<Members> {
        &self.by_member
    }

    /// The tree by member, for changes of its form.
    pub(crate) fn by_member_mut(&mut self) -> &mut Tree<Members> {
        &mut self.by_member
    }

    /// See [`Tree::warm_run`].
    pub(crate) fn warm_members(&mut self, run: &crate::tree::Run<Members>) -> bool {
        self.by_member.warm_run(&self.hasher, run)
    }

    /// Checks counts and sums of both trees.
    #[cfg(test)]
    pub(crate) fn check_sums(&self) {
        self.by_score.check_sums();
        self.by_member.check_sums();
    }

    /// See [`crate::Big::content_bytes`].
    pub fn content_bytes(&self) -> usize {
        self.by_score.content_bytes()
    }

    /// See [`crate::Big::write_changes`]. Continues by rank.
    pub fn write_changes(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        let end = out.len().saturating_add(budget.max(1));
        let (mut rank, mut scratch) = (from.0, Vec::new());
        let mut place = self.runs_at(rank);
        while let Some(runs) = place {
            for entry in runs.leaf().entries_once(&mut scratch).skip((rank - runs.before()) as usize) {
                Change::Add { score: entry.score, member: entry.member }.put(out);
                rank += 1;
                if out.len() >= end {
                    return (rank < self.len()).then_some(Progress(rank, 0));
                }
            }
            place = runs.next();
        }
        None
    }

    /// See [`crate::Big::load`].
    pub fn load(&self, requests: &[[&[u8]; 2]], is_edit: bool) {
        for requests in requests.chunks(TOGETHER) {
            self.load_some(requests, is_edit);
        }
    }

    fn load_some(&self, requests: &[[&[u8]; 2]], is_edit: bool) {
        let positions = positions(&self.hasher, requests.iter().map(member_of));
        let leaves = self.by_member.load_together(&positions[..requests.len()], is_edit);
        let (mut old, mut new) = (Goals::default(), Goals::default());
        for ((leaf, position), request) in leaves.iter().zip(positions).zip(requests) {
            let member = member_of(request);
            if let Some(score) = leaf.and_then(|leaf| leaf.score(position.bits(), member)) {
                old.push(Entry { score, member });
            }
            if is_edit && let Some(score) = std::str::from_utf8(request[0]).ok().and_then(|text| text.parse().ok()) {
                new.push(Entry { score, member });
            }
        }
        let purpose = if is_edit { Purpose::Edit } else { Purpose::Rank };
        for goals in [&old, &new] {
            let runs = self.by_score.load_ways(goals.entries(), |bound, entry| bound.reaches(entry), purpose);
            runs.iter().flatten().for_each(|run| load_lines(run.bytes()));
        }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> u64 {
        self.by_score.len()
    }

    /// The score of a member.
    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        let hash = self.hasher.hash(member);
        self.by_member.find(|bound| *bound <= hash)?.score(hash, member)
    }

    /// How many entries are before this one, which is there.
    pub(super) fn rank(&self, entry: &Entry<'_>) -> Option<u64> {
        let runs = self.by_score.locate(|bound| bound.reaches(entry))?;
        Some(runs.before() + runs.leaf().find(entry).index as u64)
    }

    /// How many entries satisfy `is_before`, which is true up to some point of their order.
    pub(super) fn count_before(&self, is_before: impl Fn(&Entry<'_>) -> bool) -> u64 {
        let Some(runs) = self.by_score.locate(|bound| is_before(&bound.entry())) else { return 0 };
        runs.before() + runs.leaf().count_before(is_before) as u64
    }

    /// The run with the entry of this rank.
    pub(super) fn runs_at(&self, rank: u64) -> Option<Leaves<'_, Run>> {
        self.by_score.leaves_at(rank)
    }

    /// Returns at least `count` entries, if available, whose member has at least this hash, and the hash to continue
    /// from.
    pub(super) fn scan<'a>(&'a self, from: u64, count: u64, mut each: impl FnMut(Entry<'a>)) -> Option<u64> {
        let mut left = count;
        let mut place = self.by_member.locate(|bound| *bound <= from);
        while let Some(leaves) = place {
            leaves.leaf().entries().filter(|entry| self.hasher.hash(entry.member) >= from).for_each(|entry| {
                left = left.saturating_sub(1);
                each(entry);
            });
            if left == 0 {
                return self.by_member.bound_at(leaves.after()).copied();
            }
            place = leaves.next();
        }
        None
    }

    /// Applies one change.
    pub(super) fn apply(&mut self, change: &Change<'_>) {
        match *change {
            Change::Add { score, member } => self.add(&Entry { score, member }),
            Change::Remove { member } => self.remove(member),
            Change::RemoveRange { start, count } => {
                let removed = self.by_score.remove_range(&(), start..start.saturating_add(count));
                self.forget(&removed);
            }
        }
    }

    /// Adds the entry, or gives its member this score.
    pub fn add(&mut self, entry: &Entry<'_>) {
        let hash = self.hasher.hash(entry.member);
        let old = self.by_member.edit(&self.hasher, |bound| *bound <= hash, |leaf| leaf.set(hash, entry));
        match old {
            Some(score) if score == entry.score => return,
            Some(score) => self.remove_from_run(&Entry { score, member: entry.member }),
            None => {}
        }
        self.by_score.edit(&(), |bound| bound.reaches(entry), |run| run.insert(entry));
    }

    fn remove(&mut self, member: &[u8]) {
        let hash = self.hasher.hash(member);
        let old = self.by_member.edit(&self.hasher, |bound| *bound <= hash, |leaf| leaf.remove(hash, member));
        if let Some(score) = old {
            self.remove_from_run(&Entry { score, member });
        }
    }

    fn remove_from_run(&mut self, entry: &Entry<'_>) {
        self.by_score.edit(&(), |bound| bound.reaches(entry), |run| run.remove(entry));
    }

    /// Removes these entries from the other tree.
    fn forget(&mut self, removed: &Tree<Run>) {
        if self.by_score.is_empty() {
            self.by_member = Tree::new();
            return;
        }
        let mut place = removed.leaves_at(0);
        while let Some(runs) = place {
            for entry in runs.leaf().entries() {
                let hash = self.hasher.hash(entry.member);
                self.by_member.edit(&self.hasher, |bound| *bound <= hash, |leaf| leaf.remove(hash, entry.member));
            }
            place = runs.next();
        }
    }
}
