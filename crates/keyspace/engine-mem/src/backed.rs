//! A backed keyspace keeps its entries in a store of rows. The table is the cache and the write buffer of those rows.
//!
//! | A key is | in the table | its state | a read answers |
//! |---|---|---|---|
//! | clean | yes | none, or wanted | its entry |
//! | dirty | yes | changed | its entry |
//! | a tombstone | no | changed | absent |
//! | known to be absent | no | absent | absent |
//! | unknown | no | none, or wanted | absent if the filter of the rows says so, else [`Fetch`](engine::Fetch) |
//!
//! K1. Only clean entries that no command wants are dropped. A change, a tombstone among them, stays until a flush that
//!     was given it is installed.
//! K2. Code that changes a key calls [`MemEngine::before_change`] first. It makes the ticket of the key void, and gives
//!     a running flush what the key was at the cut.
//! K3. Epochs count flushes. A key whose last change is of an installed epoch has no change.
//! K4. The entries of the keyspace are those in the table and those *away*, which only rows hold. A write to an unknown
//!     key that the rows may have counts as overwriting one. The flush that stores it corrects the count. Until then a
//!     count of 0 does not mean that there is no entry ([`Engine::is_len_exact`]).
//! K5. A keyspace that is not backed pays one test for each change, and one for each read that finds nothing.

pub(crate) mod droppable;
pub(crate) mod order;
pub(crate) mod spill;
pub(crate) mod state;

use crate::mem_engine::MemEngine;
use crate::table::Found;
use base::slot::slot_of;
use base::{KeyspaceId, UnixMs};
use engine::{Counts, Engine, Entry, FlushProgress, Key, Row, RowSink, Rows, Ticket, Wanted};
use state::{Backed, Flush, Order, Shown};
use std::collections::HashMap;
use std::sync::Arc;
use value::cold::Keeper;

/// Keys of an installed flush looked at per unit of cleaning.
const SETTLED_PER_UNIT: usize = 4;

/// Stretches of the table looked at for clean entries that were not used lately, and then for any.
const STRETCHES_LOOKED_AT: usize = 4;

/// Random rows looked at for one that is live.
const RANDOM_TRIES: usize = 16;

impl MemEngine {
    /// Backs an empty keyspace with rows. `stored` counts what the rows hold, and `keeper` reads compressed leaves of
    /// trees.
    ///
    /// # Panics
    /// When the keyspace has entries.
    pub fn back(&mut self, id: KeyspaceId, rows: Arc<dyn Rows>, stored: Counts, keeper: Arc<dyn Keeper>) {
        let space = self.ensure_space(id);
        assert!(space.table.len() == 0 && space.backed.is_none(), "only an empty keyspace gets rows");
        space.backed = Some(Box::new(Backed::new(rows, stored, keeper)));
        self.has_backed = true;
        self.look_who_watches();
    }

    /// Whether any keyspace is backed by rows, or values lie on a tier, so that reads can ask for a fetch.
    pub fn may_fetch(&self) -> bool {
        self.has_backed || self.tiered.is_some()
    }

    /// Leaves of a tree may be rows from now on.
    pub(crate) fn note_leaf_rows(&mut self) {
        if !std::mem::replace(&mut self.has_leaf_rows, true) {
            self.look_who_watches();
        }
    }

    /// Whether leaves of trees may be rows.
    pub fn has_leaf_rows(&self) -> bool {
        self.has_leaf_rows
    }

    /// Whether the keyspace is backed by rows.
    pub fn is_backed(&self, id: KeyspaceId) -> bool {
        self.backed(id).is_some()
    }

    fn backed(&self, id: KeyspaceId) -> Option<&Backed> {
        self.space(id)?.backed.as_deref()
    }

    fn backed_mut(&mut self, id: KeyspaceId) -> Option<&mut Backed> {
        self.spaces.get_mut(id.index())?.as_mut()?.backed.as_deref_mut()
    }

    /// Whether rows may hold the key, which is not in the table.
    #[cold]
    pub(crate) fn may_be_stored(&self, key: &Key<'_>) -> bool {
        self.backed(key.space).is_some_and(|backed| backed.may_be_stored(key))
    }

