//! What a file holds, in numbers.

use crate::sift::Fate;
use base::UnixMs;
use engine::{Entry, Libraries};
use inspect::text::{count, escape, size};
use rdb::{Dialect, End, FileEntry, Module, Stream, Value};
use std::collections::BTreeMap;
use std::fmt;

/// How many of the biggest keys are named, and how many of the first of what cannot be taken.
const NAMED_MAX: usize = 10;

/// Bytes of a key, a name or a remark that are kept.
const NAME_LEN_MAX: usize = 64;

/// Remarks of the server that say something about its file.
const REMARKS: [&str; 5] = ["redis-ver", "valkey-ver", "redis-bits", "ctime", "used-mem"];

/// What a file holds.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The version of the format.
    pub version: u32,
    /// Whose types it means.
    pub dialect: Dialect,
    /// Bytes up to the end of the data, and whether a checksum was there.
    pub end: End,
    /// What the server says of itself, by name.
    pub remarks: BTreeMap<&'static str, String>,
    /// What is taken, by database.
    pub databases: BTreeMap<u32, Database>,
    /// The keys that take the most bytes of the file, of those that are taken; the biggest first.
    pub biggest: Vec<BigKey>,
    /// Keys whose time has come.
    pub expired: u64,
    /// Fields of hashes whose time has come, in keys that are taken.
    pub expired_fields: u64,
    /// Collections without elements.
    pub empty: u64,
    /// Strings that are compressed in the file.
    pub compressed: u64,
    /// Libraries of functions.
    pub libraries: Libraries,
    /// What cannot be taken.
    pub untaken: Untaken,
}

/// What a database holds.
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// By the name of the type.
    pub kinds: BTreeMap<&'static str, Kind>,
    /// Keys that expire.
    pub expiring: u64,
    /// When the first and the last of them do.
    pub expirations: Option<(UnixMs, UnixMs)>,
}

/// The keys of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// How many.
    pub keys: u64,
    /// Elements of all of them; of strings, bytes.
    pub elements: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// A key that takes many bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigKey {
    /// Bytes of the file.
    pub bytes: u64,
    /// Its database.
    pub db: u32,
    /// Its beginning, as printable text.
    pub key: String,
    /// The name of its type.
    pub kind: &'static str,
    /// Its elements; of a string, bytes.
    pub elements: u64,
}

/// What cannot be taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Untaken {
    /// Keys with a value that only a module can read: how many, by module.
    pub modules: BTreeMap<Module, u64>,
    /// The first of them: database and key.
    pub module_keys: Vec<(u32, String)>,
    /// What modules keep in addition to keys: how many times, by module.
    pub module_data: BTreeMap<Module, u64>,
    /// Libraries of functions whose first line a server refuses.
    pub libraries: u64,
    /// The names of the first of them.
    pub library_names: Vec<String>,
    /// Slots that were on their way to the server.
    pub slot_imports: u64,
    /// Commands of an append-only log that are not known, or answer with an error.
    pub commands: u64,
    /// The first of them, each with its place and the reason.
    pub first_commands: Vec<String>,
}

impl Contents {
    /// Nothing yet.
    pub(crate) fn new(version: u32, dialect: Dialect) -> Self {
        Self {
            version,
            dialect,
            end: End { is_checked: false, len: 0 },
            remarks: BTreeMap::new(),
            databases: BTreeMap::new(),
            biggest: Vec::new(),
            expired: 0,
            expired_fields: 0,
            empty: 0,
            compressed: 0,
            libraries: Libraries::default(),
            untaken: Untaken::default(),
        }
    }

    /// Keys that are taken.
    pub fn keys(&self) -> u64 {
        self.databases.values().map(Database::keys).sum()
    }

    /// How many databases a server needs for it.
    pub fn databases_needed(&self) -> u32 {
        self.databases.last_key_value().map_or(1, |(db, _)| db.saturating_add(1))
    }

    /// A remark of the server, of which the first of each name counts.
    pub(crate) fn remark(&mut self, name: &[u8], value: &[u8]) {
        if let Some(name) = REMARKS.iter().find(|known| known.as_bytes() == name) {
            self.remarks.entry(name).or_insert_with(|| shown(value));
        }
    }

    /// A library of functions, by its source text.
    pub(crate) fn library(&mut self, source: &[u8]) {
        if let Ok(metadata) = script::metadata::read(source) {
            return self.libraries.apply(&metadata.name, source);
        }
        self.untaken.libraries += 1;
        if self.untaken.library_names.len() < NAMED_MAX {
            self.untaken.library_names.push(library_name(source));
        }
    }

    /// An entry that takes `bytes` of the file.
    pub(crate) fn entry(&mut self, entry: &FileEntry, bytes: u64, fate: Fate, dropped_fields: u64) {
        match fate {
            Fate::Taken => {
                self.expired_fields += dropped_fields;
                self.taken(entry, bytes);
            }
            Fate::Expired => self.expired += 1,
            Fate::Empty => self.empty += 1,
            Fate::Module(module) => {
                *self.untaken.modules.entry(module).or_default() += 1;
                if self.untaken.module_keys.len() < NAMED_MAX {
                    self.untaken.module_keys.push((entry.db, shown(&entry.key)));
                }
            }
        }
    }

