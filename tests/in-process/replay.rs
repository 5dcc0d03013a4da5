//! The random commands of the differential test, with every effect replayed into a second store, and once more over an
//! engine that asks for fetches: at random, or with tickets for every row.
//!
//! R1. After each round the replica built from records has the digest of its server.
//! R2. A server whose rows have to be fetched answers the same bytes as one that has them all, and ends with its
//!     digest.
//! R3. So does one that keeps strings and collections compressed, by one codec after the other.
//! R4. So does one with backed databases, whatever is flushed and dropped between requests.
//! R5. Records replayed over the rows of an earlier flush give the server's digest.

use crate::compression::pass_of;
use crate::harness::{BackedRows, TestServer, fetching, leafless, memory, request, store, ticketed};
use base::random::splitmix64;
use base::{Clock, DbIndex, KeyspaceId, Lsn, Rng};
use differential::generate::{CONNECTIONS, Generator};
use differential::grammar;
use differential::request::{encode, encode_inline};
use differential::step::{Action, Argument, Step};
use server::executor::Flow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::compression::{Codec, Pass, Settings};
use store::{RecordSink, RecoveryPoints, Scratch};
use value::{Limits, absent};

const ROUNDS: u64 = 60;
const REQUESTS: usize = 1000;
const SHARDS: usize = 8;

/// Steps between two comparisons of digests within a round.
const COMPARED_EVERY: usize = 100;

/// Commands whose replies depend on the process, on its memory or on chance: what they change is compared, not what
/// they say.
const OWN_WORDS: [&str; 14] = [
    "ACL",
    "INFO",
    "TIME",
    "LOLWUT",
    "LATENCY",
    "SLOWLOG",
    "COMMANDLOG",
    "CLIENT",
    "MEMORY",
    "OBJECT",
    "RANDOMKEY",
    "SRANDMEMBER",
    "HRANDFIELD",
    "ZRANDMEMBER",
];

/// A server and its open connections, by their number in the sequence.
pub struct Side {
    pub server: TestServer,
    clients: Vec<usize>,
    pass: Pass,
}

impl Side {
    pub fn new(engine: fn(engine_mem::MemEngine) -> store::shard::ShardEngine) -> Self {
        let mut server = TestServer::with_shards(engine, SHARDS);
        let clients = (0..=CONNECTIONS).map(|_| server.connect_listed()).collect();
        let pass = pass_of(&server);
        Self { server, clients, pass }
    }

    /// Compresses values by another codec from now on, or no more, and has a pass see to what is stored already.
    fn compress_otherwise(&mut self, rng: &mut Rng) {
        let codec = [Codec::Off, Codec::Lzf, Codec::Lz4, Codec::Zstd][rng.below(4) as usize];
        let (on_write, idle_seconds) = (rng.one_in(2), rng.below(3) as u32);
        let settings = Settings { codec, bytes_min: 5, on_write, idle_seconds, ..Settings::default() };
        self.server.store.compression.set(settings);
        while self.pass.has_work(&self.server.store) {
            self.pass.slice(&self.server.store, 100_000, 0);
        }
    }

    /// Nothing is queued whose reply is not compared, by connection: for [`is_compared`].
    pub fn nothing_queued() -> [bool; CONNECTIONS + 1] {
        [false; CONNECTIONS + 1]
    }

    /// Closes the connection and opens it again.
    pub fn reopen(&mut self, connection: usize) {
        if let Some(closed) = self.server.executor.close(self.clients[connection]) {
            self.server.shared.host.clients.disconnect(closed.session.id);
        }
        self.clients[connection] = self.server.connect_listed();
    }

    pub fn run(&mut self, connection: usize, bytes: &[u8]) -> Vec<u8> {
        let replies = self.server.send(self.clients[connection], bytes);
        for other in 0..self.clients.len() {
            let id = self.clients[other];
            let is_killed = |side: &mut Self| {
                side.server.executor.connection(id).is_none_or(|connection| connection.session.info.is_killed())
            };
            if self.server.executor.flow(id) == Flow::Closing || is_killed(self) {
                self.reopen(other);
            }
        }
        replies
    }
}

/// Rounds over trees with absent leaves, and requests of each.
const LEAF_ROUNDS: u64 = 24;
const LEAF_REQUESTS: usize = 500;

