//! `check` reports good directories as good, and names damage at chosen places of every kind of file.

use super::*;
use crate::{ToolError, Verdict, check};

fn checked(fs: &SimFs) -> (Verdict, String) {
    let before = fs.contents();
    let mut said = String::new();
    let verdict = check(&shared(fs), Path::new(DIR), &mut |line| {
        said.push_str(&format!("{line}\n"));
    });
    let after = fs.contents();
    // The lock file holds the number of its holder, which does not change the data.
    let data = |files: &BTreeMap<PathBuf, Vec<u8>>| files.iter().filter(|(path, _)| !path.ends_with("LOCK")).count();
    assert_eq!(data(&before), data(&after));
    assert!(before.iter().all(|(path, bytes)| path.ends_with("LOCK") || after.get(path) == Some(bytes)), "changed");
    (verdict.expect("nobody has the directory"), said)
}

#[test]
fn good_directories_are_good() {
    let fs = SimFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    assert_eq!(checked(&fs).0, Verdict::Good, "empty");
    assert!(!fs.exists(&Path::new(DIR).join("LOCK")).unwrap(), "looking makes no files");
    for seed in 0..4 {
        let stopped = two_sets(seed).stop();
        let (verdict, said) = checked(&stopped.fs);
        assert_eq!(verdict, Verdict::Good, "{said}");
        assert!(start(&stopped.fs, Path::new(DIR)).unwrap() == stopped.model, "a start finds it");
        assert!(said.contains("ended in order") && said.contains("restores can go back to LSN"), "{said}");
    }
    let (verdict, said) = checked(&two_sets(9).kill().fs);
    assert_eq!(verdict, Verdict::Good, "{said}");
}

/// After a power cut the check reports no damage, whatever happened to unsynced bytes.
#[test]
fn cuts_are_no_damage() {
    let mut world = two_sets(3);
    for _ in 0..30 {
        world.change();
    }
    world.log.write_step();
    let point = world.fs.crash_point();
    for seed in 0..30 {
        let fs = point.power_cut(seed);
        let (verdict, said) = checked(&fs);
        assert_eq!(verdict, Verdict::Good, "seed {seed}: {said}");
        start(&fs, Path::new(DIR)).expect("a start agrees");
    }
}

/// A flipped bit in the manifest, in a snapshot file of either set, or in the durable part of the log is damage. The
/// verdict on the newest set and the log after it matches that of a start.
#[test]
fn flips_are_damage() {
    let stopped = two_sets(5).stop();
    let mut rng = Rng::new(6);
    for prefix in ["MANIFEST", "prdb-00000001", "prdb-00000002"] {
        for path in stopped.files(prefix) {
            let len = stopped.fs.metadata(&path).unwrap().len;
            for _ in 0..12 {
                let (offset, bit) = (rng.below(len), rng.below(8) as u8);
                stopped.fs.flip_bit(&path, offset, bit).unwrap();
                let (verdict, said) = checked(&stopped.fs);
                assert_eq!(verdict, Verdict::Damaged, "{}, {offset}.{bit}: {said}", path.display());
                assert!(said.contains(&path.display().to_string()), "the file is named: {said}");
                let starts = start(&stopped.fs, Path::new(DIR)).is_ok();
                assert_eq!(starts, prefix == "prdb-00000001", "{said}");
                stopped.fs.flip_bit(&path, offset, bit).unwrap();
            }
        }
    }
    let manifest = DataDir::open_to_look(shared(&stopped.fs), Path::new(DIR));
    let needed = ManifestFile::load(&manifest).unwrap().unwrap().current().log_needed_from().unwrap();
    let last = stopped.states.last().unwrap().0;
    for _ in 0..40 {
        let lsn = needed.0 + rng.below(last.0 - needed.0 - 1);
        // The segment that contains the position.
        let firsts = stopped.files("log-").into_iter().map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (u64::from_str_radix(name.trim_start_matches("log-"), 16).unwrap(), path)
        });
        let (first, path) = firsts.filter(|(first, _)| *first <= lsn).max().unwrap();
        let offset = 4096 + first % 4096 + lsn - first;
        stopped.fs.flip_bit(&path, offset, 3).unwrap();
        let (verdict, said) = checked(&stopped.fs);
        assert_eq!(verdict, Verdict::Damaged, "LSN {lsn}: {said}");
        stopped.fs.flip_bit(&path, offset, 3).unwrap();
    }
    assert_eq!(checked(&stopped.fs).0, Verdict::Good);
}

/// Missing files are damage, and leftovers are not.
#[test]
fn missing_files_and_leftovers() {
    for prefix in ["MANIFEST", "prdb-00000001", "prdb-00000002"] {
        let stopped = two_sets(7).stop();
        stopped.fs.remove_file(&stopped.files(prefix)[0]).unwrap();
        let (verdict, said) = checked(&stopped.fs);
        assert_eq!(verdict, Verdict::Damaged, "{prefix}: {said}");
    }
    let stopped = two_sets(7).stop();
    for path in stopped.files("log-") {
        stopped.fs.remove_file(&path).unwrap();
    }
    let (verdict, said) = checked(&stopped.fs);
    assert!(verdict == Verdict::Damaged && said.contains("no segment is there"), "{said}");

    let stopped = two_sets(7).stop();
    for name in ["MANIFEST.new", "prdb-00000007-00", "log-copy.new", "notes.txt"] {
        stopped.fs.open(&Path::new(DIR).join(name), vfs::OpenOptions::write().create_new()).unwrap();
    }
    let (verdict, said) = checked(&stopped.fs);
    assert_eq!(verdict, Verdict::Good, "{said}");
    assert!(said.matches("leftover").count() >= 3 && said.contains("notes.txt"), "{said}");
}

/// A directory in use is refused with the process id of its server.
#[test]
fn a_server_keeps_the_check_out() {
    let world = two_sets(8);
    let refused = check(&shared(&world.fs), Path::new(DIR), &mut |_| {});
    assert!(matches!(refused, Err(ToolError::InUse { pid: Some(_), .. })), "{refused:?}");
}

/// A string that needs a dictionary missing from the manifest is reported with its place: in the log, and in a set.
#[test]
fn a_string_without_its_dictionary_is_damage() {
    for is_saved in [false, true] {
        let mut world = two_sets(7);
        world.put_with_dictionary();
        world.sync();
        if is_saved {
            world.checkpoint();
        }
        let (verdict, said) = checked(&world.stop().fs);
        let place = |place: &str| format!("{place}: has strings that need dictionary 7, which MANIFEST does not list");
        assert_eq!(verdict, Verdict::Damaged, "{said}");
        assert!(said.contains(&place("command log")), "the log before the set is kept: {said}");
        assert_eq!(said.contains(&place("set 00000003")), is_saved, "{said}");
    }
}
