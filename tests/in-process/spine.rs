//! The spine end to end: bytes through parser, batch, locks, engine, effects and records, and back.
//!
//! Every test runs its commands over the memory engine with a sink that replays each record into a second store; at the
//! end both stores have one digest. Random sequences also run over an engine that asks for fetches at random, and
//! answer the same bytes.

use crate::harness::{SHARDS, START_MS, TestServer, fetching, memory, request, store};
use base::{Rng, UnixMs};
use command::spec::{Docs, Locks};
use command::{Categories, CommandSpec, Flags, Run};
use engine::{Engine, Entry, EntrySink, WalkProgress};
use server::assembly::Commands;
use std::sync::{Arc, Mutex};

/// SET, GET, INCR, EXPIRE, DEL and MULTI go through every layer and come out of the record the same.
#[test]
fn six_commands_through_every_layer() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    assert_eq!(server.run(client, &["SET", "a", "41"]), "+OK\r\n");
    assert_eq!(server.run(client, &["INCR", "a"]), ":42\r\n");
    assert_eq!(server.run(client, &["GET", "a"]), "$2\r\n42\r\n");
    assert_eq!(server.run(client, &["EXPIRE", "a", "10"]), ":1\r\n");
    assert_eq!(server.run(client, &["MULTI"]), "+OK\r\n");
    assert_eq!(server.run(client, &["SET", "b", "1"]), "+QUEUED\r\n");
    assert_eq!(server.run(client, &["INCR", "b"]), "+QUEUED\r\n");
    assert_eq!(server.run(client, &["GET", "a"]), "+QUEUED\r\n");
    assert_eq!(server.run(client, &["EXEC"]), "*3\r\n+OK\r\n:2\r\n$2\r\n42\r\n");
    server.assert_replica_agrees();
    server.pass_ms(10_000);
    assert_eq!(server.run(client, &["GET", "a"]), "$-1\r\n");
    assert_eq!(server.replica.store.len(base::DbIndex(0)), (1, 0), "the expiration was recorded as a deletion");
    assert_eq!(server.run(client, &["DEL", "a", "b"]), ":1\r\n");
    server.assert_replica_agrees();
}

/// A watched key that another client changes, deletes or lets expire breaks the transaction; one that is only read does
/// not.
#[test]
fn watched_keys_break_transactions() {
    for (change, broken) in [
        (&["SET", "k", "2"][..], true),
        (&["DEL", "k"], true),
        (&["EXPIRE", "k", "100"], true),
        (&["GET", "k"], false),
        (&["SET", "other", "2"], false),
    ] {
        let mut server = TestServer::new(memory);
        let (one, two) = (server.connect(), server.connect());
        server.run(one, &["SET", "k", "1"]);
        server.run(one, &["WATCH", "k"]);
        server.run(two, change);
        server.run(one, &["MULTI"]);
        server.run(one, &["SET", "k", "mine"]);
        let expected = if broken { "*-1\r\n" } else { "*1\r\n+OK\r\n" };
        assert_eq!(server.run(one, &["EXEC"]), expected, "{change:?}");
        server.assert_replica_agrees();
    }
    let mut server = TestServer::new(memory);
    let client = server.connect();
    server.run(client, &["SET", "k", "1", "PX", "50"]);
    server.run(client, &["WATCH", "k"]);
    server.pass_ms(60);
    server.run(client, &["MULTI"]);
    server.run(client, &["PING"]);
    server.run(client, &["GET", "k"]);
    assert!(!server.run(client, &["EXEC"]).starts_with("*2"), "the key has expired since WATCH");
}

/// A SELECT in a pipeline holds for the requests after it in the same batch, whose keys were hashed before it ran.
/// (Found by the differential test: the value went to the database selected before.)
#[test]
fn a_pipelined_select_holds_at_once() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let requests =
        [&["SELECT", "1"][..], &["SET", "a", "one"], &["SELECT", "0"], &["GET", "a"], &["SELECT", "1"], &["GET", "a"]];
    let bytes =
        requests.iter().flat_map(|words| request(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()));
    let bytes: Vec<u8> = bytes.collect();
    let replies = server.send(client, &bytes);
    assert_eq!(String::from_utf8_lossy(&replies), "+OK\r\n+OK\r\n+OK\r\n$-1\r\n+OK\r\n$3\r\none\r\n");
    server.assert_replica_agrees();
}

