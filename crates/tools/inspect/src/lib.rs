//! Tools for the files of a data directory. They report, in plain words, what it contains and what is wrong.
//!
//! ```text
//! decode: MANIFEST, prdb-*, log-*  --> items --> text, or JSON
//! check:  manifest -> every block of every set -> every frame -> does a start find all of it?
//! repair: the best of what is whole --> a directory that replaces it
//! restore: newest set before a point + the log up to it --> a new directory
//! history: sets + the log after them --> moments, and flushes that can be undone
//! ```
//!
//! T1. No tool changes what it reads. A directory that a server has locked is not judged: its files change during the
//!     reading.
//! T2. Memory is bounded by the longest entry or record, whatever lengths the files claim; and by 16 bytes for each
//!     value that lies on a tier.
//! T3. A file reported as good was read and its checksums verified; nothing is inferred from names or sizes.
//!
//! The tools use the readers of a start (`checkpoint`, `cmdlog`), so tools and server cannot disagree.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

mod backup;
mod check;
mod copying;
mod decode;
mod dictionaries;
mod error;
mod fields;
mod history;
mod item;
mod present;
mod repair;
mod restore;
mod rows;
mod salvage;
mod shortened;
mod sieve;
mod source;
pub mod text;
mod tiered;

pub use backup::backup;
pub use check::{Finding, Level, Verdict, check};
pub use decode::{Format, Show, decode, lock};
pub use error::ToolError;
pub use fields::ShownFields;
pub use history::{Flush, History, Stretch, history};
pub use item::Item;
pub use repair::{RepairPlan, Repaired, plan_repair, repair};
pub use restore::{Point, Restored, When, restore};
pub use shortened::Shortened;
pub use source::Source;

#[cfg(test)]
mod tests;
