//! Values on a tier: which entries are away, which are wanted, and which are demoted next.
//!
//! | An entry is | value in memory | address in its fields | encoding |
//! |---|---|---|---|
//! | in memory | yes | no | that of the value |
//! | on both | yes | yes | that of the value |
//! | away | no | yes | [`Encoding::AWAY`] |
//!
//! Y1. The record at an entry's address is its value, perhaps in another form. A change of the value takes the address
//!     away first ([`MemEngine::leave_tier`]).
//! Y2. An entry that is wanted is not demoted until it was released as often as it was wanted.
//! Y3. Demotion and return change no value: they are not logged, and a running checkpoint may save either form.
//! Y4. To change a value that is away, fetch it first. To replace or remove it, do not.

pub(crate) mod state;

use crate::hints::Way;
use crate::mem_engine::MemEngine;
use crate::table::Found;
use base::{KeyspaceId, UnixMs};
use engine::tier::{EXPIRES_SOON_MS, KEY_LEN_MAX, NewRecord, Origin, TierRecord, VALUE_LEN_MAX, WrittenShards};
use engine::{
    Away, AwayRow, Encoding, Entry, Fields, Key, NewEntry, PackedFields, Seen, Ticket, TierAddress, TierRefusal, Value,
    ValueTier, Wanted,
};
use state::{ReadOnce, Tiered};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Stretches of the table looked at for entries that were not used lately, and then for any.
const STRETCHES_LOOKED_AT: usize = 4;

/// The longest record that is read in place: a shard keeps as much memory for that.
const IN_PLACE_MAX: usize = 16 << 10;

/// The longest value that is copied to its reply from where it is, under the shard's lock.
const IN_REPLY_MAX: usize = 128 << 10;

/// What a step of demotion has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demoted {
    /// Entries whose values left memory.
    pub count: usize,
    /// Bytes that these took.
    pub bytes: usize,
    /// Why the tier took no more.
    pub refusal: Option<TierRefusal>,
}

/// The ticket of a read: an address is never used again.
fn ticket_of(address: TierAddress) -> Ticket {
    Ticket(u64::from(address.segment) << 32 | u64::from(address.offset))
}

impl MemEngine {
    /// Puts a tier under all keyspaces. The shard of this number is marked in `shards` when it has written values.
    pub fn attach_tier(&mut self, tier: Arc<dyn ValueTier>, shard: usize, shards: Arc<WrittenShards>) {
        self.entries.set_tier(tier.clone());
        let (wanted, hand, rounds) = (HashMap::new(), (KeyspaceId(0), 0), [UnixMs::MIN; 2]);
        let (once, written, record) = (ReadOnce::default(), VecDeque::new(), Vec::new());
        self.tiered = Some(Box::new(Tiered { tier, wanted, hand, rounds, once, written, shard, shards, record }));
        self.look_who_watches();
    }

    /// Whether values of the keyspace may lie on a tier. Those of a keyspace that is backed by rows do not.
    pub(crate) fn is_on_tier(&self, id: KeyspaceId) -> bool {
        self.tiered.is_some() && !self.is_backed(id)
    }

    /// The tier, if there is one.
    pub fn tier(&self) -> Option<&Arc<dyn ValueTier>> {
        self.tiered.as_ref().map(|tiered| &tiered.tier)
    }

