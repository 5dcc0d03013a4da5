//! Scripts over engines that fetch rows, and what their records replay.

use crate::harness::{SHARDS, TestServer, fetching, memory, ticketed};
use engine_mem::MemEngine;
use store::shard::ShardEngine;

const ENGINES: [fn(MemEngine) -> ShardEngine; 3] = [memory, fetching, ticketed];

/// Reads a key that it has not declared, writes, then reads and writes others.
const MIXED: &str = "local before = redis.call('GET', 'other') or 'none'
    redis.call('SET', KEYS[1], before .. ARGV[1])
    local list = redis.call('RPUSH', 'list', 'a', 'b')
    local seen = {redis.call('GET', 'third') or 'none', redis.call('LRANGE', 'list', 0, -1)}
    redis.call('SELECT', 3)
    redis.call('INCR', 'counter')
    return {before, list, seen, redis.call('GET', 'counter')}";

/// A row that is lacking before the first change has the script run again; after it, the row is read at once.
#[test]
fn scripts_read_rows_before_and_after_their_first_change() {
    for engine in ENGINES {
        let mut server = TestServer::with_shards(engine, SHARDS);
        let client = server.connect_listed();
        for key in ["other", "third", "list"] {
            server.run(client, &["DEL", key]);
        }
        assert_eq!(server.run(client, &["SET", "other", "1"]), "+OK\r\n");
        let seen = "*2\r\n$4\r\nnone\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n";
        let expected = format!("*4\r\n$1\r\n1\r\n:2\r\n{seen}$1\r\n1\r\n");
        assert_eq!(server.run(client, &["EVAL", MIXED, "1", "key", "x"]), expected);
        assert_eq!(server.run(client, &["GET", "key"]), "$2\r\n1x\r\n");
        assert_eq!(server.run(client, &["EXISTS", "counter"]), ":0\r\n", "the database of a script is its own");
        server.assert_replica_agrees();
    }
}

/// Queued commands before a script have made changes, so that it cannot run again.
#[test]
fn scripts_in_a_transaction_read_rows_at_once() {
    for engine in ENGINES {
        let mut server = TestServer::with_shards(engine, SHARDS);
        let client = server.connect_listed();
        server.run(client, &["SET", "other", "1"]);
        server.run(client, &["MULTI"]);
        server.run(client, &["SET", "first", "1"]);
        server.run(client, &["EVAL", "return redis.call('GET', 'other') .. redis.call('INCR', 'other')", "0"]);
        assert_eq!(server.run(client, &["EXEC"]), "*2\r\n+OK\r\n$2\r\n12\r\n");
        server.assert_replica_agrees();
    }
}

/// A script exchanges databases, so that the command after it reads a row of a keyspace that its queue did not name.
#[test]
fn commands_after_a_script_read_rows_at_once() {
    for engine in ENGINES {
        let mut server = TestServer::with_shards(engine, SHARDS);
        let client = server.connect_listed();
        server.run(client, &["SELECT", "1"]);
        server.run(client, &["SET", "other", "one"]);
        server.run(client, &["SELECT", "0"]);
        server.run(client, &["MULTI"]);
        server.run(client, &["SET", "other", "zero"]);
        server.run(client, &["EVAL", "redis.call('SWAPDB', 0, 1) return redis.call('DBSIZE')", "0"]);
        server.run(client, &["GET", "other"]);
        server.run(client, &["APPEND", "other", "!"]);
        assert_eq!(server.run(client, &["EXEC"]), "*4\r\n+OK\r\n:1\r\n$3\r\none\r\n:4\r\n");
        server.assert_replica_agrees();
    }
}

/// After its first change, a script asks for rows that no store of rows has, although its filter says so of some. Until
/// the locks are opened it is known that there are none.
#[test]
fn absent_rows_are_read_once() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let _rows = server.back();
    let client = server.connect_listed();
    let text = "redis.call('SET', 'a', 1) return redis.call('HSET', KEYS[1], 'field', 'value')";
    for number in 0..500 {
        assert_eq!(server.run(client, &["EVAL", text, "1", &format!("absent:{number}")]), ":1\r\n");
    }
}

/// A library is a change of its own, and what a function changes is the record of its call. A missing row has the
/// function run again.
#[test]
fn functions_run_over_every_engine() {
    const LIBRARY: &str = "#!lua name=lib
        server.register_function('mixed', function(keys, args)
            local before = server.call('GET', 'other') or 'none'
            server.call('SET', keys[1], before .. args[1])
            return server.call('GET', 'third') or before
        end)";
    for engine in ENGINES {
        let mut server = TestServer::with_shards(engine, SHARDS);
        let client = server.connect_listed();
        assert_eq!(server.run(client, &["FUNCTION", "LOAD", LIBRARY]), "$3\r\nlib\r\n");
        server.run(client, &["SET", "other", "1"]);
        assert_eq!(server.run(client, &["FCALL", "MIXED", "1", "key", "x"]), "$1\r\n1\r\n");
        assert_eq!(server.run(client, &["GET", "key"]), "$2\r\n1x\r\n");
        assert_eq!(server.run(client, &["FLUSHALL"]), "+OK\r\n");
        assert_eq!(server.run(client, &["FCALL", "mixed", "1", "key", "x"]), "$4\r\nnone\r\n", "FLUSHALL keeps it");
        server.assert_replica_agrees();
        assert_eq!(server.run(client, &["FUNCTION", "FLUSH"]), "+OK\r\n");
        assert_eq!(server.run(client, &["FCALL", "mixed", "1", "key", "x"]), "-ERR Function not found\r\n");
        server.assert_replica_agrees();
    }
}

