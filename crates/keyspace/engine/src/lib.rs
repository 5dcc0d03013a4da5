//! The contract between commands and storage: what a key, an entry and a change are, and what an engine must do.
//!
//! ```text
//! types (semantics)  --Effect-->  Keyspace::apply  --->  Engine (memory, tier, LSM)
//!       ^                               |
//!       '---- Entry / absent / Fetch ---'-----------> record of the command log
//! ```
//!
//! E1. A read answers *found*, *absent* or [`Fetch`]. After `Fetch` the command has changed nothing: it returns at
//!     once, the rows are fetched without any lock, and it runs again from its start with those rows pinned. The memory
//!     engine never answers `Fetch`. So every command reads all it needs before its first change.
//! E2. Every change is an [`Effect`], applied by one function whether it comes from a client or from the log. An effect
//!     is deterministic: absolute expiration times, chosen members, final values. It maps to a canonical Redis command.
//! E3. Reads are logical (an expired entry is absent, and reading it changes nothing); changes are physical (they act
//!     on what is stored, expired or not, and never look at the clock), so that replay needs no clock.
//! E4. Nothing outside the engine holds a pointer or handle to an entry after the borrow ends: entries move.
#![forbid(unsafe_code)]

pub mod cas;
pub mod changed_names;
pub mod checkpoint;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod edit;
pub mod effect;
pub mod entry;
#[cfg(any(test, feature = "testing"))]
pub mod fetching;
pub mod fields;
pub mod key;
pub mod keyspace;
pub mod libraries;
#[cfg(any(test, feature = "testing"))]
pub mod model;
pub mod names;
pub mod notify;
pub mod row;
pub mod rows;
pub mod sorted_rows;
mod sync;
pub mod tier;
pub mod waiting;
pub mod write_class;

pub use cas::CasIds;
pub use changed_names::{ChangedNames, NamesStep};
pub use checkpoint::{Backlog, BacklogMemory, EntrySink, WalkProgress};
pub use edit::{Edited, Known, Unedited};
pub use effect::Effect;
pub use entry::{Away, Encoding, Entry, Left, NewEntry, Seen, SharedBig, SharedBytes, Type, Value};
#[cfg(any(test, feature = "testing"))]
pub use fetching::FetchingEngine;
pub use fields::{ExtFields, Fields, PackedFields, Residency, TaggedFields, TierAddress};
pub use key::Key;
pub use keyspace::{Due, Engine, Fetch, Keyspace, ScanStep, Serve, Usage};
pub use libraries::Libraries;
pub use names::{Names, RowName};
pub use notify::NotifyClass;
pub use row::{Row, RowError, split_row, write_row, write_whole_row};
pub use rows::{Counts, FlushProgress, Got, LeafStore, RowSink, Rows, Ticket, Wanted};
pub use sorted_rows::SortedRows;
pub use tier::{AwayRow, TierRefusal, ValueTier};
pub use waiting::{Unblock, WaitEnd, WaitNumber, WaitState, Waiter};
pub use write_class::WriteClass;
