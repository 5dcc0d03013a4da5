//! Values on a tier, as clients see them: of memcached, and under each `maxmemory-policy` when the tier is full.

use crate::ending::NoRdb;
use crate::harness::{TestServer, memory};
use crate::recovery::Nobody;
use crate::replay::{Side, request_of};
use crate::reply::Reply;
use crate::served::{Client, Served};
use base::Rng;
use base::random::splitmix64;
use differential::generate::Generator;
use differential::grammar;
use engine::ValueTier;
use server::serve::Keeping;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tier::{Medium, Options, Tier, TierId};
use vfs::{FileSystem, SimFs, SimOptions};

fn machine(medium: Medium) -> SimFs {
    SimFs::with_options(SimOptions { is_dax: medium == Medium::Dax, ..SimOptions::default() })
}

/// Puts a tier with small segments under the store of a server.
pub fn attach(server: &TestServer, medium: Medium) -> Arc<Tier> {
    attach_in(server, machine(medium), medium, false)
}

/// The same on this machine, and perhaps with values that go to the tier as they are written.
fn attach_in(server: &TestServer, fs: SimFs, medium: Medium, takes_written: bool) -> Arc<Tier> {
    let (max_bytes, segment_bytes) = (u64::MAX, 64 << 10);
    let delays = vfs::Delays::NONE;
    let options = Options { max_bytes, value_len_min: 8, takes_written, segment_bytes, medium, delays };
    let tier = Tier::open(Arc::new(fs), Path::new("/tier"), None, TierId([1; 16]), options, |_| ()).expect("it opens");
    tier.loaded(0);
    let under_store: Arc<dyn ValueTier> = tier.clone();
    server.store.attach_tier(&under_store);
    tier
}

/// Moves all values that may go to the tier.
pub fn demote_all(server: &TestServer, tier: &Tier) {
    tier.relieve();
    server.store.shard_ids().for_each(|shard| while server.store.demote(shard, usize::MAX) > 0 {});
}

/// A request of memcached's protocol, to one of few keys.
fn request(rng: &mut Rng) -> String {
    let value = match rng.below(4) {
        0 => format!("{}", rng.below(1_000_000_000)),
        _ => "value ".repeat(1 + rng.below(60) as usize),
    };
    let (key, len, flags, number) = (rng.below(6), value.len(), rng.below(70_000), rng.below(40));
    let stores = |command: &str| format!("{command} key:{key} {flags} 0 {len}\r\n{value}\r\n");
    match rng.below(20) {
        0..=2 => stores("set"),
        3 => stores("add"),
        4 => stores("replace"),
        5 => stores("append"),
        6 => stores("prepend"),
        7 => format!("cas key:{key} {flags} 0 {len} {number}\r\n{value}\r\n"),
        8 => format!("incr key:{key} {number}\r\n"),
        9 => format!("decr key:{key} {number}\r\n"),
        10 => format!("touch key:{key} 100\r\n"),
        11 => format!("gat 0 key:{key} key:{number}\r\n"),
        12 => format!("gets key:{key} key:0\r\n"),
        13 => format!("mg key:{key} v f c t s k\r\n"),
        14 => format!("ms key:{key} {len} F{flags} c MA\r\n{value}\r\n"),
        15 => format!("ma key:{key} D{number} v c\r\n"),
        16 if rng.one_in(3) => format!("delete key:{key}\r\n"),
        _ => "get key:0 key:1 key:2 key:3 key:4 key:5\r\n".to_owned(),
    }
}

/// memcached clients get the same replies, item ids included, whether values are in memory or on a tier.
#[test]
fn memcached_clients_see_no_tier() {
    for (seed, medium) in [(1, Medium::File), (2, Medium::Shared), (3, Medium::Dax)] {
        let mut rng = Rng::new(seed);
        let mut plain = TestServer::with_shards(memory, 4);
        let mut tiered = TestServer::with_shards(memory, 4);
        let tier = attach_in(&tiered, machine(medium), medium, medium == Medium::Shared);
        let (mut requests, mut stored) = (0, 0);
        let clients = (plain.connect_memcached(), tiered.connect_memcached());
        while requests < 1500 {
            let pipeline: String = (0..1 + rng.below(4)).map(|_| request(&mut rng)).collect();
            let expected = plain.send(clients.0, pipeline.as_bytes());
            let found = tiered.send(clients.1, pipeline.as_bytes());
            let text = String::from_utf8_lossy;
            assert_eq!(text(&found), text(&expected), "{medium:?}, request {requests}: {pipeline}");
            (requests, stored) = (requests + 1, stored + expected.len());
            if rng.one_in(2) {
                demote_all(&tiered, &tier);
            }
        }
        let figures = tier.figures();
        assert!(stored > 100_000 && figures.appended_values > 500 && figures.read_values > 500, "{figures:?}");
        tiered.assert_replica_agrees();
    }
}

