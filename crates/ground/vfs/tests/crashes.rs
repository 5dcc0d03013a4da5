//! Complete users of the crate, cut at every operation and drawn with many seeds: a small log and the replacement of a
//! file. For each correct user there are wrong ones, each with one well-known mistake. The simulation must detect all
//! of them; otherwise a passing run means nothing.

mod mini_log;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mini_log::{MiniLog, check, recover};
use vfs::{
    CrashPoint, Fault, File, FileSystem, OpenOptions, Outage, Result, SimFs, SimOptions, create_dirs_synced, errno,
    read_file, replace_file,
};

const CONF: &str = "/etc/onggi/conf";

fn path(text: &str) -> &Path {
    Path::new(text)
}

// ---- Replacing a file.

/// Runs a replacement of `old` by `new` and returns every crash point, the last one after the end.
fn replacement(replace: impl Fn(&SimFs, &[u8]) -> Result<()>, old: &[u8], new: &[u8]) -> Vec<CrashPoint> {
    let fs = SimFs::new(1);
    create_dirs_synced(&fs, path("/etc/onggi")).expect("creates");
    replace_file(&fs, path(CONF), old).expect("replaces");
    fs.record_crash_points();
    replace(&fs, new).expect("nothing fails before a crash");
    let mut points = fs.take_crash_points();
    points.push(fs.crash_point());
    points
}

/// The first crash after which the file is neither old nor new, or not new although the call had returned.
fn first_half_replaced(points: &[CrashPoint], old: &[u8], new: &[u8], seeds: u64) -> Option<(u64, u64)> {
    let last = points.len() - 1;
    points.iter().enumerate().find_map(|(at, point)| {
        let broken = |seed: &u64| {
            let found = read_file(&point.power_cut(*seed), path(CONF), 1 << 20).ok();
            let found = found.as_deref();
            found != Some(new) && (at == last || found != Some(old))
        };
        (0..seeds).find(broken).map(|seed| (point.operation(), seed))
    })
}

/// Cut at every operation, each with many draws: old or new, never half; after `Ok`, new.
#[test]
fn a_replaced_file_is_old_or_new_never_half() {
    let (old, new) = (vec![1; 3000], vec![2; 5000]);
    let points = replacement(|fs, bytes| replace_file(fs, path(CONF), bytes), &old, &new);
    assert_eq!(first_half_replaced(&points, &old, &new, 500), None);
    let rename = &points[points.len() - 3];
    let is = |seed, bytes: &[u8]| read_file(&rename.power_cut(seed), path(CONF), 1 << 20).expect("reads") == bytes;
    assert!((0..500).any(|seed| is(seed, &old)) && (0..500).any(|seed| is(seed, &new)), "the rename is really pending");
    for point in &points {
        let found = read_file(&point.after(Outage::ProcessKill), path(CONF), 1 << 20).expect("reads");
        assert!(found == old || found == new);
    }
}

/// Every operation of a replacement fails once, with I/O errors and a full disk: an error is reported, the file is old
/// or new, and the next attempt succeeds durably.
#[test]
fn a_failed_replacement_leaves_old_or_new_and_can_be_repeated() {
    for errno in [errno::EIO, errno::ENOSPC] {
        for step in 1.. {
            let fs = SimFs::new(step);
            replace_file(&fs, path("/conf"), b"old").expect("replaces");
            fs.inject(Fault::fail_operation(fs.operations() + step, errno));
            let outcome = replace_file(&fs, path("/conf"), b"new");
            if fs.faults_fired() == 0 {
                assert!(outcome.is_ok() && step > 5, "all operations were visited");
                break;
            }
            assert!(outcome.is_err(), "operation {step}: a failure went unreported");
            let found = read_file(&fs, path("/conf"), 100).expect("reads");
            assert!(found == b"old" || found == b"new");
            replace_file(&fs, path("/conf"), b"third").expect("the fault is over");
            for seed in 0..50 {
                let next = fs.crash_point().power_cut(seed);
                assert_eq!(read_file(&next, path("/conf"), 100).expect("reads"), b"third", "step {step}, seed {seed}");
            }
        }
    }
}

