//! Values compressed with dictionaries through crashes, checkpoints and starts: a dictionary is never missing for a
//! value that survived, and goes when nothing needs it.

use crate::crashes::{checkpoint_under_load, judge_all};
use crate::life::{DIR, Life, found, log_off, policy};
use crate::model::{Model, seeds};
use base::{DbIndex, Rng};
use checkpoint::{DataDir, Manifest, ManifestFile, Name};
use durability::{Cause, Policy};
use engine::{Effect, Encoding, Keyspace, Type, Value};
use std::path::Path;
use std::sync::Arc;
use store::compression::{Codec, Pass, Settings};
use store::{At, LockSet, WriteClass};
use value::{hash, list, set, zset};
use vfs::{FileSystem, Outage, SimFs};

/// What a document is like: values of one form shrink by a dictionary of that form.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Xml,
}

fn document(rng: &mut Rng, form: Form) -> Vec<u8> {
    let text = match form {
        Form::Json => format!(
            "{{\"id\": {}, \"owner\": \"user{}\", \"state\": \"{}\", \"updated_at\": {}}}",
            rng.below(1 << 40),
            rng.below(1000),
            ["open", "closed", "waiting"][rng.below(3) as usize],
            1_700_000_000 + rng.below(1 << 20)
        ),
        Form::Xml => (0..4)
            .map(|_| format!("<reading sensor='{}' celsius='{}'/>", rng.below(50), rng.below(400)))
            .collect::<String>(),
    };
    text.into_bytes()
}

fn on_write() -> Settings {
    Settings { codec: Codec::Zstd, on_write: true, ..Settings::default() }
}

/// Stores a document under one of `keys` keys.
fn put(life: &mut Life, rng: &mut Rng, form: Form, keys: u64) {
    use base::Clock as _;
    let (name, value) = (format!("doc:{}", rng.below(keys)), document(rng, form));
    let locks = LockSet::One(life.store.shard_of_bytes(name.as_bytes()));
    let now = life.clock.now_ms();
    let at = At { now, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let effect = |txn: &mut store::Txn<'_>| {
        let key = txn.key(name.as_bytes());
        let value = Value::Bytes(&value);
        txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
        Ok(())
    };
    while life.store.commit(&mut life.scratch, &locks, &at, effect).is_err() {
        std::thread::yield_now();
    }
    life.end_turn();
}

/// Stores documents, each a state of the model, and trains in between.
fn documents(life: &mut Life, model: &mut Model, rng: &mut Rng, form: Form, count: usize) {
    for n in 0..count {
        put(life, rng, form, 40);
        model.push(life);
        model.look(life);
        if n % 16 == 0 {
            life.durability.train_one();
        }
    }
}

/// Documents that are no states of a model: samples.
fn samples(life: &mut Life, rng: &mut Rng, form: Form, count: usize) {
    (0..count).for_each(|_| put(life, rng, form, 40));
}

pub fn manifest(fs: &SimFs) -> Manifest {
    let dir = DataDir::open_to_look(Arc::new(fs.clone()), Path::new(DIR));
    ManifestFile::load(&dir).expect("it is whole").expect("there is one").current().clone()
}

fn files(fs: &SimFs) -> usize {
    let entries = fs.read_dir(Path::new(DIR)).expect("the directory is there");
    entries.iter().filter(|entry| matches!(Name::parse(&entry.name), Name::Dictionary(_))).count()
}

fn with_dictionary(life: &Life) -> u64 {
    life.store.memory.values_by_dictionary().values().sum()
}

