//! Scrubbing: reading all values of the tier, to find damage before a client does.
//!
//! A segment that has places without a record is read twice: the second time, the store says of each record whether an
//! entry has it. What is missing of the live bytes then is damaged: dead records, and what a crash left at the end of a
//! segment, raise no alarm.

use crate::tell::Tell;
use engine::tier::{NewRecord, TierRecord};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::Store;
use tier::{Tier, TierError};

/// How often the time is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// When the first scrub begins, unless the interval is shorter.
const FIRST: Duration = Duration::from_secs(3600);

/// Bytes that are read between two pauses.
const STEP_BYTES: u64 = 1 << 20;

/// How many times as long as the step before a pause is.
const PAUSE_PARTS: u32 = 9;

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Reads a tier through, again and again.
pub(crate) struct Scrubber {
    pub tier: Arc<Tier>,
    pub store: Arc<Store>,
    pub tell: Arc<dyn Tell>,
    pub seconds: AtomicU64,
}

/// What reading a segment gave.
struct Found {
    bytes: u64,
    /// Bytes of live records that cannot be read.
    damaged: u64,
    /// The first place without a record.
    first: u64,
}

impl Scrubber {
    /// Follows a changed setting.
    pub fn set_interval(&self, seconds: u64) {
        self.seconds.store(seconds, Ordering::Relaxed);
    }

    /// Scrubs until the tier is ended: the work of a thread.
    pub fn run(&self) {
        let (mut since, mut is_first) = (Instant::now(), true);
        while self.tier.pause(LOOK) {
            let every = Duration::from_secs(self.seconds.load(Ordering::Relaxed));
            let wait = if is_first { every.min(FIRST) } else { every };
            if every > Duration::ZERO && since.elapsed() >= wait {
                if !self.round(PAUSE_PARTS) {
                    return;
                }
                (since, is_first) = (Instant::now(), false);
            }
        }
    }

    /// Reads all segments, with pauses `pause_parts` times as long as the steps before them. False when the tier ended.
    pub fn round(&self, pause_parts: u32) -> bool {
        for segment in self.tier.segments_to_scrub() {
            match self.look_at(segment, pause_parts) {
                Ok(Some(found)) => self.report(segment, &found),
                Ok(None) => return false,
                Err(error) => self.report_unreadable(segment, &error),
            }
        }
        self.tier.note_scrub_round();
        true
    }

    fn report(&self, segment: u32, found: &Found) {
        if self.tier.note_scrubbed(segment, found.bytes, found.damaged) {
            self.tell.warn(&format!(
                "tier segment {segment} is damaged: {} bytes of values cannot be read, the first damaged place is at \
                 offset {}; their keys answer IOERR, until they are deleted or overwritten",
                found.damaged, found.first
            ));
        }
    }

    fn report_unreadable(&self, segment: u32, error: &TierError) {
        let live = self.tier.live_bytes_of(segment);
        // Without live records, it may be gone.
        if self.tier.note_scrubbed(segment, 0, live) {
            self.tell.warn(&format!("tier segment {segment} cannot be read, it has {live} bytes of values: {error}"));
        }
    }

    /// Reads a segment. `None` when the tier ended.
    fn look_at(&self, segment: u32, pause_parts: u32) -> Result<Option<Found>, TierError> {
        let mut scan = self.tier.scan(segment)?;
        let mut pace = Pace::new(&self.tier, pause_parts);
        while let Some(record) = scan.next_record()? {
            self.tier.note_checked(record.address);
            if !pace.step(scan.at()) {
                return Ok(None);
            }
        }
        let bytes = scan.bytes();
        let Some(first) = scan.damaged().first().map(|damaged| damaged.start) else {
            return Ok(Some(Found { bytes, damaged: 0, first: 0 }));
        };
        let live = self.tier.live_bytes_of(segment);
        let (mut scan, mut pace, mut whole) = (self.tier.scan(segment)?, Pace::new(&self.tier, pause_parts), 0);
        while let Some(record) = scan.next_record()? {
            let TierRecord { address, record: NewRecord { key, .. } } = record;
            whole += self.store.count_on_tier(key, address) as u64 * tier::record_bytes(key.len(), address.len);
            if !pace.step(scan.at()) {
                return Ok(None);
            }
        }
        let live = live.min(self.tier.live_bytes_of(segment));
        Ok(Some(Found { bytes, damaged: live.saturating_sub(whole), first }))
    }
}

/// Pauses after each step.
struct Pace<'t> {
    tier: &'t Tier,
    parts: u32,
    end: u64,
    begin: Instant,
}

impl<'t> Pace<'t> {
    fn new(tier: &'t Tier, parts: u32) -> Self {
        Self { tier, parts, end: STEP_BYTES, begin: Instant::now() }
    }

    /// Reading has come to this place. False when the tier ended.
    fn step(&mut self, at: u64) -> bool {
        if at < self.end {
            return true;
        }
        let goes_on = self.tier.pause((self.begin.elapsed() * self.parts).min(PAUSE_MAX));
        (self.end, self.begin) = (at + STEP_BYTES, Instant::now());
        goes_on
    }
}
