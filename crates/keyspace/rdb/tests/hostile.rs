//! Input with false lengths, counts, orders and owners. Every input gets an answer, the error names the offset, and
//! everything that is returned is well-formed.

use base::checksum::Crc64Rdb;
use proptest::prelude::*;
use rdb::{RdbError, Reader, Target, Value, dump};

/// A payload with a valid checksum.
fn payload(body: &[u8], version: u16) -> Vec<u8> {
    let mut payload = [body, &version.to_le_bytes()].concat();
    let checksum = Crc64Rdb::new().update(&payload).finish();
    payload.extend(checksum.to_le_bytes());
    payload
}

/// The error of a payload of version 12.
fn error(body: &[u8]) -> String {
    dump::read(&payload(body, 12)).unwrap_err().to_string()
}

/// A string that is a packed value.
fn packed(kind: u8, packed: &[u8]) -> Vec<u8> {
    [&[kind, packed.len() as u8], packed].concat()
}

#[test]
fn lengths_that_lie_allocate_nothing() {
    let huge = [&b"REDIS0011\x00\x01k\x81"[..], &u64::MAX.to_be_bytes(), b"abc"].concat();
    for len in [None, Some(huge.len() as u64)] {
        let error = Reader::new(&*huge, len).unwrap().next_item().unwrap_err();
        assert!(matches!(error, RdbError::Truncated { expected: "all bytes of a string", .. }), "{error}");
    }
    for kind in [1, 2, 3, 4, 5, 14, 15, 18, 22, 24] {
        let body = [&[kind, 0x81][..], &(1u64 << 60).to_be_bytes(), b"abc"].concat();
        let found = error(&body);
        assert!(found.contains("expected"), "type {kind}: {found}");
    }
    // Compressed: four bytes that claim to expand to 4 GiB.
    assert_eq!(
        error(b"\x00\xc3\x04\x80\xff\xff\xff\xff\xe0\xff\x00\x00"),
        "offset 1, in type 0 (string): expected a string as LZF, of the length before it"
    );
}

#[test]
fn errors_name_the_place() {
    for (body, expected) in [
        (&b"\x63"[..], "offset 0, in the space between values: expected a type"),
        (b"", "offset 0, in the space between values: expected a type, and the end was found"),
        (b"\x00\xc4", "offset 1, in type 0 (string): expected a string"),
        (b"\x00\x01ab", "offset 3, in type 0 (string): expected the end of the value"),
        (b"\x02\x02\x01a\x01a", "offset 1, in type 2 (set): expected distinct members"),
        (b"\x04\x02\x01a\x01b\x01a\x01c", "offset 1, in type 4 (hash): expected distinct fields"),
        (b"\x03\x01\x01a\xfd", "offset 1, in type 3 (zset, scores as text): expected scores that are numbers"),
        (b"\x03\x01\x01a\x021x", "offset 4, in type 3 (zset, scores as text): expected a score as text"),
        (b"\x12\x01\x03\x01a", "offset 2, in type 18 (list quicklist of listpacks): expected a plain or a packed node"),
        (b"\x06\x01", "offset 1: a value of type 6 (module of a pre-release of 4.0)"),
    ] {
        assert_eq!(error(body), expected);
    }
    let file = b"REDIS0011\xf3";
    let found = Reader::new(&file[..], None).unwrap().next_item().unwrap_err().to_string();
    assert_eq!(found, "offset 9: type or opcode 243 is not known in version 11");
    let file = b"REDIS0011\xfc\x01\0\0\0\0\0\0\0\xff";
    let found = Reader::new(&file[..], None).unwrap().next_item().unwrap_err().to_string();
    assert_eq!(found, "offset 18, in opcode 255: expected the value that expires or was used");
}

