//! Big collections of which leaves are kept compressed: commands, checkpoints and restarts see no difference.

use crate::checkpoint::{checkpoint, loaded};
use crate::compression::{IDLE_SECONDS, compressed, document, pass_of, run_passes, settings};
use crate::harness::{SHARDS, START_MS, TestServer, memory};
use base::Clock;
use checkpoint::DataDir;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Store;
use store::compression::{Codec, LongValues, Pass, Settings};
use vfs::SimFs;

const ELEMENTS: u32 = 400;

/// A hash `docs`, a list `queue`, a stream `events`, a set `texts` and a sorted set `ranked` of documents, and short
/// elements between them.
fn fill(server: &mut TestServer, client: usize) {
    for n in 0..ELEMENTS {
        let text = document(n);
        server.run(client, &["HSET", "docs", &format!("doc:{n}"), &text, &format!("views:{n}"), &n.to_string()]);
        server.run(client, &["RPUSH", "queue", &text, &n.to_string()]);
        server.run(client, &["SADD", "texts", &text, &n.to_string()]);
        server.run(client, &["ZADD", "ranked", &(n % 50).to_string(), &text, &n.to_string(), &format!("short {n}")]);
        server.run(client, &["XADD", "events", &format!("{}-1", n + 1), "body", &text, "n", &n.to_string()]);
    }
}

/// Time passes without a use of anything, and passes see it.
fn grow_cold(server: &mut TestServer, pass: &mut Pass) {
    for _ in 0..5 {
        server.pass_ms(u64::from(IDLE_SECONDS) * 1000 / 4 + 100);
        run_passes(pass, &server.store);
    }
}

fn thawed(store: &Store) -> u64 {
    store.compression.leaves_thawed()
}

/// Idle leaves are compressed and others are not. A read thaws what it needs, an edit stores that uncompressed, and
/// with compression off everything is as before.
#[test]
fn leaves_of_big_collections_are_compressed() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let mut pass = pass_of(&server);
    fill(&mut server, client);
    let (before, digest) = (server.store.memory.total(), server.store.digest(START_MS));
    server.store.compression.set(settings(Codec::Zstd, false));
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), 0, "all were used just now");
    grow_cold(&mut server, &mut pass);
    let used = server.store.memory.compressed();
    assert!(used.values > 50 && used.stored_bytes * 3 < used.logical_bytes, "{used:?}");
    assert!(server.store.memory.total() * 2 < before, "{} of {before}", server.store.memory.total());
    assert_eq!(thawed(&server.store), 0);
    for words in [
        &["HLEN", "docs"][..],
        &["LLEN", "queue"],
        &["XLEN", "events"],
        &["SCARD", "texts"],
        &["ZCARD", "ranked"],
        &["TYPE", "docs"],
        &["COPY", "docs", "copy"],
        &["DEL", "copy"],
        &["COPY", "ranked", "copy"],
        &["DEL", "copy"],
    ] {
        server.run(client, words);
    }
    assert_eq!((thawed(&server.store), compressed(&server)), (0, used.values), "none of these reads");

    let expected = format!("${}\r\n{}\r\n", document(7).len(), document(7));
    for _ in 0..3 {
        assert_eq!(server.run(client, &["HGET", "docs", "doc:7"]), expected);
        assert_eq!(server.run(client, &["LINDEX", "queue", "14"]), expected);
        assert!(server.run(client, &["XRANGE", "events", "8", "8"]).contains(&document(7)));
        assert_eq!(server.run(client, &["SISMEMBER", "texts", &document(7)]), ":1\r\n");
        assert_eq!(server.run(client, &["ZSCORE", "ranked", &document(7)]), "$1\r\n7\r\n");
    }
    assert_eq!((thawed(&server.store), compressed(&server)), (5, used.values), "a leaf each, and once");
    let thawed_bytes = || server.store.memory.of(engine_mem::MemoryKind::Thawed);
    assert!((1..30_000).contains(&thawed_bytes()), "{}", thawed_bytes());
    grow_cold(&mut server, &mut pass);
    let thawed_bytes = server.store.memory.of(engine_mem::MemoryKind::Thawed);
    assert_eq!((thawed_bytes, compressed(&server)), (0, used.values), "nobody has read it for a while");
    server.run(client, &["HSET", "docs", "doc:7", "short"]);
    server.run(client, &["LSET", "queue", "14", "short"]);
    assert_eq!(compressed(&server), used.values - 2, "an edited leaf is stored as it is");
    assert_eq!(server.run(client, &["HGET", "docs", "doc:7"]), "$5\r\nshort\r\n");
    server.run(client, &["SREM", "texts", &document(7)]);
    assert_eq!(compressed(&server), used.values - 3);
    server.run(client, &["ZADD", "ranked", "8", "short 7"]);
    let by_member_and_by_score = used.values - 6..used.values - 3;
    assert!(by_member_and_by_score.contains(&compressed(&server)));
    assert_eq!(server.run(client, &["SISMEMBER", "texts", &document(7)]), ":0\r\n");
    assert_eq!(server.run(client, &["ZCOUNT", "ranked", "7", "7"]), ":8\r\n");
    server.assert_replica_agrees();
    server.run(client, &["SADD", "texts", &document(7)]);
    server.run(client, &["ZADD", "ranked", "7", "short 7"]);
    server.run(client, &["HSET", "docs", "doc:7", &document(7)]);
    server.run(client, &["LSET", "queue", "14", &document(7)]);
    assert_eq!(server.store.digest(START_MS), digest);
    for codec in [Codec::Lz4, Codec::Off] {
        server.store.compression.set(settings(codec, false));
        grow_cold(&mut server, &mut pass);
        assert_eq!(compressed(&server) > 50, codec != Codec::Off, "{codec:?}");
        assert_eq!(server.store.digest(START_MS), digest);
    }
    assert_eq!(server.store.memory.compressed(), engine_mem::CompressedUse::default());
    assert_eq!(server.store.memory.of(engine_mem::MemoryKind::Thawed), 0);
    server.assert_replica_agrees();
}

