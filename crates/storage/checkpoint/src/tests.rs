//! Whole checkpoints on a simulated disk.

mod crash;
mod damage;
mod feed;
mod golden;
mod paper;
mod trees;

use crate::*;
use base::hash::KeyHasher;
use base::{HistoryId, KeyspaceId, Lsn, Rng};
use engine::{Backlog, Effect, Encoding, Entry, ExtFields, SharedBytes, Type, Value};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vfs::{OutFile, SimFs};

const DIR: &str = "/data";
/// Short, so that small files take many operations.
const BUFFER_BYTES: usize = 4096;
const HISTORY: HistoryId = HistoryId([7; 20]);

/// The contents of a set: keyspace and key to value, encoding and expiration.
type Contents = BTreeMap<(u32, Vec<u8>), (Vec<u8>, u8, Option<i64>)>;

fn hasher() -> KeyHasher {
    KeyHasher::new(&mut Rng::new(1))
}

/// `count` entries of all shapes, from a seed; values up to `len_max`.
fn contents(seed: u64, count: usize, len_max: u64) -> Contents {
    let mut rng = Rng::new(seed);
    let mut contents = Contents::new();
    while contents.len() < count {
        let mut key = vec![0; rng.below(20) as usize];
        rng.fill(&mut key);
        let mut value = vec![0; rng.below(len_max + 1) as usize];
        rng.fill(&mut value);
        let expire_at = rng.one_in(3).then(|| rng.next_u64() as i64);
        contents.insert((rng.below(4) as u32, key), (value, rng.below(3) as u8, expire_at));
    }
    contents
}

fn data_dir(fs: &SimFs) -> DataDir {
    DataDir::open(Arc::new(fs.clone()), Path::new(DIR)).expect("the directory opens")
}

fn log_off() -> LogState {
    LogState { on: false, since: Lsn(0), since_ms: 0 }
}

/// Sends all entries to a feed, as shards would.
fn save(feed: &Feed, contents: &Contents, shards: usize) {
    let mut sinks: Vec<_> = (0..shards).map(|_| feed.sink()).collect();
    for (n, ((space, key), (value, encoding, expire_at))) in contents.iter().enumerate() {
        let shared = SharedBytes::new(value.clone());
        let value = if value.len() > 1000 { Value::Shared(&shared) } else { Value::Bytes(value) };
        let entry = Entry {
            key,
            kind: Type::String,
            encoding: Encoding(*encoding),
            value,
            expire_at: *expire_at,
            stamp: 0,
            fields: ExtFields::NONE,
        };
        sinks[n % shards].save(KeyspaceId(*space), &entry);
    }
    sinks.iter_mut().for_each(|sink| sink.finish());
}

fn head(cut: u64) -> SetHead {
    let spaces = (0..4).map(KeyspaceId).collect();
    let (libraries, position) = Default::default();
    SetHead { cut: Lsn(cut), history: HISTORY, created_ms: 1_000, log_from: None, spaces, libraries, position }
}

/// Writes a set without committing it.
fn write(dir: &DataDir, set: SetId, cut: u64, contents: &Contents, threads: usize) -> Result<SetInfo, CheckpointError> {
    let feed = Feed::new(FeedOptions::default(), Arc::new(Backlog::default()));
    let options = WriterOptions { threads, buffer_bytes: BUFFER_BYTES, ..WriterOptions::default() };
    let mut writer = Writer::create(dir, set, options, &feed)?;
    save(&feed, contents, 3);
    writer.begin(head(cut))?;
    writer.finish()
}

/// A whole checkpoint: write, commit, keep the last two, prune.
fn checkpoint(
    dir: &DataDir,
    file: &mut ManifestFile,
    cut: u64,
    contents: &Contents,
    threads: usize,
) -> Result<(), CheckpointError> {
    let set = file.next_set();
    let info = write(dir, set, cut, contents, threads)?;
    let mut next = file.current().clone();
    next.sets.push(info);
    let moment = Moment { now: 0, log_bytes: &|_| 0, free_bytes: u64::MAX, reserve_bytes: 0, pins: &[], is_end: false };
    let obsolete = Retention::default().obsolete(&next, &moment);
    next.sets.retain(|set| !obsolete.contains(&set.set));
    file.commit(dir, next)?;
    file.prune(dir, None)?;
    Ok(())
}

fn load_set(dir: &DataDir, set: &SetInfo, threads: usize) -> Result<Contents, CheckpointError> {
    let loaded = Mutex::new(Contents::new());
    let store = |effect: &Effect<'_>| {
        let Effect::Set { key, value, encoding, expire_at } = effect else { panic!("{effect:?} was not saved") };
        let row = (value.bytes().to_vec(), encoding.0, *expire_at);
        let before = loaded.lock().insert((key.space.0, key.bytes.to_vec()), row);
        assert!(before.is_none(), "loaded twice");
    };
    let progress = LoadProgress::default();
    let report = load(dir, set, threads, &hasher(), &store, &progress)?;
    let loaded = loaded.into_inner();
    assert_eq!(report.entries, loaded.len() as u64);
    assert_eq!(report.entries, set.entries());
    Ok(loaded)
}

/// The set that a restart loads; `None` in a directory without one.
fn recover(dir: &DataDir) -> Result<Option<Contents>, CheckpointError> {
    let Some(file) = ManifestFile::load(dir)? else { return Ok(None) };
    file.current().newest().map(|set| load_set(dir, set, 1)).transpose()
}

/// A directory with one checkpoint of `old` in it.
fn with_one_set(fs: &SimFs, old: &Contents) -> (DataDir, ManifestFile) {
    let dir = data_dir(fs);
    let mut file = ManifestFile::create(&dir, Manifest::new(HISTORY, log_off())).unwrap();
    checkpoint(&dir, &mut file, 1, old, 2).unwrap();
    (dir, file)
}

/// Written entries come back, with any number of files and loading threads, including empty sets and large values.
#[test]
fn sets_come_back_whole() {
    for (count, len_max, threads) in [(0, 0, 1), (1, 10, 3), (3_000, 200, 1), (3_000, 200, 16), (60, 100_000, 4)] {
        let fs = SimFs::new(1);
        let dir = data_dir(&fs);
        let mut file = ManifestFile::create(&dir, Manifest::new(HISTORY, log_off())).unwrap();
        let expected = contents(count as u64, count, len_max);
        checkpoint(&dir, &mut file, 5, &expected, threads).unwrap();
        let set = file.current().newest().unwrap();
        assert_eq!(set.files.len(), threads);
        for loaders in [1, 2, 5, 20] {
            assert!(load_set(&dir, set, loaders).unwrap() == expected, "{count} entries, {loaders} loading threads");
        }
        assert!(recover(&dir).unwrap().unwrap() == expected);
    }
}
