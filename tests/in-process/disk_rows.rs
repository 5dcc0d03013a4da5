//! Databases whose rows are in an LSM-tree on a simulated disk: replies as in memory, and after a power cut the rows of
//! the last flush and the log after it.

use crate::harness::{SHARDS, TestServer, memory, request, store};
use crate::replay::{Side, request_of};
use base::random::splitmix64;
use base::{Clock, DbIndex, KeyspaceId, Lsn, Rng};
use differential::generate::Generator;
use differential::grammar;
use durability::{DiskDatabases, DiskOptions, FlushError};
use engine::FlushProgress;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use store::{RecordSink, RecoveryPoints, Scratch, Store};
use vfs::{Fault, Op, Outage, SimFs, errno};

const ROUNDS: u64 = 8;
const REQUESTS: usize = 500;

/// Replies that follow the order of a walk, or count entries that no flush has counted.
const NOT_COMPARED: [&str; 3] = ["SCAN", "KEYS", "DBSIZE"];

/// All databases of a store, on one tree.
pub fn open(store: &Arc<Store>, fs: &SimFs) -> Arc<DiskDatabases> {
    open_as(store, fs, false)
}

/// The same, with names in order or not.
pub fn open_as(store: &Arc<Store>, fs: &SimFs, is_ordered: bool) -> Arc<DiskDatabases> {
    let spaces: Vec<_> = (0..store.spaces.count() as u32).map(KeyspaceId).collect();
    let (fs, dir) = (Arc::new(fs.clone()), Path::new("/data/rows"));
    let ordered = if is_ordered { spaces.clone() } else { Vec::new() };
    DiskDatabases::open(store, fs, dir, &spaces, ordered, DiskOptions::default()).expect("it opens")
}

/// Flushes everything as of `lsn`, drops what is clean, and merges tables.
pub fn flush_and_drop(databases: &Arc<DiskDatabases>, lsn: Lsn) {
    let mut flush = databases.begin_flush(|| lsn).expect("nobody else locks");
    while flush.walk() == FlushProgress::More {}
    flush.install(|_| Ok::<_, Infallible>(())).expect("the disk takes it");
    flush.end();
    databases.drop_clean(usize::MAX);
    while databases.compact_step().expect("the disk takes it") {}
}

#[test]
fn random_commands_over_a_tree_answer_as_in_memory_and_survive_power_cuts() {
    let generator = Generator::new(&grammar::load(&grammar::families()).expect("the grammars parse"), false);
    for round in 0..ROUNDS {
        let mut seed = round + 3_000;
        let mut rng = Rng::new(splitmix64(&mut seed));
        let steps = generator.sequence(&mut rng, REQUESTS);
        let (mut plain, mut side, fs) = (Side::new(memory), Side::new(memory), SimFs::new(round));
        *side.server.replica.kept.lock().expect("no test panics while holding it") = Some(Vec::new());
        let on_disk = open_as(&side.server.store, &fs, round % 4 == 1);
        let mut queued_own_words = Side::nothing_queued();
        for (number, step) in steps.iter().enumerate() {
            let Some(bytes) = request_of(step) else {
                plain.reopen(step.connection);
                side.reopen(step.connection);
                continue;
            };
            let (expected, got) = (plain.run(step.connection, &bytes), side.run(step.connection, &bytes));
            let is_compared = crate::replay::is_compared(step, &NOT_COMPARED, &mut queued_own_words);
            assert!(expected == got || !is_compared, "round {round}, step {number}: {step}");
            if rng.one_in(20) {
                flush_and_drop(&on_disk, side.server.replica.end());
            }
        }
        let now = side.server.clock.now_ms();
        let expected = plain.server.store.digest(now);
        assert_eq!(side.server.store.digest(now), expected, "round {round}");
        assert!(side.server.rounds > 20, "rows are read");

        drop(on_disk);
        fs.crash();
        let fs = fs.recover(Outage::PowerCut { seed: round });
        // Rows are counted anew where the shards are others.
        let shard_count = if round % 2 == 0 { SHARDS } else { SHARDS / 2 };
        let other = Arc::new(store(&side.server.clock, shard_count, None, memory));
        let on_disk = open(&other, &fs);
        let rows = on_disk.recovery_points();
        let flushed = rows[&KeyspaceId(0)];
        other.set_recovery_points(RecoveryPoints { loaded: Lsn(0), rows });
        let records = side.server.replica.kept.lock().expect("no test panics while holding it").take();
        let records = records.unwrap_or_default();
        for (lsn, record) in &records {
            other.replay(&mut Scratch::default(), *lsn, record).expect("a record replays");
        }
        assert!(flushed > Lsn(0) && records.last().is_some_and(|last| last.0 >= flushed));
        assert_eq!(other.digest(now), expected, "round {round}");
        flush_and_drop(&on_disk, side.server.replica.end());
        for db in (0..16).map(DbIndex) {
            assert_eq!(other.len(db), plain.server.store.len(db), "round {round}");
        }
        assert_eq!(other.digest(now), expected, "round {round}");
    }
}