#[test]
fn flaws_of_packed_values_are_found() {
    for (kind, bytes, expected) in [
        (16, &b"\x08\0\0\0\x01\0\x01\xff"[..], "the length of the element before (byte 7 of the listpack)"),
        (16, b"\x09\0\0\0\x02\0\x01\x01\xff", "the number of its elements (byte 4 of the listpack)"),
        (16, b"\x09\0\0\0\x01\0\x01\x01\xff", "fields and values in turn"),
        (16, b"\x09\0\0\0\x01\0\xf8\x01\xff", "an element (byte 6 of the listpack)"),
        (20, b"\x0a\0\0\0\x01\0\x01\x01\xff\xff", "the end (byte 9 of the listpack)"),
        (20, b"\x06\0\0\0\x01\0\x01\x01\xff", "the length of the whole (byte 0 of the listpack)"),
        (20, b"\x0c\0\0\0\x01\0\xf0\xff\xff\xff\xff\xff", "a string (byte 11 of the listpack)"),
        (10, b"\x0d\0\0\0\x0a\0\0\0\x01\0\x07\xf2\xff", "the length of the element before (byte 10 of the ziplist)"),
        (10, b"\x0d\0\0\0\x0b\0\0\0\x01\0\0\xf2\xff", "the place of the last element (byte 4 of the ziplist)"),
        (10, b"\x0d\0\0\0\x0a\0\0\0\x01\0\0\xff\xff", "an element (byte 11 of the ziplist)"),
        (9, b"\x01\x01a\x01\x09b\xff", "unused bytes (byte 6 of the zipmap)"),
        (9, b"\x02\x01a\x01\0b\xff", "the number of its fields (byte 0 of the zipmap)"),
        (11, b"\x02\0\0\0\x02\0\0\0\x05\0\x05\0", "an integer above the one before (byte 10 of the intset)"),
        (11, b"\x03\0\0\0\x01\0\0\0\x05\0\x05", "a width of 2, 4 or 8 bytes (byte 0 of the intset)"),
        (11, b"\x02\0\0\0\xff\xff\xff\xff\x05\0", "an integer (byte 10 of the intset)"),
        (25, b"\0", "a time of expiration, and the end was found"),
    ] {
        let found = error(&packed(kind, bytes));
        assert!(found.ends_with(&format!("expected {expected}")), "type {kind}, {bytes:?}: {found}");
    }
}

/// Each is the stream of the golden file with one fault that neither checksum nor packing reveals.
#[test]
fn streams_that_contradict_themselves_are_refused() {
    let mut stream = rdb::Stream::default();
    stream.push(rdb::StreamId { ms: 1, seq: 1 }, ["name", "value"]);
    stream.entries_added = 1;
    let consumer = rdb::StreamConsumer { name: b"c".to_vec(), ..Default::default() };
    let pending = |seq, consumer| rdb::StreamPending {
        id: rdb::StreamId { ms: 1, seq },
        delivered_at: 1,
        deliveries: 1,
        consumer,
    };
    let group = |name: &[u8], pending: Vec<_>| rdb::StreamGroup {
        name: name.to_vec(),
        consumers: vec![consumer.clone()],
        pending,
        ..Default::default()
    };
    let read = |stream: &rdb::Stream| {
        let payload = dump::write(&Value::Stream(stream.clone().into()), Target::V11).unwrap();
        dump::read(&payload).map_err(|error| error.to_string())
    };
    stream.groups = vec![group(b"g", vec![pending(1, 0), pending(2, 0)])];
    assert_eq!(read(&stream).unwrap().1, Value::Stream(stream.clone().into()));

    let with = |change: &dyn Fn(&mut rdb::Stream)| {
        let mut stream = stream.clone();
        change(&mut stream);
        read(&stream).unwrap_err()
    };
    let found = with(&|stream| stream.groups = vec![group(b"g", vec![pending(2, 0), pending(1, 0)])]);
    assert!(found.ends_with("expected the id of a pending entry, above the one before"), "{found}");
    let found = with(&|stream| stream.groups = vec![group(b"g", vec![pending(1, 7)])]);
    assert!(found.ends_with("expected a consumer for every pending entry"), "{found}");
    let found = with(&|stream| stream.groups = vec![group(b"g", vec![]), group(b"g", vec![])]);
    assert!(found.ends_with("expected groups with distinct names"), "{found}");
    let found = with(&|stream| stream.last_id = rdb::StreamId { ms: 0, seq: 9 });
    assert!(found.ends_with("expected a last id that no entry is above"), "{found}");
    let found = with(&|stream| stream.push(rdb::StreamId { ms: 1, seq: 1 }, ["again", "same id"]));
    assert!(found.contains("expected an id above 0-0 and above the one before"), "{found}");

    let mut first = rdb::Stream::default();
    first.push(rdb::StreamId::default(), ["name", "value"]);
    let found = read(&first).unwrap_err();
    assert!(found.contains("expected an id above 0-0 and above the one before"), "{found}");
    let mut bare = rdb::Stream::default();
    bare.push(rdb::StreamId { ms: 1, seq: 1 }, [""; 0]);
    let found = read(&bare).unwrap_err();
    assert!(found.contains("expected a field at least"), "{found}");
}

