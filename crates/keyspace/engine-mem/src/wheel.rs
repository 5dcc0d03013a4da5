//! The expiration index of one database in one shard: a hierarchical timing wheel (Varghese and Lauck, SOSP 1987).
//!
//! ```text
//! level 0:  64 lists, one tick (32 ms) each         ~ 2 s
//! level 1:  64 lists, 64 ticks each                 ~ 2 min
//! level 2:  64 lists, 4096 ticks each               ~ 2 h       ... as many levels as the farthest time needs
//! ```
//!
//! An item is 32 bits of a key's hash: the top 16 find the extent, the low 16 are the tag, so an item leads back to its
//! entry without storing anything else. The entry says when it really expires. So a later expiration changes nothing
//! here (the item finds out when its time comes and is queued again), and an item whose entry is gone finds nothing.
//!
//! W1. For each entry that expires at `e` there is an item that comes up once `e`'s tick is over, or earlier.
//! W2. Lists of a level hold items of later ticks than all lists of the levels below, within the present turn of the
//!     level above: the lowest occupied list is next.
//!
//! Items are kept in chunks of 128 bytes, reached through a vector of pointers: four bytes and a quarter an item, and
//! no big vector is ever copied.

use crate::memory::{MemoryKind, MemoryUse};
use base::{Rng, UnixMs};
use std::sync::Arc;

/// A tick, in milliseconds: how late an expiration may be noticed. With the time between two rounds of upkeep, 50 ms,
/// less than a tenth of a second.
pub const TICK_MS: i64 = 32;

const SLOT_BITS: u32 = 6;
const SLOT_COUNT: usize = 1 << SLOT_BITS;
/// Enough levels for every tick an expiration can have.
const LEVEL_COUNT: usize = ((i64::BITS - TICK_MS.ilog2()) as usize).div_ceil(SLOT_BITS as usize);

/// Items of a chunk.
const CHUNK_ITEMS: usize = 32;
const CHUNK_BYTES: usize = CHUNK_ITEMS * size_of::<Item>() + size_of::<usize>();

/// 32 bits of a key's hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item(u32);

impl Item {
    /// The item of a key.
    #[inline]
    pub fn of(hash: u64) -> Self {
        Self((hash >> 48 << 16) as u32 | hash as u32 & 0xFFFF)
    }

    /// The lowest hash that has this item: bits 16 to 47 are not known.
    #[inline]
    pub fn hash(self) -> u64 {
        u64::from(self.0 >> 16) << 48 | u64::from(self.0 & 0xFFFF)
    }

    /// Hash bits it knows from the top.
    pub const PREFIX_BITS: u32 = 16;
}

/// What looking for due keys remembers.
#[derive(Default)]
pub(crate) struct Looking {
    /// The database looked at first.
    pub(crate) space: usize,
    /// Items being looked at.
    pub(crate) items: Vec<Item>,
    /// Items of keys given by this call, sorted: a key is given once, though several items may lead to it.
    pub(crate) given: Vec<Item>,
    /// Items to be queued again, once no more are taken.
    pub(crate) again: Vec<(Item, UnixMs)>,
}

/// Items of one slot, newest last.
#[derive(Default)]
struct List {
    #[expect(clippy::vec_box, reason = "growing must copy pointers, not items, and give back one chunk at a time")]
    chunks: Vec<Box<[Item; CHUNK_ITEMS]>>,
    /// Items in the last chunk; those before are full.
    last_len: u8,
}

impl List {
    fn len(&self) -> usize {
        (self.chunks.len() * CHUNK_ITEMS + self.last_len as usize).saturating_sub(CHUNK_ITEMS)
    }

    fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// True when a chunk was taken.
    fn push(&mut self, item: Item) -> bool {
        let fresh = self.chunks.is_empty() || self.last_len as usize == CHUNK_ITEMS;
        if fresh {
            self.chunks.push(Box::new([Item::default(); CHUNK_ITEMS]));
            self.last_len = 0;
        }
        let chunk = self.chunks.last_mut().expect("one was pushed if there was none");
        chunk[self.last_len as usize] = item;
        self.last_len += 1;
        fresh
    }

    /// The item, and whether a chunk was given back.
    fn pop(&mut self) -> Option<(Item, bool)> {
        self.last_len = self.last_len.checked_sub(1)?;
        let item = self.chunks.last()?[self.last_len as usize];
        let emptied = self.last_len == 0;
        if emptied {
            self.chunks.pop();
            self.last_len = if self.chunks.is_empty() { 0 } else { CHUNK_ITEMS as u8 };
        }
        Some((item, emptied))
    }

    /// A random item, and whether a chunk was given back; the last item takes its place.
    fn take(&mut self, rng: &mut Rng) -> Option<(Item, bool)> {
        let index = rng.below(self.len() as u64) as usize;
        let (last, emptied) = self.pop()?;
        if index == self.len() {
            return Some((last, emptied));
        }
        let place = &mut self.chunks[index / CHUNK_ITEMS][index % CHUNK_ITEMS];
        Some((std::mem::replace(place, last), emptied))
    }

    fn get(&self, index: usize) -> Item {
        self.chunks[index / CHUNK_ITEMS][index % CHUNK_ITEMS]
    }
}

struct Level {
    /// Slots that are not empty.
    occupied: u64,
    lists: [List; SLOT_COUNT],
}

/// A timing wheel.
pub struct Wheel {
    /// The first tick that has not come up.
    tick: u64,
    levels: [Option<Box<Level>>; LEVEL_COUNT],
    /// Items that have come up and wait to be looked at.
    pending: List,
    len: usize,
    chunk_count: usize,
    memory: Arc<MemoryUse>,
}

impl Wheel {
    /// An empty wheel that turns from now on.
    pub fn new(now: UnixMs, memory: Arc<MemoryUse>) -> Self {
        let levels = std::array::from_fn(|_| None);
        Self { tick: tick_of(now), levels, pending: List::default(), len: 0, chunk_count: 0, memory }
    }

    /// Items in it, stale ones included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Queues an item for a time; one in the past comes up next.
    pub fn add(&mut self, at: UnixMs, item: Item) {
        let tick = tick_of(at).max(self.tick);
        let level = level_of(tick ^ self.tick);
        let slot = slot_of(tick, level);
        let level = self.levels[level]
            .get_or_insert_with(|| Box::new(Level { occupied: 0, lists: std::array::from_fn(|_| List::default()) }));
        level.occupied |= 1 << slot;
        let fresh = level.lists[slot].push(item);
        self.len += 1;
        self.count_chunk(fresh, true);
    }

    /// The next item that has come up by `now`, for the caller to look at: its entry is due, or is to be queued again,
    /// or is gone. `None` when nothing has.
    #[inline]
    pub fn pop(&mut self, now: UnixMs) -> Option<Item> {
        while self.pending.is_empty() {
            self.turn(now)?;
        }
        let (item, emptied) = self.pending.pop().expect("it is not empty");
        self.len -= 1;
        self.count_chunk(emptied, false);
        Some(item)
    }

    /// Lets an item that has come up come up again, before all others.
    pub fn put_back(&mut self, item: Item) {
        let fresh = self.pending.push(item);
        self.len += 1;
        self.count_chunk(fresh, true);
    }

    /// Whether anything has come up by `now`.
    pub fn is_due(&self, now: UnixMs) -> bool {
        !self.pending.is_empty() || self.next_list().is_some_and(|(tick, _)| is_over(tick, now))
    }

