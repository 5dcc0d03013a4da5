//! Access stamps: the 20 bits of an entry that say when, or how often, it was used.
//!
//! *Recency*: seconds of the store's clock, modulo 2^20 (twelve days; an entry idle for longer looks younger than it is).
//! *Frequency*: minutes modulo 2^12 (nearly three days) above an 8-bit logarithmic counter, after the scheme of Redis 4.0:
//! an access raises the counter with probability `1 / ((counter - 5) * log_factor + 1)`, and every `decay_minutes` without
//! access lower it by one.

use crate::layout::STAMP_BITS;
use base::{Rng, UnixMs};

const STAMP_MASK: u32 = (1 << STAMP_BITS) - 1;
const COUNTER_BITS: u32 = 8;
const MINUTES_MASK: u32 = STAMP_MASK >> COUNTER_BITS;

/// The counter of a new entry: above zero, so that it is not the first to go.
const COUNTER_INITIAL: u8 = 5;

/// How stamps are kept and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampMode {
    /// When an entry was used last.
    Recency,
    /// How often it is used.
    Frequency {
        /// How much harder each further step of the counter is (`lfu-log-factor`).
        log_factor: u32,
        /// Minutes without access that lower the counter by one; 0 never does (`lfu-decay-time`).
        decay_minutes: u32,
    },
}

/// The stamping clock of a shard.
#[derive(Clone, Debug)]
pub struct Stamps {
    mode: StampMode,
    /// Seconds or minutes, as stamps count them.
    clock: u32,
    now: UnixMs,
}

impl Stamps {
    /// A clock for this way of stamping.
    pub fn new(mode: StampMode) -> Self {
        Self { mode, clock: 0, now: 0 }
    }

    /// Changes the way of stamping. Stamps given before are read in the new way until their entries are used again.
    pub fn set_mode(&mut self, mode: StampMode) {
        self.mode = mode;
        self.set_time(self.now);
    }

    /// Tells the time.
    #[inline]
    pub fn set_time(&mut self, now: UnixMs) {
        self.now = now;
        let seconds = now.div_euclid(1000);
        self.clock = match self.mode {
            StampMode::Recency => seconds as u32 & STAMP_MASK,
            StampMode::Frequency { .. } => seconds.div_euclid(60) as u32 & MINUTES_MASK,
        };
    }

    /// The stamp of a new entry.
    #[inline]
    pub fn initial(&self) -> u32 {
        match self.mode {
            StampMode::Recency => self.clock,
            StampMode::Frequency { .. } => self.clock << COUNTER_BITS | u32::from(COUNTER_INITIAL),
        }
    }

    /// The stamp of an entry that takes the place of another under the same key: how often the key is used stays known.
    #[inline]
    pub fn replaced(&self, old: u32) -> u32 {
        match self.mode {
            StampMode::Recency => self.clock,
            StampMode::Frequency { .. } => old,
        }
    }

    /// The stamp after one more access.
    #[inline]
    pub fn touched(&self, stamp: u32, rng: &mut Rng) -> u32 {
        match self.mode {
            StampMode::Recency => self.clock,
            StampMode::Frequency { log_factor, .. } => {
                let counter = self.frequency(stamp);
                let above = u64::from(counter.saturating_sub(COUNTER_INITIAL));
                let raised = counter < u8::MAX && rng.one_in(above * u64::from(log_factor) + 1);
                self.clock << COUNTER_BITS | u32::from(counter + u8::from(raised))
            }
        }
    }

    /// Seconds since the last use, of a recency stamp; whole minutes of a frequency stamp.
    pub fn idle_seconds(&self, stamp: u32) -> u64 {
        match self.mode {
            StampMode::Recency => u64::from(self.clock.wrapping_sub(stamp) & STAMP_MASK),
            StampMode::Frequency { .. } => u64::from(self.idle_minutes(stamp)) * 60,
        }
    }

    /// The counter of a frequency stamp, decayed to now.
    #[inline]
    pub fn frequency(&self, stamp: u32) -> u8 {
        let counter = stamp as u8;
        let StampMode::Frequency { decay_minutes, .. } = self.mode else { return counter };
        let periods = self.idle_minutes(stamp).checked_div(decay_minutes).unwrap_or(0);
        counter.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
    }

    fn idle_minutes(&self, stamp: u32) -> u32 {
        self.clock.wrapping_sub(stamp >> COUNTER_BITS) & MINUTES_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LFU: StampMode = StampMode::Frequency { log_factor: 10, decay_minutes: 1 };

    /// Idle time counts seconds, also across the wrap of the clock.
    #[test]
    fn recency_counts_seconds() {
        let mut stamps = Stamps::new(StampMode::Recency);
        let wrap_ms = i64::from(STAMP_MASK) * 1000;
        stamps.set_time(wrap_ms);
        let stamp = stamps.initial();
        assert_eq!(stamps.idle_seconds(stamp), 0);
        stamps.set_time(wrap_ms + 61_999);
        assert_eq!(stamps.idle_seconds(stamp), 61);
        assert_eq!(stamps.idle_seconds(stamps.touched(stamp, &mut Rng::new(1))), 0);
    }

    /// The counter grows like a logarithm (Redis documents 10 for 100 hits and 142 for 100,000 at factor 10), and
    /// decays by one a minute.
    #[test]
    fn frequency_grows_and_decays() {
        let mut stamps = Stamps::new(LFU);
        stamps.set_time(1_000_000_000);
        let mut rng = Rng::new(2);
        let after = |hits: u32, rng: &mut Rng| (0..hits).fold(stamps.initial(), |stamp, _| stamps.touched(stamp, rng));
        let hundred = stamps.frequency(after(100, &mut rng));
        let many = after(100_000, &mut rng);
        assert!((7..=13).contains(&hundred), "{hundred}");
        assert!((130..=155).contains(&stamps.frequency(many)), "{}", stamps.frequency(many));
        let before = stamps.frequency(many);
        stamps.set_time(1_000_000_000 + 30 * 60_000);
        assert_eq!(stamps.frequency(many), before - 30);
        stamps.set_time(1_000_000_000 + 1_000 * 60_000);
        assert_eq!(stamps.frequency(many), 0);
    }
}
