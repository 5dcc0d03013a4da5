//! Starts and ordered stops.

use crate::life::{Life, found, give_up, policy};
use crate::model::{Model, seeds};
use base::Rng;
use cmdlog::LogMode;
use durability::{Cause, DurabilityError, Policy};
use vfs::{Fault, Outage, SimFs, errno};

const MODES: [LogMode; 3] = [LogMode::Sync, LogMode::Async, LogMode::WrittenOnly];

/// A fresh start, an ordered stop, a start: the same state, again and again, whatever the mode; each life adds commands,
/// and some a checkpoint.
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

/// A server that is to end while it loads, be it a checkpoint or the log, gives up and changes nothing: the next start finds
/// everything.
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

/// Each operation of a start fails once: the start says so or goes on, and the one after it finds the same state, whether the
/// power was cut in between or not.
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
        assert!(failed > 8, "only {failed} failed");
    }
}
