//! Conversion between file values and stored collections: a stored collection to a [`Value`], and a value to the
//! changes that build the collection.

use crate::format::{Form, kind};
use crate::stream::{Stream, StreamConsumer, StreamGroup, StreamId, StreamPending};
use crate::strings::Strings;
use crate::value::{Hash, Value, Zset};
use base::integer::{IntegerText, parse_integer};
use value::stream::{Claim, Claims, Id};
use value::{Encoding, Stored, Type, hash, list, set, stream, zset};

/// A stored collection as a value; `None` for a string, and for a b+tree, which no RDB file can hold. Expired fields of
/// a hash are included.
pub fn of_collection(kind: Type, encoding: Encoding, stored: Stored<'_>) -> Option<Value> {
    Some(match kind {
        Type::String | Type::Btree => return None,
        Type::List => Value::List(list::View::of(encoding, stored).forward(0).collect()),
        Type::Set => {
            let (mut members, mut room) = (Strings::default(), IntegerText::default());
            set::View::of(encoding, stored).iter().for_each(|member| members.push(member.bytes(&mut room)));
            Value::Set(members)
        }
        Type::Zset => {
            let mut zset = Zset::default();
            zset::View::of(stored).forward(0).for_each(|entry| zset.push(entry.member, entry.score));
            Value::Zset(zset)
        }
        Type::Hash => {
            let mut hash = Hash::default();
            hash::View::of(encoding, stored).iter().for_each(|cell| hash.push(cell.field, cell.value, cell.expire_at));
            Value::Hash(hash)
        }
        Type::Stream => Value::Stream(Box::new(of_stream(stream::Big::of(stored)))),
    })
}

fn of_stream(big: &stream::Big) -> Stream {
    let mut stream = Stream::default();
    for entry in big.range(Id::MIN, Id::MAX) {
        stream.push(entry.id.into(), entry.fields().flat_map(<[_; 2]>::from));
    }
    stream.last_id = big.last_id().into();
    stream.max_deleted_id = big.max_deleted_id().into();
    stream.entries_added = big.entries_added();
    stream.groups = big.groups().map(of_group).collect();
    stream
}

fn of_group(group: &stream::Group) -> StreamGroup {
    let consumers: Vec<_> = group
        .consumers()
        .map(|consumer| StreamConsumer {
            name: consumer.name().to_vec(),
            seen_at: consumer.seen(),
            active_at: consumer.active(),
        })
        .collect();
    let pending = group
        .pending(Id::MIN)
        .map(|pending| {
            let Claim { id, delivered, deliveries } = pending.claim();
            // Consumers are sorted by name.
            let owner = consumers.binary_search_by(|consumer| consumer.name.as_slice().cmp(pending.owner()));
            let consumer = owner.unwrap_or_else(|place| place);
            StreamPending { id: id.into(), delivered_at: delivered, deliveries, consumer }
        })
        .collect();
    StreamGroup {
        name: group.name().to_vec(),
        last_id: group.last_delivered().into(),
        entries_read: group.entries_read(),
        consumers,
        pending,
    }
}

/// Appends the changes that build the collection from nothing, and returns its type. Returns `None`, and appends
/// nothing, for values that cannot be stored as a collection: a string, an empty collection other than a stream, a
/// module's value.
///
/// `form` is the form in the file: a set of integers that was packed as strings stays one.
pub fn put_changes(value: &Value, form: Form, out: &mut Vec<u8>) -> Option<Type> {
    if value.is_empty_collection() {
        return None;
    }
    Some(match value {
        Value::String(_) | Value::Module(_) => return None,
        Value::List(elements) => {
            elements.iter().for_each(|value| list::Change::Push { end: list::End::Tail, value }.put(out));
            Type::List
        }
        Value::Set(members) => {
            if form.number() == kind::SET_LISTPACK && members.iter().all(|member| parse_integer(member).is_some()) {
                set::Change::Strings.put(out);
            }
            set::Change::Expect(members.len() as u64).put(out);
            members.iter().for_each(|member| set::Change::Add(member).put(out));
            Type::Set
        }
        Value::Zset(zset) => {
            zset.iter().for_each(|(member, score)| zset::Change::Add { score, member }.put(out));
            Type::Zset
        }
        Value::Hash(fields) => {
            hash::Change::Expect(fields.len() as u64).put(out);
            for (field, value, expire_at) in fields.iter() {
                hash::Change::Set { field, value, expire_at }.put(out);
            }
            Type::Hash
        }
        Value::Stream(stream) => {
            put_stream(stream, out);
            Type::Stream
        }
    })
}

fn put_stream(stream: &Stream, out: &mut Vec<u8>) {
    for entry in stream.entries() {
        let strings = entry.fields().flat_map(<[_; 2]>::from);
        stream::Change::put_add(out, entry.id().into(), entry.fields().len() as u64, strings);
    }
    let (last, deleted) = (stream.last_id.into(), stream.max_deleted_id.into());
    stream::Change::SetId { last, added: stream.entries_added, deleted }.put(out);
    stream.groups.iter().for_each(|group| put_group(group, out));
}

fn put_group(group: &StreamGroup, out: &mut Vec<u8>) {
    let name = &*group.name;
    stream::Change::SetGroup { group: name, last: group.last_id.into(), read: group.entries_read }.put(out);
    for consumer in &group.consumers {
        let (seen, active) = (consumer.seen_at, consumer.active_at);
        stream::Change::SetConsumer { group: name, consumer: &consumer.name, seen, active }.put(out);
    }
    for run in group.pending.chunk_by(|left, right| left.consumer == right.consumer) {
        let owner = run.first().and_then(|pending| group.consumers.get(pending.consumer));
        let Some(StreamConsumer { name: consumer, .. }) = owner else { continue };
        let claims = run.iter().map(|pending| Claim {
            id: pending.id.into(),
            delivered: pending.delivered_at,
            deliveries: pending.deliveries,
        });
        let mut buffer = Vec::new();
        let claims = Claims::collect(claims, &mut buffer);
        stream::Change::Deliver { group: name, consumer, claims }.put(out);
    }
}

impl From<Id> for StreamId {
    fn from(id: Id) -> Self {
        Self { ms: id.ms, seq: id.seq }
    }
}

impl From<StreamId> for Id {
    fn from(id: StreamId) -> Self {
        Self { ms: id.ms, seq: id.seq }
    }
}
