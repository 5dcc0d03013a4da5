//! Long replies of XRANGE, XREVRANGE and XREAD: entries of streams, in pieces.
//!
//! The count that stands before entries is found first, node by node, in steps of its own: a stream of ten million
//! entries has a hundred thousand nodes. What fits one piece is written at once, and costs nothing of this.

use super::stream_ids::reply_entry;
use crate::work::reply::{LongReply, PIECE_BYTES, held_bytes};
use crate::{Ctx, Stop};
use engine::{Key, SharedBig, Value};
use proto::ReplyBuffer;
use std::collections::VecDeque;
use types::stream::{Entry, Id, Stream};
use value::Stored;

/// Nodes counted in a step: less than a tenth of a millisecond, unless they lie all over memory.
const COUNTED_NODES: usize = 1000;

/// Writes at most `count` entries as an array, unless they are more than a piece: then nothing, and false.
pub(super) fn reply_short<'e>(
    reply: &mut ReplyBuffer,
    entries: impl Iterator<Item = Entry<'e>>,
    count: Option<usize>,
) -> bool {
    let (mark, bytes) = (reply.mark(), reply.len());
    let open = reply.begin_array();
    let mut written = 0usize;
    for entry in entries.take(count.unwrap_or(usize::MAX)) {
        reply_entry(reply, &entry);
        written = written.saturating_add(1);
        if reply.len().saturating_sub(bytes) > PIECE_BYTES {
            reply.rewind(mark);
            return false;
        }
    }
    reply.end(open, written);
    true
}

/// Which entries of a stream are asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) start: Id,
    pub(super) end: Id,
    /// From the end down.
    pub(super) is_reversed: bool,
    /// At most this many; `None` for all.
    pub(super) count: Option<usize>,
}

/// Entries of several streams, one stream after the other.
#[derive(Default)]
pub(super) struct Parts(VecDeque<Part>);

impl Parts {
    /// Adds entries of the stream under the key; `name` is what stands before them.
    ///
    /// # Errors
    /// Rows that have to be fetched first.
    pub(super) fn add(
        &mut self,
        ctx: &mut Ctx<'_>,
        key: &Key<'_>,
        asked: Asked,
        name: Option<Name>,
    ) -> Result<(), Stop> {
        let Some(entry) = ctx.ks.peek_value(key)? else { return Ok(()) };
        if let Value::Big(tree) = entry.value {
            let stage = Stage::Counting { from: asked.start, found: 0 };
            self.0.push_back(Part { stream: tree.clone(), asked, name, stage });
        }
        Ok(())
    }

    /// How many streams.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl LongReply for Parts {
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        let bytes = reply.len();
        while let Some(part) = self.0.front_mut() {
            if part.goes_on(reply) {
                return true;
            }
            self.0.pop_front();
            if reply.len().saturating_sub(bytes) >= PIECE_BYTES {
                break;
            }
        }
        !self.0.is_empty()
    }

    fn held_bytes(&self) -> usize {
        self.0.iter().map(|part| held_bytes(&part.stream)).sum()
    }
}

/// The name that stands before the entries of a stream in a reply of XREAD.
pub(super) struct Name {
    pub(super) name: Box<[u8]>,
    /// Whether name and entries are an array of two, as they are where the reply is no map.
    pub(super) is_paired: bool,
}

/// Entries of one stream.
struct Part {
    stream: SharedBig,
    /// The entries that are not written yet.
    asked: Asked,
    name: Option<Name>,
    stage: Stage,
}

enum Stage {
    Counting { from: Id, found: u64 },
    Writing { left: u64 },
}

impl Part {
    /// A step of counting, or a piece; false when it was the last.
    fn goes_on(&mut self, reply: &mut ReplyBuffer) -> bool {
        match self.stage {
            Stage::Counting { from, found } => {
                self.stage = self.count(from, found, reply);
                true
            }
            Stage::Writing { left } => {
                let left = self.write(left, reply);
                self.stage = Stage::Writing { left };
                left > 0
            }
        }
    }

    fn count(&self, from: Id, found: u64, reply: &mut ReplyBuffer) -> Stage {
        let max = self.asked.count.map_or(u64::MAX, |count| count as u64);
        let (counted, next) = stream(&self.stream).count_some(from, self.asked.end, COUNTED_NODES);
        let found = found.saturating_add(counted).min(max);
        if let Some(from) = next.filter(|_| found < max) {
            return Stage::Counting { from, found };
        }
        if let Some(Name { name, is_paired }) = &self.name {
            if *is_paired {
                reply.array(2);
            }
            reply.bulk(name);
        }
        reply.array(usize::try_from(found).unwrap_or(usize::MAX));
        Stage::Writing { left: found }
    }

    /// Writes a piece of what is left, and gives what is left then.
    fn write(&mut self, left: u64, reply: &mut ReplyBuffer) -> u64 {
        let Asked { start, end, is_reversed, .. } = self.asked;
        let stream = stream(&self.stream);
        let bytes = reply.len();
        let (mut written, mut last) = (0u64, None);
        let mut write = |entry: Entry<'_>| {
            reply_entry(reply, &entry);
            (written, last) = (written.saturating_add(1), Some(entry.id));
            reply.len().saturating_sub(bytes) < PIECE_BYTES
        };
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        match is_reversed {
            false => stream.range(start, end).take(most).all(&mut write),
            true => stream.range_back(start, end).take(most).all(&mut write),
        };
        match last.and_then(|last| if is_reversed { last.previous() } else { last.next() }) {
            Some(end) if is_reversed => self.asked.end = end,
            Some(start) => self.asked.start = start,
            None => {}
        }
        left.saturating_sub(written)
    }
}

/// The stream, which was one when it was asked for.
fn stream(tree: &SharedBig) -> &Stream {
    Stream::of(Stored::Big(tree))
}
