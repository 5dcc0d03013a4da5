//! Entries in order, for one writer at a time and any number of readers, which never wait and never see half an
//! insertion.
//!
//! ```text
//!             [ . | . | . ]               nodes: a word of each child's first key, in order, and the child's address
//!            /      |      \
//!    [ . | . ]   [ . | . ]   [ . | . ]
//!     /     \
//!   leaf   leaf  ...                      leaves: entries as they came; for each a word of the key, and its place
//! ```
//!
//! A writer goes down to a leaf, which is mostly in a cache of the processor up to the last step, and adds the entry to
//! its end. A full leaf is replaced by two, each with its half of the entries in order, and the node above by one that
//! has both. Readers sort what they find in a leaf.
//!
//! T1. Entries, leaves and nodes are complete before anything leads to them (the store is a release, the load an
//!     acquire).
//! T2. Only the holder of the writer's lock changes anything. In a leaf it writes what is after the leaf's length, in a
//!     node the links to its children, and then to children with the same entries and new ones.
//! T3. Nothing is removed before the whole tree is dropped: leaves and nodes that were replaced stay as they were for
//!     readers inside them.
//! T4. A key that divides two leaves divides them forever.
//! T5. A leaf is marked as *dead* once a scan has found that none of its values is the newest version of its key. Views
//!     from the number on that the leaf notes see no value among its entries, so scans pass it without a step at each.
//!     A deletion leaves the mark, a value takes it off.
//!
//! So a reader finds every entry that was there when it began. Of those that came later it may miss some.

use std::cmp::Ordering;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use parking_lot::Mutex;

use super::arena::{Arena, ArenaWriter, Place};
use super::grow::Grow;
use crate::fence::{leading, word};
use crate::key::{self, Kind, Seqno};

/// Entries of a leaf. With half as many an insertion takes longer, with twice as many a search. Few under Miri, where
/// each step takes long.
const LEAF_LEN: usize = if cfg!(miri) { 8 } else { 128 };

/// Children of a node.
const NODE_LEN: usize = if cfg!(miri) { 4 } else { 16 };

/// Bytes of an entry that are prefetched; the processor fetches the rest itself where there are more.
const PREFETCH_BYTES: usize = 256;

/// Entries that memory is asked for ahead of a walk.
const AHEAD: usize = 2;

/// As many bytes of a word may be the same in all words of a leaf before words are made anew: for that, each entry has
/// to be looked at.
const WORD_BYTES_IDLE: usize = 4;

/// The key space and the first bytes of a key, which are ordered as keys are, but for zeroes at a key's end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    key_space: u32,
    first: [u64; 2],
}

/// Bytes of a head.
const HEAD_LEN: usize = 20;

impl Head {
    #[inline]
    fn new(key_space: u32, key: &[u8]) -> Self {
        let first = leading(key);
        Self { key_space, first: [(first >> 64) as u64, first as u64] }
    }

    /// How many bytes both begin with.
    #[inline]
    fn common_len(self, other: Self) -> usize {
        let zeros = match (self.key_space ^ other.key_space, self.first[0] ^ other.first[0]) {
            (0, 0) => 32 + 64 + (self.first[1] ^ other.first[1]).leading_zeros(),
            (0, difference) => 32 + difference.leading_zeros(),
            (difference, _) => difference.leading_zeros(),
        };
        zeros as usize / 8
    }
}

/// A position among entries: first by key space, then in the order of entries.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    head: Head,
    pub key: &'a [u8],
    pub seqno: Seqno,
}

impl<'a> Target<'a> {
    #[inline]
    pub fn new(key_space: u32, key: &'a [u8], seqno: Seqno) -> Self {
        Self { head: Head::new(key_space, key), key, seqno }
    }

    /// The eight bytes after the first `skip` ones of key space and key. Of two keys with these first bytes in common,
    /// the one with the smaller word is the smaller one.
    #[inline]
    fn word(&self, skip: usize) -> u64 {
        const SPACE_LEN: usize = size_of::<u32>();
        match skip.checked_sub(SPACE_LEN) {
            Some(skip) => self.key.get(skip..).map_or(0, word),
            None => {
                let begin = u128::from(self.head.key_space) << 64 | u128::from(self.head.first[0]);
                (begin >> (8 * (SPACE_LEN - skip))) as u64
            }
        }
    }
}

/// An entry in the arena: sequence number and kind, key space, length of the key, then key and value.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub key_space: u32,
    seqno_kind: u64,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

/// What stands before an entry's key.
const ENTRY_HEADER_LEN: usize = 14;

