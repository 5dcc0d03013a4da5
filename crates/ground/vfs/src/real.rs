//! The operating system's files, one system call per method, or none for a short read of a mapped file.

use std::fs;
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Advice, FallocateFlags, FlockOperation, OFlags};
use rustix::io::ReadWriteFlags;

use crate::aligned::DIRECT_ALIGNMENT;
use crate::error::{FsError, Op, Result};
use crate::file_system::{
    AllocateLen, Create, DirEntry, File, FileKind, FileLock, FileSystem, Metadata, OpenOptions, Space, lock_owner,
    lock_text, wrote_nothing,
};
use crate::mapping::Mapping;
use crate::real_region::RealRegion;
use crate::region::Region;

/// The real file system. Relative paths are relative to the process' working directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFs;

/// Kinds of file systems that are in memory: tmpfs, ramfs (`statfs`, magic.h).
const VOLATILE_KINDS: [i64; 2] = [0x0102_1994, 0x8584_58f6];

impl FileSystem for RealFs {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn File>> {
        let open = || -> io::Result<RealFile> {
            let file = open_file(path, options)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(rustix::io::Errno::ISDIR.into());
            }
            let alignment = if options.direct && set_direct(&file)? { DIRECT_ALIGNMENT } else { 1 };
            let is_mapped = options.mapped && alignment == 1;
            let mapping = if is_mapped { Mapping::new(&file, metadata.len()) } else { None };
            Ok(RealFile { file, path: path.into(), alignment, mapping })
        };
        Ok(Arc::new(open().map_err(|e| FsError::io(Op::Open, path, e))?))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        created.map_err(|e| FsError::io(Op::CreateDir, path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| FsError::io(Op::Rename, from, e))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| FsError::io(Op::RemoveFile, path, e))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|e| FsError::io(Op::RemoveDir, path, e))
    }

    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()> {
        fs::hard_link(existing, link).map_err(|e| FsError::io(Op::HardLink, existing, e))
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let read = || -> io::Result<Vec<DirEntry>> {
            fs::read_dir(path)?
                .map(|entry| {
                    let entry = entry?;
                    let kind = if entry.file_type()?.is_dir() { FileKind::Dir } else { FileKind::File };
                    Ok(DirEntry { name: entry.file_name(), kind })
                })
                .collect()
        };
        let mut entries = read().map_err(|e| FsError::io(Op::ReadDir, path, e))?;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let found = fs::metadata(path).map_err(|e| FsError::io(Op::Metadata, path, e))?;
        let kind = if found.is_dir() { FileKind::Dir } else { FileKind::File };
        // `st_blocks` counts units of 512 bytes, whatever the block size (POSIX.1, stat).
        let allocated = found.blocks() * 512;
        let modified_ms = found.mtime().checked_mul(1000).map(|ms| ms.saturating_add(found.mtime_nsec() / 1_000_000));
        Ok(Metadata { kind, len: found.len(), allocated, modified_ms })
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let sync = || -> io::Result<()> {
            let flags = OFlags::DIRECTORY.bits() as i32;
            let dir = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
            Ok(rustix::fs::fsync(&dir)?)
        };
        sync().map_err(|e| FsError::io(Op::SyncDir, path, e))
    }

    fn try_lock(&self, path: &Path) -> Result<FileLock> {
        let file = open_file(path, OpenOptions::write().create()).map_err(|e| FsError::io(Op::Lock, path, e))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = [0; 16];
                let len = file.read_at(&mut text, 0).map_err(|e| FsError::io(Op::Lock, path, e))?;
                return Err(FsError::Locked { path: path.into(), pid: lock_owner(&text[..len]) });
            }
            Err(errno) => return Err(FsError::io(Op::Lock, path, errno)),
        }
        // Write the text first, truncate after: a concurrent reader sees the whole number or, with old digits after it,
        // none.
        let text = lock_text(std::process::id());
        let written = file.write_all_at(text.as_bytes(), 0).and_then(|()| file.set_len(text.len() as u64));
        match written.map_err(|e| FsError::io(Op::Lock, path, e)) {
            // The lock is held. Other processes see that, without the id.
            Err(error) if error.is_out_of_space() => _ = file.set_len(0),
            written => written?,
        }
        Ok(FileLock::new(file))
    }

    fn free_space(&self, path: &Path) -> Result<Space> {
        let device = rustix::fs::statvfs(path).map_err(|e| FsError::io(Op::Space, path, e))?;
        let unit = device.f_frsize;
        Ok(Space { total: device.f_blocks.saturating_mul(unit), available: device.f_bavail.saturating_mul(unit) })
    }

    fn map_writable(&self, path: &Path, options: OpenOptions, len: u64) -> Result<Arc<dyn Region>> {
        let error = |errno| FsError::io(Op::Map, path, errno);
        if len == 0 {
            return Err(error(rustix::io::Errno::INVAL));
        }
        let options = OpenOptions { write: true, direct: false, mapped: false, ..options };
        let file = open_file(path, options).map_err(|e| FsError::io(Op::Open, path, e))?;
        let file = RealFile { file, path: path.into(), alignment: 1, mapping: None };
        let is_new = file.len()? < len;
        if is_new {
            match file.allocate(0, len, AllocateLen::Extend) {
                // A full device then fails a store.
                Err(e) if e.kind() == io::ErrorKind::Unsupported => file.set_len(len)?,
                allocated => allocated?,
            }
            file.sync_all()?;
        }
        let RealFile { file, path, .. } = file;
        let region = RealRegion::new(file, Arc::clone(&path), len, is_new);
        Ok(Arc::new(region.map_err(|e| FsError::io(Op::Map, path, e))?))
    }

    fn is_volatile(&self, path: &Path) -> Result<bool> {
        let found = rustix::fs::statfs(path).map_err(|e| FsError::io(Op::Space, path, e))?;
        Ok(VOLATILE_KINDS.contains(&found.f_type))
    }
}

