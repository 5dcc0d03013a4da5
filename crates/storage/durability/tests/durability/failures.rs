//! Disks that fail, that are full, and that hold what is not for us.

use crate::life::{DATABASES, Life, START_MS, found, log_off, policy};
use crate::model::{Model, seeds};
use crate::modes::PATIENCE;
use base::checksum::crc32c;
use base::{DbIndex, Rng};
use config::SavePoint;
use durability::{Cause, DurabilityError, Policy};
use engine::{Effect, Keyspace as _, WriteClass};
use std::path::Path;
use std::sync::atomic::Ordering;
use store::{At, Blocked, LockSet, Txn};
use vfs::{Fault, FileSystem, OpenOptions, Outage, SimFs, errno};

/// Each operation of a checkpoint fails once, with two errors: the checkpoint fails or succeeds, but a power cut right
/// after it leaves all that was durable in the log, or the present state when it succeeded, or else what was saved
/// before; and a later one succeeds.
#[test]
fn every_operation_of_a_checkpoint_fails_once() {
    for seed in seeds(1) {
        for log in [true, false] {
            for number in [errno::EIO, errno::ENOSPC] {
                let mut failed = 0;
                for step in 1.. {
                    let what = format!("seed {seed}, log {log}, errno {number}, operation {step}");
                    let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
                    let mut life = Life::start(&fs, Policy { log_wanted: log, ..policy() }).expect("it starts");
                    let mut model = Model::new(&life);
                    model.commands(&mut life, &mut rng, 10);
                    life.checkpoint(Cause::Asked).expect("the disk works");
                    let (saved, last) = (model.now(), model.last());
                    model.is_durable(&fs, last);
                    model.commands(&mut life, &mut rng, 10);
                    fs.inject(Fault::fail_operation(fs.operations() + step, number));
                    let outcome = life.checkpoint(Cause::Asked);
                    let fired = fs.faults_fired() > 0;
                    failed += u32::from(outcome.is_err());
                    assert!(outcome.is_ok() || fired, "{what}: {outcome:?}");
                    fs.clear_faults();
                    if outcome.is_ok() {
                        let last = model.last();
                        model.is_durable(&fs, last);
                    }
                    let left = fs.crash_point();
                    for cut in 0..3 {
                        let left = found(&left.power_cut(cut), log_off());
                        let left = left.unwrap_or_else(|error| panic!("{what}: does not start: {error}"));
                        let told = life.told.0.lock();
                        model
                            .judge(left, u64::MAX)
                            .unwrap_or_else(|error| panic!("{what}: {outcome:?}: {error}; {told:?}"));
                        assert!(log || left == saved || left == model.now(), "{what}: {outcome:?}; {told:?}");
                    }
                    // A log that has failed continues after a while, when the next checkpoint asks for it.
                    let again = (0..5).find_map(|_| {
                        life.clock.advance_ms(2_000);
                        life.checkpoint(Cause::Asked).ok()
                    });
                    assert!(again.is_some(), "{what}: {:?}", life.told.0.lock());
                    let status = life.durability.status();
                    assert_eq!((status.sets, status.saves.failures), (2, 0), "{what}");
                    assert_eq!(snapshots(&fs), 4, "{what}: leftovers");
                    model.commands(&mut life, &mut rng, 5);
                    life.checkpoint(Cause::Asked).unwrap_or_else(|error| panic!("{what}: {error}"));
                    life.stop();
                    assert_eq!(
                        found(&fs.recover(Outage::PowerCut { seed }), log_off()).expect("it starts"),
                        model.now()
                    );
                    if !fired {
                        assert!(step > 12, "{what}: only so many");
                        break;
                    }
                }
                assert!(failed > 8, "only {failed} failed");
            }
        }
    }
}

fn snapshots(fs: &SimFs) -> usize {
    fs.contents().keys().filter(|path| path.to_string_lossy().contains("prdb-")).count()
}

