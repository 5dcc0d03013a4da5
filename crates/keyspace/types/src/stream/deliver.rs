//! XREADGROUP.

use super::lag::{added_up_to, has_gap_after};
use super::{Change, Entry, Group, Id, Stream, change, notify, read_to_edit};
use crate::TypeError;
use base::UnixMs;
use engine::{Key, Keyspace};
use value::stream::{Claim, Claims};

/// The consumer that reads.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The group, which exists.
    pub group: &'a [u8],
    /// The consumer; made when it is not there.
    pub consumer: &'a [u8],
    /// What it is given counts as acknowledged (NOACK).
    pub acknowledges: bool,
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// What was never delivered to the group (`>`).
    New,
    /// Entries that are pending for the consumer, after this id.
    Pending(Id),
}

/// What a reader is given.
#[derive(Clone, Copy, Debug)]
pub enum Delivery<'e> {
    /// An entry.
    Entry(Entry<'e>),
    /// The id of a pending entry that was removed from the stream.
    Gone(Id),
}

/// Whether there is an entry that was never delivered to the group.
pub fn has_more(stream: &Stream, group: &Group) -> bool {
    stream.last_entry().is_some_and(|entry| entry.id > group.last_delivered())
}

/// Delivers at most `count` entries to a consumer, until `give` says that there is no room for more, and notes that the
/// consumer was active. Returns how many.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn deliver(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    reader: &Reader<'_>,
    position: Position,
    count: usize,
    give: &mut dyn FnMut(Delivery<'_>) -> bool,
) -> Result<usize, TypeError> {
    let now = ks.now();
    let Some(stream) = read_to_edit(ks, key)? else { return Ok(0) };
    let Some(group) = stream.group(reader.group) else { return Ok(0) };
    let consumer = group.consumer(reader.consumer);
    let mut round = Round {
        given: 0,
        last: group.last_delivered(),
        read: group.entries_read(),
        active: consumer.and_then(|consumer| consumer.active()),
        claims: Vec::new(),
    };
    match position {
        Position::New => {
            // There is nothing after the last id.
            let entries = round.last.next().map(|start| stream.range(start, Id::MAX));
            for entry in entries.into_iter().flatten().take(count) {
                round.advance(stream, entry.id);
                if !reader.acknowledges {
                    round.active = Some(now);
                    round.claims.push(Claim { id: entry.id, delivered: now, deliveries: 1 });
                }
                if !give(Delivery::Entry(entry)) {
                    break;
                }
            }
        }
        Position::Pending(after) => {
            let ids = consumer.into_iter().flat_map(|consumer| consumer.pending_ids(after));
            for id in ids.filter(|id| *id > after).take(count) {
                round.given = round.given.saturating_add(1);
                let entry = stream.entry(id);
                if entry.is_some() {
                    let deliveries = group.pending_entry(id).map_or(0, |pending| pending.claim().deliveries);
                    round.claims.push(Claim { id, delivered: now, deliveries: deliveries.wrapping_add(1) });
                }
                if !give(entry.map_or(Delivery::Gone(id), Delivery::Entry)) {
                    break;
                }
            }
        }
    }
    let is_moved = round.last != group.last_delivered();
    let is_new = consumer.is_none();
    let (Reader { group, consumer, .. }, Round { given, last, read, active, claims }) = (*reader, round);
    change(ks, key, |out| {
        if is_moved {
            Change::SetGroup { group, last, read }.put(out);
        }
        Change::SetConsumer { group, consumer, seen: now, active }.put(out);
        if !claims.is_empty() {
            let mut buffer = Vec::new();
            let claims = Claims::collect(claims, &mut buffer);
            Change::Deliver { group, consumer, claims }.put(out);
        }
    });
    if is_new {
        notify(ks, key, "xgroup-createconsumer");
    }
    Ok(given)
}

/// What changes while entries are given.
struct Round {
    given: usize,
    last: Id,
    read: Option<u64>,
    active: Option<UnixMs>,
    claims: Vec<Claim>,
}

impl Round {
    /// The group has delivered this entry too.
    fn advance(&mut self, stream: &Stream, id: Id) {
        let is_known = self.last >= stream.first_id() && !has_gap_after(stream, self.last);
        self.read = match self.read {
            Some(read) if is_known => Some(read.wrapping_add(1)),
            _ if stream.entries_added() > 0 => added_up_to(stream, id),
            read => read,
        };
        self.last = id;
        self.given = self.given.saturating_add(1);
    }
}
