//! All records of a segment, in the order of its file. Damaged ones are passed over.

use crate::format::{self, HEADER_BYTES, RECORD_HEAD_BYTES, UNIT_BYTES, record_bytes};
use crate::{TierError, TierId};
use engine::TierAddress;
use engine::tier::{NewRecord, TierRecord, VALUE_LEN_MAX};
use std::ops::Range;
use std::sync::Arc;
use vfs::File;

/// Bytes that are read at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// A scan of a segment.
pub struct Scan {
    file: Arc<dyn File>,
    segment: u32,
    id: TierId,
    /// Zeros after the last record are no damage.
    is_preallocated: bool,
    /// The first byte that is not zero, of those that were looked at last.
    used_until: u64,
    len: u64,
    /// Where the next record begins.
    at: u64,
    /// The bytes of the file from `window_at` on.
    window: Vec<u8>,
    window_at: u64,
    /// Where bytes are that are no record.
    damaged: Vec<Range<u64>>,
}

impl Scan {
    /// Of a segment's file, with this number if it is known.
    ///
    /// # Errors
    /// It cannot be read, or its header is damaged or another segment's.
    pub(crate) fn new(file: Arc<dyn File>, expected: Option<u32>) -> Result<Self, TierError> {
        let (len, segment) = (file.len()?, expected.unwrap_or_default());
        let (id, window, damaged) = (TierId([0; 16]), Vec::new(), Vec::new());
        let (at, window_at) = (HEADER_BYTES as u64, 0);
        let (is_preallocated, used_until) = (false, 0);
        let mut scan = Self { file, segment, id, is_preallocated, used_until, len, at, window, window_at, damaged };
        scan.fill(0, HEADER_BYTES)?;
        let what = match format::parse_header(&scan.window) {
            Ok(header) if expected.is_none_or(|expected| header.segment == expected) => {
                (scan.segment, scan.id, scan.is_preallocated) = (header.segment, header.tier, header.is_preallocated);
                return Ok(scan);
            }
            Ok(header) => format!("the header has the number {}", header.segment),
            Err(what) => what,
        };
        Err(TierError::Damaged { segment, offset: 0, what })
    }

    /// Whether it was written through memory.
    pub fn is_preallocated(&self) -> bool {
        self.is_preallocated
    }

    /// The number of the segment.
    pub fn segment(&self) -> u32 {
        self.segment
    }

    /// The tier that has written it. A copy of a tier has an id of its own.
    pub fn tier(&self) -> TierId {
        self.id
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// The next record with a right checksum.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_record(&mut self) -> Result<Option<TierRecord<'_>>, TierError> {
        let Some(bytes) = self.find()? else { return Ok(None) };
        let from = (self.at - bytes - self.window_at) as usize;
        let Ok(parts) = format::parse(&self.window[from..from + bytes as usize]) else { return Ok(None) };
        let offset = ((self.at - bytes) / UNIT_BYTES) as u32;
        let address = TierAddress { segment: self.segment, offset, len: parts.value.len() as u32, tag: parts.tag };
        let format::Parts { kind, encoding, key, value, .. } = parts;
        Ok(Some(TierRecord { address, record: NewRecord { key, kind, encoding, value } }))
    }

    /// Passes over the next whole record, and gives its bytes.
    fn find(&mut self) -> Result<Option<u64>, TierError> {
        while self.at < self.len {
            if let Some(bytes) = self.whole_record()? {
                self.at += bytes;
                return Ok(Some(bytes));
            }
            if self.is_preallocated && self.is_rest_unused()? {
                self.at = self.len;
                return Ok(None);
            }
            let next = self.at + UNIT_BYTES.min(self.len - self.at);
            match self.damaged.last_mut() {
                Some(last) if last.end == self.at => last.end = next,
                _ => self.damaged.push(self.at..next),
            }
            self.at = next;
        }
        Ok(None)
    }

    /// Whether there are only zeros from here on.
    fn is_rest_unused(&mut self) -> Result<bool, TierError> {
        let mut bytes = Vec::new();
        while self.used_until <= self.at {
            let mut from = self.at;
            self.used_until = loop {
                bytes.resize(((self.len - from) as usize).min(WINDOW_BYTES), 0);
                if bytes.is_empty() {
                    return Ok(true);
                }
                self.file.read_exact_at(&mut bytes, from)?;
                match bytes.iter().position(|byte| *byte != 0) {
                    Some(used) => break from + used as u64 + 1,
                    None => from += bytes.len() as u64,
                }
            };
        }
        Ok(false)
    }

    /// The bytes of the record here, if there is one.
    fn whole_record(&mut self) -> Result<Option<u64>, TierError> {
        if self.len - self.at < RECORD_HEAD_BYTES as u64 {
            return Ok(None);
        }
        self.fill(self.at, RECORD_HEAD_BYTES)?;
        let from = (self.at - self.window_at) as usize;
        let Some(head) = self.window[from..].first_chunk::<RECORD_HEAD_BYTES>() else { return Ok(None) };
        let (key_len, value_len) = format::lengths(head);
        let bytes = record_bytes(key_len, value_len);
        if value_len as usize > VALUE_LEN_MAX || bytes > self.len - self.at {
            return Ok(None);
        }
        self.fill(self.at, bytes as usize)?;
        let from = (self.at - self.window_at) as usize;
        Ok(format::parse(&self.window[from..]).is_ok().then_some(bytes))
    }

    /// Has `count` bytes from `at` on in the window.
    fn fill(&mut self, at: u64, count: usize) -> Result<(), TierError> {
        let end = self.window_at + self.window.len() as u64;
        if at >= self.window_at && at + count as u64 <= end {
            return Ok(());
        }
        let count = (count.max(WINDOW_BYTES) as u64).min(self.len.saturating_sub(at)) as usize;
        self.window.resize(count, 0);
        self.window_at = at;
        self.file.read_exact_at(&mut self.window, at)?;
        Ok(())
    }

    /// How far it has come, in bytes of the file.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Where bytes are that are no record, as far as it has come.
    pub fn damaged(&self) -> &[Range<u64>] {
        &self.damaged
    }
}
