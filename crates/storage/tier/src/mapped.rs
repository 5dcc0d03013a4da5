//! Segments that are written and read through memory.
//!
//! ```text
//! writer thread: make a file, map it, write its header, sync its name -> spare
//! append:        no room in the open segment -> take the spare -> write past the caches, fence -> address
//! read:          copy from the mapping; length, key and tag are compared
//! ```
//!
//! P1. A record is fenced before [`MappedTail::append`] gives its address, so no entry has the address of a record that
//!     is not on the medium: on persistent memory it is durable, in the page cache it survives the process.
//! P2. An open segment has its greatest length on the medium, with zeros after its last record. It is cut when it is
//!     full, and at an ordered stop. After a crash it stays long, and cleaning gives the space back.
//! P3. The checksum of a record is compared at its first read after a start, unless this process wrote it.

use crate::format::{self, HEADER_BYTES, Head, UNIT_BYTES, record_bytes};
use crate::tail::Appended;
use engine::tier::{NewRecord, Origin};
use engine::{Encoding, TierAddress};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::Region;

/// Segments mapped for reads at a time. Each takes a descriptor.
const MAPPED_MAX: usize = 1024;

/// Scratch memory that is kept between appends.
const SCRATCH_BYTES: usize = 64 << 10;

/// Records begin at least this far from each other, since values on a tier have 64 bytes or more: one bit for each such
/// stretch tells which records were checked. Shorter records, of tests, share a bit with their neighbours.
const STRETCH_BYTES: u64 = 64;

/// Heads and keys up to here are compared in a copy on the stack.
const SHORT_HEAD_BYTES: usize = 64;

/// A segment that appends go to, or will go to.
struct Open {
    number: u32,
    region: Arc<dyn Region>,
    /// Where the next record begins.
    at: u64,
}

impl Open {
    fn left(&self) -> u64 {
        self.region.len() - self.at
    }
}

/// The segments that appends go to. Values that leave memory and values that cleaning moves have one each.
#[derive(Default)]
pub struct MappedTail {
    open: [Option<Open>; 2],
    spare: Option<Open>,
    /// Full segments whose files are to be cut to these lengths.
    full: Vec<(u32, u64)>,
    scratch: Vec<u8>,
}

impl MappedTail {
    /// Whether an append of a record of this many bytes needs the spare, and there is none.
    pub fn is_busy(&self, origin: Origin, bytes: u64) -> bool {
        self.spare.is_none() && self.needs_spare(origin, bytes)
    }

    /// Whether an append of a record of this many bytes needs the spare.
    pub fn needs_spare(&self, origin: Origin, bytes: u64) -> bool {
        self.open[origin as usize].as_ref().is_none_or(|open| open.left() < bytes)
    }

    /// Bytes that the open segment has room for.
    pub fn left(&self, origin: Origin) -> u64 {
        self.open[origin as usize].as_ref().map_or(0, Open::left)
    }

    /// Whether there is something to do for the writer.
    pub fn lacks_spare(&self) -> bool {
        self.spare.is_none()
    }

    /// A segment is ready: mapped, with its header, and with a durable name.
    pub fn add_spare(&mut self, number: u32, region: Arc<dyn Region>) {
        self.spare = Some(Open { number, region, at: HEADER_BYTES as u64 });
    }

    /// Adds a record, in the spare if the open segment has no room.
    ///
    /// # Errors
    /// The medium failed: the segment takes no more records.
    pub fn append(&mut self, record: &NewRecord<'_>, origin: Origin) -> Result<Appended, String> {
        let NewRecord { key, kind, encoding, value } = *record;
        let (len, turn) = (record_bytes(key.len(), value.len() as u32), origin as usize);
        let mut begun = None;
        if self.needs_spare(origin, len) {
            self.close(turn);
            self.open[turn] = self.spare.take();
            begun = self.open[turn].as_ref().map(|open| open.number);
        }
        let Some(open) = self.open[turn].as_mut().filter(|open| open.left() >= len) else {
            return Err("the record is longer than a segment".to_owned());
        };
        let (head, scratch) = (Head::new(key, kind, encoding, value), &mut self.scratch);
        scratch.clear();
        [head.bytes(), key, value].iter().for_each(|part| scratch.extend_from_slice(part));
        scratch.resize(len as usize, 0);
        let result = open.region.write_nt(scratch, open.at);
        scratch.shrink_to(SCRATCH_BYTES);
        let (segment, offset) = (open.number, (open.at / UNIT_BYTES) as u32);
        if let Err(error) = result {
            self.close(turn);
            return Err(error.to_string());
        }
        open.region.fence();
        open.at += len;
        let address = TierAddress { segment, offset, len: value.len() as u32, tag: head.tag() };
        let bytes = len + if begun.is_some() { HEADER_BYTES as u64 } else { 0 };
        Ok(Appended { address, begun, bytes, is_chunk_full: begun.is_some() })
    }

