//! Opens that cannot write: for reading only, and on a device that has no room.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Rng;
use plex::{Background, Db, Error, IterOptions, Options, Wal, WriteBatch};
use vfs::{Fault, Op, Outage, SimFs, errno};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(fs: &SimFs, wal: Wal) -> Options {
    Options::new()
        .file_system(Arc::new(fs.clone()))
        .seed(7)
        .wal(wal)
        .background(Background::Inline)
        .memtable_bytes(1500)
        .table_bytes(1 << 10)
        .block_bytes(256)
}

fn contents(db: &Db) -> Map {
    db.iter(IterOptions::default()).and_then(Iterator::collect).expect("it reads")
}

/// Tables and a log; what is in them.
fn fill(fs: &SimFs, wal: Wal) -> Map {
    let db = options(fs, wal).open("/db").expect("it opens");
    let mut rng = Rng::new(3);
    for n in 0..100u64 {
        let mut batch = WriteBatch::new();
        batch.put(&rng.below(60).to_be_bytes(), &[n as u8; 40]).delete(&rng.below(60).to_be_bytes());
        db.write(&batch).expect("it writes");
    }
    if wal == Wal::Off {
        db.flush().expect("it flushes");
    }
    contents(&db)
}

/// Every call that would change something is refused, and no file changes.
#[test]
fn a_read_only_database_changes_nothing() {
    for wal in [Wal::Sync, Wal::Off] {
        let fs = SimFs::new(1);
        let all = fill(&fs, wal);
        // A directory that cannot be written has no lock either.
        for is_locked in [true, false] {
            if !is_locked {
                fs.inject(Fault::fail(Op::Lock, errno::EROFS));
            }
            let before = fs.contents();
            let db = options(&fs, wal).open_read_only("/db").expect("it opens");
            assert!(contents(&db) == all);
            db.verify().expect("it is sound");
            let mut transaction = db.transaction();
            transaction.put(b"key", b"value");
            let refused = [
                db.put(b"key", b"value"),
                db.flush(),
                db.sync(),
                db.reclaim(),
                db.compact_range(plex::KeySpaceId::DEFAULT, ..),
                db.key_space("another").map(drop),
                db.compact_step().map(drop),
                db.clone_to("/clone"),
                transaction.commit().map(drop),
            ];
            for outcome in refused {
                assert!(matches!(outcome, Err(Error::ReadOnly)), "{outcome:?}");
            }
            assert!(contents(&db) == all);
            drop(db);
            let names = |files: &BTreeMap<std::path::PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&fs.contents()), names(&before));
            let is_lock = |path: &std::path::Path| path.ends_with("LOCK");
            assert!(fs.contents().iter().all(|(path, bytes)| is_lock(path) || before[path] == *bytes));
        }
        assert!(contents(&options(&fs, wal).open("/db").expect("it opens")) == all);
    }
}

#[test]
fn a_read_only_open_needs_a_database_that_nobody_writes() {
    let fs = SimFs::new(1);
    let missing = options(&fs, Wal::Sync).create_if_missing(true).open_read_only("/db");
    assert!(missing.is_err() && fs.contents().is_empty(), "{missing:?}");
    fill(&fs, Wal::Sync);
    let db = options(&fs, Wal::Sync).open("/db").expect("it opens");
    assert!(options(&fs, Wal::Sync).open_read_only("/db").is_err());
    drop(db);
    // A process that may not lock the directory cannot know whether it is written.
    fs.inject(Fault::fail(Op::Lock, errno::EACCES));
    assert!(options(&fs, Wal::Sync).open_read_only("/db").is_err());
    assert!(options(&fs, Wal::Sync).open_read_only("/db").is_ok());
}

/// Each operation of an open finds no room, once or for long. Reads work, writes are refused until there is room, and
/// no power cut takes anything that was there or was acknowledged since.
#[test]
fn a_full_device_does_not_keep_a_database_closed() {
    for wal in [Wal::Sync, Wal::Async, Wal::Off] {
        let full = SimFs::new(1);
        let all = fill(&full, wal);
        // As after a kill: the log is there. The first operation is the sync of the directory's parent.
        let (mut suspended, mut n) = (0, 2);
        loop {
            let fs = full.crash_point().after(Outage::ProcessKill);
            let first = fs.operations() + n;
            (first..first + 100).for_each(|operation| fs.inject(Fault::fail_operation(operation, errno::ENOSPC)));
            let what = format!("{wal:?}, operation {n}");
            let db = match options(&fs, wal).open("/db") {
                Ok(db) => db,
                Err(error) => panic!("{what}: {error}"),
            };
            assert!(contents(&db) == all, "{what}");
            let met = fs.faults_fired() > 0;
            if let Err(error) = db.put(b"full", b"") {
                assert!(error.is_out_of_space() && fs.faults_fired() > 0, "{what}: {error}");
                suspended += usize::from(met);
            }
            for seed in 0..3 {
                // Without a sync, only a kill leaves the whole log.
                let outage = if wal == Wal::Async { Outage::ProcessKill } else { Outage::PowerCut { seed } };
                let cut = fs.crash_point().after(outage);
                let again = options(&cut, wal).open("/db").unwrap_or_else(|error| panic!("{what}: {error}"));
                let mut found = contents(&again);
                found.remove(&b"full"[..]);
                assert!(found == all, "{what}, cut {seed}");
            }
            fs.clear_faults();
            db.put(b"after", b"1").unwrap_or_else(|error| panic!("{what}: {error}"));
            if wal == Wal::Off { db.flush() } else { db.sync() }.unwrap_or_else(|error| panic!("{what}: {error}"));
            let now = contents(&db);
            assert!(now.contains_key(&b"after"[..]));
            for point in [fs.crash_point().power_cut(n), fs.crash_point().after(Outage::ProcessKill)] {
                let again = options(&point, wal).open("/db").unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(contents(&again) == now, "{what}: something is lost");
                again.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            if !met {
                break;
            }
            n += 1;
        }
        assert!(suspended > 3, "{wal:?}: {suspended} of {n}");
    }
}
