//! Leaves that are a chunk and nothing else: what there is to say of them that are stored compressed, the chunk says.

use super::{Chunk, ColdLeaf, Leaf};
use crate::cold::{Age, Cold};

/// Such a leaf.
pub trait ChunkLeaf: Leaf {
    /// The chunk.
    fn chunk(&self) -> &Chunk;

    /// The chunk, for a change.
    fn chunk_mut(&mut self) -> &mut Chunk;

    /// A leaf of this chunk.
    fn of_chunk(chunk: Chunk) -> Self;

    /// Whether elements that are not compressed may be.
    fn may_be_compressed(&self) -> bool {
        true
    }
}

impl<L: ChunkLeaf> ColdLeaf for L {
    fn age(&self) -> &Age {
        self.chunk().age()
    }

    fn cold(&self) -> Option<&Cold> {
        self.chunk().cold()
    }

    fn is(&self, other: &Self) -> bool {
        self.chunk().is(other.chunk())
    }

    fn bytes_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.chunk().bytes_once(scratch)
    }

    fn of_cold(cold: Cold, count: usize) -> Self {
        Self::of_chunk(Chunk::of_cold(cold, count))
    }

    fn may_be_cold(&self) -> bool {
        self.cold().is_some() || self.may_be_compressed()
    }

    fn shed(&mut self) {
        self.chunk_mut().shed();
    }

    fn warm(&mut self) {
        self.chunk_mut().warm();
    }
}
