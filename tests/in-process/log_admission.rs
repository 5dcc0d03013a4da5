//! Writes the log has no room for wait and run once; those it refuses are answered and change nothing.

use crate::fake_log::{FakeLog, REFUSAL};
use crate::harness::{SHARDS, TestServer, memory};
use base::DbIndex;
use std::sync::Arc;
use store::{Admission, Scratch};

/// When upkeep has removed what expires now.
const AFTER_ITS_TIME_MS: u64 = 2_000;

fn server() -> (TestServer, Arc<FakeLog>, usize) {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let log = FakeLog::new(false);
    log.install(&server.store);
    let client = server.connect_listed();
    (server, log, client)
}

#[test]
fn a_write_without_room_waits_and_runs_once() {
    let (mut server, log, client) = server();
    log.admit(Admission::Wait, Admission::Wait);
    server.feed(client, b"GET k\r\nINCR k\r\nGET k\r\nINCR k\r\n");
    assert_eq!(server.replies(client), b"$-1\r\n");
    assert!(server.executor.has_waiting());
    server.executor.run_waiting(true);
    assert_eq!((server.replies(client), log.len()), (Vec::new(), 0));
    // Other connections read meanwhile.
    let other = server.connect_listed();
    server.feed(other, b"GET k\r\n");
    assert_eq!(server.replies(other), b"$-1\r\n");
    log.admit(Admission::Go, Admission::Go);
    server.executor.run_waiting(true);
    assert_eq!(server.replies(client), b":1\r\n$1\r\n1\r\n:2\r\n");
    assert!(!server.executor.has_waiting());
    assert_eq!(log.len(), 2);
}

/// There may be thousands of them, so they are not tried every turn: when the worker is woken, as it is when there is
/// room, or after a while.
#[test]
fn writes_without_room_are_tried_when_woken() {
    let (mut server, log, client) = server();
    log.admit(Admission::Wait, Admission::Wait);
    server.feed(client, b"INCR k\r\n");
    log.admit(Admission::Go, Admission::Go);
    server.executor.run_waiting(false);
    assert!(server.executor.has_waiting() && !server.executor.is_retrying());
    server.executor.run_waiting(true);
    assert_eq!(server.replies(client), b":1\r\n");

    // In the order in which they came to wait, and those for whom the room is not enough wait on.
    let others: Vec<_> = (0..3).map(|_| server.connect_listed()).collect();
    log.admit(Admission::Wait, Admission::Wait);
    others.iter().for_each(|other| server.feed(*other, b"INCR k\r\n"));
    server.executor.run_waiting(true);
    assert!(server.executor.has_waiting());
    log.admit(Admission::Go, Admission::Go);
    server.clock.advance_ms(100);
    server.executor.begin_turn();
    server.executor.run_waiting(false);
    let replies: Vec<_> = others.iter().map(|other| server.replies(*other)).collect();
    assert_eq!(replies, [b":2\r\n", b":3\r\n", b":4\r\n"]);
}

/// A transaction waits as a whole, and only when it is to run.
#[test]
fn a_transaction_without_room_waits_at_exec() {
    let (mut server, log, client) = server();
    log.admit(Admission::Wait, Admission::Wait);
    server.feed(client, b"MULTI\r\nINCR k\r\nEXEC\r\nPING\r\n");
    assert_eq!(server.replies(client), b"+OK\r\n+QUEUED\r\n");
    log.admit(Admission::Go, Admission::Go);
    server.executor.run_waiting(true);
    assert_eq!(server.replies(client), b"*1\r\n:1\r\n+PONG\r\n");
    // One that writes nothing needs no room.
    log.admit(Admission::Wait, Admission::Wait);
    assert_eq!(server.send(client, b"MULTI\r\nGET k\r\nEXEC\r\n"), b"+OK\r\n+QUEUED\r\n*1\r\n$1\r\n1\r\n");
}