    /// Has `answer` look at an entry that is away, if its value can be read without I/O. The entry stays away. First it
    /// sees the value where it is; if it declines, it sees a copy. `None`, with nothing done, when it cannot be read,
    /// or when the value is worth its memory: it was read once lately, and the tier does not take values as soon as
    /// they are written.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_in_place<R>(
        &mut self,
        key: &Key<'_>,
        handle: u32,
        touch: bool,
        mut answer: impl FnMut(Seen<'_>) -> Option<R>,
    ) -> Option<R> {
        let tiered = self.tiered.as_deref_mut()?;
        let entry = self.entries.entry(handle);
        if !entry.is_away() || entry.is_expired(self.now) {
            return None;
        }
        let promotes = !tiered.tier.takes_written();
        if promotes && tiered.once.has(key.hash) {
            return None;
        }
        let address = entry.fields.tier()?;
        let tier = &*tiered.tier;
        let append = |to: &mut Vec<u8>| matches!(tier.try_get(key.bytes, address, to), Some(it) if !it.is_compressed());
        let away = Away { kind: entry.kind, len: address.len as usize, append_to: &append };
        let mut answered = if away.len <= IN_REPLY_MAX { answer(Seen::Away(&away)) } else { None };
        if answered.is_none() {
            let (encoding, place) = tier.try_copy(key.bytes, address, IN_PLACE_MAX, &mut tiered.record)?;
            if encoding.is_compressed() {
                return None;
            }
            let value = Value::Bytes(tiered.record.get(place)?);
            answered = answer(Seen::Entry(Some(&Entry { encoding, value, ..entry })));
        }
        if promotes {
            tiered.once.note(key.hash);
        }
        if touch {
            self.entries.used(handle, |stamp| self.stamps.touched(stamp, &mut self.rng));
        }
        answered
    }

    /// The cell that a way led to is that of an entry which is away, perhaps: begins to load its record.
    pub fn prefetch_away(&self, way: &Way) {
        let (Some(tiered), Some(handle)) = (&self.tiered, self.handle_at(way)) else { return };
        if self.entries.is_compressed(handle) {
            let entry = self.entries.entry(handle);
            if let (true, Some(address)) = (entry.is_away(), entry.fields.tier()) {
                tiered.tier.prefetch(entry.key.len(), address);
            }
        }
    }

    /// See [`engine::Engine::want`].
    #[cold]
    pub(crate) fn want_away(&mut self, key: &Key<'_>) -> Wanted {
        let address = self.find(key).map(|found| self.entries.entry(found.handle)).filter(Entry::is_away);
        let address = address.and_then(|entry| entry.fields.tier());
        let Some(tiered) = &mut self.tiered else { return Wanted { ticket: Ticket(0), rows: None } };
        *tiered.wanted.entry((key.space, key.bytes.into())).or_default() += 1;
        match address {
            Some(address) => {
                tiered.once.note(key.hash);
                let tier = tiered.tier.clone();
                Wanted { ticket: ticket_of(address), rows: Some(Arc::new(AwayRow::new(tier, key.bytes, address))) }
            }
            // It has come meanwhile.
            None => Wanted { ticket: Ticket(0), rows: None },
        }
    }

    /// See [`engine::Engine::install`]. The row is an encoding and a value.
    #[cold]
    pub(crate) fn install_away(&mut self, key: &Key<'_>, ticket: Ticket, row: Option<&[u8]>) -> bool {
        let Some((&encoding, bytes)) = row.and_then(<[u8]>::split_first) else { return false };
        let Some(found) = self.find(key) else { return false };
        let entry = self.entries.entry(found.handle);
        let is_it = entry.is_away() && entry.fields.tier().map(ticket_of) == Some(ticket);
        if is_it {
            self.store_form(key, found, Encoding(encoding), bytes, None);
        }
        is_it
    }

