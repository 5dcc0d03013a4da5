//! Leaves of large collections as rows of their own, so that a collection may be larger than memory.
//!
//! ```text
//! leaf in memory --put (memory is short)--> number, bytes   key space p
//!                <--read, by its address--
//! row of its key: ... 3 | count | address ...               written by the next flush
//! ```
//!
//! L1. A leaf's bytes never change, and its number is never given twice.
//! L2. A leaf that a stored row refers to is deleted by a flush: that of the last such row, or a later one if handles
//!     of it are left in memory. One that no stored row refers to lives as long as its handles. So a row that a flush
//!     has collected holds its tree until it is written.
//! L3. Leaves become durable with a flush, or earlier. A start deletes those that no row of the last flush can refer
//!     to: with numbers that came after it, and those that it lists.
//!
//! docs/formats/rows.md describes the bytes.

#[cfg(test)]
mod tests;

use crate::DiskError;
use base::hash::KeyHasher;
use base::{KeyspaceId, Rng, varint};
use engine::{Entry, LeafStore, Row, write_row, write_whole_row};
use parking_lot::Mutex;
use plex::{Db, KeySpaceId, WriteBatch};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use value::absent::{self, LeafRows};
use value::cold::{Cold, Keeper, Shelf};

/// The version of the list of leaves.
const VERSION: u8 = 1;

/// The leaves of one keyspace.
pub struct Leaves {
    db: Db,
    space: KeySpaceId,
    id: KeyspaceId,
    list: Mutex<List>,
    shelf: Shelf,
    kept: AtomicUsize,
    unflushed: AtomicUsize,
    /// Leaves that were stored and read since the start.
    pub written: AtomicU64,
    pub read: AtomicU64,
    itself: Weak<Self>,
}

/// What is known of leaves.
#[derive(Debug, Default, PartialEq, Eq)]
struct List {
    next: u64,
    /// How many handles there are in memory, if any.
    handles: HashMap<u64, u32>,
    /// Those that no stored row refers to. They have handles, or are about to.
    unstored: BTreeSet<u64>,
    /// By how many stored rows, where those are several.
    shared: BTreeMap<u64, u64>,
    /// Each was left out by a row that is stored anew or deleted.
    released: Vec<u64>,
    /// Nothing refers to these.
    dead: Vec<u64>,
}

/// What rows that are stored in the place of others have to do with leaves.
#[derive(Default)]
pub struct Changes {
    referred: Vec<u64>,
    released: Vec<u64>,
}

impl Changes {
    /// A row is stored in the place of another; each has the leaves with these numbers.
    pub fn add(&mut self, before: &BTreeSet<u64>, after: &BTreeSet<u64>) {
        self.referred.extend(after.difference(before));
        self.released.extend(before.difference(after));
    }
}

/// The address of a leaf.
struct Address {
    space: KeyspaceId,
    number: u64,
    len: usize,
}

impl Address {
    fn read(mut bytes: &[u8]) -> Option<Self> {
        let space = KeyspaceId(u32::try_from(varint::take(&mut bytes)?).ok()?);
        let (number, len) = (varint::take(&mut bytes)?, varint::take(&mut bytes)?);
        bytes.is_empty().then_some(Self { space, number, len: usize::try_from(len).ok()? })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, u64::from(self.space.0));
        varint::put(&mut bytes, self.number);
        varint::put(&mut bytes, self.len as u64);
        bytes
    }
}

/// The key of a leaf.
fn key_of(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// The key of the list of a keyspace, among the counts.
fn list_key(space: KeyspaceId) -> [u8; 5] {
    let [a, b, c, d] = space.0.to_be_bytes();
    [a, b, c, d, b'p']
}

impl List {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        varint::put(&mut bytes, self.next);
        varint::put(&mut bytes, self.unstored.len() as u64);
        self.unstored.iter().for_each(|number| varint::put(&mut bytes, *number));
        for (number, rows) in &self.shared {
            varint::put(&mut bytes, *number);
            varint::put(&mut bytes, *rows);
        }
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (&VERSION, mut rest) = bytes.split_first()? else { return None };
        let mut list = Self { next: varint::take(&mut rest)?, ..Self::default() };
        for _ in 0..varint::take(&mut rest)? {
            list.unstored.insert(varint::take(&mut rest)?);
        }
        while !rest.is_empty() {
            list.shared.insert(varint::take(&mut rest)?, varint::take(&mut rest)?);
        }
        Some(list)
    }

    /// A stored row refers to a leaf from now on.
    fn refer(&mut self, number: u64) {
        if !self.unstored.remove(&number) {
            *self.shared.entry(number).or_insert(1) += 1;
        }
    }

    /// Stored rows do not refer to these any more. Those that nothing refers to are dead.
    fn settle(&mut self) {
        for number in std::mem::take(&mut self.released) {
            match self.shared.get_mut(&number) {
                Some(rows) if *rows > 2 => *rows -= 1,
                Some(_) => _ = self.shared.remove(&number),
                None if self.handles.contains_key(&number) => _ = self.unstored.insert(number),
                None => self.dead.push(number),
            }
        }
    }
}

