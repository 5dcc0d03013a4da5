//! Time, behind a trait: wall time in milliseconds for expirations, monotonic nanoseconds for durations.
//!
//! C1. `monotonic_ns` never goes back; timers and latencies use it alone.
//! C2. `now_ms` is what expirations compare with. [`SystemClock`] derives it from the monotonic clock plus an offset,
//!     so that a jump of the machine's wall clock does not expire every key at once (redis/redis#416).

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 UTC. Signed, since commands accept times before it.
pub type UnixMs = i64;

/// A source of time. Cheap enough to be read once per batch of commands.
pub trait Clock: Send + Sync {
    /// Wall time in milliseconds since the Unix epoch, as expirations see it.
    fn now_ms(&self) -> UnixMs;
    /// Nanoseconds since an arbitrary start; never goes back.
    fn monotonic_ns(&self) -> u64;
    /// Wall time in microseconds since the Unix epoch, as `TIME` reports it: the machine's, not slewed.
    fn wall_us(&self) -> i64;
}

/// How far wall time may leave the slewed time before the difference counts as a jump.
pub const JUMP_MS: i64 = 60_000;

/// Largest correction per reading interval: one part in ten, so a jump of an hour is followed in ten hours, while the
/// usual drift of a disciplined clock is followed at once.
const SLEW_DIVISOR: i64 = 10;

/// The machine's clocks. Wall time is slewed: steps below [`JUMP_MS`] are followed at once, larger ones slowly.
pub struct SystemClock {
    start: Instant,
    /// wall - monotonic in ms, as followed so far. Written by whichever thread reads the time; a lost update is made
    /// up by the next reading.
    offset_ms: AtomicI64,
    /// monotonic ms of the last correction.
    corrected_at_ms: AtomicI64,
    /// Jumps seen, for INFO and the log.
    jumps: AtomicU64,
}

impl SystemClock {
    /// Starts from the machine's present wall time.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            offset_ms: AtomicI64::new(wall_us() / 1000),
            corrected_at_ms: AtomicI64::new(0),
            jumps: AtomicU64::new(0),
        }
    }

    /// How many times wall time left the slewed time by more than [`JUMP_MS`].
    pub fn jump_count(&self) -> u64 {
        self.jumps.load(Ordering::Relaxed)
    }

    fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> UnixMs {
        let elapsed = self.elapsed_ms();
        let offset = self.offset_ms.load(Ordering::Relaxed);
        let last = self.corrected_at_ms.load(Ordering::Relaxed);
        // Corrections are made at most once a millisecond, by whoever sees it first.
        if elapsed > last
            && self.corrected_at_ms.compare_exchange(last, elapsed, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            let corrected = slew(offset, wall_us() / 1000 - elapsed, elapsed - last, &self.jumps);
            self.offset_ms.store(corrected, Ordering::Relaxed);
            return corrected + elapsed;
        }
        offset + elapsed
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn wall_us(&self) -> i64 {
        wall_us()
    }
}

/// The next offset, given the one followed so far, the one the machine shows now, and the time since the last look.
fn slew(followed: i64, shown: i64, elapsed_ms: i64, jumps: &AtomicU64) -> i64 {
    let behind = shown - followed;
    if behind.abs() <= JUMP_MS {
        return shown;
    }
    let step = (elapsed_ms / SLEW_DIVISOR).max(1);
    if behind.abs() > step + JUMP_MS && elapsed_ms > 0 {
        jumps.fetch_add(u64::from(behind.abs() / 1000 != (behind.abs() - step) / 1000), Ordering::Relaxed);
    }
    followed + behind.clamp(-step, step)
}

fn wall_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    }
}

/// A clock that moves only when told to, for tests and the simulator.
#[derive(Debug)]
pub struct ManualClock {
    now_us: AtomicI64,
    monotonic_ns: AtomicU64,
}

impl ManualClock {
    /// Starts at the given wall time.
    pub fn new(now_ms: UnixMs) -> Self {
        Self { now_us: AtomicI64::new(now_ms.saturating_mul(1000)), monotonic_ns: AtomicU64::new(0) }
    }

    /// Moves both clocks forward.
    pub fn advance_ms(&self, ms: u64) {
        self.now_us.fetch_add(i64::try_from(ms * 1000).unwrap_or(i64::MAX), Ordering::Relaxed);
        self.monotonic_ns.fetch_add(ms * 1_000_000, Ordering::Relaxed);
    }

    /// Sets the wall clock alone, forward or back.
    pub fn set_ms(&self, now_ms: UnixMs) {
        self.now_us.store(now_ms.saturating_mul(1000), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> UnixMs {
        self.now_us.load(Ordering::Relaxed) / 1000
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::Relaxed)
    }

    fn wall_us(&self) -> i64 {
        self.now_us.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small step of the wall clock is followed at once; a jump of an hour moves expirations by a tenth of the
    /// time that passes, not by an hour.
    #[test]
    fn jumps_are_slewed() {
        let jumps = AtomicU64::new(0);
        assert_eq!(slew(1_000, 1_500, 1, &jumps), 1_500);
        assert_eq!(jumps.load(Ordering::Relaxed), 0);
        assert_eq!(slew(0, 3_600_000, 1_000, &jumps), 100);
        assert_eq!(slew(0, -3_600_000, 1_000, &jumps), -100);
    }

    #[test]
    fn manual_clock_moves_when_told() {
        let clock = ManualClock::new(5);
        clock.advance_ms(10);
        assert_eq!((clock.now_ms(), clock.monotonic_ns()), (15, 10_000_000));
        clock.set_ms(-1);
        assert_eq!(clock.now_ms(), -1);
    }
}
