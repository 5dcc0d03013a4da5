//! Which encoder works with which dictionary, and their files on a simulated disk.

use super::*;
use crate::dictionary::{DictionaryFile, FileHash};
use crate::samples::{dictionary, trained};
use std::num::NonZeroU32;
use std::path::Path;
use vfs::{FileSystem, SimFs};

const DIR: &str = "/data";

fn numbers(all: &Dictionaries) -> Vec<u32> {
    all.list().iter().map(|found| found.number().0.get()).collect()
}

fn file(number: u32, content: Vec<u8>) -> DictionaryFile {
    DictionaryFile {
        number: DictionaryNumber(NonZeroU32::new(number).expect("not 0")),
        class: b"class".to_vec(),
        content,
    }
}

/// A dictionary stays known for a value, a lease or an encoder, and is forgotten when none is left.
#[test]
fn the_needed_are_not_forgotten() {
    let all = Dictionaries::default();
    let [by_value, by_lease, by_encoder] =
        [1, 2, 3].map(|number| all.insert(dictionary(number, b"", trained(u64::from(number)))));
    let number = by_value.dictionary().number();
    drop(by_value);
    let encoder = by_encoder.into_encoder(1).expect("prepared");
    all.forget(|unused| unused != number);
    assert_eq!(numbers(&all), [1, 2, 3]);
    all.forget(|_| true);
    assert_eq!(numbers(&all), [2, 3]);
    assert!(all.get(number).is_none() && all.lease(number).is_err());

    let set = by_lease.clone();
    drop(by_lease);
    all.forget(|_| true);
    assert_eq!(numbers(&all), [2, 3]);
    drop(set);
    all.forget(|_| true);
    assert_eq!(numbers(&all), [3]);
    drop(encoder);
    all.forget(|_| true);
    assert!(all.list().is_empty());
}

/// The state for compressing is freed after a time without use, and is created again when needed; the stored form is
/// the same before and after.
#[test]
fn what_is_prepared_rests_when_nobody_compresses() {
    let all = Arc::<Dictionaries>::default();
    let encoder = all.insert(dictionary(1, b"", trained(1))).into_encoder(1).expect("prepared");
    let value = crate::samples::documents(7, 1).pop().expect("one");
    let mut workspace = crate::Workspace::new();
    let mut stored = || {
        let mut out = Vec::new();
        assert!(workspace.encode(crate::Method::Dictionary(&encoder), &value, usize::MAX, &mut out));
        out
    };
    let before = stored();
    assert!(!encoder.rest(), "it was used just now");
    assert_eq!(stored(), before);
    assert!(!encoder.rest(), "it was used between the looks");
    assert!(encoder.rest(), "nobody has compressed since");
    assert!(!encoder.rest(), "there is nothing left to give back");
    assert_eq!(stored(), before);
    assert!(!encoder.rest());
    let mut back = Vec::new();
    workspace.decode(&before, &mut all.reader(), &mut back).expect("it is read");
    assert_eq!(back, value);
}

/// A thread that reads sees dictionaries that came and went after its reader was made.
#[test]
fn readers_follow() {
    let all = Arc::<Dictionaries>::default();
    let mut reader = all.reader();
    let lease = all.insert(dictionary(1, b"class", trained(1)));
    let number = lease.dictionary().number();
    assert_eq!(reader.find(number).expect("it is known").class(), b"class");
    drop(lease);
    all.forget(|_| true);
    assert!(matches!(reader.find(number), Err(CodecError::NoDictionary(missing)) if missing == number));
}

/// A dictionary whose making has returned is there after a power cut; before that, it is whole or not there.
#[test]
fn what_was_made_is_durable() {
    let fs = SimFs::new(1);
    vfs::create_dirs_synced(&fs, Path::new(DIR)).expect("a new disk");
    fs.record_crash_points();
    let made = [1, 2].map(|number| {
        let made = Dictionary::create(&fs, Path::new(DIR), file(number, trained(u64::from(number)))).expect("made");
        (made.hash(), fs.operations())
    });
    for point in fs.take_crash_points() {
        for seed in 0..8 {
            let after = point.power_cut(seed);
            for (hash, operations) in made {
                match Dictionary::open(&after, Path::new(DIR), hash) {
                    Ok(found) => assert_eq!(found.hash(), hash),
                    Err(error) => {
                        assert!(point.operation() <= operations, "seed {seed}: {error}");
                        assert!(error.to_string().contains("it is missing"), "seed {seed}: {error}");
                    }
                }
            }
        }
    }
}

/// A bit that turned anywhere in a file is found, and said with the file's name.
#[test]
fn damaged_files_are_named() {
    let (fs, dir) = (SimFs::new(5), Path::new(DIR));
    fs.create_dir_all(dir).expect("a new disk");
    let hash = Dictionary::create(&fs, dir, file(1, trained(1))).expect("made").hash();
    let path = dir.join(hash.to_string());
    let len = fs.metadata(&path).expect("it is there").len;
    for offset in (0..len).step_by(97).chain([0, 8, 9, 12, len - 1]) {
        fs.flip_bit(&path, offset, 3).expect("it is there");
        let error = Dictionary::open(&fs, dir, hash).expect_err("damaged").to_string();
        assert!(error.contains(&hash.to_string()) && error.contains("belong into"), "{offset}: {error}");
        fs.flip_bit(&path, offset, 3).expect("it is there");
    }
    let error = Dictionary::open(&fs, dir, FileHash(7)).expect_err("never made").to_string();
    assert!(error.contains("/data/dict-00000000000000000000000000000007: it is missing"), "{error}");
}

/// What is no dictionary is refused before anything is written.
#[test]
fn only_dictionaries_are_made() {
    let (fs, dir) = (SimFs::new(6), Path::new("/"));
    for content in [vec![], b"some text".to_vec(), vec![0; 2 << 20]] {
        let made = Dictionary::create(&fs, dir, file(1, content));
        assert!(matches!(made, Err(CodecError::NotADictionary(_))));
    }
    let long = DictionaryFile { class: vec![0; 300], ..file(1, trained(1)) };
    assert!(matches!(Dictionary::create(&fs, dir, long), Err(CodecError::NotADictionary(_))));
    assert!(fs.contents().is_empty());
}
