//! A table open for reading.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vfs::{File, FileSystem, OpenOptions};

use super::block::{Block, BlockCursor, Malformed};
use super::builder::decode_ranges;
use super::filter;
use super::format::{self, FOOTER_LEN, Footer, Handle, Meta, TRAILER_LEN};
use super::{TableCursor, TableInfo};
use crate::cache::{BlockCache, Fill};
use crate::error::{Error, Result};
use crate::key::{self, Kind, SEQNO_MAX, Seqno};
use crate::range_tombstone::RangeTombstone;
use crate::sketch::Sketch;

/// See the module. Top index, filter and sketch stay in memory as long as the table is open.
pub(crate) struct Table {
    fs: Arc<dyn FileSystem>,
    file: Arc<dyn File>,
    cache: Arc<BlockCache>,
    path: PathBuf,
    pub number: u64,
    pub info: TableInfo,
    meta: Meta,
    top_index: Arc<Block>,
    filter: Vec<u8>,
    sketch: Sketch,
    ranges: Vec<RangeTombstone>,
    /// Set once no durable version names the file: it goes with the last reader (S3).
    is_obsolete: AtomicBool,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({})", self.number)
    }
}

impl Table {
    /// Opens the file and reads what stays in memory.
    ///
    /// # Errors
    /// Corruption, also when the file is not the one that `info` describes.
    pub fn open(
        fs: &Arc<dyn FileSystem>,
        cache: &Arc<BlockCache>,
        path: PathBuf,
        number: u64,
        info: TableInfo,
    ) -> Result<Self> {
        let file = fs.open(&path, OpenOptions::read())?;
        let len = file.len()?;
        if len != info.bytes || len < FOOTER_LEN as u64 {
            let what = format!("the table has {len} bytes, {} were written; the whole table is lost", info.bytes);
            return Err(Error::corruption(&path, len, what));
        }
        let footer_at = len - FOOTER_LEN as u64;
        let mut footer = [0; FOOTER_LEN];
        file.read_exact_at(&mut footer, footer_at)?;
        let footer = Footer::decode(&path, footer_at, &footer)?;
        if footer.identity != info.identity {
            let what = format!("this is table {:#x}, not {:#x}", footer.identity, info.identity);
            return Err(Error::corruption(&path, footer_at, what));
        }
        let part = |handle: Handle| read_part(&*file, &path, info.identity, handle, footer_at);
        let malformed = |handle: Handle, what: &str| Error::corruption(&path, handle.offset, what);
        let meta = Meta::decode(&part(footer.meta)?).ok_or_else(|| malformed(footer.meta, "meta block"))?;
        let top = Block::new(part(meta.top_index)?).ok_or_else(|| malformed(meta.top_index, "top index"))?;
        let filter = part(meta.filter)?;
        if !filter::is_well_formed(&filter) {
            return Err(malformed(meta.filter, "filter"));
        }
        let sketch = Sketch::decode(&part(meta.sketch)?).ok_or_else(|| malformed(meta.sketch, "sketch"))?;
        let ranges = decode_ranges(&part(meta.ranges)?).ok_or_else(|| malformed(meta.ranges, "deleted ranges"))?;
        if meta.entry_count != info.entry_count {
            return Err(malformed(footer.meta, "number of entries differs from the manifest's"));
        }
        Ok(Self {
            fs: fs.clone(),
            file,
            cache: cache.clone(),
            path,
            number,
            info,
            meta,
            top_index: Arc::new(top),
            filter,
            sketch,
            ranges,
            is_obsolete: AtomicBool::new(false),
        })
    }

    /// Opens a table of which nothing is known but its file.
    ///
    /// # Errors
    /// Corruption, also of the blocks with the first and the last entry.
    pub fn open_unnamed(
        fs: &Arc<dyn FileSystem>,
        cache: &Arc<BlockCache>,
        path: PathBuf,
        number: u64,
    ) -> Result<Arc<Self>> {
        let mut info = Self::read_info(&**fs, &path)?;
        let table = Arc::new(Self::open(fs, cache, path.clone(), number, info.clone())?);
        let mut keys: Option<(Vec<u8>, Vec<u8>)> = None;
        let mut cursor = table.cursor(Fill::Pass);
        cursor.seek_to_first()?;
        if cursor.valid() {
            let first = cursor.key().to_vec();
            cursor.seek_to_last()?;
            keys = Some((first, cursor.key().to_vec()));
        }
        info.set_bounds(keys.as_ref().map(|(first, last)| (&first[..], &last[..])), &table.ranges);
        Ok(Arc::new(Self::open(fs, cache, path, number, info)?))
    }