#[test]
fn a_refused_write_is_answered_and_changes_nothing() {
    let (mut server, log, client) = server();
    assert_eq!(server.run(client, &["SET", "k", "1"]), "+OK\r\n");
    log.admit(Admission::Refused, Admission::Refused);
    let refused = format!("-{REFUSAL}\r\n");
    for write in
        [&["SET", "k", "2"][..], &["DEL", "k"], &["MSET", "a", "1", "b", "2"], &["FLUSHALL"], &["EXPIRE", "k", "1"]]
    {
        assert_eq!(server.run(client, write), refused, "{write:?}");
    }
    assert_eq!(server.run(client, &["GET", "k"]), "$1\r\n1\r\n");
    assert_eq!(server.run(client, &["PING"]), "+PONG\r\n");
    assert_eq!((server.store.len(DbIndex(0)), log.len()), ((1, 0), 1));
    // Inside MULTI it is refused when it is queued; what was queued before, when it is to run.
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    assert_eq!(server.run(client, &["MULTI"]), "+OK\r\n");
    assert_eq!(server.run(client, &["SET", "k", "3"]), refused);
    assert_eq!(server.run(client, &["EXEC"]), aborted);
    log.admit(Admission::Go, Admission::Go);
    assert_eq!(server.send(client, b"MULTI\r\nSET k 3\r\n"), b"+OK\r\n+QUEUED\r\n");
    log.admit(Admission::Refused, Admission::Refused);
    assert_eq!(server.run(client, &["EXEC"]), format!("-EXECABORT Transaction discarded because of: {REFUSAL}\r\n"));
    assert_eq!(server.run(client, &["EXEC"]), "-ERR EXEC without MULTI\r\n");
    log.admit(Admission::Go, Admission::Go);
    assert_eq!(server.run(client, &["GET", "k"]), "$1\r\n1\r\n");
    assert_eq!(server.run(client, &["SET", "k", "4"]), "+OK\r\n", "it goes on by itself");
}

/// A script runs, and its commands that change entries are refused, where it can catch that.
#[test]
fn scripts_read_while_writes_are_refused() {
    let (mut server, log, client) = server();
    assert_eq!(server.run(client, &["SET", "k", "1"]), "+OK\r\n");
    log.admit(Admission::Refused, Admission::Refused);
    assert_eq!(server.run(client, &["EVAL", "return redis.call('GET', KEYS[1])", "1", "k"]), "$1\r\n1\r\n");
    // Also with a key that it has not declared.
    assert_eq!(server.run(client, &["EVAL", "return redis.call('GET', 'k')", "0"]), "$1\r\n1\r\n");
    let caught = "local reply = redis.pcall('SET', KEYS[1], 2) return {reply.err, redis.call('GET', KEYS[1])}";
    let expected = format!("*2\r\n${}\r\n{REFUSAL}\r\n$1\r\n1\r\n", REFUSAL.len());
    assert_eq!(server.run(client, &["EVAL", caught, "1", "k"]), expected);
    let reply = server.run(client, &["EVAL", "redis.call('DEL', KEYS[1]) return 1", "1", "k"]);
    assert!(reply.starts_with(&format!("-{REFUSAL} script: ")), "{reply}");
    // One that says what it does is refused at once, unless it does not write.
    let writes = "#!lua\nreturn redis.call('GET', KEYS[1])";
    assert_eq!(server.run(client, &["EVAL", writes, "1", "k"]), format!("-{REFUSAL}\r\n"));
    let reads = "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])";
    assert_eq!(server.run(client, &["EVAL", reads, "1", "k"]), "$1\r\n1\r\n");
    assert_eq!(log.len(), 1, "nothing was changed");
    log.admit(Admission::Go, Admission::Go);
    assert_eq!(server.run(client, &["EVAL", "return redis.call('INCR', KEYS[1])", "1", "k"]), ":2\r\n");
    assert_eq!(log.len(), 2);
}

