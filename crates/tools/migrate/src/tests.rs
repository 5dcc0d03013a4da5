//! Imports over a simulated disk: what comes in is what a reader of the file sees, and what fails leaves no data.

use crate::{Export, Import, Imported, MigrateError, export, import, report};
use base::Rng;
use base::clock::ManualClock;
use base::hash::KeyHasher;
use base::random::SeededEntropy;
use checkpoint::{CheckpointError, DataDir, LoadProgress, ManifestFile, load};
use engine::model::{ModelEngine, Stored};
use engine::{Effect, Engine, Entry, ExtFields, Known, NewEntry, Type};
use parking_lot::Mutex;
use rdb::{Hash, Item, RdbError, Reader, StreamId, Strings, Target, Value, Writer, Zset, stored};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Decoder, Source};
use value::Limits;
use vfs::{Fault, FileSystem, Op, OpenOptions, SimFs, errno};

const FILE: &str = "/dump.rdb";
pub(crate) const DIR: &str = "/data";

/// Before all expirations of the committed files.
const NOW: i64 = 1_000_000;

/// Values by database and key, in an order of their own.
pub(crate) type Keys = BTreeMap<(u32, Vec<u8>), (Option<i64>, Value)>;

fn fs_with(file: &[u8]) -> SimFs {
    let fs = SimFs::new(1);
    put(&fs, file);
    fs
}

fn put(fs: &SimFs, file: &[u8]) {
    let handle = fs.open(Path::new(FILE), OpenOptions::write().create().truncate()).unwrap();
    handle.write_all_at(file, 0).unwrap();
    handle.sync_all().unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
}

fn run(fs: &SimFs, now: i64, is_partial: bool) -> Result<Imported, MigrateError> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let what =
        Import { fs: &fs, file: Path::new(FILE), dir: Path::new(DIR), is_partial, scratch: PathBuf::from("/scratch") };
    import(&what, &ManualClock::new(now), &SeededEntropy::new(1), &mut |_| {})
}

/// What a start would load; `None` when the directory holds no data.
pub(crate) fn found(fs: &SimFs) -> Option<Keys> {
    let dir = DataDir::open(Arc::new(fs.clone()), Path::new(DIR)).unwrap();
    let file = match ManifestFile::load(&dir) {
        // Files of an import that was cut: a server refuses them.
        Err(CheckpointError::ManifestMissing { .. }) => None,
        file => file.unwrap(),
    }?;
    let set = file.current().newest().unwrap();
    let hasher = KeyHasher::new(&mut Rng::new(1));
    let engine = Mutex::new(ModelEngine::with_hasher(Rng::new(2), hasher.clone()));
    let store = |effect: &Effect<'_>| {
        let mut engine = engine.lock();
        match *effect {
            Effect::Set { ref key, value, encoding, expire_at } => {
                engine
                    .write(key, &NewEntry { kind: Type::String, encoding, value, expire_at, fields: ExtFields::NONE });
            }
            Effect::Store { ref key, kind, encoding, value, expire_at } => {
                engine.write(key, &NewEntry { kind, encoding, value, expire_at, fields: ExtFields::NONE });
            }
            Effect::Edit { ref key, kind, changes } => {
                assert!(engine.edit(key, kind, changes, Known::Read, false).is_ok())
            }
            Effect::Expire { ref key, at } => assert!(engine.set_expiration(key, Some(at))),
            Effect::Library { .. } | Effect::Position { .. } => {}
            _ => panic!("no part of an entry"),
        }
    };
    load(&dir, set, 1, &hasher, &store, &LoadProgress::default()).unwrap();
    let contents = engine.into_inner().contents();
    Some(
        contents
            .iter()
            .map(|((space, key), stored)| ((space.0, key.clone()), (stored.expire_at, shown(stored))))
            .collect(),
    )
}

fn shown(stored: &Stored) -> Value {
    let Stored { kind, encoding, value, expire_at, fields } = stored;
    let (kind, encoding, value, expire_at) = (*kind, *encoding, value.value(), *expire_at);
    let entry = Entry { key: b"", kind, encoding, value, expire_at, stamp: 0, fields: fields.get() };
    let (hasher, limits) = (KeyHasher::new(&mut Rng::new(1)), Limits::default());
    let source = Source { dictionaries: &Arc::default(), hasher: &hasher, limits: &limits };
    let mut decoder = Decoder::default();
    let Entry { encoding, value, .. } = decoder.show(source, entry);
    match kind {
        Type::String => Value::String(value.bytes().to_vec()),
        _ => in_order(stored::of_collection(kind, encoding, value.stored()).unwrap()),
    }
}

