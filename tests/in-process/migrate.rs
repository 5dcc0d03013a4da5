//! MIGRATE and what happens here while the keys are on their way: the other server is played by the test.

use crate::harness::{SHARDS, TestServer, fetching, memory};
use command::work::remote::{Content, Migrator, SendOutcome, Sending};
use std::sync::{Arc, Mutex};
use store::shard::ShardEngine;

/// Keeps what is handed to it.
#[derive(Default)]
struct Shelf(Mutex<Vec<Arc<Sending>>>);

impl Migrator for Shelf {
    fn send(&self, sending: Arc<Sending>) {
        self.0.lock().expect("no test panics while holding it").push(sending);
    }
}

fn server(engine: fn(engine_mem::MemEngine) -> ShardEngine) -> (TestServer, Arc<Shelf>) {
    let shelf = Arc::new(Shelf::default());
    (TestServer::with_parts(engine, SHARDS, |assembly| assembly.migrator(shelf.clone())), shelf)
}

struct Test {
    server: TestServer,
    shelf: Arc<Shelf>,
    client: usize,
    other: usize,
}

impl Test {
    fn new() -> Self {
        let (mut server, shelf) = server(memory);
        let (client, other) = (server.connect_listed(), server.connect_listed());
        server.run(client, &["MSET", "a", "1", "b", "2", "c", "3"]);
        server.run(client, &["PEXPIRE", "b", "5000"]);
        Self { server, shelf, client, other }
    }

    fn begin(&mut self, words: &[&str]) -> Arc<Sending> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.server.feed(self.client, &crate::harness::request(&words));
        self.next()
    }

    /// What is on its way now.
    #[track_caller]
    fn next(&mut self) -> Arc<Sending> {
        self.server.finish_work();
        assert!(!self.server.executor.has_work(), "the worker sleeps meanwhile");
        self.shelf.0.lock().expect("no test panics while holding it").pop().expect("something is sent")
    }

    /// The other server has these keys now.
    fn arrive(&mut self, sending: &Sending, is_there: &[bool]) {
        self.end(sending, SendOutcome { is_there: is_there.to_vec(), ..SendOutcome::default() });
    }

    fn end(&mut self, sending: &Sending, outcome: SendOutcome) {
        sending.end(outcome);
        self.server.executor.end_wait(self.client);
    }

    #[track_caller]
    fn reply(&mut self, expected: &str) {
        let bytes = self.server.replies(self.client);
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        self.server.assert_replica_agrees();
    }

    #[track_caller]
    fn left(&mut self, expected: &str) {
        assert_eq!(self.server.run(self.other, &["EXISTS", "a", "b", "c"]), expected);
    }
}

const ALL: [&str; 10] = ["MIGRATE", "host", "7000", "", "3", "250", "KEYS", "a", "b", "none"];

/// What has arrived is removed here, and nothing before; others are answered meanwhile, and requests after it wait.
#[test]
fn keys_leave_when_they_have_arrived() {
    let mut test = Test::new();
    let sending = test.begin(&ALL);
    let sent: Vec<_> =
        sending.migration.keys.iter().map(|sent| (&sent.key[..], sent.ttl_ms, sent.content.bytes() == 0)).collect();
    assert_eq!(sent, [(&b"a"[..], 0, false), (b"b", 5000, false)]);
    assert_eq!((&sending.migration.host[..], sending.migration.db, sending.migration.timeout_ms), ("host", 3, 250));
    test.server.feed(test.client, b"GET c\r\n");
    test.reply("");
    test.left(":3\r\n");
    test.arrive(&sending, &[true, true]);
    test.reply("+OK\r\n$1\r\n3\r\n");
    test.left(":1\r\n");
}

#[test]
fn copies_stay() {
    let mut test = Test::new();
    let sending = test.begin(&["MIGRATE", "host", "7000", "a", "0", "0", "COPY", "REPLACE", "AUTH2", "keys", "copy"]);
    let migration = &sending.migration;
    assert!(migration.keys[0].replace && migration.login == [b"keys", b"copy"] && migration.timeout_ms == 1000);
    test.server.run(test.other, &["APPEND", "a", "0"]);
    test.arrive(&sending, &[true]);
    test.reply("+OK\r\n");
    test.left(":3\r\n");
}