impl Leaves {
    /// Those of a keyspace. Deletes what no row refers to (L3), unless nothing is to be written.
    ///
    /// # Errors
    /// [`DiskError::Leaves`] when their list has another form.
    pub fn open(
        db: &Db,
        (space, counts): (KeySpaceId, KeySpaceId),
        id: KeyspaceId,
        is_read_only: bool,
    ) -> Result<Arc<Self>, DiskError> {
        let list = match db.get_in(counts, &list_key(id))? {
            Some(bytes) => List::of_bytes(&bytes).ok_or(DiskError::Leaves(id))?,
            None => List { next: 1, ..List::default() },
        };
        let mut list = list;
        let unstored = std::mem::take(&mut list.unstored);
        if !is_read_only {
            let mut batch = WriteBatch::new();
            batch.delete_range_in(space, &key_of(list.next)[..]..);
            unstored.iter().for_each(|number| _ = batch.delete_in(space, &key_of(*number)));
            db.write(&batch)?;
        }
        Ok(Self::new(db, space, id, list))
    }

    /// Those that rows of other programs refer to.
    pub fn to_be_read(db: &Db, space: KeySpaceId, id: KeyspaceId) -> Arc<Self> {
        Self::new(db, space, id, List::default())
    }

    fn new(db: &Db, space: KeySpaceId, id: KeyspaceId, list: List) -> Arc<Self> {
        Arc::new_cyclic(|itself| Self {
            db: db.clone(),
            space,
            id,
            list: Mutex::new(list),
            shelf: Shelf::default(),
            kept: AtomicUsize::new(0),
            unflushed: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            itself: itself.clone(),
        })
    }

    /// A row that refers to leaves, as one that has all elements.
    ///
    /// # Errors
    /// [`DiskError::Leaf`] when one cannot be read.
    pub fn whole(&self, key: &[u8], row: &Row<'_>) -> Result<Vec<u8>, DiskError> {
        let (hasher, keeper) =
            (KeyHasher::new(&mut Rng::new(1)), absent::both(Arc::<AsStored>::default(), self.keeper()));
        let made = absent::catch(|| {
            absent::waiting(|| {
                let tree = row.tree(&keeper, &hasher);
                let mut whole = Vec::new();
                write_whole_row(&row.as_new(tree.as_ref(), &row.fields()).as_entry(key), &mut whole);
                whole
            })
        });
        made.map_err(|absent| {
            let source = absent.error.unwrap_or_else(|| io::ErrorKind::NotFound.into());
            DiskError::Leaf { key: key.escape_ascii().to_string(), source }
        })
    }

    /// Rows are stored: called once for each.
    pub fn change(&self, changes: Changes) {
        let mut list = self.list.lock();
        changes.referred.into_iter().for_each(|number| list.refer(number));
        list.released.extend(changes.released);
    }

    /// Has a batch delete what nothing refers to, and put the list. To be called when all rows of a flush have changed.
    /// Returns what [`Self::sealed`] is to be told when the batch is written.
    pub fn seal(&self, batch: &mut WriteBatch, counts: KeySpaceId, id: KeyspaceId) -> usize {
        let mut list = self.list.lock();
        list.settle();
        if list.next > 1 {
            list.dead.iter().for_each(|dead| _ = batch.delete_in(self.space, &key_of(*dead)));
            batch.put_in(counts, &list_key(id), &list.to_bytes());
        }
        list.dead.len()
    }

    /// The batch was written.
    pub fn sealed(&self, dead: usize) {
        self.list.lock().dead.drain(..dead);
    }

