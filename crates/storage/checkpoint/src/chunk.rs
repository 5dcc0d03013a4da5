//! The data that shards send to writer threads: the payload of one block, or a tree that becomes several blocks.

use base::{KeyspaceId, UnixMs};
use cmdlog::record;
use engine::{PackedFields, SharedBig, SharedBytes};
use value::Progress;

/// A unit of writing.
pub(crate) enum Chunk {
    /// Encoded entries: one block.
    Entries {
        /// All bytes except `tail`.
        bytes: Vec<u8>,
        /// A large value at the end, shared with the store instead of copied.
        tail: Option<SharedBytes>,
        /// Number of entries.
        entries: u32,
        /// Whether the store still holds `tail`, as far as is known.
        is_walked: bool,
    },
    /// An entry that is a tree.
    Tree(Box<Tree>),
}

/// A tree as it was at the cut.
pub(crate) struct Tree {
    pub space: KeyspaceId,
    pub key: Vec<u8>,
    pub big: SharedBig,
    pub expire_at: Option<UnixMs>,
    /// Its optional fields.
    pub fields: PackedFields,
}

impl Chunk {
    /// Bytes of memory it holds, shared nodes included: when the store overwrites those, only the checkpoint holds
    /// them.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Entries { bytes, tail, .. } => (bytes.capacity() + tail.as_ref().map_or(0, |tail| tail.len())) as u64,
            Self::Tree(tree) => (tree.key.capacity() + tree.big.memory_bytes()) as u64,
        }
    }

    /// The part of these bytes that limits only the walk. All of a tree: a write copies only the nodes that it changes.
    pub fn walked_bytes(&self) -> u64 {
        match self {
            Self::Entries { tail: Some(tail), is_walked: true, .. } => tail.len() as u64,
            Self::Entries { .. } => 0,
            Self::Tree(tree) => tree.big.memory_bytes() as u64,
        }
    }
}

impl Tree {
    /// Writes it as parts of about `part_len` bytes, in order: `write(head, tail, is_last)`. A part is one effect:
    /// changes, or leaves if some of them are compressed. The expiration and the optional fields may follow in the last
    /// part.
    pub fn parts<E>(
        &self,
        part_len: usize,
        mut write: impl FnMut(&[u8], &[u8], bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut head, mut tail, mut from) = (Vec::new(), Vec::new(), Progress::default());
        let (space, key, kind) = (self.space, &*self.key, self.big.kind());
        let is_cold = self.big.has_cold();
        loop {
            head.clear();
            tail.clear();
            let next = if is_cold {
                let next = self.big.write_leaves(from, part_len, &mut tail);
                record::put_leaves_head(&mut head, space, key, kind, tail.len());
                next
            } else {
                let next = self.big.write_changes(from, part_len, &mut tail);
                record::put_edit_head(&mut head, space, key, kind, tail.len());
                next
            };
            if let (None, Some(at)) = (next, self.expire_at) {
                record::put_expire(&mut tail, space, key, at);
            }
            let mut buffer = Vec::new();
            let fields = self.fields.get().tagged(&mut buffer);
            if next.is_none() && !fields.is_none() {
                record::put_meta(&mut tail, space, key, fields);
            }
            write(&head, &tail, next.is_none())?;
            match next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
    }
}
