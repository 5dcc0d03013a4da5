//! Tables that are mapped, on the real file system: whatever happens to their files, reads answer what was written or
//! fail.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use plex::{Background, Db, Options};

const KEYS: u32 = 20_000;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn value(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(25)
}

/// Some tables, all blocks of which are read from their files each time.
fn filled(dir: &Path, is_mapped: bool) -> Db {
    let options = Options::new().seed(1).background(Background::Inline).block_cache_bytes(0).memtable_bytes(256 << 10);
    let db = options.mapped_reads(is_mapped).open(dir).expect("it opens");
    for number in 0..KEYS {
        db.put(&key(number), &value(number)).expect("it is written");
    }
    db.flush().expect("it is written");
    db
}

/// Gets of all keys: how many failed. Others are right.
fn failures(db: &Db) -> usize {
    let failed = |number: &u32| match db.get(&key(*number)) {
        Ok(found) => {
            assert_eq!(found, Some(value(*number)));
            false
        }
        Err(_) => true,
    };
    (0..KEYS).filter(failed).count()
}

fn tables(dir: &Path) -> Vec<(PathBuf, File)> {
    let paths = dir.read_dir().expect("lists").map(|entry| entry.expect("lists").path());
    let tables = paths.filter(|path| path.extension().is_some_and(|extension| extension == "sst"));
    tables
        .map(|path| {
            let file = OpenOptions::new().read(true).write(true).open(&path).expect("opens");
            (path, file)
        })
        .collect()
}

/// A file that is truncated under an open database, and changed bytes of one, cost only the data in them; the process
/// and its other databases work.
#[test]
fn files_that_are_cut_or_changed_give_errors() {
    for is_mapped in [true, false] {
        let temp = tempfile::tempdir().expect("a directory for the test");
        let db = filled(temp.path(), is_mapped);
        assert_eq!(failures(&db) + failures(&db), 0);
        let tables = tables(temp.path());
        assert!(tables.len() > 2, "{tables:?}");
        let (changed, cut) = (&tables[0].1, &tables[1].1);
        let mut byte = [0];
        changed.read_exact_at(&mut byte, 10_000).expect("is there");
        changed.write_all_at(&[byte[0] ^ 4], 10_000).expect("writes");
        let after_change = failures(&db);
        assert!((1..100).contains(&after_change), "{after_change}");
        changed.write_all_at(&byte, 10_000).expect("writes");
        assert_eq!(failures(&db), 0);
        let len = cut.metadata().expect("is there").len();
        cut.set_len(len / 2).expect("cuts");
        let after_cut = failures(&db);
        assert!((1..KEYS as usize / 2).contains(&after_cut), "{after_cut}");
        assert_eq!(failures(&db), after_cut);
        db.verify().expect_err("half of a table is gone");
    }
}
