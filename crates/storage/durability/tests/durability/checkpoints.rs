//! Checkpoints that succeed: what they hold, when they are taken, what is kept of older ones.

use crate::crashes::checkpoint_under_load;
use crate::life::{DIR, Life, found, log_off, policy};
use crate::model::{Model, seeds};
use base::{DbIndex, Rng};
use checkpoint::{DataDir, LoadProgress, ManifestFile};
use config::SavePoint;
use durability::{Cancelled, Cause, Policy};
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::Arc;
use store::Scratch;
use vfs::{Op, Outage, SimFs};

/// The same commands come back from the log alone, from a checkpoint alone, and from both.
#[test]
fn everything_comes_back_from_log_checkpoint_and_both() {
    for seed in seeds(2) {
        for (log, checkpoint, after) in
            [(true, false, true), (false, true, false), (true, true, false), (true, true, true)]
        {
            let what = format!("seed {seed}: log {log}, checkpoint {checkpoint}, commands after it {after}");
            let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
            let mut life = Life::start(&fs, Policy { log_wanted: log, ..policy() }).expect("it starts");
            let mut model = Model::new(&life);
            model.commands(&mut life, &mut rng, 150);
            if checkpoint && after {
                checkpoint_under_load(&mut life, &mut model, &mut rng, Cause::Asked).expect("the disk works");
                model.commands(&mut life, &mut rng, 50);
            } else if checkpoint {
                life.checkpoint(Cause::Asked).expect("the disk works");
            }
            life.stop();
            // What was not synced would be lost here.
            let fs = fs.recover(Outage::PowerCut { seed });
            let life = Life::start(&fs, log_off()).expect("it starts");
            assert_eq!(Model::digest(&life.store), model.now(), "{what}");
            let recovered = &life.recovered;
            assert_eq!((recovered.keys > 0, recovered.records > 0), (checkpoint, after), "{what}: {recovered:?}");
        }
    }
}

/// Databases that were exchanged before and after the cut keep their numbers.
#[test]
fn exchanged_databases_keep_their_numbers() {
    use engine::Keyspace as _;
    let fs = SimFs::new(1);
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let commit = |life: &mut Life, change: &dyn Fn(&mut store::Txn<'_>)| {
        let at = store::At { now: 0, db: DbIndex(0), touch: false, worker: 0, writes: store::WriteClass::Any };
        let run = |txn: &mut store::Txn<'_>| {
            change(txn);
            Ok(())
        };
        while life.store.commit(&mut life.scratch, &store::LockSet::All, &at, run).is_err() {}
        life.end_turn();
    };
    let set = |db: u32| {
        move |txn: &mut store::Txn<'_>| {
            txn.select(DbIndex(db));
            let value = engine::Value::Bytes(b"value");
            let key = txn.key(b"key");
            txn.apply(&engine::Effect::Set { key, value, encoding: engine::Encoding::PLAIN, expire_at: None });
        }
    };
    let swap = |a: u32, b: u32| {
        move |txn: &mut store::Txn<'_>| {
            let space = |db| txn.space_of(DbIndex(db)).expect("there are so many");
            let (a, b) = (space(a), space(b));
            txn.apply(&engine::Effect::Swap { a, b });
        }
    };
    let lens = |life: &Life| (0..4).map(|db| life.store.len(DbIndex(db)).0).collect::<Vec<_>>();
    commit(&mut life, &set(0));
    commit(&mut life, &swap(0, 2));
    commit(&mut life, &swap(2, 3));
    assert_eq!(lens(&life), [0, 0, 0, 1]);
    life.checkpoint(Cause::Asked).expect("the disk works");
    commit(&mut life, &set(0));
    commit(&mut life, &swap(3, 1));
    assert_eq!(lens(&life), [1, 1, 0, 0]);
    let expected = Model::digest(&life.store);
    life.stop();
    for _ in 0..2 {
        let life = Life::start(&fs, policy()).expect("it starts");
        assert_eq!((lens(&life), Model::digest(&life.store)), (vec![1, 1, 0, 0], expected));
        life.checkpoint(Cause::Asked).expect("the disk works");
        life.stop();
    }
}

/// The state that the older of two sets and the log up to a position give.
pub fn restored(fs: &SimFs, index: usize, up_to: base::Lsn) -> store::Digest {
    let dir = DataDir::open_to_look(Arc::new(fs.clone()), Path::new(DIR));
    let file = ManifestFile::load(&dir).expect("it reads").expect("there is one");
    let set = &file.current().sets[index];
    // A store of its own, on a disk of its own.
    let life = Life::start(&SimFs::new(9), log_off()).expect("it starts");
    let put = |effect: &engine::Effect<'_>| life.store.load(effect);
    let report = checkpoint::load(&dir, set, 2, &life.store.hasher, &put, &LoadProgress::default()).expect("it loads");
    (0..).zip(&report.spaces).for_each(|(db, space)| life.store.spaces.set(DbIndex(db), *space));
    let (mut scratch, mut is_over) = (Scratch::default(), false);
    let mut each = |after: base::Lsn, payload: &[u8]| {
        is_over |= after > up_to;
        if !is_over {
            life.store.replay(&mut scratch, after, payload)?;
        }
        Ok(())
    };
    cmdlog::recover(fs, Path::new(DIR), set.log_from.expect("the log was on"), &mut each, &mut |_| {})
        .expect("it reads");
    Model::digest(&life.store)
}

