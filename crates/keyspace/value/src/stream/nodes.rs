//! The entries of a stream: full nodes in a tree, and the last node outside of it, so that an append searches nothing.

use super::node::{Entry, Node, NodeLimits};
use super::rows::{Row, Rows};
use super::{Fields, Id};
use crate::cold;
use crate::tree::Plan;
use std::sync::Arc;

/// Entries by id.
///
/// N1. Nodes are ordered: every id of one is below the first id of the next, which `tail` comes after.
/// N2. No node is empty.
/// N3. Only `tail` is added to.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    full: Rows<Arc<Node>>,
    tail: Option<Arc<Node>>,
    /// Of all nodes.
    bytes: Bytes,
}

/// Bytes of nodes.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    heap: usize,
    content: usize,
}

impl Bytes {
    fn add(&mut self, node: &Node) {
        self.heap += node.heap_bytes();
        self.content += node.content_bytes();
    }

    fn sub(&mut self, node: &Node) {
        self.heap -= node.heap_bytes();
        self.content -= node.content_bytes();
    }
}

impl Row for Arc<Node> {
    type Key = Id;
    type Bound = Id;
    /// The node and its bytes.
    const CHUNKS: usize = 2;

    fn key(&self) -> &Id {
        self.first_ever()
    }

    fn bound(&self) -> Id {
        *self.first_ever()
    }
}

