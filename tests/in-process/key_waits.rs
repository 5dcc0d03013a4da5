//! Commands that wait for keys, in one worker: which one is served when, by which record, and what is left of a wait
//! that ended.

use crate::fake_log::FakeLog;
use crate::harness::{SHARDS, TestServer, fetching, memory};
use engine_mem::MemEngine;
use server::executor::Flow;
use store::shard::ShardEngine;

/// A server and two of its clients.
struct Waits {
    server: TestServer,
    waiter: usize,
    pusher: usize,
}

impl Waits {
    fn over(engine: fn(MemEngine) -> ShardEngine) -> Self {
        let mut server = TestServer::with_shards(engine, SHARDS);
        let (waiter, pusher) = (server.connect_listed(), server.connect_listed());
        Self { server, waiter, pusher }
    }

    /// Has a client's command wait.
    fn block(&mut self, client: usize, words: &[&str]) {
        assert_eq!(self.server.run(client, words), "");
        assert_eq!(self.server.executor.flow(client), Flow::Waiting, "{words:?}");
    }

    fn push(&mut self, words: &[&str]) -> String {
        self.server.run(self.pusher, words)
    }

    /// What a client has been answered, after its worker has looked at its wait.
    fn answered(&mut self, client: usize) -> String {
        self.server.executor.begin_turn();
        self.server.executor.end_blocks();
        self.server.executor.end_wait(client);
        String::from_utf8_lossy(&self.server.replies(client)).into_owned()
    }

    fn info(&mut self, section: &str, line: &str) {
        let info = self.push(&["INFO", section]);
        assert!(info.contains(&format!("{line}\r\n")), "{line} is not in {info}");
    }
}

/// The push and what the waiter takes are one record, whatever shards the keys lie in, with all rows in memory or none.
#[test]
fn a_push_and_what_it_serves_are_one_record() {
    for engine in [memory, fetching] {
        let mut waits = Waits::over(engine);
        let waiter = waits.waiter;
        *waits.server.replica.kept.lock().expect("no test panics while holding it") = Some(Vec::new());
        for (number, to) in ["b", "c", "d", "e", "f", "g", "h"].iter().enumerate() {
            waits.block(waiter, &["BLMOVE", "a", to, "LEFT", "RIGHT", "0"]);
            assert_eq!(waits.push(&["RPUSH", "a", "x"]), ":1\r\n");
            assert_eq!(waits.answered(waiter), "$1\r\nx\r\n");
            let kept = waits.server.replica.kept.lock().expect("no test panics while holding it");
            assert_eq!(kept.as_ref().map(Vec::len), Some(number + 1));
        }
        assert_eq!(waits.push(&["EXISTS", "a", "b", "h"]), ":2\r\n");
        waits.server.assert_replica_agrees();
    }
}

/// A waiter's destination has waiters of its own in a third shard, and so on: all of that is one step.
#[test]
fn chains_of_moves_are_served_at_once() {
    for engine in [memory, fetching] {
        let mut waits = Waits::over(engine);
        let movers: Vec<usize> = (0..6).map(|_| waits.server.connect_listed()).collect();
        for (number, mover) in movers.iter().enumerate() {
            let (from, to) = (format!("k{number}"), format!("k{}", number + 1));
            waits.block(*mover, &["BRPOPLPUSH", &from, &to, "0"]);
        }
        let waiter = waits.waiter;
        waits.block(waiter, &["BLPOP", "k6", "none", "0"]);
        waits.info("clients", "blocked_clients:7");
        waits.info("clients", "total_blocking_keys:8");
        assert_eq!(waits.push(&["RPUSH", "k0", "x"]), ":1\r\n");
        waits.info("clients", "blocked_clients:0");
        waits.info("clients", "total_blocking_keys:0");
        assert_eq!(waits.answered(waiter), "*2\r\n$2\r\nk6\r\n$1\r\nx\r\n");
        for mover in movers {
            assert_eq!(waits.answered(mover), "$1\r\nx\r\n");
        }
        assert_eq!(waits.push(&["DBSIZE"]), ":0\r\n");
        waits.server.assert_replica_agrees();
    }
}

