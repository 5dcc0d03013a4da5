//! Cleaning of the tier: live values of partly dead segments move to other segments, and checkpoints that keep too many
//! dead ones are given up.
//!
//! ```text
//! victim: smallest live share -> scan its file -> entry has the address? -> append, new address -> remove segment (T3)
//! ```
//!
//! The address is compared under the shard's lock, so a value that has changed meanwhile is dropped. A move is no
//! change of a value: it is not logged, and a running checkpoint may save either address.

use crate::keeper::{Durability, State, Tell};
use crate::policy::Policy;
use checkpoint::Manifest;
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

/// A checkpoint is taken when it would free more than this part of the live bytes.
const FREED_SHARE: u64 = 8;

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
                Outcome::Refused if self.tier.pause(RETRY) => {}
                Outcome::Refused | Outcome::Ended => return,
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

impl Durability {
    /// Cleans the segment of the tier that is next, if there is one; with `is_short` as if space were short. For tests,
    /// which have no thread for it.
    pub fn clean_tier(&self, is_short: bool) -> bool {
        self.tier.get().is_some_and(|open| open.cleaner.clean_next(is_short))
    }

    /// The bytes that a checkpoint would free on the tier, when they are worth one.
    pub(crate) fn tier_bytes_due(&self, policy: &Policy, state: &State) -> Option<u64> {
        let (tier, newest) = (self.tier()?, state.set_span?.1);
        let (_, freed) = tier.pinned_before(newest);
        let (limit, figures) = (self.tier_retain_max(policy), tier.figures());
        let is_due = freed > (figures.live_bytes / FREED_SHARE).max(2 * tier.segment_bytes())
            || freed > limit.max(tier.segment_bytes());
        is_due.then_some(freed)
    }

    fn tier_retain_max(&self, policy: &Policy) -> u64 {
        policy.tier.as_ref().map_or(u64::MAX, |tier| tier.retain_max_bytes)
    }

    /// Whether checkpoints are to be given up, since the segments that they keep are too many.
    pub(crate) fn is_tier_over_limit(&self, policy: &Policy, state: &State) -> bool {
        let (Some(tier), Some((oldest, newest))) = (self.tier(), state.set_span) else { return false };
        oldest < newest && excess(tier, oldest, newest) > self.tier_retain_max(policy)
    }

    /// Takes the oldest sets from a manifest that is to be, until the dead segments that they keep are within
    /// `tier-retain-max-bytes`. Gives how many it took.
    pub(crate) fn give_up_for_tier(&self, policy: &Policy, next: &mut Manifest) -> usize {
        let (Some(tier), before) = (self.tier(), next.sets.len()) else { return 0 };
        let limit = self.tier_retain_max(policy);
        while let [oldest, .., newest] = &next.sets[..] {
            let kept = excess(tier, oldest.set.0, newest.set.0);
            if kept <= limit {
                break;
            }
            self.parts.tell.warn(&format!(
                "checkpoint {} is given up: dead segments of the tier that old checkpoints keep take {kept} bytes, more \
                 than tier-retain-max-bytes {limit}; restores begin at a later moment now",
                oldest.set.0
            ));
            next.sets.remove(0);
        }
        before - next.sets.len()
    }
}

/// Bytes of dead segments that `oldest` keeps; 0 if `newest` keeps them all, since giving up `oldest` frees nothing
/// then.
fn excess(tier: &Tier, oldest: u32, newest: u32) -> u64 {
    let kept_from = |set| tier.pinned_before(set).1;
    let (by_oldest, by_newest) = (kept_from(oldest), kept_from(newest));
    if by_oldest > by_newest { by_oldest } else { 0 }
}