    /// See [`Engine::is_len_exact`].
    pub(crate) fn is_count_exact(&self, id: KeyspaceId) -> bool {
        !self.has_backed || self.backed(id).is_none_or(|backed| backed.guessed <= backed.installed)
    }

    /// A count of the table and what is away (K4): never less than the table has, which is certain.
    #[inline]
    pub(crate) fn with_away(&self, id: KeyspaceId, in_table: u64, away: impl Fn(Counts) -> i64) -> u64 {
        match self.has_backed {
            false => in_table,
            true => in_table.saturating_add_signed(self.backed(id).map_or(0, |backed| away(backed.away).max(0))),
        }
    }

    /// Whether a random entry is to be one that only rows hold: as likely as there are such.
    #[cold]
    pub(crate) fn picks_stored(&mut self, id: KeyspaceId) -> bool {
        let Some(backed) = self.backed(id) else { return false };
        let away = u64::try_from(backed.away.len).unwrap_or(0);
        let all = self.len(id);
        away > 0 && self.rng.below(all) < away
    }

    /// All counts as they are, guesses that are too low included, so that a flush corrects them.
    fn counts(&self, id: KeyspaceId) -> Counts {
        let Some(space) = self.space(id) else { return Counts::default() };
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let (len, expiring, timed) = (count(space.table.len()), count(space.expiring), count(space.timed));
        let away = space.backed.as_ref().map_or(Counts::default(), |backed| backed.away);
        Counts { len, expiring, timed }.plus(away)
    }

    /// A key is about to change, which `found` is in the table: see K2.
    #[cold]
    pub(crate) fn before_change(&mut self, key: &Key<'_>, found: Option<Found>) {
        let Self { spaces, entries, .. } = self;
        let Some(backed) = spaces.get_mut(key.space.index()).and_then(Option::as_mut).and_then(|it| it.backed.as_mut())
        else {
            return;
        };
        if found.is_none() {
            backed.loads += 1;
            if backed.may_be_stored(key) {
                backed.away.len -= 1;
                backed.guessed = backed.epoch;
            }
        }
        let Backed { keys, flush, epoch, installed, dirty, order, .. } = &mut **backed;
        let state = keys.entry(key.bytes.into()).or_default();
        (state.ticket, state.is_absent) = (None, false);
        if let Some(flush) = flush
            && state.changed > *installed
            && state.changed <= flush.epoch
            && state.given != flush.epoch
        {
            state.given = flush.epoch;
            match found {
                Some(found) => flush.sink.store(&entries.entry(found.handle)),
                None => flush.sink.remove(key.bytes),
            }
        }
        if state.changed != *epoch {
            state.changed = *epoch;
            dirty.push(key.bytes.into());
            if let Some(order) = order
                && !order.contains(key.bytes)
            {
                order.insert(key.bytes.into());
            }
        }
    }

    /// Removes a key that is not in the table. False when it is known that there is none.
    #[cold]
    pub(crate) fn remove_unread(&mut self, key: &Key<'_>) -> bool {
        let is_stored = self.may_be_stored(key);
        if is_stored {
            self.before_change(key, None);
        }
        is_stored
    }

    /// Keeps the rows of a backed keyspace that is being cleared. What they hold is void until the next flush.
    pub(crate) fn clear_backed(&mut self, id: KeyspaceId, mut backed: Box<Backed>) {
        let epoch = backed.epoch;
        backed.cleared = epoch;
        backed.away = Counts::default();
        backed.guessed = 0;
        backed.keys = HashMap::new();
        backed.held = 0;
        backed.dirty = Vec::new();
        backed.settling = Vec::new();
        backed.order = backed.order.map(|_| Order::new());
        backed.loads += 1;
        if let Some(flush) = &mut backed.flush {
            flush.is_cleared = true;
            flush.is_void |= flush.walked < flush.keys.len();
        }
        self.ensure_space(id).backed = Some(backed);
    }

