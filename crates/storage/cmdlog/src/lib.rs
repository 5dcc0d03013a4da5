//! The command log: one ordered history of effects, in a compact binary form, on disk.
//!
//! ```text
//! workers --append--> stream in memory --flush: write--> segments --sync--> durable_lsn --> held replies
//!                                                              |
//!                                            recover: frames --> records, in order
//! ```
//!
//! R1. A record holds the effects of one command, or of one whole transaction. It is applied whole or not at all.
//! R2. Encoding is canonical: equal effects have equal bytes, and bytes that decode encode back to themselves.
//! R3. An LSN is a byte position of the stream, framing included. A record's LSN is the position after its last byte.
//! R4. `durable_lsn` never passes a byte that no successful sync covers (`flush` shows how).
//! R5. Recovery returns a prefix of what was appended that reaches at least every `durable_lsn` ever reported, or an
//!     error that names the damage.
//!
//! Format: docs/formats/command-log.md. Group commit as in LevelDB's `DBImpl::Write` and Pebble's `commitPipeline`;
//! failed syncs after Rebello et al., USENIX ATC 2020.
#![deny(unsafe_code)]

mod error;
mod flush;
mod frame;
mod log;
mod options;
mod reader;
pub mod record;
mod recovery;
mod segment;
mod shared;
mod sleeper;
mod start;
mod stats;
mod stream;
#[cfg(test)]
mod tests;
mod timing;
mod tools;

pub use error::{LogError, LogFailure, RecoverError};
pub use frame::Mark;
pub use log::Log;
pub use options::{Admission, LogOptions, LogStart, LogWake, OnSyncError, RING_BYTES, SEGMENT_BYTES};
pub use record::{DecodeError, Payload, RecordBuilder, dictionaries_of, effects};
pub use recovery::{
    EachFrame, EachRecord, FrameBody, LogEnd, Progress, SegmentHeader, SegmentInfo, TornTail, recover, recover_frames,
    segments,
};
pub use segment::Parent;
pub use stats::LogStats;
pub use timing::{LogMode, LogTiming, WINDOW_MS};
pub use tools::{Extract, ExtractError, SegmentFrame, SegmentReader, SegmentRest, extract, is_segment_copy};