/// A disk that is full fails checkpoints and says so; with save points set, writes are refused until one succeeds.
#[test]
fn a_full_disk_stops_writes_until_there_is_space() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let saving = Policy { save_points: vec![SavePoint { seconds: 1 << 30, changes: 1 }], ..log_off() };
    let mut life = Life::start(&fs, saving).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 50);
    life.checkpoint(Cause::Asked).expect("there is space");
    let saved = model.now();
    model.commands(&mut life, &mut rng, 200);
    fs.set_capacity(Some(0));
    for n in 1..3 {
        let error = life.checkpoint(Cause::Asked).expect_err("the disk is full");
        assert!(error.contains("0 are free"), "{error}");
        let status = life.durability.status();
        assert_eq!((status.sets, status.saves.failures), (1, n));
        assert!(life.store.gate.refuses_writes());
        let left = fs.crash_point().power_cut(n);
        // A start writes a little.
        left.set_capacity(None);
        assert_eq!(found(&left, log_off()).expect("it starts"), saved);
    }
    // With that setting off, writes continue.
    life.durability.set_policy(Policy { stop_writes_on_error: false, ..log_off() }, PATIENCE).expect("no lock is held");
    assert!(life.store.gate.is_open());
    fs.set_capacity(None);
    life.checkpoint(Cause::Asked).expect("there is space again");
    assert!(life.store.gate.is_open());
    assert_eq!(life.durability.status().saves.failures, 0);
    life.stop();
    assert_eq!(found(&fs, log_off()).expect("it starts"), model.now());
}

/// A log whose syncs fail refuses writes, and accepts them when syncs work; nothing that was acknowledged is missing
/// after a cut.
#[test]
fn a_failed_sync_refuses_writes_until_it_is_mended() {
    for seed in seeds(4) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 20);
        fs.record_crash_points();
        fs.inject(Fault::fail(vfs::Op::SyncData, errno::EIO).times(1 + seed % 2));
        for _ in 0..200 {
            model.commands(&mut life, &mut rng, 1);
        }
        life.wait_until(|| fs.faults_fired() > 0);
        life.heal();
        model.look(&life);
        model.commands(&mut life, &mut rng, 20);
        assert!(life.told.0.lock().iter().any(|text| text.contains("failed")));
        assert!(life.told.0.lock().iter().any(|text| text.contains("works again")));
        life.stop();
        let last = model.last();
        model.is_durable(&fs, last);
        crate::crashes::judge_all(&model, &fs.take_crash_points(), seed);
    }
}

/// While a life has the directory, no other may open it; the error names the process.
#[test]
fn a_second_one_is_refused() {
    let fs = SimFs::new(1);
    let life = Life::start(&fs, policy()).expect("it starts");
    let before = fs.contents();
    let error = Life::start(&fs, policy()).err().expect("it is in use");
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    assert!(matches!(error, DurabilityError::Checkpoint(_)));
    assert_eq!(fs.contents(), before);
    life.stop();
    Life::start(&fs, policy()).expect("it is free").stop();
}

