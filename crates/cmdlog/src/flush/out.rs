//! Bytes on their way to the end of a segment, in whole blocks, so that many of them can go past the page cache.
//!
//! ```text
//! file    | unfinished block | whole blocks ... | unfinished block |
//! memory  |      edge        | as they lie      |   the next edge, with zeros
//! ```
//!
//! O1. A write begins and ends at whole blocks; what it has behind the stream's bytes are zeros, as in the file.
//! O2. The block that a write leaves unfinished stays here and is written again with what follows. Its beginning, which may
//!     be durable, is the same bytes each time.
//!
//! Whole blocks are not copied: in memory they begin at multiples of their size, as in the file. A write past the page cache
//! saves a copy and pages: 0.09 us a KB instead of 0.33, in writes of a MiB. But each goes to
//! the device, which takes some 45 us of processor time however short it is: fewer bytes are better left to the page cache
//! until they are synced, unless that is to be at once anyway.
//!
//! The first write to a preallocated block changes the file's map, and the next sync has to put that into the file system's
//! journal: 64 KiB written and synced took 85 us of processor time, and 46 where the blocks had been written before. So a stretch
//! of zeros is written ahead of short writes that are synced at once, and one sync pays for many. Long ones gain nothing by it.
//!
//! A short write that is to be durable at once, with nothing before it that is not, syncs itself: 8 KiB over blocks that had been
//! written took 27 us of processor time so, 42 through the page cache with a sync behind it, and 37 past it with one.

use std::io::IoSlice;
use std::sync::Arc;

use vfs::{AlignedBuf, DIRECT_ALIGNMENT, File, FileSystem, FsError, HUGE_PAGE_BYTES, OpenOptions};

use crate::segment::HEADER_BYTES;

/// The unit of writes (O1).
pub(super) const BLOCK: usize = DIRECT_ALIGNMENT;
/// Bytes that lie elsewhere are copied and written in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;
/// So much of them is copied before the length is looked at.
const CHUNK_BYTES: usize = 64 << 10;
/// The smallest write that goes past the page cache. Below, what goes to the device at once costs more than the page cache.
const DIRECT_BYTES_MIN: usize = 256 << 10;
/// The same when a sync follows: 64 KiB written and synced took 1.3 us a KB past the page cache and 2.0 through it.
const DIRECT_BYTES_MIN_SYNCED: usize = 32 << 10;
/// Longer writes do not sync themselves: whoever waits for the flush waits for these.
const ITSELF_BYTES_MAX: usize = 64 << 10;
/// Zeros written ahead of short writes. A MiB takes 130 us of processor time, and each sync of what is written over it 28 to 39 less;
/// half of it keeps the sync short that they are written with.
const AHEAD_BYTES: usize = 512 << 10;
/// Writes from here on have no zeros written ahead of them: these would cost what they save.
const AHEAD_OF_BYTES_MAX: usize = AHEAD_BYTES / 2;
const _: () = assert!(HEADER_BYTES == BLOCK as u64, "the first frame lies in the block behind the header");
const _: () = assert!(
    PIECE_BYTES + CHUNK_BYTES + BLOCK <= HUGE_PAGE_BYTES,
    "a piece, what makes it one, and the block it begins in"
);

/// What becomes of bytes that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    /// They are synced some time.
    Later,
    /// A sync follows at once.
    Next,
    /// They may sync themselves, if that is cheaper: nothing before them is to be synced.
    Itself,
}

/// The end of the last segment.
pub(super) struct Out {
    /// The block that the stream ends in: what of it was written, and zeros.
    edge: AlignedBuf,
    /// Bytes of the stream in it: less than a block.
    filled: usize,
    /// Where in the file that block begins.
    at: u64,
    /// The block that a write ends in, while it is written.
    tail: AlignedBuf,
    /// A piece of what lies elsewhere, once that was needed.
    piece: AlignedBuf,
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

    /// Begins a segment whose first frame is to stand at an offset in the block behind its header, with preallocated bytes up to
    /// its capacity, and nothing else.
    pub fn begin(&mut self, direct: Option<Arc<dyn File>>, capacity: u64, first_at: u64) {
        self.edge.fill(0);
        (self.at, self.filled) = (HEADER_BYTES, (first_at - HEADER_BYTES) as usize);
        (self.direct, self.capacity, self.ahead) = (direct, capacity, 0);
    }

    /// Nothing more is written to the segment.
    pub fn abandon(&mut self) {
        self.direct = None;
    }

    /// Writes the next bytes of the stream, which lie in memory as they will in the file: `pieces` begins at the same place of
    /// a block as the stream goes on at in the file, and each piece but the last ends a block. Gives whether they are durable,
    /// which they can be with [`Sync::Itself`] alone.
    ///
    /// # Errors
    /// The file could not be written, or not synced. Any part of the bytes may have been written.
    pub fn write(&mut self, file: &dyn File, mut pieces: [&[u8]; 2], sync: Sync) -> Result<bool, FsError> {
        let bytes = pieces[0].len() + pieces[1].len();
        let mut filled = self.filled;
        // The rest of the block that was begun, or all there is.
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
        // What does not fill a block is at the end of the last piece.
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
        // The tail is the next edge, whatever became of the write.
        (self.edge, self.tail) = (tail, edge);
        self.at += blocks as u64;
        self.filled = rest;
        written
    }

    fn take_edge(&mut self) -> AlignedBuf {
        std::mem::replace(&mut self.edge, AlignedBuf::zeroed(0))
    }

    /// As [`write`](Self::write), with bytes that lie anywhere, and never durable.
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
                // What follows goes behind the unfinished block, as in the file.
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
            // One of no bytes may lie anywhere, which a direct write would be refused for.
            let mut copies: Vec<_> = blocks.iter().copied().filter(|slice| !slice.is_empty()).collect();
            let done = match itself {
                true => direct.write_all_synced_at(&mut copies, self.at),
                false => direct.write_all_vectored_at(&mut copies, self.at),
            };
            match done {
                // The file system took the flag and does not take the write: a device of larger blocks, or the like.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => self.direct = None,
                done => return done.map(|()| itself),
            }
        }
        file.write_all_vectored_at(blocks, self.at).map(|()| false)
    }

    /// Writes zeros where zeros are, behind a write that is to come. Gives whether it did: they are to be synced.
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
        // Not tried again here if it fails: what is wrong with the device shows where it matters.
        let _ = direct.write_all_at(&self.zeros[..bytes], from);
        self.ahead = from + bytes as u64;
        true
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
        out.begin(open_direct(fs, Path::new(PATH)).expect("the file is there"), capacity, HEADER_BYTES);
        (file, out)
    }

    /// Memory in which each byte has its place, as the stream's has.
    struct Memory {
        stream: AlignedBuf,
        /// So much of it is the stream's.
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

        /// Adds so many bytes as they should stand in the stream.
        fn gather(&mut self, bytes: usize) {
            let start = self.len;
            self.len += bytes;
            for at in start..self.len {
                self.stream[at] = 1 + (at % 251) as u8;
            }
        }

        /// Writes what was added, with the end of the memory wherever blocks end, or as bytes that lie elsewhere.
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

    /// Short writes that are synced have zeros before them, one stretch for many, never over what is written and never past
    /// what is preallocated; a power cut finds the stream all the same.
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

    /// Writes that sync themselves are durable when they say so, which short ones do.
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

    /// A block whose beginning is durable is written again: whatever a power cut makes of that, the beginning stays.
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

    /// A file system that takes the flag but not the writes gets them through the page cache, from then on.
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
