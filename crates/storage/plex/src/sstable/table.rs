//! A table open for reading.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use vfs::{File, FileSystem, OpenOptions};

use super::block::{Block, BlockCursor, Found, Malformed};
use super::blocks::{Blocks, Parts};
use super::builder::decode_ranges;
use super::compression;
use super::file;
use super::filter::{self, Filter, Probe};
use super::first_reads::FirstReads;
use super::format::{self, FOOTER_LEN, Footer, Handle, Meta, TRAILER_LEN};
use super::partitions::Partitions;
use super::read_ahead::{CHUNK_BYTES, DIRECT_CHUNK_BYTES, ReadAhead};
use super::sample::Sample;
use super::spare;
use super::{Summary, TableInfo};
use crate::cache::{Admit, BlockCache, Cached, Fill, Place};
use crate::error::{Error, Result};
use crate::key::{self, Kind, SEQNO_MAX, Seqno};
use crate::open_files::TableFile;
use crate::range_tombstone::{Cover, RangeTombstone};
use crate::sketch::{KeptSketch, Sketch};

/// Bytes that may be merged to save one table probe of a scan: a seek that reads a block takes a device as long as
/// reading and writing about this many bytes in a row. LevelDB's figure for its compactions by seeks.
pub(crate) const BYTES_PER_SCAN: u64 = 16 << 10;

/// Bytes that may be merged for one step of a scan over a deleted key: it takes about as long as merging that much.
pub(crate) const BYTES_PER_DELETED_STEP: u64 = 64;

/// Deleted ranges of a table from which a search is faster than looking at each.
const COVERED_FROM: usize = 8;

/// Numbers of what is no data block in the block cache: data blocks are counted from 0, partitions of the filter from
/// the largest number down, parts of the index from here up.
const INDEX_NUMBER: u64 = 1 << 62;

/// The part of an index that a reader is in, so that it is not searched again for each block; none of an index that is
/// kept whole.
pub(super) type HeldPart = Option<Arc<Blocks>>;

/// An index that is kept whole, and the top index that it is read by.
struct Whole {
    top: Block,
    blocks: OnceLock<Blocks>,
}

/// Where the data blocks lie.
enum Index {
    /// All of them, from the first read on.
    Full(Whole),
    /// Stretches of them are in the block cache.
    Parts(Parts),
}

/// What a table keeps in memory, from the first read of its end on.
struct Contents {
    top_index: Handle,
    prefix_bytes: u64,
    sample: Sample,
    index: Index,
    /// Lets everything through if there are partitions.
    filter: Filter,
    partitions: Option<Partitions>,
    sketch: KeptSketch,
    ranges: Vec<RangeTombstone>,
    /// The cover of all `ranges`, made when first needed.
    cover: OnceLock<Cover>,
    first_reads: FirstReads,
}

/// An open table. Filter and sketch stay in memory once they were read, and so does the index from the first read of a
/// block on. Those in parts are in the block cache instead.
pub(crate) struct Table {
    fs: Arc<dyn FileSystem>,
    file: Arc<TableFile>,
    cache: Arc<BlockCache>,
    pub number: u64,
    /// With a summary.
    pub info: TableInfo,
    summary: Summary,
    contents: OnceLock<Contents>,
    /// Whether its end could not be read.
    is_damaged: AtomicBool,
    /// Scans that came here since the file was opened. Some may be lost when many count at once.
    scans: AtomicU64,
    /// Steps of scans over deleted keys of this table. Some may be lost when many count at once.
    deleted_steps: AtomicU64,
    /// Set once no durable version names the file: it goes with the last reader (S3).
    is_obsolete: AtomicBool,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({})", self.number)
    }
}

impl Table {
    /// Opens the file, through the page cache or past it, and reads what stays in memory.
    ///
    /// # Errors
    /// Corruption, also when the file is not the one that `info` describes.
    pub fn open(
        fs: &Arc<dyn FileSystem>,
        cache: &Arc<BlockCache>,
        path: PathBuf,
        number: u64,
        info: TableInfo,
        how: OpenOptions,
    ) -> Result<Self> {
        let file = TableFile::open(fs, path.clone(), how, &cache.open_files)?;
        let (summary, contents) = file.with(&cache.open_files, |file| Contents::read(file, &path, &info))?;
        let table = Self::of(fs, cache, file, number, TableInfo { summary: Some(summary), ..info }, summary);
        table.keep_contents(contents);
        Ok(table)
    }

    /// A table of which the file is not opened before it is needed; `None` if `info` does not say enough, or if it has
    /// deleted ranges, for which every reader asks.
    pub fn unread(
        fs: &Arc<dyn FileSystem>,
        cache: &Arc<BlockCache>,
        path: PathBuf,
        number: u64,
        info: &TableInfo,
        how: OpenOptions,
    ) -> Option<Self> {
        let summary = info.summary.filter(|summary| !summary.has_ranges)?;
        let file = TableFile::closed(fs, path, how);
        Some(Self::of(fs, cache, file, number, info.clone(), summary))
    }

