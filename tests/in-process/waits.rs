//! Commands that wait: WAIT, WAITAOF, and CLIENT UNBLOCK, which ends them.

use crate::fake_log::FakeLog;
use crate::harness::{SHARDS, TestServer, memory};
use base::Clock;
use config::Settings;
use server::executor::Flow;
use std::sync::Arc;

const LOG_IS_OFF: &str = "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n";

fn server() -> (TestServer, Arc<FakeLog>, usize) {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let log = FakeLog::new(false);
    log.install(&server.store);
    let client = server.connect_listed();
    (server, log, client)
}

/// What the connection has been answered by now, after a look at what waits.
fn answered(server: &mut TestServer, client: usize) -> String {
    server.executor.begin_turn();
    server.executor.end_blocks();
    String::from_utf8_lossy(&server.replies(client)).into_owned()
}

#[test]
fn waitaof_waits_until_the_own_writes_are_durable() {
    let (mut server, log, client) = server();
    let other = server.connect_listed();
    assert_eq!(server.run(client, &["WAITAOF", "1", "0", "0"]), "*2\r\n:1\r\n:0\r\n", "it has written nothing");
    assert_eq!(server.run(client, &["SET", "k", "1"]), "+OK\r\n");
    assert_eq!(server.run(other, &["SET", "k", "2"]), "+OK\r\n");
    assert_eq!(server.run(client, &["WAITAOF", "0", "0", "0"]), "*2\r\n:0\r\n:0\r\n");
    server.feed(client, b"WAITAOF 1 0 0\r\nSET k 3\r\nWAITAOF 1 0 0\r\nPING\r\n");
    assert_eq!(answered(&mut server, client), "");
    assert_eq!(server.executor.flow(client), Flow::Waiting);
    assert_eq!(log.len(), 2, "nothing runs behind it");
    log.sync_to(1);
    assert_eq!(answered(&mut server, client), "*2\r\n:1\r\n:0\r\n+OK\r\n");
    log.sync_to(2);
    assert_eq!(answered(&mut server, client), "");
    log.sync_to(3);
    assert_eq!(answered(&mut server, client), "*2\r\n:1\r\n:0\r\n+PONG\r\n");
    assert_eq!(server.executor.flow(client), Flow::Open);
}

#[test]
fn waits_end_with_their_time() {
    let (mut server, log, client) = server();
    server.run(client, &["SET", "k", "1"]);
    for (request, reply) in [
        ("WAITAOF 1 0 100\r\n", "*2\r\n:0\r\n:0\r\n"),
        ("WAITAOF 0 1 100\r\n", "*2\r\n:0\r\n:0\r\n"),
        ("WAIT 1 100\r\n", ":0\r\n"),
    ] {
        server.feed(client, request.as_bytes());
        server.clock.advance_ms(99);
        assert_eq!(answered(&mut server, client), "", "{request}");
        assert_eq!(server.executor.ms_to_next_end(), Some(1));
        server.clock.advance_ms(1);
        assert_eq!(answered(&mut server, client), reply, "{request}");
        assert_eq!(server.executor.ms_to_next_end(), None);
    }
    log.sync();
    server.feed(client, b"WAITAOF 1 2 100\r\n");
    assert_eq!(answered(&mut server, client), "");
    server.clock.advance_ms(100);
    assert_eq!(answered(&mut server, client), "*2\r\n:1\r\n:0\r\n");
    // What is there is not waited for.
    assert_eq!(server.run(client, &["WAIT", "0", "0"]), ":0\r\n");
    assert_eq!(server.run(client, &["WAIT", "-5", "0"]), ":0\r\n");
    assert_eq!(server.run(client, &["WAITAOF", "1", "0", "0"]), "*2\r\n:1\r\n:0\r\n");
}

/// Nothing waits inside a transaction.
#[test]
fn a_transaction_does_not_wait() {
    let (mut server, _, client) = server();
    server.feed(client, b"SET k 1\r\nMULTI\r\nWAIT 1 0\r\nWAITAOF 1 1 0\r\nEXEC\r\n");
    assert_eq!(answered(&mut server, client), "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:0\r\n*2\r\n:0\r\n:0\r\n");
}

#[test]
fn unblock_ends_a_wait_as_told() {
    let (mut server, _, client) = server();
    let other = server.connect_listed();
    let id = server.run(client, &["CLIENT", "ID"]);
    let id = id.trim_start_matches(':').trim_end();
    assert_eq!(server.run(other, &["CLIENT", "UNBLOCK", id]), ":0\r\n");
    for (words, reply) in [
        (&["CLIENT", "UNBLOCK", id][..], ":0\r\n+PONG\r\n"),
        (&["CLIENT", "UNBLOCK", id, "TIMEOUT"], ":0\r\n+PONG\r\n"),
        (&["CLIENT", "UNBLOCK", id, "ERROR"], "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n+PONG\r\n"),
    ] {
        server.feed(client, b"WAIT 1 0\r\nPING\r\n");
        let info = server.run(other, &["INFO", "clients"]);
        assert!(info.contains("blocked_clients:1\r\n"), "{info}");
        assert_eq!(server.run(other, words), ":1\r\n");
        server.executor.end_wait(client);
        assert_eq!(answered(&mut server, client), reply);
        assert_eq!(server.run(other, words), ":0\r\n");
    }
}

