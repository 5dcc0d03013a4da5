//! Values through every method and back; limits, damage and the golden file.

use super::*;
use crate::samples::{dictionary, documents, trained};
use base::Rng;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

/// One registry with one dictionary for all tests here, which only read it.
static ENCODER: LazyLock<(Arc<crate::Dictionaries>, Encoder)> = LazyLock::new(|| {
    let all = Arc::<crate::Dictionaries>::default();
    let encoder = all.insert(dictionary(1, b"documents", trained(1))).into_encoder(1).expect("a dictionary");
    (all, encoder)
});

fn methods() -> [Method<'static>; 6] {
    let encoder = &ENCODER.1;
    [Method::Lzf, Method::Lz4, Method::Zstd(1), Method::Zstd(-5), Method::Zstd(19), Method::Dictionary(encoder)]
}

fn decoded(workspace: &mut Workspace, stored: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut out = Vec::new();
    workspace.decode(stored, &mut ENCODER.0.reader(), &mut out).map(|()| out)
}

/// Every method gives back what it took, of all sizes at which a header changes, and shrinks what repeats.
#[test]
fn every_size_comes_back() {
    let mut workspace = Workspace::new();
    let text = documents(2, 6000).concat();
    let sizes = [16, 127, 128, 255, 256, 257, 1000, 16_383, 16_384, 65_534, 65_535, 65_791, 65_792, 600_000];
    for method in methods() {
        for size in sizes {
            let mut out = b"kept".to_vec();
            let repeated: Vec<u8> = text[..size / 2].iter().chain(&text[..size - size / 2]).copied().collect();
            let fitted = workspace.encode(method, &repeated, usize::MAX, &mut out);
            assert!(fitted || size < 256, "{method:?}, {size}");
            if !fitted {
                assert_eq!(out, b"kept");
                continue;
            }
            assert!(out.len() < size + 4);
            assert_eq!(decoded(&mut workspace, &out[4..]).expect("good"), repeated, "{method:?}, {size}");
        }
    }
}

/// A dictionary is what makes small documents small: no other method comes near.
#[test]
fn small_documents_need_a_dictionary() {
    let mut workspace = Workspace::new();
    let all = documents(3, 200);
    let mut stored_by = |method| -> usize {
        let mut stored = |value: &Vec<u8>| {
            let mut out = Vec::new();
            if workspace.encode(method, value, usize::MAX, &mut out) { out.len() } else { value.len() }
        };
        all.iter().map(&mut stored).sum()
    };
    let [lzf, lz4, zstd, _, _, dictionary] = methods().map(&mut stored_by);
    let raw: usize = all.iter().map(Vec::len).sum();
    assert!(dictionary * 2 < raw, "{dictionary} of {raw}");
    for other in [lzf, lz4, zstd] {
        assert!(dictionary * 3 < other * 2, "{dictionary}, without {other}");
    }
}

/// What does not shrink stays raw, and the caller's limit is kept to the byte.
#[test]
fn limits_are_kept() {
    let mut workspace = Workspace::new();
    let mut noise = vec![0; 500];
    Rng::new(4).fill(&mut noise);
    let value = documents(5, 20).concat();
    for method in methods() {
        let mut out = Vec::new();
        for value in [&noise[..], b"", b"a", b"abcd"] {
            assert!(!workspace.encode(method, value, usize::MAX, &mut out), "{method:?}");
        }
        assert!(workspace.encode(method, &value, usize::MAX, &mut out));
        let len = out.len();
        for (len_max, fits) in [(0, false), (1, false), (len - 1, false), (len, true)] {
            out.clear();
            assert_eq!(workspace.encode(method, &value, len_max, &mut out), fits, "{method:?}, {len_max}");
            assert_eq!(out.len(), if fits { len } else { 0 });
        }
    }
}

/// A value whose dictionary is not there is an error that names it.
#[test]
fn a_missing_dictionary_is_named() {
    let mut out = Vec::new();
    let mut workspace = Workspace::new();
    assert!(workspace.encode(methods()[5], &documents(6, 1)[0], usize::MAX, &mut out));
    let error = workspace.decode(&out, &mut Reader::default(), &mut Vec::new()).expect_err("no dictionary");
    assert_eq!(error.to_string(), "dictionary 1 is not there");
}

/// The stored forms of version 1, made once and read for ever: a dictionary file, and a value in every form.
mod golden {
    use super::*;
    use crate::dictionary::{self, Dictionary, DictionaryFile, FileHash};
    use crate::stored::put_header;
    use std::path::{Path, PathBuf};
    use vfs::RealFs;

    const VALUE: &[u8] =
        br#"{"id": 77, "owner": "user42", "tags": ["jar"], "text": "jar jar lid stone", "updated_at": 1700000001}"#;

