//! The rules of the simulated file system (S1 and S2 in `src/sim.rs`) as properties: random scripts, a power cut
//! anywhere, and a model of the possible states of each byte, length and name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use vfs::{AllocateLen, Fault, File, FileSystem, Op, OpenOptions, SimFs, SimOptions, errno, read_file};

const NAMES: usize = 4;
const LEN_MAX: usize = 6000;

#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Write(usize, usize, usize),
    SetLen(usize, usize),
    Allocate(usize, usize),
    Punch(usize, usize, usize),
    Sync(usize),
    FailSync(usize),
    Rename(usize, usize),
    Link(usize, usize),
    Remove(usize),
    SyncDir,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..NAMES;
    let at = 0..LEN_MAX / 2;
    let step = prop_oneof![
        3 => name.clone().prop_map(Step::Create),
        6 => (name.clone(), at.clone(), 1..LEN_MAX / 2).prop_map(|(f, o, n)| Step::Write(f, o, n)),
        2 => (name.clone(), at.clone()).prop_map(|(f, n)| Step::SetLen(f, n)),
        1 => (name.clone(), at.clone()).prop_map(|(f, n)| Step::Allocate(f, n)),
        1 => (name.clone(), at, 1..LEN_MAX / 2).prop_map(|(f, o, n)| Step::Punch(f, o, n)),
        4 => name.clone().prop_map(Step::Sync),
        1 => name.clone().prop_map(Step::FailSync),
        2 => (name.clone(), name.clone()).prop_map(|(a, b)| Step::Rename(a, b)),
        1 => (name.clone(), name.clone()).prop_map(|(a, b)| Step::Link(a, b)),
        2 => name.prop_map(Step::Remove),
        3 => Just(Step::SyncDir),
    ];
    prop::collection::vec(step, 1..40)
}

/// The possible states of one file.
struct FileModel {
    handle: Arc<dyn File>,
    live: Vec<u8>,
    /// The possible values of each byte, if the file is long enough to have it.
    bytes: Vec<BTreeSet<u8>>,
    lens: BTreeSet<usize>,
    /// Bytes that a failed sync may have lost and that were not written again: no later sync saves them.
    forgotten: Vec<bool>,
}

impl FileModel {
    fn new(handle: Arc<dyn File>) -> Self {
        let bytes = vec![BTreeSet::from([0]); LEN_MAX];
        Self { handle, live: Vec::new(), bytes, lens: BTreeSet::from([0]), forgotten: vec![false; LEN_MAX] }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        // It may have taken several calls, each with its own length.
        self.lens.extend(self.live.len().max(at)..=end);
        self.live.resize(self.live.len().max(end), 0);
        self.live[at..end].copy_from_slice(bytes);
        for (allowed, byte) in self.bytes[at..end].iter_mut().zip(bytes) {
            allowed.extend([*byte, 0]);
        }
        self.forgotten[at..end].fill(false);
    }

    fn set_len(&mut self, len: usize) {
        self.live.resize(len, 0);
        self.allow_zero(len, LEN_MAX);
        self.lens.insert(len);
    }

    fn zero(&mut self, at: usize, end: usize) {
        let end = end.min(self.live.len());
        if at < end {
            self.live[at..end].fill(0);
            self.allow_zero(at, end);
        }
    }

    fn allow_zero(&mut self, at: usize, end: usize) {
        for allowed in &mut self.bytes[at..end] {
            allowed.insert(0);
        }
        self.forgotten[at..end].fill(false);
    }

    /// S1: after a sync there is one possibility, except where S5 excludes it.
    fn sync(&mut self) {
        self.lens = BTreeSet::from([self.live.len()]);
        for (at, allowed) in self.bytes.iter_mut().enumerate() {
            if !self.forgotten[at] {
                *allowed = BTreeSet::from([self.live.get(at).copied().unwrap_or(0)]);
            }
        }
    }

    /// A sync that fails, and one that succeeds after it.
    fn fail_sync(&mut self) {
        for (forgotten, allowed) in self.forgotten.iter_mut().zip(&self.bytes) {
            *forgotten |= allowed.len() > 1;
        }
        self.sync();
    }

    fn allows(&self, found: &[u8]) -> bool {
        self.lens.contains(&found.len()) && found.iter().zip(&self.bytes).all(|(byte, allowed)| allowed.contains(byte))
    }
}

/// All files ever created, and the files that each name may have.
struct Model {
    fs: SimFs,
    files: Vec<FileModel>,
    live: Vec<Option<usize>>,
    names: Vec<BTreeSet<Option<usize>>>,
    next_byte: u8,
}

fn name(index: usize) -> PathBuf {
    format!("/n{index}").into()
}

impl Model {
    fn new(fs: SimFs) -> Self {
        let names = vec![BTreeSet::from([None]); NAMES];
        Self { fs, files: Vec::new(), live: vec![None; NAMES], names, next_byte: 0 }
    }

    fn set_name(&mut self, index: usize, file: Option<usize>) {
        self.live[index] = file;
        self.names[index].insert(file);
    }

