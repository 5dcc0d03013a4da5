//! The end of the tier that is not in files yet: the buffers of the open segments, and chunks that are being written.
//! Values that leave memory and values that cleaning moves have an open segment each.

use crate::TierId;
use crate::format::{self, Head, UNIT_BYTES, record_bytes};
use engine::TierAddress;
use engine::tier::{NewRecord, Origin};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes that are written at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes that wait to be written, at most: more are refused until some are.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Where records go.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub id: TierId,
    /// The longest segment.
    pub segment_bytes: u64,
}

impl Place {
    fn chunk_bytes(&self) -> usize {
        CHUNK_BYTES.min(self.segment_bytes as usize / 2)
    }
}

/// Bytes of a segment that go to its file together.
#[derive(Debug)]
pub struct Chunk {
    pub segment: u32,
    /// Their offset in the file.
    pub at: u64,
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// The bytes from an address on, if its record is here.
    fn record(&self, address: TierAddress) -> Option<&[u8]> {
        let from = (u64::from(address.offset) * UNIT_BYTES).checked_sub(self.at)? as usize;
        if self.segment == address.segment { self.bytes.get(from..).filter(|bytes| !bytes.is_empty()) } else { None }
    }
}

#[derive(Debug, Default)]
pub struct Tail {
    open: [Option<Chunk>; 2],
    waiting: VecDeque<Arc<Chunk>>,
    waiting_bytes: usize,
}

/// What an append has done.
pub struct Appended {
    pub address: TierAddress,
    /// A segment was begun.
    pub begun: Option<u32>,
    /// Bytes that its segment has grown by.
    pub bytes: u64,
    /// A chunk is ready to be written.
    pub is_chunk_full: bool,
}

impl Tail {
    /// Whether no more is taken until some is written.
    pub fn is_busy(&self) -> bool {
        self.waiting_bytes >= WAITING_BYTES_MAX
    }

    /// Adds a record, in segment `next` if the open one has no room.
    pub fn append(&mut self, record: &NewRecord<'_>, origin: Origin, next: u32, place: Place) -> Appended {
        let NewRecord { key, kind, encoding, value } = *record;
        let head = Head::new(key, kind, encoding, value);
        let (len, turn) = (record_bytes(key.len(), value.len() as u32), origin as usize);
        let has_room = |open: &Chunk| open.at + open.bytes.len() as u64 + len <= place.segment_bytes;
        if self.open[turn].as_ref().is_some_and(|open| !has_room(open)) {
            self.close_chunk(turn);
            self.open[turn] = None;
        }
        let begun = self.open[turn].is_none().then_some(next);
        let open = self.open[turn].get_or_insert_with(|| {
            let mut bytes = Vec::with_capacity(place.chunk_bytes() + place.chunk_bytes() / 8);
            bytes.extend_from_slice(&format::header(next, place.id, false));
            Chunk { segment: next, at: 0, bytes }
        });
        let at = open.at + open.bytes.len() as u64;
        open.bytes.extend_from_slice(head.bytes());
        open.bytes.extend_from_slice(key);
        open.bytes.extend_from_slice(value);
        open.bytes.resize((at + len - open.at) as usize, 0);
        let (segment, offset) = (open.segment, (at / UNIT_BYTES) as u32);
        let is_chunk_full = open.bytes.len() >= place.chunk_bytes();
        let address = TierAddress { segment, offset, len: value.len() as u32, tag: head.tag() };
        if is_chunk_full {
            self.close_chunk(turn);
        }
        let bytes = len + if begun.is_some() { format::HEADER_BYTES as u64 } else { 0 };
        Appended { address, begun, bytes, is_chunk_full }
    }

    /// Has what is in the buffers written next. The segments stay open.
    pub fn close_chunks(&mut self) {
        (0..self.open.len()).for_each(|turn| self.close_chunk(turn));
    }

    fn close_chunk(&mut self, turn: usize) {
        let Some(open) = &mut self.open[turn] else { return };
        if open.bytes.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut open.bytes);
        let chunk = Chunk { segment: open.segment, at: open.at, bytes };
        open.at += chunk.bytes.len() as u64;
        self.waiting_bytes += chunk.bytes.len();
        self.waiting.push_back(Arc::new(chunk));
    }

    /// The chunk to be written next.
    pub fn first(&self) -> Option<Arc<Chunk>> {
        self.waiting.front().cloned()
    }

    /// The first chunk is in its file.
    pub fn written(&mut self) {
        if let Some(chunk) = self.waiting.pop_front() {
            self.waiting_bytes -= chunk.bytes.len();
        }
    }

    /// The bytes from an address on, if its record is not only in its file.
    pub fn record(&self, address: TierAddress) -> Option<&[u8]> {
        let open = self.open.iter().flatten().find_map(|open| open.record(address));
        open.or_else(|| self.waiting.iter().find_map(|chunk| chunk.record(address)))
    }

    /// Whether more of the segment is to be written.
    pub fn is_writing(&self, segment: u32) -> bool {
        self.open.iter().flatten().any(|open| open.segment == segment)
            || self.waiting.iter().any(|chunk| chunk.segment == segment)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.waiting_bytes + self.open.iter().flatten().map(|open| open.bytes.len()).sum::<usize>()
    }
}
