//! Loads a set on all cores, and verifies every byte of it.
//!
//! ```text
//! file 0: cursor --.   one thread at a time reads the next block of a file;
//! file 1: cursor --+-> checks, decodes and stores it while others read on
//! ```
//!
//! Threads begin with different files, then continue with any file that has blocks left. So one file keeps all cores as
//! busy as several do. A thread holds one block in memory.
//!
//! Blocks that were read are dropped from the page cache: only another start would read them again, and the loaded
//! entries can reuse their pages.

use crate::dir::DataDir;
use crate::envelope;
use crate::feed::SHARE_LEN_MIN;
use crate::format::{Chain, FOOTER_LEN, FRAME_LEN, Footer, Frame, Header, Place, SNAPSHOT};
use crate::names::Name;
use crate::{CheckpointError, FileInfo, SetInfo};
use base::checksum::crc32c;
use base::hash::KeyHasher;
use base::{KeyspaceId, UnixMs};
use engine::{Effect, Encoding, Key, SharedBytes, TaggedFields, Type, Value};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vfs::{File, FileSystem, OpenOptions};

/// Bytes of a file that are dropped from the page cache at a time, at the same distance from the read position.
const FORGET_BYTES: u64 = 1 << 20;

/// The progress of a load. Other threads read it while the load runs.
#[derive(Debug, Default)]
pub struct LoadProgress {
    /// Bytes to be read.
    pub bytes_total: AtomicU64,
    /// Bytes read, checked and stored.
    pub bytes_done: AtomicU64,
    /// Entries stored.
    pub entries_done: AtomicU64,
    /// Set by other threads: the load stops before its next block.
    pub is_cancelled: AtomicBool,
}

/// The result of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// Entries stored.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// The keyspace of each SELECT number at the cut.
    pub spaces: Vec<KeyspaceId>,
}

/// Loads a set: calls `store` once for every entry, from `threads` threads concurrently.
///
/// Memory beyond the stored entries: a block per thread, which is 64 KiB or one large entry.
///
/// # Errors
/// Damage, a missing file or a newer format, with file, offset and loss; or [`LoadProgress::is_cancelled`]. Some
/// entries have been stored by then; the caller must discard them.
pub fn load(
    dir: &DataDir,
    set: &SetInfo,
    threads: usize,
    hasher: &KeyHasher,
    store: &(dyn Fn(&Effect<'_>) + Sync),
    progress: &LoadProgress,
) -> Result<LoadReport, CheckpointError> {
    progress.bytes_total.store(set.bytes(), Ordering::Relaxed);
    let sources = (0u8..).zip(&set.files).map(|(number, info)| Source::open(dir, set, number, info));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let spaces = sources.first().map(|source| source.header.spaces.clone()).unwrap_or_default();
    if let Some(odd) = sources.iter().find(|source| source.header.spaces != spaces) {
        let what = "its databases are not those of the set's first file".to_owned();
        return Err(envelope::damaged(&SNAPSHOT, &odd.path, 0, what));
    }
    let mut known = spaces.clone();
    known.sort_unstable();
    let load = Load { sources: &sources, spaces: &known, hasher, store, progress, failed: AtomicBool::new(false) };
    let results: Vec<Result<u64, CheckpointError>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (1..threads.max(1))
            .map(|first| {
                scope.spawn({
                    let load = &load;
                    move || {
                        let _entered = heap::enter();
                        load.run(first)
                    }
                })
            })
            .collect();
        let own = load.run(0);
        let others =
            handles.into_iter().map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(own).chain(others).collect()
    });
    let entries = results.into_iter().sum::<Result<u64, _>>()?;
    Ok(LoadReport { entries, bytes: set.bytes(), spaces })
}

/// The verified header and footer of a snapshot file: for tools, which have no manifest to compare with.
///
/// # Errors
/// As [`load`].
pub fn open_snapshot(fs: &dyn FileSystem, path: &Path) -> Result<(Header, Footer), CheckpointError> {
    let opened = Opened::open(fs, path)?;
    Ok((opened.header, opened.footer))
}

/// A snapshot file alone, block by block, without the manifest. Holds one block: 64 KiB, or one large entry.
pub struct SnapshotReader {
    source: Source,
    bytes: Vec<u8>,
}

