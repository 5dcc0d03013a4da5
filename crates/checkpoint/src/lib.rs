//! Checkpoints on disk: how the entries of one exact moment become files, how the manifest makes them count, and how all
//! cores read them back.
//!
//! ```text
//!  shards --save--> EntrySink --chunk--> Feed (bounded) --> writer threads --> prdb-<set>-00
//!   (walk, hand-over, under their locks)                   |                   prdb-<set>-01 ...
//!                                                          sync each file, then the directory
//!                                                          |
//!  load on all cores <-- MANIFEST names the set <-- ManifestFile::commit: replace, sync --> prune what it names no more
//! ```
//!
//! K1. The manifest is the only commit point. A snapshot file counts if and only if the manifest names it, whatever else
//!     lies in the directory; so neither the number of files nor their names decide anything.
//! K2. The manifest names a set only after every file of it, and the names of all, are durable.
//! K3. A file that a durable manifest names is never changed. It is removed only after a later manifest that does not name
//!     it is durable.
//! K4. Loading gives exactly the entries of the set or an error that names file and offset: every byte is covered by a
//!     checksum that also knows set, file and place, and the counts of blocks and entries must agree.
//! K5. What a running checkpoint keeps in memory is counted and bounded; when the bound is reached, the walk stops and
//!     writes wait, until writer threads have made room.
//! K6. A directory whose manifest, or a file that it names, is of a newer format is refused by that name. Reading changes
//!     nothing, and removing comes after reading.
//!
//! Formats: docs/formats/snapshot-file.md, docs/formats/manifest.md. The numbered files written in parallel are those of
//! CP-Redis (Sung and Park, 2019), whose Algorithm 1 inferred from counts of files what K1 states in one place.
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
pub use manifest::{DictionaryInfo, FileInfo, HashKey, LogState, Manifest, ManifestFile, SetInfo};
pub use names::{Name, SetId};
pub use retention::{AUTOMATIC_BYTES_MIN, AUTOMATIC_SETS, Moment, PIN_MS, Pin, Retention, Space};
pub use salvage::{WholeBlock, WholeBlocks};
pub use writer::{SetHead, SnapshotWriter, THREADS_MAX, Writer, WriterOptions};

#[cfg(test)]
mod tests;
