//! A server's resident memory once it has settled.

use super::Harness;
use crate::error::Result;
use crate::process::resident_bytes;
use crate::server::Server;
use std::time::{Duration, Instant};

/// Memory counts as settled when it changes by less than a thousandth in a second, or after this time.
const SETTLE_MAX: Duration = Duration::from_secs(20);
const SETTLE_STEP: Duration = Duration::from_millis(200);
const SETTLE_STEPS: usize = 5;

impl Harness<'_> {
    /// Resident memory once it has settled: servers finish growing tables and free pages in the background.
    ///
    /// # Errors
    /// The server has ended, or the run was interrupted.
    pub fn settled_resident(&self, server: &Server) -> Result<u64> {
        let pid = server.target.pid.expect("the harness started this server");
        self.steps.wait(&format!("{}: memory settles", server.record.name));
        let deadline = Instant::now() + SETTLE_MAX;
        let mut last = vec![resident_bytes(pid)?];
        loop {
            crate::interrupt::check()?;
            std::thread::sleep(SETTLE_STEP);
            last.push(resident_bytes(pid)?);
            let recent = &last[last.len().saturating_sub(SETTLE_STEPS + 1)..];
            let (low, high) = recent.iter().fold((u64::MAX, 0), |(low, high), &now| (low.min(now), high.max(now)));
            if (last.len() > SETTLE_STEPS && high - low <= high / 1000) || Instant::now() > deadline {
                return Ok(recent[recent.len() - 1]);
            }
        }
    }
}
