//! Requests whose rows are not in memory: how many rounds of reads they take, and in which order they are answered.

use crate::harness::{SHARDS, TestServer, memory, request, ticketed};
use std::time::Duration;

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
fn messages_of_requests_that_waited_precede_later_replies() {
    let (mut server, client) = server();
    server.run(client, &["SET", "key", "v"]);
    server.run(client, &["HELLO", "3"]);
    server.run(client, &["SUBSCRIBE", "c"]);
    let pipeline = [request(&[b"GET", b"key"]), request(&[b"PUBLISH", b"c", b"m"]), request(&[b"PING"])].concat();
    let replies = String::from_utf8(server.send(client, &pipeline)).expect("texts");
    assert_eq!(replies, "$1\r\nv\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n+PONG\r\n");
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

#[test]
fn a_row_that_cannot_be_read_is_an_error_that_changes_nothing() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rows = server.back();
    assert_eq!(server.run(client, &["SET", "key", "1"]), "+OK\r\n");
    rows.flush_and_drop();
    rows.set_failing(true);
    let error = "-IOERR the row of key 'key' cannot be read: the test has reads fail; nothing was changed\r\n";
    assert_eq!(server.run(client, &["INCR", "key"]), error);
    assert_eq!(server.run(client, &["MULTI"]), "+OK\r\n");
    assert_eq!(server.run(client, &["INCR", "key"]), "+QUEUED\r\n");
    let reply = server.run(client, &["EXEC"]);
    assert!(reply.starts_with("-EXECABORT Transaction discarded because of: IOERR"), "{reply}");
    rows.set_failing(false);
    assert_eq!(server.run(client, &["INCR", "key"]), ":2\r\n");
    server.assert_replica_agrees();
}

#[test]
fn rows_at_hand_are_read_in_the_same_turn() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rows = server.back();
    server.run(client, &["MSET", "a", "1", "b", "2"]);
    rows.flush_and_drop();
    rows.set_cold(false);
    let reply = "*2\r\n$1\r\n1\r\n$1\r\n2\r\n";
    assert_eq!(rounds(&mut server, client, &["MGET", "a", "b"]), (reply.into(), 0), "no read waits for a device");
}

#[test]
fn a_push_reads_the_rows_of_those_it_serves_before_it_changes_anything() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let (waiting, pushing) = (server.connect_listed(), server.connect_listed());
    let mut rows = server.back();
    assert_eq!(server.run(waiting, &["BLMOVE", "from", "to", "LEFT", "LEFT", "0"]), "");
    server.run(pushing, &["RPUSH", "to", "last"]);
    rows.flush_and_drop();
    assert_eq!(server.run(pushing, &["RPUSH", "from", "x"]), ":1\r\n");
    server.executor.end_wait(waiting);
    assert_eq!(server.replies(waiting), b"$1\r\nx\r\n");
    let reply = "*2\r\n$1\r\nx\r\n$4\r\nlast\r\n";
    assert_eq!(server.run(pushing, &["LRANGE", "to", "0", "-1"]), reply);
    server.assert_replica_agrees();
}

/// LATENCY has the time for which a request lacked a row.
#[test]
fn long_reads_of_rows_are_latency_events() {
    let mut server = TestServer::new(memory);
    let client = server.connect_listed();
    let mut rows = server.back();
    assert_eq!(server.run(client, &["SET", "k", "v"]), "+OK\r\n");
    rows.flush_and_drop();
    let get = request(&[b"GET", b"k"]);
    assert_eq!(server.send(client, &get), b"$1\r\nv\r\n");
    assert_eq!(server.run(client, &["CONFIG", "SET", "latency-monitor-threshold", "20"]), "+OK\r\n");
    rows.drop_clean(usize::MAX);
    server.feed(client, &get);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(server.send(client, b""), b"$1\r\nv\r\n");
    let reply = server.ask(client, &["LATENCY", "LATEST"]);
    let [event] = reply.list() else { panic!("{reply:?}") };
    assert_eq!(event.list()[0].text(), "disk-row-read");
    assert!(event.list()[3].int() >= 20);
}