    fn testdata() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1/")
    }

    /// Every form of the value; frames stay whole by writing their forms around what the contexts give.
    fn written() -> Vec<(String, Vec<u8>)> {
        let mut workspace = Workspace::new();
        let encode = |workspace: &mut Workspace, method| {
            let mut out = Vec::new();
            let value = VALUE.repeat(2);
            assert!(workspace.encode(method, &value, usize::MAX, &mut out));
            out
        };
        let mut all: Vec<(String, Vec<u8>)> = [methods()[0], methods()[1], methods()[2], methods()[5]]
            .into_iter()
            .map(|method| encode(&mut workspace, method))
            .map(|stored| (format!("{:?}", Stored::parse(&stored).expect("good").form), stored))
            .collect();
        for (bare, form) in [(2, Form::ZstdFrame), (3, Form::ZstdDictionaryFrame(ENCODER.1.dictionary().number()))] {
            let stored = Stored::parse(&all[bare].1).expect("good");
            let mut out = Vec::new();
            put_header(form, stored.len, &mut out);
            // The header of RFC 8878 for this length, which bare forms leave out.
            assert!((0..256).contains(&stored.len));
            out.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0x20, stored.len as u8]);
            out.extend_from_slice(stored.payload);
            all.push((format!("{form:?}"), out));
        }
        all
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn version_1_is_read() {
        let dir = testdata();
        if std::env::var_os("ONGGI_REWRITE_TESTDATA").is_some() {
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(&dir).expect("testdata is writable");
            let dictionary = ENCODER.1.dictionary();
            let file = DictionaryFile {
                number: dictionary.number(),
                class: dictionary.class().to_vec(),
                content: dictionary.content().to_vec(),
            };
            std::fs::write(dir.join(dictionary.hash().to_string()), file.encode().expect("good")).expect("writable");
            let text: String = written().iter().map(|(form, bytes)| format!("{form} {}\n", hex(bytes))).collect();
            std::fs::write(dir.join("stored-values.txt"), text).expect("writable");
        }
        let names = std::fs::read_dir(&dir).expect("testdata is there");
        let mut names = names.map(|entry| entry.expect("readable").file_name().into_string().expect("text"));
        let name = names.find(|name| name.starts_with(dictionary::FILE_PREFIX)).expect("a dictionary");
        let bytes = std::fs::read(dir.join(&name)).expect("readable");
        let hash = FileHash::of(&bytes);
        assert_eq!(hash.to_string(), name);
        let file = DictionaryFile::decode(&bytes).expect("good");
        assert_eq!((file.number.0.get(), &file.class[..]), (1, &b"documents"[..]));
        assert_eq!(file.encode().expect("good"), bytes);

        let all = Arc::<crate::Dictionaries>::default();
        drop(all.insert(Dictionary::open(&RealFs, &dir, hash).expect("good")));
        let mut reader = all.reader();
        let text = std::fs::read_to_string(dir.join("stored-values.txt")).expect("readable");
        for line in text.lines() {
            let (form, digits) = line.rsplit_once(' ').expect("form and digits");
            let stored: Vec<u8> = (0..digits.len() / 2)
                .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("two digits"))
                .collect();
            assert_eq!(format!("{:?}", Stored::parse(&stored).expect("good").form), form);
            let mut out = Vec::new();
            Workspace::new().decode(&stored, &mut reader, &mut out).expect("good");
            assert_eq!(out, VALUE.repeat(2), "{form}");
        }
        assert_eq!(text.lines().count(), 6);
    }
}

/// Documents, repetition and noise.
fn values() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        any::<u64>().prop_map(|seed| documents(seed, 1).concat()),
        (any::<u8>(), 0..3000usize).prop_map(|(byte, count)| vec![byte; count]),
        prop::collection::vec(any::<u8>(), 0..100),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    /// One workspace for all values and methods, in any order.
    #[test]
    fn round_trips(all in prop::collection::vec((values(), 0..6usize), 1..6)) {
        let mut workspace = Workspace::new();
        for (value, method) in all {
            let mut out = Vec::new();
            if workspace.encode(methods()[method], &value, usize::MAX, &mut out) {
                prop_assert!(out.len() < value.len());
                prop_assert_eq!(decoded(&mut workspace, &out).expect("good"), value);
            }
        }
    }

    /// A stored value with bytes changed or cut gives a value of the promised length or an error, and leaves the
    /// workspace good.
    #[test]
    fn damage_is_contained(
        value in values(),
        method in 0..6usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut workspace = Workspace::new();
        let mut good = Vec::new();
        if !workspace.encode(methods()[method], &value, usize::MAX, &mut good) {
            return Ok(());
        }
        let mut bad = good.clone();
        for (at, byte) in changes {
            let at = at.index(bad.len());
            bad[at] = byte;
        }
        for bad in [&bad[..], &good[..cut.index(good.len())]] {
            let mut out = b"kept".to_vec();
            match workspace.decode(bad, &mut ENCODER.0.reader(), &mut out) {
                Ok(()) => prop_assert_eq!(out.len() - 4, Stored::parse(bad).expect("it was read").len),
                Err(_) => prop_assert_eq!(&out[..], b"kept"),
            }
        }
        prop_assert_eq!(decoded(&mut workspace, &good).expect("good"), value);
    }
}
