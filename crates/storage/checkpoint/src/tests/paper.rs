//! The crash cases of CP-Redis' Algorithm 1 (Sung and Park, 2019), which infers the state from the numbers of temporary
//! and final files: the state that it promises, and the cases in which it is wrong. In Onggi the manifest decides (K1).

use super::*;
use crate::{Name, SnapshotWriter};
use vfs::Outage;

const FILES: u8 = 4;

/// Begins the files of a set: `complete` of them whole, the others with only a header. `FILES` in all, unless `created`
/// is lower.
fn write_partly(dir: &DataDir, set: SetId, contents: &Contents, created: u8, complete: u8) {
    for number in 0..created {
        let SetHead { cut, history, created_ms, spaces, .. } = head(2);
        let header = Header { set, file: number, files: FILES, cut, history, created_ms, key_id: 0, spaces };
        let path = dir.file(Name::Snapshot { set, file: number });
        let file = OutFile::create(&**dir.fs(), &path, BUFFER_BYTES, true).unwrap();
        let mut writer = SnapshotWriter::begin(file, &header, u64::MAX).unwrap();
        for ((space, key), (value, _, _)) in contents {
            let mut bytes = Vec::new();
            cmdlog::record::put_set_head(&mut bytes, KeyspaceId(*space), key, Encoding::PLAIN, None, value.len());
            writer.write_block(&bytes, value, 1).unwrap();
        }
        if number < complete {
            writer.finish().unwrap();
        }
    }
}

/// Old and new contents, and a directory with the old ones.
fn before() -> (SimFs, DataDir, ManifestFile, Contents, Contents) {
    let fs = SimFs::new(3);
    let (old, new) = (contents(1, 50, 100), contents(2, 60, 100));
    let (dir, file) = with_one_set(&fs, &old);
    (fs, dir, file, old, new)
}

/// After any outage the directory recovers to `expected`, and the next checkpoint leaves only named files.
fn recovers_to(fs: &SimFs, dir: DataDir, expected: &Contents) {
    drop(dir);
    for outage in (0..8).map(|seed| Outage::PowerCut { seed }).chain([Outage::ProcessKill]) {
        let fs = fs.crash_point().after(outage);
        let dir = data_dir(&fs);
        assert!(recover(&dir).unwrap().as_ref() == Some(expected), "{outage:?}");
        let mut file = ManifestFile::load(&dir).unwrap().unwrap();
        let next = contents(9, 30, 50);
        checkpoint(&dir, &mut file, 3, &next, 2).unwrap();
        assert!(recover(&dir).unwrap() == Some(next));
        let named = |&(set, number): &(SetId, u8)| file.current().names(set, number);
        assert!(dir.list().unwrap().snapshots.iter().all(named), "{outage:?}: leftovers");
    }
}

/// Case 1: a crash before all files are complete. The paper ignores temporary files and loads the old snapshot.
#[test]
fn a_crash_before_all_files_are_complete_keeps_the_old_state() {
    let (fs, dir, mut file, old, new) = before();
    write_partly(&dir, file.next_set(), &new, FILES, FILES - 1);
    recovers_to(&fs, dir, &old);
}

/// Case 2: a crash between the steps that make complete files final. The paper renames file by file and promises the
/// new state. Here one replacement of the manifest makes all of them final at once: before it the old state counts,
/// after it the new one. A moment earlier the paper's rule would also have loaded the old state.
#[test]
fn a_crash_between_the_steps_that_make_files_final_keeps_one_whole_state() {
    let (fs, dir, mut file, old, new) = before();
    let info = write(&dir, file.next_set(), 2, &new, 4).unwrap();
    let mut next = file.current().clone();
    next.sets.push(info);
    let before = fs.operations();
    fs.record_crash_points();
    file.commit(&dir, next).unwrap();
    let mut found = [0, 0];
    for point in fs.take_crash_points() {
        for outage in (0..8).map(|seed| Outage::PowerCut { seed }).chain([Outage::ProcessKill]) {
            let recovered = recover(&data_dir(&point.after(outage))).unwrap().unwrap();
            assert!(recovered == old || recovered == new, "operation {}, {outage:?}", point.operation() - before);
            found[usize::from(recovered == new)] += 1;
        }
    }
    assert!(found[0] > 0 && found[1] > 0, "both states are met: {found:?}");
    recovers_to(&fs, dir, &new);
}

/// Case 3: a crash after everything is done: the new state.
#[test]
fn a_crash_after_the_last_step_keeps_the_new_state() {
    let (fs, dir, mut file, _, new) = before();
    checkpoint(&dir, &mut file, 2, &new, 4).unwrap();
    recovers_to(&fs, dir, &new);
}

/// Wrong in the paper: files are created one after another. A crash soon after the start leaves fewer temporary files
/// than final ones, which the paper takes for a snapshot in the middle of its renames. It would load a mixture.
#[test]
fn fewer_new_files_than_old_ones_are_not_taken_for_a_finished_set() {
    for created in 1..FILES {
        let (fs, dir, mut file, old, new) = before();
        write_partly(&dir, file.next_set(), &new, created, 0);
        recovers_to(&fs, dir, &old);
    }
}

/// Not covered by the paper: the very first snapshot, without final files to compare with.
#[test]
fn a_crash_in_the_first_checkpoint_of_all_leaves_an_empty_state() {
    for complete in 0..=FILES {
        let fs = SimFs::new(4);
        let dir = data_dir(&fs);
        let mut file = ManifestFile::create(&dir, Manifest::new(HISTORY, log_off())).unwrap();
        write_partly(&dir, file.next_set(), &contents(1, 5, 50), FILES, complete);
        for seed in 0..8 {
            let dir = data_dir(&fs.crash_point().power_cut(seed));
            assert!(recover(&dir).unwrap().is_none());
            let mut file = ManifestFile::load(&dir).unwrap().unwrap();
            file.prune(&dir, None).unwrap();
            assert_eq!(dir.list().unwrap().snapshots, []);
        }
    }
}

/// Not covered by the paper: another number of threads than before, fewer or more.
#[test]
fn the_number_of_files_may_change_from_set_to_set() {
    let fs = SimFs::new(5);
    let (dir, mut file) = with_one_set(&fs, &contents(1, 20, 50));
    for (cut, threads) in (2..).zip([7, 1, 16, 3]) {
        let new = contents(cut, 40, 50);
        checkpoint(&dir, &mut file, cut, &new, threads).unwrap();
        assert_eq!(file.current().newest().unwrap().files.len(), threads);
        assert!(recover(&dir).unwrap() == Some(new));
    }
    let sets: Vec<usize> = file.current().sets.iter().map(|set| set.files.len()).collect();
    assert_eq!(sets, [16, 3], "the last two sets are kept");
    assert_eq!(dir.list().unwrap().snapshots.len(), 19);
}

/// Not covered by the paper: files of a checkpoint aborted earlier. They never mix with a later one.
#[test]
fn leftovers_of_an_aborted_set_do_not_mix_with_the_next() {
    let (fs, dir, mut file, _, new) = before();
    write_partly(&dir, file.next_set(), &contents(7, 20, 50), FILES, FILES);
    let mut file = ManifestFile::load(&dir).unwrap().unwrap();
    assert_eq!(file.next_set(), SetId(3), "the number of the leftovers is not used again");
    checkpoint(&dir, &mut file, 2, &new, 2).unwrap();
    recovers_to(&fs, dir, &new);
}
