//! The engine: the operations of the contract over tables, entries and indexes.

use crate::backed::state::Shown;
use crate::bucket::Mark;
use crate::checkpoint::handing::Checkpoint;
use crate::clean::calm::{Calm, TableCleaning};
use crate::edit::{Edit, EditedBody, EditedEntry, Outcome};
use crate::entries::Entries;
use crate::eviction::pool::Pool;
use crate::extent::{self, Heap};
use crate::hints::{MemHints, Way};
use crate::memory::MemoryUse;
use crate::recent::Recent;
use crate::region::{Bytes, Lines};
use crate::shared_arena::MemoryArena;
use crate::space::Space;
use crate::stamp::{SharedStampMode, Stamps};
use crate::sticky::counts::Sticky;
use crate::table::{Found, Stretch, Table, TableMemory};
use crate::tiered::state::Tiered;
use crate::wheel::{Looking, Wheel};
use base::hash::KeyHasher;
use base::{KeyspaceId, Rng, ShardId, UnixMs};
use engine::{
    CasIds, ChangedNames, Due, Edited, Encoding, Engine, Entry, EntrySink, ExtFields, Fetch, Fields, Key, Known, Left,
    Names, NewEntry, PackedFields, Rows, ScanStep, Seen, Ticket, Type, Unedited, Usage, Value, WalkProgress, Wanted,
};
use std::sync::Arc;
use value::{Big, Body, Limits};

/// What an entry costs in the table: a cell of a bucket nine tenths full.
const CELL_COST_BYTES: usize = 7;
/// What an expiration costs in the index.
const ITEM_COST_BYTES: usize = 5;

/// A visit in the order of the table prefetches an entry this many entries ahead.
const VISIT_PREFETCH_COUNT: usize = 12;

/// Items of the expiration index looked at per key that [`Engine::due`] may give, at most: most items of a list that is
/// sorted into the levels below it are not due yet.
const DUE_LOOKS_PER_KEY: usize = 16;

/// A database on its way out: cleared, its memory not yet given back.
pub(crate) struct Detached {
    id: KeyspaceId,
    pub(crate) table: Table,
    /// Where dismantling continues; `None` when only the directory is left.
    from: Option<u64>,
    /// Whether the running checkpoint still wants its entries.
    pub(crate) in_cut: bool,
}

/// The storage of one shard. Its first cache line has what a read needs whose way is known.
#[repr(C, align(64))]
pub struct MemEngine {
    hints: Arc<MemHints>,
    pub(crate) now: UnixMs,
    pub(crate) stamps: Stamps,
    pub(crate) entries: Entries,
    pub(crate) heap: Heap,
    /// By keyspace; made at first use.
    pub(crate) spaces: Vec<Option<Space>>,
    pub(crate) detached: Vec<Detached>,
    /// Expiration indexes on their way out.
    pub(crate) retired: Vec<Wheel>,
    pub(crate) hasher: KeyHasher,
    pub(crate) memory: Arc<MemoryUse>,
    pub(crate) rng: Rng,
    /// Whether stamps say when an entry was used last, or how often.
    stamp_mode: Arc<SharedStampMode>,
    /// Limits up to which collections are packed.
    limits: Arc<Limits>,
    /// The mark of the running or last checkpoint.
    pub(crate) mark: Mark,
    pub(crate) marks_since_walk: u32,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) looking: Looking,
    pub(crate) recent: Recent,
    pub(crate) table_cleaning: Option<TableCleaning>,
    pub(crate) calm: Calm,
    pub(crate) pools: Vec<Pool>,
    /// Entries that are never evicted; `None` until there is one.
    pub(crate) sticky: Option<Box<Sticky>>,
    cas_ids: CasIds,
    /// Some keyspace is backed by rows.
    pub(crate) has_backed: bool,
    /// Some tree may have leaves that are rows, though its keyspace is not backed.
    pub(crate) has_leaf_rows: bool,
    /// See [`Self::hand_over`].
    is_watched: bool,
    /// The last ticket that was given.
    pub(crate) last_ticket: u64,
    /// An entry that only rows hold, being shown.
    pub(crate) shown: Shown,
    /// Where values go that memory has no room for.
    pub(crate) tiered: Option<Box<Tiered>>,
}

/// What a look at the table has found.
enum LookedUp {
    /// The entry.
    Entry(u32),
    /// There is none.
    Absent,
    /// The answer needs a row.
    Unknown,
}

impl MemEngine {
    /// An empty engine with address space of its own.
    ///
    /// # Panics
    /// When the system grants not even the smallest piece of address space.
    pub fn new(hasher: KeyHasher, rng: Rng, memory: Arc<MemoryUse>) -> Self {
        Self::in_arena(hasher, rng, memory, &MemoryArena::reserve(1), 0)
    }

