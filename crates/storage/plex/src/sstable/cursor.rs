//! A position in a table: the number of a data block, and a cursor in it.

use std::sync::Arc;

use super::Table;
use super::block::BlockCursor;
use super::read_ahead::ReadAhead;
use super::table::HeldPart;
use crate::cache::Fill;
use crate::error::Result;
use crate::key::{Kind, Seqno};

/// See the module. Methods that look at an entry must only be called while it is [`valid`](Self::valid); after an error
/// it is not.
pub(crate) struct TableCursor {
    table: Arc<Table>,
    fill: Fill,
    /// Which block `data` is in.
    at: usize,
    data: BlockCursor,
    held: HeldPart,
    ahead: ReadAhead,
}

impl Table {
    pub fn cursor(self: &Arc<Self>, fill: Fill) -> TableCursor {
        TableCursor::new(self.clone(), fill)
    }
}

impl TableCursor {
    fn new(table: Arc<Table>, fill: Fill) -> Self {
        Self { table, fill, at: 0, data: BlockCursor::default(), held: None, ahead: ReadAhead::default() }
    }

    pub fn valid(&self) -> bool {
        self.data.valid()
    }

    pub fn key(&self) -> &[u8] {
        self.data.key()
    }

    pub fn seqno(&self) -> Seqno {
        self.table.seqno_of(self.data.seqno())
    }

    pub fn kind(&self) -> Kind {
        self.data.kind()
    }

    pub fn value(&self) -> &[u8] {
        self.data.value()
    }

    pub fn seek_to_first(&mut self) -> Result<()> {
        self.data.leave();
        self.first_from(0)
    }

    pub fn seek_to_last(&mut self) -> Result<()> {
        self.data.leave();
        self.last_before(self.table.block_count()?)
    }

    /// The first part of a seek to the first entry at or after this place: finds its block.
    pub fn aim(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.data.leave();
        self.at = self.table.block_before(key, seqno, self.fill, &mut self.held)?;
        if self.fill == Fill::Keep && self.at < self.table.block_count()? {
            self.table.blocks_of(self.at, self.fill, &mut self.held)?.prefetch_place(self.at);
        }
        Ok(())
    }

    /// Asks memory for what [`approach`](Self::approach) looks at first.
    pub fn prefetch_cell(&self) {
        if self.fill == Fill::Keep {
            self.table.prefetch_cell(self.at, &self.held);
        }
    }

    /// The next part, after [`aim`](Self::aim): into the block, on no entry of it.
    pub fn approach(&mut self) -> Result<()> {
        if self.at < self.table.block_count()? {
            self.enter(self.at)?;
            self.data.prefetch_restarts();
        }
        Ok(())
    }

    /// Asks memory for what [`land`](Self::land) looks at first.
    pub fn prefetch_search(&self) {
        self.data.prefetch_search();
    }

    /// See [`Table::note_scan`].
    pub fn note_scan(&self) -> bool {
        self.table.note_scan()
    }

    /// See [`Table::note_deleted`].
    pub fn note_deleted(&self, steps: u64) -> bool {
        self.table.note_deleted(steps)
    }

    /// The rest of a seek that [`aim`](Self::aim) has begun for the same place.
    pub fn land(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        let blocks = self.table.block_count()?;
        while self.at < blocks {
            let moved = self.data.seek(key, seqno);
            self.sound(moved)?;
            if self.data.valid() || self.at + 1 == blocks {
                break;
            }
            self.enter(self.at + 1)?;
        }
        // In the file, the entry has number 0 and is after the place, but its given number is before it.
        if self.table.info.given_seqno > seqno && self.data.valid() && self.data.key() == key {
            return self.next();
        }
        Ok(())
    }

    pub fn next(&mut self) -> Result<()> {
        let moved = self.data.next();
        self.sound(moved)?;
        if self.data.valid() { Ok(()) } else { self.first_from(self.at + 1) }
    }

    pub fn prev(&mut self) -> Result<()> {
        let moved = self.data.prev();
        self.sound(moved)?;
        if self.data.valid() { Ok(()) } else { self.last_before(self.at) }
    }

    /// To the first entry of the first block from this one on that has any.
    fn first_from(&mut self, mut at: usize) -> Result<()> {
        while at < self.table.block_count()? && !self.data.valid() {
            self.enter(at)?;
            let moved = self.data.seek_to_first();
            self.sound(moved)?;
            at += 1;
        }
        Ok(())
    }

    /// To the last entry of the last block before this one that has any.
    fn last_before(&mut self, mut at: usize) -> Result<()> {
        while at > 0 && !self.data.valid() {
            at -= 1;
            self.enter(at)?;
            let moved = self.data.seek_to_last();
            self.sound(moved)?;
        }
        Ok(())
    }

    fn enter(&mut self, at: usize) -> Result<()> {
        self.at = at;
        self.data.enter(self.table.block_on_way(at, self.fill, &mut self.held, &mut self.ahead)?);
        // A scan is likely to continue.
        if self.fill == Fill::Keep {
            self.table.prefetch_cell(at + 1, &self.held);
        }
        Ok(())
    }

    /// After damage, the cursor is nowhere.
    fn sound(&mut self, moved: std::result::Result<(), super::block::Malformed>) -> Result<()> {
        if moved.is_err() {
            self.data.leave();
        }
        self.table.sound(self.at, moved)
    }
}