    /// What the file says of itself; the bounds stay empty.
    fn read_info(fs: &dyn FileSystem, path: &Path) -> Result<TableInfo> {
        let file = fs.open(path, OpenOptions::read())?;
        let bytes = file.len()?;
        let Some(footer_at) = bytes.checked_sub(FOOTER_LEN as u64) else {
            return Err(Error::corruption(path, bytes, "shorter than the end of a table; the whole table is lost"));
        };
        let mut footer = [0; FOOTER_LEN];
        file.read_exact_at(&mut footer, footer_at)?;
        let Footer { meta, identity } = Footer::decode(path, footer_at, &footer)?;
        let block = read_part(&*file, path, identity, meta, footer_at)?;
        let decoded = Meta::decode(&block).ok_or_else(|| Error::corruption(path, meta.offset, "meta block"))?;
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
                return Err(Error::corruption(&self.path, 0, "entries are not in order"));
            }
            last = Some(here);
            cursor.next()?;
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn ranges(&self) -> &[RangeTombstone] {
        &self.ranges
    }

    /// The distinct keys in here.
    pub fn sketch(&self) -> &Sketch {
        &self.sketch
    }

    /// Entries and deleted ranges that only hide others.
    pub fn tombstone_count(&self) -> u64 {
        self.meta.tombstone_count
    }

    /// The largest sequence number in here.
    pub fn seqno_max(&self) -> Seqno {
        self.meta.seqno_max
    }

    /// Lengths of keys and values, added up.
    pub fn user_bytes(&self) -> u64 {
        self.meta.user_bytes
    }

    /// The file goes when the last reader does.
    pub fn mark_obsolete(&self) {
        self.is_obsolete.store(true, Ordering::Release);
    }

    /// The newest version of the key at or before `view`. `hash` is the key's.
    pub fn get(&self, key: &[u8], hash: u64, view: Seqno) -> Result<Option<(Seqno, Kind, Vec<u8>)>> {
        if !filter::may_contain(&self.filter, hash) {
            return Ok(None);
        }
        let mut cursor = BlockCursor::new(self.top_index.clone());
        self.sound(self.meta.top_index, cursor.seek(key, SEQNO_MAX))?;
        // The versions of a key may go on in the next block, so a look-up may look at more than one.
        while cursor.valid() {
            let (handle, index) = self.block_at(&cursor, self.meta.top_index, Fill::Keep)?;
            let mut entry = BlockCursor::new(index);
            self.sound(handle, entry.seek(key, SEQNO_MAX))?;
            while entry.valid() {
                let (handle, block) = self.block_at(&entry, handle, Fill::Keep)?;
                let mut found = BlockCursor::new(block);
                self.sound(handle, found.seek(key, view))?;
                if found.valid() {
                    let is_hit = found.key() == key;
                    return Ok(is_hit.then(|| (found.seqno(), found.kind(), found.value().to_vec())));
                }
                self.sound(handle, entry.next())?;
            }
            self.sound(self.meta.top_index, cursor.next())?;
        }
        Ok(None)
    }

    pub fn cursor(self: &Arc<Self>, fill: Fill) -> TableCursor {
        TableCursor::new(self.clone(), fill)
    }

    pub(super) fn top_index(&self) -> (Handle, &Arc<Block>) {
        (self.meta.top_index, &self.top_index)
    }

    /// The block that an index entry leads to. `index` is where that entry stands.
    pub(super) fn block_at(&self, entry: &BlockCursor, index: Handle, fill: Fill) -> Result<(Handle, Arc<Block>)> {
        let handle = Handle::decode(entry.value())
            .ok_or_else(|| Error::corruption(&self.path, index.offset, "an index entry is not a handle"))?;
        let id = (self.info.identity, handle.offset);
        if let Some(block) = self.cache.get(id) {
            return Ok((handle, block));
        }
        let end = self.info.bytes - FOOTER_LEN as u64;
        let bytes = read_part(&*self.file, &self.path, self.info.identity, handle, end)?;
        let block = Block::new(bytes).ok_or_else(|| Error::corruption(&self.path, handle.offset, "block layout"))?;
        let block = Arc::new(block);
        if fill == Fill::Keep {
            self.cache.insert(id, &block);
        }
        Ok((handle, block))
    }

    /// Names the block when a cursor found it malformed.
    pub(super) fn sound<T>(&self, handle: Handle, result: std::result::Result<T, Malformed>) -> Result<T> {
        result.map_err(|Malformed| Error::corruption(&self.path, handle.offset, "entry in a block; the block is lost"))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if *self.is_obsolete.get_mut() {
            // A file left behind is removed by the next open, which knows the files that count.
            let _ = self.fs.remove_file(&self.path);
        }
    }
}

/// Reads and verifies a part that ends before `end`.
fn read_part(file: &dyn File, path: &Path, identity: u64, handle: Handle, end: u64) -> Result<Vec<u8>> {
    let len = handle.len + TRAILER_LEN as u64;
    if handle.offset.checked_add(len).is_none_or(|part_end| part_end > end) {
        return Err(Error::corruption(path, handle.offset, "a handle leads outside of the table"));
    }
    let mut part = vec![0; len as usize];
    file.read_exact_at(&mut part, handle.offset)?;
    format::unseal(path, identity, handle.offset, &mut part)?;
    Ok(part)
}