/// A key that was changed on its way is sent again, over what was sent; the others with it leave in the same moment.
#[test]
fn no_change_is_lost_on_the_way() {
    let mut test = Test::new();
    let sending = test.begin(&ALL);
    test.server.run(test.other, &["APPEND", "a", "0"]);
    test.arrive(&sending, &[true, true]);
    let again = test.next();
    test.left(":3\r\n");
    assert_eq!((again.migration.keys.len(), again.migration.arrived.len()), (1, 1));
    assert!(again.migration.keys[0].replace && again.migration.keys[0].key == b"a");
    // A new end of its life is a change, and what was removed here does not come back.
    test.server.run(test.other, &["PERSIST", "b"]);
    test.server.run(test.other, &["DEL", "a"]);
    test.arrive(&again, &[true]);
    let third = test.next();
    assert_eq!((third.migration.keys.len(), third.migration.arrived.len(), third.migration.keys[0].ttl_ms), (1, 0, 0));
    test.arrive(&third, &[true]);
    test.reply("+OK\r\n");
    test.left(":1\r\n");
}

/// What is big is shared on its way, not copied, and every change of it is seen.
#[test]
fn big_values_are_shared() {
    let mut test = Test::new();
    let members: Vec<String> = (0..20_000).map(|member| format!("member-{member}")).collect();
    for some in members.chunks(1000) {
        let words = ["SADD", "set"].into_iter().chain(some.iter().map(String::as_str)).collect::<Vec<_>>();
        test.server.run(test.other, &words);
    }
    test.server.run(test.other, &["SETRANGE", "text", "200000", "x"]);
    let sending = test.begin(&["MIGRATE", "host", "7000", "", "0", "0", "KEYS", "set", "text"]);
    let contents: Vec<&Content> = sending.migration.keys.iter().map(|sent| &sent.content).collect();
    assert!(matches!(contents[..], [Content::Tree(..), Content::Text(_)]), "{contents:?}");
    for (content, key) in contents.iter().zip(["set", "text"]) {
        let dumped = test.server.send(test.other, format!("DUMP {key}\r\n").as_bytes());
        let payload = content.payload().expect("there is a form for it");
        assert!(dumped.windows(payload.len()).any(|part| part == &*payload), "{key}");
    }
    test.server.run(test.other, &["SADD", "set", "one more"]);
    test.server.run(test.other, &["SETRANGE", "text", "0", "y"]);
    test.arrive(&sending, &[true, true]);
    let again = test.next();
    assert_eq!(again.migration.keys.len(), 2);
    test.arrive(&again, &[true, true]);
    test.reply("+OK\r\n");
    assert_eq!(test.server.run(test.other, &["EXISTS", "set", "text"]), ":0\r\n");
}

/// A key that changes again and again stays here, and the client is notified.
#[test]
fn what_never_rests_stays() {
    let mut test = Test::new();
    let mut sending = test.begin(&ALL);
    let mut rounds = 1;
    loop {
        test.server.run(test.other, &["APPEND", "a", "0"]);
        test.arrive(&sending, &[true; 2][..sending.migration.keys.len()]);
        test.server.finish_work();
        let again = test.shelf.0.lock().expect("no test panics while holding it").pop();
        let Some(again) = again else { break };
        sending = again;
        rounds += 1;
    }
    assert_eq!(rounds, 3);
    test.reply(
        "-TRYAGAIN 1 of 2 keys were changed while they were sent: they are still here, and the target has them \
                as they were before\r\n",
    );
    test.left(":2\r\n");
    assert_eq!(test.server.run(test.other, &["GET", "a"]), "$4\r\n1000\r\n");
}

/// Only what the other server says it has is removed, whatever went wrong.
#[test]
fn what_was_not_taken_stays() {
    let mut test = Test::new();
    let sending = test.begin(&ALL);
    let refusal = Some(b"BUSYKEY Target key name already exists.".to_vec());
    test.end(&sending, SendOutcome { is_there: vec![false, true], refusal, failure: None });
    test.reply("-ERR Target instance replied with error: BUSYKEY Target key name already exists.\r\n");
    test.left(":2\r\n");
    let sending = test.begin(&["MIGRATE", "host", "7000", "", "0", "0", "KEYS", "a", "c"]);
    let failure = Some("reading from host:7000: no answer".to_owned());
    test.end(&sending, SendOutcome { is_there: vec![true], refusal: None, failure });
    test.reply("-IOERR error or timeout reading from host:7000: no answer\r\n");
    test.left(":1\r\n");
    let sending = test.begin(&["MIGRATE", "host", "7000", "c", "0", "0"]);
    let failure = Some("connecting to host:7000: refused".to_owned());
    test.end(&sending, SendOutcome { failure, ..SendOutcome::default() });
    test.reply("-IOERR error or timeout connecting to host:7000: refused\r\n");
    test.left(":1\r\n");
}