/// GET answers from the mapping, and the value stays on the tier: always with `tier-policy write`, else at the first
/// read. Other commands get the same, and what is damaged answers an error each time.
#[test]
fn get_reads_a_mapped_value_in_place() {
    for (takes_written, promoted) in [(true, 0), (false, 1)] {
        let (fs, mut server) = (machine(Medium::Shared), TestServer::with_shards(memory, 4));
        let tier = attach_in(&server, fs.clone(), Medium::Shared, takes_written);
        let client = server.connect();
        let (value, long) = ("value ".repeat(200), "long ".repeat(20_000));
        for (key, value) in [("a", &value), ("long", &long)] {
            assert_eq!(server.run(client, &["SET", key, value]), "+OK\r\n");
        }
        assert_eq!(server.run(client, &["RPUSH", "list", &value]), ":1\r\n");
        demote_all(&server, &tier);
        let reads = |server: &mut TestServer, words: &[&str]| {
            let before = tier.figures().read_values;
            (server.run(client, words), tier.figures().read_values - before)
        };
        let expected = format!("${}\r\n{value}\r\n", value.len());
        assert_eq!(reads(&mut server, &["GET", "a"]), (expected.clone(), 1));
        let promoted_now = |server: &TestServer| server.store.tier_counts.promoted.load(Ordering::Relaxed);
        assert_eq!(promoted_now(&server), 0, "the first read");
        assert_eq!(reads(&mut server, &["GET", "a"]), (expected.clone(), 1));
        assert_eq!(promoted_now(&server), promoted, "the second read");
        assert_eq!(reads(&mut server, &["GET", "a"]).1, 1 - promoted);
        assert_eq!(server.run(client, &["GETRANGE", "a", "6", "10"]), "$5\r\nvalue\r\n");
        assert_eq!(server.run(client, &["STRLEN", "a"]), format!(":{}\r\n", value.len()));
        assert!(server.run(client, &["GET", "list"]).starts_with("-WRONGTYPE"));
        assert_eq!(server.run(client, &["LINDEX", "list", "0"]), expected);
        assert!(server.run(client, &["GET", "long"]) == format!("${}\r\n{long}\r\n", long.len()));
        assert_eq!(server.run(client, &["APPEND", "a", "!"]), format!(":{}\r\n", value.len() + 1));
        demote_all(&server, &tier);
        assert_eq!(server.run(client, &["GET", "a"]), format!("${}\r\n{value}!\r\n", value.len() + 1));
        // What is read before is not compared again, but its length and tag are.
        let path = tier::offline::segment_path(Path::new("/tier"), 1);
        let len = fs.metadata(&path).expect("it is there").len as usize;
        fs.damage(&path, 48, &vec![0x55; len - 48]).expect("it is there");
        for _ in 0..2 {
            let error = server.run(client, &["GET", "list"]);
            assert!(error.starts_with("-IOERR") || error.starts_with("-WRONGTYPE"), "{error}");
            let error = server.run(client, &["GETRANGE", "list", "0", "1"]);
            assert!(error.starts_with("-IOERR") || error.starts_with("-WRONGTYPE"), "{error}");
            let error = server.run(client, &["GET", "a"]);
            assert!(error.starts_with("-IOERR") && error.contains("segment 1, offset"), "{error}");
        }
    }
}

