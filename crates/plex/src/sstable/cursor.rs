//! A position in a table: top index, index block, data block, one cursor each.

use std::sync::Arc;

use super::Table;
use super::block::BlockCursor;
use super::format::Handle;
use crate::cache::Fill;
use crate::error::Result;
use crate::key::{self, Kind, SEQNO_MAX, Seqno};

/// See the module. Methods that look at an entry must only be called while it is [`valid`](Self::valid); after an error
/// it is not.
pub(crate) struct TableCursor {
    table: Arc<Table>,
    fill: Fill,
    top: BlockCursor,
    index: Option<(Handle, BlockCursor)>,
    data: Option<(Handle, BlockCursor)>,
}

/// Which way to go on when a block has no more entries.
#[derive(Clone, Copy)]
enum Way {
    Forward,
    Backward,
}

impl TableCursor {
    pub fn new(table: Arc<Table>, fill: Fill) -> Self {
        let top = BlockCursor::new(table.top_index().1.clone());
        Self { table, fill, top, index: None, data: None }
    }

    pub fn valid(&self) -> bool {
        self.data.as_ref().is_some_and(|(_, data)| data.valid())
    }

    fn entry(&self) -> &BlockCursor {
        &self.data.as_ref().expect("the cursor is on an entry").1
    }

    pub fn key(&self) -> &[u8] {
        self.entry().key()
    }

    pub fn seqno(&self) -> Seqno {
        self.entry().seqno()
    }

    pub fn kind(&self) -> Kind {
        self.entry().kind()
    }

    pub fn value(&self) -> &[u8] {
        self.entry().value()
    }

    pub fn seek_to_first(&mut self) -> Result<()> {
        self.begin();
        let moved = self.top.seek_to_first();
        self.table.sound(self.table.top_index().0, moved)?;
        self.settle(Way::Forward)
    }

    pub fn seek_to_last(&mut self) -> Result<()> {
        self.begin();
        let moved = self.top.seek_to_last();
        self.table.sound(self.table.top_index().0, moved)?;
        self.settle(Way::Backward)
    }

    /// To the first entry at or behind this place in the order of entries.
    pub fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.begin();
        let moved = self.top.seek(key, SEQNO_MAX);
        self.table.sound(self.table.top_index().0, moved)?;
        if !self.top.valid() {
            return Ok(());
        }
        let (handle, mut index) = self.open_index()?;
        self.table.sound(handle, index.seek(key, SEQNO_MAX))?;
        if index.valid() {
            let (handle, mut data) = self.open_data(&index, handle)?;
            self.table.sound(handle, data.seek(key, seqno))?;
            self.data = Some((handle, data));
        }
        self.index = Some((handle, index));
        self.settle(Way::Forward)?;
        // The versions of one key may fill more than one block, and the index knows only keys.
        while self.valid() && key::compare((self.key(), self.seqno()), (key, seqno)).is_lt() {
            self.next()?;
        }
        Ok(())
    }

    pub fn next(&mut self) -> Result<()> {
        self.step(Way::Forward)
    }

    pub fn prev(&mut self) -> Result<()> {
        self.step(Way::Backward)
    }

    fn step(&mut self, way: Way) -> Result<()> {
        let Some((handle, mut data)) = self.data.take() else { return Ok(()) };
        let moved = match way {
            Way::Forward => data.next(),
            Way::Backward => data.prev(),
        };
        self.table.sound(handle, moved)?;
        self.data = Some((handle, data));
        self.settle(way)
    }

    fn begin(&mut self) {
        self.index = None;
        self.data = None;
    }

    fn open_index(&self) -> Result<(Handle, BlockCursor)> {
        let (handle, block) = self.table.block_at(&self.top, self.table.top_index().0, self.fill)?;
        Ok((handle, BlockCursor::new(block)))
    }

    fn open_data(&self, index: &BlockCursor, at: Handle) -> Result<(Handle, BlockCursor)> {
        let (handle, block) = self.table.block_at(index, at, self.fill)?;
        Ok((handle, BlockCursor::new(block)))
    }

    /// Goes on to the next block that has an entry, until one is found or the table ends.
    fn settle(&mut self, way: Way) -> Result<()> {
        while !self.valid() {
            let had_data = self.data.take().is_some();
            match self.index.take() {
                Some((handle, mut index)) => {
                    if had_data {
                        let moved = match way {
                            Way::Forward => index.next(),
                            Way::Backward => index.prev(),
                        };
                        self.table.sound(handle, moved)?;
                    }
                    if index.valid() {
                        let (data_handle, mut data) = self.open_data(&index, handle)?;
                        self.table.sound(data_handle, first(&mut data, way))?;
                        self.index = Some((handle, index));
                        self.data = Some((data_handle, data));
                        continue;
                    }
                    let moved = match way {
                        Way::Forward => self.top.next(),
                        Way::Backward => self.top.prev(),
                    };
                    self.table.sound(self.table.top_index().0, moved)?;
                }
                None if !self.top.valid() => return Ok(()),
                None => {
                    let (handle, mut index) = self.open_index()?;
                    self.table.sound(handle, first(&mut index, way))?;
                    self.index = Some((handle, index));
                }
            }
        }
        Ok(())
    }
}

/// To the block's end at which this way begins.
fn first(cursor: &mut BlockCursor, way: Way) -> std::result::Result<(), super::block::Malformed> {
    match way {
        Way::Forward => cursor.seek_to_first(),
        Way::Backward => cursor.seek_to_last(),
    }
}
