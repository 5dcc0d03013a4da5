//! A pass over the shards of one worker: brings values into the form that is configured.
//!
//! ```text
//! begin -> gather: one stretch of a shard, under its lock: keys of values that may have to change
//!            |  ^
//!            v  '--- no keys left
//!          handle: one key: copy its value out (of a tree, share it), compress it without the lock, put it back if
//!                  it is the same; of a collection too big for that, some leaves (`leaves`), and then the next
//! ```
//!
//! The first pass after a change of the settings visits all values at once. The first pass after a start visits all
//! once the loaded values may be idle, unless strings are compressed as they are written. Later passes visit values
//! that have gone cold since the previous pass began with their shard, so values that do not shrink are not tried again
//! and again. Once an hour a pass visits all values, and so does the first one after a dictionary was put to use. A
//! pass over all strings also recompresses those that were compressed before their class had its dictionary. The longer
//! a pass ran, the longer the rest after it.

use super::leaves::{self, LOOKS, Search};
use super::queue::{Long, LongLeaf};
use super::wanted::{LEN_MAX, Wanted, lease, may_leave, shown_alone};
use super::{Codec, Coder, add};
use crate::store::Store;
use base::{KeyspaceId, ShardId};
use engine::{Engine, Entry, SharedBig, Type, Value};
use std::sync::atomic::Ordering;
use types::Decoder;
use types::decoder::COLLECTION_LEN_MAX;
use value::{Big, Progress};

/// Keys of one stretch, at most: more than an extent of the table in memory has. Those beyond are left to the next pass
/// that looks at all.
const CANDIDATES_MAX: usize = 4096;

/// Time between the beginnings of two passes, at least.
const PERIOD_NS: u64 = 1_000_000_000;

/// Time between the beginnings of two passes that look at all strings.
const FULL_PERIOD_NS: u64 = 3600 * 1_000_000_000;

/// Time a worker may make up for at most, having had other things to do.
const CREDIT_NS_MAX: i64 = 10_000_000;

/// Where clients need all of a worker's time, passes get one part in this many of their share: a pass is to cost those
/// clients no more than its values save them, and takes longer.
const BUSY_PART: u32 = 8;

/// Passes look for values to change in one part of the time in this many at most, however many values there are and
/// however short is what counts as idle: the rest is between passes, not in them.
const LOOKING_PART: u64 = 32;

/// The pass of one worker.
pub struct Pass {
    shards: Vec<ShardId>,
    /// Of each shard, when the last pass over values began with it.
    seen_ns: Vec<u64>,
    place: Option<Place>,
    candidates: Vec<Candidate>,
    coder: Coder,
    decoder: Decoder,
    /// What is stored of the value being handled, unless that is a tree.
    value: Vec<u8>,
    /// The bytes of a collection to be compressed.
    bytes: Vec<u8>,
    /// The settings that the last pass followed, by their number.
    generation: Option<u32>,
    /// As the store counted adoptions when the last pass began that looked at all strings.
    adoptions: u32,
    /// When the last pass began that looked at all strings.
    full_begun_ns: Option<u64>,
    /// When one may begin that drops what is thawed.
    shed_ns: u64,
    /// When the next one begins, unless the settings change; never where there is nothing to do.
    due_ns: u64,
    /// Until when it waits nevertheless, because of how long the last one looked, where memory is not short.
    rest_until_ns: u64,
    credit: Credit,
}

/// How far a pass has come.
struct Place {
    wanted: Wanted,
    /// Index of the shard.
    shard: usize,
    space: KeyspaceId,
    /// Hash bound of the next stretch.
    from: u64,
    /// The shard has no further stretch.
    is_at_end: bool,
    /// It looks at all values.
    is_full: bool,
    /// It looks for nothing but what is thawed.
    only_sheds: bool,
    /// When the pass before began with the shard; `None` before this one does.
    seen_ns: Option<u64>,
    /// Time spent on looking for values to change.
    looked_ns: u64,
}

