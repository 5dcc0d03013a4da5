//! One shard: the storage of a slice of the keyspace, and the tables that the same lock guards.

use crate::hold::HoldTable;
use crate::waits::WaitTable;
use crate::watch::WatchTable;
use base::{KeyspaceId, ShardId, UnixMs};
use engine::{
    ChangedNames, Due, Edited, Effect, Encoding, Engine, Entry, EntrySink, ExtFields, Fetch, Key, Known, Names,
    NewEntry, Rows, ScanStep, Ticket, Type, Unedited, Usage, Value, WalkProgress, Wanted,
};
use engine_mem::{Droppable, MemEngine};
use std::sync::Arc;
use value::Big;

/// What a shard's lock guards. What a read needs comes first.
#[repr(C)]
pub struct Shard {
    /// The entries.
    pub engine: ShardEngine,
    /// Up to where the log has to be durable before a reply shows a key; `None` unless replies wait for the log.
    pub holds: Option<Box<HoldTable>>,
    /// The watched keys of this shard.
    pub watch: WatchTable,
    /// Which commands wait for keys of this shard.
    pub waits: WaitTable,
}

impl Shard {
    /// Flags the watchers of the keys that an effect changes here.
    #[inline]
    pub fn touch_watchers(&mut self, effect: &Effect<'_>) {
        if !self.watch.is_empty() {
            self.touch_watchers_of(effect);
        }
    }

    /// Flags the watchers of keys of one keyspace that exist there, or in another that takes its place.
    pub fn touch_watchers_of_two(&mut self, space: KeyspaceId, other: KeyspaceId) {
        let Self { watch, engine, .. } = self;
        watch.touch_where(|key| {
            key.space == space && (engine.may_hold(key) || engine.may_hold(&Key { space: other, ..*key }))
        });
    }

    #[cold]
    fn touch_watchers_of(&mut self, effect: &Effect<'_>) {
        match effect {
            // The value is kept in another way, but is the same.
            Effect::Splice { bytes: [], .. } => {}
            // What groups consume leaves the entries as they are.
            Effect::Edit { kind: Type::Stream, changes, .. } if !value::stream::are_about_entries(changes) => {}
            Effect::Clear { space } => {
                let Self { watch, engine, .. } = self;
                watch.touch_where(|key| key.space == *space && engine.may_hold(key));
            }
            Effect::Swap { a, b } => {
                let Self { watch, engine, .. } = self;
                watch.touch_where(|key| {
                    let other = Key { space: if key.space == *a { *b } else { *a }, ..*key };
                    (key.space == *a || key.space == *b) && (engine.may_hold(key) || engine.may_hold(&other))
                });
                watch.swap(*a, *b);
            }
            _ => effect.keys().for_each(|key| self.watch.touch(key.space, key.hash)),
        }
    }
}

/// Units of cleaning for a row that comes over the memory budget.
const ROOM_STEP: usize = 16;

/// The engine of a shard: memory, called directly, or another one through its trait.
pub enum ShardEngine {
    /// In memory; answers [`Fetch`] only for backed keyspaces.
    Memory(Box<MemEngine>),
    /// Any engine, for tests of the contract and, later, for other media.
    Other(Box<dyn Engine>),
}

impl ShardEngine {
    /// Whether reads can answer [`Fetch`].
    pub fn may_fetch(&self) -> bool {
        match self {
            Self::Memory(engine) => engine.may_fetch(),
            Self::Other(_) => true,
        }
    }
}

impl ShardEngine {
    /// Whether the keyspace is backed by rows.
    pub(crate) fn is_backed(&self, space: KeyspaceId) -> bool {
        matches!(self, Self::Memory(engine) if engine.is_backed(space))
    }

    /// Drops about `bytes` bytes of entries that rows hold as well. Returns how many bytes it dropped.
    pub(crate) fn drop_clean(&mut self, bytes: usize) -> usize {
        match self {
            Self::Memory(engine) if engine.may_fetch() => engine.drop_clean_anywhere(bytes),
            _ => 0,
        }
    }

    /// What can be dropped of entries that rows hold, or will hold when they are flushed.
    pub(crate) fn droppable(&self) -> Droppable {
        match self {
            Self::Memory(engine) => engine.droppable(),
            Self::Other(_) => Droppable::default(),
        }
    }

    /// Whether leaves of trees may be rows.
    pub(crate) fn has_leaf_rows(&self) -> bool {
        matches!(self, Self::Memory(engine) if engine.has_leaf_rows())
    }

    /// See [`MemEngine::take_over`].
    pub(crate) fn take_over(&mut self, to: KeyspaceId, from: KeyspaceId) {
        match self {
            Self::Memory(engine) => engine.take_over(to, from),
            Self::Other(_) => unreachable!("a server's engines are in memory, and only servers take copies"),
        }
    }

    /// The same as [`ShardEngine::drop_clean`], and gives pages back.
    pub(crate) fn make_room(&mut self, bytes: usize) {
        if let Self::Memory(engine) = self
            && (engine.drop_clean_anywhere(bytes) > 0 || engine.demote(bytes).count > 0)
        {
            engine.clean_closely(ROOM_STEP);
        }
    }
}

/// Calls the same method on whichever engine it is.
macro_rules! either {
    ($engine:expr, $it:ident => $call:expr) => {
        match $engine {
            ShardEngine::Memory($it) => $call,
            ShardEngine::Other($it) => $call,
        }
    };
}

impl Engine for ShardEngine {
    #[inline]
    fn set_time(&mut self, now: UnixMs) {
        either!(self, it => it.set_time(now));
    }

