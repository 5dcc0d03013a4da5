//! The database: what users call, and the state that serves the calls.
//!
//! ```text
//!   write --> write lock: log, memtable --> publish seqno          state: memtable, immutable memtables, version
//!   read  --> state, then seqno ----------> newest source first    (one pointer, replaced whole)
//!   flush, compaction --> new tables --> manifest --> new state
//! ```
//!
//! D1. A reader takes the state first and the published sequence number after it, so that every version it may need is
//!     in the state: a merge that drops versions keeps those that the number published before shows.
//! D2. Locks are taken in the order flush, write, manifest, state. No thread waits for a device while it holds the
//!     state lock.
//! D3. A table is in a version only if the manifest that names it is durable, and its file goes only after the manifest
//!     that forgets it is.
//! D4. After a failed write or sync of the log or the manifest, writes are refused until the next open, or where the
//!     device was full, until there is space again ([`space`]).

mod begin;
mod check;
mod compact_range;
mod found;
mod ingest;
mod key_spaces;
mod lag;
mod live;
mod maintain;
mod merging;
mod recover;
mod repair;
mod space;
mod transaction;
mod write;

#[cfg(test)]
mod gaps_test;
#[cfg(test)]
mod large_open;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Mutex, RwLock};
use vfs::FileLock;

use crate::batch::WriteBatch;
use crate::bell::Bell;
use crate::cache::BlockCache;
use crate::compaction::{Choose, Visibility};
use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::iter::{Iter, IterOptions, MergeCursor, Source, Within};
use crate::key::{self, KeySpaceId, Kind, Seqno};
use crate::key_order::KeyOrder;
use crate::key_space_options::{KeySpaceOptions, OptionsOfSpaces};
use crate::limiter::Limiter;
use crate::log::SpareWal;
use crate::memtable::{Memtable, MemtableCursor};
use crate::names::Names;
use crate::options::{Background, Options, TimeSource};
use crate::range_tombstone::{Cover, Covers};
use crate::sstable::Probe;
use crate::stats::{Counters, Stats};
use crate::version::Version;
use begin::Access;
pub use check::check;
pub use repair::{Repair, repair};
pub use transaction::Transaction;

/// A longer batch of one change, as one value of hundreds of megabytes takes, is not kept, in bytes.
const ONE_CHANGE_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static ONE_CHANGE: RefCell<WriteBatch> = RefCell::default();
}

/// An open database. A clone is another handle; the database closes with the last one. All methods may be called from
/// any number of threads. Reads may block for the disk, writes also for flushes and compactions that lag behind.
#[derive(Clone, Debug)]
pub struct Db {
    handle: Arc<Handle>,
}

/// Ends the background threads when the last [`Db`] goes.
struct Handle {
    inner: Arc<Inner>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.inner.dir.display())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inner.is_closing.store(true, Ordering::Release);
        self.inner.bell.ring();
        self.inner.limiter.iter().for_each(Limiter::lift);
        for thread in self.threads.get_mut().drain(..) {
            // A panic of a background thread was printed when it happened.
            let _ = thread.join();
        }
        if let Some(spare) = self.inner.spare_wal.lock().take() {
            self.inner.remove_wals(&[spare.number]);
        }
    }
}

/// What readers need, as of one moment. Never changed.
struct State {
    memtable: Arc<Memtable>,
    /// Newest first.
    immutables: Vec<Arc<Memtable>>,
    version: Arc<Version>,
    /// How far merges lag, as the policy finds (computed with the version).
    lag: lag::Lag,
    /// Options of those key spaces that have any.
    spaces: Arc<OptionsOfSpaces>,
}

