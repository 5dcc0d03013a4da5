//! Disks that are full, fail, are slow, or stand still. The server keeps running, says what is wrong, and tells no
//! client that a write is kept when it is not.

mod frozen;
mod full;
mod slow;
mod sync_error;

pub use frozen::frozen;
pub use full::full;
pub use slow::slow;
pub use sync_error::{injected, real};
