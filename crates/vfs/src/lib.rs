//! Files and directories behind two traits, so that everything Onggi does to a disk can also be done to one that fails.
//!
//! ```text
//!   command log   checkpoint   manifest   sstables   CONFIG REWRITE   lock file
//!        \____________|___________|__________|____________|______________/
//!                                 |
//!                      FileSystem, File  (traits)
//!                          /            \
//!                      RealFs          SimFs -- crash(seed, operation) --> SimFs of the next boot
//!                  one system call     bytes in memory: what is seen, what is durable,
//!                   per method         and the pending changes in between
//! ```
//!
//! Which guarantees a user may build on, on any implementation:
//!
//! V1. Transfers name their position; no handle has a cursor. A handle may be used by any number of threads.
//! V2. Data written before a successful [`File::sync_data`] began is durable when it returns. Nothing else about data
//!     is promised: unsynced writes may survive in any part and any order, and a length without its bytes.
//! V3. A name is durable after [`FileSystem::sync_dir`] of its directory, and only if the directories above are. Syncing
//!     a file does not save its name.
//! V4. [`FileSystem::rename`] within one file system is atomic, also under a crash, but waits for V3 (in both directories)
//!     and does not wait for the file's data.
//! V5. After a failed sync of a file or directory, what it should have saved may be lost, and a later `Ok` says nothing
//!     about it. Never sync that file again: stop, or write everything to a new file.
//! V6. Every error names the operation and the path and keeps the operating system's number: [`FsError`].
//! V7. `read_at` and `write_at` may transfer less than asked for and may fail with `Interrupted`; the `exact` and `all`
//!     methods hide both. Nothing else is ever repeated on its own, least of all a sync.
//!
//! V2 to V5 are what POSIX and published failure studies leave (Pillai et al., OSDI 2014; Rebello et al., USENIX ATC
//! 2020); [`SimFs`] takes away everything beyond them. Its own rules stand at the top of `sim/mod.rs`. [`replace_file`]
//! is the one right sequence for replacing a small file, to be used wherever a file is replaced as a whole.
//!
//! # Testing code against crashes
//!
//! Run once with [`SimFs::record_crash_points`], then draw as many reboots of every operation as wanted:
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
//! A crash point is (operation number, seed): to look at one again, run with [`SimFs::crash_at`] and
//! [`SimFs::recover`], and print [`SimFs::trace`].
//!
//! Speed, by `cargo bench -p onggi-vfs` on one core of a 2-core AMD EPYC guest, for a log of 400 records of 100 bytes,
//! synced by four: 775,000 cuts and boots a second, 138,000 with a full recovery after each, 9,700 when each point is
//! reached by a run of its own. Recording every operation of 64 MiB of writes takes 1.8 times the time of the run alone.
#![deny(unsafe_code)]

mod aligned;
mod error;
mod file_system;
mod mapping;
mod out;
mod real;
mod replace;
mod residency;
mod sim;

pub use aligned::{AlignedBuf, DIRECT_ALIGNMENT, HUGE_PAGE_BYTES};
pub use error::{FsError, Op, Result, errno, further_causes, reason};
pub use file_system::{AllocateLen, DirEntry, File, FileKind, FileLock, FileSystem, Metadata, OpenOptions, Space};
pub use out::OutFile;
pub use real::RealFs;
pub use replace::{REPLACEMENT_SUFFIX, create_dirs_synced, read_file, replace_file};
pub use sim::{Argument, CrashModel, CrashPoint, Fault, Outage, Outcome, SimFs, SimOptions, SyncCall, TraceEntry};