/// A value that may have to change.
struct Candidate {
    space: KeyspaceId,
    key: Box<[u8]>,
    stamp: u32,
    is_string: bool,
    is_compressed: bool,
    is_long: bool,
    /// For a collection whose leaves are handled, the rank of the element to continue from.
    leaves_from: Option<u64>,
}

/// The share of a worker's time for passes, in thousandths: what is configured where clients need half of the time or
/// less, and down to a [`BUSY_PART`] of it where they need all.
fn share_permille(cpu_percent: u32, needed_percent: u32) -> u32 {
    let over = needed_percent.saturating_sub(50).min(50);
    10 * cpu_percent * (50 * BUSY_PART - over * (BUSY_PART - 1)) / (50 * BUSY_PART)
}

/// The time that a worker may spend on passes.
#[derive(Default)]
struct Credit {
    ns: i64,
    at_ns: u64,
}

impl Credit {
    /// Adds the share of the time since the last call, in thousandths.
    fn grow(&mut self, now_ns: u64, permille: u32) {
        let passed = i64::try_from(now_ns.saturating_sub(self.at_ns)).unwrap_or(i64::MAX) / 1000;
        self.at_ns = now_ns;
        self.ns = self.ns.saturating_add(passed.saturating_mul(i64::from(permille))).min(CREDIT_NS_MAX);
    }
}

impl Pass {
    /// Goes over these shards, when there is reason to.
    pub fn new(shards: Vec<ShardId>) -> Self {
        Self {
            seen_ns: vec![0; shards.len()],
            shards,
            place: None,
            candidates: Vec::new(),
            coder: Coder::default(),
            decoder: Decoder::default(),
            value: Vec::new(),
            bytes: Vec::new(),
            generation: None,
            adoptions: 0,
            full_begun_ns: None,
            shed_ns: 0,
            due_ns: u64::MAX,
            rest_until_ns: 0,
            credit: Credit::default(),
        }
    }

    /// Whether there is something to do, now or as soon as there is time for it. Begins a pass when one is due.
    pub fn has_work(&mut self, store: &Store) -> bool {
        if store.gate.is_loading() || store.gate.loads_aside() {
            return false;
        }
        let generation = store.compression.generation.load(Ordering::Relaxed);
        if self.place.is_some() && self.generation == Some(generation) {
            return true;
        }
        let adoptions = store.compression.adoptions.load(Ordering::Relaxed);
        let is_new = self.generation != Some(generation) || self.adoptions != adoptions;
        self.adoptions = adoptions;
        if is_new || self.is_due(store) {
            self.begin(store, generation, is_new);
        } else if leaves::is_thawed_too_much(&store.memory) && self.shed_ns <= store.clock.monotonic_ns() {
            self.begin_shedding(store);
        }
        self.place.is_some()
    }

    fn is_due(&self, store: &Store) -> bool {
        let is_due_by = |now_ns| self.due_ns <= now_ns && (self.rest_until_ns <= now_ns || store.is_near_budget());
        self.due_ns != u64::MAX && is_due_by(store.clock.monotonic_ns())
    }

    fn begin(&mut self, store: &Store, generation: u32, is_new: bool) {
        let (now_ns, settings) = (store.clock.monotonic_ns(), store.compression.settings());
        self.end(store);
        let is_first = self.generation.replace(generation).is_none();
        if settings.codec == Codec::Off && store.memory.compressed().values == 0 {
            self.due_ns = u64::MAX;
            return;
        }
        let idle_ns = u64::from(settings.idle_seconds) * 1_000_000_000;
        if is_first && settings.codec != Codec::Off && !settings.on_write && idle_ns > 0 && !store.is_near_budget() {
            // What a start loaded is not idle yet.
            self.due_ns = now_ns + idle_ns;
            return;
        }
        self.due_ns = now_ns + PERIOD_NS.max(idle_ns / 4);
        let is_full =
            is_new || self.full_begun_ns.is_none_or(|begun_ns| now_ns.saturating_sub(begun_ns) >= FULL_PERIOD_NS);
        if is_full {
            self.full_begun_ns = Some(now_ns);
        }
        let mut wanted = Wanted::now(&store.compression);
        if !is_full {
            wanted.dictionaries.clear();
        }
        self.start(store, wanted, is_full, false);
    }

