//! Durability of a server in one place: what is loaded at a start, when checkpoints are taken, when the log is
//! switched.
//!
//! ```text
//! start:   lock the directory -> MANIFEST -> snapshot files -> log from there -> new segment -> serve
//! running: triggers, BGSAVE, CONFIG SET -> keeper thread -> workers: cut (all locks), walk -> files -> MANIFEST, prune
//! end:     last checkpoint if one is asked for -> log synced and ended in order
//! ```
//!
//! D1. Only workers take shard locks: the keeper asks them (`work`) and waits.
//! D2. The manifest names a set only when its files are durable, and the log up to its cut; older sets and segments are
//!     removed only when the manifest that does not need them is durable.
//! D3. The log is switched on and off at the cut of a checkpoint, under all locks: what is before the cut is in the
//!     set, and what is after it is in the log, or in none. It counts as on only when the manifest says so.
//! D4. At most one checkpoint at a time. A failed one changes nothing that a restart would read.
//! D5. Nothing is written to the directory by a start before everything has been read.
//! D6. The mode and the window of the log are those of the settings from its first record on, also while it is being
//!     switched on (`timing`).
//! D7. A dictionary is durable, and named by a durable manifest, before a value is compressed with it (`training`).
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

mod checkpointing;
mod cleaner;
mod cleaning;
mod disk_databases;
mod error;
mod flushing;
mod history;
mod hold;
mod keeper;
mod policy;
mod rdb_file;
mod rdb_writer;
mod recovery;
mod room;
mod scrubber;
mod segments;
mod sink;
mod status;
mod tasks;
mod tell;
mod tiering;
mod timing;
mod training;
mod work;

pub use disk::{DiskError, DiskOptions};
pub use disk_databases::{DiskDatabases, FlushError, RunningFlush};
pub use error::{DurabilityError, ModeNotSet};
pub use flushing::FlushStatus;
pub use hold::BeingRemoved;
pub use keeper::{Cancelled, Durability, Parts};
pub use policy::{Cause, Policy, TierPolicy};
pub use rdb_writer::{RdbFigures, RdbWritten, WriteRdb};
pub use recovery::{LoadingStatus, Recovered};
pub use status::{Figures, LastLoad, LogStatus, Running, Status};
pub use tasks::{Busy, Task};
pub use tell::{Phase, Tell};
pub use work::Ended;
