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
const CACHE_LINE: usize = 64;

/// Bytes of an entry that are fetched ahead; the processor goes on by itself where there are more.
const PREFETCH_BYTES_MAX: usize = 4 * CACHE_LINE;

/// Links that stand in the node itself.
const LOWER_LINKS: usize = 3;

/// Places in the first chunk; each further one has twice as many as the one before.
const FIRST_CHUNK_LEN: u32 = 1024;

/// With these, all numbers of 32 bits have a place.
const CHUNK_COUNT: usize = 22;

/// No node: the end of a list.
pub(super) const END: u32 = 0;

/// What the links of an entry cost beyond key and value, on average, in bytes.
pub(super) const NODE_OVERHEAD: usize = 96;

/// One entry.
pub(super) struct Node {
    pub key_space: u32,
    key_len: u16,
    /// The first bytes of the key as big-endian numbers: most comparisons end here, without another cache miss.
    prefix: [u64; 2],
    pub seqno: Seqno,
    pub kind: Kind,
    /// The key, then the value.
    bytes: Box<[u8]>,
    /// The lowest links, which all but one node in 64 have enough of: a walk finds them beside the prefix.
    lower: [AtomicU32; LOWER_LINKS],
    /// The links above.
    upper: Option<Box<[AtomicU32; HEIGHT_MAX - LOWER_LINKS]>>,
}

impl Node {
    pub fn key(&self) -> &[u8] {
        &self.bytes[..self.key_len as usize]
    }

    pub fn value(&self) -> &[u8] {
        &self.bytes[self.key_len as usize..]
    }

    fn link(&self, level: usize) -> &AtomicU32 {
        match &self.upper {
            Some(upper) if level >= LOWER_LINKS => &upper[level - LOWER_LINKS],
            _ => &self.lower[level],
        }
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

    /// The order of targets is that of the nodes they become.
    pub fn order(&self, other: &Target<'_>) -> Ordering {
        let space = self.key_space.cmp(&other.key_space);
        space
            .then(self.prefix.cmp(&other.prefix))
            .then_with(|| key::compare((self.key, self.seqno), (other.key, other.seqno)))
    }

    /// How the node stands to the target.
    fn compare(&self, node: &Node) -> Ordering {
        node.key_space
            .cmp(&self.key_space)
            .then(node.prefix.cmp(&self.prefix))
            .then_with(|| node.key().cmp(self.key))
            .then_with(|| self.seqno.cmp(&node.seqno))
    }
}

type Chunk = Box<[OnceLock<Node>]>;

pub(super) struct SkipList {
    chunks: [OnceLock<Chunk>; CHUNK_COUNT],
    head: [AtomicU32; HEIGHT_MAX],
    /// Levels in use. A reader that sees an old value only takes a longer way.
    height: AtomicUsize,
    writer: Mutex<Writer>,
}

struct Writer {
    /// Nodes so far; the next one gets this number plus one.
    len: u32,
    rng: Rng,
}

impl SkipList {
    pub fn new(seed: u64) -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNK_COUNT],
            head: [const { AtomicU32::new(END) }; HEIGHT_MAX],
            height: AtomicUsize::new(1),
            writer: Mutex::new(Writer { len: 0, rng: Rng::new(seed) }),
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
        chunk[place].get().expect("L1: a linked node is complete")
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
        if from == END { &self.head[level] } else { self.node(from).link(level) }
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
        let mut bytes = Vec::with_capacity(target.key.len() + value.len());
        bytes.extend_from_slice(target.key);
        bytes.extend_from_slice(value);
        // Only the writer changes links.
        let after = |level: usize| AtomicU32::new(self.link(before[level], level).load(Relaxed));
        let node = Node {
            key_space: target.key_space,
            key_len: u16::try_from(target.key.len()).expect("no key is longer than KEY_LEN_MAX"),
            prefix: target.prefix,
            seqno: target.seqno,
            kind,
            bytes: bytes.into_boxed_slice(),
            lower: std::array::from_fn(|level| if level < height { after(level) } else { AtomicU32::new(END) }),
            upper: (height > LOWER_LINKS).then(|| {
                let link = |at| if at + LOWER_LINKS < height { after(at + LOWER_LINKS) } else { AtomicU32::new(END) };
                Box::new(std::array::from_fn(link))
            }),
        };
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
        let len = (FIRST_CHUNK_LEN as usize) << chunk;
        let chunk = self.chunks[chunk].get_or_init(|| (0..len).map(|_| OnceLock::new()).collect());
        assert!(chunk[place].set(node).is_ok(), "a place is used once, under the writer's lock");
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
                waiting.sort_by(|a, b| Target::new(0, &a.0, a.1).order(&Target::new(0, &b.0, b.1)));
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
            assert_eq!((node.key(), node.seqno), (&key[..], SEQNO_TOP - down));
            assert_eq!(node.value(), node.seqno.to_le_bytes());
            at = list.next(at);
        }
        assert_eq!(at, END);
        for _ in 0..2000 {
            let (key, seqno) = (rng.below(3100).to_be_bytes(), rng.below(5000));
            let target = Target::new(0, &key, seqno);
            let id = list.seek(target);
            let found = (id != END).then(|| (list.node(id).key().to_vec(), list.node(id).seqno));
            let expected = model.range((key, SEQNO_TOP - seqno)..).next();
            assert_eq!(found, expected.map(|(k, down)| (k.to_vec(), SEQNO_TOP - down)));
            let id = list.seek_before(target);
            let found = (id != END).then(|| (list.node(id).key().to_vec(), list.node(id).seqno));
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
