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
//! The first bit says which of the two a stamp is. So when the policy changes, no entry has to be touched: stamps of
//! the other kind are recognised until their entries are used again, and give what they can: when the entry was used
//! last, or that its use was not counted yet.

use crate::layout::STAMP_BITS;
use base::{Rng, UnixMs};
use engine::Usage;
use std::sync::atomic::{AtomicU64, Ordering};

const KIND_BIT: u32 = 1 << (STAMP_BITS - 1);
const SECONDS_MASK: u32 = KIND_BIT - 1;
const COUNTER_BITS: u32 = 8;
const MINUTES_MASK: u32 = SECONDS_MASK >> COUNTER_BITS;

/// The longest idle time that can be set: half of the stamp's range, so that it keeps counting for three days.
const IDLE_SECONDS_MAX: u32 = SECONDS_MASK / 2;

/// The counter of a new entry: above zero, so that it is not the first to go.
const COUNTER_INITIAL: u8 = 5;

/// How stamps are kept and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StampMode {
    /// When an entry was used last.
    #[default]
    Recency,
    /// How often it is used.
    Frequency {
        /// How much harder each further step of the counter is (`lfu-log-factor`).
        log_factor: u32,
        /// Minutes without access that lower the counter by one; 0 never does (`lfu-decay-time`).
        decay_minutes: u32,
    },
}

/// How all shards of a store keep stamps: one setting that each of them looks at when the time moves on.
#[derive(Debug, Default)]
pub struct SharedStampMode(AtomicU64);

/// Set in [`SharedStampMode`] for frequency; the factor stands below it, the minutes below that.
const SHARED_FREQUENCY: u64 = 1 << 63;
const SHARED_FACTOR_MAX: u32 = u32::MAX >> 1;

impl SharedStampMode {
    /// Changes the mode of stamping.
    pub fn set(&self, mode: StampMode) {
        let shared = match mode {
            StampMode::Recency => 0,
            StampMode::Frequency { log_factor, decay_minutes } => {
                SHARED_FREQUENCY | u64::from(log_factor.min(SHARED_FACTOR_MAX)) << 32 | u64::from(decay_minutes)
            }
        };
        self.0.store(shared, Ordering::Relaxed);
    }

    /// The setting.
    #[inline]
    pub fn get(&self) -> StampMode {
        let shared = self.0.load(Ordering::Relaxed);
        match shared & SHARED_FREQUENCY {
            0 => StampMode::Recency,
            _ => StampMode::Frequency {
                log_factor: (shared >> 32) as u32 & SHARED_FACTOR_MAX,
                decay_minutes: shared as u32,
            },
        }
    }
}

/// The stamping clock of a shard.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    mode: StampMode,
    /// The time, as stamps of each kind count it.
    seconds: u32,
    minutes: u32,
}

impl Stamps {
    /// Sets the time, and the mode of new stamps. Stamps made before a change of mode keep their meaning until their
    /// entries are used again.
    #[inline]
    pub fn set_time(&mut self, now: UnixMs, mode: StampMode) {
        self.mode = mode;
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

    /// The stamp of an entry with this usage, whether stamps count recency or frequency now.
    pub fn of_usage(&self, usage: Usage) -> u32 {
        match usage {
            Usage::IdleSeconds(seconds) => {
                let seconds = u32::try_from(seconds).unwrap_or(u32::MAX).min(IDLE_SECONDS_MAX);
                self.seconds.wrapping_sub(seconds) & SECONDS_MASK
            }
            Usage::Frequency(counter) => self.counted(counter),
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
        let mut stamps = Stamps::default();
        let wrap_ms = i64::from(SECONDS_MASK) * 1000;
        stamps.set_time(wrap_ms, StampMode::Recency);
        let stamp = stamps.initial();
        assert_eq!(stamps.idle_seconds(stamp), 0);
        stamps.set_time(wrap_ms + 61_999, StampMode::Recency);
        assert_eq!(stamps.idle_seconds(stamp), 61);
        assert_eq!(stamps.idle_seconds(stamps.touched(stamp, &mut Rng::new(1))), 0);
    }

    /// The counter grows like a logarithm (Redis documents 10 for 100 hits and 142 for 100,000 at factor 10), and
    /// decays by one a minute.
    #[test]
    fn frequency_grows_and_decays() {
        let mut stamps = Stamps::default();
        stamps.set_time(1_000_000_000, LFU);
        let mut rng = Rng::new(2);
        let after = |hits: u32, rng: &mut Rng| (0..hits).fold(stamps.initial(), |stamp, _| stamps.touched(stamp, rng));
        let hundred = stamps.frequency(after(100, &mut rng));
        let many = after(100_000, &mut rng);
        assert!((7..=13).contains(&hundred), "{hundred}");
        assert!((130..=155).contains(&stamps.frequency(many)), "{}", stamps.frequency(many));
        let before = stamps.frequency(many);
        stamps.set_time(1_000_000_000 + 30 * 60_000, LFU);
        assert_eq!(stamps.frequency(many), before - 30);
        stamps.set_time(1_000_000_000 + 1_000 * 60_000, LFU);
        assert_eq!(stamps.frequency(many), 0);
    }

    /// RESTORE says how an entry was used; what is longer ago than a stamp counts is half of that.
    #[test]
    fn usage_can_be_told() {
        let mut stamps = Stamps::default();
        stamps.set_time(1_700_000_000_000, StampMode::Recency);
        let idle = |seconds| stamps.idle_seconds(stamps.of_usage(Usage::IdleSeconds(seconds)));
        assert_eq!((idle(0), idle(1000)), (0, 1000));
        assert_eq!((idle(u64::MAX), idle(1 << 32)), (u64::from(IDLE_SECONDS_MAX), u64::from(IDLE_SECONDS_MAX)));
        assert_eq!(stamps.frequency(stamps.of_usage(Usage::Frequency(200))), 200);
    }

    #[test]
    fn settings_are_shared_whole() {
        let shared = SharedStampMode::default();
        assert_eq!(shared.get(), StampMode::Recency);
        for (log_factor, decay_minutes) in [(0, 0), (10, 1), (SHARED_FACTOR_MAX, u32::MAX)] {
            let mode = StampMode::Frequency { log_factor, decay_minutes };
            shared.set(mode);
            assert_eq!(shared.get(), mode);
        }
        shared.set(StampMode::Recency);
        assert_eq!(shared.get(), StampMode::Recency);
    }

    /// After the policy has changed, a stamp of the other kind is never read as one of this kind: an entry that was
    /// used a lot is not mistaken for one never used, nor the other way round.
    #[test]
    fn stamps_outlive_a_change_of_policy() {
        let mut rng = Rng::new(3);
        // Every minute of a range in which the lower bits of the seconds take all values of a counter.
        for minute in 0..600 {
            let mut stamps = Stamps::default();
            let start = 1_700_000_000_000 + minute * 60_000;
            stamps.set_time(start, StampMode::Recency);
            let recent = stamps.initial();
            stamps.set_time(start + 90_000, LFU);
            assert_eq!((stamps.frequency(recent), stamps.idle_seconds(recent)), (COUNTER_INITIAL, 90));
            assert_eq!(stamps.replaced(recent), stamps.initial());
            let counted = stamps.touched(recent, &mut rng);
            assert_eq!(stamps.frequency(counted), COUNTER_INITIAL + 1, "the first access always counts");
            stamps.set_time(start + 210_000, StampMode::Recency);
            assert_eq!(stamps.idle_seconds(counted) / 60, 2);
            assert_eq!(stamps.idle_seconds(stamps.touched(counted, &mut rng)), 0);
        }
    }
}