    fn of(
        fs: &Arc<dyn FileSystem>,
        cache: &Arc<BlockCache>,
        file: Arc<TableFile>,
        number: u64,
        info: TableInfo,
        summary: Summary,
    ) -> Self {
        Self {
            fs: fs.clone(),
            file,
            cache: cache.clone(),
            number,
            info,
            summary,
            contents: OnceLock::new(),
            is_damaged: AtomicBool::new(false),
            scans: AtomicU64::new(0),
            deleted_steps: AtomicU64::new(0),
            is_obsolete: AtomicBool::new(false),
        }
    }

    /// What its end says; read if that was not done yet.
    ///
    /// # Errors
    /// Corruption, also when the file is missing or not the one that the manifest describes.
    #[inline]
    fn contents(&self) -> Result<&Contents> {
        match self.contents.get() {
            Some(contents) => Ok(contents),
            None => self.read_contents(),
        }
    }

    #[cold]
    fn read_contents(&self) -> Result<&Contents> {
        let read = self.with_file(|file| Contents::read(file, self.path(), &self.info)).map_err(|error| match error {
            Error::Fs(error) if error.is_not_found() => missing(self.path()),
            other => other,
        });
        match read {
            Ok((_, contents)) => Ok(self.keep_contents(contents)),
            Err(error) => {
                if error.is_corruption() && !self.is_damaged.swap(true, Ordering::Relaxed) {
                    self.cache.damaged_tables.fetch_add(1, Ordering::Relaxed);
                }
                Err(error)
            }
        }
    }

    /// Two readers may come here at once: both have read the same.
    fn keep_contents(&self, contents: Contents) -> &Contents {
        self.contents.get_or_init(|| {
            self.cache.charge(contents.memory_bytes());
            contents
        })
    }

    /// Whether filter, sketch and deleted ranges are in memory.
    pub fn is_read(&self) -> bool {
        self.contents.get().is_some()
    }

    /// Whether its end could not be read.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Reads filter, sketch and deleted ranges, if that was not done yet.
    ///
    /// # Errors
    /// Corruption, as those of [`open`](Self::open).
    pub fn ensure_read(&self) -> Result<()> {
        self.contents().map(drop)
    }

    /// A table that has another one's file, with metadata and sketch of its own, to model large trees.
    #[cfg(test)]
    pub fn modelled(of: &Table, number: u64, info: TableInfo, seqnos: Range<Seqno>, keys: &KeptSketch) -> Self {
        let contents = of.contents.get().expect("it was opened");
        let Index::Full(whole) = &contents.index else { panic!("the index of a model is kept whole") };
        let summary = Summary { user_bytes: info.bytes, seqno_min: seqnos.start, seqno_max: seqnos.end, ..of.summary };
        let info = TableInfo { summary: Some(summary), ..info };
        let table = Self::of(&of.fs, &of.cache, of.file.clone(), number, info, summary);
        table.keep_contents(Contents {
            top_index: contents.top_index,
            prefix_bytes: contents.prefix_bytes,
            sample: contents.sample.clone(),
            index: Index::Full(Whole { top: whole.top.clone(), blocks: OnceLock::new() }),
            filter: contents.filter.clone(),
            partitions: None,
            sketch: keys.clone(),
            ranges: Vec::new(),
            cover: OnceLock::new(),
            first_reads: FirstReads::new(0),
        });
        table
    }

    /// Opens a table of which nothing is known but its file, and the number that its entries were given (0 for none).
    ///
    /// # Errors
    /// Corruption, also of the blocks with the first and the last entry.
    pub fn open_unnamed(
        fs: &Arc<dyn FileSystem>,
        cache: &Arc<BlockCache>,
        path: PathBuf,
        number: u64,
        given_seqno: Seqno,
    ) -> Result<Arc<Self>> {
        let mut info = TableInfo { given_seqno, ..Self::read_info(&**fs, &path)? };
        let how = OpenOptions::read();
        let table = Arc::new(Self::open(fs, cache, path.clone(), number, info.clone(), how)?);
        let mut keys: Option<(Vec<u8>, Vec<u8>)> = None;
        let mut cursor = table.cursor(Fill::Pass);
        cursor.seek_to_first()?;
        if cursor.valid() {
            let first = cursor.key().to_vec();
            cursor.seek_to_last()?;
            keys = Some((first, cursor.key().to_vec()));
        }
        info.set_bounds(keys.as_ref().map(|(first, last)| (&first[..], &last[..])), table.ranges());
        Ok(Arc::new(Self::open(fs, cache, path, number, info, how)?))
    }

