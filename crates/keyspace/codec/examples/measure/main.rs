//! What each codec makes of real documents, and what it costs: `cargo run --release -p onggi-codec --example measure --
//! DIR...`
//!
//! Documents are found in the files below the directories: JSON and text separately, none twice. Half of them are
//! for training; the other half is measured. Times are processor time of this thread. Results:
//! bench/results/compression-summary.

mod documents;

use base::Rng;
use codec::dictionary::DictionaryFile;
use codec::{Dictionaries, Dictionary, DictionaryNumber, Encoder, Method, Workspace, zstd};
use documents::{Document, Kind};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vfs::SimFs;

/// Upper bounds of the size classes shown, in bytes.
const SIZES: [(usize, &str); 5] =
    [(256, "below 256 B"), (512, "256-511 B"), (1024, "512 B-1 KB"), (2048, "1-2 KB"), (20_480, "2-20 KB")];

/// A class with fewer documents for training shares the dictionary of all.
const CLASS_MIN: usize = 500;

/// Most samples of one dictionary, and its length.
const SAMPLES_MAX: usize = 4096;
const DICTIONARY_LEN: usize = 16 << 10;

fn main() {
    let found = documents::find(std::env::args_os().skip(1).map(Into::into).collect());
    for kind in [Kind::Json, Kind::Text] {
        let mut all: Vec<Document> = found.iter().filter(|document| document.kind == kind).cloned().collect();
        let mut rng = Rng::new(1);
        for end in (1..all.len()).rev() {
            all.swap(end, rng.below(end as u64 + 1) as usize);
        }
        let (trained_on, measured) = all.split_at(all.len() / 2);
        let bytes: usize = measured.iter().map(|document| document.bytes.len()).sum();
        println!("\n{kind:?}: {} documents measured, {} KB\n", measured.len(), bytes / 1024);
        if !measured.is_empty() {
            table(trained_on, measured);
        }
    }
}

/// Dictionaries at two levels, for all documents and by class.
struct Trained {
    of_all: [Arc<Encoder>; 2],
    by_class: BTreeMap<String, Arc<Encoder>>,
}

fn train(all: &Dictionaries, documents: &[&Document]) -> [Arc<Encoder>; 2] {
    let samples: Vec<&[u8]> = documents.iter().take(SAMPLES_MAX).map(|document| &document.bytes[..]).collect();
    let content = zstd::train(&samples, DICTIONARY_LEN).expect("samples enough");
    let number = NonZeroU32::new(all.list().len() as u32 + 1).map(DictionaryNumber).expect("not 0");
    let file = DictionaryFile { number, class: Vec::new(), content };
    let lease = all.insert(Dictionary::create(&SimFs::new(1), Path::new("/"), file).expect("memory"));
    [1, 3].map(|level| Arc::new(lease.clone().into_encoder(level).expect("memory")))
}

fn table(trained_on: &[Document], measured: &[Document]) {
    let all = Arc::<Dictionaries>::default();
    let mut classes: BTreeMap<&str, Vec<&Document>> = BTreeMap::new();
    for document in trained_on {
        classes.entry(&document.class).or_default().push(document);
    }
    let by_class: BTreeMap<String, Arc<Encoder>> = classes
        .iter()
        .filter(|(_, documents)| documents.len() >= CLASS_MIN)
        .map(|(class, documents)| (class.to_string(), Arc::clone(&train(&all, documents)[0])))
        .collect();
    let trained = Trained { of_all: train(&all, &trained_on.iter().collect::<Vec<_>>()), by_class };
    println!("{} classes with a dictionary of their own\n", trained.by_class.len());

    let names = ["lzf", "lz4", "zstd 1", "one dict., 1", "one dict., 3", "dict. by class, 1"];
    println!("| size | documents | {} |", names.join(" | "));
    println!("|---|---|{}", "---|".repeat(names.len()));
    let mut workspace = Workspace::new();
    let mut from = 0;
    for (below, name) in SIZES.into_iter().chain([(usize::MAX, "all")]) {
        let lowest = if below == usize::MAX { 0 } else { from };
        let chosen: Vec<&Document> = measured.iter().filter(|d| (lowest..below).contains(&d.bytes.len())).collect();
        from = below;
        let cells: Vec<String> =
            (0..names.len()).map(|method| cell(&mut workspace, &all, &trained, method, &chosen)).collect();
        println!("| {name} | {} | {} |", chosen.len(), cells.join(" | "));
    }
}

fn method<'a>(trained: &'a Trained, number: usize, class: &str) -> Method<'a> {
    let [first, third] = &trained.of_all;
    match number {
        0 => Method::Lzf,
        1 => Method::Lz4,
        2 => Method::Zstd(1),
        3 => Method::Dictionary(first),
        4 => Method::Dictionary(third),
        _ => Method::Dictionary(trained.by_class.get(class).unwrap_or(first)),
    }
}

/// Ratio, and microseconds a kilobyte for compressing and decompressing.
fn cell(
    workspace: &mut Workspace,
    all: &Arc<Dictionaries>,
    trained: &Trained,
    number: usize,
    documents: &[&Document],
) -> String {
    let mut reader = all.reader();
    let bytes: usize = documents.iter().map(|document| document.bytes.len()).sum();
    let mut stored: Vec<Option<Vec<u8>>> = vec![None; documents.len()];
    let start = processor_time();
    let mut out = Vec::new();
    for (document, stored) in documents.iter().zip(&mut stored) {
        out.clear();
        let method = method(trained, number, &document.class);
        *stored = workspace.encode(method, &document.bytes, usize::MAX, &mut out).then(|| out.clone());
    }
    let compressing = processor_time() - start;
    let start = processor_time();
    for stored in stored.iter().flatten() {
        out.clear();
        workspace.decode(stored, &mut reader, &mut out).expect("what was stored is good");
    }
    let decompressing = processor_time() - start;
    let kept =
        documents.iter().zip(&stored).map(|(document, stored)| stored.as_ref().map_or(document.bytes.len(), Vec::len));
    let unpacked: usize = documents.iter().zip(&stored).filter(|(_, s)| s.is_some()).map(|(d, _)| d.bytes.len()).sum();
    let per_kb = |time: Duration, bytes: usize| time.as_secs_f64() * 1e6 / (bytes.max(1) as f64 / 1024.0);
    let ratio = bytes as f64 / kept.sum::<usize>().max(1) as f64;
    format!("{ratio:.2}x, {:.1}/{:.1}", per_kb(compressing, bytes), per_kb(decompressing, unpacked))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
