//! Databases that keep their names in order: what clients of SSDB and SCAN get, against a sorted map, whatever is
//! flushed, dropped, cleared and read meanwhile.

use crate::disk_rows::{flush_and_drop, open_as};
use crate::harness::{TestServer, memory};
use crate::reply::Reply;
use crate::ssdb_clients::{first_reply, packet};
use base::Rng;
use durability::{DiskDatabases, RunningFlush};
use engine::FlushProgress;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use store::RecordSink;
use vfs::{Fault, Op, SimFs, errno};

/// Names to choose from. Two share the first 65,535 bytes, which is all that a key of the tree can have.
fn name(rng: &mut Rng) -> String {
    match rng.below(40) {
        0 => format!("{}{}", "1".repeat(65_535), rng.below(3)),
        1 => "é".to_owned(),
        _ => format!("{:o}", rng.below(4_000)),
    }
}

struct Ordered {
    server: TestServer,
    databases: Arc<DiskDatabases>,
    flush: Option<RunningFlush>,
    ssdb: usize,
    redis: usize,
    /// Name, type, and value.
    model: BTreeMap<String, (&'static str, String)>,
    rng: Rng,
}

impl Ordered {
    fn new(seed: u64) -> Self {
        let mut server = TestServer::with_shards(memory, 4);
        let databases = open_as(&server.store, &SimFs::new(seed), true);
        let (ssdb, redis) = (server.connect_ssdb(), server.connect());
        Self { server, databases, flush: None, ssdb, redis, model: BTreeMap::new(), rng: Rng::new(seed) }
    }

    fn change(&mut self) {
        let name = name(&mut self.rng);
        let value = self.rng.below(1_000).to_string();
        let kind = match self.rng.below(8) {
            0..4 => "string",
            4 => "hash",
            5 => "zset",
            _ => "list",
        };
        self.server.run(self.redis, &["DEL", &name]);
        self.model.remove(&name);
        let words: &[&str] = match kind {
            _ if self.rng.one_in(4) => return,
            "string" if self.rng.one_in(5) => {
                self.server.run(self.redis, &["SET", &name, &value, "PXAT", "1"]);
                return;
            }
            "string" => &["SET", &name, &value],
            "hash" => &["HSET", &name, "f", &value],
            "zset" => &["ZADD", &name, "1", &value],
            _ => &["RPUSH", &name, &value],
        };
        let reply = self.server.run(self.redis, words);
        assert!(!reply.starts_with('-'), "{words:?}: {reply}");
        self.model.insert(name, (kind, value));
    }

    fn churn(&mut self) {
        match (self.rng.below(40), &mut self.flush) {
            (0..2, None) => {
                let lsn = self.server.replica.end();
                self.flush = self.databases.begin_flush(|| lsn);
            }
            (0..4, Some(flush)) => _ = flush.walk(),
            (4..6, Some(_)) => {
                let mut flush = self.flush.take().expect("it runs");
                while flush.walk() == FlushProgress::More {}
                if flush.walk() == FlushProgress::Done && !self.rng.one_in(3) {
                    flush.install(|_| Ok::<_, Infallible>(())).expect("the disk takes it");
                }
                flush.end();
            }
            (6, _) => self.databases.drop_clean(self.rng.below(20_000) as usize),
            (7, _) => while self.databases.compact_step().expect("the disk takes it") {},
            (8, _) if self.rng.one_in(20) => {
                self.server.run(self.redis, &["FLUSHDB"]);
                self.model.clear();
            }
            _ => {}
        }
    }

    fn say(&mut self, words: &[&str]) -> String {
        let reply = self.server.send(self.ssdb, &packet(words));
        let (shown, rest) = first_reply(&reply);
        assert!(rest.is_empty(), "{words:?} has one reply: {}", rest.escape_ascii());
        shown
    }

    /// What a walk of SSDB gives.
    fn expected(&self, word: &str, start: &str, end: &str, limit: i64) -> String {
        let kind = match word {
            "hlist" | "hrlist" => "hash",
            "zlist" | "zrlist" => "zset",
            "qlist" | "qrlist" => "list",
            _ => "string",
        };
        let is_reversed = ["rscan", "rkeys", "hrlist", "zrlist", "qrlist"].contains(&word);
        let is_meant = |name: &str| match is_reversed {
            false => (start.is_empty() || name > start) && (end.is_empty() || name <= end),
            true => (start.is_empty() || name < start) && (end.is_empty() || name >= end),
        };
        let mut found: Vec<_> =
            self.model.iter().filter(|(name, (found, _))| *found == kind && is_meant(name)).collect();
        if is_reversed {
            found.reverse();
        }
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let has_values = word.ends_with("scan");
        let show = |(name, (_, value)): (&String, &(&str, String))| match has_values {
            true => format!("|{name}|{value}"),
            false => format!("|{name}"),
        };
        format!("ok{}", found.into_iter().map(show).collect::<String>())
    }