    /// What the file says of itself; the bounds stay empty.
    pub fn read_info(fs: &dyn FileSystem, path: &Path) -> Result<TableInfo> {
        let file = fs.open(path, OpenOptions::read())?;
        let bytes = file.len()?;
        let Some(footer_at) = bytes.checked_sub(FOOTER_LEN as u64) else {
            return Err(Error::corruption(path, bytes, "shorter than the end of a table; the whole table is lost"));
        };
        let mut footer = [0; FOOTER_LEN];
        file.read_exact_at(&mut footer, footer_at)?;
        let Footer { meta, identity, version } = Footer::decode(path, footer_at, &footer)?;
        let block = read_part(&*file, path, identity, meta, footer_at)?;
        let decoded =
            Meta::decode(&block, version).ok_or_else(|| Error::corruption(path, meta.offset, "meta block"))?;
        Ok(TableInfo { identity, bytes, entry_count: decoded.entry_count, ..TableInfo::default() })
    }

    /// Reads everything: every checksum, the order of entries, and whether they lie within the bounds.
    ///
    /// # Errors
    /// The first damage.
    pub fn verify(self: &Arc<Self>) -> Result<()> {
        let mut cursor = self.cursor(Fill::Pass);
        let mut last: Option<(Vec<u8>, Seqno)> = None;
        cursor.seek_to_first()?;
        while cursor.valid() {
            let here = (cursor.key().to_vec(), cursor.seqno());
            let is_sorted = last.as_ref().is_none_or(|last| key::compare((&last.0, last.1), (&here.0, here.1)).is_lt());
            let is_inside = *self.info.smallest <= *here.0 && !self.info.ends_before(&here.0);
            if !is_sorted || !is_inside {
                return Err(Error::corruption(self.path(), 0, "entries are not in order"));
            }
            last = Some(here);
            cursor.next()?;
        }
        let partitions = self.contents()?.partitions.iter().flat_map(|partitions| 0..partitions.len());
        partitions.map(|at| self.partition(at, Fill::Pass)).try_for_each(|partition| partition.map(drop))?;
        self.verify_parts()
    }

    /// Whether each part of the index continues where the one before ends, and all together cover the data from its
    /// beginning to its end.
    fn verify_parts(&self) -> Result<()> {
        let Index::Parts(parts) = &self.contents()?.index else { return Ok(()) };
        let mut end = 0;
        for part in 0..parts.len() {
            let extent = self.read_part_of_index(parts, part)?.extent();
            if extent.start != end {
                return Err(self.gap_before(parts, part));
            }
            end = extent.end;
        }
        if end == parts.data_end() { Ok(()) } else { Err(self.gap_before(parts, 0)) }
    }

