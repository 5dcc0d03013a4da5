//! Replies come in the order of their requests, also when an earlier one has to wait for a lock and a later one cannot
//! run at all.

use crate::harness::{SHARDS, TestServer, memory};

/// Runs `during` while another thread holds the lock of the key's shard.
fn while_locked(server: &mut TestServer, key: &[u8], mut during: impl FnMut(&mut TestServer)) {
    let store = server.store.clone();
    let (locked, mut visited) = (store.shard_of_bytes(key).index(), 0);
    store
        .each_shard(|_| {
            if visited == locked {
                during(server);
            }
            visited += 1;
        })
        .for_each(drop);
}

/// Sends requests of which the first has to wait; gives the replies.
fn replies_behind_a_wait(requests: &[u8]) -> String {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    while_locked(&mut server, b"k", |server| {
        server.feed(client, requests);
        assert!(server.executor.has_waiting());
        assert!(server.replies(client).is_empty(), "a later request was answered before one that waits");
        // Trying again while the lock is taken changes nothing.
        server.executor.run_waiting(true);
        assert!(server.replies(client).is_empty(), "a later request was answered before one that waits");
    });
    assert_eq!(server.store.len(base::DbIndex(0)), (0, 0), "what waits has changed nothing");
    server.executor.run_waiting(true);
    assert!(!server.executor.has_waiting());
    let replies = String::from_utf8_lossy(&server.replies(client)).into_owned();
    assert_eq!(server.store.len(base::DbIndex(0)), (1, 0), "the request has run: {replies}");
    replies
}

/// Unknown names, wrong arities and unknown subcommands wait for their turn. (They were once answered at once.)
#[test]
fn a_request_that_cannot_run_keeps_its_place() {
    for (malformed, error) in [
        ("NOSUCH\r\n", "-ERR unknown command 'NOSUCH'"),
        ("GET\r\n", "-ERR wrong number of arguments for 'get' command"),
        ("OBJECT NOSUCH k\r\n", "-ERR unknown subcommand 'NOSUCH'"),
    ] {
        let replies = replies_behind_a_wait(format!("INCR k\r\n{malformed}PING\r\nINCR k\r\n").as_bytes());
        let lines: Vec<&str> = replies.split_terminator("\r\n").collect();
        let fits = matches!(lines[..], [":1", refused, "+PONG", ":2"] if refused.starts_with(error));
        assert!(fits, "{malformed:?}: {lines:?}");
    }
}

/// A transaction whose queue gets such a request after a wait is poisoned by it, not by an earlier look at it.
#[test]
fn a_transaction_behind_a_wait_is_poisoned_in_its_turn() {
    let replies = replies_behind_a_wait(b"INCR k\r\nMULTI\r\nNOSUCH\r\nEXEC\r\nPING\r\n");
    let lines: Vec<&str> = replies.split_terminator("\r\n").collect();
    let fits = matches!(lines[..], [":1", "+OK", unknown, aborted, "+PONG"]
        if unknown.starts_with("-ERR unknown command") && aborted.starts_with("-EXECABORT"));
    assert!(fits, "{lines:?}");
}

/// When the framing is lost after a request that waits, that request still runs and is answered first.
#[test]
fn a_protocol_error_keeps_its_place() {
    let replies = replies_behind_a_wait(b"INCR k\r\n*1\r\n$-7\r\nPING\r\n");
    let lines: Vec<&str> = replies.split_terminator("\r\n").collect();
    assert!(matches!(lines[..], [":1", error] if error.starts_with("-ERR Protocol error")), "{lines:?}");
}

/// INFO counts all reads before it: those of its own batch, and those of its own transaction.
#[test]
fn info_sees_the_reads_before_it() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let plain = "SET k v\r\nGET k\r\nGET none\r\nINFO stats\r\n";
    let queued = "MULTI\r\nGET k\r\nGET none\r\nINFO stats\r\nEXEC\r\n";
    server.feed(client, [plain, queued].concat().as_bytes());
    let replies = String::from_utf8_lossy(&server.replies(client)).into_owned();
    let counts = |field: &str| -> Vec<&str> { replies.lines().filter_map(|line| line.strip_prefix(field)).collect() };
    assert_eq!(counts("keyspace_hits:"), ["1", "2"], "{replies}");
    assert_eq!(counts("keyspace_misses:"), ["1", "2"], "{replies}");
}