const READ_ONLY: &str = "-READONLY You can't write against a read only replica.";
const MASTER_DOWN: &str = "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n";

/// A replica, as Valkey 9.1 answers: what scripts and functions declare stands for what their rows say.
#[test]
fn declared_flags_decide_what_runs_on_a_replica() {
    const LIBRARY: &str = "#!lua name=lib
        server.register_function('writes', function() return server.call('SET', 'k', 1) end)
        server.register_function{function_name='reads', callback=function() return 2 end, flags={'no-writes'}}
        server.register_function{
            function_name='stale', callback=function() return 3 end, flags={'no-writes', 'allow-stale'}
        }";
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    server.run(client, &["FUNCTION", "LOAD", LIBRARY]);
    server.run(client, &["SCRIPT", "LOAD", "#!lua\nreturn 1"]);
    server.store.gate.set_replica(true, true, false);
    let refused = format!("{READ_ONLY}\r\n");
    let write = "return redis.call('SET', 'k', 1)";
    for (request, expected) in [
        (&["EVAL", "#!lua\nreturn 1", "0"][..], &*refused),
        (&["EVALSHA", "cb70127618f0b0be70c53cf6bfcfa54a29d9b0c0", "0"], &refused),
        (&["FCALL", "writes", "0"], &refused),
        (&["FCALL_RO", "writes", "0"], &refused),
        (&["EVAL", "#!lua flags=no-writes\nreturn 1", "0"], ":1\r\n"),
        (&["EVAL", "return 1", "0"], ":1\r\n"),
        (&["FCALL", "reads", "0"], ":2\r\n"),
        (&["EVAL", write, "0"], &format!("{READ_ONLY} script: on @user_script:1.\r\n")),
    ] {
        assert_eq!(server.run(client, request), expected, "{request:?}");
    }
    server.run(client, &["MULTI"]);
    assert_eq!(server.run(client, &["EVAL", write, "0"]), "+QUEUED\r\n");
    assert_eq!(server.run(client, &["EVAL", "#!lua\nreturn 1", "0"]), refused);
    assert!(server.run(client, &["EXEC"]).starts_with("-EXECABORT"));

    // And without a link.
    server.store.gate.set_stale(true);
    let on_stale =
        |line: u32| format!("-ERR Can not execute the command on a stale replica script: on @user_script:{line}.\r\n");
    for (request, expected) in [
        (&["EVAL", "#!lua flags=no-writes\nreturn 1", "0"][..], MASTER_DOWN),
        (&["EVAL", "#!lua flags=no-writes,allow-stale\nreturn redis.call('GET', 'k')", "0"], &on_stale(2)),
        (&["EVAL", "#!lua flags=no-writes,allow-stale\nreturn redis.call('ECHO', 'x')", "0"], "$1\r\nx\r\n"),
        (&["EVAL", "return 1", "0"], MASTER_DOWN),
        (&["EVAL_RO", "return 1", "0"], MASTER_DOWN),
        (&["FCALL", "reads", "0"], MASTER_DOWN),
        (&["FCALL", "stale", "0"], ":3\r\n"),
        (&["FCALL", "absent", "0"], "-ERR Function not found\r\n"),
    ] {
        assert_eq!(server.run(client, request), expected, "{request:?}");
    }
    server.run(client, &["MULTI"]);
    assert_eq!(server.run(client, &["EVAL", "return 1", "0"]), "+QUEUED\r\n");
    assert_eq!(server.run(client, &["FCALL", "stale", "0"]), "+QUEUED\r\n");
    assert_eq!(server.run(client, &["EXEC"]), format!("*2\r\n{MASTER_DOWN}:3\r\n"));
    server.run(client, &["MULTI"]);
    assert_eq!(server.run(client, &["FCALL", "reads", "0"]), MASTER_DOWN);
    assert!(server.run(client, &["EXEC"]).starts_with("-EXECABORT"));
}

/// What a script has changed before it raised is kept, and is in its record.
#[test]
fn changes_before_an_error_stay() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let reply = server.run(client, &["EVAL", "redis.call('SET', 'a', 1) error('late')", "0"]);
    assert_eq!(reply, "-ERR user_script:1: late script: on @user_script:1.\r\n");
    assert_eq!(server.run(client, &["GET", "a"]), "$1\r\n1\r\n");
    server.assert_replica_agrees();
}

/// A reply that names one string many times takes little memory of the script: its length has a limit of its own. The
/// connection stays in either case.
#[test]
fn replies_of_scripts_are_bounded() {
    const REPEATS: &str = "local text, all = string.rep('x', 2 ^ 20), {}
        for i = 1, ARGV[1] do all[i] = text end
        redis.call('INCR', 'runs')
        return all";
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let reply = server.run(client, &["EVAL", REPEATS, "0", "300"]);
    let begin: String = reply.chars().take(60).collect();
    assert_eq!(begin, "-ERR the reply would be longer than 192 MB\r\n");
    let whole = server.run(client, &["EVAL", REPEATS, "0", "50"]);
    let each = format!("$1048576\r\n{}\r\n", "x".repeat(1 << 20));
    assert!(whole == format!("*50\r\n{}", each.repeat(50)), "{} bytes", whole.len());
    assert_eq!(server.run(client, &["GET", "runs"]), "$1\r\n2\r\n");
}
