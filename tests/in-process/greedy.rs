//! Clients that ask for much and read late: pipelines written whole before the first reply is read, and half-closed
//! connections.

use crate::harness::request;
use crate::reply::Reply;
use crate::served::Served;

const VALUE_BYTES: usize = 1_000;

/// GETs of keys as long as their values: what they ask for is as much as they are.
fn gets(count: usize) -> (String, Vec<u8>) {
    let key = "k".repeat(VALUE_BYTES);
    let bytes = request(&[b"GET", key.as_bytes()]).repeat(count);
    (key, bytes)
}

/// A client that writes its whole pipeline first, as many libraries do, is answered to the end: neither side waits for
/// the other for ever. The pipeline is far longer than what sockets and unsent replies hold.
#[test]
fn a_pipeline_written_whole_before_the_first_read_is_answered() {
    const REQUESTS: usize = 30_000;
    let server = Served::start(&["--workers", "1", "--client-output-buffer-pause", "64kb"]);
    let (mut client, mut other) = (server.connect(), server.connect());
    let (key, bytes) = gets(REQUESTS);
    let value = "v".repeat(VALUE_BYTES);
    client.run(&["SET", &key, &value]);
    client.send_bytes(&bytes);
    assert_eq!(other.run(&["PING"]), Reply::Simple("PONG".into()));
    for number in 0..REQUESTS {
        assert_eq!(client.reply(), Some(Reply::Bulk(Some(value.clone()))), "reply {number}");
    }
    assert_eq!(client.run(&["PING"]), Reply::Simple("PONG".into()));
}

/// The same after a reply that comes in pieces.
#[test]
fn a_pipeline_behind_a_long_reply_is_answered() {
    const REQUESTS: usize = 20_000;
    const MEMBERS: usize = 20_000;
    let server = Served::start(&["--workers", "1", "--client-output-buffer-pause", "64kb"]);
    let mut client = server.connect();
    let (key, bytes) = gets(REQUESTS);
    client.run(&["SET", &key, "v"]);
    let pad = "m".repeat(VALUE_BYTES);
    for number in 0..MEMBERS {
        client.send(&[&["SADD", "s", &format!("{number}{pad}")]]);
    }
    (0..MEMBERS).for_each(|_| assert_eq!(client.reply(), Some(Reply::Int(1))));
    client.send(&[&["SMEMBERS", "s"]]);
    client.send_bytes(&bytes);
    match client.reply() {
        Some(Reply::List(members)) => assert_eq!(members.len(), MEMBERS),
        other => panic!("{other:?}"),
    }
    (0..REQUESTS).for_each(|_| assert_eq!(client.reply(), Some(Reply::Bulk(Some("v".into())))));
}

/// Where the requests are more than the server may hold, the client is closed when it has read nothing for the seconds
/// of its soft limit, and not before.
#[test]
fn a_client_that_never_reads_is_closed_after_the_soft_limit() {
    let limits = ["--client-output-buffer-pause", "64kb", "--client-query-buffer-limit", "1mb"];
    let server = Served::start(&[&["--workers", "1"][..], &limits].concat());
    let (mut client, mut other) = (server.connect(), server.connect());
    let id = client.run(&["CLIENT", "ID"]).int().to_string();
    let (key, bytes) = gets(40_000);
    client.run(&["SET", &key, &"v".repeat(VALUE_BYTES)]);
    assert!(client.send_what_fits(&bytes) < bytes.len(), "the server receives without a limit");
    let is_there = |other: &mut crate::served::Client| !other.run(&["CLIENT", "LIST", "ID", &id]).text().is_empty();
    // Longer than the time between two looks, which are what begins to count the seconds.
    for _ in 0..59 {
        server.clock.advance_ms(1_000);
        assert!(is_there(&mut other), "the client is closed too early");
    }
    // Looks follow the clock by turns of the worker, each request is at least one.
    for _ in 0..10_000 {
        server.clock.advance_ms(1_000);
        if !is_there(&mut other) {
            let info = other.run(&["INFO", "stats"]);
            assert!(info.text().contains("client_output_buffer_limit_disconnections:1\r\n"), "{info:?}");
            return;
        }
    }
    panic!("the client stays for ever");
}

/// A client that has sent all and says so is answered whole, and then closed.
#[test]
fn a_half_closed_connection_gets_all_its_replies() {
    const REQUESTS: usize = 20;
    let server = Served::start(&["--workers", "1", "--client-output-buffer-pause", "64kb"]);
    let mut client = server.connect();
    let value = "v".repeat(3_000_000);
    client.run(&["SET", "k", &value]);
    client.send(&[["GET", "k"].as_slice(); REQUESTS]);
    client.end();
    for number in 0..REQUESTS {
        assert_eq!(client.reply(), Some(Reply::Bulk(Some(value.clone()))), "reply {number}");
    }
    assert_eq!(client.reply(), None);
}

/// A value that is more than clients may hold is answered with an error that says so; the connection stays open.
#[test]
fn a_value_beyond_the_memory_of_clients_is_refused() {
    let server = Served::start(&["--workers", "1", "--maxmemory", "20mb"]);
    let mut client = server.connect();
    let value = "v".repeat(40 << 20);
    client.send(&[&["SET", "before", "1"], &["SET", "big", &value], &["GET", "before"]]);
    assert_eq!(client.reply(), Some(Reply::Simple("OK".into())));
    match client.reply() {
        Some(Reply::Error(text)) => assert!(text.starts_with("OOM ") && text.contains("41943040 bytes"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.reply(), Some(Reply::Bulk(Some("1".into()))));
    client.send(&[&["MULTI"], &["SET", "big", &value], &["EXEC"]]);
    assert_eq!(client.reply(), Some(Reply::Simple("OK".into())));
    assert!(matches!(client.reply(), Some(Reply::Error(text)) if text.starts_with("OOM ")));
    assert!(matches!(client.reply(), Some(Reply::Error(text)) if text.starts_with("EXECABORT ")));
}