    fn close(&mut self, turn: usize) {
        if let Some(Open { number, at, .. }) = self.open[turn].take() {
            self.full.push((number, at));
        }
    }

    /// Ends all appends: what is open is full, and the spare has nothing.
    pub fn close_all(&mut self) {
        (0..self.open.len()).for_each(|turn| self.close(turn));
        self.full.extend(self.spare.take().map(|spare| (spare.number, 0)));
    }

    /// The full segment that is to be cut next, and its length.
    pub fn first_full(&self) -> Option<(u32, u64)> {
        self.full.first().copied()
    }

    /// A segment is cut.
    pub fn cut(&mut self, number: u32) {
        self.full.retain(|(full, _)| *full != number);
    }

    /// Whether records go to the segment, or its file changes.
    pub fn is_writing(&self, segment: u32) -> bool {
        self.open.iter().chain([&self.spare]).flatten().any(|open| open.number == segment)
            || self.full.iter().any(|(full, _)| *full == segment)
    }

    /// Bytes of files that have no record yet.
    pub fn unfilled(&self) -> u64 {
        self.open.iter().flatten().map(Open::left).sum::<u64>()
            + self.spare.as_ref().map_or(0, |open| open.region.len())
    }
}

/// A segment that is mapped for reads.
pub struct MappedSegment {
    pub region: Arc<dyn Region>,
    /// A bit for each stretch whose record was checked; `None` when this process wrote the segment.
    checked: Option<Box<[AtomicU64]>>,
}

impl MappedSegment {
    /// Appends the value at an address to `value`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(&self, key: &[u8], address: TierAddress, value: &mut Vec<u8>) -> Result<Encoding, String> {
        let (begin, head_bytes) = (value.len(), format::RECORD_HEAD_BYTES + key.len());
        let (mut short, mut long) = ([0; SHORT_HEAD_BYTES], Vec::new());
        let head = match short.get_mut(..head_bytes) {
            Some(head) => head,
            None => {
                long.resize(head_bytes, 0);
                &mut long[..]
            }
        };
        let at = u64::from(address.offset) * UNIT_BYTES;
        self.region.read_exact_at(head, at).map_err(|error| error.to_string())?;
        let encoding = format::recognise(head, key, address)?;
        let from = at + head_bytes as u64;
        self.region.append_to(value, address.len as usize, from).map_err(|error| error.to_string())?;
        if let Some((word, bit)) = self.unchecked(at) {
            if let Err(error) = format::check_parts(head, key, &value[begin..], address) {
                value.truncate(begin);
                return Err(error);
            }
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(encoding)
    }

    /// The bit to be set when the checksum of the record there was compared; `None` when it was (P3).
    #[inline]
    fn unchecked(&self, at: u64) -> Option<(&AtomicU64, u64)> {
        let (word, bit) = ((at / STRETCH_BYTES / 64) as usize, 1 << (at / STRETCH_BYTES % 64));
        let word = self.checked.as_ref()?.get(word)?;
        (word.load(Ordering::Relaxed) & bit == 0).then_some((word, bit))
    }

    /// The checksum of the record at an address was compared elsewhere.
    pub fn note_checked(&self, address: TierAddress) {
        if let Some((word, bit)) = self.unchecked(u64::from(address.offset) * UNIT_BYTES) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Copies the record at an address into `record`, which has its length.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn copy(&self, key: &[u8], address: TierAddress, record: &mut [u8]) -> Result<Encoding, String> {
        let at = u64::from(address.offset) * UNIT_BYTES;
        self.region.read_exact_at(record, at).map_err(|error| error.to_string())?;
        match self.unchecked(at) {
            Some((word, bit)) => {
                let encoding = format::check(record, key, address)?.0;
                word.fetch_or(bit, Ordering::Relaxed);
                Ok(encoding)
            }
            None => format::recognise(record, key, address),
        }
    }
}

/// The segments that are mapped for reads, by number.
#[derive(Default)]
pub struct MappedSegments(HashMap<u32, Arc<MappedSegment>, BuildHasherDefault<NumberHasher>>);

/// Numbers of segments follow each other, so they need no mixing but of the high bits, which the map looks at.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 << 8 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl MappedSegments {
    pub fn get(&self, number: u32) -> Option<&Arc<MappedSegment>> {
        self.0.get(&number)
    }

    /// Adds one. With `is_own`, this process writes it.
    pub fn add(&mut self, number: u32, region: Arc<dyn Region>, is_own: bool) -> Arc<MappedSegment> {
        if self.0.len() >= MAPPED_MAX
            && let Some(any) = self.0.keys().next().copied()
        {
            self.0.remove(&any);
        }
        let words = region.len().div_ceil(STRETCH_BYTES * 64);
        let checked = (!is_own).then(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        let segment = Arc::new(MappedSegment { region, checked });
        self.0.insert(number, segment.clone());
        segment
    }

    pub fn remove(&mut self, number: u32) {
        self.0.remove(&number);
    }
}
