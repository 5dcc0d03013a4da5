//! Cursors over one memtable or run, the merge of many, and the iterator that users see.

mod merge;
mod user;
mod within;

use std::sync::Arc;

use crate::cache::Fill;
use crate::error::Result;
use crate::key::{Kind, SEQNO_MAX, Seqno};
use crate::memtable::MemtableCursor;
use crate::range_tombstone::Covers;
use crate::sstable::TableCursor;
use crate::version::Run;
pub(crate) use merge::MergeCursor;
pub use user::{Iter, IterOptions};
pub(crate) use within::Within;

/// One sorted source of entries. Methods that look at an entry must only be called while it is valid; after an error it
/// is not.
pub(crate) enum Source {
    Memtable(MemtableCursor),
    Run(RunCursor),
}

macro_rules! of_source {
    ($self:ident, $cursor:ident => $body:expr) => {
        match $self {
            Source::Memtable($cursor) => $body,
            Source::Run($cursor) => $body,
        }
    };
}

impl Source {
    pub fn run(run: Arc<Run>, fill: Fill) -> Self {
        Self::Run(RunCursor { run, fill, within: None, covers: Covers::default(), at: 0, table: None, is_ahead: false })
    }

    /// The same for a scan that may skip tables. What it does not ask for may be missing.
    /// Nor does it show what the deleted ranges of `covers` hide, where these are newer than all of a table.
    pub fn run_within(run: Arc<Run>, within: Option<Arc<Within>>, covers: Covers) -> Self {
        Self::Run(RunCursor { run, fill: Fill::Keep, within, covers, at: 0, table: None, is_ahead: false })
    }

    pub fn valid(&self) -> bool {
        of_source!(self, cursor => cursor.valid())
    }

    pub fn key(&self) -> &[u8] {
        of_source!(self, cursor => cursor.key())
    }

    pub fn seqno(&self) -> Seqno {
        of_source!(self, cursor => cursor.seqno())
    }

    pub fn kind(&self) -> Kind {
        of_source!(self, cursor => cursor.kind())
    }

    pub fn value(&self) -> &[u8] {
        of_source!(self, cursor => cursor.value())
    }

    /// Whether key and number are not those of an entry but come before the next one's, which was not looked at yet. It
    /// has neither kind nor value, and [`arrive`](Self::arrive) is what comes next.
    pub fn is_ahead(&self) -> bool {
        matches!(self, Self::Run(cursor) if cursor.is_ahead)
    }

    /// From [ahead](Self::is_ahead) of an entry to it.
    pub fn arrive(&mut self) -> Result<()> {
        match self {
            Self::Memtable(_) => Ok(()),
            Self::Run(cursor) => cursor.arrive(),
        }
    }

    /// To the first entry, or ahead of it.
    pub fn seek_to_first(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.seek_to_first(),
            Self::Run(cursor) => cursor.ahead_of(0),
        }
        Ok(())
    }

    pub fn seek_to_last(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.seek_to_last(),
            Self::Run(cursor) => cursor.seek_to_last()?,
        }
        Ok(())
    }

    /// The first part of a seek to the first entry at or after this place. It ends before a look into the block cache,
    /// which is not likely to be in a cache of the processor.
    pub fn aim(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        match self {
            Self::Memtable(_) => Ok(()),
            Self::Run(cursor) => cursor.aim(key, seqno),
        }
    }

    /// Asks memory for what [`approach`](Self::approach) looks at first.
    pub fn prefetch_cell(&self) {
        if let Self::Run(RunCursor { table: Some(table), .. }) = self {
            table.prefetch_cell();
        }
    }

    /// The second part. It ends before blocks are looked into.
    pub fn approach(&mut self) -> Result<()> {
        match self {
            Self::Run(RunCursor { table: Some(table), .. }) => table.approach(),
            _ => Ok(()),
        }
    }

    /// Asks memory for what [`land`](Self::land) looks at first.
    pub fn prefetch_search(&self) {
        if let Self::Run(cursor) = self
            && let Some(table) = &cursor.table
        {
            table.prefetch_search();
        }
    }

    /// Counts a scan in the table that the cursor is in; whether a merge of that table may pay by now.
    pub fn note_scan(&self) -> bool {
        match self {
            Self::Memtable(_) => false,
            Self::Run(cursor) => cursor.table.as_ref().is_some_and(TableCursor::note_scan),
        }
    }

    /// Counts steps over deleted keys in the table that the cursor is in; whether a merge of that table may pay by now.
    pub fn note_deleted(&self, steps: u64) -> bool {
        match self {
            Self::Memtable(_) => false,
            Self::Run(cursor) => cursor.table.as_ref().is_some_and(|table| table.note_deleted(steps)),
        }
    }

    /// The rest of a seek to the same place: to the entry, or ahead of it.
    pub fn land(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.seek(key, seqno),
            Self::Run(cursor) => cursor.land(key, seqno)?,
        }
        Ok(())
    }

    /// To the next entry, or ahead of it.
    pub fn next(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.next(),
            Self::Run(cursor) => cursor.next()?,
        }
        Ok(())
    }

    pub fn prev(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.prev(),
            Self::Run(cursor) => cursor.prev()?,
        }
        Ok(())
    }
}