    /// This many bytes of leaves have become durable.
    pub fn flushed(&self, bytes: usize) {
        self.unflushed.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// All rows are deleted: only what has handles in memory stays.
    pub fn clear(&self, batch: &mut WriteBatch) {
        let mut list = self.list.lock();
        let list = &mut *list;
        list.shared.clear();
        list.released.clear();
        list.unstored.extend(list.handles.keys());
        let mut from = 0;
        for number in list.unstored.iter().chain([&list.next]) {
            batch.delete_range_in(self.space, &key_of(from)[..]..&key_of(*number)[..]);
            from = number + 1;
        }
    }
}

/// Writes a row for a keyspace. A tree that has come from another one brings its elements: that one's leaves live as
/// long as it says.
pub fn write_row_for(space: KeyspaceId, entry: &Entry<'_>, row: &mut Vec<u8>) {
    write_row(entry, row);
    let mut is_own = true;
    if let Ok(read) = Row::read(row) {
        let is_of_space = |address| Address::read(address).is_some_and(|address| address.space == space);
        read.addresses(&mut |address| is_own &= is_of_space(address));
    }
    if !is_own {
        row.clear();
        // A command that changes the key may be what asks.
        absent::waiting(|| write_whole_row(entry, row));
    }
}

/// The numbers of the leaves that a row refers to.
pub fn numbers(row: &Row<'_>) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    row.addresses(&mut |address| numbers.extend(Address::read(address).map(|address| address.number)));
    numbers
}

impl LeafRows for Leaves {
    fn read(&self, address: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let missing = || io::Error::new(io::ErrorKind::InvalidData, "a leaf of a collection is missing");
        let address = Address::read(address).ok_or_else(missing)?;
        let bytes = self.db.get_in(self.space, &key_of(address.number)).map_err(io::Error::other)?;
        self.read.fetch_add(1, Ordering::Relaxed);
        out.extend_from_slice(&bytes.ok_or_else(missing)?);
        Ok(())
    }
}

impl Keeper for Leaves {
    fn thaw(&self, _stored: &[u8], _out: &mut Vec<u8>) {
        unreachable!("what has rows thaws nothing");
    }

    fn len_of(&self, stored: &[u8]) -> Option<usize> {
        Address::read(stored).map(|address| address.len)
    }

    fn came(&self, stored: &[u8]) {
        if let Some(Address { number, .. }) = Address::read(stored) {
            *self.list.lock().handles.entry(number).or_default() += 1;
        }
    }

    fn went(&self, stored: &[u8]) {
        let Some(Address { number, .. }) = Address::read(stored) else { return };
        let mut list = self.list.lock();
        let Some(handles) = list.handles.get_mut(&number) else { return };
        *handles -= 1;
        if *handles == 0 {
            list.handles.remove(&number);
            if list.unstored.remove(&number) {
                list.dead.push(number);
            }
        }
    }

    fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    fn keeps(&self, bytes: usize, is_kept: bool) {
        match is_kept {
            true => self.kept.fetch_add(bytes, Ordering::Relaxed),
            false => self.kept.fetch_sub(bytes, Ordering::Relaxed),
        };
    }

    fn rows(&self) -> Option<&dyn LeafRows> {
        Some(self)
    }
}

impl LeafStore for Leaves {
    fn keeper(&self) -> Arc<dyn Keeper> {
        self.itself.upgrade().expect("who asks holds it")
    }

    fn put(&self, bytes: &[u8]) -> Option<Cold> {
        let number = {
            let mut list = self.list.lock();
            let number = list.next;
            list.next += 1;
            list.unstored.insert(number);
            number
        };
        let mut batch = WriteBatch::new();
        batch.put_in(self.space, &key_of(number), bytes);
        if let Err(error) = self.db.write(&batch) {
            tracing::error!("a leaf of a collection cannot be stored: {error}");
            let mut list = self.list.lock();
            list.unstored.remove(&number);
            return None;
        }
        self.written.fetch_add(1, Ordering::Relaxed);
        self.unflushed.fetch_add(bytes.len(), Ordering::Relaxed);
        Cold::new(&self.keeper(), &Address { space: self.id, number, len: bytes.len() }.to_bytes())
    }

    fn unflushed_bytes(&self) -> usize {
        self.unflushed.load(Ordering::Relaxed)
    }

    fn kept_bytes(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }
}

/// Keeps compressed leaves as they are stored: nothing reads them.
#[derive(Default)]
struct AsStored(Shelf);

impl Keeper for AsStored {
    fn thaw(&self, _stored: &[u8], _out: &mut Vec<u8>) {}

    fn len_of(&self, stored: &[u8]) -> Option<usize> {
        Some(stored.len())
    }

    fn came(&self, _stored: &[u8]) {}

    fn went(&self, _stored: &[u8]) {}

    fn shelf(&self) -> &Shelf {
        &self.0
    }

    fn keeps(&self, _bytes: usize, _is_kept: bool) {}
}