/// A block with valid checksums.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotBlock<'a> {
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// Its number, from 0.
    pub number: u64,
    /// The number of entries in its frame; 0 for a part of a tree that continues in the next block.
    pub entries: u32,
    /// The entries, each encoded as [`Effect::Set`], [`Effect::Store`] or [`Effect::StoreWith`]. Or a part of a tree:
    /// an [`Effect::Edit`] or [`Effect::Leaves`]; its last part may end with an [`Effect::Expire`] and an
    /// [`Effect::Meta`]. Or an [`Effect::Library`] or [`Effect::Position`]. See [`cmdlog::effects`].
    pub payload: &'a [u8],
}

impl SnapshotReader {
    /// Opens a file, and checks its header and footer.
    ///
    /// # Errors
    /// As [`load`].
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<Self, CheckpointError> {
        let opened = Opened::open(fs, path)?;
        Ok(Self { source: Source::new(path.to_owned(), opened), bytes: Vec::new() })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.source.header
    }

    /// The footer.
    pub fn footer(&self) -> &Footer {
        &self.source.footer
    }

    /// The manifest's information about the file.
    pub fn info(&self) -> FileInfo {
        self.source.info
    }

    /// The next block; `None` after the last, once the footer has matched all blocks.
    ///
    /// # Errors
    /// As [`load`]; nothing can be read after the damage.
    pub fn next_block(&mut self) -> Result<Option<SnapshotBlock<'_>>, CheckpointError> {
        let next = self.source.next(&mut self.source.cursor.lock(), &mut self.bytes)?;
        let Some(Block { at, number, frame }) = next else { return Ok(None) };
        self.source.check_payload(&Block { at, number, frame }, &self.bytes)?;
        Ok(Some(SnapshotBlock { offset: at, number, entries: frame.entries, payload: &self.bytes }))
    }
}

/// A snapshot file with a valid header and footer.
struct Opened {
    file: Arc<dyn File>,
    header: Header,
    /// Bytes of the header.
    header_len: u64,
    chain: Chain,
    footer: Footer,
    info: FileInfo,
}

impl Opened {
    fn open(fs: &dyn FileSystem, path: &Path) -> Result<Self, CheckpointError> {
        let file = match fs.open(path, OpenOptions::read()) {
            Err(error) if error.is_not_found() => {
                return Err(CheckpointError::FileMissing { path: path.into(), lost: SNAPSHOT.lost.to_owned() });
            }
            opened => opened?,
        };
        let len = file.len()?;
        let prefix_len = len.min(envelope::PREFIX_LEN as u64) as usize;
        let mut bytes = vec![0; prefix_len];
        file.read_exact_at(&mut bytes, 0)?;
        let (_, body_len) = envelope::open_prefix(&SNAPSHOT, path, &bytes)?;
        let header_len = envelope::PREFIX_LEN + body_len + envelope::SUFFIX_LEN;
        if len < (header_len + FOOTER_LEN) as u64 {
            return Err(envelope::damaged(&SNAPSHOT, path, len, "the file ends before its first block".to_owned()));
        }
        bytes.resize(header_len, 0);
        file.read_exact_at(&mut bytes, 0)?;
        let header = Header::decode(path, &bytes)?;
        let mut footer = [0; FOOTER_LEN];
        let footer_at = len - FOOTER_LEN as u64;
        file.read_exact_at(&mut footer, footer_at)?;
        let place = Place { set: header.set, file: header.file };
        let Some((footer, crc)) = Footer::decode(footer, place) else {
            let what = "the footer's checksum is wrong: the end of the file is damaged or cut off".to_owned();
            return Err(envelope::damaged(&SNAPSHOT, path, footer_at, what));
        };
        let info = FileInfo { bytes: len, entries: footer.entries, crc };
        Ok(Self { file, header, header_len: header_len as u64, chain: Chain::new(&bytes), footer, info })
    }
}

/// A file being loaded.
struct Source {
    path: PathBuf,
    file: Arc<dyn File>,
    header: Header,
    footer: Footer,
    place: Place,
    /// The offset of the footer.
    end: u64,
    info: FileInfo,
    cursor: Mutex<Cursor>,
}

