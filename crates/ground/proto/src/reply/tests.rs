//! What the writer writes, byte for byte, and that the parser reads it back, in whatever pieces it arrives.

use super::*;
use crate::request::ProtocolError;
use proptest::prelude::*;
use std::sync::Arc;

fn written(protocol: Protocol, write: impl FnOnce(&mut ReplyBuffer)) -> Vec<u8> {
    let mut reply = ReplyBuffer::new(protocol);
    write(&mut reply);
    reply.io_slices().flat_map(|slice| slice.to_vec()).collect()
}

fn check(write: impl Fn(&mut ReplyBuffer), resp2: &str, resp3: &str) {
    for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
        let bytes = written(protocol, &write);
        assert_eq!(bytes.escape_ascii().to_string(), expected.as_bytes().escape_ascii().to_string());
    }
}

/// Against what Valkey 9.1 sends for `DEBUG PROTOCOL`, and for commands with such replies.
#[test]
fn each_kind_of_reply_has_its_bytes_in_both_protocols() {
    check(|r| r.ok(), "+OK\r\n", "+OK\r\n");
    check(|r| r.simple("QUEUED"), "+QUEUED\r\n", "+QUEUED\r\n");
    check(|r| r.bulk(b"Hello World"), "$11\r\nHello World\r\n", "$11\r\nHello World\r\n");
    check(|r| r.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n");
    check(|r| r.bulk_integer(-12), "$3\r\n-12\r\n", "$3\r\n-12\r\n");
    check(|r| r.integer(12345), ":12345\r\n", ":12345\r\n");
    check(|r| r.double(3.25), "$4\r\n3.25\r\n", ",3.25\r\n");
    check(|r| r.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    check(|r| r.null(), "$-1\r\n", "_\r\n");
    check(|r| r.null_array(), "*-1\r\n", "_\r\n");
    check(|r| r.array(3), "*3\r\n", "*3\r\n");
    check(|r| r.set(3), "*3\r\n", "~3\r\n");
    check(|r| r.map(3), "*6\r\n", "%3\r\n");
    check(|r| r.push(2), "*2\r\n", ">2\r\n");
    check(|r| r.boolean(true), ":1\r\n", "#t\r\n");
    check(|r| r.boolean(false), ":0\r\n", "#f\r\n");
    let (big, resp2) = ("1234567999999999999999999999999999999", "$37\r\n1234567999999999999999999999999999999\r\n");
    check(|r| r.big_number(big), resp2, "(1234567999999999999999999999999999999\r\n");
    let text = "This is a verbatim\nstring";
    let (resp2, resp3) = (format!("$25\r\n{text}\r\n"), format!("=29\r\ntxt:{text}\r\n"));
    check(|r| r.verbatim("txt", text.as_bytes()), &resp2, &resp3);
}

/// A string that is appended from elsewhere is whole, or nothing of it is there.
#[test]
fn a_string_from_elsewhere_is_whole_or_absent() {
    let mut reply = ReplyBuffer::new(Protocol::Resp2);
    reply.ok();
    let put = |text: &'static [u8], is_read| {
        move |bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(text);
            is_read
        }
    };
    assert!(!reply.bulk_with(5, put(b"four", true)), "too short");
    assert!(!reply.bulk_with(5, put(b"sixsix", true)), "too long");
    assert!(!reply.bulk_with(5, put(b"five!", false)), "it cannot be read");
    assert!(reply.bulk_with(5, put(b"five!", true)));
    assert_eq!(reply.as_contiguous(), Some(&b"+OK\r\n$5\r\nfive!\r\n"[..]));
}

#[test]
fn text_of_one_line_stays_one_line() {
    check(|r| r.error("ERR a\r\nb\r\n"), "-ERR a  b\r\n", "-ERR a  b\r\n");
    check(|r| r.error(b"ERR x\0y\r"), "-ERR x y\r\n", "-ERR x y\r\n");
    check(|r| r.simple("a\r\nb"), "+a  b\r\n", "+a  b\r\n");
    check(|r| r.big_number("12\r\n3"), "$5\r\n12\r\n3\r\n", "(12  3\r\n");
    check(|r| r.error(""), "-\r\n", "-\r\n");
    let error = ProtocolError::ExpectedBulk(b'\r');
    let text = "-ERR Protocol error: expected '$', got ' '\r\n";
    check(|r| r.protocol_error(&error), text, text);
    let error = ProtocolError::ExpectedBulk(0xff);
    assert_eq!(
        written(Protocol::Resp2, |r| r.protocol_error(&error)),
        b"-ERR Protocol error: expected '$', got '\xff'\r\n"
    );
}

