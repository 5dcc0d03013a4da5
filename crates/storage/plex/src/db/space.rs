//! A full device: writes are refused with an error that says so, reads work, and writes resume as soon as there is
//! space again.
//!
//! ```text
//!   no room for               what is then in doubt             until
//!   a record of the log       nothing: the next takes its place the next write
//!   a log file, a table       nothing: it is removed            the next attempt
//!   a sync of the log         the log since the sync before     all of memory is in tables, and the log begins anew
//!   a name in the directory   files named since the sync before new files have taken their places
//!   an edit of the manifest   what the manifest says            a whole new manifest counts
//!   what an open writes       the log and the manifest          both, as above: what was found is read meanwhile
//! ```
//!
//! A thread that finds writes suspended tries to resume them: the thread that flushes, every half a second, or without
//! threads the next writer. In the order above, from below: the manifest, then the log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::live::{LiveManifest, LogState};
use super::{Inner, table_path};
use crate::error::{Error, Result};
use crate::options::Background;
use crate::version::VersionEdit;

/// Why there are no writes.
#[derive(Debug)]
pub(super) struct Halt {
    cause: Arc<Error>,
    /// Whether they may resume in this open (D4).
    may_resume: bool,
}

impl Halt {
    /// A database that is opened like this.
    pub fn new(cause: Error) -> Self {
        Self { may_resume: cause.may_pass(), cause: Arc::new(cause) }
    }

    fn error(&self) -> Error {
        let cause = self.cause.clone();
        match &*cause {
            Error::ReadOnly => Error::ReadOnly,
            _ if self.may_resume => Error::Suspended { cause },
            _ => Error::Stopped { cause },
        }
    }
}

impl Inner {
    /// D4.
    pub(super) fn check_running(&self) -> Result<()> {
        match &*self.halted.read() {
            Some(halt) if !halt.may_resume => Err(halt.error()),
            _ => Ok(()),
        }
    }

    /// D4: neither stopped nor suspended.
    pub(super) fn check_writable(&self) -> Result<()> {
        self.halted.read().as_ref().map_or(Ok(()), |halt| Err(halt.error()))
    }

    fn is_suspended(&self) -> bool {
        self.halted.read().as_ref().is_some_and(|halt| halt.may_resume)
    }

    /// D4: no writes until the next open. Returns what the caller reports.
    pub(super) fn stop(&self, cause: Error) -> Error {
        self.halt(cause, false)
    }

    /// D4: no writes until there is space again, or for another cause, until the next open.
    pub(super) fn fail(&self, cause: Error) -> Error {
        let may_resume = cause.may_pass();
        self.halt(cause, may_resume)
    }

    fn halt(&self, cause: Error, may_resume: bool) -> Error {
        // The cause is reported once.
        let cause = match cause {
            Error::Suspended { cause } | Error::Stopped { cause } => cause,
            other => Arc::new(other),
        };
        let halt = Halt { cause, may_resume };
        let error = halt.error();
        let mut halted = self.halted.write();
        if halted.as_ref().is_none_or(|before| before.may_resume && !may_resume) {
            *halted = Some(halt);
        }
        drop(halted);
        self.bell.ring();
        error
    }

    /// Before a write: without threads, the writer itself resumes writes.
    pub(super) fn wait_for_space(&self) -> Result<()> {
        if self.is_suspended() && self.options.background != Background::Threads {
            return self.resume();
        }
        self.check_writable()
    }

    /// Before a write without threads: flushes that there was no room for.
    pub(super) fn flush_left_behind(&self) -> Result<()> {
        let is_left = || self.state.read().immutables.len() >= self.options.immutable_memtables_max;
        if self.options.background == Background::Inline && is_left() {
            while self.flush_oldest()? {}
        }
        Ok(())
    }

    /// Resumes writes, if a full device suspended them and everything that is in doubt can be written again.
    pub(super) fn resume(&self) -> Result<()> {
        if !self.is_suspended() {
            return self.check_running();
        }
        let _flushing = self.flushing.lock();
        self.resume_flushing()
    }

    /// The same for a caller that holds the lock of flushes.
    pub(super) fn resume_flushing(&self) -> Result<()> {
        if !self.is_suspended() {
            return Ok(());
        }
        self.settle_manifest(&mut self.manifest.lock())?;
        let mut writer = self.writer.lock();
        let is_name_lost = writer.wal.as_ref().is_some_and(|wal| self.names.check(wal.number).is_err());
        if writer.log_state == LogState::InDoubt || is_name_lost {
            self.switch(&mut writer)?;
            writer.log_state = LogState::Replaced;
        }
        if writer.log_state == LogState::Replaced {
            while let Some(wal) = self.flush_one()? {
                self.remove_wals(&self.forget_wals_before(&mut writer, wal));
            }
            writer.log_state = LogState::Sound;
            // Also what waits for a sync: it is in tables now.
            self.visible.fetch_max(writer.next_seqno - 1, Ordering::AcqRel);
        }
        // Under the write lock, under which the log comes into doubt.
        let mut halted = self.halted.write();
        if halted.as_ref().is_some_and(|halt| halt.may_resume) {
            *halted = None;
        }
        drop((halted, writer));
        self.bell.ring();
        Ok(())
    }

    /// Writes the manifest anew if it is in doubt what it says, and a mark that it lacks.
    pub(super) fn settle_manifest(&self, manifest: &mut LiveManifest) -> Result<()> {
        if manifest.in_doubt.is_none() {
            let file = manifest.file.as_mut().ok_or(Error::ReadOnly)?;
            return file.settle_mark().map_err(|error| self.fail(error));
        }
        self.write_manifest_anew(manifest).map_err(|error| self.fail(error))
    }

    /// The tables that the edit adds and that do not only move.
    pub(super) fn tables_of(&self, edit: &VersionEdit) -> Vec<PathBuf> {
        let moves = |number: u64| edit.removed.iter().any(|place| place.number == number);
        let new = edit.added.iter().filter(|(place, _)| !moves(place.number));
        new.map(|(place, _)| table_path(&self.dir, place.number)).collect()
    }
}
