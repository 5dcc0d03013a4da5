//! Files that differ from what was written: every bit, every length, misplaced blocks, forged contents.

use super::*;
use crate::format::{FOOTER_LEN, FRAME_LEN};
use base::checksum::crc32c;
use vfs::FileSystem;

/// A small set of two files, loaded as at a start.
fn small() -> (SimFs, DataDir, SetInfo, Contents) {
    let fs = SimFs::new(20);
    let expected = contents(1, 30, 30);
    let (dir, file) = with_one_set(&fs, &expected);
    let set = file.current().newest().unwrap().clone();
    (fs, dir, set, expected)
}

/// Fails with an error that names the file, and nothing else.
#[track_caller]
fn assert_damaged(result: Result<Option<Contents>, CheckpointError>, path: &Path, what: &str) -> CheckpointError {
    match result {
        Err(error @ CheckpointError::Damaged { .. }) => {
            let text = error.to_string();
            assert!(text.starts_with(&path.display().to_string()), "{what}: {text}");
            assert!(text.contains("offset") && text.contains("lost: "), "{what}: {text}");
            error
        }
        Err(other) => panic!("{what}: {other}"),
        Ok(_) => panic!("{what}: went unnoticed"),
    }
}

/// Each bit of every file of a set, flipped: an error that names the file.
#[test]
fn every_flipped_bit_is_noticed() {
    let (fs, dir, set, expected) = small();
    let names = [Name::Manifest, Name::Snapshot { set: set.set, file: 0 }, Name::Snapshot { set: set.set, file: 1 }];
    for path in names.map(|name| dir.file(name)) {
        let len = fs.contents()[&path].len() as u64;
        for (offset, bit) in (0..len).flat_map(|offset| (0..8).map(move |bit| (offset, bit))) {
            fs.flip_bit(&path, offset, bit).unwrap();
            assert_damaged(recover(&dir), &path, &format!("bit {bit} of byte {offset}"));
            fs.flip_bit(&path, offset, bit).unwrap();
        }
    }
    assert!(recover(&dir).unwrap().unwrap() == expected);
}

/// One bit of every byte of sets of some KiB, 100 KiB in all.
#[test]
fn every_flipped_byte_is_noticed() {
    let mut flipped = 0;
    for seed in 1..=10 {
        let fs = SimFs::new(seed);
        let expected = contents(seed, 100, 200);
        let (dir, file) = with_one_set(&fs, &expected);
        let set = file.current().newest().unwrap().set;
        for path in (0..2).map(|file| dir.file(Name::Snapshot { set, file })) {
            let len = fs.contents()[&path].len() as u64;
            for offset in 0..len {
                let bit = (offset % 8) as u8;
                fs.flip_bit(&path, offset, bit).unwrap();
                assert_damaged(recover(&dir), &path, &format!("seed {seed}, byte {offset}"));
                fs.flip_bit(&path, offset, bit).unwrap();
                flipped += 1;
            }
        }
        assert!(recover(&dir).unwrap().unwrap() == expected);
    }
    assert!(flipped >= 100 << 10, "{flipped} bytes");
}

/// Random damage in a set of more than 100 KiB: flipped bits, lost sectors, misplaced sectors. Every changed byte is
/// detected, and the file is named.
#[test]
fn damage_in_a_big_set_is_noticed() {
    const SECTOR: usize = 512;
    let rounds = crash::count("DAMAGE_ROUNDS", 150);
    let mut noticed = 0;
    for seed in crash::damage_seeds() {
        let fs = SimFs::new(seed);
        let expected = contents(seed, 600, 420);
        let (dir, file) = with_one_set(&fs, &expected);
        let set = file.current().newest().unwrap().set;
        let (whole, mut rng) = (fs.contents(), Rng::new(seed));
        // A late thread may have found nothing to write.
        let paths: Vec<_> = (0..2)
            .map(|file| dir.file(Name::Snapshot { set, file }))
            .filter(|path| whole[path].len() > 4 * SECTOR)
            .collect();
        assert!(paths.iter().map(|path| whole[path].len()).sum::<usize>() > 100 << 10);
        for round in 0..rounds {
            let path = &paths[rng.below(paths.len() as u64) as usize];
            let bytes = &whole[path];
            let mut damaged = bytes.clone();
            let sector = |rng: &mut Rng| rng.below((bytes.len() / SECTOR) as u64) as usize * SECTOR;
            match rng.below(10) {
                0 => {
                    let at = sector(&mut rng);
                    damaged[at..at + SECTOR].fill(0);
                }
                1 => {
                    let (from, to) = (sector(&mut rng), sector(&mut rng));
                    damaged[to..to + SECTOR].copy_from_slice(&bytes[from..from + SECTOR]);
                }
                _ => {
                    let first = rng.below(bytes.len() as u64) as usize;
                    for _ in 0..=rng.below(4) {
                        let at = (first + rng.below(64) as usize).min(bytes.len() - 1);
                        damaged[at] ^= 1 << rng.below(8);
                    }
                }
            }
            if damaged != *bytes {
                fs.damage(path, 0, &damaged).unwrap();
                assert_damaged(recover(&dir), path, &format!("seed {seed}, round {round}"));
                fs.damage(path, 0, bytes).unwrap();
                noticed += 1;
            }
        }
        assert!(recover(&dir).unwrap().unwrap() == expected);
    }
    // For scripts that count damages.
    println!("damages: {noticed}");
}

