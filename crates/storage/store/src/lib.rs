//! Databases and shards: where commands meet storage.
//!
//! ```text
//! command --> commit: admit -> lock shards -> run (types over Txn) -> append record -> unlock --> reply, or hold it
//!                                               |
//! record  --> replay: --------------------------'  (the same `apply`, no clock)
//! ```
//!
//! S1. All locks of a command come before its first change; after the first change nothing can fail.
//! S2. A shard's records reach the log in the order its changes were made, since they are appended under its lock.
//! S3. Only workers lock shards; they never sleep on a lock (see `lock`).

pub mod backed;
pub mod checkpoint;
pub mod commit;
pub mod compression;
pub mod digest;
pub mod evict;
pub mod gate;
pub mod hold;
pub mod libraries;
pub mod lock;
pub mod lock_set;
mod locking;
pub mod log;
pub mod notices;
pub mod position;
pub mod position_slot;
pub mod pressure;
mod read;
pub mod record_sink;
pub mod recovery_points;
pub mod replay;
mod scan;
pub mod serve;
pub mod shard;
pub mod slots;
pub mod spaces;
pub mod store;
pub mod survey;
mod sync;
pub mod tiered;
pub mod txn;
pub mod upkeep;
pub mod waits;
pub mod wants;
pub mod watch;

pub use checkpoint::Cut;
pub use commit::Blocked;
pub use compression::Compression;
pub use digest::Digest;
pub use engine::WriteClass;
pub use engine_mem::{SpillPlace, Way};
pub use gate::Gate;
pub use lock::WorkerSet;
pub use lock_set::LockSet;
pub use log::AllLocked;
pub use notices::{Announce, Notice};
pub use record_sink::{Admission, RecordSink};
pub use recovery_points::RecoveryPoints;
pub use store::{Store, StoreOptions, Wake};
pub use survey::{Survey, SurveyStep};
pub use txn::{At, Scratch, Txn};
pub use wants::want::{Want, unreadable_leaf};
