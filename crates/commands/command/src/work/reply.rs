//! Long replies, written piece by piece, as fast as the client takes them.
//!
//! ```text
//! command --header, first piece--> reply buffer --socket--> client
//!    '--leaves a ReplyRest in its session--> worker: when little is unsent, the next piece --^
//! ```
//!
//! A large reply therefore never blocks the command's shard or its worker, and takes no more memory than a piece. What
//! several big collections make together (SUNION) is made so too: steps that write nothing come before the first piece.
//!
//! P1. What is shown is the collection, or what several make, as it was when the command ran: the rest shares their
//!     trees, and a command that changes a collection meanwhile copies the nodes it touches.
//! P2. Nothing else of the connection runs, and no message is given to it, before the last piece is written.
//! P3. Inside EXEC a reply is written whole.

use crate::error::REPLY_TOO_LONG_TEXT;
use crate::limits::REPLY_BYTES_MAX;
use engine::{Encoding, SharedBig};
use proto::ReplyBuffer;
use std::ops::Range;
use value::{Big, Stored, absent, reaper};

/// Bytes of a piece, about.
pub const PIECE_BYTES: usize = 64 << 10;
/// Elements written before their size is known.
const FIRST_ELEMENTS: usize = 16;
/// The most elements written at once, however small they are.
const ELEMENTS_MAX: usize = 4096;
/// The most elements looked at for a piece: fields of a hash that are due leave nothing in it.
const PIECE_ELEMENTS_MAX: usize = 16_384;

/// Which elements of the collection these positions of the reply have, by their order in it.
pub(super) type Ranks = dyn Fn(Range<usize>) -> Range<u64> + Send;

/// Writes the elements at these positions of a collection.
pub(super) type Write = dyn Fn(Encoding, Stored<'_>, Range<usize>, &mut ReplyBuffer) + Send;

/// A collection that takes long to make, of others as they were when the command ran.
pub trait Stepwise: Send {
    /// Runs for at most a tenth of a millisecond or so. True while there is more to do.
    fn step(&mut self) -> bool;

    /// What was made, when there is no more to do.
    fn take(&mut self) -> Big;

    /// Bytes of what was made so far.
    fn made_bytes(&self) -> usize;

    /// Bytes that nothing but this keeps.
    fn held_bytes(&self) -> usize;

    /// Writes the part before the elements, and returns how many they are.
    fn write_header(&self, made: &Big, reply: &mut ReplyBuffer) -> usize;
}

/// A reply that goes its own way through what it shows.
pub trait LongReply: Send {
    /// Appends about [`PIECE_BYTES`], or does a step towards them; false when it was the last.
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool;

    /// Bytes that nothing but this keeps.
    fn held_bytes(&self) -> usize;
}

/// What a reply still lacks.
pub struct ReplyRest(Box<dyn LongReply>);

impl ReplyRest {
    pub(super) fn new(reply: impl LongReply + 'static) -> Self {
        Self(Box::new(reply))
    }

    /// Appends the next piece, or does a step towards the first; false when it was the last.
    pub fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        self.0.write_piece(reply)
    }

    /// The memory that nothing but this keeps: the tree, once its key is changed or gone.
    pub fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

/// The memory of a shared tree that its last holder frees.
pub(crate) fn held_bytes(tree: &SharedBig) -> usize {
    if SharedBig::strong_count(tree) > 1 { 0 } else { tree.memory_bytes() }
}

/// The ranks of positions that are ranks.
pub(super) fn as_they_are(positions: Range<usize>) -> Range<u64> {
    positions.start as u64..positions.end as u64
}

/// Elements of one collection by their positions.
pub(super) struct Elements {
    source: Source,
    elements: Range<usize>,
    ranks: Box<Ranks>,
    write: Box<Write>,
}

/// Where the elements are.
enum Source {
    Tree(SharedBig),
    /// Not made yet; nothing is written yet.
    Stepwise(Box<dyn Stepwise>),
}

impl Elements {
    /// Those of a tree.
    pub(super) fn of(tree: SharedBig, elements: Range<usize>, write: Box<Write>) -> Self {
        Self { source: Source::Tree(tree), elements, ranks: Box::new(as_they_are), write }
    }

    /// All of a collection that is made first.
    pub(super) fn stepwise(making: Box<dyn Stepwise>, write: Box<Write>) -> Self {
        Self { source: Source::Stepwise(making), elements: 0..0, ranks: Box::new(as_they_are), write }
    }

    /// The same, of positions that are no ranks.
    pub(super) fn ranked(self, ranks: Box<Ranks>) -> Self {
        Self { ranks, ..self }
    }
}

impl LongReply for Elements {
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        let tree = match &mut self.source {
            Source::Tree(tree) => tree,
            Source::Stepwise(making) => {
                let goes_on = making.step();
                if making.made_bytes() > REPLY_BYTES_MAX {
                    reply.error(REPLY_TOO_LONG_TEXT);
                    return false;
                }
                if !goes_on {
                    let made = making.take();
                    self.elements = 0..making.write_header(&made, reply);
                    self.source = Source::Tree(SharedBig::new(made));
                }
                return true;
            }
        };
        let (start, first) = (reply.len(), self.elements.start);
        // Rows that a piece reads leave memory with it: otherwise the whole collection would be there at the end.
        let mut apart = (absent::is_waiting() && tree.may_have_rows()).then(|| Big::clone(tree));
        let mut count = FIRST_ELEMENTS;
        while !self.elements.is_empty() {
            let to = self.elements.end.min(self.elements.start.saturating_add(count));
            let elements = self.elements.start..to;
            if let Some(apart) = &mut apart {
                apart.set_apart((self.ranks)(elements.clone()));
            }
            (self.write)(Encoding::BIG, Stored::Big(apart.as_ref().unwrap_or(tree)), elements, reply);
            self.elements.start = to;
            let written = reply.len().saturating_sub(start);
            let so_far = to.saturating_sub(first);
            let left = PIECE_BYTES.saturating_sub(written);
            if left == 0 || so_far >= PIECE_ELEMENTS_MAX {
                break;
            }
            // As many as will fill the piece, if they are like those before.
            count = left.saturating_mul(so_far).checked_div(written).unwrap_or(count);
            count = count.clamp(1, ELEMENTS_MAX);
        }
        !self.elements.is_empty()
    }

    fn held_bytes(&self) -> usize {
        match &self.source {
            Source::Tree(tree) => held_bytes(tree),
            Source::Stepwise(making) => making.held_bytes(),
        }
    }
}

