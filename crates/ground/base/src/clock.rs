//! Time, as a trait: wall time in milliseconds for expirations, monotonic nanoseconds for durations.
//!
//! C1. `monotonic_ns` never goes back; timers and latencies use it alone.
//! C2. `now_ms` is what expirations compare with. [`SystemClock`] derives it from the monotonic clock plus an offset,
//!     so that a jump of the machine's wall clock does not expire every key at once (redis/redis#416).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
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

/// After a jump, time runs faster or slower by one part in this many until it has caught up: it follows a jump of an
/// hour in ten hours, and the usual drift of a disciplined clock at once.
const SLEW_DIVISOR: i64 = 10;

/// Wall time that does not jump: monotonic time plus an offset that follows the machine's wall clock, at once by small
/// steps and slowly after a jump.
#[derive(Debug)]
pub struct Slew {
    /// wall - monotonic in ms, as followed so far. Written by whichever thread corrects it; a lost update is made up by
    /// the next reading.
    offset_ms: AtomicI64,
    /// Monotonic ms of the last correction.
    corrected_at_ms: AtomicI64,
    /// A jump is being followed.
    catching_up: AtomicBool,
    jumps: AtomicU64,
}

impl Slew {
    /// Starts at this wall time, with monotonic time 0.
    pub fn new(wall_ms: UnixMs) -> Self {
        Self {
            offset_ms: AtomicI64::new(wall_ms),
            corrected_at_ms: AtomicI64::new(0),
            catching_up: AtomicBool::new(false),
            jumps: AtomicU64::new(0),
        }
    }

    /// The slewed time. `wall_ms` is asked only when it is time for a correction.
    pub fn now_ms(&self, monotonic_ms: i64, wall_ms: impl FnOnce() -> UnixMs) -> UnixMs {
        let offset = self.offset_ms.load(Ordering::Relaxed);
        let last = self.corrected_at_ms.load(Ordering::Relaxed);
        // Whole shares only: rounded ones would add up to another speed.
        let elapsed = monotonic_ms.saturating_sub(last) / SLEW_DIVISOR * SLEW_DIVISOR;
        if elapsed > 0
            && self.corrected_at_ms.compare_exchange(last, last + elapsed, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            let shown = wall_ms().saturating_sub(monotonic_ms);
            let corrected = self.follow(offset, shown, elapsed);
            self.offset_ms.store(corrected, Ordering::Relaxed);
            return corrected.saturating_add(monotonic_ms);
        }
        offset.saturating_add(monotonic_ms)
    }

    /// The next offset, from the one in use, the one the machine shows now, and the time since the last correction.
    fn follow(&self, followed: i64, shown: i64, elapsed_ms: i64) -> i64 {
        let behind = shown.saturating_sub(followed);
        if !self.catching_up.load(Ordering::Relaxed) {
            if behind.saturating_abs() <= JUMP_MS {
                return shown;
            }
            self.catching_up.store(true, Ordering::Relaxed);
            self.jumps.fetch_add(1, Ordering::Relaxed);
        }
        let step = elapsed_ms / SLEW_DIVISOR;
        if behind.saturating_abs() <= step {
            self.catching_up.store(false, Ordering::Relaxed);
            return shown;
        }
        followed + behind.clamp(-step, step)
    }

    /// How many times wall time left the slewed time by more than [`JUMP_MS`].
    pub fn jump_count(&self) -> u64 {
        self.jumps.load(Ordering::Relaxed)
    }
}

/// The machine's clocks; wall time is slewed.
pub struct SystemClock {
    start: Instant,
    slew: Slew,
}

impl SystemClock {
    /// Starts from the machine's present wall time.
    pub fn new() -> Self {
        Self { start: Instant::now(), slew: Slew::new(wall_us() / 1000) }
    }

    /// How many times the machine's wall clock has jumped.
    pub fn jump_count(&self) -> u64 {
        self.slew.jump_count()
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> UnixMs {
        let elapsed = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.slew.now_ms(elapsed, || wall_us() / 1000)
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn wall_us(&self) -> i64 {
        wall_us()
    }
}

fn wall_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    }
}

