//! Leaves of a tree that are stored compressed: see [`crate::cold`].

use super::Big;
use crate::cold::{Cold, Keeper};
use crate::saved::{Leaf, OfRows, hashed};
use crate::tree::{ColdLeaf, Found, Plan, Run};
use crate::{Progress, Type, btree, hash, list, set, stream, zset};
use std::ops::Range;
use std::sync::Arc;

/// What a pass over the leaves of a tree has found.
#[derive(Debug)]
pub enum Find {
    /// Leaves that are to be stored in another form; the first has this element, or of a stream this number.
    Run(LeafRun, u64),
    /// The leaf with this element, or of a stream of this number, is to give memory back ([`Big::shed`]).
    Thawed(u64),
}

/// Leaves that are to be stored in another form, shared with their tree.
#[derive(Debug)]
pub enum LeafRun {
    /// Of a hash.
    Hash(Run<hash::Leaf>),
    /// Of a list.
    List(Run<list::Leaf>),
    /// Of a set.
    Set(Run<set::Leaf>),
    /// Of a sorted set, by score.
    Scores(Run<zset::Run>),
    /// Of a sorted set, by member.
    Members(Run<zset::Members>),
    /// Of a stream.
    Stream(stream::FullNode),
    /// Of a b+tree.
    Btree(Run<btree::Run>),
}

impl LeafRun {
    /// Puts their bytes into `out`, and gives how many elements they are; `None` when there are no leaves.
    pub fn bytes(&self, out: &mut Vec<u8>) -> Option<usize> {
        self.leaves().bytes(out)
    }

    /// How many bytes they have, whether they are compressed or not.
    #[expect(clippy::len_without_is_empty, reason = "leaves have elements")]
    pub fn len(&self) -> usize {
        self.leaves().len()
    }

    /// Whether they are stored compressed.
    pub fn are_cold(&self) -> bool {
        self.leaves().are_cold()
    }

    /// Decompresses compressed leaves and keeps the result, so that storing it raw takes no longer than a copy.
    pub fn thaw(&self) {
        self.leaves().thaw();
    }

    /// The type of their tree.
    pub fn kind(&self) -> Type {
        match self {
            Self::Hash(_) => Type::Hash,
            Self::List(_) => Type::List,
            Self::Set(_) => Type::Set,
            Self::Scores(_) | Self::Members(_) => Type::Zset,
            Self::Stream(_) => Type::Stream,
            Self::Btree(_) => Type::Btree,
        }
    }

    fn leaves(&self) -> &dyn Leaves {
        match self {
            Self::Hash(run) => run,
            Self::List(run) => run,
            Self::Set(run) => run,
            Self::Scores(run) => run,
            Self::Members(run) => run,
            Self::Stream(node) => node,
            Self::Btree(run) => run,
        }
    }
}

/// What can be asked of leaves of any type.
trait Leaves {
    fn bytes(&self, out: &mut Vec<u8>) -> Option<usize>;
    fn len(&self) -> usize;
    fn are_cold(&self) -> bool;
    fn thaw(&self);
}

impl<L: ColdLeaf> Leaves for Run<L> {
    fn bytes(&self, out: &mut Vec<u8>) -> Option<usize> {
        let merged = self.merged()?;
        out.clear();
        let mut scratch = Vec::new();
        out.extend_from_slice(merged.bytes_once(&mut scratch));
        Some(merged.count())
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn are_cold(&self) -> bool {
        self.is_cold()
    }

    fn thaw(&self) {
        self.thaw();
    }
}

impl Leaves for stream::FullNode {
    fn bytes(&self, out: &mut Vec<u8>) -> Option<usize> {
        Some(self.bytes(out))
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn are_cold(&self) -> bool {
        self.is_cold()
    }

    fn thaw(&self) {
        self.thaw();
    }
}

impl Big {
    /// Whether any leaf is. In time to the leaves before the first that is.
    pub fn has_cold(&self) -> bool {
        match self {
            Self::Hash(big) => big.tree().has_cold(),
            Self::List(big) => big.tree().has_cold(),
            Self::Set(big) => big.tree().has_cold(),
            Self::Zset(big) => big.by_score().has_cold() || big.by_member().has_cold(),
            Self::Stream(big) => big.has_cold(),
            Self::Btree(big) => big.tree().has_cold(),
        }
    }