struct Inner {
    dir: PathBuf,
    options: Options,
    chooser: Box<dyn Choose>,
    cache: Arc<BlockCache>,
    database: u64,
    /// Next number of files and runs.
    next_number: AtomicU64,
    writer: Mutex<live::Writer>,
    /// Serialises syncs of the log: a thread that waits here finds its record covered by the sync before.
    syncing: Mutex<()>,
    state: RwLock<Arc<State>>,
    /// The file of the next log, once it is made.
    spare_wal: Mutex<Option<SpareWal>>,
    /// Changes up to here are visible to new readers.
    visible: AtomicU64,
    /// Sequence numbers of read views, with how many there are of each.
    views: Mutex<BTreeMap<Seqno, usize>>,
    manifest: Mutex<live::LiveManifest>,
    key_spaces: RwLock<key_spaces::KeySpaces>,
    key_order: KeyOrder,
    next_key_space: AtomicU32,
    making_key_space: Mutex<()>,
    flushing: Mutex<()>,
    merging: merging::Merging,
    /// The key space that is asked first for the next merge.
    next_merged: AtomicU32,
    names: Names,
    /// Why writes are refused; `None` while they are not.
    halted: RwLock<Option<space::Halt>>,
    /// A background thread's failure that may pass, such as a full disk; writers get it once memtables are full.
    trouble: Mutex<Option<Arc<Error>>>,
    recovered_lsn: u64,
    flushed_lsn: AtomicU64,
    counters: Counters,
    /// Wakes background threads and writers that wait for them. Iterators ring it, too.
    bell: Arc<Bell>,
    /// Whether the open left tables unread.
    has_unread: bool,
    /// Limits the bytes that merges write in a second.
    limiter: Option<Limiter>,
    /// Nanoseconds that writers owe for being too fast; less than 0 where they slept longer than they had to.
    delay_owed_ns: AtomicI64,
    is_closing: AtomicBool,
    _lock: Option<FileLock>,
}

impl Options {
    /// Opens the database in this directory, or makes one.
    ///
    /// # Errors
    /// [`vfs::FsError::Locked`] if it is open already; corruption; a newer format; an option out of range.
    pub fn open(self, dir: impl AsRef<Path>) -> Result<Db> {
        Db::open(dir, self)
    }

    /// Opens the database in this directory for reading: see [`Db::open_read_only`].
    ///
    /// # Errors
    /// As [`Db::open_read_only`].
    pub fn open_read_only(self, dir: impl AsRef<Path>) -> Result<Db> {
        Db::open_read_only(dir, self)
    }
}

