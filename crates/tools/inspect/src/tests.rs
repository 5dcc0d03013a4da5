//! The tools on directories made by the real writers, on a simulated disk.

mod backups;
mod checks;
mod decoding;
mod histories;
mod repairs;
mod restores;
mod salvages;
mod sources;
mod tiers;

use base::clock::ManualClock;
use base::hash::KeyHasher;
use base::{Clock, HistoryId, KeyspaceId, Lsn, Rng, UnixMs};
use checkpoint::{
    DataDir, Feed, FeedOptions, LoadProgress, LogState, Manifest, ManifestFile, SetHead, Writer, WriterOptions,
};
use cmdlog::{Log, LogOptions, LogStart, RecordBuilder};
use engine::{Backlog, Effect, Encoding, Entry, ExtFields, Key, Type, Value};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::{FileSystem, SimFs};

const DIR: &str = "/data";

/// Keyspace and key to value.
type Model = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

fn hasher() -> KeyHasher {
    KeyHasher::new(&mut Rng::new(1))
}

fn shared(fs: &SimFs) -> Arc<dyn FileSystem> {
    Arc::new(fs.clone())
}

/// A string of a hundred bytes, compressed with dictionary 7 (docs/formats/stored-value.md); no test decompresses it.
const WITH_DICTIONARY: &[u8] = b"\x15\x64\x07whatever it is";

fn encoding_of(value: &[u8]) -> Encoding {
    if value == WITH_DICTIONARY { Encoding::PLAIN.compressed() } else { Encoding::PLAIN }
}

/// A data directory under construction, and its expected contents at each moment.
struct World {
    fs: SimFs,
    clock: Arc<ManualClock>,
    rng: Rng,
    dir: DataDir,
    manifest: ManifestFile,
    log: Arc<Log>,
    model: Model,
    /// Where checkpoints put long values.
    tier: Option<Arc<tier::Tier>>,
    /// The state after each record: its end position, its time, and the contents.
    states: Vec<(Lsn, UnixMs, Model)>,
}

impl World {
    fn new(seed: u64) -> Self {
        Self::begin(seed, true)
    }

    /// As `appendonly no` leaves it: changes are in the model alone, until a checkpoint.
    fn without_log(seed: u64) -> Self {
        let world = Self::begin(seed, false);
        world.log.sync().expect("the disk works");
        for (_, path) in world.files("log-") {
            world.fs.remove_file(&path).expect("the segment is there");
        }
        world
    }

    fn begin(seed: u64, on: bool) -> Self {
        let (fs, clock) = (SimFs::new(seed), Arc::new(ManualClock::new(1_000_000)));
        let dir = DataDir::open(shared(&fs), Path::new(DIR)).expect("the directory opens");
        let history = HistoryId([1; 20]);
        let state = LogState { on, since: Lsn(0), since_ms: clock.now_ms() };
        let manifest = ManifestFile::create(&dir, Manifest::new(history, state)).expect("the disk works");
        let log = open_log(&fs, &clock, LogStart::fresh(history, Lsn(0)));
        let states = vec![(Lsn(0), clock.now_ms(), Model::new())];
        Self { fs, clock, rng: Rng::new(seed), dir, manifest, log, model: Model::new(), tier: None, states }
    }

    /// Appends a record: usually of one key, sometimes of a whole keyspace.
    fn change(&mut self) {
        let space = self.rng.below(2) as u32;
        let key = format!("key:{}", self.rng.below(40)).into_bytes();
        let mut value = vec![0; self.rng.below(200) as usize];
        self.rng.fill(&mut value);
        let (hasher, mut record) = (hasher(), RecordBuilder::default());
        let named = Key::new(&hasher, KeyspaceId(space), &key);
        if self.rng.one_in(100) {
            record.push(&Effect::Clear { space: KeyspaceId(space) });
            self.model.retain(|(other, _), _| *other != space);
        } else if self.rng.one_in(5) {
            record.push(&Effect::Delete { key: named });
            self.model.remove(&(space, key.clone()));
        } else {
            let value_bytes = Value::Bytes(&value);
            record.push(&Effect::Set { key: named, value: value_bytes, encoding: Encoding::PLAIN, expire_at: None });
            self.model.insert((space, key.clone()), value);
        }
        self.append(&record);
    }

