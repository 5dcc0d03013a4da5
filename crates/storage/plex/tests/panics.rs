//! Panics of a compaction filter, and options at their limits: an error that names the cause, and no thread that waits
//! for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plex::{Background, CompactionFilter, Error, KeySpaceId, Options};
use vfs::SimFs;

/// Panics once it is armed.
#[derive(Debug, Default)]
struct Broken(AtomicBool);

impl CompactionFilter for Broken {
    fn keeps(&self, _: KeySpaceId, _: &[u8], _: &[u8]) -> bool {
        assert!(!self.0.load(Ordering::Relaxed), "the filter is broken");
        true
    }
}

/// A filter that panics used to end the thread that flushes, and writers waited for it forever. Now they get an error
/// that carries the filter's message, reads work, and the next open has everything.
#[test]
fn a_filter_that_panics_stops_writes_with_an_error() {
    for background in [Background::Threads, Background::Inline] {
        let (fs, filter) = (SimFs::new(1), Arc::new(Broken::default()));
        let options =
            || Options::new().file_system(Arc::new(fs.clone())).background(background).memtable_bytes(4 << 10);
        let db = options().compaction_filter(filter.clone()).open("/db").expect("it opens");
        db.put(b"first", b"1").expect("it writes");
        filter.0.store(true, Ordering::Relaxed);
        let (mut written, mut failure) = (0u32, None);
        while failure.is_none() {
            assert!(written < 100_000, "writes go on");
            match db.put(&written.to_be_bytes(), &[7; 100]) {
                Ok(()) => written += 1,
                Err(error) => failure = Some(error),
            }
        }
        let failure = failure.expect("the loop ends with one");
        assert!(matches!(failure, Error::Stopped { .. }), "{failure:?}");
        assert!(failure.to_string().contains("the filter is broken"), "{failure}");
        assert_eq!(db.get(b"first").expect("reads go on"), Some(b"1".to_vec()));
        drop(db);
        let db = options().open("/db").expect("it opens again");
        for i in 0..written {
            assert_eq!(db.get(&i.to_be_bytes()).expect("it reads"), Some(vec![7; 100]), "{i}");
        }
        db.put(b"more", b"1").expect("it writes");
    }
}

/// The largest memtable that may be asked for: the first merge into the last run used to panic above 4 GiB.
#[test]
fn the_largest_memtable_merges() {
    let options = Options::new().file_system(Arc::new(SimFs::new(1))).background(Background::Inline);
    let db = options.clone().memtable_bytes(8 << 30).open("/db").expect("it opens");
    for flush in 0..30u8 {
        for i in 0..50u8 {
            db.put(&[i], &[flush; 3000]).expect("it writes");
        }
        db.flush().and_then(|()| db.settle()).expect("it merges");
    }
    assert_eq!(db.get(&[7]).expect("it reads"), Some(vec![29; 3000]));
    let refused = options.memtable_bytes((8 << 30) + 1).open("/other").expect_err("it is out of range");
    assert!(matches!(refused, Error::InvalidArgument(_)), "{refused}");
}
