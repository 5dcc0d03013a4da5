//! What one connection has subscribed to.

use std::collections::HashMap;
use std::sync::Arc;

/// The three kinds of subscription, each with names of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A channel (SUBSCRIBE).
    Channel,
    /// All channels whose names match (PSUBSCRIBE).
    Pattern,
    /// A shard channel (SSUBSCRIBE).
    ShardChannel,
}

impl Kind {
    /// All of them, in the order CLIENT LIST shows them.
    pub const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::ShardChannel];
}

/// The subscriptions of a connection. Its session owns them; [`PubSub`](crate::PubSub) has the same by name.
#[derive(Debug, Default)]
pub struct Subscriptions {
    /// By kind: names, each with a number that grows with every subscription.
    names: [HashMap<Arc<[u8]>, u64>; 3],
    next: u64,
    /// Deliveries of this number and later were made when it had left what it has left so far.
    pub(crate) left_at: u64,
    bytes: usize,
}

/// What a name costs in addition to its bytes: its place in the connection's table and in the registry.
const NAME_OVERHEAD_BYTES: usize = 128;

impl Subscriptions {
    /// How many there are of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.names[kind as usize].len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.iter().map(HashMap::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held for them.
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// The names of a kind in the order they were subscribed to.
    pub fn names(&self, kind: Kind) -> Vec<Arc<[u8]>> {
        let mut names: Vec<_> =
            self.names[kind as usize].iter().map(|(name, number)| (*number, name.clone())).collect();
        names.sort_unstable_by_key(|(number, _)| *number);
        names.into_iter().map(|(_, name)| name).collect()
    }

    /// Whether a delivery is still wanted: it is, unless the name was left after it had been made.
    pub fn wants(&self, kind: Kind, name: &[u8], delivery: u64) -> bool {
        delivery >= self.left_at || self.names[kind as usize].contains_key(name)
    }

    pub(crate) fn add(&mut self, kind: Kind, name: &[u8]) -> bool {
        let names = &mut self.names[kind as usize];
        if names.contains_key(name) {
            return false;
        }
        names.insert(name.into(), self.next);
        self.next += 1;
        self.bytes += name.len() + NAME_OVERHEAD_BYTES;
        true
    }

    pub(crate) fn remove(&mut self, kind: Kind, name: &[u8]) -> bool {
        let was_there = self.names[kind as usize].remove(name).is_some();
        if was_there {
            self.bytes -= name.len() + NAME_OVERHEAD_BYTES;
        }
        was_there
    }
}