/// No answer leaves before its changes are in the log.
#[test]
fn a_served_reply_waits_for_the_log() {
    let mut waits = Waits::over(memory);
    let (log, waiter) = (FakeLog::new(true), waits.waiter);
    log.install(&waits.server.store);
    waits.block(waiter, &["BLPOP", "k", "0"]);
    assert_eq!(waits.push(&["RPUSH", "k", "x"]), "");
    assert_eq!(waits.answered(waiter), "");
    assert_eq!(log.len(), 1);
    log.sync();
    assert_eq!(waits.answered(waiter), "*2\r\n$1\r\nk\r\n$1\r\nx\r\n");
    // Its own write was the last one.
    waits.block(waiter, &["BLPOP", "k", "0"]);
    waits.push(&["RPUSH", "k", "y"]);
    assert_eq!(waits.answered(waiter), "");
    log.sync();
    assert_eq!(waits.answered(waiter), "*2\r\n$1\r\nk\r\n$1\r\ny\r\n");
    assert_eq!(waits.server.run(waiter, &["WAITAOF", "1", "0", "0"]), "*2\r\n:1\r\n:0\r\n");
}

/// A wait that has ended takes nothing, however it ended, and is forgotten at once.
#[test]
fn an_ended_wait_takes_nothing() {
    let mut waits = Waits::over(memory);
    let waiter = waits.waiter;
    waits.block(waiter, &["BLPOP", "k", "l", "0.1"]);
    waits.server.clock.advance_ms(100);
    assert_eq!(waits.answered(waiter), "*-1\r\n");
    waits.info("clients", "total_blocking_keys:0");

    let id = waits.server.run(waiter, &["CLIENT", "ID"]);
    waits.block(waiter, &["BLMOVE", "k", "l", "LEFT", "LEFT", "0"]);
    assert_eq!(waits.push(&["CLIENT", "UNBLOCK", id.trim_matches([':', '\r', '\n']), "ERROR"]), ":1\r\n");
    assert_eq!(waits.push(&["RPUSH", "k", "x"]), ":1\r\n", "it was unblocked before the push");
    assert_eq!(waits.answered(waiter), "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
    waits.info("clients", "total_blocking_keys:0");
    waits.push(&["DEL", "k"]);

    waits.block(waiter, &["BLPOP", "k", "0"]);
    waits.server.executor.close(waiter);
    waits.info("clients", "total_blocking_keys:0");
    assert_eq!(waits.push(&["RPUSH", "k", "x"]), ":1\r\n");
    assert_eq!(waits.push(&["LRANGE", "k", "0", "-1"]), "*1\r\n$1\r\nx\r\n");
}

/// A thousand wait for one key; each push serves the one that came first.
#[test]
fn many_are_served_in_the_order_they_came() {
    let mut waits = Waits::over(memory);
    let clients: Vec<usize> = (0..1000).map(|_| waits.server.connect_listed()).collect();
    for client in &clients {
        waits.block(*client, &["BRPOP", "k", "0"]);
    }
    for (number, client) in clients.iter().enumerate() {
        let text = number.to_string();
        waits.push(&["RPUSH", "k", &text]);
        assert_eq!(waits.answered(*client), format!("*2\r\n$1\r\nk\r\n${}\r\n{text}\r\n", text.len()));
    }
}

/// CLIENT REPLY is asked when the command begins to wait; the element goes all the same.
#[test]
fn an_unwanted_answer_is_not_sent() {
    let mut waits = Waits::over(memory);
    let waiter = waits.waiter;
    assert_eq!(waits.server.run(waiter, &["CLIENT", "REPLY", "SKIP"]), "");
    waits.block(waiter, &["BLPOP", "k", "0"]);
    assert_eq!(waits.push(&["RPUSH", "k", "x"]), ":1\r\n");
    assert_eq!(waits.answered(waiter), "");
    assert_eq!(waits.server.run(waiter, &["EXISTS", "k"]), ":0\r\n");
}