#[test]
fn a_flush_that_the_log_or_the_disk_refuses_is_made_up_for_by_the_next() {
    let (mut server, fs) = (TestServer::new(memory), SimFs::new(1));
    let client = server.connect();
    let databases = open(&server.store, &fs);
    server.run(client, &["SET", "key", "value"]);
    let mut flush = databases.begin_flush(|| server.replica.end()).expect("nobody else locks");
    while flush.walk() == FlushProgress::More {}
    assert!(matches!(flush.install(|_| Err("full")), Err(FlushError::Log("full"))));
    flush.end();
    fs.set_capacity(Some(0));
    let mut flush = databases.begin_flush(|| server.replica.end()).expect("nobody else locks");
    while flush.walk() == FlushProgress::More {}
    assert!(matches!(flush.install(|_| Ok::<_, Infallible>(())), Err(FlushError::Rows(_))));
    flush.end();
    databases.drop_clean(usize::MAX);
    fs.set_capacity(None);
    assert_eq!(server.run(client, &["GET", "key"]), "$5\r\nvalue\r\n");
    assert_eq!(server.rounds, 0, "a change that no row has stays in memory");
    flush_and_drop(&databases, server.replica.end());
    assert_eq!(server.run(client, &["GET", "key"]), "$5\r\nvalue\r\n");
    assert_eq!(server.rounds, 1);
}

/// A flush that could not be installed is repeated without being walked again, and then holds its own cut and no more.
#[test]
fn a_flush_is_installed_at_a_second_try() {
    let (mut server, fs) = (TestServer::new(memory), SimFs::new(1));
    let client = server.connect();
    let databases = open(&server.store, &fs);
    server.run(client, &["SET", "key", "before"]);
    let mut flush = databases.begin_flush(|| server.replica.end()).expect("nobody else locks");
    while flush.walk() == FlushProgress::More {}
    assert!(matches!(flush.install(|_| Err("full")), Err(FlushError::Log("full"))));
    fs.set_capacity(Some(0));
    assert!(matches!(flush.install(|_| Ok::<_, Infallible>(())), Err(FlushError::Rows(_))));
    assert!(flush.can_repeat());
    server.run(client, &["SET", "key", "after"]);
    server.run(client, &["SET", "new", "value"]);
    fs.set_capacity(None);
    flush.install(|_| Ok::<_, Infallible>(())).expect("the disk takes it");
    flush.end();
    databases.drop_clean(usize::MAX);
    assert_eq!(server.run(client, &["MGET", "key", "new"]), "*2\r\n$5\r\nafter\r\n$5\r\nvalue\r\n");
    fs.crash();
    let fs = fs.recover(Outage::PowerCut { seed: 1 });
    let other = Arc::new(store(&server.clock, SHARDS, None, memory));
    let _databases = open(&other, &fs);
    assert_eq!(other.len(DbIndex(0)).0, 1);
}

