//! A stream as the changes that build it.

use super::node::Node;
use super::{Big, Change, Claim, Claims, Group, Id};
use crate::cold::{Cold, Keeper};
use crate::saved::{self, OfRows};
use crate::{Limits, Progress, Type};
use std::sync::Arc;

/// How far saving has come. [`Progress`] holds the number of a section (0: the entries, *n*: group *n* - 1) and the
/// position in it: nodes of the entries, or consumers and then pending entries of the group.
impl Big {
    /// See [`crate::Big::write_changes`].
    pub fn write_changes(&self, from: Progress, budget: usize, out: &mut Vec<u8>) -> Option<Progress> {
        let end = out.len().saturating_add(budget.max(1));
        let Progress(section, mut done) = from;
        if section > 0 {
            return self.write_groups(from, end, out);
        }
        let mut scratch = Vec::new();
        for node in self.nodes.skipping(done) {
            if done > from.1 && out.len() >= end {
                return Some(Progress(0, done));
            }
            write_entries(node, &mut scratch, out);
            done += 1;
        }
        Change::SetId { last: self.last, added: self.added, deleted: self.deleted }.put(out);
        self.write_groups(Progress(1, 0), end, out)
    }

    fn write_groups(
        &self,
        Progress(mut section, mut done): Progress,
        end: usize,
        out: &mut Vec<u8>,
    ) -> Option<Progress> {
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

/// Leaf by leaf, a stream is saved as its nodes: a compressed one as it is, followed by its other numbers and the id of
/// its first entry; others as the changes that make their entries. Everything else follows, also as changes.
impl Big {
    /// See [`crate::Big::write_leaves`]. Progress is that of [`Self::write_changes`].
    pub(crate) fn write_leaves(
        &self,
        from: Progress,
        (budget, rows): (usize, OfRows),
        out: &mut Vec<u8>,
    ) -> Option<Progress> {
        let end = out.len().saturating_add(budget.max(1));
        let Progress(section, mut done) = from;
        let (mut scratch, mut changes) = (Vec::new(), Vec::new());
        if section == 0 {
            for node in self.nodes.skipping(done) {
                if done > from.1 && out.len() >= end {
                    return Some(Progress(0, done));
                }
                if saved::put_stored(node.bytes().cold(), node.live() as usize, rows, out) {
                    node.put_head(out);
                    let first = if done == 0 { self.first } else { *node.first_ever() };
                    [first.ms, first.seq].iter().for_each(|number| base::varint::put(out, *number));
                } else {
                    changes.clear();
                    write_entries(node, &mut scratch, &mut changes);
                    saved::Leaf::Plain(&changes).put(out);
                }
                done += 1;
            }
        }
        changes.clear();
        let progress = if section == 0 {
            Change::SetId { last: self.last, added: self.added, deleted: self.deleted }.put(&mut changes);
            Progress(1, 0)
        } else {
            from
        };
        let room = end.saturating_sub(out.len()).max(1);
        let groups_end = changes.len().saturating_add(room);
        let next = self.write_groups(progress, groups_end, &mut changes);
        if !changes.is_empty() {
            saved::Leaf::Plain(&changes).put(out);
        }
        next
    }

    /// See [`crate::Big::push_leaves`]. `None` when these are none.
    pub(crate) fn push_leaves(&mut self, mut rest: &[u8], keeper: &Arc<dyn Keeper>) -> Option<()> {
        let limits = Limits::default();
        while !rest.is_empty() {
            match saved::Leaf::take(&mut rest)? {
                saved::Leaf::Plain(changes) => self.apply_all(changes, &limits),
                leaf => {
                    let (cold, count) = leaf.cold(keeper)?;
                    self.may_have_rows |= cold.is_row();
                    let (node, first) = take_node(&mut rest, count, || Some(cold))?;
                    self.first = if self.length == 0 { first } else { self.first };
                    self.length += node.live();
                    self.last = *node.last_ever();
                    self.nodes.push(node);
                }
            }
        }
        Some(())
    }

    /// See [`crate::Big::check_leaves`].
    pub(crate) fn check_leaves(mut rest: &[u8], is_stored: impl Fn(&[u8]) -> bool) -> bool {
        if rest.is_empty() {
            return false;
        }
        while !rest.is_empty() {
            let is_good = match saved::Leaf::take(&mut rest) {
                Some(saved::Leaf::Plain(changes)) => !changes.is_empty() && crate::check_changes(Type::Stream, changes),
                Some(saved::Leaf::Cold { stored, .. }) => is_stored(stored) && skip_head(&mut rest).is_some(),
                Some(saved::Leaf::Row { .. }) | None => false,
            };
            if !is_good {
                return false;
            }
        }
        true
    }

    /// See [`crate::Big::stored_in_leaves`].
    pub(crate) fn stored_in_leaves<'a>(mut rest: &'a [u8], visit: &mut dyn FnMut(saved::Leaf<'a>)) {
        while let Some(leaf) = saved::Leaf::take(&mut rest) {
            if !matches!(leaf, saved::Leaf::Plain(_)) {
                visit(leaf);
                skip_head(&mut rest);
            }
        }
    }
}

/// The node whose numbers follow, and the id of its first entry.
fn take_node(rest: &mut &[u8], live: usize, cold: impl FnOnce() -> Option<Cold>) -> Option<(Node, Id)> {
    let node = Node::take_head(rest, live, cold)?;
    let first = Id { ms: base::varint::take(rest)?, seq: base::varint::take(rest)? };
    Some((node, first))
}

/// Takes the numbers of a node.
fn skip_head(rest: &mut &[u8]) -> Option<()> {
    const NUMBERS: usize = 9;
    (0..NUMBERS).try_for_each(|_| base::varint::take(rest).map(drop))
}

/// Appends the changes that make the entries of a node.
fn write_entries(node: &Node, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    for entry in node.entries_once(scratch) {
        let strings = entry.fields().flat_map(<[_; 2]>::from);
        Change::put_add(out, entry.id, entry.field_count() as u64, strings);
    }
}

impl Group {
    /// Appends the changes that build this group, without its first `done` consumers and pending entries. Returns how
    /// many are done, if that was not the end.
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
