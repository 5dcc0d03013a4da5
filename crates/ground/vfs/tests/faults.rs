//! One named test per kind of fault of the simulated file system: each shows that the fault can occur, and that it does
//! no more than its rule says (S1 to S6 in `src/sim.rs`).

use std::collections::BTreeSet;
use std::io::{ErrorKind, IoSlice};
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use vfs::{
    AllocateLen, CrashModel, Fault, File, FileSystem, FsError, Op, OpenOptions, Outage, Outcome, SimFs, SimOptions,
    errno, read_file,
};

const SEEDS: u64 = 300;
const ROOT: &str = "/";
const A: &str = "/a";

fn path(text: &str) -> &Path {
    Path::new(text)
}

fn create(fs: &SimFs, name: &str) -> Arc<dyn File> {
    fs.open(path(name), OpenOptions::write().create_new()).expect("creates")
}

/// A file with a durable name and durable contents.
fn durable(fs: &SimFs, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = create(fs, name);
    file.write_all_at(bytes, 0).expect("writes");
    file.sync_all().expect("syncs");
    fs.sync_dir(path(name).parent().expect("has a directory")).expect("syncs");
    file
}

fn get(fs: &SimFs, name: &str) -> Option<Vec<u8>> {
    match read_file(fs, path(name), 1 << 24) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.is_not_found() => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// What a power cut at this moment leaves of each name, over many seeds.
fn outcomes<const N: usize>(fs: &SimFs, names: [&str; N]) -> BTreeSet<[Option<Vec<u8>>; N]> {
    let point = fs.crash_point();
    (0..SEEDS).map(|seed| names.map(|name| get(&point.power_cut(seed), name))).collect()
}

fn some(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(bytes.to_vec())
}

fn with(options: SimOptions) -> SimFs {
    SimFs::with_options(SimOptions { seed: 5, ..options })
}

// ---- Power cuts: data.

/// Four pending sectors over durable ones: each one occurs as new, old, zero and torn, and nothing else does.
#[test]
fn pending_sectors_are_new_old_zero_or_torn_each_on_its_own() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, &[1; 2048]);
    file.write_all_at(&[2; 2048], 0).expect("writes");
    let seen: Vec<Vec<u8>> = outcomes(&fs, [A]).into_iter().map(|[bytes]| bytes.expect("durable name")).collect();
    for sector in 0..4 {
        let kinds: BTreeSet<&str> = seen
            .iter()
            .map(|bytes| {
                let bytes = &bytes[sector * 512..][..512];
                let changes = bytes.windows(2).filter(|pair| pair[0] != pair[1]).count();
                match (bytes[0], bytes[511], changes) {
                    (1, 1, 0) => "old",
                    (2, 2, 0) => "new",
                    (0, 0, 0) => "zero",
                    (2, 1, 1) => "head new",
                    (1, 2, 1) => "tail new",
                    _ => panic!("sector {sector}: {bytes:?}"),
                }
            })
            .collect();
        assert_eq!(kinds.len(), 5, "sector {sector} is only seen {kinds:?}");
    }
    assert!(seen.contains(&vec![1; 2048]) && seen.contains(&vec![2; 2048]), "nothing and everything are likely");
    assert!(seen.iter().all(|bytes| bytes.len() == 2048), "the length was not pending");
}

/// However much is pending, the two plain outcomes - nothing arrived, everything arrived - are drawn often.
#[test]
fn all_and_nothing_are_likely_outcomes() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, &[1; 100_000]);
    file.write_all_at(&[2; 100_000], 0).expect("writes");
    let point = fs.crash_point();
    let found: Vec<Vec<u8>> = (0..100).map(|seed| get(&point.power_cut(seed), A).expect("durable name")).collect();
    for byte in [1, 2] {
        let pure = found.iter().filter(|bytes| bytes.iter().all(|&b| b == byte)).count();
        assert!((10..50).contains(&pure), "{pure} of 100 are all {byte}");
    }
}

/// The options disable tearing and zeroing.
#[test]
fn a_milder_crash_model_keeps_sectors_whole() {
    let crash = CrashModel { torn_sectors: false, zeroed_sectors: false };
    let fs = with(SimOptions { crash, ..SimOptions::default() });
    let file = durable(&fs, A, &[1; 1024]);
    file.write_all_at(&[2; 1024], 0).expect("writes");
    let seen = outcomes(&fs, [A]);
    let sector = |byte| vec![byte; 512];
    let all = [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(x, y)| [Some([sector(x), sector(y)].concat())]);
    assert_eq!(seen, BTreeSet::from(all));
}

