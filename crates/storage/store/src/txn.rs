//! A command's view of the store: its shards locked, its time fixed, its effects applied and recorded.

mod effects;
mod names;
mod reading;
mod scratch;

pub use scratch::Scratch;

use crate::locking::HeldShards;
use crate::notices::Notice;
use crate::scan::scan_step;
use crate::shard::Shard;
use crate::store::Store;
use crate::txn::reading::{Reading, lacks, shown, stored_here};
use base::{DbIndex, KeyspaceId, Lsn, ShardId, UnixMs};
use engine::{
    ChangedNames, Edited, Effect, Engine, Entry, Fetch, Key, Keyspace, Known, Libraries, Names, NotifyClass, ScanStep,
    Type, Unedited, Usage, Waiter, WriteClass,
};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use value::Limits;

/// When, where and by which worker a command runs.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Wall time of the command.
    pub now: UnixMs,
    /// The database selected.
    pub db: DbIndex,
    /// Reads renew access stamps.
    pub touch: bool,
    /// The worker's number.
    pub worker: usize,
    /// What it may change: what it needs to be admitted to the log for.
    pub writes: WriteClass,
}

/// Memory of a buffer that is kept from command to command.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Entries looked at for the estimate of the time they have left.
const TTL_SAMPLES_PER_SHARD: usize = 4;

/// The running command or transaction.
pub struct Txn<'s> {
    pub(crate) store: &'s Store,
    pub(crate) held: HeldShards<'s>,
    pub(crate) scratch: &'s mut Scratch,
    now: UnixMs,
    space: KeyspaceId,
    touch: bool,
    /// Whether anything was changed: from then on nothing may fail.
    pub(crate) changed: bool,
    /// Whether replies wait for the log.
    holds: bool,
    /// Up to where it has to be durable for what has been read so far.
    pub(crate) hold: Cell<Lsn>,
    /// The shard and keyspace that a walk has begun to go over, and what [`Engine::loads`] gave then.
    walk: Option<(ShardId, KeyspaceId, u64)>,
}

impl<'s> Txn<'s> {
    #[inline]
    pub(crate) fn new(store: &'s Store, mut held: HeldShards<'s>, scratch: &'s mut Scratch, at: &At) -> Self {
        match &mut held {
            HeldShards::None => {}
            HeldShards::One(_, shard) => shard.engine.set_time(at.now),
            HeldShards::Several(_) => tell_time(&mut held, at.now),
        }
        scratch.decoder.forget();
        let space = store.spaces.get(at.db).unwrap_or_default();
        let holds = scratch.log.holds;
        let (now, touch, hold) = (at.now, at.touch, Cell::default());
        Self { store, held, scratch, now, space, touch, changed: false, holds, hold, walk: None }
    }

    /// The reply will depend on this key.
    #[inline]
    fn look_at(&mut self, key: &Key<'_>) {
        if self.holds {
            self.hold_for(key);
        }
    }

    #[cold]
    fn hold_for(&mut self, key: &Key<'_>) {
        let lsn = self.shard(key).holds.as_ref().map_or(Lsn(0), |holds| holds.of(key.hash));
        self.hold.set(self.hold.get().max(lsn));
    }

    /// Rows have come or gone: leaves of trees may be rows.
    fn look_for_leaves(&mut self) {
        let notices = &self.store.notices;
        self.held.iter_mut().for_each(|shard| notices.look_for_leaves(&shard.engine));
    }

    /// The reply may depend on any key of the shard.
    #[inline]
    fn look_over(&self, shard: &Shard) {
        if let Some(holds) = &shard.holds {
            self.hold.set(self.hold.get().max(holds.newest()));
        }
    }

    fn look_over_held(&mut self, shard: ShardId) {
        let newest = self.held.get(shard).holds.as_ref().map_or(Lsn(0), |holds| holds.newest());
        self.hold.set(self.hold.get().max(newest));
    }

    /// Visits the shards held, or all of them one after the other, for a reply that depends on any of their keys.
    fn over_shards(&self, each: impl Fn(&Shard) -> u64) -> u64 {
        let look = |shard: &Shard| {
            self.look_over(shard);
            each(shard)
        };
        match &self.held {
            HeldShards::None => self.store.each_shard(|shard| look(shard)).sum(),
            HeldShards::One(_, held) => look(held),
            HeldShards::Several(all) => all.iter().map(|(_, held)| look(held)).sum(),
        }
    }