    fn take(&mut self, step: &Step) {
        let fs = self.fs.clone();
        match *step {
            Step::Create(n) => {
                if let Ok(handle) = fs.open(&name(n), OpenOptions::write().create_new()) {
                    self.files.push(FileModel::new(handle));
                    self.set_name(n, Some(self.files.len() - 1));
                }
            }
            Step::Rename(from, to) => {
                if self.live[from].is_some() && self.live[from] != self.live[to] {
                    fs.rename(&name(from), &name(to)).expect("renames");
                    let file = self.live[from];
                    self.set_name(to, file);
                    self.set_name(from, None);
                }
            }
            Step::Link(from, to) => {
                if self.live[from].is_some() && self.live[to].is_none() {
                    fs.hard_link(&name(from), &name(to)).expect("links");
                    self.set_name(to, self.live[from]);
                }
            }
            Step::Remove(n) => {
                if fs.remove_file(&name(n)).is_ok() {
                    self.set_name(n, None);
                }
            }
            Step::SyncDir => {
                fs.sync_dir(Path::new("/")).expect("syncs");
                self.names = self.live.iter().map(|file| BTreeSet::from([*file])).collect();
            }
            Step::Write(n, ..)
            | Step::SetLen(n, ..)
            | Step::Allocate(n, ..)
            | Step::Punch(n, ..)
            | Step::Sync(n)
            | Step::FailSync(n) => {
                if let Some(file) = self.live[n] {
                    self.change_file(file, step);
                }
            }
        }
    }

    fn change_file(&mut self, file: usize, step: &Step) {
        let file = &mut self.files[file];
        match *step {
            Step::Write(_, at, len) => {
                // Each write has its own byte value, so that a found byte identifies its write.
                self.next_byte = self.next_byte.wrapping_add(1).max(1);
                let bytes = vec![self.next_byte; len];
                file.handle.write_all_at(&bytes, at as u64).expect("writes");
                file.write(at, &bytes);
            }
            Step::SetLen(_, len) => {
                file.handle.set_len(len as u64).expect("sets the length");
                file.set_len(len);
            }
            Step::Allocate(_, len) => {
                file.handle.allocate(0, len as u64 + 1, AllocateLen::Extend).expect("reserves");
                file.set_len(file.live.len().max(len + 1));
            }
            Step::Punch(_, at, len) => {
                file.handle.punch_hole(at as u64, len as u64).expect("punches");
                file.zero(at, at + len);
            }
            Step::Sync(_) => {
                file.handle.sync_data().expect("syncs");
                file.sync();
            }
            // The sync fails, and the next one returns a false `Ok`.
            Step::FailSync(_) => {
                self.fs.inject(Fault::fail(Op::SyncData, errno::EIO));
                file.handle.sync_data().expect_err("the fault");
                file.handle.sync_data().expect("the lie");
                file.fail_sync();
            }
            _ => unreachable!("names are changed elsewhere"),
        }
    }

    /// Programs see what they wrote.
    fn check_live(&self) -> Result<(), TestCaseError> {
        for (index, file) in self.live.iter().enumerate() {
            let found = read_file(&self.fs, &name(index), LEN_MAX).ok();
            prop_assert_eq!(&found, &file.map(|file| self.files[file].live.clone()), "name {}", index);
        }
        Ok(())
    }

    /// S1 and S2: a boot finds one of the possibilities.
    fn check_boot(&self, boot: &SimFs) -> Result<(), TestCaseError> {
        for (index, allowed) in self.names.iter().enumerate() {
            let found = read_file(boot, &name(index), LEN_MAX).ok();
            let possible = allowed.iter().any(|file| match (file, &found) {
                (None, None) => true,
                (Some(file), Some(bytes)) => self.files[*file].allows(bytes),
                _ => false,
            });
            let len = found.map(|bytes| bytes.len());
            prop_assert!(possible, "name {}: found length {:?}, allowed files {:?}", index, len, allowed);
            if let Some(len) = len {
                let file = boot.open(&name(index), OpenOptions::write()).expect("opens");
                file.set_len(LEN_MAX as u64).expect("grows");
                let grown = read_file(boot, &name(index), LEN_MAX).expect("reads");
                prop_assert!(grown[len..].iter().all(|&byte| byte == 0), "name {}: bytes behind the end", index);
                file.set_len(len as u64).expect("cuts");
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// What was synced under a synced name is found byte for byte; anything else that is found was written there.
    #[test]
    fn a_power_cut_leaves_only_what_the_rules_allow(steps in steps(), seed: u64) {
        let fs = SimFs::with_options(SimOptions {
            seed,
            short_transfer_one_in: 6,
            interrupt_one_in: 9,
            ..SimOptions::default()
        });
        let mut model = Model::new(fs.clone());
        for step in &steps {
            model.take(step);
            model.check_live()?;
            for draw in 0..6 {
                model.check_boot(&fs.crash_point().power_cut(seed.wrapping_add(draw)))?;
            }
        }
    }

    /// With everything synced, all seeds agree: the boot finds exactly what programs saw. The disk after a boot has
    /// nothing pending, so a second cut changes nothing.
    #[test]
    fn with_everything_synced_nothing_is_drawn(steps in steps(), seed: u64) {
        let fs = SimFs::new(seed);
        let mut model = Model::new(fs.clone());
        for step in steps.iter().filter(|step| !matches!(step, Step::FailSync(_))) {
            model.take(step);
        }
        let unsynced = fs.crash_point().power_cut(seed);
        prop_assert_eq!(unsynced.contents(), unsynced.crash_point().power_cut(seed ^ 1).contents());

        (0..NAMES).for_each(|n| model.take(&Step::Sync(n)));
        model.take(&Step::SyncDir);
        for draw in 0..10 {
            prop_assert_eq!(fs.crash_point().power_cut(seed.wrapping_add(draw)).contents(), fs.contents());
        }
    }
}
