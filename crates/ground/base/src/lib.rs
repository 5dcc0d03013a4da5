//! What every layer shares: ids, clock, randomness, checksums, varints, integers and sizes as text, the key's hash and
//! slot, glob patterns, the table of figures.
//! No I/O happens here, and nothing here knows a file, a socket or a command.
#![forbid(unsafe_code)]

pub mod checksum;
pub mod clock;
pub mod double;
pub mod figures;
pub mod glob;
mod grisu;
pub mod hash;
pub mod ids;
pub mod integer;
pub mod random;
pub mod rate;
pub mod size;
pub mod slot;
pub mod varint;

pub use clock::{Clock, UnixMs};
pub use ids::{DbIndex, HistoryId, KeyspaceId, Lsn, ShardId, SlotId};
pub use random::{Entropy, Rng};
