//! A skip list for one writer at a time and any number of readers, who never wait and never see half an insertion.
//!
//! ```text
//!   head --3------------------> n7 ---------------> end
//!   head --1--> n2 -----------> n7 ----> n4 ------> end       numbers are places in the chunks; a node, once put
//!   head --0--> n2 --> n9 ----> n7 ----> n4 --> n1            there, is never moved or changed but for its links
//! ```
//!
//! L1. A node is complete in its place before any link leads to it (the link's store is a release, the load an acquire).
//! L2. Only the holder of the writer's lock changes links, and only from one node to another inserted between.
//! L3. Nothing is removed before the whole list is dropped.
//!
//! After W. Pugh, "Skip Lists", CACM 1990; the rules for readers are those of LevelDB's memtable.

use std::cmp::Ordering;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use base::Rng;
use parking_lot::Mutex;

use crate::fence::leading;
use crate::key::{self, Kind, Seqno};
use crate::prefetch::{prefetch, prefetch_item};

/// Enough for 4^12 nodes at one link in four.
const HEIGHT_MAX: usize = 12;

/// Bytes in a line of the processor's cache.
pub(super) const CACHE_LINE: usize = 64;

/// Bytes of an entry that are fetched ahead; the processor goes on by itself where there are more.
pub(super) const PREFETCH_BYTES_MAX: usize = 4 * CACHE_LINE;

/// Links that stand in the node itself.
const LOWER_LINKS: usize = 2;

/// Places in the first chunk; each further one has twice as many as the one before.
const FIRST_CHUNK_LEN: u32 = 1024;

/// With these, all numbers of 32 bits have a place.
const CHUNK_COUNT: usize = 22;

/// No node: the end of a list.
pub(super) const END: u32 = 0;

/// What the links of an entry cost beyond key and value, on average, in bytes.
pub(super) const NODE_OVERHEAD: usize = 96;

/// One entry. With its place it is one line of the processor's cache, which is all that most steps of a walk touch.
pub(super) struct Node {
    /// The first bytes of the key as big-endian numbers: most comparisons end here, without another cache miss.
    prefix: [u64; 2],
    seqno_kind: u64,
    /// The key's length (two bytes), the key, then the value.
    bytes: Box<[u8]>,
    pub key_space: u32,
    /// The lowest links, which all but one node in 16 have enough of.
    lower: [AtomicU32; LOWER_LINKS],
    /// Which of the upper links are its own; [`NO_UPPER`] without.
    upper: u32,
}

/// See [`Node::upper`].
const NO_UPPER: u32 = u32::MAX;

/// Length of the length of a key.
const LEN_LEN: usize = 2;

/// The links above those that stand in a node.
type Upper = [AtomicU32; HEIGHT_MAX - LOWER_LINKS];

/// Where a node is put.
#[derive(Default)]
#[repr(align(64))]
struct Place(OnceLock<Node>);

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const _: () = assert!(size_of::<Place>() == CACHE_LINE);

impl Node {
    /// Where the key ends, and the value begins.
    fn key_end(&self) -> usize {
        let len = self.bytes.first_chunk::<LEN_LEN>().map_or(0, |len| u16::from_le_bytes(*len));
        LEN_LEN + usize::from(len)
    }

    pub fn key(&self) -> &[u8] {
        &self.bytes[LEN_LEN..self.key_end()]
    }

    pub fn value(&self) -> &[u8] {
        &self.bytes[self.key_end()..]
    }

    pub fn seqno(&self) -> Seqno {
        self.seqno_kind >> key::KIND_BITS
    }

    pub fn kind(&self) -> Kind {
        key::unpack(self.seqno_kind).map_or(Kind::Delete, |(_, kind)| kind)
    }
}

/// A position to look for: first by key space, then in the order of entries.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub key_space: u32,
    pub key: &'a [u8],
    pub seqno: Seqno,
    prefix: [u64; 2],
}

impl<'a> Target<'a> {
    pub fn new(key_space: u32, key: &'a [u8], seqno: Seqno) -> Self {
        Self { key_space, key, seqno, prefix: prefix(key) }
    }

    /// How the node stands to the target.
    fn compare(&self, node: &Node) -> Ordering {
        node.key_space
            .cmp(&self.key_space)
            .then(node.prefix.cmp(&self.prefix))
            .then_with(|| node.key().cmp(self.key))
            .then_with(|| self.seqno.cmp(&node.seqno()))
    }
}