/// Power is cut at every operation while dictionaries come, values of them are logged and checkpointed, and another
/// form of values brings another dictionary: whatever is left can be read, and is a state that was.
#[test]
fn power_cuts_never_miss_a_dictionary() {
    for seed in seeds(2) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        life.store.compression.set(on_write());
        samples(&mut life, &mut rng, Form::Json, 250);
        let (log, wrote) = (life.store.log().expect("it is on"), life.scratch.wrote().expect("the last was a change"));
        life.wait_until(|| log.durable() >= wrote);
        drop(log);
        let mut model = Model::new(&life);
        fs.record_crash_points();
        documents(&mut life, &mut model, &mut rng, Form::Json, 40);
        assert!(with_dictionary(&life) > 0, "a dictionary came");
        checkpoint_under_load(&mut life, &mut model, &mut rng, Cause::Asked).expect("the disk works");
        documents(&mut life, &mut model, &mut rng, Form::Json, 10);
        // As after a change of the settings, the class is learned anew.
        life.store.compression.set(Settings { level: 2, ..on_write() });
        life.store.compression.set(Settings { codec: Codec::Lz4, ..on_write() });
        documents(&mut life, &mut model, &mut rng, Form::Xml, 30);
        checkpoint_under_load(&mut life, &mut model, &mut rng, Cause::Asked).expect("the disk works");
        life.store.compression.set(on_write());
        documents(&mut life, &mut model, &mut rng, Form::Json, 10);
        for _ in 0..2 {
            checkpoint_under_load(&mut life, &mut model, &mut rng, Cause::Asked).expect("the disk works");
        }
        life.crash();
        judge_all(&model, &fs.take_crash_points(), seed);
    }
}

/// Sets fields of a hash under one of `keys` keys, or pushes to a list.
fn put_collection(life: &mut Life, rng: &mut Rng, keys: u64) {
    use base::Clock as _;
    let number = rng.below(keys);
    let name = format!("item:{number}");
    let (mut changes, is_list) = (Vec::new(), number.is_multiple_of(4));
    for field in 0..1 + rng.below(4) {
        let (field, value) = (format!("field{field}"), document(rng, Form::Json));
        match is_list {
            true => list::Change::Push { end: list::End::Tail, value: &value }.put(&mut changes),
            false => hash::Change::Set { field: field.as_bytes(), value: &value, expire_at: None }.put(&mut changes),
        }
    }
    if is_list {
        list::Change::Pop { end: list::End::Head, count: rng.below(3) }.put(&mut changes);
    }
    let locks = LockSet::One(life.store.shard_of_bytes(name.as_bytes()));
    let at = At { now: life.clock.now_ms(), db: DbIndex(0), touch: true, worker: 0, writes: WriteClass::Any };
    let effect = |txn: &mut store::Txn<'_>| {
        let kind = if is_list { Type::List } else { Type::Hash };
        txn.apply(&Effect::Edit { key: txn.key(name.as_bytes()), kind, changes: &changes });
        Ok(())
    };
    while life.store.commit(&mut life.scratch, &locks, &at, effect).is_err() {
        std::thread::yield_now();
    }
    life.end_turn();
}

/// Collections that are too big to be compressed as a whole.
const BIG: [(&str, Type); 4] =
    [("big:hash", Type::Hash), ("big:list", Type::List), ("big:set", Type::Set), ("big:zset", Type::Zset)];

