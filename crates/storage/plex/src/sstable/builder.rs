//! Writes one table, front to back, from sorted entries.

use std::path::Path;
use std::sync::Arc;

use base::varint;
use vfs::{File, FileSystem, OutFile};

use super::block::BlockBuilder;
use super::format::{self, Footer, Handle, Meta, TRAILER_LEN};
use super::partitions::{BuiltFilter, FilterBuilder, Partitions};
use super::sample::SampleBuilder;
use super::{Compression, Indexes, TableInfo, TableOptions};
use crate::error::Result;
use crate::expiry::Times;
use crate::key::{self, Kind, Seqno};
use crate::range_tombstone::RangeTombstone;
use crate::sketch::Sketch;

/// Bytes gathered before they are handed to the file.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// A table being written. Dropped unfinished, it leaves a file that no manifest names.
pub(crate) struct TableBuilder {
    file: OutFile,
    options: TableOptions,
    identity: u64,
    block: BlockBuilder,
    index: BlockBuilder,
    top_index: BlockBuilder,
    /// A finished data block waits for its index entry until the first key after it is known.
    pending: Option<Handle>,
    last_key: Vec<u8>,
    first_key: Option<Vec<u8>>,
    filter: FilterBuilder,
    /// Data blocks that have ended.
    blocks: u32,
    sketch: Sketch,
    sample: SampleBuilder,
    times: Times,
    ranges: Vec<RangeTombstone>,
    meta: Meta,
}

impl TableBuilder {
    /// Creates the file, which must not exist.
    pub fn new(fs: &dyn FileSystem, path: &Path, identity: u64, options: TableOptions) -> Result<Self> {
        let file = OutFile::create(fs, path, WRITE_BUFFER_BYTES, options.is_direct)?;
        Ok(Self {
            file,
            options,
            identity,
            block: BlockBuilder::default(),
            index: BlockBuilder::default(),
            top_index: BlockBuilder::default(),
            pending: None,
            last_key: Vec::new(),
            first_key: None,
            filter: FilterBuilder::new(options.filters, options.filter_bits_per_key),
            blocks: 0,
            sketch: Sketch::default(),
            sample: SampleBuilder::default(),
            times: Times::default(),
            ranges: Vec::new(),
            meta: Meta {
                seqno_min: Seqno::MAX,
                prefix_bytes: options.prefix_bytes as u64,
                counts_blocks: options.indexes == Indexes::Partitioned,
                ..Meta::default()
            },
        })
    }

    /// Adds an entry after all others, in the order of entries.
    pub fn add(&mut self, user_key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) -> Result<()> {
        self.end_pending(Some(user_key));
        let is_new_key = self.first_key.is_none() || user_key != self.last_key;
        if is_new_key || self.filter.is_at_start() {
            let hash = key::hash(user_key);
            self.filter.add(hash);
            self.sketch.add(hash);
            if is_new_key && kind == Kind::Put {
                self.sample.add(hash, (user_key.len() + value.len()) as u64);
            }
        }
        if is_new_key {
            self.add_prefix(user_key);
            self.last_key.clear();
            self.last_key.extend_from_slice(user_key);
            self.first_key.get_or_insert_with(|| user_key.to_vec());
        }
        if self.options.has_times && kind == Kind::Put {
            self.times.note(value);
        }
        self.block.add(user_key, key::pack(seqno, kind), value);
        self.meta.entry_count += 1;
        self.meta.tombstone_count += u64::from(kind == Kind::Delete);
        self.meta.user_bytes += (user_key.len() + value.len()) as u64;
        self.note_seqno(seqno);
        if self.block.len() >= self.options.block_bytes {
            self.end_block()?;
        }
        Ok(())
    }

    /// Lets the filter know the prefix of a new key, unless that of the key before was the same.
    fn add_prefix(&mut self, key: &[u8]) {
        let len = self.options.prefix_bytes;
        if let Some(prefix) = key.get(..len).filter(|_| len > 0 && self.filter.is_whole())
            && (self.first_key.is_none() || self.last_key.get(..len) != Some(prefix))
        {
            self.filter.add(key::hash(prefix));
        }
    }

    /// Adds a deleted range; in any order.
    pub fn add_range(&mut self, tombstone: RangeTombstone) {
        self.note_seqno(tombstone.seqno);
        self.meta.tombstone_count += 1;
        self.ranges.push(tombstone);
    }

    fn note_seqno(&mut self, seqno: Seqno) {
        self.meta.seqno_min = self.meta.seqno_min.min(seqno);
        self.meta.seqno_max = self.meta.seqno_max.max(seqno);
    }

    /// Bytes of entries so far, roughly what the file will have.
    pub fn len(&self) -> u64 {
        self.file.bytes() + self.block.len() as u64
    }

    fn end_block(&mut self) -> Result<()> {
        if !self.block.is_empty() {
            let mut bytes = self.block.finish();
            self.pending = Some(self.append_packed(&mut bytes)?);
            self.block.reuse(bytes);
            self.blocks += 1;
            self.filter.end_block(self.blocks);
        }
        Ok(())
    }

    /// Gives the pending data block its index entry, now that the key after it is known (or that none follows).
    fn end_pending(&mut self, next_key: Option<&[u8]>) {
        if let Some(handle) = self.pending.take() {
            let separator = next_key.map_or_else(|| self.last_key.clone(), |next| key::separator(&self.last_key, next));
            let mut value = Vec::new();
            handle.put(&mut value);
            self.index.add(&separator, 0, &value);
        }
    }

