//! An in-memory file system that loses, on request, whatever a real one may lose.
//!
//! ```text
//!   run --> SimFs -- crash at operation n --> every call fails
//!             |                                    |
//!             | record_crash_points                | recover(PowerCut { seed })
//!             v                                    v
//!        CrashPoint per operation -- power_cut(seed) --> SimFs of the next boot
//! ```
//!
//! A crash point is a seed and an operation number. Numbers count the calls that can change what a reboot finds: opens
//! that create, writes, changes of length and space, syncs, name changes. A write hit by the crash may have arrived or
//! not; a sync hit by it has promised nothing.
//!
//! S1. What a sync covered, under names whose directories (up to the root) were synced since they changed, survives
//!     every power cut byte for byte, except where it was written again since.
//! S2. Everything else is drawn. Each pending 512-byte sector is new, old, zero or torn independently, in any order.
//!     Each length change arrives with or without its data. Each name change arrives or not, but changes of one name
//!     keep their order and a rename is atomic. A new name may arrive without its file's data.
//! S3. The same run, number and seed give the same disk.
//! S4. After a crash no call succeeds and nothing changes, whatever thread or handle it comes from.
//! S5. A failed sync drops changes: the next one returns `Ok` and saves nothing that the failed one should have saved.
//! S6. A process kill loses nothing once a call has returned: the page cache survives.
//!
//! S7. With `SimOptions::is_dax`, mapped files are persistent memory: every subset of the 8-byte words that are not
//!     fenced is a possible crash ([`CrashPoint::with_word_state`] enumerates them). Otherwise S2 holds for them too.
//!
//! The model is more hostile than any one file system: a program that survives it relies on POSIX and on nothing else.
//! Not modelled: modification times, permissions, and stale blocks of other files in new ones.
//!
//! Models: Pillai et al., OSDI 2014 (which states a crash may leave); Rebello et al., USENIX ATC 2020 (failed syncs);
//! Bairavasundaram et al., FAST 2008 (misdirected writes, lost sectors).
//!
//! # Testing code against crashes
//!
//! Run once with [`SimFs::record_crash_points`], then draw any number of reboots of every operation:
//!
//! ```
//! use std::path::Path;
//! use vfs::{FileSystem, SimFs, read_file, replace_file};
//!
//! let fs = SimFs::new(1);
//! let path = Path::new("/settings");
//! replace_file(&fs, path, b"old")?;
//! fs.record_crash_points();
//! replace_file(&fs, path, b"new")?;
//! for point in fs.take_crash_points() {
//!     for seed in 0..20 {
//!         let found = read_file(&point.power_cut(seed), path, 1024)?;
//!         assert!(found == b"old" || found == b"new", "operation {}, seed {seed}", point.operation());
//!     }
//! }
//! # Ok::<(), vfs::FsError>(())
//! ```
//!
//! A crash point is (operation number, seed). To reproduce one, run with [`SimFs::crash_at`] and [`SimFs::recover`],
//! and print [`SimFs::trace`].
//!
//! Speed, by `cargo bench -p onggi-vfs` on one core of a 2-core AMD EPYC guest, for a log of 400 records of 100 bytes,
//! synced after every fourth: 775,000 cuts and boots a second, 138,000 with a full recovery after each, 9,700 with a
//! separate run for each point. Recording every operation of 64 MiB of writes takes 1.8 times as long as the run alone.

mod cow;
mod disk;
mod draw;
mod fault;
mod file_node;
mod image;
mod names;
mod sim_file;
mod sim_region;
mod state;
mod trace;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use draw::CrashModel;
pub use fault::Fault;
pub use state::SyncCall;
pub use trace::{Argument, Outcome, TraceEntry};

use crate::error::{FsError, Op, Result};
use crate::file_system::{
    AllocateLen, Create, DirEntry, File, FileLock, FileSystem, Metadata, OpenOptions, Space, lock_owner, lock_text,
};
use crate::region::{Region, RegionKind};
use disk::Disk;
use sim_file::{SimFile, SimLock};
use sim_region::SimRegion;
use state::{Call, Core};