    /// Whether leaves are rows, or were: see [`crate::absent`].
    #[inline]
    pub fn may_have_rows(&self) -> bool {
        match self {
            Self::Hash(big) => big.tree().may_have_rows(),
            Self::List(big) => big.tree().may_have_rows(),
            Self::Set(big) => big.tree().may_have_rows(),
            Self::Zset(big) => big.by_score().may_have_rows() || big.by_member().may_have_rows(),
            Self::Stream(big) => big.may_have_rows(),
            Self::Btree(big) => big.tree().may_have_rows(),
        }
    }

    /// Before the elements at these places are read, of a sorted set by score: the copies of rows that this brings go
    /// with this version. Streams have no rows.
    pub fn set_apart(&mut self, ranks: Range<u64>) {
        match self {
            Self::Hash(big) => big.tree_mut().set_apart(ranks),
            Self::List(big) => big.tree_mut().set_apart(ranks),
            Self::Set(big) => big.tree_mut().set_apart(ranks),
            Self::Zset(big) => big.by_score_mut().set_apart(ranks),
            Self::Stream(_) => {}
            Self::Btree(big) => big.tree_mut().set_apart(ranks),
        }
    }

    /// A step of a pass: looks at up to `looks` leaves, from the one with element `from` on; of a stream, from that
    /// node number on; of a sorted set, elements by member follow those by score. Returns what it found, and where to
    /// continue; `None` at the end.
    pub fn look_for_cold(&self, from: u64, plan: &Plan<'_>, looks: usize) -> (Option<Find>, Option<u64>) {
        fn named<L: ColdLeaf>(found: Option<Found<L>>, name: impl Fn(Run<L>) -> LeafRun) -> Option<Find> {
            Some(match found? {
                Found::Run(run) => {
                    let first = run.first();
                    Find::Run(name(run), first)
                }
                Found::Thawed(rank) => Find::Thawed(rank),
            })
        }
        match self {
            Self::Hash(big) => {
                let (found, next) = big.tree().look_for_cold(from, plan, looks);
                (named(found, LeafRun::Hash), next)
            }
            Self::List(big) => {
                let (found, next) = big.tree().look_for_cold(from, plan, looks);
                (named(found, LeafRun::List), next)
            }
            Self::Btree(big) => {
                let (found, next) = big.tree().look_for_cold(from, plan, looks);
                (named(found, LeafRun::Btree), next)
            }
            Self::Stream(big) => {
                let (found, next) = big.look_for_cold(from, plan, looks);
                let found = found.map(|found| match found {
                    stream::Found::Node(node, number) => Find::Run(LeafRun::Stream(node), number),
                    stream::Found::Thawed(number) => Find::Thawed(number),
                });
                (found, next)
            }
            Self::Set(big) => {
                let (found, next) = big.tree().look_for_cold(from, plan, looks);
                (named(found, LeafRun::Set), next)
            }
            Self::Zset(big) => {
                let len = big.by_score().len();
                let Some(rank) = from.checked_sub(len) else {
                    let (found, next) = big.by_score().look_for_cold(from, plan, looks);
                    return (named(found, LeafRun::Scores), Some(next.unwrap_or(len)));
                };
                let (found, next) = big.by_member().look_for_cold(rank, plan, looks);
                let found = named(found, LeafRun::Members).map(|found| match found {
                    Find::Run(run, first) => Find::Run(run, len + first),
                    Find::Thawed(rank) => Find::Thawed(len + rank),
                });
                (found, next.map(|rank| len + rank))
            }
        }
    }