/// The offset of the next block, and the sums that the footer must match.
struct Cursor {
    at: u64,
    /// The frame of that block, read together with the block before.
    frame: Option<[u8; FRAME_LEN]>,
    seen: Footer,
    chain: Chain,
    /// The page cache was asked to drop everything before this offset.
    forgotten: u64,
    is_done: bool,
}

/// A block in memory, not verified yet.
struct Block {
    at: u64,
    number: u64,
    frame: Frame,
}

impl Source {
    fn open(dir: &DataDir, set: &SetInfo, number: u8, info: &FileInfo) -> Result<Self, CheckpointError> {
        let path = dir.file(Name::Snapshot { set: set.set, file: number });
        let opened = Opened::open(&**dir.fs(), &path)?;
        let header = &opened.header;
        let expected = Header {
            set: set.set,
            file: number,
            files: set.files.len() as u8,
            cut: set.cut,
            history: set.history,
            created_ms: set.created_ms,
            key_id: 0,
            spaces: header.spaces.clone(),
        };
        if *header != expected {
            let what = format!("it is file {} of set {}, not what the manifest names", header.file, header.set);
            return Err(envelope::damaged(&SNAPSHOT, &path, 0, what));
        }
        if opened.info != *info {
            let what = format!("{:?}, but the manifest says {info:?}", opened.info);
            return Err(envelope::damaged(&SNAPSHOT, &path, opened.info.bytes, what));
        }
        Ok(Self::new(path, opened))
    }

    fn new(path: PathBuf, opened: Opened) -> Self {
        let Opened { file, header, header_len, chain, footer, info } = opened;
        let cursor =
            Cursor { at: header_len, frame: None, seen: Footer::default(), chain, forgotten: 0, is_done: false };
        Self {
            place: Place { set: header.set, file: header.file },
            end: info.bytes - FOOTER_LEN as u64,
            path,
            file,
            header,
            footer,
            info,
            cursor: Mutex::new(cursor),
        }
    }

    fn damaged(&self, offset: u64, what: String, lost: String) -> CheckpointError {
        CheckpointError::Damaged { path: self.path.clone(), offset, what, lost }
    }

    /// Reads the next block into `bytes`; `None` after the last.
    fn next(&self, cursor: &mut Cursor, bytes: &mut Vec<u8>) -> Result<Option<Block>, CheckpointError> {
        if cursor.is_done {
            return Ok(None);
        }
        if cursor.at == self.end {
            cursor.is_done = true;
            let seen = Footer { chain: cursor.chain.finish(), ..cursor.seen };
            if seen != self.footer {
                let what = format!("the footer says {:?}, the blocks give {seen:?}", self.footer);
                return Err(self.damaged(self.end, what, SNAPSHOT.lost.to_owned()));
            }
            return Ok(None);
        }
        let (at, number) = (cursor.at, cursor.seen.blocks);
        let lost = || format!("block {number} of the file and those after it");
        let room = (self.end - at).checked_sub(FRAME_LEN as u64);
        let Some(room) = room else {
            return Err(self.damaged(at, "no whole block fits before the footer".to_owned(), lost()));
        };
        let frame = match cursor.frame.take() {
            Some(frame) => frame,
            None => {
                let mut frame = [0; FRAME_LEN];
                self.file.read_exact_at(&mut frame, at)?;
                frame
            }
        };
        let Some((frame, crc)) = Frame::decode(frame, self.place, number) else {
            return Err(self.damaged(at, "the checksum of a block's frame is wrong".to_owned(), lost()));
        };
        if frame.len > room {
            return Err(self.damaged(at, format!("a block of {} bytes, with room for {room}", frame.len), lost()));
        }
        // Read the next frame too, if there is one.
        let after = room - frame.len;
        let with_frame = if after >= FRAME_LEN as u64 { FRAME_LEN } else { 0 };
        let payload_len = frame.len as usize;
        bytes.clear();
        if bytes.try_reserve_exact(payload_len + with_frame).is_err() {
            let source = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
            return Err(vfs::FsError::io(vfs::Op::Read, self.path.as_path(), source).into());
        }
        bytes.resize(payload_len + with_frame, 0);
        self.file.read_exact_at(bytes, at + FRAME_LEN as u64)?;
        cursor.frame = bytes.last_chunk::<FRAME_LEN>().filter(|_| with_frame > 0).copied();
        bytes.truncate(payload_len);
        cursor.at = at + FRAME_LEN as u64 + frame.len;
        cursor.chain.add(crc);
        cursor.seen.blocks += 1;
        cursor.seen.entries = cursor.seen.entries.saturating_add(u64::from(frame.entries));
        cursor.seen.payload_bytes += frame.len;
        Ok(Some(Block { at, number, frame }))
    }
}

