//! Bytes on their way to the end of a segment, gathered in whole blocks, so that many of them can go past the page cache.
//!
//! ```text
//! buffer  | unfinished block | gathered since | zeros |
//!         ^ at (whole blocks of the file)             ^ whole blocks
//! ```
//!
//! O1. A write begins and ends at whole blocks; what it has behind the gathered bytes are zeros, as in the file.
//! O2. The block that a write leaves unfinished stays here and is written again with what follows. Its beginning, which may
//!     be durable, is the same bytes each time.
//!
//! A write past the page cache saves its copy and its pages: 0.09 us a KB instead of 0.33, in writes of a MiB. But each goes to
//! the device, which takes some 45 us of processor time however short it is: fewer bytes are better left to the page cache
//! until they are synced, unless that is to be at once anyway.
//!
//! The first write to a preallocated block changes the file's map, and the next sync has to put that into the file system's
//! journal: 64 KiB written and synced took 85 us of processor time, and 46 where the blocks had been written before. So a stretch
//! of zeros is written ahead of short writes that are synced at once, and one sync pays for many. Long ones gain nothing by it.

use std::sync::Arc;

use vfs::{AlignedBuf, DIRECT_ALIGNMENT, File, FileSystem, FsError, HUGE_PAGE_BYTES, OpenOptions};

use crate::segment::HEADER_BYTES;
use crate::shared::INLINE_MAX;

/// The unit of writes (O1).
pub(super) const BLOCK: usize = DIRECT_ALIGNMENT;
/// Gathered bytes that are worth a write of their own. Of a MiB a KB costs half of what it costs in writes of 256 KiB.
pub(super) const WRITE_BYTES: usize = 1 << 20;
/// The smallest write that goes past the page cache. Below, what goes to the device at once costs more than the page cache.
const DIRECT_BYTES_MIN: usize = 256 << 10;
/// The same when a sync follows: 64 KiB written and synced took 1.3 us a KB past the page cache and 2.0 through it.
const DIRECT_BYTES_MIN_SYNCED: usize = 32 << 10;
/// Zeros written ahead of short writes. A MiB takes 130 us of processor time, and each sync of what is written over it 28 to 39 less;
/// half of it keeps the sync short that they are written with.
const AHEAD_BYTES: usize = 512 << 10;
/// Writes from here on have no zeros written ahead of them: these would cost what they save.
const AHEAD_OF_BYTES_MAX: usize = AHEAD_BYTES / 2;
const _: () = assert!(HEADER_BYTES.is_multiple_of(BLOCK as u64), "the first frame begins a block");
const _: () =
    assert!(WRITE_BYTES + INLINE_MAX + 2 * BLOCK <= HUGE_PAGE_BYTES, "a usual write and the record that made it one");

/// The end of the last segment.
pub(super) struct Out {
    buffer: AlignedBuf,
    /// Bytes of the buffer in use.
    filled: usize,
    /// Of them, those that are written: less than a block.
    written: usize,
    /// Where in the file the buffer begins.
    at: u64,
    /// For writes past the page cache, where the file system has them.
    direct: Option<Arc<dyn File>>,
    /// Where in the file the preallocated bytes end.
    capacity: u64,
    /// Where in the file the zeros written ahead end.
    ahead: u64,
    /// Such zeros, once they were needed.
    zeros: AlignedBuf,
}

impl Out {
    pub fn new() -> Self {
        let empty = || AlignedBuf::zeroed(0);
        Self {
            buffer: empty(),
            filled: 0,
            written: 0,
            at: HEADER_BYTES,
            direct: None,
            capacity: 0,
            ahead: 0,
            zeros: empty(),
        }
    }

    /// Begins the first frame of a segment, which has a header, preallocated bytes behind it up to its capacity, and nothing
    /// else.
    pub fn begin(&mut self, direct: Option<Arc<dyn File>>, capacity: u64) {
        let Self { buffer, zeros, .. } = std::mem::replace(self, Self::new());
        *self = Self { buffer, zeros, direct, capacity, ..Self::new() };
    }

    /// Forgets what was gathered: nothing more is written to the segment.
    pub fn abandon(&mut self) {
        self.begin(None, 0);
    }

    /// Room for the next bytes of the stream, which the caller fills.
    pub fn take(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += bytes;
        if self.filled > self.buffer.len() {
            self.grow();
        }
        &mut self.buffer[start..self.filled]
    }

    /// More memory, twice as much each time up to a huge page, which holds a usual write.
    #[cold]
    fn grow(&mut self) {
        let doubled = (2 * self.buffer.len()).min(HUGE_PAGE_BYTES);
        let mut buffer = AlignedBuf::zeroed(self.filled.max(doubled));
        buffer[..self.buffer.len()].copy_from_slice(&self.buffer);
        self.buffer = buffer;
    }

