//! Compressed leaves of big collections: reading and counting them, and a pass over the leaves of one collection.
//!
//! ```text
//! look: leaves of the tree, under its shard's lock -> share neighbours that no command has used for some passes
//!       -> compress them, together, without the lock -> the tree's still? -> Engine::reform: one leaf in their place
//! ```
//!
//! Reading a leaf thaws it. The thawed form is kept with the stored form until some passes have seen it unused.

use super::wanted::Wanted;
use super::{Coder, Compression, add};
use crate::lock::Held;
use crate::shard::Shard;
use crate::store::Store;
use base::hash::KeyHasher;
use codec::stored::Stored;
use codec::{Dictionaries, Reader, Workspace};
use engine::{Engine, Entry, Key, SharedBig, Value};
use engine_mem::{MemoryKind, MemoryUse};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use types::decoder::may_tree_be_compressed;
use value::cold::{Cold, Keeper, PagesUse, Shelf};
use value::tree::Plan;
use value::{Find, LeafRun};

/// Leaves of about this many bytes are compressed together: a read of one element decompresses them all.
const BYTES: usize = 4 << 10;

/// Leaves looked at under one lock.
pub(super) const LOOKS: usize = 64;

/// A leaf is cold when this many passes have seen it unused: a value's idle time has four passes.
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

/// Whether the leaves of this collection are compressed one by one. That is a tree that is too big to be compressed as
/// a whole, or was when its leaves were compressed; or one with elements that have times; or one that a rebuild would
/// reorder, since it has the order of an earlier process, and a walk over it must be able to continue.
pub(super) fn is_by_leaf(entry: &Entry<'_>, hasher: &KeyHasher) -> bool {
    let Value::Big(tree) = entry.value else { return false };
    !may_tree_be_compressed(tree) || entry.first_due().is_some() || !tree.is_ordered_by(hasher) || tree.has_cold()
}

/// What a pass is after in a collection.
pub(super) struct Search<'w> {
    pub(super) wanted: &'w Wanted,
    /// It looks at all leaves.
    pub(super) is_full: bool,
    /// It looks for nothing but what is thawed.
    pub(super) only_sheds: bool,
}

impl Search<'_> {
    /// Looks at up to `looks` leaves of the collection, from the one with element `from` on, under the lock of its
    /// shard. Drops thawed forms that it finds. Returns leaves to store in another form, and where to continue.
    pub(super) fn look(
        &self,
        store: &Store,
        held: &mut Shard,
        key: &Key<'_>,
        from: u64,
        looks: usize,
    ) -> (Option<(LeafRun, u64)>, Option<u64>) {
        let settings = &self.wanted.settings;
        let is_other = |stored: &[u8]| self.is_other(&store.compression, key, stored);
        let plan = Plan {
            age: settings.idle_seconds.min(PASSES) as u8,
            bytes: BYTES,
            bytes_max: super::queue::LEAF_LEN_MAX,
            retries: self.is_full,
            compresses: settings.codec != super::Codec::Off,
            takes_all: false,
            only_sheds: self.only_sheds,
            is_other: &is_other,
        };
        let entry = held.engine.read(key, false).ok().flatten();
        let (found, next) = match entry.filter(|entry| is_by_leaf(entry, &store.hasher)) {
            // A command that prepares something from a tree restarts when the tree is replaced.
            Some(Entry { value: Value::Big(tree), .. }) if self.is_full || SharedBig::strong_count(tree) == 1 => {
                tree.look_for_cold(from, &plan, looks)
            }
            _ => (None, None),
        };
        match found {
            Some(Find::Run(run, at)) => (Some((run, at)), next),
            Some(Find::Thawed(rank)) => {
                held.engine.reform(key, &mut |tree| tree.shed(rank));
                (None, next)
            }
            None => (None, next),
        }
    }

    /// Whether a leaf is stored in another form than leaves under this key are to have.
    fn is_other(&self, compression: &Compression, key: &Key<'_>, stored: &[u8]) -> bool {
        let Ok(stored) = Stored::parse(stored) else { return false };
        let form = stored.form;
        form.codec() != self.wanted.settings.codec.name()
            || self.wanted.is_other(form) && !compression.is_choice(key, form.dictionary())
    }
}

/// Brings leaves that were found into the form that is configured, if they are still there. `bytes` is room for what
/// they hold. False when `lock` finds their shard taken.
pub(super) fn store_run<'s>(
    store: &'s Store,
    coder: &mut Coder,
    bytes: &mut Vec<u8>,
    key: &Key<'_>,
    run: &LeafRun,
    lock: impl FnOnce() -> Option<Held<'s, Shard>>,
) -> bool {
    let (compression, keeper) = (&store.compression, store.compression.keeper());
    let count = run.bytes(bytes);
    let stored = count.and_then(|count| {
        let encoded = compression.encode(coder, &*store.clock, key, run.kind(), bytes)?;
        // Counted while its dictionary is held.
        Some((Cold::new(&keeper, encoded.bytes)?, count))
    });
    if stored.is_none() && run.are_cold() {
        run.thaw();
    }
    let Some(mut held) = lock() else { return false };
    let is_tree = |entry: &Entry<'_>| matches!(entry.value, Value::Big(_));
    let Some(entry) = held.engine.read(key, false).ok().flatten().filter(is_tree) else {
        store.unlock_one(held);
        return true;
    };
    match stored {
        Some((cold, count)) => {
            let mut is_stored = false;
            held.engine.reform(key, &mut |tree| is_stored = tree.store_cold(run, cold.clone(), count));
            add(&compression.figures.compressed_by_pass, u64::from(is_stored));
        }
        None if run.are_cold() => {
            let mut is_stored = false;
            held.engine.reform(key, &mut |tree| is_stored = tree.store_warm(run));
            add(&compression.figures.decompressed_by_pass, u64::from(is_stored));
        }
        None => {
            if let Value::Big(tree) = entry.value {
                tree.give_up(run);
            }
        }
    }
    store.unlock_one(held);
    true
}

/// Whether thawed forms must be dropped, used or not: they take more than an eighth of all memory and some MiB.
pub(super) fn is_thawed_too_much(memory: &MemoryUse) -> bool {
    const FREE: u64 = 16 << 20;
    let thawed = memory.of(MemoryKind::Thawed);
    thawed > FREE && thawed - FREE > memory.total() / 8
}

impl Compression {
    /// The reader of compressed leaves of trees.
    pub(crate) fn keeper(&self) -> Arc<dyn Keeper> {
        self.keeper.clone()
    }

    /// What the pages of compressed leaves hold.
    pub fn leaf_pages(&self) -> PagesUse {
        self.keeper.shelf.pages()
    }

    /// How many compressed leaves were read.
    pub fn leaves_thawed(&self) -> u64 {
        self.keeper.thawed.load(Ordering::Relaxed)
    }
}