/// Two sets are kept, and the log from the older one on: what a FLUSHALL has removed is there, even after a checkpoint,
/// and so is every state since the older set, by position.
#[test]
fn a_flushall_can_be_undone() {
    flushall_is_undone(3);
}

/// As above, by a server that has saved nothing before: its log leads there from the beginning.
#[test]
fn a_flushall_before_the_first_checkpoint_can_be_undone() {
    flushall_is_undone(0);
}

fn flushall_is_undone(checkpoints: u32) {
    let (fs, mut rng) = (SimFs::new(4), Rng::new(4));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut model = Model::new(&life);
    for _ in 0..checkpoints {
        model.commands(&mut life, &mut rng, 60);
        life.checkpoint(Cause::Asked).expect("the disk works");
    }
    model.commands(&mut life, &mut rng, 40);
    let (before, position) = (model.now(), life.store.log().expect("it is on").end());
    {
        use engine::Keyspace as _;
        let at = store::At {
            now: crate::life::START_MS,
            db: DbIndex(0),
            touch: false,
            worker: 0,
            writes: store::WriteClass::Any,
        };
        let flush = |txn: &mut store::Txn<'_>| {
            (0..4).filter_map(|db| txn.space_of(DbIndex(db))).collect::<Vec<_>>().into_iter().for_each(|space| {
                txn.apply(&engine::Effect::Clear { space });
            });
            Ok(())
        };
        while life.store.commit(&mut life.scratch, &store::LockSet::All, &at, flush).is_err() {}
        life.end_turn();
    }
    life.checkpoint(Cause::Asked).expect("the disk works");
    let status = life.durability.status();
    assert!(status.sets >= if checkpoints > 0 { 2 } else { 1 } && status.restorable_since_ms.is_some(), "{status:?}");
    let empty = Model::digest(&life.store);
    life.stop();
    assert_eq!(found(&fs, log_off()).expect("it starts"), empty);
    assert_eq!(restored(&fs, 0, position), before, "the older set and the log up to the FLUSHALL");
    assert_eq!(restored(&fs, 0, base::Lsn(u64::MAX)), empty, "and beyond");
    assert_ne!(before, empty);
}

/// A switch that the disk's syncs pass through, so that a checkpoint can be held up.
#[derive(Default)]
struct Barrier(Mutex<(bool, u32)>, Condvar);

impl Barrier {
    fn hold(fs: &SimFs) -> Arc<Self> {
        let barrier = Arc::new(Self(Mutex::new((true, 0)), Condvar::new()));
        let met = barrier.clone();
        fs.on_sync(move |call| {
            if call.op == Op::SyncAll && call.path.to_string_lossy().contains("prdb-") {
                let mut state = met.0.lock();
                state.1 += 1;
                while state.0 {
                    met.1.wait(&mut state);
                }
            }
        });
        barrier
    }

    fn has_come(&self) -> bool {
        self.0.lock().1 > 0
    }

    fn open(&self) {
        self.0.lock().0 = false;
        self.1.notify_all();
    }
}

/// BGSAVE CANCEL gives up the save that is being taken, or forgets the one that waits; a second BGSAVE is refused
/// meanwhile. What was saved before stands, no file is left over, and the next save works.
#[test]
fn a_save_can_be_cancelled() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 50);
    life.checkpoint(Cause::Asked).expect("the disk works");
    assert_eq!(life.durability.cancel(), None);
    let barrier = Barrier::hold(&fs);
    let task = life.durability.begin(Cause::Asked).expect("none is being taken");
    life.wait_until(|| barrier.has_come());
    assert!(life.durability.begin(Cause::Rewrite).is_err_and(|busy| busy.is_save));
    let next = life.durability.schedule(Cause::Asked);
    assert!(life.durability.status().is_scheduled);
    assert_eq!(life.durability.cancel(), Some(Cancelled::Scheduled));
    assert_eq!(life.durability.cancel(), Some(Cancelled::Running));
    barrier.open();
    life.wait_until(|| task.outcome().is_some());
    for task in [task, next] {
        let outcome = task.outcome().expect("it is over");
        assert!(outcome.as_ref().is_err_and(|error| error.contains("cancelled")), "{outcome:?}");
    }
    let status = life.durability.status();
    assert_eq!((status.sets, status.saves.count, status.saves.failures), (1, 1, 0));
    assert!(life.store.gate.is_open(), "a cancelled save is no failure");
    let files = |fs: &SimFs| fs.contents().keys().filter(|path| path.to_string_lossy().contains("prdb-")).count();
    assert_eq!(files(&fs), 2);
    assert_eq!(life.store.backlog().memory().now, 0);
    model.commands(&mut life, &mut rng, 20);
    life.checkpoint(Cause::Asked).expect("the disk works");
    assert_eq!(files(&fs), 4);
    life.stop();
    assert_eq!(found(&fs, log_off()).expect("it starts"), model.now());
}

