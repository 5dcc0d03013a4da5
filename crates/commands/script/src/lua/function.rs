//! A reference to a compiled function.

use std::ffi::c_int;

/// A compiled function in the registry of its state.
#[derive(Clone, Copy, Debug)]
pub struct Function(pub(super) c_int);