impl Nodes {
    /// Bytes of all nodes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.heap + self.full.heap_bytes()
    }

    /// Bytes of all entries.
    pub(super) fn content_bytes(&self) -> usize {
        self.bytes.content
    }

    /// How many nodes.
    pub(super) fn len(&self) -> u64 {
        self.full.len() + u64::from(self.tail.is_some())
    }

    /// How many full nodes.
    pub(super) fn full_count(&self) -> u64 {
        self.full.len()
    }

    /// The nodes but the first `count`.
    pub(super) fn skipping(&self, count: u64) -> impl Iterator<Item = &Arc<Node>> {
        let tail = self.tail.iter().filter(move |_| count <= self.full.len());
        self.full.skipping(count.min(self.full.len())).chain(tail)
    }

    /// Whether an entry with fields of this many bytes begins a node.
    pub(super) fn would_begin(&self, bytes: usize, limits: NodeLimits) -> bool {
        self.tail.as_ref().is_none_or(|tail| !tail.has_room(bytes, limits))
    }

    /// Adds an entry, whose id is above all.
    pub(super) fn append(&mut self, id: Id, fields: &Fields<'_>, limits: NodeLimits) {
        if self.would_begin(fields.strings().len(), limits) {
            let node = Node::new(id, fields);
            self.bytes.add(&node);
            if let Some(mut full) = self.tail.replace(Arc::new(node)) {
                edit(&mut full, &mut self.bytes, Node::seal);
                self.full.insert(full);
            }
        } else if let Some(tail) = &mut self.tail {
            edit(tail, &mut self.bytes, |tail| tail.append(id, fields));
        }
    }

    /// Adds a node whose entries follow all existing ones.
    pub(super) fn push(&mut self, node: Node) {
        if let Some(mut full) = self.tail.take() {
            edit(&mut full, &mut self.bytes, Node::seal);
            self.full.insert(full);
        }
        self.bytes.add(&node);
        self.full.insert(Arc::new(node));
    }

    /// Looks at up to `looks` full nodes, from number `from` on, until it finds one to store in another form, or one
    /// that is thawed and unused. Returns it, and where to continue; `None` at the end.
    pub(super) fn look_for_cold(&self, from: u64, plan: &Plan<'_>, looks: usize) -> (Option<&Arc<Node>>, Option<u64>) {
        let end = from.saturating_add(looks as u64).min(self.full.len());
        for (node, number) in self.full.skipping(from.min(end)).zip(from..end) {
            let (bytes, cold) = (node.bytes(), node.bytes().cold());
            let is_found = match cold {
                _ if plan.only_sheds => cold.is_some_and(cold::Cold::is_thawed),
                _ => {
                    bytes.age().grow();
                    match cold {
                        Some(cold) => plan.recodes(cold) || plan.sheds(cold, bytes.age()),
                        None => plan.takes(bytes.len(), bytes.age()),
                    }
                }
            };
            if is_found {
                return (Some(node), Some(number + 1).filter(|next| *next < self.full.len()));
            }
        }
        (None, Some(end).filter(|end| *end < self.full.len()))
    }

    /// Has `change` put another node, with the same entries, in the place of one. False when that is no longer there.
    pub(super) fn reform(&mut self, node: &Arc<Node>, change: impl FnOnce(&mut Arc<Node>)) -> bool {
        let bytes = &mut self.bytes;
        let reformed = self.full.edit(node.first_ever(), |found| {
            let is_same = Arc::ptr_eq(found, node);
            if is_same {
                bytes.sub(found);
                change(found);
                bytes.add(found);
            }
            is_same
        });
        reformed.unwrap_or(false)
    }

    /// Drops the thawed copy of the full node of this number, unless it is shared.
    pub(super) fn shed(&mut self, number: u64) {
        let Some(first) = self.full.skipping(number.min(self.full.len())).next().map(|node| *node.first_ever()) else {
            return;
        };
        self.full.edit(&first, |node| Arc::get_mut(node).map(Node::shed));
    }

    /// Removes an entry; false when no entry has this id.
    pub(super) fn remove(&mut self, id: Id) -> bool {
        if let Some(tail) = self.tail.as_mut().filter(|tail| *tail.first_ever() <= id) {
            let removed = edit(tail, &mut self.bytes, |tail| tail.remove(id));
            if tail.live() == 0 {
                self.bytes.sub(tail);
                self.tail = None;
            }
            return removed;
        }
        let Some(first) = self.full.up_to(&id).next().map(|node| *node.first_ever()) else { return false };
        let bytes = &mut self.bytes;
        let edited = self.full.edit(&first, |node| {
            let removed = edit(node, bytes, |node| node.remove(id));
            (removed, node.live() == 0)
        });
        let (removed, is_empty) = edited.unwrap_or_default();
        if is_empty && let Some(node) = self.full.remove(&first) {
            self.bytes.sub(&node);
        }
        removed
    }

    /// Removes the first `count` entries, or all.
    pub(super) fn trim(&mut self, mut count: u64) {
        while count > 0 {
            let Some((first, live)) = self.skipping(0).next().map(|node| (*node.first_ever(), node.live())) else {
                return;
            };
            if live > count {
                let bytes = &mut self.bytes;
                let mut trim = |node: &mut Arc<Node>| edit(node, bytes, |node| node.remove_first(count));
                match &mut self.tail {
                    Some(tail) if self.full.len() == 0 => trim(tail),
                    _ => self.full.edit(&first, trim).unwrap_or_default(),
                }
                return;
            }
            if let Some(node) = self.full.remove(&first).or_else(|| self.tail.take()) {
                self.bytes.sub(&node);
            }
            count -= live;
        }
    }

    /// The entries from `start` on.
    pub(super) fn from(&self, start: Id) -> impl Iterator<Item = Entry<'_>> {
        self.nodes_from(start).flat_map(|node| node.entries()).skip_while(move |entry| entry.id < start)
    }

    /// Counts the entries from `start` to `end` in this many nodes, and returns the id to continue from; `None` when
    /// there are no more.
    pub(super) fn count(&self, start: Id, end: Id, nodes_max: usize) -> (u64, Option<Id>) {
        let mut nodes = self.nodes_from(start).take_while(|node| *node.first_ever() <= end);
        let counted = nodes.by_ref().take(nodes_max).map(|node| node.count(start, end)).sum();
        (counted, nodes.next().map(|node| *node.first_ever()))
    }

    /// The nodes from the one on where `start` is or belongs.
    fn nodes_from(&self, start: Id) -> impl Iterator<Item = &Arc<Node>> {
        let only_tail = self.tail.as_ref().is_some_and(|tail| *tail.first_ever() <= start);
        let first = self.full.up_to(&start).next().filter(|_| !only_tail).map(|node| *node.first_ever());
        let full = (!only_tail).then(|| self.full.from(&first.unwrap_or(Id::MIN)));
        full.into_iter().flatten().chain(&self.tail)
    }

    /// The entries from `end` down.
    pub(super) fn up_to(&self, end: Id) -> impl Iterator<Item = Entry<'_>> {
        let tail = self.tail.iter().filter(move |tail| *tail.first_ever() <= end);
        let nodes = tail.chain(self.full.up_to(&end));
        nodes.flat_map(|node| node.entries_back()).skip_while(move |entry| entry.id > end)
    }
}

/// Edits a node, alone or as a copy when it is shared, and keeps count of its bytes.
fn edit<T>(node: &mut Arc<Node>, bytes: &mut Bytes, edit: impl FnOnce(&mut Node) -> T) -> T {
    bytes.sub(node);
    let node = Arc::make_mut(node);
    let result = edit(node);
    bytes.add(node);
    result
}
