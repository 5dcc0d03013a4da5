//! The first reading: every byte is looked at, and nothing is written.

use crate::DATABASES_MAX;
use crate::contents::Contents;
use crate::duplicates::{Keys, Twice};
use crate::error::MigrateError;
use crate::sift::{Fate, Sieve};
use base::UnixMs;
use base::random::Entropy;
use rdb::{Item, RdbError, Reader};
use replication::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::FileSystem;

/// What is to be examined, and with what.
#[derive(Clone, Debug)]
pub struct Examination<'a> {
    /// The file system of all paths.
    pub fs: &'a Arc<dyn FileSystem>,
    /// The file.
    pub file: &'a Path,
    /// What expires at this moment or before is dropped.
    pub now: UnixMs,
    /// Where a file without a name goes when there are too many keys to find those that stand twice in memory: 24 bytes
    /// a key.
    pub scratch: PathBuf,
}

/// Reads all of a file and says what is in it. Blocks for as long as that takes.
///
/// # Errors
/// All of [`MigrateError`] that concern the file but [`MigrateError::Untaken`], which [`Contents::untaken`] returns.
pub fn examine(examination: &Examination<'_>, entropy: &dyn Entropy) -> Result<Contents, MigrateError> {
    let (contents, len) = examine_rdb_part(examination, entropy)?;
    if contents.end.len < len {
        let (path, offset, bytes) = (examination.file.to_owned(), contents.end.len, len - contents.end.len);
        return Err(MigrateError::GoesOn { path, offset, bytes });
    }
    Ok(contents)
}

/// As [`examine`], of a file that may continue after the RDB part; also returns its length.
pub(crate) fn examine_rdb_part(
    examination: &Examination<'_>,
    entropy: &dyn Entropy,
) -> Result<(Contents, u64), MigrateError> {
    let Examination { fs, file, now, ref scratch } = *examination;
    let mut keys = Keys::new(Arc::clone(fs), entropy, scratch.clone());
    let sieve = Sieve::new(now);
    let path = || file.to_owned();

    let (source, len) = Source::open(&**fs, file, 0)?;
    let failed = |error: RdbError, keys| MigrateError::File { path: path(), keys, error };
    let mut reader = Reader::new(source, Some(len)).map_err(|error| failed(error, 0))?.keeping_lzf();
    let mut contents = Contents::new(reader.version(), reader.dialect());
    while let Some(item) = reader.next_item().map_err(|error| failed(error, contents.keys()))? {
        match item {
            Item::Aux { name, value } => contents.remark(&name, &value),
            Item::Function(source) => contents.library(&source),
            Item::ModuleAux(module) => *contents.untaken.module_data.entry(module).or_default() += 1,
            Item::SlotImport { .. } => contents.untaken.slot_imports += 1,
            Item::Entry(mut entry) => {
                if entry.db >= DATABASES_MAX {
                    let (offset, db, databases) = (entry.offset, entry.db, DATABASES_MAX);
                    return Err(MigrateError::Database { path: path(), offset, db, databases });
                }
                let (fate, dropped_fields) = sieve.sift(&mut entry);
                if fate == Fate::Taken {
                    keys.add(entry.db, &entry.key, entry.offset)?;
                }
                contents.entry(&entry, reader.offset() - entry.offset, fate, dropped_fields);
            }
            // Hints.
            _ => {}
        }
    }
    if let Some(end) = reader.end() {
        contents.end = end;
    }
    match keys.find_twice()? {
        Some(Twice { first, second }) => Err(MigrateError::Duplicate { path: path(), first, second }),
        None => Ok((contents, len)),
    }
}
