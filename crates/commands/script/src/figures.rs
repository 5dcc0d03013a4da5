//! What INFO and MEMORY STATS say about scripts and functions.

use crate::cache::Scripts;
use crate::run;
use command::Ctx;
use std::sync::Arc;

/// Scripts, functions, and their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Scripts in the cache.
    pub scripts: usize,
    /// Their bytes.
    pub scripts_bytes: usize,
    /// Bytes of the Lua states of all workers.
    pub states_bytes: usize,
    /// Scripts that left the cache for others.
    pub evicted: u64,
    /// Functions.
    pub functions: usize,
    /// Libraries.
    pub libraries: usize,
    /// Bytes of their names and texts.
    pub libraries_bytes: usize,
}

/// The figures now; all zero on a server without scripts.
pub fn figures(ctx: &mut Ctx<'_>) -> Figures {
    let Some(scripts) = ctx.host.find::<Arc<Scripts>>().cloned() else { return Figures::default() };
    let libraries = ctx.ks.libraries().unwrap_or_default();
    let functions = if libraries.is_empty() { 0 } else { run::function_count(ctx, &scripts, &libraries) };
    Figures {
        scripts: scripts.len(),
        scripts_bytes: scripts.cached_bytes(),
        states_bytes: scripts.states_bytes(),
        evicted: scripts.evicted(),
        functions,
        libraries: libraries.len(),
        libraries_bytes: libraries.bytes(),
    }
}
