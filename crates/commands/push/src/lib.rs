//! Messages to clients that are not replies: publish/subscribe, and invalidations for client-side caches.
//!
//! ```text
//! PUBLISH --> PubSub: who listens? --> a Delivery for each worker with listeners --> Outlet of the worker
//!             (a lock per slice                (message encoded once,                    | emptied in its turn
//!              of the names)                    list of receivers shared)                v
//!                                                                                  output of the connections
//! ```
//!
//! U1. A message enters all outlets under the lock of its channel's name. So all subscribers of a channel see its
//!     messages in one order, whichever workers publish and whichever serve the subscribers.
//! U2. No lock of this crate is held while a thread waits for a shard's lock. Each is held only to list receivers.
//! U3. Outlets are bounded: when one is full, publishers wait ([`Outlets::is_congested`]).
#![forbid(unsafe_code)]

pub mod message;
mod outlet;
pub mod pubsub;
pub mod receivers;
pub mod subscriptions;
pub mod tracking;

pub use message::Message;
pub use outlet::{Content, Delivery, Outlets, To};
pub use pubsub::PubSub;
pub use receivers::Receiver;
pub use subscriptions::{Kind, Subscriptions};
pub use tracking::{Invalidation, Tracker, Tracking};