    /// Adds that dictionary to the manifest, without a file.
    fn name_dictionary(&mut self) {
        let mut next = self.manifest.current().clone();
        let number = codec::DictionaryNumber(std::num::NonZeroU32::new(7).expect("not 0"));
        next.add_dictionary(number, codec::FileHash(7));
        self.manifest.commit(&self.dir, next).expect("the disk works");
    }

    /// Appends a string that needs a dictionary.
    fn put_with_dictionary(&mut self) {
        self.put(b"with a dictionary", WITH_DICTIONARY);
    }

    /// Appends a string.
    fn put(&mut self, key: &[u8], value: &[u8]) {
        let (hasher, mut record) = (hasher(), RecordBuilder::default());
        let key = Key::new(&hasher, KeyspaceId(0), key);
        let (bytes, encoding) = (Value::Bytes(value), encoding_of(value));
        record.push(&Effect::Set { key, value: bytes, encoding, expire_at: None });
        self.model.insert((0, key.bytes.to_vec()), value.to_vec());
        self.append(&record);
    }

    /// Appends effects; the caller updates the model.
    fn push(&mut self, effects: &[Effect<'_>]) {
        let mut record = RecordBuilder::default();
        effects.iter().for_each(|effect| record.push(effect));
        self.append(&record);
    }

    fn append(&mut self, record: &RecordBuilder) {
        let lsn = self.log.append(0, record.bytes());
        self.states.push((lsn, self.clock.now_ms(), self.model.clone()));
    }

    /// Makes `count` changes, with syncs and time between them.
    fn changes(&mut self, count: usize) {
        for _ in 0..count {
            self.change();
            self.clock.advance_ms(self.rng.below(60));
            if self.rng.one_in(8) {
                self.sync();
            }
        }
        self.sync();
    }

    fn sync(&mut self) {
        self.log.write_step();
        self.clock.advance_ms(600);
        while self.log.sync_step() {}
    }

    fn checkpoint(&mut self) {
        self.log.sync().expect("the disk works");
        let info = self.write_set(self.log.end_lsn(), true);
        let mut next = self.manifest.current().clone();
        next.sets.push(info);
        self.manifest.commit(&self.dir, next).expect("the disk works");
    }

    /// A checkpoint that no log follows: the log is off, or ends here.
    fn checkpoint_without_log(&mut self) {
        let cut = self.manifest.current().newest().map_or(Lsn(0), |set| set.cut);
        let info = self.write_set(cut, false);
        let mut next = self.manifest.current().clone();
        next.sets.push(info);
        self.manifest.commit(&self.dir, next).expect("the disk works");
    }

    /// `CONFIG SET appendonly no`.
    fn switch_off(&mut self) {
        self.log.close().expect("the disk works");
        let info = self.write_set(self.log.end_lsn(), false);
        let mut next = self.manifest.current().clone();
        next.log = LogState { on: false, since: info.cut, since_ms: info.created_ms };
        next.sets.push(info);
        self.manifest.commit(&self.dir, next).expect("the disk works");
    }

    /// `CONFIG SET appendonly yes`: a log with its own history and position, on top of a checkpoint.
    fn switch_on(&mut self) {
        let end = self.manifest.current().newest().map_or(Lsn(0), |set| set.cut);
        let (history, first) = (HistoryId([end.0 as u8 | 0x40; 20]), Lsn(end.0 + 1));
        self.log = open_log(&self.fs, &self.clock, LogStart::fresh(history, first));
        let mut next = self.manifest.current().clone();
        next.begin_history(history, end);
        self.manifest.commit(&self.dir, next).expect("the disk works");
        let info = self.write_set(first, true);
        let mut next = self.manifest.current().clone();
        next.log = LogState { on: true, since: first, since_ms: info.created_ms };
        next.sets.push(info);
        self.manifest.commit(&self.dir, next).expect("the disk works");
    }

    /// Retention removes all checkpoints but the newest, and the log before it as far as files allow.
    fn retire(&mut self) {
        let mut next = self.manifest.current().clone();
        next.sets.drain(..next.sets.len() - 1);
        let needed = next.log_needed_from();
        self.manifest.commit(&self.dir, next).expect("the disk works");
        self.manifest.prune(&self.dir, None).expect("the disk works");
        let logs = self.files("log-");
        for (pair, needed) in logs.windows(2).filter_map(|pair| Some((pair, needed?))) {
            if pair[1].0 <= needed.0 {
                self.fs.remove_file(&pair[0].1).expect("the segment is there");
            }
        }
    }

    /// The log's files with their first positions.
    fn files(&self, prefix: &str) -> Vec<(u64, PathBuf)> {
        let entries = self.fs.read_dir(Path::new(DIR)).expect("the directory");
        let names = entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned());
        let first = |name: String| {
            let first = u64::from_str_radix(name.strip_prefix(prefix)?, 16).ok()?;
            Some((first, Path::new(DIR).join(name)))
        };
        let mut files: Vec<_> = names.filter_map(first).collect();
        files.sort();
        files
    }

