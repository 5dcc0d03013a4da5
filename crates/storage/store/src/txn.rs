//! A command's view of the store: its shards locked, its time fixed, its effects applied and recorded.

use crate::compression::Coder;
use crate::hold::HoldTable;
use crate::locking::HeldShards;
use crate::notices::{Notice, Notices};
use crate::record_sink::LogView;
use crate::scan::scan_step;
use crate::serve::serving::Serving;
use crate::shard::{Shard, ShardEngine};
use crate::store::Store;
use crate::wants::want::Want;
use base::{DbIndex, KeyspaceId, Lsn, ShardId, UnixMs};
use cmdlog::RecordBuilder;
use engine::{
    Effect, Engine, Entry, Fetch, Key, Keyspace, Left, Libraries, NotifyClass, ScanStep, SharedBytes, Type, Usage,
    Value, Waiter, WriteClass,
};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use types::{Decoder, Kept};
use value::Limits;
use value::cold::Keeper;

/// What a worker reuses from command to command.
#[derive(Default)]
pub struct Scratch {
    /// The record of the running command.
    pub record: RecordBuilder,
    /// Reads that found an entry.
    pub hits: u64,
    /// Reads that found none.
    pub misses: u64,
    /// Effects applied, as INFO's `rdb_changes_since_last_save` counts them.
    pub changes: u64,
    /// Entries removed because their time had come.
    pub expired: u64,
    /// Entries removed to make room.
    pub evicted: u64,
    /// The client whose command runs; 0 for none.
    pub client: u64,
    /// The notices of the running command.
    pub(crate) notices: Vec<Notice>,
    /// See [`Keyspace::take_buffer`].
    buffer: Vec<u8>,
    /// Reads values that are stored compressed.
    pub(crate) decoder: Decoder,
    /// Compresses what is written.
    coder: Coder,
    pub(crate) rng: Option<base::Rng>,
    /// The log in force.
    pub(crate) log: LogView,
    /// What the running command changes, while replies wait for the log.
    pub(crate) touched: Touched,
    /// Up to where the log has to be durable before the last command may be answered.
    pub(crate) hold: Lsn,
    /// The position after the last command's record; 0 when it has none.
    pub(crate) wrote: Lsn,
    /// Commands that wait for what it changes.
    pub(crate) serving: Serving,
    /// Rows that the running command lacks.
    pub(crate) wants: Vec<Want>,
}

impl Scratch {
    /// Whether there was a log when the last command ran; only then do the other two methods mean anything.
    #[inline]
    pub fn is_logged(&self) -> bool {
        self.log.sink.is_some()
    }

    /// How many values were decompressed since the last call.
    pub fn take_decompressed(&mut self) -> u64 {
        self.decoder.take_count()
    }

    /// The position after the last command's record; `None` when it changed nothing.
    pub fn wrote(&self) -> Option<Lsn> {
        (self.wrote > Lsn(0)).then_some(self.wrote)
    }

    /// Has the last command's notices announced, under its locks. True when there are any.
    #[inline]
    pub(crate) fn hand_over_notices(&mut self, to: &Notices) -> bool {
        !self.notices.is_empty() && self.queue_notices(to)
    }

    #[cold]
    fn queue_notices(&mut self, to: &Notices) -> bool {
        to.queue(std::mem::take(&mut self.notices), self.hold().unwrap_or(Lsn(0)));
        true
    }

    /// Hold the last command's reply back until the log is durable up to here: the reply shows its own change, or one
    /// of another command that could still be lost. `None` when replies do not wait.
    pub fn hold(&self) -> Option<Lsn> {
        (self.log.holds && self.hold > Lsn(0)).then_some(self.hold)
    }
}

/// Keys changed by a command before their position in the log is known.
#[derive(Default)]
pub(crate) struct Touched {
    keys: Vec<(ShardId, u8)>,
    /// There are too many to name, or whole keyspaces are among them.
    all: bool,
    /// Libraries have changed.
    libraries: bool,
}

/// Keys named at most: a command that changes more holds back replies about all keys of its shards.
const TOUCHED_MAX: usize = 1024;

impl Touched {
    fn add(&mut self, shard: ShardId, key: &Key<'_>) {
        match self.keys.len() < TOUCHED_MAX {
            true => self.keys.push((shard, HoldTable::bits(key.hash))),
            false => self.all = true,
        }
    }

