//! A segment as version 3 writes it, byte for byte, and segments that earlier versions wrote. Later versions read them
//! all.

use std::path::Path;
use std::sync::Arc;

use base::clock::ManualClock;
use base::{HistoryId, Lsn};
use vfs::{FileSystem, OpenOptions, SimFs};

use super::{history, read, settle, stepped};
use crate::{LogMode, LogStart, Mark};

const NAME: &str = "/log-0000000000000010";

fn golden(version: u32) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/v{version}/log-0000000000000010"))
}

/// The writer produces exactly the golden file. `ONGGI_REGENERATE` rewrites it: a change of the format.
#[test]
fn a_segment_is_written_as_ever() {
    let (fs, clock) = (SimFs::new(1), Arc::new(ManualClock::new(1_700_000_000_000)));
    let log = stepped(&fs, &clock, LogMode::Sync, LogStart::fresh(HistoryId(*b"a history of 20 byte"), Lsn(16)));
    log.append(0, b"first");
    settle(&log);
    log.append(1, &[b'x'; 200]);
    settle(&log);
    log.close().expect("the disk works");
    let mut bytes = fs.contents()[Path::new(NAME)].clone();
    bytes.truncate(4096 + log.end_lsn().0 as usize);
    if std::env::var_os("ONGGI_REGENERATE").is_some() {
        std::fs::write(golden(3), &bytes).expect("the directory is there");
    }
    assert_eq!(bytes, std::fs::read(golden(3)).expect("the golden file is there"));
    assert_eq!(bytes[2048 + 72..2048 + 80], 256u64.to_le_bytes(), "the second header: durable up to the end mark");
    assert_eq!(bytes[72..80], 16u64.to_le_bytes(), "the first, as it was made");
    let frames = &bytes[4096 + 16..];
    assert_eq!(frames[4..11], *b"\x01\x05first", "kind, length, payload");
    assert_eq!(frames[15..19], [1, 200, 1, b'x'], "a length of two bytes");
    assert_eq!(frames[222..224], [2, 16], "a mark with the second sync");
    assert_eq!(frames[224..232], 1_700_000_000_000i64.to_le_bytes());
    assert_eq!(frames[232..240], 27u64.to_le_bytes(), "durable up to the end of the first record");
    assert_eq!(frames[244..246], [3, 16], "the end");
    assert_eq!(frames.len(), 262);
}

/// The golden files are readable, and equal apart from header and place.
#[test]
fn every_version_is_read() {
    for version in [1, 2, 3] {
        let fs = SimFs::new(1);
        let bytes = std::fs::read(golden(version)).expect("the golden file is there");
        assert_eq!(bytes[8..12], version.to_le_bytes());
        fs.open(Path::new(NAME), OpenOptions::write().create()).unwrap().write_all_at(&bytes, 0).unwrap();
        let (records, end) = super::read_from(&fs, Lsn(16)).expect("readable");
        assert_eq!(records, [(Lsn(27), b"first".to_vec()), (Lsn(234), vec![b'x'; 200])]);
        assert!(end.clean && end.history == Some(HistoryId(*b"a history of 20 byte")) && end.parent.is_none());
        let mark = end.last_mark.expect("a mark");
        assert_eq!(mark, Mark { time_ms: 1_700_000_000_000, durable_lsn: Lsn(256) });
        assert!(matches!(read(&fs), Err(crate::RecoverError::Missing { first: Lsn(16), .. })));
        let start = LogStart::after(end, history(9));
        assert_eq!(start.history(), HistoryId(*b"a history of 20 byte"));
    }
}
