//! Each way in which a data directory can come about, with each of its files damaged, truncated or missing.

use super::*;
use crate::{RepairPlan, ToolError, backup, plan_repair, repair, restore};

/// A way to make a directory.
type Source = (&'static str, fn() -> Stopped);

const SOURCES: [Source; 10] = [
    ("a server that never made a checkpoint", || {
        let mut world = World::new(21);
        world.changes(150);
        world.stop()
    }),
    ("a server with two checkpoints", || two_sets(22).stop()),
    ("a server whose older checkpoints were dropped", || {
        let mut world = two_sets(23);
        world.retire();
        world.stop()
    }),
    ("a server without a log", || {
        let mut world = World::without_log(24);
        world.unlogged(40);
        world.checkpoint_without_log();
        world.unlogged(60);
        world.checkpoint_without_log();
        world.stop_without_log()
    }),
    ("backup", || two_sets(25).stop().copied(true)),
    ("restore", || two_sets(26).stop().copied(false)),
    ("import, never started", || imported(27).stop_without_log()),
    ("import, started once", || {
        let mut world = imported(28);
        world.switch_on();
        world.put(b"after the start", b"value");
        world.sync();
        world.stop()
    }),
    ("CONFIG SET appendonly yes", || {
        let mut world = World::without_log(29);
        world.unlogged(90);
        world.switch_on();
        world.put(b"logged", b"value");
        world.sync();
        world.stop()
    }),
    ("the log off for a time", || {
        let mut world = two_sets(30);
        world.switch_off();
        world.unlogged(50);
        world.switch_on();
        world.put(b"logged again", b"value");
        world.sync();
        world.stop()
    }),
];

/// As `onggi import` makes it.
fn imported(seed: u64) -> World {
    let mut world = World::without_log(seed);
    world.unlogged(200);
    world.checkpoint_without_log();
    world
}

impl World {
    fn stop_without_log(self) -> Stopped {
        Stopped { fs: self.fs, states: self.states, model: self.model }
    }
}

impl Stopped {
    /// Replaces the directory by a backup of it, or by a restore of its last moment.
    fn copied(self, is_backup: bool) -> Self {
        let (fs, clock, last) = (shared(&self.fs), ManualClock::new(5_000_000), self.states.last().expect("states").0);
        let (from, into, history) = (Path::new(DIR), Path::new("/copy"), HistoryId([8; 20]));
        let mut say = |_: &str| {};
        match is_backup {
            true => backup(&fs, &clock, from, Some(last), into, history, &mut say).expect("it is whole"),
            false => {
                let (source, to) = (crate::Source::Stopped(from), crate::When::At(crate::Point::Lsn(last)));
                restore(&fs, &clock, &source, to, into, history, &mut say).expect("it is whole")
            }
        };
        fs.rename(from, Path::new("/origin")).expect("the disk works");
        fs.rename(into, from).expect("the disk works");
        self
    }

    /// The same directory on a separate disk.
    fn again(&self) -> Self {
        let fs = self.fs.crash_point().after(vfs::Outage::ProcessKill);
        Self { fs, ..self.clone() }
    }
}

/// The damage to a file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip { seed: u64 },
    Cut,
    Remove,
}

const HARMS: [Harm; 6] = [
    Harm::Flip { seed: 1 },
    Harm::Flip { seed: 2 },
    Harm::Flip { seed: 3 },
    Harm::Flip { seed: 4 },
    Harm::Cut,
    Harm::Remove,
];

impl Harm {
    fn apply(self, fs: &SimFs, path: &Path) {
        let len = fs.metadata(path).expect("it is there").len;
        match self {
            // The first kilobytes of a segment are most of its contents.
            Self::Flip { seed } => {
                let mut rng = Rng::new(seed + len);
                fs.flip_bit(path, rng.below(len), rng.below(8) as u8).expect("it is there");
            }
            Self::Cut => {
                let file = fs.open(path, vfs::OpenOptions::write()).expect("it is there");
                file.set_len(len / 2).expect("the disk works");
            }
            Self::Remove => fs.remove_file(path).expect("it is there"),
        }
    }
}