    /// Whether nothing waits to be written.
    pub fn is_empty(&self) -> bool {
        self.filled == self.written
    }

    /// Whether enough waits for a write of its own.
    pub fn is_full(&self) -> bool {
        self.filled - self.written >= WRITE_BYTES
    }

    /// Writes what was gathered to the segment's file; `synced` says that it will be synced at once.
    ///
    /// # Errors
    /// The file could not be written. Any part of the gathered bytes may have been.
    pub fn write(&mut self, file: &dyn File, synced: bool) -> Result<(), FsError> {
        let end = self.filled.next_multiple_of(BLOCK);
        self.buffer[self.filled..end].fill(0);
        self.write_blocks(file, end, synced)?;
        let whole = self.filled / BLOCK * BLOCK;
        self.buffer.copy_within(whole..self.filled, 0);
        self.at += whole as u64;
        self.filled -= whole;
        self.written = self.filled;
        Ok(())
    }

    fn write_blocks(&mut self, file: &dyn File, end: usize, synced: bool) -> Result<(), FsError> {
        if synced && end < AHEAD_OF_BYTES_MAX && self.at + end as u64 > self.ahead {
            self.write_ahead(self.at + end as u64);
        }
        let blocks = &self.buffer[..end];
        let least = if synced { DIRECT_BYTES_MIN_SYNCED } else { DIRECT_BYTES_MIN };
        if let Some(direct) = self.direct.as_ref().filter(|_| end >= least) {
            match direct.write_all_at(blocks, self.at) {
                // The file system took the flag and does not take the write: a device of larger blocks, or the like.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => self.direct = None,
                done => return done,
            }
        }
        file.write_all_at(blocks, self.at)
    }

    /// Writes zeros where zeros are, behind a write that is to come.
    #[cold]
    fn write_ahead(&mut self, from: u64) {
        let Some(direct) = &self.direct else { return };
        let bytes = self.capacity.saturating_sub(from).min(AHEAD_BYTES as u64) as usize / BLOCK * BLOCK;
        if bytes == 0 {
            return;
        }
        if self.zeros.is_empty() {
            self.zeros = AlignedBuf::zeroed(AHEAD_BYTES);
        }
        // Not tried again here if it fails: what is wrong with the device shows where it matters.
        let _ = direct.write_all_at(&self.zeros[..bytes], from);
        self.ahead = from + bytes as u64;
    }
}

