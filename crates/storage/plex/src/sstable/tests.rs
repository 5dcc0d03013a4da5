//! Tables as a whole: written, read back, damaged.

use std::path::Path;
use std::sync::Arc;

use base::Rng;
use vfs::{FileSystem, OpenOptions, SimFs};

use super::*;
use crate::cache::{BlockCache, Fill};
use crate::key::{self, Kind, Seqno};
use crate::range_tombstone::RangeTombstone;

type Entry = (Vec<u8>, Seqno, Kind, Vec<u8>);

const PATH: &str = "/table";

fn write(fs: &dyn FileSystem, entries: &[Entry], ranges: &[RangeTombstone], block_bytes: usize) -> TableInfo {
    write_packed(fs, entries, ranges, block_bytes, Compression::None, Filters::Full, Indexes::Full)
}

fn write_packed(
    fs: &dyn FileSystem,
    entries: &[Entry],
    ranges: &[RangeTombstone],
    block_bytes: usize,
    compression: Compression,
    filters: Filters,
    indexes: Indexes,
) -> TableInfo {
    // Many partitions.
    let filter_bits_per_key = if filters == Filters::Full { 16 } else { 64 };
    let options = TableOptions {
        block_bytes,
        filter_bits_per_key,
        filters,
        indexes,
        compression,
        prefix_bytes: 0,
        is_direct: false,
        has_times: false,
    };
    let mut builder = TableBuilder::new(fs, Path::new(PATH), 0x1122_3344_5566_7788, options).unwrap();
    for (key, seqno, kind, value) in entries {
        builder.add(key, *seqno, *kind, value).unwrap();
    }
    ranges.iter().for_each(|range| builder.add_range(range.clone()));
    builder.finish().unwrap()
}

fn open(fs: &SimFs, info: &TableInfo) -> crate::Result<Arc<Table>> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    Table::open(&fs, &Arc::new(BlockCache::new(0, 4096)), PATH.into(), 1, info.clone(), OpenOptions::read())
        .map(Arc::new)
}

fn random_entries(rng: &mut Rng, count: u64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = (1..=count)
        .map(|seqno| {
            let kind = if rng.one_in(8) { Kind::Delete } else { Kind::Put };
            let len = if kind == Kind::Put { rng.below(40) } else { 0 };
            (rng.below(count).to_string().into_bytes(), seqno, kind, vec![seqno as u8; len as usize])
        })
        .collect();
    entries.sort_by(|a, b| key::compare((&a.0, a.1), (&b.0, b.1)));
    entries
}

fn here(cursor: &TableCursor) -> Option<Entry> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.seqno(), cursor.kind(), cursor.value().to_vec()))
}

/// Walks, seeks and look-ups agree with the list the table was made from, for one block, many, and many index blocks.
#[test]
fn agrees_with_a_sorted_list() {
    let mut rng = Rng::new(11);
    let sizes = [(0, 64), (1, 64), (300, 64), (3000, 100), (3000, 4096)];
    for ((count, block_bytes), (compression, filters, indexes)) in sizes.into_iter().flat_map(|size| {
        let kinds = [
            (Compression::None, Filters::Full, Indexes::Full),
            (Compression::Lz4, Filters::Partitioned, Indexes::Full),
            (Compression::Zstd { level: 1 }, Filters::Full, Indexes::Partitioned),
            (Compression::None, Filters::Partitioned, Indexes::Partitioned),
        ];
        kinds.map(|kind| (size, kind))
    }) {
        let fs = SimFs::new(1);
        let entries = random_entries(&mut rng, count);
        let info = write_packed(&fs, &entries, &[], block_bytes, compression, filters, indexes);
        let table = open(&fs, &info).unwrap();
        assert_eq!(info.bytes, fs.metadata(Path::new(PATH)).unwrap().len);
        let mut cursor = table.cursor(Fill::Keep);
        cursor.seek_to_first().unwrap();
        for entry in &entries {
            assert_eq!(here(&cursor).as_ref(), Some(entry));
            cursor.next().unwrap();
        }
        assert!(!cursor.valid());
        cursor.seek_to_last().unwrap();
        for entry in entries.iter().rev() {
            assert_eq!(here(&cursor).as_ref(), Some(entry));
            cursor.prev().unwrap();
        }
        assert!(!cursor.valid());
        for _ in 0..500 {
            let (key, seqno) = (rng.below(count + 10).to_string().into_bytes(), rng.below(count + 2));
            let at = entries.partition_point(|e| key::compare((&e.0, e.1), (&key, seqno)).is_lt());
            cursor.aim(&key, seqno).and_then(|()| cursor.approach()).unwrap();
            cursor.land(&key, seqno).unwrap();
            assert_eq!(here(&cursor).as_ref(), entries.get(at));
            let found = table.get(&key, seqno, &Probe::new(key::hash(&key))).unwrap();
            let expected = entries.get(at).filter(|e| e.0 == key).map(|e| (e.1, e.2, e.3.clone()));
            assert_eq!(found, expected);
            if cursor.valid() {
                cursor.prev().unwrap();
                assert_eq!(here(&cursor).as_ref(), at.checked_sub(1).map(|at| &entries[at]));
            }
        }
        let distinct = entries.iter().map(|e| &e.0).collect::<std::collections::BTreeSet<_>>().len() as f64;
        assert!((table.sketch().estimate() - distinct).abs() <= 1.0 + distinct * 0.05);
    }
}