/// Plans and repairs, and returns the plan with the state that a start finds then.
fn outcome(fs: &SimFs) -> Result<Option<(RepairPlan, Model)>, ToolError> {
    let Some(plan) = plan_repair(&shared(fs), Path::new(DIR), false)? else { return Ok(None) };
    let clock = ManualClock::new(9_000_000);
    repair(&shared(fs), &clock, Path::new(DIR), &plan, HistoryId([9; 20]), &mut |_| {})?;
    Ok(Some((plan, start(fs, Path::new(DIR)).expect("it was repaired"))))
}

/// A plan that names no loss leaves exactly the original state. If nothing can be saved, the plan reports that and the
/// directory stays.
#[test]
fn nothing_is_called_saved_that_is_not() {
    let (mut whole, mut less, mut refused) = (0, 0, 0);
    for (name, make) in SOURCES {
        let made = make();
        assert!(start(&made.fs, Path::new(DIR)).expect("it is whole") == made.model, "{name}");
        assert!(outcome(&made.again().fs).expect("it is whole").is_none(), "{name}: damage where there is none");
        let files = ["MANIFEST", "prdb-", "log-"].into_iter().flat_map(|prefix| made.files(prefix));
        let last_log = made.files("log-").pop();
        for (path, harm) in files.flat_map(|path| HARMS.map(|harm| (path.clone(), harm))) {
            let harmed = made.again();
            harm.apply(&harmed.fs, &path);
            let place = format!("{name}: {} {harm:?}", path.display());
            match outcome(&harmed.fs) {
                Ok(Some((plan, state))) if state == made.model => {
                    whole += 1;
                    assert!(plan.lost.is_empty(), "{place}: {plan:?}");
                    assert_eq!(plan.unsure.is_empty(), !path.ends_with("MANIFEST"), "{place}: {plan:?}");
                }
                Ok(Some((plan, state))) => {
                    less += 1;
                    assert!(!plan.lost.is_empty(), "{place}: {} of {} keys; {plan:?}", state.len(), made.model.len());
                }
                // A missing end of a log looks as if it had never been written.
                Ok(None) => {
                    let state = start(&harmed.fs, Path::new(DIR)).expect("nothing is damaged");
                    assert!(state == made.model || Some(&path) == last_log.as_ref(), "{place}: damage not seen");
                }
                Err(ToolError::NotRepairable { .. }) => {
                    refused += 1;
                    assert!(harmed.fs.exists(Path::new(DIR)).unwrap(), "{place}");
                }
                Err(error) => panic!("{place}: {error}"),
            }
        }
    }
    assert!(whole > 20 && less > 20 && refused > 20, "{whole} whole, {less} with losses, {refused} refused");
}

/// The only checkpoint of a directory whose log began on top of it is damaged: its keys are unreachable, and an empty
/// directory is not a repair.
#[test]
fn a_log_on_top_of_a_damaged_checkpoint_is_no_beginning() {
    for (name, make) in SOURCES {
        if !["backup", "restore", "CONFIG SET appendonly yes"].contains(&name) {
            continue;
        }
        for harm in [Harm::Flip { seed: 9 }, Harm::Remove] {
            let made = make();
            harm.apply(&made.fs, &made.files("prdb-")[0]);
            let refused = plan_repair(&shared(&made.fs), Path::new(DIR), false);
            assert!(matches!(refused, Err(ToolError::NotRepairable { .. })), "{name}: {refused:?}");
        }
    }
}

/// An imported directory, started once: the first checkpoint is whole; the second, on top of which the log began, is
/// damaged. The first is kept, and later changes are reported as lost.
#[test]
fn an_older_checkpoint_before_the_log_is_kept_with_a_loss() {
    let mut world = imported(31);
    let imported = world.model.clone();
    world.switch_on();
    world.put(b"after the start", b"value");
    world.sync();
    let stopped = world.stop();
    stopped.fs.remove_file(&stopped.files("prdb-00000002")[0]).unwrap();
    let (plan, state) = outcome(&stopped.fs).expect("the first checkpoint is whole").expect("it is damaged");
    assert!(state == imported, "{} keys: {plan:?}", state.len());
    assert!(plan.kept.contains("with 200 keys"), "{plan:?}");
    assert!(plan.lost[0].starts_with("the state of checkpoint 00000002"), "{plan:?}");
}
