//! The write-ahead log: what the memtables hold, on disk, one file a memtable.
//!
//! W1. Records of all files together, in the order of file numbers, are one history; recovery yields a prefix of it.
//! W2. A sync covers all earlier files first. After a sync, the next write begins with a *mark* that says how far this
//!     file was synced; so damage before a mark is corruption, and damage after all marks is a torn tail, which is cut
//!     together with everything later.
//! W3. After a failed sync nothing more is appended, nor after a failed write, unless there was no room: the next
//!     record then takes the place of the one that had none.
//! W4. A file names the place where the history before it ends: what an open found beyond that place and gave up stays
//!     given up. Of several files that name one place, the last counts.
//! W5. The next file is made before it is needed ([`SpareWal`]). Until it is, it is empty, so it names no place.
//!
//! Format: docs/formats/plex-wal.md.

mod frame;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use vfs::{File, FileSystem, OpenOptions};

use crate::batch::{Change, WriteBatch, decode_changes};
use crate::error::{Error, Result};
use crate::key::Seqno;
use crate::names::Names;
pub(crate) use frame::{FileType, FrameWriter, Frames, Header, record_len};

/// The kind of file this is.
const WAL: FileType = FileType { magic: *b"plexwal\n", version: 1 };

/// First byte of a mark; the synced length follows it, 8 bytes.
const MARK: u8 = 0;

/// Length of a mark, in bytes.
const MARK_LEN: usize = 9;

/// Changes of a log file that are handed over at once, at most but for the last record's. Each takes 56 bytes
/// meanwhile.
const PORTION_CHANGES: usize = 1 << 16;

/// The file of a log that has not begun (W5). An open that finds one removes it.
pub(crate) struct SpareWal {
    pub number: u64,
    file: Arc<dyn File>,
}

impl SpareWal {
    /// Creates the file.
    pub fn create(fs: &dyn FileSystem, path: &Path, number: u64) -> Result<Self> {
        Ok(Self { number, file: fs.open(path, OpenOptions::write().create_new())? })
    }
}

/// The log that is written to.
pub(crate) struct WalWriter {
    pub number: u64,
    frames: FrameWriter,
    /// The sequence number that a record without one would have.
    next_seqno: Option<Seqno>,
    /// How far the file was synced, and how far the last mark says it was.
    synced: u64,
    marked: u64,
    /// Earlier files that were not synced to their end, oldest first.
    unsynced: Vec<Arc<dyn File>>,
    /// The oldest file whose name is not known to be durable; `None` if all are.
    unnamed: Option<u64>,
    record: Vec<u8>,
}

impl WalWriter {
    /// Creates the file.
    pub fn create(fs: &dyn FileSystem, path: &Path, number: u64, identity: u64, before: Before) -> Result<Self> {
        Self::begin(SpareWal::create(fs, path, number)?, identity, before)
    }

    /// Begins in a file that was made before.
    pub fn begin(SpareWal { number, file }: SpareWal, identity: u64, before: Before) -> Result<Self> {
        let frames = FrameWriter::begin(file, WAL, Header { identity, previous: before.end })?;
        Ok(Self {
            number,
            frames,
            next_seqno: None,
            synced: 0,
            marked: 0,
            unsynced: before.unsynced,
            unnamed: Some(before.unnamed.unwrap_or(number)),
            record: Vec::new(),
        })
    }

    /// Appends a batch; it is with the operating system when this returns, and durable after the next sync.
    /// Returns the bytes written.
    ///
    /// # Errors
    /// See W3.
    pub fn append(&mut self, batch: &WriteBatch, seqno: Seqno) -> Result<u64> {
        let (before, marked) = (self.frames.end(), self.marked);
        if self.marked < self.synced {
            let mut mark = [MARK; MARK_LEN];
            mark[1..].copy_from_slice(&self.synced.to_le_bytes());
            self.frames.push(&mark);
            self.marked = self.synced;
        }
        batch.encode((self.next_seqno != Some(seqno)).then_some(seqno), &mut self.record);
        self.frames.push(&self.record);
        if let Err(error) = self.frames.write() {
            self.marked = marked;
            return Err(error);
        }
        self.next_seqno = Some(seqno + batch.len() as u64);
        Ok(self.frames.end() - before)
    }

    /// What has to be synced to make everything appended so far durable, in this file and the earlier ones.
    pub fn sync_plan(&self) -> SyncPlan {
        let mut files = self.unsynced.clone();
        files.push(self.frames.file().clone());
        SyncPlan { number: self.number, end: self.frames.end(), files, unnamed: self.unnamed }
    }

