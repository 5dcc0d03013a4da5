//! Requests whose rows are not in memory: how many rounds of reads they take, and in which order they are answered.

use crate::harness::{TestServer, memory, request, ticketed};

fn server() -> (TestServer, usize) {
    let mut server = TestServer::new(ticketed);
    let client = server.connect();
    (server, client)
}

/// Runs a request and gives its reply, and the rounds of reads it took.
fn rounds(server: &mut TestServer, client: usize, words: &[&str]) -> (String, usize) {
    let before = server.rounds;
    let reply = server.run(client, words);
    (reply, server.rounds - before)
}

#[test]
fn a_command_reads_the_rows_of_all_its_keys_in_one_round() {
    let (mut server, client) = server();
    for key in ["a", "b", "c", "d"] {
        assert_eq!(rounds(&mut server, client, &["SET", key, key]), ("+OK\r\n".into(), 0));
    }
    assert_eq!(rounds(&mut server, client, &["EXISTS", "a", "b", "x", "d"]), (":3\r\n".into(), 1));
    let values = "*4\r\n$1\r\na\r\n$1\r\nb\r\n$-1\r\n$1\r\nd\r\n";
    assert_eq!(rounds(&mut server, client, &["MGET", "a", "b", "x", "d"]), (values.into(), 1));
    assert_eq!(rounds(&mut server, client, &["TOUCH", "a", "b", "c", "d"]), (":4\r\n".into(), 1));
    assert_eq!(rounds(&mut server, client, &["MSETNX", "x", "1", "y", "1", "z", "1"]), (":1\r\n".into(), 1));
    assert_eq!(rounds(&mut server, client, &["DEL", "a", "b", "c", "d"]), (":4\r\n".into(), 1));
    assert_eq!(rounds(&mut server, client, &["SADD", "s", "1", "2"]), (":2\r\n".into(), 1));
    assert_eq!(rounds(&mut server, client, &["SINTERCARD", "3", "s", "t", "u"]), (":0\r\n".into(), 1));
    assert_eq!(rounds(&mut server, client, &["GET", "x"]), ("$1\r\n1\r\n".into(), 1));
}

#[test]
fn a_pipeline_reads_ahead() {
    let (mut server, client) = server();
    let mut pipeline = Vec::new();
    for number in 0..40 {
        server.run(client, &["SET", &format!("key:{number}"), &number.to_string()]);
        pipeline.extend(request(&[b"GET", format!("key:{number}").as_bytes()]));
    }
    server.rounds = 0;
    let replies = String::from_utf8(server.send(client, &pipeline)).expect("digits");
    let expected: String =
        (0..40).map(|number: u32| format!("${}\r\n{number}\r\n", number.to_string().len())).collect();
    assert_eq!(replies, expected);
    // A batch has 32 requests, so the last eight are read ahead when they have been parsed.
    assert!(server.rounds <= 2, "{} rounds", server.rounds);
}

#[test]
fn requests_that_want_one_row_share_its_read_and_run_in_their_order() {
    let (mut server, first) = server();
    let second = server.connect();
    server.run(first, &["SET", "key", "0"]);
    server.feed(first, &request(&[b"INCR", b"key"]));
    server.feed(second, &request(&[b"INCR", b"key"]));
    assert_eq!(server.io.len(), 1, "one read serves both");
    server.read_rows();
    assert_eq!((server.replies(first), server.replies(second)), (b":1\r\n".to_vec(), b":2\r\n".to_vec()));
    assert_eq!(rounds(&mut server, first, &["GET", "key"]), ("$1\r\n2\r\n".into(), 1), "the row has left memory");
}

#[test]
fn a_write_while_a_row_is_read_is_what_the_reader_sees() {
    let (mut server, reader) = server();
    let writer = server.connect();
    server.run(reader, &["SET", "key", "old"]);
    server.feed(reader, &request(&[b"GET", b"key"]));
    assert_eq!(server.io.len(), 1);
    assert_eq!(server.written(reader), b"");
    server.feed(writer, &request(&[b"SET", b"key", b"new"]));
    assert_eq!(server.written(writer), b"+OK\r\n", "a write that reads nothing waits for nothing");
    // The ticket is void, so the read that ends now does not count, and another one follows.
    assert_eq!(server.send(reader, b""), b"$3\r\nnew\r\n");
    server.assert_replica_agrees();
}

#[test]
fn a_client_that_leaves_while_its_rows_are_read_keeps_none_in_memory() {
    let (mut server, client) = server();
    server.run(client, &["SET", "key", "value"]);
    server.feed(client, &request(&[b"GET", b"key"]));
    server.executor.close(client);
    server.read_rows();
    let other = server.connect();
    assert_eq!(rounds(&mut server, other, &["GET", "key"]), ("$5\r\nvalue\r\n".into(), 1));
}

#[test]
fn a_memory_database_reads_no_rows() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    assert_eq!(rounds(&mut server, client, &["MGET", "a", "b"]), ("*2\r\n$-1\r\n$-1\r\n".into(), 0));
}