/// Changes one of them.
fn put_big(life: &mut Life, rng: &mut Rng, (name, kind): (&str, Type), count: u64) {
    use base::Clock as _;
    let mut changes = Vec::new();
    for _ in 0..count {
        let (field, value) = (format!("field{}", rng.below(600)), document(rng, Form::Json));
        let (field, value, end) = (field.as_bytes(), &value[..], list::End::ALL[rng.below(2) as usize]);
        // Of a set some are there already.
        let member = &document(&mut Rng::new(rng.below(2_000)), Form::Json)[..];
        match kind {
            Type::Hash if rng.one_in(4) => hash::Change::Delete(field).put(&mut changes),
            Type::Hash => {
                let expire_at = rng.one_in(50).then_some(1 << 50);
                hash::Change::Set { field, value, expire_at }.put(&mut changes);
            }
            Type::Set if rng.one_in(4) => set::Change::Remove(member).put(&mut changes),
            Type::Set => set::Change::Add(member).put(&mut changes),
            Type::Zset if rng.one_in(9) => {
                zset::Change::RemoveRange { start: rng.below(400), count: rng.below(4) }.put(&mut changes);
            }
            Type::Zset => {
                let score = rng.below(1_000) as f64;
                zset::Change::Add { score, member }.put(&mut changes);
            }
            _ if rng.one_in(4) => {
                list::Change::Remove { index: rng.below(400), count: rng.below(4) }.put(&mut changes);
            }
            _ => list::Change::Push { end, value }.put(&mut changes),
        }
    }
    let locks = LockSet::One(life.store.shard_of_bytes(name.as_bytes()));
    let at = At { now: life.clock.now_ms(), db: DbIndex(0), touch: true, worker: 0, writes: WriteClass::Any };
    let effect = |txn: &mut store::Txn<'_>| {
        txn.apply(&Effect::Edit { key: txn.key(name.as_bytes()), kind, changes: &changes });
        Ok(())
    };
    while life.store.commit(&mut life.scratch, &locks, &at, effect).is_err() {
        std::thread::yield_now();
    }
    life.end_turn();
}

/// Power is cut at every operation while leaves of big collections are compressed without log records, by dictionaries
/// that arrive meanwhile, and checkpoints save them so. The log after these edits collections that it has not
/// compressed itself.
#[test]
fn power_cuts_leave_compressed_leaves_whole() {
    for seed in seeds(2) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        let mut pass = Pass::new(life.store.shard_ids().collect());
        let settings = Settings { codec: Codec::Zstd, idle_seconds: 0, ..Settings::default() };
        life.store.compression.set(settings);
        (0..600).for_each(|_| put_collection(&mut life, &mut rng, 300));
        BIG.iter().for_each(|big| put_big(&mut life, &mut rng, *big, 2_000));
        pass_over_all(&life, &mut pass);
        let (log, wrote) = (life.store.log().expect("it is on"), life.scratch.wrote().expect("the last was a change"));
        life.wait_until(|| log.durable() >= wrote);
        drop(log);
        let mut model = Model::new(&life);
        fs.record_crash_points();
        // Looked for before each checkpoint: commands under it may flush everything.
        let (mut dictionary_came, mut leaves_were_compressed) = (false, false);
        for _ in 0..2 {
            for n in 0..6 {
                for big in BIG {
                    put_big(&mut life, &mut rng, big, 3);
                    model.push(&life);
                    model.look(&life);
                }
                if n % 3 == 0 {
                    life.durability.train_one();
                    pass_over_all(&life, &mut pass);
                }
            }
            dictionary_came |= with_dictionary(&life) > 0;
            leaves_were_compressed |= has_compressed_leaves(&life);
            checkpoint_under_load(&mut life, &mut model, &mut rng, Cause::Asked).expect("the disk works");
        }
        assert!(dictionary_came, "no dictionary");
        assert!(leaves_were_compressed, "no leaves were compressed");
        life.crash();
        judge_all(&model, &fs.take_crash_points(), seed);
    }
}

/// Whether leaves of all big collections are.
fn has_compressed_leaves(life: &Life) -> bool {
    BIG.iter().all(|(name, _)| {
        let mut found = false;
        let key = life.store.key(base::KeyspaceId(0), name.as_bytes());
        let look = |shard: &mut store::shard::Shard| {
            if let Ok(Some(entry)) = engine::Engine::read(&mut shard.engine, &key, false)
                && let Value::Big(tree) = entry.value
            {
                found |= tree.has_cold();
            }
        };
        life.store.each_shard(look).for_each(drop);
        found
    })
}

/// Compresses all that is stored.
pub fn pass_over_all(life: &Life, pass: &mut Pass) {
    life.clock.advance_ms(2_000);
    while pass.has_work(&life.store) {
        pass.slice(&life.store, 100_000, 0);
    }
}