/// CLIENT REPLY is asked when the command begins to wait.
#[test]
fn an_unwanted_reply_is_not_sent_after_the_wait() {
    let (mut server, _, client) = server();
    server.feed(client, b"CLIENT REPLY SKIP\r\nWAIT 1 10\r\nPING\r\n");
    server.clock.advance_ms(10);
    assert_eq!(answered(&mut server, client), "+PONG\r\n");
}

/// A wait for the log ends when the log is turned off.
#[test]
fn without_a_log_nothing_becomes_durable() {
    let (mut server, _, client) = server();
    server.feed(client, b"SET k 1\r\nWAITAOF 1 0 0\r\n");
    assert_eq!(answered(&mut server, client), "+OK\r\n");
    server.store.try_lock_all().expect("nobody holds a lock").set_log(None);
    assert_eq!(answered(&mut server, client), LOG_IS_OFF);
    assert_eq!(server.run(client, &["WAITAOF", "1", "0", "0"]), LOG_IS_OFF);
    assert_eq!(server.run(client, &["WAITAOF", "0", "0", "0"]), "*2\r\n:0\r\n:0\r\n");
}

/// A connection that goes while it waits leaves nothing.
#[test]
fn a_connection_that_goes_is_forgotten() {
    let (mut server, _, client) = server();
    server.feed(client, b"WAIT 1 10\r\n");
    server.executor.close(client);
    server.clock.advance_ms(10);
    server.executor.begin_turn();
    server.executor.end_blocks();
    server.executor.end_wait(client);
    assert!(!server.executor.has_waiting());
}

#[test]
fn wrong_arguments_are_refused_at_once() {
    let (mut server, _, client) = server();
    for (request, reply) in [
        ("WAIT x 0", "-ERR value is not an integer or out of range\r\n"),
        ("WAIT 1 x", "-ERR timeout is not an integer or out of range\r\n"),
        ("WAIT 1 -1", "-ERR timeout is negative\r\n"),
        ("WAIT 1 9223372036854775807", "-ERR timeout is out of range\r\n"),
        ("WAITAOF 2 0 0", "-ERR value is out of range, value must between 0 and 1\r\n"),
        ("WAITAOF 1 -1 0", "-ERR value is out of range, must be positive\r\n"),
        ("WAITAOF 1 0 -1", "-ERR timeout is negative\r\n"),
    ] {
        assert_eq!(server.run(client, &request.split(' ').collect::<Vec<_>>()), reply, "{request}");
    }
}

/// A wait counts from its own begin, not from that of the turn, and so never ends early.
#[test]
fn waits_do_not_end_early() {
    let (mut server, _, client) = server();
    server.executor.begin_turn();
    server.clock.advance_ms(7);
    server.feed(client, b"BLPOP k 0.5\r\n");
    server.clock.advance_ms(499);
    assert_eq!(answered(&mut server, client), "");
    server.clock.advance_ms(1);
    assert_eq!(answered(&mut server, client), "*-1\r\n");
    // Within a millisecond, which is all that the clock of expirations shows, it is rounded up.
    server.clock.tick_ns(1_000);
    server.clock.monotonic_ns();
    server.feed(client, b"BLPOP k 0.5\r\n");
    server.clock.advance_ms(500);
    assert_eq!(answered(&mut server, client), "");
    server.clock.advance_ms(1);
    assert_eq!(answered(&mut server, client), "*-1\r\n");
}

/// A command that waits counts when its wait ends: in the figures of its name, in the slow log, among all and among its
/// client's. One that ends by an error counts as failed.
#[test]
fn commands_that_wait_count_when_they_end() {
    let (mut server, _, client) = server();
    let other = server.connect_listed();
    admin::follow(&server.shared.host, &Settings { slowlog_slower_than_us: 0, ..Settings::default() });
    let calls = |server: &mut TestServer| {
        let info = server.run(other, &["INFO", "commandstats"]);
        let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_blpop:").map(str::to_owned));
        line.map(|line| {
            let figure = |name: &str| line.split(',').find_map(|figure| figure.strip_prefix(name).map(str::to_owned));
            (figure("calls=").expect("calls"), figure("failed_calls=").expect("failures"))
        })
    };
    let logged = |server: &mut TestServer| server.run(other, &["SLOWLOG", "GET", "-1"]).matches("BLPOP").count();
    let counted = |server: &mut TestServer| {
        let line = server.run(other, &["CLIENT", "LIST", "ID", "1"]);
        line.split(' ').find_map(|field| field.strip_prefix("tot-cmds=").map(str::to_owned)).expect("it is shown")
    };
    let before = counted(&mut server);
    server.feed(client, b"BLPOP k 0.1\r\n");
    assert_eq!((calls(&mut server), logged(&mut server)), (None, 0));
    assert_eq!(counted(&mut server), before);
    server.clock.advance_ms(100);
    assert_eq!(answered(&mut server, client), "*-1\r\n");
    assert_eq!((calls(&mut server), logged(&mut server)), (Some(("1".into(), "0".into())), 1));
    assert_ne!(counted(&mut server), before);
    server.feed(client, b"BLPOP k 0\r\n");
    assert_eq!(server.run(other, &["CLIENT", "UNBLOCK", "1", "ERROR"]), ":1\r\n");
    server.executor.end_wait(client);
    assert!(answered(&mut server, client).starts_with("-UNBLOCKED "));
    assert_eq!((calls(&mut server), logged(&mut server)), (Some(("2".into(), "1".into())), 2));
}
