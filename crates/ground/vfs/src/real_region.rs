//! Regions of the real file system. See [`Region`].
#![allow(unsafe_code, reason = "copies to mapped memory")]

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::bus::Span;
use crate::error::{FsError, Op, Result};
use crate::region::{Region, RegionKind};
use crate::stores::{self, WriteBack};

#[derive(Debug)]
pub(crate) struct RealRegion {
    span: Span,
    file: fs::File,
    path: Arc<Path>,
    kind: RegionKind,
}

impl RealRegion {
    /// Maps the first `len` bytes of a file, which has them; a new file's in whole pages at once.
    pub fn new(file: fs::File, path: Arc<Path>, len: u64, is_new: bool) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        let map = |flags| Span::new(&file, len, ProtFlags::READ | ProtFlags::WRITE, flags);
        let synced = match WriteBack::of_processor() {
            Some(_) => map(MapFlags::SHARED_VALIDATE | MapFlags::SYNC),
            None => Err(Errno::OPNOTSUPP),
        };
        let (span, kind) = match synced {
            Ok(span) => (span, RegionKind::Dax),
            // A file system without it, or a kernel that does not know the flag.
            Err(Errno::OPNOTSUPP | Errno::INVAL) => (map(MapFlags::SHARED)?, RegionKind::Shared),
            Err(errno) => return Err(errno.into()),
        };
        if is_new {
            // Faults now are cheaper than faults under a caller's lock. Kernels before 5.14 refuse.
            span.advise(Advice::LinuxPopulateWrite);
        }
        Ok(Self { span, file, path, kind })
    }

    fn error(&self, op: Op, source: impl Into<io::Error>) -> FsError {
        FsError::io(op, Arc::clone(&self.path), source)
    }

    /// Where a range lies in the span, if it is inside.
    fn place(&self, offset: u64, len: usize) -> Option<usize> {
        usize::try_from(offset).ok().filter(|from| self.span.has(*from, len))
    }

    fn store(&self, len: usize, offset: u64, store: impl FnOnce(std::ptr::NonNull<u8>)) -> Result<()> {
        let Some(from) = self.place(offset, len) else { return Err(self.error(Op::Store, Errno::INVAL)) };
        let is_stored = !self.span.is_broken() && self.span.access(from, len, store);
        if is_stored { Ok(()) } else { Err(self.error(Op::Store, Errno::IO)) }
    }
}

impl Region for RealRegion {
    fn path(&self) -> &Path {
        &self.path
    }

    fn kind(&self) -> RegionKind {
        self.kind
    }

    fn len(&self) -> u64 {
        self.span.len() as u64
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let wanted = buf.len();
        let ends = |got| FsError::EndOfFile { path: self.path.clone(), offset, wanted, got };
        let Some(from) = self.place(offset, wanted) else { return Err(ends(0)) };
        if !self.span.is_broken() && self.span.read(buf, from) {
            return Ok(());
        }
        // A system call says what is wrong, and reads what can be read of a region with one bad page.
        self.file.read_exact_at(buf, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ends(0),
            _ => self.error(Op::Load, error),
        })
    }

    fn append_to(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> Result<()> {
        if let Some(from) = self.place(offset, len)
            && !self.span.is_broken()
            && self.span.append_to(buf, from, len)
        {
            return Ok(());
        }
        let before = buf.len();
        buf.resize(before.saturating_add(len), 0);
        let result = self.read_exact_at(&mut buf[before..], offset);
        if result.is_err() {
            buf.truncate(before);
        }
        result
    }

    fn prefetch(&self, offset: u64, len: u64) {
        if let Some((from, len)) = usize::try_from(len).ok().and_then(|len| Some((self.place(offset, len)?, len))) {
            self.span.prefetch(from, len);
        }
    }

    fn write_nt(&self, bytes: &[u8], offset: u64) -> Result<()> {
        // SAFETY: the span has a place for all bytes there, which no reference has (M1).
        self.store(bytes.len(), offset, |to| unsafe { stores::copy_nt(bytes, to) })
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.store(bytes.len(), offset, |to| {
            // SAFETY: as above.
            unsafe { to.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len()) };
        })
    }

    fn flush(&self, offset: u64, len: u64) {
        let Some((from, len)) = usize::try_from(len).ok().and_then(|len| Some((self.place(offset, len)?, len))) else {
            return;
        };
        // A page that is gone breaks the span, and the next write reports it.
        // SAFETY: the range can be read, with the handler's help (M2).
        self.span.access(from, len, |start| unsafe { stores::flush(start, len) });
    }

    fn fence(&self) {
        stores::fence();
    }

    fn durable_barrier(&self) -> Result<()> {
        stores::fence();
        match self.kind {
            _ if self.span.is_broken() => Err(self.error(Op::SyncData, Errno::IO)),
            RegionKind::Dax => Ok(()),
            // As `msync`: Linux counts pages dirtied through a mapping as the file's.
            RegionKind::Shared => rustix::fs::fdatasync(&self.file).map_err(|e| self.error(Op::SyncData, e)),
        }
    }
}