/// Files of a newer version are refused, each kind of them, and nothing is touched.
#[test]
fn newer_formats_are_refused_untouched() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 20);
    life.checkpoint(Cause::Asked).expect("the disk works");
    model.commands(&mut life, &mut rng, 20);
    life.stop();
    let mut names: Vec<_> = fs.contents().into_keys().filter(|path| !path.ends_with("LOCK")).collect();
    let is_log = |path: &Path| path.to_string_lossy().contains("/log-");
    // A start reads no segment that the checkpoint has made needless.
    let last_log = names.iter().rfind(|path| is_log(path)).expect("there is a log").clone();
    names.retain(|path| !is_log(path) || *path == last_log);
    assert!(names.len() >= 4, "{names:?}");
    for path in names {
        let fs = fs.recover(Outage::ProcessKill);
        let file = fs.open(&path, OpenOptions::write()).expect("it is there");
        let is_log = is_log(&path);
        let copies: &[u64] = if is_log { &[0, 2048] } else { &[0] };
        for at in copies {
            let mut head = [0; 128];
            let len = file.read_at(&mut head, *at).expect("it reads");
            head[8..12].copy_from_slice(&99u32.to_le_bytes());
            // The checksum is right: it is no damage.
            let at_crc = if is_log { 124 } else { 16 };
            let crc = crc32c(&head[..at_crc]).to_le_bytes();
            head[at_crc..at_crc + 4].copy_from_slice(&crc);
            file.write_all_at(&head[..len], *at).expect("it writes");
        }
        let before = fs.contents();
        let error = Life::start(&fs, policy()).err();
        let error = error.unwrap_or_else(|| panic!("{} of version 99 was read", path.display()));
        let text = error.to_string();
        let name = path.file_name().expect("it has one").to_string_lossy().into_owned();
        assert!(text.contains("newer") && text.contains(&name), "{text}");
        assert!(fs.contents() == before, "{} was refused, but something was changed", path.display());
    }
}

/// Damage in the middle of what was durable is refused with the file's name, and nothing is touched.
#[test]
fn damage_is_refused_untouched() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 20);
    life.checkpoint(Cause::Asked).expect("the disk works");
    model.commands(&mut life, &mut rng, 20);
    life.stop();
    let mut refused = 0;
    for (path, bytes) in fs.contents() {
        let name = path.file_name().expect("it has one").to_string_lossy().into_owned();
        if name == "LOCK" {
            continue;
        }
        for n in 0..20 {
            let fs = fs.recover(Outage::ProcessKill);
            let offset = Rng::new(n).below(bytes.len() as u64);
            fs.flip_bit(&path, offset, n as u8).expect("it is there");
            let before = fs.contents();
            match Life::start(&fs, policy()) {
                Err(error) => {
                    refused += 1;
                    assert!(error.to_string().contains(&name) || name.starts_with("log-"), "{name}: {error}");
                    assert!(fs.contents() == before, "{name} was refused, but something was changed");
                }
                // After the end, or in the other copy of a header: nothing is lost.
                Ok(life) => assert_eq!(Model::digest(&life.store), model.now(), "{name}, byte {offset}"),
            }
        }
    }
    assert!(refused > 30, "{refused}");
}

/// A start with fewer databases than the data has is refused, whether a checkpoint or the log has them, and says what
/// to set.
#[test]
fn fewer_databases_than_the_data_has_are_refused() {
    for checkpoint in [false, true] {
        let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 60);
        while (1..DATABASES).all(|db| life.store.len(DbIndex(db)).0 == 0) {
            model.command(&mut life, &mut rng);
        }
        if checkpoint {
            life.checkpoint(Cause::Asked).expect("the disk works");
        }
        assert!(life.changes.load(Ordering::Relaxed) > 0);
        life.stop();
        let before = fs.contents();
        let error = Life::start_with(&fs, policy(), 1).err().expect("it has two databases at least");
        assert!(error.to_string().contains("databases"), "{error}");
        assert!(fs.contents() == before, "nothing was changed");
        let life = Life::start_with(&fs, policy(), 16).expect("more are fine");
        assert_eq!(Model::digest(&life.store), model.now());
        life.stop();
    }
}

