//! What stands in the place of scripts in a build without Lua.

use crate::cache::Script;
use command::{Ctx, Stop};
use std::sync::Arc;

const ABSENT: Stop = Stop::error("ERR this server was built without Lua scripts (cargo feature `scripting`)");

/// Refuses to run a script.
///
/// # Errors
/// Always.
pub fn run(_: &mut Ctx<'_>, _: &Arc<Script>, _: usize, _: bool) -> Result<(), Stop> {
    Err(ABSENT)
}

/// Refuses to compile a script.
///
/// # Errors
/// Always.
pub fn check(_: &Ctx<'_>, _: &Arc<Script>) -> Result<(), Stop> {
    Err(ABSENT)
}