    fn compare_walk(&mut self) {
        let words = ["keys", "rkeys", "scan", "rscan", "hlist", "hrlist", "zlist", "zrlist", "qlist", "qrlist"];
        let word = words[self.rng.below(10) as usize];
        let end = |rng: &mut Rng| if rng.one_in(3) { String::new() } else { name(rng) };
        let (start, end) = (end(&mut self.rng), end(&mut self.rng));
        let limit = [-1, 0, 1, 2, 10, 100][self.rng.below(6) as usize];
        let block = |name: &str| if name.is_empty() { "''".to_owned() } else { name.to_owned() };
        let expected = self.expected(word, &start, &end, limit);
        let got = self.say(&[word, &block(&start), &block(&end), &limit.to_string()]);
        assert!(got == expected, "{word} {start:.9} {end:.9} {limit}: {got:.200} instead of {expected:.200}");
    }

    /// A whole SCAN, in which nothing changes but where entries are.
    fn compare_scan(&mut self) {
        let (mut cursor, mut names) = ("0".to_owned(), Vec::new());
        let count = (1 + self.rng.below(50)).to_string();
        let pattern = ["*", "1*", "27?", "é", "[12]*5"][self.rng.below(5) as usize];
        let kind = ["string", "hash", "zset"][self.rng.below(3) as usize];
        loop {
            let words = ["SCAN", &cursor, "COUNT", &count, "MATCH", pattern, "TYPE", kind];
            let reply = self.server.ask(self.redis, &words);
            let Reply::List(parts) = reply else { panic!("{words:?}: {reply:?}") };
            let [Reply::Bulk(Some(next)), Reply::List(found)] = &parts[..] else { panic!("{parts:?}") };
            for name in found {
                let Reply::Bulk(Some(name)) = name else { panic!("{name:?}") };
                names.push(name.clone());
            }
            cursor.clone_from(next);
            if cursor == "0" {
                break;
            }
            self.churn_gently();
        }
        let is_meant = |name: &str| base::glob::matches(pattern.as_bytes(), name.as_bytes());
        let expected: Vec<&String> =
            self.model.iter().filter(|(name, (found, _))| *found == kind && is_meant(name)).map(|it| it.0).collect();
        assert!(names.iter().eq(expected.iter().copied()), "{pattern} {kind}: {} of {}", names.len(), expected.len());
    }

    /// What changes no key.
    fn churn_gently(&mut self) {
        if self.rng.one_in(3) && self.flush.is_none() {
            flush_and_drop(&self.databases, self.server.replica.end());
        }
    }
}

#[test]
fn walks_are_in_the_order_of_names() {
    for seed in 0..6 {
        let mut ordered = Ordered::new(seed);
        for step in 0..3_000 {
            ordered.change();
            ordered.churn();
            if step % 20 == 0 {
                ordered.compare_walk();
            }
            if step % 300 == 299 {
                ordered.compare_scan();
            }
        }
        if let Some(flush) = ordered.flush.take() {
            flush.end();
        }
    }
}

/// Inside a transaction and a script, and in one of many names.
#[test]
fn scan_is_in_order_wherever_it_runs() {
    let mut ordered = Ordered::new(1);
    let names: Vec<String> = (0..300).map(|number| format!("k{number:03}")).collect();
    for (number, name) in names.iter().enumerate() {
        ordered.server.run(ordered.redis, &["SET", name, "v"]);
        if number == 150 {
            flush_and_drop(&ordered.databases, ordered.server.replica.end());
        }
    }
    let expected = names[..7].iter().map(|name| format!("$4\r\n{name}\r\n")).collect::<String>();
    ordered.server.run(ordered.redis, &["MULTI"]);
    ordered.server.run(ordered.redis, &["SCAN", "0", "COUNT", "7"]);
    let reply = ordered.server.run(ordered.redis, &["EXEC"]);
    assert!(reply.ends_with(&format!("*7\r\n{expected}")), "{reply}");
    let script = "return redis.call('SCAN', '0', 'COUNT', '7')[2]";
    assert_eq!(ordered.server.run(ordered.redis, &["EVAL", script, "0"]), format!("*7\r\n{expected}"));
    // A number that no SCAN has given is some place, as in other databases.
    for cursor in ["5", "65541", "18446744073709551615"] {
        let reply = ordered.server.run(ordered.redis, &["SCAN", cursor]);
        assert!(reply.starts_with("*2\r\n"), "{cursor}: {reply}");
    }
}

/// Names that cannot be read are an error, and the connection stays usable.
#[test]
fn unreadable_names_are_an_error() {
    let mut server = TestServer::with_shards(memory, 2);
    let fs = SimFs::new(1);
    let databases = open_as(&server.store, &fs, true);
    let (ssdb, redis) = (server.connect_ssdb(), server.connect());
    for number in 0..100 {
        server.run(redis, &["SET", &format!("k{number}"), &"v".repeat(100)]);
    }
    flush_and_drop(&databases, server.replica.end());
    fs.inject(Fault::fail(Op::Read, errno::EIO).below("/data/rows").forever());
    let reply = server.run(redis, &["SCAN", "0"]);
    assert!(reply.starts_with("-IOERR names cannot be read: "), "{reply}");
    let reply = server.send(ssdb, &packet(&["keys", "''", "''", "9"]));
    let (shown, _) = first_reply(&reply);
    assert!(shown.starts_with("error|IOERR names cannot be read: "), "{shown}");
    fs.clear_faults();
    let reply = server.send(ssdb, &packet(&["keys", "''", "''", "2"]));
    assert_eq!(first_reply(&reply).0, "ok|k0|k1");
}