/// A position in a run: the tables one after the other. Forwards, a table is not looked into before its first key is
/// what comes next: most runs of a tree have nothing where a short scan is.
pub(crate) struct RunCursor {
    run: Arc<Run>,
    fill: Fill,
    within: Option<Arc<Within>>,
    covers: Covers,
    /// Which table, while there is a cursor in one or ahead of one.
    at: usize,
    table: Option<TableCursor>,
    /// Ahead of the table, with no cursor in one.
    is_ahead: bool,
}

impl RunCursor {
    fn valid(&self) -> bool {
        self.is_ahead || self.table.as_ref().is_some_and(TableCursor::valid)
    }

    fn entry(&self) -> &TableCursor {
        self.table.as_ref().expect("the cursor is on an entry")
    }

    fn key(&self) -> &[u8] {
        if self.is_ahead { &self.run.tables[self.at].info.smallest } else { self.entry().key() }
    }

    fn seqno(&self) -> Seqno {
        if self.is_ahead { SEQNO_MAX } else { self.entry().seqno() }
    }

    fn kind(&self) -> Kind {
        self.entry().kind()
    }

    fn value(&self) -> &[u8] {
        self.entry().value()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.last_before(self.run.tables.len())?;
        self.skip_back()
    }

    fn aim(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.ahead_of(self.run.position(key));
        if let Some(table) = self.run.tables.get(self.at).filter(|table| *table.info.smallest <= *key) {
            self.is_ahead = false;
            let mut cursor = table.cursor(self.fill);
            cursor.aim(key, seqno)?;
            self.table = Some(cursor);
        }
        Ok(())
    }

    fn land(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.land_here(key, seqno)?;
        self.skip_forward()
    }

    fn land_here(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        if let Some(table) = &mut self.table {
            table.land(key, seqno)?;
            if !table.valid() {
                self.ahead_of(self.at + 1);
            }
        }
        Ok(())
    }

    /// To the first entry at or after this key, or ahead of it.
    fn seek_here(&mut self, key: &[u8]) -> Result<()> {
        self.aim(key, SEQNO_MAX)?;
        if let Some(table) = &mut self.table {
            table.approach()?;
        }
        self.land_here(key, SEQNO_MAX)
    }

    fn next(&mut self) -> Result<()> {
        if let Some(table) = &mut self.table {
            table.next()?;
            if !table.valid() {
                self.ahead_of(self.at + 1);
            }
        }
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        self.prev_here()?;
        self.skip_back()
    }

    fn prev_here(&mut self) -> Result<()> {
        if self.is_ahead {
            return self.last_before(self.at);
        }
        if let Some(table) = &mut self.table {
            table.prev()?;
            if !table.valid() {
                return self.last_before(self.at);
            }
        }
        Ok(())
    }

    /// From where to where a deleted range hides all of this table, at the current place.
    fn hidden(&self) -> Option<(&[u8], &[u8])> {
        if self.covers.is_empty() || !self.valid() {
            return None;
        }
        self.covers.hides(self.key(), self.run.tables[self.at].seqno_max())
    }

    /// Past what deleted ranges hide. The next table may be newer than they are.
    fn skip_forward(&mut self) -> Result<()> {
        while let Some((_, end)) = self.hidden() {
            if self.run.tables[self.at].info.ends_before(end) {
                self.ahead_of(self.at + 1);
            } else {
                let end = end.to_vec();
                self.seek_here(&end)?;
            }
        }
        Ok(())
    }

    /// Back before what deleted ranges hide. The table before may be newer than they are.
    fn skip_back(&mut self) -> Result<()> {
        while let Some((start, _)) = self.hidden() {
            if *start <= *self.run.tables[self.at].info.smallest {
                self.last_before(self.at)?;
            } else {
                // The current entry is not before the start, so there is an entry to step back from.
                let start = start.to_vec();
                self.seek_here(&start)?;
                self.prev_here()?;
            }
        }
        Ok(())
    }

