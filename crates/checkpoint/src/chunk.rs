//! What goes from a shard to a writer thread: the payload of one block.

use engine::SharedBytes;

/// Encoded entries. A big value is not copied: it stands at the end, shared with the store.
pub(crate) struct Chunk {
    pub bytes: Vec<u8>,
    pub tail: Option<SharedBytes>,
    pub entries: u32,
    /// Whether `tail` stays in the store, as far as is known.
    pub is_walked: bool,
}

impl Chunk {
    /// Bytes of memory it holds, the shared value included: whoever overwrites it in the store leaves it to us alone.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + self.tail.as_ref().map_or(0, |tail| tail.len())) as u64
    }

    /// Bytes among them that count for the walk alone.
    pub fn walked_bytes(&self) -> u64 {
        if self.is_walked { self.tail().len() as u64 } else { 0 }
    }

    /// The shared value's bytes.
    pub fn tail(&self) -> &[u8] {
        self.tail.as_ref().map_or(&[], |tail| tail.as_slice())
    }
}
