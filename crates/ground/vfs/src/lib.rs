//! Files and directories as two traits, so that all disk access of Onggi can also run on a disk that fails.
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
//! Guarantees that a user may rely on, with any implementation:
//!
//! V1. Transfers give their position; no handle has a cursor. Any number of threads may use a handle.
//! V2. Data written before a successful [`File::sync_data`] began is durable when it returns. Nothing else about data
//!     is promised: unsynced writes may survive in part and in any order, and a length without its bytes.
//! V3. A name is durable after [`FileSystem::sync_dir`] of its directory, if the directories above are durable too.
//!     Syncing a file does not make its name durable.
//! V4. [`FileSystem::rename`] within one file system is atomic, even in a crash. Its durability needs V3 (for both
//!     directories), and it does not make the file's data durable.
//! V5. After a failed sync of a file or directory, the changes it should have covered may be lost, and a later `Ok`
//!     says nothing about them. Never sync that file again: stop, or write everything to a new file.
//! V6. Every error names the operation and the path and keeps the operating system's number: [`FsError`].
//! V7. `read_at` and `write_at` may transfer less than requested and may fail with `Interrupted`; the `exact` and `all`
//!     methods hide both. Nothing else is repeated automatically, least of all a sync.
//!
//! V8. A file that is written through memory ([`FileSystem::map_writable`]) follows R1 to R4 of [`Region`]'s module: on
//!     persistent memory a fence makes writes durable, in the page cache a system call does.
//!
//! V2 to V5 are what remains after POSIX and published failure studies (Pillai et al., OSDI 2014; Rebello et al.,
//! USENIX ATC 2020); `SimFs` withholds everything beyond them. `sim.rs` lists its own rules, and how to test code
//! against crashes; only tests build it (feature `sim`). [`replace_file`] is the correct sequence for replacing a small
//! file; use it wherever a file is replaced as a whole.
#![deny(unsafe_code)]

mod aligned;
mod bus;
mod copying;
mod delays;
mod error;
mod file_system;
mod mapping;
mod out;
mod real;
mod real_region;
mod region;
mod replace;
mod residency;
#[cfg(any(test, feature = "sim"))]
mod sim;
mod stores;

pub use aligned::{AlignedBuf, DIRECT_ALIGNMENT, HUGE_PAGE_BYTES};
pub use copying::{copy_file, link_or_copy};
pub use delays::Delays;
pub use error::{FsError, Op, Result, errno, further_causes, reason};
pub use file_system::{AllocateLen, DirEntry, File, FileKind, FileLock, FileSystem, Metadata, OpenOptions, Space};
pub use out::OutFile;
pub use real::RealFs;
pub use region::{Region, RegionKind};
pub use replace::{REPLACEMENT_SUFFIX, create_dirs_synced, read_file, replace_file};
#[cfg(any(test, feature = "sim"))]
pub use sim::{Argument, CrashModel, CrashPoint, Fault, Outage, Outcome, SimFs, SimOptions, SyncCall, TraceEntry};