    /// See [`engine::Engine::release`].
    #[cold]
    pub(crate) fn release_away(&mut self, key: &Key<'_>) {
        let Some(tiered) = &mut self.tiered else { return };
        let name = (key.space, key.bytes.into());
        if let Some(count) = tiered.wanted.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                tiered.wanted.remove(&name);
            }
        }
    }

    /// Drops a value that came back for its first read. It has an address, so nothing is written. False when it stays:
    /// it was read twice lately, is wanted, or has changed.
    #[cold]
    pub fn drop_read_once(&mut self, key: &Key<'_>) -> bool {
        let Some(tiered) = &self.tiered else { return false };
        if !tiered.once.has(key.hash) || tiered.wanted.contains_key(&(key.space, key.bytes.into())) {
            return false;
        }
        let Some(found) = self.find(key) else { return false };
        let entry = self.entries.entry(found.handle);
        if entry.is_away() || entry.fields.tier().is_none() {
            return false;
        }
        self.store_form(key, found, Encoding::AWAY, &[], None);
        true
    }

    /// Keeps an entry's value in another form, with the optional fields it has or with others.
    fn store_form(
        &mut self,
        key: &Key<'_>,
        found: Found,
        encoding: Encoding,
        value: &[u8],
        fields: Option<&PackedFields>,
    ) {
        self.open_sticky(key.space, key.bytes);
        let Entry { kind, expire_at, stamp, fields: before, .. } = self.entries.entry(found.handle);
        let before = before.to_owned();
        let (value, fields) = (Value::Bytes(value), fields.unwrap_or(&before).get());
        let new = NewEntry { kind, encoding, value, expire_at, fields };
        let handle = self.entries.replace(found.handle, key.bytes, &new, stamp);
        if handle != found.handle {
            self.entry_moved(key, found, handle);
        }
    }

    /// Takes the address from an entry whose value is about to change. Gives where the entry is then.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave_tier(&mut self, key: &Key<'_>, mut found: Found) -> Found {
        if self.tiered.is_none() || !self.entries.has_fields(found.handle) {
            return found;
        }
        let entry = self.entries.entry(found.handle);
        if entry.fields.tier().is_none() {
            return found;
        }
        assert!(!entry.is_away(), "Y4: a value was changed that is not in memory");
        let fields = Fields { tier: None, ..entry.fields.get() }.pack();
        let handle = self.entries.set_fields(found.handle, fields.get());
        if handle != found.handle {
            self.entry_moved(key, found, handle);
            found.handle = handle;
        }
        found
    }

    /// Demotes about `wanted_bytes` bytes of values to the tier, first those unused since the hand last passed them.
    /// Visits a bounded number of entries, so it may find none although there are some; the next call continues.
    pub fn demote(&mut self, wanted_bytes: usize) -> Demoted {
        let mut done = Demoted::default();
        if self.tiered.is_none() {
            return done;
        }
        self.demote_written(wanted_bytes, &mut done);
        for number in 0..2 * STRETCHES_LOOKED_AT {
            if done.bytes >= wanted_bytes || done.refusal.is_some() {
                break;
            }
            let unused_only = number < STRETCHES_LOOKED_AT;
            self.demote_stretch(wanted_bytes, unused_only, &mut done);
        }
        done
    }

    /// Demotes values that were written, about `wanted_bytes` of them. The shard is marked again if it has more.
    pub fn demote_written(&mut self, wanted_bytes: usize, done: &mut Demoted) {
        while done.bytes < wanted_bytes && done.refusal.is_none() {
            let Some((space, key)) = self.tiered.as_mut().and_then(|tiered| tiered.written.pop_front()) else { return };
            let Some(found) = self.find(&self.key_of(space, &key)) else { continue };
            if let Err(refusal) = self.demote_one(space, found, done) {
                done.refusal = Some(refusal);
            }
            if let (Some(TierRefusal::Busy), Some(tiered)) = (done.refusal, &mut self.tiered) {
                tiered.written.push_front((space, key));
            }
        }
        if let Some(tiered) = self.tiered.as_ref().filter(|tiered| !tiered.written.is_empty()) {
            tiered.shards.mark(tiered.shard);
        }
    }

    /// Demotes values of the stretch that the hand is at. The hand moves on when the whole stretch was visited.
    fn demote_stretch(&mut self, wanted_bytes: usize, unused_only: bool, done: &mut Demoted) {
        let Some(tiered) = &mut self.tiered else { return };
        if tiered.rounds[0] == UnixMs::MIN {
            tiered.rounds = [self.now; 2];
        }
        let ((id, from), unused_ms) = (tiered.hand, tiered.rounds[1]);
        let stretch = match self.space(id).filter(|space| space.backed.is_none()) {
            Some(space) => space.table.stretch(&self.heap, from),
            None => return self.turn_hand(id, None),
        };
        let Some(space) = self.space(id) else { return };
        let found: Vec<Found> = space.table.entries_of(&self.heap, stretch).collect();
        for found in found {
            if done.bytes >= wanted_bytes {
                return;
            }
            if unused_only && self.used_ms(found.handle) > unused_ms {
                continue;
            }
            if let Err(refusal) = self.demote_one(id, found, done) {
                done.refusal = Some(refusal);
                return;
            }
        }
        self.turn_hand(id, stretch.next);
    }

    fn turn_hand(&mut self, id: KeyspaceId, next: Option<u64>) {
        let (now, spaces) = (self.now, self.spaces.len());
        let Some(tiered) = &mut self.tiered else { return };
        tiered.hand = match next {
            Some(next) => (id, next),
            None if id.index() + 1 < spaces => (KeyspaceId(id.0 + 1), 0),
            None => {
                tiered.rounds = [now, tiered.rounds[0]];
                (KeyspaceId(0), 0)
            }
        };
    }

    /// When the entry was last used.
    fn used_ms(&self, handle: u32) -> UnixMs {
        let idle = self.stamps.idle_seconds(self.entries.stamp(handle)).saturating_mul(1000);
        self.now.saturating_sub(i64::try_from(idle).unwrap_or(i64::MAX))
    }

    /// Demotes one value, if it may go.
    fn demote_one(&mut self, id: KeyspaceId, found: Found, done: &mut Demoted) -> Result<(), TierRefusal> {
        let Some(tiered) = &self.tiered else { return Ok(()) };
        let entry = self.entries.entry(found.handle);
        let len = entry.value.len();
        let expires_soon = entry.expire_at.is_some_and(|at| at < self.now.saturating_add(EXPIRES_SOON_MS));
        let is_of_length =
            (tiered.tier.value_len_min().max(1)..=VALUE_LEN_MAX).contains(&len) && entry.key.len() <= KEY_LEN_MAX;
        if !is_of_length || matches!(entry.value, Value::Big(_)) || expires_soon || entry.first_due().is_some() {
            return Ok(());
        }
        if !tiered.wanted.is_empty() && tiered.wanted.contains_key(&(id, entry.key.into())) {
            return Ok(());
        }
        let (address, key) = match entry.fields.tier() {
            Some(address) => (address, entry.key.to_vec()),
            None => {
                let Entry { key, kind, encoding, value, .. } = entry;
                let record = NewRecord { key, kind, encoding, value: value.bytes() };
                (tiered.tier.append(&record, Origin::Memory)?, key.to_vec())
            }
        };
        let fields = Fields { tier: Some(address), ..entry.fields.get() }.pack();
        let before = self.entries.cost_bytes(found.handle);
        let key = self.key_of(id, &key);
        self.store_form(&key, found, Encoding::AWAY, &[], Some(&fields));
        done.count += 1;
        done.bytes += before.saturating_sub(self.cost_of_away(&fields, key.bytes.len()));
        Ok(())
    }

    /// Moves a record to another segment if entries with its key have its address, and gives whether any had. Like a
    /// demotion this changes no value (Y3).
    ///
    /// # Errors
    /// The tier takes no more now. Entries that are not moved keep the address.
    pub fn move_on_tier(&mut self, moved: &TierRecord<'_>) -> Result<bool, TierRefusal> {
        let Some(tier) = self.tier().cloned() else { return Ok(false) };
        let mut is_moved = false;
        for number in 0..self.spaces.len() {
            let key = self.key_of(KeyspaceId(number as _), moved.record.key);
            let Some(found) = self.find(&key) else { continue };
            let fields = self.entries.entry(found.handle).fields;
            if fields.tier() != Some(moved.address) {
                continue;
            }
            let fields = fields.to_owned();
            let address = tier.append(&moved.record, Origin::Cleaning)?;
            self.open_sticky(key.space, key.bytes);
            let fields = Fields { tier: Some(address), ..fields.get().get() }.pack();
            let handle = self.entries.set_fields(found.handle, fields.get());
            if handle != found.handle {
                self.entry_moved(&key, found, handle);
            }
            is_moved = true;
        }
        Ok(is_moved)
    }

    /// How many entries with this key have the address.
    pub fn count_on_tier(&self, key: &[u8], address: TierAddress) -> usize {
        let has = |number: &usize| {
            let found = self.find(&self.key_of(KeyspaceId(*number as _), key));
            found.is_some_and(|found| self.entries.entry(found.handle).fields.tier() == Some(address))
        };
        (0..self.spaces.len()).filter(has).count()
    }

    /// About what an entry that is away takes.
    fn cost_of_away(&self, fields: &PackedFields, key_len: usize) -> usize {
        key_len + fields.get().packed().len() + size_of::<u64>()
    }
}
