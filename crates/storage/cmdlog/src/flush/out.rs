//! Writes bytes to the end of a segment in whole blocks, so that large writes can use direct I/O.
//!
//! ```text
//! file    | unfinished block | whole blocks ... | unfinished block |
//! memory  |      edge        | as they lie      |   the next edge, with zeros
//! ```
//!
//! O1. A write begins and ends at block boundaries. Zeros follow the stream's bytes, as in the file.
//! O2. The unfinished last block of a write is kept and rewritten with the next write. Its beginning, which may be
//!     durable, has the same bytes each time.
//!
//! Whole blocks are not copied: in memory they begin at multiples of their size, as in the file. Direct I/O saves the
//! copy and the page cache: 0.09 us per KB instead of 0.33, in writes of a MiB. But each write goes to the device,
//! which takes about 45 us of CPU time whatever its length. Shorter writes are cheaper through the page cache, unless a
//! sync follows at once.
//!
//! The first write to a preallocated block changes the file's extent map, and the next sync writes that change to the
//! file system's journal. Writing and syncing 64 KiB took 85 us of CPU time, and 46 us over blocks written before. So a
//! range of zeros is written ahead of short synced writes: one sync pays for many. Long writes gain nothing.
//!
//! A short write that must be durable at once, with nothing unsynced before it, syncs itself. For 8 KiB over blocks
//! written before, this took 27 us of CPU time. The page cache and a sync took 42 us, direct I/O and a sync 37 us.

use std::io::IoSlice;
use std::sync::Arc;

use vfs::{AlignedBuf, DIRECT_ALIGNMENT, File, FileSystem, FsError, HUGE_PAGE_BYTES, OpenOptions};

use crate::segment::HEADER_BYTES;

/// The unit of writes (O1).
pub(super) const BLOCK: usize = DIRECT_ALIGNMENT;
/// Bytes from outside the ring are copied and written in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes copied before the length is checked.
const CHUNK_BYTES: usize = 64 << 10;
/// The smallest write that uses direct I/O. Below it, the device costs more than the page cache.
const DIRECT_BYTES_MIN: usize = 256 << 10;
/// The same when a sync follows: writing and syncing 64 KiB took 1.3 us per KB with direct I/O and 2.0 through the page
/// cache.
const DIRECT_BYTES_MIN_SYNCED: usize = 32 << 10;
/// Longer writes do not sync themselves: threads that wait for the flush would wait for them.
const ITSELF_BYTES_MAX: usize = 64 << 10;
/// Zeros written ahead of short writes. A MiB takes 130 us of CPU time and saves 28 to 39 us in each sync of data
/// written over it. Half a MiB keeps the sync that carries the zeros short.
const AHEAD_BYTES: usize = 512 << 10;
/// Writes of at least this size get no zeros ahead: the zeros would cost what they save.
const AHEAD_OF_BYTES_MAX: usize = AHEAD_BYTES / 2;
const _: () = assert!(HEADER_BYTES == BLOCK as u64, "the first frame lies in the block after the header");
const _: () = assert!(
    PIECE_BYTES + CHUNK_BYTES + BLOCK <= HUGE_PAGE_BYTES,
    "a piece, what makes it one, and the block it begins in"
);

/// When written bytes become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    /// A later sync covers them.
    Later,
    /// A sync follows at once.
    Next,
    /// The write may sync itself, if that is cheaper: nothing before it is unsynced.
    Itself,
}

/// The end of the last segment.
pub(super) struct Out {
    /// The block in which the stream ends: its written bytes, then zeros.
    edge: AlignedBuf,
    /// Bytes of the stream in that block: less than a block.
    filled: usize,
    /// The file offset of that block.
    at: u64,
    /// The last block of a write, during the write.
    tail: AlignedBuf,
    /// A buffer for bytes from outside the ring, allocated at first use.
    piece: AlignedBuf,
    /// For direct I/O, where the file system supports it.
    direct: Option<Arc<dyn File>>,
    /// Where the preallocated bytes end in the file.
    capacity: u64,
    /// Where the zeros written ahead end in the file.
    ahead: u64,
    /// A buffer of zeros, allocated at first use.
    zeros: AlignedBuf,
}

