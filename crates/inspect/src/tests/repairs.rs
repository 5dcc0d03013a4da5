//! `repair`: after any damage, the most that can be had; the damaged files are kept, and nothing is done without need.

use super::*;
use crate::{RepairPlan, ToolError, Verdict, check, plan_repair, repair};

fn planned(fs: &SimFs) -> Result<Option<RepairPlan>, ToolError> {
    let before = fs.contents();
    let plan = plan_repair(&shared(fs), Path::new(DIR));
    let after = fs.contents();
    assert!(before.iter().all(|(path, bytes)| path.ends_with("LOCK") || after.get(path) == Some(bytes)), "changed");
    plan
}

/// Repairs, and gives the position and the state that a start finds then.
fn repaired(fs: &SimFs) -> (RepairPlan, Lsn, Model) {
    let plan = planned(fs).unwrap().expect("it is damaged");
    assert!(!plan.damage.is_empty());
    let before = fs.contents();
    let clock = ManualClock::new(9_000_000);
    let done = repair(&shared(fs), &clock, Path::new(DIR), &plan, HistoryId([9; 20]), &mut |_| {}).unwrap();
    let after = fs.contents();
    for (path, bytes) in before.iter().filter(|(path, _)| path.starts_with(DIR) && !path.ends_with("LOCK")) {
        let kept = done.damaged.join(path.strip_prefix(DIR).unwrap());
        assert_eq!(after.get(&kept), Some(bytes), "{} is kept", path.display());
    }
    let mut said = String::new();
    let verdict = check(&shared(fs), Path::new(DIR), &mut |line| said.push_str(line)).unwrap();
    assert_eq!(verdict, Verdict::Good, "{said}");
    assert!(planned(fs).unwrap().is_none(), "there is nothing left to repair");
    (plan, done.lsn, start(fs, Path::new(DIR)).unwrap())
}

#[test]
fn whole_directories_need_no_repair() {
    let fs = SimFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    assert!(planned(&fs).unwrap().is_none(), "empty");
    assert!(planned(&two_sets(1).stop().fs).unwrap().is_none());
    assert!(planned(&two_sets(2).kill().fs).unwrap().is_none());
    let world = two_sets(3);
    assert!(matches!(planned(&world.fs), Err(ToolError::InUse { .. })), "a server has it");
}

/// The manifest, or any file of a checkpoint, damaged or gone: the other checkpoint and the log give everything back.
#[test]
fn one_damaged_checkpoint_or_manifest_loses_nothing() {
    let mut rng = Rng::new(6);
    for prefix in ["MANIFEST", "prdb-00000001", "prdb-00000002"] {
        for round in 0..6 {
            let stopped = two_sets(5).stop();
            let files = stopped.files(prefix);
            let path = &files[rng.below(files.len() as u64) as usize];
            match round {
                0 => stopped.fs.remove_file(path).unwrap(),
                _ => {
                    let len = stopped.fs.metadata(path).unwrap().len;
                    stopped.fs.flip_bit(path, rng.below(len), rng.below(8) as u8).unwrap();
                }
            }
            let (plan, _, state) = repaired(&stopped.fs);
            assert!(state == stopped.model, "{prefix}, round {round}: {plan:?}");
            assert!(plan.lost.is_empty(), "{plan:?}");
        }
    }
}