/// Rows that the device does not give are named in the error and counted; others are served.
#[test]
fn an_unreadable_row_is_named_and_counted() {
    let (mut server, fs) = (TestServer::new(memory), SimFs::new(1));
    let client = server.connect();
    let databases = open(&server.store, &fs);
    server.run(client, &["SET", "key\n", &"v".repeat(100)]);
    flush_and_drop(&databases, server.replica.end());
    server.run(client, &["SET", "resident", "value"]);
    fs.inject(Fault::fail(Op::Read, errno::EIO).below("/data/rows").forever());
    let reply = server.run(client, &["APPEND", "key\n", "more"]);
    assert!(reply.starts_with("-IOERR the row of key 'key\\n' cannot be read: "), "{reply}");
    assert!(reply.ends_with("; nothing was changed\r\n"), "{reply}");
    let reply =
        server.run(client, &["EVAL", "redis.call('SET', 'a', 1) return redis.call('GET', KEYS[1])", "1", "key\n"]);
    assert!(reply.starts_with("-IOERR the row of key "), "{reply}");
    assert_eq!(server.run(client, &["GET", "resident"]), "$5\r\nvalue\r\n");
    let stats = databases.stats();
    assert!(stats.read_errors >= 2, "{stats:?}");
    fs.clear_faults();
    assert_eq!(server.run(client, &["APPEND", "key\n", "more"]), ":104\r\n");
}

/// Flushes that fail: what databases on disk answer, and that others continue.
#[test]
fn writes_that_need_a_flush_wait_and_are_refused_when_flushes_fail() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rows = server.back();
    server.run(client, &["SET", "key", "1"]);
    rows.flush_and_drop();
    let pressure = |store: &Store| {
        store.pressure.set_behind(true);
        store.pressure.set_failure(Some("rows cannot be flushed: the disk is full"));
    };
    let refusal = "MISCONF rows cannot be flushed: the disk is full. Writes to databases on disk are refused until a \
                   flush succeeds. The server tries again\r\n";
    pressure(&server.store);
    server.feed(client, &request(&[b"SET", b"other", b"2"]));
    assert_eq!(server.written(client), b"", "it waits");
    server.store.pressure.set_refusing(true);
    assert_eq!(String::from_utf8_lossy(&server.send(client, b"")), format!("-{refusal}"));
    assert_eq!(server.run(client, &["INCR", "key"]), format!("-{refusal}"));
    assert_eq!(server.run(client, &["GET", "key"]), "$1\r\n1\r\n");
    server.run(client, &["MULTI"]);
    server.run(client, &["INCR", "key"]);
    let reply = server.run(client, &["EXEC"]);
    assert!(reply.starts_with("-EXECABORT Transaction discarded because of: MISCONF rows cannot"), "{reply}");
    assert_eq!(server.run(client, &["DEL", "key"]), ":1\r\n", "deletions are taken");
    // Below the limit, for want of memory.
    server.store.pressure.set_behind(false);
    server.run(client, &["SET", "key", "1"]);
    server.store.set_budget(1, None, engine_mem::StampMode::Recency);
    assert_eq!(server.run(client, &["SET", "other", "2"]), format!("-{refusal}"));
    let reply = server.run(client, &["EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "other"]);
    assert!(reply.starts_with("-MISCONF rows cannot be flushed"), "{reply}");
    assert_eq!(server.run(client, &["GET", "key"]), "$1\r\n1\r\n");
    server.store.set_budget(0, None, engine_mem::StampMode::Recency);
    server.store.pressure.set_failure(None);
    server.store.pressure.set_refusing(false);
    assert_eq!(server.run(client, &["INCR", "key"]), ":2\r\n");
}

/// A flush that fails half-way leaves rows that reads of the tree can see. The next one took them for rows of before,
/// and counted new keys as overwritten.
#[test]
fn keys_are_counted_once_after_a_flush_that_failed() {
    let (mut server, fs) = (TestServer::new(memory), SimFs::new(1));
    let client = server.connect();
    let databases = open(&server.store, &fs);
    let value = "v".repeat(20_000);
    for number in 0..200 {
        server.run(client, &["SET", &format!("key:{number}"), &value]);
    }
    let mut flush = databases.begin_flush(|| server.replica.end()).expect("nobody else locks");
    while flush.walk() == FlushProgress::More {}
    flush.drain().expect("it goes to memory");
    fs.set_capacity(Some(0));
    assert!(matches!(flush.install(|_| Ok::<_, Infallible>(())), Err(FlushError::Rows(_))));
    flush.end();
    fs.set_capacity(None);
    flush_and_drop(&databases, server.replica.end());
    assert_eq!(server.store.len(DbIndex(0)).0, 200);
    fs.crash();
    let fs = fs.recover(Outage::PowerCut { seed: 1 });
    let other = Arc::new(store(&server.clock, SHARDS, None, memory));
    let _databases = open(&other, &fs);
    assert_eq!(other.len(DbIndex(0)).0, 200);
}

/// A key longer than those of the tree blocked every flush.
#[test]
fn keys_longer_than_those_of_the_tree_have_rows() {
    let (mut server, fs) = (TestServer::with_shards(memory, SHARDS), SimFs::new(1));
    let client = server.connect_listed();
    let databases = open(&server.store, &fs);
    let keys = [65_535, 65_536, 200_000].map(|len| "k".repeat(len));
    for (number, key) in keys.iter().enumerate() {
        server.run(client, &["SET", key, &number.to_string()]);
    }
    flush_and_drop(&databases, server.replica.end());
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(server.run(client, &["GET", key]), format!("$1\r\n{number}\r\n"));
    }
    assert_eq!(server.run(client, &["DEL", &keys[1]]), ":1\r\n");
    flush_and_drop(&databases, server.replica.end());
    assert_eq!(server.store.len(DbIndex(0)).0, 2);
    assert_eq!(server.run(client, &["GET", &keys[1]]), "$-1\r\n");
    let listed = server.run(client, &["KEYS", "*"]);
    assert!(listed.starts_with("*2\r\n") && listed.contains(&keys[0]) && listed.contains(&keys[2]));
    let digest = server.store.digest(server.clock.now_ms());
    fs.crash();
    let fs = fs.recover(Outage::PowerCut { seed: 1 });
    // Rows are counted anew where the shards are others.
    let other = Arc::new(store(&server.clock, SHARDS / 2, None, memory));
    let _databases = open(&other, &fs);
    assert_eq!((other.len(DbIndex(0)).0, other.digest(server.clock.now_ms())), (2, digest));
}