    fn gap_before(&self, parts: &Parts, part: usize) -> Error {
        let offset = parts.handle(part).offset;
        Error::corruption(self.path(), offset, "the index leaves a gap between blocks")
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// One that has any is never unread.
    pub fn ranges(&self) -> &[RangeTombstone] {
        self.contents.get().map_or(&[], |contents| &contents.ranges)
    }

    /// The newest deleted range over the key, for views that see all of them; 0 for none.
    pub fn covering(&self, key: &[u8], view: Seqno) -> Seqno {
        let Some(contents) = self.contents.get() else { return 0 };
        if contents.ranges.len() >= COVERED_FROM {
            let cover = contents.cover.get_or_init(|| Cover::new(&contents.ranges, SEQNO_MAX));
            if cover.newest() <= view {
                return cover.at(key);
            }
        }
        let over = contents.ranges.iter().filter(|t| t.seqno <= view && t.covers(key));
        over.map(|t| t.seqno).max().unwrap_or(0)
    }

    /// The distinct keys in here. The table must be read, here and in the next three.
    pub fn sketch(&self) -> &KeptSketch {
        &self.known().sketch
    }

    /// The lengths of some keys with their values; empty where all are about as long.
    pub fn sample(&self) -> &Sample {
        &self.known().sample
    }

    /// Whether the filter in memory knows every key, so that one it does not let through is not here.
    pub fn knows_keys(&self) -> bool {
        self.known().partitions.is_none() && (self.known().filter.bytes() > 0 || self.info.entry_count == 0)
    }

    fn known(&self) -> &Contents {
        self.contents.get().expect("the caller has seen that the table is read")
    }

    /// Entries and deleted ranges that only hide others.
    pub fn tombstone_count(&self) -> u64 {
        self.summary.tombstone_count
    }

    /// When the first and the last value were written, in milliseconds; `None` if values have no times.
    pub fn times(&self) -> Option<(u64, u64)> {
        self.summary.times
    }

    /// The largest sequence number in here.
    pub fn seqno_max(&self) -> Seqno {
        self.summary.seqno_max.max(self.info.given_seqno)
    }

    /// The smallest sequence number in here.
    pub fn seqno_min(&self) -> Seqno {
        self.summary.seqno_min.max(self.info.given_seqno)
    }

    /// The sequence number that counts for an entry with this one in the file. In a file that was taken in, that is the
    /// number that the manifest gives.
    pub(super) fn seqno_of(&self, in_file: Seqno) -> Seqno {
        in_file.max(self.info.given_seqno)
    }

    /// Lengths of keys and values, added up.
    pub fn user_bytes(&self) -> u64 {
        self.summary.user_bytes
    }

    /// Counts a scan of this table. True when a merge may pay: when the scans so far would have saved what merging this
    /// table costs, and again at each doubling, since its neighbours may have cost too much before.
    pub fn note_scan(&self) -> bool {
        let scans = self.scans.load(Ordering::Relaxed) + 1;
        self.scans.store(scans, Ordering::Relaxed);
        let enough = self.info.bytes.div_ceil(BYTES_PER_SCAN).max(1);
        self.signal(scans.is_multiple_of(enough) && (scans / enough).is_power_of_two())
    }

    /// Counts steps of scans over deleted keys of this table. True when a merge may pay, and again at each doubling.
    pub fn note_deleted(&self, steps: u64) -> bool {
        let before = self.deleted_steps.load(Ordering::Relaxed);
        self.deleted_steps.store(before + steps, Ordering::Relaxed);
        let enough = self.info.bytes.div_ceil(BYTES_PER_DELETED_STEP).max(1);
        self.signal((before + steps) / enough >= (2 * (before / enough)).max(1))
    }

    fn signal(&self, may_pay: bool) -> bool {
        if may_pay {
            self.cache.scan_signals.fetch_add(1, Ordering::Relaxed);
        }
        may_pay
    }

    /// How often any table of the database had scans for which a merge may pay.
    pub fn scan_signals(&self) -> u64 {
        self.cache.scan_signals.load(Ordering::Relaxed)
    }

    /// Steps of scans over deleted keys since the file was opened.
    pub fn deleted_steps(&self) -> u64 {
        self.deleted_steps.load(Ordering::Relaxed)
    }

    /// Scans that came here since the file was opened.
    pub fn scans(&self) -> u64 {
        self.scans.load(Ordering::Relaxed)
    }

    /// The file goes when the last reader does.
    pub fn mark_obsolete(&self) {
        self.is_obsolete.store(true, Ordering::Release);
    }

    /// The filter, if it is whole; one in partitions is asked by [`get`](Self::get).
    pub fn filter(&self) -> &Filter {
        &self.known().filter
    }

    /// Whether a key may be there, by what is in memory.
    pub fn may_contain(&self, probe: &Probe) -> bool {
        self.contents.get().is_none_or(|contents| contents.filter.may_contain(probe))
    }

    /// The filter of a table that may have to be read first.
    pub fn filter_now(&self) -> Result<&Filter> {
        Ok(&self.contents()?.filter)
    }

    /// Whether a key may be there that begins with a prefix of this length; `probe` is the prefix's.
    pub fn may_have_prefix(&self, prefix_bytes: usize, probe: &Probe) -> bool {
        let Some(contents) = self.contents.get() else { return true };
        contents.prefix_bytes != prefix_bytes as u64 || contents.filter.may_contain(probe)
    }

    /// Bytes of the filter that stay in memory.
    pub fn filter_bytes(&self) -> u64 {
        self.contents.get().map_or(0, Contents::filter_bytes)
    }

    /// Bytes of the index that stay in memory.
    pub fn index_bytes(&self) -> u64 {
        self.contents.get().map_or(0, Contents::index_bytes)
    }

    /// Memory for the sketch and the sample, in bytes.
    pub fn sketch_bytes(&self) -> u64 {
        self.contents.get().map_or(0, Contents::sketch_bytes)
    }

    /// Keys at up to `count` places that share the data blocks out evenly, ascending.
    pub fn keys_inside(self: &Arc<Self>, count: usize) -> Result<Vec<Vec<u8>>> {
        let blocks = self.block_count()?;
        let count = count.min(blocks.saturating_sub(1));
        let (mut keys, mut held) = (Vec::<Vec<u8>>::with_capacity(count), None);
        for place in 1..=count {
            let at = place * blocks / (count + 1);
            let mut cursor = BlockCursor::new(self.block(at, Fill::Pass, &mut held)?);
            self.sound(at, cursor.seek_to_first())?;
            if cursor.valid() {
                keys.push(cursor.key().to_vec());
            }
        }
        Ok(keys)
    }

    /// The newest version of the key at or before `view`. A whole filter is not asked. `probe` is the key's.
    pub fn get(&self, key: &[u8], view: Seqno, probe: &Probe) -> Result<Option<(Seqno, Kind, Vec<u8>)>> {
        if self.info.given_seqno > view {
            return Ok(None);
        }
        let mut held = None;
        let first = self.block_before(key, view, Fill::Keep, &mut held)?;
        if !self.partitions_may_have(first, probe)? {
            return Ok(None);
        }
        // The versions of a key may continue in the next block, so a look-up may read more than one.
        for at in first..self.block_count()? {
            let find = |block: &Block| {
                let found = self.sound(at, block.find(key, view))?;
                Ok(found.map(|found| {
                    let value = |found: Found<'_>| (self.seqno_of(found.seqno), found.kind, found.value.to_vec());
                    found.is_key.then(|| value(found))
                }))
            };
            if let Some(answer) = self.look_into(at, Fill::Keep, &mut held, find)? {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// Whether a key may be there that would be in this data block, or be the first of the next.
    fn partitions_may_have(&self, block: usize, probe: &Probe) -> Result<bool> {
        let Some(partitions) = &self.contents()?.partitions else { return Ok(true) };
        let [mine, next] = partitions.of_block_and_next(block);
        for at in mine..=next {
            if at < partitions.len() && filter::may_contain(self.partition(at, Fill::Keep)?.bytes(), probe) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A partition of the filter, which must have it.
    fn partition(&self, at: usize, fill: Fill) -> Result<Block> {
        let partitions = self.contents()?.partitions.as_ref().expect("the caller has found it in there");
        // Data blocks are counted from below.
        let (place, id) = (partitions.place(at), (self.number, u64::MAX - at as u64));
        if let Some(partition) = self.cache.get(place, id).and_then(Cached::block) {
            return Ok(partition);
        }
        let end = self.info.bytes - FOOTER_LEN as u64;
        let part =
            self.with_file(|file| read_part(file, self.path(), self.info.identity, partitions.handle(at), end))?;
        if Filter::decode(&part).is_none() {
            return Err(Error::corruption(self.path(), partitions.handle(at).offset, "filter"));
        }
        let partition = Block::opaque(&part);
        if fill == Fill::Keep {
            self.cache.insert(place, id, &Cached::Block(partition.clone()), Admit::All);
        }
        Ok(partition)
    }

    /// Where all data blocks lie, of an index that is kept whole.
    fn all_blocks<'a>(&self, whole: &'a Whole) -> Result<&'a Blocks> {
        if let Some(blocks) = whole.blocks.get() {
            return Ok(blocks);
        }
        let read = |handle: Handle| self.read_block(handle);
        let blocks = Blocks::read(self.path(), (self.contents()?.top_index, whole.top.clone()), read)?;
        // Two readers may come here at once: both read the same.
        Ok(whole.blocks.get_or_init(|| {
            self.cache.charge(blocks.bytes() as u64);
            blocks
        }))
    }

    /// Where this data block is, and its neighbours.
    pub(super) fn blocks_of<'a>(&'a self, at: usize, fill: Fill, held: &'a mut HeldPart) -> Result<&'a Blocks> {
        match &self.contents()?.index {
            Index::Full(whole) => self.all_blocks(whole),
            Index::Parts(parts) => {
                if !held.as_ref().is_some_and(|held| held.numbers().contains(&at)) {
                    *held = None;
                    return Ok(&**held.insert(self.part_of_index(parts, parts.part_of(at), fill)?));
                }
                Ok(&**held.as_ref().expect("it was found above"))
            }
        }
    }

    /// A part of the index, which must have it.
    fn part_of_index(&self, parts: &Parts, part: usize, fill: Fill) -> Result<Arc<Blocks>> {
        let (place, id) = (parts.place(part), (self.number, INDEX_NUMBER + part as u64));
        if let Some(blocks) = self.cache.get(place, id).and_then(Cached::index) {
            return Ok(blocks);
        }
        let blocks = Arc::new(self.read_part_of_index(parts, part)?);
        if fill == Fill::Keep {
            self.cache.insert(place, id, &Cached::Index(blocks.clone()), Admit::All);
        }
        Ok(blocks)
    }

    fn read_part_of_index(&self, parts: &Parts, part: usize) -> Result<Blocks> {
        let handle = parts.handle(part);
        let block = self.read_block(handle)?;
        Blocks::of_part(self.path(), (handle, block), parts.numbers(part), parts.data_end())
    }

    /// Number of data blocks.
    pub(super) fn block_count(&self) -> Result<usize> {
        Ok(match &self.contents()?.index {
            Index::Full(whole) => self.all_blocks(whole)?.numbers().end,
            Index::Parts(parts) => parts.block_count(),
        })
    }

    /// Where the last data block's trailer ends.
    fn data_end(&self) -> Result<u64> {
        Ok(match &self.contents()?.index {
            Index::Full(whole) => self.all_blocks(whole)?.extent().end,
            Index::Parts(parts) => parts.data_end(),
        })
    }

    /// The block that the first entry at or after the place is in, or one before it; the number of blocks if there is
    /// no such entry.
    pub(super) fn block_before(&self, key: &[u8], seqno: Seqno, fill: Fill, held: &mut HeldPart) -> Result<usize> {
        let ties = match &self.contents()?.index {
            Index::Full(whole) => self.all_blocks(whole)?.find(key),
            Index::Parts(parts) => {
                let of_key = parts.find(key);
                if of_key.is_empty() {
                    return Ok(parts.block_count());
                }
                // Versions of one key may fill several parts; their first blocks decide.
                let first_of = |part: usize| parts.numbers(part).start;
                let part = self.last_before(of_key, first_of, (key, seqno), fill, held)?;
                self.blocks_of(first_of(part), fill, held)?.find(key)
            }
        };
        // Words of the index do not distinguish these blocks.
        self.last_before(ties, |at| at, (key, seqno), fill, held)
    }

    /// The last of these whose block begins before the place, or else the first; if there are none, where they would
    /// be.
    fn last_before(
        &self,
        among: Range<usize>,
        block_of: impl Fn(usize) -> usize,
        (key, seqno): (&[u8], Seqno),
        fill: Fill,
        held: &mut HeldPart,
    ) -> Result<usize> {
        let (mut low, mut high) = (among.start, among.end);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let at = block_of(middle);
            if self.sound(at, self.block(at, fill, held)?.begins_before(key, seqno))? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Asks memory for the cell of the cache that has this data block, if it is known where that is without a read.
    pub(super) fn prefetch_cell(&self, at: usize, held: &HeldPart) {
        let blocks = match self.contents.get().map(|contents| &contents.index) {
            Some(Index::Full(whole)) => whole.blocks.get(),
            Some(Index::Parts(_)) => held.as_deref(),
            None => None,
        };
        if let Some(blocks) = blocks.filter(|blocks| blocks.numbers().contains(&at)) {
            self.cache.prefetch(blocks.place(at));
        }
    }

    /// A data block.
    pub(super) fn block(&self, at: usize, fill: Fill, held: &mut HeldPart) -> Result<Block> {
        self.look_into(at, fill, held, |block| Ok(block.clone()))
    }

    /// What `look` says of a data block. It should be short: the cache cannot let go of the block meanwhile.
    fn look_into<T>(
        &self,
        at: usize,
        fill: Fill,
        held: &mut HeldPart,
        look: impl Fn(&Block) -> Result<T>,
    ) -> Result<T> {
        let blocks = self.blocks_of(at, fill, held)?;
        let (place, id) = (blocks.place(at), (self.number, at as u64));
        let looked = self.cache.with(place, id, |cached| cached.as_block().map(&look));
        if let Some(looked) = looked.flatten() {
            return looked;
        }
        let block = self.read_block(blocks.handle(at))?;
        if fill == Fill::Keep {
            self.keep(place, id, &block);
        }
        look(&block)
    }

    /// A data block, for a cursor that is likely to continue to the next.
    pub(super) fn block_on_way(
        &self,
        at: usize,
        fill: Fill,
        held: &mut HeldPart,
        ahead: &mut ReadAhead,
    ) -> Result<Block> {
        let (blocks, data_end) = (self.blocks_of(at, fill, held)?, self.data_end()?);
        if fill == Fill::Pass {
            return self.block_of_chunk(blocks.handle(at), data_end, ahead);
        }
        let id = (self.number, at as u64);
        if let Some(block) = self.cache.get(blocks.place(at), id).and_then(Cached::block) {
            ahead.found(at);
            return Ok(block);
        }
        let handle = blocks.handle(at);
        let end = handle.offset + handle.len + TRAILER_LEN as u64;
        let stretch = ahead.missed(at, end, data_end);
        let block = if self.is_direct() && ahead.is_walk() {
            // No other part reads ahead.
            self.block_of_chunk(handle, data_end, ahead)?
        } else {
            if let Some(stretch) = stretch {
                self.with_file(|file| {
                    file.expect_reads(stretch.start, stretch.end - stretch.start);
                    Ok(())
                })?;
            }
            self.read_block(handle)?
        };
        self.keep(blocks.place(at), id, &block);
        Ok(block)
    }

    /// Has the cache keep a data block that was read.
    fn keep(&self, place: &Place, id: (u64, u64), block: &Block) {
        let admit = if self.is_direct() { Admit::All } else { Admit::Some };
        self.cache.insert(place, id, &Cached::Block(block.clone()), admit);
    }

    fn with_file<T>(&self, work: impl FnOnce(&dyn File) -> Result<T>) -> Result<T> {
        self.file.with(&self.cache.open_files, work)
    }

    /// Whether its file is read past the page cache.
    fn is_direct(&self) -> bool {
        self.file.alignment() > 1
    }

    /// A data block out of a chunk of the file, which is read if it is another one.
    fn block_of_chunk(&self, handle: Handle, data_end: u64, ahead: &mut ReadAhead) -> Result<Block> {
        let len = handle.len + TRAILER_LEN as u64;
        if data_end > self.info.bytes {
            return Err(outside(self.path(), handle));
        }
        let inside = |chunk: &[u8], chunk_at: u64| {
            let from = handle.offset.checked_sub(chunk_at)?;
            (from + len <= chunk.len() as u64).then_some(from as usize..(from + len) as usize)
        };
        let range = match inside(&ahead.chunk, ahead.chunk_at) {
            Some(range) => range,
            None => {
                let longest = if self.is_direct() { DIRECT_CHUNK_BYTES } else { CHUNK_BYTES };
                let chunk_len = longest.min(data_end - handle.offset).max(len);
                // Nothing is there if the read fails.
                let mut chunk = std::mem::take(&mut ahead.chunk);
                chunk.resize(chunk_len as usize, 0);
                self.with_file(|file| file::read_exact_at(file, &mut chunk, handle.offset))?;
                (ahead.chunk, ahead.chunk_at) = (chunk, handle.offset);
                0..len as usize
            }
        };
        self.unsealed(handle, |sealed| {
            sealed.copy_from_slice(&ahead.chunk[range]);
            Ok(())
        })
    }

    fn read_block(&self, handle: Handle) -> Result<Block> {
        let end = self.info.bytes - FOOTER_LEN as u64;
        let len = sealed_len(self.path(), handle, end)?;
        let region = self.contents()?.first_reads.note(handle.offset..handle.offset + len);
        if let Some(region) = region.filter(|_| !self.is_direct()) {
            self.with_file(|file| {
                file.expect_reads(region.start, region.end - region.start);
                Ok(())
            })?;
        }
        self.unsealed(handle, |sealed| self.with_file(|file| file::read_exact_at(file, sealed, handle.offset)))
    }

    /// The block whose bytes, with their trailer, `read` puts into memory. One that is not compressed stays where they
    /// are.
    fn unsealed(&self, handle: Handle, read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Block> {
        let sealed_len = handle.len as usize + TRAILER_LEN;
        let mut memory = filled(sealed_len, read)?;
        let sealed = &memory[..sealed_len];
        let (mut len, byte) = format::verify(self.path(), self.info.identity, handle.offset, sealed)?;
        if compression::is_packed(byte) {
            let part = &sealed[..len];
            let unpacked = compression::unpacked_len(byte, part)
                .and_then(|len| Ok((filled(len, |out| compression::unpack_into(byte, part, out))?, len)));
            let (unpacked, unpacked_len) =
                unpacked.map_err(|what| Error::corruption(self.path(), handle.offset, what))?;
            spare::give(std::mem::replace(&mut memory, unpacked));
            len = unpacked_len;
        }
        Block::of_memory(memory, len).ok_or_else(|| Error::corruption(self.path(), handle.offset, "block layout"))
    }

    /// Names the data block when a cursor found it malformed.
    pub(super) fn sound<T>(&self, at: usize, result: std::result::Result<T, Malformed>) -> Result<T> {
        result.or_else(|Malformed| {
            let offset = self.blocks_of(at, Fill::Pass, &mut None)?.handle(at).offset;
            Err(Error::corruption(self.path(), offset, "entry in a block; the block is lost"))
        })
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.cache.discharge(self.contents.get().map_or(0, Contents::memory_bytes));
        if *self.is_obsolete.get_mut() {
            if let Some(Index::Full(whole)) = self.contents.get().map(|contents| &contents.index)
                && let Some(blocks) = whole.blocks.get()
            {
                blocks.numbers().for_each(|at| self.cache.forget(blocks.place(at), (self.number, at as u64)));
            }
            // A leftover file is removed by the next open, which knows the files that count.
            let _ = self.fs.remove_file(self.path());
        }
    }
}

impl Contents {
    /// Reads what follows the blocks.
    fn read(file: &dyn File, path: &Path, info: &TableInfo) -> Result<(Summary, Self)> {
        let len = file.len()?;
        if len != info.bytes || len < FOOTER_LEN as u64 {
            let what = format!("the table has {len} bytes, {} were written; the whole table is lost", info.bytes);
            return Err(Error::corruption(path, len, what));
        }
        let footer_at = len - FOOTER_LEN as u64;
        let mut footer = [0; FOOTER_LEN];
        file::read_exact_at(file, &mut footer, footer_at)?;
        let footer = Footer::decode(path, footer_at, &footer)?;
        if footer.identity != info.identity {
            let what = format!("this is table {:#x}, not {:#x}", footer.identity, info.identity);
            return Err(Error::corruption(path, footer_at, what));
        }
        let part = |handle: Handle| read_part(file, path, info.identity, handle, footer_at);
        let malformed = |handle: Handle, what: &str| Error::corruption(path, handle.offset, what);
        let meta =
            Meta::decode(&part(footer.meta)?, footer.version).ok_or_else(|| malformed(footer.meta, "meta block"))?;
        let top_index = Block::new(&part(meta.top_index)?).ok_or_else(|| malformed(meta.top_index, "top index"))?;
        let index = match meta.counts_blocks {
            true => Index::Parts(Parts::new(path, &(meta.top_index, top_index))?),
            false => Index::Full(Whole { top: top_index, blocks: OnceLock::new() }),
        };
        let whole = part(meta.filter)?;
        let partitions =
            meta.has_partitions.then(|| Partitions::decode(&whole).ok_or_else(|| malformed(meta.filter, "filter")));
        let partitions = partitions.transpose()?;
        let lines = if partitions.is_some() { &[][..] } else { &whole };
        let filter = Filter::decode(lines).ok_or_else(|| malformed(meta.filter, "filter"))?;
        let sketch = Sketch::decode(&part(meta.sketch)?).ok_or_else(|| malformed(meta.sketch, "sketch"))?;
        let ranges = decode_ranges(&part(meta.ranges)?).ok_or_else(|| malformed(meta.ranges, "deleted ranges"))?;
        let summary = meta.summary(!ranges.is_empty());
        if meta.entry_count != info.entry_count || info.summary.is_some_and(|expected| expected != summary) {
            return Err(malformed(footer.meta, "numbers of entries differ from the manifest's"));
        }
        let contents = Self {
            top_index: meta.top_index,
            prefix_bytes: meta.prefix_bytes,
            sample: meta.sample,
            index,
            filter,
            partitions,
            sketch: sketch.into_kept(),
            ranges,
            cover: OnceLock::new(),
            first_reads: FirstReads::new(info.bytes),
        };
        Ok((summary, contents))
    }

    fn filter_bytes(&self) -> u64 {
        self.filter.bytes() + self.partitions.as_ref().map_or(0, Partitions::bytes)
    }

    fn index_bytes(&self) -> u64 {
        match &self.index {
            Index::Full(whole) => (whole.top.len() + whole.blocks.get().map_or(0, Blocks::bytes)) as u64,
            Index::Parts(parts) => parts.bytes(),
        }
    }

    fn sketch_bytes(&self) -> u64 {
        self.sketch.bytes() as u64 + self.sample.bytes() as u64
    }

    /// Memory in all, in bytes: it grows when a whole index is read.
    fn memory_bytes(&self) -> u64 {
        self.filter_bytes() + self.index_bytes() + self.sketch_bytes()
    }
}

/// The error for a table whose file is not there.
pub(crate) fn missing(path: &Path) -> Error {
    Error::corruption(path, 0, "the manifest names this table, and it is missing")
}

fn outside(path: &Path, handle: Handle) -> Error {
    Error::corruption(path, handle.offset, "a handle leads outside of the table")
}

/// Memory for a block, of which `fill` has filled the first `len` bytes.
fn filled<E>(
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> std::result::Result<(), E>,
) -> std::result::Result<Arc<[u8]>, E> {
    let mut memory = spare::take(len);
    let bytes = Arc::get_mut(&mut memory).and_then(|memory| memory.get_mut(..len));
    fill(bytes.expect("it has one owner, and is no shorter"))?;
    Ok(memory)
}

/// Length of a part with its trailer, which must end before `end`.
///
/// # Errors
/// Corruption, if it does not.
fn sealed_len(path: &Path, handle: Handle, end: u64) -> Result<u64> {
    let len = handle.len + TRAILER_LEN as u64;
    let is_inside = handle.offset.checked_add(len).is_some_and(|part_end| part_end <= end);
    if is_inside { Ok(len) } else { Err(outside(path, handle)) }
}

/// Reads and verifies a part that ends before `end`.
fn read_part(file: &dyn File, path: &Path, identity: u64, handle: Handle, end: u64) -> Result<Vec<u8>> {
    let mut part = vec![0; sealed_len(path, handle, end)? as usize];
    file::read_exact_at(file, &mut part, handle.offset)?;
    format::unseal(path, identity, handle.offset, &mut part)?;
    Ok(part)
}