    /// Goes to the next list that is not empty and takes its items as pending, if its time has come. A list above level
    /// 0 comes up when its first tick begins, and its items are then sorted into the levels below.
    fn turn(&mut self, now: UnixMs) -> Option<()> {
        let (tick, level) = self.next_list()?;
        let due = if level == 0 { is_over(tick, now) } else { tick_of(now) >= tick };
        if !due {
            return None;
        }
        self.tick = tick;
        let slot = slot_of(tick, level);
        let lists = self.levels[level].as_mut().expect("an occupied list is in a level");
        lists.occupied &= !(1 << slot);
        self.pending = std::mem::take(&mut lists.lists[slot]);
        Some(())
    }

    /// The tick at which the next list that is not empty begins, and the list's level (W2).
    fn next_list(&self) -> Option<(u64, usize)> {
        self.levels.iter().enumerate().find_map(|(number, level)| {
            let occupied = level.as_ref()?.occupied;
            let present = slot_of(self.tick, number);
            let slot = (occupied & (u64::MAX << present)).trailing_zeros();
            (slot < u64::BITS).then(|| {
                let shift = SLOT_BITS * number as u32;
                let turn = self.tick >> shift & !(SLOT_COUNT as u64 - 1) | u64::from(slot);
                (self.tick.max(turn << shift), number)
            })
        })
    }

    /// Takes a random item of the first list: one of those that come up first. The caller queues it again if its entry
    /// is there. `None` when there is none.
    pub fn take_soonest(&mut self, rng: &mut Rng) -> Option<Item> {
        let (item, emptied) = if self.pending.is_empty() {
            let (tick, level) = self.next_list()?;
            let slot = slot_of(tick, level);
            let level = self.levels[level].as_mut().expect("an occupied list is in a level");
            let taken = level.lists[slot].take(rng)?;
            level.occupied &= !(u64::from(level.lists[slot].is_empty()) << slot);
            taken
        } else {
            self.pending.take(rng)?
        };
        self.len -= 1;
        self.count_chunk(emptied, false);
        Some(item)
    }

    /// The item with this number, counting in the order of lists.
    fn item(&self, mut number: usize) -> Item {
        let lists = self.levels.iter().flatten().flat_map(|level| &level.lists);
        let found = std::iter::once(&self.pending).chain(lists).find_map(|list| match number.checked_sub(list.len()) {
            Some(rest) => {
                number = rest;
                None
            }
            None => Some(list.get(number)),
        });
        found.expect("there are that many items")
    }

    /// A random item; `None` when there is none.
    pub fn random(&self, rng: &mut Rng) -> Option<Item> {
        (self.len > 0).then(|| self.item(rng.below(self.len as u64) as usize))
    }

    /// Gives up to `chunks` chunks back, losing their items; false when there are none left.
    pub fn dismantle(&mut self, chunks: usize) -> bool {
        let mut left = chunks;
        let lists = self.levels.iter_mut().flatten().flat_map(|level| &mut level.lists);
        for list in std::iter::once(&mut self.pending).chain(lists) {
            let taken = left.min(list.chunks.len());
            list.chunks.truncate(list.chunks.len() - taken);
            left -= taken;
        }
        let taken = chunks - left;
        self.chunk_count -= taken;
        self.memory.sub(MemoryKind::Index, taken * CHUNK_BYTES);
        self.chunk_count > 0
    }

    fn count_chunk(&mut self, changed: bool, taken: bool) {
        match (changed, taken) {
            (false, _) => {}
            (true, true) => {
                self.chunk_count += 1;
                self.memory.add(MemoryKind::Index, CHUNK_BYTES);
            }
            (true, false) => {
                self.chunk_count -= 1;
                self.memory.sub(MemoryKind::Index, CHUNK_BYTES);
            }
        }
    }
}

impl Drop for Wheel {
    fn drop(&mut self) {
        self.memory.sub(MemoryKind::Index, self.chunk_count * CHUNK_BYTES);
    }
}

fn tick_of(at: UnixMs) -> u64 {
    (at / TICK_MS).max(0) as u64
}