/// A key that is new counts at once: the filters of the tree say that no row has it.
#[test]
fn new_keys_count_before_they_are_flushed() {
    let (mut server, fs) = (TestServer::new(memory), SimFs::new(1));
    let client = server.connect();
    let databases = open(&server.store, &fs);
    for number in 0..100 {
        server.run(client, &["SET", &format!("key:{number}"), "value"]);
    }
    assert_eq!(server.store.len(DbIndex(0)).0, 100);
    flush_and_drop(&databases, server.replica.end());
    server.run(client, &["SET", "key:7", "another"]);
    assert_eq!(server.store.len(DbIndex(0)).0, 100);
    let rounds = server.rounds;
    assert_eq!(server.run(client, &["GET", "absent"]), "$-1\r\n");
    assert_eq!(server.rounds, rounds, "nothing was read");
}

#[test]
fn a_database_that_is_cleared_while_it_is_flushed_stays_empty_after_a_restart() {
    let (mut server, fs) = (TestServer::with_shards(memory, SHARDS), SimFs::new(1));
    let client = server.connect_listed();
    let databases = open(&server.store, &fs);
    for number in 0..500 {
        server.run(client, &["SET", &format!("key:{number}"), "value"]);
    }
    flush_and_drop(&databases, server.replica.end());
    server.run(client, &["SET", "more", "value"]);
    let mut flush = databases.begin_flush(|| server.replica.end()).expect("nobody else locks");
    assert_eq!(server.run(client, &["FLUSHDB"]), "+OK\r\n");
    let walked = std::iter::repeat_with(|| flush.walk()).find(|progress| *progress != FlushProgress::More);
    if walked == Some(FlushProgress::Done) {
        flush.install(|_| Ok::<_, Infallible>(())).expect("the disk takes it");
    }
    flush.end();
    server.run(client, &["SET", "new", "value"]);
    flush_and_drop(&databases, server.replica.end());
    assert_eq!(server.store.len(DbIndex(0)).0, 1);
    let now = server.clock.now_ms();
    let digest = server.store.digest(now);
    fs.crash();
    let fs = fs.recover(Outage::PowerCut { seed: 1 });
    let other = Arc::new(store(&server.clock, SHARDS, None, memory));
    let _databases = open(&other, &fs);
    assert_eq!((other.len(DbIndex(0)).0, other.digest(now)), (1, digest));
}
