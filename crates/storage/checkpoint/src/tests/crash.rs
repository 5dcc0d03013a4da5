//! Outages, failures and full disks at every operation of a checkpoint.

use super::*;
use vfs::{Fault, FileSystem, Outage, SimOptions, errno};

/// A count, from the environment or the default.
pub fn count(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// Seeds of the power cuts at each point; the environment can add more.
fn seeds() -> std::ops::Range<u64> {
    0..count("CHECKPOINT_CRASH_SEEDS", 6)
}

/// Seeds of the sets to damage; the environment can shift them and add more.
pub fn damage_seeds() -> std::ops::Range<u64> {
    let first = count("CRASH_SEED", 1);
    first..first + count("CRASH_RUNS", 2)
}

/// A power cut or kill at every operation of checkpoints, with one and with several threads, pruning included. Recovery
/// finds the old set or the new one, whole; the new one once the commit has returned. Then the machine continues:
/// leftovers are removed, and a second power cut finds the same state.
#[test]
fn outages_at_every_operation() {
    let states = [contents(1, 40, 60), contents(2, 300, 60), contents(3, 60, 3_000), contents(4, 10, 20)];
    for threads in [1, 3] {
        let fs = SimFs::new(8);
        let (dir, mut file) = with_one_set(&fs, &states[0]);
        fs.record_crash_points();
        let mut done_at = vec![fs.operations()];
        for (cut, state) in (2..).zip(&states[1..]) {
            checkpoint(&dir, &mut file, cut, state, threads).unwrap();
            done_at.push(fs.operations());
        }
        let points = fs.take_crash_points();
        assert!(points.len() > 40, "{} operations", points.len());
        // For scripts that count crash points.
        println!("crash points: {}", points.len() * (seeds().count() + 1));
        for point in points {
            let done = done_at.iter().rposition(|&at| at < point.operation()).unwrap();
            for outage in seeds().map(|seed| Outage::PowerCut { seed }).chain([Outage::ProcessKill]) {
                let place = format!("{threads} threads, operation {}, {outage:?}", point.operation());
                let fs = point.after(outage);
                let dir = data_dir(&fs);
                let recovered = recover(&dir).unwrap_or_else(|error| panic!("{place}: {error}")).unwrap();
                let which = states.iter().position(|state| *state == recovered);
                assert!(which == Some(done) || which == Some(done + 1), "{place}: {which:?}, {done} were done");
                let mut file = ManifestFile::load(&dir).unwrap().unwrap();
                file.prune(&dir, None).unwrap();
                let named = |&(set, number): &(SetId, u8)| file.current().names(set, number);
                assert!(dir.list().unwrap().snapshots.iter().all(named), "{place}: leftovers");
                drop(dir);
                let again = recover(&data_dir(&fs.recover(Outage::PowerCut { seed: 1 }))).unwrap().unwrap();
                assert!(again == recovered, "{place}: another state after the second outage");
            }
        }
    }
}

/// The machine stops after every single byte of a checkpoint of 64 KiB (the environment can raise it), and of the
/// manifest after it. The old state counts until the manifest has its name, then the new one.
#[test]
fn a_stop_after_every_byte() {
    use vfs::OpenOptions;
    let fs = SimFs::new(9);
    let kib = count("CHECKPOINT_KIB", 64);
    let (old, new) = (contents(1, 8, 30), contents(2, 5 * kib as usize, 420));
    let (dir, mut file) = with_one_set(&fs, &old);
    // Written elsewhere first, to be copied byte by byte.
    let (model_fs, mut bytes) = (SimFs::new(9), 0);
    let (model_dir, mut model) = with_one_set(&model_fs, &old);
    checkpoint(&model_dir, &mut model, 2, &new, 2).unwrap();
    let set = file.next_set();
    let files = model_fs.contents();
    for number in 0..2 {
        let path = dir.file(Name::Snapshot { set, file: number });
        let target = dir.fs().open(&path, OpenOptions::write().create_new()).unwrap();
        for (at, byte) in (0..).zip(&files[&path]) {
            target.write_all_at(&[*byte], at).unwrap();
            bytes += 1;
            // As at a start: the manifest, then the set that it names.
            let recovered = recover(&dir).unwrap().unwrap();
            assert!(recovered == old, "byte {at} of file {number}");
        }
        target.sync_all().unwrap();
    }
    assert!(bytes >= kib << 10, "{bytes} bytes");
    // For scripts that count stops.
    println!("stops: {bytes}");
    dir.fs().sync_dir(dir.path()).unwrap();
    let beside = dir.file(Name::ManifestReplacement);
    let target = dir.fs().open(&beside, OpenOptions::write().create_new()).unwrap();
    for (at, byte) in (0..).zip(&files[&dir.file(Name::Manifest)]) {
        target.write_all_at(&[*byte], at).unwrap();
        assert!(recover(&dir).unwrap().unwrap() == old, "byte {at} of the manifest");
    }
    target.sync_all().unwrap();
    dir.fs().rename(&beside, &dir.file(Name::Manifest)).unwrap();
    assert!(recover(&dir).unwrap().unwrap() == new);
}

/// The outcome of one run with a fault.
fn run_with_fault(fs: &SimFs, place: &str, plant: impl FnOnce()) {
    let (old, new, later) = (contents(1, 40, 60), contents(2, 100, 400), contents(3, 50, 50));
    let (dir, mut file) = with_one_set(fs, &old);
    plant();
    let result = checkpoint(&dir, &mut file, 2, &new, 2);
    let committed = file.current().newest().unwrap().cut == Lsn(2);
    assert!(result.is_err() || committed, "{place}");
    fs.clear_faults();
    fs.set_capacity(None);
    for seed in seeds() {
        let recovered = recover(&data_dir(&fs.crash_point().power_cut(seed)));
        let recovered = recovered.unwrap_or_else(|error| panic!("{place}, seed {seed}: {error}")).unwrap();
        assert!(recovered == new || recovered == old && !committed, "{place}, seed {seed}");
    }
    // The same process retries on a healthy disk.
    checkpoint(&dir, &mut file, 3, &later, 2).unwrap_or_else(|error| panic!("{place}: {error}"));
    let named = |&(set, number): &(SetId, u8)| file.current().names(set, number);
    assert!(dir.list().unwrap().snapshots.iter().all(named), "{place}: leftovers");
    for seed in seeds() {
        let dir = data_dir(&fs.crash_point().power_cut(seed));
        assert!(recover(&dir).unwrap().unwrap() == later, "{place}, seed {seed}: after the second try");
    }
}

/// The first and the last operation of the checkpoint in which [`run_with_fault`] places faults.
fn operations() -> std::ops::RangeInclusive<u64> {
    let fs = SimFs::new(10);
    let (dir, mut file) = with_one_set(&fs, &contents(1, 40, 60));
    let first = fs.operations() + 1;
    checkpoint(&dir, &mut file, 2, &contents(2, 100, 400), 2).unwrap();
    first..=fs.operations()
}

/// Each operation of a checkpoint fails once, with EIO and with ENOSPC. A power cut then leaves the old or the new
/// state, the new one if the commit succeeded, and the next checkpoint works.
#[test]
fn every_operation_fails_once() {
    for errno in [errno::EIO, errno::ENOSPC] {
        for number in operations() {
            let fs = SimFs::new(10);
            run_with_fault(&fs, &format!("operation {number} fails with {errno}"), || {
                fs.inject(Fault::fail_operation(number, errno));
            });
            assert!(fs.faults_fired() <= 1);
        }
    }
}

/// The disk has less and less room. A checkpoint that does not fit fails, keeps the old state, frees its space, and
/// works once there is room.
#[test]
fn a_full_disk_keeps_the_old_state() {
    for pages in 0..40 {
        let fs = SimFs::new(11);
        run_with_fault(&fs, &format!("{pages} pages left"), || {
            let used: u64 = fs.contents().values().map(|bytes| (bytes.len() as u64).next_multiple_of(4096)).sum();
            fs.set_capacity(Some(used + pages * 4096));
        });
    }
}

/// Transfers that are cut short or interrupted do not affect a checkpoint.
#[test]
fn short_transfers_change_nothing() {
    let options = SimOptions { seed: 3, short_transfer_one_in: 3, interrupt_one_in: 5, ..SimOptions::default() };
    let fs = SimFs::with_options(options);
    let expected = contents(5, 500, 2_000);
    let (dir, _) = with_one_set(&fs, &expected);
    assert!(recover(&dir).unwrap().unwrap() == expected);
}

/// Free space is checked before anything is written.
#[test]
fn a_checkpoint_that_cannot_fit_is_not_begun() {
    let fs = SimFs::new(12);
    let (dir, mut file) = with_one_set(&fs, &contents(1, 10, 10));
    fs.set_capacity(Some(1 << 20));
    let feed = Feed::new(FeedOptions::default(), Arc::default());
    let options = WriterOptions { expected_bytes: 1 << 20, ..WriterOptions::default() };
    let (operations, set) = (fs.operations(), file.next_set());
    match Writer::create(&dir, set, options, &feed).err() {
        Some(error @ CheckpointError::NoSpace { .. }) => assert!(error.is_out_of_space()),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs.operations(), operations);
}

/// M2: the replacement of a manifest becomes visible, the sync of its directory fails, and the process ends. The next
/// process sees the new manifest, and no error. It must write the manifest again before it removes what the old one
/// names: a power cut may bring the old one back.
#[test]
fn a_manifest_that_was_never_synced_is_settled_before_anything_is_removed() {
    for seed in 0..20 {
        let fs = SimFs::new(seed);
        let (dir, mut file) = with_one_set(&fs, &contents(1, 10, 10));
        let new = contents(2, 12, 10);
        let info = write(&dir, file.next_set(), 2, &new, 1).unwrap();
        let mut next = file.current().clone();
        next.sets = vec![info];
        fs.inject(Fault::fail(vfs::Op::SyncDir, errno::EIO));
        file.commit(&dir, next).unwrap_err();
        assert_eq!(file.current().newest().unwrap().cut, Lsn(1), "a commit that failed is not in force");
        drop(dir);
        let fs = fs.recover(Outage::ProcessKill);
        let dir = data_dir(&fs);
        let mut file = ManifestFile::load(&dir).unwrap().unwrap();
        assert_eq!(file.current().newest().unwrap().cut, Lsn(2), "but it is visible");
        assert!(file.prune(&dir, None).unwrap() > 0);
        let dir = data_dir(&fs.crash_point().power_cut(seed));
        assert!(recover(&dir).unwrap().unwrap() == new, "seed {seed}");
    }
}

/// A failed commit keeps the files, and the part of the log, that either manifest needs.
#[test]
fn a_commit_that_failed_keeps_both_sets() {
    let fs = SimFs::new(13);
    let (dir, mut file) = with_one_set(&fs, &contents(1, 10, 10));
    let info = write(&dir, file.next_set(), 2, &contents(2, 12, 10), 1).unwrap();
    let mut next = file.current().clone();
    next.log = LogState { on: true, since: Lsn(2), since_ms: 0 };
    next.sets = vec![SetInfo { log_from: Some(Lsn(2)), ..info }];
    fs.inject(Fault::fail(vfs::Op::SyncDir, errno::EIO));
    file.commit(&dir, next.clone()).unwrap_err();
    assert_eq!(file.log_needed_from(), Some(Lsn(2)));
    fs.inject(Fault::fail(vfs::Op::SyncAll, errno::EIO));
    file.prune(&dir, None).unwrap_err();
    assert_eq!(dir.list().unwrap().snapshots.len(), 3, "nothing is removed while neither is known to be durable");
    file.commit(&dir, next).unwrap();
    file.prune(&dir, None).unwrap();
    assert_eq!(dir.list().unwrap().snapshots, [(SetId(2), 0)]);
}

/// One process at a time; the second receives the id of the first. Opening for reading needs no lock.
#[test]
fn a_second_process_is_told_who_is_first() {
    let fs = SimFs::new(14);
    let (dir, _) = with_one_set(&fs, &contents(1, 10, 10));
    match DataDir::open(Arc::new(fs.clone()), Path::new(DIR)) {
        Err(CheckpointError::Fs(vfs::FsError::Locked { pid, .. })) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    let look = DataDir::open_to_look(Arc::new(fs.clone()), Path::new(DIR));
    assert!(recover(&look).unwrap().is_some());
    drop(dir);
    data_dir(&fs);
}

/// A directory with data and no manifest is not an empty directory.
#[test]
fn a_lost_manifest_is_no_empty_directory() {
    let fs = SimFs::new(15);
    let (dir, _) = with_one_set(&fs, &contents(1, 10, 10));
    fs.remove_file(&dir.file(Name::Manifest)).unwrap();
    let operations = fs.operations();
    match ManifestFile::load(&dir) {
        Err(CheckpointError::ManifestMissing { found, .. }) => assert_eq!(found, "prdb-00000001-00"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs.operations(), operations, "nothing was changed");
}