    /// A plan of this log was carried out.
    pub fn note_synced(&mut self, plan: &SyncPlan) {
        if plan.number == self.number {
            self.unsynced.clear();
            self.unnamed = None;
            self.synced = self.synced.max(plan.end);
        }
    }

    /// Files before this one are not needed any more, since tables hold what they held.
    pub fn forget_before(&mut self, number: u64) {
        if number >= self.number {
            self.unsynced.clear();
            self.unnamed = self.unnamed.map(|_| self.number);
        }
    }

    /// This log, for the file that continues it.
    pub fn before(&self) -> Before {
        let mut unsynced = self.unsynced.clone();
        if self.synced < self.frames.end() {
            unsynced.push(self.frames.file().clone());
        }
        Before { end: (self.number, self.frames.end()), unsynced, unnamed: self.unnamed }
    }

    /// Bytes in this file.
    pub fn len(&self) -> u64 {
        self.frames.end()
    }
}

/// The log that a new file continues; the default is none.
#[derive(Clone, Default)]
pub(crate) struct Before {
    /// The last file's number, and where in it the history ends.
    pub end: (u64, u64),
    /// Files that were not synced to their end, oldest first.
    pub unsynced: Vec<Arc<dyn File>>,
    /// The oldest of them whose name is not known to be durable.
    pub unnamed: Option<u64>,
}

/// Files to sync, taken from a [`WalWriter`] so that others may append meanwhile.
pub(crate) struct SyncPlan {
    number: u64,
    end: u64,
    /// Oldest first.
    files: Vec<Arc<dyn File>>,
    /// The oldest file whose name must be made durable, too.
    unnamed: Option<u64>,
}

impl SyncPlan {
    /// Syncs; blocks as long as the device takes.
    ///
    /// # Errors
    /// After any, nothing more may be appended (W3).
    pub fn run(&self, fs: &dyn FileSystem, dir: &Path, names: &Names, next_number: &AtomicU64) -> Result<()> {
        self.files[..self.files.len() - 1].iter().try_for_each(|file| file.sync_data())?;
        if let Some(oldest) = self.unnamed {
            names.sync(fs, dir, oldest, next_number)?;
        }
        Ok(self.files[self.files.len() - 1].sync_data()?)
    }
}

/// A log file to be read.
pub(crate) struct WalFile {
    pub number: u64,
    /// `None` if it must be read from the file itself.
    pub identity: Option<u64>,
    pub path: PathBuf,
}

impl WalFile {
    fn read(&self, fs: &dyn FileSystem) -> Result<Frames> {
        Frames::read(fs, &self.path, WAL, self.identity)
    }

    fn open(&self, fs: &dyn FileSystem) -> Result<Frames> {
        Frames::open(fs, &self.path, WAL, self.identity)
    }

    /// Where the history before this file ends, by its header; `None` without a sound one.
    fn previous(&self, fs: &dyn FileSystem) -> Result<Option<(u64, u64)>> {
        Ok(Header::read(fs, &self.path, WAL, self.identity)?.map(|header| header.previous))
    }
}

/// Hands every sound record of a file to `see`, with its offset: a batch with its first sequence number, or `None` for
/// a mark. Where the sound part ends.
pub(crate) fn read_file(
    fs: &dyn FileSystem,
    path: &Path,
    mut see: impl FnMut(u64, Option<(Seqno, &WriteBatch)>),
) -> Result<u64> {
    let mut frames = Frames::read(fs, path, WAL, None)?;
    let (mut next_seqno, mut offset) = (0, frames.offset());
    while let Some(record) = frames.next() {
        if record[0] == MARK && record.len() == MARK_LEN {
            see(offset, None);
        } else if let Some((seqno, batch)) = WriteBatch::decode(record, next_seqno) {
            next_seqno = seqno + batch.len() as u64;
            see(offset, Some((seqno, &batch)));
        } else {
            return Err(Error::corruption(path, offset, "a whole record of the log is no batch"));
        }
        offset = frames.offset();
    }
    Ok(offset)
}

/// Changes of one log file, in their order.
#[derive(Default)]
pub(crate) struct Portion<'a> {
    /// Each with its key space and its sequence number.
    pub changes: Vec<(u32, Seqno, Change<'a>)>,
    /// The largest position of an external log; 0 for none.
    pub lsn: u64,
}

