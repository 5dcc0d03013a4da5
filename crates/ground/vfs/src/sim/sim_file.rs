//! An open file of the simulated disk, and a held lock.

use std::fmt;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::disk::FILE_LEN_MAX;
use super::file_node::{Change, FileNode};
use super::names::NodeId;
use super::state::{Call, Core, Plan, State};
use super::trace::Argument;
use crate::aligned::DIRECT_ALIGNMENT;
use crate::error::{Op, Result};
use crate::file_system::{AllocateLen, File, OpenOptions};

/// The most slices that Linux takes in one call.
const SLICES_MAX: usize = 1024;

pub(super) struct SimFile {
    core: Arc<Core>,
    node: NodeId,
    path: Arc<Path>,
    writable: bool,
    alignment: usize,
}

impl SimFile {
    /// A handle of a node that the caller has counted as opened.
    pub fn new(core: Arc<Core>, node: NodeId, path: Arc<Path>, options: OpenOptions) -> Self {
        let alignment = if options.direct { DIRECT_ALIGNMENT } else { 1 };
        Self { core, node, path, writable: options.write, alignment }
    }

    fn call(&self, op: Op, argument: Argument) -> Call {
        Call { argument, ..Call::new(op, &self.path) }
    }

    /// The requirements of direct I/O for a transfer.
    fn check_alignment(&self, address: usize, len: usize, offset: u64) -> io::Result<()> {
        let fits = |n: usize| n.is_multiple_of(self.alignment);
        if fits(address) && fits(len) && offset.is_multiple_of(self.alignment as u64) {
            Ok(())
        } else {
            Err(Errno::INVAL.into())
        }
    }

    /// The part of a transfer that the plan permits: whole blocks for direct I/O.
    fn limit(&self, plan: &Plan, len: usize) -> usize {
        match plan {
            Plan::Short(bytes) => (bytes / self.alignment * self.alignment).max(self.alignment).min(len),
            _ => len,
        }
    }

    fn write(&self, bytes: Arc<[u8]>, offset: u64, aligned: io::Result<()>) -> Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let argument = Argument::Range { offset, len: bytes.len() as u64 };
        self.core.run(self.call(Op::Write, argument), |state, plan| {
            self.must_be_writable()?;
            aligned?;
            check_end(offset, bytes.len() as u64)?;
            let asked = self.limit(&plan, bytes.len());
            let n = state.disk.file(self.node)?.live().fitting(offset, asked, state.free_pages());
            if n == 0 {
                return Err(Errno::NOSPC.into());
            }
            let taken = if n == bytes.len() { Arc::clone(&bytes) } else { bytes[..n].into() };
            self.store(state, taken, offset, plan)?;
            Ok(n)
        })
    }

    fn store(&self, state: &mut State, bytes: Arc<[u8]>, offset: u64, plan: Plan) -> io::Result<()> {
        if let Plan::Misdirect { to, offset: wrong } = plan {
            state.disk.change_file(self.node, |file| file.change_unseen_by_medium(offset, &bytes));
            return state.disk.damage(&to, wrong, &bytes);
        }
        state.disk.change_file(self.node, |file| {
            let end = offset + bytes.len() as u64;
            let grows = end > file.live().len();
            file.change(Change::Write { offset, bytes });
            if grows {
                file.change(Change::Grow(end));
            }
        });
        Ok(())
    }

    /// A change through memory: counted, and a crash point. The file has space for it.
    pub fn change(&self, op: Op, argument: Argument, act: impl FnOnce(&mut FileNode) -> io::Result<()>) -> Result<()> {
        let call = self.call(op, argument);
        self.core.run(call, |state, _| state.disk.change_file(self.node, act))
    }

    /// Reads through memory, as far as the file goes.
    pub fn load(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let argument = Argument::Range { offset, len: buf.len() as u64 };
        self.core.look(self.call(Op::Load, argument), |state| {
            if state.disk.read_fails(self.node, offset..offset.saturating_add(buf.len() as u64)) {
                return Err(Errno::IO.into());
            }
            Ok(state.disk.file(self.node)?.live().read(buf, offset))
        })
    }

    fn must_be_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(Errno::BADF.into()) }
    }

    fn sync(&self, op: Op) -> Result<()> {
        let node = self.node;
        self.core.sync(
            self.call(op, Argument::None),
            |disk| Ok(disk.file(node)?.changes_made()),
            |disk, upto| disk.change_file(node, |file| file.sync(upto)),
            |disk, _, draw, reads_show_old| disk.change_file(node, |file| file.fail_sync(draw, reads_show_old)),
        )
    }
}