    /// Changes that are in no log.
    fn unlogged(&mut self, keys: u32) {
        for key in 0..keys {
            let mut value = vec![0; self.rng.below(200) as usize];
            self.rng.fill(&mut value);
            self.model.insert((0, format!("unlogged:{key}").into_bytes()), value);
        }
    }

    fn write_set(&mut self, cut: Lsn, is_logged: bool) -> checkpoint::SetInfo {
        let feed = Feed::new(FeedOptions::default(), Arc::new(Backlog::default()));
        let set = self.manifest.next_set();
        let mut writer = Writer::create(&self.dir, set, WriterOptions::default(), &feed).expect("the disk works");
        let mut sink = feed.sink();
        for ((space, key), value) in &self.model {
            let on_tier = self.tier.as_ref().filter(|_| value.len() >= tiers::VALUE_LEN_MIN);
            let fields = on_tier.map(|tier| tiers::append(tier, key, value));
            let entry = Entry {
                key,
                kind: Type::String,
                encoding: if fields.is_some() { Encoding::AWAY } else { encoding_of(value) },
                value: Value::Bytes(if fields.is_some() { b"" } else { value }),
                expire_at: None,
                stamp: 0,
                fields: fields.as_ref().map_or(ExtFields::NONE, engine::PackedFields::get),
            };
            sink.save(KeyspaceId(*space), &entry);
        }
        sink.finish();
        drop(sink);
        self.tier.iter().for_each(|tier| tier.sync().expect("the disk works"));
        let history = self.manifest.current().history;
        let spaces = (0..2).map(KeyspaceId).collect();
        let log_from = is_logged.then_some(cut);
        let (libraries, position) = Default::default();
        let head = SetHead { cut, history, created_ms: self.clock.now_ms(), log_from, spaces, libraries, position };
        writer.begin(head).expect("threads");
        writer.finish().expect("the disk works")
    }

    /// Stops the server in order; leaves the directory.
    fn stop(self) -> Stopped {
        self.log.close().expect("the disk works");
        Stopped { fs: self.fs, states: self.states, model: self.model }
    }

    /// Kills the process after everything was written.
    fn kill(self) -> Stopped {
        self.log.write_step();
        let fs = self.fs.recover(vfs::Outage::ProcessKill);
        Stopped { fs, states: self.states, model: self.model }
    }
}

/// A directory that no server uses.
#[derive(Clone)]
struct Stopped {
    fs: SimFs,
    states: Vec<(Lsn, UnixMs, Model)>,
    model: Model,
}