/// A long string that was made for this reply.
pub(super) struct Text {
    bytes: Vec<u8>,
    written: usize,
}

impl Text {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, written: 0 }
    }
}

impl LongReply for Text {
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        if self.written == 0 {
            reply.begin_bulk(self.bytes.len());
        }
        let end = self.written.saturating_add(PIECE_BYTES).min(self.bytes.len());
        let is_last = end == self.bytes.len();
        reply.bulk_part(self.bytes.get(self.written..end).unwrap_or_default(), is_last);
        self.written = end;
        !is_last
    }

    fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        if self.bytes.capacity() > PIECE_BYTES {
            reaper::free(Box::new(std::mem::take(&mut self.bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Protocol;
    use value::list;

    fn element(number: usize, bytes: usize) -> Vec<u8> {
        [number.to_string().as_bytes(), &vec![b'x'; bytes]].concat()
    }

    fn rest(elements: usize, bytes: usize) -> Elements {
        let write = move |_: Encoding, _: Stored<'_>, elements: Range<usize>, reply: &mut ReplyBuffer| {
            elements.for_each(|number| reply.bulk(&element(number, bytes)));
        };
        let source = Source::Tree(SharedBig::new(Big::List(list::Big::default())));
        Elements { source, elements: 0..elements, ranks: Box::new(as_they_are), write: Box::new(write) }
    }

    /// Pieces are of the size promised whatever the size of elements, and together they are the reply.
    #[test]
    fn pieces_add_up_to_the_reply() {
        let size_max = |bytes: usize| PIECE_BYTES + PIECE_BYTES / 8 + (bytes + 20) * FIRST_ELEMENTS;
        for (elements, bytes) in [(100_000, 1), (100_000, 7), (1000, 1000), (20, 200_000), (1, 1)] {
            let (mut rest, mut reply) = (rest(elements, bytes), ReplyBuffer::new(Protocol::Resp3));
            let (mut pieces, mut all) = (0, Vec::new());
            loop {
                let goes_on = rest.write_piece(&mut reply);
                assert!(reply.len() < size_max(bytes), "{}", reply.len());
                all.extend(reply.io_slices().flat_map(|slice| slice.to_vec()));
                assert!(!goes_on || reply.len() >= PIECE_BYTES, "a piece is full, or the last");
                reply.advance(reply.len());
                pieces += 1;
                if !goes_on {
                    break;
                }
            }
            let mut whole = ReplyBuffer::new(Protocol::Resp3);
            (0..elements).for_each(|number| whole.bulk(&element(number, bytes)));
            assert!(all == whole.io_slices().flat_map(|slice| slice.to_vec()).collect::<Vec<_>>());
            assert!(pieces >= all.len() / size_max(bytes));
        }
    }
}