impl Db {
    /// Opens the database in this directory. What was acknowledged before is there; see [`Wal`](crate::Wal) for what a
    /// crash may take. Where the device is full, reads work and writes are refused with [`Error::Suspended`] until it
    /// has room.
    ///
    /// # Errors
    /// [`vfs::FsError::Locked`] if it is open already; corruption; a newer format; an option out of range.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Db> {
        let inner = Arc::new(recover::open(dir.as_ref(), options, Access::Writing)?);
        let threads = match inner.options.background {
            Background::Threads => maintain::spawn(&inner)?,
            Background::Inline | Background::Manual => Vec::new(),
        };
        Ok(Db { handle: Arc::new(Handle { inner, threads: Mutex::new(threads) }) })
    }

    /// Opens the database in this directory for reading. Nothing is written or removed, except for the lock file, so
    /// this works on a file system that is mounted for reading only. There, nothing is locked: no other machine or
    /// mount may write the directory meanwhile. What the log holds is read into memory, and [`Options::background`] and
    /// [`Options::create_if_missing`] have no effect.
    ///
    /// # Errors
    /// As [`Db::open`]; [`Error::InvalidArgument`] where there is no database. Changes are refused with
    /// [`Error::ReadOnly`].
    pub fn open_read_only(dir: impl AsRef<Path>, options: Options) -> Result<Db> {
        let inner = Arc::new(recover::open(dir.as_ref(), options, Access::ReadingOnly)?);
        Ok(Db { handle: Arc::new(Handle { inner, threads: Mutex::default() }) })
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.handle.inner
    }

    /// The key space of this name, which is made if there is none; durable when this returns. One that exists keeps its
    /// options ([`key_space_with`](Self::key_space_with)).
    pub fn key_space(&self, name: &str) -> Result<KeySpaceId> {
        self.inner().key_space(name.as_bytes(), None)
    }

    /// The key space of this name with these options: it is made, or the one that exists gets them in place of those
    /// that it had. Tables that exist stay as they are. Durable when this returns.
    ///
    /// # Errors
    /// Invalid argument: an option out of range, or a time to live for a key space that was made without one.
    pub fn key_space_with(&self, name: &str, options: &KeySpaceOptions) -> Result<KeySpaceId> {
        self.inner().key_space(name.as_bytes(), Some(options))
    }

    /// The options that a key space has of its own.
    ///
    /// # Errors
    /// Invalid argument, for a key space that does not exist.
    pub fn key_space_options(&self, space: KeySpaceId) -> Result<KeySpaceOptions> {
        if !self.inner().has_key_space(space.0) {
            return Err(write::no_key_space(space.0));
        }
        Ok(self.inner().options_of(space.0))
    }

    /// All key spaces with their names, in the order of the names.
    pub fn key_spaces(&self) -> Vec<(String, KeySpaceId)> {
        self.inner().list_key_spaces()
    }

    /// Removes a key space with everything in it, and gives its space back once no read view needs it. The name can be
    /// used again, by a key space with another id. Waits until no merge runs. After a crash the key space is there with
    /// all that was durable, or it is gone.
    ///
    /// # Errors
    /// Invalid argument, for the default key space and for one that does not exist. After any other error the key space
    /// is there as before.
    pub fn drop_key_space(&self, space: KeySpaceId) -> Result<()> {
        self.inner().drop_key_space(space)
    }

    // ---- Writing.

    /// Gives a key of the default key space a value.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_in(KeySpaceId::DEFAULT, key, value)
    }

    /// Gives a key a value.
    pub fn put_in(&self, space: KeySpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_one(|batch| batch.put_in(space, key, value))
    }

    /// Deletes a key of the default key space; it need not exist.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.delete_in(KeySpaceId::DEFAULT, key)
    }

    /// Deletes a key; it need not exist.
    pub fn delete_in(&self, space: KeySpaceId, key: &[u8]) -> Result<()> {
        self.write_one(|batch| batch.delete_in(space, key))
    }

    /// Deletes all keys of a range of the default key space, at the cost of one write.
    pub fn delete_range<'a>(&self, range: impl RangeBounds<&'a [u8]>) -> Result<()> {
        self.delete_range_in(KeySpaceId::DEFAULT, range)
    }

    /// Deletes all keys of a range, such as `start..end`, `start..` or `..`, at the cost of one write.
    pub fn delete_range_in<'a>(&self, space: KeySpaceId, range: impl RangeBounds<&'a [u8]>) -> Result<()> {
        self.write_one(|batch| batch.delete_range_in(space, range))
    }

    /// Writes one change, with the memory of the thread's change before.
    fn write_one(&self, make: impl FnOnce(&mut WriteBatch) -> &mut WriteBatch) -> Result<()> {
        let mut batch = ONE_CHANGE.take();
        batch.clear();
        let outcome = self.write(make(&mut batch));
        batch.shrink_to(ONE_CHANGE_BYTES_MAX);
        ONE_CHANGE.set(batch);
        outcome
    }

    /// Makes all changes of the batch, or none.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key, value or key space that cannot be; [`Error::Stopped`] after an earlier
    /// failure, [`Error::Suspended`] while the device is full. When the log could not be synced, it is unknown whether
    /// the batch is there: the next open may find it, and so may reads once writes resume. After any other error of a
    /// full device it is not there.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.inner().write(batch)
    }

    /// Ingests sorted files, as if one batch had written all their pairs: without log and memtable, durable when this
    /// returns, and all of it or nothing after a crash. Everything in memory is flushed first, and writers wait
    /// meanwhile.
    ///
    /// A file on the database's file system that the policy would not cut is not copied but gets a second name (a hard
    /// link): changing it afterwards damages the database, and removing it is fine. Others are copied, while writers
    /// wait, and may be changed. [`Stats::ingest_bytes`] counts the copied bytes.
    ///
    /// # Errors
    /// Invalid argument, if a file is a table of a database, or the keys of two files overlap; corruption; a newer
    /// format. Then nothing was taken.
    pub fn ingest(&self, space: KeySpaceId, paths: &[impl AsRef<Path>]) -> Result<()> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| path.as_ref().to_owned()).collect();
        self.inner().ingest(space, &paths)
    }

    /// Makes everything written so far durable (with a log; without one, use [`flush`](Self::flush)).
    pub fn sync(&self) -> Result<()> {
        self.inner().sync_log()
    }

    // ---- Reading.

    /// The value of a key of the default key space.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_in(KeySpaceId::DEFAULT, key)
    }

    /// The value of a key.
    pub fn get_in(&self, space: KeySpaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let (state, seqno) = self.inner().now();
        state.get(space.0, &self.inner().key_order.stored(key), seqno, &self.inner().options.clock)
    }

    /// Whether a key may have a value. False only if it has none. Reads memtables and filters in memory only: true for
    /// a key that may be in tables with partitioned filters, or without filters.
    pub fn may_have(&self, space: KeySpaceId, key: &[u8]) -> bool {
        let (state, seqno) = self.inner().now();
        state.may_have(space.0, &self.inner().key_order.stored(key), seqno)
    }

    /// The values of several keys, all as of one moment.
    pub fn multi_get<K: AsRef<[u8]>>(&self, space: KeySpaceId, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let (state, seqno) = self.inner().now();
        let (order, clock) = (self.inner().key_order, &self.inner().options.clock);
        keys.iter().map(|key| state.get(space.0, &order.stored(key.as_ref()), seqno, clock)).collect()
    }

    /// An iterator over the default key space, as of now.
    pub fn iter(&self, options: IterOptions) -> Result<Iter> {
        self.iter_in(KeySpaceId::DEFAULT, options)
    }

    /// An iterator over a key space, as of now.
    pub fn iter_in(&self, space: KeySpaceId, options: IterOptions) -> Result<Iter> {
        self.inner().key_order.check_scan()?;
        let (state, seqno) = self.inner().now();
        Ok(state.iter(space.0, seqno, options, self.inner()))
    }

    /// A view of everything as of now. While it lives, versions that it sees are kept.
    pub fn view(&self) -> ReadView {
        let mut views = self.inner().views.lock();
        // Under the lock, so that no compaction can miss it between the number and the entry.
        let seqno = self.inner().visible.load(Ordering::Acquire);
        *views.entry(seqno).or_default() += 1;
        ReadView { db: self.clone(), seqno }
    }

    /// Begins an optimistic transaction: reads as of now, writes at its commit, which fails if a key has changed since.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.view())
    }

    // ---- Maintenance.

    /// Writes everything in memory to tables; durable when this returns.
    pub fn flush(&self) -> Result<()> {
        self.inner().resume()?;
        self.inner().switch_memtable()?;
        while self.inner().flush_oldest()? {}
        Ok(())
    }

    /// Does one merge that the policy asks for; `false` if it asks for none besides those that run now. Waits while
    /// [`Options::merges_max`] merges run.
    pub fn compact_step(&self) -> Result<bool> {
        self.inner().compact_once()
    }

    /// Merges until the policy is content. Does not flush.
    pub fn settle(&self) -> Result<()> {
        self.inner().settle()
    }

    /// Gives back the space of everything that is deleted, key by key or by range, now: flushes tombstones in memory,
    /// settles, and merges tombstones until they are gone, except what a read view needs. A database with threads can
    /// do this when it is idle ([`Options::reclaim_when_idle`]).
    pub fn reclaim(&self) -> Result<()> {
        while self.inner().reclaim_once()? || self.inner().merging.await_one() {}
        Ok(())
    }

    /// Does one step of [`reclaim`](Self::reclaim); `false` if there is nothing left to give back.
    pub fn reclaim_step(&self) -> Result<bool> {
        self.inner().reclaim_once()
    }

    /// Merges everything there is of a range of keys, whatever the policy says, so that what was overwritten or
    /// deleted, and what the compaction filter does not keep, is gone from the disk: for keys whose time is over in
    /// tables that nothing else would be merged with. What read views see stays. Does not flush.
    ///
    /// It works stretch by stretch and needs room for old and new of one at a time; where tables of different runs
    /// overlap each other all along, as with policies other than [`Policy::LdcRanged`](crate::Policy::LdcRanged), a
    /// stretch may be everything.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for keys that are kept by their hashes.
    pub fn compact_range<'a>(&self, space: KeySpaceId, range: impl RangeBounds<&'a [u8]>) -> Result<()> {
        self.inner().compact_range(space, &IterOptions::range(range))
    }

    /// Makes a second database in `dir`, which must be empty or missing and on the same file system: it has everything
    /// written before the call, perhaps some of what is written meanwhile, and shares the tables with this one by hard
    /// links. It takes little time and, at first, no space; the two do not know of each other. So it is a backup of a
    /// live database: of what is written meanwhile it has a beginning, with whole batches.
    ///
    /// # Errors
    /// Invalid argument, if the directory is not empty. After any error it holds no database.
    pub fn clone_to(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.inner().clone_to(dir.as_ref())
    }

    /// The position of the external log up to which the last open found everything, in tables or a log of its own, and
    /// from which the log must be replayed; 0 at the beginning. See [`WriteBatch::set_lsn`].
    pub fn recovered_lsn(&self) -> u64 {
        self.inner().recovered_lsn
    }

    /// The position of the external log up to which everything is in tables by now.
    pub fn flushed_lsn(&self) -> u64 {
        self.inner().flushed_lsn.load(Ordering::Acquire)
    }

    /// Counters and sizes.
    pub fn stats(&self) -> Stats {
        self.inner().stats()
    }

    /// Reads every table whole and verifies every checksum and the order of entries.
    ///
    /// # Errors
    /// The first damage found.
    pub fn verify(&self) -> Result<()> {
        let (state, _) = self.inner().now();
        for tree in state.version.trees.values() {
            for (_, _, table) in tree.tables() {
                table.verify()?;
            }
        }
        Ok(())
    }
}

