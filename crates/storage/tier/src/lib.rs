//! A tier: values that memory has no room for, in log-structured segments on files.
//!
//! ```text
//! append -> buffer of the open segment -> pending chunk -> file (writer thread) -> synced (before a checkpoint)
//!                '------- a read finds the value in whichever of these has it -------'
//! ```
//!
//! On a mapped medium a record goes to the mapping of its segment at once, and reads copy from there (`mapped`).
//!
//! T1. A record is written once. Its address is never used again: segment numbers only grow.
//! T2. A checkpoint that names addresses is committed only after [`Tier::sync`] has returned. After a failed sync the
//!     tier takes no more values, and every later sync fails: what the failed one lost is unknown.
//! T3. A segment is removed when no entry in memory has an address in it, and every retained checkpoint began after the
//!     last entry left it ([`Tier::retire`]).
//! T4. Cleaning moves the live values of a segment to another one, before the segment is removed as T3 says. So a
//!     checkpoint or a read that has an address of before still finds its record.
//! T5. Each read compares length, key and checksum. Damage costs the keys of the damaged records, and no others.
//! T6. On persistent memory the command log has addresses ([`engine::ValueTier::is_durable_at_once`]). A replay begins
//!     at a retained checkpoint, and no segment that had a live value after the beginning of one is removed (T3). So it
//!     finds every value. Without a checkpoint no segment is removed while there is a log.
//!
//! Format: docs/formats/tier-segment.md.
#![forbid(unsafe_code)]

mod error;
mod format;
mod identity;
mod ledger;
mod mapped;
mod medium;
mod names;
pub mod offline;
mod reader;
mod scan;
mod tail;
mod tier;

#[cfg(test)]
mod mapped_tests;
#[cfg(test)]
mod tests;

pub use error::TierError;
pub use format::{HEADER_BYTES, RECORD_HEAD_BYTES, SEGMENT_BYTES, record_bytes, segment_bytes_for};
pub use identity::TierId;
pub use medium::{Medium, MediumInUse};
pub use names::segment_number;
pub use reader::TierReader;
pub use scan::Scan;
pub use tier::{Figures, Options, Tier};
