//! The log alone: what is written comes back, torn tails are cut, synced damage is an error.

use std::path::{Path, PathBuf};

use vfs::{FileSystem, OpenOptions, SimFs};

use super::*;

fn path(number: u64) -> PathBuf {
    format!("/{number}.wal").into()
}

fn batch(text: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(text.as_bytes(), &[7; 40]).delete(b"gone");
    batch
}

fn sync(wal: &mut WalWriter, fs: &SimFs) {
    let plan = wal.sync_plan();
    plan.run(fs, Path::new("/"), &Names::default(), &AtomicU64::new(1)).unwrap();
    wal.note_synced(&plan);
}

/// Two files with records 1 to 4; a sync after the second and, if asked, after the fourth.
fn two_files(fs: &SimFs, sync_at_end: bool) {
    let mut wal = WalWriter::create(fs, &path(1), 1, 0xabc, Before::default()).unwrap();
    wal.append(&batch("one"), 1).unwrap();
    sync(&mut wal, fs);
    wal.append(&batch("two"), 3).unwrap();
    let mut wal = WalWriter::create(fs, &path(2), 2, 0xdef, wal.before()).unwrap();
    wal.append(&batch("three"), 5).unwrap();
    if sync_at_end {
        sync(&mut wal, fs);
    }
    wal.append(&batch("four"), 9).unwrap();
}

/// Numbers of files, with a number for each.
type OfFiles = Vec<(u64, u64)>;

/// The batches by their first sequence numbers, and the files by where they end.
fn replayed(fs: &dyn FileSystem) -> Result<(OfFiles, OfFiles)> {
    let mut seen = Vec::new();
    let file = |number, identity| WalFile { number, identity: Some(identity), path: path(number) };
    let files = [file(1, 0xabc), file(2, 0xdef)];
    let present: Vec<_> = files.into_iter().filter(|file| fs.exists(&file.path).unwrap()).collect();
    let parts = replay(
        fs,
        &present,
        |space| space == 0,
        |number, portion| {
            for batch in portion.changes.chunks(2) {
                assert!(matches!(batch, [(_, first, Change::Put { .. }), (_, second, _)] if first + 1 == *second));
                seen.push((number, batch[0].1));
            }
        },
    )?;
    Ok((seen, parts))
}

const ALL: [(u64, u64); 4] = [(1, 1), (1, 3), (2, 5), (2, 9)];

#[test]
fn records_come_back_with_their_numbers() {
    let fs = SimFs::new(1);
    two_files(&fs, true);
    let ends = [1, 2].map(|number| (number, fs.metadata(&path(number)).unwrap().len));
    assert_eq!(replayed(&fs).unwrap(), (ALL.to_vec(), ends.to_vec()));
}

/// After a power cut at any operation: a prefix, with all that was synced.
#[test]
fn power_cuts_leave_a_prefix() {
    let fs = SimFs::new(2);
    fs.record_crash_points();
    two_files(&fs, true);
    let synced_at: Vec<u64> = fs.trace().iter().filter(|e| e.op == vfs::Op::SyncData).map(|e| e.number).collect();
    assert_eq!(synced_at.len(), 3);
    for point in fs.take_crash_points() {
        for seed in 0..200 {
            let after = point.power_cut(seed);
            let (seen, _) = replayed(&after).unwrap_or_else(|e| panic!("{point:?} seed {seed}: {e}"));
            assert!(ALL.starts_with(&seen), "{point:?} seed {seed}: {seen:?}");
            // The first sync of data covers record one, the last one records two and three.
            let floor =
                if point.operation() > synced_at[2] { 3 } else { usize::from(point.operation() > synced_at[0]) };
            assert!(seen.len() >= floor, "{point:?} seed {seed}: {seen:?}");
        }
    }
}

/// Every byte damaged: after the last mark the tail is cut, before it the damage is named.
#[test]
fn damage_before_a_mark_is_an_error() {
    for sync_at_end in [false, true] {
        let fs = SimFs::new(3);
        two_files(&fs, sync_at_end);
        for number in [1, 2] {
            let len = fs.metadata(&path(number)).unwrap().len;
            let whole = replayed(&fs).unwrap().1;
            for offset in 0..len {
                fs.flip_bit(&path(number), offset, 3).unwrap();
                match replayed(&fs) {
                    Ok((seen, parts)) => {
                        assert!(ALL.starts_with(&seen) && seen.len() < 4);
                        assert!(parts < whole && parts.iter().all(|(n, _)| *n <= number), "{parts:?}");
                        // Record one was synced and marked; with the second sync, so were two and three.
                        let floor = if sync_at_end { 3 } else { 1 };
                        assert!(seen.len() >= floor, "file {number}, offset {offset}: {seen:?}");
                    }
                    Err(error) => assert!(error.to_string().contains(".wal"), "{error}"),
                }
                fs.flip_bit(&path(number), offset, 3).unwrap();
            }
        }
    }
}

/// A file is read a stretch at a time: records at and across the ends of stretches come back, also those that are
/// longer than one, in portions of no more changes than may be; and so does what is left of it once it is cut
/// somewhere.
#[test]
fn long_files_come_back_in_portions() {
    const MIB: usize = 1 << 20;
    let fs = SimFs::new(4);
    let mut wal = WalWriter::create(&fs, &path(1), 1, 0xabc, Before::default()).unwrap();
    let (mut seqno, mut ends) = (1, Vec::new());
    for len in [3 * MIB, 5 * MIB, 1, 20 * MIB, 8 * MIB, 1] {
        wal.append(WriteBatch::new().put(b"long", &vec![7; len]), seqno).unwrap();
        let mut many = WriteBatch::new();
        for at in 0..PORTION_CHANGES as u32 / 2 {
            many.put(&at.to_be_bytes(), b"");
        }
        wal.append(&many, seqno + 1).unwrap();
        seqno += 1 + many.len() as u64;
        ends.push((wal.len(), seqno - 1));
    }
    let file = || WalFile { number: 1, identity: Some(0xabc), path: path(1) };
    let replayed = || {
        let mut last = 0;
        let see = |_: u64, portion: &Portion<'_>| {
            assert!(portion.changes.len() < 2 * PORTION_CHANGES);
            for (_, seqno, _) in &portion.changes {
                assert_eq!(*seqno, last + 1);
                last = *seqno;
            }
        };
        let parts = replay(&fs, &[file()], |_| true, see).unwrap();
        (last, parts)
    };
    let (whole, last) = ends[ends.len() - 1];
    assert_eq!(replayed(), (last, vec![(1, whole)]));
    for (end, last) in ends.into_iter().rev() {
        for cut in [0, 1] {
            fs.open(&path(1), OpenOptions::write()).unwrap().set_len(end - cut).unwrap();
            let (found, parts) = replayed();
            assert!(if cut == 0 { found == last && parts == [(1, end)] } else { found < last && parts[0].1 < end });
        }
    }
}

#[test]
fn golden_file() {
    let fs = SimFs::new(1);
    two_files(&fs, false);
    crate::golden::compare("plex-wal-1", &fs.contents()[&path(1)]);
}
