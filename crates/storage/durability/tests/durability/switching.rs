//! The log is switched on and off while commands run, and the power is cut at every operation of it.

use crate::crashes::judge_all;
use crate::life::{Life, found, log_off, policy};
use crate::model::{Model, seeds};
use crate::modes::PATIENCE;
use base::Rng;
use durability::{Cause, Policy};
use vfs::{Fault, Op, Outage, SimFs, errno};

/// Has the log switched, and runs commands meanwhile.
fn switch(life: &mut Life, model: &mut Model, rng: &mut Rng, policy: Policy) {
    let (is_on, before) = (policy.log_wanted, model.last());
    let was_on = life.durability.status().log.is_some();
    life.durability.set_policy(policy, PATIENCE).expect("no lock is held");
    let is_done = |life: &Life| {
        let status = life.durability.status();
        status.log.is_some() == is_on && !status.is_switching_on && status.running.is_none()
    };
    for _ in 0..40 {
        if is_done(life) {
            break;
        }
        model.commands(life, rng, 1);
        std::thread::yield_now();
    }
    life.wait_until(|| is_done(life));
    if was_on != is_on {
        model.is_durable(&life.fs, before);
    }
}

/// On and off again several times, with commands all the while: no cut leaves anything but a state that was, and none
/// older than the last that the log or a checkpoint had made durable.
#[test]
fn cuts_while_the_log_is_switched() {
    for seed in seeds(3) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        fs.record_crash_points();
        let begins_on = seed.is_multiple_of(2);
        let mut life = Life::start(&fs, if begins_on { policy() } else { log_off() }).expect("it starts");
        let mut model = Model::new(&life);
        for turn in 0..4 {
            model.commands(&mut life, &mut rng, 12);
            let to_on = (turn % 2 == 0) != begins_on;
            switch(&mut life, &mut model, &mut rng, if to_on { policy() } else { log_off() });
        }
        model.commands(&mut life, &mut rng, 12);
        life.crash();
        judge_all(&model, &fs.take_crash_points(), seed);
    }
}

/// The log was on, the next start is configured without it, and then it is switched on at run time: until that is done
/// a crash leaves what the old log has, and the segments of the new one are no evidence that anything is missing.
#[test]
fn cuts_while_a_log_that_a_start_left_off_is_switched_on() {
    for seed in seeds(3) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 20);
        if seed.is_multiple_of(2) {
            life.stop();
        } else {
            life.crash();
        }
        let fs = fs.recover(Outage::PowerCut { seed });
        fs.record_crash_points();
        let mut life = Life::start(&fs, log_off()).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 10);
        switch(&mut life, &mut model, &mut rng, policy());
        model.commands(&mut life, &mut rng, 10);
        life.crash();
        judge_all(&model, &fs.take_crash_points(), seed);
    }
}

/// The very first start was to have a log, and crashed before it had one; the next start has none, and has it switched
/// on later.
#[test]
fn cuts_while_a_log_that_never_began_is_switched_on() {
    for seed in seeds(1) {
        let fs = SimFs::new(seed);
        fs.record_crash_points();
        Life::start(&fs, policy()).expect("it starts").crash();
        for point in fs.take_crash_points() {
            let (fs, mut rng) = (point.power_cut(seed), Rng::new(seed));
            let mut life = Life::start(&fs, log_off()).expect("it starts");
            let mut model = Model::new(&life);
            model.commands(&mut life, &mut rng, 3);
            fs.record_crash_points();
            switch(&mut life, &mut model, &mut rng, policy());
            model.commands(&mut life, &mut rng, 3);
            life.crash();
            let points = fs.take_crash_points();
            let some: Vec<_> = points.into_iter().step_by(4).collect();
            judge_all(&model, &some, seed);
        }
    }
}

/// A log that could not be switched off in order, since the disk failed, is off all the same; then it is switched on
/// again. Neither the end that the old log got nor the new segments confuse a start.
#[test]
fn cuts_after_a_failed_switch() {
    for seed in seeds(2) {
        for op in [Op::SyncAll, Op::Rename, Op::SyncDir] {
            let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
            let mut life = Life::start(&fs, policy()).expect("it starts");
            let mut model = Model::new(&life);
            model.commands(&mut life, &mut rng, 20);
            // The log's own background work must not meet the fault.
            let log = life.store.log().expect("it is on");
            life.wait_until(|| log.durable() == log.end());
            fs.record_crash_points();
            let path = match op {
                Op::SyncAll => "prdb-00000001-00",
                Op::Rename => "MANIFEST.new",
                _ => "data",
            };
            fs.inject(Fault::fail(op, errno::EIO).on(path));
            life.durability.set_policy(log_off(), PATIENCE).expect("no lock is held");
            life.wait_until(|| fs.faults_fired() > 0);
            life.wait_for_rest();
            model.commands(&mut life, &mut rng, 10);
            life.clock.advance_ms(60_000);
            switch(&mut life, &mut model, &mut rng, policy());
            model.commands(&mut life, &mut rng, 10);
            life.crash();
            judge_all(&model, &fs.take_crash_points(), seed);
        }
    }
}

/// Switching on fails, in each of its steps: the log does not count, its records are of no use to anybody, and the next
/// attempt succeeds.
#[test]
fn switching_on_fails_once_in_every_step() {
    for step in 1.. {
        let (fs, mut rng) = (SimFs::new(step), Rng::new(step));
        let mut life = Life::start(&fs, log_off()).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 10);
        life.checkpoint(Cause::Asked).expect("the disk works");
        fs.inject(Fault::fail_operation(fs.operations() + step, errno::EIO));
        life.durability.set_policy(policy(), PATIENCE).expect("no lock is held");
        let is_on = |life: &Life| life.durability.status().log.is_some() && life.store.log().is_some();
        while !is_on(&life) {
            // A failed attempt is not repeated at once.
            life.clock.advance_ms(1_000);
            model.commands(&mut life, &mut rng, 1);
            std::thread::yield_now();
        }
        let fired = fs.faults_fired() > 0;
        fs.clear_faults();
        life.wait_for_rest();
        life.heal();
        model.commands(&mut life, &mut rng, 10);
        life.stop();
        assert_eq!(found(&fs.recover(Outage::PowerCut { seed: step }), log_off()).expect("it starts"), model.now());
        if !fired {
            assert!(step > 12, "only {step} operations");
            break;
        }
    }
}

/// Logs that are off leave no files that take space.
#[test]
fn a_log_that_is_off_leaves_when_nothing_needs_it() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 50);
    life.durability.set_policy(log_off(), PATIENCE).expect("no lock is held");
    life.wait_for_log(false);
    // It is the way back from the set that was taken for the switch; the next set has that one before it.
    assert!(segments(&fs) > 0);
    life.checkpoint(Cause::Asked).expect("the disk works");
    assert_eq!(segments(&fs), 0);
    assert_eq!(model.now(), Model::digest(&life.store));
    life.stop();
    assert_eq!(found(&fs, policy()).expect("it starts"), model.now());
}

fn segments(fs: &SimFs) -> usize {
    fs.contents().keys().filter(|path| path.to_string_lossy().contains("/log-")).count()
}
