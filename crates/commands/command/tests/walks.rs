//! Walks over many keys.

#[expect(dead_code, reason = "transcripts and some settings are for the other tests")]
mod support;

use proto::Protocol;
use proto::reply::{Parser, Value};
use std::collections::{BTreeMap, BTreeSet};
use support::{Connection, Fetching};

/// The cursor and the keys of a SCAN.
fn scan(connection: &mut Connection, cursor: &str, options: &[&str]) -> (String, Vec<String>) {
    let words: Vec<&str> = ["SCAN", cursor].into_iter().chain(options.iter().copied()).collect();
    let mut parser = Parser::new();
    parser.feed(&connection.run(&words));
    let text = |value: &Value| String::from_utf8(value.as_bytes().expect("a string").to_vec()).expect("text");
    match parser.next_value() {
        Ok(Some(Value::Array(parts))) => match parts.as_slice() {
            [cursor, Value::Array(keys)] => (text(cursor), keys.iter().map(text).collect()),
            other => panic!("not a cursor and keys: {other:?}"),
        },
        other => panic!("not an array: {other:?}"),
    }
}

/// Every key that is there from beginning to end is shown, whatever COUNT is, while others come and go; COUNT is about
/// how many a call shows.
#[test]
fn scan_shows_all_that_stays() {
    for (count, calls_most) in [(1, 1000), (10, 60), (100, 12), (5000, 1)] {
        let mut connection = Connection::new(Protocol::Resp2, Fetching::Never);
        for number in 0..500 {
            connection.run(&["SET", &format!("stays:{number}"), "v"]);
        }
        let (mut cursor, mut seen, mut calls) = ("0".to_owned(), BTreeSet::new(), 0);
        loop {
            connection.run(&["SET", &format!("comes:{calls}"), "v"]);
            connection.run(&["DEL", &format!("comes:{}", calls / 2)]);
            let (next, keys) = scan(&mut connection, &cursor, &["COUNT", &count.to_string(), "MATCH", "stays:*"]);
            seen.extend(keys);
            calls += 1;
            cursor = next;
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(seen.len(), 500, "COUNT {count}");
        assert!(calls <= calls_most, "COUNT {count} took {calls} calls");
    }
}

/// RANDOMKEY draws every key, and passes by many expired ones.
#[test]
fn randomkey_draws_live_keys() {
    let mut connection = Connection::new(Protocol::Resp2, Fetching::Never);
    for number in 0..1000 {
        connection.run(&["SET", &format!("expires:{number}"), "v", "PX", "1000"]);
    }
    for number in 0..3 {
        connection.run(&["SET", &format!("stays:{number}"), "v"]);
    }
    let mut drawn = BTreeMap::new();
    for _ in 0..300 {
        *drawn.entry(connection.run(&["RANDOMKEY"])).or_insert(0) += 1;
    }
    assert!(drawn.len() > 50, "random keys are many different ones");
    connection.advance_ms(2000);
    for _ in 0..20 {
        let key = String::from_utf8(connection.run(&["RANDOMKEY"])).expect("text");
        assert!(key.contains("stays:"), "{key} has expired");
    }
    connection.run(&["DEL", "stays:0", "stays:1", "stays:2"]);
    assert_eq!(connection.run(&["RANDOMKEY"]), b"$-1\r\n");
}
