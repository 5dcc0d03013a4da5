//! The power is cut at every operation of the disk, in lives of all kinds, and starts are cut, too.

use crate::life::{Life, found, log_off, policy};
use crate::model::{Model, seeds};
use crate::modes::PATIENCE;
use base::Rng;
use cmdlog::LogMode;
use durability::{Cause, Policy};
use vfs::{CrashPoint, Outage, SimFs};

/// Different cuts of each crash point.
const CUTS: u64 = 2;

/// One in this many points is also one of a kill of the process, after which the page cache is still there.
const KILLED: u64 = 5;

/// After one in this many cuts, a second life continues.
const LIVED_ON: u64 = 9;

/// Starts that are crashed in a row, at most.
const CRASHED_STARTS: u64 = 5;

/// A checkpoint, and commands while it is taken.
pub fn checkpoint_under_load(life: &mut Life, model: &mut Model, rng: &mut Rng, cause: Cause) -> Result<(), String> {
    let before = model.last();
    let task = life.durability.schedule(cause);
    let mut left = 40;
    while task.outcome().is_none() {
        if left > 0 {
            model.commands(life, rng, 1);
            left -= 1;
        }
        std::thread::yield_now();
    }
    let outcome = task.outcome().expect("it is over").clone();
    if outcome.is_ok() {
        model.is_durable(&life.fs, before);
    }
    outcome
}

/// What every cut of every point leaves is a state that was, and none older than what was durable. Prints how many
/// there were, for a script that counts them.
pub fn judge_all(model: &Model, points: &[CrashPoint], seed: u64) {
    println!("crash points: {}, seed {seed}", points.len() as u64 * CUTS);
    for point in points {
        for cut in 0..CUTS {
            let what = format!("seed {seed}, operation {}, cut {cut}", point.operation());
            let left = point.power_cut(seed ^ cut);
            judge(model, &left, point.operation(), &what);
            if (point.operation() + cut).is_multiple_of(LIVED_ON) {
                live_on(model, &point.power_cut(seed ^ cut), point.operation(), &what);
            }
        }
        if point.operation().is_multiple_of(KILLED) {
            let what = format!("seed {seed}, operation {}, killed", point.operation());
            start_after_a_kill(model, &point.after(Outage::ProcessKill), point.operation(), &what);
        }
    }
}

fn judge(model: &Model, fs: &SimFs, operation: u64, what: &str) -> store::Digest {
    let found = found(fs, log_off()).unwrap_or_else(|error| panic!("{what}: does not start: {error}\n{}", trace(fs)));
    if let Err(problem) = model.judge(found, operation) {
        panic!("{what}: {problem}\n{}", trace(fs));
    }
    found
}

/// The files of a disk and its last operations.
pub fn trace(fs: &SimFs) -> String {
    let files = fs.contents().into_iter().map(|(path, bytes)| format!("{}: {} bytes\n", path.display(), bytes.len()));
    let segments = cmdlog::segments(fs, std::path::Path::new(crate::life::DIR)).unwrap_or_default();
    let segments = segments.into_iter().map(|segment| format!("{segment:?}\n"));
    let files = files.chain(segments);
    files.chain(fs.trace().iter().map(|entry| format!("{entry}\n"))).collect()
}

/// Starts are crashed several times in a row; then one succeeds, and its life is cut at its end.
fn live_on(model: &Model, fs: &SimFs, operation: u64, what: &str) {
    let mut rng = Rng::new(operation);
    // What the first start finds, on a disk of its own.
    let expected = judge(model, &fs.recover(Outage::ProcessKill), operation, what);
    let mut fs = fs.recover(Outage::ProcessKill);
    for n in 0..rng.below(CRASHED_STARTS + 1) {
        fs.crash_at(1 + rng.below(30));
        drop(Life::start(&fs, policy()));
        let outage = if rng.one_in(4) { Outage::ProcessKill } else { Outage::PowerCut { seed: rng.next_u64() } };
        let before = trace(&fs);
        fs = fs.recover(outage);
        let again = judge(model, &fs.recover(Outage::ProcessKill), operation, &format!("{what}, start {n} crashed"));
        fs = fs.recover(Outage::ProcessKill);
        assert_eq!(again, expected, "{what}: start {n} was crashed, and the next one finds another state\n{before}");
    }
    let mut life = Life::start(&fs, policy()).unwrap_or_else(|error| panic!("{what}: {error}\n{}", trace(&fs)));
    let mut second = Model::new(&life);
    assert_eq!(second.now(), expected, "{what}: after all crashes of starts");
    second.commands(&mut life, &mut rng, 8);
    if rng.one_in(2) {
        life.checkpoint(Cause::Asked).unwrap_or_else(|error| panic!("{what}: {error}"));
        let last = second.last();
        second.is_durable(&life.fs, last);
    }
    second.look(&life);
    let (end, fs) = (fs.operations() + 1, fs.clone());
    life.crash();
    judge(&second, &fs.recover(Outage::PowerCut { seed: operation }), end, &format!("{what}, second life"));
}

