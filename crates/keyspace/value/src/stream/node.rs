//! A stretch of a stream in one buffer.
//!
//! ```text
//! names of the first entry  |  entry  |  entry  | ...
//!
//! entry:  length of what follows  |  ms - first ms  |  seq, or seq - first seq within the first ms
//!         |  0, and the values, when its names are those of the first entry
//!         |  number of pairs, and names and values in turn, otherwise
//! ```
//!
//! Numbers are varints, strings have their length before them. The names and the id of the first entry stay when it is
//! removed. A stream is saved as changes; these bytes are stored elsewhere only in compressed form, with the numbers.

use super::{Fields, Id};
use crate::Limits;
use crate::cold::{Bytes, Cold};
use crate::tree::allocated;
use crate::wire::take_string;
use base::varint;

/// What a node may hold at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeLimits {
    bytes: usize,
    entries: u64,
}

/// Bytes of a node whatever the settings say: finding an entry and removing one take time in proportion to its node.
const NODE_BYTES_MAX: usize = 1 << 20;

impl NodeLimits {
    pub(super) fn of(limits: &Limits) -> Self {
        let bytes = usize::try_from(limits.stream_node_bytes()).ok().filter(|bytes| *bytes > 0);
        let entries = u64::try_from(limits.stream_node_entries()).ok().filter(|entries| *entries > 0);
        Self { bytes: bytes.unwrap_or(usize::MAX).min(NODE_BYTES_MAX), entries: entries.unwrap_or(u64::MAX) }
    }
}

/// Some consecutive entries.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The id of the first entry it ever had. Nodes are ordered by it.
    first: Id,
    /// The id of the last entry it ever had.
    last: Id,
    /// Entries.
    live: u32,
    /// Entries it had before they were removed: like Valkey's, a node is as full as it ever was.
    removed: u32,
    /// Pairs of the first entry.
    pairs: u32,
    /// Bytes of the names of the first entry, at the front of `bytes`.
    names: u32,
    bytes: Bytes,
}

impl Node {
    /// A node of one entry.
    pub(super) fn new(id: Id, fields: &Fields<'_>) -> Self {
        let mut bytes = Vec::with_capacity(fields.strings().len() + ENTRY_BYTES);
        let mut rest = fields.strings();
        while let Some((name, _)) = take_pair(&mut rest) {
            bytes.extend_from_slice(name);
        }
        let mut node = Self {
            first: id,
            last: id,
            live: 0,
            removed: 0,
            pairs: fields.count() as u32,
            names: bytes.len() as u32,
            bytes: bytes.into(),
        };
        node.append(id, fields);
        node
    }

    /// Whether an entry with fields of this many bytes belongs here and not into the next node.
    pub(super) fn has_room(&self, bytes: usize, limits: NodeLimits) -> bool {
        self.bytes.len() + bytes < limits.bytes && u64::from(self.live) + u64::from(self.removed) < limits.entries
    }

    /// Adds an entry, whose id is above all.
    pub(super) fn append(&mut self, id: Id, fields: &Fields<'_>) {
        let shares_names = self.has_names_of(fields);
        let number_shown = if shares_names { 0 } else { fields.count() };
        let shown = fields.strings().len() - if shares_names { self.names as usize } else { 0 };
        let ms = id.ms - self.first.ms;
        let seq = if ms == 0 { id.seq - self.first.seq } else { id.seq };
        let len = varint::len(ms) + varint::len(seq) + varint::len(number_shown) + shown;
        let bytes = self.bytes.own();
        varint::put(bytes, len as u64);
        varint::put(bytes, ms);
        varint::put(bytes, seq);
        varint::put(bytes, number_shown);
        if shares_names {
            let mut rest = fields.strings();
            while let Some((_, value)) = take_pair(&mut rest) {
                bytes.extend_from_slice(value);
            }
        } else {
            bytes.extend_from_slice(fields.strings());
        }
        self.last = id;
        self.live += 1;
    }

    fn has_names_of(&self, fields: &Fields<'_>) -> bool {
        let (mut names, mut rest) = (&self.bytes.get()[..self.names as usize], fields.strings());
        while let Some((name, _)) = take_pair(&mut rest) {
            match names.strip_prefix(name) {
                Some(more) => names = more,
                None => return false,
            }
        }
        names.is_empty()
    }

    /// The id of the first entry it ever had.
    pub(super) fn first_ever(&self) -> &Id {
        &self.first
    }

    /// The id of the last entry it ever had.
    pub(super) fn last_ever(&self) -> &Id {
        &self.last
    }

    /// How many entries.
    pub(super) fn live(&self) -> u64 {
        u64::from(self.live)
    }

    /// Bytes of its allocations, when it is shared by an Arc, which has two counters before its value.
    pub(super) fn heap_bytes(&self) -> usize {
        allocated(size_of::<Self>() + 16) + self.bytes.memory_bytes()
    }

    /// Bytes of its entries.
    pub(super) fn content_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// No entry will be added any more.
    pub(super) fn seal(&mut self) {
        self.bytes.own().shrink_to_fit();
    }

    /// Its bytes, in whatever form.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The same node with its bytes in another form.
    pub(super) fn with_bytes(&self, bytes: Bytes) -> Self {
        Self { bytes, ..*self }
    }