/// Everything as of one moment, however much is written later. Dropped, it lets old versions go.
#[derive(Debug)]
pub struct ReadView {
    db: Db,
    seqno: Seqno,
}

impl ReadView {
    /// The value that a key of the default key space had.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_in(KeySpaceId::DEFAULT, key)
    }

    /// The value that a key had.
    pub fn get_in(&self, space: KeySpaceId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let inner = self.db.inner();
        inner.state().get(space.0, &inner.key_order.stored(key), self.seqno, &inner.options.clock)
    }

    /// An iterator over the keys that the default key space had.
    pub fn iter(&self, options: IterOptions) -> Result<Iter> {
        self.iter_in(KeySpaceId::DEFAULT, options)
    }

    /// An iterator over the keys that a key space had.
    pub fn iter_in(&self, space: KeySpaceId, options: IterOptions) -> Result<Iter> {
        self.db.inner().key_order.check_scan()?;
        let inner = self.db.inner();
        Ok(inner.state().iter(space.0, self.seqno, options, inner))
    }

    /// The number of the last change that the view sees.
    pub fn seqno(&self) -> Seqno {
        self.seqno
    }
}

impl Drop for ReadView {
    fn drop(&mut self) {
        let mut views = self.db.inner().views.lock();
        if let Some(count) = views.get_mut(&self.seqno) {
            *count -= 1;
            if *count == 0 {
                let was_oldest = views.first_key_value().is_some_and(|(view, _)| *view == self.seqno);
                views.remove(&self.seqno);
                drop(views);
                if was_oldest {
                    // What it pinned may go.
                    self.db.inner().bell.ring();
                }
            }
        }
    }
}

