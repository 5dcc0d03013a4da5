//! While the data is brought back, connections are answered that it is; and what saving depends on can refuse writes.

use crate::harness::{SHARDS, START_MS, TestServer, memory};
use crate::reply::Reply;
use crate::served::Served;
use base::{DbIndex, KeyspaceId};
use engine::{Effect, Encoding, Value};
use std::sync::mpsc::channel;

/// When upkeep has removed what expires now.
const AFTER_ITS_TIME_MS: u64 = 2_000;

const LOADING: &str = "LOADING Onggi is loading the dataset in memory";

#[test]
fn only_what_needs_no_data_runs_while_loading() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    server.run(client, &["SET", "k", "1", "PX", "10"]);
    server.store.gate.begin_loading(START_MS);
    let refused = format!("-{LOADING}\r\n");
    for words in [&["PING"][..], &["GET", "k"], &["SET", "k", "2"], &["DBSIZE"], &["FLUSHALL"], &["WAIT", "1", "0"]] {
        assert_eq!(server.run(client, words), refused, "{words:?}");
    }
    assert!(server.run(client, &["INFO", "server"]).starts_with('$'));
    assert_eq!(server.run(client, &["CLIENT", "ID"]), ":1\r\n");
    assert_eq!(server.run(client, &["NOSUCH"]), "-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
    // A transaction can begin, but what needs data is not queued.
    assert_eq!(server.run(client, &["MULTI"]), "+OK\r\n");
    assert_eq!(server.run(client, &["GET", "k"]), refused);
    assert_eq!(server.run(client, &["EXEC"]), "-EXECABORT Transaction discarded because of previous errors.\r\n");
    server.pass_ms(AFTER_ITS_TIME_MS);
    assert_eq!(server.store.len(DbIndex(0)), (1, 1), "nothing expires");
    server.store.gate.end_loading();
    server.pass_ms(AFTER_ITS_TIME_MS);
    assert_eq!(server.store.len(DbIndex(0)), (0, 0));
    assert_eq!(server.run(client, &["PING"]), "+PONG\r\n");
}

/// What was queued before is not run either.
#[test]
fn a_transaction_does_not_run_while_loading() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    assert_eq!(server.send(client, b"MULTI\r\nGET k\r\n"), b"+OK\r\n+QUEUED\r\n");
    server.store.gate.begin_loading(START_MS);
    assert_eq!(server.run(client, &["EXEC"]), format!("-EXECABORT Transaction discarded because of: {LOADING}\r\n"));
}

#[test]
fn a_closed_gate_refuses_writes_only() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    server.run(client, &["SET", "k", "1"]);
    let refused = format!("-{}\r\n", command::error::CHECKPOINT_FAILED);
    server.store.gate.refuse_writes();
    for words in [&["SET", "k", "2"][..], &["DEL", "k"], &["FLUSHALL"]] {
        assert_eq!(server.run(client, words), refused, "{words:?}");
    }
    assert_eq!(server.run(client, &["MULTI"]), "+OK\r\n");
    assert_eq!(server.run(client, &["INCR", "k"]), refused);
    assert_eq!(server.run(client, &["DISCARD"]), "+OK\r\n");
    assert_eq!(server.run(client, &["GET", "k"]), "$1\r\n1\r\n");
    server.store.gate.allow_writes();
    assert_eq!(server.run(client, &["SET", "k", "2"]), "+OK\r\n");
}

/// A whole server: it takes connections before its data is there, and serves the data when it is.
#[test]
fn a_server_answers_before_its_data_is_there() {
    let (go, wait) = channel::<()>();
    let server = Served::start_recovering(
        &["--workers", "2"],
        Box::new(move |shared| {
            wait.recv()?;
            for number in 0..1000 {
                let (name, value) = (format!("key:{number}"), format!("value:{number}"));
                let key = shared.store.key(KeyspaceId(0), name.as_bytes());
                let (encoding, value) = (Encoding::PLAIN, Value::Bytes(value.as_bytes()));
                shared.store.load(&Effect::Set { key, value, encoding, expire_at: None });
            }
            Ok(())
        }),
    );
    let mut client = server.connect();
    for words in [&["PING"][..], &["GET", "key:7"], &["SET", "key:7", "x"]] {
        assert_eq!(client.run(words), Reply::Error(LOADING.into()), "{words:?}");
    }
    go.send(()).expect("it waits");
    let mut replies = std::iter::repeat_with(|| client.run(&["GET", "key:7"]));
    let first = replies.find(|reply| *reply != Reply::Error(LOADING.into()));
    assert_eq!(first, Some(Reply::Bulk(Some("value:7".into()))));
    assert_eq!(server.connect().run(&["DBSIZE"]), Reply::Int(1000));
}

/// A server asked to end while it loads does so.
#[test]
fn a_server_ends_while_it_loads() {
    let (say, started) = channel::<()>();
    let server = Served::start_recovering(
        &[],
        Box::new(move |shared| {
            say.send(())?;
            while !shared.store.gate.is_cancelled() {
                std::thread::yield_now();
            }
            Ok(())
        }),
    );
    started.recv().expect("it starts");
    assert_eq!(server.connect().run(&["PING"]), Reply::Error(LOADING.into()));
    drop(server);
}