/// The very first start is cut at every operation, with the log and without: the next one finds an empty store, and
/// lives.
#[test]
fn cuts_of_the_first_start() {
    for seed in seeds(1) {
        for policy in [policy(), log_off()] {
            let fs = SimFs::new(seed);
            fs.record_crash_points();
            let life = Life::start(&fs, policy).expect("it starts");
            let model = Model::new(&life);
            life.crash();
            let points = fs.take_crash_points();
            judge_all(&model, &points, seed);
            for point in points {
                let what = format!("seed {seed}, operation {}", point.operation());
                live_on(&model, &point.power_cut(seed), point.operation(), &what);
            }
        }
    }
}

/// After a kill the start finds what was written. It does not trust the page cache: what it has found, and shows to
/// clients, is durable.
fn start_after_a_kill(model: &Model, fs: &SimFs, operation: u64, what: &str) {
    let life = Life::start(fs, policy()).unwrap_or_else(|error| panic!("{what}: {error}\n{}", trace(fs)));
    let shown = Model::digest(&life.store);
    model.judge(shown, operation).unwrap_or_else(|problem| panic!("{what}: {problem}\n{}", trace(fs)));
    let is_logged = life.store.log().is_some();
    life.crash();
    let left = fs.recover(Outage::PowerCut { seed: operation });
    let found = judge(model, &left, operation, &format!("{what}, then cut"));
    assert!(found == shown || !is_logged, "{what}: what the start showed was not durable\n{}", trace(&left));
}

/// Modes change at run time, in every way, with a checkpoint on the way.
#[test]
fn power_cuts_while_modes_change() {
    for seed in seeds(2) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut life = Life::start(&fs, policy()).expect("it starts");
        let mut model = Model::new(&life);
        fs.record_crash_points();
        for turn in 0..9 {
            let mode = [LogMode::Sync, LogMode::Async, LogMode::WrittenOnly][rng.below(3) as usize];
            life.durability.set_policy(Policy { mode, ..policy() }, PATIENCE).expect("no lock is held");
            life.wait_until(|| life.durability.status().log.is_some_and(|log| log.mode == mode));
            model.commands(&mut life, &mut rng, 8);
            if turn == 4 {
                checkpoint_under_load(&mut life, &mut model, &mut rng, Cause::Asked).expect("the disk works");
            }
        }
        life.crash();
        judge_all(&model, &fs.take_crash_points(), seed);
    }
}

fn cut_a_life(seed: u64, mode: LogMode) {
    let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
    fs.record_crash_points();
    let mut life = Life::start(&fs, Policy { mode, ..policy() }).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 20);
    for _ in 0..1 + seed % 3 {
        checkpoint_under_load(&mut life, &mut model, &mut rng, Cause::Asked).expect("the disk works");
        model.commands(&mut life, &mut rng, 15);
    }
    if seed.is_multiple_of(2) {
        life.stop();
        let last = model.last();
        model.is_durable(&fs, last);
    } else {
        life.crash();
    }
    let points = fs.take_crash_points();
    assert!(points.len() > 25, "only {} operations", points.len());
    judge_all(&model, &points, seed);
}

#[test]
fn power_cuts_in_sync_mode_lose_nothing_that_was_durable() {
    seeds(2).for_each(|seed| cut_a_life(seed, LogMode::Sync));
}

#[test]
fn power_cuts_in_async_mode_leave_a_state_that_was() {
    seeds(2).for_each(|seed| cut_a_life(seed, LogMode::Async));
}

#[test]
fn power_cuts_in_written_only_mode_leave_a_state_that_was() {
    seeds(2).for_each(|seed| cut_a_life(seed, LogMode::WrittenOnly));
}
