//! Databases on disk in whole lives: flushes, merges and checkpoints side by side, cut by power at every operation.

use crate::life::{Life, START_MS, found, policy};
use crate::model::{Model, seeds};
use base::{DbIndex, KeyspaceId, Rng, UnixMs};
use checkpoint::{DataDir, ManifestFile, Name};
use durability::{Cause, DurabilityError, Policy};
use engine::{Effect, Encoding, Keyspace, Type, Value};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::pressure::FlushFailure;
use store::{At, Blocked, LockSet, WriteClass};
use value::hash::Change;
use vfs::{Fault, FileSystem, Op, Outage, SimFs, errno};

/// Databases 0 and 1 are on disk, and are flushed for every kilobyte of log.
fn on_disk() -> Policy {
    Policy { disk_databases: vec![0, 1], flush_bytes: 2 << 10, ..policy() }
}

/// Drops what rows hold as well.
fn drop_clean(life: &Life) {
    for shard in life.store.shard_ids() {
        (0..2).for_each(|space| _ = life.store.drop_clean(shard, KeyspaceId(space), usize::MAX));
    }
}

/// Parts of large rows that flushes have written, and those that they found stored.
fn parts_written(life: &Life) -> u64 {
    life.durability.flush_status().map_or(0, |status| status.rows.parts_written)
}

fn flushes(life: &Life) -> u64 {
    life.durability.flush_status().map_or(0, |status| status.count)
}

/// A life with a flush after every few commands.
fn live(life: &mut Life, model: &mut Model, rng: &mut Rng, rounds: usize) {
    for round in 0..rounds {
        model.commands(life, rng, 12);
        // A flush has begun for every kilobyte.
        life.wait_until(|| life.durability.flush_status().is_none_or(|status| status.unflushed_bytes < 1 << 10));
        drop_clean(life);
        if round % 3 == 2 {
            let _ = life.checkpoint(Cause::Asked);
        }
    }
}

/// What a start finds is a state that was, at or after the last that was durable; also after a kill and a start that
/// was cut by power itself, where rows were flushed that came from a log which was only written.
#[test]
fn power_cuts_lose_nothing_that_was_durable() {
    for seed in seeds(2) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        fs.record_crash_points();
        let mut life = Life::start(&fs, on_disk()).expect("it starts");
        let mut model = Model::new(&life);
        live(&mut life, &mut model, &mut rng, 6);
        assert!(flushes(&life) > 1);
        assert!(parts_written(&life) > 0);
        life.crash();
        let points = fs.take_crash_points();
        println!("seed {seed}: {} crash points", points.len());
        for point in points.iter().skip(rng.below(2) as usize).step_by(2) {
            let (operation, what) = (point.operation(), format!("seed {seed}, operation {}", point.operation()));
            let state = found(&point.power_cut(seed), on_disk()).unwrap_or_else(|error| panic!("{what}: {error}"));
            model.judge(state, operation).unwrap_or_else(|problem| panic!("{what}: {problem}"));
            if operation.is_multiple_of(7) {
                start_after_a_kill(&model, &point.after(Outage::ProcessKill), operation, &what);
            }
        }
    }
}

