//! Where one merge is split by key, so that several threads can do it.
//!
//! ```text
//!   tables   |---a---:---a---:---a---|      each is read in a few places; between two of them is an equal part of
//!                |--b--:--b--:--b--|         its bytes
//!   parts    [ ......... ) [ ......... )    borders, where the bytes before add up to an equal share
//! ```
//!
//! The borders follow from the tables alone, so every thread splits the same merge the same way, and all versions of a
//! key stay in one part.

use std::sync::Arc;

use crate::error::Result;
use crate::sstable::Table;

/// Places that are looked at in a table, for each part.
const PLACES_PER_PART: usize = 4;

/// The first keys of all parts but the first; at most `parts_max - 1`, and about `part_bytes_min` bytes or more between
/// them.
pub(super) fn borders(tables: &[&Arc<Table>], parts_max: usize, part_bytes_min: u64) -> Result<Vec<Vec<u8>>> {
    let bytes: u64 = tables.iter().map(|table| table.info.bytes).sum();
    let parts = (bytes / part_bytes_min.max(1)).min(parts_max as u64);
    if parts < 2 {
        return Ok(Vec::new());
    }
    let mut places: Vec<(Vec<u8>, u64)> = Vec::new();
    for table in tables {
        // A small table among large ones has little to say.
        let share =
            (table.info.bytes as u128 * parts as u128 * PLACES_PER_PART as u128 / u128::from(bytes.max(1))) as usize;
        let keys = table.keys_inside(share)?;
        let weight = table.info.bytes / (keys.len() as u64 + 1);
        places.extend(keys.into_iter().map(|key| (key, weight)));
    }
    places.sort();
    let all: u64 = places.iter().map(|(_, weight)| weight).sum();
    let (mut borders, mut before) = (Vec::<Vec<u8>>::new(), 0);
    for (key, weight) in places {
        before += weight;
        let is_next = before * parts >= all * (borders.len() as u64 + 1);
        if is_next && (borders.len() as u64) + 1 < parts && borders.last().is_none_or(|last| *last < key) {
            borders.push(key);
        }
    }
    Ok(borders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::BlockCache;
    use crate::key::Kind;
    use crate::sstable::{Compression, Filters, Indexes, TableBuilder, TableOptions};
    use std::path::PathBuf;
    use vfs::{FileSystem, SimFs};

    fn table(fs: &Arc<dyn FileSystem>, number: u64, keys: impl Iterator<Item = u64>) -> Arc<Table> {
        let options = TableOptions {
            block_bytes: 256,
            filter_bits_per_key: 0,
            filters: Filters::Full,
            indexes: Indexes::Full,
            compression: Compression::None,
            prefix_bytes: 0,
            is_direct: false,
            has_times: false,
        };
        let path = PathBuf::from(format!("/{number}"));
        let mut builder = TableBuilder::new(&**fs, &path, number, options).unwrap();
        keys.for_each(|key| builder.add(format!("{key:06}").as_bytes(), 1, Kind::Put, &[7; 40]).unwrap());
        let info = builder.finish().unwrap();
        Arc::new(
            Table::open(fs, &Arc::new(BlockCache::new(0, 256)), path, number, info, vfs::OpenOptions::read()).unwrap(),
        )
    }

    /// Parts are about equal however the keys lie, borders ascend, and little is not split at all.
    #[test]
    fn parts_are_about_equal() {
        let fs: Arc<dyn FileSystem> = Arc::new(SimFs::new(1));
        let even = table(&fs, 1, (0..4000).step_by(2));
        let low = table(&fs, 2, 0..1000);
        let late = table(&fs, 3, (3000..3010).chain(9000..9300));
        for parts in [2, 3, 4, 8] {
            let tables = [&even, &low, &late];
            let borders = borders(&tables, parts, 1 << 10).unwrap();
            assert_eq!(borders.len(), parts - 1);
            assert!(borders.is_sorted_by(|a, b| a < b));
            let number = |key: &Vec<u8>| String::from_utf8_lossy(&key[..6]).parse::<u64>().unwrap();
            let mut counts = vec![0; parts];
            for key in (0..4000).step_by(2).chain(0..1000).chain(3000..3010).chain(9000..9300) {
                counts[borders.iter().filter(|border| number(border) <= key).count()] += 1;
            }
            let share = 3310 / parts;
            assert!(counts.iter().all(|count| (share / 2..2 * share).contains(count)), "{parts}: {counts:?}");
        }
        assert!(borders(&[&even], 4, 1 << 30).unwrap().is_empty() && borders(&[&even], 1, 1).unwrap().is_empty());
    }
}