pub(super) struct SkipList {
    chunks: [OnceLock<Box<[Place]>>; CHUNK_COUNT],
    uppers: [OnceLock<Box<[Upper]>>; CHUNK_COUNT],
    head: [AtomicU32; HEIGHT_MAX],
    /// Levels in use. A reader that sees an old value only takes a longer way.
    height: AtomicUsize,
    writer: Mutex<Writer>,
}

struct Writer {
    /// Nodes so far; the next one gets this number plus one.
    len: u32,
    /// How many of them have upper links.
    upper_len: u32,
    rng: Rng,
}

impl SkipList {
    pub fn new(seed: u64) -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNK_COUNT],
            uppers: [const { OnceLock::new() }; CHUNK_COUNT],
            head: [const { AtomicU32::new(END) }; HEIGHT_MAX],
            height: AtomicUsize::new(1),
            writer: Mutex::new(Writer { len: 0, upper_len: 0, rng: Rng::new(seed) }),
        }
    }

    /// The chunk of a node and the place in it.
    fn place(id: u32) -> (usize, usize) {
        let shifted = u64::from(id - 1) + u64::from(FIRST_CHUNK_LEN);
        let chunk = (shifted / u64::from(FIRST_CHUNK_LEN)).ilog2();
        (chunk as usize, (shifted - (u64::from(FIRST_CHUNK_LEN) << chunk)) as usize)
    }

    /// The node that a link leads to. By L1 it is there.
    pub fn node(&self, id: u32) -> &Node {
        let (chunk, place) = Self::place(id);
        let chunk = self.chunks[chunk].get().expect("L1: a linked node's chunk exists");
        chunk[place].0.get().expect("L1: a linked node is complete")
    }

    /// Asks memory for what a walk from this node on will look at: the next one's bytes, and the node behind it.
    pub fn prefetch_behind(&self, id: u32) {
        let next = self.next(id);
        if next != END {
            let node = self.node(next);
            (0..node.bytes.len().min(PREFETCH_BYTES_MAX)).step_by(CACHE_LINE).for_each(|at| prefetch(&node.bytes, at));
            let behind = node.lower[0].load(Acquire);
            if behind != END {
                let (chunk, place) = Self::place(behind);
                prefetch_item(self.chunks[chunk].get().expect("L1: a linked node's chunk exists"), place);
            }
        }
    }

    fn link(&self, from: u32, level: usize) -> &AtomicU32 {
        if from == END {
            return &self.head[level];
        }
        let node = self.node(from);
        match level.checked_sub(LOWER_LINKS) {
            Some(level) => &self.upper(node.upper)[level],
            None => &node.lower[level],
        }
    }

    /// These upper links, which some node has.
    fn upper(&self, index: u32) -> &Upper {
        let (chunk, place) = Self::place(index + 1);
        &self.uppers[chunk].get().expect("made before the node that has them")[place]
    }

    /// The first node at or behind the target, or [`END`].
    pub fn seek(&self, target: Target<'_>) -> u32 {
        self.descend(|node| target.compare(node) == Ordering::Less, |_, _| {})
    }

    /// The last node before the target, or [`END`].
    pub fn seek_before(&self, target: Target<'_>) -> u32 {
        let mut before = END;
        self.descend(
            |node| target.compare(node) == Ordering::Less,
            |level, from| {
                if level == 0 {
                    before = from;
                }
            },
        );
        before
    }

    /// Node behind the given one.
    pub fn next(&self, id: u32) -> u32 {
        self.link(id, 0).load(Acquire)
    }

    /// Goes right while `is_before` and down otherwise; tells `found` where each level was left. Returns what comes next on the lowest.
    fn descend(&self, is_before: impl Fn(&Node) -> bool, mut found: impl FnMut(usize, u32)) -> u32 {
        let mut at = END;
        // A node that stopped the walk above stops it below, too: it need not be compared again.
        let mut stopped_by = END;
        for level in (0..self.height.load(Relaxed)).rev() {
            loop {
                let next = self.link(at, level).load(Acquire);
                if next == END || next == stopped_by || !is_before(self.node(next)) {
                    found(level, at);
                    stopped_by = next;
                    break;
                }
                at = next;
            }
        }
        stopped_by
    }

    /// Adds an entry. The number of nodes is bounded by 2^32; a memtable is switched long before.
    pub fn insert(&self, target: Target<'_>, kind: Kind, value: &[u8]) {
        let mut writer = self.writer.lock();
        let mut before = [END; HEIGHT_MAX];
        self.descend(|node| target.compare(node) == Ordering::Less, |level, from| before[level] = from);
        self.link_behind(&mut writer, &mut before, target, kind, value);
    }

    /// Adds entries, which ascend. Each is looked for from the one before on, which lies next to it: without a search from
    /// the head, and mostly in memory that was just touched.
    pub fn insert_ascending<'a>(&self, entries: impl Iterator<Item = (Target<'a>, Kind, &'a [u8])>) {
        let mut writer = self.writer.lock();
        let mut before = [END; HEIGHT_MAX];
        for (target, kind, value) in entries {
            let follows = |from: u32, level: usize| {
                let next = self.link(from, level).load(Acquire);
                (next != END && target.compare(self.node(next)) == Ordering::Less).then_some(next)
            };
            let mut top = 0;
            while top + 1 < HEIGHT_MAX && follows(before[top], top).is_some() {
                top += 1;
            }
            // Where the walk came to above; the finger of a level below is nearer as long as nothing was passed.
            let mut passed = None;
            for level in (0..=top).rev() {
                let mut at = passed.unwrap_or(before[level]);
                while let Some(next) = follows(at, level) {
                    (at, passed) = (next, Some(next));
                }
                before[level] = at;
            }
            self.link_behind(&mut writer, &mut before, target, kind, value);
        }
    }

    /// Makes a node and links it behind these of each level. They then name the new one where it has a link.
    fn link_behind(
        &self,
        writer: &mut Writer,
        before: &mut [u32; HEIGHT_MAX],
        target: Target<'_>,
        kind: Kind,
        value: &[u8],
    ) {
        let height = draw_height(&mut writer.rng);
        let id = writer.len.checked_add(1).expect("a memtable is switched long before 2^32 entries");
        writer.len = id;
        let key_len = u16::try_from(target.key.len()).expect("no key is longer than KEY_LEN_MAX");
        let mut bytes = Vec::with_capacity(LEN_LEN + target.key.len() + value.len());
        bytes.extend_from_slice(&key_len.to_le_bytes());
        bytes.extend_from_slice(target.key);
        bytes.extend_from_slice(value);
        // Only the writer changes links.
        let after = |level: usize| self.link(before[level], level).load(Relaxed);
        let mut node = Node {
            prefix: target.prefix,
            seqno_kind: key::pack(target.seqno, kind),
            bytes: bytes.into_boxed_slice(),
            key_space: target.key_space,
            lower: std::array::from_fn(|level| AtomicU32::new(if level < height { after(level) } else { END })),
            upper: NO_UPPER,
        };
        if height > LOWER_LINKS {
            node.upper = writer.upper_len;
            writer.upper_len += 1;
            let upper = self.make_upper(node.upper);
            // Nobody knows of them before the node is linked, which is a release.
            upper.iter().zip(LOWER_LINKS..height).for_each(|(link, level)| link.store(after(level), Relaxed));
        }
        self.put_in_place(id, node);
        self.height.fetch_max(height, Relaxed);
        for (level, from) in before.iter_mut().enumerate().take(height) {
            // L1: the node is in its place.
            self.link(*from, level).store(id, Release);
            *from = id;
        }
    }

    fn put_in_place(&self, id: u32, node: Node) {
        let (chunk, place) = Self::place(id);
        let chunk = self.chunks[chunk].get_or_init(|| (0..Self::chunk_len(chunk)).map(|_| Place::default()).collect());
        assert!(chunk[place].0.set(node).is_ok(), "a place is used once, under the writer's lock");
    }

    /// Upper links that lead nowhere yet.
    fn make_upper(&self, index: u32) -> &Upper {
        let (chunk, place) = Self::place(index + 1);
        let none = || std::array::from_fn(|_| AtomicU32::new(END));
        &self.uppers[chunk].get_or_init(|| (0..Self::chunk_len(chunk)).map(|_| none()).collect())[place]
    }

    fn chunk_len(chunk: usize) -> usize {
        (FIRST_CHUNK_LEN as usize) << chunk
    }
}