    /// See [`Engine::want`].
    #[cold]
    pub(crate) fn want_row(&mut self, key: &Key<'_>) -> Wanted {
        let next = Ticket(self.last_ticket + 1);
        let Some(backed) = self.backed_mut(key.space) else { return Wanted { ticket: Ticket(0), rows: None } };
        let state = backed.keys.entry(key.bytes.into()).or_default();
        backed.held += usize::from(state.wanted == 0);
        state.wanted += 1;
        let ticket = *state.ticket.get_or_insert(next);
        let rows = Some(backed.rows.clone());
        self.last_ticket = self.last_ticket.max(ticket.0);
        Wanted { ticket, rows }
    }

    /// See [`Engine::install`].
    #[cold]
    pub(crate) fn install_row(&mut self, key: &Key<'_>, ticket: Ticket, row: Option<&[u8]>) -> bool {
        let Some(backed) = self.backed_mut(key.space) else { return false };
        let Some(state) = backed.keys.get_mut(key.bytes).filter(|state| state.ticket == Some(ticket)) else {
            return false;
        };
        state.ticket = None;
        state.is_absent = row.is_none();
        backed.loads += 1;
        backed.tidy(key.bytes);
        let keeper = backed.keeper.clone();
        debug_assert!(self.find_apart(key).is_none(), "a ticket of a key in the table is void");
        if let Some(bytes) = row {
            let row = Row::read(bytes).expect("the store of rows checks what it gives");
            let tree = row.tree(&keeper, &self.hasher);
            if tree.as_ref().is_some_and(|tree| tree.may_have_rows()) {
                self.note_leaf_rows();
            }
            let fields = row.fields();
            let new = row.as_new(tree.as_ref(), &fields);
            self.insert(key, &new);
            let counts = Counts::of(&new.as_entry(key.bytes));
            if let Some(backed) = self.backed_mut(key.space) {
                backed.away = backed.away.minus(counts);
            }
        }
        true
    }

    /// See [`Engine::withdraw`].
    pub(crate) fn withdraw_row(&mut self, key: &Key<'_>, ticket: Ticket) {
        let Some(backed) = self.backed_mut(key.space) else { return };
        if let Some(state) = backed.keys.get_mut(key.bytes).filter(|state| state.ticket == Some(ticket)) {
            state.ticket = None;
        }
        backed.tidy(key.bytes);
    }

    /// See [`Engine::release`].
    pub(crate) fn release_row(&mut self, key: &Key<'_>) {
        let Some(backed) = self.backed_mut(key.space) else { return };
        if let Some(state) = backed.keys.get_mut(key.bytes) {
            // A keyspace that was cleared has forgotten its wants.
            backed.held -= usize::from(state.wanted == 1);
            state.wanted = state.wanted.saturating_sub(1);
        }
        backed.tidy(key.bytes);
    }

    /// Begins a flush: its sink gets all keys that have changed since the flush before, as they are now. The same cut
    /// goes through all shards, under their locks.
    ///
    /// # Panics
    /// When the keyspace is not backed, or a flush runs already.
    pub fn begin_flush(&mut self, id: KeyspaceId, mut sink: Box<dyn RowSink>) {
        let counts = self.counts(id);
        let backed = self.backed_mut(id).expect("a flush is of a backed keyspace");
        assert!(backed.flush.is_none(), "one flush at a time");
        if backed.cleared > backed.installed {
            sink.clear();
        }
        let (epoch, keys) = (backed.epoch, std::mem::take(&mut backed.dirty));
        backed.epoch += 1;
        backed.flush = Some(Flush { sink, epoch, keys, walked: 0, counts, is_cleared: false, is_void: false });
    }

