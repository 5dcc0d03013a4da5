//! What commands for any type do to collections, packed and as trees: they go, expire, move and are copied whole, the
//! record says so, and their memory comes back.

use crate::harness::{SHARDS, TestServer, memory, request};

/// A type, by the request that adds an element to `k`, and the one that counts them.
struct Sample {
    kind: &'static str,
    add: fn(usize) -> Vec<String>,
    count: &'static [&'static str],
}

const SAMPLES: [Sample; 3] = [
    Sample {
        kind: "list",
        add: |number| ["RPUSH", "k", &format!("element:{number}")].map(str::to_owned).to_vec(),
        count: &["LLEN"],
    },
    Sample {
        kind: "set",
        add: |number| ["SADD", "k", &format!("member:{number}")].map(str::to_owned).to_vec(),
        count: &["SCARD"],
    },
    Sample {
        kind: "hash",
        add: |number| ["HSET", "k", &format!("field:{number}"), "value"].map(str::to_owned).to_vec(),
        count: &["HLEN"],
    },
];

/// Fits a packed buffer, and does not.
const SIZES: [usize; 2] = [20, 3000];

fn each(test: impl Fn(&mut TestServer, usize, &Sample, usize)) {
    for sample in &SAMPLES {
        for size in SIZES {
            let mut server = TestServer::with_shards(memory, SHARDS);
            let client = server.connect_listed();
            build(&mut server, client, sample, 0..size);
            assert_eq!(server.run(client, &["TYPE", "k"]), format!("+{}\r\n", sample.kind));
            test(&mut server, client, sample, size);
            server.assert_replica_agrees();
        }
    }
}

fn build(server: &mut TestServer, client: usize, sample: &Sample, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let request = (sample.add)(number);
        let request: Vec<&str> = request.iter().map(String::as_str).collect();
        assert!(server.run(client, &request).starts_with(':'));
    }
}

fn count(server: &mut TestServer, client: usize, sample: &Sample, key: &str) -> String {
    server.run(client, &[sample.count, &[key]].concat())
}

/// Requests of one batch on one key, whose elements are loaded together, and one of another key and type between them.
#[test]
fn a_batch_on_one_key_is_answered_in_order() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    assert_eq!(server.run(client, &["SET", "other", "text"]), "+OK\r\n");
    for sample in SAMPLES.iter().filter(|sample| sample.kind == "hash" || sample.kind == "set") {
        build(&mut server, client, sample, 0..3000);
        let (mut requests, mut expected) = (Vec::new(), Vec::new());
        for number in 2950..3050 {
            let (add, is_new) = ((sample.add)(number), number >= 3000);
            requests.extend(request(&add.iter().map(String::as_bytes).collect::<Vec<_>>()));
            expected.extend(format!(":{}\r\n", u8::from(is_new)).into_bytes());
            if number % 20 == 0 {
                requests.extend(request(&[b"GET", b"other"]));
                requests.extend(request(&[b"LPUSH", b"k", b"element"]));
                expected
                    .extend(b"$4\r\ntext\r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
            }
        }
        assert_eq!(server.send(client, &requests), expected);
        assert_eq!(count(&mut server, client, sample, "k"), ":3050\r\n");
        server.run(client, &["DEL", "k"]);
    }
    server.assert_replica_agrees();
}

/// A copy shares what it can, and yet neither changes with the other.
#[test]
fn a_copy_stands_on_its_own() {
    each(|server, client, sample, size| {
        server.run(client, &["PEXPIRE", "k", "60000"]);
        assert_eq!(server.run(client, &["COPY", "k", "copy"]), ":1\r\n");
        assert_eq!(server.run(client, &["COPY", "k", "far", "DB", "1"]), ":1\r\n");
        build(server, client, sample, size..size + 10);
        assert_eq!(count(server, client, sample, "k"), format!(":{}\r\n", size + 10));
        assert_eq!(count(server, client, sample, "copy"), format!(":{size}\r\n"));
        assert_eq!(server.run(client, &["PTTL", "copy"]), server.run(client, &["PTTL", "k"]));
        server.run(client, &["DEL", "k"]);
        server.run(client, &["SELECT", "1"]);
        assert_eq!(count(server, client, sample, "far"), format!(":{size}\r\n"));
    });
}

/// RENAME and MOVE carry a collection whole, over whatever has its new name.
#[test]
fn collections_get_other_keys() {
    each(|server, client, sample, size| {
        server.run(client, &["SET", "new", "v"]);
        server.run(client, &["EXPIREAT", "k", "4102444800"]);
        assert_eq!(server.run(client, &["RENAME", "k", "new"]), "+OK\r\n");
        assert_eq!(server.run(client, &["MOVE", "new", "1"]), ":1\r\n");
        assert_eq!(server.run(client, &["DBSIZE"]), ":0\r\n");
        server.run(client, &["SELECT", "1"]);
        assert_eq!(count(server, client, sample, "new"), format!(":{size}\r\n"));
        assert_eq!(server.run(client, &["EXPIRETIME", "new"]), ":4102444800\r\n");
    });
}

/// The shard's half-filled pages, far less than a tree takes.
const PAGES_KEPT_BYTES: u64 = 16 << 10;

/// What is removed or has expired costs nothing any more.
#[test]
fn memory_of_collections_comes_back() {
    each(|server, client, sample, size| {
        let empty = {
            server.run(client, &["DEL", "k"]);
            server.keep_up();
            server.store.used_bytes()
        };
        for remove in [&["DEL", "k"][..], &["UNLINK", "k"], &["FLUSHALL"], &["SET", "k", "v"], &["PEXPIRE", "k", "10"]]
        {
            build(server, client, sample, 0..size);
            assert!(server.store.used_bytes() > empty);
            server.run(client, remove);
            server.pass_ms(1000);
            server.keep_up();
            if remove[0] == "SET" {
                server.run(client, &["DEL", "k"]);
            }
            assert_eq!(server.run(client, &["EXISTS", "k"]), ":0\r\n");
            let used = server.store.used_bytes();
            assert!(
                used <= empty + PAGES_KEPT_BYTES,
                "{remove:?} of a {} of {size} leaves {used} bytes of {empty}",
                sample.kind
            );
        }
    });
}

/// MEMORY USAGE and OBJECT know collections.
#[test]
fn collections_are_looked_into() {
    each(|server, client, _, size| {
        let usage = server.run(client, &["MEMORY", "USAGE", "k"]);
        let usage: usize = usage[1..].trim_end().parse().expect("a number of bytes");
        assert!((size * 6..size * 60).contains(&usage), "{size} elements take {usage} bytes");
        server.pass_ms(5000);
        assert_eq!(server.run(client, &["OBJECT", "IDLETIME", "k"]), ":5\r\n");
        assert!(
            server.run(client, &["OBJECT", "FREQ", "k"]).starts_with("-ERR An LFU maxmemory policy is not selected")
        );
    });
}