/// 270 bytes that expand to a megabyte in all.
#[test]
fn what_is_compressed_expands_within_the_limit() {
    let strings: rdb::Strings = (0..40).map(|_| vec![b'x'; 26_000]).collect();
    let mut writer = rdb::Writer::new(Vec::new(), Target::V11).unwrap();
    writer.entry(0, b"k", None, &Value::List(strings)).unwrap();
    let file = writer.finish().unwrap();
    // After the magic, the database and the key; before the end and the checksum.
    let body = [&[1][..], &file[9 + 2 + 1 + 2..file.len() - 9]].concat();
    let payload = payload(&body, 11);
    assert!(dump::read_within(&payload, 40 * 26_000).is_ok());
    let error = dump::read_within(&payload, 40 * 26_000 - 1).unwrap_err();
    assert!(matches!(error, RdbError::TooLong { .. }), "{error}");
}

#[test]
fn payloads_tell_version_and_checksum_apart() {
    let good = payload(b"\x00\x01a", 11);
    assert_eq!(dump::read(&good).unwrap().1, Value::String(b"a".to_vec()));
    for version in [0, 13, 79, 81, 65535] {
        let found = dump::read(&payload(b"\x00\x01a", version)).unwrap_err();
        assert!(matches!(found, RdbError::Version { .. }), "{version}: {found}");
    }
    let mut bad = good.clone();
    bad[1] ^= 1;
    assert!(matches!(dump::read(&bad), Err(RdbError::Checksum { offset: 5, .. })));
    for len in 0..good.len() {
        assert!(dump::read(&good[..len]).is_err(), "cut to {len} bytes");
    }
}

/// Reads a payload; a well-formed value is unchanged after it is written and read again.
fn check(body: &[u8], version: u16) {
    let Ok((_, value)) = dump::read(&payload(body, version)) else { return };
    let Ok(written) = dump::write(&value, Target::Valkey9) else { return };
    assert_eq!(dump::read(&written).expect("what was written").1, value);
}

/// Bytes that resemble the format.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), 0u8..8, Just(0xff), Just(0x80), Just(0xc3)];
    prop::collection::vec(byte, 0..80)
}

proptest! {
    #[test]
    fn any_bytes_are_answered(kind in 0u8..=26, body in bytes(), version in prop_oneof![Just(12u16), Just(80)]) {
        check(&[&[kind], &*body].concat(), version);
        let mut string = vec![kind, 0x40 | (body.len() >> 8) as u8, body.len() as u8];
        string.extend(&body);
        check(&string, version);
    }

    #[test]
    fn any_listpack_is_answered(
        kind in prop_oneof![Just(16u8), Just(17), Just(20)],
        mut inner in bytes(),
        count in 0u16..5,
    ) {
        inner.push(0xff);
        let mut pack = ((inner.len() + 6) as u32).to_le_bytes().to_vec();
        pack.extend(count.to_le_bytes());
        pack.extend(inner);
        check(&packed(kind, &pack), 12);
    }
}
