//! The memory budget as clients see it: what exceeds it is evicted, what was freed is available, and a write waits
//! in between.

use crate::harness::{SHARDS, TestServer, memory, request};
use crate::reply::Reply;
use crate::served::{Client, Served};
use base::DbIndex;
use engine_mem::StampMode;
use std::time::{Duration, Instant};

const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// What eviction and cleaning have to do is done within this, however busy the machine.
const DONE_WITHIN: Duration = Duration::from_secs(60);

fn ok() -> Reply {
    Reply::Simple("OK".into())
}

fn fill(client: &mut Client, keys: usize, value_bytes: usize) {
    let value = "v".repeat(value_bytes);
    for first in (0..keys).step_by(1_000) {
        let keys = first..keys.min(first + 1_000);
        for key in keys.clone() {
            client.send(&[&["SET", &format!("key:{key}"), &value]]);
        }
        keys.for_each(|_| assert_eq!(client.reply(), Some(ok())));
    }
}

fn used_bytes(client: &mut Client) -> u64 {
    let info = client.run(&["INFO", "memory"]);
    let used = info.text().lines().find_map(|line| line.strip_prefix("used_memory:").map(str::to_owned));
    used.expect("INFO tells the memory in use").parse().expect("a number")
}

#[track_caller]
fn until(mut is_done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_done() {
        assert!(since.elapsed() < DONE_WITHIN, "it does not come to that");
    }
}

/// A lower `maxmemory` evicts without a write, down to it.
#[test]
fn a_lower_maxmemory_is_reached_by_itself() {
    let server = Served::start(&["--workers", "2", "--save", ""]);
    let mut client = server.connect();
    fill(&mut client, 20_000, 1_000);
    assert!(used_bytes(&mut client) > 16_000_000);
    client.run(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "8mb"]);
    until(|| used_bytes(&mut client) <= 8 << 20);
    assert!(client.run(&["DBSIZE"]).int() > 3_000, "no more is evicted than has to be");
    client.run(&["CONFIG", "SET", "maxmemory", "1"]);
    until(|| client.run(&["DBSIZE"]).int() == 0);
    assert_eq!(client.run(&["SET", "x", "y"]), Reply::Error(OUT_OF_MEMORY.into()), "nothing is left to evict");
}

