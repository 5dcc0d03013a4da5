//! From where on the records of the log count, keyspace by keyspace.
//!
//! A checkpoint holds all keyspaces in memory as of one position, and a store of rows holds a backed keyspace as of
//! another. Replay begins at the lowest of these positions, and leaves out of each record what its keyspace has
//! already.
//!
//! ```text
//! log:      |----x------c------------->     x: recovery point of a backed keyspace     c: cut of the checkpoint
//! replayed:      |=====================     effects on the backed keyspace
//!                       |==============     effects on all others, SWAPDB, libraries and positions
//! ```
//!
//! P1. No effect reads a keyspace with another recovery point than that of the one it changes: what is copied between
//!     the two is recorded by its value (`Txn::apply`).

use base::{KeyspaceId, Lsn};
use engine::Effect;
use std::collections::BTreeMap;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryPoints {
    /// The position up to which keyspaces in memory, and the numbers of all databases, have been loaded.
    pub loaded: Lsn,
    /// The positions up to which stores of rows hold their keyspaces.
    pub rows: BTreeMap<KeyspaceId, Lsn>,
}

impl RecoveryPoints {
    /// Whether an effect of the record that ends at `lsn` is still to be applied.
    pub fn lacks(&self, effect: &Effect<'_>, lsn: Lsn) -> bool {
        let space = match *effect {
            Effect::Swap { .. } | Effect::Library { .. } | Effect::Position { .. } => return lsn > self.loaded,
            Effect::Clear { space } => Some(space),
            _ => effect.keys().next().map(|key| key.space),
        };
        space.is_none_or(|space| lsn > self.rows.get(&space).copied().unwrap_or(self.loaded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use base::hash::KeyHasher;
    use engine::Key;

    #[test]
    fn each_keyspace_has_its_point() {
        let (backed, memory) = (KeyspaceId(0), KeyspaceId(1));
        let points = RecoveryPoints { loaded: Lsn(100), rows: [(backed, Lsn(40))].into() };
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let delete = |space| Effect::Delete { key: Key::new(&hasher, space, b"key") };
        let lacks = |effect: Effect<'_>| [40, 41, 100, 101].map(|lsn| points.lacks(&effect, Lsn(lsn)));
        assert_eq!(lacks(delete(backed)), [false, true, true, true]);
        assert_eq!(lacks(Effect::Clear { space: backed }), [false, true, true, true]);
        assert_eq!(lacks(delete(memory)), [false, false, false, true]);
        assert_eq!(lacks(Effect::Swap { a: backed, b: memory }), [false, false, false, true]);
        assert_eq!(lacks(Effect::Library { name: b"n", code: b"c" }), [false, false, false, true]);
        assert_eq!(lacks(Effect::Position { text: b"p" }), [false, false, false, true]);
    }
}