impl Out {
    pub fn new() -> Self {
        Self {
            edge: AlignedBuf::zeroed(BLOCK),
            filled: 0,
            at: HEADER_BYTES,
            tail: AlignedBuf::zeroed(BLOCK),
            piece: AlignedBuf::zeroed(0),
            direct: None,
            capacity: 0,
            ahead: 0,
            zeros: AlignedBuf::zeroed(0),
        }
    }

    /// Begins an empty segment: its first frame goes to an offset in the block after the header, and its bytes are
    /// preallocated up to its capacity.
    pub fn begin(&mut self, direct: Option<Arc<dyn File>>, capacity: u64, first_at: u64) {
        self.edge.fill(0);
        (self.at, self.filled) = (HEADER_BYTES, (first_at - HEADER_BYTES) as usize);
        (self.direct, self.capacity, self.ahead) = (direct, capacity, 0);
    }

    /// Ends writing to the segment.
    pub fn abandon(&mut self) {
        self.direct = None;
    }

    /// Writes the next bytes of the stream, aligned in memory as in the file: `pieces` begins at the same offset in a
    /// block as the file's end, and each piece but the last ends at a block boundary. Returns whether the bytes are
    /// durable, which only [`Sync::Itself`] can cause.
    ///
    /// # Errors
    /// The file could not be written or synced. Any part of the bytes may have been written.
    pub fn write(&mut self, file: &dyn File, mut pieces: [&[u8]; 2], sync: Sync) -> Result<bool, FsError> {
        let bytes = pieces[0].len() + pieces[1].len();
        let mut filled = self.filled;
        // The rest of the unfinished block, or everything if that is less.
        if filled > 0 || bytes < BLOCK {
            for piece in &mut pieces {
                let (head, rest) = piece.split_at(piece.len().min(BLOCK - filled));
                self.edge[filled..filled + head.len()].copy_from_slice(head);
                filled += head.len();
                *piece = rest;
            }
        }
        if filled > 0 && filled < BLOCK {
            let edge = std::mem::replace(&mut self.edge, AlignedBuf::zeroed(0));
            let written = self.write_blocks(file, &mut [IoSlice::new(&edge)], sync);
            self.edge = edge;
            self.filled = filled;
            return written;
        }
        let rest = (pieces[0].len() + pieces[1].len()) % BLOCK;
        // Bytes that do not fill a block are at the end of the last piece.
        let last = if pieces[1].is_empty() { &mut pieces[0] } else { &mut pieces[1] };
        let (whole, behind) = last.split_at(last.len().saturating_sub(rest));
        *last = whole;
        self.tail[..rest].copy_from_slice(behind);
        self.tail[rest..].fill(0);
        let (edge, tail) = (self.take_edge(), std::mem::replace(&mut self.tail, AlignedBuf::zeroed(0)));
        let begun: &[u8] = if filled > 0 { &edge } else { &[] };
        let ended: &[u8] = if rest > 0 { &tail } else { &[] };
        let blocks = begun.len() + pieces[0].len() + pieces[1].len();
        let written = self.write_blocks(file, &mut [begun, pieces[0], pieces[1], ended].map(IoSlice::new), sync);
        // The tail becomes the edge, even after a failed write.
        (self.edge, self.tail) = (tail, edge);
        self.at += blocks as u64;
        self.filled = rest;
        written
    }

    fn take_edge(&mut self) -> AlignedBuf {
        std::mem::replace(&mut self.edge, AlignedBuf::zeroed(0))
    }