    /// Gives the running flush up to `budget` further keys.
    pub fn walk_flush(&mut self, id: KeyspaceId, budget: usize) -> FlushProgress {
        let Self { spaces, heap, entries, hasher, .. } = self;
        let Some(space) = spaces.get_mut(id.index()).and_then(Option::as_mut) else { return FlushProgress::Void };
        let Some(backed) = space.backed.as_deref_mut() else { return FlushProgress::Void };
        let installed = backed.installed;
        let Backed { keys: states, flush: Some(flush), .. } = backed else { return FlushProgress::Done };
        if flush.is_void {
            return FlushProgress::Void;
        }
        let end = flush.keys.len().min(flush.walked.saturating_add(budget));
        for key in &flush.keys[flush.walked..end] {
            let Some(state) = states.get_mut(key) else { continue };
            if state.changed <= installed || state.changed > flush.epoch || state.given == flush.epoch {
                continue;
            }
            state.given = flush.epoch;
            match space.table.find(heap, entries, hasher.hash(key), key) {
                Some(found) => flush.sink.store(&entries.entry(found.handle)),
                None => flush.sink.remove(key),
            }
        }
        flush.walked = end;
        if end == flush.keys.len() { FlushProgress::Done } else { FlushProgress::More }
    }

    /// Ends the flush and gives the sink back. `installed` says what rows there are now; `None` when the flush was
    /// given up, and then its keys are part of the next one.
    pub fn end_flush(&mut self, id: KeyspaceId, installed: Option<Counts>) -> Option<Box<dyn RowSink>> {
        let backed = self.backed_mut(id)?;
        let Flush { sink, epoch, mut keys, counts, is_cleared, is_void, .. } = backed.flush.take()?;
        match installed {
            Some(stored) => {
                assert!(!is_void, "a flush was installed that lacks keys");
                backed.installed = epoch;
                if !is_cleared {
                    backed.away = backed.away.plus(stored.minus(counts));
                    backed.settling.append(&mut keys);
                }
            }
            None if is_cleared => {}
            None => {
                keys.append(&mut backed.dirty);
                backed.dirty = keys;
            }
        }
        Some(sink)
    }

    /// Drops clean entries of all backed keyspaces, about `wanted_bytes` of them. It looks at a bounded number of
    /// entries, so it may drop none although there are some; the next call looks further.
    pub fn drop_clean_anywhere(&mut self, wanted_bytes: usize) -> usize {
        let mut dropped = 0;
        for id in (0..self.spaces.len()).map(|id| KeyspaceId(id as u32)) {
            if self.is_backed(id) {
                dropped += self.drop_clean_nearby(id, wanted_bytes - dropped.min(wanted_bytes));
            }
        }
        dropped
    }

    /// Drops clean entries of the next stretches: those that were not used since the hand passed last, then any.
    fn drop_clean_nearby(&mut self, id: KeyspaceId, wanted_bytes: usize) -> usize {
        let (mut dropped, now) = (0, self.now);
        for number in 0..2 * STRETCHES_LOOKED_AT {
            if dropped >= wanted_bytes {
                break;
            }
            let Some(backed) = self.backed_mut(id) else { break };
            if backed.rounds[1] == UnixMs::MIN {
                backed.rounds = [now; 2];
            }
            let unused_ms = if number < STRETCHES_LOOKED_AT { backed.rounds[1] } else { UnixMs::MIN };
            let from = backed.hand;
            let (next, bytes) = self.drop_clean_of(id, from, wanted_bytes - dropped, unused_ms);
            dropped += bytes;
            let Some(backed) = self.backed_mut(id) else { break };
            backed.hand = next.unwrap_or(0);
            if next.is_none() {
                backed.rounds = [now, backed.rounds[0]];
            }
        }
        dropped
    }

    /// Drops about `wanted_bytes` bytes of clean entries that no command wants, first those unused since the hand last
    /// passed them. Returns how many bytes it dropped: fewer when there are no more.
    pub fn drop_clean(&mut self, id: KeyspaceId, wanted_bytes: usize) -> usize {
        let (mut dropped, mut begun, now) = (0, 0, self.now);
        while dropped < wanted_bytes && begun < 3 {
            let Some(backed) = self.backed_mut(id) else { return dropped };
            if backed.rounds[1] == UnixMs::MIN {
                backed.rounds = [now; 2];
            }
            let from = backed.hand;
            // In the third round since this began, what was used is dropped as well.
            let unused_ms = if begun < 2 { backed.rounds[1] } else { UnixMs::MIN };
            let (next, bytes) = self.drop_clean_of(id, from, wanted_bytes - dropped, unused_ms);
            dropped += bytes;
            let Some(backed) = self.backed_mut(id) else { return dropped };
            backed.hand = next.unwrap_or(0);
            if next.is_none() {
                begun += 1;
                backed.rounds = [now, backed.rounds[0]];
            }
        }
        dropped
    }

