//! Nodes of a stream that are stored compressed: see [`crate::cold`]. The last node, which grows, is never compressed.

use super::Big;
use super::node::Node;
use crate::cold::{Bytes, Cold};
use crate::tree::Plan;
use std::sync::Arc;

/// A full node that is to be stored in another form, shared with its stream.
#[derive(Clone, Debug)]
pub struct FullNode(Arc<Node>);

impl FullNode {
    /// Puts its bytes into `out`, and gives how many entries they are.
    pub fn bytes(&self, out: &mut Vec<u8>) -> usize {
        let mut scratch = Vec::new();
        out.clear();
        out.extend_from_slice(self.0.bytes().get_once(&mut scratch));
        self.0.live() as usize
    }

    /// Its bytes, whether they are compressed or not.
    #[expect(clippy::len_without_is_empty, reason = "a full node has entries")]
    pub fn len(&self) -> usize {
        self.0.bytes().len()
    }

    /// See [`crate::tree::Run::thaw`].
    pub fn thaw(&self) {
        if let Some(cold) = self.0.bytes().cold() {
            cold.bytes();
        }
    }

    /// Whether it is stored compressed.
    pub fn is_cold(&self) -> bool {
        self.0.bytes().compressed().is_some()
    }
}

/// What a pass has found.
#[derive(Debug)]
pub enum Found {
    /// The node of this number is to be stored in another form.
    Node(FullNode, u64),
    /// The node of this number is thawed and unused.
    Thawed(u64),
}

impl Big {
    /// See [`crate::Big::look_for_cold`], by number of nodes.
    pub(crate) fn look_for_cold(&self, from: u64, plan: &Plan<'_>, looks: usize) -> (Option<Found>, Option<u64>) {
        let (found, next) = self.nodes.look_for_cold(from, plan, looks);
        let number = next.unwrap_or(self.nodes.full_count()).saturating_sub(1);
        let found = found.map(|node| match node.bytes().cold() {
            Some(cold) if plan.only_sheds || !plan.recodes(cold) => Found::Thawed(number),
            _ => Found::Node(FullNode(node.clone()), number),
        });
        (found, next)
    }

    /// Stores the bytes of a node compressed. False when it is no longer there.
    pub(crate) fn store_cold(&mut self, node: &FullNode, cold: Cold) -> bool {
        self.may_have_rows |= cold.is_row();
        self.store(node, |_| cold.into())
    }

    /// Stores the bytes of a node as they are. False when it is no longer there.
    pub(crate) fn store_warm(&mut self, node: &FullNode) -> bool {
        self.store(node, |bytes| {
            let mut bytes = bytes.clone();
            bytes.warm();
            bytes
        })
    }

    fn store(&mut self, node: &FullNode, form: impl FnOnce(&Bytes) -> Bytes) -> bool {
        self.nodes.reform(&node.0, |found| *found = Arc::new(found.with_bytes(form(found.bytes()))))
    }

    /// Notes that a node does not get shorter.
    pub(crate) fn give_up(&self, node: &FullNode) {
        node.0.bytes().age().give_up();
    }

    /// Drops the thawed copy of the node of this number, unless it is shared.
    pub(crate) fn shed(&mut self, number: u64) {
        self.nodes.shed(number);
    }

    /// Whether nodes are rows, or were: see [`crate::absent`].
    pub(crate) fn may_have_rows(&self) -> bool {
        self.may_have_rows
    }

    /// Whether any node is stored compressed.
    pub(crate) fn has_cold(&self) -> bool {
        self.nodes.skipping(0).any(|node| node.bytes().compressed().is_some())
    }
}