    /// As [`write`](Self::write), for bytes anywhere in memory. They are never durable on return.
    ///
    /// # Errors
    /// As there.
    pub fn write_apart(&mut self, file: &dyn File, parts: &[&[u8]], sync: Sync) -> Result<(), FsError> {
        let sync = if sync == Sync::Itself { Sync::Next } else { sync };
        if self.piece.is_empty() {
            self.piece = AlignedBuf::zeroed(HUGE_PAGE_BYTES);
        }
        let mut piece = std::mem::replace(&mut self.piece, AlignedBuf::zeroed(0));
        let start = self.filled;
        let mut end = start;
        let mut written = Ok(());
        for chunk in parts.iter().flat_map(|part| part.chunks(CHUNK_BYTES)) {
            piece[end..end + chunk.len()].copy_from_slice(chunk);
            end += chunk.len();
            if end >= PIECE_BYTES && written.is_ok() {
                written = self.write(file, [&piece[self.filled..end], &[]], sync).map(drop);
                // What follows continues the unfinished block, as in the file.
                end = self.filled;
            }
        }
        if end > self.filled && written.is_ok() {
            written = self.write(file, [&piece[self.filled..end], &[]], sync).map(drop);
        }
        self.piece = piece;
        written
    }

    fn write_blocks(&mut self, file: &dyn File, blocks: &mut [IoSlice<'_>], sync: Sync) -> Result<bool, FsError> {
        let bytes: usize = blocks.iter().map(|slice| slice.len()).sum();
        let synced = sync != Sync::Later;
        let wants_ahead = synced && bytes < AHEAD_OF_BYTES_MAX && self.at + bytes as u64 > self.ahead;
        let wrote_ahead = wants_ahead && self.write_ahead(self.at + bytes as u64);
        let itself = sync == Sync::Itself && bytes <= ITSELF_BYTES_MAX && !wrote_ahead;
        let least = if synced { DIRECT_BYTES_MIN_SYNCED } else { DIRECT_BYTES_MIN };
        if let Some(direct) = self.direct.as_ref().filter(|_| itself || bytes >= least) {
            // An empty slice may have any address, and a direct write would refuse it.
            let mut copies: Vec<_> = blocks.iter().copied().filter(|slice| !slice.is_empty()).collect();
            let done = match itself {
                true => direct.write_all_synced_at(&mut copies, self.at),
                false => direct.write_all_vectored_at(&mut copies, self.at),
            };
            match done {
                // The file system accepted the flag but not the write: a device with larger blocks, or similar.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => self.direct = None,
                done => return done.map(|()| itself),
            }
        }
        file.write_all_vectored_at(blocks, self.at).map(|()| false)
    }

    /// Writes zeros over preallocated zeros, after the place of the coming write. Returns whether it did, so that they
    /// are synced.
    #[cold]
    fn write_ahead(&mut self, from: u64) -> bool {
        let Some(direct) = &self.direct else { return false };
        let bytes = self.capacity.saturating_sub(from).min(AHEAD_BYTES as u64) as usize / BLOCK * BLOCK;
        if bytes == 0 {
            return false;
        }
        if self.zeros.is_empty() {
            self.zeros = AlignedBuf::zeroed(AHEAD_BYTES);
        }
        // Not retried if it fails: a faulty device shows in the writes that matter.
        let _ = direct.write_all_at(&self.zeros[..bytes], from);
        self.ahead = from + bytes as u64;
        true
    }
}

/// A second handle of a segment's file, for direct I/O; `None` where the file system has none.
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

    /// A segment for which no zeros are written ahead.
    fn opened(fs: &SimFs) -> (Arc<dyn File>, Out) {
        opened_with(fs, HEADER_BYTES)
    }

    fn opened_with(fs: &SimFs, capacity: u64) -> (Arc<dyn File>, Out) {
        let file = fs.open(Path::new(PATH), OpenOptions::write().create_new()).expect("a new file");
        let mut out = Out::new();
        out.begin(open_direct(fs, Path::new(PATH)).expect("the file is there"), capacity, HEADER_BYTES);
        (file, out)
    }

    /// Memory in which each byte has its place, as in the stream.
    struct Memory {
        stream: AlignedBuf,
        /// Bytes in use.
        len: usize,
        written: usize,
    }