/// A full disk: the old file remains, and the attempt leaves no space in use.
#[test]
fn a_replacement_that_does_not_fit_leaves_the_old_file() {
    let fs = SimFs::with_options(SimOptions { capacity_bytes: Some(4 * 4096), ..SimOptions::default() });
    replace_file(&fs, path("/conf"), &[1; 8000]).expect("fits");
    assert!(replace_file(&fs, path("/conf"), &[2; 9000]).expect_err("does not fit").is_out_of_space());
    assert_eq!(fs.contents(), BTreeMap::from([(PathBuf::from("/conf"), vec![1; 8000])]));
    replace_file(&fs, path("/conf"), &[3; 8000]).expect("fits beside the old one");
}

/// The first step of a replacement: the new contents in a temporary file.
fn write_beside(fs: &SimFs, bytes: &[u8]) -> Result<Arc<dyn File>> {
    let file = fs.open(path("/etc/onggi/conf.new"), OpenOptions::write().create())?;
    file.write_all_at(bytes, 0)?;
    Ok(file)
}

fn rename_over(fs: &SimFs) -> Result<()> {
    fs.rename(path("/etc/onggi/conf.new"), path(CONF))
}

/// Five ways to replace a file that look right and are wrong.
#[test]
fn wrong_replacements_are_convicted() {
    type Replace = fn(&SimFs, &[u8]) -> Result<()>;
    let wrong: [(&str, Replace); 5] = [
        ("writes in place", |fs, bytes| {
            let file = fs.open(path(CONF), OpenOptions::write().truncate())?;
            file.write_all_at(bytes, 0)?;
            file.sync_all()
        }),
        ("does not sync the file", |fs, bytes| {
            write_beside(fs, bytes)?;
            rename_over(fs)?;
            fs.sync_dir(path("/etc/onggi"))
        }),
        ("syncs the file after the rename", |fs, bytes| {
            let file = write_beside(fs, bytes)?;
            rename_over(fs)?;
            file.sync_all()?;
            fs.sync_dir(path("/etc/onggi"))
        }),
        ("does not sync the directory", |fs, bytes| {
            write_beside(fs, bytes)?.sync_all()?;
            rename_over(fs)
        }),
        ("removes the old name first", |fs, bytes| {
            write_beside(fs, bytes)?.sync_all()?;
            fs.remove_file(path(CONF))?;
            rename_over(fs)?;
            fs.sync_dir(path("/etc/onggi"))
        }),
    ];
    let (old, new) = (vec![1; 3000], vec![2; 5000]);
    for (mistake, replace) in wrong {
        let points = replacement(replace, &old, &new);
        assert!(first_half_replaced(&points, &old, &new, 200).is_some(), "not convicted: {mistake}");
    }
}

/// After a crash, the directories of a path exist up to some point; after `Ok` all exist. A process kill between
/// creation and sync, and a second start, do not change that.
#[test]
fn directories_made_along_a_path_are_durable() {
    let deep = path("/a/b/c");
    let first = SimFs::new(1);
    first.record_crash_points();
    create_dirs_synced(&first, deep).expect("creates");
    let killed = first.take_crash_points();
    assert_eq!(killed.len(), 6);
    for point in killed {
        let second = point.after(Outage::ProcessKill);
        create_dirs_synced(&second, deep).expect("creates the rest");
        for seed in 0..50 {
            assert!(second.crash_point().power_cut(seed).exists(deep).expect("answers"), "{point:?}, seed {seed}");
        }
    }
}

/// An existing directory whose name cannot be made durable is an error: no data may go into it.
#[test]
fn a_directory_that_cannot_be_synced_is_reported() {
    let fs = SimFs::new(1);
    create_dirs_synced(&fs, path("/data")).expect("creates");
    fs.inject(Fault::fail(vfs::Op::SyncDir, errno::EIO));
    assert_eq!(create_dirs_synced(&fs, path("/data")).expect_err("the fault").raw_os_error(), Some(errno::EIO));
}

// ---- A log.

/// A run of the log on a machine: its durable and written positions at the end, and its result.
fn run_log(fs: &SimFs, records: u64) -> (u64, u64, Result<()>) {
    let mut log = match MiniLog::create(fs, 2000) {
        Ok(log) => log,
        Err(error) => return (0, 0, Err(error)),
    };
    let mut run = || -> Result<()> {
        for record in 1..=records {
            log.append(30 + (record * 37 % 200) as usize)?;
            if record % 3 == 0 {
                log.sync()?;
            }
        }
        Ok(())
    };
    let outcome = run();
    // A record whose append was interrupted may have reached the disk.
    (log.durable(), log.written() + 1, outcome)
}

