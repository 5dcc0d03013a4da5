//! Access stamps: the 20 bits of an entry that say when, or how often, it was used.
//!
//! ```text
//! 0 | seconds, modulo 2^19                       recency: idle for longer than six days looks younger than it is
//! 1 | minutes, modulo 2^11 | counter, 8 bits     frequency: a day and a half
//! ```
//!
//! The counter is logarithmic, after the scheme of Redis 4.0: an access raises it with probability
//! `1 / ((counter - 5) * log_factor + 1)`, and every `decay_minutes` without access lower it by one.
//!
//! The first bit says which of the two a stamp is. So when the policy changes, no entry has to be touched: stamps of the
//! other kind are told apart until their entries are used again, and say what they can - when the entry was used last, or
//! that its use was not counted yet.

use crate::layout::STAMP_BITS;
use base::{Rng, UnixMs};

const KIND_BIT: u32 = 1 << (STAMP_BITS - 1);
const SECONDS_MASK: u32 = KIND_BIT - 1;
const COUNTER_BITS: u32 = 8;
const MINUTES_MASK: u32 = SECONDS_MASK >> COUNTER_BITS;

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
    /// The time, as stamps of each kind count it.
    seconds: u32,
    minutes: u32,
}

impl Stamps {
    /// A clock for this way of stamping.
    pub fn new(mode: StampMode) -> Self {
        Self { mode, seconds: 0, minutes: 0 }
    }

    /// Changes the way of stamping. Stamps given before keep their meaning until their entries are used again.
    pub fn set_mode(&mut self, mode: StampMode) {
        self.mode = mode;
    }

    /// Tells the time.
    #[inline]
    pub fn set_time(&mut self, now: UnixMs) {
        let seconds = now.div_euclid(1000);
        self.seconds = seconds as u32 & SECONDS_MASK;
        self.minutes = seconds.div_euclid(60) as u32 & MINUTES_MASK;
    }

    /// The stamp of a new entry.
    #[inline]
    pub fn initial(&self) -> u32 {
        match self.mode {
            StampMode::Recency => self.seconds,
            StampMode::Frequency { .. } => self.counted(COUNTER_INITIAL),
        }
    }

    /// The stamp of an entry that takes the place of another under the same key: how often the key is used stays known.
    #[inline]
    pub fn replaced(&self, old: u32) -> u32 {
        match self.mode {
            StampMode::Frequency { .. } if is_counted(old) => old,
            _ => self.initial(),
        }
    }

    /// The stamp after one more access.
    #[inline]
    pub fn touched(&self, stamp: u32, rng: &mut Rng) -> u32 {
        match self.mode {
            StampMode::Recency => self.seconds,
            StampMode::Frequency { log_factor, .. } => {
                let counter = self.frequency(stamp);
                let above = u64::from(counter.saturating_sub(COUNTER_INITIAL));
                let raised = counter < u8::MAX && rng.one_in(above * u64::from(log_factor) + 1);
                self.counted(counter + u8::from(raised))
            }
        }
    }

    /// Seconds since the last use; whole minutes when the stamp counts accesses.
    pub fn idle_seconds(&self, stamp: u32) -> u64 {
        match is_counted(stamp) {
            false => u64::from(self.seconds.wrapping_sub(stamp) & SECONDS_MASK),
            true => u64::from(self.idle_minutes(stamp)) * 60,
        }
    }

    /// The counter of accesses, decayed to now; that of a new entry when the stamp does not count them.
    #[inline]
    pub fn frequency(&self, stamp: u32) -> u8 {
        if !is_counted(stamp) {
            return COUNTER_INITIAL;
        }
        let counter = stamp as u8;
        let StampMode::Frequency { decay_minutes, .. } = self.mode else { return counter };
        let periods = self.idle_minutes(stamp).checked_div(decay_minutes).unwrap_or(0);
        counter.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
    }

    fn counted(&self, counter: u8) -> u32 {
        KIND_BIT | self.minutes << COUNTER_BITS | u32::from(counter)
    }

    fn idle_minutes(&self, stamp: u32) -> u32 {
        self.minutes.wrapping_sub(stamp >> COUNTER_BITS) & MINUTES_MASK
    }
}

/// Whether a stamp counts accesses.
#[inline]
fn is_counted(stamp: u32) -> bool {
    stamp & KIND_BIT != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LFU: StampMode = StampMode::Frequency { log_factor: 10, decay_minutes: 1 };

    /// Idle time counts seconds, also across the wrap of the clock.
    #[test]
    fn recency_counts_seconds() {
        let mut stamps = Stamps::new(StampMode::Recency);
        let wrap_ms = i64::from(SECONDS_MASK) * 1000;
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
    /// After the policy has changed, a stamp of the other kind is never read as one of this kind: an entry that was used a
    /// lot is not mistaken for one never used, nor the other way round.
    #[test]
    fn stamps_outlive_a_change_of_policy() {
        let mut rng = Rng::new(3);
        // Every minute of a range in which the lower bits of the seconds take all values of a counter.
        for minute in 0..600 {
            let mut stamps = Stamps::new(StampMode::Recency);
            let start = 1_700_000_000_000 + minute * 60_000;
            stamps.set_time(start);
            let recent = stamps.initial();
            stamps.set_mode(LFU);
            stamps.set_time(start + 90_000);
            assert_eq!((stamps.frequency(recent), stamps.idle_seconds(recent)), (COUNTER_INITIAL, 90));
            assert_eq!(stamps.replaced(recent), stamps.initial());
            let counted = stamps.touched(recent, &mut rng);
            assert_eq!(stamps.frequency(counted), COUNTER_INITIAL + 1, "the first access always counts");
            stamps.set_mode(StampMode::Recency);
            stamps.set_time(start + 210_000);
            assert_eq!(stamps.idle_seconds(counted) / 60, 2);
            assert_eq!(stamps.idle_seconds(stamps.touched(counted, &mut rng)), 0);
        }
    }
}