/// Every file of a set cut to every length, and grown by bytes.
#[test]
fn every_other_length_is_noticed() {
    let (fs, dir, set, _) = small();
    for name in [Name::Manifest, Name::Snapshot { set: set.set, file: 0 }] {
        let path = dir.file(name);
        let whole = fs.contents()[&path].clone();
        let file = fs.open(&path, vfs::OpenOptions::write()).unwrap();
        for len in (0..whole.len() as u64 + 40).filter(|len| *len != whole.len() as u64) {
            file.set_len(len).unwrap();
            assert_damaged(recover(&dir), &path, &format!("{len} bytes"));
            file.set_len(0).unwrap();
            file.write_all_at(&whole, 0).unwrap();
        }
        assert!(recover(&dir).is_ok());
    }
}

/// A missing file is named.
#[test]
fn a_missing_file_is_named() {
    let (fs, dir, set, _) = small();
    let path = dir.file(Name::Snapshot { set: set.set, file: 1 });
    fs.remove_file(&path).unwrap();
    match recover(&dir) {
        Err(CheckpointError::FileMissing { path: named, .. }) => assert_eq!(named, path),
        other => panic!("{other:?}"),
    }
}

/// A read error is passed on unchanged, with file and number.
#[test]
fn an_unreadable_sector_is_an_error_of_the_system() {
    let (fs, dir, set, _) = small();
    let path = dir.file(Name::Snapshot { set: set.set, file: 0 });
    fs.make_unreadable(&path, 5..6, Some(1)).unwrap();
    match recover(&dir) {
        Err(CheckpointError::Fs(error)) => {
            assert_eq!((error.path(), error.raw_os_error()), (path.as_path(), Some(vfs::errno::EIO)));
        }
        other => panic!("{other:?}"),
    }
}