/// A value that is far larger than the budget makes later writes wait until there is room again, which there is when
/// that value is evicted.
#[test]
fn memory_does_not_grow_after_a_huge_value() {
    let server = Served::start(&["--workers", "1", "--save", "", "--maxmemory", "30mb"]);
    let mut client = server.connect();
    client.run(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    fill(&mut client, 5_000, 1_000);
    client.run(&["SETRANGE", "big", "60000000", "x"]);
    for number in 0..200 {
        assert_eq!(client.run(&["SET", &format!("after:{number}"), "v"]), ok());
    }
    assert!(used_bytes(&mut client) <= 31 << 20);
    assert_eq!(client.run(&["EXISTS", "big"]), Reply::Int(0));
}

/// A full store under `noeviction` takes writes as soon as memory was freed, by FLUSHALL or by the deletion of few
/// keys.
#[test]
fn freed_memory_is_available_at_once() {
    let server = Served::start(&["--workers", "2", "--save", ""]);
    let mut client = server.connect();
    fill(&mut client, 20_000, 1_000);
    let fill_up = |client: &mut Client| {
        let full = used_bytes(client) + (1 << 20);
        client.run(&["CONFIG", "SET", "maxmemory", &full.to_string()]);
        let value = "v".repeat(1_000);
        let refused = (0..100_000).find(|number| client.run(&["SET", &format!("more:{number}"), &value]) != ok());
        assert!(refused.is_some(), "the budget has no effect");
    };
    fill_up(&mut client);
    for key in (0..20_000).step_by(100) {
        client.run(&["DEL", &format!("key:{key}")]);
    }
    assert_eq!(client.run(&["SET", "new", &"v".repeat(1_000)]), ok(), "1 % was deleted");
    fill_up(&mut client);
    assert_eq!(client.run(&["FLUSHALL", "SYNC"]), ok());
    assert_eq!(client.run(&["SET", "new", &"v".repeat(1_000)]), ok(), "all was deleted");
}

/// Under an eviction policy with entries to evict, no write is refused.
#[test]
fn no_write_is_refused_while_there_is_something_to_evict() {
    let server = Served::start(&["--workers", "2", "--save", "", "--maxmemory", "8mb"]);
    let mut client = server.connect();
    client.run(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    fill(&mut client, 20_000, 1_000);
    assert_eq!(client.run(&["FLUSHALL", "SYNC"]), ok());
    fill(&mut client, 10_000, 1_000);
}

/// While memory is short, MULTI queues what needs none, as Valkey 9.1 does. EXEC of a transaction that was refused a
/// command says so.
#[test]
fn multi_queues_what_needs_no_memory() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let (client, other) = (server.connect_listed(), server.connect_listed());
    assert_eq!(server.run(client, &["MULTI"]), "+OK\r\n");
    assert_eq!(server.run(client, &["SET", "a", "1"]), "+QUEUED\r\n");
    assert_eq!(server.run(other, &["SET", "b", "1"]), "+OK\r\n");
    server.store.set_budget(1, None, StampMode::Recency);
    let refusal = format!("-{OUT_OF_MEMORY}\r\n");
    assert_eq!(server.run(client, &["LPUSH", "l", "v"]), refusal);
    assert_eq!(server.run(client, &["GET", "a"]), "+QUEUED\r\n");
    assert!(server.run(client, &["EXEC"]).starts_with("-EXECABORT "));
    assert_eq!(server.run(client, &["MULTI"]), "+OK\r\n");
    assert_eq!(server.run(client, &["GET", "b"]), "+QUEUED\r\n");
    assert_eq!(server.run(client, &["DEL", "b"]), "+QUEUED\r\n");
    assert_eq!(server.run(client, &["EXEC"]), "*2\r\n$1\r\n1\r\n:1\r\n");
    assert_eq!(server.run(client, &["MULTI"]), "+OK\r\n");
    assert_eq!(server.run(client, &["DISCARD"]), "+OK\r\n");
}

/// A script reads a row that is not in memory while memory is short. The row that was fetched for it stays until it has
/// run, and it waited for a flush to free that row, for ever.
#[test]
fn a_script_does_not_wait_for_its_own_row() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rows = server.back();
    assert_eq!(server.ask(client, &["SET", "k", "value"]), ok());
    rows.flush_and_drop();
    server.store.set_budget(1, None, StampMode::Recency);
    assert_eq!(server.ask(client, &["EVAL", "return redis.call('GET', 'k')", "0"]).text(), "value");
    assert_eq!(server.ask(client, &["GET", "k"]).text(), "value");
}

/// After a flush, a hash with a time of a field stays in memory, and so does the row that is fetched for a command. A
/// write that waited for a flush to free them was never answered.
#[test]
fn a_write_does_not_wait_for_what_no_flush_frees() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rows = server.back();
    let refusal = Reply::Error(OUT_OF_MEMORY.into());
    assert_eq!(server.ask(client, &["HSET", "h", "f", "v"]), Reply::Int(1));
    assert_eq!(server.ask(client, &["HEXPIRE", "h", "1000", "FIELDS", "1", "f"]).list(), [Reply::Int(1)]);
    assert_eq!(server.ask(client, &["SET", "k", "value"]), ok());
    rows.flush_and_drop();
    server.store.set_budget(1, None, StampMode::Recency);
    assert_eq!(server.ask(client, &["SET", "other", "v"]), refusal);
    assert_eq!(server.ask(client, &["APPEND", "k", "v"]), refusal);
    let reply = server.run(client, &["EVAL", "return redis.call('APPEND', 'k', 'v')", "0"]);
    assert!(reply.starts_with(&format!("-{OUT_OF_MEMORY} script: ")), "{reply}");
    server.store.set_budget(0, None, StampMode::Recency);
    assert_eq!(server.ask(client, &["APPEND", "k", "v"]), Reply::Int(6));
    // What has changed since is waited for: a flush makes it droppable.
    server.store.set_budget(1, None, StampMode::Recency);
    server.feed(client, &request(&[b"SET", b"other", b"v"]));
    server.executor.run_waiting(true);
    assert_eq!(server.replies(client), b"");
    rows.flush_and_drop();
    assert_eq!(server.send(client, b""), format!("-{OUT_OF_MEMORY}\r\n").into_bytes());
}

