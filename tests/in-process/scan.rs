//! SCAN's promise: a key that is there from the first call of an iteration to its last is returned, whatever happens to
//! the others meanwhile, and nothing is returned that was never there.

use crate::harness::{TestServer, memory};
use crate::reply::Reply;
use base::Rng;
use std::collections::BTreeSet;

const SEEDS: u64 = 20;

/// Few shards, so that each holds more than one extent of its table: a call of SCAN visits extents whole.
const SHARDS: usize = 2;

/// Other keys added or removed at once: enough for tables to grow, split and shrink within an iteration.
const BURST: u64 = 3000;

/// What an iteration asks for.
struct Plan {
    count: Option<String>,
    pattern: Option<&'static str>,
    kind: Option<&'static str>,
}

impl Plan {
    fn draw(rng: &mut Rng) -> Self {
        let counts = ["1", "2", "3", "10", "33", "100", "1000", "1000000", "9223372036854775807"];
        let pick = |rng: &mut Rng, options: &[&'static str]| options[rng.below(options.len() as u64) as usize];
        Self {
            count: (!rng.one_in(5)).then(|| pick(rng, &counts).to_owned()),
            pattern: rng.one_in(3).then(|| pick(rng, &["stable:*", "*", "*7", "stable:?1*", "none*"])),
            kind: rng.one_in(4).then(|| pick(rng, &["string", "STRING", "list"])),
        }
    }

    fn words<'w>(&'w self, cursor: &'w str) -> Vec<&'w str> {
        let mut words = vec!["SCAN", cursor];
        self.count.iter().for_each(|count| words.extend(["COUNT", count]));
        self.pattern.iter().for_each(|pattern| words.extend(["MATCH", pattern]));
        self.kind.iter().for_each(|kind| words.extend(["TYPE", kind]));
        words
    }

    fn asks_for(&self, key: &str) -> bool {
        let is_string = self.kind.is_none_or(|kind| kind.eq_ignore_ascii_case("string"));
        is_string && self.pattern.is_none_or(|pattern| base::glob::matches(pattern.as_bytes(), key.as_bytes()))
    }

    /// Whether an iteration takes many calls.
    fn is_slow(&self) -> bool {
        self.count.as_ref().is_none_or(|count| count.len() <= 2)
    }
}

/// Changes that leave the stable keys in place.
struct Changes {
    client: usize,
    stable: u64,
    /// Other keys there may be, by number: those from `oldest` up to `newest`.
    oldest: u64,
    newest: u64,
    growing: bool,
}

impl Changes {
    fn make(&mut self, server: &mut TestServer, rng: &mut Rng) {
        let client = self.client;
        let key = format!("stable:{}", rng.below(self.stable.max(1)));
        match rng.below(12) {
            // Writes that move an entry, or a page's worth of them.
            0 if self.stable > 0 => drop(server.run(client, &["SET", &key, &"x".repeat(rng.below(3000) as usize)])),
            1 if self.stable > 0 => drop(server.run(client, &["APPEND", &key, "more"])),
            2 if self.stable > 0 => drop(server.run(client, &["EXPIRE", &key, "1000000"])),
            3 if self.stable > 0 => drop(server.run(client, &["PERSIST", &key])),
            // Time passes: others expire, pages are cleaned.
            4 => server.pass_ms(rng.below(400)),
            5 => self.growing = !self.growing,
            // Another database comes and goes.
            6 => {
                for words in [&["SELECT", "1"][..], &["SET", "stable:elsewhere", "1"], &["FLUSHDB"], &["SELECT", "0"]] {
                    assert_eq!(server.run(client, words), "+OK\r\n");
                }
            }
            _ if self.growing => {
                let mut words = vec!["MSET".to_owned()];
                for _ in 0..BURST {
                    words.extend([format!("other:{}", self.newest), "v".repeat(rng.below(60) as usize)]);
                    self.newest += 1;
                }
                server.run(client, &words.iter().map(String::as_str).collect::<Vec<_>>());
                let expiring = format!("other:{}", self.newest - 1 - rng.below(BURST));
                server.run(client, &["PEXPIRE", &expiring, &(rng.below(300) + 1).to_string()]);
            }
            _ => {
                let end = (self.oldest + BURST).min(self.newest);
                let words: Vec<String> =
                    std::iter::once("DEL".into()).chain((self.oldest..end).map(|n| format!("other:{n}"))).collect();
                if words.len() > 1 {
                    server.run(client, &words.iter().map(String::as_str).collect::<Vec<_>>());
                }
                self.oldest = end;
            }
        }
    }
}

/// One whole iteration with changes between its calls; some calls come inside MULTI. Gives what it returned.
fn iterate(server: &mut TestServer, plan: &Plan, changes: &mut Changes, rng: &mut Rng) -> BTreeSet<String> {
    let scanner = server.connect();
    let (mut returned, mut cursor, mut calls) = (BTreeSet::new(), "0".to_owned(), 0);
    loop {
        let words = plan.words(&cursor);
        let reply = if rng.one_in(8) {
            assert_eq!(server.run(scanner, &["MULTI"]), "+OK\r\n");
            assert_eq!(server.run(scanner, &words), "+QUEUED\r\n");
            server.ask(scanner, &["EXEC"]).list()[0].clone()
        } else {
            server.ask(scanner, &words)
        };
        let Reply::List(parts) = reply else { panic!("{words:?}: {reply:?}") };
        returned.extend(parts[1].texts());
        cursor = parts[0].text().to_owned();
        calls += 1;
        assert!(calls < 100_000, "the iteration does not end");
        if cursor == "0" {
            return returned;
        }
        // With a small count most calls follow each other, as they do on a busy client.
        if !plan.is_slow() || rng.one_in(10) {
            changes.make(server, rng);
        }
    }
}

/// Every stable key that is asked for is returned, with counts of all sizes, patterns and types.
#[test]
fn scan_returns_what_is_there_throughout() {
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let mut server = TestServer::with_shards(memory, SHARDS);
        let client = server.connect();
        let stable = [0, 1, 300, 3000, 12_000][rng.below(5) as usize];
        for number in 0..stable {
            server.run(client, &["SET", &format!("stable:{number}"), "1"]);
        }
        let mut changes = Changes { client, stable, oldest: 0, newest: 0, growing: true };
        for _ in 0..rng.below(30) {
            changes.make(&mut server, &mut rng);
        }
        for _ in 0..3 {
            let plan = Plan::draw(&mut rng);
            let returned = iterate(&mut server, &plan, &mut changes, &mut rng);
            for key in (0..stable).map(|number| format!("stable:{number}")).filter(|key| plan.asks_for(key)) {
                assert!(returned.contains(&key), "seed {seed}: {:?} did not return {key}", plan.words("0"));
            }
            for key in &returned {
                let number = |prefix: &str| key.strip_prefix(prefix).and_then(|number| number.parse::<u64>().ok());
                let was_there = number("stable:").is_some_and(|number| number < stable)
                    || number("other:").is_some_and(|number| number < changes.newest);
                assert!(was_there && plan.asks_for(key), "seed {seed}: {:?} returned {key}", plan.words("0"));
            }
        }
        server.assert_replica_agrees();
    }
}