/// Exchanged files, a file of another set, and valid blocks at the wrong place: all checksums inside are valid, and
/// each fault is detected.
#[test]
fn good_parts_in_the_wrong_place_are_noticed() {
    let (fs, dir, set, _) = small();
    let [one, two] = [0, 1].map(|file| dir.file(Name::Snapshot { set: set.set, file }));
    let bytes = fs.contents();
    let put = |path: &Path, contents: &[u8]| vfs::replace_file(&fs, path, contents).unwrap();
    put(&one, &bytes[&two]);
    put(&two, &bytes[&one]);
    assert_damaged(recover(&dir), &one, "files exchanged");
    put(&two, &bytes[&two]);

    // Two sets with blocks of equal length: put the first block of one into the other.
    let rows = |byte: u8| -> Contents {
        (0..300u32).map(|n| ((0, n.to_be_bytes().to_vec()), (vec![byte; 900], 0, None))).collect()
    };
    let mut file = ManifestFile::load(&dir).unwrap().unwrap();
    let old = write(&dir, file.next_set(), 5, &rows(1), 1).unwrap();
    let new = write(&dir, file.next_set(), 5, &rows(2), 1).unwrap();
    let [old_path, new_path] = [&old, &new].map(|info| dir.file(Name::Snapshot { set: info.set, file: 0 }));
    let (old_bytes, new_bytes) = (fs.contents()[&old_path].clone(), fs.contents()[&new_path].clone());
    assert_eq!(old_bytes.len(), new_bytes.len());
    let header = old_bytes.len() - FOOTER_LEN - blocks_len(&old_bytes);
    let block = |n: usize| blocks(&old_bytes, header)[n].clone();
    assert!(blocks(&old_bytes, header).len() >= 3);
    let mut mixed = new_bytes.clone();
    mixed[block(0)].copy_from_slice(&old_bytes[block(0)]);
    put(&new_path, &mixed);
    let load = |info: &SetInfo| load_set(&dir, info, 3).map(Some);
    assert_damaged(load(&new), &new_path, "a block of another set");
    // Two blocks of one file, exchanged.
    let mut mixed = new_bytes.clone();
    assert_eq!(block(0).len(), block(1).len());
    mixed[block(0)].copy_from_slice(&new_bytes[block(1)]);
    mixed[block(1)].copy_from_slice(&new_bytes[block(0)]);
    put(&new_path, &mixed);
    assert_damaged(load(&new), &new_path, "blocks exchanged");
    // The second block, left out.
    let mut mixed = new_bytes.clone();
    mixed.drain(block(1));
    put(&new_path, &mixed);
    assert_damaged(load(&new), &new_path, "a block left out");
    put(&new_path, &new_bytes);
    assert!(load_set(&dir, &new, 3).unwrap() == rows(2));
}

/// The ranges of a file's blocks, from their lengths.
fn blocks(bytes: &[u8], header: usize) -> Vec<std::ops::Range<usize>> {
    let mut blocks = Vec::new();
    let mut at = header;
    while at < bytes.len() - FOOTER_LEN {
        let len = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        blocks.push(at..at + FRAME_LEN + len);
        at += FRAME_LEN + len;
    }
    blocks
}

/// Bytes of all blocks, from the footer.
fn blocks_len(bytes: &[u8]) -> usize {
    let footer = &bytes[bytes.len() - FOOTER_LEN..];
    let field = |at: usize| u64::from_le_bytes(footer[at..at + 8].try_into().unwrap()) as usize;
    field(0) * FRAME_LEN + field(16)
}