    /// Puts the position of the changes into the shards' tables.
    pub(crate) fn apply(&mut self, store: &Store, held: &mut HeldShards<'_>, lsn: Lsn) {
        if std::mem::take(&mut self.libraries) {
            store.libraries.set_changed_at(lsn);
        }
        if std::mem::take(&mut self.all) {
            held.iter_mut().filter_map(|shard| shard.holds.as_mut()).for_each(|holds| holds.touch_all(lsn));
        } else {
            for (shard, bits) in &self.keys {
                if let Some(holds) = &mut held.get(*shard).holds {
                    holds.touch(*bits, lsn);
                }
            }
        }
        self.keys.clear();
    }
}

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

    /// Applies the effect, and returns what an edit leaves; `None` for others.
    #[inline]
    fn apply_as_it_is(&mut self, effect: &Effect<'_>) -> Option<Left> {
        self.changed = true;
        self.scratch.changes += 1;
        let is_told = self.store.notices.any();
        let created = if is_told { self.created_by(effect) } else { None };
        if let Effect::Edit { key, .. } | Effect::Replace { key, .. } = effect
            && self.shard(key).engine.expiring_len(key.space) > 0
        {
            self.make_way(key);
        }
        let mut left = None;
        match effect {
            Effect::Clear { .. } | Effect::Swap { .. } => self.apply_to_keyspaces(effect),
            Effect::Library { name, code } => self.store.libraries.apply(name, code),
            _ => {
                left = types::apply::apply(self, effect);
                self.scratch.decoder.forget();
                effect.each_key(|key| self.entry_changed(key, effect));
            }
        }
        if is_told {
            self.note_change(effect, created.as_ref());
        }
        if self.scratch.log.sink.is_some() {
            self.record(effect);
        }
        left
    }

    /// An entry was changed by this effect: flags its watchers, and marks its waiters ready.
    #[inline]
    fn entry_changed(&mut self, key: &Key<'_>, effect: &Effect<'_>) {
        let shard = self.held.get(self.store.shard_of(key));
        shard.touch_watchers(effect);
        if !shard.waits.is_empty() && shard.waits.make_ready(key) {
            self.scratch.serving.push_ready(key.space, key.bytes);
        }
    }

    /// Applies an effect that stores a string, which is compressed if that saves enough.
    #[cold]
    fn compress_and_apply(&mut self, effect: &Effect<'_>) {
        let mut coder = std::mem::take(&mut self.scratch.coder);
        let mut effect = *effect;
        // What is read back from a log stays as it was recorded.
        let is_replaying = self.is_replaying();
        if let Effect::Set { key, value, encoding, .. }
        | Effect::StoreWith { key, kind: Type::String, value, encoding, .. } = &mut effect
            && !encoding.is_compressed()
            && !is_replaying
        {
            let compression = &self.store.compression;
            let encoded = compression.encode(&mut coder, &*self.store.clock, key, Type::String, value.bytes());
            if let Some(encoded) = encoded {
                compression.figures.compressed_on_write.fetch_add(1, Ordering::Relaxed);
                (*value, *encoding) = (Value::Bytes(encoded.bytes), encoding.compressed());
            }
        }
        self.apply_as_it_is(&effect);
        self.scratch.coder = coder;
    }

    /// Whether one of the keyspaces is backed and the other is not, so that they have different recovery points.
    #[cold]
    fn is_across(&mut self, from: &Key<'_>, to: &Key<'_>) -> bool {
        self.shard(from).engine.is_backed(from.space) != self.shard(to).engine.is_backed(to.space)
    }

    /// Applies an [`Effect::Copy`]. Apart, so that [`Keyspace::apply`] saves no registers for other effects.
    #[cold]
    #[inline(never)]
    fn apply_copy(&mut self, effect: &Effect<'_>) {
        match effect {
            Effect::Copy { from, to } if self.is_across(from, to) => self.copy_value(from, to),
            _ => {
                self.apply_as_it_is(effect);
            }
        }
    }

    /// Applies an [`Effect::Position`], which counts as no change of the data.
    #[cold]
    #[inline(never)]
    fn apply_position(&mut self, text: &[u8]) {
        self.changed = true;
        self.store.position.set(text);
        if self.scratch.log.sink.is_some() {
            self.record(&Effect::Position { text });
        }
    }

    /// Applies an [`Effect::Copy`] by effects that read nothing: replay may find another entry at `from`, or none.
    #[cold]
    fn copy_value(&mut self, from: &Key<'_>, to: &Key<'_>) {
        let Ok(Some(entry)) = self.peek_value(from) else { panic!("a key was copied that is not stored") };
        let (kind, encoding, expire_at, kept) = (entry.kind, entry.encoding, entry.expire_at, Kept::new(entry.value));
        let mut tagged = Vec::new();
        let fields = entry.fields.tagged(&mut tagged);
        let (key, is_recorded) = (*to, self.scratch.log.sink.is_some());
        let Kept::Big(tree) = &kept else {
            let value = kept.value();
            self.apply_as_it_is(&Effect::StoreWith { key, kind, encoding, value, expire_at, fields });
            return;
        };
        if self.shard(to).engine.may_hold(to) || self.shard(to).engine.cost_bytes(to).is_some() {
            self.apply_as_it_is(&Effect::Delete { key });
        }
        let mut changes = Vec::new();
        if is_recorded {
            tree.write_all_changes(&mut changes);
        }
        self.apply_as_it_is(&Effect::Replace { key, tree, changes: &SharedBytes::new(changes) });
        if let Some(at) = expire_at {
            self.apply_as_it_is(&Effect::Expire { key, at });
        }
        if !fields.is_none() {
            self.apply_as_it_is(&Effect::Meta { key, fields });
        }
    }

    /// Whether it is not a client's command that runs.
    fn is_replaying(&self) -> bool {
        self.now == UnixMs::MIN
    }

    /// A value that was decompressed for a command, and that another has used a moment before, is stored as it is from
    /// now on; strings not if they are compressed as they are written.
    #[cold]
    pub(crate) fn keep_hot(&mut self) {
        let settings = self.store.compression.settings();
        let Some((stamp, space, bytes, value)) = self.scratch.decoder.used() else { return };
        let key = self.store.key(space, bytes);
        let engine = &mut self.held.get(self.store.shard_of(&key)).engine;
        let was_hot = engine.idle_seconds(stamp) < u64::from(settings.idle_seconds);
        if was_hot
            && let Ok(Some(entry)) = engine.read(&key, false)
            && entry.is_compressed()
            && !entry.is_away()
            && (!settings.on_write || entry.kind != Type::String)
        {
            let encoding = entry.encoding.decompressed();
            engine.recode(&key, encoding, value);
        }
    }

    /// Puts what keyspace `from` holds, which no database has, in place of what `to` holds. Only without a log, which
    /// has no record of this, under all locks, and without a tier.
    pub fn take_over(&mut self, to: KeyspaceId, from: KeyspaceId) {
        debug_assert!(self.scratch.log.sink.is_none(), "the log would have the old data");
        // Before the change, while it is still known which of the watched keys exist, or will.
        self.held.iter_mut().for_each(|shard| shard.touch_watchers_of_two(to, from));
        self.apply(&Effect::Clear { space: to });
        self.held.iter_mut().for_each(|shard| shard.engine.take_over(to, from));
        self.make_all_ready(to);
    }

    fn apply_to_keyspaces(&mut self, effect: &Effect<'_>) {
        // Before the change, while it is still known which of the watched keys exist.
        self.held.iter_mut().for_each(|shard| shard.touch_watchers(effect));
        match *effect {
            Effect::Clear { space } => {
                if !self.is_empty(space) {
                    self.store.flushes.fetch_add(1, Ordering::Relaxed);
                }
                self.held.iter_mut().for_each(|shard| shard.engine.clear(space));
                self.make_all_ready(space);
            }
            Effect::Swap { a, b } => {
                self.store.spaces.swap(a, b);
                // The selected database has another keyspace now.
                self.space = match self.space {
                    space if space == a => b,
                    space if space == b => a,
                    space => space,
                };
                self.held.iter_mut().for_each(|shard| shard.waits.swap(a, b));
                self.make_all_ready(a);
                self.make_all_ready(b);
            }
            _ => unreachable!("only keyspace effects come here"),
        }
    }
}

