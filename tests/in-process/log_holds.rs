//! Replies that wait for the log: no client sees a change, its own or another's, that a crash could still undo; and
//! nothing else waits.

use crate::fake_log::FakeLog;
use crate::harness::{SHARDS, TestServer, memory};
use std::sync::Arc;

/// A server whose log holds replies, and two of its clients.
struct Held {
    server: TestServer,
    log: Arc<FakeLog>,
    writer: usize,
    reader: usize,
}

impl Held {
    fn new() -> Self {
        let mut server = TestServer::with_shards(memory, SHARDS);
        let log = FakeLog::new(true);
        log.install(&server.store);
        let (writer, reader) = (server.connect_listed(), server.connect_listed());
        Self { server, log, writer, reader }
    }

    /// With these keys stored and durable.
    fn with_keys(keys: &[&str]) -> Self {
        let mut held = Self::new();
        for key in keys {
            assert_eq!(held.write(&["SET", key, "old"]), "");
        }
        held.log.sync();
        held.rest(held.writer);
        held
    }

    fn write(&mut self, words: &[&str]) -> String {
        self.server.run(self.writer, words)
    }

    fn read(&mut self, words: &[&str]) -> String {
        self.server.run(self.reader, words)
    }

    /// What of the replies may go by now.
    fn rest(&mut self, client: usize) -> String {
        String::from_utf8_lossy(&self.server.replies(client)).into_owned()
    }
}

#[test]
fn a_write_is_answered_when_it_is_durable() {
    let mut held = Held::new();
    assert_eq!(held.write(&["SET", "k", "1"]), "");
    assert_eq!(held.rest(held.writer), "");
    held.log.sync();
    assert_eq!(held.rest(held.writer), "+OK\r\n");
    // What changes nothing waits for nothing.
    assert_eq!(held.write(&["SET", "k", "2", "NX"]), "$-1\r\n");
    assert_eq!(held.write(&["PING"]), "+PONG\r\n");
    assert_eq!(held.write(&["INCR", "k", "x"]), "-ERR wrong number of arguments for 'incr' command\r\n");
}

/// Everything that shows a key, or that it is not there, waits for the key's newest change.
#[test]
fn a_read_waits_for_what_it_shows() {
    let reads: [&[&str]; 11] = [
        &["GET", "k"],
        &["EXISTS", "k"],
        &["TTL", "k"],
        &["STRLEN", "k"],
        &["TYPE", "k"],
        &["OBJECT", "ENCODING", "k"],
        &["MGET", "other", "k"],
        &["GETRANGE", "k", "0", "-1"],
        &["SET", "k", "x", "NX"],
        &["RENAMENX", "other", "k"],
        &["MEMORY", "USAGE", "k"],
    ];
    for read in reads {
        let mut held = Held::with_keys(&["k", "other"]);
        held.write(&["SET", "k", "new"]);
        assert_eq!(held.read(read), "", "{read:?}");
        held.log.sync();
        assert_ne!(held.rest(held.reader), "", "{read:?}");
    }
    for read in [&["GET", "k"][..], &["DEL", "k"], &["EXISTS", "k"], &["GETDEL", "k"], &["UNLINK", "k"]] {
        let mut held = Held::with_keys(&["k"]);
        held.write(&["DEL", "k"]);
        assert_eq!(held.read(read), "", "{read:?} shows that the key is gone");
        held.log.sync();
        assert!(["$-1\r\n", ":0\r\n"].contains(&&*held.rest(held.reader)), "{read:?}");
    }
}

#[test]
fn a_read_of_another_key_does_not_wait() {
    let mut held = Held::with_keys(&["other"]);
    held.write(&["SET", "k", "1"]);
    // Reports about the server are needed most when the log has stopped.
    assert!(held.read(&["INFO", "keyspace"]).contains("db0:keys=2"));
    // A key shares its entry with one in 256 of its shard; this one does not.
    assert_eq!(held.read(&["GET", "other"]), "$3\r\nold\r\n");
    assert_eq!(held.read(&["GET", "absent"]), "$-1\r\n");
    assert_eq!(held.read(&["PING"]), "+PONG\r\n");
}