/// Around each change in the number of digits, for all that writes numbers.
#[test]
fn numbers_of_all_lengths_are_written() {
    let powers = (0..19).map(|power| 10i64.pow(power));
    let mut numbers: Vec<i64> = powers.flat_map(|power| [power - 1, power, power + 1, -power, 1 - power]).collect();
    numbers.extend([i64::MAX, i64::MIN]);
    for number in numbers {
        assert_eq!(written(Protocol::Resp3, |r| r.integer(number)), format!(":{number}\r\n").as_bytes());
        let text = number.to_string();
        let bulk = format!("${}\r\n{text}\r\n", text.len());
        assert_eq!(written(Protocol::Resp3, |r| r.bulk_integer(number)), bulk.as_bytes());
        if let Ok(count) = usize::try_from(number) {
            assert_eq!(written(Protocol::Resp3, |r| r.array(count)), format!("*{count}\r\n").as_bytes());
        }
    }
}

/// An aggregate ended late has the bytes of one whose size was known, whatever is inside and before it.
#[test]
fn aggregates_of_unknown_size_are_closed_in_place() {
    let large = Arc::new(vec![b'v'; SHARED_BYTES_MIN]);
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        for count in [0usize, 1, 9, 10, 99, 100, 1000] {
            let elements = |r: &mut ReplyBuffer| {
                for number in 0..count {
                    if number % 7 == 3 { r.bulk_shared(large.clone()) } else { r.integer(number as i64) }
                }
            };
            let late = written(protocol, |r| {
                r.bulk_shared(large.clone());
                let outer = r.begin_array();
                let map = r.begin_map();
                elements(r);
                elements(r);
                r.end(map, count);
                let set = r.begin_set();
                elements(r);
                r.end(set, count);
                r.end(outer, 2);
                r.ok();
            });
            let known = written(protocol, |r| {
                r.bulk_shared(large.clone());
                r.array(2);
                r.map(count);
                elements(r);
                elements(r);
                r.set(count);
                elements(r);
                r.ok();
            });
            assert!(late == known, "{count} elements");
        }
    }
}

#[test]
fn only_large_values_are_shared() {
    for (len, shared) in [(0, false), (SHARED_BYTES_MIN - 1, false), (SHARED_BYTES_MIN, true)] {
        let value = Arc::new(vec![b'v'; len]);
        let mut reply = ReplyBuffer::default();
        reply.bulk_shared(value.clone());
        assert_eq!(Arc::strong_count(&value), 1 + usize::from(shared));
        assert_eq!(reply.as_contiguous().is_none(), shared);
        reply.advance(reply.len());
        assert_eq!(Arc::strong_count(&value), 1);
    }
}