/// Deleted ranges widen the bounds, and the end of one is not part of the table.
#[test]
fn bounds_with_deleted_ranges() {
    let range = |start: &str, end: &str| RangeTombstone { start: start.into(), end: end.into(), seqno: 9 };
    let entry = |key: &str| (key.as_bytes().to_vec(), 1, Kind::Put, vec![]);
    for (entries, ranges, smallest, largest, excluded) in [
        (vec![entry("b"), entry("c")], vec![], "b", "c", false),
        (vec![entry("b"), entry("c")], vec![range("a", "c")], "a", "c", false),
        (vec![entry("b"), entry("c")], vec![range("c", "d")], "b", "d", true),
        (vec![], vec![range("x", "y"), range("v", "x")], "v", "y", true),
    ] {
        let fs = SimFs::new(1);
        let info = write(&fs, &entries, &ranges, 64);
        assert_eq!((&*info.smallest, &*info.largest), (smallest.as_bytes(), largest.as_bytes()));
        assert_eq!(info.largest_is_excluded, excluded);
        assert_eq!(open(&fs, &info).unwrap().ranges(), ranges);
    }
}

/// Every bit of a small table, flipped: an error that names the file, or the right answer; never a wrong one.
#[test]
fn every_flipped_bit_is_noticed() {
    every_flipped_bit_of(Compression::None, Filters::Full, Indexes::Full);
    every_flipped_bit_of(Compression::Lz4, Filters::Partitioned, Indexes::Full);
    every_flipped_bit_of(Compression::Zstd { level: 1 }, Filters::Full, Indexes::Partitioned);
}

fn every_flipped_bit_of(compression: Compression, filters: Filters, indexes: Indexes) {
    let mut rng = Rng::new(3);
    let entries = random_entries(&mut rng, 40);
    let fs = SimFs::new(1);
    let ranges = [RangeTombstone { start: b"1".to_vec(), end: b"2".to_vec(), seqno: 41 }];
    let info = write_packed(&fs, &entries, &ranges, 512, compression, filters, indexes);
    let plain = write(&SimFs::new(1), &entries, &ranges, 512);
    assert_eq!(info.bytes < plain.bytes, compression != Compression::None);
    let read_all = |fs: &SimFs| -> crate::Result<Vec<Entry>> {
        let table = open(fs, &info)?;
        table.verify()?;
        assert_eq!(table.ranges(), ranges);
        let (mut cursor, mut all) = (table.cursor(Fill::Keep), Vec::new());
        cursor.seek_to_first()?;
        while let Some(entry) = here(&cursor) {
            all.push(entry);
            cursor.next()?;
        }
        Ok(all)
    };
    assert_eq!(read_all(&fs).unwrap(), entries);
    for offset in 0..info.bytes {
        for bit in 0..8 {
            fs.flip_bit(Path::new(PATH), offset, bit).unwrap();
            let error = read_all(&fs).expect_err("a flipped bit is noticed");
            assert!(error.is_corruption() && error.to_string().contains(PATH), "{offset}.{bit}: {error}");
            fs.flip_bit(Path::new(PATH), offset, bit).unwrap();
        }
    }
}

