//! The way from Redis and Valkey, and back: an RDB file, or an append-only log, becomes a data directory that a server
//! starts with, and a data directory an RDB file.
//!
//! ```text
//! FILE --examine: every byte, nothing written--> Contents --report--> what is inside, what cannot be taken
//!   |                                               |
//!   '--import: the same entries again <-- if all of it can be taken
//!        |
//!        '--> changes -> packed buffer or tree --> Feed --> prdb-* --> MANIFEST
//!
//! primary --receive--> FILE, and with --follow: --load--> store and log <--commands-- primary
//!
//! SSDB --rows, and entries of its binlog--> requests --> a running server
//!
//! memcached --names, then items--> store --entries--> Feed
//!
//! append-only log --play: all read, then run--> store --report, entries--> Feed
//!
//! prdb-*, log-* --export: loaded as by a start--> store --entries--> FILE
//! prdb-* --save, in a running server: some at a time--> store --entries--> FILE
//! ```
//!
//! G1. A file is read twice. What is wrong with it, or cannot be taken, is known before the first byte is written.
//! G2. The manifest comes last. An import that fails removes what it has written; what one that was killed leaves has
//!     no manifest, so that no server takes it for data.
//! G3. Memory of the import of an RDB file is bounded by the largest value, and by what waits for the disk
//!     ([`engine::Backlog`]), whatever the file's length. What commands of a log have made is held whole.
//! G4. What is dropped is what a primary drops while it loads the file: keys and fields whose time has come, empty
//!     collections. It is counted. All else is taken, or named.
//!
//! Formats: docs/formats/rdb.md, docs/formats/snapshot-file.md.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod appendonly;
mod build;
mod cache;
mod contents;
mod duplicates;
mod error;
mod examine;
mod export;
mod follow;
mod import;
mod pen;
mod report;
mod room;
mod runs;
mod save;
mod sift;
mod ssdb;

pub use appendonly::examine_log;
pub use appendonly::{Log, Part, is_append_only};
pub use cache::{Cache, CacheAddressError, Items, import_cache};
pub use contents::{BigKey, Contents, Database, Kind, Untaken};
pub use error::MigrateError;
pub use examine::{Examination, examine};
pub use export::{Export, export};
pub use follow::{Event, Follow, Followed, Progress as FollowProgress, Receive, copy_file, follow, receive};
pub use import::{Import, Imported, ImportedLog, import, import_log};
pub use pen::Exported;
pub use report::{report, report_log};
pub use save::RdbFile;
pub use ssdb::{
    Ssdb, SsdbAddressError, SsdbCopied, SsdbCopy, SsdbEvent, SsdbFound, SsdbProgress, SsdbRows, Target, copy_ssdb,
    examine_ssdb,
};

/// Most databases that a server can have: the upper bound of `databases`.
pub(crate) const DATABASES_MAX: u32 = 65_536;

#[cfg(test)]
mod tests;
