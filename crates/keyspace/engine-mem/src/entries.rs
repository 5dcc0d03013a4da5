//! The entries of a shard: slots of the byte region, addressed by handles that only table cells keep.
//!
//! N1. Handles given to this module name live entries of it (the table holds no others), so their slots obey the
//!     layout's invariants.

use crate::classes::{ENTRY_BYTES_MAX, GRANULE_BYTES, SLOT_GRANULES, is_roomy, roomy_class_of, slot_bytes};
use crate::edit::{Edit, EditedBody, EditedEntry, Outcome};
use crate::layout::{self, Outside, Shape};
use crate::memory::{MemoryKind, MemoryUse};
use crate::pages::{Backing, Pages};
use crate::prefetch::prefetch;
use crate::region::Bytes;
use base::UnixMs;
use engine::{Encoding, Entry, ExtFields, NewEntry, SharedBig, SharedBytes, TierAddress, Type, Value, ValueTier};
use std::sync::Arc;
use value::{Big, Body, Buffer, reaper, tree};

/// Overhead of a shared value in bytes: the vector, two counters, two allocation headers.
const SHARED_OVERHEAD_BYTES: usize = size_of::<Vec<u8>>() + 16 + 16;

/// A value that grows in place gets this share of its length as room to grow, at most [`ROOM_BYTES_MAX`].
const ROOM_SHARE: usize = 8;
const ROOM_BYTES_MAX: usize = 1 << 20;

impl Backing for Bytes {
    const GRANULE_BYTES: usize = GRANULE_BYTES;

    fn commit(&mut self, bytes: usize) {
        Bytes::commit(self, bytes);
    }

    fn discard(&mut self, start: usize, length: usize) {
        Bytes::discard(self, start, length);
    }

    fn filled(&mut self, page: u32) {
        self.pages().filled(page as usize);
    }

    fn opened(&mut self, page: u32) {
        self.pages().opened(page as usize);
    }

    fn mark_free(&mut self, handle: u32, link: u16) {
        layout::mark_free(self.tail_mut(byte_of(handle)), link);
    }

    fn free_link(&self, handle: u32) -> Option<u16> {
        layout::free_link(self.tail(byte_of(handle)))
    }
}

#[inline]
fn byte_of(handle: u32) -> usize {
    handle as usize * GRANULE_BYTES
}

/// What entries are moved out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compacted {
    /// Pages with free slots: [`Pages::start_emptying`].
    SparsePages,
    /// The last lines of classes that have few entries: [`Pages::start_squeezing`].
    LastLines,
}

/// All entries of a shard. The pages come first, so that they lie in the cache line that a read needs.
#[repr(C)]
pub struct Entries {
    pages: Pages<Bytes>,
    memory: Arc<MemoryUse>,
    large_bytes: usize,
    /// Where packed collections are edited, empty in between.
    scratch: Vec<u8>,
    /// Counts the entries whose values lie on it.
    tier: Option<Arc<dyn ValueTier>>,
}

/// Longest buffer for edits that is kept for the next edit.
const SCRATCH_BYTES_MAX: usize = 64 << 10;

impl Entries {
    /// No entries yet.
    pub fn new(region: Bytes, memory: Arc<MemoryUse>) -> Self {
        let pages = Pages::new(region, &SLOT_GRANULES, Arc::clone(&memory), MemoryKind::Values);
        Self { pages, memory, large_bytes: 0, scratch: Vec::new(), tier: None }
    }

    /// The pages.
    pub fn pages(&self) -> &Pages<Bytes> {
        &self.pages
    }

    /// Has all classes looked at again for last lines to be given back.
    pub fn squeeze_anew(&mut self) {
        self.pages.squeeze_anew();
    }

    /// Leaves a page that is being emptied as it is.
    pub fn stop_compacting(&mut self) {
        self.pages.settle_all();
    }

    /// Moves one entry out of a page, choosing one first if need be. `relocate(entries, from, to)` points the entry's
    /// cell to its copy. False when there is no such page; moving may end a page without moving an entry.
    pub fn compact_one(&mut self, what: Compacted, relocate: impl FnOnce(&Self, u32, u32)) -> bool {
        let pages = &mut self.pages;
        let is_begun = pages.is_emptying()
            || match what {
                Compacted::SparsePages => pages.start_emptying(),
                Compacted::LastLines => pages.start_squeezing(),
            };
        if !is_begun {
            return false;
        }
        let class_of = |bytes: &Bytes, handle| layout::movable_class(bytes.tail(byte_of(handle)));
        if let Some((from, to)) = pages.next_move(class_of) {
            // The smaller slot has room for the entry as well.
            let length = slot_bytes(pages.class(from).min(pages.class(to)));
            self.pages.backing_mut().copy(byte_of(from), byte_of(to), length);
            relocate(self, from, to);
            self.pages.free(from);
        }
        true
    }

    /// Starts loading the entry's first cache line.
    #[inline]
    pub fn prefetch(&self, handle: u32) {
        prefetch(self.pages.backing().pages().at(byte_of(handle)).addr());
    }

    #[inline]
    fn slot(&self, handle: u32) -> &[u8] {
        self.pages.backing().tail(byte_of(handle))
    }