/// Refuses ranges beyond the limit of a simulated file.
fn check_end(offset: u64, len: u64) -> io::Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= FILE_LEN_MAX => Ok(()),
        _ => Err(Errno::FBIG.into()),
    }
}

impl File for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let argument = Argument::Range { offset, len: buf.len() as u64 };
        self.core.read(self.call(Op::Read, argument), |state, plan| {
            self.check_alignment(buf.as_ptr().addr(), buf.len(), offset)?;
            let asked = self.limit(&plan, buf.len());
            if state.disk.read_fails(self.node, offset..offset.saturating_add(asked as u64)) {
                return Err(Errno::IO.into());
            }
            Ok(state.disk.file(self.node)?.live().read(&mut buf[..asked], offset))
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<usize> {
        self.write(bytes.into(), offset, self.check_alignment(bytes.as_ptr().addr(), bytes.len(), offset))
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        let slices = &slices[..slices.len().min(SLICES_MAX)];
        let aligned = slices.iter().try_for_each(|s| self.check_alignment(s.as_ptr().addr(), s.len(), offset));
        self.write(slices.iter().flat_map(|slice| slice.iter().copied()).collect(), offset, aligned)
    }

    /// Two operations, so that a power cut can come between them. If anything else is still unsynced, the sync is left
    /// out, to catch callers that take earlier writes for durable.
    fn write_all_synced_at(&self, slices: &mut [IoSlice<'_>], offset: u64) -> Result<()> {
        let settled = self.core.state.lock().disk.file(self.node).is_ok_and(FileNode::is_settled);
        self.write_all_vectored_at(slices, offset)?;
        if settled { self.sync_data() } else { Ok(()) }
    }

    fn sync_data(&self) -> Result<()> {
        self.sync(Op::SyncData)
    }

    fn sync_all(&self) -> Result<()> {
        self.sync(Op::SyncAll)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.core.run(self.call(Op::SetLen, Argument::Len(len)), |state, _| {
            if !self.writable {
                return Err(Errno::INVAL.into());
            }
            check_end(len, 0)?;
            state.disk.change_file(self.node, |file| {
                let old = file.live().len();
                file.change(if len < old { Change::Cut(len) } else { Change::Grow(len) });
            });
            Ok(())
        })
    }

    fn allocate(&self, offset: u64, len: u64, length: AllocateLen) -> Result<()> {
        self.core.run(self.call(Op::Allocate, Argument::Range { offset, len }), |state, _| {
            let range = self.space_range(offset, len)?;
            if state.disk.file(self.node)?.live().missing(range.clone()) > state.free_pages() {
                return Err(Errno::NOSPC.into());
            }
            state.disk.change_file(self.node, |file| {
                let grows = length == AllocateLen::Extend && range.end > file.live().len();
                file.change(Change::Reserve(range.clone()));
                if grows {
                    file.change(Change::Grow(range.end));
                }
            });
            Ok(())
        })
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.core.run(self.call(Op::PunchHole, Argument::Range { offset, len }), |state, _| {
            let range = self.space_range(offset, len)?;
            state.disk.change_file(self.node, |file| file.change(Change::Punch(range)));
            Ok(())
        })
    }

    fn expect_reads(&self, _: u64, _: u64) {}

    fn forget_cached(&self, _: u64, _: u64) {}

    fn len(&self) -> Result<u64> {
        self.core.look(self.call(Op::Len, Argument::None), |state| Ok(state.disk.file(self.node)?.live().len()))
    }

    fn alignment(&self) -> usize {
        self.alignment
    }
}

impl SimFile {
    /// Checks the range of `allocate` and `punch_hole` as the system call does.
    fn space_range(&self, offset: u64, len: u64) -> io::Result<std::ops::Range<u64>> {
        if len == 0 {
            return Err(Errno::INVAL.into());
        }
        self.must_be_writable()?;
        check_end(offset, len)?;
        Ok(offset..offset + len)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.core.state.lock().disk.closed(self.node);
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A held lock; it keeps its file open.
pub(super) struct SimLock {
    file: Arc<SimFile>,
}

impl SimLock {
    /// `None` if it is held.
    pub fn take(file: &Arc<SimFile>) -> Option<Self> {
        let taken = file.core.state.lock().locks.insert(file.node);
        taken.then(|| Self { file: Arc::clone(file) })
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.file.core.state.lock().locks.remove(&self.file.node);
    }
}