/// A log that finds its later record must not assume that the earlier one exists.
#[test]
fn a_later_write_may_survive_an_earlier_one() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, &[0; 2000]);
    file.write_all_at(b"first", 0).expect("writes");
    file.write_all_at(b"second", 1000).expect("writes");
    let later_alone = |bytes: &[u8]| &bytes[..5] == b"\0\0\0\0\0" && &bytes[1000..1006] == b"second";
    assert!(outcomes(&fs, [A]).iter().any(|[bytes]| later_alone(bytes.as_ref().expect("durable name"))));
}

/// Bytes next to a pending write in the same sector are not pending: an append never endangers earlier records.
#[test]
fn neighbours_of_a_pending_write_are_safe() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, b"durable-......-durable");
    file.write_all_at(b"change", 8).expect("writes");
    for [bytes] in outcomes(&fs, [A]) {
        let bytes = bytes.expect("durable name");
        assert_eq!((&bytes[..8], &bytes[14..]), (&b"durable-"[..], &b"-durable"[..]));
    }
}

/// A write that syncs itself is durable when it returns, and otherwise may be torn as any other. It does not sync
/// earlier writes: a caller that assumes so loses both.
#[test]
fn a_write_that_syncs_itself_covers_itself_alone() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, b"durable");
    fs.record_crash_points();
    file.write_all_synced_at(&mut [IoSlice::new(b"DUR")], 0).expect("writes");
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[some(b"DURable")]]));
    let between = fs
        .take_crash_points()
        .into_iter()
        .any(|point| (0..SEEDS).any(|seed| get(&point.power_cut(seed), A) == some(b"durable")));
    assert!(between, "not before it returns");
    file.write_all_at(b"....", 3).expect("writes");
    file.write_all_synced_at(&mut [IoSlice::new(b"dur")], 0).expect("writes");
    assert!(outcomes(&fs, [A]).contains(&[some(b"DURable")]), "nothing of it is promised");
    fs.inject(Fault::fail(Op::SyncData, errno::EIO));
    file.sync_all().expect("syncs");
    file.write_all_synced_at(&mut [IoSlice::new(b"end")], 4).expect_err("its sync fails");
}

/// The case that breaks other servers: the file is longer, and the new part reads as zero.
#[test]
fn a_length_may_arrive_without_its_data_and_data_without_its_length() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, b"old");
    file.write_all_at(b"new", 3).expect("writes");
    let seen = outcomes(&fs, [A]);
    for expected in [&b"old"[..], b"old\0\0\0", b"oldnew"] {
        assert!(seen.contains(&[some(expected)]), "{expected:?} is never seen");
    }
    assert!(seen.iter().all(|[bytes]| matches!(bytes.as_ref().map(Vec::len), Some(3 | 6))));
}

/// Truncation, growth, reservations and holes wait for a sync as writes do.
#[test]
fn length_and_space_changes_wait_for_a_sync() {
    type Change = fn(&dyn File);
    let cases: [(Change, &[u8], &[u8]); 4] = [
        (|file| file.set_len(2).expect("cuts"), b"0123", b"01"),
        (|file| file.set_len(6).expect("grows"), b"0123", b"0123\0\0"),
        (|file| file.allocate(0, 6, AllocateLen::Extend).expect("reserves"), b"0123", b"0123\0\0"),
        (|file| file.punch_hole(1, 2).expect("punches"), b"0123", b"0\0\x003"),
    ];
    for (change, old, new) in cases {
        let fs = SimFs::new(1);
        let file = durable(&fs, A, old);
        change(&*file);
        assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[some(old)], [some(new)]]));
        file.sync_data().expect("syncs");
        assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[some(new)]]), "S1");
    }
}

/// Opening with `truncate` is a change like any other.
#[test]
fn truncation_on_open_waits_for_a_sync() {
    let fs = SimFs::new(1);
    durable(&fs, A, b"old");
    fs.open(path(A), OpenOptions::write().truncate()).expect("opens");
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[some(b"old")], [some(b"")]]));
}

// ---- Power cuts: names.

/// A synced file without a synced directory may not exist after a power cut.
#[test]
fn a_new_name_waits_for_its_directory_even_when_the_file_is_synced() {
    let fs = SimFs::new(1);
    let file = create(&fs, A);
    file.write_all_at(b"data", 0).expect("writes");
    file.sync_all().expect("syncs");
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[None], [some(b"data")]]));
    fs.sync_dir(path(ROOT)).expect("syncs");
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[some(b"data")]]), "S1");
}