    /// Adds an effect to the record of the command.
    #[inline(never)]
    fn record(&mut self, effect: &Effect<'_>) {
        let Scratch { record, touched, .. } = &mut *self.scratch;
        record.push(effect);
        if !self.holds {
            return;
        }
        touched.all |= matches!(effect, Effect::Clear { .. } | Effect::Swap { .. });
        touched.libraries |= matches!(effect, Effect::Library { .. });
        effect.keys().for_each(|key| touched.add(self.store.shard_of(key), key));
    }

    /// The key under which an effect will put an entry where there is none, or only an expired one, which ends here.
    #[cold]
    fn created_by<'k>(&mut self, effect: &Effect<'k>) -> Option<Key<'k>> {
        let key = match effect {
            Effect::Rename { to, .. } | Effect::Copy { to, .. } => return Some(*to),
            Effect::Set { key, .. } | Effect::Store { key, .. } | Effect::Edit { key, .. } => key,
            Effect::Replace { key, .. } | Effect::StoreWith { key, .. } => key,
            _ => return None,
        };
        let engine = &mut self.shard(key).engine;
        if engine.may_hold(key) {
            return None;
        }
        if engine.cost_bytes(key).is_some() {
            self.notify(NotifyClass::EXPIRED, "expired", key);
        }
        Some(*key)
    }

    /// Continues at another time: for commands of different times that are one record.
    pub fn set_time(&mut self, now: UnixMs) {
        self.now = now;
        tell_time(&mut self.held, now);
    }

    /// Removes an expired entry that upkeep has not removed yet: an edit would otherwise change it, since replay knows
    /// no time. All other effects that can meet one replace it.
    fn make_way(&mut self, key: &Key<'_>) {
        let engine = &mut self.shard(key).engine;
        if !engine.may_hold(key) && engine.remove(key) && self.scratch.log.sink.is_some() {
            self.record(&Effect::Delete { key: *key });
        }
    }

    #[cold]
    fn note_change(&mut self, effect: &Effect<'_>, created: Option<&Key<'_>>) {
        if let Some(key) = created {
            self.notify(NotifyClass::NEW, "new", key);
        }
        // The value is kept in another way, but is the same.
        let is_same = matches!(effect, Effect::Splice { bytes: [], .. });
        if is_same || !self.store.notices.wants_changes() {
            return;
        }
        let by = self.scratch.client;
        match effect {
            // FLUSHALL clears one keyspace after the other.
            Effect::Clear { .. } if self.scratch.notices.last() == Some(&Notice::Flushed) => {}
            Effect::Clear { .. } => self.scratch.notices.push(Notice::Flushed),
            _ => self.scratch.notices.extend(effect.keys().map(|key| Notice::Changed { key: key.bytes.into(), by })),
        }
    }

    #[inline]
    pub(crate) fn shard(&mut self, key: &Key<'_>) -> &mut Shard {
        let shard = self.store.shard_of(key);
        self.held.get(shard)
    }

    /// The cursor after a step over a shard: after what it visited, or at the beginning of the next shard.
    fn next_cursor(&self, shard: ShardId, step: ScanStep) -> ScanStep {
        let next = match step.next {
            Some(bound) => Some(bound & !0xFFFF | u64::from(shard.0)),
            None => Some(u64::from(shard.0) + 1).filter(|next| *next < self.store.shard_ids().len() as u64),
        };
        ScanStep { next }
    }

    /// What [`Engine::loads`] gave when this command began to walk over the shard; `None` when an earlier one has.
    fn loads_since(&self, shard: ShardId, space: KeyspaceId) -> Option<u64> {
        self.walk.filter(|walk| (walk.0, walk.1) == (shard, space)).map(|walk| walk.2)
    }

    /// Switches to a keyspace.
    pub(crate) fn go_to(&mut self, space: KeyspaceId) {
        self.space = space;
    }

    /// Notes that any key of a keyspace may have changed.
    fn make_all_ready(&mut self, space: KeyspaceId) {
        let serving = &mut self.scratch.serving;
        self.held.iter_mut().for_each(|shard| {
            shard.waits.make_all_ready(space, |key| serving.push_ready(space, key));
        });
    }
}

#[cold]
fn tell_time(held: &mut HeldShards<'_>, now: UnixMs) {
    held.iter_mut().for_each(|shard| shard.engine.set_time(now));
}

