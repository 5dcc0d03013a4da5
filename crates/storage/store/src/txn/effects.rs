//! How a transaction applies effects: to the shards, the watchers, the waiters and the record of the log.

use crate::shard::ShardEngine;
use crate::txn::Txn;
use base::{KeyspaceId, UnixMs};
use engine::tier::{EXPIRES_SOON_MS, KEY_LEN_MAX, NewRecord, Origin, VALUE_LEN_MAX};
use engine::{
    Effect, Encoding, Engine, Fields, Key, Keyspace, Left, SharedBytes, TaggedFields, TierRefusal, Type, Value,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use types::Kept;
use value::cold::Keeper;
use value::{Big, Body, Slot};

impl Txn<'_> {
    /// Applies the effect, and returns what an edit leaves; `None` for others.
    #[inline]
    pub(super) fn apply_as_it_is(&mut self, effect: &Effect<'_>) -> Option<Left> {
        let is_told = self.store.notices.any();
        if is_told && self.store.notices.ask_leaves() {
            self.reach_leaves(effect);
        }
        self.changed = true;
        self.scratch.changes += 1;
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

    /// Before a change where leaves of trees may be rows. The first of a command is tried in a clone. It unwinds when
    /// it needs an absent leaf, with nothing changed. From then on absent leaves are read at once.
    #[cold]
    #[inline(never)]
    fn reach_leaves(&mut self, effect: &Effect<'_>) {
        let store = self.store;
        if let (false, Effect::Edit { key, kind, changes }) = (self.changed, effect)
            && let Ok(Some(entry)) = self.shard(key).engine.read(key, false)
            && let Value::Big(tree) = entry.value
            && tree.may_have_rows()
        {
            let mut clone = Big::clone(tree);
            let body = Body::Big(&mut clone);
            let mut slot = Slot { body, encoding: entry.encoding, limits: &store.packed, hasher: &store.hasher };
            value::apply(*kind, &mut slot, changes);
        }
        self.scratch.wait_for_leaves();
    }

    /// An entry was changed by this effect: flags its watchers, and marks its waiters ready.
    #[inline]
    pub(super) fn entry_changed(&mut self, key: &Key<'_>, effect: &Effect<'_>) {
        let shard = self.held.get(self.store.shard_of(key));
        shard.touch_watchers(effect);
        if !shard.waits.is_empty() && shard.waits.make_ready(key) {
            self.scratch.serving.push_ready(key.space, key.bytes);
        }
    }

    /// Applies an effect that stores a string, which is compressed if that saves enough, and goes to a tier at once if
    /// that is mapped and takes values as they are written.
    #[cold]
    pub(super) fn store_specially(&mut self, effect: &Effect<'_>) {
        let mut coder = std::mem::take(&mut self.scratch.coder);
        let mut effect = *effect;
        // What is read back from a log stays as it was recorded.
        let is_compressing = self.store.compression.is_on_write() && !self.is_replaying();
        if let Effect::Set { key, value, encoding, .. }
        | Effect::StoreWith { key, kind: Type::String, value, encoding, .. } = &mut effect
            && is_compressing
            && !encoding.is_compressed()
        {
            let compression = &self.store.compression;
            let encoded = compression.encode(&mut coder, &*self.store.clock, key, Type::String, value.bytes());
            if let Some(encoded) = encoded {
                compression.figures.compressed_on_write.fetch_add(1, Ordering::Relaxed);
                (*value, *encoding) = (Value::Bytes(encoded.bytes), encoding.compressed());
            }
        }
        if !self.store_on_tier(&effect) {
            self.apply_as_it_is(&effect);
        }
        self.scratch.coder = coder;
    }

    /// Applies an effect that stores a string by its address on the tier. On persistent memory that is what the log has
    /// of it too: the value is durable before the record. False, with nothing done, when it is to be in memory first.
    fn store_on_tier(&mut self, effect: &Effect<'_>) -> bool {
        let Some(tier) = self.store.tier.get().filter(|tier| tier.takes_written()) else { return false };
        let (key, encoding, value, expire_at, fields) = match *effect {
            Effect::Set { key, value, encoding, expire_at } => (key, encoding, value, expire_at, TaggedFields::NONE),
            Effect::StoreWith { key, kind: Type::String, value, encoding, expire_at, fields } => {
                (key, encoding, value, expire_at, fields)
            }
            _ => return false,
        };
        let is_of_length =
            (tier.value_len_min()..=VALUE_LEN_MAX).contains(&value.len()) && key.bytes.len() <= KEY_LEN_MAX;
        let expires_soon = expire_at.is_some_and(|at| at < self.now.saturating_add(EXPIRES_SOON_MS));
        let (is_replaying, is_backed) = (self.is_replaying(), self.shard(&key).engine.is_backed(key.space));
        let is_in_time = tier.is_mapped() || is_replaying;
        if !is_of_length || expires_soon || !is_in_time || is_backed || fields.get().tier.is_some() {
            return false;
        }
        let record = NewRecord { key: key.bytes, kind: Type::String, encoding, value: value.bytes() };
        let mut appended = tier.append(&record, Origin::Memory);
        if appended == Err(TierRefusal::Busy) && is_replaying {
            tier.relieve();
            appended = tier.append(&record, Origin::Memory);
        }
        let Ok(address) = appended else { return false };
        let is_durable = tier.is_durable_at_once();
        self.store.tier_counts.demoted.fetch_add(1, Ordering::Relaxed);
        let mut tagged = std::mem::take(&mut self.scratch.tagged);
        tagged.clear();
        Fields { tier: Some(address), ..fields.get() }.put_saved(&mut tagged);
        let fields = TaggedFields::check(&tagged).expect("fields are encoded as they are read");
        // As in a checkpoint: that the entry is away follows from its address.
        let (encoding, value) = (Encoding::PLAIN, Value::Bytes(&[]));
        let stored = Effect::StoreWith { key, kind: Type::String, encoding, value, expire_at, fields };
        self.apply_recorded_as(&stored, if is_durable { &stored } else { effect });
        self.scratch.tagged = tagged;
        true
    }

    /// As [`Txn::apply_as_it_is`] for an effect about one entry, of which the log gets another form.
    fn apply_recorded_as(&mut self, effect: &Effect<'_>, recorded: &Effect<'_>) {
        self.changed = true;
        self.scratch.changes += 1;
        let is_told = self.store.notices.any();
        let created = if is_told { self.created_by(effect) } else { None };
        types::apply::apply(self, effect);
        self.scratch.decoder.forget();
        effect.each_key(|key| self.entry_changed(key, effect));
        if is_told {
            self.note_change(effect, created.as_ref());
        }
        if self.scratch.log.sink.is_some() {
            self.record(recorded);
        }
    }

    /// Whether one of the keyspaces is backed and the other is not, so that they have different recovery points.
    #[cold]
    fn is_across(&mut self, from: &Key<'_>, to: &Key<'_>) -> bool {
        self.shard(from).engine.is_backed(from.space) != self.shard(to).engine.is_backed(to.space)
    }

    /// Applies an [`Effect::Copy`]. Apart, so that [`Keyspace::apply`] saves no registers for other effects.
    #[cold]
    #[inline(never)]
    pub(super) fn apply_copy(&mut self, effect: &Effect<'_>) {
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
    pub(super) fn apply_position(&mut self, text: &[u8]) {
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