impl State {
    fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.memtable).chain(&self.immutables)
    }

    /// When values of a key space expire; `None` where they do not.
    fn expiry(&self, space: u32, clock: &TimeSource) -> Option<Expiry> {
        if self.spaces.is_empty() {
            return None;
        }
        self.spaces.get(&space)?.expiry(clock.now_ms())
    }

    fn get(&self, space: u32, key: &[u8], view: Seqno, clock: &TimeSource) -> Result<Option<Vec<u8>>> {
        let stored = self.get_stored(space, key, view)?;
        Ok(match self.expiry(space, clock) {
            None => stored,
            Some(expiry) => stored.and_then(|mut stored| {
                let len = expiry.value(&stored)?.len();
                stored.truncate(len);
                Some(stored)
            }),
        })
    }

    /// Sources from the newest to the oldest; the first that knows the key decides.
    fn get_stored(&self, space: u32, key: &[u8], view: Seqno) -> Result<Option<Vec<u8>>> {
        for memtable in self.memtables() {
            let cover = memtable.covering(space, key, view);
            if let Some((seqno, kind, value)) = memtable.get(space, key, view) {
                return Ok((kind == Kind::Put && seqno >= cover).then(|| value.to_vec()));
            }
            if cover > 0 {
                return Ok(None);
            }
        }
        let Some(tree) = self.version.tree(space) else { return Ok(None) };
        let probe = Probe::new(key::hash(key));
        for candidates in tree.candidates(key).chunks(u64::BITS as usize) {
            // All filters first, and without a branch: their lines come from memory side by side.
            let asked = candidates.iter().enumerate();
            let mut known = asked.fold(0, |known, (at, table)| known | u64::from(table.may_know(&probe)) << at);
            while known != 0 {
                let candidate = &candidates[known.trailing_zeros() as usize];
                let table = &candidate.table;
                known &= known - 1;
                if !candidate.may_know_now(&probe)? {
                    continue;
                }
                let cover = table.covering(key, view);
                if let Some((seqno, kind, value)) = table.get(key, view, &probe)? {
                    return Ok((kind == Kind::Put && seqno >= cover).then_some(value));
                }
                if cover > 0 {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Whether [`get_stored`](Self::get_stored) may find a value, judged by what is in memory.
    fn may_have(&self, space: u32, key: &[u8], view: Seqno) -> bool {
        for memtable in self.memtables() {
            let cover = memtable.covering(space, key, view);
            if let Some((seqno, kind, _)) = memtable.get(space, key, view) {
                return kind == Kind::Put && seqno >= cover;
            }
            if cover > 0 {
                return false;
            }
        }
        let Some(tree) = self.version.tree(space) else { return false };
        let probe = Probe::new(key::hash(key));
        for candidate in tree.candidates(key) {
            if candidate.filter.may_contain(&probe) {
                return true;
            }
            if candidate.has_ranges && candidate.table.covering(key, view) > 0 {
                return false;
            }
        }
        false
    }

    /// A key that none of the key space is above; `None` if it has no keys.
    fn largest(&self, space: u32) -> Option<Vec<u8>> {
        let of_memtables = self.memtables().filter_map(|memtable| {
            let mut cursor = MemtableCursor::new(memtable.clone(), space);
            cursor.seek_to_last();
            cursor.valid().then(|| cursor.key().to_vec())
        });
        let runs = self.version.tree(space).into_iter().flat_map(|tree| tree.runs());
        let of_runs = runs.filter_map(|(_, run)| run.tables.last().map(|table| table.info.largest.clone()));
        of_memtables.chain(of_runs).max()
    }

    fn iter(&self, space: u32, view: Seqno, options: IterOptions, inner: &Inner) -> Iter {
        let runs = self.version.tree(space).map_or(0, |tree| tree.runs().count());
        let mut sources = Vec::with_capacity(1 + self.immutables.len() + runs);
        for memtable in self.memtables() {
            sources.push(Source::Memtable(MemtableCursor::new(memtable.clone(), space)));
        }
        let covers = self.covers(space, view);
        if let Some(tree) = self.version.tree(space) {
            let own = self.spaces.get(&space).and_then(|own| own.prefix_filter_bytes);
            let within = Within::of(&options, own.unwrap_or(inner.options.prefix_filter_bytes));
            let runs = tree.runs().map(|(_, run)| Source::run_within(run.clone(), within.clone(), covers.clone()));
            sources.extend(runs);
        }
        let expiry = self.expiry(space, &inner.options.clock);
        let written = (self.memtable.clone(), space);
        Iter::new(MergeCursor::new(sources), view, covers, options, expiry, written, inner.bell.clone())
    }

    /// The deleted ranges that the view sees. Those of a tree are worked out once, those of a memtable until it gets
    /// another one.
    fn covers(&self, space: u32, view: Seqno) -> Covers {
        let of_tables = self.version.tree(space).map(|tree| match tree.cover() {
            all if all.newest() <= view => all.clone(),
            _ => Arc::new(Cover::new(tree.range_tombstones(), view)),
        });
        Covers::new(self.memtables().filter_map(|memtable| memtable.cover(space, view)).chain(of_tables))
    }
}

impl Inner {
    fn state(&self) -> Arc<State> {
        self.state.read().clone()
    }

    /// The state, and what it shows (D1).
    fn now(&self) -> (Arc<State>, Seqno) {
        let state = self.state();
        (state, self.visible.load(Ordering::Acquire))
    }

    /// What flushes and compactions must keep: everything that a view or a reader of this moment sees.
    fn visibility(&self) -> Visibility {
        let views = self.views.lock();
        let visible = self.visible.load(Ordering::Acquire);
        let watched = views.last_key_value().map_or(0, |(view, _)| *view);
        let mut views: Vec<Seqno> = views.keys().copied().collect();
        views.push(visible);
        views.dedup();
        Visibility { views, watched }
    }

    /// Sequence numbers of the read views, ascending.
    fn held_views(&self) -> Vec<Seqno> {
        self.views.lock().keys().copied().collect()
    }

    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// A file's identity: random, through the database's number, and repeatable.
    fn identity(&self, number: u64) -> u64 {
        identity(self.database, number)
    }

    fn stats(&self) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (state, counters) = (self.state(), &self.counters);
        let (cache_hits, cache_misses) = self.cache.hits_and_misses();
        let levels = state.version.trees.iter().map(|(space, tree)| {
            let level = |runs: &Vec<Arc<crate::version::Run>>| (runs.len(), runs.iter().map(|run| run.bytes()).sum());
            (*space, tree.levels.iter().map(level).collect())
        });
        let tables = || state.version.trees.values().flat_map(|tree| tree.tables());
        let wal_file_bytes = self.writer.lock().wal_file_bytes();
        Stats {
            user_bytes: load(&counters.user_bytes),
            wal_bytes: load(&counters.wal_bytes),
            flush_bytes: load(&counters.flush_bytes),
            flushes: load(&counters.flushes),
            ingest_bytes: load(&counters.ingest_bytes),
            compaction_bytes_read: load(&counters.compaction_bytes_read),
            compaction_bytes_written: load(&counters.compaction_bytes_written),
            manifest_bytes: load(&counters.manifest_bytes),
            compactions: load(&counters.compactions),
            compaction_parts: load(&counters.compaction_parts),
            dropped: load(&counters.dropped),
            stalls: load(&counters.stalls),
            stalled_us: load(&counters.stalled_us),
            delays: load(&counters.delays),
            delayed_us: load(&counters.delayed_us),
            lag: self.lag(&state),
            memtable_bytes: state.memtables().map(|memtable| memtable.bytes() as u64).sum(),
            table_bytes: state.version.trees.values().map(|tree| tree.bytes()).sum(),
            wal_file_bytes,
            tables: tables().count(),
            unread_tables: tables().filter(|(_, _, table)| !table.is_read()).count(),
            damaged_tables: load(&self.cache.damaged_tables),
            views: self.held_views().len(),
            oldest_view: self.held_views().first().copied(),
            filter_bytes: tables().map(|(_, _, table)| table.filter_bytes()).sum(),
            index_bytes: tables().map(|(_, _, table)| table.index_bytes()).sum(),
            sketch_bytes: tables().map(|(_, _, table)| table.sketch_bytes()).sum(),
            levels: levels.collect(),
            cache_hits,
            cache_misses,
            cache_bytes: self.cache.bytes() as u64,
        }
    }
}

fn identity(database: u64, number: u64) -> u64 {
    let mut seed = database ^ number.rotate_left(32);
    base::random::splitmix64(&mut seed)
}

fn table_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.sst"))
}

fn wal_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.wal"))
}