    /// Stores these leaves as one compressed leaf of `count` elements; `cold` holds [`LeafRun::bytes`]. False when they
    /// are no longer in the tree.
    pub fn store_cold(&mut self, leaves: &LeafRun, cold: Cold, count: usize) -> bool {
        match (self, leaves) {
            (Self::Hash(big), LeafRun::Hash(run)) => big.tree_mut().replace_run(run, hash::Leaf::of_cold(cold, count)),
            (Self::List(big), LeafRun::List(run)) => big.tree_mut().replace_run(run, list::Leaf::of_cold(cold, count)),
            (Self::Set(big), LeafRun::Set(run)) => big.tree_mut().replace_run(run, set::Leaf::of_cold(cold, count)),
            (Self::Zset(big), LeafRun::Scores(run)) => {
                big.by_score_mut().replace_run(run, zset::Run::of_cold(cold, count))
            }
            (Self::Zset(big), LeafRun::Members(run)) => {
                big.by_member_mut().replace_run(run, zset::Members::of_cold(cold, count))
            }
            (Self::Stream(big), LeafRun::Stream(node)) => big.store_cold(node, cold),
            (Self::Btree(big), LeafRun::Btree(run)) => {
                big.tree_mut().replace_run(run, btree::Run::of_cold(cold, count))
            }
            _ => false,
        }
    }

    /// Stores these leaves as they are. False when they are no longer the tree's.
    pub fn store_warm(&mut self, leaves: &LeafRun) -> bool {
        match (self, leaves) {
            (Self::Hash(big), LeafRun::Hash(run)) => big.warm_run(run),
            (Self::List(big), LeafRun::List(run)) => big.tree_mut().warm_run(&(), run),
            (Self::Set(big), LeafRun::Set(run)) => big.warm_run(run),
            (Self::Zset(big), LeafRun::Scores(run)) => big.by_score_mut().warm_run(&(), run),
            (Self::Zset(big), LeafRun::Members(run)) => big.warm_members(run),
            (Self::Stream(big), LeafRun::Stream(node)) => big.store_warm(node),
            (Self::Btree(big), LeafRun::Btree(run)) => big.tree_mut().warm_run(&(), run),
            _ => false,
        }
    }

    /// Notes that these leaves do not shrink: they are not tried again until they are used.
    pub fn give_up(&self, leaves: &LeafRun) {
        match (self, leaves) {
            (Self::Hash(big), LeafRun::Hash(run)) => big.tree().give_run_up(run),
            (Self::List(big), LeafRun::List(run)) => big.tree().give_run_up(run),
            (Self::Set(big), LeafRun::Set(run)) => big.tree().give_run_up(run),
            (Self::Zset(big), LeafRun::Scores(run)) => big.by_score().give_run_up(run),
            (Self::Zset(big), LeafRun::Members(run)) => big.by_member().give_run_up(run),
            (Self::Stream(big), LeafRun::Stream(node)) => big.give_up(node),
            (Self::Btree(big), LeafRun::Btree(run)) => big.tree().give_run_up(run),
            _ => {}
        }
    }

    /// Drops the decompressed copy of the leaf that a step of a pass named, and moves its stored form out of a sparse
    /// page, unless it is shared.
    pub fn shed(&mut self, rank: u64) {
        match self {
            Self::Hash(big) => big.tree_mut().shed(rank),
            Self::List(big) => big.tree_mut().shed(rank),
            Self::Set(big) => big.tree_mut().shed(rank),
            Self::Zset(big) => match rank.checked_sub(big.by_score().len()) {
                None => big.by_score_mut().shed(rank),
                Some(rank) => big.by_member_mut().shed(rank),
            },
            Self::Stream(big) => big.shed(rank),
            Self::Btree(big) => big.tree_mut().shed(rank),
        }
    }

    /// Appends the leaves from `from` on, compressed ones in their stored form, until `out` has grown by about `budget`
    /// bytes (at least one leaf). Returns where to continue; `None` at the end. For trees that [`Self::has_cold`].
    /// Reads leaves that are rows.
    pub fn write_leaves(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        self.write_leaves_as(from, (budget, OfRows::Elements), out)
    }

