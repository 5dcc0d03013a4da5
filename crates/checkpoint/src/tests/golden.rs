//! Files of version 1, kept for good: every later program reads them.
//!
//! `CHECKPOINT_WRITE_GOLDEN=1` writes those that are missing. Never write one again: a change of the bytes is a new version.

use super::*;
use std::path::PathBuf;
use vfs::{FileSystem, OpenOptions};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1/")
}

fn expected() -> Contents {
    let row =
        |space: u32, key: &[u8], value: &[u8], encoding, at| ((space, key.to_vec()), (value.to_vec(), encoding, at));
    Contents::from([
        row(0, b"plain", b"value", 0, None),
        row(2, b"expires", b"soon", 0, Some(1_700_000_000_123)),
        row(0, b"edited", b"in place", 1, None),
        row(1, b"", b"", 0, Some(-1)),
        row(0, b"apart", &[b'x'; 300], 2, None),
    ])
}

/// What a version 1 program writes: a set of two files, the second without entries, and a manifest with a past history.
fn write_golden(fs: &SimFs) {
    let dir = data_dir(fs);
    let history = HistoryId(std::array::from_fn(|n| n as u8));
    let (set, cut, created_ms) = (SetId(1), Lsn(0x1234), 1_700_000_000_000);
    let spaces = vec![KeyspaceId(0), KeyspaceId(2), KeyspaceId(1)];
    let file = |number: u8, blocks: &[&[usize]]| {
        let header =
            Header { set, file: number, files: 2, cut, history, created_ms, key_id: 0, spaces: spaces.clone() };
        let path = dir.file(Name::Snapshot { set, file: number });
        let file = fs.open(&path, OpenOptions::write().create_new()).unwrap();
        let mut writer = SnapshotWriter::begin(file, &header, u64::MAX).unwrap();
        let expected: Vec<_> = expected().into_iter().collect();
        for block in blocks {
            let (mut bytes, mut tail) = (Vec::new(), Vec::new());
            for &n in *block {
                bytes.append(&mut tail);
                let ((space, key), (value, encoding, at)) = &expected[n];
                let (space, encoding) = (KeyspaceId(*space), Encoding(*encoding));
                cmdlog::record::put_set_head(&mut bytes, space, key, encoding, *at, value.len());
                tail = value.clone();
            }
            writer.write_block(&bytes, &tail, block.len() as u32).unwrap();
        }
        writer.finish().unwrap()
    };
    let files = vec![file(0, &[&[1, 2, 3, 4], &[0]]), file(1, &[])];
    let log = LogState { on: true, since: Lsn(0x1000), since_ms: 1_699_999_999_999 };
    let mut manifest = Manifest::new(HistoryId([0xaa; 20]), log);
    manifest.begin_history(history, Lsn(0x1100));
    manifest.sets.push(SetInfo { set, cut, history, created_ms, log_from: Some(cut), files });
    ManifestFile::create(&dir, manifest).unwrap();
}

/// The files of version 1 are what this program writes, byte for byte, and load.
#[test]
fn version_1_is_written_and_read() {
    let fs = SimFs::new(1);
    write_golden(&fs);
    let mut written = fs.contents();
    written.retain(|path, _| !path.ends_with("LOCK"));
    assert_eq!(written.len(), 3);
    for (path, bytes) in &written {
        let golden = testdata().join(path.file_name().unwrap());
        if std::env::var_os("CHECKPOINT_WRITE_GOLDEN").is_some() && !golden.exists() {
            std::fs::create_dir_all(testdata()).unwrap();
            std::fs::write(&golden, bytes).unwrap();
        }
        assert!(std::fs::read(&golden).unwrap() == *bytes, "{} has changed", golden.display());
    }
    let dir = DataDir::open_to_look(Arc::new(vfs::RealFs), &testdata());
    assert!(recover(&dir).unwrap().unwrap() == expected());
    let file = ManifestFile::load(&dir).unwrap().unwrap();
    assert_eq!(file.current().log_needed_from(), Some(Lsn(0x1234)));
    assert_eq!(file.current().parents.len(), 1);
}
