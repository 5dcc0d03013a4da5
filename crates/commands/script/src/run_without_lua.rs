//! What stands in the place of scripts in a build without Lua.

use crate::cache::Script;
use command::{Ctx, Stop};
use std::sync::Arc;

/// What scripts and functions answer.
pub const ABSENT: Stop = Stop::error("ERR this server was built without Lua scripts (cargo feature `scripting`)");

/// Refuses to run a script.
///
/// # Errors
/// Always.
pub fn run(_: &mut Ctx<'_>, _: &Arc<Script>, _: usize, _: bool) -> Result<(), Stop> {
    Err(ABSENT)
}

/// Refuses to run a cached script.
///
/// # Errors
/// Always: none is cached.
pub fn run_digest(_: &mut Ctx<'_>, _: usize, _: bool) -> Result<(), Stop> {
    Err(ABSENT)
}

/// Refuses to compile a script.
///
/// # Errors
/// Always.
pub fn check(_: &Ctx<'_>, _: &Arc<Script>) -> Result<(), Stop> {
    Err(ABSENT)
}

/// Refuses to run a function.
///
/// # Errors
/// Always.
pub fn run_function(_: &mut Ctx<'_>, _: impl FnOnce(&Ctx<'_>) -> Result<usize, Stop>, _: bool) -> Result<(), Stop> {
    Err(ABSENT)
}

/// No functions: there is no Lua to register them.
pub fn function_count(_: &mut Ctx<'_>, _: &crate::Scripts, _: &Arc<engine::Libraries>) -> usize {
    0
}

/// No function declares anything.
pub fn flags_of_function(
    _: &Arc<crate::Scripts>,
    _: &Arc<engine::Libraries>,
    _: &[u8],
) -> Option<crate::shebang::Flags> {
    None
}