    /// Begins a pass that drops what is thawed.
    fn begin_shedding(&mut self, store: &Store) {
        self.end(store);
        self.shed_ns = store.clock.monotonic_ns() + PERIOD_NS;
        self.start(store, Wanted::now(&store.compression), false, true);
    }

    /// Goes to the first shard.
    fn start(&mut self, store: &Store, wanted: Wanted, is_full: bool, only_sheds: bool) {
        add(&store.compression.figures.shards_left, self.shards.len() as u64);
        // The first slice may begin at once.
        self.credit = Credit { ns: 1, at_ns: store.clock.monotonic_ns() };
        let (shard, space, from, is_at_end) = (0, KeyspaceId(0), 0, false);
        let (seen_ns, looked_ns) = (None, 0);
        self.place = Some(Place { wanted, shard, space, from, is_at_end, is_full, only_sheds, seen_ns, looked_ns });
    }

    /// Leaves the pass, at its end or before.
    fn end(&mut self, store: &Store) {
        self.candidates.clear();
        if let Some(place) = self.place.take() {
            let left = self.shards.len().saturating_sub(place.shard) as u64;
            store.compression.figures.shards_left.fetch_sub(left, Ordering::Relaxed);
        }
    }

    /// Works for about `slice_ns`, if the worker has time for it; `needed_percent` of its time goes to clients. True
    /// when there is more to do and time for it.
    pub fn slice(&mut self, store: &Store, slice_ns: u64, needed_percent: u32) -> bool {
        let Some(place) = &self.place else { return false };
        let begun_ns = store.clock.monotonic_ns();
        self.credit.grow(begun_ns, share_permille(place.wanted.settings.cpu_percent, needed_percent));
        if self.credit.ns <= 0 {
            return false;
        }
        let mut spent_ns = 0;
        while spent_ns < slice_ns && self.step(store) {
            spent_ns = store.clock.monotonic_ns().saturating_sub(begun_ns);
        }
        spent_ns = store.clock.monotonic_ns().saturating_sub(begun_ns);
        add(&store.compression.figures.passing_ns, spent_ns);
        self.credit.ns = self.credit.ns.saturating_sub(i64::try_from(spent_ns).unwrap_or(i64::MAX));
        self.place.is_some() && self.credit.ns > 0
    }

    /// One stretch gathered, or one value handled; false when there is no more, or the shard is taken.
    fn step(&mut self, store: &Store) -> bool {
        let Some(place) = &self.place else { return false };
        let Some(shard) = self.shards.get(place.shard).copied() else {
            self.rest_until_ns = store.clock.monotonic_ns() + place.looked_ns * (LOOKING_PART - 1);
            self.end(store);
            add(&store.compression.figures.passes, 1);
            return false;
        };
        match self.candidates.pop() {
            Some(candidate) if candidate.is_long => {
                store.compression.long.push(Long { space: candidate.space, key: candidate.key, leaf: None });
                true
            }
            Some(candidate) => match candidate.leaves_from {
                Some(from) => self.handle_leaves(store, shard, candidate, from),
                None => {
                    let is_done = self.handle(store, shard, &candidate);
                    if !is_done {
                        self.candidates.push(candidate);
                    }
                    is_done
                }
            },
            None if place.is_at_end => self.leave_shard(store),
            None => self.gather(store, shard),
        }
    }