#[test]
fn values_are_read_as_written() {
    let bulk = |text: &str| Value::Bulk(text.into());
    for (bytes, value) in [
        ("+OK\r\n", Value::Simple("OK".into())),
        ("-ERR no\r\n", Value::Error("ERR no".into())),
        ("!5\r\nERR\rn\r\n", Value::Error("ERR\rn".into())),
        (":-7\r\n", Value::Integer(-7)),
        ("$1\r\n\n\r\n", bulk("\n")),
        ("$-1\r\n", Value::NullBulk),
        ("*-1\r\n", Value::NullArray),
        ("_\r\n", Value::Null),
        (",1e+21\r\n", Value::Double(1e21)),
        (",-inf\r\n", Value::Double(f64::NEG_INFINITY)),
        ("#t\r\n", Value::Boolean(true)),
        ("(-12\r\n", Value::BigNumber("-12".into())),
        ("=7\r\ntxt:a:b\r\n", Value::Verbatim { format: *b"txt", text: "a:b".into() }),
        ("*0\r\n", Value::Array(vec![])),
        ("*2\r\n*0\r\n%0\r\n", Value::Array(vec![Value::Array(vec![]), Value::Map(vec![])])),
        ("%1\r\n$1\r\na\r\n~1\r\n:1\r\n", Value::Map(vec![(bulk("a"), Value::Set(vec![Value::Integer(1)]))])),
        (">2\r\n+a\r\n:1\r\n", Value::Push(vec![Value::Simple("a".into()), Value::Integer(1)])),
        (
            "*2\r\n|1\r\n+k\r\n*1\r\n:90\r\n$1\r\nx\r\n:1\r\n",
            Value::Array(vec![
                Value::Attributed {
                    attributes: vec![(Value::Simple("k".into()), Value::Array(vec![Value::Integer(90)]))],
                    value: Box::new(bulk("x")),
                },
                Value::Integer(1),
            ]),
        ),
    ] {
        assert_eq!(read_everywhere(bytes.as_bytes()), Ok(vec![value]), "{bytes:?}");
        let followed = format!("{bytes}+next\r\n");
        assert_eq!(skip_reply(followed.as_bytes()), Ok(Some(bytes.len())), "{bytes:?}");
    }
}

#[test]
fn what_is_no_reply_is_an_error() {
    let deep = "*1\r\n".repeat(DEPTH_MAX + 1);
    for (bytes, error) in [
        ("x", ReplyError::Kind(b'x')),
        ("\r\n", ReplyError::Kind(b'\r')),
        (":\r\n", ReplyError::Text(b':')),
        (":1a\r\n", ReplyError::Text(b':')),
        (":1\rx", ReplyError::LineEnd),
        ("$-2\r\n", ReplyError::Text(b'$')),
        ("$?\r\n", ReplyError::Text(b'$')),
        ("$1\r\nab\r\n", ReplyError::LineEnd),
        ("*x\r\n", ReplyError::Text(b'*')),
        ("%-1\r\n", ReplyError::Text(b'%')),
        ("%4294967296\r\n", ReplyError::Text(b'%')),
        ("_x\r\n", ReplyError::Text(b'_')),
        ("#x\r\n", ReplyError::Text(b'#')),
        (",\r\n", ReplyError::Text(b',')),
        (",infinity\r\n", ReplyError::Text(b',')),
        ("(1x\r\n", ReplyError::Text(b'(')),
        ("=3\r\ntxt\r\n", ReplyError::Text(b'=')),
        (&deep, ReplyError::TooBig),
    ] {
        assert_eq!(read_everywhere(bytes.as_bytes()), Err(error), "{bytes:?}");
    }
}

/// All replies in `bytes`, after checking that it does not matter how they are cut.
fn read_everywhere(bytes: &[u8]) -> Result<Vec<Value>, ReplyError> {
    let whole = read([bytes]);
    for at in 0..bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(read([head, tail]), whole);
    }
    assert_eq!(read(bytes.chunks(1)), whole);
    whole
}

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Value>, ReplyError> {
    let mut parser = Parser::new();
    let mut values = Vec::new();
    for chunk in chunks {
        parser.feed(chunk);
        while let Some(value) = parser.next_value()? {
            values.push(value);
        }
    }
    assert!(parser.is_idle());
    Ok(values)
}

/// Any reply, as calls of the writer and as what a client should see.
fn reply() -> impl Strategy<Value = Value> {
    let text = || prop::collection::vec(any::<u8>(), 0..40);
    let line = || "[a-zA-Z][ -~]{0,30}".prop_map(String::into_bytes);
    let leaf = prop_oneof![
        line().prop_map(Value::Simple),
        line().prop_map(Value::Error),
        any::<i64>().prop_map(Value::Integer),
        (-20i64..200).prop_map(Value::Integer),
        text().prop_map(Value::Bulk),
        (16_000usize..17_000).prop_map(|len| Value::Bulk(vec![b'v'; len])),
        Just(Value::Null),
        prop::num::f64::NORMAL.prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        "-?[1-9][0-9]{0,30}".prop_map(|digits| Value::BigNumber(digits.into_bytes())),
        text().prop_map(|text| Value::Verbatim { format: *b"txt", text }),
    ];
    leaf.prop_recursive(4, 40, 12, |element| {
        prop_oneof![
            prop::collection::vec(element.clone(), 0..12).prop_map(Value::Array),
            prop::collection::vec(element.clone(), 0..12).prop_map(Value::Set),
            prop::collection::vec(element.clone(), 0..4).prop_map(Value::Push),
            prop::collection::vec((element.clone(), element), 0..6).prop_map(Value::Map),
        ]
    })
}

