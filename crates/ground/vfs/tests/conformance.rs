//! One suite for both file systems: every guarantee that does not involve a crash must hold on each. The last test
//! sends both the same random calls and compares every answer.

use std::io::{ErrorKind, IoSlice};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use vfs::{
    AlignedBuf, AllocateLen, DIRECT_ALIGNMENT, File, FileKind, FileSystem, FsError, OpenOptions, RealFs, SimFs,
    create_dirs_synced, read_file, replace_file,
};

/// Makes a test per file system of each check: `check(fs, dir)` receives an empty directory.
macro_rules! conformance {
    ($($check:ident)*) => {
        mod real {
            $(#[test] fn $check() {
                let dir = tempfile::tempdir().expect("a directory for the test");
                super::$check(&vfs::RealFs, dir.path());
            })*
        }
        mod sim {
            $(#[test] fn $check() {
                let (fs, dir) = (vfs::SimFs::new(1), std::path::Path::new("/dir"));
                vfs::FileSystem::create_dir_all(&fs, dir).expect("a fresh disk");
                super::$check(&fs, dir);
            })*
        }
    };
}

conformance! {
    opening_tells_missing_present_and_directory_apart
    transfers_name_their_position
    gaps_growth_and_cuts_read_as_zero
    vectored_writes_join_slices_and_survive_many
    reading_past_the_end_names_what_was_missing
    read_only_handles_refuse_changes
    allocation_reserves_and_holes_give_back
    renames_replace_atomically_and_obey_kinds
    links_share_one_file
    removed_files_live_while_open
    directories_list_in_order_and_go_when_empty
    locks_exclude_and_name_their_owner
    direct_files_take_aligned_transfers
    mapped_files_read_as_others_do
    space_is_reported
    replacing_and_reading_whole_files
    directories_are_made_along_a_path
}

fn put(fs: &dyn FileSystem, path: &Path, bytes: &[u8]) -> Arc<dyn File> {
    let file = fs.open(path, OpenOptions::write().create().truncate()).expect("opens");
    file.write_all_at(bytes, 0).expect("writes");
    file
}

fn get(fs: &dyn FileSystem, path: &Path) -> Vec<u8> {
    read_file(fs, path, 1 << 30).expect("reads")
}

fn kind<T: std::fmt::Debug>(result: Result<T, FsError>) -> ErrorKind {
    result.expect_err("must fail").kind()
}

fn opening_tells_missing_present_and_directory_apart(fs: &dyn FileSystem, dir: &Path) {
    let path = dir.join("a");
    assert_eq!(kind(fs.open(&path, OpenOptions::read())), ErrorKind::NotFound);
    assert_eq!(kind(fs.open(&path, OpenOptions::write())), ErrorKind::NotFound);
    assert!(!fs.exists(&path).expect("answers"));
    let file = fs.open(&path, OpenOptions::write().create_new()).expect("creates");
    assert_eq!((file.path(), file.len().expect("length"), file.alignment()), (&*path, 0, 1));
    assert!(fs.exists(&path).expect("answers"));
    assert!(fs.open(&path, OpenOptions::write().create_new()).expect_err("is there").is_already_exists());

    file.write_all_at(b"kept", 0).expect("writes");
    fs.open(&path, OpenOptions::write().create()).expect("opens the present one");
    assert_eq!(get(fs, &path), b"kept");
    fs.open(&path, OpenOptions::write().truncate()).expect("cuts");
    assert_eq!(get(fs, &path), b"");

    for options in [OpenOptions::read(), OpenOptions::write().create()] {
        assert_eq!(kind(fs.open(dir, options)), ErrorKind::IsADirectory);
    }
    assert_eq!(kind(fs.open(&path.join("below-a-file"), OpenOptions::read())), ErrorKind::NotADirectory);
    assert_eq!(kind(fs.open(&dir.join("no/such"), OpenOptions::write().create())), ErrorKind::NotFound);
    assert_eq!(kind(fs.metadata(&path.join("x"))), ErrorKind::NotADirectory);
}

