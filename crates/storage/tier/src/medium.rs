//! What a tier is made of.

use crate::{TierError, names};
use std::fmt;
use std::path::Path;
use vfs::{FileSystem, OpenOptions, RegionKind};

/// Which medium is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Persistent memory where the file system grants it, else files.
    Auto,
    /// Persistent memory.
    Dax,
    /// Mapped files: persistent memory, or the page cache.
    Shared,
    /// Files that are written and read by system calls.
    File,
}

/// The medium of an open tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumInUse {
    /// Files that are written and read by system calls.
    File,
    /// Mapped persistent memory.
    Dax,
    /// Files mapped in the page cache.
    Shared,
    /// Files mapped in the page cache that no disk has.
    Volatile,
}

/// Bytes of the file that is mapped to learn what the file system grants.
const PROBE_BYTES: u64 = 4096;

impl Medium {
    /// The medium that a directory gives.
    pub(crate) fn of(self, fs: &dyn FileSystem, dir: &Path) -> Result<MediumInUse, TierError> {
        if self == Self::File {
            return Ok(MediumInUse::File);
        }
        let is_volatile = fs.is_volatile(dir)?;
        Ok(match (self, probed(fs, dir)) {
            (Self::File | Self::Auto, Err(_) | Ok(RegionKind::Shared)) => MediumInUse::File,
            (_, Err(error)) => return Err(error.into()),
            (_, Ok(RegionKind::Dax)) => MediumInUse::Dax,
            (Self::Dax, Ok(RegionKind::Shared)) => return Err(TierError::NoDax { path: dir.to_owned() }),
            (Self::Shared, Ok(RegionKind::Shared)) if is_volatile => MediumInUse::Volatile,
            (Self::Shared, Ok(RegionKind::Shared)) => MediumInUse::Shared,
        })
    }
}

fn probed(fs: &dyn FileSystem, dir: &Path) -> vfs::Result<RegionKind> {
    let path = dir.join(names::PROBE);
    let kind = fs.map_writable(&path, OpenOptions::write().create(), PROBE_BYTES).map(|region| region.kind());
    match fs.remove_file(&path) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => kind,
    }
}

impl MediumInUse {
    /// Whether segments are mapped.
    pub fn is_mapped(self) -> bool {
        self != Self::File
    }

    /// Its name in INFO.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Dax => "dax",
            Self::Shared | Self::Volatile => "shared",
        }
    }
}

/// What it is and what it survives.
impl fmt::Display for MediumInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "files; survives a restart and a power cut as the data directory does",
            Self::Dax => {
                "mapped persistent memory (dax); survives a restart and a power cut as the data directory does"
            }
            Self::Shared => {
                "files mapped in the page cache (shared); survives a restart and a power cut as the data directory does"
            }
            Self::Volatile => {
                "files mapped in memory (shared, no disk); VOLATILE: survives a restart, and a reboot loses its values"
            }
        })
    }
}
