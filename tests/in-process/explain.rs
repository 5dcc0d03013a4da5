//! MEMORY EXPLAIN: its replies, what it promises while keys come and go, and that its figures are those of MEMORY
//! USAGE.

use crate::fake_log::FakeLog;
use crate::harness::{SHARDS, TestServer, memory};
use crate::reply::Reply;
use crate::served::{Client, Served};
use admin::Explanations;
use base::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::compression::{Codec, Settings};

/// Walks to the end whatever is asked for, and gives what is answered then.
fn explained(server: &mut TestServer, client: usize) -> String {
    let explanations = server.shared.host.part::<admin::Needed, Arc<Explanations>>().clone();
    while explanations.work() {}
    server.executor.begin_turn();
    server.executor.end_blocks();
    String::from_utf8_lossy(&server.replies(client)).into_owned()
}

fn explain(server: &mut TestServer, client: usize, words: &[&str]) -> String {
    let early = server.run(client, &[&["MEMORY", "EXPLAIN"], words].concat());
    if early.is_empty() { explained(server, client) } else { early }
}

#[test]
fn replies() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let none = "*16\r\n$11\r\nduration.ms\r\n:0\r\n$4\r\nkeys\r\n:0\r\n$13\r\nlogical.bytes\r\n:0\r\n$12\r\n\
                stored.bytes\r\n:0\r\n$14\r\noverhead.bytes\r\n:0\r\n$15\r\ncompressed.keys\r\n:0\r\n$5\r\nratio\r\n\
                $4\r\n1.00\r\n$8\r\n\
                prefixes\r\n*0\r\n";
    assert_eq!(explain(&mut server, client, &[]), none);
    server.run(client, &["SET", "user:1", "0123456789"]);
    server.run(client, &["SET", "user:2", "0123456789abcdefghij"]);
    server.run(client, &["SADD", "tags", "a", "b"]);
    let row = |maps: char, name: &str, figures: [u64; 5], largest: &[(&str, u64)]| {
        let pairs = |count: usize| if maps == '*' { 2 * count } else { count };
        // What is not compressed, and too short to be.
        let [keys, logical, stored, overhead, sample] = figures;
        let mut row = format!(
            "{maps}{}\r\n$6\r\nprefix\r\n${}\r\n{name}\r\n$4\r\nkeys\r\n:{keys}\r\n$13\r\nlogical.bytes\r\n\
             :{logical}\r\n$12\r\nstored.bytes\r\n:{stored}\r\n$14\r\noverhead.bytes\r\n:{overhead}\r\n$15\r\n\
             compressed.keys\r\n\
             :0\r\n\
             $5\r\nratio\r\n$4\r\n1.00\r\n$12\r\nmissed.bytes\r\n:0\r\n$7\r\nlargest\r\n*{}\r\n",
            pairs(11),
            name.len(),
            largest.len(),
        );
        for (key, bytes) in largest {
            row += &format!("*2\r\n${}\r\n{key}\r\n:{bytes}\r\n", key.len());
        }
        row += &format!(
            "$16\r\ncompression.usec\r\n:0\r\n$6\r\nsample\r\n{maps}{}\r\n$4\r\nkeys\r\n:{keys}\r\n",
            pairs(6)
        );
        for name in ["logical.bytes", "stored.bytes", "lzf.bytes", "lz4.bytes", "zstd.bytes"] {
            row += &format!("${}\r\n{name}\r\n:{sample}\r\n", name.len());
        }
        row
    };
    for maps in ['*', '%'] {
        if maps == '%' {
            server.run(client, &["HELLO", "3"]);
        }
        let users = row(maps, "user:", [2, 42, 70, 28, 30], &[("user:2", 39), ("user:1", 31)]);
        let tags = row(maps, "", [1, 9, 23, 14, 5], &[("tags", 23)]);
        let total = |keys: u64, logical: u64, stored: u64, rows: &str, count: usize| {
            format!(
                "{maps}{}\r\n$11\r\nduration.ms\r\n:0\r\n$4\r\nkeys\r\n:{keys}\r\n$13\r\nlogical.bytes\r\n\
                 :{logical}\r\n$12\r\nstored.bytes\r\n:{stored}\r\n$14\r\noverhead.bytes\r\n:{}\r\n$15\r\n\
                 compressed.keys\r\n:0\r\n\
                 $5\r\nratio\r\n$4\r\n1.00\r\n\
                 $8\r\nprefixes\r\n*{count}\r\n{rows}",
                if maps == '*' { 16 } else { 8 },
                stored - logical,
            )
        };
        let all = total(3, 51, 93, &(users.clone() + &tags), 2);
        assert_eq!(explain(&mut server, client, &[]), all);
        assert_eq!(explain(&mut server, client, &["depth", "32"]), all);
        assert_eq!(explain(&mut server, client, &["DEPTH", "5", "PREFIX", "us"]), total(2, 42, 70, &users, 1));
        let split = row(maps, "us", [2, 42, 70, 28, 30], &[("user:2", 39), ("user:1", 31)]);
        assert_eq!(explain(&mut server, client, &["PREFIX", "us", "SEPARATOR", "/"]), total(2, 42, 70, &split, 1));
    }
    for (words, error) in [
        (&["PREFIX"][..], "ERR syntax error"),
        (&["COUNT", "1"], "ERR syntax error"),
        (&["DEPTH", "0"], "ERR DEPTH must be between 1 and 32"),
        (&["DEPTH", "33"], "ERR DEPTH must be between 1 and 32"),
        (&["DEPTH", "x"], "ERR value is not an integer or out of range"),
        (&["SEPARATOR", ""], "ERR SEPARATOR must be one byte"),
        (&["SEPARATOR", "::"], "ERR SEPARATOR must be one byte"),
        (&["PREFIX", &"x".repeat(513)], "ERR PREFIX must not be longer than 512 bytes"),
    ] {
        assert_eq!(explain(&mut server, client, words), format!("-{error}\r\n"), "{words:?}");
    }
    assert_eq!(server.run(client, &["MULTI"]), "+OK\r\n");
    assert!(server.run(client, &["MEMORY", "EXPLAIN"]).starts_with("-ERR Command 'memory|explain' not allowed inside"));
}