/// Power is cut at every operation while collections are compressed without log records, by dictionaries that arrive
/// meanwhile, and checkpoints save them so. The log after these edits collections that it has not compressed itself.
#[test]
fn power_cuts_leave_compressed_collections_whole() {
    for seed in seeds(2) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        let mut pass = Pass::new(life.store.shard_ids().collect());
        let settings = Settings { codec: Codec::Zstd, idle_seconds: 0, bytes_min: 16, ..Settings::default() };
        life.store.compression.set(settings);
        (0..600).for_each(|_| put_collection(&mut life, &mut rng, 300));
        pass_over_all(&life, &mut pass);
        let compressed = life.store.memory.compressed().values;
        assert!(compressed > 200, "{compressed} collections");
        let (log, wrote) = (life.store.log().expect("it is on"), life.scratch.wrote().expect("the last was a change"));
        life.wait_until(|| log.durable() >= wrote);
        drop(log);
        let mut model = Model::new(&life);
        fs.record_crash_points();
        // Looked for before each checkpoint, as above.
        let mut dictionary_came = false;
        for _ in 0..2 {
            for n in 0..12 {
                put_collection(&mut life, &mut rng, 40);
                model.push(&life);
                model.look(&life);
                if n % 4 == 0 {
                    life.durability.train_one();
                    pass_over_all(&life, &mut pass);
                }
            }
            dictionary_came |= with_dictionary(&life) > 0;
            checkpoint_under_load(&mut life, &mut model, &mut rng, Cause::Asked).expect("the disk works");
        }
        assert!(dictionary_came, "no dictionary");
        life.crash();
        judge_all(&model, &fs.take_crash_points(), seed);
    }
}

/// A checkpoint of compressed collections is loaded without decompressing any.
#[test]
fn a_start_decompresses_no_collection() {
    let (fs, mut rng) = (SimFs::new(5), Rng::new(5));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut pass = Pass::new(life.store.shard_ids().collect());
    life.store.compression.set(Settings { codec: Codec::Lz4, idle_seconds: 0, ..Settings::default() });
    (0..600).for_each(|_| put_collection(&mut life, &mut rng, 300));
    BIG.iter().for_each(|big| put_big(&mut life, &mut rng, *big, 2_000));
    pass_over_all(&life, &mut pass);
    assert!(has_compressed_leaves(&life), "leaves are compressed");
    life.checkpoint(Cause::Asked).expect("the disk works");
    let (digest, used) = (Model::digest(&life.store), life.store.memory.compressed());
    assert!(used.values > 200, "{used:?}");
    life.stop();
    let life = Life::start(&fs, policy()).expect("it starts");
    let decompressed = life.store.compression.figures.decompressed.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((decompressed, life.store.compression.leaves_thawed()), (0, 0));
    assert_eq!(life.store.memory.compressed(), used);
    assert_eq!(Model::digest(&life.store), digest);
    life.stop();
}

/// A dictionary stays for the log and the older checkpoint, goes with the last of them, and its number is not given
/// again.
#[test]
fn dictionaries_go_when_nothing_needs_them() {
    let (fs, mut rng) = (SimFs::new(7), Rng::new(7));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    life.store.compression.set(on_write());
    samples(&mut life, &mut rng, Form::Json, 300);
    assert!(life.durability.train_one() && !life.durability.train_one());
    samples(&mut life, &mut rng, Form::Json, 200);
    assert_eq!((manifest(&fs).dictionaries.len(), files(&fs)), (1, 1));
    assert!(with_dictionary(&life) > 20);
    life.checkpoint(Cause::Asked).expect("the disk works");

    // No value needs it from here on, and no encoder uses it.
    life.store.compression.set(Settings { codec: Codec::Lz4, ..on_write() });
    for n in 0..40 {
        remove(&mut life, n);
    }
    assert_eq!(with_dictionary(&life), 0);
    life.checkpoint(Cause::Asked).expect("the disk works");
    assert_eq!(files(&fs), 1, "the set before needs it");
    assert!(life.store.compression.dictionaries.list().is_empty(), "memory does not");
    // A checkpoint before most keys were lost is pinned for a day.
    life.clock.advance_ms(86_400_000);
    life.checkpoint(Cause::Asked).expect("the disk works");
    life.checkpoint(Cause::Asked).expect("the disk works");
    assert_eq!((manifest(&fs).dictionaries.len(), files(&fs)), (0, 0));
    assert_eq!(manifest(&fs).last_dictionary, 1);
    life.stop();
}

