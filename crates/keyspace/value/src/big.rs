//! A collection that is a tree.

mod leaves;
#[cfg(test)]
mod tests;

pub use leaves::{Find, LeafRun};

use crate::{Body, Encoding, Limits, Slot, Type, btree, hash, list, set, stream, zset};
use base::hash::KeyHasher;

/// A tree, shared as a whole between the store, replies in flight and a running checkpoint. One plain read of its
/// counter tells whether it is shared, so editing an unshared tree takes no atomic exchange.
pub type SharedBig = triomphe::Arc<Big>;

/// A tree. Its clone takes constant time and shares all chunks (V3).
#[derive(Clone, Debug)]
pub enum Big {
    /// A list.
    List(list::Big),
    /// A set.
    Set(set::Big),
    /// A sorted set.
    Zset(zset::Big),
    /// A hash.
    Hash(hash::Big),
    /// A stream.
    Stream(stream::Big),
    /// A b+tree.
    Btree(btree::Big),
}

/// Where [`Big::write_changes`] continues; the default is the beginning. Each type gives the numbers its own meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress(pub u64, pub u64);

impl Big {
    /// The tree that these changes build from nothing: the output of [`Big::write_changes`]. It stays a tree however
    /// small.
    ///
    /// # Panics
    /// When the bytes are no such changes.
    pub fn build(kind: Type, changes: &[u8], limits: &Limits, hasher: &KeyHasher) -> Self {
        let mut big = Self::empty(kind, hasher);
        let mut slot = Slot { body: Body::Big(&mut big), encoding: Encoding::BIG, limits, hasher };
        crate::apply(kind, &mut slot, changes);
        assert!(slot.encoding == Encoding::BIG, "changes that only add leave a tree");
        big
    }

    /// A tree of no elements, which is to get some.
    pub fn empty(kind: Type, hasher: &KeyHasher) -> Self {
        match kind {
            Type::String => unreachable!("a string is no tree"),
            Type::List => Self::List(list::Big::default()),
            Type::Set => Self::Set(set::Big::new(hasher)),
            Type::Zset => Self::Zset(zset::Big::new(hasher)),
            Type::Hash => Self::Hash(hash::Big::new(hasher)),
            Type::Stream => Self::Stream(stream::Big::default()),
            Type::Btree => Self::Btree(btree::Big::default()),
        }
    }

    /// Whether its elements are in the order of this hasher, or in an order that no hasher decides. False after a tree
    /// was loaded with the order of another process ([`Self::push_leaves`]).
    pub fn is_ordered_by(&self, hasher: &KeyHasher) -> bool {
        match self {
            Self::Set(big) => big.is_ordered_by(hasher),
            Self::Zset(big) => big.is_ordered_by(hasher),
            Self::Hash(big) => big.is_ordered_by(hasher),
            Self::List(_) | Self::Stream(_) | Self::Btree(_) => true,
        }
    }

    /// Its type.
    pub fn kind(&self) -> Type {
        match self {
            Self::List(_) => Type::List,
            Self::Set(_) => Type::Set,
            Self::Zset(_) => Type::Zset,
            Self::Hash(_) => Type::Hash,
            Self::Stream(_) => Type::Stream,
            Self::Btree(_) => Type::Btree,
        }
    }

    /// Bytes its allocations take, shared ones included. Constant time.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::List(big) => big.memory_bytes(),
            Self::Set(big) => big.memory_bytes(),
            Self::Zset(big) => big.memory_bytes(),
            Self::Hash(big) => big.memory_bytes(),
            Self::Stream(big) => big.memory_bytes(),
            Self::Btree(big) => big.memory_bytes(),
        }
    }

    /// Prefetches what requests for elements of a hash, a set or a sorted set will read, for all of them at once: a
    /// single look-up in a big tree waits for one cache line after another. Of each request, the two arguments after
    /// the key.
    pub fn load(&self, requests: &[[&[u8]; 2]], is_edit: bool) {
        match self {
            Self::Hash(big) => big.load(requests, is_edit),
            Self::Set(big) => big.load(requests, is_edit),
            Self::Zset(big) => big.load(requests, is_edit),
            Self::List(_) | Self::Stream(_) | Self::Btree(_) => {}
        }
    }

    /// Bytes of its elements in their compact form, with scores, lengths of strings and times of fields, without the
    /// nodes that lead to them. Constant time.
    pub fn content_bytes(&self) -> usize {
        match self {
            Self::List(big) => big.content_bytes(),
            Self::Set(big) => big.content_bytes(),
            Self::Zset(big) => big.content_bytes(),
            Self::Hash(big) => big.content_bytes(),
            Self::Stream(big) => big.content_bytes(),
            Self::Btree(big) => big.content_bytes(),
        }
    }

    /// Appends to `out` the changes that build this collection from nothing, from `from` on, until `out` has grown by
    /// about `budget` bytes (at least one change). Returns where to continue; `None` at the end.
    ///
    /// This is how a tree is saved: the changes go through [`crate::apply`] again.
    pub fn write_changes(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        match self {
            Self::List(big) => big.write_changes(from, budget, out),
            Self::Set(big) => big.write_changes(from, budget, out),
            Self::Zset(big) => big.write_changes(from, budget, out),
            Self::Hash(big) => big.write_changes(from, budget, out),
            Self::Stream(big) => big.write_changes(from, budget, out),
            Self::Btree(big) => big.write_changes(from, budget, out),
        }
    }

    /// Appends all changes that build this collection from nothing.
    pub fn write_all_changes(&self, out: &mut Vec<u8>) {
        let mut progress = Some(Progress::default());
        while let Some(from) = progress {
            progress = self.write_changes(from, usize::MAX, out);
        }
    }
}