impl<'a> Entry<'a> {
    #[inline]
    fn header(target: &Target<'_>, kind: Kind) -> [u8; ENTRY_HEADER_LEN] {
        let key_len = u16::try_from(target.key.len()).expect("no key is longer than KEY_LEN_MAX");
        let mut header = [0; ENTRY_HEADER_LEN];
        header[..8].copy_from_slice(&key::pack(target.seqno, kind).to_le_bytes());
        header[8..12].copy_from_slice(&target.head.key_space.to_le_bytes());
        header[12..].copy_from_slice(&key_len.to_le_bytes());
        header
    }

    #[inline]
    fn decode(bytes: &'a [u8]) -> Self {
        let (header, rest) = bytes.split_first_chunk::<ENTRY_HEADER_LEN>().expect("an entry has a header");
        let (key, value) = rest.split_at(usize::from(u16::from_le_bytes([header[12], header[13]])));
        Self {
            seqno_kind: u64::from_le_bytes(std::array::from_fn(|i| header[i])),
            key_space: u32::from_le_bytes(std::array::from_fn(|i| header[8 + i])),
            key,
            value,
        }
    }

    pub fn seqno(&self) -> Seqno {
        self.seqno_kind >> key::KIND_BITS
    }

    pub fn kind(&self) -> Kind {
        key::unpack(self.seqno_kind).map_or(Kind::Delete, |(_, kind)| kind)
    }

    #[inline]
    pub fn as_target(&self) -> Target<'a> {
        Target::new(self.key_space, self.key, self.seqno())
    }
}

/// What leads to a leaf, in one word, so that it changes at once.
#[derive(Clone, Copy)]
struct LeafState {
    leaf: u32,
    /// T5.
    is_dead: bool,
    /// Entries in it.
    len: usize,
    /// Bytes that the heads of all entries have in common with that of the leaf; words are what follows.
    skip: usize,
}

impl LeafState {
    fn pack(self) -> u64 {
        let low = [self.len as u8, self.skip as u8, u8::from(self.is_dead), 0];
        u64::from(self.leaf) << 32 | u64::from(u32::from_le_bytes(low))
    }

    fn unpack(word: u64) -> Self {
        let [len, skip, is_dead, _] = (word as u32).to_le_bytes();
        Self { leaf: (word >> 32) as u32, is_dead: is_dead != 0, len: usize::from(len), skip: usize::from(skip) }
    }
}

/// Entries as they came.
struct Leaf {
    /// That of one of them.
    head: Head,
    /// If it is dead, no entry of it, and no deletion that hides one, has a larger number.
    seqno_max: AtomicU64,
    words: [AtomicU64; LEAF_LEN],
    places: [AtomicU32; LEAF_LEN],
}

impl Leaf {
    fn new(head: Head, entries: impl Iterator<Item = (u64, Place)>) -> Self {
        let (words, places) = ([const { AtomicU64::new(0) }; LEAF_LEN], [const { AtomicU32::new(0) }; LEAF_LEN]);
        let leaf = Self { head, seqno_max: AtomicU64::new(0), words, places };
        entries.enumerate().for_each(|(at, (word, place))| leaf.put(at, word, place));
        leaf
    }

    fn put(&self, at: usize, word: u64, place: Place) {
        self.words[at].store(word, Relaxed);
        self.places[at].store(place.to_bits(), Relaxed);
    }

    /// The first `len` entries with their words.
    fn entries(&self, len: usize) -> impl Iterator<Item = (u64, Place)> + Clone {
        let words = self.words[..len].iter().map(|word| word.load(Relaxed));
        words.zip(self.places[..len].iter().map(|place| Place::from_bits(place.load(Relaxed))))
    }
}

/// What leads to a child, and its first entry. That of a node's first child is never asked for.
type Child = (Place, u64);

/// Children in order.
struct Node {
    /// Whether the children are leaves.
    is_lowest: bool,
    len: usize,
    /// That of the second child's first entry.
    head: Head,
    /// Bytes that the heads of all others have in common with it; words are what follows.
    skip: usize,
    words: [u64; NODE_LEN],
    firsts: [Place; NODE_LEN],
    /// Numbers of nodes or [states of leaves](LeafState).
    children: [AtomicU64; NODE_LEN],
}

impl Node {
    fn children(&self) -> impl Iterator<Item = Child> {
        self.firsts.iter().zip(&self.children).take(self.len).map(|(first, child)| (*first, child.load(Relaxed)))
    }
}

/// Where a search goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// To where the target itself is, or would be.
    At,
    /// To where the last entry before it is.
    Before,
}

/// What a search has found.
struct Found {
    state: LeafState,
    /// The first entry after the leaf.
    end: Option<Place>,
    /// Whether the target may be a version of that entry's key.
    end_is_near: bool,
}

/// The way to a leaf: nodes from the root on, and which child of each. Nodes have at least half of their children, but
/// for those at the end, so ten levels are more than there can be.
#[derive(Default)]
struct Path {
    steps: [(u32, u32); LEVELS_MAX],
    len: usize,
}

