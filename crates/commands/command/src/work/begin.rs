//! How a command leaves work, or the rest of a long reply, in its session. What these are, and who continues them,
//! [`steps`](crate::work::steps) and [`reply`](crate::work::reply) say.

use crate::attempt::Attempt;
use crate::error::check_reply;
use crate::work::reply::{Elements, LongReply, PIECE_BYTES, ReplyRest, Stepwise, Text, as_they_are};
use crate::work::steps::{ATTEMPTS_MAX, PendingWork, Work};
use crate::{Ctx, Stop};
use engine::{Encoding, Key, SharedBig, Value};
use proto::ReplyBuffer;
use std::ops::Range;
use value::Stored;

impl Ctx<'_> {
    /// The work that this request has begun before, when it is done and of this kind. Whether it was done with what is
    /// there now, the caller has to see.
    pub fn take_work<W: Work>(&mut self) -> Option<Box<W>> {
        self.session.pending.as_mut()?.take()
    }

    /// Whether [`Ctx::begin_work`] may be called.
    pub fn may_begin_work(&self) -> bool {
        self.session.running.is_none() && self.session.attempt == Attempt::First && self.attempts() < ATTEMPTS_MAX
    }

    /// Has the work done, and the request run again from its start. It has changed nothing.
    pub fn begin_work(&mut self, work: impl Work) -> Stop {
        let attempt = self.attempts().saturating_add(1);
        self.session.pending = Some(PendingWork::new(work, true, attempt));
        Stop::Fetch
    }

    /// Keeps what a request has read so far, and has it run again after others, to read more. It has changed nothing.
    pub fn pause(&mut self, so_far: impl Work) -> Stop {
        self.session.pending = Some(PendingWork::new(so_far, true, self.attempts()));
        Stop::Fetch
    }

    /// Keeps work that needs rows, which were asked for. When they are there, the request runs again.
    pub fn keep_work(&mut self, work: impl Work) -> Stop {
        let attempt = self.session.pending.as_ref().map_or(1, PendingWork::attempt);
        self.session.pending = Some(PendingWork::new(work, false, attempt));
        Stop::Fetch
    }

    /// How often work was begun for this request.
    fn attempts(&self) -> u32 {
        self.session.pending.as_ref().map_or(0, PendingWork::attempt)
    }
}

impl Ctx<'_> {
    /// Replies a string, in pieces if it is long.
    ///
    /// # Errors
    /// A reply inside EXEC that grows too long.
    pub fn reply_text(&mut self, bytes: Vec<u8>) -> Result<(), Stop> {
        if bytes.len() <= PIECE_BYTES {
            self.reply.bulk(&bytes);
            return Ok(());
        }
        self.reply_long(Text::new(bytes))
    }

    /// Whether a reply may be left unfinished; where a waiting command is served it may not, since its connection is
    /// another one.
    pub fn may_reply_in_pieces(&self) -> bool {
        self.session.attempt == Attempt::First
    }

    /// Writes the elements of the collection under `key` that stand at these positions, by calling `write` with
    /// stretches of them, one after the other. Of a tree only the first piece is written here; the rest follows when
    /// the client has taken that. The count that stands before them is the caller's to write.
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
        self.reply_ranked(key, elements, as_they_are, write)
    }

    /// [`Ctx::reply_elements`] of positions that are no ranks; `ranks` gives those.
    ///
    /// # Errors
    /// The same.
    pub fn reply_ranked(
        &mut self,
        key: &Key<'_>,
        elements: Range<usize>,
        ranks: impl Fn(Range<usize>) -> Range<u64> + Send + 'static,
        write: impl Fn(Encoding, Stored<'_>, Range<usize>, &mut ReplyBuffer) + Send + 'static,
    ) -> Result<(), Stop> {
        let Some(entry) = self.ks.peek_value(key)? else { return Ok(()) };
        match entry.value {
            Value::Big(tree) => {
                let elements = Elements::of(tree.clone(), elements, Box::new(write));
                self.reply_long(elements.ranked(Box::new(ranks)))?;
            }
            value => write(entry.encoding, value.stored(), elements, self.reply),
        }
        check_reply(self.reply)
    }

    /// [`Ctx::reply_elements`] of a tree, which the key may have no more.
    ///
    /// # Errors
    /// A reply inside EXEC that grows too long.
    pub fn reply_tree(
        &mut self,
        tree: SharedBig,
        elements: Range<usize>,
        write: impl Fn(Encoding, Stored<'_>, Range<usize>, &mut ReplyBuffer) + Send + 'static,
    ) -> Result<(), Stop> {
        self.reply_long(Elements::of(tree, elements, Box::new(write)))
    }

    /// Has a collection made, and writes its elements, as [`Ctx::reply_elements`] does, when it is.
    ///
    /// # Errors
    /// A reply inside EXEC that grows too long.
    pub fn reply_stepwise(
        &mut self,
        making: impl Stepwise + 'static,
        write: impl Fn(Encoding, Stored<'_>, Range<usize>, &mut ReplyBuffer) + Send + 'static,
    ) -> Result<(), Stop> {
        self.reply_long(Elements::stepwise(Box::new(making), Box::new(write)))
    }

    /// Writes the first piece; the rest follows when the client has taken that.
    ///
    /// # Errors
    /// A reply inside EXEC that grows too long.
    pub fn reply_long(&mut self, telling: impl LongReply + 'static) -> Result<(), Stop> {
        let mut rest = ReplyRest::new(telling);
        let is_whole = self.session.running.is_some();
        let mut goes_on = rest.write_piece(self.reply);
        while goes_on && is_whole {
            check_reply(self.reply)?;
            goes_on = rest.write_piece(self.reply);
        }
        self.session.rest = Some(rest).filter(|_| goes_on);
        Ok(())
    }
}