    /// Drops about `wanted_bytes` bytes of clean entries of one stretch, unused since `unused_ms`. Returns where to
    /// continue, and how many bytes it dropped.
    fn drop_clean_of(
        &mut self,
        id: KeyspaceId,
        from: u64,
        wanted_bytes: usize,
        unused_ms: UnixMs,
    ) -> (Option<u64>, usize) {
        let Some(space) = self.space(id) else { return (None, 0) };
        let stretch = space.table.stretch(&self.heap, from);
        let mut handles: Vec<u32> = space.table.entries_of(&self.heap, stretch).map(|found| found.handle).collect();
        // In random order: were buckets emptied one after the other, the entries that are left would all belong to the
        // last ones, and would not fit when the table shrinks.
        for left in (1..handles.len()).rev() {
            handles.swap(left, self.rng.below(left as u64 + 1) as usize);
        }
        let mut bytes = 0;
        for handle in handles {
            if bytes >= wanted_bytes {
                return (Some(from), bytes);
            }
            if unused_ms != UnixMs::MIN && self.now.saturating_sub(self.idle_ms(handle)) > unused_ms {
                continue;
            }
            let key = self.entries.key(handle).to_vec();
            let key = self.key_of(id, &key);
            let shed = self.shed_leaves(&key, wanted_bytes - bytes);
            bytes += shed.unwrap_or_else(|| self.drop_row(&key));
        }
        (stretch.next, bytes)
    }