/// A file of a newer version is refused with its version, and nothing in the directory changes, neither by reading nor
/// by an attempt to continue.
#[test]
fn a_newer_format_is_refused_untouched() {
    for (name, newest) in [(Name::Manifest, 3), (Name::Snapshot { set: SetId(1), file: 0 }, 2)] {
        let (fs, dir, _, _) = small();
        let path = dir.file(name);
        let mut bytes = fs.contents()[&path].clone();
        bytes[8] = 99;
        let crc = crc32c(&bytes[..16]).to_le_bytes();
        bytes[16..20].copy_from_slice(&crc);
        vfs::replace_file(&fs, &path, &bytes).unwrap();
        let before = (fs.operations(), fs.contents());
        match recover(&dir) {
            Err(CheckpointError::Newer { path: named, version: 99, known }) => {
                assert_eq!((named, known), (path, newest));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!((fs.operations(), fs.contents()), before);
    }
}

/// Bodies with valid checksums and arbitrary contents: never a panic, never a huge allocation, and everything accepted
/// encodes back to the same bytes.
#[test]
fn forged_bodies_are_malformed_or_canonical() {
    let mut rng = Rng::new(77);
    let mut manifest = Manifest::new(HISTORY, LogState { on: true, since: Lsn(5), since_ms: -3 });
    manifest.begin_history(HistoryId([9; 20]), Lsn(1 << 40));
    for set in 1..4 {
        let files = vec![FileInfo { bytes: 1 << 33, entries: 9, crc: 7 }; set as usize];
        let (cut, log_from) = (Lsn(set * 1000), (set > 1).then_some(Lsn(set * 1000)));
        manifest.sets.push(SetInfo {
            set: SetId(set as u32),
            cut,
            history: HISTORY,
            created_ms: 5,
            log_from,
            files,
            rows: None,
        });
    }
    let header = Header {
        set: SetId(3),
        file: 1,
        files: 2,
        cut: Lsn(77),
        history: HISTORY,
        created_ms: 1,
        key_id: 0,
        spaces: (0..40).map(KeyspaceId).collect(),
    };
    let path = Path::new("forged");
    assert_eq!(Manifest::decode(path, &manifest.encode()).unwrap(), manifest);
    assert_eq!(Header::decode(path, &header.encode()).unwrap(), header);
    let reseal = |bytes: &mut Vec<u8>| {
        let len = (bytes.len() - 24) as u32;
        bytes[12..16].copy_from_slice(&len.to_le_bytes());
        let crc = crc32c(&bytes[..16]).to_le_bytes();
        bytes[16..20].copy_from_slice(&crc);
        let end = bytes.len() - 4;
        let crc = crc32c(&bytes[..end]).to_le_bytes();
        bytes[end..].copy_from_slice(&crc);
    };
    let mut accepted = 0;
    for _ in 0..20_000 {
        for (bytes, is_manifest) in [(manifest.encode(), true), (header.encode(), false)] {
            let mut bytes = bytes;
            for _ in 0..=rng.below(3) {
                let at = 20 + rng.below(bytes.len() as u64 - 24) as usize;
                match rng.below(4) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes.insert(at, rng.below(256) as u8),
                    2 => bytes[at] = 0xff,
                    _ => bytes[at] = rng.below(256) as u8,
                }
            }
            reseal(&mut bytes);
            let again = match is_manifest {
                true => Manifest::decode(path, &bytes).map(|manifest| manifest.encode()),
                false => Header::decode(path, &bytes).map(|header| header.encode()),
            };
            if let Ok(again) = again {
                assert_eq!(again, bytes);
                accepted += 1;
            }
        }
    }
    assert!(accepted > 1_000, "{accepted} of the changes made another good body");
}

/// Blocks with valid checksums whose payload is not a list of entries, has another number of them, or names a database
/// that the header does not: errors, never a panic.
#[test]
fn forged_payloads_are_refused() {
    let (fs, dir, _, _) = small();
    let mut rng = Rng::new(5);
    let mut good = Vec::new();
    cmdlog::record::put_set_head(&mut good, KeyspaceId(1), b"key", Encoding::EDITED, Some(-5), 5);
    good.extend_from_slice(b"value");
    let mut far = Vec::new();
    cmdlog::record::put_set_head(&mut far, KeyspaceId(u32::MAX), b"key", Encoding::PLAIN, None, 0);
    let mut forged = vec![
        (good.clone(), 2),
        (good.clone(), 0),
        ([&good[..], &good[..]].concat(), 1),
        (Vec::new(), 1),
        (far, 1),
        (vec![0x07, 0x01], 1),
        (vec![0xff; 40], 3),
    ];
    for _ in 0..300 {
        let mut bytes = good.clone();
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] = rng.below(256) as u8;
        forged.push((bytes, 3));
    }
    let mut set = SetId(100);
    for (payload, entries) in forged {
        set.0 += 1;
        let SetHead { cut, history, created_ms, log_from, spaces, .. } = head(1);
        let header = Header { set, file: 0, files: 1, cut, history, created_ms, key_id: 0, spaces };
        let path = dir.file(Name::Snapshot { set, file: 0 });
        let file = OutFile::create(&fs, &path, BUFFER_BYTES, true).unwrap();
        let mut writer = SnapshotWriter::begin(file, &header, u64::MAX).unwrap();
        writer.write_block(&payload, &[], entries).unwrap();
        let files = vec![writer.finish().unwrap()];
        let info = SetInfo { set, cut, history, created_ms, log_from, files, rows: None };
        let sink = |_: &Effect<'_>| {};
        let result = load(&dir, &info, 1, &hasher(), &sink, &LoadProgress::default());
        assert_damaged(result.map(|_| None), &path, &format!("{payload:?}, {entries} entries"));
        fs.remove_file(&path).unwrap();
    }
}

/// Tools open header and footer without a manifest.
#[test]
fn a_snapshot_file_tells_what_it_is() {
    let (fs, dir, set, _) = small();
    let mut entries = 0;
    for number in 0..2 {
        let (header, footer) = open_snapshot(&fs, &dir.file(Name::Snapshot { set: set.set, file: number })).unwrap();
        assert_eq!((header.set, header.file, header.files), (set.set, number, 2));
        assert_eq!((header.cut, header.history), (set.cut, set.history));
        entries += footer.entries;
    }
    assert_eq!(entries, set.entries());
}
