//! Cleaning of one segment of the tier: its live values move to other segments.

use crate::tell::Tell;
use engine::tier::TierRecord;
use engine::{TierRefusal, ValueTier};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;
use tier::{Tier, TierError};

/// Bytes of a segment that are scanned between two pauses.
const STEP_BYTES: u64 = 1 << 20;

/// The longest pause. Pauses are as long as the step before, so cleaning takes half of a core and of a device at most.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Time before a refused move is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Moves values within a tier.
pub(crate) struct Cleaner {
    pub tier: Arc<Tier>,
    pub store: Arc<Store>,
    pub tell: Arc<dyn Tell>,
}

/// How the cleaning of a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Cleaned,
    /// The tier takes no values now.
    Refused,
    /// The server ends.
    Ended,
}

impl Cleaner {
    /// Cleans until the tier is ended: the work of a thread.
    pub fn run(&self) {
        while let Some(segment) = self.tier.wait_for_victim() {
            match self.clean(segment, true) {
                Outcome::Cleaned => {}
                Outcome::Refused => {
                    self.tier.stop_cleaning();
                    if !self.tier.pause(RETRY) {
                        return;
                    }
                }
                Outcome::Ended => return,
            }
        }
    }

    /// Cleans the segment that is next, without pauses. False when there is none, or the tier takes no values.
    pub fn clean_next(&self, is_short: bool) -> bool {
        // A segment that is being written is not cleaned: what is cleaned next must not hang on the writer's thread.
        self.tier.relieve();
        self.tier.victim(is_short).is_some_and(|segment| self.clean(segment, false) == Outcome::Cleaned)
    }

    fn clean(&self, segment: u32, is_paced: bool) -> Outcome {
        let outcome = self.move_all(segment, is_paced).unwrap_or_else(|error| {
            self.tell.warn(&format!("tier segment {segment} cannot be cleaned, its space is not freed: {error}"));
            Outcome::Cleaned
        });
        if outcome == Outcome::Cleaned {
            self.tier.set_cleaned(segment);
            // Segments that no checkpoint may name.
            if let Err(error) = self.tier.retire(None) {
                self.tell.warn(&format!("a cleaned segment of the tier could not be removed: {error}"));
            }
        }
        outcome
    }

    fn move_all(&self, segment: u32, is_paced: bool) -> Result<Outcome, TierError> {
        let mut scan = self.tier.scan(segment)?;
        let (mut step_end, mut begin) = (STEP_BYTES, Instant::now());
        while let Some(record) = scan.next_record()? {
            if self.move_one(&record).is_err() {
                return Ok(Outcome::Refused);
            }
            if is_paced && scan.at() >= step_end {
                let pause = if self.tier.is_short() { Duration::ZERO } else { begin.elapsed().min(PAUSE_MAX) };
                if !self.tier.pause(pause) {
                    return Ok(Outcome::Ended);
                }
                (step_end, begin) = (scan.at() + STEP_BYTES, Instant::now());
            }
        }
        Ok(Outcome::Cleaned)
    }

    /// Moves a record if it is live. What waits to be written is written first if it is too much.
    fn move_one(&self, record: &TierRecord<'_>) -> Result<(), TierRefusal> {
        loop {
            match self.store.move_on_tier(record) {
                Err(TierRefusal::Busy) => self.tier.relieve(),
                result => return result.map(drop),
            }
        }
    }
}
