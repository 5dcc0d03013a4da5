//! How much of the history is kept: decided when a checkpoint is named, and whenever the log has begun a segment.
//!
//! What is kept, and why, is [`checkpoint::Retention`]'s. This gives it the facts and removes what it gives up.

pub(crate) mod known;

use crate::error::DurabilityError;
use crate::keeper::{Durability, State};
use crate::policy::Policy;
use base::Lsn;
use checkpoint::{Manifest, ManifestFile, Moment, PIN_MS, Pin, SetInfo, Space};

/// Room to leave, and for what.
pub(crate) struct Room {
    /// Bytes that will be written before the next decision.
    pub reserve_bytes: u64,
    /// The server ends.
    pub is_end: bool,
}

impl State {
    /// Whether the log has grown by a segment since the last decision.
    pub(crate) fn is_trim_due(&self, segment_bytes: u64) -> bool {
        let segment = |lsn: Lsn| lsn.0 / segment_bytes.max(1);
        let has_grown = |end: Lsn| segment(end) != segment(self.history.decided_at);
        self.history.is_due || self.log.as_ref().is_some_and(|sink| has_grown(sink.log.end_lsn()))
    }
}

impl Durability {
    /// Removes what has become too old or too much. On the keeper's thread.
    pub(crate) fn trim(&self) {
        let policy = self.policy();
        {
            let mut state = self.state.lock();
            state.history.is_due = false;
            state.history.decided_at = state.log.as_ref().map_or(Lsn(0), |sink| sink.log.end_lsn());
        }
        let mut place = self.manifest.lock();
        let Some(manifest) = place.as_mut() else { return };
        let room = Room { reserve_bytes: policy.segment_bytes, is_end: false };
        if let Err(error) = self.give_up(&policy, manifest, &room) {
            self.parts.tell.say(&format!("checkpoints that are not kept any more could not be removed: {error}"));
        }
    }

    /// Makes room for a checkpoint as large as the last one.
    pub(crate) fn make_room(&self, policy: &Policy, manifest: &mut ManifestFile) -> Result<(), DurabilityError> {
        let expected = manifest.current().newest().map_or(0, SetInfo::bytes);
        let room = Room { reserve_bytes: expected.saturating_add(policy.segment_bytes), is_end: false };
        self.give_up(policy, manifest, &room)
    }

    fn give_up(&self, policy: &Policy, manifest: &mut ManifestFile, room: &Room) -> Result<(), DurabilityError> {
        let mut next = manifest.current().clone();
        if self.drop_obsolete(policy, &mut next, room)? == 0 {
            return Ok(());
        }
        next.retire_dictionaries(|_| true);
        manifest.commit(&self.dir, next)?;
        self.state.lock().look_at(manifest);
        self.remove_obsolete(manifest)
    }

    /// Takes the sets that are not kept from a manifest that is to be, and gives their number.
    pub(crate) fn drop_obsolete(
        &self,
        policy: &Policy,
        next: &mut Manifest,
        room: &Room,
    ) -> Result<usize, DurabilityError> {
        // Without a limit nothing is measured.
        let is_limited = policy.retention.space != Space::Unlimited;
        let segments = if is_limited { self.segments()? } else { Vec::new() };
        let free = is_limited.then(|| self.dir.fs().free_space(self.dir.path()).ok()).flatten();
        let log_bytes = |from: Lsn| {
            // A segment ends where the next one begins.
            let ends_before = |index: usize| segments.get(index + 1).is_some_and(|(next, _)| *next <= from);
            let needed = segments.iter().enumerate().filter(|(index, _)| !ends_before(*index));
            needed.map(|(_, (_, bytes))| *bytes).sum()
        };
        let pins = self.state.lock().history.pins.clone();
        let now = self.parts.clock.now_ms();
        let Room { reserve_bytes, is_end } = *room;
        let free_bytes = free.map_or(u64::MAX, |space| space.available);
        let moment = Moment { now, log_bytes: &log_bytes, free_bytes, reserve_bytes, pins: &pins, is_end };
        let obsolete = policy.retention.obsolete(next, &moment);
        next.sets.retain(|set| !obsolete.contains(&set.set));
        Ok(obsolete.len() + self.give_up_for_tier(policy, next))
    }

    /// First positions and lengths of the log's files.
    fn segments(&self) -> Result<Vec<(Lsn, u64)>, DurabilityError> {
        let fs = self.dir.fs();
        let mut segments = Vec::new();
        for first in self.dir.list()?.logs {
            let path = self.dir.file(checkpoint::Name::Log { first });
            let found = fs.metadata(&path).map_err(checkpoint::CheckpointError::from)?;
            segments.push((first, found.len));
        }
        Ok(segments)
    }

    /// Pins the newest set before `new` if a flush came between their cuts. `before` does not have `new` yet.
    pub(crate) fn pin_before_flush(&self, before: &Manifest, new: &SetInfo, flushes: u64) {
        let mut state = self.state.lock();
        let history = &mut state.history;
        history.pins.retain(|pin| new.created_ms.saturating_sub(pin.at_ms) < PIN_MS);
        if std::mem::replace(&mut history.flushes_at_cut, flushes) != flushes {
            history.pins.extend(before.newest().map(|set| Pin { set: set.set, at_ms: new.created_ms }));
        }
    }
}