fn open_file(path: &Path, options: OpenOptions) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .read(true)
        .write(options.write)
        .create(options.create == Create::IfMissing)
        .create_new(options.create == Create::New)
        .truncate(options.truncate)
        .mode(0o600)
        .open(path)
}

/// Switches an open file to direct I/O; `false` where the file system refuses. Not done with the flag at `open`,
/// because a refused `open` that creates may have created the file.
fn set_direct(file: &fs::File) -> io::Result<bool> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    match rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

#[derive(Debug)]
struct RealFile {
    file: fs::File,
    path: Arc<Path>,
    alignment: usize,
    /// Maps the file's contents at the time it was opened.
    mapping: Option<Mapping>,
}

impl RealFile {
    fn error(&self, op: Op, source: impl Into<io::Error>) -> FsError {
        FsError::io(op, Arc::clone(&self.path), source)
    }

    fn fallocate(&self, op: Op, flags: FallocateFlags, offset: u64, len: u64) -> Result<()> {
        loop {
            match rustix::fs::fallocate(&self.file, flags, offset, len) {
                Ok(()) => return Ok(()),
                // A signal may interrupt a long allocation; repeating it is harmless.
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(self.error(op, errno)),
            }
        }
    }
}

impl File for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        if self.mapping.as_ref().is_some_and(|mapping| mapping.read(buf, offset)) {
            return Ok(buf.len());
        }
        self.file.read_at(buf, offset).map_err(|e| self.error(Op::Read, e))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        self.file.write_at(bytes, offset).map_err(|e| self.error(Op::Write, e))
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        // rustix takes at most IOV_MAX (1,024) slices and leaves the rest to the next call.
        rustix::io::pwritev(&self.file, slices, offset).map_err(|e| self.error(Op::Write, e))
    }

    fn write_all_synced_at(&self, mut slices: &mut [IoSlice<'_>], mut offset: u64) -> Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            // Do not hide an interruption: it may have interrupted the sync.
            match rustix::io::pwritev2(&self.file, slices, offset, ReadWriteFlags::DSYNC) {
                Ok(0) => return Err(wrote_nothing(self.path())),
                Ok(n) => {
                    IoSlice::advance_slices(&mut slices, n);
                    offset += n as u64;
                }
                // A file system or a kernel without the flag.
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                    self.write_all_vectored_at(slices, offset)?;
                    return self.sync_data();
                }
                Err(errno) => return Err(self.error(Op::Write, errno)),
            }
        }
        Ok(())
    }

    // Not std's `sync_data` and `sync_all`: they repeat an interrupted sync, and the result of a second sync is
    // meaningless.
    fn sync_data(&self) -> Result<()> {
        rustix::fs::fdatasync(&self.file).map_err(|e| self.error(Op::SyncData, e))
    }

    fn sync_all(&self) -> Result<()> {
        rustix::fs::fsync(&self.file).map_err(|e| self.error(Op::SyncAll, e))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| self.error(Op::SetLen, e))
    }

    fn allocate(&self, offset: u64, len: u64, length: AllocateLen) -> Result<()> {
        let flags = match length {
            AllocateLen::Extend => FallocateFlags::empty(),
            AllocateLen::Keep => FallocateFlags::KEEP_SIZE,
        };
        self.fallocate(Op::Allocate, flags, offset, len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.fallocate(Op::PunchHole, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
    }

    fn expect_reads(&self, offset: u64, len: u64) {
        if let Some(len) = NonZeroU64::new(len) {
            // An ignored hint costs time and nothing else.
            let _ = rustix::fs::fadvise(&self.file, offset, Some(len), Advice::WillNeed);
        }
    }

    fn forget_cached(&self, offset: u64, len: u64) {
        if let Some(len) = NonZeroU64::new(len) {
            // An ignored hint costs memory and nothing else.
            let _ = rustix::fs::fadvise(&self.file, offset, Some(len), Advice::DontNeed);
        }
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| self.error(Op::Len, e))?.len())
    }

    fn alignment(&self) -> usize {
        self.alignment
    }
}
