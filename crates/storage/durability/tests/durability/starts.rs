//! Starts and ordered stops.

use crate::life::{DATABASES, DIR, Life, Unstarted, found, give_up, policy};
use crate::model::{Model, seeds};
use base::Rng;
use cmdlog::LogMode;
use durability::{Cause, DurabilityError, Policy};
use engine::WriteClass;
use std::path::Path;
use std::time::{Duration, Instant};
use store::{Admission, Scratch, Store};
use vfs::{Fault, FileSystem, Outage, SimFs, errno};

const MODES: [LogMode; 3] = [LogMode::Sync, LogMode::Async, LogMode::WrittenOnly];

/// A fresh start, an ordered stop, a start: the same state, again and again, whatever the mode; each life adds
/// commands, and some a checkpoint.
#[test]
fn lives_go_on_where_the_last_one_ended() {
    for seed in seeds(3) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut expected = None;
        for n in 0..6 {
            let policy = Policy { mode: MODES[(seed + n) as usize % 3], ..policy() };
            let mut life = Life::start(&fs, policy).expect("it starts");
            let mut model = Model::new(&life);
            assert!(expected.is_none_or(|expected| expected == model.now()), "seed {seed}, life {n}");
            assert_eq!(life.recovered.torn, None, "an ordered stop leaves nothing to cut");
            model.commands(&mut life, &mut rng, 60);
            if n % 3 == 1 {
                life.checkpoint(Cause::Asked).expect("the disk works");
                model.commands(&mut life, &mut rng, 10);
            }
            expected = Some(model.now());
            life.stop();
        }
    }
}

/// A server that is to end while it loads, be it a checkpoint or the log, gives up and changes nothing: the next start
/// finds everything.
#[test]
fn a_start_that_is_given_up_changes_nothing() {
    for has_checkpoint in [false, true] {
        let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 40);
        if has_checkpoint {
            life.checkpoint(Cause::Asked).expect("the disk works");
            model.commands(&mut life, &mut rng, 20);
        }
        let expected = model.now();
        life.stop();
        let before = fs.contents();
        let given_up = give_up(&fs, policy());
        assert!(matches!(given_up, Err(DurabilityError::Ended(_))), "{given_up:?}");
        assert!(fs.contents() == before, "files were changed");
        let life = Life::start(&fs, policy()).expect("it starts");
        assert!(Model::new(&life).now() == expected);
        life.stop();
    }
}

/// Each operation of a start fails once: the start says so or continues, and the one after it finds the same state,
/// whether the power was cut in between or not.
#[test]
fn every_operation_of_a_start_fails_once() {
    for seed in seeds(2) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 40);
        life.checkpoint(Cause::Asked).expect("the disk works");
        model.commands(&mut life, &mut rng, 20);
        if seed.is_multiple_of(2) {
            life.stop();
        } else {
            life.crash();
        }
        let left = fs.recover(Outage::PowerCut { seed }).crash_point();
        let expected = found(&left.after(Outage::ProcessKill), policy()).expect("it starts");
        let mut failed = 0;
        for step in 1.. {
            let what = format!("seed {seed}, operation {step}");
            let fs = left.after(Outage::ProcessKill);
            fs.inject(Fault::fail_operation(step, if rng.one_in(2) { errno::EIO } else { errno::ENOSPC }));
            let started = Life::start(&fs, policy());
            failed += u32::from(started.is_err());
            let fired = fs.faults_fired() > 0;
            assert!(fired || started.is_ok(), "{what}: {:?}", started.err());
            if let Ok(life) = &started {
                assert_eq!(Model::digest(&life.store), expected, "{what}");
            }
            drop(started);
            fs.clear_faults();
            let cut = fs.crash_point().power_cut(step);
            assert_eq!(
                found(&cut, policy()).unwrap_or_else(|error| panic!("{what}: {error}")),
                expected,
                "{what}, cut"
            );
            let life = Life::start(&fs.recover(Outage::ProcessKill), policy());
            let life = life.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(Model::digest(&life.store), expected, "{what}, started again");
            if !fired {
                break;
            }
        }
        assert!(failed > 4, "only {failed} failed");
    }
}

/// A start on a full disk serves what is there and refuses every change, whatever it had to write; leftovers of an
/// unfinished checkpoint make no difference. When there is room writes are accepted, and nothing is lost, with a cut
/// before or not.
#[test]
fn a_start_on_a_full_disk_serves_reads_until_there_is_room() {
    for seed in seeds(6) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 40);
        if seed.is_multiple_of(2) {
            life.checkpoint(Cause::Asked).expect("there is room");
            model.commands(&mut life, &mut rng, 20);
        }
        match seed % 3 {
            0 => life.stop(),
            _ => life.crash(),
        }
        let left = fs.recover(Outage::PowerCut { seed });
        let expected = found(&left.crash_point().after(Outage::ProcessKill), policy()).expect("it starts");
        left.set_capacity(Some(0));

        let unstarted = Unstarted::open(&left, policy(), DATABASES).expect("the lock needs no room");
        let Unstarted { store, durability, .. } = &unstarted;
        std::thread::scope(|scope| {
            let recovery = scope.spawn(|| durability.recover());
            wait(|| !store.gate.is_loading());
            assert_eq!(Model::digest(store), expected, "seed {seed}: what is served");
            let refused = refusal(store).expect("nothing is to change");
            assert!(refused.contains("full disk"), "{refused}");
            let task = durability.begin(Cause::Asked).expect("nothing else is asked");
            let words = task.outcome().expect("at once").as_ref().expect_err("a checkpoint has no room either");
            assert!(refused.ends_with(words.as_str()), "{words}");
            let cut = left.crash_point().power_cut(seed);
            cut.set_capacity(None);
            assert_eq!(found(&cut, policy()).expect("it starts"), expected, "seed {seed}, cut while it waits");
            assert!(!recovery.is_finished());
            left.set_capacity(None);
            recovery.join().expect("no panic").expect("there is room");
        });
        assert_eq!((refusal(store), Model::digest(store)), (None, expected), "seed {seed}");
        unstarted.forget();
    }
}

/// A server that is to end does not wait for room, and its directory is as good as before.
#[test]
fn a_start_that_waits_for_room_can_be_given_up() {
    let fs = SimFs::new(1);
    fs.create_dir_all(Path::new(DIR)).expect("the disk works");
    fs.set_capacity(Some(0));
    let unstarted = Unstarted::open(&fs, policy(), DATABASES).expect("the lock needs no room");
    std::thread::scope(|scope| {
        let recovery = scope.spawn(|| unstarted.durability.recover());
        wait(|| !unstarted.store.gate.is_loading());
        unstarted.durability.end();
        let ended = recovery.join().expect("no panic");
        assert!(matches!(ended, Err(DurabilityError::Ended(_))), "{ended:?}");
    });
    unstarted.forget();
    fs.set_capacity(None);
    Life::start(&fs, policy()).expect("it starts").stop();
}

/// Why the log in force refuses a change; `None` if it does not.
fn refusal(store: &Store) -> Option<String> {
    let mut scratch = Scratch::default();
    let log = store.log_of(&mut scratch).expect("a log, or what stands in its place");
    let refuses = |class| log.admit(0, class) == Admission::Refused;
    assert_eq!(refuses(WriteClass::Frees), refuses(WriteClass::Any));
    refuses(WriteClass::Any).then(|| log.refusal()).flatten()
}

#[track_caller]
fn wait(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "hangs");
        std::thread::yield_now();
    }
}