/// The footer of a later release is refused as such.
#[test]
fn a_newer_format_is_refused() {
    let fs = SimFs::new(1);
    let info = write(&fs, &[], &[], 64);
    let footer_at = info.bytes - format::FOOTER_LEN as u64;
    let mut footer = fs.contents()[Path::new(PATH)][footer_at as usize..].to_vec();
    footer[32] = 6;
    let crc = format::checksum(info.identity, footer_at, &footer[..36]);
    footer[36..40].copy_from_slice(&crc.to_le_bytes());
    fs.damage(Path::new(PATH), footer_at, &footer).unwrap();
    let error = open(&fs, &info).unwrap_err();
    assert!(matches!(error, crate::Error::NewerFormat { found: 6, supported: 5, .. }), "{error}");
}

/// Partitions of a filter turn strangers away, keep members, and are read through the cache, where one is enough for
/// many keys.
#[test]
fn partitions_are_read_when_they_are_needed() {
    let fs = SimFs::new(1);
    let entries: Vec<Entry> =
        (0..20_000u64).map(|i| (format!("{:06}", 2 * i).into_bytes(), 1, Kind::Put, vec![7; 20])).collect();
    let info = write_packed(&fs, &entries, &[], 1024, Compression::None, Filters::Partitioned, Indexes::Full);
    let fs: Arc<dyn FileSystem> = Arc::new(fs);
    let cache = Arc::new(BlockCache::new(16 << 20, 1024));
    let table = Table::open(&fs, &cache, PATH.into(), 1, info, OpenOptions::read()).unwrap();
    assert!(table.filter_bytes() < 2000, "{}", table.filter_bytes());
    let get = |i: u64| {
        let key = format!("{i:06}").into_bytes();
        table.get(&key, 9, &Probe::new(key::hash(&key))).unwrap().is_some()
    };
    // In steps of one, strangers between members: of the data blocks hardly any is read.
    assert!((1..40_000).step_by(2).all(|i| !get(i)));
    let (_, misses) = cache.hits_and_misses();
    assert!(misses < 60, "{misses} for 40 partitions");
    assert!((0..40_000).step_by(2).all(get));
}

/// Of an index in parts memory keeps little, a part is read once for many keys, and versions of one key over several
/// parts are distinguished by their numbers, in few reads.
#[test]
fn parts_of_an_index_are_read_when_they_are_needed() {
    let fs = SimFs::new(1);
    let versions = (1..=4000u64).rev().map(|seqno| (b"005001".to_vec(), seqno, Kind::Put, vec![seqno as u8; 20]));
    let entry = |i: u64| (format!("{i:06}").into_bytes(), 1, Kind::Put, vec![7; 20]);
    let entries: Vec<Entry> =
        (0..=5000).step_by(2).map(entry).chain(versions).chain((5002..20_000).step_by(2).map(entry)).collect();
    let sizes = [Indexes::Full, Indexes::Partitioned].map(|indexes| {
        let fs = SimFs::new(1);
        let info = write_packed(&fs, &entries, &[], 256, Compression::None, Filters::Full, indexes);
        let table = open(&fs, &info).unwrap();
        table.cursor(Fill::Pass).seek_to_first().unwrap();
        table.index_bytes()
    });
    assert!(sizes[1] * 4 < sizes[0], "{sizes:?}");
    let info = write_packed(&fs, &entries, &[], 256, Compression::None, Filters::Full, Indexes::Partitioned);
    let fs: Arc<dyn FileSystem> = Arc::new(fs);
    let cache = Arc::new(BlockCache::new(16 << 20, 256));
    let table = Table::open(&fs, &cache, PATH.into(), 1, info, OpenOptions::read()).unwrap();
    let get = |key: u64, seqno| {
        let key = format!("{key:06}").into_bytes();
        table.get(&key, seqno, &Probe::new(key::hash(&key))).unwrap()
    };
    let misses_before = |look: &dyn Fn()| {
        let (_, before) = cache.hits_and_misses();
        look();
        cache.hits_and_misses().1 - before
    };
    for seqno in [4000, 3999, 2000, 77, 1] {
        let misses = misses_before(&|| {
            assert_eq!(get(5001, seqno), Some((seqno, Kind::Put, vec![seqno as u8; 20])));
        });
        // Parts and blocks are halved: of five hundred blocks few are read.
        assert!(misses < 40, "{misses}");
    }
    assert!(get(5001, 0).is_none() && get(5003, 9).is_none() && get(30_000, 9).is_none());
    for i in (0..20_000).step_by(2) {
        assert_eq!(get(i, 9), Some((1, Kind::Put, vec![7; 20])), "{i}");
    }
    assert_eq!(misses_before(&|| (0..20_000).step_by(2).for_each(|i| drop(get(i, 9)))), 0);
    Arc::new(table).verify().unwrap();
}