/// R1 to R3 over trees whose leaves are absent, each with even chance whenever a command reads or edits the tree.
/// Collections are trees from the first element on.
#[test]
fn random_commands_over_absent_leaves_answer_as_in_memory() {
    let generator = Generator::new(&grammar::load(&grammar::families()).expect("the grammars parse"), false);
    let mut fetches = 0;
    for round in 0..LEAF_ROUNDS {
        let mut seed = round + 5_000;
        let mut rng = Rng::new(splitmix64(&mut seed));
        let steps = generator.sequence(&mut rng, LEAF_REQUESTS);
        let (mut plain, mut slow) = (Side::new(memory), Side::new(leafless));
        slow.server.store.notices.ask_for_leaves();
        for side in [&plain, &slow] {
            let limits = &side.server.store.packed;
            for set in [Limits::set_hash_entries, Limits::set_set_entries, Limits::set_set_intset_entries] {
                set(limits, 0);
            }
            limits.set_zset_entries(0);
            limits.set_list_size(1);
        }
        let mut queued_own_words = Side::nothing_queued();
        for (number, step) in steps.iter().enumerate() {
            let Some(bytes) = request_of(step) else {
                plain.reopen(step.connection);
                slow.reopen(step.connection);
                continue;
            };
            let (expected, got) = (plain.run(step.connection, &bytes), slow.run(step.connection, &bytes));
            let is_waiting = absent::catch(absent::is_waiting).expect("it reads nothing");
            assert!(!is_waiting, "round {round}, step {number}: {step} leaves the thread waiting");
            let is_compared = is_compared(step, &[], &mut queued_own_words);
            if is_compared {
                assert_alike(
                    &expected,
                    &got,
                    format_args!("round {round}, step {number}: {step}"),
                    "with absent leaves",
                );
            }
            if number % COMPARED_EVERY == 0 {
                let ms = rng.below(5_000);
                plain.server.pass_ms(ms);
                slow.server.pass_ms(ms);
                absent::waiting(|| slow.server.assert_replica_agrees());
            }
        }
        absent::waiting(|| slow.server.assert_replica_agrees());
        let now = plain.server.clock.now_ms();
        let digest = absent::waiting(|| slow.server.store.digest(now));
        assert_eq!(plain.server.store.digest(now), digest, "round {round}");
        fetches += slow.server.rounds;
    }
    assert!(fetches > 100, "{fetches} rounds of reads");
}

/// Commands whose replies follow the order in which keys are walked, or count entries that no flush has counted yet.
const WALKS: [&str; 3] = ["SCAN", "KEYS", "DBSIZE"];

/// R4 over rounds of random requests: with all databases backed by rows, entries flushed and dropped at random;
/// and, every other round, all of them after each request.
#[test]
fn random_commands_over_rows_answer_as_in_memory() {
    let generator = Generator::new(&grammar::load(&grammar::families()).expect("the grammars parse"), false);
    let mut reads = 0;
    for round in 0..ROUNDS {
        let mut seed = round + 1_000;
        let mut rng = Rng::new(splitmix64(&mut seed));
        let steps = generator.sequence(&mut rng, REQUESTS);
        let (mut plain, mut backed) = (Side::new(memory), Side::new(memory));
        let mut rows = backed.server.back();
        let is_exact = round % 2 == 0;
        let mut queued_own_words = [false; CONNECTIONS + 1];
        for (number, step) in steps.iter().enumerate() {
            let Some(bytes) = request_of(step) else {
                plain.reopen(step.connection);
                backed.reopen(step.connection);
                continue;
            };
            let (expected, got) = (plain.run(step.connection, &bytes), backed.run(step.connection, &bytes));
            let walks = if is_exact { &WALKS[..2] } else { &WALKS };
            let is_compared = is_compared(step, walks, &mut queued_own_words);
            if is_compared {
                assert_alike(&expected, &got, format_args!("round {round}, step {number}: {step}"), "over rows");
            }
            match is_exact {
                true => rows.flush_and_drop(),
                false => rows.churn(&mut rng),
            }
            if number % COMPARED_EVERY == 0 {
                let ms = rng.below(5_000);
                plain.server.pass_ms(ms);
                backed.server.pass_ms(ms);
                backed.server.assert_replica_agrees();
                let now = plain.server.clock.now_ms();
                assert_eq!(
                    plain.server.store.digest(now),
                    backed.server.store.digest(now),
                    "round {round}, step {number}"
                );
                assert_eq!(keys(&mut plain), keys(&mut backed), "round {round}, step {number}");
            }
        }
        reads += backed.server.rounds;
    }
    assert!(reads > 10_000, "{reads} rounds of reads");
}

