//! Streams.

use super::packed;
use crate::error::{Flaw, RdbError};
use crate::input::Input;
use crate::packed::listpack::Elements;
use crate::stream::{EntryPlace, Node, Stream, StreamConsumer, StreamGroup, StreamId, StreamPending};
use crate::strings::Strings;
use base::UnixMs;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::io::Read;

/// Flag: the entry was deleted and is still in its node.
const DELETED: i64 = 1;

/// Flag: the entry has the same names as the node's first entry.
const SAME_NAMES: i64 = 2;

/// In place of the number of entries that a group has read: unknown.
const UNKNOWN: u64 = u64::MAX;

/// Reads a stream of the first, second or third form.
pub(super) fn read(input: &mut Input<impl Read>, version: u8) -> Result<Stream, RdbError> {
    let mut stream = Stream::default();
    let mut last = None;
    for _ in 0..input.count(2, "the number of nodes")? {
        let node = read_node(input, &mut last)?;
        stream.nodes.push(node);
    }

    let offset = input.offset();
    if input.length("the number of entries")? != stream.len() {
        return Err(input.damaged(offset, "the number of entries"));
    }
    let offset = input.offset();
    stream.last_id = read_id(input)?;
    if last.is_some_and(|last| stream.last_id < last) {
        return Err(input.damaged(offset, "a last id that no entry is above"));
    }
    stream.entries_added = stream.len();
    if version >= 2 {
        let offset = input.offset();
        let first = read_id(input)?;
        if !stream.is_empty() && first != stream.first_id() {
            return Err(input.damaged(offset, "the id of the first entry"));
        }
        stream.max_deleted_id = read_id(input)?;
        stream.entries_added = input.length("the number of entries added")?;
    }

    let offset = input.offset();
    for _ in 0..input.count(5, "the number of groups")? {
        let mut group = read_group(input, version)?;
        if version < 2 {
            group.entries_read = entries_read(&stream, group.last_id);
        }
        stream.groups.push(group);
    }
    let mut names = HashSet::new();
    if !stream.groups.iter().all(|group| names.insert(&group.name)) {
        return Err(input.damaged(offset, "groups with distinct names"));
    }
    Ok(stream)
}

/// Number of entries before the last id of a group, for files before Redis 7.0, which do not store it; `None` if it
/// cannot be derived. Computed as in Redis and Valkey, so that XINFO GROUPS shows the same lag.
fn entries_read(stream: &Stream, last_id: StreamId) -> Option<u64> {
    if stream.entries_added == 0 {
        return Some(0);
    }
    match (last_id.cmp(&stream.last_id), last_id.cmp(&stream.first_id())) {
        (Ordering::Equal, _) => Some(stream.entries_added),
        (Ordering::Less, Ordering::Less) => Some(0),
        (Ordering::Less, Ordering::Equal) => Some(1),
        _ => None,
    }
}

fn read_id(input: &mut Input<impl Read>) -> Result<StreamId, RdbError> {
    Ok(StreamId { ms: input.length("an id")?, seq: input.length("an id")? })
}

/// Reads a node whose entries are above `last`, and sets `last` to its last entry.
fn read_node(input: &mut Input<impl Read>, last: &mut Option<StreamId>) -> Result<Node, RdbError> {
    let offset = input.offset();
    let Ok(first) = <[u8; 16]>::try_from(input.own_string()?) else {
        return Err(input.damaged(offset, "an id of 16 bytes"));
    };
    let first = StreamId::from_bytes(first);
    packed(input, |bytes, node| read_entries(bytes, first, last, node))
}

/// Reads the entries of a node. Their ids are relative to `base`.
fn read_entries(bytes: &[u8], base: StreamId, last: &mut Option<StreamId>, node: &mut Node) -> Result<(), Flaw> {
    let mut elements = Elements::of(bytes)?;
    let flaw = elements.flaw("the numbers of entries");
    let live = elements.need_integer("the number of entries")?;
    let deleted = elements.need_integer("the number of deleted entries")?;
    let names = need_count(&mut elements, "the number of names")?;
    for _ in 0..names {
        elements.need("a name")?.push_to(&mut node.names);
    }
    let end = elements.flaw("the end of the names");
    if elements.need_integer("the end of the names")? != 0 {
        return Err(end);
    }

    let mut seen_deleted = 0;
    while let Some(flags) = elements.take_integer("the flags of an entry")? {
        let flaw = elements.flaw("an id above 0-0 and above the one before");
        let id = StreamId {
            ms: base.ms.wrapping_add_signed(elements.need_integer("an id")?),
            seq: base.seq.wrapping_add_signed(elements.need_integer("an id")?),
        };
        if id < base || last.unwrap_or_default() >= id {
            return Err(flaw);
        }
        *last = Some(id);
        let place = read_texts(&mut elements, node, id, flags)?;
        if flags & DELETED == 0 {
            node.entries.push(place);
        } else {
            node.texts.truncate(place.first);
            seen_deleted += 1;
        }
    }
    if i64::try_from(node.entries.len()) != Ok(live) || deleted != seen_deleted {
        return Err(flaw);
    }
    Ok(())
}