/// Sets, sorted sets and hashes in an order that does not depend on a hash.
fn in_order(value: Value) -> Value {
    match value {
        Value::Set(members) => {
            let mut all: Vec<_> = members.iter().map(<[u8]>::to_vec).collect();
            all.sort();
            Value::Set(all.into_iter().collect())
        }
        Value::Zset(zset) => {
            let mut all: Vec<_> = zset.iter().map(|(member, score)| (member.to_vec(), score)).collect();
            all.sort_by(|left, right| left.0.cmp(&right.0));
            let mut zset = Zset::default();
            all.iter().for_each(|(member, score)| zset.push(member, *score));
            Value::Zset(zset)
        }
        Value::Hash(hash) => {
            let mut all: Vec<_> = hash.iter().map(|(field, value, at)| (field.to_vec(), value.to_vec(), at)).collect();
            all.sort();
            let mut hash = Hash::default();
            all.iter().for_each(|(field, value, at)| hash.push(field, value, *at));
            Value::Hash(hash)
        }
        Value::Stream(mut stream) => {
            stream.groups.sort_by(|left, right| left.name.cmp(&right.name));
            for group in &mut stream.groups {
                let owners: Vec<_> =
                    group.pending.iter().map(|pending| group.consumers[pending.consumer].name.clone()).collect();
                group.consumers.sort_by(|left, right| left.name.cmp(&right.name));
                for (pending, owner) in group.pending.iter_mut().zip(owners) {
                    pending.consumer = group.consumers.iter().position(|consumer| consumer.name == owner).unwrap();
                }
            }
            Value::Stream(stream)
        }
        other => other,
    }
}

/// What a reader sees in the file, without what only modules can read.
fn expected(file: &[u8]) -> Result<Keys, RdbError> {
    let mut reader = Reader::new(file, Some(file.len() as u64))?;
    let mut keys = Keys::new();
    while let Some(item) = reader.next_item()? {
        if let Item::Entry(entry) = item
            && !matches!(entry.value, Value::Module(_))
            && !entry.value.is_empty_collection()
        {
            keys.insert((entry.db, entry.key), (entry.expire_at, in_order(entry.value)));
        }
    }
    Ok(keys)
}

/// The committed files of real servers, by name.
fn files() -> Vec<(String, Vec<u8>)> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../keyspace/rdb/testdata");
    let mut files: Vec<_> = std::fs::read_dir(testdata)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rdb"))
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    assert!(files.len() >= 9);
    files
}

/// A file of a few hundred bytes with every type in two databases.
fn small() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Target::Valkey9).unwrap();
    let strings = |all: &[&str]| all.iter().collect::<Strings>();
    writer.aux(b"valkey-ver", b"9.1.0").unwrap();
    writer.entry(0, b"text", None, &Value::String(b"x".repeat(300))).unwrap();
    writer.entry(0, b"number", Some(NOW + 1), &Value::String(b"12345".to_vec())).unwrap();
    writer.entry(0, b"list", None, &Value::List(strings(&["a", "b", "a"]))).unwrap();
    writer.entry(0, b"set", None, &Value::Set(strings(&["1", "2"]))).unwrap();
    let mut zset = Zset::default();
    zset.push(b"member", 1.5);
    writer.entry(7, b"zset", None, &Value::Zset(zset)).unwrap();
    let mut hash = Hash::default();
    hash.push(b"field", b"value", Some(NOW + 5));
    hash.push(b"other", b"value", None);
    writer.entry(7, b"hash", None, &Value::Hash(hash)).unwrap();
    let mut stream = rdb::Stream::default();
    stream.push(StreamId { ms: 1, seq: 1 }, ["name", "value"]);
    stream.entries_added = 1;
    writer.entry(7, b"stream", None, &Value::Stream(Box::new(stream))).unwrap();
    writer.finish().unwrap()
}

