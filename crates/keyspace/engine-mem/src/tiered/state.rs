//! What an engine knows of its tier.

use base::{KeyspaceId, UnixMs};
use engine::ValueTier;
use engine::tier::WrittenShards;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What an engine knows of its tier.
pub struct Tiered {
    pub(super) tier: Arc<dyn ValueTier>,
    /// How many commands want each entry.
    pub(super) wanted: HashMap<(KeyspaceId, Box<[u8]>), u32>,
    /// Where demotion continues.
    pub(super) hand: (KeyspaceId, u64),
    /// When the hand began its round, and the one before.
    pub(super) rounds: [UnixMs; 2],
    pub(super) once: ReadOnce,
    /// Entries that were written, for a tier that takes them at once. Some may be gone, or away.
    pub(super) written: VecDeque<(KeyspaceId, Box<[u8]>)>,
    /// The shard's number, and the shards that have written entries.
    pub(super) shard: usize,
    pub(super) shards: Arc<WrittenShards>,
    /// The record that was read in place last.
    pub(super) record: Vec<u8>,
}

/// Written entries that are noted. Further ones stay in memory until it is short.
pub(super) const WRITTEN_MAX: usize = 1 << 16;

impl Tiered {
    /// An entry is written, with this length in memory if it is known. One whose value is away has none there.
    pub fn note_written(&mut self, space: KeyspaceId, key: &[u8], len: Option<usize>) {
        let stays = len.is_some_and(|len| len < self.tier.value_len_min());
        if stays || !self.tier.takes_written() || self.written.len() >= WRITTEN_MAX {
            return;
        }
        if self.written.is_empty() {
            self.shards.mark(self.shard);
        }
        self.written.push_back((space, key.into()));
    }
}

/// Slots of [`ReadOnce`]: 8 KiB a shard.
pub(super) const ONCE_SLOTS: usize = 2048;

/// Keys whose values were read from the tier once lately, by their hashes: a second read makes them worth their memory.
/// A slot has one key, so the window is some thousands of reads. Made at the first read.
#[derive(Default)]
pub(super) struct ReadOnce(Box<[u32]>);

impl ReadOnce {
    /// The slot of a key, and what it has for it.
    pub(super) fn slot(hash: u64) -> (usize, u32) {
        (hash as usize % ONCE_SLOTS, (hash >> 32) as u32 | 1)
    }

    /// Notes a read: of every two, the first makes the key one that was read once.
    pub(super) fn note(&mut self, hash: u64) {
        if self.0.is_empty() {
            self.0 = vec![0; ONCE_SLOTS].into();
        }
        let (slot, tag) = Self::slot(hash);
        self.0[slot] = if self.0[slot] == tag { 0 } else { tag };
    }

    pub(super) fn has(&self, hash: u64) -> bool {
        let (slot, tag) = Self::slot(hash);
        self.0.get(slot) == Some(&tag)
    }
}