impl Source {
    /// The file ends where a part of a tree should follow.
    fn ends_in_tree(&self) -> CheckpointError {
        self.damaged(self.end, "the blocks end within a collection".to_owned(), "that collection".to_owned())
    }

    /// Drops read bytes from the page cache, except the most recent, which the system may not have settled there yet.
    fn forget_read(&self, cursor: &mut Cursor) {
        if cursor.at - cursor.forgotten >= 2 * FORGET_BYTES {
            let to = (cursor.at - FORGET_BYTES) / FORGET_BYTES * FORGET_BYTES;
            self.file.forget_cached(cursor.forgotten, to - cursor.forgotten);
            cursor.forgotten = to;
        }
    }

    /// Compares a block's bytes with its checksum.
    fn check_payload(&self, block: &Block, bytes: &[u8]) -> Result<(), CheckpointError> {
        let Block { at, number, frame } = *block;
        let crc = crc32c(bytes);
        if crc == frame.payload_crc {
            return Ok(());
        }
        let what = format!("the block's checksum is {crc:#010x}, expected {:#010x}", frame.payload_crc);
        Err(self.damaged(at, what, lost_in(&frame, number)))
    }
}

fn lost_in(frame: &Frame, number: u64) -> String {
    format!("the {} entries of block {number}", frame.entries)
}

/// A load in progress, shared by its threads.
struct Load<'l> {
    sources: &'l [Source],
    /// In ascending order.
    spaces: &'l [KeyspaceId],
    hasher: &'l KeyHasher,
    store: &'l (dyn Fn(&Effect<'_>) + Sync),
    progress: &'l LoadProgress,
    failed: AtomicBool,
}

