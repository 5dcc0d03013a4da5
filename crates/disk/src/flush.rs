//! One flush: collected from the shards, written at once.

use crate::counts::{self, Counted, counts_of};
use crate::{Disk, DiskError, KEY_BYTES_MAX};
use base::{KeyspaceId, Lsn, ShardId};
use engine::{Counts, Entry, RowSink, write_row};
use parking_lot::Mutex;
use plex::{KeySpaceId, WriteBatch};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of a batch, about.
const BATCH_BYTES: usize = 1 << 20;

/// What a shard has of a keyspace since the flush before.
#[derive(Default)]
struct Part {
    is_cleared: bool,
    /// Rows, or `None` for keys that are gone.
    changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

type Parts = BTreeMap<(KeyspaceId, ShardId), Part>;

/// A flush that collects rows.
pub struct Flush {
    disk: Arc<Disk>,
    parts: Arc<Mutex<Parts>>,
}

impl Flush {
    pub(crate) fn new(disk: Arc<Disk>) -> Self {
        Self { disk, parts: Arc::default() }
    }

    /// What takes the rows of a keyspace in a shard.
    pub fn sink(&self, shard: ShardId, space: KeyspaceId) -> Box<dyn RowSink> {
        self.parts.lock().insert((space, shard), Part::default());
        Box::new(Sink { parts: self.parts.clone(), place: (space, shard) })
    }

    /// Writes all rows that were collected, which hold all changes up to `lsn`. Durable when this returns, with the
    /// counts of each keyspace and shard then. May wait for the device.
    ///
    /// # Errors
    /// [`DiskError`]; the next flush has to bring the same keys (D2).
    pub fn install(self, lsn: Lsn) -> Result<BTreeMap<(KeyspaceId, ShardId), Counts>, DiskError> {
        let (disk, parts) = (&self.disk, std::mem::take(&mut *self.parts.lock()));
        let mut counted = disk.counted.lock().clone();
        let mut batch = WriteBatch::new();
        let cleared: BTreeSet<_> = parts.iter().filter(|(_, part)| part.is_cleared).map(|(place, _)| place.0).collect();
        for space in &cleared {
            if let (Some(rows), Some(counted)) = (disk.spaces.get(space), counted.get_mut(space)) {
                // All shards were cleared at once.
                disk.clear(*rows, &mut batch);
                *counted = Counted::none(disk.shards.count);
            }
        }
        for ((space, shard), part) in &parts {
            let (Some(rows), Some(counted)) = (disk.spaces.get(space), counted.get_mut(space)) else { continue };
            disk.write_part(*rows, *shard, part, counted, &mut batch)?;
        }
        for (space, counted) in &counted {
            batch.put_in(disk.counts_space, &counts::key_of(*space), &counted.to_bytes());
        }
        batch.set_lsn(lsn.0);
        disk.db.write(&batch)?;
        disk.db.flush()?;
        let of = |place: &(KeyspaceId, ShardId)| counted.get(&place.0).map(|counted| counted.of(place.1));
        let installed = parts.keys().map(|place| (*place, of(place).unwrap_or_default())).collect();
        *disk.counted.lock() = counted;
        Ok(installed)
    }
}

impl Disk {
    /// Writes a part, full batches at once and the rest into `batch`; and corrects the counts by what was stored
    /// before. What a clear has deleted counts as not stored.
    fn write_part(
        &self,
        rows: KeySpaceId,
        shard: ShardId,
        part: &Part,
        counted: &mut Counted,
        batch: &mut WriteBatch,
    ) -> Result<(), DiskError> {
        let mut bytes = 0;
        for (key, row) in &part.changes {
            if key.len() > KEY_BYTES_MAX {
                return Err(DiskError::LongKey(key.len()));
            }
            let before = if part.is_cleared { None } else { self.db.get_in(rows, key)? };
            let before = before.map(|row| counts_of(key, &row)).transpose()?.unwrap_or_default();
            let after = row.as_ref().map(|row| counts_of(key, row)).transpose()?.unwrap_or_default();
            counted.add(shard, after.minus(before));
            match row {
                Some(row) => batch.put_in(rows, key, row),
                None => batch.delete_in(rows, key),
            };
            bytes += key.len() + row.as_ref().map_or(0, Vec::len);
            if bytes > BATCH_BYTES {
                self.db.write(batch)?;
                batch.clear();
                bytes = 0;
            }
        }
        Ok(())
    }

    /// Deletes all rows of a keyspace.
    fn clear(&self, rows: KeySpaceId, batch: &mut WriteBatch) {
        let last = [u8::MAX; KEY_BYTES_MAX];
        batch.delete_range_in(rows, &[]..&last);
        batch.delete_in(rows, &last);
    }
}

struct Sink {
    parts: Arc<Mutex<Parts>>,
    place: (KeyspaceId, ShardId),
}

impl Sink {
    fn change(&self, change: impl FnOnce(&mut Part)) {
        if let Some(part) = self.parts.lock().get_mut(&self.place) {
            change(part);
        }
    }
}

impl RowSink for Sink {
    fn clear(&mut self) {
        self.change(|part| part.is_cleared = true);
    }

    fn store(&mut self, entry: &Entry<'_>) {
        let mut row = Vec::new();
        write_row(entry, &mut row);
        self.change(|part| part.changes.push((entry.key.to_vec(), Some(row))));
    }

    fn remove(&mut self, key: &[u8]) {
        self.change(|part| part.changes.push((key.to_vec(), None)));
    }
}