/// A client that has asked for a checkpoint, and waits until none is being taken, finds it taken.
#[test]
fn a_checkpoint_that_was_asked_for_is_told_of_before_it_begins() {
    let life = Life::start(&SimFs::new(1), policy()).expect("it starts");
    for taken in 0..50 {
        let task = life.durability.begin(Cause::Asked).expect("none is being taken");
        let status = life.durability.status();
        assert!(status.running.is_some() || status.saves.count > taken, "round {taken}");
        life.wait_for_rest();
        assert_eq!(life.durability.status().saves.count, taken + 1);
        life.wait_until(|| task.outcome().is_some());
    }
    life.stop();
}

/// Changes that are made while a checkpoint is written are not in it, and count as unsaved after it; those of a failed
/// one stay unsaved.
#[test]
fn what_a_checkpoint_does_not_hold_counts_as_unsaved() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let saving = Policy { save_points: vec![SavePoint { seconds: 1 << 30, changes: 1 }], ..log_off() };
    let mut life = Life::start(&fs, saving).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 50);
    let unsaved = life.durability.changes();
    assert!(unsaved > 0 && life.durability.saves_at_end());
    fs.inject(vfs::Fault::fail(Op::SyncAll, vfs::errno::EIO).on("prdb-00000001-01"));
    life.checkpoint(Cause::Asked).expect_err("the disk fails");
    assert_eq!(life.durability.changes(), unsaved, "nothing was saved");
    assert!(life.durability.saves_at_end());
    let barrier = Barrier::hold(&fs);
    let task = life.durability.begin(Cause::Asked).expect("none is being taken");
    life.wait_until(|| barrier.has_come());
    let before = life.changes.load(std::sync::atomic::Ordering::Relaxed);
    model.commands(&mut life, &mut rng, 50);
    let meanwhile = life.changes.load(std::sync::atomic::Ordering::Relaxed) - before;
    barrier.open();
    life.wait_until(|| task.outcome().is_some());
    assert_eq!(task.outcome(), Some(&Ok(())));
    assert_eq!(life.durability.changes(), meanwhile);
    assert!(life.durability.saves_at_end());
    life.checkpoint(Cause::Shutdown).expect("the disk works");
    assert_eq!((life.durability.changes(), life.durability.saves_at_end()), (0, false));
    life.stop();
    assert_eq!(found(&fs, log_off()).expect("it starts"), model.now());
}

/// Checkpoints are taken automatically: when a save point is reached, and when the log has grown.
#[test]
fn checkpoints_are_taken_when_they_are_due() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let saving = Policy { save_points: vec![SavePoint { seconds: 60, changes: 10 }], ..log_off() };
    let mut life = Life::start(&fs, saving).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 40);
    assert_eq!(life.durability.status().saves.count, 0);
    life.clock.advance_ms(70_000);
    life.wait_until(|| life.durability.status().saves.count == 1);
    life.stop();
    assert_eq!(found(&fs, log_off()).expect("it starts"), model.now());

    let growing = Policy { growth_percent: 100, growth_bytes_min: 20_000, ..policy() };
    let fs = SimFs::new(2);
    let mut life = Life::start(&fs, growing).expect("it starts");
    let mut model = Model::new(&life);
    while life.durability.status().rewrites.count < 4 {
        model.commands(&mut life, &mut rng, 5);
    }
    life.wait_for_rest();
    // Flushes among the commands pin more than two.
    assert!(life.durability.status().sets >= 2);
    life.stop();
    assert_eq!(found(&fs, log_off()).expect("it starts"), model.now());
}

/// Files that a backup holds stay through any number of checkpoints, and go with the first one after the hold.
#[test]
fn files_that_are_held_stay() {
    let fs = SimFs::new(11);
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let (mut model, mut rng) = (Model::new(&life), Rng::new(11));
    model.commands(&mut life, &mut rng, 30);
    life.checkpoint(Cause::Asked).expect("the disk works");
    let names = |fs: &SimFs| {
        let is_data = |path: &String| path.contains("/prdb-") || path.contains("/log-");
        fs.contents().keys().map(|path| path.display().to_string()).filter(is_data).collect::<Vec<_>>()
    };
    let held = names(&fs);
    life.durability.hold_files(60_000).expect("nothing is being removed");
    for _ in 0..4 {
        model.commands(&mut life, &mut rng, 30);
        life.checkpoint(Cause::Asked).expect("the disk works");
    }
    let now = names(&fs);
    assert!(held.iter().all(|name| now.contains(name)), "{held:?} were held, {now:?} are there");
    life.durability.release_files().expect("nothing is being removed");
    life.checkpoint(Cause::Asked).expect("the disk works");
    let now = names(&fs);
    assert!(held.iter().all(|name| !now.contains(name)), "{held:?} were let go, {now:?} are there");
    life.stop();
    assert_eq!(found(&fs, policy()).expect("it starts"), model.now());
}