/// Damage in the log: the state before it is kept, and what lies behind is named as lost. Damage that only an older
/// checkpoint's log has loses nothing.
#[test]
fn a_damaged_log_is_cut_before_the_damage() {
    let mut rng = Rng::new(7);
    let mut cut = 0;
    for _ in 0..30 {
        let stopped = two_sets(5).stop();
        let data = DataDir::open_to_look(shared(&stopped.fs), Path::new(DIR));
        let manifest = ManifestFile::load(&data).unwrap().unwrap().current().clone();
        let (needed, newest) = (manifest.log_needed_from().unwrap(), manifest.newest().unwrap().cut);
        let last = stopped.states.last().unwrap().0;
        let lsn = Lsn(needed.0 + rng.below(last.0 - needed.0 - 1));
        let firsts = stopped.files("log-").into_iter().map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (u64::from_str_radix(name.trim_start_matches("log-"), 16).unwrap(), path)
        });
        let (first, path) = firsts.filter(|(first, _)| *first <= lsn.0).max().unwrap();
        stopped.fs.flip_bit(&path, 4096 + first % 4096 + lsn.0 - first, 3).unwrap();
        let (plan, to, state) = repaired(&stopped.fs);
        if lsn < newest {
            assert!(state == stopped.model && plan.lost.is_empty(), "{plan:?}");
            continue;
        }
        cut += 1;
        let expected = stopped.states.iter().rfind(|(after, _, _)| *after <= lsn).unwrap();
        assert!(to <= lsn && state == expected.2, "LSN {lsn}, repaired to {to}");
        assert!(!plan.lost.is_empty(), "{plan:?}");
    }
    assert!(cut > 3, "the rounds hit the log behind the newest checkpoint");
}

/// A dictionary that is gone costs what needs it, and no more: nothing where no string does; the log behind the first such string; a
/// checkpoint that has one.
#[test]
fn a_missing_dictionary_costs_what_needs_it() {
    for (is_put, is_saved) in [(false, false), (true, false), (true, true)] {
        let mut world = two_sets(11);
        world.name_dictionary();
        let before = world.model.clone();
        if is_put {
            world.put_with_dictionary();
        }
        world.sync();
        if is_saved {
            world.checkpoint();
        }
        world.changes(20);
        let stopped = world.stop();
        let (plan, _, state) = repaired(&stopped.fs);
        let said = plan.damage.join("; ");
        assert!(said.contains("dictionary 7: "), "{said}");
        match is_put {
            false => assert!(state == stopped.model && plan.lost.is_empty(), "{plan:?}"),
            true => assert!(state == before && !plan.lost.is_empty(), "{plan:?}"),
        }
        assert_eq!(said.contains("set 00000003: has strings that need dictionary 7"), is_saved, "{said}");
        assert_eq!(said.contains("the command log has a string behind LSN"), is_put, "{said}");
    }
}

/// Both checkpoints and the beginning of the log gone: that is said, and nothing is changed.
#[test]
fn what_cannot_be_saved_is_left_alone() {
    let stopped = two_sets(7).stop();
    for path in stopped.files("prdb-").iter().chain(&stopped.files("log-")[..2]) {
        stopped.fs.remove_file(path).unwrap();
    }
    let refused = planned(&stopped.fs);
    assert!(matches!(refused, Err(ToolError::NotReachable { .. })), "{refused:?}");
}

/// A crash at any operation of a repair leaves a directory to repair, or the repaired one; between the last two renames,
/// both under their other names.
#[test]
fn a_crash_in_a_repair_loses_nothing() {
    let stopped = two_sets(5).stop();
    stopped.fs.remove_file(&stopped.files("prdb-00000002")[0]).unwrap();
    stopped.fs.sync_dir(Path::new(DIR)).unwrap();
    let mut seen = [0; 3];
    for nth in 0.. {
        let fs = stopped.fs.crash_point().power_cut(1);
        let plan = planned(&fs).unwrap().expect("it is damaged");
        fs.crash_at(fs.operations() + 1 + nth);
        let clock = ManualClock::new(9_000_000);
        let done = repair(&shared(&fs), &clock, Path::new(DIR), &plan, HistoryId([9; 20]), &mut |_| {});
        let is_done = done.is_ok();
        let fs = fs.recover(vfs::Outage::PowerCut { seed: nth });
        if !fs.exists(Path::new(DIR)).unwrap() {
            seen[1] += 1;
            assert!(start(&fs, Path::new("/data.repaired")).unwrap() == stopped.model);
            continue;
        }
        match planned(&fs).unwrap() {
            Some(_) => seen[0] += 1,
            None => {
                seen[2] += 1;
                assert!(start(&fs, Path::new(DIR)).unwrap() == stopped.model);
            }
        }
        if is_done {
            break;
        }
    }
    assert!(seen[0] > 5 && seen[2] > 0, "{seen:?}");
}