    impl Memory {
        fn new() -> Self {
            Self { stream: AlignedBuf::zeroed(16 << 20), len: 0, written: 0 }
        }

        fn get(&self) -> &[u8] {
            &self.stream[..self.len]
        }

        /// Adds `bytes` bytes of the expected stream.
        fn gather(&mut self, bytes: usize) {
            let start = self.len;
            self.len += bytes;
            for at in start..self.len {
                self.stream[at] = 1 + (at % 251) as u8;
            }
        }

        /// Writes what was added: wrapped at any block boundary, or as bytes from outside the ring.
        fn write(&mut self, out: &mut Out, file: &dyn File, sync: Sync, rng: &mut Rng) {
            let (from, to) = (std::mem::replace(&mut self.written, self.len), self.len);
            if from == to {
                return;
            }
            if rng.one_in(4) {
                let elsewhere = self.stream[from..to].to_vec();
                let parts = elsewhere.split_at(rng.below(1 + (to - from) as u64) as usize);
                out.write_apart(file, &[parts.0, parts.1], sync).expect("the disk works");
                return;
            }
            let (first, last) = (from / BLOCK + 1, to / BLOCK);
            let wrap = match first > last || rng.one_in(2) {
                true => to,
                false => BLOCK * (first + rng.below((last - first + 1) as u64) as usize),
            };
            out.write(file, [&self.stream[from..wrap], &self.stream[wrap..to]], sync).expect("the disk works");
        }
    }

    /// The bytes after the header's place, after an outage.
    fn found(fs: &SimFs, outage: Outage) -> Vec<u8> {
        let contents = fs.recover(outage).contents();
        contents[Path::new(PATH)].get(HEADER_BYTES as usize..).unwrap_or_default().to_vec()
    }

    /// Whatever the sizes of writes, direct or not, the file holds the stream, and zeros up to the end of a block.
    #[test]
    fn the_file_has_the_stream() {
        let fs = SimFs::new(1);
        let (file, mut out) = opened(&fs);
        let (mut rng, mut memory) = (Rng::new(1), Memory::new());
        for _ in 0..200 {
            let bytes = [10, 100, 5000, 70_000][rng.below(4) as usize];
            memory.gather(1 + rng.below(bytes) as usize);
            if rng.one_in(2) {
                let sync = if rng.one_in(2) { Sync::Next } else { Sync::Later };
                memory.write(&mut out, &*file, sync, &mut rng);
            }
        }
        memory.write(&mut out, &*file, Sync::Next, &mut rng);
        let (stream, found) = (memory.get(), found(&fs, Outage::ProcessKill));
        assert_eq!((found.len() % BLOCK, &found[..stream.len()]), (0, stream));
        assert!(found[stream.len()..].iter().all(|byte| *byte == 0));
        let whole = |entry: &vfs::TraceEntry| match entry.argument {
            Argument::Range { offset, len } => offset % BLOCK as u64 == 0 && len % BLOCK as u64 == 0,
            _ => true,
        };
        assert!(fs.trace().iter().all(whole), "whole blocks only");
    }