/// How an entry is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// As an access that counts as a hit.
    Hit,
    /// As an access.
    Access,
    /// Without a trace.
    Peek,
}

/// What was read, decompressed if it is compressed.
#[inline]
fn shown<'a>(
    store: &Store,
    scratch: &'a mut Scratch,
    key: &Key<'_>,
    read: Result<Option<Entry<'a>>, Fetch>,
    reading: Reading,
) -> Result<Option<Entry<'a>>, Fetch> {
    match read {
        Ok(Some(entry)) if entry.is_compressed() => show_compressed(store, scratch, key, entry, reading),
        read => read,
    }
}

/// An entry whose bytes are not its value: compressed, or away.
#[cold]
fn show_compressed<'a>(
    store: &Store,
    scratch: &'a mut Scratch,
    key: &Key<'_>,
    entry: Entry<'a>,
    reading: Reading,
) -> Result<Option<Entry<'a>>, Fetch> {
    if entry.is_away() {
        // The command runs again, and then it counts.
        scratch.hits -= u64::from(reading == Reading::Hit);
        lacks(store, scratch, key);
        return Err(Fetch);
    }
    Ok(Some(scratch.decoder.show_and_keep(store.source(), key, entry, reading != Reading::Peek)))
}

/// What was read, as it is stored, unless it is away.
#[inline]
fn stored_here<'a>(
    store: &Store,
    scratch: &mut Scratch,
    key: &Key<'_>,
    read: Result<Option<Entry<'a>>, Fetch>,
) -> Result<Option<Entry<'a>>, Fetch> {
    match read {
        Err(Fetch) => {}
        Ok(Some(entry)) if entry.is_away() => {}
        here => return here,
    }
    lacks(store, scratch, key);
    Err(Fetch)
}