/// A directory's own name needs its parent's sync.
#[test]
fn names_need_every_directory_above() {
    let fs = SimFs::new(1);
    fs.create_dir_all(path("/d/e")).expect("creates");
    durable(&fs, "/d/e/f", b"data");
    assert_eq!(outcomes(&fs, ["/d/e/f"]), BTreeSet::from([[None], [some(b"data")]]));
    fs.sync_dir(path("/d")).expect("syncs");
    fs.sync_dir(path(ROOT)).expect("syncs");
    assert_eq!(outcomes(&fs, ["/d/e/f"]), BTreeSet::from([[some(b"data")]]), "S1");
}

/// A removed file may return, with its contents.
#[test]
fn a_removed_name_may_come_back() {
    let fs = SimFs::new(1);
    drop(durable(&fs, A, b"data"));
    fs.remove_file(path(A)).expect("removes");
    // The sync of another directory, which searches for unreachable files, must not free this one.
    fs.create_dir_all(path("/d")).expect("creates");
    fs.sync_dir(path("/d")).expect("syncs");
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[None], [some(b"data")]]));
    fs.sync_dir(path(ROOT)).expect("syncs");
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[None]]));
}

/// The same for a file whose name never was durable: it can return only through changes that are still pending.
#[test]
fn a_name_made_and_removed_again_may_come_back() {
    let fs = SimFs::new(1);
    let file = create(&fs, A);
    file.write_all_at(b"data", 0).expect("writes");
    file.sync_all().expect("syncs");
    drop(file);
    fs.remove_file(path(A)).expect("removes");
    fs.create_dir_all(path("/d")).expect("creates");
    fs.sync_dir(path("/d")).expect("syncs");
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[None], [some(b"data")]]));
}

/// Rename without a prior sync of the file: the new name may have anything from nothing to all of the new data, and the
/// old contents are gone. This is why `replace_file` syncs first.
#[test]
fn a_rename_may_arrive_before_the_data() {
    let fs = SimFs::new(1);
    durable(&fs, A, b"old");
    create(&fs, "/a.new").write_all_at(b"new", 0).expect("writes");
    fs.rename(path("/a.new"), path(A)).expect("renames");
    let seen = outcomes(&fs, [A]);
    for expected in [&b"old"[..], b"", b"\0\0\0", b"new"] {
        assert!(seen.contains(&[some(expected)]), "{expected:?} is never seen");
    }
    assert!(!seen.contains(&[None]), "one of the two is always there");
}

/// A rename moves a file or does not: it never has both names, and never neither.
#[test]
fn a_rename_is_atomic() {
    let fs = SimFs::new(1);
    durable(&fs, A, b"data");
    fs.rename(path(A), path("/b")).expect("renames");
    let (stays, moves) = ([some(b"data"), None], [None, some(b"data")]);
    assert_eq!(outcomes(&fs, [A, "/b"]), BTreeSet::from([stays, moves.clone()]));
    fs.sync_dir(path(ROOT)).expect("syncs");
    assert_eq!(outcomes(&fs, [A, "/b"]), BTreeSet::from([moves]));

    // Consecutive renames rename one name after another: the file ends at any of them.
    fs.rename(path("/b"), path(A)).expect("renames");
    fs.rename(path(A), path("/c")).expect("renames");
    let at = |place: usize| std::array::from_fn(|name| (name == place).then(|| b"data".to_vec()));
    assert_eq!(outcomes(&fs, ["/b", A, "/c"]), BTreeSet::from([at(0), at(1), at(2)]));
}

/// A rename between directories is durable once both are synced, and always atomic.
#[test]
fn a_rename_between_directories_needs_both_syncs() {
    let fs = SimFs::new(1);
    for dir in ["/x", "/y"] {
        fs.create_dir_all(path(dir)).expect("creates");
    }
    fs.sync_dir(path(ROOT)).expect("syncs");
    durable(&fs, "/x/f", b"data");
    fs.rename(path("/x/f"), path("/y/f")).expect("renames");
    let either = BTreeSet::from([[some(b"data"), None], [None, some(b"data")]]);
    assert_eq!(outcomes(&fs, ["/x/f", "/y/f"]), either);
    fs.sync_dir(path("/y")).expect("syncs");
    assert_eq!(outcomes(&fs, ["/x/f", "/y/f"]), either, "one sync is not enough");
    fs.sync_dir(path("/x")).expect("syncs");
    assert_eq!(outcomes(&fs, ["/x/f", "/y/f"]), BTreeSet::from([[None, some(b"data")]]));

    // A later change of a name implies the earlier ones of that name.
    fs.rename(path("/y/f"), path("/x/f")).expect("renames");
    fs.remove_file(path("/x/f")).expect("removes");
    fs.sync_dir(path("/x")).expect("syncs");
    assert_eq!(outcomes(&fs, ["/x/f"]), BTreeSet::from([[None]]), "S1: the removal was synced");
}