    /// Short synced writes have zeros ahead, one range for many writes. The zeros never overwrite written bytes and
    /// never pass the preallocated end. A power cut keeps the stream.
    #[test]
    fn zeros_are_written_ahead_of_short_writes() {
        for seed in 0..30 {
            let fs = SimFs::new(seed);
            let capacity = HEADER_BYTES + 3 * AHEAD_BYTES as u64;
            let (file, mut out) = opened_with(&fs, capacity);
            let (mut rng, mut memory, mut durable, mut writes) = (Rng::new(seed), Memory::new(), 0, 0);
            while memory.len < 2 * AHEAD_BYTES {
                memory.gather(1 + rng.below(60_000) as usize);
                memory.write(&mut out, &*file, Sync::Next, &mut rng);
                writes += 1;
                if rng.one_in(2) {
                    file.sync_all().and_then(|()| fs.sync_dir(Path::new("/"))).expect("the disk works");
                    durable = memory.len;
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
            let stream = memory.get();
            assert_eq!(found(&fs, Outage::ProcessKill)[..stream.len()], *stream);
            assert_eq!(found(&fs, Outage::PowerCut { seed })[..durable], stream[..durable]);
        }
        let fs = SimFs::new(1);
        let (file, mut out) = opened_with(&fs, u64::from(u32::MAX));
        let (mut rng, mut memory) = (Rng::new(1), Memory::new());
        memory.gather(AHEAD_OF_BYTES_MAX);
        memory.write(&mut out, &*file, Sync::Next, &mut rng);
        memory.gather(100);
        memory.write(&mut out, &*file, Sync::Later, &mut rng);
        assert_eq!(out.ahead, 0, "neither for long writes nor for those that are not synced");
    }

    /// Writes that sync themselves are durable when they report it, and short writes do.
    #[test]
    fn writes_that_sync_themselves_are_durable() {
        for seed in 0..30 {
            let fs = SimFs::new(seed);
            let (file, mut out) = opened_with(&fs, HEADER_BYTES + 4 * AHEAD_BYTES as u64);
            file.sync_all().and_then(|()| fs.sync_dir(Path::new("/"))).expect("the disk works");
            let (mut rng, mut memory, mut itself) = (Rng::new(seed), Memory::new(), 0);
            for _ in 0..30 {
                let bytes_max = if rng.one_in(4) { 200_000 } else { 9_000 };
                memory.gather(1 + rng.below(bytes_max) as usize);
                let (stream, ahead) = (&memory.stream[memory.written..memory.len], out.ahead);
                if out.write(&*file, [stream, &[]], Sync::Itself).expect("the disk works") {
                    itself += 1;
                } else {
                    assert!(stream.len() + 2 * BLOCK > ITSELF_BYTES_MAX || out.ahead != ahead);
                    file.sync_data().expect("the disk works");
                }
                memory.written = memory.len;
                let contents = fs.crash_point().power_cut(seed).contents();
                let found = &contents[Path::new(PATH)][HEADER_BYTES as usize..];
                assert!(found[..memory.len] == *memory.get(), "seed {seed}");
            }
            assert!(itself > 10, "{itself}");
        }
    }

    /// A block whose beginning is durable is rewritten: whatever a power cut makes of the rest, the beginning stays.
    #[test]
    fn what_is_durable_is_written_again_unharmed() {
        for seed in 0..300 {
            let fs = SimFs::new(seed);
            let (file, mut out) = opened(&fs);
            let (mut rng, mut memory) = (Rng::new(seed), Memory::new());
            memory.gather(1 + rng.below(100_000) as usize);
            memory.write(&mut out, &*file, Sync::Next, &mut rng);
            file.sync_all().and_then(|()| fs.sync_dir(Path::new("/"))).expect("the disk works");
            let durable = memory.len;
            for bytes in [300, 60_000, 5000] {
                memory.gather(1 + rng.below(bytes) as usize);
                memory.write(&mut out, &*file, Sync::Next, &mut rng);
            }
            let found = found(&fs, Outage::PowerCut { seed });
            assert_eq!(found[..durable], memory.get()[..durable], "seed {seed}");
        }
    }

    /// A file system that accepts the flag but not the writes gets them through the page cache from then on.
    #[test]
    fn refused_direct_writes_go_through_the_page_cache() {
        let fs = SimFs::new(1);
        let (file, mut out) = opened(&fs);
        let (mut rng, mut memory) = (Rng::new(2), Memory::new());
        fs.inject(Fault::fail(Op::Write, errno::EINVAL));
        memory.gather(DIRECT_BYTES_MIN_SYNCED);
        memory.write(&mut out, &*file, Sync::Next, &mut rng);
        assert!(out.direct.is_none(), "written through the page cache");
        memory.gather(3 * PIECE_BYTES);
        memory.write(&mut out, &*file, Sync::Next, &mut rng);
        assert_eq!(found(&fs, Outage::ProcessKill), memory.get());
        assert_eq!(fs.faults_fired(), 1);
    }
}