impl Stopped {
    /// The files with this prefix, in ascending order.
    fn files(&self, prefix: &str) -> Vec<PathBuf> {
        let entries = self.fs.read_dir(Path::new(DIR)).expect("the directory");
        let names = entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort();
        names.into_iter().map(|name| Path::new(DIR).join(name)).collect()
    }
}

fn open_log(fs: &SimFs, clock: &Arc<ManualClock>, start: LogStart) -> Arc<Log> {
    let options = LogOptions { segment_bytes: 8192, ring_bytes: 0, ..LogOptions::new(DIR, 1) };
    let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
    Log::create_stepped(shared(fs), clock, options, start, Arc::new(())).expect("the disk works")
}

/// A directory with two checkpoints, changes before, between and after them.
fn two_sets(seed: u64) -> World {
    let mut world = World::new(seed);
    world.changes(120);
    world.checkpoint();
    world.changes(150);
    world.checkpoint();
    world.changes(90);
    world
}

/// The state that a start would load: the newest set and the log after it.
fn start(fs: &SimFs, dir: &Path) -> Result<Model, Box<dyn std::error::Error + Send + Sync>> {
    let data = DataDir::open_to_look(shared(fs), dir);
    let hasher = hasher();
    let Some(file) = ManifestFile::load(&data)? else { return Ok(Model::new()) };
    let loaded = Mutex::new(Model::new());
    let from = match file.current().newest() {
        Some(set) => {
            let store = |effect: &Effect<'_>| {
                let (key, value) = match effect {
                    Effect::Set { key, value, .. } => (key, Some(value.bytes().to_vec())),
                    Effect::StoreWith { key, fields, .. } => (key, tiers::read(fs, dir, &file, key.bytes, fields)),
                    _ => panic!("{effect:?} was not saved"),
                };
                // One that cannot be read answers an error.
                let value = value.unwrap_or_else(|| tiers::UNREADABLE.to_vec());
                loaded.lock().insert((key.space.0, key.bytes.to_vec()), value);
            };
            checkpoint::load(&data, set, 1, &hasher, &store, &LoadProgress::default())?;
            set.log_from
        }
        None => Some(file.current().log.since),
    };
    let mut model = loaded.into_inner();
    let Some(from) = from else { return Ok(model) };
    let mut each = |_: Lsn, payload: &[u8]| {
        for effect in cmdlog::effects(payload, &hasher) {
            match effect? {
                Effect::Set { key, value, .. } => {
                    model.insert((key.space.0, key.bytes.to_vec()), value.bytes().to_vec());
                }
                Effect::Delete { key } => drop(model.remove(&(key.space.0, key.bytes.to_vec()))),
                Effect::Clear { space } => model.retain(|(other, _), _| *other != space.0),
                Effect::Rename { from, to } => {
                    let value = model.remove(&(from.space.0, from.bytes.to_vec())).ok_or("renamed, and not there")?;
                    model.insert((to.space.0, to.bytes.to_vec()), value);
                }
                Effect::Copy { from, to } => {
                    let value = model.get(&(from.space.0, from.bytes.to_vec())).ok_or("copied, and not there")?.clone();
                    model.insert((to.space.0, to.bytes.to_vec()), value);
                }
                Effect::Splice { key, bytes, .. } => {
                    let value = model.get_mut(&(key.space.0, key.bytes.to_vec())).ok_or("edited, and not there")?;
                    value.splice(..bytes.len(), bytes.iter().copied());
                }
                Effect::Expire { key, .. } | Effect::Persist { key } => {
                    model.get(&(key.space.0, key.bytes.to_vec())).ok_or("timed, and not there")?;
                }
                other => return Err(format!("not written here: {other:?}").into()),
            }
        }
        Ok(())
    };
    cmdlog::recover(fs, dir, from, &mut each, &mut |_| {})?;
    Ok(model)
}