impl Load<'_> {
    /// One thread's share. Returns the number of entries it stored.
    fn run(&self, first: usize) -> Result<u64, CheckpointError> {
        let result = self.load_sources(first);
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn load_sources(&self, first: usize) -> Result<u64, CheckpointError> {
        let (mut entries, mut bytes) = (0, Vec::new());
        let count = self.sources.len();
        for source in self.sources.iter().cycle().skip(first % count.max(1)).take(count) {
            while !self.failed.load(Ordering::Relaxed) {
                if self.progress.is_cancelled.load(Ordering::Relaxed) {
                    return Err(CheckpointError::LoadCancelled);
                }
                // All threads take blocks in turns; one thread takes all blocks of a tree, because their order counts.
                let mut cursor = source.cursor.lock();
                let Some(mut block) = source.next(&mut cursor, &mut bytes)? else { break };
                source.forget_read(&mut cursor);
                while block.frame.entries == 0 {
                    self.load_part(source, &block, &bytes)?;
                    self.count(&block);
                    block = source.next(&mut cursor, &mut bytes)?.ok_or_else(|| source.ends_in_tree())?;
                    source.forget_read(&mut cursor);
                }
                drop(cursor);
                self.load_block(source, &block, &mut bytes)?;
                entries += self.count(&block);
            }
        }
        Ok(entries)
    }

    /// Counts a block as done, and returns its number of entries.
    fn count(&self, block: &Block) -> u64 {
        let entries = u64::from(block.frame.entries);
        self.progress.entries_done.fetch_add(entries, Ordering::Relaxed);
        self.progress.bytes_done.fetch_add(FRAME_LEN as u64 + block.frame.len, Ordering::Relaxed);
        entries
    }

    /// Checks a block and stores its entries.
    fn load_block(&self, source: &Source, block: &Block, bytes: &mut Vec<u8>) -> Result<(), CheckpointError> {
        let Block { at, number, frame } = *block;
        source.check_payload(block, bytes)?;
        let damaged = |what: String| source.damaged(at, what, lost_in(&frame, number));
        let mut seen = 0u32;
        let mut big = None;
        for effect in cmdlog::effects(bytes, self.hasher) {
            let effect = effect.map_err(|error| damaged(error.to_string()))?;
            let value_len = match effect {
                Effect::Set { value, .. } | Effect::Store { value, .. } | Effect::StoreWith { value, .. } => {
                    value.len()
                }
                Effect::Edit { .. } | Effect::Leaves { .. } | Effect::Library { .. } | Effect::Position { .. } => 0,
                Effect::Expire { .. } | Effect::Meta { .. } if seen == 1 && frame.entries == 1 => {
                    (self.store)(&effect);
                    continue;
                }
                _ => return Err(damaged("something that is no entry".to_owned())),
            };
            self.check_space(&effect).map_err(damaged)?;
            seen = seen.saturating_add(1);
            if frame.entries == 1 && value_len > SHARE_LEN_MIN {
                big = Some(BigValue::new(&effect, value_len));
            } else if seen <= frame.entries {
                (self.store)(&effect);
            }
        }
        if seen != frame.entries {
            return Err(damaged(format!("{seen} entries, expected {}", frame.entries)));
        }
        // A large value ends its block; the block's memory becomes the value's.
        if let Some(big) = big {
            let mut value = std::mem::take(bytes);
            value.drain(..value.len().saturating_sub(big.len));
            value.shrink_to_fit();
            let value = SharedBytes::new(value);
            big.store(self.hasher, Value::Shared(&value), self.store);
        }
        Ok(())
    }

    /// Checks a block with a part of a tree, except the last, and adds it to the tree.
    fn load_part(&self, source: &Source, block: &Block, bytes: &[u8]) -> Result<(), CheckpointError> {
        source.check_payload(block, bytes)?;
        let damaged = |what: String| source.damaged(block.at, what, "the collection it is a part of".to_owned());
        for effect in cmdlog::effects(bytes, self.hasher) {
            let effect = effect.map_err(|error| damaged(error.to_string()))?;
            if !matches!(effect, Effect::Edit { .. } | Effect::Leaves { .. }) {
                return Err(damaged("something that is no part of a collection".to_owned()));
            }
            self.check_space(&effect).map_err(damaged)?;
            (self.store)(&effect);
        }
        Ok(())
    }

    fn check_space(&self, effect: &Effect<'_>) -> Result<(), String> {
        let unknown = |key: &&Key<'_>| self.spaces.binary_search(&key.space).is_err();
        effect
            .keys()
            .find(unknown)
            .map_or(Ok(()), |key| Err(format!("an entry of keyspace {}, which the header does not name", key.space)))
    }
}

/// An entry without its large value.
struct BigValue {
    key: Vec<u8>,
    space: KeyspaceId,
    kind: Type,
    encoding: Encoding,
    expire_at: Option<UnixMs>,
    /// In tagged form.
    fields: Vec<u8>,
    len: usize,
}

impl BigValue {
    /// From the effect that stores a value of this length.
    fn new(effect: &Effect<'_>, len: usize) -> Self {
        let none = TaggedFields::NONE;
        let (key, kind, encoding, expire_at, fields) = match *effect {
            Effect::Set { key, encoding, expire_at, .. } => (key, Type::String, encoding, expire_at, none),
            Effect::Store { key, kind, encoding, expire_at, .. } => (key, kind, encoding, expire_at, none),
            Effect::StoreWith { key, kind, encoding, expire_at, fields, .. } => {
                (key, kind, encoding, expire_at, fields)
            }
            _ => unreachable!("only these have a value"),
        };
        let (space, fields) = (key.space, fields.bytes().to_vec());
        Self { key: key.bytes.to_vec(), space, kind, encoding, expire_at, fields, len }
    }

    fn store(&self, hasher: &KeyHasher, value: Value<'_>, store: &(dyn Fn(&Effect<'_>) + Sync)) {
        let Self { kind, encoding, expire_at, .. } = *self;
        let key = Key::new(hasher, self.space, &self.key);
        let fields = TaggedFields::check(&self.fields).expect("they were read from an effect");
        store(&match kind {
            _ if !fields.is_none() => Effect::StoreWith { key, kind, encoding, value, expire_at, fields },
            Type::String => Effect::Set { key, value, encoding, expire_at },
            _ => Effect::Store { key, kind, encoding, value, expire_at },
        });
    }
}
