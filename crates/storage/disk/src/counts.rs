//! How many rows each shard has: kept with the rows, counted anew where that is of no use.

use crate::parts::{self, Parted};
use crate::{DiskError, RowSpaces, Shards, long_keys};
use base::{KeyspaceId, ShardId, UnixMs};
use engine::{Counts, Row};
use plex::{Db, IterOptions, KeySpaceId};

const VERSION: u8 = 1;

/// The counts of one keyspace, by shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted(Vec<Counts>);

impl Counted {
    pub fn none(shards: u16) -> Self {
        Self(vec![Counts::default(); usize::from(shards)])
    }

    pub fn of(&self, shard: ShardId) -> Counts {
        self.0.get(shard.index()).copied().unwrap_or_default()
    }

    pub fn add(&mut self, shard: ShardId, counts: Counts) {
        if let Some(before) = self.0.get_mut(shard.index()) {
            *before = before.plus(counts);
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend((self.0.len() as u16).to_le_bytes());
        let numbers = self.0.iter().flat_map(|counts| [counts.len, counts.expiring, counts.timed]);
        bytes.extend(numbers.flat_map(i64::to_le_bytes));
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[version, low, high], rest) = bytes.split_first_chunk::<3>()?;
        let (numbers, behind) = rest.as_chunks::<8>();
        let (shards, no_more) = numbers.as_chunks::<3>();
        let is_whole = version == VERSION && behind.is_empty() && no_more.is_empty();
        if !is_whole || shards.len() != usize::from(u16::from_le_bytes([low, high])) {
            return None;
        }
        let counts = shards.iter().map(|numbers| numbers.map(i64::from_le_bytes));
        Some(Self(counts.map(|[len, expiring, timed]| Counts { len, expiring, timed }).collect()))
    }
}

/// The key of a keyspace's counts.
pub fn key_of(space: KeyspaceId) -> [u8; 4] {
    space.0.to_be_bytes()
}

/// The counts of a keyspace as of the last flush.
pub fn load(
    db: &Db,
    counts_space: KeySpaceId,
    space: KeyspaceId,
    rows: &RowSpaces,
    shards: &Shards,
) -> Result<Counted, DiskError> {
    let Some(bytes) = db.get_in(counts_space, &key_of(space))? else { return Ok(Counted::none(shards.count)) };
    let counted = Counted::of_bytes(&bytes).ok_or(DiskError::Counts(space))?;
    if counted.0.len() == usize::from(shards.count) { Ok(counted) } else { count(db, rows, shards) }
}

/// Counts all rows.
fn count(db: &Db, rows: &RowSpaces, shards: &Shards) -> Result<Counted, DiskError> {
    let mut counted = Counted::none(shards.count);
    for pair in db.iter_in(rows.short, IterOptions::range::<'static>(..))? {
        let (key, row) = pair?;
        counted.add((shards.of)(&key), counts_of(&key, &row)?);
    }
    for pair in db.iter_in(rows.long, IterOptions::range::<'static>(..))? {
        let (_, entry) = pair?;
        for (key, row) in long_keys::pairs(&entry).ok_or(DiskError::LongKeys)? {
            counted.add((shards.of)(key), counts_of(key, row)?);
        }
    }
    Ok(counted)
}

/// What a stored row counts for.
fn counts_of(key: &[u8], row: &[u8]) -> Result<Counts, DiskError> {
    figures_of(key, row).map(|(counts, _)| counts)
}

/// What a stored row counts for, and when it expires.
pub fn figures_of(key: &[u8], row: &[u8]) -> Result<(Counts, Option<UnixMs>), DiskError> {
    let row = head_of(key, row)?;
    Ok((row.counts(), row.expire_at))
}

/// A stored row, perhaps without its value.
pub fn head_of<'r>(key: &[u8], row: &'r [u8]) -> Result<Row<'r>, DiskError> {
    let row = if parts::is_parted(row) { Parted::of_key(row, key)?.head } else { row };
    Row::read(row).map_err(|source| DiskError::row(key, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_these_bytes_and_come_back() {
        let mut counted = Counted::none(2);
        counted.add(ShardId(1), Counts { len: 3, expiring: 2, timed: 1 });
        let bytes = counted.to_bytes();
        let number = |number: u8| [&[number][..], &[0; 7]].concat();
        assert_eq!(bytes, [&[1, 2, 0][..], &[0; 24], &number(3), &number(2), &number(1)].concat());
        assert_eq!(Counted::of_bytes(&bytes), Some(counted));
        for other in [&bytes[..bytes.len() - 1], &[&bytes[..], &[0; 24]].concat(), b"", b"\x02\0\0"] {
            assert_eq!(Counted::of_bytes(other), None);
        }
    }
}
