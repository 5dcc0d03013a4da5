//! A stream as the changes that build it.

use super::{Big, Change, Claim, Claims, Group};
use crate::Progress;

/// Where saving is. [`Progress`] holds the number of a section (0: the entries, *n*: group *n* - 1) and how far it has come:
/// nodes of the entries, or consumers and then pending entries of the group.
impl Big {
    /// See [`crate::Big::write_changes`].
    pub fn write_changes(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        let end = out.len().saturating_add(budget.max(1));
        let Progress(mut section, mut done) = from;
        if section == 0 {
            for node in self.nodes.skipping(done) {
                if done > from.1 && out.len() >= end {
                    return Some(Progress(0, done));
                }
                for entry in node.entries() {
                    let strings = entry.fields().flat_map(<[_; 2]>::from);
                    Change::put_add(out, entry.id, entry.field_count() as u64, strings);
                }
                done += 1;
            }
            Change::SetId { last: self.last, added: self.added, deleted: self.deleted }.put(out);
            (section, done) = (1, 0);
        }
        for group in self.groups.skipping(section - 1) {
            if out.len() >= end {
                return Some(Progress(section, done));
            }
            if let Some(done) = group.write_changes(done, end, out) {
                return Some(Progress(section, done));
            }
            (section, done) = (section + 1, 0);
        }
        None
    }
}

impl Group {
    /// Appends what builds this group, without its first `done` consumers and pending entries. Gives how many are done, if
    /// that was not the end.
    fn write_changes(&self, mut done: u64, end: usize, out: &mut Vec<u8>) -> Option<u64> {
        if done == 0 {
            Change::SetGroup { group: self.name(), last: self.last, read: self.read }.put(out);
        }
        for consumer in self.consumers_skipping(done) {
            let (seen, active) = (consumer.seen(), consumer.active());
            Change::SetConsumer { group: self.name(), consumer: consumer.name(), seen, active }.put(out);
            done += 1;
            if out.len() >= end {
                return Some(done);
            }
        }
        let mut claims: Vec<Claim> = Vec::new();
        let mut owner: &[u8] = b"";
        for pending in self.pending_skipping(done - self.consumer_count()) {
            if !claims.is_empty() && (pending.owner() != owner || claims.len() == CLAIMS_MAX) {
                self.write_claims(owner, &claims, out);
                claims.clear();
                if out.len() >= end {
                    return Some(done);
                }
            }
            owner = pending.owner();
            claims.push(pending.claim());
            done += 1;
        }
        self.write_claims(owner, &claims, out);
        None
    }

    fn write_claims(&self, consumer: &[u8], claims: &[Claim], out: &mut Vec<u8>) {
        if !claims.is_empty() {
            let mut buffer = Vec::new();
            let claims = Claims::collect(claims.iter().copied(), &mut buffer);
            Change::Deliver { group: self.name(), consumer, claims }.put(out);
        }
    }
}

/// Claims in one change, so that a step of saving is short.
const CLAIMS_MAX: usize = 128;
