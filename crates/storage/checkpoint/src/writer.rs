//! Writes a set: one thread per file, each taking the next chunk from any shard.
//!
//! ```text
//! create: enough space? -> create the files      (before the cut, so that most failures come before it)
//! begin:  threads: header -> block, block, ... -> footer -> sync
//! finish: all files synced -> sync the directory -> SetInfo for the manifest
//! ```
//!
//! W1. Any error aborts the whole set: the other threads stop, the files are removed, and the number is not reused. No
//!     file is synced again after a failed sync.
//! W2. A single write is short (see `out`), and a file never has more than `sync_every_bytes` of unsynced data. So a
//!     log on the same device waits only briefly for a checkpoint's writes.

use crate::chunk::Chunk;
use crate::dir::DataDir;
use crate::feed::Feed;
use crate::format::{BLOCK_LEN, Chain, Footer, Frame, Header, Place};
use crate::names::Name;
use crate::{CheckpointError, FileInfo, SetId, SetInfo};
use base::checksum::Crc32c;
use base::{HistoryId, KeyspaceId, Lsn, UnixMs};
use engine::Libraries;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use vfs::{FileSystem, HUGE_PAGE_BYTES, OutFile};

/// The most writer threads, and files, of a set.
pub const THREADS_MAX: usize = 16;

/// Bytes of a value between two checks whether a sync is due.
const PIECE_BYTES: usize = 1 << 20;

/// The nice value of writer threads. Workers have priority when processors are busy, but writer threads keep a third of
/// a full share, because writes wait for them when the queue is full.
const NICENESS: i32 = 5;

/// Settings of a writer.
#[derive(Clone, Copy, Debug)]
pub struct WriterOptions {
    /// Threads, and files: 1 to [`THREADS_MAX`]; other values are clamped.
    pub threads: usize,
    /// A file's data is synced each time this many bytes were written.
    pub sync_every_bytes: u64,
    /// Bytes of all files together that are gathered before they are written; at least a block per file.
    pub buffer_bytes: usize,
    /// Expected bytes, for the check of free space.
    pub expected_bytes: u64,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { threads: 2, sync_every_bytes: 32 << 20, buffer_bytes: 2 * HUGE_PAGE_BYTES, expected_bytes: 0 }
    }
}

/// What a set represents, known once the cut is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetHead {
    /// The position in the log.
    pub cut: Lsn,
    /// The history it belongs to.
    pub history: HistoryId,
    /// When the cut was made.
    pub created_ms: UnixMs,
    /// Where the log continues; `None` if it is off.
    pub log_from: Option<Lsn>,
    /// The keyspace of each SELECT number.
    pub spaces: Vec<KeyspaceId>,
    /// The libraries of functions.
    pub libraries: Arc<Libraries>,
    /// Where a replica is in the stream of its primary, as text; empty without that.
    pub position: Vec<u8>,
}

/// Writes one snapshot file.
pub struct SnapshotWriter {
    out: OutFile,
    place: Place,
    sync_every: u64,
    footer: Footer,
    chain: Chain,
}