fn start_after_a_kill(model: &Model, fs: &SimFs, operation: u64, what: &str) {
    let mut life = Life::start(fs, on_disk()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut second = Model::new(&life);
    model.judge(second.now(), operation).unwrap_or_else(|problem| panic!("{what}: {problem}"));
    second.commands(&mut life, &mut Rng::new(operation), 6);
    second.look(&life);
    let end = fs.operations() + 1;
    life.crash();
    let state = found(&fs.recover(Outage::PowerCut { seed: operation }), on_disk());
    let state = state.unwrap_or_else(|error| panic!("{what}, then cut: {error}"));
    second.judge(state, end).unwrap_or_else(|problem| panic!("{what}, then cut: {problem}"));
}

/// Sets keys in database 0.
fn set(life: &mut Life, keys: &[Vec<u8>], expire_at: Option<UnixMs>) {
    let at = At { now: life.durability.now_ms(), db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    for some in keys.chunks(50) {
        let run = |txn: &mut store::Txn<'_>| {
            for name in some {
                let key = txn.key(name);
                txn.apply(&Effect::Set { key, value: Value::Bytes(b"value"), encoding: Encoding::PLAIN, expire_at });
            }
            Ok(())
        };
        while life.store.commit(&mut life.scratch, &LockSet::All, &at, run).is_err() {
            std::thread::yield_now();
        }
        life.end_turn();
    }
}

/// Has all changes flushed and forgotten, so that only rows have them.
fn flush_and_drop(life: &Life) {
    let before = flushes(life);
    life.store.pressure.want();
    life.wait_until(|| flushes(life) > before);
    // The flush that ended may have begun before.
    let before = flushes(life);
    life.store.pressure.want();
    life.wait_until(|| flushes(life) > before);
    drop_clean(life);
}

/// A server that is written to no more flushes what has changed, be it one key, half a minute after the last flush.
/// Then nothing changes, except that the log says once that all of it is durable.
#[test]
fn what_little_has_changed_is_flushed_after_half_a_minute() {
    let policy = Policy { flush_bytes: 1 << 20, ..on_disk() };
    let mut life = Life::start(&SimFs::new(1), policy).expect("it starts");
    set(&mut life, &[b"first".to_vec()], None);
    flush_and_drop(&life);
    set(&mut life, &[b"second".to_vec()], None);
    let unflushed_bytes = || life.durability.flush_status().map_or(0, |status| status.unflushed_bytes);
    let (looks, before) = (Duration::from_millis(50), flushes(&life));
    life.clock.advance_ms(20_000);
    std::thread::sleep(looks);
    assert_eq!(flushes(&life), before);
    assert!(unflushed_bytes() > 0);
    life.clock.advance_ms(10_000);
    life.wait_until(|| flushes(&life) > before);
    for _ in 0..5 {
        life.clock.advance_ms(31_000);
        std::thread::sleep(looks);
    }
    assert!(flushes(&life) <= before + 2, "{} flushes", flushes(&life) - before);
    life.stop();
}

/// Rows that only the tree has go when they are due, without a read, and no others do: neither those whose time was
/// taken away or moved, nor again after a start.
#[test]
fn rows_that_are_not_in_memory_expire() {
    let fs = SimFs::new(5);
    let mut life = Life::start(&fs, on_disk()).expect("it starts");
    let names = |from: u32, to: u32| (from..to).map(|number| format!("key:{number}").into_bytes()).collect::<Vec<_>>();
    let soon = Some(START_MS + 1_000);
    // Keys that do not fit into an entry of the times, too.
    let long: Vec<_> = [65_527, 65_528, 65_535, 70_000].map(|len| vec![b'k'; len]).into();
    set(&mut life, &names(0, 400), soon);
    set(&mut life, &long, soon);
    set(&mut life, &names(400, 500), Some(START_MS + 1_000_000));
    set(&mut life, &names(500, 600), None);
    flush_and_drop(&life);
    set(&mut life, &names(0, 50), None);
    set(&mut life, &names(50, 100), Some(START_MS + 1_000_000));
    flush_and_drop(&life);
    let len = |life: &Life| life.store.len(DbIndex(0)).0;
    let upkeep = |life: &mut Life| {
        let shards: Vec<_> = life.store.shard_ids().collect();
        shards.into_iter().for_each(|shard| while life.store.upkeep(shard, 0, &mut life.scratch) {});
    };
    upkeep(&mut life);
    assert_eq!((len(&life), life.scratch.expired), (604, 0), "nothing is due");
    life.clock.advance_ms(1_001);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while len(&life) > 300 {
        assert!(std::time::Instant::now() < deadline, "{} keys are left", len(&life));
        upkeep(&mut life);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!((len(&life), life.scratch.expired), (300, 304));
    flush_and_drop(&life);
    let expected = Model::digest(&life.store);
    life.stop();
    assert_eq!(found(&fs, on_disk()).expect("it starts"), expected);
    let mut life = Life::start(&fs, on_disk()).expect("it starts");
    life.clock.advance_ms(1_001);
    std::thread::sleep(std::time::Duration::from_millis(250));
    upkeep(&mut life);
    assert_eq!((len(&life), life.scratch.expired), (300, 0));
    life.stop();
}

/// An ordered end leaves to the log what is not flushed, and the log is not kept for longer than rows and checkpoints
/// need it.
#[test]
fn the_log_is_trimmed_below_the_last_flush() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let one_set = checkpoint::Retention { sets: 1, age_ms: None, ..checkpoint::Retention::default() };
    let policy = Policy { retention: one_set, ..on_disk() };
    let mut life = Life::start(&fs, policy.clone()).expect("it starts");
    let mut model = Model::new(&life);
    live(&mut life, &mut model, &mut rng, 12);
    life.wait_until(|| life.durability.flush_status().is_some_and(|status| status.flushed.0 > 16 << 10));
    life.checkpoint(Cause::Asked).expect("the disk works");
    let flushed = life.durability.flush_status().expect("databases are on disk").flushed;
    let dir = DataDir::open_to_look(Arc::new(fs.clone()), Path::new(crate::life::DIR));
    let logs = dir.list().expect("it is there").logs;
    assert!(logs[0].0 > 0, "the first segments are gone: {logs:?}");
    assert!(logs[0] <= flushed, "{logs:?}, {flushed}");
    let expected = model.now();
    life.stop();
    assert_eq!(found(&fs, policy).expect("it starts"), expected);
}

/// One try of a SET of 200 bytes.
fn try_set(life: &mut Life, db: u32, number: u32) -> Result<(), Blocked> {
    let at = At { now: START_MS, db: DbIndex(db), touch: false, worker: 0, writes: WriteClass::Any };
    let (name, bytes) = (format!("key:{number}"), [b'v'; 200]);
    let result = life.store.commit(&mut life.scratch, &LockSet::All, &at, |txn| {
        let key = txn.key(name.as_bytes());
        txn.apply(&Effect::Set { key, value: Value::Bytes(&bytes), encoding: Encoding::PLAIN, expire_at: None });
        Ok(())
    });
    life.end_turn();
    result
}

/// Sets keys until one waits for a flush; how many were set.
fn set_until_behind(life: &mut Life, number: &mut u32) -> u32 {
    let before = *number;
    loop {
        match try_set(life, 0, *number) {
            Ok(()) => *number += 1,
            Err(Blocked::Shard) => {}
            Err(Blocked::Log) if life.store.pressure.failure().is_some() => return *number - before,
            Err(Blocked::Log) => std::thread::yield_now(),
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Rows cannot be written, for any reason: writes to the database wait, then are refused with the reason, and other
/// databases continue. Tries to flush take no more memory each time. When rows can be written, all continues.
#[test]
fn a_full_disk_stops_only_databases_that_are_on_it() {
    let fs = SimFs::new(3);
    let policy = Policy { disk_databases: vec![0], ..on_disk() };
    let mut life = Life::start(&fs, policy.clone()).expect("it starts");
    fs.inject(Fault::fail(Op::Write, errno::ENOSPC).below("/data/lsm").forever());
    let mut number = 0;
    assert!(set_until_behind(&mut life, &mut number) > 0, "some changes fit before they have to be flushed");
    assert_eq!(life.store.flush_failure(DbIndex(0)), Some(FlushFailure::Wait));
    let begin = Instant::now();
    life.wait_until(|| life.store.why_no_flush(DbIndex(0)).is_some());
    assert!(begin.elapsed() < Duration::from_secs(30));
    let refused =
        std::iter::repeat_with(|| try_set(&mut life, 0, number)).find(|result| *result != Err(Blocked::Shard));
    // A try to flush ends the wait, but not the refusal.
    assert_eq!(refused, Some(Err(Blocked::Refused)));
    let why = life.store.refusal_by_flush(DbIndex(0)).expect("it is the reason");
    assert!(why.contains("No space left") || why.contains("errno 28"), "{why}");
    let held_bytes = life.store.pressure.row_store_bytes();
    // The memory database has no part in it, however long its log grows.
    let mut memory = 0;
    while memory < 500 || begin.elapsed() < Duration::from_secs(3) {
        match try_set(&mut life, 2, memory) {
            Ok(()) => memory += 1,
            Err(Blocked::Shard | Blocked::Log) => std::thread::yield_now(),
            Err(other) => panic!("{other:?}"),
        }
        assert_eq!(life.store.flush_failure(DbIndex(2)), None);
    }
    assert!(life.store.pressure.row_store_bytes() <= held_bytes.max(1) * 2, "tries to flush pile up");
    assert!(life.durability.flush_status().is_some_and(|status| status.error.is_some()));
    fs.clear_faults();
    life.wait_until(|| life.store.pressure.failure().is_none());
    loop {
        match try_set(&mut life, 0, number) {
            Ok(()) => break,
            Err(Blocked::Shard | Blocked::Log) => std::thread::yield_now(),
            Err(other) => panic!("{other:?}"),
        }
    }
    let told = life.told.0.lock().join("\n");
    assert_eq!(told.matches("cannot be flushed").count(), 1, "{told}");
    assert!(told.contains("are flushed again"), "{told}");
    flush_and_drop(&life);
    assert_eq!(life.store.len(DbIndex(0)).0, u64::from(number) + 1);
    let expected = Model::digest(&life.store);
    life.stop();
    assert_eq!(found(&fs, policy).expect("it starts"), expected);
}

/// The engine of a database is fixed once it has entries, in both directions, and rows need the log.
#[test]
fn a_start_with_another_engine_is_refused() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 20);
    life.stop();
    match Life::start(&fs, on_disk()).map(|_| ()) {
        Err(error @ DurabilityError::EngineFixed { .. }) => assert!(error.to_string().contains("is in memory and has")),
        other => panic!("{other:?}"),
    }
    // One more database moves to disk.
    let third = Policy { disk_databases: vec![2], ..policy() };
    let life = Life::start(&fs, third).expect("database 2 is empty");
    assert_eq!(Model::digest(&life.store), model.now());
    life.stop();
    match Life::start(&fs, policy()).map(|_| ()) {
        Err(error @ DurabilityError::EngineMissing { number: 2 }) => {
            assert!(error.to_string().contains("--database '2 engine disk'"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let no_log = Policy { disk_databases: vec![2], log_wanted: false, ..policy() };
    assert!(matches!(Life::start(&fs, no_log).map(|_| ()), Err(DurabilityError::RowsWithoutLog)));
    let dir = DataDir::open_to_look(Arc::new(fs.clone()), Path::new(crate::life::DIR));
    let manifest = ManifestFile::load(&dir).expect("it is whole").expect("there is one");
    assert_eq!(manifest.current().disk_spaces, [KeyspaceId(2)]);
    // Rows that are missing are no empty database.
    let rows = dir.file(Name::Rows);
    fs.rename(&rows, Path::new("/elsewhere")).expect("the disk works");
    let lost = Life::start(&fs, Policy { disk_databases: vec![2], ..policy() }).map(|_| ());
    assert!(matches!(lost, Err(DurabilityError::Rows(_))), "{lost:?}");
}

/// A write of a hash of which leaves are rows, as workers do it: over the budget, it makes room first or waits.
fn set_fields(life: &mut Life, numbers: std::ops::Range<u64>) -> u64 {
    let at = At { now: START_MS, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let mut changes = Vec::new();
    for number in numbers {
        let field = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        Change::Set { field: &field, value: &[number as u8; 200], expire_at: None }.put(&mut changes);
    }
    while life.store.is_over_budget() && life.store.evict(200, 0, &mut life.scratch) != Ok(true) {
        std::thread::yield_now();
    }
    let run = |txn: &mut store::Txn<'_>| {
        let key = txn.key(b"hash");
        txn.read_to_edit(&key)?;
        txn.apply(&Effect::Edit { key, kind: Type::Hash, changes: &changes });
        Ok(())
    };
    let mut wants = Vec::new();
    while life.store.commit(&mut life.scratch, &LockSet::All, &at, run).is_err() {
        for want in life.scratch.take_wants() {
            let (mut row, rows) = (Vec::new(), want.rows.as_ref().expect("leaves are read at once"));
            let is_there = rows.get(&want.key, &mut row).expect("the disk works");
            life.store.install(&want, is_there.then_some(&row[..]));
            wants.push(want);
        }
        std::thread::yield_now();
    }
    life.store.release(&wants);
    life.end_turn();
    life.store.used_bytes()
}

/// A hash grows beyond the budget: what counts stays near it, since writes wait for flushes, before which leaves
/// become rows. A kill loses nothing.
#[test]
fn a_hash_that_is_larger_than_memory_stays_within_the_budget() {
    const BUDGET: u64 = 2 << 20;
    let fs = SimFs::new(7);
    let policy = Policy { flush_bytes: 1 << 20, parts_from: 4 << 10, ..on_disk() };
    let mut life = Life::start(&fs, policy.clone()).expect("it starts");
    life.store.set_budget(BUDGET, None, Default::default());
    let mut most = 0;
    for number in 0..800 {
        most = most.max(set_fields(&mut life, number * 20..number * 20 + 20));
    }
    let rows = life.durability.flush_status().expect("databases are on disk").rows;
    println!("at most {most} bytes, {} flushes, {} leaves written", flushes(&life), rows.leaves_written);
    assert!(most < 2 * BUDGET, "{most} bytes");
    assert!(rows.leaves_written > 1000 && rows.leaves_read > 100, "{rows:?}");
    let expected = Model::digest(&life.store);
    life.crash();
    assert_eq!(found(&fs.recover(Outage::ProcessKill), policy).expect("it starts"), expected);
}

/// Changed leaves become rows with a flush, if memory is short. Who looks for memory stores none: it would be in the
/// memory of the rows.
#[test]
fn leaves_become_rows_with_a_flush_alone() {
    let fs = SimFs::new(8);
    let policy = Policy { flush_bytes: 4 << 20, ..on_disk() };
    let mut life = Life::start(&fs, policy.clone()).expect("it starts");
    (0..100).for_each(|number| _ = set_fields(&mut life, number * 20..number * 20 + 20));
    let written = |life: &Life| life.durability.flush_status().expect("databases are on disk").rows.leaves_written;
    let used = life.store.used_bytes();
    life.store.set_budget(used + used / 4, None, Default::default());
    drop_clean(&life);
    assert_eq!((written(&life), flushes(&life)), (0, 0));
    flush_and_drop(&life);
    assert!(written(&life) > 40, "{} leaves", written(&life));
    assert!(life.store.used_bytes() < used / 2, "{} of {used} bytes", life.store.used_bytes());
    let expected = Model::digest(&life.store);
    life.stop();
    assert_eq!(found(&fs, policy).expect("it starts"), expected);
}