/// A clock that tests and the simulator move by hand.
#[derive(Debug)]
pub struct ManualClock {
    now_us: AtomicI64,
    monotonic_ns: AtomicU64,
    /// What the monotonic clock moves by when it is read.
    tick_ns: AtomicU64,
}

impl ManualClock {
    /// Starts at the given wall time.
    pub fn new(now_ms: UnixMs) -> Self {
        let (now_us, monotonic_ns) = (AtomicI64::new(now_ms.saturating_mul(1000)), AtomicU64::new(0));
        Self { now_us, monotonic_ns, tick_ns: AtomicU64::new(0) }
    }

    /// Moves both clocks forward.
    pub fn advance_ms(&self, ms: u64) {
        self.now_us.fetch_add(i64::try_from(ms * 1000).unwrap_or(i64::MAX), Ordering::Relaxed);
        self.monotonic_ns.fetch_add(ms * 1_000_000, Ordering::Relaxed);
    }

    /// From now on each reading moves the monotonic clock by `ns`, as if work took time.
    pub fn tick_ns(&self, ns: u64) {
        self.tick_ns.store(ns, Ordering::Relaxed);
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
        self.monotonic_ns.fetch_add(self.tick_ns.load(Ordering::Relaxed), Ordering::Relaxed)
    }

    fn wall_us(&self) -> i64 {
        self.now_us.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the time every `interval_ms` for `duration_ms` while the wall clock is off by `jump_ms`; returns the time
    /// that has passed by the slewed clock.
    fn passed(slew: &Slew, from_ms: i64, duration_ms: i64, interval_ms: i64, jump_ms: i64) -> i64 {
        let read = |at: i64| slew.now_ms(at, || at + jump_ms);
        let start = read(from_ms);
        let mut last = start;
        let end = from_ms + duration_ms;
        for at in (from_ms..end).step_by(interval_ms as usize).chain([end]) {
            let now = read(at);
            assert!(now >= last, "time went back");
            last = now;
        }
        last - start
    }

    /// After a jump of an hour, time runs a tenth faster or slower, however often it is read. It neither jumps nor
    /// stops, and it arrives.
    #[test]
    fn jumps_are_slewed() {
        for interval_ms in [1, 7, 10, 50, 1000] {
            for jump_ms in [3_600_000i64, -3_600_000] {
                let slew = Slew::new(0);
                assert_eq!(passed(&slew, 0, 1000, interval_ms, 0), 1000);
                let (tenth, tolerance) = (jump_ms.signum() * 10_000, interval_ms.max(20));
                let in_100_s = passed(&slew, 1000, 100_000, interval_ms, jump_ms);
                assert!((in_100_s - 100_000 - tenth).abs() <= tolerance, "{interval_ms}, {jump_ms}: {in_100_s}");
                assert_eq!(slew.jump_count(), 1);
                passed(&slew, 101_000, 40_000_000, 1000, jump_ms);
                assert_eq!(slew.now_ms(40_200_000, || 40_200_000 + jump_ms), 40_200_000 + jump_ms);
                assert_eq!(slew.jump_count(), 1, "one jump, and no step at its end");
            }
        }
    }

    /// A small step is followed with the next correction.
    #[test]
    fn small_steps_are_followed_at_once() {
        let slew = Slew::new(0);
        assert_eq!(slew.now_ms(100, || 600), 600);
        assert_eq!(slew.now_ms(200, || 150), 150);
        assert_eq!(slew.jump_count(), 0);
    }

    /// The far ends of time do not overflow.
    #[test]
    fn absurd_wall_times_are_followed_too() {
        for wall in [i64::MAX, i64::MIN, i64::MAX / 1000, i64::MIN / 1000] {
            let slew = Slew::new(0);
            let times: Vec<i64> = (0..10).map(|n| slew.now_ms(n * 1000, || wall)).collect();
            assert!(times.windows(2).all(|pair| (900..=1100).contains(&(pair[1] - pair[0]))), "{times:?}");
        }
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