fn transfers_name_their_position(fs: &dyn FileSystem, dir: &Path) {
    let file = put(fs, &dir.join("a"), b"0123456789");
    let other = fs.open(&dir.join("a"), OpenOptions::read()).expect("a second handle");
    file.write_all_at(b"xy", 3).expect("writes inside");
    file.write_all_at(b"zz", 9).expect("writes across the end");
    let mut all = [0; 11];
    other.read_exact_at(&mut all, 0).expect("reads");
    assert_eq!(&all, b"012xy5678zz");
    let mut some = [0; 4];
    assert_eq!(other.read_at(&mut some, 9).expect("reads what there is"), 2);
    assert_eq!(&some[..2], b"zz");
    assert_eq!(other.read_at(&mut some, 11).expect("the end"), 0);
    assert_eq!(other.read_at(&mut some, 1 << 20).expect("beyond the end"), 0);
    assert_eq!(file.write_at(b"", 50).expect("nothing to do"), 0);
    assert_eq!(file.len().expect("length"), 11);
    file.sync_data().expect("syncs");
    file.sync_all().expect("syncs");
    other.sync_data().expect("a handle for reading syncs too");
}

fn gaps_growth_and_cuts_read_as_zero(fs: &dyn FileSystem, dir: &Path) {
    let path = dir.join("a");
    let file = put(fs, &path, b"");
    file.write_all_at(b"end", 10_000).expect("writes behind a gap");
    let mut expected = vec![0; 10_000];
    expected.extend(b"end");
    assert_eq!(get(fs, &path), expected);
    file.set_len(10_001).expect("cuts");
    file.set_len(20_000).expect("grows");
    expected.truncate(10_001);
    expected.resize(20_000, 0);
    assert_eq!(get(fs, &path), expected);
    let metadata = fs.metadata(&path).expect("metadata");
    assert_eq!((metadata.kind, metadata.len), (FileKind::File, 20_000));
}

