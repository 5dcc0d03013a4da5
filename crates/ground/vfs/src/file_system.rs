//! The two traits of all disk access, and the plain values that they use.

use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use crate::error::{FsError, Op, Result};
use crate::region::Region;

/// A place for files. Shared by all threads. No method takes longer than its system calls.
///
/// Every method may fail with [`FsError::Io`] for any reason of the operating system; `# Errors` sections name only the
/// causes that a caller should distinguish.
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Opens a file. A file that this call creates has mode 0600; its *name* is durable only after
    /// [`sync_dir`](Self::sync_dir) of its directory.
    ///
    /// # Errors
    /// `NotFound` without `create`, `AlreadyExists` with `create_new`, `IsADirectory` for a directory.
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn File>>;

    /// Creates a directory (mode 0700) and its missing parents. Existing ones stay unchanged.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Renames a file or directory, replacing a file (or empty directory) of the new name. Other processes see the old
    /// or the new state, never neither. After a power cut either may be present, until the directories of *both* names
    /// are synced. This does not make the file's *data* durable: sync the file first.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a name of a file. The data is freed with the last name and the last open handle.
    fn remove_file(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `DirectoryNotEmpty`.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// `AlreadyExists` if the second name is taken.
    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()>;

    /// The contents of a directory, in ascending order of names.
    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>>;

    /// Kind and size of the file or directory.
    fn metadata(&self, path: &Path) -> Result<Metadata>;

    /// Makes the names in this directory durable: those created, replaced and removed before the call. May block for as
    /// long as the device takes. After an error the state of the names is unknown, and a second call that succeeds does
    /// not change that.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// Takes an exclusive lock on a lock file, creates it if it is missing, and writes this process' id into it. The
    /// lock ends when the value is dropped or the process ends in any way; the file stays. Advisory: it binds only
    /// processes that ask for it. Never blocks.
    ///
    /// # Errors
    /// [`FsError::Locked`] with the holder's process id while it is held, also by this process.
    fn try_lock(&self, path: &Path) -> Result<FileLock>;

    /// Size and free space of the device that holds this path.
    fn free_space(&self, path: &Path) -> Result<Space>;

    /// Opens a file for writing through memory and maps its first `len` bytes, at least one. A shorter file grows to
    /// `len`, with its space reserved where the file system can, and is then durable as by [`File::sync_all`]. Its name
    /// is durable as V3 says. [`Region::kind`] shows what the file system granted.
    ///
    /// # Errors
    /// As [`open`](Self::open); out of space.
    fn map_writable(&self, path: &Path, options: OpenOptions, len: u64) -> Result<Arc<dyn Region>>;

    /// Whether a reboot loses the files there: they are in memory (tmpfs).
    fn is_volatile(&self, path: &Path) -> Result<bool>;

    /// Whether the name exists. Passes on every error except "not found".
    fn exists(&self, path: &Path) -> Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// An open file. All transfers give their position (V1), so any number of threads can share a handle.
///
/// `read_at`, `write_at` and `write_vectored_at` are the bare system calls: they may transfer fewer bytes than
/// requested, and may fail with `Interrupted` without effect. The provided `..._exact_at` and `..._all_at` methods
/// repeat them until everything is transferred.
#[expect(clippy::len_without_is_empty, reason = "a length that can fail has no use for a second question")]
pub trait File: Send + Sync + fmt::Debug {
    /// The path under which it was opened, for messages.
    fn path(&self) -> &Path;

    /// Reads up to `buf.len()` bytes at `offset`; 0 only at the end of the file (or for an empty buffer).
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes up to `bytes.len()` bytes at `offset`, growing the file as needed, and returns their number. Not durable
    /// before a sync; until then any part may be on the medium, in any order (S2).
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<usize>;

    /// As [`write_at`](Self::write_at), for the bytes of several slices in order. One call takes the first 1,024 slices
    /// at most.
    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<usize>;

    /// Writes all bytes of the slices in order and makes them durable, with the metadata needed to read them, before it
    /// returns (`pwritev2` with `RWF_DSYNC`). With direct I/O that is a third to a half cheaper than a short write and
    /// a sync. It does not make earlier unsynced writes durable: call it only when there are none.
    ///
    /// # Errors
    /// As a write and [`sync_data`](Self::sync_data): never sync this file again.
    fn write_all_synced_at(&self, slices: &mut [IoSlice<'_>], offset: u64) -> Result<()>;

    /// Makes everything durable that was written through any handle of this file before the call, with the length and
    /// the block addresses needed to read it (`fdatasync`). Blocks for as long as the device takes.
    ///
    /// # Errors
    /// After any error, do not trust anything written since the last successful sync. A *second call may return `Ok`
    /// although the data is lost* (Rebello et al., USENIX ATC 2020): never sync this file again.
    fn sync_data(&self) -> Result<()>;

    /// As [`sync_data`](Self::sync_data), with all metadata (`fsync`). Needed once for a new or preallocated file;
    /// it does not make the file's name durable.
    fn sync_all(&self) -> Result<()>;

    /// Truncates the file or extends it with zeros.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Reserves space, so that later writes to the range cannot fail for lack of it. Unwritten bytes read as zero.
    ///
    /// # Errors
    /// Out of space; `Unsupported` where the file system cannot reserve.
    fn allocate(&self, offset: u64, len: u64, length: AllocateLen) -> Result<()>;

    /// Frees the whole blocks in the range and makes the range read as zero. The length stays.
    ///
    /// # Errors
    /// `Unsupported` where the file system cannot.
    fn punch_hole(&self, offset: u64, len: u64) -> Result<()>;

    /// Announces a read of this range, so that the page cache can prefetch it. A hint: it does not wait for the medium.
    fn expect_reads(&self, offset: u64, len: u64);

    /// Announces that this range is no longer needed, so that the page cache may drop it. A hint: bytes that are not on
    /// the medium yet stay, and dropped bytes are read from the medium again.
    fn forget_cached(&self, offset: u64, len: u64);

    /// The file's length in bytes.
    fn len(&self) -> Result<u64>;

    /// 1 for a buffered file. For one opened with [`OpenOptions::direct`]: offset, length and address of every
    /// transfer must be multiples of this power of two (see [`AlignedBuf`](crate::AlignedBuf)).
    fn alignment(&self) -> usize;

    /// Fills the whole buffer from `offset`.
    ///
    /// # Errors
    /// [`FsError::EndOfFile`] if the file ends before.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            match self.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => {
                    let (path, wanted) = (self.path().into(), buf.len());
                    return Err(FsError::EndOfFile { path, offset, wanted, got: done });
                }
                Ok(n) => done += n,
                Err(error) if error.is_interrupted() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all bytes at `offset`. After an error, any part of them may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.write_at(&bytes[done..], offset + done as u64) {
                Ok(0) => return Err(wrote_nothing(self.path())),
                Ok(n) => done += n,
                Err(error) if error.is_interrupted() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the bytes of all slices in order at `offset`, and consumes the slices. After an error, any part may have
    /// been written.
    fn write_all_vectored_at(&self, mut slices: &mut [IoSlice<'_>], mut offset: u64) -> Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.write_vectored_at(slices, offset) {
                Ok(0) => return Err(wrote_nothing(self.path())),
                Ok(n) => {
                    IoSlice::advance_slices(&mut slices, n);
                    offset += n as u64;
                }
                Err(error) if error.is_interrupted() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

pub(crate) fn wrote_nothing(path: &Path) -> FsError {
    FsError::io(Op::Write, path, std::io::ErrorKind::WriteZero)
}

/// How to open a file. Start from [`read`](Self::read) or [`write`](Self::write) and add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    pub(crate) write: bool,
    pub(crate) create: Create,
    pub(crate) truncate: bool,
    pub(crate) direct: bool,
    pub(crate) mapped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Create {
    Never,
    IfMissing,
    New,
}

impl OpenOptions {
    /// An existing file, for reading only.
    pub const fn read() -> Self {
        Self { write: false, create: Create::Never, truncate: false, direct: false, mapped: false }
    }

    /// An existing file, for reading and writing.
    pub const fn write() -> Self {
        Self { write: true, create: Create::Never, truncate: false, direct: false, mapped: false }
    }

    /// Creates the file if it is missing. Implies writing.
    pub const fn create(mut self) -> Self {
        self.write = true;
        self.create = Create::IfMissing;
        self
    }

    /// Creates the file and fails when the name is taken. Implies writing.
    pub const fn create_new(mut self) -> Self {
        self.write = true;
        self.create = Create::New;
        self
    }

    /// Truncates an existing file to length 0. Implies writing.
    pub const fn truncate(mut self) -> Self {
        self.write = true;
        self.truncate = true;
        self
    }

    /// Requests direct I/O (`O_DIRECT`). Where the file system refuses, the file is opened buffered;
    /// [`File::alignment`] shows which.
    pub const fn direct(mut self) -> Self {
        self.direct = true;
        self
    }

    /// Requests that short reads be copied from a mapping of the file, without a system call, if the system grants one
    /// and most of the file is in the page cache. A medium error fails the read, as without a mapping. If the file is
    /// truncated meanwhile, bytes after its new end may read as zeros. Has no effect with [`direct`](Self::direct).
    ///
    /// The first such file of the real file system installs a SIGBUS handler for the process. It passes signals that
    /// these reads did not cause to the previous handler. A handler installed later must do the same, and threads that
    /// read must not block the signal.
    pub const fn mapped(mut self) -> Self {
        self.mapped = true;
        self
    }
}

/// How [`File::allocate`] changes the file's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocateLen {
    /// The file grows to the end of the range, if it is shorter, so later data syncs need not write its length.
    Extend,
    /// The length stays; the space after the end is reserved.
    Keep,
}

/// File or directory. Other kinds (sockets, devices) count as files: Onggi creates none in its directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "two words that say it")]
pub enum FileKind {
    File,
    Dir,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without the directory.
    pub name: OsString,
    /// Its kind.
    pub kind: FileKind,
}

/// The result of [`FileSystem::metadata`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// File or directory.
    pub kind: FileKind,
    /// Length in bytes; meaningless for directories.
    pub len: u64,
    /// Bytes in use on the device, without holes; meaningless for directories.
    pub allocated: u64,
    /// Time of the last change of its contents, in milliseconds since 1970; `None` if unknown.
    pub modified_ms: Option<i64>,
}

/// Size of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// Bytes that this process may still allocate.
    pub available: u64,
}

/// A held lock file. Dropping it releases the lock.
pub struct FileLock {
    _held: Box<dyn Any + Send + Sync>,
}

impl FileLock {
    /// Wraps a value that releases the lock when dropped.
    pub(crate) fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for FileLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileLock")
    }
}

/// The text of a lock file: the holder's process id and a line feed.
pub(crate) fn lock_text(pid: u32) -> String {
    format!("{pid}\n")
}

/// The holder named in a lock file, if its text is whole.
pub(crate) fn lock_owner(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.strip_suffix('\n')?.parse().ok()
}
