//! Requests of clients of SSDB's protocol: from bytes into the batch.

use super::pending::{Pending, Source};
use super::requests::{FillStop, is_same_key, place_of};
use super::{BATCH_LEN, Executor};
use crate::ahead::STEP_LEN;
use crate::dialect::{Dialect, Language};
use command::Args;
use proto::ProtocolError;
use proto::ssdb::{Limits, Progress};

impl Executor {
    /// As [`Executor::fill_batch`] does with RESP.
    #[inline(never)]
    pub(super) fn fill_from_ssdb(&mut self, id: usize, source: Source, mut at: usize, end: usize) -> (usize, FillStop) {
        let connection = &mut self.connections[id];
        let Dialect::Ssdb(parser) = &mut connection.dialect else { return (at, FillStop::Incomplete) };
        let all = match source {
            Source::Area => &*self.input,
            Source::Own(index) => &self.own_inputs[index as usize],
        };
        // Before login requests run one by one, as those of RESP do.
        let (limits, room) = match connection.session.authenticated {
            true => (&self.limits.after_login, BATCH_LEN),
            false => (&self.limits.before_login, self.batch.len() + 1),
        };
        let limits = Limits { block_bytes_max: limits.bulk_bytes_max, block_count_max: limits.argument_count_max };
        while at < end {
            let input = &all[at..end];
            let first_span = self.arguments.len();
            let consumed = match parser.parse(input, &limits, &mut self.arguments) {
                Progress::Request { consumed } => consumed,
                Progress::Nothing { consumed } => {
                    at += consumed;
                    continue;
                }
                Progress::Incomplete => return self.keep_unparsed(id, source, at..end, end),
                // Replies to what is before it are still in SSDB's protocol.
                Progress::Resp if !self.batch.is_empty() => return (at, FillStop::Full),
                Progress::Resp => {
                    connection.dialect = Dialect::new(Language::Resp);
                    connection.reply.leave_ssdb();
                    connection.session.separate_types(None);
                    return self.fill_batch(id, source, at, end);
                }
                Progress::Refused(refusal) => return (at, FillStop::Refused(ProtocolError::Ssdb(refusal))),
            };
            let spans = &self.arguments.spans()[first_span..];
            let args = Args::new(input, spans, self.arguments.large());
            let row = self.shared.ssdb.row(args.bytes(0).unwrap_or_default(), args.len());
            let key = args.bytes(usize::from(row.first_key)).filter(|_| row.first_key > 0);
            let db = connection.session.database_of_type(self.shared.ssdb.type_of(&row));
            let place =
                self.shared.store.spaces.get(db).zip(key).map(|(space, key)| place_of(&self.shared.store, space, key));
            let span_count = spans.len() as u32;
            self.has_runs |= is_same_key(self.places.last(), &place);
            self.places.push(place);
            if self.places.len().is_multiple_of(STEP_LEN) {
                self.ahead.parsed(&self.shared.store, &self.places);
            }
            self.batch.push(Pending {
                connection: id.into(),
                input: source,
                start: at,
                first_span,
                span_count,
                row: Some(row),
            });
            at += consumed;
            if self.batch.len() >= room {
                return (at, FillStop::Full);
            }
        }
        (at, FillStop::Incomplete)
    }
}
