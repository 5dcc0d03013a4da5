//! Messages to clients that are no replies: publish/subscribe, and what clients that cache are to forget.
//!
//! ```text
//! PUBLISH --> PubSub: who listens? --> a Delivery for each worker with listeners --> Outlet of the worker
//!             (a lock per slice                (message encoded once,                    | taken in its turn
//!              of the names)                    list of receivers shared)                v
//!                                                                                  output of the connections
//! ```
//!
//! U1. A message goes into all outlets under the lock of its channel's name. So all subscribers of a channel see its messages
//!     in one order, whichever workers publish and whichever serve the subscribers.
//! U2. No lock here is held while a shard's lock is waited for, and none is held for longer than it takes to list receivers.
//! U3. What lies in outlets is bounded: when one holds much, whoever would publish waits ([`Outlets::is_congested`]).
#![forbid(unsafe_code)]

pub mod outlet;
pub mod pubsub;
pub mod receivers;
pub mod subscriptions;
pub mod tracking;

pub use outlet::{Content, Delivery, Outlets, To};
pub use pubsub::{Message, PubSub};
pub use receivers::Receiver;
pub use subscriptions::{Kind, Subscriptions};
pub use tracking::{Invalidation, Tracker, Tracking};