/// A second handle of a segment's file, past the page cache; `None` where the file system has no such.
pub(super) fn open_direct(fs: &dyn FileSystem, segment: &std::path::Path) -> Result<Option<Arc<dyn File>>, FsError> {
    let file = fs.open(segment, OpenOptions::write().direct())?;
    Ok((file.alignment() > 1).then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::path::Path;
    use vfs::{Argument, Fault, Op, Outage, SimFs, errno};

    const PATH: &str = "/segment";

    /// A segment that takes no zeros ahead.
    fn opened(fs: &SimFs) -> (Arc<dyn File>, Out) {
        opened_with(fs, HEADER_BYTES)
    }

    fn opened_with(fs: &SimFs, capacity: u64) -> (Arc<dyn File>, Out) {
        let file = fs.open(Path::new(PATH), OpenOptions::write().create_new()).expect("a new file");
        let mut out = Out::new();
        out.begin(open_direct(fs, Path::new(PATH)).expect("the file is there"), capacity);
        (file, out)
    }

    /// Gathers so many bytes as they should stand in the stream.
    fn gather(out: &mut Out, stream: &mut Vec<u8>, bytes: usize) {
        let start = stream.len();
        stream.extend((start..start + bytes).map(|at| 1 + (at % 251) as u8));
        out.take(bytes).copy_from_slice(&stream[start..]);
    }

    /// What stands behind the header's place after an outage.
    fn found(fs: &SimFs, outage: Outage) -> Vec<u8> {
        let contents = fs.recover(outage).contents();
        contents[Path::new(PATH)].get(HEADER_BYTES as usize..).unwrap_or_default().to_vec()
    }

    /// Whatever the sizes of writes, past the page cache or not, the file has the stream and zeros up to the end of a block.
    #[test]
    fn the_file_has_the_stream() {
        let fs = SimFs::new(1);
        let (file, mut out) = opened(&fs);
        let (mut rng, mut stream) = (Rng::new(1), Vec::new());
        for _ in 0..200 {
            let bytes = [10, 100, 5000, 70_000][rng.below(4) as usize];
            gather(&mut out, &mut stream, 1 + rng.below(bytes) as usize);
            if rng.one_in(2) {
                out.write(&*file, rng.one_in(2)).expect("the disk works");
                assert!(out.is_empty());
            }
        }
        out.write(&*file, true).expect("the disk works");
        let found = found(&fs, Outage::ProcessKill);
        assert_eq!((found.len() % BLOCK, &found[..stream.len()]), (0, &stream[..]));
        assert!(found[stream.len()..].iter().all(|byte| *byte == 0));
        let whole = |entry: &vfs::TraceEntry| match entry.argument {
            Argument::Range { offset, len } => offset % BLOCK as u64 == 0 && len % BLOCK as u64 == 0,
            _ => true,
        };
        assert!(fs.trace().iter().all(whole), "whole blocks only");
    }

    /// Short writes that are synced have zeros before them, one stretch for many, never over what is written and never past
    /// what is preallocated; a power cut finds the stream all the same.
    #[test]
    fn zeros_are_written_ahead_of_short_writes() {
        for seed in 0..30 {
            let fs = SimFs::new(seed);
            let capacity = HEADER_BYTES + 3 * AHEAD_BYTES as u64;
            let (file, mut out) = opened_with(&fs, capacity);
            let (mut rng, mut stream, mut durable, mut writes) = (Rng::new(seed), Vec::new(), 0, 0);
            while stream.len() < 2 * AHEAD_BYTES {
                gather(&mut out, &mut stream, 1 + rng.below(60_000) as usize);
                out.write(&*file, true).expect("the disk works");
                writes += 1;
                if rng.one_in(2) {
                    file.sync_all().and_then(|()| fs.sync_dir(Path::new("/"))).expect("the disk works");
                    durable = stream.len();
                }
            }
            let trace = fs.trace();
            let ends = trace.iter().filter_map(|entry| match entry.argument {
                Argument::Range { offset, len } if entry.op == Op::Write => Some(offset + len),
                _ => None,
            });
            let (count, last) = (ends.clone().count(), ends.max());
            assert!(count > writes && count <= writes + 6, "{count} writes for {writes}");
            assert!(last.is_some_and(|last| last <= capacity), "{last:?}");
            assert_eq!(found(&fs, Outage::ProcessKill)[..stream.len()], stream);
            assert_eq!(found(&fs, Outage::PowerCut { seed })[..durable], stream[..durable]);
        }
        let fs = SimFs::new(1);
        let (file, mut out) = opened_with(&fs, u64::from(u32::MAX));
        gather(&mut out, &mut Vec::new(), AHEAD_OF_BYTES_MAX);
        out.write(&*file, true).expect("the disk works");
        gather(&mut out, &mut Vec::new(), 100);
        out.write(&*file, false).expect("the disk works");
        assert_eq!(out.ahead, 0, "neither for long writes nor for those that are not synced");
    }

    /// A block whose beginning is durable is written again: whatever a power cut makes of that, the beginning stays.
    #[test]
    fn what_is_durable_is_written_again_unharmed() {
        for seed in 0..300 {
            let fs = SimFs::new(seed);
            let (file, mut out) = opened(&fs);
            let (mut rng, mut stream) = (Rng::new(seed), Vec::new());
            gather(&mut out, &mut stream, 1 + rng.below(100_000) as usize);
            out.write(&*file, true).expect("the disk works");
            file.sync_all().and_then(|()| fs.sync_dir(Path::new("/"))).expect("the disk works");
            let durable = stream.len();
            for bytes in [300, 60_000, 5000] {
                gather(&mut out, &mut stream, 1 + rng.below(bytes) as usize);
                out.write(&*file, true).expect("the disk works");
            }
            let found = found(&fs, Outage::PowerCut { seed });
            assert_eq!(found[..durable], stream[..durable], "seed {seed}");
        }
    }

    /// A file system that takes the flag but not the writes gets them through the page cache, from then on.
    #[test]
    fn refused_direct_writes_go_through_the_page_cache() {
        let fs = SimFs::new(1);
        let (file, mut out) = opened(&fs);
        let mut stream = Vec::new();
        fs.inject(Fault::fail(Op::Write, errno::EINVAL));
        gather(&mut out, &mut stream, DIRECT_BYTES_MIN_SYNCED);
        out.write(&*file, true).expect("written through the page cache");
        assert!(out.direct.is_none());
        gather(&mut out, &mut stream, 3 * WRITE_BYTES);
        assert!(out.is_full());
        out.write(&*file, true).expect("the disk works");
        assert_eq!(found(&fs, Outage::ProcessKill), stream);
        assert_eq!(fs.faults_fired(), 1);
    }
}