impl SnapshotWriter {
    /// Writes the header into a new file.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn begin(out: OutFile, header: &Header, sync_every_bytes: u64) -> Result<Self, CheckpointError> {
        let place = Place { set: header.set, file: header.file };
        let header = header.encode();
        let (footer, chain) = (Footer::default(), Chain::new(&header));
        let mut writer = Self { out, place, sync_every: sync_every_bytes.max(1), footer, chain };
        writer.out.append(&header)?;
        Ok(writer)
    }

    /// Writes a block: `entries` encoded entries, of which the last may end in `tail`.
    ///
    /// # Errors
    /// The operating system's error; the file is unusable then.
    pub fn write_block(&mut self, bytes: &[u8], tail: &[u8], entries: u32) -> Result<(), CheckpointError> {
        let len = (bytes.len() + tail.len()) as u64;
        let payload_crc = Crc32c::new().update(bytes).update(tail).finish();
        let (frame, crc) = Frame { len, entries, payload_crc }.encode(self.place, self.footer.blocks);
        for part in [&frame, bytes, tail] {
            self.put(part)?;
        }
        self.chain.add(crc);
        self.footer.blocks += 1;
        self.footer.entries += u64::from(entries);
        self.footer.payload_bytes += len;
        Ok(())
    }

    /// Writes a block with a replica's position, which precedes libraries and entries in the first file.
    ///
    /// # Errors
    /// As [`SnapshotWriter::write_block`].
    pub fn write_position(&mut self, text: &[u8]) -> Result<(), CheckpointError> {
        let mut bytes = Vec::new();
        cmdlog::record::put_position(&mut bytes, text);
        self.write_block(&bytes, &[], 1)
    }

    /// Writes a block with a library of functions. Libraries precede the entries of the first file.
    ///
    /// # Errors
    /// As [`SnapshotWriter::write_block`].
    pub fn write_library(&mut self, name: &[u8], code: &[u8]) -> Result<(), CheckpointError> {
        let mut bytes = Vec::new();
        cmdlog::record::put_library(&mut bytes, name, code);
        self.write_block(&bytes, &[], 1)
    }

    /// Writes the footer and syncs the file. Its name is not synced yet.
    ///
    /// # Errors
    /// The operating system's error; the file is unusable then.
    pub fn finish(mut self) -> Result<FileInfo, CheckpointError> {
        self.footer.chain = self.chain.finish();
        let (footer, crc) = self.footer.encode(self.place);
        self.put(&footer)?;
        Ok(FileInfo { bytes: self.out.finish()?, entries: self.footer.entries, crc })
    }

    /// Writes in pieces, so that a long value is synced on the way.
    fn put(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.out.append(piece)?;
            if self.out.unsynced() >= self.sync_every {
                self.out.sync_data()?;
            }
        }
        Ok(())
    }
}

/// Writes a set. Dropping it before [`Writer::finish`] aborts the set and removes its files.
pub struct Writer {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    set: SetId,
    options: WriterOptions,
    feed: Feed,
    files: Vec<OutFile>,
    paths: Vec<PathBuf>,
    head: Option<SetHead>,
    threads: Vec<JoinHandle<Result<FileInfo, CheckpointError>>>,
}

impl Writer {
    /// Checks the space and creates the files, empty. `set` is a number from [`crate::ManifestFile::next_set`].
    ///
    /// # Errors
    /// [`CheckpointError::NoSpace`]; otherwise the operating system's error.
    pub fn create(dir: &DataDir, set: SetId, options: WriterOptions, feed: &Feed) -> Result<Self, CheckpointError> {
        let (needed, available) = (options.expected_bytes, dir.fs().free_space(dir.path())?.available);
        if available < needed {
            return Err(CheckpointError::NoSpace { path: dir.path().into(), needed, available });
        }
        let mut writer = Self {
            fs: Arc::clone(dir.fs()),
            dir: dir.path().to_owned(),
            set,
            options: WriterOptions { threads: options.threads.clamp(1, THREADS_MAX), ..options },
            feed: feed.clone(),
            files: Vec::new(),
            paths: Vec::new(),
            head: None,
            threads: Vec::new(),
        };
        let buffer_bytes = writer.options.buffer_bytes / writer.options.threads;
        for file in 0..writer.options.threads as u8 {
            let path = dir.file(Name::Snapshot { set, file });
            writer.files.push(OutFile::create(&*writer.fs, &path, buffer_bytes, true)?);
            writer.paths.push(path);
        }
        writer.feed.set_buffers(writer.files.iter().map(OutFile::buffer_bytes).sum());
        Ok(writer)
    }

