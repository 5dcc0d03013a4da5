//! The in-memory engine of one shard: what is stored, where it is, when it expires, and what is evicted first when
//! memory is short.
//!
//! ```text
//! Key ---> table: directory -> extent -> bucket -> cell ---> entry: header, key, value in one slot of a page
//!                                                              |
//! wheel: 32 bits of the hash, by time  - - - (looks the entry up in the table) - - -'
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`engine`](MemEngine) | the operations of the contract, in terms of everything below |
//! | `table`, `directory`, `extent`, `bucket` | from a hash to a cell: grows and shrinks in steps, never rehashes |
//! | `entries`, `layout`, `classes` | the bytes of an entry, and which slot they go to |
//! | `recent` | the cell found last, so that a command looks its key up once |
//! | `pages` | the allocator under both: pages of equal slots, sparse ones emptied |
//! | `arena`, `region` | address space: reserved once, committed in steps, readable for ever, in huge pages when full |
//! | `backed` | keyspaces backed by rows: what is clean, dirty, wanted or unknown |
//! | `tiered` | values on a tier: which are away, wanted, and demoted next |
//! | `wheel` | the expiration index |
//! | `stamp`, `eviction` | how entries age, and which goes first |
//! | `checkpoint`, `clean` | work done in slices: handing entries to a checkpoint, giving memory back |
//! | [`hints`](MemHints) | prefetching without the shard's lock |
//!
//! M1. Everything but [`MemHints`] is used under the shard's lock.
//! M2. Only cells of the table hold handles of entries, so an entry can be moved by changing one word.
//! M3. Nothing here takes time in proportion to what is stored, except calls that say so; the rest is done in steps by
//!     [`engine::Engine::clean`].

mod arena;
mod backed;
mod bucket;
mod checkpoint;
mod classes;
mod clean;
mod compressed;
mod directory;
mod due;
mod edit;
mod entries;
mod eviction;
mod extent;
mod hints;
mod lanes;
mod layout;
mod mem_engine;
mod memory;
mod pages;
mod prefetch;
mod recent;
mod region;
mod shared_arena;
mod space;
mod stamp;
mod sticky;
mod table;
mod tiered;
mod wheel;

pub use backed::droppable::Droppable;
pub use backed::spill::SpillPlace;
pub use compressed::CompressedUse;
pub use eviction::{EvictionOrder, EvictionPolicies, EvictionPolicy, EvictionScope};
pub use hints::{MemHints, Way};
pub use mem_engine::MemEngine;
pub use memory::{MemoryKind, MemoryUse};
pub use shared_arena::MemoryArena;
pub use stamp::{SharedStampMode, StampMode};
pub use tiered::Demoted;
pub use wheel::TICK_MS as EXPIRATION_TICK_MS;
