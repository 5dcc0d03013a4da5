//! A limit on open files: a database of hundreds of tables needs few descriptors, and having none for a while stops
//! nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plex::{Background, Db, Error, IterOptions, Options, Policy};
use vfs::{Fault, Op, SimFs, errno};

/// Hundreds of tables of a few kilobytes, each written once.
fn many_tables() -> Options {
    Options::new().memtable_bytes(1 << 20).table_bytes(1 << 10).policy(Policy::tiered())
}

fn fill(db: &Db, keys: u32) {
    for i in 0..keys {
        db.put(&(i * 7919 % keys).to_be_bytes(), &[i as u8; 200]).expect("it writes");
    }
    db.flush().and_then(|()| db.settle()).expect("it merges");
}

fn descriptors(of: &std::path::Path) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").expect("it lists");
    all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()).filter(|path| path.starts_with(of)).count()
}

/// Every table used to keep a descriptor: a database stopped for good at the limit of the process, and could not be
/// opened again.
#[test]
fn tables_share_a_few_descriptors() {
    let dir = tempfile::tempdir().expect("there is room");
    for mapped in [true, false] {
        let path = dir.path().join(if mapped { "mapped" } else { "read" });
        let options = || many_tables().background(Background::Inline).open_files_max(16).mapped_reads(mapped);
        let db = options().open(&path).expect("it opens");
        fill(&db, 1800);
        let tables = db.stats().tables;
        assert!(tables > 300, "{tables} tables");
        // Log, manifest and lock, and the files of a scan in progress.
        assert!(descriptors(&path) <= 16 + 8, "{} descriptors", descriptors(&path));
        drop(db);
        let db = options().open(&path).expect("it opens again");
        for i in 0..1800u32 {
            assert!(db.get(&i.to_be_bytes()).expect("it reads").is_some(), "{i}");
        }
        assert_eq!(db.iter(IterOptions::default()).expect("it iterates").count(), 1800);
        db.verify().expect("all tables are sound");
        assert!(descriptors(&path) <= 16 + 8, "{} descriptors", descriptors(&path));
    }
}

/// A lack of descriptors or memory counted as a failure that only a new open mends. Now writes wait and resume
/// automatically.
#[test]
fn a_lack_of_descriptors_passes() {
    for number in [errno::EMFILE, errno::ENFILE, errno::ENOMEM] {
        let fs = SimFs::new(1);
        let db =
            Options::new().file_system(Arc::new(fs.clone())).memtable_bytes(8 << 10).open("/db").expect("it opens");
        db.put(b"first", b"1").expect("it writes");
        fs.inject(Fault::fail(Op::Open, number).forever());
        let (mut written, mut failure) = (0u32, None);
        while failure.is_none() {
            assert!(written < 100_000, "writes go on");
            match db.put(&written.to_be_bytes(), &[7; 100]) {
                Ok(()) => written += 1,
                Err(error) => failure = Some(error),
            }
        }
        let failure = failure.expect("the loop ends with one");
        assert!(failure.may_pass() && !matches!(failure, Error::Stopped { .. }), "{failure:?}");
        assert_eq!(db.get(b"first").expect("reads go on"), Some(b"1".to_vec()));
        fs.clear_faults();
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = db.put(b"later", b"2") {
            assert!(error.may_pass() && Instant::now() < deadline, "{error:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        for i in 0..written {
            assert_eq!(db.get(&i.to_be_bytes()).expect("it reads"), Some(vec![7; 100]), "{i}");
        }
    }
}