/// Databases above the last one with keys are not needed once a checkpoint without them is taken.
#[test]
fn a_checkpoint_does_not_ask_for_empty_databases() {
    let fs = SimFs::new(1);
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let change = |life: &mut Life, db: u32, is_there: bool| {
        let at = At { now: 0, db: DbIndex(db), touch: false, worker: 0, writes: WriteClass::Any };
        let run = |txn: &mut Txn<'_>| {
            let (key, value) = (txn.key(b"key"), engine::Value::Bytes(b"value"));
            match is_there {
                true => txn.apply(&Effect::Set { key, value, encoding: engine::Encoding::PLAIN, expire_at: None }),
                false => txn.apply(&Effect::Delete { key }),
            }
            Ok(())
        };
        while life.store.commit(&mut life.scratch, &LockSet::All, &at, run).is_err() {}
        life.end_turn();
    };
    change(&mut life, 0, true);
    change(&mut life, 2, true);
    life.checkpoint(Cause::Asked).expect("the disk works");
    life.stop();
    let error = Life::start_with(&fs, policy(), 2).err().expect("database 2 has a key");
    assert!(matches!(error, DurabilityError::Databases { found: 3, configured: 2 }), "{error}");

    let mut life = Life::start_with(&fs, policy(), 3).expect("it has all three");
    change(&mut life, 2, false);
    life.checkpoint(Cause::Asked).expect("the disk works");
    life.stop();
    let life = Life::start_with(&fs, policy(), 1).expect("the others are empty");
    assert_eq!(life.store.len(DbIndex(0)).0, 1);
    life.stop();
}

/// The newest checkpoint is followed by a log, and all of its files are gone: a start does not take the checkpoint for
/// all there was.
#[test]
fn a_missing_log_is_refused_untouched() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 20);
    life.checkpoint(Cause::Asked).expect("the disk works");
    model.commands(&mut life, &mut rng, 20);
    life.stop();
    let logs = fs.contents().into_keys().filter(|path| path.to_string_lossy().contains("/log-"));
    logs.for_each(|path| fs.remove_file(&path).expect("it is there"));
    let before = fs.contents();
    for policy in [policy(), log_off()] {
        let error = Life::start(&fs, policy).err().expect("something is lost");
        assert!(matches!(error, DurabilityError::LogMissing { .. }), "{error}");
        assert!(error.to_string().contains("onggi restore"), "{error}");
        assert!(fs.contents() == before, "nothing was changed");
    }
}

/// A full disk: writes are refused with file and error number, deletes work. When there is space again both do, and
/// everything that was acknowledged is there.
#[test]
fn a_full_disk_refuses_writes_and_takes_deletes() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 100);
    fs.set_capacity(Some(0));
    let is_full = |life: &Life| {
        let failure = life.durability.status().log.and_then(|log| log.failure);
        failure.is_some_and(|failure| failure.disk_full && failure.errno == Some(errno::ENOSPC))
    };
    while !is_full(&life) {
        model.commands(&mut life, &mut rng, 1);
    }
    let names: Vec<_> = (0..24).map(|n| format!("key:{n}")).collect();
    for (class, is_taken) in [(WriteClass::Any, false), (WriteClass::Frees, true)] {
        let at = At { now: START_MS, db: DbIndex(0), touch: false, worker: 0, writes: class };
        let mut taken = 0;
        for name in &names {
            let delete = |txn: &mut Txn<'_>| {
                let key = txn.key(name.as_bytes());
                let is_there = txn.peek(&key)?.is_some();
                if is_there {
                    txn.apply(&Effect::Delete { key });
                }
                Ok(u32::from(is_there))
            };
            let result = loop {
                match life.store.commit(&mut life.scratch, &LockSet::All, &at, delete) {
                    Err(Blocked::Shard) => {}
                    result => break result,
                }
            };
            life.end_turn();
            assert_eq!(result.is_ok(), is_taken, "{class:?}: {result:?}");
            assert!(is_taken || result == Err(Blocked::Refused));
            taken += result.unwrap_or(0);
        }
        assert_eq!(taken > 0, is_taken);
    }
    let refusal = life.store.log().expect("it is on").refusal().expect("the disk is full");
    assert!(refusal.contains("log-") && refusal.contains("(errno 28)"), "{refusal}");
    fs.set_capacity(None);
    life.heal();
    model = Model::new(&life);
    model.commands(&mut life, &mut rng, 20);
    life.stop();
    let fs = fs.recover(Outage::PowerCut { seed: 1 });
    assert_eq!(found(&fs, log_off()).expect("it starts"), model.now());
}
