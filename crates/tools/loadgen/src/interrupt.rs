//! SIGINT and SIGTERM end a run in order: the load stops, started servers are stopped, their directories are removed.
//! Signals belong to the process, so this flag is the only state that the whole process shares.

use crate::error::{BenchError, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Handles signals from now on: the first one requests the end, the second one ends the process at once.
///
/// # Errors
/// When the operating system refuses the handlers.
pub fn watch() -> Result<()> {
    let asked = ASKED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        let failed = |source| BenchError::System { op: "watch for signals", source };
        // In this order the first signal only sets the flag, and the second finds it set.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, asked.clone()).map_err(failed)?;
        signal_hook::flag::register(signal, asked.clone()).map_err(failed)?;
    }
    Ok(())
}

/// # Errors
/// [`BenchError::Interrupted`] once a signal has come.
pub fn check() -> Result<()> {
    match ASKED.get() {
        Some(asked) if asked.load(Ordering::Relaxed) => Err(BenchError::Interrupted),
        _ => Ok(()),
    }
}