/// See [`Path`].
const LEVELS_MAX: usize = 10;

pub(super) struct Tree {
    arena: Arena,
    nodes: Grow<Box<Node>>,
    leaves: Grow<Box<Leaf>>,
    /// The number of the root; there is none before the first entry.
    root: OnceLock<AtomicU32>,
    writer: Mutex<Writer>,
}

struct Writer {
    arena: ArenaWriter,
    /// How many of each there are.
    nodes: u32,
    leaves: u32,
}

impl Tree {
    pub fn new() -> Self {
        let (arena, writer) = Arena::new();
        Self {
            arena,
            nodes: Grow::new(),
            leaves: Grow::new(),
            root: OnceLock::new(),
            writer: Mutex::new(Writer { arena: writer, nodes: 0, leaves: 0 }),
        }
    }

    // ---- What numbers and places lead to. By T1 it is there.

    pub fn entry(&self, place: Place) -> Entry<'_> {
        Entry::decode(self.arena.get(place))
    }

    fn head(&self, place: Place) -> Head {
        let entry = self.entry(place);
        Head::new(entry.key_space, entry.key)
    }

    fn leaf(&self, number: u32) -> &Leaf {
        self.leaves.get(number).expect("T1: a leaf that something leads to exists")
    }

    fn node(&self, number: u32) -> &Node {
        self.nodes.get(number).expect("T1: a node that something leads to exists")
    }

    // ---- Searches.

    /// How an entry stands to the target.
    fn compare(&self, place: Place, target: &Target<'_>) -> Ordering {
        let entry = self.entry(place);
        let by_key = entry.key_space.cmp(&target.head.key_space).then_with(|| entry.key.cmp(target.key));
        by_key.then_with(|| target.seqno.cmp(&entry.seqno()))
    }

    /// Which child of the node the target is in; whether the first entry of the next one is near (see [`Found`]).
    #[inline]
    fn choose(&self, node: &Node, target: &Target<'_>, side: Side) -> (usize, bool) {
        if node.head.common_len(target.head) < node.skip {
            return if target.head < node.head { (0, false) } else { (node.len - 1, false) };
        }
        let word = target.word(node.skip);
        // The first child has whatever lies before the second.
        let words = &node.words[1..node.len];
        // Without a branch: no guess can be wrong.
        let smaller = words.iter().filter(|other| **other < word).count();
        if words.get(smaller) != Some(&word) {
            return (smaller, false);
        }
        let equal = words[smaller..].iter().take_while(|other| **other == word).count();
        let among = node.firsts[1 + smaller..][..equal].partition_point(|first| match side {
            Side::At => self.compare(*first, target) != Ordering::Greater,
            Side::Before => self.compare(*first, target) == Ordering::Less,
        });
        (smaller + among, among < equal)
    }

    /// The leaf that the target is in; `None` without entries. Calls `pass` with each node on the way, and which child
    /// is next.
    fn find(&self, target: &Target<'_>, side: Side, mut pass: impl FnMut(u32, usize)) -> Option<Found> {
        let mut number = self.root.get()?.load(Acquire);
        let (mut end, mut end_is_near) = (None, false);
        loop {
            let node = self.node(number);
            let (at, is_near) = self.choose(node, target, side);
            if at + 1 < node.len {
                (end, end_is_near) = (Some(node.firsts[at + 1]), is_near);
            }
            pass(number, at);
            let child = node.children[at].load(Acquire);
            if node.is_lowest {
                return Some(Found { state: LeafState::unpack(child), end, end_is_near });
            }
            number = child as u32;
        }
    }

    /// The newest version of the target's key at or before its number.
    pub fn get(&self, target: Target<'_>) -> Option<Entry<'_>> {
        let Found { state, end, end_is_near } = self.find(&target, Side::At, |_, _| {})?;
        let is_version = |entry: &Entry<'_>| {
            entry.key_space == target.head.key_space && entry.key == target.key && entry.seqno() <= target.seqno
        };
        let leaf = self.leaf(state.leaf);
        let mut newest: Option<Entry<'_>> = None;
        if leaf.head.common_len(target.head) >= state.skip {
            let word = target.word(state.skip);
            let alike = leaf.entries(state.len).filter(|(other, _)| *other == word);
            let versions = alike.map(|(_, place)| self.entry(place)).filter(is_version);
            newest = versions.max_by_key(Entry::seqno);
        }
        // If there is none in the leaf, it is what the next leaf begins with.
        newest.or_else(|| end.filter(|_| end_is_near).map(|place| self.entry(place)).filter(is_version))
    }

    /// To the first entry at or after the target.
    pub fn seek(&self, position: &mut Position, target: Target<'_>) {
        position.clear();
        if let Some(found) = self.find(&target, Side::At, |_, _| {}) {
            position.at = self.enter(position, &found, &target);
            self.leave_at_end(position);
        }
    }

    /// To the last entry before the target.
    pub fn seek_before(&self, position: &mut Position, target: Target<'_>) {
        position.clear();
        if let Some(found) = self.find(&target, Side::Before, |_, _| {}) {
            // Nothing is before the first of all: then the position is after all, and not valid.
            position.at = self.enter(position, &found, &target).checked_sub(1).unwrap_or(position.places.len());
        }
    }

    /// To the entry after a valid position.
    pub fn next(&self, position: &mut Position) {
        position.at += 1;
        self.leave_at_end(position);
        if let Some(place) = position.places.get(position.at + AHEAD) {
            self.arena.prefetch(*place, PREFETCH_BYTES);
        }
    }

    /// To the entry before a valid position.
    pub fn prev(&self, position: &mut Position) {
        match position.at.checked_sub(1) {
            Some(before) => position.at = before,
            None => self.seek_before(position, self.entry(position.places[0]).as_target()),
        }
    }

    /// The largest key of this entry's key space in the dead leaves (T5) that follow each other from that of the entry
    /// on, if the view is no older than they are. Leaves that begin at `end` or after it are not asked for.
    pub fn deleted_until(&self, place: Place, view: Seqno, end: Option<&[u8]>) -> Option<&[u8]> {
        let key_space = self.entry(place).key_space;
        let (mut next, mut last) = (Some(self.entry(place)), None);
        let is_asked_for = |entry: &Entry<'_>| entry.key_space == key_space && end.is_none_or(|end| entry.key < end);
        while let Some(entry) = next.filter(is_asked_for) {
            let mut path = Path::default();
            let Found { state, end, .. } = self.find(&entry.as_target(), Side::At, |node, at| path.push(node, at))?;
            if !state.is_dead && !self.look(state, &path) || self.leaf(state.leaf).seqno_max.load(Relaxed) > view {
                break;
            }
            (next, last) = (end.map(|end| self.entry(end)), Some(state));
        }
        let LeafState { leaf, len, .. } = last?;
        let entries = self.leaf(leaf).entries(len).map(|(_, place)| self.entry(place));
        entries.filter(|entry| entry.key_space == key_space).map(|entry| entry.key).max()
    }

    /// Marks the leaf that the path leads to, which has this state, if it is dead (T5).
    fn look(&self, state: LeafState, path: &Path) -> bool {
        let leaf = self.leaf(state.leaf);
        let mut entries = [NO_ENTRY; LEAF_LEN];
        let entries = &mut entries[..state.len];
        for (to, entry) in entries.iter_mut().zip(leaf.entries(state.len)) {
            self.arena.prefetch(entry.1, ENTRY_HEADER_LEN);
            *to = entry;
        }
        entries.sort_unstable_by_key(|(word, _)| *word);
        let mut seqno_max = 0;
        for alike in entries.chunk_by(|(one, _), (other, _)| one == other) {
            for entry in alike.iter().map(|(_, place)| self.entry(*place)) {
                seqno_max = seqno_max.max(entry.seqno());
                if entry.kind() == Kind::Delete {
                    continue;
                }
                let is_deletion = |other: &Entry<'_>| {
                    other.kind() == Kind::Delete && other.key_space == entry.key_space && other.key == entry.key
                };
                let mut alike = alike.iter().map(|(_, place)| self.entry(*place));
                let is_hidden = alike.any(|other| other.seqno() > entry.seqno() && is_deletion(&other));
                // Newer versions of the smallest key may be in the leaf before.
                if !is_hidden {
                    let newest = self.get(Target { seqno: key::SEQNO_MAX, ..entry.as_target() });
                    let Some(newest) = newest.filter(is_deletion) else { return false };
                    seqno_max = seqno_max.max(newest.seqno());
                }
            }
        }
        // A reader that finds the mark finds this number, or a larger one.
        leaf.seqno_max.fetch_max(seqno_max, Relaxed);
        let marked = LeafState { is_dead: true, ..state }.pack();
        // Where an entry was added since, there is no mark, and what was found holds for what was there.
        let _ = self.slot(path).compare_exchange(state.pack(), marked, Release, Relaxed);
        true
    }

    /// From the end of a leaf to the beginning of the next one, which by T4 is there.
    fn leave_at_end(&self, position: &mut Position) {
        if let (None, Some(end)) = (position.place(), position.end) {
            let target = self.entry(end).as_target();
            let found = self.find(&target, Side::At, |_, _| {}).expect("there are entries");
            position.at = self.enter(position, &found, &target);
            position.places.iter().take(AHEAD).for_each(|place| self.arena.prefetch(*place, PREFETCH_BYTES));
        }
    }

    /// Takes a leaf's entries in order into the position, and returns the place of the first of them at or after the
    /// target.
    fn enter(&self, position: &mut Position, found: &Found, target: &Target<'_>) -> usize {
        let (state, leaf) = (found.state, self.leaf(found.state.leaf));
        let mut entries = [NO_ENTRY; LEAF_LEN];
        let (sorted, _) = self.sort(state, &mut entries);
        position.end = found.end;
        position.places.clear();
        position.places.extend(sorted.iter().map(|(_, place)| *place));
        let has_word = leaf.head.common_len(target.head) >= state.skip;
        let word = has_word.then(|| target.word(state.skip));
        sorted.partition_point(|(other, place)| {
            let by_word = word.map_or(Ordering::Equal, |word| other.cmp(&word));
            by_word.then_with(|| self.compare(*place, target)) == Ordering::Less
        })
    }

    /// The leaf's entries in order; whether that is how they came.
    fn sort<'a>(&self, state: LeafState, entries: &'a mut [(u64, Place); LEAF_LEN]) -> (&'a [(u64, Place)], bool) {
        let entries = &mut entries[..state.len];
        entries.iter_mut().zip(self.leaf(state.leaf).entries(state.len)).for_each(|(to, entry)| *to = entry);
        let compare = |a: &(u64, Place), b: &(u64, Place)| {
            a.0.cmp(&b.0).then_with(|| self.compare(a.1, &self.entry(b.1).as_target()))
        };
        let were_sorted = entries.is_sorted_by(|a, b| compare(a, b) == Ordering::Less);
        if !were_sorted {
            entries.sort_unstable_by(compare);
        }
        (entries, were_sorted)
    }

    // ---- Insertion.

    /// Adds an entry.
    pub fn insert(&self, target: Target<'_>, kind: Kind, value: &[u8]) {
        let mut writer = self.writer.lock();
        let writer = &mut *writer;
        let place = writer.arena.push(&[&Entry::header(&target, kind), target.key, value]);
        let mut path = Path::default();
        let found = self.find(&target, Side::At, |node, at| path.push(node, at));
        let Some(Found { mut state, end, .. }) = found else { return self.plant(writer, &target, place) };
        if state.len == LEAF_LEN {
            let Some(half) = self.split(writer, &mut path, state, end, &target, place) else { return };
            state = half;
        }
        let leaf = self.leaf(state.leaf);
        let common = leaf.head.common_len(target.head);
        if common < state.skip {
            state = self.with_other_words(writer, state, common);
        }
        self.leaf(state.leaf).put(state.len, target.word(state.skip), place);
        let is_dead = state.is_dead && kind == Kind::Delete;
        if is_dead {
            self.leaf(state.leaf).seqno_max.fetch_max(target.seqno, Relaxed);
        }
        // The entry is in its place (T1).
        self.slot(&path).store(LeafState { is_dead, len: state.len + 1, ..state }.pack(), Release);
    }

    /// Does something between two insertions.
    pub fn between_insertions<T>(&self, work: impl FnOnce() -> T) -> T {
        let _writer = self.writer.lock();
        work()
    }

    /// What leads to the leaf at the end of the path.
    fn slot(&self, path: &Path) -> &AtomicU64 {
        let (node, at) = path.steps[path.len - 1];
        &self.node(node).children[at as usize]
    }

    /// Makes the first leaf, for the first entry, and the root above it.
    fn plant(&self, writer: &mut Writer, target: &Target<'_>, place: Place) {
        let leaf = self.make_leaf(writer, Leaf::new(target.head, [(target.word(HEAD_LEN), place)].into_iter()));
        let state = LeafState { leaf, is_dead: false, len: 1, skip: HEAD_LEN };
        let root = self.make_node(writer, true, &[(place, state.pack())]);
        self.root.get_or_init(|| AtomicU32::new(root));
    }

    /// Makes two leaves of a full one. The path then leads to the one that the target is in, and this is its state; or
    /// `None`, if the target got a leaf of its own, with its entry in it. That happens when it is after all others,
    /// which came in order, as perhaps all do.
    fn split(
        &self,
        writer: &mut Writer,
        path: &mut Path,
        state: LeafState,
        end: Option<Place>,
        target: &Target<'_>,
        place: Place,
    ) -> Option<LeafState> {
        let mut entries = [NO_ENTRY; LEAF_LEN];
        let (sorted, were_sorted) = self.sort(state, &mut entries);
        if were_sorted && self.compare(sorted[LEAF_LEN - 1].1, target) == Ordering::Less {
            let leaf = Leaf::new(target.head, [(target.word(state.skip), place)].into_iter());
            let own = LeafState { leaf: self.make_leaf(writer, leaf), is_dead: false, len: 1, ..state };
            self.replace(writer, path, state.pack(), (place, own.pack()));
            return None;
        }
        let (lower, upper) = sorted.split_at(LEAF_LEN / 2);
        let middle = upper[0].1;
        let (head, end) = (self.head(middle), self.head(end.unwrap_or(upper[upper.len() - 1].1)));
        let common = self.head(lower[0].1).common_len(head);
        let lower = self.half(writer, lower, state, common);
        let upper = self.half(writer, upper, state, head.common_len(end));
        self.replace(writer, path, lower.pack(), (middle, upper.pack()));
        path.len = 0;
        self.find(target, Side::At, |node, at| path.push(node, at)).map(|found| found.state)
    }

    /// A leaf of these entries of another one, which are in order. Those that may come have the first `common` bytes in
    /// common with them.
    fn half(&self, writer: &mut Writer, sorted: &[(u64, Place)], whole: LeafState, common: usize) -> LeafState {
        let head = self.head(sorted[0].1);
        let places = sorted.iter().map(|(_, place)| *place);
        let (leaf, skip) = match common >= whole.skip + WORD_BYTES_IDLE {
            true => (self.leaf_with_words(head, places, common), common),
            false => (Leaf::new(head, sorted.iter().copied()), whole.skip),
        };
        self.in_place_of(writer, whole, leaf, LeafState { len: sorted.len(), skip, ..whole })
    }

    /// A leaf of the same entries, with the words after `skip` bytes.
    fn with_other_words(&self, writer: &mut Writer, state: LeafState, skip: usize) -> LeafState {
        let leaf = self.leaf(state.leaf);
        let places = leaf.entries(state.len).map(|(_, place)| place);
        let leaf = self.leaf_with_words(leaf.head, places, skip);
        self.in_place_of(writer, state, leaf, LeafState { skip, ..state })
    }

    /// The state with a new leaf that has entries of another one, and its mark.
    fn in_place_of(&self, writer: &mut Writer, before: LeafState, leaf: Leaf, state: LeafState) -> LeafState {
        leaf.seqno_max.store(self.leaf(before.leaf).seqno_max.load(Relaxed), Relaxed);
        LeafState { leaf: self.make_leaf(writer, leaf), ..state }
    }

    /// A leaf of these entries, with the words after `skip` bytes.
    fn leaf_with_words(&self, head: Head, places: impl Iterator<Item = Place> + Clone, skip: usize) -> Leaf {
        places.clone().for_each(|place| self.arena.prefetch(place, 1));
        Leaf::new(head, places.map(|place| (self.entry(place).as_target().word(skip), place)))
    }

    /// Puts a child in the place of the one that the path leads to, and a new one after it. Nodes above are replaced as
    /// far as they become too long, and one more.
    fn replace(&self, writer: &mut Writer, path: &Path, mut child: u64, mut new: Child) {
        for depth in (0..path.len).rev() {
            let (number, at) = path.steps[depth];
            let (node, at) = (self.node(number), at as usize);
            let mut children: Vec<Child> = node.children().collect();
            children[at].1 = child;
            children.insert(at + 1, new);
            if children.len() <= NODE_LEN {
                let made = self.make_node(writer, node.is_lowest, &children);
                return self.lead_to(&path.steps[..depth], made);
            }
            let (lower, upper) = children.split_at(NODE_LEN / 2);
            child = self.make_node(writer, node.is_lowest, lower).into();
            new = (upper[0].0, self.make_node(writer, node.is_lowest, upper).into());
        }
        let root = self.make_node(writer, false, &[(new.0, child), new]);
        self.lead_to(&[], root);
    }

    /// Makes this node the child that these steps lead to, or the root. The node is complete (T1).
    fn lead_to(&self, steps: &[(u32, u32)], made: u32) {
        match steps.last() {
            Some((above, at)) => self.node(*above).children[*at as usize].store(made.into(), Release),
            None => self.root.get().expect("there is a path").store(made, Release),
        }
    }

    fn make_node(&self, writer: &mut Writer, is_lowest: bool, children: &[Child]) -> u32 {
        let others = &children[1..];
        others.iter().for_each(|(first, _)| self.arena.prefetch(*first, 1));
        let (second, last) = (self.head(children[1.min(others.len())].0), self.head(children[others.len()].0));
        let skip = second.common_len(last);
        let mut node = Node {
            is_lowest,
            len: children.len(),
            head: second,
            skip,
            words: [0; NODE_LEN],
            firsts: [NO_ENTRY.1; NODE_LEN],
            children: [const { AtomicU64::new(0) }; NODE_LEN],
        };
        for (at, (first, child)) in children.iter().enumerate() {
            node.firsts[at] = *first;
            node.words[at] = if at == 0 { 0 } else { self.entry(*first).as_target().word(skip) };
            node.children[at] = AtomicU64::new(*child);
        }
        let number = writer.nodes;
        writer.nodes = number.checked_add(1).expect("a memtable is switched long before 2^32 nodes");
        self.nodes.put(number, Box::new(node));
        number
    }

    fn make_leaf(&self, writer: &mut Writer, leaf: Leaf) -> u32 {
        let number = writer.leaves;
        writer.leaves = number.checked_add(1).expect("a memtable is switched long before 2^32 leaves");
        self.leaves.put(number, Box::new(leaf));
        number
    }
}