    /// Appends a part with its trailer.
    fn append(&mut self, mut part: Vec<u8>) -> Result<Handle> {
        self.append_sealed(&mut part, Compression::None)
    }

    /// Appends a block, compressed as the options say, with its trailer.
    fn append_packed(&mut self, block: &mut Vec<u8>) -> Result<Handle> {
        self.append_sealed(block, self.options.compression)
    }

    fn append_sealed(&mut self, part: &mut Vec<u8>, compression: Compression) -> Result<Handle> {
        let offset = self.file.bytes();
        format::seal(self.identity, offset, part, compression);
        let handle = Handle { offset, len: (part.len() - TRAILER_LEN) as u64 };
        self.file.append(part)?;
        Ok(handle)
    }

    /// Writes what is left and syncs the file. Its name is not durable yet.
    pub fn finish(self) -> Result<TableInfo> {
        let (info, file) = self.finish_unsynced()?;
        file.sync_all()?;
        Ok(info)
    }

    /// Writes what is left. The caller syncs the file.
    pub fn finish_unsynced(mut self) -> Result<(TableInfo, Arc<dyn File>)> {
        self.end_block()?;
        self.end_pending(None);
        self.write_index()?;
        let top_index = self.top_index.finish();
        self.meta.top_index = self.append(top_index)?;
        self.write_filter()?;
        let sketch = self.sketch.encode();
        self.meta.sketch = self.append(sketch)?;
        let ranges = std::mem::take(&mut self.ranges);
        self.meta.ranges = self.append(encode_ranges(&ranges))?;
        self.meta.sample = std::mem::take(&mut self.sample).finish();
        self.meta.times = self.times.get();
        let meta = self.meta.encode();
        let meta = self.append(meta)?;
        let footer = Footer { meta, identity: self.identity, version: self.meta.version() };
        self.file.append(&footer.encode(self.file.bytes()))?;
        let info = self.info(ranges);
        let (len, file) = self.file.finish_unsynced()?;
        debug_assert_eq!(len, info.bytes);
        Ok((info, file))
    }

    fn write_filter(&mut self) -> Result<()> {
        let whole = FilterBuilder::new(super::Filters::Full, 0);
        let part = match std::mem::replace(&mut self.filter, whole).finish() {
            BuiltFilter::Full(filter) => filter.encode(),
            BuiltFilter::Partitions(partitions) => {
                let append =
                    |(first_block, filter): &(u32, super::Filter)| Ok((*first_block, self.append(filter.encode())?));
                let top: Vec<(u32, Handle)> = partitions.iter().map(append).collect::<Result<_>>()?;
                // Prefixes are for whole filters.
                (self.meta.has_partitions, self.meta.prefix_bytes) = (true, 0);
                Partitions::encode(&top)
            }
        };
        self.meta.filter = self.append(part)?;
        Ok(())
    }

    /// The index is written after the data, in blocks, with an index of these blocks on top.
    fn write_index(&mut self) -> Result<()> {
        let mut index = std::mem::take(&mut self.index);
        let whole = index.finish();
        // Data blocks up to the end of the part.
        let (mut part, mut blocks) = (BlockBuilder::default(), 0);
        let block = super::block::Block::new(&whole).expect("a block just built is well formed");
        let mut cursor = super::block::BlockCursor::new(block);
        let sound = "a block just built is well formed";
        cursor.seek_to_first().expect(sound);
        while cursor.valid() {
            part.add(cursor.key(), 0, cursor.value());
            blocks += 1;
            cursor.next().expect(sound);
            if part.len() >= self.options.block_bytes || !cursor.valid() {
                let last = part.last_key().to_vec();
                let mut bytes = part.finish();
                let mut value = Vec::new();
                self.append_packed(&mut bytes)?.put(&mut value);
                if self.meta.counts_blocks {
                    varint::put(&mut value, blocks);
                }
                self.top_index.add(&last, 0, &value);
            }
        }
        Ok(())
    }

    fn info(&self, ranges: Vec<RangeTombstone>) -> TableInfo {
        let mut info = TableInfo {
            identity: self.identity,
            bytes: self.file.bytes(),
            entry_count: self.meta.entry_count,
            summary: Some(self.meta.summary(!ranges.is_empty())),
            ..TableInfo::default()
        };
        info.set_bounds(self.first_key.as_ref().map(|first| (&first[..], &self.last_key[..])), &ranges);
        info
    }
}

/// Number of tombstones, then of each: start, end (length and bytes) and sequence number.
fn encode_ranges(ranges: &[RangeTombstone]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::put(&mut out, ranges.len() as u64);
    for range in ranges {
        for key in [&range.start, &range.end] {
            varint::put(&mut out, key.len() as u64);
            out.extend_from_slice(key);
        }
        varint::put(&mut out, range.seqno);
    }
    out
}

/// Undoes [`encode_ranges`].
pub(super) fn decode_ranges(mut bytes: &[u8]) -> Option<Vec<RangeTombstone>> {
    let rest = &mut bytes;
    let count = varint::take(rest)?;
    let mut ranges = Vec::new();
    for _ in 0..count {
        let mut key = || {
            let len = usize::try_from(varint::take(rest)?).ok()?;
            let (key, behind) = rest.split_at_checked(len)?;
            *rest = behind;
            Some(key.to_vec())
        };
        let (start, end) = (key()?, key()?);
        ranges.push(RangeTombstone { start, end, seqno: varint::take(rest)? });
    }
    rest.is_empty().then_some(ranges)
}
