//! An LSM-tree: a sorted, durable map from byte strings to byte strings, for workloads that write more than they read.
//!
//! ```
//! # let fs = std::sync::Arc::new(vfs::SimFs::new(1));
//! # let options = plex::Options::new().file_system(fs);
//! let db = options.open("/data/plex")?;
//! db.put(b"user:1", b"Ada")?;
//! for pair in db.iter(plex::IterOptions::prefix(b"user:"))? {
//!     println!("{:?}", pair?);
//! }
//! # Ok::<(), plex::Error>(())
//! ```
//!
//! ```text
//!   write --> log, memtable --flush--> tables of level 0 --compaction--> one sorted run
//!                 \______________________|_____________________/
//!                                      read: newest first, filters before files
//! ```
//!
//! P1. A batch is visible and recovered whole or not at all.
//! P2. After a crash, what is there is a prefix of the history that contains everything acknowledged as durable.
//! P3. No byte from a file is used before its checksum was verified; damage names file and offset.
//! P4. The same calls with [`Options::seed`] and [`Background::Inline`] give the same files.
//!
//! Modules, from the bottom: `key` (order), `memtable`, `log`, `sstable`, `version` (what counts), `iter`, `compaction`
//! (policies), `db`. File formats: docs/formats/sstable.md, docs/formats/plex-wal.md, docs/formats/plex-manifest.md.
#![deny(unsafe_code)]

mod batch;
mod bell;
mod cache;
mod compaction;
mod db;
mod dump;
mod error;
mod expiry;
mod fence;
#[cfg(test)]
mod golden;
mod iter;
mod key;
mod key_order;
mod key_space_options;
mod limiter;
mod log;
mod memtable;
mod names;
mod open_files;
mod options;
mod panics;
mod prefetch;
mod range_tombstone;
mod sketch;
mod sorted_file;
mod spans;
mod sstable;
mod stats;
mod version;

pub use base::clock::{Clock, ManualClock, SystemClock};
pub use batch::WriteBatch;
pub use compaction::{CompactionFilter, Policy};
pub use db::{Db, ReadView, Repair, Transaction, check, repair};
pub use dump::dump;
pub use error::{Error, Result};
pub use iter::{Iter, IterOptions};
pub use key::{BATCH_BYTES_MAX, KEY_LEN_MAX, KeySpaceId, SEQNO_MAX, Seqno, VALUE_LEN_MAX};
pub use key_space_options::KeySpaceOptions;
pub use options::{Background, Options, Wal};
pub use sorted_file::SortedFile;
pub use sstable::{Compression, Filters, Indexes};
pub use stats::Stats;
/// File systems and their errors, which are part of this library's interface.
pub use vfs;
