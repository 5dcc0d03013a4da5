//! Names of a keyspace's rows in order, those of all shards.
//!
//! The key space `e` has them in this order. Those of `l`, which are above 65,535 bytes, are in the order of their
//! hashes: each walk reads all of these, and puts them in between.

use crate::{DiskError, RowSpaces, ShardOf, counts, long_keys};
use base::UnixMs;
use engine::{Names, RowName, Type};
use plex::{Db, IterOptions};

struct LongName {
    name: Vec<u8>,
    kind: Type,
    expire_at: Option<UnixMs>,
}

/// See [`engine::Rows::names`].
pub fn visit(
    db: &Db,
    spaces: &RowSpaces,
    shard_of: &ShardOf,
    range: &Names,
    visit: &mut dyn FnMut(RowName<'_>) -> bool,
) -> Result<(), DiskError> {
    let mut long = long_names(db, spaces, range)?.into_iter().peekable();
    let mut show = |name: &[u8], kind, expire_at| visit(RowName { shard: shard_of(name), name, kind, expire_at });
    let mut rows = db.iter_in(spaces.short, IterOptions::range(range.bounds()))?;
    if range.is_reversed() {
        rows.seek_to_last()?
    } else {
        rows.seek_to_first()?
    }
    while let Some((name, row)) = rows.entry() {
        while let Some(long) = long.next_if(|long| range.is_before(&long.name, name)) {
            if !show(&long.name, long.kind, long.expire_at) {
                return Ok(());
            }
        }
        let row = counts::head_of(name, row)?;
        if !show(name, row.kind, row.expire_at) {
            return Ok(());
        }
        if range.is_reversed() { rows.step_back()? } else { rows.step_forward()? }
    }
    let _ = long.all(|long| show(&long.name, long.kind, long.expire_at));
    Ok(())
}

fn long_names(db: &Db, spaces: &RowSpaces, range: &Names) -> Result<Vec<LongName>, DiskError> {
    let mut found = Vec::new();
    for pair in db.iter_in(spaces.long, IterOptions::default())? {
        let (_, entry) = pair?;
        for (name, row) in long_keys::pairs(&entry).ok_or(DiskError::LongKeys)? {
            if range.contains(name) {
                let row = counts::head_of(name, row)?;
                found.push(LongName { name: name.to_vec(), kind: row.kind, expire_at: row.expire_at });
            }
        }
    }
    found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    if range.is_reversed() {
        found.reverse();
    }
    Ok(found)
}
