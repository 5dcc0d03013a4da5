//! Payloads of DUMP by what they hold. Their bytes are each server's own matter: how it packs a value, in which order
//! it has the members, which version of the format it writes.

use rdb::{Hash, Stream, StreamGroup, Value, Zset};

/// What does not count is left out: the order of members, groups and consumers, and nodes of streams.
pub fn in_order(value: Value) -> Value {
    match value {
        Value::Set(members) => Value::Set(sorted(members.iter().map(<[u8]>::to_vec)).into_iter().collect()),
        Value::Zset(zset) => {
            let mut ordered = Zset::default();
            let mut pairs: Vec<_> = zset.iter().collect();
            pairs.sort_by(|left, right| left.0.cmp(right.0));
            pairs.into_iter().for_each(|(member, score)| ordered.push(member, score));
            Value::Zset(ordered)
        }
        Value::Hash(hash) => {
            let mut ordered = Hash::default();
            let fields = sorted(hash.iter());
            fields.into_iter().for_each(|(field, value, expire_at)| ordered.push(field, value, expire_at));
            Value::Hash(ordered)
        }
        Value::Stream(stream) => {
            let mut ordered = Stream::default();
            for entry in stream.entries() {
                ordered.push(entry.id(), entry.fields().flat_map(|(name, value)| [name, value]));
            }
            (ordered.last_id, ordered.max_deleted_id) = (stream.last_id, stream.max_deleted_id);
            ordered.entries_added = stream.entries_added;
            ordered.groups = by_name(stream.groups);
            Value::Stream(ordered.into())
        }
        other => other,
    }
}

/// Leaves out when consumers were active, which old versions of the format cannot say.
pub fn without_active_times(mut value: Value) -> Value {
    if let Value::Stream(stream) = &mut value {
        let consumers = stream.groups.iter_mut().flat_map(|group| &mut group.consumers);
        consumers.for_each(|consumer| consumer.active_at = None);
    }
    value
}

/// [`in_order`], and of each time only that there is one: servers that were asked one after the other have others.
pub fn without_times(value: Value) -> Value {
    match without_active_times(in_order(value)) {
        Value::Hash(hash) => {
            let mut timeless = Hash::default();
            hash.iter().for_each(|(field, value, expire_at)| timeless.push(field, value, expire_at.map(|_| 0)));
            Value::Hash(timeless)
        }
        Value::Stream(mut stream) => {
            for group in &mut stream.groups {
                group.consumers.iter_mut().for_each(|consumer| consumer.seen_at = 0);
                group.pending.iter_mut().for_each(|pending| pending.delivered_at = 0);
            }
            Value::Stream(stream)
        }
        other => other,
    }
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<_> = all.collect();
    all.sort();
    all
}

fn by_name(mut groups: Vec<StreamGroup>) -> Vec<StreamGroup> {
    groups.sort_by(|left, right| left.name.cmp(&right.name));
    for group in &mut groups {
        let names: Vec<_> = group.consumers.iter().map(|consumer| consumer.name.clone()).collect();
        group.consumers.sort_by(|left, right| left.name.cmp(&right.name));
        for pending in &mut group.pending {
            let place = group.consumers.iter().position(|consumer| consumer.name == names[pending.consumer]);
            pending.consumer = place.expect("a consumer of the group");
        }
    }
    groups
}