fn write(reply: &mut ReplyBuffer, value: &Value) {
    match value {
        Value::Simple(text) => reply.simple(text),
        Value::Error(text) => reply.error(text),
        Value::Integer(number) => reply.integer(*number),
        Value::Bulk(text) if text.len() > 10_000 => reply.bulk_shared(Arc::new(text.clone())),
        Value::Bulk(text) => reply.bulk(text),
        Value::Null => reply.null(),
        Value::Double(number) => reply.double(*number),
        Value::Boolean(value) => reply.boolean(*value),
        Value::BigNumber(digits) => reply.big_number(digits),
        Value::Verbatim { text, .. } => reply.verbatim("txt", text),
        Value::Array(elements) => {
            let open = reply.begin_array();
            elements.iter().for_each(|element| write(reply, element));
            reply.end(open, elements.len());
        }
        Value::Set(elements) => {
            reply.set(elements.len());
            elements.iter().for_each(|element| write(reply, element));
        }
        Value::Push(elements) => {
            reply.push(elements.len());
            elements.iter().for_each(|element| write(reply, element));
        }
        Value::Map(pairs) => {
            let open = reply.begin_map();
            for (key, value) in pairs {
                write(reply, key);
                write(reply, value);
            }
            reply.end(open, pairs.len());
        }
        Value::NullBulk | Value::NullArray | Value::Attributed { .. } => unreachable!("not written by RESP3 commands"),
    }
}

/// What a client of RESP2 sees of a reply.
fn in_resp2(value: &Value) -> Value {
    let all = |elements: &[Value]| Value::Array(elements.iter().map(in_resp2).collect());
    match value {
        Value::Null => Value::NullBulk,
        Value::Double(number) => Value::Bulk(base::double::DoubleText::new(*number).as_bytes().to_vec()),
        Value::Boolean(value) => Value::Integer(i64::from(*value)),
        Value::BigNumber(text) | Value::Verbatim { text, .. } => Value::Bulk(text.clone()),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => all(elements),
        Value::Map(pairs) => {
            Value::Array(pairs.iter().flat_map(|(key, value)| [in_resp2(key), in_resp2(value)]).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    /// Any sequence of replies is read back as exactly these replies, in both protocols and in any pieces.
    #[test]
    fn written_replies_read_back(
        replies in prop::collection::vec(reply(), 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let bytes = written(protocol, |buffer| replies.iter().for_each(|reply| write(buffer, reply)));
            let expected: Vec<Value> = match protocol {
                Protocol::Resp2 => replies.iter().map(in_resp2).collect(),
                Protocol::Resp3 => replies.clone(),
            };
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let chunks = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(read(chunks), Ok(expected));

            let mut rest = &bytes[..];
            for _ in &replies {
                let len = skip_reply(rest).unwrap().unwrap();
                for end in [0, len / 2, len - 1] {
                    prop_assert_eq!(skip_reply(&rest[..end]), Ok(None));
                }
                rest = &rest[len..];
            }
            prop_assert!(rest.is_empty());
        }
    }

    /// Whatever an error was made of, it is one reply: nothing that follows is read as something else.
    #[test]
    fn an_error_is_one_reply(text in prop::collection::vec(any::<u8>(), 0..60)) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let bytes = written(protocol, |reply| {
                reply.error(&text);
                reply.simple(&text);
                reply.big_number(&text);
                reply.integer(1);
            });
            let mut rest = &bytes[..];
            for _ in 0..3 {
                rest = &rest[skip_reply(rest).unwrap().unwrap()..];
            }
            prop_assert_eq!(rest, b":1\r\n");
        }
    }
}
