//! Damage at rest: whatever happens to the files' bytes, recovery never returns a wrong record. It ends before the
//! damage if nothing declares more durable; otherwise it refuses, and names file and offset.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use base::clock::ManualClock;
use base::{Lsn, Rng};
use vfs::{FileSystem, Outage, SimFs};

use super::crash::{count, live, seeds};
use super::{Records, history, read, settle, stepped};
use crate::frame::{self, Kind};
use crate::reader::SegmentFile;
use crate::segment::{self, HEADER_BYTES};
use crate::{LogMode, LogStart, RecoverError};

/// A log of a few segments and histories, and its records.
fn small_log(seed: u64, clean: bool) -> (SimFs, Records) {
    let (mut fs, clock) = (SimFs::new(seed), Arc::new(ManualClock::new(1000)));
    let mut records = Vec::new();
    for life in 1..=3u8 {
        let (_, end) = read(&fs).expect("readable");
        let log = stepped(&fs, &clock, LogMode::Sync, LogStart::after(end, history(life)));
        for n in 0..8u8 {
            let payload = vec![n; 40 + usize::from(n) * 3 + seed as usize * 7];
            records.push((log.append(0, &payload), payload));
            settle(&log);
        }
        if clean || life == 2 {
            log.close().expect("the disk works");
        }
        drop(log);
        fs = fs.recover(Outage::ProcessKill);
    }
    (fs, records)
}

/// The files, each with the offset of its last byte that is not zero.
fn used(fs: &SimFs) -> Vec<(std::path::PathBuf, u64)> {
    let len = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    fs.contents().into_iter().map(|(path, bytes)| (path, len(&bytes))).collect()
}

/// Flips a bit in every byte of small logs, 100 KiB in all, one at a time. After an end in order, everything before the
/// last mark is known to be durable, so every flip in an earlier frame is refused.
#[test]
fn every_flipped_byte_is_refused_or_cut() {
    let mut flipped = 0;
    for (seed, clean) in (1..=10).flat_map(|seed| [(seed, true), (seed, false)]) {
        let (fs, records) = small_log(seed, clean);
        let untouched = fs.crash_point();
        let (mut refused, mut cut, mut harmless) = (0, 0, 0);
        for (path, len) in used(&fs) {
            // All headers are alike: test every byte of one, some bytes of the others.
            let is_first = path == Path::new("/log-0000000000000000");
            for offset in (0..len).filter(|offset| is_first || *offset >= HEADER_BYTES || offset % 31 == 0) {
                let fs = untouched.after(Outage::ProcessKill);
                fs.flip_bit(&path, offset, (offset % 8) as u8).expect("the file is there");
                flipped += 1;
                match read(&fs) {
                    Ok((found, end)) if found.len() < records.len() => {
                        assert_eq!(found[..], records[..found.len()]);
                        assert!(!clean, "{}: {offset}: lost without a word", path.display());
                        // Only bytes that no mark covers yet: the last record of the last life.
                        assert!(found.len() + 1 >= records.len(), "{}: {offset}: {}", path.display(), found.len());
                        assert!(end.torn.is_some_and(|torn| torn.path == path && torn.offset <= offset));
                        cut += 1;
                    }
                    Ok((found, _)) => {
                        assert_eq!(found, records);
                        harmless += 1;
                    }
                    Err(RecoverError::Damaged { path: named, offset: at, .. }) => {
                        assert!(
                            named == path && at <= offset,
                            "{}: {offset}: named {}, {at}",
                            path.display(),
                            named.display()
                        );
                        assert!(offset - at < 200, "the frame before is named: {at} for {offset}");
                        refused += 1;
                    }
                    Err(other) => panic!("{}: {offset}: {other}", path.display()),
                }
            }
        }
        assert!(
            refused > 1000 && harmless > 100 && (cut > 0) != clean,
            "{refused} refused, {cut} cut, {harmless} harmless"
        );
    }
    assert!(flipped >= 100 << 10, "{flipped} bytes");
}

const SECTOR: u64 = 512;