impl Keyspace for Txn<'_> {
    fn now(&self) -> UnixMs {
        self.now
    }

    fn space(&self) -> KeyspaceId {
        self.space
    }

    fn select(&mut self, index: DbIndex) {
        self.space = self.store.spaces.get(index).unwrap_or(self.space);
    }

    fn watch(&mut self, key: &Key<'_>, changed: &Arc<AtomicBool>) {
        self.shard(key).watch.watch(key, changed);
    }

    fn wait(&mut self, waiter: Arc<dyn Waiter>) {
        self.enlist(&waiter);
    }

    fn space_of(&self, index: DbIndex) -> Option<KeyspaceId> {
        self.store.spaces.get(index)
    }

    fn hasher(&self) -> &base::hash::KeyHasher {
        &self.store.hasher
    }

    #[inline]
    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.store.key(self.space, bytes)
    }

    #[inline]
    fn read(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.look_at(key);
        let (touch, shard) = (self.touch, self.store.shard_of(key));
        let result = self.held.get(shard).engine.read(key, touch);
        // Looked at in place: moving an entry costs more than counting it.
        match &result {
            Ok(Some(_)) => self.scratch.hits += 1,
            Ok(None) => {
                self.scratch.misses += 1;
                if self.store.notices.wants(NotifyClass::MISS) {
                    note(self.store, self.scratch, "keymiss", key);
                }
            }
            Err(Fetch) => lacks(self.store, self.scratch, key),
        }
        shown(self.store, self.scratch, key, result, Reading::Hit)
    }

    #[inline]
    fn read_to_edit(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.look_at(key);
        let (touch, shard) = (self.touch, self.store.shard_of(key));
        let result = self.held.get(shard).engine.read(key, touch);
        if result.is_err() {
            lacks(self.store, self.scratch, key);
        }
        shown(self.store, self.scratch, key, result, Reading::Access)
    }

    fn read_stored(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.look_at(key);
        let (touch, shard) = (self.touch, self.store.shard_of(key));
        let result = self.held.get(shard).engine.read(key, touch);
        stored_here(self.store, self.scratch, key, result)
    }

    fn peek_value(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.look_at(key);
        let shard = self.store.shard_of(key);
        let result = self.held.get(shard).engine.read(key, false);
        if result.is_err() {
            lacks(self.store, self.scratch, key);
        }
        shown(self.store, self.scratch, key, result, Reading::Peek)
    }

    fn cas_id(&mut self, key: &Key<'_>) -> Result<Option<u64>, Fetch> {
        self.look_at(key);
        let shard = self.store.shard_of(key);
        let result = self.held.get(shard).engine.cas_id(key);
        if result.is_err() {
            self.scratch.want(shard, key);
        }
        result
    }

    fn settle_sticky(&mut self, key: &Key<'_>) {
        self.held.get(self.store.shard_of(key)).engine.settle_sticky();
    }

    #[inline]
    fn count_peek(&mut self, found: bool) {
        match found {
            true => self.scratch.hits += 1,
            false => self.scratch.misses += 1,
        }
    }

    #[cold]
    fn abandon(&mut self) {
        self.scratch.record.clear();
        self.changed = false;
    }

    fn libraries(&mut self) -> Option<Arc<Libraries>> {
        if self.holds {
            self.hold.set(self.hold.get().max(self.store.libraries.changed_at()));
        }
        Some(self.store.libraries.get())
    }

    fn take_read_counts(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.scratch.hits), std::mem::take(&mut self.scratch.misses))
    }

    #[inline]
    fn peek(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.look_at(key);
        let shard = self.store.shard_of(key);
        let result = self.held.get(shard).engine.read(key, false);
        stored_here(self.store, self.scratch, key, result)
    }

    #[inline]
    fn peek_head(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.look_at(key);
        let shard = self.store.shard_of(key);
        let result = self.held.get(shard).engine.read(key, false);
        if result.is_err() {
            lacks(self.store, self.scratch, key);
        }
        result
    }

    #[inline]
    fn apply(&mut self, effect: &Effect<'_>) {
        match effect {
            Effect::Set { .. } | Effect::StoreWith { .. } if self.store.compression.has_special_stores() => {
                self.store_specially(effect);
            }
            Effect::Copy { .. } => self.apply_copy(effect),
            Effect::Position { text } => self.apply_position(text),
            _ => {
                self.apply_as_it_is(effect);
            }
        }
    }

    #[inline]
    fn edit(&mut self, key: &Key<'_>, kind: Type, changes: &[u8], known: Known) -> Result<Edited, Unedited> {
        if known == Known::Read {
            let left = self.apply_as_it_is(&Effect::Edit { key: *key, kind, changes });
            return Ok(Edited { before: 0, left: left.expect("an edit tells what it leaves") });
        }
        if self.store.notices.any() {
            return Err(Unedited::Watched);
        }
        // A panic in it may come after its first change.
        let (touch, has_changed) = (self.touch, std::mem::replace(&mut self.changed, true));
        let edited = match self.shard(key).engine.edit(key, kind, changes, known, touch) {
            Ok(edited) => edited,
            Err(reason) => {
                self.changed = has_changed;
                return Err(reason);
            }
        };
        self.look_at(key);
        self.scratch.changes += 1;
        let effect = Effect::Edit { key: *key, kind, changes };
        self.scratch.decoder.forget();
        self.entry_changed(key, &effect);
        if self.scratch.log.sink.is_some() {
            self.record(&effect);
        }
        Ok(edited)
    }

    #[inline]
    fn notify(&mut self, class: NotifyClass, event: &'static str, key: &Key<'_>) {
        if self.store.notices.wants(class) {
            note(self.store, self.scratch, event, key);
        }
    }

    fn publish(&mut self, channel: &[u8], text: &[u8], is_sharded: bool) -> bool {
        self.scratch.notices.push(Notice::Message { channel: channel.into(), text: text.into(), is_sharded });
        true
    }

    fn is_recorded(&self) -> bool {
        self.scratch.log.sink.is_some()
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch.buffer)
    }

    fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= BUFFER_BYTES_MAX {
            buffer.clear();
            self.scratch.buffer = buffer;
        }
    }

    fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.store.packed)
    }

    #[cold]
    fn has_all_locks(&self) -> bool {
        self.held.are_all(self.store.shard_ids().len())
    }

    fn lock_all(&mut self) -> bool {
        let (held, is_locked) = match self.store.lock_rest(std::mem::take(&mut self.held)) {
            Ok(held) => (held, true),
            Err(held) => (held, false),
        };
        self.held = held;
        if is_locked {
            tell_time(&mut self.held, self.now);
            // Clients that wait for keys of these shards are served, too. A row that cannot be read now is read when
            // the next command changes it.
            while self.fetch_for_waiters().is_err() && self.load_lacking().is_ok() {}
        }
        is_locked
    }

    fn load_lacking(&mut self) -> std::io::Result<()> {
        let loaded = self.held.load(&mut self.scratch.wants);
        self.look_for_leaves();
        loaded
    }

    fn next_command(&mut self) {
        tell_time(&mut self.held, self.now);
    }

    fn may_fetch(&self) -> bool {
        match &self.held {
            HeldShards::None => false,
            HeldShards::One(_, held) => held.engine.may_fetch(),
            HeldShards::Several(all) => all.iter().any(|(_, held)| held.engine.may_fetch()),
        }
    }

    fn len(&self, space: KeyspaceId) -> u64 {
        self.over_shards(|shard| shard.engine.len(space))
    }

    fn expiring_len(&self, space: KeyspaceId) -> u64 {
        self.over_shards(|shard| shard.engine.expiring_len(space))
    }

    fn timed_len(&self, space: KeyspaceId) -> u64 {
        self.over_shards(|shard| shard.engine.timed_len(space))
    }

    fn average_ttl_ms(&mut self, space: KeyspaceId) -> Option<u64> {
        let now = self.now;
        let (mut sum, mut weight) = (0u128, 0u128);
        let sample = |shard: &mut Shard| {
            let expiring = u128::from(shard.engine.expiring_len(space));
            let samples = TTL_SAMPLES_PER_SHARD.min(expiring as usize);
            let sampled = (0..samples).filter_map(|_| shard.engine.random_expiration(space));
            let (found, ms) =
                sampled.fold((0, 0), |(found, ms), at| (found + 1, ms + at.saturating_sub(now).max(0) as u128));
            if let Some(average) = ms.checked_div(found) {
                sum += expiring * average;
                weight += expiring;
            }
        };
        match &mut self.held {
            HeldShards::None => self.store.each_shard(sample).for_each(drop),
            held => held.iter_mut().for_each(sample),
        }
        sum.checked_div(weight).map(|average| average as u64)
    }

    /// A cursor is a bound of the hash (upper 48 bits) and a shard (lower 16). Locks of further shards are taken one at
    /// a time, the last one's opened first; when another thread holds one, the step visits nothing. A command that
    /// holds none takes each for one step, and waits for it.
    fn scan(&mut self, space: KeyspaceId, cursor: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep {
        let shard = ShardId(cursor as u16);
        if shard.index() >= self.store.shard_ids().len() {
            return ScanStep { next: None };
        }
        if matches!(self.held, HeldShards::None) {
            let mut held = self.store.lock_patiently(shard);
            held.engine.set_time(self.now);
            self.look_over(&held);
            let bound = cursor & !0xFFFF;
            if bound == 0 {
                self.walk = Some((shard, space, held.engine.loads(space)));
            }
            let step = scan_step(&mut held.engine, space, bound, self.loads_since(shard, space), visit);
            self.store.unlock_one(held);
            return self.next_cursor(shard, step);
        }
        if let HeldShards::One(held, _) = &self.held
            && *held != shard
        {
            let Some(next) = self.store.shard(shard).lock.spin_lock() else { return ScanStep { next: Some(cursor) } };
            let before = std::mem::replace(&mut self.held, HeldShards::One(shard, next));
            self.store.unlock(before);
            self.held.get(shard).engine.set_time(self.now);
        }
        self.look_over_held(shard);
        let bound = cursor & !0xFFFF;
        if bound == 0 {
            self.walk = Some((shard, space, self.held.get(shard).engine.loads(space)));
        }
        let since = self.loads_since(shard, space);
        let step = scan_step(&mut self.held.get(shard).engine, space, bound, since, visit);
        self.next_cursor(shard, step)
    }

    fn changed_names(&mut self, space: KeyspaceId, range: &Names, limit: usize) -> Option<ChangedNames> {
        self.changed_names_in(space, range, limit)
    }

    fn cursor_at(&mut self, space: KeyspaceId, name: &[u8]) -> Option<u64> {
        self.cursor_of_name(space, name)
    }

    fn name_at(&mut self, space: KeyspaceId, cursor: u64) -> Option<Vec<u8>> {
        self.name_of_cursor(space, cursor)
    }

    fn random_entry(&mut self, space: KeyspaceId) -> Option<Entry<'_>> {
        let total = self.len(space);
        let mut pick = self.random_below(total);
        let picked = self.held.iter_mut().position(|shard| {
            let len = shard.engine.len(space);
            let is_picked = pick < len;
            pick -= if is_picked { 0 } else { len };
            is_picked
        });
        // Counts that are guessed may be 0 where there are entries.
        let guessed = || self.held.iter_mut().position(|shard| !shard.engine.is_len_exact(space));
        let at = picked.or_else(guessed)?;
        self.held.iter_mut().nth(at)?.engine.random_entry(space)
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        let rng = self.scratch.rng.get_or_insert_with(|| base::Rng::new(self.store.clock.monotonic_ns()));
        rng.below(bound)
    }

    fn idle_seconds(&self, stamp: u32) -> u64 {
        match &self.held {
            HeldShards::None => 0,
            HeldShards::One(_, held) => held.engine.idle_seconds(stamp),
            HeldShards::Several(all) => all.first().map_or(0, |(_, held)| held.engine.idle_seconds(stamp)),
        }
    }

    fn frequency(&self, stamp: u32) -> u8 {
        match &self.held {
            HeldShards::None => 0,
            HeldShards::One(_, held) => held.engine.frequency(stamp),
            HeldShards::Several(all) => all.first().map_or(0, |(_, held)| held.engine.frequency(stamp)),
        }
    }

    fn set_usage(&mut self, key: &Key<'_>, usage: Usage) {
        self.shard(key).engine.set_usage(key, usage);
    }

    fn cost_bytes(&mut self, key: &Key<'_>) -> Option<u64> {
        self.look_at(key);
        self.shard(key).engine.cost_bytes(key)
    }

    fn is_empty(&self, space: KeyspaceId) -> bool {
        self.over_shards(|shard| u64::from(shard.engine.len(space) > 0 || !shard.engine.is_len_exact(space))) == 0
    }

    fn drop_clean(&mut self, bytes: u64) -> u64 {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let dropped = self.held.iter_mut().map(|shard| shard.engine.drop_clean(bytes) as u64).sum();
        self.look_for_leaves();
        dropped
    }
}

/// Notes an event to a key.
#[cold]
fn note(store: &Store, scratch: &mut Scratch, event: &'static str, key: &Key<'_>) {
    let db = store.spaces.index_of(key.space).unwrap_or_default();
    scratch.notices.push(Notice::Event { event, db, key: key.bytes.into() });
}