    /// Drops the thawed copy of its bytes, unless it is shared.
    pub(super) fn shed(&mut self) {
        self.bytes.shed();
    }

    /// Appends all numbers but that of its entries.
    pub(super) fn put_head(&self, out: &mut Vec<u8>) {
        for id in [self.first, self.last] {
            varint::put(out, id.ms);
            varint::put(out, id.seq);
        }
        [self.removed, self.pairs, self.names].iter().for_each(|number| varint::put(out, u64::from(*number)));
    }

    /// Takes what [`Self::put_head`] appended: the node of `live` entries whose bytes are stored so.
    pub(super) fn take_head(rest: &mut &[u8], live: usize, cold: impl FnOnce() -> Option<Cold>) -> Option<Self> {
        let mut id = || Some(Id { ms: varint::take(rest)?, seq: varint::take(rest)? });
        let (first, last) = (id()?, id()?);
        let mut number = || u32::try_from(varint::take(rest)?).ok();
        let (removed, pairs, names) = (number()?, number()?, number()?);
        let cold = cold()?;
        let is_good = first <= last && names as usize <= cold.len();
        let live = u32::try_from(live).ok()?;
        is_good.then_some(Self { first, last, live, removed, pairs, names, bytes: cold.into() })
    }

    /// Its entries.
    pub(super) fn entries(&self) -> Entries<'_> {
        self.entries_in(self.bytes.get())
    }

    /// Its entries, without counting this as a use.
    pub(super) fn entries_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> Entries<'a> {
        self.entries_in(self.bytes.get_once(scratch))
    }

    fn entries_in<'a>(&self, bytes: &'a [u8]) -> Entries<'a> {
        let (names, rest) = bytes.split_at(self.names as usize);
        Entries { first: self.first, pairs: u64::from(self.pairs), names, rest }
    }

    /// How many of its entries are from `start` to `end`.
    pub(super) fn count(&self, start: Id, end: Id) -> u64 {
        if start <= self.first && self.last <= end {
            return self.live();
        }
        let passed = self.entries().skip_while(|entry| entry.id < start);
        passed.take_while(|entry| entry.id <= end).count() as u64
    }

    /// Its entries from the last to the first.
    pub(super) fn entries_back(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut entries = self.entries();
        let mut starts = Vec::with_capacity(self.live as usize);
        while !entries.rest.is_empty() {
            starts.push(entries.rest);
            take_string(&mut entries.rest);
        }
        starts.into_iter().rev().filter_map(move |rest| Entries { rest, ..entries }.next())
    }

    /// Removes an entry; false when it is not here.
    pub(super) fn remove(&mut self, id: Id) -> bool {
        let mut entries = self.entries();
        loop {
            let start = self.bytes.len() - entries.rest.len();
            match entries.next() {
                Some(entry) if entry.id < id => {}
                Some(entry) if entry.id == id => {
                    let end = self.bytes.len() - entries.rest.len();
                    self.bytes.own().drain(start..end);
                    self.count_removed(1);
                    return true;
                }
                _ => return false,
            }
        }
    }

    /// Removes the first `count` entries, which are not all.
    pub(super) fn remove_first(&mut self, count: u64) {
        let mut entries = self.entries();
        for _ in 0..count {
            entries.next();
        }
        let end = self.bytes.len() - entries.rest.len();
        self.bytes.own().drain(self.names as usize..end);
        self.count_removed(count as u32);
    }

    fn count_removed(&mut self, count: u32) {
        self.live -= count;
        self.removed = self.removed.saturating_add(count);
    }
}

/// The usual overhead of an entry over its strings, in bytes.
const ENTRY_BYTES: usize = 8;

/// Takes a name and a value, each with its length before it.
fn take_pair<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    Some((take_whole_string(rest)?, take_whole_string(rest)?))
}

/// Takes a string with its length before it.
fn take_whole_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let all = *rest;
    take_string(rest)?;
    all.get(..all.len() - rest.len())
}

/// An entry, where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its id.
    pub id: Id,
    /// Pairs of a name and a value.
    pairs: u64,
    /// The names, when they stand elsewhere; else they alternate with the values.
    names: Option<&'a [u8]>,
    strings: &'a [u8],
}

impl<'a> Entry<'a> {
    /// How many fields it has.
    pub fn field_count(&self) -> usize {
        self.pairs as usize
    }

    /// Names and values, in the order they were given.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let (mut names, mut rest) = (self.names, self.strings);
        std::iter::from_fn(move || {
            let name = take_string(names.as_mut().unwrap_or(&mut rest))?;
            Some((name, take_string(&mut rest)?))
        })
    }
}

/// The entries of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries<'a> {
    first: Id,
    pairs: u64,
    names: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let mut entry = take_string(&mut self.rest)?;
        let (ms, seq) = (varint::take(&mut entry)?, varint::take(&mut entry)?);
        let seq = if ms == 0 { self.first.seq + seq } else { seq };
        let id = Id { ms: self.first.ms + ms, seq };
        Some(match varint::take(&mut entry)? {
            0 => Entry { id, pairs: self.pairs, names: Some(self.names), strings: entry },
            pairs => Entry { id, pairs, names: None, strings: entry },
        })
    }
}