/// Whatever real servers wrote comes in as the reader sees it.
#[test]
fn files_of_real_servers_come_in_whole() {
    for (name, file) in files() {
        let fs = fs_with(&file);
        let imported = run(&fs, NOW, true).unwrap_or_else(|error| panic!("{name}: {error}"));
        let keys = expected(&file).unwrap();
        assert_eq!(imported.contents.keys(), keys.len() as u64, "{name}");
        let entries = keys.len() + imported.contents.libraries.len();
        assert_eq!(imported.set.entries(), entries as u64, "{name}");
        assert!(found(&fs).unwrap() == keys, "{name}");
    }
}

/// A collection that outgrows its packed form, and a string that is compressed, come in too; compressed stays
/// compressed.
#[test]
fn big_values_come_in_whole() {
    let mut writer = Writer::new(Vec::new(), Target::V11).unwrap();
    let members: Strings = (0..20_000).map(|n| format!("member:{n}")).collect();
    writer.entry(0, b"set", None, &Value::Set(members.clone())).unwrap();
    writer.entry(20, b"list", None, &Value::List(members)).unwrap();
    writer.entry(20, b"string", None, &Value::String(b"text ".repeat(100_000))).unwrap();
    let file = writer.finish().unwrap();
    let fs = fs_with(&file);
    let imported = run(&fs, NOW, false).unwrap();
    assert!(found(&fs).unwrap() == expected(&file).unwrap());
    assert_eq!((imported.contents.databases_needed(), imported.contents.compressed), (21, 1));
    assert!(imported.set.bytes() < 900_000, "the string takes {} bytes", imported.set.bytes());
    assert_eq!(imported.contents.biggest.iter().map(|key| &*key.key).collect::<Vec<_>>(), ["list", "set", "string"]);
}

/// A file whose bytes are changed or cut anywhere is refused, and the directory takes the right file afterwards.
#[test]
fn damage_is_refused_and_leaves_no_data() {
    let file = small();
    assert!(file.len() < 600, "{} bytes", file.len());
    let damaged = (0..file.len()).map(|at| {
        let mut flipped = file.clone();
        flipped[at] ^= 1 << (at % 8);
        flipped
    });
    let cut = (0..file.len()).map(|len| file[..len].to_vec());
    let fs = SimFs::new(1);
    for bytes in damaged.chain(cut) {
        put(&fs, &bytes);
        let error = run(&fs, NOW, true).map(|imported| imported.contents).unwrap_err();
        assert!(matches!(error, MigrateError::File { .. } | MigrateError::Duplicate { .. }), "{error}");
        assert_eq!(found(&fs), None);
    }
    put(&fs, &file);
    run(&fs, NOW, false).unwrap();
    assert!(found(&fs).unwrap() == expected(&file).unwrap());
}

/// Damage that no checksum covers: an error, or the values that the reader sees.
#[test]
fn damage_without_a_checksum_gives_no_other_values() {
    let mut file = small();
    let sum_at = file.len() - 8;
    file[sum_at..].fill(0);
    for at in 0..sum_at {
        let mut flipped = file.clone();
        flipped[at] ^= 1 << (at % 8);
        let fs = fs_with(&flipped);
        match run(&fs, 0, true) {
            Ok(_) => {
                let keys = expected(&flipped).unwrap();
                let is_due = |keys: &Keys| keys.values().any(|(at, _)| at.is_some_and(|at| at <= 0));
                assert!(is_due(&keys) || found(&fs).unwrap() == keys, "byte {at}");
            }
            Err(_) => assert_eq!(found(&fs), None, "byte {at}"),
        }
    }
}