/// What is not durable yet is not shown while replies wait for the log.
#[test]
fn what_could_be_lost_is_not_told() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let log = FakeLog::new(true);
    log.install(&server.store);
    let client = server.connect_listed();
    server.feed(client, b"SET k v\r\n");
    log.sync_to(1);
    assert_eq!(server.written(client), b"+OK\r\n");
    let other = server.connect_listed();
    server.feed(other, b"SET j v\r\n");
    server.feed(client, b"MEMORY EXPLAIN\r\nPING\r\n");
    assert_eq!(explained(&mut server, client), "");
    log.sync_to(2);
    assert!(explained(&mut server, client).ends_with("+PONG\r\n"));
}

/// A walk ends with the connection that waits, and CLIENT UNBLOCK ends the wait.
#[test]
fn walks_end_with_who_waits() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let (client, other) = (server.connect_listed(), server.connect_listed());
    let explanations = server.shared.host.part::<admin::Needed, Arc<Explanations>>().clone();
    let id = server.run(client, &["CLIENT", "ID"]);
    for how in ["TIMEOUT", "ERROR"] {
        assert_eq!(server.run(client, &["MEMORY", "EXPLAIN"]), "");
        assert!(explanations.work());
        assert_eq!(server.run(other, &["CLIENT", "UNBLOCK", id.trim_matches([':', '\r', '\n']), how]), ":1\r\n");
        server.executor.end_wait(client);
        assert_eq!(
            server.run(client, &["PING"]),
            "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n+PONG\r\n",
            "{how}"
        );
        while explanations.work() {}
        assert!(!explanations.has_work());
    }
    assert_eq!(explain(&mut server, other, &["PREFIX", "none"]).lines().next(), Some("*16"));
}

/// A map as it comes in RESP2.
fn fields(reply: &Reply) -> BTreeMap<String, Reply> {
    reply.list().chunks(2).map(|pair| (pair[0].text().to_owned(), pair[1].clone())).collect()
}

