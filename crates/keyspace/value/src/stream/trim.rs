//! How many entries a trimming removes.

use super::node::NodeLimits;
use super::{Big, Fields, Id};
use crate::Limits;

/// What trimming leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// At most this many entries.
    MaxLength(u64),
    /// Entries with this id and above.
    MinId(Id),
}

/// An entry that is added before the stream is trimmed.
#[derive(Clone, Copy, Debug)]
pub struct Added {
    id: Id,
    bytes: usize,
}

impl Added {
    /// With these names and values.
    pub fn new<'s>(id: Id, strings: impl Iterator<Item = &'s [u8]>) -> Self {
        Self { id, bytes: Fields::bytes_of(strings) }
    }
}

impl Big {
    /// How many entries are removed by exact trimming, once `added` is there.
    pub fn trimmed_exactly(&self, trim: Trim, added: Option<Added>) -> u64 {
        let min = match trim {
            Trim::MaxLength(max) => return (self.len() + u64::from(added.is_some())).saturating_sub(max),
            Trim::MinId(min) => min,
        };
        let mut count = u64::from(added.is_some_and(|added| added.id < min));
        for node in self.nodes.skipping(0) {
            if *node.last_ever() < min {
                count += node.live();
            } else {
                count += node.entries().take_while(|entry| entry.id < min).count() as u64;
                break;
            }
        }
        count
    }

    /// How many entries approximate trimming removes, once `added` is there: whole nodes only, and of these as many as
    /// have at most `most` entries together, if that is given.
    pub fn trimmed_roughly(&self, trim: Trim, most: Option<u64>, added: Option<Added>, limits: &Limits) -> u64 {
        let length = self.len() + u64::from(added.is_some());
        if matches!(trim, Trim::MaxLength(max) if length <= max) {
            return 0;
        }
        let begins = added.filter(|added| self.nodes.would_begin(added.bytes, NodeLimits::of(limits)));
        let grows = added.filter(|_| begins.is_none());
        let last_node = self.node_count().checked_sub(1);
        let nodes = self.nodes.skipping(0).zip(0..).map(|(node, nth)| match grows {
            Some(added) if Some(nth) == last_node => (node.live() + 1, added.id),
            _ => (node.live(), *node.last_ever()),
        });
        let mut count = 0;
        for (entries, last) in nodes.chain(begins.map(|added| (1, added.id))) {
            let goes = match trim {
                Trim::MaxLength(max) => length - count - entries >= max && length - count > max,
                Trim::MinId(min) => last < min,
            };
            if !goes || most.is_some_and(|most| count + entries > most) {
                break;
            }
            count += entries;
        }
        count
    }
}