/// Keys and fields whose time has come are dropped and counted, and a hash that has no other fields with them.
#[test]
fn what_has_expired_is_dropped() {
    let mut writer = Writer::new(Vec::new(), Target::Valkey9).unwrap();
    let text = Value::String(b"value".to_vec());
    writer.entry(0, b"past", Some(NOW), &text).unwrap();
    writer.entry(0, b"future", Some(NOW + 1), &text).unwrap();
    let mut some = Hash::default();
    some.push(b"past", b"value", Some(NOW - 1));
    some.push(b"future", b"value", Some(NOW + 1));
    writer.entry(0, b"some", None, &Value::Hash(some)).unwrap();
    let mut all = Hash::default();
    all.push(b"past", b"value", Some(NOW - 1));
    writer.entry(0, b"all", None, &Value::Hash(all)).unwrap();
    writer.entry(0, b"none", None, &Value::List(Strings::default())).unwrap();
    let fs = fs_with(&writer.finish().unwrap());
    let contents = run(&fs, NOW, false).unwrap().contents;
    assert_eq!((contents.keys(), contents.expired, contents.expired_fields, contents.empty), (2, 2, 1, 1));
    let keys = found(&fs).unwrap();
    let mut left = Hash::default();
    left.push(b"future", b"value", Some(NOW + 1));
    assert_eq!(keys.keys().map(|(_, key)| &key[..]).collect::<Vec<_>>(), [&b"future"[..], b"some"]);
    assert_eq!(keys[&(0, b"some".to_vec())].1, Value::Hash(left));
    let lines = report(&contents);
    assert!(lines.contains(&"2 keys are dropped: the time of expiration has come".to_owned()), "{lines:?}");
}

/// What cannot be taken is named with its name, and leaves the directory alone, unless the rest is asked for.
#[test]
fn what_cannot_be_taken_is_named() {
    let mut writer = Writer::new(Vec::new(), Target::V11).unwrap();
    writer.function(b"#!js name=mylib\nregister('f')").unwrap();
    writer.entry(0, b"key", None, &Value::String(b"value".to_vec())).unwrap();
    let fs = fs_with(&writer.finish().unwrap());
    let error = run(&fs, NOW, false).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("1 library of functions: mylib; Onggi cannot import this") && error.contains("--partial"),
        "{error}"
    );
    assert!(!fs.exists(Path::new(DIR)).unwrap());
    run(&fs, NOW, true).unwrap();
    assert_eq!(found(&fs).unwrap().len(), 1);
}

/// Libraries of functions are imported, and exported again.
#[test]
fn libraries_come_and_go() {
    let code = b"#!lua name=mylib\nserver.register_function('f', function() end)";
    let mut writer = Writer::new(Vec::new(), Target::V11).unwrap();
    writer.function(code).unwrap();
    writer.entry(0, b"key", None, &Value::String(b"value".to_vec())).unwrap();
    let fs = fs_with(&writer.finish().unwrap());
    let contents = run(&fs, NOW, false).unwrap().contents;
    let lines = report(&contents);
    assert!(lines.contains(&"1 library of functions: mylib".to_owned()), "{lines:?}");
    let fs: Arc<dyn FileSystem> = Arc::new(fs);
    let file = Path::new("/exported.rdb");
    let exported = export(&Export {
        fs: &fs,
        dir: Path::new(DIR),
        file,
        target: Target::V11,
        clock: Arc::new(ManualClock::new(NOW)),
        entropy: Arc::new(SeededEntropy::new(1)),
    });
    assert_eq!(exported.map(|exported| (exported.keys, exported.libraries)).unwrap(), (1, 1));
    let bytes = vfs::read_file(&*fs, file, 1 << 20).unwrap();
    let mut reader = rdb::Reader::new(&bytes[..], None).unwrap();
    let mut found = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            rdb::Item::Function(code) => found.push(code),
            rdb::Item::Entry(_) => assert_eq!(found, [code.to_vec()], "libraries precede keys"),
            _ => {}
        }
    }
    assert_eq!(found.len(), 1);
}

/// As servers do: a key that stands twice ends it.
#[test]
fn a_key_that_stands_twice_is_refused() {
    let mut writer = Writer::new(Vec::new(), Target::V11).unwrap();
    for db in [0, 1, 0] {
        writer.entry(db, b"key", None, &Value::String(b"value".to_vec())).unwrap();
    }
    let fs = fs_with(&writer.finish().unwrap());
    let error = run(&fs, NOW, true).map(|_| ()).unwrap_err();
    assert!(matches!(error, MigrateError::Duplicate { first: 11, second: 37, .. }), "{error:?}");
}