/// Whether all of the tick's milliseconds are past: then everything in its list is due.
fn is_over(tick: u64, now: UnixMs) -> bool {
    tick_of(now) > tick
}

/// The level at which two ticks differ.
fn level_of(difference: u64) -> usize {
    (difference.checked_ilog2().unwrap_or(0) / SLOT_BITS) as usize
}

fn slot_of(tick: u64, level: usize) -> usize {
    (tick >> (SLOT_BITS * level as u32)) as usize % SLOT_COUNT
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn wheel(now: UnixMs) -> Wheel {
        Wheel::new(now, Arc::new(MemoryUse::default()))
    }

    /// Items come up in time, none early by more than queuing again mends, none lost, over near, far and extreme times,
    /// whatever the steps of the clock.
    #[test]
    fn items_come_up_when_their_time_is_over() {
        let mut rng = Rng::new(5);
        for round in 0..if cfg!(miri) { 1 } else { 40 } {
            let start = if round % 2 == 0 { 1_700_000_000_000 } else { 0 };
            let mut wheel = wheel(start);
            let mut due_at = HashMap::new();
            for number in 0..if cfg!(miri) { 50 } else { 2000u32 } {
                let spread = [100, 10_000, 10_000_000, 100_000_000_000, i64::MAX - start][rng.below(5) as usize];
                let at = start - 50 + rng.below(spread as u64) as i64;
                due_at.insert(number, at.max(start));
                wheel.add(at, Item(number));
            }
            let mut now = start;
            while !due_at.is_empty() {
                let step = [50, 1_000, 1_000_000, i64::MAX / 50][rng.below(4) as usize];
                now = now.saturating_add(rng.below(step as u64) as i64);
                while let Some(item) = wheel.pop(now) {
                    let at = due_at[&item.0];
                    if at <= now {
                        due_at.remove(&item.0);
                    } else {
                        wheel.add(at, item);
                    }
                }
                assert!(due_at.values().all(|&at| tick_of(at) >= tick_of(now)), "an item is late");
                if now == i64::MAX {
                    break;
                }
            }
            assert_eq!(wheel.len(), due_at.len());
        }
    }

    /// Memory is counted and comes back, item by item or when taken apart.
    #[test]
    fn memory_is_counted() {
        let memory = Arc::new(MemoryUse::default());
        let mut wheel = Wheel::new(0, Arc::clone(&memory));
        (0..1000).for_each(|number| wheel.add(5_000, Item(number)));
        let used = memory.of(MemoryKind::Index);
        assert!((4_000..4_500).contains(&used), "{used}");
        while wheel.pop(10_000).is_some() {}
        assert_eq!((wheel.len(), memory.of(MemoryKind::Index)), (0, 0));
        (0..1000).for_each(|number| wheel.add(50_000, Item(number)));
        while wheel.dismantle(10) {}
        assert_eq!(memory.of(MemoryKind::Index), 0);
    }

    /// The soonest items are those of the nearest list, and random ones come from everywhere.
    #[test]
    fn samples() {
        let mut wheel = wheel(0);
        (0..100).for_each(|number| wheel.add(1_000_000 - i64::from(number) * 10_000, Item(number)));
        let mut rng = Rng::new(1);
        let mut seen = [false; 100];
        (0..3000).for_each(|_| seen[wheel.random(&mut rng).unwrap().0 as usize] = true);
        assert!(seen.iter().all(|&seen| seen));
        let order: Vec<_> = std::iter::from_fn(|| wheel.take_soonest(&mut rng)).map(|item| item.0).collect();
        assert_eq!(order.len(), 100);
        // Lists are at most an hour's 64th apart here, 53 items of the second level.
        assert!(
            order.iter().enumerate().all(|(place, &number)| (99 - number as usize).abs_diff(place) < 55),
            "{order:?}"
        );
        assert_eq!(wheel.len(), 0);
    }
}
