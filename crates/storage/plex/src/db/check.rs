//! Reading everything of a closed database, to name all that is damaged and not only what is met first.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use super::found::{Files, Found, LogContents};
use super::recover::{self, Opening};
use super::table_path;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::sstable::Table;
use crate::version::manifest;

/// Damage found so far.
#[derive(Default)]
pub(super) struct Damages(pub Vec<Error>);

impl Damages {
    /// Notes corruption, for which there is no value; passes other errors on.
    pub fn note<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_corruption() => {
                self.0.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads every file of the closed database in this directory whole, and returns everything that is damaged or missing;
/// nothing is changed. Empty is sound: it opens with all that was durable.
///
/// # Errors
/// [`vfs::FsError::Locked`] if it is open; invalid argument, if there is no database; a newer format; a file that
/// cannot be read.
pub fn check(dir: impl AsRef<Path>, options: &Options) -> Result<Vec<Error>> {
    let (dir, fs) = (dir.as_ref(), &options.fs);
    let chooser =
        options.policy.chooser(options.memtable_bytes as u64, options.table_bytes).map_err(Error::InvalidArgument)?;
    let _lock = fs.try_lock(&dir.join("LOCK"))?;
    let files = Files::list(&**fs, dir)?;
    if files.number_max() == 0 && manifest::current(&**fs, dir)?.is_none() {
        return Err(Error::InvalidArgument(format!("{} holds no database", dir.display())));
    }
    let cache = options.cache();
    let mut damages = Damages::default();
    let Some(found) = damages.note(read_manifest(options, dir))? else {
        for number in &files.tables {
            let table = Table::open_unnamed(fs, &cache, table_path(dir, *number), *number, 0);
            damages.note(table.and_then(|table| table.verify()))?;
        }
        return Ok(damages.0);
    };
    let next_number = AtomicU64::new(found.next_number);
    let opening = Opening { dir, options, chooser: &*chooser, cache: &cache, found, next_number };
    damages.note(opening.check_complete(&files))?;
    for (number, (_, info)) in &opening.found.tables {
        damages.note(opening.open_table(*number, info).and_then(|table| table.verify()))?;
    }
    let logs = opening.needed_logs(&files);
    damages.note(logs.and_then(|logs| opening.read_logs(&logs, &mut LogContents::default())))?;
    Ok(damages.0)
}

/// What the manifest that counts adds up to.
///
/// # Errors
/// Corruption, also when there is none.
pub(super) fn read_manifest(options: &Options, dir: &Path) -> Result<Found> {
    let Some(number) = manifest::current(&*options.fs, dir)? else {
        return Err(Error::corruption(&dir.join(manifest::CURRENT), 0, "the file is missing"));
    };
    recover::fold(dir, number, manifest::read(&*options.fs, dir, number)?)
}