/// R5 over rounds of random requests, with every second database backed by rows: a store that has the rows of a flush,
/// and gets all records of the log, ends as the server. Each keyspace leaves out what it has.
#[test]
fn records_come_back_over_rows_of_an_earlier_moment() {
    let generator = Generator::new(&grammar::load(&grammar::families()).expect("the grammars parse"), false);
    for round in 0..ROUNDS / 2 {
        let mut seed = round + 2_000;
        let mut rng = Rng::new(splitmix64(&mut seed));
        let steps = generator.sequence(&mut rng, REQUESTS);
        let mut side = Side::new(memory);
        *side.server.replica.kept.lock().expect("no test panics while holding it") = Some(Vec::new());
        let mut rows = side.server.back_some(|space| space.0 % 2 == 0);
        let mut flushed = Lsn(0);
        let flush_at = rng.below(REQUESTS as u64) as usize;
        for (number, step) in steps.iter().enumerate() {
            match request_of(step) {
                Some(bytes) => _ = side.run(step.connection, &bytes),
                None => side.reopen(step.connection),
            }
            if number == flush_at {
                flushed = side.server.replica.end();
                rows.flush_and_drop();
            } else if number < flush_at && rng.one_in(10) {
                rows.flush_and_drop();
            } else if rng.one_in(4) {
                rows.drop_clean(rng.below(5_000) as usize);
            }
            if number % COMPARED_EVERY == 0 {
                side.server.pass_ms(rng.below(5_000));
            }
        }
        side.server.assert_replica_agrees();
        let other = Arc::new(store(&side.server.clock, SHARDS, None, memory));
        let BackedRows { spaces, rows, .. } = rows;
        let points = spaces.iter().map(|space| (*space, flushed)).collect();
        let _rows = BackedRows::attach(&other, spaces, rows);
        other.set_recovery_points(RecoveryPoints { loaded: Lsn(0), rows: points });
        let records = side.server.replica.kept.lock().expect("no test panics while holding it").take();
        for (lsn, record) in records.unwrap_or_default() {
            other.replay(&mut Scratch::default(), lsn, &record).expect("a record replays");
        }
        let now = side.server.clock.now_ms();
        assert_eq!(other.digest(now), side.server.store.digest(now), "round {round}");
    }
}

/// A copy between a database in memory and one on rows is recorded by its value: when it is replayed, its source may be
/// gone.
#[test]
fn a_copy_onto_other_recovery_points_is_replayed_without_its_source() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    *server.replica.kept.lock().expect("no test panics while holding it") = Some(Vec::new());
    let mut rows = server.back_some(|space| space.0 == 0);
    let members: Vec<String> = (0..300).map(|number| format!("member:{number:0100}")).collect();
    let words = |key: &'static str, count| {
        let members = members.iter().take(count).map(String::as_str);
        ["SADD", key].into_iter().chain(members).collect::<Vec<_>>()
    };
    for (key, count) in [("small", 2), ("tree", 300)] {
        server.run(client, &words(key, count));
        server.run(client, &["EXPIRE", key, "1000"]);
        assert_eq!(server.run(client, &["COPY", key, "copy", "DB", "1", "REPLACE"]), ":1\r\n");
        assert_eq!(server.run(client, &["MOVE", key, "1"]), ":1\r\n");
    }
    rows.flush_and_drop();
    let flushed = server.replica.end();
    let other = Arc::new(store(&server.clock, SHARDS, None, memory));
    let BackedRows { spaces, rows, .. } = rows;
    let _rows = BackedRows::attach(&other, spaces, rows);
    other.set_recovery_points(RecoveryPoints { loaded: Lsn(0), rows: [(KeyspaceId(0), flushed)].into() });
    let records = server.replica.kept.lock().expect("no test panics while holding it").take();
    for (lsn, record) in records.unwrap_or_default() {
        other.replay(&mut Scratch::default(), lsn, &record).expect("a record replays");
    }
    let now = server.clock.now_ms();
    assert_eq!(other.digest(now), server.store.digest(now));
    assert_eq!(other.len(DbIndex(1)).0, 3);
    server.assert_replica_agrees();
}

/// All keys of the first database, by SCAN.
fn keys(side: &mut Side) -> BTreeSet<Vec<u8>> {
    let client = side.server.connect();
    let (mut keys, mut cursor) = (BTreeSet::new(), b"0".to_vec());
    loop {
        let reply = side.server.send(client, &request(&[b"SCAN", &cursor, b"COUNT", b"3"]));
        let mut bulks = bulks(&reply).into_iter();
        cursor = bulks.next().expect("a cursor");
        keys.extend(bulks);
        if cursor == b"0" {
            break;
        }
    }
    side.server.executor.close(client);
    keys
}

/// The strings of a reply.
fn bulks(mut reply: &[u8]) -> Vec<Vec<u8>> {
    let mut bulks = Vec::new();
    while let Some(end) = reply.windows(2).position(|pair| pair == b"\r\n") {
        let (line, rest) = (&reply[..end], &reply[end + 2..]);
        reply = rest;
        if let Some(len) = line.strip_prefix(b"$") {
            let len: usize = String::from_utf8_lossy(len).parse().expect("a length");
            bulks.push(reply[..len].to_vec());
            reply = &reply[len + 2..];
        }
    }
    bulks
}

