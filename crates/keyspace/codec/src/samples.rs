//! Documents for tests: alike in form, different in contents, from a seed.

use crate::dictionary::{Dictionary, DictionaryFile};
use crate::dictionary_number::DictionaryNumber;
use base::Rng;
use std::num::NonZeroU32;
use std::path::Path;
use vfs::SimFs;

/// A JSON document of 100 to 250 bytes.
pub(crate) fn document(rng: &mut Rng) -> Vec<u8> {
    const WORDS: [&str; 12] =
        ["jar", "clay", "glaze", "kiln", "salt", "bean", "paste", "spring", "rice", "courtyard", "lid", "stone"];
    let words: Vec<&str> = (0..3 + rng.below(8)).filter_map(|_| WORDS.get(rng.below(12) as usize).copied()).collect();
    let text = format!(
        "{{\"id\": {}, \"owner\": \"user{}\", \"tags\": [\"{}\"], \"text\": \"{}\", \"updated_at\": {}}}",
        rng.next_u64(),
        rng.below(100_000),
        words.first().copied().unwrap_or_default(),
        words.join(" "),
        1_700_000_000 + rng.below(1 << 20),
    );
    text.into_bytes()
}

pub(crate) fn documents(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(seed);
    (0..count).map(|_| document(&mut rng)).collect()
}

/// A dictionary for such documents.
pub(crate) fn trained(seed: u64) -> Vec<u8> {
    let samples = documents(seed, 400);
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    crate::zstd::train(&samples, 4096).expect("samples enough")
}

/// A dictionary of this number, written to a disk and read back.
pub(crate) fn dictionary(number: u32, class: &[u8], content: Vec<u8>) -> Dictionary {
    let number = DictionaryNumber(NonZeroU32::new(number).expect("not 0"));
    let (fs, dir) = (SimFs::new(1), Path::new("/"));
    let file = DictionaryFile { number, class: class.to_vec(), content };
    let hash = Dictionary::create(&fs, dir, file).expect("the disk works").hash();
    Dictionary::open(&fs, dir, hash).expect("it is there")
}
