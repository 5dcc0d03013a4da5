//! What is stored under a key: packed buffers for small collections, trees whose chunks can be shared for big ones.
//!
//! ```text
//! commands --encoded changes--> apply(kind, slot, changes)       packed bytes  --outgrown-->  Big (a tree)
//!     ^                                                              |                         |
//!     '------------ list::View, hash::View, ... <--------------------'-------------------------'
//! ```
//!
//! V1. A collection is changed by *changes* only: small encoded operations whose result depends on the collection alone
//!     (final values, chosen members, absolute times). The same bytes go through [`apply`] from a client, from the log
//!     and from a checkpoint.
//! V2. Size and history decide which of the two forms a collection has; its contents do not depend on it. Every view
//!     reads both.
//! V3. A clone of a [`Big`] takes constant time and shares all of its chunks; an edit copies the chunks it touches if
//!     they are shared. So a checkpoint or a long reply keeps a version while commands continue.
//! V4. No operation on one element takes time in proportion to the collection: no rehash, no conversion beyond the
//!     limits of a packed form, and another thread frees the chunks of a big one ([`reaper`]).
//! V5. A compressed collection is stored as a string of its packed bytes, or of the changes of its tree. Views and
//!     edits need it decompressed ([`Encoding::is_compressed`]). A collection with a field that has a time is not
//!     stored so.
//! V6. Unused leaves of a tree may be stored compressed, one by one: views and edits need not know ([`cold`]).
//! V7. Leaves may be rows of a database on disk. Views and edits that need one which is not in memory unwind, and run
//!     again when it is there ([`absent`]).
#![deny(unsafe_code)]

pub mod big;
pub mod btree;
pub mod buffer;
pub mod cold;
pub mod hash;
pub mod hyperloglog;
pub mod kind;
pub mod limits;
pub mod list;
mod nest;
mod pages;
mod position;
pub mod reaper;
mod saved;
pub mod set;
pub mod slot;
pub mod stream;
pub mod tree;
pub mod wire;
pub mod zset;

pub use big::{Big, Find, LeafRun, Progress, SharedBig};
pub use buffer::{Buffer, Resize};
pub use cold::absent;
pub use kind::{Encoding, Type};
pub use limits::Limits;
pub use slot::{Body, Left, Slot, Stored, apply, check_changes, first_due, len};
