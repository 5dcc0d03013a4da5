//! Dictionaries on a simulated disk: crashes at every operation, failures, leases, removal.

use super::*;
use crate::samples::{documents, registry, trained};
use crate::{Method, Workspace};
use std::collections::BTreeSet;
use vfs::{Fault, Op, OpenOptions, SimFs, errno};

fn names(all: &Dictionaries) -> Vec<String> {
    all.list().iter().map(|found| found.file_name().to_owned()).collect()
}

fn on_disk(fs: &SimFs, all: &Dictionaries) -> BTreeSet<String> {
    let entries = fs.read_dir(all.dir()).expect("the directory is there");
    entries.iter().map(|entry| entry.name.to_str().expect("text").to_owned()).collect()
}

/// Whatever the owner made durable after a dictionary came finds that dictionary after a power cut at any operation, and can
/// be read with it.
#[test]
fn a_durable_value_never_misses_its_dictionary() {
    let fs = SimFs::new(1);
    let contents = [trained(1), trained(2), trained(3)];
    let all = registry(&fs);
    let log = fs.open(Path::new("/data/log"), OpenOptions::write().create_new()).expect("a new file");
    fs.sync_dir(Path::new("/data")).expect("synced");
    fs.record_crash_points();
    let values = documents(9, 3);
    let mut workspace = Workspace::new();
    let mut offset = 0;
    for (content, value) in contents.into_iter().zip(&values) {
        let encoder = all.add(b"", content).and_then(|lease| lease.into_encoder(1)).expect("added");
        let mut stored = vec![0; 4];
        assert!(workspace.encode(Method::Dictionary(&encoder), value, usize::MAX, &mut stored));
        encoder.dictionary().values_stored(1);
        let (len, body) = stored.split_first_chunk_mut().expect("four bytes of length");
        *len = (body.len() as u32).to_le_bytes();
        log.write_all_at(&stored, offset).expect("written");
        offset += stored.len() as u64;
        log.sync_data().expect("synced");
    }
    let mut read = BTreeSet::new();
    for point in fs.take_crash_points() {
        for seed in 0..8 {
            let after = point.power_cut(seed);
            let found = registry(&after);
            assert!(on_disk(&after, &found).iter().all(|name| names(&found).contains(name)), "no leftovers");
            let log = vfs::read_file(&after, Path::new("/data/log"), 1 << 20).expect("the log is there");
            // Bytes that were never synced may be missing anywhere; a value counts when it is whole.
            let mut rest = &log[..];
            let mut whole = 0;
            for value in &values {
                let Some((len, tail)) = rest.split_first_chunk() else { break };
                let len = u32::from_le_bytes(*len) as usize;
                let Some((stored, tail)) = tail.split_at_checked(len).filter(|_| len > 0) else { break };
                let mut out = Vec::new();
                match workspace.decode(stored, &mut found.reader(), &mut out) {
                    Ok(()) if out == *value => whole += 1,
                    Err(CodecError::NoDictionary(number)) => panic!("dictionary {number} is missing, seed {seed}"),
                    _ => break,
                }
                rest = tail;
            }
            read.insert(whole);
        }
    }
    assert_eq!(read, BTreeSet::from([0, 1, 2, 3]));
}

/// A number whose file may have been written is never given again, whatever step failed and whatever a crash leaves.
#[test]
fn failed_writes_burn_their_number() {
    for op in [Op::Open, Op::Write, Op::SyncAll, Op::Rename, Op::SyncDir] {
        let fs = SimFs::new(2);
        let all = registry(&fs);
        fs.inject(Fault::fail(op, errno::EIO));
        all.add(b"", trained(1)).expect_err("the disk failed");
        assert!(all.list().is_empty(), "{op}");
        let kept = all.add(b"", trained(2)).expect("the disk works again");
        assert_eq!(kept.dictionary().number().0.get(), 2, "{op}");
        for seed in 0..20 {
            let found = registry(&fs.crash_point().power_cut(seed));
            let numbers: Vec<u32> = found.list().iter().map(|found| found.number().0.get()).collect();
            assert!(numbers == [2] || numbers == [1, 2], "{op}: {numbers:?}");
        }
    }
}

