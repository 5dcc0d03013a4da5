//! A value held across further reads and changes.

use crate::decoder::may_tree_be_compressed;
use engine::{SharedBig, SharedBytes, Value};

/// A value taken out of its entry: big ones by reference, small ones by copy.
#[derive(Clone, Debug)]
pub enum Kept {
    /// A copy.
    Copied(Vec<u8>),
    /// Shared bytes.
    Shared(SharedBytes),
    /// A shared tree.
    Big(SharedBig),
}

impl Kept {
    /// Keeps the value.
    pub fn new(value: Value<'_>) -> Self {
        match value {
            Value::Bytes(bytes) => Self::Copied(bytes.to_vec()),
            Value::Shared(shared) => Self::Shared(shared.clone()),
            Value::Big(big) => Self::Big(big.clone()),
        }
    }

    /// Nothing: the value of an absent string where that counts as an empty one.
    pub fn empty() -> Self {
        Self::Copied(Vec::new())
    }

    /// Whether it is the same value; for a tree, the same version of it, by [`is_same_tree`].
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Big(tree), Self::Big(other)) => is_same_tree(tree, other),
            (Self::Big(_), _) | (_, Self::Big(_)) => false,
            _ => self.value().bytes() == other.value().bytes(),
        }
    }

    /// The value, to read or to store again.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Copied(bytes) => Value::Bytes(bytes),
            Self::Shared(shared) => Value::Shared(shared),
            Self::Big(big) => Value::Big(big),
        }
    }
}

/// Whether both are one version of a tree, or small and equal: each command rebuilds a tree that is stored compressed.
pub fn is_same_tree(tree: &SharedBig, other: &SharedBig) -> bool {
    let changes = |tree: &SharedBig| {
        let mut changes = Vec::new();
        tree.write_all_changes(&mut changes);
        changes
    };
    SharedBig::ptr_eq(tree, other)
        || tree.kind() == other.kind()
            && may_tree_be_compressed(tree)
            && may_tree_be_compressed(other)
            && changes(tree) == changes(other)
}

/// Bytes made here, to be stored: from this size on they are handed over, not copied.
const SHARED_BYTES_MIN: usize = 16 * 1024;

impl From<Vec<u8>> for Kept {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() < SHARED_BYTES_MIN { Self::Copied(bytes) } else { Self::Shared(SharedBytes::new(bytes)) }
    }
}