fn vectored_writes_join_slices_and_survive_many(fs: &dyn FileSystem, dir: &Path) {
    let path = dir.join("a");
    let file = put(fs, &path, b"");
    let pieces: Vec<[u8; 3]> = (0..3000u32).map(|i| [i as u8, (i >> 8) as u8, 7]).collect();
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    slices.insert(5, IoSlice::new(&[]));
    assert_eq!(file.write_vectored_at(&slices, 2).expect("one call takes 1,024 slices"), 1023 * 3);
    file.write_all_vectored_at(&mut slices, 2).expect("all of them");
    let written = get(fs, &path);
    assert_eq!((written.len(), &written[..2]), (2 + 9000, &[0, 0][..]));
    assert_eq!(written[2..], pieces.concat());
    file.write_all_vectored_at(&mut [], 0).expect("nothing to do");
    file.write_all_vectored_at(&mut [IoSlice::new(b"")], 0).expect("nothing to do");
    file.write_all_synced_at(&mut [], 0).expect("nothing to do");
    file.write_all_synced_at(&mut [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cd")], 9001).expect("writes");
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    file.write_all_synced_at(&mut slices, 10_000).expect("more than one call takes");
    let written = get(fs, &path);
    assert_eq!((&written[9001..9005], written.len()), (&b"abcd"[..], 19_000));
    assert_eq!(written[10_000..], pieces.concat());
}

fn reading_past_the_end_names_what_was_missing(fs: &dyn FileSystem, dir: &Path) {
    let file = put(fs, &dir.join("a"), b"0123456789");
    let error = file.read_exact_at(&mut [0; 8], 5).expect_err("only five are there");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert!(matches!(error, FsError::EndOfFile { offset: 5, wanted: 8, got: 5, .. }), "{error:?}");
    assert_eq!(error.path(), dir.join("a"));
}

fn read_only_handles_refuse_changes(fs: &dyn FileSystem, dir: &Path) {
    put(fs, &dir.join("a"), b"kept");
    let file = fs.open(&dir.join("a"), OpenOptions::read()).expect("opens");
    for refused in [
        file.write_all_at(b"x", 0),
        file.write_all_synced_at(&mut [IoSlice::new(b"x")], 0),
        file.set_len(0),
        file.allocate(0, 10, AllocateLen::Extend),
        file.punch_hole(0, 1),
    ] {
        refused.expect_err("the handle is for reading");
    }
    assert_eq!(get(fs, &dir.join("a")), b"kept");
}

fn allocation_reserves_and_holes_give_back(fs: &dyn FileSystem, dir: &Path) {
    let path = dir.join("a");
    let file = put(fs, &path, &[7; 100]);
    file.allocate(0, 1 << 20, AllocateLen::Keep).expect("reserves");
    assert_eq!(file.len().expect("length"), 100);
    assert!(fs.metadata(&path).expect("metadata").allocated >= 1 << 20);
    file.allocate(0, 1 << 20, AllocateLen::Extend).expect("reserves");
    assert_eq!(file.len().expect("length"), 1 << 20);
    assert!(get(fs, &path)[100..].iter().all(|&byte| byte == 0));

    file.write_all_at(&[7; 40_000], 0).expect("writes");
    file.sync_all().expect("syncs");
    file.expect_reads(0, 40_000);
    file.forget_cached(0, 40_000);
    assert!(get(fs, &path)[..40_000].iter().all(|&byte| byte == 7), "a hint changes nothing");
    file.punch_hole(1000, 30_000).expect("punches");
    let bytes = get(fs, &path);
    assert_eq!(bytes.len(), 1 << 20);
    assert!(bytes[1000..31_000].iter().all(|&byte| byte == 0));
    assert!(bytes[..1000].iter().chain(&bytes[31_000..40_000]).all(|&byte| byte == 7));
    assert!(fs.metadata(&path).expect("metadata").allocated < 1 << 20);

    file.set_len(10).expect("cuts");
    assert!(fs.metadata(&path).expect("metadata").allocated <= 64 << 10);
    assert_eq!(kind(file.allocate(0, 0, AllocateLen::Keep)), ErrorKind::InvalidInput);
    assert_eq!(kind(file.punch_hole(5, 0)), ErrorKind::InvalidInput);
}

fn renames_replace_atomically_and_obey_kinds(fs: &dyn FileSystem, dir: &Path) {
    let (a, b) = (dir.join("a"), dir.join("b"));
    let file = put(fs, &a, b"one");
    let replaced = put(fs, &b, b"two");
    fs.rename(&a, &b).expect("renames");
    assert_eq!(get(fs, &b), b"one");
    assert_eq!(kind(fs.rename(&a, &b)), ErrorKind::NotFound);
    file.write_all_at(b"ONE", 0).expect("the handle follows its file");
    assert_eq!(get(fs, &b), b"ONE");
    let mut old = [0; 3];
    replaced.read_exact_at(&mut old, 0).expect("the replaced file lives while open");
    assert_eq!(&old, b"two");
    fs.rename(&b, &b).expect("onto itself");
    assert_eq!(get(fs, &b), b"ONE");
}

fn links_share_one_file(fs: &dyn FileSystem, dir: &Path) {
    let (a, b) = (dir.join("a"), dir.join("b"));
    put(fs, &a, b"one");
    fs.hard_link(&a, &b).expect("links");
    fs.open(&b, OpenOptions::write()).expect("opens").write_all_at(b"T", 0).expect("writes");
    assert_eq!(get(fs, &a), b"Tne");
    assert!(fs.hard_link(&a, &b).expect_err("taken").is_already_exists());
    assert!(fs.hard_link(&dir.join("none"), &dir.join("c")).expect_err("missing").is_not_found());
    assert_eq!(kind(fs.hard_link(dir, &dir.join("c"))), ErrorKind::PermissionDenied);
    fs.rename(&a, &b).expect("does nothing: two names of one file");
    assert!(fs.exists(&a).expect("answers"), "POSIX keeps both names");
    fs.remove_file(&a).expect("removes");
    assert_eq!(get(fs, &b), b"Tne");
}

fn removed_files_live_while_open(fs: &dyn FileSystem, dir: &Path) {
    let path = dir.join("a");
    let file = put(fs, &path, b"still here");
    fs.remove_file(&path).expect("removes");
    assert!(fs.remove_file(&path).expect_err("gone").is_not_found());
    put(fs, &path, b"another");
    let mut bytes = [0; 10];
    file.read_exact_at(&mut bytes, 0).expect("reads");
    file.write_all_at(b"more", 10).expect("writes");
    file.sync_all().expect("syncs");
    assert_eq!((&bytes, file.len().expect("length")), (b"still here", 14));
    assert_eq!(get(fs, &path), b"another");
    assert_eq!(kind(fs.remove_file(dir)), ErrorKind::IsADirectory);
}

fn directories_list_in_order_and_go_when_empty(fs: &dyn FileSystem, dir: &Path) {
    fs.create_dir_all(&dir.join("m/deep")).expect("creates");
    fs.create_dir_all(&dir.join("m/deep")).expect("is there already");
    for name in ["z", "b", "a10", "a9"] {
        put(fs, &dir.join(name), b"");
    }
    let listed = fs.read_dir(dir).expect("lists");
    let names: Vec<_> = listed.iter().map(|entry| entry.name.to_str().expect("UTF-8")).collect();
    assert_eq!(names, ["a10", "a9", "b", "m", "z"]);
    assert!(listed.iter().all(|entry| (entry.kind == FileKind::Dir) == (entry.name == "m")));
    assert_eq!(fs.metadata(&dir.join("m")).expect("metadata").kind, FileKind::Dir);
    assert_eq!(kind(fs.read_dir(&dir.join("z"))), ErrorKind::NotADirectory);
    assert!(fs.read_dir(&dir.join("none")).expect_err("missing").is_not_found());
    assert!(fs.create_dir_all(&dir.join("z")).expect_err("a file is there").is_already_exists());
    assert_eq!(kind(fs.create_dir_all(&dir.join("z/below"))), ErrorKind::NotADirectory);

    assert_eq!(kind(fs.remove_dir(&dir.join("m"))), ErrorKind::DirectoryNotEmpty);
    assert_eq!(kind(fs.remove_dir(&dir.join("z"))), ErrorKind::NotADirectory);
    assert!(fs.remove_dir(&dir.join("none")).expect_err("missing").is_not_found());
    fs.remove_dir(&dir.join("m/deep")).expect("removes");
    fs.remove_dir(&dir.join("m")).expect("removes");
    fs.sync_dir(dir).expect("syncs");
    assert!(fs.sync_dir(&dir.join("m")).expect_err("gone").is_not_found());
    assert_eq!(kind(fs.sync_dir(&dir.join("z"))), ErrorKind::NotADirectory);
}

fn locks_exclude_and_name_their_owner(fs: &dyn FileSystem, dir: &Path) {
    let path = dir.join("lock");
    put(fs, &path, b"an owner long gone, with a long name\n");
    let lock = fs.try_lock(&path).expect("free");
    let me = std::process::id();
    match fs.try_lock(&path) {
        Err(error @ FsError::Locked { pid, .. }) if pid == Some(me) => {
            assert!(error.to_string().ends_with(&format!("lock: locked by process {me}")), "{error}");
        }
        other => panic!("must name the owner: {other:?}"),
    }
    let elsewhere = fs.try_lock(&dir.join("lock2")).expect("another file, another lock");
    drop(lock);
    let again = fs.try_lock(&path).expect("given back");
    assert_eq!(get(fs, &path), format!("{me}\n").as_bytes());
    drop((again, elsewhere));
}

fn direct_files_take_aligned_transfers(fs: &dyn FileSystem, dir: &Path) {
    let path = dir.join("a");
    let file = fs.open(&path, OpenOptions::write().create_new().direct()).expect("opens");
    let mut block = AlignedBuf::zeroed(2 * DIRECT_ALIGNMENT);
    block.fill(7);
    file.write_all_at(&block, 0).expect("aligned");
    file.write_all_vectored_at(&mut [IoSlice::new(&block[..4096]), IoSlice::new(&block[..4096])], 8192)
        .expect("aligned");
    file.write_all_synced_at(&mut [IoSlice::new(&block)], 0).expect("aligned");
    block.fill(0);
    file.read_exact_at(&mut block, 4096).expect("aligned");
    assert!(block.iter().all(|&byte| byte == 7));
    file.sync_all().expect("syncs");
    file.set_len(10_000).expect("cuts");
    assert_eq!(file.read_at(&mut block, 8192).expect("the tail"), 10_000 - 8192);
    // Where direct I/O was refused, any transfer works; where it was granted, this one may not.
    match file.alignment() {
        1 => file.write_all_at(&block[1..100], 3).expect("buffered"),
        DIRECT_ALIGNMENT => assert_eq!(kind(file.write_at(&block[1..100], 3)), ErrorKind::InvalidInput),
        other => panic!("alignment {other}"),
    }
}

fn mapped_files_read_as_others_do(fs: &dyn FileSystem, dir: &Path) {
    let path = dir.join("a");
    let bytes: Vec<u8> = (0..100_000).map(|at: u32| (at % 251) as u8).collect();
    let writer = put(fs, &path, &bytes);
    let file = fs.open(&path, OpenOptions::read().mapped()).expect("opens");
    // Enough reads to detect that it is in memory.
    let ranges = (0..500).map(|at| (at * 199, (at * 97 + 1) % 20_000)).chain([(100, 90_000), (99_999, 1)]);
    for (from, len) in ranges.filter(|(from, len)| from + len <= bytes.len()) {
        let mut found = vec![0; len];
        file.read_exact_at(&mut found, from as u64).expect("is there");
        assert!(found == bytes[from..from + len]);
    }
    let mut found = [0; 10];
    assert_eq!(file.read_at(&mut found, 99_997).expect("the tail"), 3);
    writer.write_all_at(b"changed", 5000).expect("writes");
    writer.write_all_at(b"grown", 100_000).expect("writes");
    file.read_exact_at(&mut found[..7], 5000).expect("is there");
    file.read_exact_at(&mut found[7..], 100_002).expect("is there");
    assert_eq!(&found, b"changedown");
    writer.set_len(10).expect("cuts");
    for _ in 0..200 {
        let error = file.read_exact_at(&mut found, 50_000).expect_err("is gone");
        assert!(matches!(error, FsError::EndOfFile { got: 0, .. }), "{error}");
    }
    file.read_exact_at(&mut found, 0).expect("is left");
    assert_eq!(found, bytes[..10]);
    let empty = dir.join("empty");
    put(fs, &empty, b"");
    assert_eq!(
        fs.open(&empty, OpenOptions::read().mapped()).expect("opens").read_at(&mut found, 0).expect("no error"),
        0
    );
}

fn space_is_reported(fs: &dyn FileSystem, dir: &Path) {
    let space = fs.free_space(dir).expect("answers");
    assert!(space.available <= space.total && space.total > 1 << 20, "{space:?}");
    assert!(fs.free_space(&dir.join("none")).expect_err("missing").is_not_found());
}

fn replacing_and_reading_whole_files(fs: &dyn FileSystem, dir: &Path) {
    let path = dir.join("conf");
    replace_file(fs, &path, b"one").expect("makes it");
    put(fs, &dir.join("conf.new"), b"left by a crash, and longer");
    replace_file(fs, &path, b"two").expect("replaces it");
    assert_eq!(get(fs, &path), b"two");
    assert_eq!(fs.read_dir(dir).expect("lists").len(), 1, "nothing is left beside it");
    assert_eq!(kind(read_file(fs, &path, 2)), ErrorKind::FileTooLarge);
    assert!(read_file(fs, &dir.join("none"), 2).expect_err("missing").is_not_found());
    assert!(replace_file(fs, &dir.join("none/conf"), b"x").expect_err("no directory").is_not_found());
}

fn directories_are_made_along_a_path(fs: &dyn FileSystem, dir: &Path) {
    create_dirs_synced(fs, &dir.join("a/b/c")).expect("makes three");
    create_dirs_synced(fs, &dir.join("a/b/c")).expect("has nothing to do");
    assert_eq!(fs.metadata(&dir.join("a/b/c")).expect("is there").kind, FileKind::Dir);
    put(fs, &dir.join("file"), b"");
    assert!(create_dirs_synced(fs, &dir.join("file")).expect_err("a file").is_already_exists());
}

/// New files and directories are accessible to the owner alone, whatever the process' mask; existing ones keep their
/// mode.
#[test]
fn real_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let temp = tempfile::tempdir().expect("a directory for the test");
    let mode = |name: &str| std::fs::metadata(temp.path().join(name)).expect("is there").permissions().mode() & 0o777;
    RealFs.create_dir_all(&temp.path().join("d/e")).expect("creates");
    put(&RealFs, &temp.path().join("d/file"), b"");
    replace_file(&RealFs, &temp.path().join("d/replaced"), b"").expect("makes it");
    drop(RealFs.try_lock(&temp.path().join("d/lock")).expect("free"));
    assert_eq!(["d", "d/e"].map(mode), [0o700; 2]);
    assert_eq!(["d/file", "d/replaced", "d/lock"].map(mode), [0o600; 3]);
    std::fs::set_permissions(temp.path().join("d/file"), PermissionsExt::from_mode(0o640)).expect("sets");
    put(&RealFs, &temp.path().join("d/file"), b"");
    assert_eq!(mode("d/file"), 0o640);
}

/// Directory renames, with every combination of existing targets.
#[test]
fn directory_renames_agree() {
    let temp = tempfile::tempdir().expect("a directory for the test");
    let sim = SimFs::new(1);
    let mut answers = Vec::new();
    for (fs, root) in [(&RealFs as &dyn FileSystem, temp.path()), (&sim, Path::new("/r"))] {
        let mut kinds = Vec::new();
        for from in ["file", "empty", "full"] {
            for to in ["none", "file2", "empty2", "full2", "full/inside"] {
                let dir = root.join(format!("{from}-{}", to.replace('/', "-")));
                for sub in ["empty", "empty2", "full", "full2"] {
                    fs.create_dir_all(&dir.join(sub)).expect("creates");
                }
                for file in ["file", "file2", "full/x", "full2/x"] {
                    put(fs, &dir.join(file), file.as_bytes());
                }
                let outcome = fs.rename(&dir.join(from), &dir.join(to)).map_err(|error| error.kind());
                kinds.push((from, to, outcome, fs.exists(&dir.join(from)).expect("answers")));
            }
        }
        answers.push(kinds);
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].iter().any(|answer| answer.2.is_ok()) && answers[0].iter().any(|answer| answer.2.is_err()));
}