/// Elements that are too long for workers are compressed by a separate thread, one by one, and decompressed
/// again; one that is beyond all bounds stays as it is.
#[test]
fn long_elements_are_not_for_workers() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let mut pass = pass_of(&server);
    let long = |n: u32| document(n).repeat(400);
    for n in 0..5 {
        server.run(client, &["HSET", "docs", &n.to_string(), &long(n), &format!("short {n}"), "value"]);
        server.run(client, &["RPUSH", "queue", &long(n), "short"]);
        server.run(client, &["SADD", "texts", &long(n)]);
        server.run(client, &["ZADD", "ranked", "1", &long(n)]);
        server.run(client, &["XADD", "events", &format!("{}-1", n + 1), "body", &long(n)]);
    }
    server.run(client, &["RPUSH", "queue", &document(1).repeat(4_000)]);
    let digest = server.store.digest(START_MS);
    server.store.compression.set(settings(Codec::Zstd, false));
    grow_cold(&mut server, &mut pass);
    assert_eq!(compressed(&server), 0, "workers leave them alone");
    let mut values = LongValues::default();
    let mut work_off = |server: &TestServer| while values.step(&server.store).is_some() {};
    work_off(&server);
    // A sorted set has members twice, and the last node of a stream, of which each has one of these entries, is added
    // to.
    assert_eq!(compressed(&server), 5 + 5 + 5 + 10 + 4);
    let used = server.store.memory.compressed();
    assert!(used.stored_bytes * 100 < used.logical_bytes, "{used:?}");
    let expected = format!("${}\r\n{}\r\n", long(3).len(), long(3));
    assert_eq!(server.run(client, &["HGET", "docs", "3"]), expected);
    assert_eq!(server.run(client, &["LINDEX", "queue", "6"]), expected);
    assert_eq!(server.run(client, &["SISMEMBER", "texts", &long(3)]), ":1\r\n");
    assert_eq!(server.run(client, &["ZSCORE", "ranked", &long(3)]), "$1\r\n1\r\n");
    assert!(server.run(client, &["XRANGE", "events", "4", "4"]).contains(&long(3)));
    server.run(client, &["HSET", "docs", "3", "short"]);
    assert_eq!(compressed(&server), used.values - 1);
    server.run(client, &["HSET", "docs", "3", &long(3)]);
    assert_eq!(server.store.digest(START_MS), digest);
    server.store.compression.set(settings(Codec::Off, false));
    grow_cold(&mut server, &mut pass);
    assert!(compressed(&server) > 20);
    work_off(&server);
    assert_eq!(server.store.memory.compressed(), engine_mem::CompressedUse::default());
    assert_eq!(server.store.memory.of(engine_mem::MemoryKind::Thawed), 0);
    assert_eq!(server.store.digest(START_MS), digest);
    server.assert_replica_agrees();
}