/// The bytes of a step's request; `None` for a step without one.
pub fn request_of(step: &Step) -> Option<Vec<u8>> {
    let plain = |argument: &Argument| match argument {
        Argument::Bytes(bytes) => bytes.clone(),
        other => panic!("random sequences name no {other}"),
    };
    match &step.action {
        Action::Command(arguments) => Some(encode(&arguments.iter().map(plain).collect::<Vec<_>>())),
        Action::Inline(arguments) => Some(encode_inline(&arguments.iter().map(plain).collect::<Vec<_>>())),
        Action::Reopen => None,
        other => panic!("random sequences have no {other:?}"),
    }
}

/// Fails unless a server whose values are kept in another way answered as one in memory.
fn assert_alike(expected: &[u8], got: &[u8], at: fmt::Arguments<'_>, kept: &str) {
    let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
    assert!(expected == got, "{at} was answered {:?}, and {kept} {:?}", shown(expected), shown(got));
}

/// Whether the replies have to be the same. Inside a transaction EXEC answers for what was queued.
pub fn is_compared(step: &Step, walks: &[&str], queued_own_words: &mut [bool]) -> bool {
    let name = match step.arguments().and_then(<[Argument]>::first) {
        Some(Argument::Bytes(name)) => String::from_utf8_lossy(name).to_ascii_uppercase(),
        _ => return true,
    };
    let is_own = OWN_WORDS.contains(&&*name) || walks.contains(&&*name);
    let queued = &mut queued_own_words[step.connection];
    match &*name {
        "MULTI" | "DISCARD" => *queued = false,
        "EXEC" => return !std::mem::take(queued),
        _ => *queued |= is_own,
    }
    !is_own
}

/// R1 to R3 over rounds of a thousand random requests, valid and bent, in both protocols, while time passes.
#[test]
fn random_commands_replay_and_survive_fetches() {
    let generator = Generator::new(&grammar::load(&grammar::families()).expect("the grammars parse"), false);
    let (mut compressed, mut decompressed) = (0, 0);
    for round in 0..ROUNDS {
        let mut seed = round;
        let mut rng = Rng::new(splitmix64(&mut seed));
        let steps = generator.sequence(&mut rng, REQUESTS);
        // Rows that arrive without a read, and rows that come when they have been read.
        let rows = if round % 2 == 0 { fetching } else { ticketed };
        let (mut plain, mut slow) = (Side::new(memory), Side::new(rows));
        let mut small = Side::new(if round % 2 == 0 { memory } else { fetching });
        small.compress_otherwise(&mut rng);
        let mut queued_own_words = [false; CONNECTIONS + 1];
        for (number, step) in steps.iter().enumerate() {
            let Some(bytes) = request_of(step) else {
                plain.reopen(step.connection);
                slow.reopen(step.connection);
                small.reopen(step.connection);
                continue;
            };
            let (expected, got) = (plain.run(step.connection, &bytes), slow.run(step.connection, &bytes));
            let is_compared = is_compared(step, &[], &mut queued_own_words);
            if is_compared {
                assert_alike(&expected, &got, format_args!("round {round}, step {number}: {step}"), "after fetches");
            }
            let got = small.run(step.connection, &bytes);
            if is_compared {
                assert_alike(
                    &expected,
                    &got,
                    format_args!("round {round}, step {number}: {step}"),
                    "with values compressed",
                );
            }
            if number % COMPARED_EVERY == 0 {
                let ms = rng.below(5_000);
                plain.server.pass_ms(ms);
                slow.server.pass_ms(ms);
                small.server.pass_ms(ms);
                plain.server.assert_replica_agrees();
                slow.server.assert_replica_agrees();
                small.server.assert_replica_agrees();
                small.compress_otherwise(&mut rng);
            }
        }
        plain.server.assert_replica_agrees();
        slow.server.assert_replica_agrees();
        small.server.assert_replica_agrees();
        let now = plain.server.clock.now_ms();
        assert_eq!(plain.server.store.digest(now), slow.server.store.digest(now), "round {round}");
        assert_eq!(plain.server.store.digest(now), small.server.store.digest(now), "round {round}");
        let figures = &small.server.store.compression.figures;
        let all = [&figures.compressed_on_write, &figures.compressed_by_pass];
        compressed += all.iter().map(|figure| figure.load(Ordering::Relaxed)).sum::<u64>();
        decompressed += figures.decompressed.load(Ordering::Relaxed);
    }
    assert!(compressed > 500 && decompressed > 1_000, "{compressed} values compressed, {decompressed} read");
}