    #[inline]
    fn slot_mut(&mut self, handle: u32) -> &mut [u8] {
        self.pages.backing_mut().tail_mut(byte_of(handle))
    }

    /// Stores a new entry.
    pub fn create(&mut self, key: &[u8], new: &NewEntry<'_>, stamp: u32) -> u32 {
        let shape = Shape::for_entry(key, new);
        let handle = self.allocate(shape, new.kind);
        self.fill(handle, shape, key, new, stamp);
        handle
    }

    /// A slot for a new entry: strings may get one that is a little larger.
    #[inline]
    fn allocate(&mut self, shape: Shape, kind: Type) -> u32 {
        match layout::is_movable(shape, kind) {
            true => self.pages.allocate_near(shape.class()),
            false => self.pages.allocate(shape.class()),
        }
    }

    fn fill(&mut self, handle: u32, shape: Shape, key: &[u8], new: &NewEntry<'_>, stamp: u32) {
        if shape.is_outside() {
            let value = Outside::of(new.value);
            self.recharge(0, outside_cost(&value));
            layout::write_outside(self.slot_mut(handle), shape, key, value, new, stamp);
        } else {
            layout::write(self.slot_mut(handle), shape, key, new, stamp);
        }
        if new.encoding.is_compressed() || shape.has_fields() {
            self.count_in(handle);
        }
    }

    /// Counts a value that has come: if it is compressed, and where it lies on a tier.
    #[cold]
    #[inline(never)]
    fn count_in(&self, handle: u32) {
        let entry = self.entry(handle);
        self.memory.compressed.add(&entry);
        self.retain(entry.key, entry.fields.tier());
    }

    /// Counts a value that goes.
    #[cold]
    #[inline(never)]
    fn count_out(&self, handle: u32) {
        let entry = self.entry(handle);
        self.memory.compressed.sub(&entry);
        self.release(entry.key, entry.fields.tier());
    }

    fn retain(&self, key: &[u8], address: Option<TierAddress>) {
        if let (Some(tier), Some(address)) = (&self.tier, address) {
            tier.retain(key, address);
        }
    }

    fn release(&self, key: &[u8], address: Option<TierAddress>) {
        if let (Some(tier), Some(address)) = (&self.tier, address) {
            tier.release(key, address);
        }
    }

    /// Counts entries with an address at this tier from now on.
    pub fn set_tier(&mut self, tier: Arc<dyn ValueTier>) {
        self.tier = Some(tier);
    }

    /// Replaces an entry where it lies by one of the same shape, the usual case; see [`layout::overwrite`].
    #[inline]
    pub fn overwrite(
        &mut self,
        handle: u32,
        new: &NewEntry<'_>,
        restamp: impl FnOnce(u32) -> u32,
    ) -> Option<Option<UnixMs>> {
        layout::overwrite(self.slot_mut(handle), new, restamp)
    }

    /// Replaces an entry by another under the same key; in place when it fits the same class. Returns its handle.
    pub fn replace(&mut self, handle: u32, key: &[u8], new: &NewEntry<'_>, stamp: u32) -> u32 {
        self.drop_value(handle);
        let shape = Shape::for_entry(key, new);
        let class = shape.class();
        if class == self.pages.class(handle) {
            self.fill(handle, shape, key, new, stamp);
            return handle;
        }
        let moved = self.allocate(shape, new.kind);
        self.fill(moved, shape, key, new, stamp);
        self.pages.free(handle);
        moved
    }

    /// Removes an entry.
    pub fn destroy(&mut self, handle: u32) {
        self.drop_value(handle);
        self.pages.free(handle);
    }

    /// The value of an entry goes: what it takes outside of the pages, and what is counted of it.
    fn drop_value(&mut self, handle: u32) {
        if layout::is_counted(layout::word(self.slot(handle))) {
            self.count_out(handle);
        }
        let slot = self.slot_mut(handle);
        let shape = Shape::of(slot);
        if let Some((value, key)) = layout::take_outside(slot, shape) {
            self.recharge(outside_cost(&value), 0);
            match value {
                Outside::Bytes(bytes) => reaper::free_bytes(bytes),
                // Dropping a tree sends it to the reaper.
                Outside::Big(big) => drop(big),
            }
            key.into_iter().for_each(reaper::free_bytes);
        }
    }