/// Notes that a row is missing. Finds out the shard anew, so that readers keep no register for it.
#[cold]
#[inline(never)]
fn lacks(store: &Store, scratch: &mut Scratch, key: &Key<'_>) {
    scratch.want(store.shard_of(key), key);
}

#[cold]
fn tell_time(held: &mut HeldShards<'_>, now: UnixMs) {
    held.iter_mut().for_each(|shard| shard.engine.set_time(now));
}

impl types::apply::Engines for Txn<'_> {
    type Engine = ShardEngine;

    #[inline]
    fn engine(&mut self, key: &Key<'_>) -> &mut ShardEngine {
        &mut self.shard(key).engine
    }

    fn order(&self) -> &base::hash::KeyHasher {
        &self.store.hasher
    }

    fn keeper(&self) -> Arc<dyn Keeper> {
        self.store.compression.keeper()
    }

    #[cold]
    fn decompress(&mut self, key: &Key<'_>) -> bool {
        let (shard, is_replaying) = (self.store.shard_of(key), self.is_replaying());
        let engine = &mut self.held.get(shard).engine;
        if matches!(engine.read(key, false), Ok(Some(entry)) if entry.is_away()) {
            assert!(is_replaying, "a command changes a value that it has not read");
            return false;
        }
        self.scratch.decoder.decompress_in_place(self.store.source(), engine, key);
        true
    }
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
            Effect::Set { .. } | Effect::StoreWith { .. } if self.store.compression.is_on_write() => {
                self.compress_and_apply(effect);
            }
            Effect::Copy { .. } => self.apply_copy(effect),
            Effect::Position { text } => self.apply_position(text),
            _ => {
                self.apply_as_it_is(effect);
            }
        }
    }

    #[inline]
    fn edit(&mut self, key: &Key<'_>, kind: Type, changes: &[u8]) -> Left {
        self.apply_as_it_is(&Effect::Edit { key: *key, kind, changes }).expect("an edit tells what it leaves")
    }

    #[inline]
    fn edit_unseen(&mut self, key: &Key<'_>, kind: Type, changes: &[u8]) -> Option<(u64, Left)> {
        // The notices of a change need a read before it.
        if self.store.notices.any() {
            return None;
        }
        // A panic in it may come after its first change.
        let (touch, has_changed) = (self.touch, std::mem::replace(&mut self.changed, true));
        let Some(edited) = self.shard(key).engine.edit_unseen(key, kind, changes, touch) else {
            self.changed = has_changed;
            return None;
        };
        self.look_at(key);
        self.scratch.changes += 1;
        let effect = Effect::Edit { key: *key, kind, changes };
        self.scratch.decoder.forget();
        self.entry_changed(key, &effect);
        if self.scratch.log.sink.is_some() {
            self.record(&effect);
        }
        Some(edited)
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
        self.held.load(&mut self.scratch.wants)
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
        self.held.iter_mut().map(|shard| shard.engine.drop_clean(bytes) as u64).sum()
    }
}

/// Notes an event to a key.
#[cold]
fn note(store: &Store, scratch: &mut Scratch, event: &'static str, key: &Key<'_>) {
    let db = store.spaces.index_of(key.space).unwrap_or_default();
    scratch.notices.push(Notice::Event { event, db, key: key.bytes.into() });
}