fn need_count(elements: &mut Elements<'_>, expected: &'static str) -> Result<u64, Flaw> {
    let flaw = elements.flaw(expected);
    u64::try_from(elements.need_integer(expected)?).map_err(|_| flaw)
}

/// Reads the texts of an entry, and checks its number of elements.
fn read_texts(elements: &mut Elements<'_>, node: &mut Node, id: StreamId, flags: i64) -> Result<EntryPlace, Flaw> {
    /// Flags and both parts of the id.
    const HEAD: u64 = 3;
    let has_names = flags & SAME_NAMES == 0;
    let first = node.texts.len();
    let flaw = elements.flaw("a field at least");
    let (count, head) = if has_names {
        let fields = need_count(elements, "the number of fields")?;
        (fields.checked_mul(2), HEAD + 1)
    } else {
        (Some(node.names.len() as u64), HEAD)
    };
    let Some(count @ 1..) = count else { return Err(flaw) };
    for _ in 0..count {
        elements.need("a name or a value")?.push_to(&mut node.texts);
    }
    let flaw = elements.flaw("the number of elements of the entry");
    if need_count(elements, "the number of elements of the entry")? != count + head {
        return Err(flaw);
    }
    Ok(EntryPlace { id, first, len: node.texts.len() - first, has_names })
}

fn read_group(input: &mut Input<impl Read>, version: u8) -> Result<StreamGroup, RdbError> {
    let name = input.own_string()?;
    let last_id = read_id(input)?;
    let read = if version >= 2 { input.length("the number of entries read")? } else { UNKNOWN };
    let mut group =
        StreamGroup { name, last_id, entries_read: (read != UNKNOWN).then_some(read), ..Default::default() };

    for _ in 0..input.count(25, "the number of pending entries")? {
        let offset = input.offset();
        let id = StreamId::from_bytes(input.array("the id of a pending entry")?);
        if group.pending.last().is_some_and(|before| before.id >= id) {
            return Err(input.damaged(offset, "the id of a pending entry, above the one before"));
        }
        let delivered_at = input.time_ms("a time of delivery")?;
        let deliveries = input.length("a number of deliveries")?;
        group.pending.push(StreamPending { id, delivered_at, deliveries, consumer: NOBODY });
    }

    let (mut names, offset) = (Strings::default(), input.offset());
    for _ in 0..input.count(10, "the number of consumers")? {
        let consumer = read_consumer(input, version)?;
        names.push(&consumer.name);
        claim_pending(input, &mut group)?;
        group.consumers.push(consumer);
    }
    if !names.are_distinct(1) {
        return Err(input.damaged(offset, "consumers with distinct names"));
    }
    if group.pending.iter().any(|pending| pending.consumer == NOBODY) {
        return Err(input.damaged(offset, "a consumer for every pending entry"));
    }
    Ok(group)
}

/// The consumer of a pending entry while it is unknown.
const NOBODY: usize = usize::MAX;

fn read_consumer(input: &mut Input<impl Read>, version: u8) -> Result<StreamConsumer, RdbError> {
    const NEVER: UnixMs = -1;
    let name = input.own_string()?;
    let seen_at = input.time_ms("when a consumer was seen")?;
    let active_at = if version >= 3 { input.time_ms("when a consumer was active")? } else { seen_at };
    Ok(StreamConsumer { name, seen_at, active_at: (active_at != NEVER).then_some(active_at) })
}

/// Reads the ids that are pending for the next consumer of the group.
fn claim_pending(input: &mut Input<impl Read>, group: &mut StreamGroup) -> Result<(), RdbError> {
    const EXPECTED: &str = "an id that is pending in the group, and for no other consumer";
    let owner = group.consumers.len();
    for _ in 0..input.count(16, "the number of entries pending for a consumer")? {
        let offset = input.offset();
        let id = StreamId::from_bytes(input.array(EXPECTED)?);
        let place = group.pending.binary_search_by_key(&id, |pending| pending.id).ok();
        match place.and_then(|place| group.pending.get_mut(place)) {
            Some(pending) if pending.consumer == NOBODY => pending.consumer = owner,
            _ => return Err(input.damaged(offset, EXPECTED)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams of Redis 5 and 6 lost the count, so XINFO GROUPS showed no lag.
    #[test]
    fn what_a_group_has_read_follows_from_its_last_id() {
        let id = |ms| StreamId { ms, seq: 0 };
        let mut stream = Stream::default();
        assert_eq!(entries_read(&stream, id(5)), Some(0), "nothing was ever added");
        [10, 20, 30].into_iter().for_each(|ms| stream.push(id(ms), ["name", "value"]));
        (stream.last_id, stream.entries_added) = (id(30), 3);
        for (last, read) in [(0, Some(0)), (9, Some(0)), (10, Some(1)), (20, None), (30, Some(3)), (31, None)] {
            assert_eq!(entries_read(&stream, id(last)), read, "{last}-0");
        }
    }
}