    /// The entry.
    #[inline]
    pub fn entry(&self, handle: u32) -> Entry<'_> {
        layout::entry(self.slot(handle))
    }

    /// The entry with the access stamp that it had, which is renewed; an equal one costs no write.
    #[inline]
    pub fn used(&mut self, handle: u32, renew: impl FnOnce(u32) -> u32) -> Entry<'_> {
        let before = self.touch(handle, renew);
        Entry { stamp: before, ..self.entry(handle) }
    }

    /// Renews the entry's access stamp, and gives the one that it had.
    #[inline]
    pub fn touch(&mut self, handle: u32, renew: impl FnOnce(u32) -> u32) -> u32 {
        let slot = self.slot_mut(handle);
        let before = layout::stamp_of(layout::word(slot));
        let stamp = renew(before);
        if stamp != before {
            layout::set_stamp(slot, stamp);
        }
        before
    }

    /// Whether the entry is stored under this key.
    #[inline]
    pub fn key_is(&self, handle: u32, key: &[u8]) -> bool {
        layout::key_is(self.slot(handle), key)
    }

    /// The entry's key.
    pub fn key(&self, handle: u32) -> &[u8] {
        let slot = self.slot(handle);
        layout::key(slot, Shape::of(slot))
    }

    /// When the entry expires.
    pub fn expiration(&self, handle: u32) -> Option<UnixMs> {
        let slot = self.slot(handle);
        layout::expiration(slot, Shape::of(slot))
    }

    /// The earliest time at which an element of the entry is due; `None` when none has a time.
    #[inline]
    pub fn first_due(&self, handle: u32) -> Option<UnixMs> {
        let slot = self.slot(handle);
        match layout::kind_of(layout::word(slot)) {
            (Type::Hash, encoding) if encoding != Encoding::PACKED => layout::entry(slot).first_due(),
            _ => None,
        }
    }

    /// When something of the entry is due: itself, or an element.
    pub fn due_at(&self, handle: u32) -> Option<UnixMs> {
        self.expiration(handle).into_iter().chain(self.first_due(handle)).min()
    }

    /// The entry's access stamp.
    #[inline]
    pub fn stamp(&self, handle: u32) -> u32 {
        layout::stamp_of(layout::word(self.slot(handle)))
    }

    /// Sets or clears the expiration. Returns the entry's handle from now on.
    pub fn set_expiration(&mut self, handle: u32, at: Option<UnixMs>) -> u32 {
        let shape = Shape::of(self.slot(handle));
        let target = shape.with_expiration(at.is_some());
        if target.is_outside() != shape.is_outside() {
            // The eight bytes more are too much for the pages.
            let entry = self.entry(handle);
            let (key, value, stamp) = (entry.key.to_vec(), entry.value.bytes().to_vec(), entry.stamp);
            let (NewEntry { kind, encoding, .. }, fields) = (entry.as_new(), entry.fields.to_owned());
            let (value, fields) = (Value::Bytes(&value), fields.get());
            let new = NewEntry { kind, encoding, value, expire_at: at, fields };
            return self.replace(handle, &key, &new, stamp);
        }
        let handle = self.reshape(handle, target);
        if let Some(at) = at {
            let slot = self.slot_mut(handle);
            let shape = Shape::of(slot);
            layout::set_expiration(slot, shape, at);
        }
        handle
    }

    /// Replaces the optional fields. Returns the entry's handle from now on.
    pub fn set_fields(&mut self, handle: u32, fields: ExtFields<'_>) -> u32 {
        let shape = Shape::of(self.slot(handle));
        let target = shape.with_fields_len(fields.packed().len());
        if target.is_outside() != shape.is_outside() {
            // The fields are too much for the pages.
            let entry = self.entry(handle);
            let (key, value, stamp) = (entry.key.to_vec(), Outside::of(entry.value), entry.stamp);
            let new = NewEntry { value: value.value(), fields, ..entry.as_new() };
            return self.replace(handle, &key, &new, stamp);
        }
        let before = self.entry(handle).fields.tier();
        let handle = self.reshape(handle, target);
        layout::write_fields(self.slot_mut(handle), target, fields);
        if before != fields.tier() {
            let key = self.entry(handle).key;
            self.retain(key, fields.tier());
            self.release(key, before);
        }
        handle
    }

    /// Whether the entry has optional fields.
    #[inline]
    pub fn has_fields(&self, handle: u32) -> bool {
        layout::has_fields(layout::word(self.slot(handle)))
    }

    /// Puts another CAS id in the place of the one that the entry has, if it has one.
    pub fn renew_cas_id(&mut self, handle: u32, give: impl FnOnce() -> u64) {
        let slot = self.slot_mut(handle);
        let shape = Shape::of(slot);
        let (at, _) = shape.fields_place();
        if let Some(place) = layout::fields(slot, shape).cas_at() {
            slot[at + place..][..size_of::<u64>()].copy_from_slice(&give().to_le_bytes());
        }
    }

    /// Whether the entry is stored compressed: known by the header alone.
    #[inline]
    pub fn is_compressed(&self, handle: u32) -> bool {
        layout::is_compressed(layout::word(self.slot(handle)))
    }

    /// Marks a compressed string as edited.
    pub fn mark_edited(&mut self, handle: u32) {
        layout::set_encoding(self.slot_mut(handle), Encoding::EDITED.compressed());
    }

    /// Stores the same value in another form. Returns the entry's handle from now on.
    pub fn recode(&mut self, handle: u32, key: &[u8], encoding: Encoding, value: Value<'_>) -> u32 {
        let Entry { kind, expire_at, stamp, fields, .. } = self.entry(handle);
        let fields = fields.to_owned();
        let new = NewEntry { kind, encoding, value, expire_at, fields: fields.get() };
        self.replace(handle, key, &new, stamp)
    }

    /// Lets `change` bring leaves of a tree into another form. True when they may be rows now.
    pub fn reform(&mut self, handle: u32, change: &mut dyn FnMut(&mut Big)) -> bool {
        let big = SharedBig::make_mut(layout::outside_big_mut(self.slot_mut(handle)));
        let before = big_cost(big);
        change(big);
        let (after, may_have_rows) = (big_cost(big), big.may_have_rows());
        self.recharge(before, after);
        may_have_rows
    }

    /// Overwrites bytes of the value, growing it zero-filled as needed. Returns the entry's handle from now on.
    pub fn splice(&mut self, handle: u32, offset: usize, bytes: &[u8]) -> u32 {
        let shape = Shape::of(self.slot(handle));
        let end = offset.checked_add(bytes.len()).expect("a value's length fits the address space");
        let handle = if shape.is_outside() {
            self.splice_outside(handle, offset, bytes);
            handle
        } else {
            let target = shape.with_value_len(shape.value_len().max(end));
            if target.is_outside() {
                self.move_outside(handle, offset, bytes)
            } else {
                self.splice_inside(handle, shape, target, offset, bytes)
            }
        };
        layout::set_encoding(self.slot_mut(handle), Encoding::EDITED);
        handle
    }

    fn splice_inside(&mut self, handle: u32, shape: Shape, target: Shape, offset: usize, bytes: &[u8]) -> u32 {
        let handle = self.reshape(handle, target);
        let value_at = target.value_at();
        let value = &mut self.slot_mut(handle)[value_at..][..target.value_len()];
        if offset > shape.value_len() {
            value[shape.value_len()..offset].fill(0);
        }
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        handle
    }

    fn splice_outside(&mut self, handle: u32, offset: usize, bytes: &[u8]) {
        let slot = self.slot_mut(handle);
        let value = layout::outside_value_mut(slot);
        let charged = shared_cost(value);
        edit(own(value), offset, bytes);
        let cost = shared_cost(value);
        self.recharge(charged, cost);
    }

    /// A value that has outgrown the pages becomes an allocation of its own.
    fn move_outside(&mut self, handle: u32, offset: usize, bytes: &[u8]) -> u32 {
        let entry = self.entry(handle);
        let key = entry.key.to_vec();
        let mut value = Vec::with_capacity(with_room(entry.value.len().max(offset + bytes.len())));
        value.extend_from_slice(entry.value.bytes());
        edit(&mut value, offset, bytes);
        let shared = SharedBytes::new(value);
        let (NewEntry { kind, encoding, expire_at, .. }, stamp) = (entry.as_new(), entry.stamp);
        let fields = entry.fields.to_owned();
        let new = NewEntry { kind, encoding, value: Value::Shared(&shared), expire_at, fields: fields.get() };
        self.replace(handle, &key, &new, stamp)
    }

    /// Changes a collection.
    #[inline]
    pub fn edit(&mut self, handle: u32, key: &[u8], edit: &Edit<'_>) -> EditedEntry {
        match layout::is_outside(self.slot(handle)) {
            false => self.edit_inside(handle, key, edit),
            true => self.edit_outside(handle, key, edit),
        }
    }

    /// A buffer in the page is edited where it is, in the room of its slot, and as a copy once it outgrows that.
    fn edit_inside(&mut self, handle: u32, key: &[u8], edit: &Edit<'_>) -> EditedEntry {
        let mut scratch = std::mem::take(&mut self.scratch);
        let class = self.pages.class(handle);
        let slot = &mut self.slot_mut(handle)[..slot_bytes(class)];
        let (_, encoding) = layout::kind_of(layout::word(slot));
        let shape = Shape::of(slot);
        let (room, len) = layout::value_with_room(slot, shape);
        let edited = edit.apply(Body::Packed(Buffer::Stored { room, len, spare: &mut scratch }), encoding);
        if let EditedBody::Stored(len) = edited.body
            && edited.left.is_any()
        {
            if layout::resize_value(slot, shape, (len, edited.encoding), |size| is_roomy(class, size)) {
                self.keep_scratch(scratch);
                return EditedEntry { handle, left: edited.left, first_due: edited.first_due };
            }
            scratch.extend_from_slice(&layout::value_with_room(slot, shape).0[..len]);
        }
        let handle = match edited.body {
            _ if !edited.left.is_any() => handle,
            EditedBody::InPlace | EditedBody::Stored(_) => self.rewrite(handle, key, edited.encoding, &scratch),
            EditedBody::Packed(bytes) => self.rewrite(handle, key, edited.encoding, &bytes),
            EditedBody::Big(big) => self.recode(handle, key, edited.encoding, Value::Big(&big)),
        };
        self.keep_scratch(scratch);
        EditedEntry { handle, left: edited.left, first_due: edited.first_due }
    }

    /// A tree, or a buffer that is an allocation of its own, is edited where it is.
    fn edit_outside(&mut self, handle: u32, key: &[u8], edit: &Edit<'_>) -> EditedEntry {
        let slot = self.slot_mut(handle);
        let (_, encoding) = layout::kind_of(layout::word(slot));
        let (before, edited, after) = if encoding == Encoding::BIG {
            let big = SharedBig::make_mut(layout::outside_big_mut(slot));
            let before = big_cost(big);
            let edited = edit.apply(Body::Big(big), encoding);
            (before, edited, big_cost(big))
        } else {
            let shared = layout::outside_value_mut(slot);
            let before = shared_cost(shared);
            let edited = edit.apply(Body::Packed(own(shared).into()), encoding);
            (before, edited, shared_cost(shared))
        };
        self.recharge(before, after);
        self.outside_edited(handle, key, encoding, edited)
    }

    /// What an edit makes of a clone of a tree with leaves that are rows; `None` for all other entries.
    pub fn edit_clone(&self, handle: u32, edit: &Edit<'_>) -> Option<(Big, Outcome)> {
        let Value::Big(tree) = self.entry(handle).value else { return None };
        let mut clone = tree.may_have_rows().then(|| Big::clone(tree))?;
        let outcome = edit.apply(Body::Big(&mut clone), Encoding::BIG);
        Some((clone, outcome))
    }

    /// Puts the clone that was edited in the place of the tree.
    pub fn put_clone(&mut self, handle: u32, key: &[u8], clone: Big, outcome: Outcome) -> EditedEntry {
        let tree = SharedBig::make_mut(layout::outside_big_mut(self.slot_mut(handle)));
        let before = big_cost(tree);
        *tree = clone;
        let after = big_cost(tree);
        self.recharge(before, after);
        self.outside_edited(handle, key, Encoding::BIG, outcome)
    }

    /// After an edit of a value outside, which had this encoding.
    #[inline]
    fn outside_edited(&mut self, handle: u32, key: &[u8], encoding: Encoding, edited: Outcome) -> EditedEntry {
        let handle = match edited.body {
            _ if !edited.left.is_any() => handle,
            EditedBody::InPlace | EditedBody::Stored(_) => {
                if edited.encoding != encoding {
                    layout::set_encoding(self.slot_mut(handle), edited.encoding);
                }
                handle
            }
            EditedBody::Packed(bytes) => self.recode(handle, key, edited.encoding, Value::Bytes(&bytes)),
            EditedBody::Big(big) => self.recode(handle, key, edited.encoding, Value::Big(&big)),
        };
        EditedEntry { handle, left: edited.left, first_due: edited.first_due }
    }

    /// Replaces the value by what an edit has made of it: in place if it has room there, else with room for the next
    /// edits.
    fn rewrite(&mut self, handle: u32, key: &[u8], encoding: Encoding, value: &[u8]) -> u32 {
        let class = self.pages.class(handle);
        let fits = |size| size <= ENTRY_BYTES_MAX && is_roomy(class, size);
        if layout::rewrite(self.slot_mut(handle), value, encoding, fits) {
            return handle;
        }
        let Entry { kind, expire_at, stamp, fields, .. } = self.entry(handle);
        let new = NewEntry { kind, encoding, value: Value::Bytes(value), expire_at, fields: ExtFields::NONE };
        match fields.is_none() {
            true => self.replace_with_room(handle, key, &new, stamp),
            false => self.replace_with_fields(handle, key, &new, stamp),
        }
    }

    /// [`Self::replace_with_room`] that keeps the optional fields.
    #[cold]
    #[inline(never)]
    fn replace_with_fields(&mut self, handle: u32, key: &[u8], new: &NewEntry<'_>, stamp: u32) -> u32 {
        let fields = self.entry(handle).fields.to_owned();
        self.replace_with_room(handle, key, &NewEntry { fields: fields.get(), ..*new }, stamp)
    }

    /// [`Self::replace`] with room for edits. The value that goes is no allocation of its own. Always inlined: without
    /// fields much of it is known.
    #[inline(always)]
    fn replace_with_room(&mut self, handle: u32, key: &[u8], new: &NewEntry<'_>, stamp: u32) -> u32 {
        let shape = Shape::for_entry(key, new);
        if shape.is_outside() {
            return self.replace(handle, key, new, stamp);
        }
        if is_roomy(self.pages.class(handle), shape.size()) {
            layout::write(self.slot_mut(handle), shape, key, new, stamp);
            return handle;
        }
        let moved = self.pages.allocate(roomy_class_of(shape.size()));
        layout::write(self.slot_mut(moved), shape, key, new, stamp);
        self.pages.free(handle);
        moved
    }

    /// Keeps the memory of a buffer for the next edit, unless it is more than most edits need.
    fn keep_scratch(&mut self, mut scratch: Vec<u8>) {
        if scratch.capacity() <= SCRATCH_BYTES_MAX {
            scratch.clear();
            self.scratch = scratch;
        }
    }

    /// Gives the entry another layout, its key and value bytes unchanged (what a longer value adds is undefined).
    /// Optional fields of another length are still to be written. Returns its handle from now on.
    fn reshape(&mut self, handle: u32, target: Shape) -> u32 {
        let slot = self.slot(handle);
        let shape = Shape::of(slot);
        if shape == target {
            return handle;
        }
        let (word, expiration) = (layout::word(slot), layout::expiration(slot, shape));
        let moved = self.pages.allocate(target.class());
        let (from, to) = (byte_of(handle), byte_of(moved));
        let value_len = shape.value_len().min(target.value_len());
        let region = self.pages.backing_mut();
        layout::write_reshaped(region.tail_mut(to), target, word);
        let same_fields = shape.fields_place().1 == target.fields_place().1;
        let no_fields = (shape.fields_place().0, 0);
        let places = [
            (if same_fields { shape.fields_place() } else { no_fields }, target.fields_place()),
            (layout::key_place(shape), layout::key_place(target)),
            (layout::outside_place(shape), layout::outside_place(target)),
            ((shape.value_at(), value_len), (target.value_at(), value_len)),
        ];
        for ((old, length), (new, _)) in places {
            region.copy(from + old, to + new, length);
        }
        if let Some(at) = expiration
            && layout::expiration(self.slot(moved), target).is_some()
        {
            layout::set_expiration(self.slot_mut(moved), target, at);
        }
        // The references outside have moved along, so the old slot has nothing to drop.
        self.pages.free(handle);
        moved
    }

    /// Bytes the entry's own allocations take.
    pub fn cost_bytes(&self, handle: u32) -> usize {
        let outside = match self.entry(handle).value {
            Value::Bytes(_) => 0,
            Value::Shared(shared) => shared_cost(shared),
            Value::Big(big) => big_cost(big),
        };
        slot_bytes(self.pages.class(handle)) + outside
    }

    fn recharge(&mut self, before: usize, after: usize) {
        self.large_bytes = self.large_bytes - before + after;
        match after.checked_sub(before) {
            // Most edits of a tree change no allocation: the counter is shared by all shards.
            Some(0) => {}
            Some(more) => self.memory.add(MemoryKind::Large, more),
            None => self.memory.sub(MemoryKind::Large, before - after),
        }
    }

    /// Bytes of values that are allocations of their own.
    pub fn large_bytes(&self) -> usize {
        self.large_bytes
    }
}

