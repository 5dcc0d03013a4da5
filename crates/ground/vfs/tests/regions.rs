//! Files that are written through memory: on the real file system, on a simulated page cache, and on simulated
//! persistent memory with its crashes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use base::Rng;
use vfs::{
    Fault, FileSystem, FsError, Op, OpenOptions, RealFs, Region, RegionKind, SimFs, SimOptions, errno, read_file,
};

const LEN: u64 = 64 << 10;

fn machine(seed: u64, is_dax: bool) -> SimFs {
    SimFs::with_options(SimOptions { seed, is_dax, ..SimOptions::default() })
}

/// A new region whose name is durable.
fn region(fs: &dyn FileSystem, dir: &Path) -> Arc<dyn Region> {
    let region = fs.map_writable(&dir.join("a"), OpenOptions::write().create_new(), LEN).expect("maps");
    fs.sync_dir(dir).expect("syncs");
    region
}

fn each(check: impl Fn(&dyn FileSystem, &Path)) {
    let temp = tempfile::tempdir().expect("a directory for the test");
    check(&RealFs, temp.path());
    for is_dax in [false, true] {
        check(&machine(1, is_dax), Path::new("/"));
    }
}

/// Bytes written through memory are read through memory and through the file; the rest is zeros.
#[test]
fn regions_and_files_agree() {
    each(|fs, dir| {
        let region = region(fs, dir);
        assert_eq!((region.len(), region.path()), (LEN, &*dir.join("a")));
        let (mut rng, mut expected) = (Rng::new(3), vec![0u8; LEN as usize]);
        for turn in 0..300 {
            let at = rng.below(LEN - 300);
            let mut bytes = vec![0; rng.below(300) as usize];
            rng.fill(&mut bytes);
            if turn % 3 == 0 {
                region.write(&bytes, at).expect("writes");
                region.flush(at, bytes.len() as u64);
            } else {
                region.write_nt(&bytes, at).expect("writes");
            }
            expected[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
            let mut found = vec![0; bytes.len()];
            region.read_exact_at(&mut found, at).expect("reads");
            assert_eq!(found, bytes);
        }
        region.fence();
        region.durable_barrier().expect("syncs");
        assert_eq!(read_file(fs, &dir.join("a"), 1 << 20).expect("reads"), expected);
    });
}

/// An existing file keeps its bytes and its length, a shorter one grows, and what lies outside is refused.
#[test]
fn existing_files_are_mapped_as_they_are() {
    each(|fs, dir| {
        region(fs, dir).write_nt(b"kept", 100).expect("writes");
        let path = dir.join("a");
        let grown = fs.map_writable(&path, OpenOptions::write(), 2 * LEN).expect("maps");
        let part = fs.map_writable(&path, OpenOptions::write(), 4096).expect("maps");
        assert_eq!(fs.metadata(&path).expect("is there").len, 2 * LEN);
        let mut found = [0; 4];
        for region in [&grown, &part] {
            region.read_exact_at(&mut found, 100).expect("reads");
            assert_eq!(&found, b"kept");
            let end = region.len();
            assert!(matches!(region.read_exact_at(&mut found, end - 3), Err(FsError::EndOfFile { .. })));
            assert!(region.read_exact_at(&mut found, u64::MAX).is_err());
            assert!(region.write_nt(b"more", end - 3).is_err() && region.write(b"more", end).is_err());
            region.flush(end, 10);
        }
        let refused = fs.map_writable(&path, OpenOptions::write(), 0).expect_err("no byte");
        assert_eq!(refused.raw_os_error(), Some(errno::EINVAL));
        assert!(
            fs.map_writable(&path, OpenOptions::write().create_new(), LEN).expect_err("is there").is_already_exists()
        );
        assert!(fs.map_writable(&dir.join("b"), OpenOptions::write(), LEN).expect_err("is not there").is_not_found());
    });
}

/// A file that is truncated under its region fails accesses and does not end the process; what is left can be read.
#[test]
fn a_lost_page_is_an_error() {
    let temp = tempfile::tempdir().expect("a directory for the test");
    let region = region(&RealFs, temp.path());
    region.write_nt(&[7; LEN as usize], 0).expect("writes");
    let file = RealFs.open(&temp.path().join("a"), OpenOptions::write()).expect("opens");
    file.set_len(8192).expect("cuts");
    let mut found = [0; 100];
    region.read_exact_at(&mut found, 4000).expect("is there");
    assert!(matches!(region.read_exact_at(&mut found, 20_000), Err(FsError::EndOfFile { .. })));
    region.read_exact_at(&mut found, 4000).expect("is still there");
    assert_eq!(found, [7; 100]);
    assert_eq!(region.write_nt(b"new", 0).expect_err("R3").raw_os_error(), Some(errno::EIO));
    assert_eq!(region.durable_barrier().expect_err("R3").raw_os_error(), Some(errno::EIO));
    let fresh = RealFs.map_writable(&temp.path().join("b"), OpenOptions::write().create(), 8192).expect("maps");
    RealFs.open(&temp.path().join("b"), OpenOptions::write()).and_then(|file| file.set_len(0)).expect("cuts");
    assert_eq!(fresh.write_nt(b"new", 5000).expect_err("R3").raw_os_error(), Some(errno::EIO));
}

/// Where `/dev/shm` is, it is known to lose its files at a reboot; the disk of the sources is not.
#[test]
fn memory_is_told_from_disk() {
    let shm = Path::new("/dev/shm");
    if shm.exists() {
        assert!(RealFs.is_volatile(shm).expect("answers"));
    }
    assert!(!RealFs.is_volatile(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("answers"));
    assert!(RealFs.is_volatile(Path::new("/no/such/place")).expect_err("is not there").is_not_found());
}

/// Without a fence every subset of the words is found after some cut; after it, all of them, whatever the seed.
#[test]
fn a_fence_decides() {
    let fs = machine(5, true);
    let region = region(&fs, Path::new("/"));
    assert_eq!(region.kind(), RegionKind::Dax);
    region.write_nt(&[1; 24], 8).expect("writes");
    let found = |fs: &SimFs| read_file(fs, Path::new("/a"), 1 << 20).expect("is there")[8..32].to_vec();
    let point = fs.crash_point();
    assert_eq!(point.word_states(), Some(8));
    let all: BTreeSet<_> = (0..8).map(|state| found(&point.with_word_state(state))).collect();
    assert_eq!(all.len(), 8);
    let drawn: BTreeSet<_> = (0..200).map(|seed| found(&point.power_cut(seed))).collect();
    assert_eq!(drawn, all);
    region.fence();
    let point = fs.crash_point();
    assert_eq!(point.word_states(), Some(1));
    assert!((0..50).all(|seed| found(&point.power_cut(seed)) == [1; 24]));
}

/// In the page cache a fence promises nothing, a barrier does, and a failed barrier loses bytes for good.
#[test]
fn the_page_cache_needs_a_barrier() {
    let fs = machine(6, false);
    let region = region(&fs, Path::new("/"));
    assert_eq!(region.kind(), RegionKind::Shared);
    let lost = |fs: &SimFs| {
        let found = |seed| read_file(&fs.crash_point().power_cut(seed), Path::new("/a"), 1 << 20).expect("is there");
        (0..50).filter(|seed| found(*seed)[..8] != [9; 8]).count()
    };
    region.write_nt(&[9; 8], 0).expect("writes");
    region.fence();
    assert!(lost(&fs) > 10);
    region.durable_barrier().expect("syncs");
    assert_eq!(lost(&fs), 0);
    region.write_nt(&[8; 8], 0).expect("writes");
    fs.inject(Fault::fail(Op::SyncData, errno::EIO));
    region.durable_barrier().expect_err("the sync fails");
    region.durable_barrier().expect("the next one lies (V5)");
}

/// A log of records through persistent memory, each published by a commit word after a fence: in every state that every
/// crash can leave, a committed record is whole. Without the fence between the two, some state shows a torn one.
#[test]
fn a_commit_word_after_a_fence_is_safe_and_without_is_not() {
    let torn_with = |is_fenced: bool| {
        let fs = machine(7, true);
        let region = region(&fs, Path::new("/"));
        fs.record_crash_points();
        for record in 1..=3u8 {
            region.write_nt(&[record; 24], u64::from(record) * 32).expect("writes");
            if is_fenced {
                region.fence();
            }
            region.write_nt(&u64::from(record).to_le_bytes(), 0).expect("writes");
            region.fence();
        }
        let (mut states, mut torn) = (0, 0);
        for point in fs.take_crash_points() {
            for state in 0..point.word_states().expect("few words") {
                let found = read_file(&point.with_word_state(state), Path::new("/a"), 1 << 20).expect("is there");
                states += 1;
                torn += u32::from((1..=found[0]).any(|record| found[usize::from(record) * 32..][..24] != [record; 24]));
            }
        }
        assert!(states > 20, "{states}");
        torn
    };
    assert_eq!(torn_with(true), 0);
    assert!(torn_with(false) > 0, "the simulator must find the missing fence");
}

/// An injected fault fails a store; a bad range fails loads; after a crash nothing succeeds.
#[test]
fn simulated_regions_fail_as_files_do() {
    let fs = machine(8, true);
    let region = region(&fs, Path::new("/"));
    fs.inject(Fault::fail(Op::Store, errno::ENOSPC));
    assert!(region.write_nt(b"x", 0).expect_err("the fault").is_out_of_space());
    fs.make_unreadable(Path::new("/a"), 100..110, None).expect("is there");
    let mut found = [0; 20];
    assert_eq!(region.read_exact_at(&mut found, 95).expect_err("is bad").raw_os_error(), Some(errno::EIO));
    region.read_exact_at(&mut found, 200).expect("is good");
    fs.crash();
    assert!(region.write_nt(b"x", 0).is_err() && region.durable_barrier().is_err());
    assert!(region.read_exact_at(&mut found, 200).is_err());
}
