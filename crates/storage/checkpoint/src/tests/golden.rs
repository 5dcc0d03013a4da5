//! Files of every version, kept forever: every later program reads them.
//!
//! `CHECKPOINT_WRITE_GOLDEN=1` writes the missing ones. Never write one again: changed bytes are a new version.

use super::*;
use codec::{DictionaryNumber, FileHash};
use std::num::NonZeroU32;
use std::path::PathBuf;

fn in_crate(directory: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)
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

/// The files of this program: a set of two files, the second without entries, and a manifest with a past history and
/// two dictionaries, one of which is no longer needed.
fn write_golden(fs: &SimFs) {
    let dir = data_dir(fs);
    let history = HistoryId(std::array::from_fn(|n| n as u8));
    let (set, cut, created_ms) = (SetId(1), Lsn(0x1234), 1_700_000_000_000);
    let spaces = vec![KeyspaceId(0), KeyspaceId(2), KeyspaceId(1)];
    let file = |number: u8, blocks: &[&[usize]]| {
        let header =
            Header { set, file: number, files: 2, cut, history, created_ms, key_id: 0, spaces: spaces.clone() };
        let path = dir.file(Name::Snapshot { set, file: number });
        let file = OutFile::create(fs, &path, BUFFER_BYTES, true).unwrap();
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
    manifest.sets.push(SetInfo { set, cut, history, created_ms, log_from: Some(cut), files, rows: None });
    for (number, hash) in [(3, 0xabcd), (500, u128::MAX - 1)] {
        manifest.add_dictionary(DictionaryNumber(NonZeroU32::new(number).unwrap()), FileHash(hash));
    }
    manifest.dictionaries[0].unneeded_from = Some(SetId(2));
    manifest.hash_key = Some(HashKey([0x5a; 16]));
    ManifestFile::create(&dir, manifest).unwrap();
}

/// The path of the golden file of this name: snapshot files are of version 2, and the manifest is of version 3.
fn golden(name: &std::ffi::OsStr) -> PathBuf {
    in_crate(if name == "MANIFEST" { "testdata/v3/" } else { "testdata/v2/" }).join(name)
}

/// The files are what this program writes, byte for byte, and they load.
#[test]
fn what_is_written_stays() {
    let fs = SimFs::new(1);
    write_golden(&fs);
    let mut written = fs.contents();
    written.retain(|path, _| !path.ends_with("LOCK"));
    assert_eq!(written.len(), 3);
    for (path, bytes) in &written {
        let golden = golden(path.file_name().unwrap());
        if std::env::var_os("CHECKPOINT_WRITE_GOLDEN").is_some() && !golden.exists() {
            std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
            std::fs::write(&golden, bytes).unwrap();
        }
        assert!(std::fs::read(&golden).unwrap() == *bytes, "{} has changed", golden.display());
    }
    let path = golden("MANIFEST".as_ref());
    let manifest = Manifest::decode(&path, &std::fs::read(&path).unwrap()).unwrap();
    let numbers: Vec<u32> = manifest.dictionaries_in_use().map(|info| info.number.0.get()).collect();
    assert_eq!((numbers, manifest.dictionaries.len(), manifest.last_dictionary), (vec![500], 2, 500));
    assert_eq!(manifest.hash_key, Some(HashKey([0x5a; 16])));
    assert!(manifest.names_dictionary(FileHash(0xabcd)) && manifest.dictionaries[0].is_needed_by(SetId(1)));
}

/// Writes a set of one file, which is the golden file byte for byte.
fn golden_set(fs: &SimFs, set: SetId, write: impl FnOnce(&mut SnapshotWriter)) -> (DataDir, SetInfo) {
    let (dir, history, created_ms) = (data_dir(fs), HISTORY, 1_700_000_000_000);
    let spaces = vec![KeyspaceId(0)];
    let header = Header { set, file: 0, files: 1, cut: Lsn(9), history, created_ms, key_id: 0, spaces };
    let path = dir.file(Name::Snapshot { set, file: 0 });
    let file = OutFile::create(fs, &path, BUFFER_BYTES, true).unwrap();
    let mut writer = SnapshotWriter::begin(file, &header, u64::MAX).unwrap();
    write(&mut writer);
    let info = writer.finish().unwrap();
    let bytes = &fs.contents()[&path];
    let golden = golden(path.file_name().unwrap());
    if std::env::var_os("CHECKPOINT_WRITE_GOLDEN").is_some() && !golden.exists() {
        std::fs::write(&golden, bytes).unwrap();
    }
    assert!(std::fs::read(&golden).unwrap() == *bytes, "{} has changed", golden.display());
    (dir, SetInfo { set, cut: Lsn(9), history, created_ms, log_from: None, files: vec![info], rows: None })
}

/// A set with a library of functions, byte for byte, and loaded.
#[test]
fn a_library_has_a_block_of_its_own() {
    let write = |writer: &mut SnapshotWriter| writer.write_library(b"lib", b"#!lua name=lib\nx").unwrap();
    let (dir, set) = golden_set(&SimFs::new(1), SetId(2), write);
    let found = Mutex::new(Vec::new());
    let store = |effect: &Effect<'_>| {
        let Effect::Library { name, code } = effect else { panic!("{effect:?} was not saved") };
        found.lock().push((name.to_vec(), code.to_vec()));
    };
    let report = load(&dir, &set, 2, &hasher(), &store, &LoadProgress::default()).unwrap();
    assert_eq!((report.entries, found.into_inner()), (1, vec![(b"lib".to_vec(), b"#!lua name=lib\nx".to_vec())]));
}

