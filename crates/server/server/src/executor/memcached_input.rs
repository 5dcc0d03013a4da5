//! Requests of memcached clients: from bytes into the batch.

use super::pending::{Pending, Source};
use super::requests::{FillStop, is_same_key, place_of};
use super::{BATCH_LEN, ClientLimits, Executor};
use crate::ahead::STEP_LEN;
use crate::dialect::Dialect;
use command::Args;
use memcached::{CommandLines, Mode};
use proto::ProtocolError;
use proto::memcached::{Limits, Progress};
use std::sync::Arc;

impl Executor {
    /// As [`Executor::fill_batch`] does with RESP.
    #[inline(never)]
    pub(super) fn fill_from_memcached(
        &mut self,
        id: usize,
        source: Source,
        mut at: usize,
        end: usize,
    ) -> (usize, FillStop) {
        let connection = &mut self.connections[id];
        let Dialect::Memcached(parser) = &mut connection.dialect else { return (at, FillStop::Incomplete) };
        let all = match source {
            Source::Area => &*self.input,
            Source::Own(index) => &self.own_inputs[index as usize],
        };
        let is_known = connection.session.authenticated;
        let (item_bytes_max, room) = match is_known {
            true => (self.limits.item_bytes_max, BATCH_LEN),
            false => (self.limits.before_login.bulk_bytes_max, self.batch.len() + 1),
        };
        let ClientLimits { element_bytes_max, fields_max, .. } = self.limits;
        let limits = Limits { item_bytes_max, element_bytes_max, fields_max };
        let mode = match is_known {
            false => Mode::LoggedOut,
            true if self.stats.outcomes.is_detailed() => Mode::Detailed,
            true => Mode::Plain,
        };
        let is_logged = self.stats.outcomes.is_logged();
        let space = self.shared.store.spaces.get(connection.session.db);
        while at < end {
            let input = &all[at..end];
            let first_span = self.arguments.len();
            let is_at_line = is_logged && parser.is_at_line();
            let progress = parser.parse(input, &limits, &mut self.arguments);
            if is_at_line && takes_bytes(&progress) {
                let lines = self.shared.host.part::<memcached::Needed, Arc<CommandLines>>();
                if !lines.note(self.now, &connection.session.info.address, input) {
                    self.stats.outcomes.set_logged(false);
                }
            }
            let (command, consumed) = match progress {
                Progress::Request { command, consumed } => (command, consumed),
                Progress::Nothing { consumed } => {
                    at += consumed;
                    continue;
                }
                Progress::Incomplete => {
                    return self.keep_unparsed(id, source, at..end, end);
                }
                Progress::Foreign { what } => {
                    tracing::info!(
                        "client {} closed: it sent {what} to the memcached port",
                        connection.session.info.address
                    );
                    return (at, FillStop::Refused(ProtocolError::CrossProtocol));
                }
            };
            let spans = &self.arguments.spans()[first_span..];
            let args = Args::new(input, spans, self.arguments.large());
            let row = self.shared.memcached.row(command, mode);
            let key = args.bytes(usize::from(row.first_key)).filter(|_| row.first_key > 0);
            let place = space.zip(key).map(|(space, key)| place_of(&self.shared.store, space, key));
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

/// Whether the line at the start of the input has been read, and is not seen again.
fn takes_bytes(progress: &Progress) -> bool {
    matches!(progress, Progress::Request { consumed: 1.., .. } | Progress::Nothing { consumed: 1.. })
}