    fn idle_ms(&self, handle: u32) -> i64 {
        let seconds = self.stamps.idle_seconds(self.entries.stamp(handle));
        i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX)
    }

    /// [`MemEngine::find`] for what is rare: a call of its own, so that the others stay inlined.
    #[inline(never)]
    fn find_apart(&self, key: &Key<'_>) -> Option<Found> {
        self.find(key)
    }

    pub(crate) fn key_of<'k>(&self, space: KeyspaceId, bytes: &'k [u8]) -> Key<'k> {
        Key { bytes, hash: self.hasher.hash(bytes), slot: slot_of(bytes), space }
    }

    /// Drops an entry if it is clean and no command wants it. Returns the bytes it took; 0 when it stays.
    pub fn drop_row(&mut self, key: &Key<'_>) -> usize {
        let Some(found) = self.find_apart(key) else { return 0 };
        let Some(backed) = self.backed(key.space) else { return 0 };
        let state = backed.state(key.bytes);
        let entry = self.entries.entry(found.handle);
        let counts = Counts::of(&entry);
        if backed.is_changed(state) || state.stays(counts) {
            return 0;
        }
        let bytes = self.entries.cost_bytes(found.handle);
        self.remove_entry(key, found);
        if let Some(backed) = self.backed_mut(key.space) {
            backed.away = backed.away.plus(counts);
            backed.tidy(key.bytes);
        }
        bytes
    }

    /// Forgets states of keys whose changes are installed. Gives how many units of work that took; `None` when there
    /// are none.
    pub(crate) fn settle_some(&mut self, budget: usize) -> Option<usize> {
        let mut units = 0;
        for backed in self.spaces.iter_mut().flatten().filter_map(|space| space.backed.as_deref_mut()) {
            while units < budget && !backed.settling.is_empty() {
                let from = backed.settling.len().saturating_sub(SETTLED_PER_UNIT);
                for key in backed.settling.split_off(from) {
                    backed.tidy(&key);
                }
                units += 1;
            }
        }
        (units > 0).then_some(units)
    }

    /// One step over rows whose entries are not in the table. With `since`, what [`Engine::loads`] gave when a walk
    /// over the table began, entries in the table are left out unless some came meanwhile.
    pub(crate) fn scan_stored(
        &self,
        id: KeyspaceId,
        from: u64,
        since: Option<u64>,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> Option<u64> {
        let backed = self.backed(id)?;
        if backed.cleared > backed.installed {
            return None;
        }
        let is_table_seen = since == Some(backed.loads);
        let rows = backed.rows.clone();
        rows.scan(from, &mut |bytes, row| {
            let key = self.key_of(id, bytes);
            match self.find_apart(&key) {
                Some(_) if is_table_seen => {}
                Some(found) => visit(&self.entries.entry(found.handle)),
                None if backed.is_changed(backed.state(bytes)) => {}
                None => {
                    let row = Row::read(row).expect("the store of rows checks what it gives");
                    let tree = row.tree(&backed.keeper, &self.hasher);
                    visit(&row.as_new(tree.as_ref(), &row.fields()).as_entry(bytes));
                }
            }
        })
    }

    /// Changes whenever an entry comes into the table of a backed keyspace.
    pub(crate) fn loads_of(&self, id: KeyspaceId) -> u64 {
        self.backed(id).map_or(0, |backed| backed.loads)
    }

    /// Draws an entry that only rows hold, or takes the first where draws find none; false when there is none.
    /// [`MemEngine::drawn`] gives it.
    #[cold]
    pub(crate) fn draws_stored(&mut self, id: KeyspaceId) -> bool {
        let Some(backed) = self.backed(id).filter(|backed| backed.cleared <= backed.installed) else { return false };
        let (rows, keeper) = (backed.rows.clone(), backed.keeper.clone());
        let mut shown = std::mem::take(&mut self.shown);
        let is_found = (0..RANDOM_TRIES).any(|_| {
            shown.key.clear();
            shown.row.clear();
            rows.random(&mut self.rng, &mut shown.key, &mut shown.row) && self.is_away(id, &shown.key)
        });
        let mut next = None;
        if !is_found {
            shown.key.clear();
            shown.row.clear();
            next = Some(0);
        }
        while let Some(from) = next {
            next = rows.scan(from, &mut |key, row| {
                if shown.row.is_empty() && self.is_away(id, key) {
                    shown.key.extend_from_slice(key);
                    shown.row.extend_from_slice(row);
                }
            });
            next = next.filter(|_| shown.row.is_empty());
        }
        let row = Row::read(&shown.row).ok();
        let (tree, fields) = row.map(|row| (row.tree(&keeper, &self.hasher), row.fields())).unwrap_or_default();
        let is_found = !shown.row.is_empty();
        self.shown = Shown { tree, fields, ..shown };
        is_found
    }

    /// The entry that was drawn.
    pub(crate) fn drawn(&self) -> Option<Entry<'_>> {
        let Shown { key, row, tree, fields } = &self.shown;
        Some(Row::read(row).ok()?.as_new(tree.as_ref(), fields).as_entry(key))
    }

    /// Whether only a row, if any, holds the key.
    fn is_away(&self, id: KeyspaceId, bytes: &[u8]) -> bool {
        let is_changed = self.backed(id).is_some_and(|backed| backed.is_changed(backed.state(bytes)));
        !is_changed && self.find_apart(&self.key_of(id, bytes)).is_none()
    }

    /// Gives up to `limit` keys that only rows hold and that are expired.
    pub(crate) fn due_stored(&self, limit: usize, visit: &mut dyn FnMut(Key<'_>)) -> usize {
        let mut given = 0;
        for id in (0..self.spaces.len()).map(|id| KeyspaceId(id as u32)) {
            let Some(backed) = self.backed(id).filter(|backed| backed.cleared <= backed.installed) else { continue };
            if given >= limit {
                break;
            }
            backed.rows.due(self.now, &mut |bytes| {
                if given < limit && self.is_away(id, bytes) {
                    given += 1;
                    visit(self.key_of(id, bytes));
                }
                given < limit
            });
        }
        given
    }
}