impl Path {
    fn push(&mut self, node: u32, at: usize) {
        self.steps[self.len] = (node, at as u32);
        self.len += 1;
    }
}

/// Where none is yet.
const NO_ENTRY: (u64, Place) = (0, Place::from_bits(0));

/// A position among the entries: a leaf in order, as it was when the walk came to it.
pub(super) struct Position {
    places: Vec<Place>,
    /// The one that it is at; it is valid if there is one.
    at: usize,
    /// The first entry after the leaf.
    end: Option<Place>,
}

impl Position {
    /// Nowhere.
    pub fn new() -> Self {
        Self { places: Vec::new(), at: 0, end: None }
    }

    fn clear(&mut self) {
        self.places.clear();
        (self.at, self.end) = (0, None);
    }

    /// The entry that it is at; `None` if it is not valid.
    pub fn place(&self) -> Option<Place> {
        self.places.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    /// How keys look: what they begin with, and how many differ.
    const SHAPES: [(&[u8], u64); 5] =
        [(b"", 3000), (b"user:", 400), (b"a long beginning of all keys:", 3000), (b"k", 3), (b"", 70)];

    fn key(shape: (&[u8], u64), number: u64) -> Vec<u8> {
        // Zeroes at the end, too, and lengths that differ.
        let digits = number.to_be_bytes();
        let end = [8, 8, 7, 9][(number % 4) as usize].min(8);
        [shape.0, &digits[..end], &[0][..usize::from(number % 4 == 3)]].concat()
    }

    fn place_of(tree: &Tree, position: &Position) -> Option<(Vec<u8>, u64)> {
        position.place().map(|place| (tree.entry(place).key.to_vec(), tree.entry(place).seqno()))
    }

    /// Insertions in any order come out in order, and searches in both directions agree with a sorted set.
    #[test]
    fn agrees_with_a_sorted_set() {
        let (count, steps) = if cfg!(miri) { (40, 10) } else { (5000, 300) };
        for shape in SHAPES {
            for in_order in [false, true] {
                let tree = Tree::new();
                let mut rng = Rng::new(4);
                let mut model = BTreeSet::new();
                for seqno in 1..count {
                    let key = key(shape, if in_order { 4 * seqno } else { rng.below(shape.1) });
                    tree.insert(Target::new(0, &key, seqno), Kind::Put, &seqno.to_le_bytes());
                    model.insert((key, u64::MAX - seqno));
                }
                let upright = |entry: &(Vec<u8>, u64)| (entry.0.clone(), u64::MAX - entry.1);
                let mut position = Position::new();
                tree.seek(&mut position, Target::new(0, b"", key::SEQNO_MAX));
                for entry in &model {
                    assert_eq!(place_of(&tree, &position), Some(upright(entry)));
                    let entry = tree.entry(position.place().unwrap());
                    assert_eq!(entry.value, entry.seqno().to_le_bytes());
                    tree.next(&mut position);
                }
                assert_eq!(place_of(&tree, &position), None);
                for _ in 0..count / 4 {
                    let (key, seqno) = (key(shape, rng.below(shape.1 + 4 * count)), rng.below(count + 1));
                    let (key, target) = (&key, Target::new(0, &key, seqno));
                    let place = (key.clone(), u64::MAX - seqno);
                    let (behind, ahead) = (model.range(place.clone()..), model.range(..place));
                    let version = behind.clone().next().filter(|(found, _)| found == key).map(upright);
                    assert_eq!(tree.get(target).map(|entry| (entry.key.to_vec(), entry.seqno())), version);
                    tree.seek(&mut position, target);
                    for expected in behind.take(3).map(Some).chain([None]).take(3) {
                        assert_eq!(place_of(&tree, &position), expected.map(upright));
                        if expected.is_some() {
                            tree.next(&mut position);
                        }
                    }
                    tree.seek_before(&mut position, target);
                    for expected in ahead.rev().take(steps).map(Some).chain([None]) {
                        if expected.is_none() && position.place().is_some() {
                            break;
                        }
                        assert_eq!(place_of(&tree, &position), expected.map(upright));
                        if expected.is_some() {
                            tree.prev(&mut position);
                        }
                    }
                }
            }
        }
    }

    /// Keys in order or scattered, of two key spaces, are put, deleted and put again. What [`Tree::deleted_until`]
    /// skips shows no value to any view that it is asked for, whatever order deletions come in; and once all are
    /// deleted, it skips nearly all.
    #[test]
    fn what_is_skipped_shows_no_value() {
        let (count, checks) = if cfg!(miri) { (16, 6) } else { (3000, 400) };
        for (shape, in_order) in [(SHAPES[0], true), (SHAPES[0], false), (SHAPES[2], false)] {
            let (tree, mut rng, mut seqno) = (Tree::new(), Rng::new(7), 0);
            let key = |number: u64| [shape.0, &number.to_be_bytes()].concat();
            let numbers = shape.1.min(count);
            let mut change = |space: u32, number: u64, kind: Kind| {
                seqno += 1;
                tree.insert(Target::new(space, &key(number), seqno), kind, b"v");
                seqno
            };
            for number in 0..numbers {
                change(0, number, Kind::Put);
                change(9, number, Kind::Put);
            }
            let mut skipped = 0;
            for step in 0..6 * numbers {
                let number = if in_order { step % numbers } else { rng.below(numbers) };
                let is_put = step < numbers && rng.one_in(40);
                let last = change(0, number, if is_put { Kind::Put } else { Kind::Delete });
                if rng.below(6 * numbers) > checks {
                    continue;
                }
                let (from, view) = (key(rng.below(numbers)), last - rng.below(3));
                let mut position = Position::new();
                tree.seek(&mut position, Target::new(0, &from, key::SEQNO_MAX));
                let Some(until) = position.place().and_then(|place| tree.deleted_until(place, view, None)) else {
                    continue;
                };
                while let Some(entry) = position.place().map(|place| tree.entry(place)) {
                    if entry.key_space > 0 || entry.key > until {
                        break;
                    }
                    let shown = tree.get(Target::new(0, entry.key, view));
                    assert!(shown.is_none_or(|shown| shown.kind() == Kind::Delete), "{:?} at {view}", entry.key);
                    skipped += 1;
                    tree.next(&mut position);
                }
            }
            assert!(skipped > 0, "{shape:?}");
            let last = (0..numbers).map(|number| change(0, number, Kind::Delete)).last().unwrap();
            let mut position = Position::new();
            tree.seek(&mut position, Target::new(0, b"", key::SEQNO_MAX));
            let mut steps = 0;
            while let Some(place) = position.place().filter(|place| tree.entry(*place).key_space == 0) {
                match tree.deleted_until(place, last, None).filter(|until| *until > tree.entry(place).key) {
                    Some(until) => tree.seek(&mut position, Target::new(0, until, key::SEQNO_MAX)),
                    None => tree.next(&mut position),
                }
                steps += 1;
            }
            assert!(steps < 100 + numbers / 10, "{shape:?}: {steps} steps");
            tree.seek(&mut position, Target::new(9, b"", key::SEQNO_MAX));
            let until = position.place().and_then(|place| tree.deleted_until(place, last, None));
            assert_eq!(until, None, "the other key space has values");
        }
    }

    /// Readers concurrent with a writer see a sorted list in which everything announced before is present.
    #[test]
    fn readers_beside_a_writer() {
        let count = if cfg!(miri) { 60 } else { 20_000 };
        let tree = Tree::new();
        let announced = AtomicU32::new(0);
        let done = AtomicBool::new(false);
        let key = |i: u32| i.wrapping_mul(2_654_435_761).to_be_bytes();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut position = Position::new();
                    while !done.load(Acquire) {
                        let upto = announced.load(Acquire);
                        for i in (0..upto).step_by(97) {
                            let entry = tree.get(Target::new(0, &key(i), u64::from(i)));
                            assert_eq!(entry.map(|entry| entry.key), Some(&key(i)[..]));
                            tree.seek(&mut position, Target::new(0, &key(i), u64::from(i)));
                            assert_eq!(tree.entry(position.place().unwrap()).key, key(i));
                            tree.prev(&mut position);
                            let before = position.place().map(|place| tree.entry(place).key);
                            assert!(before.is_none_or(|before| before < &key(i)[..]));
                        }
                        tree.seek(&mut position, Target::new(0, b"", key::SEQNO_MAX));
                        let (mut seen, mut last) = (0, None);
                        while let Some(place) = position.place() {
                            let key = Some(tree.entry(place).key);
                            assert!(last < key);
                            (seen, last) = (seen + 1, key);
                            tree.next(&mut position);
                        }
                        assert!(seen >= upto);
                    }
                });
            }
            for i in 0..count {
                tree.insert(Target::new(0, &key(i), u64::from(i)), Kind::Put, b"v");
                announced.store(i + 1, Release);
            }
            done.store(true, Release);
        });
    }
}
