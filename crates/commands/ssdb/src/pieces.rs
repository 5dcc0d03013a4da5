//! Long replies, a piece at a time; see [`command::work::reply`].

use command::work::reply::{LongReply, PIECE_BYTES};
use command::{Ctx, Stop};
use engine::SharedBig;
use proto::ReplyBuffer;
use std::ops::Range;
use value::{Stored, reaper};

/// Elements written before it is seen how long they are.
const STRETCH: usize = 64;
/// The most elements of a piece, however short.
const ELEMENTS_MAX: usize = 4096;

/// Writes the elements at these places of a collection.
type Write = dyn Fn(Stored<'_>, Range<usize>, &mut ReplyBuffer) + Send;

/// Elements of a tree, as it was when the command ran, and the end of the reply.
struct Elements {
    tree: SharedBig,
    places: Range<usize>,
    write: Box<Write>,
}

impl LongReply for Elements {
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        let start = reply.len();
        let end = self.places.end.min(self.places.start.saturating_add(ELEMENTS_MAX));
        while self.places.start < end && reply.len().saturating_sub(start) < PIECE_BYTES {
            let to = end.min(self.places.start.saturating_add(STRETCH));
            (self.write)(Stored::Big(&self.tree), self.places.start..to, reply);
            self.places.start = to;
        }
        let goes_on = !self.places.is_empty();
        if !goes_on {
            reply.end_packet();
        }
        goes_on
    }

    fn held_bytes(&self) -> usize {
        if SharedBig::strong_count(&self.tree) > 1 { 0 } else { self.tree.memory_bytes() }
    }
}

/// A reply that was made for this client alone.
struct Packet {
    bytes: Vec<u8>,
    written: usize,
}

impl LongReply for Packet {
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        let end = self.written.saturating_add(PIECE_BYTES).min(self.bytes.len());
        reply.packet_part(self.bytes.get(self.written..end).unwrap_or_default());
        self.written = end;
        end < self.bytes.len()
    }

    fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        if self.bytes.capacity() > PIECE_BYTES {
            reaper::free_bytes(std::mem::take(&mut self.bytes));
        }
    }
}

/// Answers the elements of a tree at these places, after what the reply has already.
pub fn reply_tree(
    ctx: &mut Ctx<'_>,
    tree: SharedBig,
    places: Range<usize>,
    write: impl Fn(Stored<'_>, Range<usize>, &mut ReplyBuffer) + Send + 'static,
) -> Result<(), Stop> {
    ctx.reply_long(Elements { tree, places, write: Box::new(write) })
}

/// Answers with blocks that were written before, and ends the reply.
pub fn reply_packet(ctx: &mut Ctx<'_>, mut bytes: Vec<u8>) -> Result<(), Stop> {
    bytes.push(b'\n');
    ctx.reply_long(Packet { bytes, written: 0 })
}

/// Adds a block to a reply that is being made.
pub fn put_block(packet: &mut Vec<u8>, bytes: &[u8]) {
    packet.extend_from_slice(bytes.len().to_string().as_bytes());
    packet.push(b'\n');
    packet.extend_from_slice(bytes);
    packet.push(b'\n');
}
