//! Bytes received become requests in the batch: room for a read, the parser, the place of the first key. Bytes that
//! cannot run yet stay with their connection.

use super::pending::{Parsing, Pending, Source};
use super::{BATCH_LEN, Executor};
use crate::ahead::STEP_LEN;
use crate::closing::log_closing;
use crate::dialect::Dialect;
use crate::key_route::KeyRoute;
use crate::openings::Openings;
use base::KeyspaceId;
use command::error;
use command::{Args, CommandTable, Row};
use engine::SharedBytes;
use proto::{Progress, ProtocolError, Span};
use std::ops::Range;
use store::Store;
use value::reaper;

/// Room offered to one read: thousands of small requests, a millisecond's work, before the next connection's turn.
const READ_BYTES_MIN: usize = 64 * 1024;

/// Room offered to one read of a large argument. It is filled with zeros first, and each new page costs a fault.
const READ_LARGE_BYTES_MAX: usize = 256 << 10;

/// An unfinished request up to this size is copied to the front of its next read instead of being read on its own.
const UNPARSED_COPIED_BYTES_MAX: usize = 16 * 1024;

/// Why filling the batch stopped.
pub(super) enum FillStop {
    /// The batch is full.
    Full,
    /// Everything is parsed, or kept until more arrives.
    Incomplete,
    /// A request whose argument of this length was not kept.
    Dropped(usize),
    /// What comes next is no request.
    Refused(ProtocolError),
}

impl Executor {
    /// Room for the connection's next bytes. `read` fills it from the front and says how many came; the requests in
    /// them are parsed and, batch by batch, run. Gives what `read` gave, and whether it filled all the room it was
    /// offered.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn receive<E>(
        &mut self,
        id: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(usize, bool), E> {
        let Some(connection) = self.connections.get_mut(id) else { return Ok((0, false)) };
        let bytes_max = self.limits.receiving_bytes_max;
        if connection.dialect.large_bulk().is_some_and(|large| large.missing() > bytes_max) {
            reaper::free_bytes(connection.dialect.drop_large_bulk());
        }
        if let Some(mut large) = connection.dialect.large_bulk() {
            let missing = large.missing();
            let buffer = large.buffer();
            let (start, room) =
                (buffer.len(), (buffer.capacity() - buffer.len()).min(missing).min(READ_LARGE_BYTES_MAX));
            if room > 0 {
                buffer.resize(start + room, 0);
                let result = read(&mut buffer[start..]);
                buffer.truncate(start + result.as_ref().map_or(0, |read| *read));
                let read = result?;
                self.parse_own(id);
                return Ok((read, read == room));
            }
        }
        let Some(connection) = self.connections.get_mut(id) else { return Ok((0, false)) };
        if connection.unparsed.len() > UNPARSED_COPIED_BYTES_MAX {
            let buffer = &mut connection.unparsed;
            let start = buffer.len();
            // Grows with what has come, never with what is announced.
            buffer.resize(start + READ_BYTES_MIN.max(start / 2), 0);
            let room = buffer.len() - start;
            let result = read(&mut buffer[start..]);
            buffer.truncate(start + result.as_ref().map_or(0, |read| *read));
            let read = result?;
            self.parse_own(id);
            return Ok((read, read == room));
        }
        if self.input.len() - self.filled < READ_BYTES_MIN + UNPARSED_COPIED_BYTES_MAX {
            self.run_batch_keeping_input();
        }
        if self.batch.is_empty() {
            // As early as can be: the next bytes land where the cache still has the last ones.
            self.start_input_over();
        }
        let Some(connection) = self.connections.get_mut(id) else { return Ok((0, false)) };
        let (start, kept) = (self.filled, connection.unparsed.len());
        let end = self.input.len().min(start + kept + READ_BYTES_MIN);
        let area = &mut self.input[start..end];
        let result = read(&mut area[kept..]);
        let (read, room) = (result?, area.len() - kept);
        area[..kept].copy_from_slice(&connection.unparsed);
        if kept > 0 {
            // A connection between requests holds no memory for them.
            connection.unparsed = Vec::new();
        }
        let end = start + kept + read;
        self.filled = end;
        self.parse(id, Source::Area, start, end);
        Ok((read, read == room))
    }

    /// [`receive`](Self::receive) of a connection whose client has to read first: the bytes are kept in its backlog.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn receive_behind<E>(
        &mut self,
        id: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(usize, bool), E> {
        self.connections.get_mut(id).map_or(Ok((0, false)), |connection| connection.backlog.receive(read))
    }

    /// Whether the client has to read before its requests run.
    pub fn awaits_reader(&self, id: usize) -> bool {
        self.connections.get(id).is_some_and(|connection| {
            let is_behind =
                connection.session.rest.is_some() || connection.reply.len() > self.limits.output_pause_bytes;
            is_behind && !connection.session.close_after_replies
        })
    }

    /// Whether the backlog of the connection takes more.
    pub fn has_backlog_room(&self, id: usize) -> bool {
        self.connections.get(id).is_some_and(|connection| connection.backlog.bytes() < self.limits.backlog_bytes_max)
    }

