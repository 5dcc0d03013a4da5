//! Long replies, written piece by piece, as fast as the client takes them.
//!
//! ```text
//! command --header, first piece--> reply buffer --socket--> client
//!    '--leaves a Rest in its session--> worker: when little is unsent, the next piece --^
//! ```
//!
//! So neither the command's shard nor its worker is busy with ten million elements at a time, and a reply takes no more
//! memory than a piece.
//!
//! P1. What is shown is the collection as it was when the command ran: the rest shares its tree, and whoever changes the
//!     collection meanwhile copies the parts he touches.
//! P2. Nothing else of the connection runs, and no message is given to it, before the last piece is written.
//! P3. Inside EXEC a reply is written whole.

use crate::error::check_reply;
use crate::{Ctx, Stop};
use engine::{Encoding, Key, SharedBig, Value};
use proto::ReplyBuffer;
use std::ops::Range;
use std::sync::Arc;
use value::Stored;

/// Bytes of a piece, about.
pub const PIECE_BYTES: usize = 64 << 10;
/// Elements written before their size is known.
const FIRST_ELEMENTS: usize = 16;
/// The most elements written at once, however small they are.
const ELEMENTS_MAX: usize = 4096;
/// The most elements looked at for a piece: fields of a hash that are due leave nothing in it.
const PIECE_ELEMENTS_MAX: usize = 16_384;

/// Writes the elements at these positions of a collection.
type Write = dyn Fn(Encoding, Stored<'_>, Range<usize>, &mut ReplyBuffer) + Send;

/// What a reply still lacks.
pub struct Rest {
    tree: SharedBig,
    elements: Range<usize>,
    write: Box<Write>,
}

impl Rest {
    /// Appends the next piece; false when it was the last.
    pub fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        let (start, first) = (reply.len(), self.elements.start);
        let mut count = FIRST_ELEMENTS;
        while !self.elements.is_empty() {
            let to = self.elements.end.min(self.elements.start.saturating_add(count));
            (self.write)(Encoding::BIG, Stored::Big(&self.tree), self.elements.start..to, reply);
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

    /// The memory that nothing but this keeps: the tree, once its key is changed or gone.
    pub fn held_bytes(&self) -> usize {
        if Arc::strong_count(&self.tree) == 1 { self.tree.memory_bytes() } else { 0 }
    }
}

impl Ctx<'_> {
    /// Writes the elements of the collection under `key` that stand at these positions, by calling `write` with stretches of
    /// them, one after the other. Of a tree only the first piece is written here; the rest follows when the client has taken
    /// that. The count that stands before them is the caller's to write.
    ///
    /// `write` is given the elements' positions, in an order that the type defines; SMEMBERS shows how it is used.
    ///
    /// # Errors
    /// Rows that have to be fetched first; a reply inside EXEC that grows too long.
    pub fn reply_elements(
        &mut self,
        key: &Key<'_>,
        elements: Range<usize>,
        write: impl Fn(Encoding, Stored<'_>, Range<usize>, &mut ReplyBuffer) + Send + 'static,
    ) -> Result<(), Stop> {
        let Some(entry) = self.ks.peek(key)? else { return Ok(()) };
        match entry.value {
            Value::Big(tree) => {
                let mut rest = Rest { tree: tree.clone(), elements, write: Box::new(write) };
                let is_whole = self.session.running.is_some();
                let mut goes_on = rest.write_piece(self.reply);
                while goes_on && is_whole {
                    check_reply(self.reply)?;
                    goes_on = rest.write_piece(self.reply);
                }
                self.session.rest = Some(rest).filter(|_| goes_on);
            }
            value => write(entry.encoding, value.stored(), elements, self.reply),
        }
        check_reply(self.reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Protocol;
    use value::{Big, list};

    fn element(number: usize, bytes: usize) -> Vec<u8> {
        [number.to_string().as_bytes(), &vec![b'x'; bytes]].concat()
    }

    fn rest(elements: usize, bytes: usize) -> Rest {
        let write = move |_: Encoding, _: Stored<'_>, elements: Range<usize>, reply: &mut ReplyBuffer| {
            elements.for_each(|number| reply.bulk(&element(number, bytes)));
        };
        Rest { tree: SharedBig::new(Big::List(list::Big::default())), elements: 0..elements, write: Box::new(write) }
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