/// Properties of a simulated machine. `SimOptions::default()` has no faults and unlimited space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Decides everything random while the machine runs (power cuts have their own seeds).
    pub seed: u64,
    /// Size of the device in bytes; file data uses it in pages of 4 KiB. `None` for no limit.
    pub capacity_bytes: Option<u64>,
    /// What a power cut may do to pending sectors.
    pub crash: CrashModel,
    /// One in this many reads and writes transfers only a part; 0 for none.
    pub short_transfer_one_in: u32,
    /// One in this many reads and writes fails with EINTR, without effect; 0 for none.
    pub interrupt_one_in: u32,
    /// Mapped files are on persistent memory. Without it they are in the page cache.
    pub is_dax: bool,
    /// The modification time of all files, in milliseconds since 1970; `None` if unknown.
    pub modified_ms: Option<i64>,
    /// Number of operations that the trace keeps.
    pub trace_len_max: usize,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            capacity_bytes: None,
            crash: CrashModel::default(),
            short_transfer_one_in: 0,
            interrupt_one_in: 0,
            is_dax: false,
            modified_ms: None,
            trace_len_max: 1024,
        }
    }
}

/// How a machine stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// A power cut: the seed draws what survives (S1, S2).
    PowerCut {
        /// The same disk and seed give the same result.
        seed: u64,
    },
    /// The process exits or is ended by `kill -9`: the page cache survives (S6).
    ProcessKill,
}

/// The simulated file system; the module describes its rules. A clone is another handle of the same machine.
#[derive(Clone)]
pub struct SimFs {
    core: Arc<Core>,
}

impl SimFs {
    /// An empty device without limits or faults.
    pub fn new(seed: u64) -> Self {
        Self::with_options(SimOptions { seed, ..SimOptions::default() })
    }

    /// An empty device.
    pub fn with_options(options: SimOptions) -> Self {
        Self { core: Arc::new(Core::boot(Disk::new(), options)) }
    }

    // ---- Crashes.

    /// Number of operations begun since the boot.
    pub fn operations(&self) -> u64 {
        self.core.state.lock().operations
    }

    /// Stops the machine during the operation with this number (1 is the first since the boot).
    pub fn crash_at(&self, operation: u64) {
        self.core.state.lock().crash_at = Some(operation);
    }

    /// Stops the machine now.
    pub fn crash(&self) {
        self.core.state.lock().crashed = true;
    }

    /// Whether the machine has stopped.
    pub fn has_crashed(&self) -> bool {
        self.core.state.lock().crashed
    }

    /// Stops this machine if it still runs, and boots the next one from the surviving state. Injected faults and the
    /// sync hook do not survive; bad ranges of the medium, its size and the options do.
    pub fn recover(&self, outage: Outage) -> SimFs {
        self.crash();
        self.crash_point().after(outage)
    }

    /// The state that a crash at this moment would find. Cheap: shares all data.
    pub fn crash_point(&self) -> CrashPoint {
        let state = self.core.state.lock();
        CrashPoint { operation: state.operations, disk: state.disk.clone(), options: state.options.clone() }
    }

    /// Keeps the crash point of every operation from now on: one run then yields all of them, without a run per point.
    pub fn record_crash_points(&self) {
        self.core.state.lock().recorded.get_or_insert_default();
    }

    /// The crash points since [`record_crash_points`](Self::record_crash_points) or the last call of this method.
    pub fn take_crash_points(&self) -> Vec<CrashPoint> {
        self.core.state.lock().recorded.as_mut().map(std::mem::take).unwrap_or_default()
    }

    // ---- Faults.

    /// Injects a fault.
    pub fn inject(&self, fault: Fault) {
        self.core.state.lock().faults.plant(fault);
    }

    /// Removes the injected faults that are not used up.
    pub fn clear_faults(&self) {
        self.core.state.lock().faults.clear();
    }

    /// Number of calls that injected faults have affected: a test checks it to know that its fault occurred.
    pub fn faults_fired(&self) -> u64 {
        self.core.state.lock().faults.fired()
    }