/// One call on one of a few paths.
#[derive(Clone, Debug)]
enum Step {
    Write(u8, u16, u16),
    Read(u8, u16, u16),
    SetLen(u8, u16),
    Allocate(u8, u16, u16, bool),
    Punch(u8, u16, u16),
    Reopen(u8, u8),
    Close(u8),
    Rename(u8, u8),
    Link(u8, u8),
    Remove(u8),
    MakeDir(u8),
    RemoveDir(u8),
    Sync(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let path = 0..6u8;
    let at = 0..20_000u16;
    prop_oneof![
        4 => (path.clone(), at.clone(), 0..9000u16).prop_map(|(p, o, n)| Step::Write(p, o, n)),
        2 => (path.clone(), at.clone(), 0..9000u16).prop_map(|(p, o, n)| Step::Read(p, o, n)),
        2 => (path.clone(), at.clone()).prop_map(|(p, n)| Step::SetLen(p, n)),
        1 => (path.clone(), at.clone(), 0..9000u16, any::<bool>()).prop_map(|(p, o, n, k)| Step::Allocate(p, o, n, k)),
        1 => (path.clone(), at, 0..9000u16).prop_map(|(p, o, n)| Step::Punch(p, o, n)),
        4 => (path.clone(), 0..5u8).prop_map(|(p, how)| Step::Reopen(p, how)),
        1 => path.clone().prop_map(Step::Close),
        3 => (path.clone(), path.clone()).prop_map(|(a, b)| Step::Rename(a, b)),
        2 => (path.clone(), path.clone()).prop_map(|(a, b)| Step::Link(a, b)),
        2 => path.clone().prop_map(Step::Remove),
        1 => path.clone().prop_map(Step::MakeDir),
        1 => path.clone().prop_map(Step::RemoveDir),
        1 => path.prop_map(Step::Sync),
    ]
}

/// Two directories with three names each; handles stay open across renames and removals.
struct Walker<'a> {
    fs: &'a dyn FileSystem,
    root: &'a Path,
    open: Vec<Option<Arc<dyn File>>>,
}

