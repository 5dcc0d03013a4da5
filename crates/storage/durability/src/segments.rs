//! Segments of a log that no longer runs, or that never came to count.

use crate::error::DurabilityError;
use base::Lsn;
use checkpoint::DataDir;

/// Where a segment lies.
fn path(dir: &DataDir, first: Lsn) -> std::path::PathBuf {
    dir.file(checkpoint::Name::Log { first })
}

/// Removes the segments that begin at `from` or later: of a log that was to be switched on and failed to be.
pub(crate) fn remove_from(dir: &DataDir, from: Lsn) -> Result<(), DurabilityError> {
    for first in dir.list()?.logs {
        if first >= from {
            dir.fs().remove_file(&path(dir, first)).map_err(checkpoint::CheckpointError::from)?;
        }
    }
    Ok(())
}

/// Removes the segments of which nothing at or after `needed` is part; all of them when nothing is needed. For a log
/// that is off: a running one removes its own.
pub(crate) fn remove_before(dir: &DataDir, needed: Option<Lsn>) -> Result<(), DurabilityError> {
    let logs = dir.list()?.logs;
    for (index, first) in logs.iter().enumerate() {
        // A segment ends where the next one begins; the last one has no known end.
        let ends_before = match (needed, logs.get(index + 1)) {
            (None, _) => true,
            (Some(needed), Some(next)) => *next <= needed,
            (Some(_), None) => false,
        };
        if ends_before {
            dir.fs().remove_file(&path(dir, *first)).map_err(checkpoint::CheckpointError::from)?;
        }
    }
    Ok(())
}