    /// Whether all that was received of the connection has run, and all is answered.
    pub fn is_answered(&self, id: usize) -> bool {
        self.connections.get(id).is_none_or(|connection| {
            let is_kept = !connection.backlog.is_empty() || connection.refused_bytes.is_some();
            let has_run = connection.waiting.is_empty() && !is_kept && !connection.paused;
            has_run && !connection.session.is_busy() && connection.reply.is_empty()
        })
    }

    /// Whether requests have come that are not run because of unsent output.
    pub fn is_paused(&self, id: usize) -> bool {
        self.connections.get(id).is_some_and(|connection| connection.paused || !connection.backlog.is_empty())
    }

    /// Continues with the requests of a paused connection.
    pub fn resume(&mut self, id: usize) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.paused = false;
            match connection.waiting.is_empty() {
                true => self.parse_own(id),
                false => self.run_waiting_of(id),
            }
            self.parse_backlog(id);
        }
    }

    /// Parses a chunk of the connection's backlog, unless it has to wait again.
    pub(super) fn parse_backlog(&mut self, id: usize) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.paused || !connection.waiting.is_empty() || connection.session.is_busy() {
            return;
        }
        let Some(chunk) = connection.backlog.take() else { return };
        match connection.unparsed.is_empty() {
            true => connection.unparsed = chunk,
            false => connection.unparsed.extend_from_slice(&chunk),
        }
        self.parse_own(id);
    }

    /// Parses what the connection holds in a buffer of its own.
    pub(super) fn parse_own(&mut self, id: usize) {
        let unparsed = std::mem::take(&mut self.connections[id].unparsed);
        let end = unparsed.len();
        self.own_inputs.push(unparsed);
        self.parse(id, Source::Own(self.own_inputs.len() as u32 - 1), 0, end);
    }

    /// Parses requests from the input and queues them for the batch; a full batch runs at once.
    fn parse(&mut self, id: usize, source: Source, mut at: usize, end: usize) {
        let (mut begun_ns, mut is_late) = (None, false);
        self.answer_refused(id);
        while at < end {
            let Some(connection) = self.connections.get_mut(id) else { return };
            connection.paused |= is_late || connection.reply.len() > self.limits.output_pause_bytes;
            let is_stopped = connection.paused
                || connection.refused_bytes.is_some()
                || !connection.waiting.is_empty()
                || connection.session.close_after_replies
                || connection.session.is_busy();
            let input = match source {
                Source::Area => &self.input[at..end],
                Source::Own(index) => &self.own_inputs[index as usize][at..end],
            };
            if is_stopped {
                connection.unparsed.extend_from_slice(input);
                return;
            }
            let (parsed, stop) = match connection.dialect {
                Dialect::Resp(_) => self.fill_batch(id, source, at, end),
                Dialect::Memcached(_) => self.fill_from_memcached(id, source, at, end),
                Dialect::Ssdb(_) => self.fill_from_ssdb(id, source, at, end),
            };
            at = parsed;
            match stop {
                FillStop::Full => {
                    self.parsing.set(Parsing::Rest { id, source, at, end });
                    self.run_batch_keeping_input();
                    if self.parsing.take() == Parsing::Nothing {
                        // It was lent together with the rest.
                        return;
                    }
                    let now_ns = self.stats.now();
                    is_late = now_ns.saturating_sub(*begun_ns.get_or_insert(now_ns)) > self.batch_ns;
                }
                FillStop::Incomplete => return,
                FillStop::Dropped(bytes) => {
                    self.parsing.set(Parsing::Pinned(id));
                    self.run_batch_keeping_input();
                    self.parsing.set(Parsing::Nothing);
                    if let Some(connection) = self.connections.get_mut(id) {
                        connection.refused_bytes = Some(bytes);
                    }
                    self.answer_refused(id);
                }
                FillStop::Refused(error) => return self.refuse(id, source, at, end, &error),
            }
        }
    }

    /// Parses requests from the input until the batch is full or no request is complete; for each it finds the row and
    /// hashes the key. Gives where it stopped, and why.
    pub(super) fn fill_batch(&mut self, id: usize, source: Source, mut at: usize, end: usize) -> (usize, FillStop) {
        let connection = &mut self.connections[id];
        let Dialect::Resp(parser) = &mut connection.dialect else { return (at, FillStop::Incomplete) };
        let all = match source {
            Source::Area => &*self.input,
            Source::Own(index) => &self.own_inputs[index as usize],
        };
        // Before login requests run one by one: the limits of the next depend on whether this one logs in.
        let (limits, room) = match connection.session.authenticated {
            true => (&self.limits.after_login, BATCH_LEN),
            false => (&self.limits.before_login, self.batch.len() + 1),
        };
        let space = self.shared.store.spaces.get(connection.session.db);
        while at < end {
            let input = &all[at..end];
            let first_span = self.arguments.len();
            let known = self.openings.like(input);
            let like = parser.parse_like(&known.opening, input, limits, &mut self.arguments);
            let (consumed, known) = match like {
                Some(consumed) => (consumed, known.row),
                None => match parser.parse(input, limits, &mut self.arguments) {
                    Ok(Progress::Complete { consumed }) => (consumed, None),
                    Ok(Progress::Empty { consumed }) => {
                        at += consumed;
                        continue;
                    }
                    Ok(Progress::Dropped { consumed, bytes }) => return (at + consumed, FillStop::Dropped(bytes)),
                    Ok(Progress::Incomplete { keep }) => {
                        return self.keep_unparsed(id, source, at..at + keep, end);
                    }
                    Err(error) => return (at, FillStop::Refused(error)),
                },
            };
            let spans = &self.arguments.spans()[first_span..];
            let row = match known {
                Some(row) => Some(row),
                None => look_up(&self.shared.table, &mut self.openings, input, spans, self.arguments.large()),
            };
            let args = Args::new(input, spans, self.arguments.large());
            let mut place = None;
            if let (Some(row), Some(space)) = (&row, space)
                && row.first_key > 0
                && let Some(bytes) = args.bytes(usize::from(row.first_key))
            {
                place = Some(place_of(&self.shared.store, space, bytes));
            }
            let span_count = spans.len() as u32;
            self.has_runs |= is_same_key(self.places.last(), &place);
            self.places.push(place);
            if self.places.len().is_multiple_of(STEP_LEN) {
                self.ahead.parsed(&self.shared.store, &self.places);
            }
            self.batch.push(Pending { connection: id.into(), input: source, start: at, first_span, span_count, row });
            at += consumed;
            if self.batch.len() >= room {
                return (at, FillStop::Full);
            }
        }
        (at, FillStop::Incomplete)
    }

    /// Keeps the beginning of a request that is not complete; when it is too long, the connection closes.
    #[cold]
    pub(super) fn keep_unparsed(
        &mut self,
        id: usize,
        source: Source,
        kept: Range<usize>,
        end: usize,
    ) -> (usize, FillStop) {
        let connection = &mut self.connections[id];
        connection.unparsed.extend_from_slice(match source {
            Source::Area => &self.input[kept],
            Source::Own(index) => &self.own_inputs[index as usize][kept],
        });
        if connection.unparsed.len() > self.limits.query_bytes_max {
            connection.session.close_after_replies = true;
            self.shared.host.clients.count_query_limited();
            let why = format!("its request has {} bytes and is not complete", connection.unparsed.len());
            log_closing(&connection.session.info, &why, "client-query-buffer-limit");
            self.list(id);
        }
        (end, FillStop::Incomplete)
    }

    /// Answers a request of which an argument was too long to be kept, once all before it are answered.
    fn answer_refused(&mut self, id: usize) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(bytes) = connection.refused_bytes else { return };
        if connection.paused || !connection.waiting.is_empty() || connection.session.is_busy() {
            return;
        }
        connection.refused_bytes = None;
        let text = error::argument_not_kept(bytes);
        let mark = connection.reply.mark();
        command::gate::refuse_unkept(&mut connection.session, &self.stats, text.as_bytes(), &mut connection.reply);
        if !connection.session.reply_wanted() {
            connection.reply.rewind(mark);
        }
        self.list(id);
    }

    /// The framing is lost: earlier requests run, the error is answered, and the connection closes. While an earlier
    /// request waits, the input is kept, to be refused after it.
    #[cold]
    fn refuse(&mut self, id: usize, source: Source, at: usize, end: usize, error: &ProtocolError) {
        self.parsing.set(Parsing::Pinned(id));
        self.run_batch_keeping_input();
        self.parsing.set(Parsing::Nothing);
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !connection.waiting.is_empty() || connection.session.is_busy() {
            connection.unparsed.extend_from_slice(match source {
                Source::Area => &self.input[at..end],
                Source::Own(index) => &self.own_inputs[index as usize][at..end],
            });
            return;
        }
        if !matches!(error, ProtocolError::CrossProtocol) {
            let text = error::protocol(&error.message());
            self.stats.count_error(text.as_bytes());
            connection.reply.error(text);
        }
        connection.session.close_after_replies = true;
        self.list(id);
    }
}

/// What a request asks for whose opening was unknown; from then on it is known.
#[cold]
#[inline(never)]
fn look_up(
    table: &CommandTable,
    openings: &mut Openings,
    input: &[u8],
    spans: &[Span],
    large: &[SharedBytes],
) -> Option<Row> {
    let args = Args::new(input, spans, large);
    let row = table.lookup(&args)?;
    openings.remember(table, input, spans, &args, &row);
    Some(row)
}

/// Where a key belongs.
#[inline(always)]
pub(super) fn place_of(store: &Store, space: KeyspaceId, bytes: &[u8]) -> KeyRoute {
    let key = store.key(space, bytes);
    KeyRoute { hash: key.hash, slot: key.slot, space, shard: store.shard_of(&key) }
}

/// Whether both are places of one key.
#[inline]
pub(super) fn is_same_key(one: Option<&Option<KeyRoute>>, next: &Option<KeyRoute>) -> bool {
    match (one, next) {
        (Some(Some(one)), Some(next)) => one.hash == next.hash && one.space == next.space,
        _ => false,
    }
}