    /// Changes the size of the device; `None` for no limit. Stored data stays, even beyond the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.core.state.lock().options.capacity_bytes = bytes;
    }

    /// Calls `hook` in each sync of a file or directory, after it is decided which changes the sync covers and before
    /// they are durable. The hook may block, like a slow or stalled device. Other calls continue meanwhile, and a crash
    /// meanwhile finds the changes pending.
    pub fn on_sync(&self, hook: impl Fn(&SyncCall<'_>) + Send + Sync + 'static) {
        self.core.state.lock().sync_hook = Some(Arc::new(hook));
    }

    /// Flips one bit of a file at rest. Has no effect beyond its end.
    ///
    /// # Errors
    /// As for opening the file.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> Result<()> {
        self.at_rest(path, |disk| {
            let mut byte = [0];
            disk.image(path)?.read(&mut byte, offset);
            disk.damage(path, offset, &[byte[0] ^ (1 << (bit % 8))])
        })
    }

    /// Replaces bytes of a file at rest, within its length: a lost sector, a sector of another file.
    ///
    /// # Errors
    /// As for opening the file.
    pub fn damage(&self, path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
        self.at_rest(path, |disk| disk.damage(path, offset, bytes))
    }

    /// Makes reads that touch the range fail with EIO: this many times, or forever with `None`. It is a flaw of the
    /// medium, so it survives crashes and follows the file through renames.
    ///
    /// # Errors
    /// As for opening the file.
    pub fn make_unreadable(&self, path: &Path, range: Range<u64>, times: Option<u32>) -> Result<()> {
        self.at_rest(path, |disk| disk.make_unreadable(path, range, times))
    }

    fn at_rest(&self, path: &Path, act: impl FnOnce(&mut Disk) -> std::io::Result<()>) -> Result<()> {
        act(&mut self.core.state.lock().disk).map_err(|e| FsError::io(Op::Open, path, e))
    }

    // ---- Looking at it.

    /// All files and their contents as programs see them; also after a crash (as of that moment).
    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.core.state.lock().disk.contents()
    }

    /// The last operations.
    pub fn trace(&self) -> Vec<TraceEntry> {
        self.core.state.lock().trace.to_vec()
    }

    fn open_as(&self, op: Op, path: &Path, options: OpenOptions) -> Result<Arc<SimFile>> {
        let shared: Arc<Path> = path.into();
        // Opening changes the disk only if it creates or truncates, and that must be decided under the same lock.
        let node = self.core.run_if_changing(
            Call::new(op, &shared),
            |state| {
                let found = match state.disk.lookup(path) {
                    Ok(node) => Some(node),
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
                    Err(e) => return Err(e),
                };
                match (found, options.create) {
                    (Some(_), Create::New) => Err(rustix::io::Errno::EXIST.into()),
                    (Some(node), _) => {
                        state.disk.file(node)?;
                        Ok((Some(node), options.truncate))
                    }
                    (None, Create::Never) => Err(rustix::io::Errno::NOENT.into()),
                    (None, _) => Ok((None, true)),
                }
            },
            |state, found| {
                let node = match found {
                    Some(node) => node,
                    None => state.disk.create_file(path)?,
                };
                if options.truncate {
                    state.disk.truncate(node);
                }
                state.disk.opened(node);
                Ok(node)
            },
        )?;
        Ok(Arc::new(SimFile::new(Arc::clone(&self.core), node, shared, options)))
    }
}