    /// The empty engine of shard `shard`, in address space that the shards of a store share. Takes next to no memory.
    ///
    /// `hasher` is the one that made the hashes in [`Key`]; `rng` decides what is left to chance; `memory` counts for
    /// all shards together.
    pub fn in_arena(
        hasher: KeyHasher,
        mut rng: Rng,
        memory: Arc<MemoryUse>,
        arena: &MemoryArena,
        shard: usize,
    ) -> Self {
        let (region, lines) = (Bytes::new(arena.entries.region(shard)), Lines::new(arena.tables.region(shard)));
        let hints = Arc::new(MemHints::new(lines.view(), region.pages().clone()));
        Self {
            cas_ids: CasIds::new(shard as u16, &mut rng),
            heap: extent::heap(lines, Arc::clone(&memory)),
            entries: Entries::new(region, Arc::clone(&memory)),
            spaces: Vec::new(),
            detached: Vec::new(),
            retired: Vec::new(),
            hints,
            hasher,
            memory,
            stamps: Stamps::default(),
            stamp_mode: Arc::default(),
            rng,
            limits: Arc::default(),
            now: 0,
            mark: Mark::default(),
            marks_since_walk: 0,
            checkpoint: None,
            looking: Looking::default(),
            recent: Recent::default(),
            table_cleaning: None,
            calm: Calm::default(),
            pools: Vec::new(),
            sticky: None,
            has_backed: false,
            has_leaf_rows: false,
            is_watched: false,
            last_ticket: 0,
            shown: Shown::default(),
            tiered: None,
        }
    }

    /// Prefetching for this engine's keys without its lock. The same for the engine's whole life.
    pub fn hints(&self) -> Arc<MemHints> {
        Arc::clone(&self.hints)
    }

    /// Publishes the size to threads without the lock.
    pub(crate) fn tell_size(&self) {
        let count: u64 = self.spaces.iter().flatten().map(|space| space.table.len()).sum();
        self.hints.tell_size(self.entries.pages().live_bytes(), count as usize);
    }

    #[inline(never)]
    fn new_time(&mut self, now: UnixMs) {
        self.now = now;
        self.stamps.set_time(now, self.stamp_mode.get());
    }

    /// Keeps access stamps as this setting says, from now on: by frequency under an LFU policy, else by recency.
    pub fn follow_stamp_mode(&mut self, shared: &Arc<SharedStampMode>) {
        self.stamp_mode = Arc::clone(shared);
        self.stamps.set_time(self.now, shared.get());
    }

    /// Packs collections up to these limits from now on.
    pub fn follow_limits(&mut self, limits: &Arc<Limits>) {
        self.limits = Arc::clone(limits);
    }

    /// Whether keys are known to be due, or to need another look, at the time set.
    pub fn has_due(&self) -> bool {
        self.spaces.iter().flatten().any(|space| space.is_due(self.now))
    }

    pub(crate) fn space(&self, id: KeyspaceId) -> Option<&Space> {
        self.spaces.get(id.index())?.as_ref()
    }

    #[inline(always)]
    pub(crate) fn find(&self, key: &Key<'_>) -> Option<Found> {
        debug_assert_eq!(key.hash, self.hasher.hash(key.bytes), "the key was hashed by another hasher");
        match self.recent.find(&self.entries, key) {
            None => self.space(key.space)?.table.find(&self.heap, &self.entries, key.hash, key.bytes),
            found => found,
        }
    }

    /// Cells or entries move.
    #[inline]
    pub(crate) fn handles_change(&mut self) {
        self.recent.forget();
        self.hints.change();
    }

    /// The database, made if it is not there yet.
    pub(crate) fn ensure_space(&mut self, id: KeyspaceId) -> &mut Space {
        if self.spaces.len() <= id.index() {
            self.spaces.resize_with(id.index() + 1, || None);
        }
        if self.spaces[id.index()].is_none() {
            let space = Space::new(&mut self.heap);
            self.hints.publish(id, Some(space.table.directory()));
            self.spaces[id.index()] = Some(space);
        }
        self.spaces[id.index()].as_mut().expect("just made")
    }

    /// Puts what keyspace `from` holds in place of what `to` holds. Neither is backed by rows or on a tier, and no
    /// checkpoint is being taken.
    pub fn take_over(&mut self, to: KeyspaceId, from: KeyspaceId) {
        debug_assert!(self.checkpoint.is_none() && self.tiered.is_none(), "the entries are known by their keyspace");
        self.clear(to);
        let Some(space) = self.spaces.get_mut(from.index()).and_then(Option::take) else { return };
        debug_assert!(space.backed.is_none());
        self.move_sticky(to, from);
        self.handles_change();
        self.hints.publish(from, None);
        self.hints.publish(to, Some(space.table.directory()));
        if self.spaces.len() <= to.index() {
            self.spaces.resize_with(to.index() + 1, || None);
        }
        self.spaces[to.index()] = Some(space);
    }