/// Changes of different names arrive in any order; changes of one name keep their order.
#[test]
fn names_arrive_in_any_order_but_one_name_keeps_its_own() {
    let fs = SimFs::new(1);
    durable(&fs, A, b"one");
    drop(create(&fs, "/b"));
    fs.remove_file(path(A)).expect("removes");
    let seen = outcomes(&fs, [A, "/b"]);
    assert_eq!(seen.len(), 4, "each with and without the other: {seen:?}");

    let fs = SimFs::new(1);
    drop(durable(&fs, A, b"one"));
    fs.remove_file(path(A)).expect("removes");
    create(&fs, A).sync_all().expect("syncs");
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[some(b"one")], [None], [some(b"")]]));
}

/// A second name waits for its directory; the data does not depend on the name.
#[test]
fn hard_links_wait_for_their_directory() {
    let fs = SimFs::new(1);
    durable(&fs, A, b"data");
    fs.hard_link(path(A), path("/b")).expect("links");
    assert_eq!(outcomes(&fs, [A, "/b"]), BTreeSet::from([[some(b"data"), None], [some(b"data"), some(b"data")]]));
    fs.sync_dir(path(ROOT)).expect("syncs");
    let next = fs.recover(Outage::PowerCut { seed: 1 });
    next.open(path("/b"), OpenOptions::write()).expect("opens").write_all_at(b"D", 0).expect("writes");
    assert_eq!(get(&next, A), some(b"Data"), "still one file after the boot");
}

// ---- Failed syncs.

/// The second sync returns `Ok`, programs still see the data, and the medium never receives it (S5).
#[test]
fn a_failed_sync_forgets_and_the_next_one_lies() {
    let mut lost = 0;
    for seed in 0..50 {
        let fs = SimFs::new(seed);
        let file = durable(&fs, A, &[1; 1024]);
        fs.inject(Fault::fail(Op::SyncData, errno::EIO).on("a"));
        file.write_all_at(&[2; 2048], 0).expect("writes");
        assert_eq!(file.sync_data().expect_err("the fault").raw_os_error(), Some(errno::EIO));
        assert_eq!(get(&fs, A), some(&[2; 2048]), "the page cache shows the new bytes");
        file.sync_data().expect("the lie");
        file.sync_all().expect("the lie");
        let seen = outcomes(&fs, [A]);
        assert_eq!(seen.len(), 1, "what arrived was settled when the sync failed");
        assert!(seen.iter().all(|[bytes]| bytes.as_ref().expect("durable name").len() == 2048), "the length is synced");
        lost += u32::from(!seen.contains(&[some(&[2; 2048])]));
        assert_eq!(fs.faults_fired(), 1);

        // The next sync saves what is written after the failure, and only that.
        file.write_all_at(&[3; 512], 512).expect("writes");
        file.sync_data().expect("syncs");
        let [after] = outcomes(&fs, [A]).pop_first().expect("one outcome");
        let [before] = seen.into_iter().next().expect("one outcome");
        let (after, mut expected) = (after.expect("durable name"), before.expect("durable name"));
        expected[512..1024].fill(3);
        assert_eq!(after, expected);
    }
    assert!(lost > 10, "mostly something is lost ({lost} of 50)");
}

/// Where the file system drops the pages of a failed sync, programs see the medium's old bytes immediately.
#[test]
fn after_a_failed_sync_reads_may_show_old_bytes() {
    let mut old = 0;
    for seed in 0..50 {
        let fs = SimFs::new(seed);
        let file = durable(&fs, A, &[1; 512]);
        fs.inject(Fault::fail(Op::SyncAll, errno::ENOSPC).reads_show_old());
        file.write_all_at(&[2; 512], 0).expect("writes");
        assert!(file.sync_all().expect_err("the fault").is_out_of_space());
        let shown = get(&fs, A);
        assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[shown.clone()]]));
        old += u32::from(shown == some(&[1; 512]));
    }
    assert!((1..50).contains(&old), "old and new both come up ({old} of 50 old)");
}

/// The same for names: a failed directory sync loses some permanently, and the next one returns `Ok`.
#[test]
fn a_failed_directory_sync_forgets_names() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let fs = SimFs::new(seed);
        create(&fs, A).sync_all().expect("syncs");
        fs.inject(Fault::fail(Op::SyncDir, errno::EIO));
        fs.sync_dir(path(ROOT)).expect_err("the fault");
        fs.sync_dir(path(ROOT)).expect("the lie");
        assert_eq!(get(&fs, A), some(b""), "programs see the name");
        let after = outcomes(&fs, [A]);
        assert_eq!(after.len(), 1, "what arrived was settled when the sync failed");
        seen.extend(after);
    }
    assert_eq!(seen, BTreeSet::from([[None], [some(b"")]]));
}