fn shared_cost(value: &SharedBytes) -> usize {
    value.capacity() + SHARED_OVERHEAD_BYTES
}

#[inline]
fn big_cost(big: &Big) -> usize {
    big.memory_bytes() + tree::allocated(size_of::<Big>() + tree::COUNTER_BYTES)
}

fn outside_cost(value: &Outside) -> usize {
    match value {
        Outside::Bytes(bytes) => shared_cost(bytes),
        Outside::Big(big) => big_cost(big),
    }
}

fn with_room(length: usize) -> usize {
    length + (length / ROOM_SHARE).min(ROOM_BYTES_MAX)
}

/// The bytes for this owner alone: copied first when a reply or a checkpoint still shares them.
fn own(value: &mut SharedBytes) -> &mut Vec<u8> {
    SharedBytes::make_mut(value)
}

fn edit(value: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if end > value.len() {
        if end > value.capacity() {
            value.reserve_exact(with_room(end) - value.len());
        }
        value.resize(end, 0);
    }
    value[offset..end].copy_from_slice(bytes);
}

const _: () = assert!(ENTRY_BYTES_MAX <= u16::MAX as usize, "the length of an inside value is two bytes");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use base::Rng;
    use base::hash::KeyHasher;
    use engine::fields::PACKED_BYTES_MAX;
    use engine::{Fields, Type};
    use value::list::{Change, End, View};
    use value::{Limits, Stored};

    fn entries() -> (Entries, Arc<MemoryUse>) {
        let memory = Arc::new(MemoryUse::default());
        let arena = Arena::reserve(1, &[1 << 30, 2 << 20]).unwrap();
        (Entries::new(Bytes::new(arena.region(0)), Arc::clone(&memory)), memory)
    }

    fn new(value: Value<'_>, expire_at: Option<UnixMs>) -> NewEntry<'_> {
        NewEntry { kind: Type::String, encoding: Encoding::DECIMAL, value, expire_at, fields: ExtFields::NONE }
    }

    /// Every layout gives back what was put in: keys and values of lengths around each border, with and without
    /// expiration, before and after the expiration is set, changed and taken away.
    #[test]
    fn every_layout_holds_what_is_written() {
        let (mut entries, memory) = entries();
        let keys: &[usize] = if cfg!(miri) { &[0, 255, 256, 4097] } else { &[0, 1, 16, 255, 256, 4096, 4097, 9000] };
        let values: &[usize] =
            if cfg!(miri) { &[0, 255, 256, 8177] } else { &[0, 1, 16, 255, 256, 3000, 8100, 8177, 8192, 8193, 20_000] };
        for &key_len in keys {
            for &value_len in values {
                let mut key = vec![7; key_len];
                let mut value = vec![8; value_len];
                // Only the ends differ from the middle: under Miri every byte costs.
                key.last_mut().into_iter().for_each(|last| *last = 1);
                value.last_mut().into_iter().for_each(|last| *last = 2);
                for first in [None, Some(77)] {
                    let mut handle = entries.create(&key, &new(Value::Bytes(&value), first), 0xABCDE);
                    for expire_at in [first, Some(i64::MAX), Some(-5), None, Some(1), Some(2)] {
                        handle = entries.set_expiration(handle, expire_at);
                        let entry = entries.entry(handle);
                        assert_eq!(
                            (entry.key, entry.value.bytes()),
                            (&key[..], &value[..]),
                            "{key_len} and {value_len}"
                        );
                        assert_eq!(
                            (entry.expire_at, entry.stamp, entry.encoding),
                            (expire_at, 0xABCDE, Encoding::DECIMAL)
                        );
                        assert!(entries.key_is(handle, &key) && !entries.key_is(handle, b"another"));
                    }
                    entries.used(handle, |_| 5);
                    assert_eq!((entries.stamp(handle), entries.expiration(handle)), (5, Some(2)));
                    entries.destroy(handle);
                }
            }
        }
        assert_eq!((entries.large_bytes(), memory.of(MemoryKind::Large)), (0, 0));
    }

    /// In every layout, optional fields are set, replaced by others of any length and taken away, and stay through a
    /// change of the expiration and of the value. Key, value, expiration and stamp stay. Without fields an entry has
    /// its former size.
    #[test]
    fn every_layout_holds_optional_fields() {
        let (mut entries, memory) = entries();
        let long = Fields { flags: 7, cas: 8, attributes: &[9; 255], unknown: &[1; 1024], ..Fields::default() }.pack();
        let small = Fields { flags: 7, ..Fields::default() }.pack();
        let none = ExtFields::NONE;
        let keys: &[usize] = if cfg!(miri) { &[0, 4097] } else { &[0, 16, 255, 256, 4096, 4097] };
        let values: &[usize] = if cfg!(miri) { &[16, 8177] } else { &[0, 16, 255, 256, 3000, 7900, 8177, 20_000] };
        for (&key_len, &value_len) in keys.iter().flat_map(|key| values.iter().map(move |value| (key, value))) {
            let (key, value) = (vec![7; key_len], vec![8; value_len]);
            let first = NewEntry { fields: small.get(), ..new(Value::Bytes(&value), Some(5)) };
            let mut handle = entries.create(&key, &new(Value::Bytes(&value), None), 3);
            let plain = entries.cost_bytes(handle);
            handle = entries.replace(handle, &key, &first, 3);
            assert_eq!(entries.entry(handle).fields, small.get());
            for fields in [long.get(), small.get(), none, small.get(), long.get()] {
                handle = entries.set_fields(handle, fields);
                for expire_at in [None, Some(9)] {
                    handle = entries.set_expiration(handle, expire_at);
                    let entry = entries.entry(handle);
                    assert_eq!((entry.key, entry.value.bytes()), (&key[..], &value[..]), "{key_len} and {value_len}");
                    assert_eq!((entry.fields, entry.expire_at, entry.stamp), (fields, expire_at, 3));
                    assert!(entries.key_is(handle, &key) && !entries.key_is(handle, b"another"));
                    assert_eq!((entries.key(handle), entries.expiration(handle)), (&key[..], expire_at));
                }
            }
            assert!(entries.cost_bytes(handle) >= plain + PACKED_BYTES_MAX / 2, "fields are counted");
            handle = entries.splice(handle, value_len, b"more");
            handle = entries.recode(handle, &key, Encoding::PLAIN, Value::Bytes(&value));
            assert_eq!(entries.entry(handle).fields, long.get());
            handle = entries.set_expiration(handle, None);
            assert!(entries.overwrite(handle, &new(Value::Bytes(&value), None), |stamp| stamp).is_none());
            handle = entries.replace(handle, &key, &new(Value::Bytes(&value), None), 3);
            assert_eq!((entries.entry(handle).fields, entries.cost_bytes(handle)), (none, plain));
            entries.destroy(handle);
        }
        assert_eq!((entries.large_bytes(), memory.of(MemoryKind::Large)), (0, 0));
    }

    /// A value grows by splicing through all its layouts, and a reader that shares it keeps what it saw.
    #[test]
    fn splices_grow_and_spare_sharers() {
        let (mut entries, _) = entries();
        let mut model = Vec::new();
        let mut handle = entries.create(b"key", &new(Value::Bytes(b""), Some(9)), 1);
        let mut rng = Rng::new(1);
        for step in 0..if cfg!(miri) { 45 } else { 400 } {
            let offset = rng.below(model.len() as u64 + 5) as usize;
            let mut bytes = vec![0; rng.below(if step % 10 == 0 { 6_000 } else { 50 }) as usize];
            rng.fill(&mut bytes);
            let shared = match entries.entry(handle).value {
                Value::Shared(shared) => Some((SharedBytes::clone(shared), model.clone())),
                Value::Bytes(_) | Value::Big(_) => None,
            };
            handle = entries.splice(handle, offset, &bytes);
            model.resize(model.len().max(offset + bytes.len()), 0);
            model[offset..offset + bytes.len()].copy_from_slice(&bytes);
            let entry = entries.entry(handle);
            assert_eq!((entry.key, entry.value.bytes()), (&b"key"[..], &model[..]));
            assert_eq!((entry.encoding, entry.expire_at), (Encoding::EDITED, Some(9)));
            if let Some((shared, before)) = shared {
                assert_eq!(*shared, before, "a sharer's bytes changed");
            }
        }
        assert!(matches!(entries.entry(handle).value, Value::Shared(_)), "it has grown big");
        let slack = entries.large_bytes() - model.len();
        assert!(slack <= model.len() / ROOM_SHARE + SHARED_OVERHEAD_BYTES, "{slack} bytes of room for {}", model.len());
        // Shared with its giver, not copied.
        let given = SharedBytes::new(vec![7; 10_000]);
        handle = entries.replace(handle, b"key", &new(Value::Shared(&given), None), 1);
        assert_eq!(SharedBytes::strong_count(&given), 2);
        handle = entries.replace(handle, b"key", &new(Value::Bytes(b"small"), None), 1);
        assert_eq!((SharedBytes::strong_count(&given), entries.large_bytes()), (1, 0));
        entries.destroy(handle);
    }

    /// A packed list is the same whether it is edited where it is stored, in slots that it outgrows and in those that
    /// become too big for it, or in a vector; and what lies around it stays.
    #[test]
    fn packed_collections_are_edited_in_their_slots() {
        fn edit<'e>(changes: &'e [u8], limits: &'e Limits, hasher: &'e KeyHasher) -> Edit<'e> {
            Edit { kind: Type::List, changes, limits, hasher }
        }
        let (mut entries, _) = entries();
        let (limits, hasher, mut rng) = (Limits::default(), KeyHasher::new(&mut Rng::new(1)), Rng::new(2));
        for key in [&[7; 16][..], &[8; 300]] {
            let (encoding, fields) = (Encoding::PACKED, ExtFields::NONE);
            let list = |value, expire_at| NewEntry { kind: Type::List, encoding, value, expire_at, fields };
            let mut model = Vec::new();
            let mut changes = Vec::new();
            let first = Change::Push { end: End::Head, value: b"first" };
            first.put(&mut changes);
            edit(&changes, &limits, &hasher).apply(Body::Packed((&mut model).into()), Encoding::PACKED);
            let mut handle = entries.create(key, &list(Value::Bytes(&model), Some(9)), 3);
            let neighbour = entries.create(b"neighbour", &list(Value::Bytes(&model), None), 4);
            let mut grows = true;
            // Under Miri there is address space for few sizes.
            let (rounds, bytes_max) = if cfg!(miri) { (60, 400) } else { (3_000, 3_000) };
            for _ in 0..rounds {
                changes.clear();
                let end = End::ALL[rng.below(2) as usize];
                let value = &[b'x'; 64][..rng.below(64) as usize];
                // To and fro between two elements and some kilobytes, which is less than makes a tree of it.
                let count = View::of(Encoding::PACKED, Stored::Packed(&model)).len();
                grows = if grows { model.len() < bytes_max } else { count < 3 };
                match grows {
                    true => Change::Push { end, value }.put(&mut changes),
                    false => Change::Pop { end, count: 1 }.put(&mut changes),
                }
                if model.len() > 200 {
                    Change::Set { index: 0, value }.put(&mut changes);
                }
                edit(&changes, &limits, &hasher).apply(Body::Packed((&mut model).into()), Encoding::PACKED);
                handle = entries.edit(handle, key, &edit(&changes, &limits, &hasher)).handle;
                let entry = entries.entry(handle);
                assert_eq!((entry.key, entry.value.bytes()), (key, &model[..]));
                assert_eq!((entry.expire_at, entry.stamp), (Some(9), 3));
                let around = entries.entry(neighbour);
                assert_eq!((around.key, around.stamp), (&b"neighbour"[..], 4));
            }
            entries.destroy(handle);
            entries.destroy(neighbour);
        }
    }

    /// Entries move out of sparse pages with everything they hold, and the pages come back.
    #[test]
    fn compaction_moves_entries_whole() {
        let (mut entries, memory) = entries();
        let count = if cfg!(miri) { 400 } else { 20_000 };
        let shared = SharedBytes::new(vec![1; 9_000]);
        let mut handles: Vec<Option<u32>> = (0..count)
            .map(|number: u32| {
                let value = if number.is_multiple_of(50) { Value::Shared(&shared) } else { Value::Bytes(&[9; 200]) };
                Some(entries.create(&number.to_le_bytes(), &new(value, None), 1))
            })
            .collect();
        for (number, handle) in handles.iter_mut().enumerate() {
            if number % 10 != 0 {
                entries.destroy(handle.take().unwrap());
            }
        }
        while entries.compact_one(Compacted::SparsePages, |entries, from, to| {
            let number = u32::from_le_bytes(entries.key(to).try_into().unwrap());
            assert_eq!(handles[number as usize].replace(to), Some(from));
        }) {}
        for (number, handle) in handles.iter().enumerate() {
            if let Some(handle) = *handle {
                assert!(entries.key_is(handle, &(number as u32).to_le_bytes()));
                let expected = if number % 50 == 0 { 9_000 } else { 200 };
                assert_eq!(entries.entry(handle).value.len(), expected);
            }
        }
        let live = entries.pages().live_bytes();
        assert!(memory.of(MemoryKind::Values) as usize <= live + 3 * 4096, "{live} live in {memory:?}");
        handles.into_iter().flatten().for_each(|handle| entries.destroy(handle));
        assert_eq!(SharedBytes::strong_count(&shared), 1);
    }
}