static BROKEN: CommandSpec = CommandSpec {
    name: "broken",
    arity: 1,
    flags: Flags::FAST,
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::All,
    docs: &Docs::NONE,
    run: Run::Call(|_| panic!("a bug of this command")),
};

/// A command that panics before it changed anything answers an error; its locks are open and its worker continues.
#[test]
fn a_panic_costs_one_request() {
    static OWN: &[&[&CommandSpec]] = &[&[&BROKEN]];
    let families = [command::redis::FAMILIES, OWN].concat();
    let mut server = TestServer::with_commands(Commands::of(&families));
    let client = server.connect();
    let reply = server.run(client, &["BROKEN"]);
    assert!(reply.starts_with("-ERR internal error in 'broken'"), "{reply}");
    assert_eq!(server.run(client, &["SET", "a", "1"]), "+OK\r\n");
    server.run(client, &["MULTI"]);
    server.run(client, &["BROKEN"]);
    assert!(server.run(client, &["EXEC"]).starts_with("-ERR internal error"));
    assert_eq!(server.run(client, &["GET", "a"]), "$1\r\n1\r\n");
}

/// A pipeline gives the same replies whole and split at every byte, with small and with big values.
#[test]
fn pipelines_split_anywhere() {
    let big = "v".repeat(100_000);
    let mut pipeline = Vec::new();
    for words in
        [&["SET", "small", "1"][..], &["SET", "big", &big], &["INCR", "small"], &["GET", "big"], &["GET", "small"]]
    {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        pipeline.extend(request(&words));
    }
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let whole = server.send(client, &pipeline);
    // Each request in a turn of its own.
    server.executor.limit_batches(0);
    assert_eq!(server.send(client, &pipeline), whole);
    let mut rng = Rng::new(5);
    let border = |at: &usize| *at < 200 || pipeline.len() - at < 300;
    for cut in (1..pipeline.len()).filter(|at| border(at) || rng.one_in(1000)).collect::<Vec<_>>() {
        let mut server = TestServer::new(memory);
        let client = server.connect();
        let mut replies = server.send(client, &pipeline[..cut]);
        replies.extend(server.send(client, &pipeline[cut..]));
        assert!(replies == whole, "cut at {cut} of {}", pipeline.len());
    }
}