// ---- Space.

/// A write that does not fit is cut short, the next fails with ENOSPC, and freed space can be used again.
#[test]
fn a_full_disk_refuses_and_recovers() {
    let fs = with(SimOptions { capacity_bytes: Some(10 * 4096), ..SimOptions::default() });
    let file = create(&fs, A);
    assert_eq!(file.write_at(&[1; 50_000], 100).expect("as far as it fits"), 10 * 4096 - 100);
    assert!(file.write_at(b"x", 40_960).expect_err("full").is_out_of_space());
    assert_eq!(file.write_at(b"x", 40_959).expect("overwriting takes no space"), 1);
    assert_eq!(fs.free_space(path(ROOT)).expect("answers").available, 0);
    let other = create(&fs, "/b");
    assert!(other.write_all_at(b"x", 0).expect_err("full").is_out_of_space());
    assert!(other.allocate(0, 1, AllocateLen::Keep).expect_err("full").is_out_of_space());

    file.punch_hole(0, 4096).expect("punches");
    other.write_all_at(b"x", 0).expect("one page is free");
    file.set_len(4096).expect("cuts");
    assert_eq!(fs.free_space(path(ROOT)).expect("answers").available, 9 * 4096);
    fs.remove_file(path("/b")).expect("removes");
    assert_eq!(fs.free_space(path(ROOT)).expect("answers").available, 9 * 4096, "held by the open handle");
    drop(other);
    assert_eq!(fs.free_space(path(ROOT)).expect("answers").available, 10 * 4096);

    fs.set_capacity(Some(0));
    assert!(file.write_all_at(b"x", 0).expect_err("full").is_out_of_space());
    fs.set_capacity(None);
    file.write_all_at(b"x", 0).expect("space has returned");
}

/// Writes to reserved space never fail for lack of it, even when the disk is full.
#[test]
fn reserved_space_is_kept() {
    let fs = with(SimOptions { capacity_bytes: Some(8 * 4096), ..SimOptions::default() });
    let log = create(&fs, A);
    log.allocate(0, 4 * 4096, AllocateLen::Extend).expect("reserves");
    log.sync_all().expect("syncs");
    fs.sync_dir(path(ROOT)).expect("syncs");
    let hog = create(&fs, "/hog");
    assert!(hog.write_all_at(&[1; 8 * 4096], 0).expect_err("only four pages are left").is_out_of_space());
    log.write_all_at(&[2; 4 * 4096], 0).expect("has its space");

    let next = fs.recover(Outage::PowerCut { seed: 3 });
    let hog = next.open(path("/hog2"), OpenOptions::write().create_new()).expect("creates");
    assert!(hog.write_all_at(&[1; 8 * 4096], 0).expect_err("full").is_out_of_space());
    let log = next.open(path(A), OpenOptions::write()).expect("opens");
    log.write_all_at(&[3; 4 * 4096], 0).expect("the reservation was durable");
}

/// ENOSPC can be injected at any operation by its number; the call then has no effect.
#[test]
fn any_operation_can_run_out_of_space() {
    let script = |fs: &SimFs| -> Result<(), FsError> {
        let file = fs.open(path(A), OpenOptions::write().create_new())?;
        file.allocate(0, 8192, AllocateLen::Extend)?;
        file.write_all_at(b"data", 0)?;
        fs.rename(path(A), path("/b"))?;
        fs.create_dir_all(path("/d"))?;
        fs.hard_link(path("/b"), path("/d/c"))
    };
    let fs = SimFs::new(1);
    let mut states = vec![fs.contents()];
    fs.record_crash_points();
    script(&fs).expect("nothing fails by itself");
    states.extend(fs.take_crash_points().iter().map(|point| point.after(Outage::ProcessKill).contents()));
    assert_eq!(states.len(), 7);
    for (number, before) in (1..=6).zip(states) {
        let fs = SimFs::new(1);
        fs.inject(Fault::fail_operation(number, errno::ENOSPC));
        assert!(script(&fs).expect_err("the fault").is_out_of_space());
        assert_eq!((fs.faults_fired(), fs.operations()), (1, number));
        let last = fs.trace().pop().expect("traced");
        assert_eq!((last.number, last.outcome), (number, Outcome::Failed(errno::ENOSPC)));
        assert_eq!(fs.contents(), before, "operation {number} has done nothing");
    }
}

// ---- Transfers.