/// While changes wait to be flushed, a request waits if it writes to a database on disk, whatever its client has
/// selected.
#[test]
fn a_request_waits_for_flushes_of_the_databases_that_it_writes_to() {
    let mut server = TestServer::new(memory);
    let on_disk = server.store.spaces.get(DbIndex(1));
    let _rows = server.back_some(|space| Some(space) == on_disk);
    let client = [server.connect_listed(), server.connect_listed()];
    assert_eq!(server.ask(client[1], &["SELECT", "1"]), ok());
    server.store.pressure.set_behind(true);
    let words = |text: &str| -> Vec<u8> {
        let requests = text.split("; ").map(|words| words.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        requests.flat_map(|words| request(&words)).collect()
    };
    let cases = [
        (0, "SET a 1", false),
        (1, "SET a 1", true),
        (1, "DEL a", false),
        (0, "MULTI; SET a 1; SELECT 1; GET a; EXEC", false),
        (0, "MULTI; SELECT 1; SET a 1; SELECT 0; EXEC", true),
        (0, "MULTI; SELECT 99; SET a 1; EXEC", false),
        (1, "SELECT 1; MULTI; SELECT 0; SET a 1; EXEC", false),
        (1, "SELECT 1; MULTI; DEL a; SELECT 0; SET a 1; EXEC", false),
        (1, "SELECT 1; MULTI; SELECT 99; SET a 1; EXEC", true),
        (0, "SELECT 0; MULTI; COPY a b DB 1; EXEC", true),
        (0, "COPY a b DB 1", true),
        (1, "SELECT 1; COPY a b DB 0", false),
        (0, "MOVE a 1", true),
        (1, "MOVE a 0", false),
        (0, "EVAL redis.call('SELECT',1)redis.call('SET','a',1) 0", true),
        (0, "EVAL redis.call('SELECT',1)redis.call('SET',KEYS[1],1) 1 a", true),
        (0, "EVAL redis.call('SELECT',1)redis.call('GET','a') 0", false),
        (0, "EVAL redis.call('SELECT',1)redis.call('DEL','a') 0", false),
        (0, "EVAL redis.call('COPY','a','b','DB',1) 0", true),
        // One that has written is not stopped halfway.
        (0, "EVAL redis.call('SET','a',1)redis.call('SELECT',1)redis.call('SET','a',1) 0", false),
    ];
    for (number, requests, waits) in cases {
        let client = client[number];
        server.feed(client, &words(requests));
        server.executor.run_waiting(true);
        assert_eq!(server.executor.has_waiting(), waits, "{requests}");
        server.store.pressure.set_behind(false);
        server.send(client, b"");
        assert!(!server.executor.has_waiting());
        server.store.pressure.set_behind(true);
    }
}

/// A backed database holds more than the budget: clean entries are dropped for others, and none is
/// evicted.
#[test]
fn entries_that_rows_hold_make_room() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rows = server.back();
    let budget = server.store.used_bytes() + (2 << 20);
    server.store.set_budget(budget, None, StampMode::Recency);
    let value = "v".repeat(1_000);
    for number in 0..10_000 {
        assert_eq!(server.ask(client, &["SET", &format!("key:{number}"), &value]), ok(), "{number}");
        if number % 200 == 0 {
            rows.begin_flush();
            rows.walk_flush(|| usize::MAX);
            rows.end_flush(true);
        }
    }
    rows.flush_and_drop();
    for number in 0..10_000 {
        assert_eq!(server.ask(client, &["GET", &format!("key:{number}")]).text(), value, "{number}");
        let used = server.store.used_bytes();
        assert!(used < budget + (1 << 20), "{used} bytes of {budget} are used");
    }
    assert_eq!(server.store.len(DbIndex(0)).0, 10_000);
}