/// Random damage in logs of some hundred KiB: flipped bits, lost sectors, and misplaced sectors. No wrong record is
/// returned. After an end in order, no record is missing silently: if the end mark is damaged too, the header still
/// declares the records durable. After another end, bytes after the last mark are a torn tail; if the last sector is
/// lost, even that is invisible.
#[test]
fn damage_in_big_logs_is_refused_or_cut() {
    let rounds = count("DAMAGE_ROUNDS", 150);
    let (mut refused, mut cut, mut harmless) = (0, 0, 0);
    for (seed, clean) in seeds(2).flat_map(|seed| [(seed, true), (seed, false)]) {
        let (fs, clock) = (SimFs::new(seed), Arc::new(ManualClock::new(1000)));
        let log = stepped(&fs, &clock, LogMode::Sync, LogStart::fresh(history(1), Lsn(0)));
        let records = live(&fs, &log, &clock, seed, 400, &Vec::new()).records;
        if clean {
            log.close().expect("the disk works");
        } else {
            log.sync().expect("the disk works");
        }
        drop(log);
        let files: Vec<_> = used(&fs).into_iter().filter(|(_, len)| *len > 0).collect();
        assert!(files.iter().map(|(_, len)| len).sum::<u64>() > 100 << 10);
        let (untouched, bytes, mut rng) = (fs.crash_point(), fs.contents(), Rng::new(seed));
        for round in 0..rounds {
            let (path, len) = &files[rng.below(files.len() as u64) as usize];
            let fs = untouched.after(Outage::ProcessKill);
            let damaged = damage_at_random(&fs, path, &bytes[path][..*len as usize], &mut rng);
            let what = format!("seed {seed}, round {round}, {} at {damaged:?} of {len}", path.display());
            match read(&fs) {
                Ok((found, _)) if found == records => harmless += 1,
                Ok((found, end)) => {
                    assert!(found[..] == records[..found.len()], "{what}: a wrong record");
                    assert!(!clean, "{what}: durable, and lost");
                    match end.torn {
                        // Without the end of a segment, the next one continues nothing.
                        Some(torn) if damaged.end >= *len => assert!(torn.path >= *path, "{what}: {torn:?}"),
                        Some(torn) => assert_eq!(torn.path, *path, "{what}"),
                        None => {
                            assert!(damaged.end >= *len && records.len() - found.len() < 20, "{what}: no torn tail")
                        }
                    }
                    cut += 1;
                }
                Err(RecoverError::Damaged { path: named, .. } | RecoverError::Header { path: named }) => {
                    assert_eq!(named, *path, "{what}");
                    refused += 1;
                }
                Err(other) => panic!("{what}: {other}"),
            }
        }
    }
    assert!(refused > cut && cut > 0 && harmless > 0, "{refused} refused, {cut} cut, {harmless} harmless");
    // For scripts that count damages.
    println!("damages: {}", refused + cut + harmless);
}

/// Flips one to four bits, zeroes a sector, or fills it with another part of the file; returns where bytes may have
/// changed.
fn damage_at_random(fs: &SimFs, path: &Path, bytes: &[u8], rng: &mut Rng) -> Range<u64> {
    let len = bytes.len() as u64;
    let (first, sector) = (rng.below(len), rng.below(len) / SECTOR * SECTOR);
    let end = |from: u64| (from + SECTOR).min(len) as usize;
    match rng.below(10) {
        0 => fs.damage(path, sector, &vec![0; end(sector) - sector as usize]).map(|()| sector..sector + SECTOR),
        1 => {
            let from = rng.below(len) / SECTOR * SECTOR;
            let other = &bytes[from as usize..end(from)];
            let other = &other[..other.len().min(end(sector) - sector as usize)];
            fs.damage(path, sector, other).map(|()| sector..sector + SECTOR)
        }
        _ => {
            for _ in 0..=rng.below(4) {
                let offset = (first + rng.below(64)).min(len - 1);
                fs.flip_bit(path, offset, rng.below(8) as u8).expect("the file is there");
            }
            Ok(first..first + 64)
        }
    }
    .expect("the file is there")
}