    /// The same, for what is stored with the rows of leaves: those are written as their addresses, and not read.
    pub fn write_addresses(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        self.write_leaves_as(from, (budget, OfRows::Addresses), out)
    }

    fn write_leaves_as(&self, from: Progress, budget: (usize, OfRows), out: &mut Vec<u8>) -> Option<Progress> {
        match self {
            Self::Hash(big) => big.write_leaves(from, budget, out),
            Self::List(big) => big.write_leaves(from, budget, out),
            Self::Set(big) => big.write_leaves(from, budget, out),
            Self::Zset(big) => big.write_leaves(from, budget, out),
            Self::Stream(big) => big.write_leaves(from, budget, out),
            Self::Btree(big) => big.write_leaves(from, budget, out),
        }
    }

    /// Adds leaves that [`Self::write_leaves`] has written, after the existing ones. Reads no compressed bytes, unless
    /// elements are hashed differently here than where they were written.
    ///
    /// # Panics
    /// When the bytes are no such leaves; the reader must have checked them with [`Self::check_leaves`].
    pub fn push_leaves(&mut self, leaves: &[u8], keeper: &Arc<dyn Keeper>) {
        let pushed = match self {
            Self::Hash(big) => hashed::push(big, leaves, keeper),
            Self::Set(big) => hashed::push(big, leaves, keeper),
            Self::Zset(big) => big.push_leaves(leaves, keeper),
            Self::List(big) => big.push_leaves(leaves, keeper),
            Self::Stream(big) => big.push_leaves(leaves, keeper),
            Self::Btree(big) => big.push_leaves(leaves, keeper),
        };
        assert!(pushed.is_some(), "leaves are checked before they are loaded");
    }

    /// Whether these bytes are leaves of this type, one at least. `is_stored` says of a stored form whether it is one.
    pub fn check_leaves(kind: Type, leaves: &[u8], is_stored: impl Fn(&[u8]) -> bool) -> bool {
        match kind {
            Type::Hash => hashed::check::<hash::Leaf>(leaves, is_stored),
            Type::Set => hashed::check::<set::Leaf>(leaves, is_stored),
            Type::Zset => zset::Big::check_leaves(leaves, is_stored),
            Type::List => list::Big::check_leaves(leaves, is_stored),
            Type::Stream => stream::Big::check_leaves(leaves, is_stored),
            Type::Btree => btree::Big::check_leaves(leaves, is_stored),
            _ => false,
        }
    }

    /// Visits the stored forms in leaves that were checked.
    pub fn stored_in_leaves<'a>(kind: Type, leaves: &'a [u8], visit: &mut dyn FnMut(&'a [u8])) {
        Self::visit_leaves(kind, leaves, &mut |leaf| {
            if let Leaf::Cold { stored, .. } = leaf {
                visit(stored);
            }
        });
    }

    /// Visits the addresses of rows in leaves that [`Self::write_addresses`] has written.
    pub fn addresses_in_leaves<'a>(kind: Type, leaves: &'a [u8], visit: &mut dyn FnMut(&'a [u8])) {
        Self::visit_leaves(kind, leaves, &mut |leaf| {
            if let Leaf::Row { address, .. } = leaf {
                visit(address);
            }
        });
    }

    fn visit_leaves<'a>(kind: Type, leaves: &'a [u8], visit: &mut dyn FnMut(Leaf<'a>)) {
        match kind {
            Type::Hash | Type::Set => hashed::stored_forms(leaves, visit),
            Type::Zset => zset::Big::stored_in_leaves(leaves, visit),
            Type::List => list::Big::stored_in_leaves(leaves, visit),
            Type::Stream => stream::Big::stored_in_leaves(leaves, visit),
            Type::Btree => btree::Big::stored_in_leaves(leaves, visit),
            _ => {}
        }
    }
}