/// The first bytes of a key, as numbers that are ordered as they are, but for zeroes at its end.
fn prefix(key: &[u8]) -> [u64; 2] {
    let number = leading(key);
    [(number >> 64) as u64, number as u64]
}

/// One link in four goes up.
fn draw_height(rng: &mut Rng) -> usize {
    let height = 1 + (rng.next_u64() | 1 << (2 * (HEIGHT_MAX - 1))).trailing_zeros() as usize / 2;
    height.min(HEIGHT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    /// Random insertions come out in order, and seeks in both directions agree with a sorted set.
    #[test]
    fn agrees_with_a_sorted_set() {
        let list = SkipList::new(3);
        let mut rng = Rng::new(4);
        let (mut model, mut waiting) = (BTreeSet::new(), Vec::new());
        for seqno in 1..5000u64 {
            let key = rng.below(3000).to_be_bytes();
            model.insert((key, SEQNO_TOP - seqno));
            waiting.push((key, seqno));
            // One by one, or some in a row.
            if rng.one_in(3) {
                waiting.sort_by(|a, b| key::compare((&a.0, a.1), (&b.0, b.1)));
                let values: Vec<[u8; 8]> = waiting.iter().map(|(_, seqno)| seqno.to_le_bytes()).collect();
                let entries = waiting.iter().zip(&values);
                list.insert_ascending(entries.map(|((k, seqno), v)| (Target::new(0, k, *seqno), Kind::Put, &v[..])));
                waiting.clear();
            } else if waiting.len() == 1 {
                list.insert(Target::new(0, &key, seqno), Kind::Put, &seqno.to_le_bytes());
                waiting.clear();
            }
        }
        for (key, seqno) in waiting {
            list.insert(Target::new(0, &key, seqno), Kind::Put, &seqno.to_le_bytes());
        }
        let mut at = list.next(END);
        for (key, down) in &model {
            let node = list.node(at);
            assert_eq!((node.key(), node.seqno()), (&key[..], SEQNO_TOP - down));
            assert_eq!(node.value(), node.seqno().to_le_bytes());
            at = list.next(at);
        }
        assert_eq!(at, END);
        for _ in 0..2000 {
            let (key, seqno) = (rng.below(3100).to_be_bytes(), rng.below(5000));
            let target = Target::new(0, &key, seqno);
            let id = list.seek(target);
            let found = (id != END).then(|| (list.node(id).key().to_vec(), list.node(id).seqno()));
            let expected = model.range((key, SEQNO_TOP - seqno)..).next();
            assert_eq!(found, expected.map(|(k, down)| (k.to_vec(), SEQNO_TOP - down)));
            let id = list.seek_before(target);
            let found = (id != END).then(|| (list.node(id).key().to_vec(), list.node(id).seqno()));
            let expected = model.range(..(key, SEQNO_TOP - seqno)).next_back();
            assert_eq!(found, expected.map(|(k, down)| (k.to_vec(), SEQNO_TOP - down)));
        }
    }

    const SEQNO_TOP: u64 = u64::MAX;

    /// Readers beside a writer see a sorted list in which everything announced before is present.
    #[test]
    fn readers_beside_a_writer() {
        let list = SkipList::new(1);
        let announced = AtomicU32::new(0);
        let done = AtomicBool::new(false);
        let key = |i: u32| i.wrapping_mul(2_654_435_761).to_be_bytes();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Acquire) {
                        let upto = announced.load(Acquire);
                        for i in (0..upto).step_by(97) {
                            let id = list.seek(Target::new(0, &key(i), u64::from(i)));
                            assert_eq!(list.node(id).key(), key(i));
                        }
                        let (mut at, mut seen) = (list.next(END), 0);
                        while list.next(at) != END && at != END {
                            assert!(list.node(at).key() < list.node(list.next(at)).key());
                            at = list.next(at);
                            seen += 1;
                        }
                        assert!(seen + 1 >= upto);
                    }
                });
            }
            for i in 0..20_000 {
                list.insert(Target::new(0, &key(i), u64::from(i)), Kind::Put, b"v");
                announced.store(i + 1, Release);
            }
            done.store(true, Release);
        });
    }

    #[test]
    fn places_follow_each_other() {
        let mut expected = (0, 0);
        for id in 1..100_000 {
            assert_eq!(SkipList::place(id), expected);
            expected.1 += 1;
            if expected.1 == (FIRST_CHUNK_LEN as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(SkipList::place(u32::MAX).0 < CHUNK_COUNT + 1);
    }
}