/// A dictionary stays for a value, a lease or an encoder, and goes when none is left; the newest always stays, so that its
/// number is not given again by the next start.
#[test]
fn the_needed_and_the_newest_stay() {
    let fs = SimFs::new(3);
    let all = registry(&fs);
    let [by_value, by_lease, by_encoder, newest] = [1, 2, 3, 4].map(|seed| all.add(b"", trained(seed)).expect("added"));
    by_value.dictionary().values_stored(2);
    let number = by_value.dictionary().number();
    drop((by_value, newest));
    let encoder = by_encoder.into_encoder(1).expect("prepared");
    assert_eq!(all.remove_unneeded().expect("the disk works"), []);

    all.get(number).expect("it is there").values_dropped(1);
    assert_eq!(all.remove_unneeded().expect("the disk works"), []);
    all.get(number).expect("it is there").values_dropped(1);
    assert_eq!(all.remove_unneeded().expect("the disk works"), [number]);
    assert!(all.get(number).is_none() && all.lease(number).is_err());

    let second = by_lease.dictionary().number();
    let set = by_lease.clone();
    drop(by_lease);
    assert_eq!(all.remove_unneeded().expect("the disk works"), []);
    drop(set);
    assert_eq!(all.remove_unneeded().expect("the disk works"), [second]);
    let third = encoder.dictionary().number();
    drop(encoder);
    assert_eq!(all.remove_unneeded().expect("the disk works"), [third]);
    assert_eq!(on_disk(&fs, &all), names(&all).into_iter().collect());

    let again = registry(&fs);
    assert_eq!(names(&again), names(&all));
    assert_eq!(again.add(b"", trained(5)).expect("added").dictionary().number().0.get(), 5);
}

/// Also after a write that failed, the newest that there is stays.
#[test]
fn a_failed_write_is_not_the_newest() {
    let fs = SimFs::new(8);
    let all = registry(&fs);
    drop(all.add(b"", trained(1)).expect("added"));
    fs.inject(Fault::fail(Op::Write, errno::ENOSPC));
    all.add(b"", trained(2)).expect_err("the disk is full");
    assert_eq!(all.remove_unneeded().expect("the disk works"), []);
    assert_eq!(registry(&fs).add(b"", trained(3)).expect("added").dictionary().number().0.get(), 2);
}

/// A thread that reads sees dictionaries that came and went after its reader was made.
#[test]
fn readers_follow() {
    let all = registry(&SimFs::new(4));
    let mut reader = all.reader();
    let lease = all.add(b"class", trained(1)).expect("added");
    let number = lease.dictionary().number();
    assert_eq!(reader.find(number).expect("it is known").class(), b"class");
    drop(lease);
    drop(all.add(b"", trained(2)).expect("added"));
    all.remove_unneeded().expect("the disk works");
    assert!(matches!(reader.find(number), Err(CodecError::NoDictionary(missing)) if missing == number));
}

/// A bit that turned anywhere in a file is found at the start, with the file's name; so are two files of one number.
#[test]
fn damaged_files_are_named() {
    let fs = SimFs::new(5);
    let all = registry(&fs);
    let name = all.add(b"class", trained(1)).expect("added").dictionary().file_name().to_owned();
    let path = all.dir().join(&name);
    let len = fs.metadata(&path).expect("it is there").len;
    for offset in (0..len).step_by(97).chain([0, 8, 9, 12, len - 1]) {
        fs.flip_bit(&path, offset, 3).expect("it is there");
        let error = Dictionaries::open(Arc::new(fs.clone()), all.dir()).expect_err("damaged").to_string();
        assert!(error.contains(&name) && error.contains("belong into"), "{offset}: {error}");
        fs.flip_bit(&path, offset, 3).expect("it is there");
    }
    let copy = DictionaryFile { number: all.list()[0].number(), class: vec![], content: trained(2) };
    let bytes = copy.encode().expect("good");
    vfs::replace_file(&fs, &all.dir().join(dictionary::file_name(&bytes)), &bytes).expect("written");
    let error = Dictionaries::open(Arc::new(fs.clone()), all.dir()).expect_err("two of one number").to_string();
    assert!(error.contains("it has number 1, as "), "{error}");
}

/// What is no dictionary is refused before anything is written.
#[test]
fn only_dictionaries_are_added() {
    let fs = SimFs::new(6);
    let all = registry(&fs);
    for content in [vec![], b"some text".to_vec(), vec![0; 2 << 20]] {
        assert!(matches!(all.add(b"", content), Err(CodecError::NotADictionary(_))));
    }
    assert!(matches!(all.add(&[0; 300], trained(1)), Err(CodecError::NotADictionary(_))));
    assert!(on_disk(&fs, &all).is_empty());
    assert_eq!(all.add(b"", trained(1)).expect("added").dictionary().number().0.get(), 1);
}