/// A set with a replica's position, byte for byte, and loaded.
#[test]
fn a_position_has_a_block_of_its_own() {
    const TEXT: &[u8] = b"0123456789abcdef0123456789abcdef01234567 77 0";
    let (dir, set) = golden_set(&SimFs::new(1), SetId(3), |writer| writer.write_position(TEXT).unwrap());
    let found = Mutex::new(Vec::new());
    let store = |effect: &Effect<'_>| {
        let Effect::Position { text } = effect else { panic!("{effect:?} was not saved") };
        found.lock().push(text.to_vec());
    };
    let report = load(&dir, &set, 2, &hasher(), &store, &LoadProgress::default()).unwrap();
    assert_eq!((report.entries, found.into_inner()), (1, vec![TEXT.to_vec()]));
}

/// A manifest of version 2 is readable: it has no hash key.
#[test]
fn version_2_of_the_manifest_is_read() {
    let path = in_crate("testdata/v2/MANIFEST");
    let manifest = Manifest::decode(&path, &std::fs::read(&path).unwrap()).unwrap();
    let path = golden("MANIFEST".as_ref());
    let newest = Manifest::decode(&path, &std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((manifest.hash_key, manifest.dictionaries.len()), (None, 2));
    let entries = |manifest: &Manifest| manifest.sets[0].files.iter().map(|file| file.entries).collect::<Vec<_>>();
    assert_eq!(entries(&manifest), entries(&newest));
    assert_eq!(Manifest { hash_key: newest.hash_key, sets: newest.sets.clone(), ..manifest }, newest);
}

/// A directory of version 1 loads: it has no dictionaries.
#[test]
fn version_1_is_read() {
    let dir = DataDir::open_to_look(Arc::new(vfs::RealFs), &in_crate("testdata/v1/"));
    assert!(recover(&dir).unwrap().unwrap() == expected());
    let file = ManifestFile::load(&dir).unwrap().unwrap();
    assert_eq!(file.current().log_needed_from(), Some(Lsn(0x1234)));
    assert_eq!(file.current().parents.len(), 1);
    assert_eq!((file.current().dictionaries.len(), file.current().last_dictionary), (0, 0));
}
