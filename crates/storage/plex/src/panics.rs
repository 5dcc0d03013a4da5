//! A panic of a compaction filter, or of this library, as an error.
//!
//! A thread that ends by a panic would leave writers waiting for its work. So work that others wait for runs in here.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use crate::error::{Error, Result};

/// Does the work; a panic becomes [`Error::Panicked`]. What the work has changed must be unused afterwards, or still
/// hold.
pub(crate) fn as_error<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::Panicked(message(&*panic))))
}

/// What the panic says.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