/// Cursors keep no state: one from long ago, from another database or from nowhere ends its iteration all the same.
#[test]
fn any_cursor_ends() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect();
    (0..500).for_each(|number| drop(server.run(client, &["SET", &format!("stable:{number}"), "1"])));
    let mut rng = Rng::new(1);
    let odd = ["18446744073709551615", "9223372036854775808", "7", "8", "65535", "65536"].map(str::to_owned);
    for start in odd.into_iter().chain((0..200).map(|_| rng.next_u64().to_string())) {
        let (mut cursor, mut calls) = (start.clone(), 0);
        loop {
            cursor = server.ask(client, &["SCAN", &cursor, "COUNT", "50"]).list()[0].text().to_owned();
            calls += 1;
            assert!(calls <= 600, "from {start}");
            if cursor == "0" {
                break;
            }
        }
    }
}

/// ZSCAN writes a score as ZRANGE does, whether the sorted set is packed or a tree. Valkey has 17 digits in the second
/// case.
#[test]
fn scores_are_written_alike() {
    let mut server = TestServer::with_shards(memory, 1);
    let client = server.connect();
    assert_eq!(server.run(client, &["ZADD", "scores", "0.1", "tenth"]), ":1\r\n");
    for elements in [2, 2000] {
        for number in 2..=elements {
            server.run(client, &["ZADD", "scores", &number.to_string(), &format!("member {number}")]);
        }
        assert_eq!(server.run(client, &["ZCARD", "scores"]), format!(":{elements}\r\n"));
        let found = server.ask(client, &["ZSCAN", "scores", "0", "MATCH", "tenth", "COUNT", "4096"]);
        let words: Vec<_> = found.list()[1].list().iter().map(|word| word.text().to_owned()).collect();
        assert_eq!(words, ["tenth", "0.1"], "{elements} elements");
        assert_eq!(server.ask(client, &["ZSCORE", "scores", "tenth"]).text(), "0.1");
    }
}