fn remove(life: &mut Life, n: u64) {
    use base::Clock as _;
    let name = format!("doc:{n}");
    let at = At { now: life.clock.now_ms(), db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let locks = LockSet::One(life.store.shard_of_bytes(name.as_bytes()));
    let delete = |txn: &mut store::Txn<'_>| {
        let key = txn.key(name.as_bytes());
        if txn.peek(&key)?.is_some() {
            txn.apply(&Effect::Delete { key });
        }
        Ok(())
    };
    while life.store.commit(&mut life.scratch, &locks, &at, delete).is_err() {
        std::thread::yield_now();
    }
    life.end_turn();
}

/// A life with a dictionary, values of it in a checkpoint and in the log, and the digest of its end.
fn stopped(fs: &SimFs, policy: Policy) -> store::Digest {
    let mut rng = Rng::new(3);
    let mut life = Life::start(fs, policy).expect("it starts");
    life.store.compression.set(on_write());
    samples(&mut life, &mut rng, Form::Json, 300);
    assert!(life.durability.train_one());
    samples(&mut life, &mut rng, Form::Json, 50);
    life.checkpoint(Cause::Asked).expect("the disk works");
    if life.store.log().is_some() {
        samples(&mut life, &mut rng, Form::Json, 50);
    }
    assert!(with_dictionary(&life) > 10);
    let digest = Model::digest(&life.store);
    life.stop();
    digest
}

/// The next start reads what was compressed and keeps compressing with the same dictionary, with the log and without.
#[test]
fn a_restart_goes_on_with_its_dictionaries() {
    for policy in [policy(), log_off()] {
        let fs = SimFs::new(3);
        let digest = stopped(&fs, policy.clone());
        let mut life = Life::start(&fs, policy).expect("it starts");
        assert_eq!(Model::digest(&life.store), digest);
        life.store.compression.set(on_write());
        let (before, mut rng) = (with_dictionary(&life), Rng::new(9));
        for n in 0..40 {
            remove(&mut life, n);
        }
        assert!(before > 10 && with_dictionary(&life) == 0);
        samples(&mut life, &mut rng, Form::Json, 20);
        assert!(with_dictionary(&life) > 10, "the dictionary of before is used again");
        assert_eq!(files(&fs), 1);
        life.stop();
    }
}

/// A missing dictionary, and a damaged one, is an error that names the file and says what to do; nothing is changed.
#[test]
fn a_missing_dictionary_ends_a_start() {
    let fs = SimFs::new(4);
    stopped(&fs, policy());
    let name = manifest(&fs).dictionaries[0].hash.to_string();
    let path = Path::new(DIR).join(&name);
    fs.flip_bit(&path, 50, 1).expect("it is there");
    let error = found(&fs, log_off()).expect_err("it is damaged").to_string();
    assert!(error.contains(&name) && error.contains("backup"), "{error}");
    let gone = fs.recover(Outage::ProcessKill);
    gone.remove_file(&path).expect("it is there");
    let before = gone.contents();
    let error = found(&gone, log_off()).expect_err("it is missing").to_string();
    assert!(error.contains(&name) && error.contains("it is missing") && error.contains("backup"), "{error}");
    assert_eq!(gone.contents(), before);
}