/// What shows keys without naming them waits for the newest change of any.
#[test]
fn what_names_no_key_waits_for_all() {
    for read in [&["DBSIZE"][..], &["KEYS", "*"], &["SCAN", "0", "COUNT", "1000"], &["RANDOMKEY"]] {
        let mut held = Held::with_keys(&["other"]);
        // SCAN begins with the first shard, so that every shard gets a change.
        for key in 0..100 {
            held.write(&["SET", &format!("key:{key}"), "v"]);
        }
        assert_eq!(held.read(read), "", "{read:?}");
        held.log.sync();
        assert_ne!(held.rest(held.reader), "", "{read:?}");
        assert_ne!(held.read(read), "", "{read:?} waits for nothing now");
    }
}

/// Changes of whole keyspaces hold back what is said of any key.
#[test]
fn a_flush_and_a_swap_hold_every_key() {
    for write in [&["FLUSHALL"][..], &["FLUSHDB"], &["SWAPDB", "0", "1"]] {
        let mut held = Held::with_keys(&["a", "b", "c"]);
        held.write(write);
        for key in ["a", "b", "c", "never"] {
            assert_eq!(held.read(&["GET", key]), "", "{write:?}, {key}");
        }
        held.log.sync();
        assert_eq!(held.rest(held.reader), "$-1\r\n".repeat(4), "{write:?}");
    }
}

/// A command that moves an entry holds both its names back.
#[test]
fn both_names_of_a_rename_are_held() {
    let mut held = Held::with_keys(&["from"]);
    held.write(&["RENAME", "from", "to"]);
    for key in ["from", "to"] {
        assert_eq!(held.read(&["EXISTS", key]), "", "{key}");
    }
    held.log.sync();
    assert_eq!(held.rest(held.reader), ":0\r\n:1\r\n");
}

#[test]
fn a_transaction_waits_as_one() {
    let mut held = Held::with_keys(&["a", "b"]);
    let client = held.writer;
    assert_eq!(
        held.server.send(client, b"MULTI\r\nGET a\r\nINCR n\r\nGET b\r\n"),
        b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
    );
    assert_eq!(held.write(&["EXEC"]), "");
    held.log.sync();
    assert_eq!(held.rest(client), "*3\r\n$3\r\nold\r\n:1\r\n$3\r\nold\r\n");
    // One that only reads waits for what it has read.
    held.write(&["SET", "a", "new"]);
    let reader = held.reader;
    assert_eq!(held.server.send(reader, b"MULTI\r\nGET a\r\nEXEC\r\n"), b"+OK\r\n+QUEUED\r\n");
    assert_eq!(held.server.send(reader, b"MULTI\r\nGET b\r\nEXEC\r\n"), b"", "it stands behind the first");
    held.log.sync();
    assert_eq!(held.rest(reader), "*1\r\n$3\r\nnew\r\n+OK\r\n+QUEUED\r\n*1\r\n$3\r\nold\r\n");
}

/// The reply of an aborted transaction shows the change that broke its watch.
#[test]
fn a_broken_watch_waits_for_the_change_that_broke_it() {
    let mut held = Held::with_keys(&["k"]);
    let reader = held.reader;
    assert_eq!(held.server.send(reader, b"WATCH k fresh\r\nMULTI\r\nPING\r\n"), b"+OK\r\n+OK\r\n+QUEUED\r\n");
    held.write(&["SET", "fresh", "1"]);
    assert_eq!(held.read(&["EXEC"]), "");
    held.log.sync();
    assert_eq!(held.rest(reader), "*-1\r\n");
}

/// The connection keeps executing, in order; its output goes up to the first reply that waits.
#[test]
fn a_pipeline_runs_on_and_is_answered_as_far_as_it_is_durable() {
    let mut held = Held::with_keys(&["other"]);
    let client = held.writer;
    assert_eq!(held.server.send(client, b"GET other\r\nINCR n\r\nGET other\r\n"), b"$3\r\nold\r\n");
    assert_eq!(held.server.send(client, b"INCR n\r\nPING\r\n"), b"");
    assert_eq!(held.server.send(client, b"INCR n\r\n"), b"");
    assert_eq!(held.log.len(), 4, "all of it has run");
    held.log.sync_to(2);
    assert_eq!(held.rest(client), ":1\r\n$3\r\nold\r\n");
    held.log.sync_to(3);
    assert_eq!(held.rest(client), ":2\r\n+PONG\r\n");
    held.log.sync_to(4);
    assert_eq!(held.rest(client), ":3\r\n");
}