impl FileSystem for SimFs {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn File>> {
        Ok(self.open_as(Op::Open, path, options)?)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut ancestors: Vec<&Path> = path.ancestors().filter(|p| p.file_name().is_some()).collect();
        ancestors.reverse();
        for dir in ancestors {
            let shared: Arc<Path> = dir.into();
            let is_dir = self.core.look(Call::new(Op::CreateDir, &shared), |state| match state.disk.read_dir(dir) {
                Ok(_) => Ok(true),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
                Err(_) if dir == path => Err(rustix::io::Errno::EXIST.into()),
                Err(e) => Err(e),
            })?;
            if !is_dir {
                self.core.run(Call::new(Op::CreateDir, &shared), |state, _| state.disk.create_dir(dir))?;
            }
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let call = Call { argument: Argument::To(to.into()), ..Call::new(Op::Rename, &from.into()) };
        self.core.run(call, |state, _| state.disk.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.core.run(Call::new(Op::RemoveFile, &path.into()), |state, _| state.disk.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.core.run(Call::new(Op::RemoveDir, &path.into()), |state, _| state.disk.remove_dir(path))
    }

    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()> {
        let call = Call { argument: Argument::To(link.into()), ..Call::new(Op::HardLink, &existing.into()) };
        self.core.run(call, |state, _| state.disk.hard_link(existing, link))
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.core.look(Call::new(Op::ReadDir, &path.into()), |state| state.disk.read_dir(path))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.core.look(Call::new(Op::Metadata, &path.into()), |state| {
            let modified_ms = state.options.modified_ms;
            Ok(Metadata { modified_ms, ..state.disk.metadata(path)? })
        })
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.core.sync(
            Call::new(Op::SyncDir, &path.into()),
            |disk| disk.begin_sync_dir(path),
            |disk, _| disk.finish_sync_dir(),
            |disk, dir, draw, _| disk.fail_sync_dir(dir, draw),
        )
    }

    fn try_lock(&self, path: &Path) -> Result<FileLock> {
        let file = self.open_as(Op::Lock, path, OpenOptions::write().create())?;
        let Some(lock) = SimLock::take(&file) else {
            let mut text = [0; 16];
            let len = file.read_at(&mut text, 0)?;
            return Err(FsError::Locked { path: path.into(), pid: lock_owner(&text[..len]) });
        };
        let text = lock_text(std::process::id());
        match file.write_all_at(text.as_bytes(), 0).and_then(|()| file.set_len(text.len() as u64)) {
            // As in the real file system: held by an unnamed process.
            Err(error) if error.is_out_of_space() => {}
            written => written?,
        }
        Ok(FileLock::new(lock))
    }

    fn free_space(&self, path: &Path) -> Result<Space> {
        self.core.look(Call::new(Op::Space, &path.into()), |state| {
            state.disk.lookup(path)?;
            let total = state.options.capacity_bytes.unwrap_or(u64::MAX);
            Ok(Space { total, available: state.free_pages().saturating_mul(image::PAGE) })
        })
    }

    fn map_writable(&self, path: &Path, options: OpenOptions, len: u64) -> Result<Arc<dyn Region>> {
        if len == 0 {
            return Err(FsError::io(Op::Map, path, rustix::io::Errno::INVAL));
        }
        let options = OpenOptions { write: true, direct: false, ..options };
        let file = self.open_as(Op::Open, path, options)?;
        if file.len()? < len {
            file.allocate(0, len, AllocateLen::Extend)?;
            file.sync_all()?;
        }
        let kind = self.core.look(Call::new(Op::Map, &path.into()), |state| {
            Ok(if state.options.is_dax { RegionKind::Dax } else { RegionKind::Shared })
        })?;
        Ok(Arc::new(SimRegion::new(file, len, kind)))
    }

    fn is_volatile(&self, path: &Path) -> Result<bool> {
        self.metadata(path).map(|_| false)
    }
}

impl fmt::Debug for SimFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.core.state.lock();
        let (operations, crashed) = (state.operations, state.crashed);
        f.debug_struct("SimFs").field("operations", &operations).field("crashed", &crashed).finish_non_exhaustive()
    }
}

/// A disk at the moment of a crash, from which any number of reboots can be drawn.
#[derive(Clone)]
pub struct CrashPoint {
    operation: u64,
    disk: Disk,
    options: SimOptions,
}

impl CrashPoint {
    /// The number of the interrupted operation.
    pub fn operation(&self) -> u64 {
        self.operation
    }

    /// The machine after the outage, booted again.
    pub fn after(&self, outage: Outage) -> SimFs {
        let (disk, salt) = match outage {
            // The operation's number is mixed in, so that one seed draws differently at each of them.
            Outage::PowerCut { seed } => {
                let mut mixed = seed ^ self.operation.rotate_left(32);
                let seed = base::random::splitmix64(&mut mixed);
                (self.disk.after_power_cut(seed, self.options.crash), seed)
            }
            Outage::ProcessKill => (self.disk.after_process_kill(), u64::MAX),
        };
        let mut options = self.options.clone();
        options.seed = options.seed.rotate_left(1) ^ salt;
        SimFs { core: Arc::new(Core::boot(disk, options)) }
    }

    /// The number of states in which a power cut can leave the words of persistent memory that are not fenced: each
    /// subset of them. `None` if there are too many to count.
    pub fn word_states(&self) -> Option<u64> {
        self.disk.word_states()
    }

    /// The machine after a power cut that leaves the words in the state of this number, below
    /// [`word_states`](Self::word_states). Other contents that are not durable are lost, and all names arrive.
    pub fn with_word_state(&self, number: u64) -> SimFs {
        let disk = self.disk.with_word_state(number);
        SimFs { core: Arc::new(Core::boot(disk, self.options.clone())) }
    }

    /// [`after`](Self::after) a power cut.
    pub fn power_cut(&self, seed: u64) -> SimFs {
        self.after(Outage::PowerCut { seed })
    }
}

impl fmt::Debug for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashPoint").field("operation", &self.operation).finish_non_exhaustive()
    }
}
