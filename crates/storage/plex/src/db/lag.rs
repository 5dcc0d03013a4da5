//! How far merges lag, tree by tree, so that a change of one of many key spaces costs a look at that one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::version::{Tree, Version};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Lag(BTreeMap<u32, f64>);

impl Lag {
    /// The largest of all trees; 0 if none lags.
    pub fn most(&self) -> f64 {
        self.0.values().copied().fold(0.0, f64::max)
    }

    /// The lag of `next`, if this is that of `before`. Asked for are the trees that differ, and those that lagged: what
    /// held them up may have passed.
    pub fn after(&self, before: &Version, next: &Version, of_tree: impl Fn(&Tree) -> f64) -> Self {
        let changed = next.trees.iter().filter(|(space, tree)| {
            self.0.contains_key(space) || before.tree(**space).is_none_or(|before| !Arc::ptr_eq(before, tree))
        });
        Self(changed.map(|(space, tree)| (*space, of_tree(tree))).filter(|(_, lag)| *lag > 0.0).collect())
    }
}
