//! What is stored under a key: packed buffers for small collections, trees whose chunks can be shared for big ones.
//!
//! ```text
//! commands --encoded changes--> apply(kind, slot, changes)       packed bytes  --outgrown-->  Big (a tree)
//!     ^                                                              |                         |
//!     '------------ list::View, hash::View, ... <--------------------'-------------------------'
//! ```
//!
//! V1. A collection is changed by *changes* only: small encoded operations whose result depends on nothing but the collection
//!     (final values, chosen members, absolute times). The same bytes go through [`apply`] from a client, from the log and
//!     from a checkpoint.
//! V2. Which of the two forms a collection has is a matter of size and history; what it holds is not. Every view reads both.
//! V3. A clone of a [`Big`] takes constant time and shares all of its chunks; an edit copies the chunks it touches if they are
//!     shared. So a checkpoint or a long reply keeps a version while commands go on.
//! V4. No operation on one element takes time in proportion to the collection: no rehash, no conversion beyond the limits of
//!     a packed form, and what a big one leaves behind is freed elsewhere ([`reaper`]).
//! V5. Who stores a collection compressed keeps its packed bytes, or of a tree its changes, as a string; views and edits are for
//!     what it is again after that ([`Encoding::is_compressed`]). None with a field that has a time is stored so.
//! V6. Leaves of a tree that nobody uses may be stored compressed, each by itself: views and edits need not know ([`cold`]).
#![deny(unsafe_code)]

pub mod big;
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
pub use kind::{Encoding, Type};
pub use limits::Limits;
pub use slot::{Body, Left, Slot, Stored, apply, check_changes, first_due, len};