/// Inside MULTI a script is queued, unless it says that it writes, and its commands decide, as in Valkey.
#[test]
fn queued_scripts_read_while_the_log_refuses_writes() {
    let (mut server, log, client) = server();
    let library = "#!lua name=lib
        server.register_function('writes', function() return 1 end)
        server.register_function{function_name='reads', callback=function() return 2 end, flags={'no-writes'}}";
    assert_eq!(server.run(client, &["FUNCTION", "LOAD", library]), "$3\r\nlib\r\n");
    assert_eq!(server.run(client, &["SET", "k", "1"]), "+OK\r\n");
    for by_log in [true, false] {
        let refusal = match by_log {
            true => {
                log.admit(Admission::Refused, Admission::Refused);
                REFUSAL.to_owned()
            }
            false => {
                server.store.gate.refuse_writes();
                command::error::CHECKPOINT_FAILED.to_owned()
            }
        };
        let transaction = |server: &mut TestServer, requests: &[&[&str]]| -> Vec<String> {
            let mut replies = vec![server.run(client, &["MULTI"])];
            replies.extend(requests.iter().map(|request| server.run(client, request)));
            replies.push(server.run(client, &["EXEC"]));
            replies
        };
        let caught = "return redis.pcall('SET', 'k', 2).err";
        let raised = "redis.call('DEL', 'k')";
        let reads = ["EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', 'k')", "0"];
        let all: [&[&str]; 6] = [
            &["EVAL", "return redis.call('GET', 'k')", "0"],
            &["EVAL", caught, "0"],
            &["EVAL", raised, "0"],
            &reads,
            &["FCALL", "reads", "0"],
            &["GET", "k"],
        ];
        let replies = transaction(&mut server, &all);
        assert_eq!(replies[1..7], ["+QUEUED\r\n"; 6]);
        let one = "$1\r\n1\r\n";
        let start = format!("*6\r\n{one}${}\r\n{refusal}\r\n-{refusal} script: ", refusal.len());
        assert!(replies[7].starts_with(&start), "{}", replies[7]);
        assert!(replies[7].ends_with(&format!("\r\n{one}:2\r\n{one}")), "{}", replies[7]);
        // What says that it writes is refused when it is queued, as a write is.
        for request in [&["EVAL", "#!lua\nreturn 1", "0"][..], &["FCALL", "writes", "0"]] {
            let replies = transaction(&mut server, &[request]);
            assert_eq!(replies[1], format!("-{refusal}\r\n"), "{request:?}");
            assert!(replies[2].starts_with("-EXECABORT"), "{request:?}");
        }
        // So is the whole transaction if a write was queued before.
        log.admit(Admission::Go, Admission::Go);
        server.store.gate.allow_writes();
        for write in [&["SET", "k", "3"][..], &["FCALL", "writes", "0"]] {
            server.run(client, &["MULTI"]);
            server.run(client, all[0]);
            assert_eq!(server.run(client, write), "+QUEUED\r\n");
            match by_log {
                true => log.admit(Admission::Refused, Admission::Refused),
                false => server.store.gate.refuse_writes(),
            }
            let reply = server.run(client, &["EXEC"]);
            assert!(reply.starts_with("-EXECABORT") && reply.contains(&refusal), "{reply}");
            log.admit(Admission::Go, Admission::Go);
            server.store.gate.allow_writes();
        }
        assert_eq!(server.run(client, &["GET", "k"]), one);
    }
}

/// A checkpoint that has failed refuses writes in the same way.
#[test]
fn scripts_read_after_a_failed_checkpoint() {
    let (mut server, _log, client) = server();
    assert_eq!(server.run(client, &["SET", "k", "1"]), "+OK\r\n");
    server.store.gate.refuse_writes();
    let refused = server.run(client, &["SET", "k", "2"]);
    assert!(refused.starts_with("-MISCONF "), "{refused}");
    let caught = "return {redis.pcall('SET', KEYS[1], 2).err, redis.call('GET', KEYS[1])}";
    let reply = server.run(client, &["EVAL", caught, "1", "k"]);
    assert!(reply.ends_with(&format!("{}$1\r\n1\r\n", &refused[1..])), "{reply}");
}

/// While the disk is full, commands that free space run.
#[test]
fn removals_go_on_while_the_disk_is_full() {
    let (mut server, log, client) = server();
    for key in ["a", "b", "c", "d", "e"] {
        server.run(client, &["SET", key, "1"]);
    }
    server.run(client, &["SET", "x", "1", "PX", "10"]);
    log.admit(Admission::Go, Admission::Refused);
    assert_eq!(server.run(client, &["SET", "a", "2"]), format!("-{REFUSAL}\r\n"));
    assert_eq!(server.run(client, &["DEL", "a"]), ":1\r\n");
    assert_eq!(server.run(client, &["UNLINK", "b"]), ":1\r\n");
    assert_eq!(server.run(client, &["GETDEL", "c"]), "$1\r\n1\r\n");
    assert_eq!(server.send(client, b"MULTI\r\nDEL d\r\nEXEC\r\n"), b"+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    assert_eq!(
        server.send(client, b"MULTI\r\nDEL e\r\nSET e 1\r\n"),
        format!("+OK\r\n+QUEUED\r\n-{REFUSAL}\r\n").as_bytes()
    );
    assert!(server.run(client, &["EXEC"]).starts_with("-EXECABORT"));
    server.pass_ms(AFTER_ITS_TIME_MS);
    assert_eq!(server.store.len(DbIndex(0)), (1, 0), "what has expired is removed");
    assert_eq!(server.run(client, &["FLUSHDB"]), "+OK\r\n");
    assert_eq!(server.run(client, &["FLUSHALL"]), "+OK\r\n");
    assert_eq!(server.store.len(DbIndex(0)), (0, 0));
}

