//! Files for people: what a table, a log or a manifest says, a line for each thing.

use std::path::Path;

use crate::batch::Change;
use crate::cache::Fill;
use crate::error::{Error, Result};
use crate::key::Kind;
use crate::key_order::KeyOrder;
use crate::log;
use crate::options::Options;
use crate::sstable::{Table, TableInfo};
use crate::version::manifest;
use crate::version::{TablePlace, VersionEdit};

/// Hands the contents of a table (`*.sst`), a log (`*.wal`) or a manifest to `line`, line by line; of a database's
/// directory, those of the manifest that counts. Nothing is changed, and the database may be open meanwhile.
///
/// # Errors
/// Corruption, with what came before it handed over; a newer format; a file of another kind.
pub fn dump(path: impl AsRef<Path>, options: &Options, mut line: impl FnMut(String)) -> Result<()> {
    let (path, fs) = (path.as_ref(), &options.fs);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.ends_with(".sst") {
        dump_table(path, options, &mut line)
    } else if name.ends_with(".wal") {
        dump_log(path, options, &mut line)
    } else if let Some(number) = name.strip_prefix("MANIFEST-").and_then(|number| number.parse().ok()) {
        dump_manifest(path.parent().unwrap_or(Path::new("")), number, options, &mut line)
    } else if let Some(number) = manifest::current(&**fs, path)? {
        dump_manifest(path, number, options, &mut line)
    } else {
        let what = format!("{} is neither a table nor a log, a manifest or a database's directory", path.display());
        Err(Error::InvalidArgument(what))
    }
}

fn dump_table(path: &Path, options: &Options, line: &mut impl FnMut(String)) -> Result<()> {
    let cache = options.cache();
    let table = Table::open_unnamed(&options.fs, &cache, path.to_owned(), 0, 0)?;
    line(format!("table {}", info(&table.info)));
    for range in table.ranges() {
        line(format!("{} delete-range {} {}", range.seqno, text(&range.start), text(&range.end)));
    }
    let mut cursor = table.cursor(Fill::Pass);
    cursor.seek_to_first()?;
    while cursor.valid() {
        let (seqno, key) = (cursor.seqno(), text(cursor.key()));
        match cursor.kind() {
            Kind::Put => line(format!("{seqno} put {key} {}", text(cursor.value()))),
            Kind::Delete => line(format!("{seqno} delete {key}")),
        }
        cursor.next()?;
    }
    Ok(())
}

fn dump_log(path: &Path, options: &Options, line: &mut impl FnMut(String)) -> Result<()> {
    let end = log::read_file(&*options.fs, path, |offset, batch| {
        let Some((first, batch)) = batch else { return line(format!("{offset}: synced before")) };
        line(format!("{offset}: batch of {}", batch.len()));
        for ((space, change), seqno) in batch.changes().zip(first..) {
            line(match change {
                Change::Put { key, value } => format!("{seqno} {space} put {} {}", text(key), text(value)),
                Change::Delete { key } => format!("{seqno} {space} delete {}", text(key)),
                Change::DeleteRange { start, end } => {
                    format!("{seqno} {space} delete-range {} {}", text(start), text(end))
                }
            });
        }
    })?;
    line(format!("{end}: end of what is sound"));
    Ok(())
}

fn dump_manifest(dir: &Path, number: u64, options: &Options, line: &mut impl FnMut(String)) -> Result<()> {
    for (at, edit) in manifest::read(&*options.fs, dir, number)?.into_iter().enumerate() {
        line(format!("edit {at}"));
        let VersionEdit { database, next_number, last_seqno, wal, flushed_lsn, key_order, .. } = edit;
        let VersionEdit { added, removed, key_spaces, key_space_options, dropped, next_key_space, .. } = edit;
        let numbers = [
            ("database", database),
            ("next number", next_number),
            ("last sequence number", last_seqno),
            ("first log needed", wal.map(|(number, _)| number)),
            ("external log flushed to", flushed_lsn),
            ("next key space", next_key_space.map(u64::from)),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                line(format!("{name} {number}"));
            }
        }
        if key_order == KeyOrder::Hash {
            line("keys after their hashes".into());
        }
        key_spaces.iter().for_each(|(id, name)| line(format!("key space {id} {}", text(name))));
        key_space_options.iter().for_each(|(id, options)| line(format!("options of key space {id} {options:?}")));
        dropped.iter().for_each(|id| line(format!("drop key space {id}")));
        removed.iter().for_each(|at| line(format!("remove {}", place(at))));
        added.iter().for_each(|(at, of)| line(format!("add {} {}", place(at), info(of))));
    }
    Ok(())
}

fn place(place: &TablePlace) -> String {
    let TablePlace { key_space, level, run, number } = place;
    format!("table {number} key space {key_space} level {level} run {run}")
}

fn info(info: &TableInfo) -> String {
    let TableInfo { bytes, entry_count, smallest, largest, given_seqno, .. } = info;
    let under = if *given_seqno > 0 { format!(" all under {given_seqno}") } else { String::new() };
    format!("bytes {bytes} entries {entry_count} from {} to {}{under}", text(smallest), text(largest))
}

/// Bytes for people, so that they can be distinguished.
fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}
