//! Taking sorted files from outside into the database.
//!
//! ```text
//!   files verified -> memory flushed -> writers held: rest flushed, files named or copied -> manifest -> published
//! ```
//!
//! A file that the policy would not cut gets a second name in the database's directory, and the manifest the number
//! that its entries count under. Others, and those of another file system, are copied.
//!
//! I1. All that was written before is in tables when the files' manifest edit counts, so a crash leaves a prefix (P2).
//! I2. The files' entries get one sequence number, above all that was written, in a run that is newer than all others.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use vfs::OpenOptions;

use super::Inner;
use super::maintain::Cause;
use super::write::no_key_space;
use crate::KeySpaceId;
use crate::cache::Fill;
use crate::compaction::{self, OutputSettings};
use crate::error::{Error, Result};
use crate::iter::{MergeCursor, Source};
use crate::key::SEQNO_MAX;
use crate::key_order::KeyOrder;
use crate::sstable::{Table, TableInfo};
use crate::stats::Counters;
use crate::version::{Run, TablePlace};

impl Inner {
    pub(super) fn ingest(&self, space: KeySpaceId, paths: &[PathBuf]) -> Result<()> {
        if self.key_order == KeyOrder::Hash {
            return Err(Error::Unsupported("sorted files do not fit keys that are kept by their hashes".into()));
        }
        if !self.has_key_space(space.0) {
            return Err(no_key_space(space.0));
        }
        if self.key_spaces.read().has_times(space.0) {
            let what = "sorted files have no times of writes, as values of a key space with a time to live do";
            return Err(Error::Unsupported(what.into()));
        }
        let files = self.open_sorted(paths)?;
        if files.is_empty() {
            return Ok(());
        }
        let _flushing = self.flushing.lock();
        self.resume_flushing()?;
        // Most of what is in memory, while writers continue.
        self.switch_memtable()?;
        while let Some(wal) = self.flush_one()? {
            let old = self.forget_wals_before(&mut self.writer.lock(), wal);
            self.remove_wals(&old);
        }
        let mut writer = self.writer.lock();
        self.check_writable()?;
        if writer.dropping.contains(&space.0) {
            return Err(no_key_space(space.0));
        }
        if !self.state.read().memtable.is_empty() {
            self.switch(&mut writer)?;
        }
        // I1.
        while let Some(wal) = self.flush_one()? {
            self.remove_wals(&self.forget_wals_before(&mut writer, wal));
        }
        let seqno = writer.next_seqno;
        if seqno > SEQNO_MAX {
            return Err(Error::InvalidArgument("the sequence numbers are used up".into()));
        }
        let shape = self.flush_shape(&self.state().version, space.0);
        let run = self.number();
        let to = TablePlace { key_space: space.0, level: 0, run, number: 0 };
        let outcome = self.writing_tables(|settings| {
            let (mut named, mut copied) = (Vec::new(), Vec::new());
            for file in files {
                let name = shape.keeps_whole(&file.info).then(|| self.name_as_table(settings, &file));
                match name.flatten() {
                    Some(number) => {
                        let info = TableInfo { given_seqno: seqno, ..file.info.clone() };
                        named.push((TablePlace { number, ..to }, info));
                    }
                    None => copied.push(file),
                }
            }
            let cursor = MergeCursor::new(vec![Source::run(Arc::new(Run::new(run, copied)), Fill::Pass)]);
            let mut outcome = compaction::renumber(settings, cursor, seqno, space.0, run, &shape)?;
            outcome.edit.added.extend(named);
            Ok(outcome)
        })?;
        Counters::add(&self.counters.ingest_bytes, outcome.bytes_written);
        self.install(outcome.edit, Cause::TakenIn)?;
        writer.next_seqno = seqno + 1;
        self.visible.fetch_max(seqno, Ordering::AcqRel);
        drop(writer);
        self.bell.ring();
        Ok(())
    }

    /// Gives the file a second name, as a table; `None` where that cannot be done, and it must be copied.
    fn name_as_table(&self, settings: &OutputSettings<'_>, file: &Table) -> Option<u64> {
        let (fs, (number, _, path)) = (&*self.options.fs, (settings.next_table)());
        fs.hard_link(file.path(), &path).ok()?;
        // The program that brought the file here may not have synced it.
        let synced = fs.open(&path, OpenOptions::read()).and_then(|file| file.sync_all());
        if synced.is_err() {
            let _ = fs.remove_file(&path);
        }
        synced.ok().map(|()| number)
    }

    /// The files that are not empty, verified and in the order of their keys.
    fn open_sorted(&self, paths: &[PathBuf]) -> Result<Vec<Arc<Table>>> {
        let mut tables = Vec::new();
        for path in paths {
            let table = Table::open_unnamed(&self.options.fs, &self.cache, path.clone(), self.number(), 0)?;
            table.verify()?;
            if table.seqno_max() != 0 || table.tombstone_count() != 0 {
                return Err(not_ingestible(path, "it is a table of a database, and no sorted file"));
            }
            if table.info.entry_count > 0 {
                tables.push(table);
            }
        }
        tables.sort_by(|a, b| a.info.smallest.cmp(&b.info.smallest));
        match tables.windows(2).find(|pair| pair[0].info.overlaps(&pair[1].info)) {
            Some(pair) => Err(not_ingestible(pair[1].path(), "its keys overlap another file's")),
            None => Ok(tables),
        }
    }
}

fn not_ingestible(path: &Path, what: &str) -> Error {
    Error::InvalidArgument(format!("{}: {what}", path.display()))
}