/// Without room in the log nothing is removed for its time, but no read finds it.
#[test]
fn expiration_waits_for_the_log() {
    let (mut server, log, client) = server();
    server.run(client, &["SET", "k", "1", "PX", "10"]);
    for admission in [Admission::Wait, Admission::Refused] {
        log.admit(admission, admission);
        server.pass_ms(AFTER_ITS_TIME_MS);
        assert_eq!((server.store.len(DbIndex(0)), log.len()), ((1, 1), 1));
        assert_eq!(server.run(client, &["GET", "k"]), "$-1\r\n");
    }
    log.admit(Admission::Go, Admission::Go);
    server.pass_ms(AFTER_ITS_TIME_MS);
    assert_eq!((server.store.len(DbIndex(0)), log.len()), ((0, 0), 2));
}

/// A write that would have others evicted waits with them for the log, in place of an error that memory is full.
#[test]
fn eviction_waits_for_the_log() {
    use engine_mem::{EvictionOrder, EvictionPolicy, EvictionScope, StampMode};
    let (mut server, log, client) = server();
    let value = "v".repeat(1000);
    for key in 0..2000 {
        server.run(client, &["SET", &format!("key:{key}"), &value]);
    }
    let policy = EvictionPolicy { scope: EvictionScope::All, order: EvictionOrder::Random };
    server.store.set_budget(server.store.used_bytes() / 2, Some(policy), StampMode::Recency);
    let before = log.len();
    log.admit(Admission::Wait, Admission::Wait);
    assert!(server.store.evict(1000, 0, &mut Scratch::default()).is_err());
    server.feed(client, b"SET new 1\r\n");
    server.executor.run_waiting(true);
    assert_eq!((server.replies(client), log.len()), (Vec::new(), before));
    log.admit(Admission::Go, Admission::Go);
    server.executor.run_waiting(true);
    while server.executor.awaits_memory() {
        server.executor.run_waiting(false);
    }
    assert_eq!(server.replies(client), b"+OK\r\n");
    assert!(log.len() > before + 1, "entries were evicted, and that is in the log");
}

/// A log comes, is replaced and goes while the server runs; each record is in exactly one.
#[test]
fn the_log_is_installed_replaced_and_removed_at_run_time() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    server.store.try_lock_all().expect("nobody holds a lock").set_log(None);
    assert!(server.store.log().is_none());
    assert_eq!(server.run(client, &["SET", "k", "1"]), "+OK\r\n");
    let (first, second) = (FakeLog::new(false), FakeLog::new(false));
    first.install(&server.store);
    assert_eq!(server.run(client, &["SET", "k", "2"]), "+OK\r\n");
    second.install(&server.store);
    assert_eq!(server.run(client, &["SET", "k", "3"]), "+OK\r\n");
    assert_eq!(server.run(client, &["SET", "k", "4"]), "+OK\r\n");
    server.store.try_lock_all().expect("nobody holds a lock").set_log(None);
    assert_eq!(server.run(client, &["SET", "k", "5"]), "+OK\r\n");
    assert_eq!((first.len(), second.len()), (1, 2));
}

/// Another thread holds a lock: nothing is locked, nothing changes, and the attempt is repeated.
#[test]
fn all_locks_or_none() {
    let server = TestServer::with_shards(memory, SHARDS);
    let store = server.store.clone();
    store.each_shard(|_| assert!(store.try_lock_all().is_none())).for_each(drop);
    assert!(store.try_lock_all().is_some());
    assert!(store.try_lock_all().is_some(), "they were opened again");
}