impl<'a> Portion<'a> {
    /// Adds the changes of a record, all or none, and returns the number after the last one's.
    ///
    /// # Errors
    /// What is wrong with the record.
    fn add(
        &mut self,
        record: &'a [u8],
        next: Seqno,
        is_known: impl Fn(u32) -> bool,
    ) -> std::result::Result<Seqno, String> {
        let (before, mut unknown) = (self.changes.len(), None);
        let head = decode_changes(record, next, |space, change| {
            if !is_known(space) {
                unknown = Some(space);
            }
            self.changes.push((space, 0, change));
        });
        let wrong = match (head, unknown) {
            (Some(head), None) => {
                self.changes[before..].iter_mut().zip(head.first..).for_each(|(change, seqno)| change.1 = seqno);
                self.lsn = self.lsn.max(head.lsn);
                return Ok(head.first + head.len);
            }
            (Some(_), Some(space)) => format!("the log writes to key space {space}, which does not exist"),
            (None, _) => "a whole record of the log is no batch".into(),
        };
        self.changes.truncate(before);
        Err(wrong)
    }

    /// Hands over what there is.
    fn pass_to(&mut self, apply: impl FnOnce(&Portion<'a>)) {
        if !self.changes.is_empty() {
            apply(self);
            self.changes.clear();
            self.lsn = 0;
        }
    }
}

/// Reads the log files (in ascending order of numbers) and hands all changes to `apply`, in portions, each with its
/// file's number; after an error it has had what came before. The files that are one history, each with the offset
/// where it ends; what follows the last of them was never synced and is given up.
///
/// # Errors
/// Corruption where the log was synced (W2), and of whole records, as with a key space that is not `is_known`.
pub(crate) fn replay(
    fs: &dyn FileSystem,
    files: &[WalFile],
    is_known: impl Fn(u32) -> bool,
    mut apply: impl FnMut(u64, &Portion<'_>),
) -> Result<Vec<(u64, u64)>> {
    let mut parts = Vec::new();
    let mut next = (!files.is_empty()).then_some(0);
    while let Some(index) = next {
        let WalFile { number, path, .. } = &files[index];
        let mut frames = files[index].open(fs)?;
        let (mut next_seqno, mut offset) = (0, frames.offset());
        while frames.go_on_from(offset)? {
            let mut portion = Portion::default();
            while let Some((record, end)) = frames.at(offset) {
                if record[0] != MARK || record.len() != MARK_LEN {
                    match portion.add(record, next_seqno, &is_known) {
                        Ok(behind) => next_seqno = behind,
                        Err(what) => {
                            portion.pass_to(|portion| apply(*number, portion));
                            return Err(Error::corruption(path, offset, what));
                        }
                    }
                }
                offset = end;
                if portion.changes.len() >= PORTION_CHANGES {
                    portion.pass_to(|portion| apply(*number, portion));
                }
            }
            portion.pass_to(|portion| apply(*number, portion));
        }
        let end = (*number, frames.offset());
        next = None;
        if frames.header.is_some() {
            parts.push(end);
            // W4: this holds after damage, too, if an earlier open cut the file here.
            for (at, file) in files.iter().enumerate().skip(index + 1) {
                if file.previous(fs)? == Some(end) {
                    next = Some(at);
                }
            }
        }
        if next.is_none() {
            frames.load_rest()?;
            refuse_if_synced(fs, &frames, &files[index + 1..])?;
        }
    }
    Ok(parts)
}

/// W2: damage at the current place of `frames` must not lie before any mark.
fn refuse_if_synced(fs: &dyn FileSystem, frames: &Frames, later: &[WalFile]) -> Result<()> {
    let synced = |frames: &Frames| {
        let marks = frames.records_of_len(MARK_LEN).filter(|record| record[0] == MARK);
        marks.map(|mark| u64::from_le_bytes(std::array::from_fn(|i| mark[1 + i]))).max().unwrap_or(0)
    };
    let lost = |upto: String| {
        let what = format!("damage in a part of the log that was synced{upto}; the changes from here on are lost");
        Error::corruption(&frames.path, frames.offset(), what)
    };
    if synced(frames) > frames.offset() {
        return Err(lost(format!(" up to offset {}", synced(frames))));
    }
    for file in later {
        if synced(&file.read(fs)?) > 0 {
            return Err(lost(format!(", as {} shows", file.path.display())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