fn noisy(seed: u64) -> SimFs {
    SimFs::with_options(SimOptions { seed, short_transfer_one_in: 5, interrupt_one_in: 7, ..SimOptions::default() })
}

/// The log loses nothing that a sync covered: stopped at every operation of noisy runs, by power cut and by kill.
#[test]
fn a_log_cut_at_every_operation_keeps_what_was_synced() {
    for run in 0..4 {
        let operations = {
            let fs = noisy(run);
            run_log(&fs, 60).2.expect("nothing fails before a crash");
            fs.operations()
        };
        assert!(operations > 100);
        for operation in 1..=operations {
            let fs = noisy(run);
            fs.crash_at(operation);
            let (durable, written, outcome) = run_log(&fs, 60);
            assert!(outcome.expect_err("the crash").is_crash());
            for seed in 0..20 {
                check(&fs.recover(Outage::PowerCut { seed }), durable, written).unwrap_or_else(|wrong| {
                    let trace: Vec<String> = fs.trace().iter().map(ToString::to_string).collect();
                    panic!("run {run}, operation {operation}, seed {seed}: {wrong}\n{}", trace.join("\n"))
                });
            }
            let killed = fs.recover(Outage::ProcessKill);
            check(&killed, durable.max(written.saturating_sub(2)), written).expect("a kill loses nothing (S6)");
        }
    }
}

/// S3: the same run, operation and seed give the same disk, whether recorded during the run or crashed on purpose.
#[test]
fn a_crash_point_repeats_exactly() {
    let recorded = noisy(3);
    recorded.record_crash_points();
    run_log(&recorded, 20).2.expect("nothing fails before a crash");
    let points = recorded.take_crash_points();
    assert_eq!(points.len() as u64, recorded.operations());
    let mut different = 0;
    for point in &points {
        let fs = noisy(3);
        fs.crash_at(point.operation());
        run_log(&fs, 20).2.expect_err("the crash");
        for outage in [Outage::PowerCut { seed: 1 }, Outage::PowerCut { seed: 2 }, Outage::ProcessKill] {
            assert_eq!(point.after(outage).contents(), fs.recover(outage).contents(), "{point:?}, {outage:?}");
        }
        different += u32::from(point.power_cut(1).contents() != point.power_cut(2).contents());
    }
    assert!(different > 10, "seeds matter: {different} of {}", points.len());
}

/// A boot that crashes repeatedly during its own work never loses what was durable at the first crash.
#[test]
fn crashes_in_a_row_lose_nothing_durable() {
    for seed in 0..200 {
        let mut fs = noisy(seed);
        fs.crash_at(40 + seed % 40);
        let (durable, written, _) = run_log(&fs, 60);
        for again in 0..5 {
            fs = fs.recover(Outage::PowerCut { seed: seed * 10 + again });
            check(&fs, durable, written).expect("recovers");
            fs.crash_at(1 + seed % 3);
            let _ = replace_file(&fs, path("/log/note"), b"recovering");
            let _ = fs.remove_file(path("/log/note"));
        }
    }
}

/// Logs with one mistake each are detected: syncing again after an error, and trusting a name before its directory is
/// synced.
#[test]
fn wrong_logs_are_convicted() {
    // A failed sync is repeated, and its success trusted (PostgreSQL before 2018, and many others).
    let convicted = (0..20).any(|seed| {
        let fs = SimFs::new(seed);
        let mut log = MiniLog::create(&fs, 1 << 16).expect("creates");
        (0..5).for_each(|_| log.append(300).expect("appends"));
        fs.inject(Fault::fail(vfs::Op::SyncData, errno::EIO));
        log.sync().expect_err("the fault");
        log.sync().expect("the lie");
        recover(&fs.recover(Outage::PowerCut { seed })).expect("reads") < log.durable()
    });
    assert!(convicted, "not convicted: syncs again");

    // The segment is synced, its directory is not.
    let convicted = (0..20).any(|seed| {
        let fs = SimFs::new(seed);
        let file = fs.open(path("/log"), OpenOptions::write().create_new()).expect("creates");
        file.write_all_at(b"record", 0).expect("writes");
        file.sync_all().expect("syncs");
        !fs.recover(Outage::PowerCut { seed }).exists(path("/log")).expect("answers")
    });
    assert!(convicted, "not convicted: no directory sync");
}