/// The random commands of the differential test, transactions included, with strings that go to the tier with the
/// command that stores them. A replay of the log gives the same.
#[test]
fn random_commands_run_on_a_tier() {
    let generator = Generator::new(&grammar::load(&grammar::families()).expect("the grammars parse"), false);
    let first: u64 = std::env::var("ONGGI_TEST_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    let mut appended = 0;
    for round in 0..6 {
        let mut rng = Rng::new(splitmix64(&mut (first.rotate_left(32) ^ round)));
        let mut side = Side::new(memory);
        let tier = attach_in(&side.server, machine(Medium::Shared), Medium::Shared, true);
        for (number, step) in generator.sequence(&mut rng, 600).iter().enumerate() {
            tier.relieve();
            match request_of(step) {
                Some(bytes) => drop(side.run(step.connection, &bytes)),
                None => side.reopen(step.connection),
            }
            if number % 50 == 0 {
                demote_all(&side.server, &tier);
            }
        }
        side.server.assert_replica_agrees();
        appended += tier.figures().appended_values;
    }
    assert!(appended > 100, "{appended}");
}

/// Keys that fit at least: three quarters of memory and tier have values.
const KEYS_LEFT_MIN: usize = 3 * (8 << 20) / 4 / (VALUE_BYTES + 100);

/// Keys written by the tests of `maxmemory-policy`: far more than memory and tier hold together.
const KEYS: usize = 20_000;

/// Bytes of each value. It begins with its number.
const VALUE_BYTES: usize = 500;

fn value_of(number: usize) -> String {
    format!("{number:0>8}{}", "v".repeat(VALUE_BYTES - 8))
}

fn start(policy: &str) -> Served {
    let options = [
        ["--workers", "1"],
        ["--dir", "/data"],
        ["--save", ""],
        ["--appendonly", "no"],
        ["--tier-dir", "/tier"],
        ["--tier-medium", "file"],
        ["--tier-max-bytes", "4mb"],
        ["--maxmemory", "4mb"],
        ["--maxmemory-policy", policy],
        ["--compression", "off"],
    ];
    let fs = Arc::new(SimFs::new(1));
    Served::start_keeping(
        options.as_flattened(),
        Keeping::Directory { fs, tell: Arc::new(Nobody), rdb: Arc::new(NoRdb) },
    )
}

/// Writes keys, each third with an expiration, and gives which were stored; the others were refused for memory.
fn fill(client: &mut Client, keys: usize) -> Vec<bool> {
    let mut stored = Vec::new();
    for first in (0..keys).step_by(100) {
        for number in first..first + 100 {
            let (key, value) = (format!("key:{number}"), value_of(number));
            match number % 3 {
                0 => client.send(&[&["SET", &key, &value, "EX", "10000"]]),
                _ => client.send(&[&["SET", &key, &value]]),
            }
        }
        stored.extend((0..100).map(|_| match client.reply() {
            Some(Reply::Simple(_)) => true,
            Some(Reply::Error(error)) => {
                assert!(error.starts_with("OOM"), "{error}");
                false
            }
            other => panic!("SET answered {other:?}"),
        }));
    }
    stored
}

fn figure(client: &mut Client, section: &str, name: &str) -> u64 {
    let info = client.run(&["INFO", section]);
    let value = info.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
    value.unwrap_or_else(|| panic!("INFO {section} has no {name}")).parse().expect("a number")
}

/// Reads all keys, and gives which there are. None has another value than its own.
fn read(client: &mut Client, keys: usize) -> Vec<bool> {
    let mut found = Vec::new();
    for first in (0..keys).step_by(100) {
        (first..first + 100).for_each(|number| client.send(&[&["GET", &format!("key:{number}")]]));
        found.extend((first..first + 100).map(|number| match client.reply() {
            Some(Reply::Bulk(Some(value))) => {
                assert_eq!(value, value_of(number), "key {number}");
                true
            }
            Some(Reply::Bulk(None)) => false,
            other => panic!("GET answered {other:?}"),
        }));
    }
    found
}

/// A full tier leaves `maxmemory` to the policy: what may go is evicted, whether its value is in memory or on the tier,
/// and no write is refused while there is something to evict. What is evicted leaves room on the tier for other values.
/// Without a policy writes are refused, and nothing is lost.
#[test]
fn a_full_tier_leaves_memory_to_the_policy() {
    for policy in ["noeviction", "allkeys-lru", "volatile-ttl"] {
        let server = start(policy);
        let mut client = server.connect();
        let stored = fill(&mut client, KEYS);
        let evicted = figure(&mut client, "stats", "evicted_keys");
        let used = figure(&mut client, "memory", "used_memory");
        let on_tier = figure(&mut client, "tier", "tier_bytes");
        let demoted = figure(&mut client, "tier", "tier_demoted_values");
        let is_full = figure(&mut client, "tier", "tier_full") == 1;
        let refused = stored.iter().filter(|stored| !**stored).count();
        let found = read(&mut client, KEYS);
        let there = found.iter().filter(|found| **found).count();
        println!("{policy}: {refused} refused, {evicted} evicted, {there} there, {used} bytes, {on_tier} on the tier");
        assert!(used <= (4 << 20) + (1 << 20), "{policy}: {used} bytes");
        assert!(on_tier <= 4 << 20 && demoted > 5000, "{policy}: {on_tier} bytes, {demoted} demoted");
        assert!(there > KEYS_LEFT_MIN, "{policy}: {there} keys are left");
        // Reads may evict too.
        let evicted_at_end = figure(&mut client, "stats", "evicted_keys");
        let (least, most) = (KEYS - refused - evicted_at_end as usize, KEYS - refused - evicted as usize);
        assert!((least..=most).contains(&there), "{policy}: {there}, not {least} to {most}");
        match policy {
            "noeviction" => {
                assert!(is_full && evicted == 0 && found == stored, "{policy}: {evicted} evicted");
                client.run(&["FLUSHALL", "SYNC"]);
                assert_eq!(client.run(&["SET", "key", "value"]), Reply::Simple("OK".into()));
            }
            _ if policy.starts_with("allkeys") => assert_eq!(refused, 0, "{policy}"),
            _ => {
                // Keys without an expiration are never evicted.
                let kept = (0..KEYS).filter(|number| number % 3 != 0);
                kept.into_iter().for_each(|number| assert_eq!(found[number], stored[number], "{policy}: {number}"));
                assert!(evicted > 0, "{policy}");
            }
        }
    }
}
