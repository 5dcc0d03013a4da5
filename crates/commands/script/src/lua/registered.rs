//! What a library has registered.

use crate::lua::function::Function;
use crate::shebang::Flags;

/// A function that a library has registered.
#[derive(Debug)]
pub struct Registered {
    /// Its name, not checked.
    pub name: Vec<u8>,
    /// What is called.
    pub function: Function,
    /// What it does, in words.
    pub description: Option<Vec<u8>>,
    /// What it may do.
    pub flags: Flags,
}