    /// Ahead of the table at `at`, or of the first after it that is not skipped; nowhere if there is none.
    fn ahead_of(&mut self, mut at: usize) {
        if let Some(within) = &self.within {
            at += self.run.tables[at..].iter().take_while(|table| within.skips(table)).count();
        }
        (self.at, self.table, self.is_ahead) = (at, None, at < self.run.tables.len());
    }

    /// To the first entry of the first table that has one, from the one on that the cursor is ahead of.
    fn arrive(&mut self) -> Result<()> {
        self.is_ahead = false;
        for at in self.at..self.run.tables.len() {
            let mut cursor = self.run.tables[at].cursor(self.fill);
            cursor.seek_to_first()?;
            if cursor.valid() {
                (self.at, self.table) = (at, Some(cursor));
                break;
            }
        }
        self.skip_forward()
    }

    /// To the last entry of the last table before `end` that has one.
    fn last_before(&mut self, end: usize) -> Result<()> {
        (self.table, self.is_ahead) = (None, false);
        for at in (0..end).rev() {
            if let Some(within) = &self.within {
                if within.is_behind(&self.run.tables[at]) {
                    break;
                }
                if within.skips(&self.run.tables[at]) {
                    continue;
                }
            }
            let mut cursor = self.run.tables[at].cursor(self.fill);
            cursor.seek_to_last()?;
            if cursor.valid() {
                (self.at, self.table) = (at, Some(cursor));
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::BlockCache;
    use crate::options::Options;
    use crate::range_tombstone::{Cover, RangeTombstone};
    use crate::sstable::{Table, TableBuilder};
    use std::path::PathBuf;
    use vfs::{FileSystem, OpenOptions, SimFs};

    fn table(fs: &Arc<dyn FileSystem>, number: u64, keys: &[&str], seqno: Seqno) -> Arc<Table> {
        let path = PathBuf::from(format!("/{number}"));
        let mut builder = TableBuilder::new(&**fs, &path, number, Options::new().of_tables(0, None)).unwrap();
        keys.iter().for_each(|key| builder.add(key.as_bytes(), seqno, Kind::Put, b"").unwrap());
        let cache = Arc::new(BlockCache::new(0, 4096));
        let info = builder.finish().unwrap();
        Arc::new(Table::open(fs, &cache, path, number, info, OpenOptions::read()).unwrap())
    }

    /// Tables of one run are of different ages where only some ranges of keys were merged. A deleted range that hides
    /// all of one table may be older than the next: scans used to skip that one as well.
    #[test]
    fn a_skip_ends_with_its_table() {
        let fs: Arc<dyn FileSystem> = Arc::new(SimFs::new(1));
        let (old, new) = (1, 9);
        let ages = [("ab", new), ("cd", old), ("ef", old), ("gh", new), ("ij", old), ("kl", new)];
        let tables = ages.iter().enumerate().map(|(at, (keys, seqno))| {
            let keys: Vec<String> = keys.chars().map(String::from).collect();
            table(&fs, at as u64 + 1, &keys.iter().map(|key| &key[..]).collect::<Vec<_>>(), *seqno)
        });
        let run = Arc::new(Run::new(1, tables.collect()));
        for (start, end, shown) in
            [("a", "z", "abghkl"), ("b", "k", "abghkl"), ("c", "d", "abdefghijkl"), ("d", "f", "abcfghijkl")]
        {
            let range = RangeTombstone { start: start.into(), end: end.into(), seqno: 5 };
            let covers = Covers::new([Arc::new(Cover::new(&[range], 99))].into_iter());
            let mut cursor = MergeCursor::new(vec![Source::run_within(run.clone(), None, covers)]);
            let mut found = String::new();
            cursor.seek_to_first().unwrap();
            while cursor.valid() {
                found.push(char::from(cursor.key()[0]));
                cursor.next().unwrap();
            }
            assert_eq!(found, shown, "{start}..{end}");
            found.clear();
            cursor.seek_to_last().unwrap();
            while cursor.valid() {
                found.insert(0, char::from(cursor.key()[0]));
                cursor.prev().unwrap();
            }
            assert_eq!(found, shown, "{start}..{end} backwards");
            for key in 'a'..='l' {
                cursor.seek(key.to_string().as_bytes(), SEQNO_MAX).unwrap();
                let next = shown.chars().find(|shown| *shown >= key);
                assert_eq!(cursor.valid().then(|| char::from(cursor.key()[0])), next, "{start}..{end} from {key}");
                cursor.seek_before(key.to_string().as_bytes(), SEQNO_MAX).unwrap();
                let last = shown.chars().rfind(|shown| *shown < key);
                assert_eq!(cursor.valid().then(|| char::from(cursor.key()[0])), last, "{start}..{end} before {key}");
            }
        }
    }
}
