//! A big sorted set in a checkpoint when leaves are compressed: both trees, the one by score first, since neither can
//! be built from the other without decompressing. Each part belongs to one of them.

use super::{Big, Bound, Members, Run};
use crate::Progress;
use crate::cold::Keeper;
use crate::position::Position;
use crate::saved::hashed::{self, HashedTree};
use crate::saved::{Leaf, OfRows, put_stored};
use crate::tree::{ColdLeaf as _, Leaf as _, Tree};
use crate::wire;
use crate::zset::entry::{Entries, are_entries};
use base::hash::KeyHasher;
use std::sync::Arc;

const BY_SCORE: u8 = 1;
const BY_MEMBER: u8 = 2;

impl Big {
    /// See [`crate::Big::write_leaves`]. Progress is how many entries are done, and 1 when those are the other tree's.
    pub(crate) fn write_leaves(&self, from: Progress, budget: (usize, OfRows), out: &mut Vec<u8>) -> Option<Progress> {
        if from.1 == 0 {
            out.push(BY_SCORE);
            return Some(self.write_runs(from.0, budget, out).map_or(Progress(0, 1), |done| Progress(done, 0)));
        }
        out.push(BY_MEMBER);
        hashed::write(&self.by_member, &self.hasher, from.0, budget, out).map(|done| Progress(done, 1))
    }

    fn write_runs(&self, from: u64, (budget, rows): (usize, OfRows), out: &mut Vec<u8>) -> Option<u64> {
        let end = out.len().saturating_add(budget);
        let (mut scratch, mut runs) = (Vec::new(), self.by_score.leaves_at(from));
        while let Some(here) = runs {
            let run = here.leaf();
            self.by_score.bound_at(here.before()).unwrap_or(&Bound::default()).put(out);
            if !put_stored(run.cold(), run.count(), rows, out) {
                Leaf::Plain(run.bytes_once(&mut scratch)).put(out);
            }
            runs = here.next();
            if out.len() >= end && runs.is_some() {
                return Some(here.after());
            }
        }
        None
    }

    /// See [`crate::Big::push_leaves`]. `None` when these are none.
    pub(crate) fn push_leaves(&mut self, mut rest: &[u8], keeper: &Arc<dyn Keeper>) -> Option<()> {
        if wire::take_byte(&mut rest)? == BY_MEMBER {
            return hashed::push(self, rest, keeper);
        }
        while !rest.is_empty() {
            let bound = Bound::take(&mut rest)?;
            let run = match Leaf::take(&mut rest)? {
                Leaf::Plain(entries) => Run::of(entries),
                stored => stored.stored(keeper)?,
            };
            self.by_score.push_saved(bound, run);
        }
        Some(())
    }

    /// See [`crate::Big::check_leaves`].
    pub(crate) fn check_leaves(mut rest: &[u8], is_stored: impl Fn(&[u8]) -> bool) -> bool {
        match wire::take_byte(&mut rest) {
            Some(BY_MEMBER) => return hashed::check::<Members>(rest, is_stored),
            Some(BY_SCORE) if !rest.is_empty() => {}
            _ => return false,
        }
        while !rest.is_empty() {
            let leaf = Bound::take(&mut rest).and_then(|_| Leaf::take(&mut rest));
            let is_good = match leaf {
                Some(Leaf::Plain(entries)) => are_entries(entries),
                Some(Leaf::Cold { stored, .. }) => is_stored(stored),
                Some(Leaf::Row { .. }) | None => false,
            };
            if !is_good {
                return false;
            }
        }
        true
    }

    /// See [`crate::Big::stored_in_leaves`].
    pub(crate) fn stored_in_leaves<'a>(mut rest: &'a [u8], visit: &mut dyn FnMut(Leaf<'a>)) {
        if wire::take_byte(&mut rest) == Some(BY_MEMBER) {
            return hashed::stored_forms(rest, visit);
        }
        while Bound::take(&mut rest).is_some()
            && let Some(leaf) = Leaf::take(&mut rest)
        {
            visit(leaf);
        }
    }
}

impl HashedTree for Big {
    type Leaf = Members;

    fn tree(&mut self) -> (&mut Tree<Members>, &mut KeyHasher) {
        (&mut self.by_member, &mut self.hasher)
    }

    fn push_leaf(&mut self, bound: u64, entries: &[u8]) {
        let mut leaf = Members::default();
        for entry in Entries::new(entries, 0) {
            leaf.push(Position::of(&self.hasher, entry.member).tag(), &entry);
        }
        self.by_member.push(bound, leaf);
    }

    /// To the tree by member; the other one has them.
    fn add_each(&mut self, entries: &[u8]) {
        for entry in Entries::new(entries, 0) {
            let hash = self.hasher.hash(entry.member);
            self.by_member.edit(&self.hasher, |bound| *bound <= hash, |leaf| leaf.set(hash, &entry));
        }
    }
}