/// The bytes of a table are those of the format's page.
#[test]
fn golden_file() {
    let fs = SimFs::new(1);
    let entries: Vec<Entry> =
        [("apple", 3, Kind::Put, "red"), ("apple", 1, Kind::Put, "green"), ("apricot", 4, Kind::Delete, "")]
            .map(|(k, s, kind, v)| (k.as_bytes().to_vec(), s, kind, v.as_bytes().to_vec()))
            .to_vec();
    let ranges = [RangeTombstone { start: b"b".to_vec(), end: b"d".to_vec(), seqno: 5 }];
    write(&fs, &entries, &ranges, 4096);
    crate::golden::compare("sstable-1", &fs.contents()[Path::new(PATH)]);
    let fs = SimFs::new(1);
    write_packed(&fs, &entries, &ranges, 4096, Compression::None, Filters::Partitioned, Indexes::Full);
    crate::golden::compare("sstable-2", &fs.contents()[Path::new(PATH)]);
    let fs = SimFs::new(1);
    write_packed(&fs, &entries, &ranges, 64, Compression::None, Filters::Full, Indexes::Partitioned);
    crate::golden::compare("sstable-3", &fs.contents()[Path::new(PATH)]);
    let fs = SimFs::new(1);
    let options = TableOptions {
        block_bytes: 4096,
        filter_bits_per_key: 16,
        filters: Filters::Full,
        indexes: Indexes::Full,
        compression: Compression::None,
        prefix_bytes: 2,
        is_direct: false,
        has_times: false,
    };
    let long = vec![b'x'; 600];
    let plain = TableOptions { prefix_bytes: 0, ..options };
    let mut builder = TableBuilder::new(&fs, Path::new(PATH), 0x1122_3344_5566_7788, plain).unwrap();
    [("a", &b"1"[..]), ("b", &b"2"[..]), ("c", &long[..])]
        .iter()
        .for_each(|(key, value)| builder.add(key.as_bytes(), 1, Kind::Put, value).unwrap());
    let table = open(&fs, &builder.finish().unwrap()).unwrap();
    assert!(table.sample().share(|hash| hash == key::hash(b"c")) > 0.9 && table.knows_keys());
    crate::golden::compare("sstable-4", &fs.contents()[Path::new(PATH)]);
    let fs = SimFs::new(1);
    let mut builder = TableBuilder::new(&fs, Path::new(PATH), 0x1122_3344_5566_7788, options).unwrap();
    entries.iter().for_each(|(key, seqno, kind, value)| builder.add(key, *seqno, *kind, value).unwrap());
    let table = open(&fs, &builder.finish().unwrap()).unwrap();
    let knows = |prefix: &[u8]| table.may_have_prefix(prefix.len(), &Probe::new(key::hash(prefix)));
    assert!(knows(b"ap") && !knows(b"aq") && !knows(b"bp") && knows(b"apx"), "of other lengths it knows nothing");
    crate::golden::compare("sstable-2-prefixes", &fs.contents()[Path::new(PATH)]);
    let fs = SimFs::new(1);
    let timed = TableOptions { has_times: true, ..plain };
    let mut builder = TableBuilder::new(&fs, Path::new(PATH), 0x1122_3344_5566_7788, timed).unwrap();
    for (key, written_ms) in [(b"a", 5000), (b"b", 4000), (b"c", 6000)] {
        let mut value = b"value".to_vec();
        crate::expiry::put_time(&mut value, written_ms);
        builder.add(key, 1, Kind::Put, &value).unwrap();
    }
    builder.add(b"d", 2, Kind::Delete, b"").unwrap();
    assert_eq!(open(&fs, &builder.finish().unwrap()).unwrap().times(), Some((4000, 6000)));
    crate::golden::compare("sstable-5", &fs.contents()[Path::new(PATH)]);
}
