//! Cleaning of the tier: live values of partly dead segments move to other segments, and checkpoints that keep too many
//! dead ones are given up.
//!
//! ```text
//! victim: smallest live share -> scan its file -> entry has the address? -> append, new address -> remove segment (T3)
//! ```
//!
//! The address is compared under the shard's lock, so a value that has changed meanwhile is dropped. A move is no
//! change of a value: it is not logged, and a running checkpoint may save either address.

use crate::keeper::{Durability, State};
use crate::policy::Policy;
use checkpoint::Manifest;
use tier::Tier;

/// A checkpoint is taken when it would free more than this part of the live bytes.
const FREED_SHARE: u64 = 8;

impl Durability {
    /// Cleans the segment of the tier that is next, if there is one; with `is_short` as if space were short. For tests,
    /// which have no thread for it.
    pub fn clean_tier(&self, is_short: bool) -> bool {
        self.tier.get().is_some_and(|open| open.cleaner.clean_next(is_short))
    }

    /// Scrubs the tier once, without pauses. For tests, as above.
    pub fn scrub_tier(&self) -> bool {
        self.tier.get().is_some_and(|open| open.scrubber.round(0))
    }

    /// The bytes that a checkpoint would free on the tier, when they are worth one.
    pub(crate) fn tier_bytes_due(&self, policy: &Policy, state: &State) -> Option<u64> {
        let (tier, newest) = (self.tier()?, state.set_span.map_or(0, |(_, newest)| newest));
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
