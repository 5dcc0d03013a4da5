//! Writers that are faster than flushes and merges are slowed down before they have to wait; statistics show it.

use std::sync::Arc;

use plex::{Background, Db, Options, Stats};
use vfs::SimFs;

const MEMTABLE_BYTES: usize = 64 << 10;

fn options(fs: &Arc<SimFs>) -> Options {
    Options::new().file_system(fs.clone()).seed(1).memtable_bytes(MEMTABLE_BYTES)
}

fn put(db: &Db, i: u64) {
    db.put(&(i * 7919 % 10_000).to_be_bytes(), &[i as u8; 200]).expect("it writes");
}

/// The lag of flushes grows with the memtable that is filled while the last but one waits, and ends with the flush.
#[test]
fn the_lag_of_flushes_grows() {
    let fs = Arc::new(SimFs::new(1));
    let db = options(&fs).background(Background::Manual).open("/db").expect("it opens");
    let (mut lags, mut i) = (vec![0.0], 0);
    while lags[lags.len() - 1] < 1.0 {
        assert!(i < 10_000, "two memtables hold less");
        put(&db, i);
        lags.push(db.stats().lag);
        i += 1;
    }
    assert!(lags.is_sorted(), "{lags:?}");
    let between = lags.iter().filter(|lag| **lag > 0.0 && **lag < 1.0).count() as u64;
    assert!(between > i / 8 && between < i / 3, "a quarter of two memtables: {between} of {i}");
    db.flush().expect("it flushes");
    assert_eq!(db.stats().lag, 0.0);
}

/// Merges that may write little lag behind a writer, which is slowed down. A close does not wait, and all is there.
#[test]
fn a_limit_on_merges_slows_writers_down() {
    let fs = Arc::new(SimFs::new(1));
    let db = options(&fs).merge_bytes_per_second(64 << 10).open("/db").expect("it opens");
    let mut written = 0;
    let mut write_until = |is_enough: &dyn Fn(&Stats) -> bool| {
        while !is_enough(&db.stats()) {
            assert!(written < 1_000_000, "the writer is never slowed down: {:?}", db.stats());
            put(&db, written);
            written += 1;
            if written % 200 == 0 {
                // With nothing in memory, only merges lag.
                db.flush().expect("it flushes");
            }
        }
    };
    write_until(&|stats| stats.memtable_bytes == 0 && stats.lag > 0.0);
    let before = db.stats();
    write_until(&|stats| stats.delays > before.delays && stats.delayed_us > before.delayed_us);
    drop(db);
    let db = options(&fs).open("/db").expect("it opens");
    for i in written.saturating_sub(10_000)..written {
        let found = db.get(&(i * 7919 % 10_000).to_be_bytes()).expect("it reads");
        assert_eq!(found, Some(vec![i as u8; 200]));
    }
}
