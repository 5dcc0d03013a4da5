//! What an open writes: a new log, and a manifest that makes what was found the state.
//!
//! ```text
//!   for reading only: nothing
//!   no room:          nothing counts, and writes are suspended; the attempt to resume writes makes log and manifest
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use vfs::FileSystem;

use super::found::{Found, Recovered};
use super::live::{LiveManifest, LogState};
use super::space::Halt;
use super::{identity, wal_path};
use crate::error::{Error, Result};
use crate::log::{Before, WalWriter};
use crate::names::Names;
use crate::options::{Options, Wal};
use crate::version::manifest::{self, Manifest};
use crate::version::{Version, VersionEdit};

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Writing,
    ReadingOnly,
}

/// What writes continue with.
pub(super) struct Begun {
    pub wal: Option<WalWriter>,
    pub log_state: LogState,
    /// What the log continues from, where there was no room to begin it.
    pub before: Option<Before>,
    pub manifest: LiveManifest,
    pub halted: Option<Halt>,
}

impl Begun {
    /// Writes are refused for as long as the database is open.
    pub fn nothing() -> Self {
        Self {
            wal: None,
            log_state: LogState::Sound,
            before: None,
            manifest: LiveManifest { file: None, wal: (0, false), in_doubt: None },
            halted: Some(Halt::new(Error::ReadOnly)),
        }
    }
}

/// What is needed to write a log and a manifest.
pub(super) struct Begin<'a> {
    pub dir: &'a Path,
    pub options: &'a Options,
    pub found: &'a Found,
    pub recovered: &'a Recovered,
    pub version: &'a Version,
    pub names: &'a Names,
    pub next_number: &'a AtomicU64,
}

impl Begin<'_> {
    /// Writes both. Where the device has no room and there was a database, the outcome refuses writes until it has.
    pub fn write(&self) -> Result<Begun> {
        let fs = &*self.options.fs;
        let current = manifest::current(fs, self.dir)?;
        let (wal_number, manifest_number) = (self.number(), self.number());
        let has_log = self.options.wal != Wal::Off;
        let first_wal = self.recovered.logs.first().map(|(number, _)| *number);
        let mut wal = None;
        let written = (|| {
            if has_log {
                self.write_log(wal_number, &mut wal)?;
            }
            let whole = self.whole_edit((first_wal.unwrap_or(wal_number), has_log));
            // Its sync of the directory covers the names of the new log and tables, too.
            Manifest::create(fs, self.dir, manifest_number, identity(self.found.database, manifest_number), &whole)
        })();
        match (written, current) {
            (Ok(file), _) => Ok(Begun {
                wal,
                log_state: LogState::Sound,
                before: None,
                manifest: LiveManifest {
                    file: Some(file),
                    wal: (first_wal.unwrap_or(wal_number), has_log),
                    in_doubt: None,
                },
                halted: None,
            }),
            (Err(error), Some(current)) if error.may_pass() => {
                let in_doubt = [manifest_number, current].map(|number| manifest::path(self.dir, number));
                self.suspended(wal, (first_wal.unwrap_or(0), first_wal.is_some()), in_doubt.into(), error)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// A log that continues the one found. What that one had is durable when this returns, with [`Wal::Sync`].
    fn write_log(&self, number: u64, wal: &mut Option<WalWriter>) -> Result<()> {
        let (fs, path) = (&*self.options.fs, wal_path(self.dir, number));
        let before = self.recovered.before(fs, self.dir)?;
        let new = match WalWriter::create(fs, &path, number, identity(self.found.database, number), before) {
            Ok(new) => wal.insert(new),
            Err(error) => {
                // The log that another attempt makes continues from the same place (W4 of the log).
                let _ = fs.remove_file(&path);
                return Err(error);
            }
        };
        if self.options.wal == Wal::Sync && !self.recovered.logs.is_empty() {
            // What was written and not acknowledged before the end is now read, and must not go away again.
            let plan = new.sync_plan();
            plan.run(fs, self.dir, self.names, self.next_number)?;
            new.note_synced(&plan);
        }
        Ok(())
    }

    /// The manifest of before still says everything, whichever of the two counts.
    fn suspended(
        &self,
        wal: Option<WalWriter>,
        first_wal: (u64, bool),
        in_doubt: Vec<PathBuf>,
        cause: Error,
    ) -> Result<Begun> {
        let is_log_missing = wal.is_none() && self.options.wal != Wal::Off;
        let before = match is_log_missing {
            true => Some(self.recovered.before(&*self.options.fs, self.dir)?),
            false => None,
        };
        Ok(Begun {
            wal,
            log_state: LogState::InDoubt,
            before,
            manifest: LiveManifest { file: None, wal: first_wal, in_doubt: Some(in_doubt) },
            halted: Some(Halt::new(cause)),
        })
    }

    fn whole_edit(&self, wal: (u64, bool)) -> VersionEdit {
        let Self { found, recovered, .. } = self;
        VersionEdit {
            database: Some(found.database),
            next_number: Some(self.next_number.load(Ordering::Relaxed)),
            last_seqno: Some(recovered.last_seqno),
            wal: Some(wal),
            flushed_lsn: Some(recovered.flushed_lsn),
            key_spaces: found.key_spaces.as_made(),
            key_space_options: found.key_spaces.options_as_set(),
            next_key_space: Some(found.next_key_space),
            key_order: found.key_order,
            ..self.version.as_edit()
        }
    }

    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }
}

/// The lock of the directory. Reading does without on a file system that is mounted for reading only, and where there
/// is no room for a lock file that does not exist yet. Without permission to lock, another process may be writing.
pub(super) fn lock(fs: &dyn FileSystem, dir: &Path, access: Access) -> Result<Option<vfs::FileLock>> {
    match fs.try_lock(&dir.join("LOCK")) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if access == Access::ReadingOnly && (error.is_read_only() || error.is_out_of_space()) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