/// What commands say about collections whose leaves are compressed is what they say about others, also where they edit
/// what they read, and where times of fields come and go.
#[test]
fn commands_see_no_difference() {
    let (mut cold, mut plain) = (TestServer::with_shards(memory, SHARDS), TestServer::with_shards(memory, SHARDS));
    let clients = [&mut cold, &mut plain].map(|server| {
        let client = server.connect_listed();
        fill(server, client);
        client
    });
    let mut pass = pass_of(&cold);
    cold.store.compression.set(Settings { idle_seconds: 0, ..settings(Codec::Zstd, false) });
    let long = document(9);
    let text = document(33);
    let commands: &[&[&str]] = &[
        &["HGET", "docs", "doc:1"],
        &["HMGET", "docs", "doc:2", "views:3", "none", "doc:399"],
        &["HSTRLEN", "docs", "doc:4"],
        &["HEXISTS", "docs", "doc:5"],
        &["HSETNX", "docs", "doc:5", "other"],
        &["HINCRBY", "docs", "views:6", "5"],
        &["HINCRBYFLOAT", "docs", "views:6", "0.5"],
        &["HDEL", "docs", "doc:6", "none"],
        &["HEXPIRE", "docs", "100", "FIELDS", "2", "doc:8", "views:8"],
        &["HTTL", "docs", "FIELDS", "2", "doc:8", "doc:9"],
        &["HPERSIST", "docs", "FIELDS", "1", "doc:8"],
        &["HGETEX", "docs", "EX", "50", "FIELDS", "1", "doc:10"],
        &["HGETDEL", "docs", "FIELDS", "2", "doc:11", "none"],
        &["LRANGE", "queue", "0", "20"],
        &["LRANGE", "queue", "-30", "-1"],
        &["LRANGE", "queue", "300", "420"],
        &["LINDEX", "queue", "-3"],
        &["LPOS", "queue", &text],
        &["LPOS", "queue", &text, "RANK", "-1"],
        &["LINSERT", "queue", "BEFORE", &text, "before"],
        &["LREM", "queue", "0", "before"],
        &["LSET", "queue", "200", "set"],
        &["LPUSH", "queue", &long],
        &["RPOP", "queue", "3"],
        &["LPOP", "queue"],
        &["LMOVE", "queue", "other", "LEFT", "RIGHT"],
        &["LTRIM", "queue", "5", "-6"],
        &["SORT", "queue", "ALPHA", "LIMIT", "10", "20"],
        &["SORT", "numbers", "BY", "docs->views:*", "GET", "docs->doc:*", "GET", "#"],
        &["DUMP", "queue"],
        &["COPY", "queue", "copy"],
        &["RPUSH", "copy", "more"],
        &["RENAME", "copy", "renamed"],
        &["LRANGE", "renamed", "0", "-1"],
        &["OBJECT", "ENCODING", "docs"],
        &["OBJECT", "ENCODING", "queue"],
        &["SISMEMBER", "texts", &text],
        &["SMISMEMBER", "texts", &text, "none", "17"],
        &["SADD", "texts", &text, "new"],
        &["SREM", "texts", &long, "18", "none"],
        &["SMOVE", "texts", "others", "19"],
        &["SINTERCARD", "2", "texts", "numbered"],
        &["SUNIONSTORE", "union", "texts", "numbered"],
        &["SDIFFSTORE", "left", "texts", "numbered"],
        &["ZSCORE", "ranked", &text],
        &["ZRANK", "ranked", &text, "WITHSCORE"],
        &["ZREVRANK", "ranked", "short 5"],
        &["ZMSCORE", "ranked", &text, "none"],
        &["ZRANGE", "ranked", "10", "30", "WITHSCORES"],
        &["ZRANGE", "ranked", "30", "10", "BYSCORE", "REV", "LIMIT", "5", "20"],
        &["ZCOUNT", "ranked", "(3", "20"],
        &["ZLEXCOUNT", "ranked", "-", "+"],
        &["ZADD", "ranked", "XX", "GT", "60", &text],
        &["ZADD", "ranked", "NX", "3", "new"],
        &["ZINCRBY", "ranked", "1.5", "short 9"],
        &["ZREM", "ranked", &long, "short 10"],
        &["ZREMRANGEBYRANK", "ranked", "20", "25"],
        &["ZREMRANGEBYSCORE", "ranked", "7", "8"],
        &["ZPOPMIN", "ranked", "3"],
        &["ZPOPMAX", "ranked", "2"],
        &["ZRANGESTORE", "part", "ranked", "5", "300"],
        &["ZUNIONSTORE", "joined", "2", "ranked", "texts"],
        &["ZINTERCARD", "2", "ranked", "texts"],
        &["ZDIFFSTORE", "rest", "2", "ranked", "texts"],
        &["XRANGE", "events", "10", "20"],
        &["XREVRANGE", "events", "+", "-", "COUNT", "30"],
        &["XREAD", "COUNT", "5", "STREAMS", "events", "100"],
        &["XDEL", "events", "15-1", "16-1", "300-1"],
        &["XGROUP", "CREATE", "events", "group", "50"],
        &["XREADGROUP", "GROUP", "group", "me", "COUNT", "10", "STREAMS", "events", ">"],
        &["XCLAIM", "events", "group", "you", "0", "52-1"],
        &["XPENDING", "events", "group"],
        &["XTRIM", "events", "MAXLEN", "350"],
        &["XADD", "events", "1000-1", "body", &text],
        &["XLEN", "events"],
        &["XINFO", "STREAM", "renamed"],
        &["HLEN", "docs"],
        &["LLEN", "queue"],
    ];
    for server in [(&mut cold, clients[0]), (&mut plain, clients[1])] {
        server.0.run(server.1, &["RPUSH", "numbers", "20", "30", "11", "390"]);
        server.0.run(server.1, &["SADD", "numbered", "20", "30", "11", "1000", &text]);
    }
    for (number, words) in commands.iter().enumerate() {
        cold.pass_ms(2_000);
        plain.pass_ms(2_000);
        run_passes(&mut pass, &cold.store);
        assert!(compressed(&cold) > 20, "before {words:?}");
        let replies = [cold.run(clients[0], words), plain.run(clients[1], words)];
        assert!(replies[0] == replies[1], "{number}: {words:?}");
    }
    let all = |server: &mut TestServer, client| {
        let reply = ["HGETALL docs", "SMEMBERS texts", "SMEMBERS union"]
            .map(|words| server.run(client, &words.split(' ').collect::<Vec<_>>()));
        let reply = reply.concat();
        let mut lines: Vec<String> = reply.split("\r\n").map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert!(all(&mut cold, clients[0]) == all(&mut plain, clients[1]));
    let dump = |server: &mut TestServer, client: usize| server.run(client, &["DEBUG", "DIGEST-VALUE", "queue"]);
    assert_eq!(dump(&mut cold, clients[0]), dump(&mut plain, clients[1]));
    let now = cold.clock.now_ms();
    assert_eq!(cold.store.digest(now), plain.store.digest(now));
    cold.assert_replica_agrees();
}

/// A checkpoint carries leaves as they are stored, and a start loads them so; what is changed while it is written does
/// not reach it, and the next start after that finds them again.
#[test]
fn leaves_are_carried_as_they_are() {
    let dir = DataDir::open(Arc::new(SimFs::new(1)), Path::new("/data")).expect("the directory opens");
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let mut pass = pass_of(&server);
    fill(&mut server, client);
    server.store.compression.set(settings(Codec::Zstd, false));
    grow_cold(&mut server, &mut pass);
    server.run(client, &["HSET", "docs", "doc:7", "short", "new", "field"]);
    server.run(client, &["HEXPIRE", "docs", "100000", "FIELDS", "1", "new"]);
    server.run(client, &["LSET", "queue", "100", "short"]);
    server.run(client, &["EXPIRE", "queue", "100000"]);
    server.run(client, &["SREM", "texts", &document(3)]);
    server.run(client, &["ZADD", "ranked", "77", &document(4)]);
    server.run(client, &["XADD", "events", "5000-1", "new", "entry"]);
    server.run(client, &["XDEL", "events", "1-1", "77-1"]);
    server.run(client, &["XGROUP", "CREATE", "events", "group", "50"]);
    server.run(client, &["XREADGROUP", "GROUP", "group", "me", "COUNT", "10", "STREAMS", "events", ">"]);
    let spent = |store: &Store| {
        let figures = &store.compression.figures;
        let all = [&figures.compressed_by_pass, &figures.in_vain, &figures.decompressed, &figures.decompressed_by_pass];
        (all.map(|figure| figure.load(Ordering::Relaxed)), thawed(store))
    };
    let (before, used) = (spent(&server.store), server.store.memory.compressed());
    assert!(used.values > 50, "{used:?}");
    let set = checkpoint(&mut server, &dir, 1, 8 << 20, |_| ());
    assert_eq!(spent(&server.store), before, "a checkpoint compresses and decompresses nothing");
    let loaded_once = loaded(&server, &dir, &set);
    assert_eq!(spent(&loaded_once), ([0; 4], 0), "loading decompresses nothing");
    assert_eq!(loaded_once.memory.compressed(), used);
    let now = server.clock.now_ms();
    let digest = server.store.digest(now);
    assert_eq!(loaded_once.digest(now), digest);
    let mut steps = 0;
    let set = checkpoint(&mut server, &dir, 2, 8 << 20, |server| {
        steps += 1;
        server.run(client, &["HSET", "docs", &format!("doc:{}", steps * 3), "later"]);
        server.run(client, &["LPOP", "queue"]);
        server.run(client, &["SREM", "texts", &(steps * 3).to_string()]);
        server.run(client, &["ZPOPMIN", "ranked"]);
        server.run(client, &["RPUSH", "queue", "later"]);
        grow_cold(server, &mut pass);
    });
    assert!(steps > 0, "nothing was changed meanwhile");
    assert_eq!(loaded(&server, &dir, &set).digest(now), digest, "the state at the cut");
    server.assert_replica_agrees();
}
