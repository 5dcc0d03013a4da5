//! The rows of databases on disk: whether they are whole, and copies of them.

use crate::error::ToolError;
use crate::text::{count, size};
use base::{KeyspaceId, Lsn};
use checkpoint::{DataDir, Name, SetInfo};
use disk::DiskError;
use disk::offline;
use std::path::Path;
use std::sync::Arc;

/// Rows that were read whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whole {
    /// The position up to which they have all changes.
    pub lsn: Lsn,
    pub spaces: Vec<KeyspaceId>,
    pub rows: u64,
    pub bytes: u64,
    pub unused_parts: u64,
}

impl std::fmt::Display for Whole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rows, spaces) =
            (count(self.rows, "row", "rows"), count(self.spaces.len() as u64, "database", "databases"));
        write!(f, "{rows} of {spaces}, {}, as of LSN {}", size(self.bytes), self.lsn)?;
        match self.unused_parts {
            0 => Ok(()),
            unused => write!(f, "; {} that no row has", count(unused, "part", "parts")),
        }
    }
}

/// Reads every row in a directory of the data directory.
///
/// # Errors
/// Damage, or what the system refuses.
pub(crate) fn read(dir: &DataDir, name: Name) -> Result<Whole, DiskError> {
    let mut rows = 0;
    let found = offline::verify(dir.fs(), &dir.file(name), &mut |_, _, _| rows += 1)?;
    let offline::Found { lsn, spaces, bytes, unused_parts } = found;
    Ok(Whole { lsn, spaces, rows, bytes, unused_parts })
}

/// As [`read`], of the copy that belongs to a set: it must be what the manifest says.
///
/// # Errors
/// As [`read`]; or in a sentence why it is another.
pub(crate) fn read_copy(dir: &DataDir, set: &SetInfo) -> Result<Result<Whole, String>, DiskError> {
    let name = Name::RowsOf { set: set.set };
    if !dir.fs().exists(&dir.file(name))? {
        return Ok(Err(format!("{name}: the copy of the rows of checkpoint {} is missing", set.set)));
    }
    let whole = read(dir, name)?;
    Ok(match &set.rows {
        Some(rows) if rows.lsn == whole.lsn && rows.spaces.iter().all(|space| whole.spaces.contains(space)) => {
            Ok(whole)
        }
        _ => Err(format!("{name}: has rows as of LSN {}, and MANIFEST says otherwise", whole.lsn)),
    })
}

/// Puts the copy of the rows of a set into another data directory, as its copy and as its rows, and verifies it.
pub(crate) fn put_copy(
    source: &DataDir,
    target: &DataDir,
    set: &SetInfo,
    links: bool,
    say: &mut dyn FnMut(&str),
) -> Result<(), ToolError> {
    let name = Name::RowsOf { set: set.set };
    let (fs, copy) = (target.fs(), target.file(name));
    let from = source.file(name);
    let copied = offline::copy(fs, &from, &copy, links).map_err(|error| at(&from, error))?;
    // A fault of the copy is a fault of its source or of the disk; either way it does not count.
    match read_copy(target, set).map_err(|error| at(&copy, error))? {
        Ok(whole) => {
            let how = match copied.linked == copied.tables {
                true if copied.tables > 0 => "linked",
                _ => "copied",
            };
            say(&format!("{how} {}: {whole}", copy.display()));
        }
        Err(why) => return Err(ToolError::NotReachable { path: source.path().into(), why }),
    }
    offline::copy(fs, &copy, &target.file(Name::Rows), true).map_err(|error| at(&copy, error))?;
    target.fs().sync_dir(target.path())?;
    Ok(())
}

/// Makes rows without entries in another data directory.
pub(crate) fn put_empty(target: &DataDir, spaces: &[KeyspaceId], lsn: Lsn) -> Result<(), ToolError> {
    let path = target.file(Name::Rows);
    offline::create_empty(target.fs(), &path, spaces, lsn).map_err(|error| at(&path, error))?;
    target.fs().sync_dir(target.path())?;
    Ok(())
}

/// What is known of a directory of rows without reading the rows.
pub(crate) fn look(dir: &DataDir, name: Name) -> Result<offline::Found, DiskError> {
    offline::look(&Arc::clone(dir.fs()), &dir.file(name))
}

/// An error of rows with their directory.
pub(crate) fn at(path: &Path, error: DiskError) -> ToolError {
    ToolError::Rows { path: path.to_owned(), error: Box::new(error) }
}
