//! Writes under a condition. Optimistic transactions: no update is lost, and a commit fails exactly when a key that it
//! depends on has changed. Positions of an external log do not decrease.

use std::sync::Arc;

use plex::{Background, Db, Error, KeySpaceId, Options, Wal, WriteBatch};
use vfs::SimFs;

fn open(wal: Wal) -> Db {
    let options = Options::new().file_system(Arc::new(SimFs::new(1))).seed(1).wal(wal).memtable_bytes(4 << 10);
    options.open("/db").expect("it opens")
}

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().expect("it has eight bytes")))
}

/// Threads add to the same counters, each increment a transaction that is run again after a conflict. Flushes and
/// merges run meanwhile. Without a check at commit, increments are lost.
#[test]
fn no_increment_is_lost() {
    for wal in [Wal::Async, Wal::Sync] {
        let (db, threads, increments) = (open(wal), 4, 300u64);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for i in 0..increments {
                        let key = (i % 3).to_be_bytes();
                        loop {
                            let mut transaction = db.transaction();
                            let before = number(transaction.get(&key).expect("it reads"));
                            transaction.put(&key, &(before + 1).to_le_bytes());
                            match transaction.commit() {
                                Ok(()) => break,
                                Err(Error::Conflict { .. }) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                });
            }
        });
        let sum: u64 = (0..3u64).map(|key| number(db.get(&key.to_be_bytes()).expect("it reads"))).sum();
        assert_eq!(sum, threads * increments);
    }
}

/// Every kind of change of a key that was read or written is a conflict, also once it is flushed and merged, and
/// nothing else is.
#[test]
fn conflicts_are_changes_of_its_keys() {
    type Change = fn(&Db);
    let changes: [(Change, bool); 6] = [
        (|db| db.put(b"read", b"new").expect("it writes"), true),
        (|db| db.delete(b"read").expect("it writes"), true),
        (|db| db.delete(b"written").expect("it writes"), true),
        (|db| db.delete_range(&b"a"[..]..&b"z"[..]).expect("it writes"), true),
        (|db| db.put(b"other", b"new").expect("it writes"), false),
        (|db| drop(db.get(b"read")), false),
    ];
    for (change, is_conflict) in changes {
        for is_merged in [false, true] {
            let db = Options::new()
                .file_system(Arc::new(SimFs::new(1)))
                .background(Background::Inline)
                .open("/db")
                .expect("it opens");
            db.put(b"read", b"1").and_then(|()| db.put(b"written", b"1")).expect("it writes");
            db.flush().expect("it flushes");
            let mut transaction = db.transaction();
            assert_eq!(transaction.get(b"read").expect("it reads"), Some(b"1".to_vec()));
            change(&db);
            if is_merged {
                db.reclaim().and_then(|()| db.flush()).expect("it merges");
                db.compact_range(KeySpaceId::DEFAULT, ..).expect("it merges");
            }
            // As of its beginning, and with what it wrote.
            assert_eq!(transaction.get(b"read").expect("it reads"), Some(b"1".to_vec()));
            transaction.put(b"written", b"2");
            assert_eq!(transaction.get(b"written").expect("it reads"), Some(b"2".to_vec()));
            let committed = transaction.commit();
            assert_eq!(matches!(committed, Err(Error::Conflict { .. })), is_conflict, "{committed:?} {is_merged}");
            let shows = db.get(b"written").expect("it reads") == Some(b"2".to_vec());
            assert_eq!(shows, !is_conflict);
        }
    }
}

/// Of two writers in the wrong order, the second gets an error. It used to be written, and a replay from the position
/// of the first would have passed over it.
#[test]
fn positions_of_an_external_log_do_not_decrease() {
    let db = open(Wal::Off);
    let write = |lsn: u64| db.write(WriteBatch::new().put(b"key", &lsn.to_le_bytes()).set_lsn(lsn));
    write(7).and_then(|()| write(9)).and_then(|()| write(9)).expect("they do not decrease");
    let error = write(8).expect_err("8 is before 9");
    let expected = "invalid argument: set_lsn of 8 after 9: positions of the external log must not decrease";
    assert_eq!(error.to_string(), expected);
    assert_eq!(db.get(b"key").expect("it reads"), Some(9u64.to_le_bytes().to_vec()));
    db.put(b"key", b"no position").and_then(|()| write(10)).expect("they do not decrease");
}

/// The write amplification has manifests in it, and files that were taken in.
#[test]
fn everything_that_is_written_counts() {
    let db = open(Wal::Off);
    db.put(b"key", b"value").and_then(|()| db.flush()).expect("it writes");
    let stats = db.stats();
    assert!(stats.manifest_bytes > 0);
    let written = stats.flush_bytes + stats.compaction_bytes_written + stats.ingest_bytes + stats.manifest_bytes;
    assert_eq!(stats.write_amplification(), written as f64 / stats.user_bytes as f64);
}