/// Short transfers and EINTR reach the bare calls, and the repeating methods hide them.
#[test]
fn short_transfers_and_interrupts() {
    let fs = SimFs::new(1);
    let file = create(&fs, A);
    fs.inject(Fault::short(Op::Write, 3));
    fs.inject(Fault::fail(Op::Write, errno::EINTR));
    fs.inject(Fault::short(Op::Read, 2));
    assert_eq!(file.write_at(b"0123456789", 0).expect("in part"), 3);
    assert!(file.write_at(b"x", 0).expect_err("the signal").is_interrupted());
    assert_eq!(file.write_at(b"0123456789", 0).expect("in full"), 10);
    assert_eq!(file.read_at(&mut [0; 9], 0).expect("in part"), 2);

    let noisy = SimOptions { short_transfer_one_in: 2, interrupt_one_in: 3, ..SimOptions::default() };
    let fs = with(noisy);
    let file = create(&fs, A);
    let bytes: Vec<u8> = (0..5000u32).map(|i| i as u8).collect();
    file.write_all_at(&bytes, 7).expect("goes on");
    let mut back = vec![0; 5000];
    file.read_exact_at(&mut back, 7).expect("goes on");
    assert_eq!(back, bytes);
    assert!(fs.operations() > 3, "it took several calls");
    let interrupted = |entry: &vfs::TraceEntry| entry.outcome == Outcome::Failed(errno::EINTR);
    assert!(fs.trace().iter().any(interrupted));
}

/// Any call can be made to fail, on one path, after some calls, several times or forever.
#[test]
fn planted_faults_choose_their_calls() {
    let fs = SimFs::new(1);
    let (a, b) = (create(&fs, A), create(&fs, "/b"));
    fs.inject(Fault::fail(Op::Write, errno::EFBIG).on("a").skip(1).times(2));
    let outcomes: Vec<bool> = (0..5).map(|_| a.write_at(b"x", 0).is_ok()).collect();
    assert_eq!(outcomes, [true, false, false, true, true]);
    b.write_at(b"x", 0).expect("another path");
    fs.inject(Fault::fail(Op::Open, errno::EMFILE).forever());
    for _ in 0..3 {
        assert_eq!(fs.open(path(A), OpenOptions::read()).expect_err("planted").raw_os_error(), Some(errno::EMFILE));
    }
    assert_eq!(fs.faults_fired(), 5);
    fs.clear_faults();
    fs.open(path(A), OpenOptions::read()).expect("no fault is left");
}

// ---- Damage to the medium.

/// A bad range fails reads that touch it, a number of times or forever, through renames and reboots.
#[test]
fn unreadable_ranges() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, &[1; 8192]);
    fs.make_unreadable(path(A), 4096..4608, Some(1)).expect("plants");
    file.read_at(&mut [0; 4096], 0).expect("beside it");
    let error = file.read_at(&mut [0; 4096], 4000).expect_err("touches it");
    assert_eq!((error.raw_os_error(), error.op()), (Some(errno::EIO), Op::Read));
    file.read_at(&mut [0; 4096], 4000).expect("it was once");

    fs.make_unreadable(path(A), 100..101, None).expect("plants");
    fs.rename(path(A), path("/b")).expect("renames");
    fs.sync_dir(path(ROOT)).expect("syncs");
    for outage in [Outage::ProcessKill, Outage::PowerCut { seed: 1 }] {
        let next = fs.crash_point().after(outage);
        let file = next.open(path("/b"), OpenOptions::read()).expect("opens");
        for _ in 0..3 {
            file.read_at(&mut [0; 200], 0).expect_err("for ever");
        }
        file.read_at(&mut [0; 200], 101).expect("beside it");
    }
}

/// A flipped bit is visible immediately and stays; damage never extends a file.
#[test]
fn bit_flips_and_lost_sectors_at_rest() {
    let fs = SimFs::new(1);
    durable(&fs, A, b"abc");
    fs.flip_bit(path(A), 1, 0).expect("flips");
    assert_eq!(get(&fs, A), some(b"acc"));
    fs.damage(path(A), 2, b"XYZ").expect("damages");
    fs.flip_bit(path(A), 99, 0).expect("nothing is there");
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[some(b"acX")]]));
    fs.open(path(A), OpenOptions::write()).expect("opens").set_len(6).expect("grows");
    assert_eq!(get(&fs, A), some(b"acX\0\0\0"));
    assert!(fs.flip_bit(path("/none"), 0, 0).expect_err("missing").is_not_found());
}