#[test]
fn wrong_requests_send_nothing() {
    let mut test = Test::new();
    for (words, expected) in [
        (&["x", "0", "9"][..], "+NOKEY\r\n"),
        (&["", "0", "9"], "+NOKEY\r\n"),
        (&["", "0", "9", "KEYS"], "+NOKEY\r\n"),
        (
            &["a", "0", "9", "KEYS", "b"],
            "-ERR When using MIGRATE KEYS option, the key argument must be set to the empty string\r\n",
        ),
        (&["a", "x", "9"], "-ERR value is not an integer or out of range\r\n"),
        (&["a", "0", "x"], "-ERR value is not an integer or out of range\r\n"),
        (&["a", "0", "9", "AUTH"], "-ERR syntax error\r\n"),
        (&["a", "0", "9", "AUTH2", "user"], "-ERR syntax error\r\n"),
        (&["a", "0", "9", "MOVE"], "-ERR syntax error\r\n"),
    ] {
        let words = [&["MIGRATE", "host", "7000"][..], words].concat();
        assert_eq!(test.server.run(test.client, &words), expected, "{words:?}");
    }
    assert!(test.shelf.0.lock().expect("no test panics while holding it").is_empty());
    test.server.run(test.client, &["MULTI"]);
    for key in ["a", "none"] {
        assert_eq!(test.server.run(test.client, &["MIGRATE", "host", "7000", key, "0", "0"]), "+QUEUED\r\n");
    }
    assert_eq!(
        test.server.run(test.client, &["EXEC"]),
        "*2\r\n-ERR MIGRATE cannot send keys inside MULTI, where everybody else would wait for the other \
         server\r\n+NOKEY\r\n"
    );
    test.left(":3\r\n");
}

/// A client that has gone leaves its keys here, whatever becomes of what it sent.
#[test]
fn who_leaves_keeps_the_keys_here() {
    let mut test = Test::new();
    let sending = test.begin(&ALL);
    test.server.executor.close(test.client);
    sending.end(SendOutcome { is_there: vec![true, true], ..SendOutcome::default() });
    test.server.executor.end_wait(test.client);
    test.server.finish_work();
    test.left(":3\r\n");
}

/// The keys that a request has.
#[test]
fn keys_are_found() {
    let mut test = Test::new();
    for (words, expected) in [
        (&["key", "0", "9", "COPY"][..], "*1\r\n$3\r\nkey\r\n"),
        (&["", "0", "9", "AUTH", "keys", "KEYS", "a", "b"], "*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        (&["key", "0", "9", "AUTH2", "keys", "keys"], "*1\r\n$3\r\nkey\r\n"),
    ] {
        let words = [&["COMMAND", "GETKEYS", "MIGRATE", "host", "7000"][..], words].concat();
        assert_eq!(test.server.run(test.client, &words), expected, "{words:?}");
    }
}

/// Rows that have to be fetched do not have anything sent twice.
#[test]
fn fetches_come_before_sending() {
    let (mut server, shelf) = server(fetching);
    let client = server.connect_listed();
    for round in 0..50 {
        server.run(client, &["MSET", "a", "1", "b", "2"]);
        let reply = server.run(client, &["MIGRATE", "host", "7000", "", "0", "0", "KEYS", "a", "b"]);
        assert_eq!(reply, "", "round {round}");
        let sending = shelf.0.lock().expect("no test panics while holding it").pop().expect("it is sent");
        sending.end(SendOutcome { is_there: vec![true, true], ..SendOutcome::default() });
        server.executor.end_wait(client);
        server.finish_work();
        assert_eq!(server.send(client, b""), b"+OK\r\n");
        assert!(shelf.0.lock().expect("no test panics while holding it").is_empty(), "sent twice in round {round}");
        server.assert_replica_agrees();
    }
}