    /// Starts the threads, after the cut.
    ///
    /// # Errors
    /// [`CheckpointError::Thread`].
    pub fn begin(&mut self, head: SetHead) -> Result<(), CheckpointError> {
        for (number, file) in self.files.drain(..).enumerate() {
            let header = Header {
                set: self.set,
                file: number as u8,
                files: self.options.threads as u8,
                cut: head.cut,
                history: head.history,
                created_ms: head.created_ms,
                key_id: 0,
                spaces: head.spaces.clone(),
            };
            let (feed, sync_every) = (self.feed.clone(), self.options.sync_every_bytes);
            let (libraries, position) = match number {
                0 => (Arc::clone(&head.libraries), head.position.clone()),
                _ => Default::default(),
            };
            let run = move || {
                // Without permission the thread keeps its priority.
                let _ = rustix::process::setpriority_process(None, NICENESS);
                let mut ending = EndOfThread { feed: &feed, is_done: false };
                let result = write_file(file, &header, (&position, &libraries), sync_every, &feed);
                ending.is_done = result.is_ok();
                result
            };
            let thread = std::thread::Builder::new().name(format!("checkpoint-{number}")).spawn(run);
            self.threads.push(thread.map_err(CheckpointError::Thread)?);
        }
        self.head = Some(head);
        Ok(())
    }

    /// Waits until everything that the sinks received is durable, and returns the set for the manifest. All sinks must
    /// be dropped by then, or be dropped by other threads meanwhile. Blocks for as long as the device takes.
    ///
    /// # Errors
    /// The first error of any thread, or [`CheckpointError::Aborted`]. The files are removed then, and the caller must
    /// abort its walk of the shards.
    pub fn finish(mut self) -> Result<SetInfo, CheckpointError> {
        self.feed.close();
        let files = self.join()?;
        let head = self.head.take().ok_or(CheckpointError::Aborted)?;
        self.fs.sync_dir(&self.dir)?;
        // From here on the files belong to the manifest.
        self.paths.clear();
        let SetHead { cut, history, created_ms, log_from, .. } = head;
        Ok(SetInfo { set: self.set, cut, history, created_ms, log_from, files, rows: None })
    }

    /// Waits for the threads.
    fn join(&mut self) -> Result<Vec<FileInfo>, CheckpointError> {
        let mut files = Vec::new();
        let mut failure = None;
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(Ok(file)) => files.push(file),
                // The first thread that failed aborted the others.
                Ok(Err(CheckpointError::Aborted)) => drop(failure.get_or_insert(CheckpointError::Aborted)),
                Ok(Err(error)) => match failure {
                    None | Some(CheckpointError::Aborted) => failure = Some(error),
                    Some(_) => {}
                },
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        failure.map_or(Ok(files), Err)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.feed.set_buffers(0);
        if self.paths.is_empty() {
            return;
        }
        self.feed.abort();
        for thread in self.threads.drain(..) {
            // The error that caused this is already reported.
            let _ = thread.join();
        }
        // A file that cannot be removed is left over: the next prune removes it.
        self.paths.iter().for_each(|path| drop(self.fs.remove_file(path)));
    }
}

/// Stops the other threads unless this one ends with a whole file; a panic counts as a failure.
struct EndOfThread<'f> {
    feed: &'f Feed,
    is_done: bool,
}

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.feed.abort();
        }
    }
}

fn write_file(
    file: OutFile,
    header: &Header,
    (position, libraries): (&[u8], &Libraries),
    sync_every: u64,
    feed: &Feed,
) -> Result<FileInfo, CheckpointError> {
    let mut writer = SnapshotWriter::begin(file, header, sync_every)?;
    if !position.is_empty() {
        writer.write_position(position)?;
    }
    for (name, code) in libraries.iter() {
        writer.write_library(name, code)?;
    }
    while let Some(chunk) = feed.take() {
        let result = match &chunk {
            Chunk::Entries { bytes, tail, entries, .. } => {
                writer.write_block(bytes, tail.as_ref().map_or(&[], |tail| tail.as_slice()), *entries)
            }
            // A block without entries continues in the next one.
            Chunk::Tree(tree) => tree.parts(BLOCK_LEN, |head, changes, is_last| {
                writer.write_block(head, changes, u32::from(is_last))?;
                if feed.is_aborted() { Err(CheckpointError::Aborted) } else { Ok(()) }
            }),
        };
        feed.release(chunk);
        result?;
    }
    if feed.is_aborted() { Err(CheckpointError::Aborted) } else { writer.finish() }
}