    /// Notes which values of the next stretch may have to change.
    fn gather(&mut self, store: &Store, shard: ShardId) -> bool {
        let Some(place) = &mut self.place else { return false };
        let Some(mut held) = store.shard(shard).lock.spin_lock() else { return false };
        let (now, now_ns) = (store.clock.now_ms(), store.clock.monotonic_ns());
        held.engine.set_time(now);
        let seen_ns = *place.seen_ns.get_or_insert_with(|| match place.only_sheds {
            true => now_ns,
            false => std::mem::replace(&mut self.seen_ns[place.shard], now_ns),
        });
        let (wanted, space, candidates) = (&place.wanted, place.space, &mut self.candidates);
        let only_sheds = place.only_sheds;
        let step = held.engine.scan(space, place.from, &mut |entry| {
            let is_by_leaf = leaves::is_by_leaf(entry, &store.hasher);
            let is_candidate = is_by_leaf || !only_sheds && wanted.may_change(entry);
            if is_candidate && !entry.is_expired(now) && candidates.len() < CANDIDATES_MAX {
                let (is_compressed, is_long) = (entry.is_compressed(), types::decoder::string_len(entry) > LEN_MAX);
                let (key, stamp, is_string) = (entry.key.into(), entry.stamp, entry.kind == Type::String);
                let leaves_from = is_by_leaf.then_some(0);
                candidates.push(Candidate { space, key, stamp, is_string, is_compressed, is_long, leaves_from });
            }
        });
        let settings = &wanted.settings;
        // A value that was idle for longer was already cold at the previous pass. Idle times are whole seconds, and so
        // are stamps.
        let idle_seconds_max = match place.is_full {
            true => u64::MAX,
            false => u64::from(settings.idle_seconds) + now_ns.saturating_sub(seen_ns) / 1_000_000_000 + 2,
        };
        candidates.retain(|candidate| {
            let at_once = settings.on_write && candidate.is_string;
            let idle = if at_once { 0 } else { u64::from(settings.idle_seconds) };
            let idle_seconds = held.engine.idle_seconds(candidate.stamp);
            candidate.is_compressed
                || candidate.leaves_from.is_some()
                || (idle..=idle_seconds_max).contains(&idle_seconds)
        });
        store.unlock_one(held);
        // Values of a class that does not compress are not even copied.
        let found = candidates.len();
        candidates.retain(|candidate| {
            let is_raw = !candidate.is_compressed && candidate.leaves_from.is_none();
            !(is_raw && store.compression.is_resting(candidate.space, &candidate.key, now_ns))
        });
        add(&store.compression.figures.skipped, (found - candidates.len()) as u64);
        match step.next {
            Some(next) => place.from = next,
            None => {
                (place.from, place.space) = (0, KeyspaceId(place.space.0 + 1));
                if place.space.0 as usize >= store.spaces.count() {
                    (place.space, place.is_at_end) = (KeyspaceId(0), true);
                }
            }
        }
        place.looked_ns += store.clock.monotonic_ns().saturating_sub(now_ns);
        true
    }

    /// Continues with the next shard.
    fn leave_shard(&mut self, store: &Store) -> bool {
        if let Some(place) = &mut self.place {
            (place.shard, place.is_at_end, place.seen_ns) = (place.shard + 1, false, None);
            store.compression.figures.shards_left.fetch_sub(1, Ordering::Relaxed);
        }
        true
    }

