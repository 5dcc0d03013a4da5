//! Compressed leaves of big collections: who reads and counts them, and a pass over the leaves of one collection.
//!
//! ```text
//! look: some leaves of the tree, under the lock of its shard --> neighbours that nobody has used for some passes, shared
//!       --> compress them, together, without the lock --> the tree's still? --> Engine::reform: one leaf in their place
//! ```
//!
//! Whoever reads a leaf has it thawed, which is kept beside the stored form until some passes have seen it unused.

use super::pass::Wanted;
use super::{Compression, add};
use base::hash::KeyHasher;
use codec::stored::Stored;
use codec::{Dictionaries, Reader, Workspace};
use engine::{Entry, Key, Value};
use engine_mem::{MemoryKind, MemoryUse};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use types::decoder::may_tree_be_compressed;
use value::cold::{Keeper, Shelf};
use value::tree::Plan;

/// Leaves of so many bytes are compressed together: what a read of one element decompresses.
const BYTES: usize = 4 << 10;

/// Leaves looked at under one lock.
pub(super) const LOOKS: usize = 64;

/// A leaf is cold when so many passes have seen it unused: a pass begins four times in the time after which a value is.
const PASSES: u32 = 4;

/// Reads the compressed leaves of a store, and counts them.
pub(crate) struct LeafKeeper {
    dictionaries: Arc<Dictionaries>,
    memory: Arc<MemoryUse>,
    /// What threads decompress with, in turns.
    idle: Mutex<Vec<(Workspace, Reader)>>,
    /// Leaves thawed.
    pub(super) thawed: AtomicU64,
    shelf: Shelf,
}

impl LeafKeeper {
    pub(super) fn new(dictionaries: Arc<Dictionaries>, memory: Arc<MemoryUse>) -> Self {
        Self { dictionaries, memory, idle: Mutex::default(), thawed: AtomicU64::new(0), shelf: Shelf::default() }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Workspace, Reader)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for LeafKeeper {
    fn thaw(&self, stored: &[u8], out: &mut Vec<u8>) {
        let (mut workspace, mut reader) = self.idle().pop().unwrap_or_default();
        reader.follow(&self.dictionaries);
        if let Err(error) = workspace.decode(stored, &mut reader, out) {
            panic!("a compressed leaf in memory cannot be read: {error}");
        }
        add(&self.thawed, 1);
        self.idle().push((workspace, reader));
    }

    fn len_of(&self, stored: &[u8]) -> Option<usize> {
        Stored::parse(stored).ok().map(|stored| stored.len)
    }

    fn came(&self, stored: &[u8]) {
        self.memory.add_stored(stored);
    }

    fn went(&self, stored: &[u8]) {
        self.memory.sub_stored(stored);
    }

    fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    fn keeps(&self, bytes: usize, is_kept: bool) {
        match is_kept {
            true => self.memory.add(MemoryKind::Thawed, bytes),
            false => self.memory.sub(MemoryKind::Thawed, bytes),
        }
    }
}

/// Whether it is a collection whose leaves are compressed each by itself: a tree that is too big to be compressed as a whole, or was
/// when leaves of it were; or that has elements with times; or that would be another if it were built again, since it was loaded
/// with the order of an earlier process, and a walk over it goes on.
pub(super) fn is_by_leaf(entry: &Entry<'_>, hasher: &KeyHasher) -> bool {
    let Value::Big(tree) = entry.value else { return false };
    !may_tree_be_compressed(tree) || entry.first_due().is_some() || !tree.is_ordered_by(hasher) || tree.has_cold()
}

/// What a pass is after in a collection.
pub(super) fn plan<'p>(
    wanted: &Wanted,
    is_full: bool,
    only_sheds: bool,
    is_other: &'p dyn Fn(&[u8]) -> bool,
) -> Plan<'p> {
    Plan {
        age: wanted.settings.idle_seconds.min(PASSES) as u8,
        bytes: BYTES,
        bytes_max: super::pass::LEN_MAX,
        retries: is_full,
        compresses: wanted.settings.codec != super::Codec::Off,
        only_sheds,
        is_other,
    }
}

/// Whether a leaf is stored in another form than leaves under this key are to have.
pub(super) fn is_other(compression: &Compression, wanted: &Wanted, key: &Key<'_>, stored: &[u8]) -> bool {
    let Ok(stored) = Stored::parse(stored) else { return false };
    let form = stored.form;
    form.codec() != wanted.settings.codec.name()
        || wanted.is_other(form) && !compression.is_choice(key, form.dictionary())
}

/// Whether so much is thawed that it is to go, whoever has used it: an eighth of all memory, and some MiB.
pub(super) fn is_thawed_too_much(memory: &MemoryUse) -> bool {
    const FREE: u64 = 16 << 20;
    let thawed = memory.of(MemoryKind::Thawed);
    thawed > FREE && thawed - FREE > memory.total() / 8
}

impl Compression {
    /// Who reads what is compressed in trees.
    pub(crate) fn keeper(&self) -> Arc<dyn Keeper> {
        self.keeper.clone()
    }

    /// How many compressed leaves were read.
    pub fn leaves_thawed(&self) -> u64 {
        self.keeper.thawed.load(Ordering::Relaxed)
    }
}
