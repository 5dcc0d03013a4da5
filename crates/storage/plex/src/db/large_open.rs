//! A database of very many tables, as a terabyte of small ones would be: the metadata of all, and files of a few.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Rng;
use vfs::{FileSystem, SimFs};

use super::{identity, table_path};
use crate::compaction::Now;
use crate::key::Kind;
use crate::options::{Background, Options};
use crate::sstable::{Summary, TableBuilder, TableInfo};
use crate::version::manifest::{self, Manifest};
use crate::version::{TablePlace, VersionEdit};

const DIR: &str = "/db";

/// Runs that lie over each range, the last one included.
const RUNS: u64 = 20;

/// Ranges of which the tables are files with entries.
const WHOLE_RANGES: u64 = 3;

/// A table of 1 MiB.
const TABLE_BYTES: u64 = 1 << 20;

const DATABASE: u64 = 77;

fn key(range: u64, run: u64) -> Vec<u8> {
    format!("{range:08}-{run:02}").into_bytes()
}

fn options(fs: &SimFs) -> Options {
    Options::new().file_system(Arc::new(fs.clone())).background(Background::Manual).memtable_bytes(8 << 20)
}

/// A table with a key of its run, between others that all runs have.
fn write_table(fs: &SimFs, range: u64, place: &TablePlace) -> TableInfo {
    let path = table_path(Path::new(DIR), place.number);
    let of_tables = options(fs).of_tables(place.level, None);
    // Tables of the last run that are tiny would be merged into one.
    let last = vec![7; if place.level > 0 { 600 << 10 } else { 1 }];
    let mut builder = TableBuilder::new(fs, &path, identity(DATABASE, place.number), of_tables).unwrap();
    builder.add(&format!("{range:08}-").into_bytes(), place.number, Kind::Put, b"first").unwrap();
    builder.add(&key(range, place.run), place.number, Kind::Put, &place.run.to_le_bytes()).unwrap();
    builder.add(&format!("{range:08}-z").into_bytes(), place.number, Kind::Put, &last).unwrap();
    builder.finish().unwrap()
}

/// What a manifest says of a table.
fn modelled(range: u64, place: &TablePlace) -> TableInfo {
    TableInfo {
        identity: identity(DATABASE, place.number),
        bytes: TABLE_BYTES,
        entry_count: 10_000,
        smallest: format!("{range:08}-").into_bytes(),
        largest: format!("{range:08}-z").into_bytes(),
        summary: Some(Summary {
            user_bytes: TABLE_BYTES - TABLE_BYTES / 20,
            seqno_min: place.number,
            seqno_max: place.number,
            ..Summary::default()
        }),
        ..TableInfo::default()
    }
}

/// The directory of a database with `tables` tables: names of all, contents of the first ranges' tables.
fn database(tables: u64) -> SimFs {
    let (fs, dir) = (SimFs::new(1), Path::new(DIR));
    fs.create_dir_all(dir).unwrap();
    let mut edit = VersionEdit {
        database: Some(DATABASE),
        next_number: Some(tables + 10),
        last_seqno: Some(tables + 10),
        key_spaces: vec![(0, b"default".to_vec())],
        next_key_space: Some(1),
        ..VersionEdit::default()
    };
    for run in 0..RUNS {
        for range in 0..tables / RUNS {
            let place = TablePlace {
                key_space: 0,
                level: usize::from(run == 0),
                run,
                number: 1 + run * (tables / RUNS) + range,
            };
            let info = if range < WHOLE_RANGES {
                write_table(&fs, range, &place)
            } else {
                let path = table_path(dir, place.number);
                drop(fs.open(&path, vfs::OpenOptions::write().create_new()).unwrap());
                modelled(range, &place)
            };
            edit.added.push((place, info));
        }
    }
    Manifest::create(&fs, dir, tables + 5, identity(DATABASE, tables + 5), &edit).unwrap();
    fs
}

/// What this thread has worked so far: the machine may be busy.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap())
}