/// A directory with any file is refused, and commands after the data are reported.
#[test]
fn other_files_and_commands_are_refused() {
    let mut file = small();
    let fs = fs_with(&file);
    run(&fs, NOW, false).unwrap();
    let error = run(&fs, NOW, false).map(|_| ()).unwrap_err();
    assert!(matches!(&error, MigrateError::NotEmpty { found, .. } if found == "MANIFEST"), "{error:?}");

    let offset = file.len() as u64;
    file.extend(b"*1\r\n$8\r\nFLUSHALL\r\n");
    let fs = fs_with(&file);
    let error = run(&fs, NOW, false).map(|_| ()).unwrap_err();
    assert!(matches!(error, MigrateError::GoesOn { offset: at, bytes: 18, .. } if at == offset), "{error:?}");
    assert!(!fs.exists(Path::new(DIR)).unwrap());
}

/// What came in goes out again, the compressed strings among it, into a file that is whole; what is there is left
/// alone.
#[test]
fn what_came_in_goes_out() {
    for (name, file) in files() {
        let fs = fs_with(&file);
        run(&fs, NOW, true).unwrap();
        let out = Path::new("/out.rdb");
        let fs: Arc<dyn FileSystem> = Arc::new(fs);
        let what = Export {
            fs: &fs,
            dir: Path::new(DIR),
            file: out,
            target: Target::Valkey9,
            clock: Arc::new(ManualClock::new(NOW)),
            entropy: Arc::new(SeededEntropy::new(1)),
        };
        let exported = export(&what).unwrap();
        let bytes = vfs::read_file(&*fs, out, 1 << 20).unwrap();
        let keys = expected(&bytes).unwrap();
        assert!(keys == expected(&file).unwrap(), "{name}");
        assert_eq!((exported.keys, exported.expired, exported.bytes), (keys.len() as u64, 0, bytes.len() as u64));
        let error = export(&what).unwrap_err();
        assert!(matches!(error, MigrateError::Exists { .. }), "{error}");
    }
}

/// A full disk leaves no file.
#[test]
fn an_export_that_fails_leaves_no_file() {
    let sim = fs_with(&small());
    run(&sim, NOW, false).unwrap();
    let fs: Arc<dyn FileSystem> = Arc::new(sim.clone());
    let what = Export {
        fs: &fs,
        dir: Path::new(DIR),
        file: Path::new("/out.rdb"),
        target: Target::V11,
        clock: Arc::new(ManualClock::new(NOW)),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    let before = fs.read_dir(Path::new("/")).unwrap();
    let error = export(&what).unwrap_err();
    assert!(matches!(&error, MigrateError::NeedsNewer { db: 7, key } if key == "hash"), "{error}");
    sim.inject(Fault::fail(Op::Write, errno::ENOSPC).on("/out.rdb.new").forever());
    let error = export(&Export { target: Target::Valkey9, ..what }).unwrap_err();
    assert!(matches!(error, MigrateError::Write { .. }), "{error}");
    assert_eq!(fs.read_dir(Path::new("/")).unwrap(), before);
}

/// A full disk during an import leaves no files.
#[test]
fn an_import_that_fails_leaves_no_files() {
    let fs = fs_with(&small());
    fs.inject(Fault::fail(Op::Write, errno::ENOSPC).on("/data/prdb-00000001-01").forever());
    let error = run(&fs, NOW, false).map(|_| ()).unwrap_err();
    assert!(matches!(error, MigrateError::Checkpoint(_)), "{error}");
    let left: Vec<_> = fs.read_dir(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(left, ["LOCK"]);
    fs.clear_faults();
    run(&fs, NOW, false).unwrap();
}

/// A power cut at any moment leaves no data or all of it.
#[test]
fn a_crash_leaves_all_or_nothing() {
    let file = small();
    let fs = fs_with(&file);
    let keys = expected(&file).unwrap();
    fs.record_crash_points();
    run(&fs, NOW, false).unwrap();
    let (mut whole, mut none) = (0, 0);
    for point in fs.take_crash_points() {
        for seed in 0..3 {
            match found(&point.power_cut(seed)) {
                Some(found) => {
                    assert!(found == keys, "operation {}, seed {seed}", point.operation());
                    whole += 1;
                }
                None => none += 1,
            }
        }
    }
    assert!(whole > 0 && none > 0);
    assert!(found(&fs).unwrap() == keys);
}
