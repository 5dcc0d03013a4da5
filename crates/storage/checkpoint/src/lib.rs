//! Checkpoints on disk: how the entries of one exact moment become files, how the manifest makes them count, and how
//! all cores load them.
//!
//! ```text
//!  shards --save--> EntrySink --chunk--> Feed (bounded) --> writer threads --> prdb-<set>-00
//!   (walk, hand-over, under their locks)                   |                   prdb-<set>-01 ...
//!                                                          sync each file, then the directory
//!                                                          |
//! load on all cores <-- MANIFEST names the set <-- ManifestFile::commit: replace, sync --> prune what it no longer
//! names
//! ```
//!
//! K1. The manifest is the only commit point. A snapshot file counts if and only if the manifest names it, whatever
//!     other files the directory holds. Neither the number of files nor their names decide anything.
//! K2. The manifest names a set only after every file of it, and the names of all, are durable.
//! K3. A file that a durable manifest names is never changed. It is removed only after a later manifest without it is
//!     durable.
//! K4. Loading returns exactly the entries of the set, or an error that names file and offset. A checksum that includes
//!     set, file and place covers every byte, and the counts of blocks and entries must match.
//! K5. The memory of a running checkpoint is counted and bounded. At the limit the walk stops and writes wait, until
//!     writer threads have made room.
//! K6. A directory whose manifest, or a file that it names, has a newer format is refused, and the error names the
//!     version. Reading changes nothing, and removing comes after reading.
//!
//! Formats: docs/formats/snapshot-file.md, docs/formats/manifest.md. The numbered files written in parallel are those
//! of CP-Redis (Sung and Park, 2019). Its Algorithm 1 infers from the number of files what K1 states in one place.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

mod chunk;
mod dir;
mod envelope;
mod error;
mod feed;
mod format;
mod load;
mod manifest;
mod names;
mod retention;
mod salvage;
mod writer;

pub use dir::{DataDir, Listing};
pub use error::CheckpointError;
pub use feed::{Feed, FeedOptions};
pub use format::{Footer, Header};
pub use load::{LoadProgress, LoadReport, SnapshotBlock, SnapshotReader, load, open_snapshot};
pub use manifest::{DictionaryInfo, FileInfo, HashKey, LogState, Manifest, ManifestFile, RowsInfo, SetInfo, TierInfo};
pub use names::{Name, SetId};
pub use retention::{AUTOMATIC_BYTES_MIN, AUTOMATIC_SETS, Moment, PIN_MS, Pin, Retention, Space};
pub use salvage::{WholeBlock, WholeBlocks};
pub use writer::{SetHead, SnapshotWriter, THREADS_MAX, Writer, WriterOptions};

#[cfg(test)]
mod tests;
