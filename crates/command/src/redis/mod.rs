//! Redis' commands, one file per family.

pub mod generic;
pub mod string;

use crate::CommandSpec;

/// The families that need nothing but keyspaces and connections.
pub const FAMILIES: &[&[&CommandSpec]] = &[string::COMMANDS, generic::COMMANDS];