impl<'a> Walker<'a> {
    fn new(fs: &'a dyn FileSystem, root: &'a Path) -> Self {
        for sub in ["d0", "d1"] {
            fs.create_dir_all(&root.join(sub)).expect("creates");
        }
        Self { fs, root, open: vec![None; 6] }
    }

    fn path(&self, index: u8) -> std::path::PathBuf {
        self.root.join(format!("d{}/n{}", index / 3, index % 3))
    }

    /// The answer of the call, as text for comparison.
    fn take(&mut self, step: &Step) -> String {
        let with = |walker: &Self, index: u8, act: &dyn Fn(&dyn File) -> Result<String, FsError>| {
            walker.open[usize::from(index)].as_ref().map(|file| act(&**file)).unwrap_or(Ok("closed".into()))
        };
        let answer = match *step {
            Step::Write(p, at, n) => with(self, p, &|file| {
                file.write_all_at(&vec![n as u8 | 1; n.into()], at.into()).map(|()| String::new())
            }),
            Step::Read(p, at, n) => with(self, p, &|file| {
                let mut buf = vec![0; n.into()];
                file.read_at(&mut buf, at.into()).map(|n| format!("{n} {:?}", base::checksum::crc32c(&buf)))
            }),
            Step::SetLen(p, len) => {
                with(self, p, &|file| file.set_len(len.into()).and_then(|()| Ok(file.len()?.to_string())))
            }
            Step::Allocate(p, at, n, keep) => with(self, p, &|file| {
                let length = if keep { AllocateLen::Keep } else { AllocateLen::Extend };
                file.allocate(at.into(), n.into(), length).and_then(|()| Ok(file.len()?.to_string()))
            }),
            Step::Punch(p, at, n) => {
                with(self, p, &|file| file.punch_hole(at.into(), n.into()).and_then(|()| Ok(file.len()?.to_string())))
            }
            Step::Sync(p) => with(self, p, &|file| file.sync_data().map(|()| String::new())),
            Step::Reopen(p, how) => {
                let options = match how {
                    0 => OpenOptions::read(),
                    1 => OpenOptions::write(),
                    2 => OpenOptions::write().create(),
                    3 => OpenOptions::write().create_new(),
                    _ => OpenOptions::write().create().truncate(),
                };
                self.fs.open(&self.path(p), options).map(|file| {
                    self.open[usize::from(p)] = Some(file);
                    String::new()
                })
            }
            Step::Close(p) => {
                self.open[usize::from(p)] = None;
                Ok(String::new())
            }
            Step::Rename(a, b) => self.fs.rename(&self.path(a), &self.path(b)).map(|()| String::new()),
            Step::Link(a, b) => self.fs.hard_link(&self.path(a), &self.path(b)).map(|()| String::new()),
            Step::Remove(p) => self.fs.remove_file(&self.path(p)).map(|()| String::new()),
            Step::MakeDir(p) => self.fs.create_dir_all(&self.path(p)).map(|()| String::new()),
            Step::RemoveDir(p) => self.fs.remove_dir(&self.path(p)).map(|()| String::new()),
        };
        answer.unwrap_or_else(|error| format!("{:?} {:?}", error.op(), error.raw_os_error()))
    }

    /// All names with kind and contents.
    fn contents(&self) -> String {
        let mut all = String::new();
        for sub in ["d0", "d1"] {
            for entry in self.fs.read_dir(&self.root.join(sub)).expect("lists") {
                let path = self.root.join(sub).join(&entry.name);
                let bytes = if entry.kind == FileKind::File { get(self.fs, &path) } else { Vec::new() };
                let checksum = base::checksum::crc32c(&bytes);
                all += &format!("{sub}/{:?} {:?} {} {checksum}\n", entry.name, entry.kind, bytes.len());
            }
        }
        all
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The simulated file system answers every call as the real one does, including the error number.
    #[test]
    fn random_calls_agree(steps in prop::collection::vec(step(), 1..60)) {
        let temp = tempfile::tempdir().expect("a directory for the test");
        let sim = SimFs::new(1);
        let (mut real, mut simulated) = (Walker::new(&RealFs, temp.path()), Walker::new(&sim, Path::new("/r")));
        for (at, step) in steps.iter().enumerate() {
            prop_assert_eq!(real.take(step), simulated.take(step), "step {}: {:?}", at, step);
        }
        prop_assert_eq!(real.contents(), simulated.contents());
    }
}