/// Replies that are not wanted hold nothing back, and what follows them is right.
#[test]
fn unwanted_replies_hold_nothing() {
    let mut held = Held::with_keys(&["other"]);
    let client = held.writer;
    assert_eq!(
        held.server.send(client, b"CLIENT REPLY OFF\r\nSET k 1\r\nCLIENT REPLY ON\r\nGET other\r\n"),
        b"+OK\r\n$3\r\nold\r\n"
    );
    assert_eq!(held.server.send(client, b"CLIENT REPLY SKIP\r\nSET k 2\r\nPING\r\nGET k\r\n"), b"+PONG\r\n");
    held.log.sync();
    assert_eq!(held.rest(client), "$1\r\n2\r\n");
}

/// Large values that are sent by reference stand in the order of replies too, in both protocols.
#[test]
fn large_values_and_resp3_keep_their_places() {
    let mut held = Held::new();
    let value = "v".repeat(100_000);
    held.write(&["SET", "big", &value]);
    held.log.sync();
    held.rest(held.writer);
    let hello = held.read(&["HELLO", "3"]);
    assert!(hello.starts_with('%'), "{hello}");
    let reader = held.reader;
    let big = format!("$100000\r\n{value}\r\n");
    held.write(&["SET", "k", "1"]);
    assert_eq!(
        held.server.send(reader, b"GET big\r\nGET big\r\nGET k\r\nGET big\r\nGET absent\r\n"),
        big.repeat(2).as_bytes()
    );
    held.log.sync();
    assert_eq!(held.rest(reader), format!("$1\r\n1\r\n{big}_\r\n"));
}

/// An entry that upkeep removes is gone for readers before, whether its removal is durable or not; nothing is lost by
/// that.
#[test]
fn expired_entries_are_absent_and_their_removal_is_logged() {
    let mut held = Held::new();
    held.write(&["SET", "k", "1", "PX", "10"]);
    held.log.sync();
    held.rest(held.writer);
    held.server.clock.advance_ms(20);
    held.server.executor.begin_turn();
    assert_eq!(held.read(&["GET", "k"]), "$-1\r\n");
    held.server.pass_ms(2_000);
    assert_eq!(held.log.len(), 2);
    assert_eq!(held.read(&["GET", "k"]), "");
    held.log.sync();
    assert_eq!(held.rest(held.reader), "$-1\r\n");
}

/// What was written before replies were held may not be durable either.
#[test]
fn turning_holds_on_holds_what_was_written_before() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let log = FakeLog::new(false);
    log.install(&server.store);
    let client = server.connect_listed();
    assert_eq!(server.run(client, &["SET", "k", "1"]), "+OK\r\n");
    assert_eq!(server.run(client, &["GET", "k"]), "$1\r\n1\r\n");
    log.set_holds(true);
    log.install(&server.store);
    assert_eq!(server.run(client, &["GET", "k"]), "");
    log.sync();
    assert_eq!(server.replies(client), b"$1\r\n1\r\n");
    // And off again: what is held goes when it is durable, the rest waits no longer.
    assert_eq!(server.run(client, &["SET", "k", "2"]), "");
    log.set_holds(false);
    log.install(&server.store);
    assert_eq!(server.run(client, &["SET", "k", "3"]), "", "it stands behind what is held");
    log.sync_to(2);
    assert_eq!(server.replies(client), b"+OK\r\n+OK\r\n");
    assert_eq!(server.run(client, &["SET", "k", "4"]), "+OK\r\n");
}

/// QUIT is answered, and its connection closes, after the replies before it.
#[test]
fn quit_waits_for_the_replies_before_it() {
    let mut held = Held::new();
    let client = held.writer;
    assert_eq!(held.server.send(client, b"SET k 1\r\nQUIT\r\n"), b"");
    held.log.sync();
    assert_eq!(held.rest(client), "+OK\r\n+OK\r\n");
}
