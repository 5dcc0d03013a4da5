//! Values convert to collections and back unchanged, whatever their size; so do collections to values and back.

use base::Rng;
use base::hash::KeyHasher;
use rdb::{Dialect, Form, Hash, Stream, StreamConsumer, StreamGroup, StreamId, StreamPending, Value, Zset, stored};
use value::{Body, Encoding, Limits, Slot, Type};

/// The element-by-element form, to which no rule about packed values applies.
fn plain() -> Form {
    Form::of(2, Dialect::Redis).unwrap()
}

/// Stores the value and converts it back; returns its stored encoding too.
fn there_and_back(value: &Value, form: Form) -> (Encoding, Value) {
    let mut changes = Vec::new();
    let kind = stored::put_changes(value, form, &mut changes).unwrap();
    assert!(value::check_changes(kind, &changes));
    let (mut packed, limits, hasher) = (Vec::new(), Limits::default(), KeyHasher::new(&mut Rng::new(1)));
    let mut slot =
        Slot { body: Body::Packed((&mut packed).into()), encoding: Encoding::PACKED, limits: &limits, hasher: &hasher };
    assert!(value::apply(kind, &mut slot, &changes).is_any());
    (slot.encoding, stored::of_collection(kind, slot.encoding, slot.stored()).unwrap())
}

/// The value with sets, sorted sets and hashes sorted.
fn sorted(value: Value) -> Value {
    match value {
        Value::Set(members) => {
            let mut all: Vec<_> = members.iter().map(<[u8]>::to_vec).collect();
            all.sort();
            Value::Set(all.into_iter().collect())
        }
        Value::Zset(zset) => {
            let mut all: Vec<_> = zset.iter().map(|(member, score)| (member.to_vec(), score)).collect();
            all.sort_by(|left, right| left.0.cmp(&right.0));
            let mut zset = Zset::default();
            all.iter().for_each(|(member, score)| zset.push(member, *score));
            Value::Zset(zset)
        }
        Value::Hash(hash) => {
            let mut all: Vec<_> = hash.iter().map(|(field, value, at)| (field.to_vec(), value.to_vec(), at)).collect();
            all.sort();
            let mut hash = Hash::default();
            all.iter().for_each(|(field, value, at)| hash.push(field, value, *at));
            Value::Hash(hash)
        }
        other => other,
    }
}

fn stream(entries: u64) -> Stream {
    let mut stream = Stream::default();
    for ms in 1..=entries {
        match ms % 3 {
            0 => stream.push(StreamId { ms, seq: 0 }, ["name", "value", "other", ""]),
            _ => stream.push(StreamId { ms, seq: 7 }, ["name", "value"]),
        }
    }
    stream.last_id = StreamId { ms: 5000, seq: 1 };
    stream.max_deleted_id = StreamId { ms: 4000, seq: 1 };
    stream.entries_added = entries + 10;
    let consumer = |name: &[u8], active_at| StreamConsumer { name: name.to_vec(), seen_at: 17, active_at };
    stream.groups = vec![
        StreamGroup { name: b"first".to_vec(), ..Default::default() },
        StreamGroup {
            name: b"second".to_vec(),
            last_id: StreamId { ms: 3, seq: 0 },
            entries_read: Some(3),
            consumers: vec![consumer(b"a", Some(16)), consumer(b"b", None), consumer(b"idle", None)],
            pending: (1..=entries)
                .map(|ms| StreamPending {
                    id: StreamId { ms, seq: 7 },
                    delivered_at: 100 + ms as i64,
                    deliveries: ms,
                    consumer: usize::from(ms % 4 == 0),
                })
                .collect(),
        },
    ];
    stream
}

#[test]
fn values_come_back_the_same() {
    for count in [1u64, 3, 100, 3000] {
        let name = |at: u64| format!("element {at}");
        let mut zset = Zset::default();
        let mut hash = Hash::default();
        let mut timed = Hash::default();
        for at in 0..count {
            zset.push(name(at).as_bytes(), [0.5, f64::INFINITY, -3.0][at as usize % 3] * (at + 1) as f64);
            hash.push(name(at).as_bytes(), b"", None);
            timed.push(name(at).as_bytes(), b"v", (at % 2 == 0).then_some(4_102_444_800_000 + at as i64));
        }
        let values = [
            Value::List((0..count).map(name).collect()),
            Value::Set((0..count).map(name).collect()),
            Value::Set((0..count).map(|at| at.to_string()).collect()),
            Value::Zset(zset),
            Value::Hash(hash),
            Value::Hash(timed),
            Value::Stream(stream(count).into()),
        ];
        for value in values {
            let (encoding, found) = there_and_back(&value, plain());
            assert_eq!(
                encoding == Encoding::BIG,
                count == 3000 || matches!(value, Value::Stream(_)),
                "{count} {value:?}"
            );
            assert_eq!(sorted(found), sorted(value));
        }
    }
    let empty = Value::Stream(stream(0).into());
    assert_eq!(there_and_back(&empty, plain()).1, empty);
}

/// OBJECT ENCODING must return `listpack` or `intset` where it did before.
#[test]
fn packed_integers_keep_their_form() {
    let value = Value::Set(["1", "2"].into_iter().collect());
    assert_eq!(there_and_back(&value, plain()).0, value::set::INTEGERS);
    assert_eq!(there_and_back(&value, Form::of(20, Dialect::Redis).unwrap()).0, value::set::STRINGS);
}

#[test]
fn what_is_no_collection_has_no_changes() {
    let mut changes = Vec::new();
    for value in [Value::String(b"a".to_vec()), Value::List(rdb::Strings::default()), Value::Hash(Hash::default())] {
        assert_eq!(stored::put_changes(&value, plain(), &mut changes), None);
    }
    assert!(changes.is_empty());
    assert_eq!(
        stored::put_changes(&Value::Stream(Stream::default().into()), plain(), &mut changes),
        Some(Type::Stream)
    );
}
