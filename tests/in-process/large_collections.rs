//! Collections of a database on disk that are several times as large as `maxmemory`: how many leaves commands read, and
//! what they leave in memory.

use crate::disk_rows::{flush_and_drop, open};
use crate::harness::{TestServer, memory};
use durability::DiskDatabases;
use std::sync::Arc;
use store::{RecordSink, Scratch};
use vfs::SimFs;

const ELEMENTS: usize = 8_000;
const BUDGET: u64 = 400 << 10;

/// What a leaf that was read takes at most.
const LEAF_BYTES: u64 = 10 << 10;

struct Large {
    server: TestServer,
    client: usize,
    databases: Arc<DiskDatabases>,
}

fn value(number: usize) -> String {
    format!("{number}-").repeat(16)
}

/// A hash, a list, a set and a sorted set of one to three megabytes each, none of which is in memory.
fn large() -> Large {
    let mut server = TestServer::new(memory);
    let (client, databases) = (server.connect(), open(&server.store, &SimFs::new(1)));
    for from in (0..ELEMENTS).step_by(100) {
        let (names, texts): (Vec<_>, Vec<_>) = (from..from + 100).map(|n| (n.to_string(), value(n))).unzip();
        let pairs: Vec<_> = names.iter().zip(&texts).flat_map(|(name, text)| [&**name, text]).collect();
        let texts: Vec<_> = texts.iter().map(|text| &**text).collect();
        for (start, rest) in [
            (["HSET", "hash"], &pairs),
            (["RPUSH", "list"], &texts),
            (["SADD", "set"], &texts),
            (["ZADD", "zset"], &pairs),
        ] {
            server.run(client, &[&start[..], rest].concat());
        }
    }
    server.store.set_budget(BUDGET, None, Default::default());
    // Without it, leaves count for nothing.
    server.store.pressure.set_row_store_bytes(1);
    let used = server.store.used_bytes();
    assert!(used > 4 * BUDGET, "{used} bytes");
    let large = Large { server, client, databases };
    large.flush_and_drop();
    large
}

impl Large {
    fn flush_and_drop(&self) {
        let mut spill = self.databases.begin_spill();
        while !spill.is_done() {
            spill.step();
        }
        flush_and_drop(&self.databases, self.server.replica.end());
    }

    fn leaves_read(&self) -> u64 {
        self.databases.stats().leaves_read
    }

    /// Runs a command, and gives how many leaves it read.
    fn reads_of(&mut self, words: &[&str]) -> (String, u64) {
        let before = self.leaves_read();
        let reply = self.server.run(self.client, words);
        (reply, self.leaves_read() - before)
    }

    /// Bytes of copies of leaves, and of leaves that are not flushed.
    fn leaf_bytes(&self) -> u64 {
        self.server.store.pressure.row_store_bytes() - 1
    }

    /// What a worker does between turns.
    fn keep_up(&self) {
        let mut scratch = Scratch::default();
        while self.server.store.work_off_excess(0, &mut scratch) {}
    }
}

#[test]
fn commands_on_one_element_read_a_few_leaves() {
    let mut large = large();
    for number in (0..ELEMENTS).step_by(ELEMENTS / 20) {
        let (name, text) = (number.to_string(), value(number));
        let bulk = format!("${}\r\n{text}\r\n", text.len());
        let (next, after) = ((number + 1).to_string(), value(number + 1));
        let limited = format!("*1\r\n${}\r\n{after}\r\n", after.len());
        let commands: [(&[&str], &str, u64); 9] = [
            (&["HGET", "hash", &name], &bulk, 1),
            (&["HSET", "hash", &name, "changed"], ":0\r\n", 1),
            (&["HSET", "hash", &name, &text], ":0\r\n", 1),
            (&["LINDEX", "list", &name], &bulk, 1),
            (&["SISMEMBER", "set", &text], ":1\r\n", 1),
            (&["ZRANK", "zset", &text], &format!(":{number}\r\n"), 2),
            (&["ZRANGEBYSCORE", "zset", &next, "+inf", "LIMIT", "0", "1"], &limited, 2),
            (&["ZADD", "zset", &format!("{number}.5"), &text], ":0\r\n", 3),
            (&["ZADD", "zset", &name, &text], ":0\r\n", 3),
        ];
        for (words, expected, most) in commands {
            let (reply, reads) = large.reads_of(words);
            assert_eq!(reply, expected, "{words:?}");
            assert!(reads <= most, "{words:?} has read {reads} leaves");
        }
        large.flush_and_drop();
    }
    let (_, reads) = large.reads_of(&["HSCAN", "hash", "0", "COUNT", "10"]);
    assert!(reads <= 2, "{reads} leaves");
    for words in [&["EXPIRE", "hash", "1000"][..], &["RENAME", "hash", "other"], &["DEL", "other", "zset", "list"]] {
        assert_eq!(large.reads_of(words).1, 0, "{words:?}");
    }
    assert_eq!(large.server.run(large.client, &["SCARD", "set"]), format!(":{ELEMENTS}\r\n"));
}

/// The leaves of a long reply leave memory with its pieces, and come as often as the reply needs them.
#[test]
fn replies_of_all_elements_leave_few_copies() {
    let mut large = large();
    let count = ELEMENTS.to_string();
    for words in [
        &["HGETALL", "hash"][..],
        &["LRANGE", "list", "0", "-1"],
        &["SMEMBERS", "set"],
        &["ZRANGE", "zset", "0", "-1"],
        &["ZREVRANGE", "zset", "0", &count],
    ] {
        large.databases.drop_clean(usize::MAX);
        let (before, (reply, reads)) = (large.leaf_bytes(), large.reads_of(words));
        for number in (0..ELEMENTS).step_by(97) {
            assert!(reply.contains(&format!("\r\n{}\r\n", value(number))), "{words:?}: {number}");
        }
        let leaves = reply.len() as u64 / (8 << 10);
        assert!((leaves / 2..3 * leaves).contains(&reads), "{words:?}: {reads} leaves of about {leaves}");
        let kept = large.leaf_bytes().saturating_sub(before);
        assert!(kept < 24 * LEAF_BYTES, "{words:?}: {kept} bytes of {} are kept", reply.len());
    }
}

/// Reads alone fill memory as well, and no write makes room: workers do. What is read again and again stays.
#[test]
fn reads_keep_to_the_budget_and_to_what_is_used() {
    let mut large = large();
    let (mut most, mut of_hot) = (0, 0);
    for number in 0..ELEMENTS / 10 {
        let name = (number * 7919 % ELEMENTS).to_string();
        assert!(large.reads_of(&["HGET", "hash", &name]).0.starts_with('$'));
        of_hot += large.reads_of(&["HGET", "hash", "77"]).1;
        large.keep_up();
        most = most.max(large.server.store.used_bytes());
    }
    assert!(most <= BUDGET + 4 * LEAF_BYTES, "{most} bytes");
    assert!(large.leaves_read() > 400, "{} leaves were read", large.leaves_read());
    assert!(of_hot < 10, "a leaf that is always used was read {of_hot} times");
}
