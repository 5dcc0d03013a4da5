//! The mode and the window of the log while the log is switched, while a server starts and while a checkpoint is taken:
//! a setting is in force when it was answered, or it was refused.
//!
//! On 26 November 2026 a server lost acknowledged writes in sync mode: a mode that was set while the log was being
//! switched on never reached that log. CONFIG GET said `always`, and replies were not held.

use crate::life::{DATABASES, Life, Unstarted, log_off, policy};
use crate::model::Model;
use base::Rng;
use cmdlog::LogMode;
use durability::{Cause, Durability, ModeNotSet, Policy};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vfs::{Outage, SimFs};

/// Longer than any lock is held.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A window in which no test ends: nothing becomes durable without a sync.
const LONG_MS: u64 = 3_600_000;
/// Another one.
const SHORT_MS: u64 = 7;

/// The log on, with this mode and window.
fn on(mode: LogMode, window_ms: u64) -> Policy {
    Policy { mode, window_ms, ..policy() }
}

/// Sets a policy in the disk's sync of this number, counted from the moment it is armed.
struct InSync {
    calls: AtomicU64,
    at: u64,
    /// What became of it.
    outcome: Mutex<Option<Result<(), ModeNotSet>>>,
}

impl InSync {
    /// Never, until it is armed.
    const UNARMED: u64 = 1 << 32;

    fn plan(fs: &SimFs, durability: &Arc<Durability>, at: u64, policy: Policy) -> Arc<Self> {
        let planned = Arc::new(Self { calls: AtomicU64::new(Self::UNARMED), at, outcome: Mutex::new(None) });
        // Weakly: the files know the disk.
        let (hooked, durability) = (planned.clone(), Arc::downgrade(durability));
        fs.on_sync(move |_| {
            if hooked.calls.fetch_add(1, Ordering::SeqCst) + 1 == hooked.at
                && let Some(durability) = durability.upgrade()
            {
                *hooked.outcome.lock() = Some(durability.set_policy(policy.clone(), PATIENCE));
            }
        });
        planned
    }

    fn arm(&self) {
        self.calls.store(0, Ordering::SeqCst);
    }

    /// Whether it was set.
    fn is_done(&self) -> bool {
        self.outcome.lock().as_ref().is_some_and(|outcome| *outcome == Ok(()))
    }
}

/// What the log says of itself.
fn in_force(durability: &Durability) -> Option<(LogMode, u64)> {
    durability.status().log.map(|log| (log.mode, log.window_ms))
}

/// A change whose reply waits until it is durable.
fn acknowledged_write(life: &mut Life, model: &mut Model, rng: &mut Rng) {
    let before = model.last();
    while model.last() == before {
        model.command(life, rng);
    }
    let hold = life.scratch.hold().expect("in sync mode the reply of a change waits");
    let log = life.store.log().expect("it is on");
    life.wait_until(|| log.durable() >= hold);
    model.is_durable(&life.fs, model.last());
}

/// A mode and a window that are set in any step of switching the log on are those of the log from the moment it counts,
/// and a write that is acknowledged then survives.
#[test]
fn a_mode_set_while_the_log_is_switched_on_is_in_force_when_it_counts() {
    for step in 1.. {
        let (fs, mut rng) = (SimFs::new(step), Rng::new(step));
        let off = Policy { log_wanted: false, ..on(LogMode::Async, LONG_MS) };
        let mut life = Life::start(&fs, off).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 10);
        let set = InSync::plan(&fs, &life.durability, step, on(LogMode::Sync, SHORT_MS));
        set.arm();
        life.durability.set_policy(on(LogMode::Async, LONG_MS), PATIENCE).expect("no lock is held");
        life.wait_for_log(true);
        if !set.is_done() {
            assert!(step > 5, "only {step} syncs");
            break;
        }
        assert_eq!(in_force(&life.durability), Some((LogMode::Sync, SHORT_MS)), "set in sync {step} of the switch");
        acknowledged_write(&mut life, &mut model, &mut rng);
        let operation = life.fs.operations() + 1;
        life.crash();
        let left = fs.recover(Outage::PowerCut { seed: step });
        let found = crate::life::found(&left, policy()).expect("it starts");
        model.judge(found, operation).expect("what was acknowledged is there");
    }
}

/// The smallest case of the field: the log off and `everysec`, then `appendonly yes`, then `appendfsync always`, one
/// right after the other. The keeper may be anywhere.
#[test]
fn a_mode_set_right_after_the_log_is_asked_for_is_in_force_when_it_counts() {
    for seed in 1..=20 {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let off = Policy { log_wanted: false, ..on(LogMode::Async, LONG_MS) };
        let mut life = Life::start(&fs, off).expect("it starts");
        let mut model = Model::new(&life);
        life.durability.set_policy(on(LogMode::Async, LONG_MS), PATIENCE).expect("no lock is held");
        life.durability.set_policy(on(LogMode::Sync, LONG_MS), PATIENCE).expect("no lock is held");
        life.wait_for_log(true);
        assert_eq!(in_force(&life.durability), Some((LogMode::Sync, LONG_MS)));
        acknowledged_write(&mut life, &mut model, &mut rng);
        life.crash();
    }
}

