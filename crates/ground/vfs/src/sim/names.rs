//! Name changes that wait for a directory sync.
//!
//! A change sets one or two names atomically (a rename sets two). It is durable once the directory of each of its names
//! has been synced after it. Changes of one name keep their order; others may arrive in any order.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::sync::Arc;

use super::cow::CowVec;
use super::draw::Draw;

pub(super) type Name = Arc<OsStr>;

/// A file or a directory, whatever its names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(pub u32);

/// One name that a change sets.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub dir: NodeId,
    pub name: Name,
    /// The node that has the name now; `None` if it is removed.
    pub node: Option<NodeId>,
    synced: bool,
}

impl Setting {
    pub fn new(dir: NodeId, name: Name, node: Option<NodeId>) -> Self {
        Self { dir, name, node, synced: false }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct PendingNames {
    changes: CowVec<Vec<Setting>>,
}

/// Names seen so far while iterating over changes.
#[derive(Default)]
struct Touched<'a>(BTreeSet<(NodeId, &'a OsStr)>);

impl<'a> Touched<'a> {
    fn add(&mut self, change: &'a [Setting]) {
        self.0.extend(change.iter().map(|s| (s.dir, &*s.name)));
    }

    fn meets(&self, change: &[Setting]) -> bool {
        change.iter().any(|s| self.0.contains(&(s.dir, &*s.name)))
    }
}

impl PendingNames {
    pub fn push(&mut self, change: Vec<Setting>) {
        self.changes.push(change);
    }

    /// Nodes that a pending change names.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.changes.iter().flatten().filter_map(|s| s.node)
    }

    /// Records that a sync of `dir` covers the pending changes.
    pub fn begin_sync(&mut self, dir: NodeId) {
        let mut all = self.to_vec();
        all.iter_mut().flatten().filter(|s| s.dir == dir).for_each(|s| s.synced = true);
        self.changes = all.into_iter().collect();
    }

    /// Removes and returns, in order, the changes that the syncs so far make durable: changes whose directories are all
    /// synced, and earlier changes that they depend on.
    pub fn finish_sync(&mut self) -> Vec<Setting> {
        let all = self.to_vec();
        let synced = all.iter().map(|change| change.iter().all(|s| s.synced)).collect();
        let due = with_predecessors(&all, synced);
        self.take(all, &due)
    }

    fn to_vec(&self) -> Vec<Vec<Setting>> {
        self.changes.iter().cloned().collect()
    }

    /// A failed sync of `dir`: some of the changes that touch it arrive, and none of them is ever tried again. Returns
    /// those that arrived.
    pub fn fail_sync(&mut self, dir: NodeId, draw: &mut Draw) -> Vec<Setting> {
        let arrived = self.drawn(draw);
        let all = self.to_vec();
        let touches = |change: &[Setting]| change.iter().any(|s| s.dir == dir);
        let due = all.iter().zip(arrived).map(|(change, arrived)| arrived && touches(change)).collect();
        let due = with_predecessors(&all, due);
        let taken = self.take(all, &due);
        self.changes = self.changes.iter().filter(|change| !touches(change)).cloned().collect();
        taken
    }

    /// The changes that survive a power cut, in order.
    pub fn survivors(&self, draw: &mut Draw) -> Vec<Setting> {
        let arrived = self.drawn(draw);
        self.changes.iter().zip(arrived).filter(|(_, arrived)| *arrived).flat_map(|(c, _)| c.clone()).collect()
    }

    /// For each change whether it arrives; none arrives after an earlier change of the same name that did not.
    fn drawn(&self, draw: &mut Draw) -> Vec<bool> {
        draw.choose_mood();
        let mut lost = Touched::default();
        let mut arrive = |change| {
            let arrives = draw.keeps() && !lost.meets(change);
            if !arrives {
                lost.add(change);
            }
            arrives
        };
        self.changes.iter().map(|change| arrive(change)).collect()
    }

    /// Removes and returns the changes marked in `due`.
    fn take(&mut self, all: Vec<Vec<Setting>>, due: &[bool]) -> Vec<Setting> {
        let mut taken = Vec::new();
        self.changes = CowVec::default();
        for (change, due) in all.into_iter().zip(due) {
            if *due {
                taken.extend(change);
            } else {
                self.changes.push(change);
            }
        }
        taken
    }
}

/// Adds to the marked changes the earlier ones of the same names.
fn with_predecessors(all: &[Vec<Setting>], mut marked: Vec<bool>) -> Vec<bool> {
    let mut touched = Touched::default();
    for (marked, change) in marked.iter_mut().zip(all).rev() {
        *marked |= touched.meets(change);
        if *marked {
            touched.add(change);
        }
    }
    marked
}