/// The program reads back what it wrote, from the cache; the medium has it in the wrong place.
#[test]
fn a_misdirected_write_lands_elsewhere() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, &[1; 1024]);
    durable(&fs, "/victim", &[7; 20]);
    fs.inject(Fault::misdirect("/victim", 10).on("a"));
    file.write_all_at(&[2; 100], 0).expect("seems fine");
    file.sync_data().expect("seems fine");
    assert_eq!(get(&fs, A).expect("there")[..100], [2; 100], "from the cache");
    let victim = [vec![7; 10], vec![2; 10]].concat();
    assert_eq!(outcomes(&fs, [A, "/victim"]), BTreeSet::from([[some(&[1; 1024]), some(&victim)]]));
    file.write_all_at(&[3; 10], 0).expect("the next one is not misdirected");
    file.sync_data().expect("syncs");
    let expected = [vec![3; 10], vec![1; 1014]].concat();
    assert_eq!(outcomes(&fs, [A]), BTreeSet::from([[some(&expected)]]));
}

// ---- Slow syncs.

/// While a sync stalls, other calls continue; the sync does not cover what they write.
#[test]
fn a_stalled_sync_covers_only_what_came_before() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, b"old");
    let (entered, wait_entered) = mpsc::channel();
    let (release, wait_release) = mpsc::channel::<()>();
    let wait_release = Mutex::new(wait_release);
    fs.on_sync(move |call| {
        assert_eq!((call.op, call.path), (Op::SyncData, path(A)));
        entered.send(call.number).expect("the test listens");
        wait_release.lock().expect("one sync at a time").recv().expect("the test releases");
    });
    file.write_all_at(b"one", 0).expect("writes");
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| file.sync_data());
        assert_eq!(wait_entered.recv().expect("the sync begins"), fs.operations());
        file.write_all_at(b"two", 512).expect("writes go on");
        assert!(outcomes(&fs, [A]).contains(&[some(b"old")]), "a crash meanwhile finds everything pending");
        release.send(()).expect("the sync waits");
        syncing.join().expect("no panic").expect("syncs");
    });
    let seen = outcomes(&fs, [A]);
    assert!(seen.iter().all(|[bytes]| bytes.as_ref().expect("durable name").starts_with(b"one")), "S1");
    assert!(seen.contains(&[some(b"one")]), "the second write is pending");
}

/// A sync overtaken by another one, successful or not, covers only what it covered when it began.
#[test]
fn an_overtaken_sync_covers_no_more() {
    for overtaker in [Ok(()), Err(())] {
        let fs = SimFs::new(1);
        let file = durable(&fs, A, &[0; 1024]);
        let second = fs.open(path(A), OpenOptions::write()).expect("opens");
        let machine = fs.clone();
        fs.on_sync(move |call| {
            if call.op == Op::SyncData {
                second.write_all_at(b"two", 512).expect("writes");
                if overtaker.is_err() {
                    machine.inject(Fault::fail(Op::SyncAll, errno::EIO));
                }
                assert_eq!(second.sync_all().is_ok(), overtaker.is_ok());
                second.write_all_at(b"three", 516).expect("writes");
            }
        });
        file.write_all_at(b"one", 0).expect("writes");
        file.sync_data().expect("syncs");
        let third_is_lost = |bytes: &[u8]| &bytes[516..521] == b"\0\0\0\0\0";
        let seen = outcomes(&fs, [A]);
        assert!(seen.iter().any(|[bytes]| third_is_lost(bytes.as_ref().expect("durable name"))), "{overtaker:?}");
    }
}

/// A crash during a stalled sync: the sync reports it and has made nothing durable.
#[test]
fn a_crash_during_a_stalled_sync() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, b"old");
    let machine = fs.clone();
    fs.on_sync(move |_| machine.crash());
    file.write_all_at(b"new", 0).expect("writes");
    assert!(file.sync_data().expect_err("the crash").is_crash());
    assert!(outcomes(&fs, [A]).contains(&[some(b"old")]));
    fs.recover(Outage::ProcessKill).sync_dir(path(ROOT)).expect("the hook stays behind");
}

// ---- Crashes.