/// The end of each table used to be read at the open, about 0.2 ms each. `PLEX_TABLES=1000000` takes some gigabytes of
/// memory, and opens in less than 10 s too.
#[test]
fn an_open_reads_no_tables_of_a_large_database() {
    let tables: u64 = std::env::var("PLEX_TABLES").map_or(20_000, |tables| tables.parse().unwrap());
    let fs = database(tables);
    let begin = cpu_time();
    let db = options(&fs).open(DIR).unwrap();
    let open_took = cpu_time() - begin;
    let stats = db.stats();
    assert_eq!((stats.tables as u64, stats.unread_tables as u64, stats.damaged_tables), (tables, tables, 0));
    assert!(open_took < Duration::from_secs(10), "{open_took:?}");

    // The policy measures all ranges once; then a choice costs what changed.
    let inner = db.inner();
    let choose = || {
        let state = inner.state();
        let begin = Instant::now();
        let _ = inner.chooser.pick(state.version.tree(0).unwrap(), &Now::default());
        begin.elapsed()
    };
    let first_choice = choose();
    let mut least = Duration::MAX;
    for round in 0..5u64 {
        db.put(&key(round % WHOLE_RANGES, 99), b"new").unwrap();
        db.flush().unwrap();
        least = least.min(choose());
    }
    assert!(least < Duration::from_millis(1), "{least:?}");

    // A get reads the ends of the tables that may have its key, once, and a block.
    let misses = || db.stats().cache_misses;
    let begin = Instant::now();
    assert_eq!(db.get(&key(1, 0)).unwrap().as_deref(), Some(&0u64.to_le_bytes()[..]));
    let first_get = begin.elapsed();
    let unread = db.stats().unread_tables as u64;
    assert!(tables - unread <= RUNS, "{} tables were read", tables - unread);
    let before = misses();
    for run in 1..RUNS {
        assert_eq!(db.get(&key(1, run)).unwrap().as_deref(), Some(&run.to_le_bytes()[..]));
    }
    assert_eq!((db.stats().unread_tables as u64, misses() - before), (unread, RUNS - 1), "a block of each table");

    // After a flush, it finds its tables by what is known of those that did not change. That took 3 us for each table.
    let mut next_get = Duration::MAX;
    for _ in 0..5 {
        db.put(&key(1, 99), b"new").unwrap();
        db.flush().unwrap();
        let begin = Instant::now();
        assert_eq!(db.get(&key(1, 0)).unwrap().as_deref(), Some(&0u64.to_le_bytes()[..]));
        next_get = next_get.min(begin.elapsed());
    }
    assert!(next_get < Duration::from_millis(2), "{next_get:?}");
    println!(
        "{tables} tables: open {open_took:?}, first choice {first_choice:?}, further {least:?}, first get \
         {first_get:?}, after a flush {next_get:?}"
    );

    // Damage shows at the first read, which names the table; writes and other reads continue.
    for _ in 0..2 {
        let error = db.get(&key(WHOLE_RANGES, 0)).unwrap_err().to_string();
        assert!(error.contains(".sst"), "{error}");
    }
    assert_eq!(db.stats().damaged_tables, 1);
    db.put(&key(WHOLE_RANGES, 0), b"new").unwrap();
    assert_eq!(db.get(&key(WHOLE_RANGES, 0)).unwrap().as_deref(), Some(&b"new"[..]));
    drop(db);

    // A missing file is found at the open.
    let mut rng = Rng::new(3);
    let path = table_path(Path::new(DIR), 1 + WHOLE_RANGES + rng.below(100));
    fs.remove_file(&path).unwrap();
    let error = options(&fs).open(DIR).unwrap_err().to_string();
    assert!(error.contains("missing") && error.contains(path.to_str().unwrap()), "{error}");
}

/// Merging threads read what the policy must know, and then choose as if the open had read all.
#[test]
fn what_was_not_read_is_merged_as_ever() {
    let fs = SimFs::new(1);
    let small = |fs: &SimFs| options(fs).memtable_bytes(16 << 10);
    let db = small(&fs).open(DIR).unwrap();
    let mut rng = Rng::new(5);
    let mut write = |db: &crate::Db, count: u64| {
        for _ in 0..count {
            db.put(&rng.below(2000).to_be_bytes(), &[7; 100]).unwrap();
        }
        db.flush().unwrap();
    };
    (0..12).for_each(|_| write(&db, 400));
    drop(db);
    let settled = [0, usize::MAX].map(|read_at_open| {
        let fs = fs.crash_point().after(vfs::Outage::ProcessKill);
        let db = small(&fs).tables_read_at_open(read_at_open).open(DIR).unwrap();
        let unread = db.stats().unread_tables;
        assert_eq!(unread > 0, read_at_open == 0, "{unread}");
        db.settle().unwrap();
        let all: Vec<_> = db.iter(crate::IterOptions::default()).unwrap().map(Result::unwrap).collect();
        (all, db.stats().table_bytes, db.stats().compactions)
    });
    assert_eq!(settled[0].0, settled[1].0);
    assert!(settled[1].2 > 0);
    assert!(settled[0].1 <= settled[1].1 + settled[1].1 / 20, "{settled:?}");
}

/// The manifest of a release before summaries makes an open read every table, once.
#[test]
fn tables_without_a_summary_are_read() {
    let fs = SimFs::new(1);
    let db = options(&fs).open(DIR).unwrap();
    db.put(b"a", b"1").unwrap();
    db.flush().unwrap();
    drop(db);
    let dir = Path::new(DIR);
    let number = manifest::current(&fs, dir).unwrap().unwrap();
    let edits = manifest::read(&fs, dir, number).unwrap();
    let mut found = super::recover::fold(dir, number, edits).unwrap();
    found.tables.values_mut().for_each(|(_, info)| info.summary = None);
    let old = VersionEdit {
        database: Some(found.database),
        next_number: Some(found.next_number + 10),
        last_seqno: Some(found.last_seqno),
        wal: Some(found.wal),
        added: found.tables.values().cloned().collect(),
        key_spaces: vec![(0, b"default".to_vec())],
        next_key_space: Some(1),
        ..VersionEdit::default()
    };
    drop(Manifest::create(&fs, dir, number + 1, identity(found.database, number + 1), &old).unwrap());
    for unread in [0, 1] {
        let db = options(&fs).tables_read_at_open(0).open(DIR).unwrap();
        assert_eq!(db.stats().unread_tables, unread);
        assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    }
}
