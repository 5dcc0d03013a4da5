//! SIGBUS, for which mapped files install a handler: signals of another cause reach the previous handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGBUS;
use vfs::{FileSystem, OpenOptions, RealFs};

/// A previous handler receives signals of other origin, and none that reads of a truncated file raise.
#[test]
fn signals_of_others_reach_who_was_there_before() {
    let temp = tempfile::tempdir().expect("a directory for the test");
    let path = temp.path().join("a");
    let is_seen = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGBUS, is_seen.clone()).expect("registers");
    let writer = RealFs.open(&path, OpenOptions::write().create_new()).expect("opens");
    writer.write_all_at(&[7; 100_000], 0).expect("writes");
    let file = RealFs.open(&path, OpenOptions::read().mapped()).expect("opens");
    let mut found = [0; 100];
    for at in 0..500 {
        file.read_exact_at(&mut found, at * 150).expect("is there");
    }
    writer.set_len(0).expect("cuts");
    for at in 0..500 {
        file.read_exact_at(&mut found, at * 150).expect_err("is gone");
    }
    assert!(!is_seen.load(Ordering::SeqCst));
    signal_hook::low_level::raise(SIGBUS).expect("raises");
    assert!(is_seen.load(Ordering::SeqCst));
}