/// Keys and stored bytes of each prefix, and of all.
fn rows(reply: &Reply) -> (BTreeMap<String, (i64, i64)>, (i64, i64)) {
    let figures = |fields: &BTreeMap<String, Reply>| {
        let [keys, logical, stored, overhead] =
            ["keys", "logical.bytes", "stored.bytes", "overhead.bytes"].map(|name| fields[name].int());
        assert!(logical > 0 || keys == 0);
        assert_eq!(logical + overhead, stored);
        (keys, stored)
    };
    let all = fields(reply);
    let of_prefixes = all["prefixes"].list().iter().map(|row| {
        let row = fields(row);
        (row["prefix"].text().to_owned(), figures(&row))
    });
    (of_prefixes.collect(), figures(&all))
}

const KINDS: [&str; 6] = ["string", "hash", "set", "zset", "list", "stream"];

/// Adds an element, or more, to a key of its kind.
fn add(client: &mut Client, kind: &str, key: &str, number: u64) {
    let text = format!("element {number} {}", "x".repeat(number as usize % 40));
    let (score, id) = (number.to_string(), format!("{}-0", number + 1));
    let reply = match kind {
        "string" => client.run(&["APPEND", key, &text]),
        "hash" => client.run(&["HSETEX", key, "EX", "1000", "FIELDS", "1", &text, &text]),
        "set" => client.run(&["SADD", key, &text]),
        "zset" => client.run(&["ZADD", key, &score, &text]),
        "list" => client.run(&["RPUSH", key, &text]),
        _ => client.run(&["XADD", key, &id, "field", &text]),
    };
    assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
}

/// The stored bytes of a prefix are those of its keys, for every type, packed and as a tree.
#[test]
fn prefixes_cost_what_their_keys_cost() {
    let server = Served::start(&["--workers", "2", "--hash-max-listpack-entries", "16"]);
    let mut client = server.connect();
    let mut costs = BTreeMap::<String, (i64, i64)>::new();
    for kind in KINDS {
        for (key, elements) in [("one", 1), ("few", 10), ("many", 2000)] {
            let key = format!("{kind}:{key}");
            (0..elements).for_each(|number| add(&mut client, kind, &key, number));
            client.run(&["EXPIRE", &key, "1000"]);
            let cost = costs.entry(format!("{kind}:")).or_default();
            *cost = (cost.0 + 1, cost.1 + client.run(&["MEMORY", "USAGE", &key]).int());
        }
    }
    let (explained, total) = rows(&client.run(&["MEMORY", "EXPLAIN"]));
    assert_eq!(explained, costs);
    assert_eq!(total, costs.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)));
}

/// With several workers, while keys come and go so that tables split and merge: what stays is counted once, by every
/// walk.
#[test]
fn what_stays_is_counted_once() {
    const STAYING: i64 = 5_000;
    const CHANGING: u64 = 30_000;
    let server = Served::start(&["--workers", "3"]);
    let mut client = server.connect();
    for first in (0..STAYING).step_by(100) {
        let requests: Vec<[String; 3]> = (first..first + 100)
            .map(|number| ["SET".into(), format!("stay:{}:{number}", number % 7), "value".into()])
            .collect();
        let requests: Vec<Vec<&str>> =
            requests.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
        client.send(&requests.iter().map(Vec::as_slice).collect::<Vec<_>>());
        (0..100).for_each(|_| assert_eq!(client.reply(), Some(Reply::Simple("OK".into()))));
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (mut changer, mut rng, is_over) = (server.connect(), Rng::new(thread), &is_over);
            scope.spawn(move || {
                let mut grows = true;
                while !is_over.load(Ordering::Relaxed) {
                    let names: Vec<String> = (0..200).map(|_| format!("go:{}", rng.below(CHANGING))).collect();
                    let command = if grows { "INCR" } else { "DEL" };
                    let requests: Vec<[&str; 2]> = names.iter().map(|name| [command, name]).collect();
                    changer.send(&requests.iter().map(|words| &words[..]).collect::<Vec<_>>());
                    names.iter().for_each(|_| drop(changer.reply().expect("an open connection")));
                    grows ^= rng.one_in(100);
                }
            });
        }
        let walkers: Vec<_> = (0..3)
            .map(|number: usize| {
                let mut walker = server.connect();
                scope.spawn(move || {
                    for depth in ["1", "2", "1", "2"].iter().cycle().take(8 + number) {
                        let (rows, (keys, _)) = rows(&walker.run(&["MEMORY", "EXPLAIN", "DEPTH", depth]));
                        let staying: i64 =
                            rows.iter().filter(|(name, _)| name.starts_with("stay:")).map(|(_, row)| row.0).sum();
                        assert_eq!(staying, STAYING);
                        assert_eq!(
                            rows.len() - usize::from(rows.contains_key("go:")),
                            if *depth == "1" { 1 } else { 7 }
                        );
                        assert_eq!(keys, rows.values().map(|row| row.0).sum::<i64>());
                    }
                })
            })
            .collect();
        // One that does not wait for its reply.
        let mut gone = server.connect();
        gone.send(&[&["MEMORY", "EXPLAIN"]]);
        drop(gone);
        let results: Vec<_> = walkers.into_iter().map(|walker| walker.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.expect("a walker ends well"));
    });
}