    /// Gives the entry to a running checkpoint before it is changed, unless the checkpoint has it; in a backed
    /// keyspace, notes the change.
    #[inline]
    pub(crate) fn hand_over(&mut self, id: KeyspaceId, found: Found) {
        if self.is_watched {
            self.hand_over_to_others(id, found);
        }
    }

    /// [`Self::hand_over`] before a change of the value: it differs from what a tier has from then on.
    #[inline]
    fn before_edit(&mut self, key: &Key<'_>, found: Found) -> Found {
        if !self.is_watched {
            return found;
        }
        self.hand_over_to_others(key.space, found);
        self.note_written(key, None);
        self.leave_tier(key, found)
    }

    /// [`Self::hand_over`] while a checkpoint runs, or a keyspace is backed by rows: a call of its own, so that other
    /// writes save no registers for it.
    #[inline(never)]
    fn hand_over_to_others(&mut self, id: KeyspaceId, found: Found) {
        let space = self.spaces[id.index()].as_ref().expect("the entry is in it");
        if space.backed.is_some() {
            let key = self.entries.key(found.handle).to_vec();
            self.before_change(&self.key_of(id, &key), Some(found));
            return;
        }
        if self.sticky.is_some() {
            let key = self.entries.key(found.handle).to_vec();
            self.open_sticky(id, &key);
        }
        let space = self.spaces[id.index()].as_ref().expect("the entry is in it");
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.hand_over(id, &space.table, &self.heap, &self.entries, found, self.mark);
        }
    }

    /// Before an entry is inserted: as [`Self::hand_over_to_others`].
    #[inline(never)]
    fn before_insert(&mut self, key: &Key<'_>) {
        self.open_sticky(key.space, key.bytes);
        if self.has_backed {
            self.before_change(key, None);
        }
    }

    /// Notes for a tier that a value is about to be changed, or to become that of `entry`, unless that one stays.
    fn note_written(&mut self, key: &Key<'_>, entry: Option<&NewEntry<'_>>) {
        if self.is_on_tier(key.space)
            && let Some(tiered) = &mut self.tiered
        {
            tiered.note_written(key.space, key.bytes, entry.map(|entry| entry.value.len()));
        }
    }

    /// Whether changes are given to a checkpoint, or noted, or may leave a tier, or may stop for a leaf.
    pub(crate) fn look_who_watches(&mut self) {
        let looks_at_all = self.has_backed || self.has_leaf_rows || self.tiered.is_some() || self.sticky.is_some();
        self.is_watched = looks_at_all || self.checkpoint.is_some();
    }

    /// After a change of the entry that was found: its place, its expiration.
    #[inline]
    fn entry_changed(
        &mut self,
        key: &Key<'_>,
        found: Found,
        handle: u32,
        before: Option<UnixMs>,
        after: Option<UnixMs>,
    ) {
        if handle != found.handle {
            self.entry_moved(key, found, handle);
        }
        if before.is_some() || after.is_some() {
            self.expiration_changed(key, before, after);
        }
    }

    /// The table is to lead to the entry where it is now.
    #[inline]
    pub(crate) fn entry_moved(&mut self, key: &Key<'_>, found: Found, handle: u32) {
        self.handles_change();
        let space = self.spaces[key.space.index()].as_mut().expect("the entry is in it");
        space.table.set_handle(&self.heap, found, handle);
    }

    /// Apart, so that changes of entries that never expire save no registers for it.
    #[inline(never)]
    fn expiration_changed(&mut self, key: &Key<'_>, before: Option<UnixMs>, after: Option<UnixMs>) {
        let space = self.spaces[key.space.index()].as_mut().expect("the entry is in it");
        space.expiration_changed(key.hash, before, after, self.now, &self.memory);
    }

    /// See [`Engine::cost_bytes`].
    pub(crate) fn cost_of(&self, handle: u32) -> u64 {
        let times = [self.entries.expiration(handle), self.entries.first_due(handle)];
        let items = times.iter().flatten().count() * ITEM_COST_BYTES;
        (self.entries.cost_bytes(handle) + CELL_COST_BYTES + items) as u64
    }

    /// Visits the entries of a stretch, each some time after its memory was asked for.
    fn visit_ahead(&self, space: &Space, stretch: Stretch, mut visit: impl FnMut(u32)) {
        let mut ahead = space.table.entries_of(&self.heap, stretch);
        ahead.by_ref().take(VISIT_PREFETCH_COUNT).for_each(|found| self.entries.prefetch(found.handle));
        for Found { handle, .. } in space.table.entries_of(&self.heap, stretch) {
            if let Some(found) = ahead.next() {
                self.entries.prefetch(found.handle);
            }
            visit(handle);
        }
    }

    pub(crate) fn insert(&mut self, key: &Key<'_>, new: &NewEntry<'_>) {
        self.handles_change();
        self.ensure_space(key.space);
        let handle = self.entries.create(key.bytes, new, self.stamps.initial());
        let space = self.spaces[key.space.index()].as_mut().expect("just ensured");
        let before = space.table.directory();
        let mut memory = TableMemory { heap: &mut self.heap, entries: &self.entries, hasher: &self.hasher };
        space.table.insert(&mut memory, key.hash, handle, self.checkpoint.is_some(), self.mark);
        if new.expire_at.is_some() {
            space.expiration_changed(key.hash, None, new.expire_at, self.now, &self.memory);
        }
        let first_due = self.entries.first_due(handle);
        if first_due.is_some() {
            space.first_due_changed(key.hash, None, first_due, self.now, &self.memory);
        }
        if space.table.directory() != before {
            self.hints.publish(key.space, Some(space.table.directory()));
        }
    }

    /// Changes the collection that was found, which is not compressed.
    #[inline]
    fn edit_found(&mut self, key: &Key<'_>, found: Found, kind: Type, changes: &[u8]) -> Left {
        if self.is_watched {
            return self.edit_watched(key, found, kind, changes);
        }
        let edit = Edit { kind, changes, limits: &self.limits, hasher: &self.hasher };
        let edited = self.entries.edit(found.handle, key.bytes, &edit);
        self.edited(key, found, edited)
    }

    /// [`Self::edit_found`] while a checkpoint runs, or a keyspace is backed by rows. A tree with leaves that are rows
    /// is edited in a clone, before anything else is changed: the edit may unwind for one that is not in memory.
    #[inline(never)]
    fn edit_watched(&mut self, key: &Key<'_>, found: Found, kind: Type, changes: &[u8]) -> Left {
        let edit = Edit { kind, changes, limits: &self.limits, hasher: &self.hasher };
        let clone = self.entries.edit_clone(found.handle, &edit);
        let found = self.before_edit(key, found);
        let edit = Edit { kind, changes, limits: &self.limits, hasher: &self.hasher };
        let edited = match clone {
            Some((clone, outcome)) => self.entries.put_clone(found.handle, key.bytes, clone, outcome),
            None => self.entries.edit(found.handle, key.bytes, &edit),
        };
        self.edited(key, found, edited)
    }

    /// After an edit of the entry that was found.
    #[inline]
    fn edited(&mut self, key: &Key<'_>, found: Found, edited: EditedEntry) -> Left {
        let EditedEntry { handle, left, first_due: [before, after] } = edited;
        match left.is_any() {
            true => {
                self.entry_changed(key, found, handle, None, None);
                self.first_due_changed(key, before, after);
            }
            false => {
                self.first_due_changed(key, before, None);
                return self.emptied(key, found);
            }
        }
        left
    }

    /// The last element of a collection is gone. One with attributes stays, as if it had just been created.
    #[cold]
    #[inline(never)]
    fn emptied(&mut self, key: &Key<'_>, found: Found) -> Left {
        if !self.entries.has_fields(found.handle) || !self.entries.entry(found.handle).fields.has_attributes() {
            self.remove_entry(key, found);
            return Left::Nothing;
        }
        let handle = self.entries.recode(found.handle, key.bytes, Encoding::PACKED, Value::Bytes(&[]));
        self.entry_changed(key, found, handle, None, None);
        Left::Elements(0)
    }

    /// A string with optional fields has changed.
    #[cold]
    #[inline(never)]
    fn renew_cas_id(&mut self, handle: u32) {
        let Self { entries, cas_ids, .. } = self;
        entries.renew_cas_id(handle, || cas_ids.give());
    }

    /// Stores the collection that changes make from nothing.
    fn insert_edited(&mut self, key: &Key<'_>, kind: Type, changes: &[u8]) -> Left {
        let mut packed = Vec::new();
        let edit = Edit { kind, changes, limits: &self.limits, hasher: &self.hasher };
        let Outcome { body, encoding, left, .. } = edit.apply(Body::Packed((&mut packed).into()), Encoding::PACKED);
        if !left.is_any() {
            return left;
        }
        let value = match &body {
            EditedBody::InPlace | EditedBody::Stored(_) => Value::Bytes(&packed),
            EditedBody::Packed(bytes) => Value::Bytes(bytes),
            EditedBody::Big(tree) => Value::Big(tree),
        };
        self.insert(key, &NewEntry { kind, encoding, value, expire_at: None, fields: ExtFields::NONE });
        left
    }

    /// Remembers what a way has found, so that the key is not looked up again.
    #[inline]
    pub fn follow(&mut self, key: &Key<'_>, way: &Way) {
        if let Some(found) = self.hints.end_of(way) {
            self.recent.note(key, found);
        }
    }

    #[inline(never)]
    fn look_up(&self, key: &Key<'_>) -> LookedUp {
        let table = self.space(key.space).map(|space| &space.table);
        match table.and_then(|table| table.find(&self.heap, &self.entries, key.hash, key.bytes)) {
            Some(found) => LookedUp::Entry(found.handle),
            None if self.is_absent(key) => LookedUp::Absent,
            None => LookedUp::Unknown,
        }
    }

    /// The entry that a way led to, if nothing has moved since.
    pub(crate) fn handle_at(&self, way: &Way) -> Option<u32> {
        self.hints.end_of(way).map(|found| found.handle)
    }

    /// Calls `answer` with what [`Engine::read`] gives. `None`, with nothing done, if that is compressed or takes I/O.
    /// `answer` may decline what is [`Seen::Away`] with `None`, and is called again if memory has a copy. `way` leads
    /// to the key, if one was found before. Inlined, so that the entry need not be put together in memory.
    #[inline]
    pub fn read_as_it_is<R>(
        &mut self,
        key: &Key<'_>,
        way: &Way,
        touch: bool,
        mut answer: impl FnMut(Seen<'_>) -> Option<R>,
    ) -> Option<R> {
        debug_assert_eq!(key.hash, self.hasher.hash(key.bytes), "the key was hashed by another hasher");
        let known = self.hints.end_of(way).map(|found| found.handle);
        let known = known.filter(|handle| self.entries.key_is(*handle, key.bytes));
        let handle = match known {
            Some(handle) => handle,
            None => match self.look_up(key) {
                LookedUp::Entry(handle) => handle,
                LookedUp::Absent => return answer(Seen::Entry(None)),
                LookedUp::Unknown => return None,
            },
        };
        if self.entries.is_compressed(handle) {
            return self.read_in_place(key, handle, touch, answer);
        }
        let entry = match touch {
            true => self.entries.used(handle, |stamp| self.stamps.touched(stamp, &mut self.rng)),
            false => self.entries.entry(handle),
        };
        answer(Seen::Entry(Some(&entry).filter(|entry| !entry.is_expired(self.now))))
    }

    /// Whether there is no entry under a key that is not in the table. False when the answer needs a row.
    #[inline]
    fn is_absent(&self, key: &Key<'_>) -> bool {
        !self.has_backed || !self.may_be_stored(key)
    }

    /// Takes an entry out of table and pages.
    pub(crate) fn remove_entry(&mut self, key: &Key<'_>, found: Found) {
        self.handles_change();
        let before = self.entries.expiration(found.handle);
        self.entries.destroy(found.handle);
        let space = self.spaces[key.space.index()].as_mut().expect("the entry is in it");
        if before.is_some() {
            space.expiration_changed(key.hash, before, None, self.now, &self.memory);
        }
        let directory = space.table.directory();
        space.table.remove(&mut self.heap, key.hash, found, self.mark);
        if space.table.directory() != directory {
            self.hints.publish(key.space, Some(space.table.directory()));
        }
    }

    /// The elements of an entry have changed, or gone: the earliest time one of them had before, and has now.
    #[inline]
    fn first_due_changed(&mut self, key: &Key<'_>, before: Option<UnixMs>, after: Option<UnixMs>) {
        if before != after {
            let space = self.spaces[key.space.index()].as_mut().expect("the entry is in it");
            space.first_due_changed(key.hash, before, after, self.now, &self.memory);
        }
    }

    /// Takes a cleared database apart, one extent: hands its entries to a checkpoint that wants them, frees them.
    /// Returns how many entries it had.
    pub(crate) fn dismantle_some(&mut self) -> usize {
        let Some(detached) = self.detached.last_mut() else { return 0 };
        let Some(from) = detached.from else {
            let detached = self.detached.pop().expect("it was the last");
            detached.table.dismantle_directory(&mut self.heap);
            return 1;
        };
        if detached.in_cut
            && let Some(checkpoint) = &mut self.checkpoint
        {
            let stretch = detached.table.stretch(&self.heap, from);
            let (heap, entries) = (&self.heap, &self.entries);
            checkpoint.hand_over_stretch(detached.id, &detached.table, heap, entries, stretch, self.mark);
        }
        let mut count = 1;
        let entries = &mut self.entries;
        detached.from = detached.table.dismantle(&mut self.heap, from, |handle| {
            entries.destroy(handle);
            count += 1;
        });
        count
    }

    /// Changes a collection that was read, or makes it.
    fn edit_read(&mut self, key: &Key<'_>, kind: Type, changes: &[u8]) -> Result<Edited, Unedited> {
        let Some(found) = self.find(key) else {
            if self.is_watched {
                assert!(self.is_absent(key), "an edit of a collection whose row is not in memory");
                self.before_insert(key);
                self.note_written(key, None);
            }
            return Ok(Edited { before: 0, left: self.insert_edited(key, kind, changes) });
        };
        if self.entries.is_compressed(found.handle) {
            return Err(Unedited::Compressed);
        }
        Ok(Edited { before: 0, left: self.edit_found(key, found, kind, changes) })
    }

    /// Changes a collection that was not read before.
    #[inline]
    fn edit_unread(&mut self, key: &Key<'_>, kind: Type, changes: &[u8], touch: bool) -> Result<Edited, Unedited> {
        let found = self.find(key).ok_or(Unedited::Absent)?;
        let entry = self.entries.entry(found.handle);
        if entry.kind != kind {
            return Err(Unedited::OtherType);
        }
        if entry.is_compressed() {
            return Err(Unedited::Compressed);
        }
        if entry.is_expired(self.now) {
            return Err(Unedited::Expired);
        }
        if kind == Type::Hash && entry.first_due().is_some() {
            return Err(Unedited::Timed);
        }
        let before = value::len(kind, entry.encoding, entry.value.stored());
        if touch {
            self.entries.touch(found.handle, |stamp| self.stamps.touched(stamp, &mut self.rng));
        }
        Ok(Edited { before, left: self.edit_found(key, found, kind, changes) })
    }
}