    fn taken(&mut self, entry: &FileEntry, bytes: u64) {
        let (name, elements) = (entry.value.type_name(), elements(&entry.value));
        self.compressed += u64::from(entry.lzf.is_some());
        let database = self.databases.entry(entry.db).or_default();
        let kind = database.kinds.entry(name).or_default();
        kind.keys += 1;
        kind.elements = kind.elements.saturating_add(elements);
        kind.bytes += bytes;
        if let Some(at) = entry.expire_at {
            database.expires(at);
        }
        if self.biggest.len() < NAMED_MAX || self.biggest.last().is_some_and(|last| last.bytes < bytes) {
            let place = self.biggest.partition_point(|other| other.bytes >= bytes);
            let key = BigKey { bytes, db: entry.db, key: shown(&entry.key), kind: name, elements };
            self.biggest.insert(place, key);
            self.biggest.truncate(NAMED_MAX);
        }
    }
}

impl Database {
    /// Counts an entry of a store; of its elements it knows nothing.
    pub(crate) fn count(&mut self, entry: &Entry<'_>) {
        self.kinds.entry(entry.kind.name()).or_default().keys += 1;
        if let Some(at) = entry.expire_at {
            self.expires(at);
        }
    }

    fn expires(&mut self, at: UnixMs) {
        self.expiring += 1;
        let (first, last) = self.expirations.unwrap_or((at, at));
        self.expirations = Some((first.min(at), last.max(at)));
    }

    /// Its keys.
    pub fn keys(&self) -> u64 {
        self.kinds.values().map(|kind| kind.keys).sum()
    }
}

impl Untaken {
    /// Whether all can be taken.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// A command of an append-only log.
    pub(crate) fn command(&mut self, name: &[u8], place: &str, why: &str) {
        self.commands += 1;
        if self.first_commands.len() < NAMED_MAX {
            self.first_commands.push(format!("{} at {place} ({why})", shown(name)));
        }
    }

    /// What cannot be taken of a part.
    pub(crate) fn add(&mut self, part: &Self) {
        part.modules.iter().for_each(|(module, keys)| *self.modules.entry(module.clone()).or_default() += keys);
        self.module_keys.extend(part.module_keys.iter().cloned());
        part.module_data
            .iter()
            .for_each(|(module, times)| *self.module_data.entry(module.clone()).or_default() += times);
        self.libraries += part.libraries;
        self.library_names.extend(part.library_names.iter().cloned());
        self.slot_imports += part.slot_imports;
    }

    /// Each thing, in a sentence.
    pub fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (module, keys) in &self.modules {
            let keys = count(*keys, "key has a value", "keys have values");
            all.push(format!("{keys} of the module type {}, version {}", module.name, module.version));
        }
        if !self.module_keys.is_empty() {
            let names: Vec<_> =
                self.module_keys.iter().map(|(db, key)| format!("\"{key}\" in database {db}")).collect();
            let total: u64 = self.modules.values().sum();
            let rest = if total > names.len() as u64 { ", ..." } else { "" };
            all.push(format!("these keys are {}{rest}", names.join(", ")));
        }
        for (module, times) in &self.module_data {
            let times = count(*times, "time", "times");
            all.push(format!("the module type {} has written data of its own, {times}", module.name));
        }
        if self.libraries > 0 {
            let rest = if self.libraries > self.library_names.len() as u64 { ", ..." } else { "" };
            let libraries = count(self.libraries, "library of functions", "libraries of functions");
            all.push(format!("{libraries}: {}{rest}", self.library_names.join(", ")));
        }
        if self.slot_imports > 0 {
            let jobs = count(self.slot_imports, "migration", "migrations");
            all.push(format!("{jobs} of slots had not come to an end: their keys may not be all there"));
        }
        if self.commands > 0 {
            let rest = if self.commands > self.first_commands.len() as u64 { ", ..." } else { "" };
            let commands = count(self.commands, "command", "commands");
            all.push(format!("{commands}: {}{rest}", self.first_commands.join(", ")));
        }
        all
    }
}

impl fmt::Display for Untaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences().join("; "))
    }
}

impl fmt::Display for BigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, db, key, kind, elements } = self;
        write!(f, "{}: {kind} \"{key}\" in database {db}, {}", size(*bytes), counted(kind, *elements))
    }
}

/// A number of elements of this type, in words.
pub(crate) fn counted(kind: &str, elements: u64) -> String {
    match kind {
        "string" => format!("{} uncompressed", size(elements)),
        "set" | "zset" => count(elements, "member", "members"),
        "hash" => count(elements, "field", "fields"),
        "stream" => count(elements, "entry", "entries"),
        _ => count(elements, "element", "elements"),
    }
}

fn elements(value: &Value) -> u64 {
    match value {
        Value::String(string) => string.len() as u64,
        Value::List(all) | Value::Set(all) => all.len() as u64,
        Value::Zset(zset) => zset.members().len() as u64,
        Value::Hash(hash) => hash.len() as u64,
        Value::Stream(stream) => Stream::len(stream),
        Value::Module(_) => 0,
    }
}

/// The beginning of a key or name, as printable text.
fn shown(bytes: &[u8]) -> String {
    match bytes.get(..NAME_LEN_MAX) {
        Some(beginning) if bytes.len() > NAME_LEN_MAX => format!("{}...", escape(beginning)),
        _ => escape(bytes),
    }
}

/// The name in the first line of a library: `#!lua name=NAME`.
fn library_name(source: &[u8]) -> String {
    let line = source.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let name = line.split(|byte| byte.is_ascii_whitespace()).find_map(|word| word.strip_prefix(b"name="));
    name.map_or_else(|| "one without a name".to_owned(), shown)
}