/// A mode and a window that are set in any step of a start are in force when the start is over.
#[test]
fn a_mode_set_while_loading_is_in_force_when_commands_are_served() {
    for step in 1.. {
        let (fs, mut rng) = (SimFs::new(step), Rng::new(step));
        let mut life = Life::start(&fs, on(LogMode::Async, LONG_MS)).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 10);
        life.crash();
        // Not ended in order, so the start begins a history and writes its manifest.
        let fs = fs.recover(Outage::ProcessKill);
        let unstarted = Unstarted::open(&fs, on(LogMode::Async, LONG_MS), DATABASES).expect("it opens");
        let set = InSync::plan(&fs, &unstarted.durability, step, on(LogMode::Sync, SHORT_MS));
        set.arm();
        unstarted.durability.recover().expect("it starts");
        if !set.is_done() {
            assert!(step > 2, "only {step} syncs");
            unstarted.forget();
            break;
        }
        assert_eq!(in_force(&unstarted.durability), Some((LogMode::Sync, SHORT_MS)), "set in sync {step} of the start");
        assert!(unstarted.store.log().expect("it is on").holds_replies());
        unstarted.forget();
    }
}

/// While a checkpoint is taken the keeper is busy: a mode that is set then is in force at once all the same.
#[test]
fn a_mode_set_while_a_checkpoint_is_taken_is_in_force_at_once() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, on(LogMode::Async, LONG_MS)).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 10);
    let (seen, durability) = (Arc::new(Mutex::new(None)), Arc::downgrade(&life.durability));
    let noted = seen.clone();
    fs.on_sync(move |call| {
        if call.path.to_string_lossy().contains("prdb-")
            && let Some(durability) = durability.upgrade()
        {
            let set = durability.set_policy(on(LogMode::Sync, SHORT_MS), PATIENCE);
            noted.lock().get_or_insert((set, in_force(&durability)));
        }
    });
    life.checkpoint(Cause::Asked).expect("the disk works");
    assert_eq!(*seen.lock(), Some((Ok(()), Some((LogMode::Sync, SHORT_MS)))));
    acknowledged_write(&mut life, &mut model, &mut rng);
    life.stop();
}

/// A mode that cannot be put into force is refused, with all settings of the same request, and never takes effect.
/// Before, the answer was OK, and the mode was left to the keeper, which was busy with a checkpoint.
#[test]
fn a_mode_that_cannot_be_put_into_force_is_refused() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, on(LogMode::Async, LONG_MS)).expect("it starts");
    let mut model = Model::new(&life);
    let refused = Policy { log_wanted: false, ..on(LogMode::Sync, SHORT_MS) };
    let all = life.store.try_lock_all().expect("no lock is held");
    let outcome = life.durability.set_policy(refused, Duration::ZERO);
    assert_eq!(outcome, Err(ModeNotSet { waited: Duration::ZERO }));
    // What needs no locks is not refused.
    life.durability.set_policy(on(LogMode::Async, SHORT_MS), Duration::ZERO).expect("the mode stays the same");
    drop(all);
    // The keeper has looked at everything that is to be done, twice.
    for _ in 0..2 {
        life.checkpoint(Cause::Asked).expect("the disk works");
    }
    assert_eq!(in_force(&life.durability), Some((LogMode::Async, SHORT_MS)));
    model.commands(&mut life, &mut rng, 5);
    life.stop();
}

/// Only the last setting counts: an older one that met locked shards is not carried out afterwards.
#[test]
fn an_older_setting_never_undoes_a_newer_one() {
    let fs = SimFs::new(1);
    let life = Life::start(&fs, on(LogMode::WrittenOnly, LONG_MS)).expect("it starts");
    let all = life.store.try_lock_all().expect("no lock is held");
    life.durability.set_policy(on(LogMode::Async, LONG_MS), Duration::ZERO).expect_err("all shards are locked");
    drop(all);
    life.durability.set_policy(on(LogMode::Sync, LONG_MS), PATIENCE).expect("no lock is held");
    for _ in 0..2 {
        life.checkpoint(Cause::Asked).expect("the disk works");
        assert_eq!(in_force(&life.durability), Some((LogMode::Sync, LONG_MS)));
    }
    life.stop();
}

/// A window that is set without a log is that of the next one.
#[test]
fn a_mode_and_a_window_set_without_a_log_are_those_of_the_next_one() {
    let fs = SimFs::new(1);
    let life = Life::start(&fs, Policy { window_ms: LONG_MS, mode: LogMode::Async, ..log_off() }).expect("it starts");
    let set = Policy { log_wanted: false, ..on(LogMode::Sync, SHORT_MS) };
    life.durability.set_policy(set, PATIENCE).expect("no lock is held");
    assert_eq!(in_force(&life.durability), None);
    life.durability.set_policy(on(LogMode::Sync, SHORT_MS), PATIENCE).expect("no lock is held");
    life.wait_for_log(true);
    assert_eq!(in_force(&life.durability), Some((LogMode::Sync, SHORT_MS)));
    life.stop();
}

/// Settings that change all the time while the keeper reads them. It used to read them a second time while it held them
/// and a change waited for it, and every client of CONFIG SET waited forever.
#[test]
fn settings_change_while_the_keeper_looks_at_them() {
    const CHANGES: usize = 100_000;
    // Leaked by a failing test, whose threads never end.
    let life: &'static Life = Box::leak(Box::new(Life::start(&SimFs::new(1), policy()).expect("it starts")));
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        (0..CHANGES).for_each(|_| life.durability.set_policy(policy(), PATIENCE).expect("no lock is held"));
        done.send(()).expect("the test waits");
    });
    is_done.recv_timeout(Duration::from_secs(120)).expect("no change waits for the keeper");
    life.durability.end();
}
