//! Cursors over one memtable or run, the merge of many, and the iterator that users see.

mod merge;
mod user;

use std::sync::Arc;

use crate::cache::Fill;
use crate::error::Result;
use crate::key::{Kind, Seqno};
use crate::memtable::MemtableCursor;
use crate::sstable::TableCursor;
use crate::version::Run;
pub(crate) use merge::MergeCursor;
pub use user::{Iter, IterOptions};

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
        Self::Run(RunCursor { run, fill, at: 0, table: None })
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

    pub fn seek_to_first(&mut self) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.seek_to_first(),
            Self::Run(cursor) => cursor.seek_to_first()?,
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

    /// The first part of a seek to the first entry at or behind this place. It ends before blocks are looked into, which are
    /// not likely to be in a cache of the processor.
    pub fn approach(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        match self {
            Self::Memtable(_) => Ok(()),
            Self::Run(cursor) => cursor.approach(key, seqno),
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

    /// The rest of a seek to the same place.
    pub fn land(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        match self {
            Self::Memtable(cursor) => cursor.seek(key, seqno),
            Self::Run(cursor) => cursor.land(key, seqno)?,
        }
        Ok(())
    }

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

/// A position in a run: the tables one after the other, each opened when the cursor comes to it.
pub(crate) struct RunCursor {
    run: Arc<Run>,
    fill: Fill,
    /// Which table, while there is a cursor in one.
    at: usize,
    table: Option<TableCursor>,
}

impl RunCursor {
    fn valid(&self) -> bool {
        self.table.as_ref().is_some_and(TableCursor::valid)
    }

    fn entry(&self) -> &TableCursor {
        self.table.as_ref().expect("the cursor is on an entry")
    }

    fn key(&self) -> &[u8] {
        self.entry().key()
    }

    fn seqno(&self) -> Seqno {
        self.entry().seqno()
    }

    fn kind(&self) -> Kind {
        self.entry().kind()
    }

    fn value(&self) -> &[u8] {
        self.entry().value()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.first_from(0)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.last_before(self.run.tables.len())
    }

    fn approach(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.table = None;
        self.at = self.run.position(key);
        if let Some(table) = self.run.tables.get(self.at) {
            let mut cursor = table.cursor(self.fill);
            cursor.approach(key, seqno)?;
            self.table = Some(cursor);
        }
        Ok(())
    }

    fn land(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        if let Some(table) = &mut self.table {
            table.land(key, seqno)?;
            if !table.valid() {
                return self.first_from(self.at + 1);
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        if let Some(table) = &mut self.table {
            table.next()?;
            if !table.valid() {
                return self.first_from(self.at + 1);
            }
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(table) = &mut self.table {
            table.prev()?;
            if !table.valid() {
                return self.last_before(self.at);
            }
        }
        Ok(())
    }

    /// To the first entry of the first table from `at` on that has one.
    fn first_from(&mut self, at: usize) -> Result<()> {
        self.table = None;
        for at in at..self.run.tables.len() {
            let mut cursor = self.run.tables[at].cursor(self.fill);
            cursor.seek_to_first()?;
            if cursor.valid() {
                (self.at, self.table) = (at, Some(cursor));
                break;
            }
        }
        Ok(())
    }

    /// To the last entry of the last table before `end` that has one.
    fn last_before(&mut self, end: usize) -> Result<()> {
        self.table = None;
        for at in (0..end).rev() {
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
