//! A mapped file of the simulated disk. Persistent memory has words (`words`); a region in the page cache is written as
//! a file is, in sectors.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::sim_file::SimFile;
use super::trace::Argument;
use crate::error::{FsError, Op, Result};
use crate::file_system::File;
use crate::region::{Region, RegionKind};

pub(super) struct SimRegion {
    file: Arc<SimFile>,
    len: u64,
    kind: RegionKind,
}

impl SimRegion {
    pub fn new(file: Arc<SimFile>, len: u64, kind: RegionKind) -> Self {
        Self { file, len, kind }
    }

    fn store(&self, bytes: &[u8], offset: u64, is_flushed: bool) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= self.len);
        let argument = Argument::Range { offset, len: bytes.len() as u64 };
        self.file.change(Op::Store, argument, |file| {
            if end.is_none_or(|end| end > file.live().len()) {
                return Err(Errno::IO.into());
            }
            match self.kind {
                RegionKind::Dax => file.store(bytes, offset, is_flushed),
                RegionKind::Shared => file.change_bytes(bytes, offset),
            }
            Ok(())
        })
    }
}

impl Region for SimRegion {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn kind(&self) -> RegionKind {
        self.kind
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let is_inside = offset.checked_add(buf.len() as u64).is_some_and(|end| end <= self.len);
        let got = if is_inside { self.file.load(buf, offset)? } else { 0 };
        if got == buf.len() && is_inside {
            return Ok(());
        }
        Err(FsError::EndOfFile { path: self.path().into(), offset, wanted: buf.len(), got })
    }

    fn write_nt(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.store(bytes, offset, true)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.store(bytes, offset, false)
    }

    fn flush(&self, offset: u64, len: u64) {
        // A stopped machine shows with the next store.
        let _ = self.file.change(Op::Fence, Argument::Range { offset, len }, |file| {
            file.flush(offset..offset.saturating_add(len));
            Ok(())
        });
    }

    fn fence(&self) {
        if self.kind == RegionKind::Dax {
            let _ = self.file.change(Op::Fence, Argument::None, |file| {
                file.fence();
                Ok(())
            });
        }
    }

    fn durable_barrier(&self) -> Result<()> {
        match self.kind {
            RegionKind::Shared => self.file.sync_data(),
            RegionKind::Dax => self.file.change(Op::Fence, Argument::None, |file| {
                file.fence();
                Ok(())
            }),
        }
    }
}

impl fmt::Debug for SimRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimRegion").field("path", &self.path()).field("kind", &self.kind).finish_non_exhaustive()
    }
}