    /// Brings one value into the form that is configured, if it is still one that needs it. False when the shard is
    /// taken.
    fn handle(&mut self, store: &Store, shard: ShardId, candidate: &Candidate) -> bool {
        let Some(place) = &self.place else { return false };
        let compression = &store.compression;
        let key = store.key(candidate.space, &candidate.key);
        let Some(mut held) = store.shard(shard).lock.spin_lock() else { return false };
        let entry = held.engine.read(&key, false).ok().flatten();
        // For a field that has a time, the engine must be able to find that time.
        let is_due = |entry: &Entry<'_>| {
            let is_whole = entry.first_due().is_none() && !leaves::is_by_leaf(entry, &store.hasher);
            place.wanted.may_change(entry) && is_whole && may_leave(store, &key, entry)
        };
        let Some(entry) = entry.filter(is_due) else {
            store.unlock_one(held);
            return true;
        };
        let (kind, before, was_compressed) = (entry.kind, entry.encoding, entry.is_compressed());
        self.value.clear();
        self.value.extend_from_slice(entry.value.bytes());
        let tree = if let Value::Big(tree) = entry.value { Some(SharedBig::clone(tree)) } else { None };
        // The copy is read without the lock, when the entry may be gone.
        let Ok(_lease) = lease(store, &entry) else {
            unreachable!("a value in memory has a dictionary that was forgotten")
        };
        store.unlock_one(held);
        let taken = tree.as_ref().map_or(Value::Bytes(&self.value), Value::Big);
        let shown = self.decoder.show(store.source(), shown_alone(&key, kind, before, taken));
        let bytes = plain_bytes(shown.value, &mut self.bytes);
        let coder = &mut self.coder;
        let stored = bytes.and_then(|bytes| compression.encode(coder, &*store.clock, &key, kind, bytes));
        let (encoding, value) = match stored {
            Some(ref encoded) => (shown.encoding.compressed(), Value::Bytes(encoded.bytes)),
            None if was_compressed => (shown.encoding, shown.value),
            None => return true,
        };
        let Some(mut held) = store.shard(shard).lock.spin_lock() else {
            self.decoder.forget();
            return false;
        };
        let is_same = |entry: &Entry<'_>| {
            entry.encoding == before
                && entry.kind == kind
                && match (entry.value, &tree) {
                    // A change of a tree that is shared here replaces it by another tree.
                    (Value::Big(now), Some(tree)) => SharedBig::ptr_eq(now, tree),
                    (Value::Big(_), None) | (_, Some(_)) => false,
                    (value, None) => value.bytes() == self.value,
                }
        };
        let is_still = matches!(held.engine.read(&key, false), Ok(Some(entry)) if is_same(&entry));
        if is_still {
            held.engine.recode(&key, encoding, value);
            compression.figures.count_pass(encoding);
        }
        store.unlock_one(held);
        // Otherwise, here and above, the next edit of the tree would have to copy it.
        self.decoder.forget();
        true
    }
}

impl Pass {
    /// Brings some leaves of a collection, from the one with element `from` on, into the configured form. The candidate
    /// returns to the list for the leaves after them. False when the shard is taken.
    fn handle_leaves(&mut self, store: &Store, shard: ShardId, candidate: Candidate, from: u64) -> bool {
        let Some(place) = &mut self.place else { return false };
        let begun_ns = store.clock.monotonic_ns();
        let key = store.key(candidate.space, &candidate.key);
        let Some(mut held) = store.shard(shard).lock.spin_lock() else {
            self.candidates.push(candidate);
            return false;
        };
        let search = Search { wanted: &place.wanted, is_full: place.is_full, only_sheds: place.only_sheds };
        let (found, next) = search.look(store, &mut held, &key, from, LOOKS);
        store.unlock_one(held);
        let is_done = match found {
            Some((run, at)) if run.len() > LEN_MAX => {
                let leaf = Some(LongLeaf { at, is_full: place.is_full });
                store.compression.long.push(Long { space: candidate.space, key: candidate.key.clone(), leaf });
                true
            }
            Some((run, _)) => {
                let lock = || store.shard(shard).lock.spin_lock();
                leaves::store_run(store, &mut self.coder, &mut self.bytes, &key, &run, lock)
            }
            None => {
                place.looked_ns += store.clock.monotonic_ns().saturating_sub(begun_ns);
                true
            }
        };
        let next = if is_done { next } else { Some(from) };
        if next.is_some() {
            self.candidates.push(Candidate { leaves_from: next, ..candidate });
        }
        is_done
    }
}

/// What is compressed of a value: its bytes, or the changes of a tree, which are put into `changes`. `None` when these
/// are too many.
fn plain_bytes<'a>(value: Value<'a>, changes: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let Value::Big(tree) = value else { return Some(value.bytes()) };
    changes.clear();
    let is_whole = Big::write_changes(tree, Progress::default(), COLLECTION_LEN_MAX, changes).is_none();
    (is_whole && changes.len() <= COLLECTION_LEN_MAX).then_some(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_first() {
        assert_eq!([0, 50, 75, 100].map(|needed| share_permille(20, needed)), [200, 200, 112, 25]);
        assert_eq!((share_permille(1, 100), share_permille(100, 100)), (1, 125));
    }
}