    #[inline]
    fn read(&mut self, key: &Key<'_>, touch: bool) -> Result<Option<Entry<'_>>, Fetch> {
        either!(self, it => it.read(key, touch))
    }

    fn want(&mut self, key: &Key<'_>) -> Wanted {
        either!(self, it => it.want(key))
    }

    fn install(&mut self, key: &Key<'_>, ticket: Ticket, row: Option<&[u8]>) -> bool {
        either!(self, it => it.install(key, ticket, row))
    }

    fn withdraw(&mut self, key: &Key<'_>, ticket: Ticket) {
        either!(self, it => it.withdraw(key, ticket));
    }

    fn release(&mut self, key: &Key<'_>) {
        either!(self, it => it.release(key));
    }

    fn may_hold(&mut self, key: &Key<'_>) -> bool {
        either!(self, it => it.may_hold(key))
    }

    #[inline]
    fn write(&mut self, key: &Key<'_>, entry: &NewEntry<'_>) {
        either!(self, it => it.write(key, entry));
    }

    fn splice(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> bool {
        either!(self, it => it.splice(key, offset, bytes))
    }

    fn recode(&mut self, key: &Key<'_>, encoding: Encoding, value: Value<'_>) {
        either!(self, it => it.recode(key, encoding, value));
    }

    fn reform(&mut self, key: &Key<'_>, change: &mut dyn FnMut(&mut Big)) {
        either!(self, it => it.reform(key, change));
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
        either!(self, it => it.edit(key, kind, changes, known, touch))
    }

    fn set_expiration(&mut self, key: &Key<'_>, at: Option<UnixMs>) -> bool {
        either!(self, it => it.set_expiration(key, at))
    }

    fn set_fields(&mut self, key: &Key<'_>, fields: ExtFields<'_>) -> bool {
        either!(self, it => it.set_fields(key, fields))
    }

    fn sticky_stored(&mut self, key: &Key<'_>) {
        either!(self, it => it.sticky_stored(key))
    }

    fn settle_sticky(&mut self) {
        either!(self, it => it.settle_sticky())
    }

    fn cas_id(&mut self, key: &Key<'_>) -> Result<Option<u64>, Fetch> {
        either!(self, it => it.cas_id(key))
    }

    fn remove(&mut self, key: &Key<'_>) -> bool {
        either!(self, it => it.remove(key))
    }

    fn clear(&mut self, space: KeyspaceId) {
        either!(self, it => it.clear(space));
    }

    fn len(&self, space: KeyspaceId) -> u64 {
        either!(self, it => it.len(space))
    }

    fn expiring_len(&self, space: KeyspaceId) -> u64 {
        either!(self, it => it.expiring_len(space))
    }

    fn timed_len(&self, space: KeyspaceId) -> u64 {
        either!(self, it => it.timed_len(space))
    }

    fn scan(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep {
        either!(self, it => it.scan(space, from, visit))
    }

    fn scan_rows(
        &mut self,
        space: KeyspaceId,
        from: u64,
        since: Option<u64>,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> Option<u64> {
        either!(self, it => it.scan_rows(space, from, since, visit))
    }

    fn changed_names(
        &self,
        space: KeyspaceId,
        shard: ShardId,
        range: &Names,
        limit: usize,
        changed: &mut ChangedNames,
    ) -> bool {
        either!(self, it => it.changed_names(space, shard, range, limit, changed))
    }

    fn ordered_rows(&self, space: KeyspaceId) -> Option<&Arc<dyn Rows>> {
        either!(self, it => it.ordered_rows(space))
    }

    fn loads(&self, space: KeyspaceId) -> u64 {
        either!(self, it => it.loads(space))
    }

    fn is_len_exact(&self, space: KeyspaceId) -> bool {
        either!(self, it => it.is_len_exact(space))
    }

    fn survey(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>, u64)) -> ScanStep {
        either!(self, it => it.survey(space, from, visit))
    }

    fn random_entry(&mut self, space: KeyspaceId) -> Option<Entry<'_>> {
        either!(self, it => it.random_entry(space))
    }

    fn random_expiration(&mut self, space: KeyspaceId) -> Option<UnixMs> {
        either!(self, it => it.random_expiration(space))
    }

    fn due(&mut self, limit: usize, visit: &mut dyn FnMut(Key<'_>, Due)) -> usize {
        either!(self, it => it.due(limit, visit))
    }

    fn clean(&mut self, budget: usize) -> bool {
        either!(self, it => it.clean(budget))
    }

    fn idle_seconds(&self, stamp: u32) -> u64 {
        either!(self, it => it.idle_seconds(stamp))
    }

    fn frequency(&self, stamp: u32) -> u8 {
        either!(self, it => it.frequency(stamp))
    }

    fn set_usage(&mut self, key: &Key<'_>, usage: Usage) {
        either!(self, it => it.set_usage(key, usage))
    }

    fn cost_bytes(&mut self, key: &Key<'_>) -> Option<u64> {
        either!(self, it => it.cost_bytes(key))
    }

    fn begin_checkpoint(&mut self, sink: Box<dyn EntrySink>) {
        either!(self, it => it.begin_checkpoint(sink));
    }

    fn walk_checkpoint(&mut self, budget: usize) -> WalkProgress {
        either!(self, it => it.walk_checkpoint(budget))
    }

    fn end_checkpoint(&mut self) -> Option<Box<dyn EntrySink>> {
        either!(self, it => it.end_checkpoint())
    }
}