/// One random command over few keys, so that commands meet.
pub fn random_request(rng: &mut Rng) -> Vec<u8> {
    const COMMANDS: [&[&str]; 34] = [
        &["SET", "K", "V"],
        &["SET", "K", "N"],
        &["SET", "K", "V", "PX", "T"],
        &["SET", "K", "V", "NX", "GET"],
        &["SET", "K", "V", "XX", "KEEPTTL"],
        &["GET", "K"],
        &["GETSET", "K", "V"],
        &["GETDEL", "K"],
        &["GETEX", "K", "PX", "T"],
        &["INCR", "K"],
        &["DECRBY", "K", "N"],
        &["INCRBYFLOAT", "K", "1.5"],
        &["APPEND", "K", "V"],
        &["SETRANGE", "K", "N", "V"],
        &["GETRANGE", "K", "0", "N"],
        &["SETBIT", "K", "N", "1"],
        &["BITCOUNT", "K"],
        &["BITOP", "XOR", "K", "K", "K"],
        &["BITFIELD", "K", "INCRBY", "u8", "N", "200"],
        &["MSET", "K", "V", "K", "V"],
        &["MSETNX", "K", "V", "K", "V"],
        &["MGET", "K", "K", "K"],
        &["DEL", "K", "K"],
        &["UNLINK", "K"],
        &["PEXPIRE", "K", "T"],
        &["PERSIST", "K"],
        &["RENAME", "K", "K"],
        &["RENAMENX", "K", "K"],
        &["COPY", "K", "K", "REPLACE"],
        &["MOVE", "K", "1"],
        &["EXISTS", "K", "K"],
        &["TYPE", "K"],
        &["MULTI"],
        &["EXEC"],
    ];
    let words: Vec<Vec<u8>> = COMMANDS[rng.below(COMMANDS.len() as u64) as usize]
        .iter()
        .map(|word| match *word {
            "K" => format!("key:{}", rng.below(12)).into_bytes(),
            "N" => rng.below(300).to_string().into_bytes(),
            "T" => (rng.below(500) + 1).to_string().into_bytes(),
            "V" => {
                let length = if rng.one_in(40) { 20_000 } else { rng.below(40) };
                let mut value = vec![0; length as usize];
                rng.fill(&mut value);
                value
            }
            word => word.as_bytes().to_vec(),
        })
        .collect();
    request(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Random commands of two clients: the replica built from records agrees throughout, over both engines, and a server
/// whose rows have to be fetched answers the same bytes as one that has them all.
#[test]
fn random_commands_replay_and_survive_fetches() {
    for seed in 0..8 {
        let (mut plain, mut slow) = (TestServer::new(memory), TestServer::new(fetching));
        let clients = [(plain.connect(), slow.connect()), (plain.connect(), slow.connect())];
        let mut rng = Rng::new(seed);
        for step in 0..3_000 {
            let (one, other) = clients[rng.below(2) as usize];
            let bytes = random_request(&mut rng);
            let (expected, got) = (plain.send(one, &bytes), slow.send(other, &bytes));
            assert!(expected == got, "seed {seed}, step {step}: {:?}", String::from_utf8_lossy(&bytes));
            if step % 200 == 0 {
                plain.pass_ms(100);
                slow.pass_ms(100);
                plain.assert_replica_agrees();
                slow.assert_replica_agrees();
            }
        }
        plain.assert_replica_agrees();
        slow.assert_replica_agrees();
        assert_eq!(plain.store.digest(START_MS), slow.store.digest(START_MS));
    }
}

/// Collects a checkpoint's entries.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<Row>>>);

/// Keyspace, key, value, expiration.
type Row = (base::KeyspaceId, Vec<u8>, Vec<u8>, Option<UnixMs>);

impl EntrySink for Collected {
    fn save(&mut self, space: base::KeyspaceId, entry: &Entry<'_>) {
        let row = (space, entry.key.to_vec(), entry.value.bytes().to_vec(), entry.expire_at);
        self.0.lock().expect("no test panics while holding it").push(row);
    }
}

/// A checkpoint cut at one moment of the log, walked while commands run, holds exactly the state of that moment;
/// loaded into an empty store, with the later records replayed on top, it gives the present state.
#[test]
fn a_checkpoint_and_the_records_after_it_give_the_present() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rng = Rng::new(9);
    let mut run = |server: &mut TestServer, count| {
        (0..count).for_each(|_| drop(server.send(client, &random_request(&mut rng))));
        server.run(client, &["EXEC"]);
    };
    (0..3_000).for_each(|n| drop(server.run(client, &["SET", &format!("filler:{n}"), &format!("{n}")])));
    run(&mut server, 1_000);
    let (cut, cut_ms) = (server.replica.store.digest(START_MS), START_MS);
    let rows = Collected::default();
    server.store.each_shard(|shard| shard.engine.begin_checkpoint(Box::new(rows.clone()))).for_each(drop);
    loop {
        let done = server
            .store
            .each_shard(|shard| shard.engine.walk_checkpoint(16) == WalkProgress::Done)
            .fold(true, |all, one| all & one);
        if done {
            break;
        }
        run(&mut server, 40);
    }
    server.store.each_shard(|shard| assert!(shard.engine.end_checkpoint().is_some())).for_each(drop);
    let loaded = store(&server.clock, SHARDS, None, memory);
    for (space, key, value, expire_at) in rows.0.lock().expect("no test panics while holding it").iter() {
        let key = loaded.key(*space, key);
        let (encoding, value) = (engine::Encoding::PLAIN, engine::Value::Bytes(value));
        loaded.load(&engine::Effect::Set { key, value, encoding, expire_at: *expire_at });
    }
    assert_eq!(loaded.digest(cut_ms), cut, "the checkpoint is the state at its cut");
    server.assert_replica_agrees();
}