impl Engine for MemEngine {
    #[inline]
    fn set_time(&mut self, now: UnixMs) {
        if self.now != now {
            self.new_time(now);
        }
    }

    #[inline]
    fn read(&mut self, key: &Key<'_>, touch: bool) -> Result<Option<Entry<'_>>, Fetch> {
        let Some(found) = self.find(key) else { return if self.is_absent(key) { Ok(None) } else { Err(Fetch) } };
        self.recent.note(key, found);
        let entry = match touch {
            true => self.entries.used(found.handle, |stamp| self.stamps.touched(stamp, &mut self.rng)),
            false => self.entries.entry(found.handle),
        };
        if entry.is_expired(self.now) { Ok(None) } else { Ok(Some(entry)) }
    }

    #[inline]
    fn write(&mut self, key: &Key<'_>, entry: &NewEntry<'_>) {
        let Some(found) = self.find(key) else {
            if self.is_watched {
                self.before_insert(key);
                self.note_written(key, Some(entry));
            }
            return self.insert(key, entry);
        };
        if self.is_watched {
            self.hand_over_to_others(key.space, found);
            self.note_written(key, Some(entry));
        }
        let first_due = self.entries.first_due(found.handle);
        if let Some(before) = self.entries.overwrite(found.handle, entry, |stamp| self.stamps.replaced(stamp)) {
            self.entry_changed(key, found, found.handle, before, entry.expire_at);
            return self.first_due_changed(key, first_due, self.entries.first_due(found.handle));
        }
        let before = self.entries.expiration(found.handle);
        let stamp = self.stamps.replaced(self.entries.stamp(found.handle));
        let handle = self.entries.replace(found.handle, key.bytes, entry, stamp);
        self.entry_changed(key, found, handle, before, entry.expire_at);
        self.first_due_changed(key, first_due, self.entries.first_due(handle));
    }

    fn splice(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> bool {
        let found = self.find(key).expect("a splice is for an entry that exists");
        if self.entries.is_compressed(found.handle) {
            let is_away = self.tiered.is_some() && self.entries.entry(found.handle).is_away();
            let is_marked = bytes.is_empty() && !is_away;
            if is_marked {
                let found = self.before_edit(key, found);
                self.entries.mark_edited(found.handle);
            }
            return is_marked;
        }
        let found = self.before_edit(key, found);
        let offset = usize::try_from(offset).expect("a value's length fits the address space");
        let handle = self.entries.splice(found.handle, offset, bytes);
        if self.entries.has_fields(handle) {
            self.renew_cas_id(handle);
        }
        self.entry_changed(key, found, handle, None, None);
        true
    }

    fn recode(&mut self, key: &Key<'_>, encoding: Encoding, value: Value<'_>) {
        self.open_sticky(key.space, key.bytes);
        let found = self.find(key).expect("another form is for an entry that exists");
        // A running checkpoint may as well save the new form, so nothing is handed over.
        let handle = self.entries.recode(found.handle, key.bytes, encoding, value);
        self.entry_changed(key, found, handle, None, None);
    }

    fn reform(&mut self, key: &Key<'_>, change: &mut dyn FnMut(&mut Big)) {
        self.open_sticky(key.space, key.bytes);
        let found = self.find(key).expect("another form of leaves is for a tree that exists");
        let first_due = self.entries.first_due(found.handle);
        if self.entries.reform(found.handle, change) {
            self.note_leaf_rows();
        }
        self.first_due_changed(key, first_due, self.entries.first_due(found.handle));
    }

    #[inline]
    fn edit(
        &mut self,
        key: &Key<'_>,
        kind: Type,
        changes: &[u8],
        known: Known,
        touch: bool,
    ) -> Result<Edited, Unedited> {
        match known {
            Known::Read => self.edit_read(key, kind, changes),
            Known::Nothing => self.edit_unread(key, kind, changes, touch),
        }
    }

    fn set_expiration(&mut self, key: &Key<'_>, at: Option<UnixMs>) -> bool {
        let Some(found) = self.find(key) else { return false };
        if self.is_watched {
            self.hand_over_to_others(key.space, found);
            // A value that was to expire soon has stayed.
            if !self.entries.entry(found.handle).is_away() {
                self.note_written(key, None);
            }
        }
        let before = self.entries.expiration(found.handle);
        let handle = self.entries.set_expiration(found.handle, at);
        self.entry_changed(key, found, handle, before, at);
        true
    }

    fn set_fields(&mut self, key: &Key<'_>, fields: ExtFields<'_>) -> bool {
        let Some(found) = self.find(key) else { return false };
        self.hand_over(key.space, found);
        // Callers do not know the address, so it is kept.
        let tier = self.tiered.as_ref().and_then(|_| self.entries.entry(found.handle).fields.tier());
        let kept = tier.map(|_| Fields { tier, ..fields.get() }.pack());
        let fields = kept.as_ref().map_or(fields, PackedFields::get);
        let handle = self.entries.set_fields(found.handle, fields);
        self.entry_changed(key, found, handle, None, None);
        if fields.is_sticky() {
            self.count_sticky(key);
        }
        true
    }

    fn sticky_stored(&mut self, key: &Key<'_>) {
        self.count_sticky(key);
    }

    fn settle_sticky(&mut self) {
        self.close_sticky();
    }

    fn cas_id(&mut self, key: &Key<'_>) -> Result<Option<u64>, Fetch> {
        let Some(found) = self.find(key) else { return if self.is_absent(key) { Ok(None) } else { Err(Fetch) } };
        let entry = self.entries.entry(found.handle);
        if entry.kind != Type::String || entry.is_expired(self.now) {
            return Ok(None);
        }
        let fields = entry.fields.get();
        if fields.cas != 0 {
            return Ok(Some(fields.cas));
        }
        let cas = self.cas_ids.give();
        let fields = Fields { cas, ..fields }.pack();
        self.open_sticky(key.space, key.bytes);
        // A checkpoint holds no ids, so nothing is handed over.
        let handle = self.entries.set_fields(found.handle, fields.get());
        self.entry_changed(key, found, handle, None, None);
        Ok(Some(cas))
    }

    fn remove(&mut self, key: &Key<'_>) -> bool {
        let Some(found) = self.find(key) else { return self.has_backed && self.remove_unread(key) };
        self.hand_over(key.space, found);
        self.first_due_changed(key, self.entries.first_due(found.handle), None);
        self.remove_entry(key, found);
        true
    }

    fn clear(&mut self, space: KeyspaceId) {
        let Some(mut cleared) = self.spaces.get_mut(space.index()).and_then(Option::take) else { return };
        self.handles_change();
        self.hints.publish(space, None);
        self.clear_sticky(space);
        self.retired.append(&mut cleared.take_wheels());
        let backed = cleared.backed.take();
        let in_cut = self.checkpoint.is_some() && backed.is_none();
        self.detached.push(Detached { id: space, table: cleared.table, from: Some(0), in_cut });
        if let Some(backed) = backed {
            self.clear_backed(space, backed);
        }
    }

    fn len(&self, space: KeyspaceId) -> u64 {
        self.with_away(space, self.space(space).map_or(0, |space| space.table.len()), |away| away.len)
    }

    fn expiring_len(&self, space: KeyspaceId) -> u64 {
        self.with_away(space, self.space(space).map_or(0, |space| space.expiring), |away| away.expiring)
    }

    fn timed_len(&self, space: KeyspaceId) -> u64 {
        self.with_away(space, self.space(space).map_or(0, |space| space.timed), |away| away.timed)
    }

    fn scan(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep {
        let Some(space) = self.space(space) else { return ScanStep { next: None } };
        let stretch = space.table.stretch(&self.heap, from);
        self.visit_ahead(space, stretch, |handle| visit(&self.entries.entry(handle)));
        ScanStep { next: stretch.next }
    }

    fn survey(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>, u64)) -> ScanStep {
        let Some(space) = self.space(space) else { return ScanStep { next: None } };
        let stretch = space.table.stretch(&self.heap, from);
        self.visit_ahead(space, stretch, |handle| {
            let entry = self.entries.entry(handle);
            // Extents have merged since the last step, and the front of this one was visited then.
            if stretch.first >= from || self.hasher.hash(entry.key) >= from {
                visit(&entry, self.cost_of(handle));
            }
        });
        ScanStep { next: stretch.next }
    }

    fn changed_names(
        &self,
        space: KeyspaceId,
        shard: ShardId,
        range: &Names,
        limit: usize,
        changed: &mut ChangedNames,
    ) -> bool {
        self.changed_names_of(space, shard, (range, limit), changed)
    }

    fn ordered_rows(&self, space: KeyspaceId) -> Option<&Arc<dyn Rows>> {
        self.rows_in_order(space)
    }

    fn random_entry(&mut self, space: KeyspaceId) -> Option<Entry<'_>> {
        if self.has_backed {
            let is_empty = self.space(space).is_none_or(|space| space.table.len() == 0);
            // What was picked may be gone, where counts are guessed.
            if (is_empty || self.picks_stored(space)) && self.draws_stored(space) {
                return self.drawn();
            }
        }
        let space = self.spaces.get(space.index())?.as_ref()?;
        let handle = space.table.random(&self.heap, &mut self.rng)?;
        Some(self.entries.entry(handle))
    }

    fn random_expiration(&mut self, space: KeyspaceId) -> Option<UnixMs> {
        let Self { spaces, heap, entries, rng, .. } = self;
        let space = spaces.get(space.index())?.as_ref()?;
        let item = space.wheel()?.random(rng)?;
        let mut found = None;
        space.table.find_item(heap, item, |handle| found = entries.expiration(handle).or(found));
        found
    }

    fn want(&mut self, key: &Key<'_>) -> Wanted {
        if self.is_on_tier(key.space) { self.want_away(key) } else { self.want_row(key) }
    }

    fn install(&mut self, key: &Key<'_>, ticket: Ticket, row: Option<&[u8]>) -> bool {
        match self.is_on_tier(key.space) {
            true => self.install_away(key, ticket, row),
            false => self.install_row(key, ticket, row),
        }
    }

    fn withdraw(&mut self, key: &Key<'_>, ticket: Ticket) {
        self.withdraw_row(key, ticket);
    }

    fn release(&mut self, key: &Key<'_>) {
        match self.is_on_tier(key.space) {
            true => self.release_away(key),
            false => self.release_row(key),
        }
    }

    fn scan_rows(
        &mut self,
        space: KeyspaceId,
        from: u64,
        since: Option<u64>,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> Option<u64> {
        self.scan_stored(space, from, since, visit)
    }

    fn loads(&self, space: KeyspaceId) -> u64 {
        self.loads_of(space)
    }

    fn is_len_exact(&self, space: KeyspaceId) -> bool {
        self.is_count_exact(space)
    }

    fn due(&mut self, limit: usize, visit: &mut dyn FnMut(Key<'_>, Due)) -> usize {
        let (mut given, mut looks) = (0, limit.saturating_mul(DUE_LOOKS_PER_KEY));
        for _ in 0..self.spaces.len() {
            self.looking.space = (self.looking.space + 1) % self.spaces.len();
            given += self.due_in(KeyspaceId(self.looking.space as u32), limit - given, &mut looks, visit);
            if given >= limit {
                break;
            }
        }
        if self.has_backed && given < limit {
            given += self.due_stored(limit - given, &mut |key| visit(key, Due::Entry));
        }
        given
    }

    fn clean(&mut self, budget: usize) -> bool {
        self.tell_size();
        self.close_sticky();
        self.clean_some(budget)
    }

    fn idle_seconds(&self, stamp: u32) -> u64 {
        self.stamps.idle_seconds(stamp)
    }

    fn frequency(&self, stamp: u32) -> u8 {
        self.stamps.frequency(stamp)
    }

    fn set_usage(&mut self, key: &Key<'_>, usage: Usage) {
        if let Some(found) = self.find(key) {
            let stamp = self.stamps.of_usage(usage);
            self.entries.used(found.handle, |_| stamp);
        }
    }

    fn cost_bytes(&mut self, key: &Key<'_>) -> Option<u64> {
        let found = self.find(key)?;
        Some(self.cost_of(found.handle))
    }

    fn begin_checkpoint(&mut self, sink: Box<dyn EntrySink>) {
        self.start_walk(sink);
    }

    fn walk_checkpoint(&mut self, budget: usize) -> WalkProgress {
        self.walk(budget)
    }

    fn end_checkpoint(&mut self) -> Option<Box<dyn EntrySink>> {
        self.end_walk()
    }
}

impl Drop for MemEngine {
    /// Values outside the pages are dropped one by one; pages go with their region.
    fn drop(&mut self) {
        if self.entries.large_bytes() == 0 {
            return;
        }
        let spaces = self.spaces.iter().flatten().map(|space| (&space.table, Some(0)));
        let detached = self.detached.iter().map(|detached| (&detached.table, detached.from));
        for (table, mut from) in spaces.chain(detached) {
            while let Some(bound) = from {
                let stretch = table.stretch(&self.heap, bound);
                table.entries_of(&self.heap, stretch).for_each(|found| self.entries.destroy(found.handle));
                from = stretch.next;
            }
        }
    }
}

// What the structure says of itself.
const _: () = assert!(std::mem::offset_of!(MemEngine, entries) <= 40);