/// After the chosen operation every call on every handle fails without effect; the next boot starts clean (S4).
#[test]
fn a_crash_stops_everything() {
    let fs = SimFs::new(1);
    let file = durable(&fs, A, b"data");
    let lock = fs.try_lock(path("/lock")).expect("free");
    fs.crash_at(fs.operations() + 2);
    file.write_all_at(b"D", 0).expect("one more");
    assert!(!fs.has_crashed());
    assert!(file.write_all_at(b"E", 0).expect_err("the crash").is_crash());
    assert!(fs.has_crashed());

    let before = (fs.operations(), fs.contents());
    let failures = [
        file.read_at(&mut [0], 0).map(drop),
        file.write_at(b"x", 0).map(drop),
        file.sync_data(),
        file.sync_all(),
        file.set_len(0),
        file.allocate(0, 1, AllocateLen::Keep),
        file.punch_hole(0, 1),
        file.len().map(drop),
        fs.open(path(A), OpenOptions::read()).map(drop),
        fs.create_dir_all(path("/d")),
        fs.rename(path(A), path("/b")),
        fs.remove_file(path(A)),
        fs.remove_dir(path("/d")),
        fs.hard_link(path(A), path("/b")),
        fs.read_dir(path(ROOT)).map(drop),
        fs.metadata(path(A)).map(drop),
        fs.sync_dir(path(ROOT)),
        fs.try_lock(path("/lock")).map(drop),
        fs.free_space(path(ROOT)).map(drop),
    ];
    for failure in failures {
        let error = failure.expect_err("the machine has stopped");
        assert!(error.is_crash() && error.kind() == ErrorKind::Other, "{error:?}");
    }
    assert_eq!((fs.operations(), fs.contents()), before);

    let next = fs.recover(Outage::ProcessKill);
    let relocked = next.try_lock(path("/lock")).expect("a lock dies with its process");
    drop((lock, file));
    assert!(matches!(next.try_lock(path("/lock")), Err(FsError::Locked { .. })), "old handles do not reach the boot");
    drop(relocked);
    assert_eq!(get(&next, A), some(b"Eata"), "S6");
}

/// A process kill loses nothing; a later power cut loses what was never synced.
#[test]
fn a_process_kill_keeps_the_page_cache() {
    let fs = SimFs::new(1);
    durable(&fs, A, b"old").write_all_at(b"new", 0).expect("writes");
    create(&fs, "/b").write_all_at(b"b", 0).expect("writes");
    let removed = create(&fs, "/c");
    removed.write_all_at(&[1; 4096], 0).expect("writes");
    fs.set_capacity(Some(4 * 4096));
    fs.remove_file(path("/c")).expect("removes");
    assert_eq!(fs.free_space(path(ROOT)).expect("answers").available, 4096, "an open handle holds the third page");
    let next = fs.recover(Outage::ProcessKill);
    assert_eq!(next.free_space(path(ROOT)).expect("answers").available, 2 * 4096, "no handle outlives its process");
    assert_eq!((get(&next, A), get(&next, "/b")), (some(b"new"), some(b"b")), "S6");
    let seen = outcomes(&next, [A, "/b"]);
    assert!(seen.contains(&[some(b"old"), None]), "still pending after the restart");
    for file in [A, "/b"] {
        next.open(path(file), OpenOptions::write()).expect("opens").sync_data().expect("syncs");
    }
    next.sync_dir(path(ROOT)).expect("syncs");
    assert_eq!(outcomes(&next, [A, "/b"]), BTreeSet::from([[some(b"new"), some(b"b")]]), "the new process can save it");
}

/// All threads that write through one machine see the crash and end; nothing hangs and nothing changes after it.
#[test]
fn a_crash_reaches_all_threads() {
    let fs = SimFs::new(1);
    fs.crash_at(2000);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let fs = &fs;
            scope.spawn(move || {
                let name = format!("/t{thread}");
                let run = || -> Result<(), FsError> {
                    let file = fs.open(path(&name), OpenOptions::write().create_new())?;
                    fs.sync_dir(path(ROOT))?;
                    for at in 0.. {
                        file.write_all_at(&[thread + 1; 100], at * 100)?;
                        file.sync_data()?;
                    }
                    Ok(())
                };
                assert!(run().expect_err("only a crash ends it").is_crash());
            });
        }
    });
    assert_eq!(fs.operations(), 2000);
    let next = fs.recover(Outage::PowerCut { seed: 9 });
    for (name, bytes) in next.contents() {
        let whole = &bytes[..bytes.len().saturating_sub(100)];
        assert!(
            whole.windows(2).all(|pair| pair[0] == pair[1] && pair[0] != 0),
            "{name:?}: a synced record is damaged"
        );
    }
}

/// The trace names each operation with its argument and its result.
#[test]
fn the_trace_tells_what_happened() {
    let fs = with(SimOptions { trace_len_max: 3, ..SimOptions::default() });
    let file = create(&fs, A);
    file.write_all_at(b"data", 8).expect("writes");
    file.set_len(2).expect("cuts");
    fs.inject(Fault::fail(Op::Rename, errno::ENOSPC));
    fs.rename(path(A), path("/b")).expect_err("the fault");
    fs.crash_at(5);
    file.sync_data().expect_err("the crash");
    let lines: Vec<String> = fs.trace().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "#3 set length /a 2",
            "#4 rename /a -> /b: No space left on device (os error 28)",
            "#5 sync data /a: the machine stopped"
        ]
    );
}