/// After an end in order, the last sector is lost, or the last records with it: an error, not a shorter log. If it held
/// only the end mark, nothing is missing.
#[test]
fn the_end_of_a_log_ended_in_order_is_missed() {
    let (mut refused, mut whole) = (0, 0);
    for seed in 1..=10 {
        let (fs, records) = small_log(seed, true);
        let untouched = fs.crash_point();
        // No byte of it is preallocated any more.
        let (path, bytes) = fs.contents().into_iter().next_back().expect("a segment");
        let len = bytes.len() as u64;
        for from in [len - frame::MARK_FRAME_BYTES as u64, len - 40, len - 400] {
            for damage in [0, 0xa5] {
                let fs = untouched.after(Outage::ProcessKill);
                fs.damage(&path, from, &vec![damage; (len - from) as usize]).expect("the file is there");
                match read(&fs) {
                    Ok((found, end)) => {
                        assert!(found == records && !end.clean && from == len - frame::MARK_FRAME_BYTES as u64);
                        whole += 1;
                    }
                    Err(RecoverError::Damaged { path: named, offset, .. }) => {
                        assert!(named == path && offset <= from);
                        refused += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
    assert_eq!((refused, whole), (40, 20));
}

/// A lost sector in the middle of a log is an error that names the next step; so is a lost file.
#[test]
fn lost_sectors_and_files_are_named() {
    let (fs, records) = small_log(2, true);
    let (untouched, mut refused) = (fs.crash_point(), 0);
    let first = Path::new("/log-0000000000000000");
    let fs = untouched.after(Outage::ProcessKill);
    fs.damage(first, HEADER_BYTES + 100, &[0; 512]).expect("the file is there");
    let error = read(&fs).expect_err("damaged");
    assert!(matches!(&error, RecoverError::Damaged { path, .. } if path == first));
    let text = error.to_string();
    assert!(
        text.contains("log-0000000000000000") && text.contains("offset") && text.contains("onggi restore"),
        "{text}"
    );

    for (path, _) in used(&fs).into_iter().rev().skip(1) {
        let fs = untouched.after(Outage::ProcessKill);
        fs.remove_file(&path).expect("the file is there");
        match read(&fs) {
            // A copy that a start made of frames that the segment before it also has.
            Ok((found, _)) => assert_eq!(found, records),
            Err(RecoverError::Damaged { .. } | RecoverError::Missing { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused >= 2);
    let fs = untouched.after(Outage::ProcessKill);
    for copy in [0, 2048] {
        fs.damage(first, copy, &[7; 128]).expect("the file is there");
    }
    assert!(matches!(read(&fs), Err(RecoverError::Header { path }) if path == first));
    let fs = untouched.after(Outage::ProcessKill);
    fs.make_unreadable(first, HEADER_BYTES + 5..HEADER_BYTES + 6, None).expect("the file is there");
    assert!(matches!(read(&fs), Err(RecoverError::File { .. })), "an unreadable sector is no torn tail");
}

/// Whatever follows the end - zeros, garbage, frames of another history, older frames, half a frame - is a torn tail.
/// All records are found, and the log continues after them.
#[test]
fn any_tail_is_cut() {
    for seed in seeds(20) {
        let (fs, clock) = (SimFs::new(seed), Arc::new(ManualClock::new(1000)));
        let log = stepped(&fs, &clock, LogMode::Sync, LogStart::fresh(history(1), Lsn(0)));
        let mut records = live(&fs, &log, &clock, seed, 30, &Vec::new()).records;
        log.sync().expect("the disk works");
        let end = log.end_lsn();
        drop(log);
        let last = crate::segments(&fs, Path::new("/")).expect("readable").pop().expect("a segment");
        let at = segment::offset(last.first.0, end.0);
        let mut rng = Rng::new(seed);
        let mut garbage = vec![0; 1 + rng.below(3000) as usize];
        rng.fill(&mut garbage);
        let whole = frame::encode(&history(1), end.0, Kind::Record, &[9; 500]);
        let tails: [Vec<u8>; 6] = [
            vec![0; 100],
            garbage,
            vec![0xff; 700],
            frame::encode(&history(2), end.0, Kind::Record, b"of another history"),
            frame::encode(&history(1), 0, Kind::Record, b"of another place"),
            whole[..rng.below(whole.len() as u64 - 1) as usize].to_vec(),
        ];
        for (number, tail) in tails.into_iter().enumerate() {
            let fs = fs.recover(Outage::ProcessKill);
            fs.open(&last.path, vfs::OpenOptions::write()).unwrap().write_all_at(&tail, at).unwrap();
            let (found, end_found) = read(&fs).unwrap_or_else(|error| panic!("seed {seed}, tail {number}: {error}"));
            assert_eq!((&found, end_found.end_lsn), (&records, end), "seed {seed}, tail {number}");
            assert_eq!(end_found.torn.is_some(), tail.iter().any(|byte| *byte != 0));
            let log = stepped(&fs, &clock, LogMode::Sync, LogStart::after(end_found, history(3)));
            records.push((log.append(0, b"on"), b"on".to_vec()));
            settle(&log);
            drop(log);
            assert_eq!(read(&fs.recover(Outage::PowerCut { seed })).expect("readable").0, records);
            records.pop();
        }
    }
}

/// A newer format and an unknown kind of frame are refused by name, and nothing is changed.
#[test]
fn what_a_newer_program_wrote_is_refused() {
    let (fs, _) = small_log(3, true);
    let path = Path::new("/log-0000000000000000");
    let mut header = fs.contents()[path][..128].to_vec();
    header[8] = 4;
    let checksum = base::checksum::crc32c(&header[..124]);
    header[124..].copy_from_slice(&checksum.to_le_bytes());
    let newer = fs.recover(Outage::ProcessKill);
    newer.damage(path, 0, &header).expect("the file is there");
    let error = read(&newer).expect_err("a newer format");
    assert!(matches!(error, RecoverError::Newer { version: 4, .. }), "{error}");

    let fs = fs.recover(Outage::ProcessKill);
    let mut frame = frame::encode(&history(1), 0, Kind::Record, &[1; 40]);
    frame[4] = 9;
    frame::seal(&mut frame, &history(1), 0, &[]);
    fs.damage(path, HEADER_BYTES, &frame).expect("the file is there");
    let error = read(&fs).expect_err("an unknown kind");
    assert!(matches!(error, RecoverError::UnknownKind { kind: 9, offset: HEADER_BYTES, .. }), "{error}");
}

/// A length beyond the end of the file allocates nothing and is no frame.
#[test]
fn absurd_lengths_are_no_frames() {
    let (fs, _) = small_log(4, true);
    let path = Path::new("/log-0000000000000000");
    let mut bytes = vec![1, 2, 3, 4, 1];
    base::varint::put(&mut bytes, u64::MAX);
    fs.damage(path, HEADER_BYTES, &bytes).expect("the file is there");
    let mut file = SegmentFile::open(&fs, path.into(), segment::first_of(path.file_name().unwrap()).unwrap()).unwrap();
    assert!(file.frame(&history(1), 0).unwrap().is_none());
}