/// The report on compressed values has their savings, their cost, and what other codecs would store of a sample.
#[test]
fn compression_is_told_by_prefix() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let settings = |codec| Settings { codec, on_write: true, ..Settings::default() };
    server.store.compression.set(settings(Codec::Lz4));
    let text = "words and words and other words, again and again and once more ".repeat(4);
    for n in 0..100 {
        server.run(client, &["SET", &format!("text:{n}"), &format!("{n}{text}")]);
        server.run(client, &["HSET", &format!("hash:{n}"), "field", &format!("{n}{text}")]);
    }
    server.run(client, &["HELLO", "3"]);
    let explained = explain(&mut server, client, &[]);
    let rows: Vec<&str> = explained.split("\r\nprefix\r\n").collect();
    let row = |name: &str| *rows.iter().find(|row| row.contains(name)).expect("it is told");
    let figure = |row: &str, name: &str, nth: usize| {
        let rest = row.split(&format!("\r\n{name}\r\n:")).nth(nth + 1).expect("it is a field");
        rest.split("\r\n").next().and_then(|number| number.parse::<u64>().ok()).expect("it is a number")
    };
    let (texts, hashes) = (row("text:"), row("hash:"));
    assert_eq!((figure(texts, "compressed.keys", 0), figure(hashes, "compressed.keys", 0)), (100, 0));
    assert!(hashes.contains("\r\nratio\r\n$4\r\n1.00\r\n"), "{hashes}");
    assert!(!texts.contains("\r\nratio\r\n$4\r\n1.00\r\n"), "{texts}");
    let logical: u64 = (0..100).map(|n| (format!("text:{n}").len() + format!("{n}{text}").len()) as u64).sum();
    assert_eq!(figure(texts, "logical.bytes", 0), logical);
    assert!(figure(texts, "stored.bytes", 0) * 2 < logical);
    for row in [texts, hashes] {
        let sample = |name| figure(row, name, 1);
        assert_eq!(sample("keys"), 16);
        assert!((16 * text.len() as u64..8192).contains(&sample("logical.bytes")));
        for codec in ["lzf", "lz4", "zstd"] {
            let bytes = figure(row, &format!("{codec}.bytes"), 0);
            assert!(bytes > 0 && bytes * 2 < sample("logical.bytes"), "{row}");
        }
    }
    assert_eq!(figure(texts, "stored.bytes", 1), figure(texts, "lz4.bytes", 0), "as it is stored");
    assert_eq!(figure(hashes, "stored.bytes", 1), figure(hashes, "logical.bytes", 1));
}

/// Keys of a database on disk count wherever they are; one that is not in memory costs none.
#[test]
fn keys_on_disk_count_without_memory() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let mut rows = server.back();
    for number in 0..100 {
        server.run(client, &["SET", &format!("user:{number}"), "0123456789"]);
    }
    rows.flush_and_drop();
    let cold = explain(&mut server, client, &[]);
    assert!(cold.contains("$4\r\nkeys\r\n:100\r\n") && cold.contains("stored.bytes\r\n:0\r\n"), "{cold}");
    server.run(client, &["SET", "user:1", "0123456789"]);
    let warm = explain(&mut server, client, &[]);
    assert!(warm.contains("$4\r\nkeys\r\n:100\r\n") && !warm.contains("stored.bytes\r\n:0\r\n"), "{warm}");
}
