//! Values kept compressed: which, when, and what checkpoint, log and restart make of them.

use crate::checkpoint::{checkpoint, loaded};
use crate::harness::{SHARDS, START_MS, TestServer, memory};
use base::{Clock, KeyspaceId};
use checkpoint::DataDir;
use codec::dictionary::DictionaryFile;
use codec::{Dictionary, DictionaryNumber, Lease};
use engine::{Engine, Entry};
use engine_mem::StampMode;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Store;
use store::compression::{Codec, LongValues, Pass, Settings};
use vfs::SimFs;

pub const IDLE_SECONDS: u32 = 10;

pub fn settings(codec: Codec, on_write: bool) -> Settings {
    Settings { codec, on_write, idle_seconds: IDLE_SECONDS, ..Settings::default() }
}

/// Runs passes as long as there is something to do.
pub fn run_passes(pass: &mut Pass, store: &Store) {
    while pass.has_work(store) {
        pass.slice(store, 100_000, 0);
    }
}

/// The pass over a server that has been up for a while, so that it follows the next change of the settings at once.
pub fn pass_of(server: &TestServer) -> Pass {
    let mut pass = Pass::new(server.store.shard_ids().collect());
    assert!(!pass.has_work(&server.store), "it waits until something may be idle");
    pass
}

pub fn document(n: u32) -> String {
    format!(
        "{{\"id\":{n},\"name\":\"somebody\",\"tags\":[\"one\",\"two\",\"three\"],\"text\":\"{}\"}}",
        "words and ".repeat(20)
    )
}

pub fn compressed(server: &TestServer) -> u64 {
    server.store.memory.compressed().values
}

/// Cold values are compressed and used ones stay uncompressed; a value used repeatedly is decompressed permanently, and
/// so are all values when compression is switched off. Clients see no difference.
#[test]
fn cold_strings_are_compressed_and_hot_ones_are_not() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut pass = pass_of(&server);
    server.store.compression.set(settings(Codec::Zstd, false));
    (0..200).for_each(|n| drop(server.run(client, &["SET", &format!("doc:{n}"), &document(n)])));
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), 0, "all were used just now");
    let digest = server.store.digest(START_MS);
    server.pass_ms(u64::from(IDLE_SECONDS) * 1000 + 1000);
    (0..50).for_each(|n| drop(server.run(client, &["GET", &format!("doc:{n}")])));
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), 150);
    let used = server.store.memory.compressed();
    assert!(used.stored_bytes * 2 < used.logical_bytes, "{used:?}");
    assert_eq!(server.store.digest(START_MS), digest);
    let get = |server: &mut TestServer, n: u32| {
        let expected = document(n);
        assert_eq!(server.run(client, &["GET", &format!("doc:{n}")]), format!("${}\r\n{expected}\r\n", expected.len()));
    };
    get(&mut server, 100);
    assert_eq!(compressed(&server), 150, "used once in a long time");
    get(&mut server, 100);
    assert_eq!(compressed(&server), 149, "used twice in a short time");
    let read_before = server.store.compression.figures.decompressed.load(Ordering::Relaxed);
    for words in
        [&["STRLEN", "doc:101"][..], &["TYPE", "doc:101"], &["OBJECT", "ENCODING", "doc:101"], &["TTL", "doc:101"]]
    {
        server.run(client, words);
    }
    server.run(client, &["COPY", "doc:101", "copy"]);
    server.run(client, &["RENAME", "copy", "renamed"]);
    server.run(client, &["EXPIRE", "renamed", "100"]);
    assert_eq!(
        server.store.compression.figures.decompressed.load(Ordering::Relaxed),
        read_before,
        "none of these reads"
    );
    assert_eq!(compressed(&server), 150);
    server.run(client, &["SETRANGE", "renamed", "3", "x"]);
    assert_eq!(server.store.compression.figures.decompressed.load(Ordering::Relaxed), read_before + 1);
    assert_eq!(compressed(&server), 149, "an edited string is stored as it is");
    server.run(client, &["DEL", "renamed"]);
    server.store.compression.set(settings(Codec::Lz4, false));
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), 149, "by another codec");
    server.store.compression.set(settings(Codec::Off, false));
    run_passes(&mut pass, &server.store);
    assert_eq!(server.store.memory.compressed(), engine_mem::CompressedUse::default());
    assert_eq!(server.store.digest(START_MS), digest);
    server.assert_replica_agrees();
}

/// Keeps a dictionary as the only one, on a disk that is never read again; the replica has it, too.
fn keep(server: &TestServer, class: &[u8], content: Vec<u8>) -> Option<Lease> {
    let number = DictionaryNumber(NonZeroU32::MIN);
    let file = DictionaryFile { number, class: class.to_vec(), content };
    let create = || Dictionary::create(&SimFs::new(1), Path::new("/"), file.clone()).expect("the disk works");
    drop(server.replica.store.compression.dictionaries.insert(create()));
    Some(server.store.compression.dictionaries.insert(create()))
}

/// Short similar documents are compressed with a dictionary once there are enough samples, even those compressed
/// before. With compression off no value needs it any more. Clients see no difference.
#[test]
fn short_documents_get_a_dictionary() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rng = base::Rng::new(1);
    let mut pass = pass_of(&server);
    for n in 0..600 {
        let (id, at) = (rng.below(1 << 40), 1_700_000_000 + rng.below(1 << 20));
        let text = format!("{{\"id\": {id}, \"owner\": \"user{n}\", \"state\": \"open\", \"updated_at\": {at}}}");
        server.run(client, &["SET", &format!("doc:{n}"), &text]);
    }
    let digest = server.store.digest(START_MS);
    server.store.compression.set(settings(Codec::Zstd, false));
    server.pass_ms(u64::from(IDLE_SECONDS) * 1000 + 1000);
    run_passes(&mut pass, &server.store);
    let without = server.store.memory.compressed();
    assert!(server.store.compression.train(|class, content| keep(&server, class, content)));
    assert_eq!(server.store.compression.dictionaries_in_use().len(), 1);
    run_passes(&mut pass, &server.store);
    let with = server.store.memory.compressed();
    assert!(with.values == 600 && with.stored_bytes * 2 < with.logical_bytes, "{without:?}, {with:?}");
    let of_dictionary = |server: &TestServer| server.store.memory.values_by_dictionary().values().sum::<u64>();
    assert_eq!(of_dictionary(&server), 600);
    assert_eq!(server.store.digest(START_MS), digest);
    server.run(client, &["APPEND", "doc:1", "x"]);
    server.run(client, &["COPY", "doc:2", "doc:2000"]);
    server.run(client, &["RENAME", "doc:3", "doc:3000"]);
    server.run(client, &["DEL", "doc:4"]);
    assert_eq!(of_dictionary(&server), 599);
    let digest = server.store.digest(START_MS);
    server.store.compression.set(settings(Codec::Off, false));
    run_passes(&mut pass, &server.store);
    assert_eq!((of_dictionary(&server), compressed(&server)), (0, 0));
    assert_eq!(server.store.digest(START_MS), digest);
    server.store.compression.dictionaries.forget(|_| true);
    assert!(server.store.compression.dictionaries.list().is_empty());
    server.assert_replica_agrees();
}

/// A pass that takes longer than the one before, since clients come first, misses nothing that has gone cold since that
/// one.
#[test]
fn a_slow_pass_misses_nothing() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut pass = pass_of(&server);
    server.store.compression.set(settings(Codec::Zstd, false));
    (0..200).for_each(|n| drop(server.run(client, &["SET", &format!("doc:{n}"), &document(n)])));
    let store = server.store.clone();
    for _ in 0..2 {
        run_passes(&mut pass, &store);
        server.pass_ms(u64::from(IDLE_SECONDS) * 1000 / 4 + 100);
    }
    assert_eq!(compressed(&server), 0, "all were used some seconds ago");
    let busy = store.try_lock_all().expect("nobody else is here");
    assert!(pass.has_work(&store));
    pass.slice(&store, 100_000, 0);
    assert_eq!(compressed(&server), 0, "the shards are taken");
    server.pass_ms(u64::from(IDLE_SECONDS) * 3000);
    drop(busy);
    // This pass alone: the next one may be as slow.
    while pass.slice(&store, 100_000, 0) {}
    assert_eq!(compressed(&server), 200);
}

/// Strings that are too long for workers are compressed by a thread of its own, and decompressed again; one that has
/// changed meanwhile is left alone, and one that is beyond all bounds.
#[test]
fn long_strings_are_not_for_workers() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut pass = pass_of(&server);
    let long = document(1).repeat(400);
    for n in 0..20 {
        server.run(client, &["SET", &format!("long:{n}"), &format!("{n}{long}")]);
    }
    server.run(client, &["SET", "gone", &long]);
    let digest = server.store.digest(START_MS);
    server.store.compression.set(settings(Codec::Lz4, false));
    server.pass_ms(u64::from(IDLE_SECONDS) * 1000 + 1000);
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), 0, "workers leave them alone");
    server.run(client, &["DEL", "gone"]);
    server.run(client, &["SET", "long:0", "short"]);
    server.run(client, &["APPEND", "long:1", "more"]);
    let mut strings = LongValues::default();
    while strings.step(&server.store).is_some() {}
    assert_eq!(compressed(&server), 19, "one is gone, and one is short now");
    let used = server.store.memory.compressed();
    assert!(used.stored_bytes * 10 < used.logical_bytes, "{used:?}");
    let expected = format!("{}{long}", 5);
    assert_eq!(server.run(client, &["GET", "long:5"]), format!("${}\r\n{expected}\r\n", expected.len()));
    assert_eq!(server.run(client, &["GETRANGE", "long:1", "-4", "-1"]), "$4\r\nmore\r\n");
    server.store.compression.set(settings(Codec::Off, false));
    let read_before = server.store.compression.figures.decompressed_by_pass.load(Ordering::Relaxed);
    run_passes(&mut pass, &server.store);
    assert_eq!(server.store.compression.figures.decompressed_by_pass.load(Ordering::Relaxed), read_before);
    while strings.step(&server.store).is_some() {}
    assert_eq!(compressed(&server), 0);
    server.run(client, &["SET", "long:0", &format!("0{long}")]);
    server.run(client, &["SET", "long:1", &format!("1{long}")]);
    server.run(client, &["SET", "gone", &long]);
    assert_eq!(server.store.digest(START_MS), digest);
    server.assert_replica_agrees();
}

/// A class of strings that do not get shorter is left alone after some were tried, and others are not.
#[test]
fn classes_that_do_not_compress_are_skipped() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    server.store.compression.set(settings(Codec::Lz4, true));
    let mut rng = base::Rng::new(1);
    for n in 0..500 {
        while server.store.compression.train(|_, _| None) {}
        let noise: String = (0..100).map(|_| char::from(b'!' + rng.below(90) as u8)).collect();
        server.run(client, &["SET", &format!("noise:{n}"), &noise]);
        server.run(client, &["SET", &format!("doc:{n}"), &document(n)]);
    }
    let figures = &server.store.compression.figures;
    assert_eq!(figures.compressed_on_write.load(Ordering::Relaxed), 500);
    assert_eq!(figures.in_vain.load(Ordering::Relaxed), 256, "samples");
    assert_eq!(figures.skipped.load(Ordering::Relaxed), 500 - 256);
    assert_eq!(server.store.compression.resting_classes(), 1);
}

/// A pass does not try cold strings of a class that does not compress, until there is time to see whether it does now.
#[test]
fn passes_leave_classes_alone_that_do_not_compress() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut pass = pass_of(&server);
    server.store.compression.set(settings(Codec::Lz4, false));
    let mut rng = base::Rng::new(1);
    let mut write = |server: &mut TestServer, range: std::ops::Range<u32>| {
        for n in range {
            let noise: String = (0..100).map(|_| char::from(b'!' + rng.below(90) as u8)).collect();
            server.run(client, &["SET", &format!("noise:{n}"), &noise]);
        }
        server.pass_ms(u64::from(IDLE_SECONDS) * 1000 + 5000);
    };
    let figures = |server: &TestServer| {
        let figures = &server.store.compression.figures;
        [&figures.in_vain, &figures.skipped, &figures.compressed_by_pass].map(|figure| figure.load(Ordering::Relaxed))
    };
    write(&mut server, 0..300);
    run_passes(&mut pass, &server.store);
    assert_eq!(figures(&server), [256, 44, 0], "samples, of which the last ones were not tried");
    while server.store.compression.train(|_, _| None) {}
    assert_eq!(server.store.compression.resting_classes(), 1);
    write(&mut server, 300..500);
    run_passes(&mut pass, &server.store);
    assert_eq!(figures(&server), [256, 244, 0]);
    (500..800).for_each(|n| drop(server.run(client, &["SET", &format!("noise:{n}"), &document(n)])));
    server.pass_ms(120_000);
    run_passes(&mut pass, &server.store);
    assert_eq!(figures(&server), [256, 544, 0], "samples again, but raw until they are judged");
    while server.store.compression.train(|_, _| None) {}
    (500..800).for_each(|n| drop(server.run(client, &["GET", &format!("noise:{n}")])));
    server.pass_ms(u64::from(IDLE_SECONDS) * 1000 + 5000);
    run_passes(&mut pass, &server.store);
    assert_eq!(figures(&server), [256, 544, 300]);
}

/// After a start nothing is idle yet, so passes wait for as long as it takes to become that; what is changed is looked
/// at at once.
#[test]
fn the_first_pass_waits_until_something_may_be_idle() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let [mut idle, mut changed, mut written, mut short]: [Pass; 4] =
        std::array::from_fn(|_| Pass::new(server.store.shard_ids().collect()));
    server.store.compression.set(settings(Codec::Lz4, false));
    (0..100).for_each(|n| drop(server.run(client, &["SET", &format!("doc:{n}"), &document(n)])));
    assert!(!idle.has_work(&server.store) && !changed.has_work(&server.store));
    server.pass_ms(u64::from(IDLE_SECONDS) * 1000 - 1);
    assert!(!idle.has_work(&server.store));
    let used = server.store.used_bytes();
    server.store.set_budget(used + used / 32, None, StampMode::Recency);
    assert!(short.has_work(&server.store), "memory is short");
    server.store.set_budget(0, None, StampMode::Recency);
    server.pass_ms(1000);
    assert!(idle.has_work(&server.store));
    run_passes(&mut idle, &server.store);
    assert_eq!(compressed(&server), 100);
    server.store.compression.set(settings(Codec::Zstd, false));
    assert!(changed.has_work(&server.store), "the settings are other ones");
    server.store.compression.set(settings(Codec::Zstd, true));
    assert!(written.has_work(&server.store), "what is written is compressed at once");
}

/// The longer a pass has looked for values, the longer is the rest before the next one; a change of the settings does
/// not wait, and neither does a pass when memory is short.
#[test]
fn passes_rest_after_long_looks() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut pass = pass_of(&server);
    let settings = |codec| Settings { cpu_percent: 100, ..settings(codec, false) };
    server.store.compression.set(settings(Codec::Lz4));
    (0..100).for_each(|n| drop(server.run(client, &["SET", &format!("doc:{n}"), &document(n)])));
    let begun_ns = server.clock.monotonic_ns();
    server.clock.tick_ns(100_000_000);
    run_passes(&mut pass, &server.store);
    server.clock.tick_ns(0);
    let looked_ms = (server.clock.monotonic_ns() - begun_ns) / 1_000_000;
    // Of what passed a sixteenth at least was between the two readings of a look.
    let (at_least, at_most) = (looked_ms / 16 * 31, looked_ms * 31);
    assert!(at_least > 2 * u64::from(IDLE_SECONDS) * 1000, "{looked_ms}");
    server.pass_ms(at_least);
    assert!(!pass.has_work(&server.store), "what is idle waits");
    let used = server.store.used_bytes();
    server.store.set_budget(used + used / 32, None, StampMode::Recency);
    assert!(pass.has_work(&server.store), "unless memory is short");
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), 100);
    server.store.set_budget(0, None, StampMode::Recency);
    server.clock.tick_ns(100_000_000);
    server.store.compression.set(settings(Codec::Zstd));
    run_passes(&mut pass, &server.store);
    server.clock.tick_ns(0);
    server.pass_ms(at_least);
    assert!(!pass.has_work(&server.store));
    server.store.compression.set(settings(Codec::Off));
    assert!(pass.has_work(&server.store), "a change of the settings does not wait");
    run_passes(&mut pass, &server.store);
    server.store.compression.set(settings(Codec::Lz4));
    run_passes(&mut pass, &server.store);
    server.pass_ms(at_most);
    assert!(pass.has_work(&server.store));
}

/// Values that were left raw because those before them did not get shorter are compressed once it is known that the
/// class does.
#[test]
fn what_was_doubted_is_compressed_after_all() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut pass = pass_of(&server);
    server.store.compression.set(settings(Codec::Lz4, true));
    let mut rng = base::Rng::new(1);
    for n in 0..300 {
        let noise: String = (0..100).map(|_| char::from(b'!' + rng.below(90) as u8)).collect();
        server.run(client, &["SET", &format!("doc:{n}"), &noise]);
    }
    (300..800).for_each(|n| drop(server.run(client, &["SET", &format!("doc:{n}"), &document(n)])));
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), 0, "doubted");
    while server.store.compression.train(|_, _| None) {}
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), 500);
    server.assert_replica_agrees();
}

/// Log, checkpoint and loading carry the stored form: nothing is compressed for a checkpoint and nothing decompressed
/// for a restart, and the state is the same.
#[test]
fn stored_forms_are_carried_as_they_are() {
    let dir = DataDir::open(Arc::new(SimFs::new(1)), Path::new("/data")).expect("the directory opens");
    let mut server = TestServer::new(memory);
    let client = server.connect();
    server.store.compression.set(settings(Codec::Lzf, true));
    for n in 0..300 {
        server.run(client, &["SET", &format!("doc:{n}"), &document(n)]);
    }
    let long = document(0).repeat(1000);
    server.run(client, &["SET", "long", &long]);
    assert_eq!(
        server.replica.store.memory.compressed(),
        server.store.memory.compressed(),
        "records carry stored forms"
    );
    let spent = |store: &Store| {
        let figures = &store.compression.figures;
        let all = [&figures.compressed_on_write, &figures.compressed_by_pass, &figures.in_vain, &figures.decompressed];
        all.map(|figure| figure.load(Ordering::Relaxed))
    };
    let before = spent(&server.store);
    let set = checkpoint(&mut server, &dir, 1, 8 << 20, |_| ());
    assert_eq!(spent(&server.store), before, "a checkpoint compresses nothing");
    let loaded = loaded(&server, &dir, &set);
    assert_eq!(spent(&loaded), [0; 4], "loading decompresses nothing");
    assert_eq!(loaded.memory.compressed(), server.store.memory.compressed());
    assert_eq!(loaded.digest(START_MS), server.store.digest(START_MS));
}

/// A checkpoint that is walked while strings are compressed and decompressed holds the state at its cut.
#[test]
fn passes_go_on_under_a_checkpoint() {
    let dir = DataDir::open(Arc::new(SimFs::new(1)), Path::new("/data")).expect("the directory opens");
    let mut server = TestServer::new(memory);
    let client = server.connect();
    for n in 0..2000 {
        server.run(client, &["SET", &format!("doc:{n}"), &document(n)]);
    }
    server.pass_ms(u64::from(IDLE_SECONDS) * 1000 + 1000);
    let digest = server.store.digest(START_MS);
    let mut pass = pass_of(&server);
    let codecs = [Codec::Lzf, Codec::Off, Codec::Zstd, Codec::Lz4];
    let mut steps = 0;
    let set = checkpoint(&mut server, &dir, 1, 8 << 20, |server| {
        server.store.compression.set(settings(codecs[steps % codecs.len()], false));
        steps += 1;
        run_passes(&mut pass, &server.store);
        server.run(client, &["SET", &format!("later:{steps}"), "x"]);
    });
    assert!(steps > 8, "{steps} steps");
    assert_eq!(loaded(&server, &dir, &set).digest(START_MS), digest);
}

/// Commands that make a collection of each type under `{prefix}:{n}`, packed or a tree, of documents or of short
/// elements.
fn make_collections(server: &mut TestServer, client: usize, n: u32) {
    let (text, n) = (document(n), n.to_string());
    let mut run = |words: &[&str]| drop(server.run(client, words));
    let someone = "somebody or other, or somebody else, or nobody";
    run(&["HSET", &format!("doc:{n}"), "id", &n, "title", "some title or other", "body", &text]);
    run(&["HSET", &format!("profile:{n}"), "name", someone, "friend", someone, "neighbour", someone, "n", &n]);
    run(&["RPUSH", &format!("events:{n}"), &text, "short", &text, &n]);
    run(&["RPUSH", &format!("long:{n}"), &text.repeat(15), &text.repeat(15), &n]);
    run(&["XADD", &format!("stream:{n}"), "5-1", "body", &text, "n", &n]);
    run(&["XADD", &format!("stream:{n}"), "5-2", "body", &text, "n", &n]);
    run(&["XGROUP", "CREATE", &format!("stream:{n}"), "group", "0"]);
    run(&["XREADGROUP", "GROUP", "group", "me", "COUNT", "1", "STREAMS", &format!("stream:{n}"), ">"]);
    let (tags, scores) = (format!("tags:{n}"), format!("scores:{n}"));
    for number in ["first", "second", "third", "fourth", "fifth", "sixth"] {
        let member = format!("the {number} member of the collection, behind others");
        run(&["SADD", &tags, &member]);
        run(&["ZADD", &scores, "1", &member]);
    }
    run(&["SADD", &format!("urls:{n}"), &format!("{text}{n}"), &format!("{n}{text}")]);
    run(&["SADD", &format!("numbers:{n}"), "-8123456789012345678", "7243956789012345671", "2586756789512345672"]);
    run(&["ZADD", &format!("ranking:{n}"), "1.5", &format!("{text}{n}"), "2.5", &format!("{n}{text}"), "3", &n]);
}

const COLLECTIONS: [&str; 10] =
    ["doc", "profile", "events", "long", "stream", "tags", "urls", "numbers", "scores", "ranking"];

/// The first parts of the names of keys that are stored as they are.
fn kinds_left_raw(server: &TestServer) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let walk = server.store.each_shard(|shard| {
        let mut from = Some(0);
        while let Some(bound) = from {
            let mut visit = |entry: &Entry<'_>| {
                if !entry.is_compressed() {
                    let name = String::from_utf8_lossy(entry.key).into_owned();
                    names.insert(name.split(':').next().unwrap_or_default().to_owned());
                }
            };
            from = shard.engine.scan(KeyspaceId(0), bound, &mut visit).next;
        }
    });
    walk.for_each(drop);
    names
}

/// How many collections [`make_collections`] makes that get shorter: integers do not.
const SHORTER: u64 = 9;

/// Cold collections are compressed as a whole, each in its own form, and clients see no difference. One read
/// decompresses once, two in a short time permanently; so does an edit.
#[test]
fn cold_collections_are_compressed_as_a_whole() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let mut pass = pass_of(&server);
    let settings = |codec, on_write| Settings { bytes_min: 16, ..settings(codec, on_write) };
    // Also where strings are compressed as they are written, collections are when they are cold.
    server.store.compression.set(settings(Codec::Zstd, true));
    (0..20).for_each(|n| make_collections(&mut server, client, n));
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), 0, "all were used just now");
    let told = |server: &mut TestServer| -> Vec<String> {
        let of = |name: &&str| [["TYPE", ""], ["OBJECT", "ENCODING"]].map(|words| (words, format!("{name}:3")));
        COLLECTIONS
            .iter()
            .flat_map(of)
            .map(|(words, key)| {
                let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).chain([&*key]).collect();
                server.run(client, &words)
            })
            .collect()
    };
    let usage = |server: &mut TestServer, key: &str| server.run(client, &["MEMORY", "USAGE", key]);
    let (digest, forms, raw) = (server.store.digest(START_MS), told(&mut server), usage(&mut server, "doc:3"));
    let pass_time = |server: &mut TestServer| server.pass_ms(u64::from(IDLE_SECONDS) * 1000 + 1000);
    pass_time(&mut server);
    run_passes(&mut pass, &server.store);
    assert_eq!(kinds_left_raw(&server), BTreeSet::from(["numbers".to_owned()]));
    assert_eq!(compressed(&server), 20 * SHORTER);
    let used = server.store.memory.compressed();
    assert!(used.stored_bytes * 3 < used.logical_bytes, "{used:?}");
    let read = |server: &TestServer| server.store.compression.figures.decompressed.load(Ordering::Relaxed);
    assert_eq!((told(&mut server), read(&server)), (forms.clone(), 0));
    let small = usage(&mut server, "doc:3");
    let number = |reply: &str| reply.trim_start_matches(':').trim().parse::<u64>().expect("a number");
    assert!(number(&small) * 2 < number(&raw), "{small} of {raw}");
    let logical = number(&server.run(client, &["MEMORY", "USAGE", "doc:3", "SAMPLES", "0", "LOGICAL"]));
    assert!(logical.abs_diff(number(&raw)) * 10 < number(&raw), "{logical}, {raw} when it was raw");
    assert_eq!(usage(&mut server, "numbers:3"), server.run(client, &["MEMORY", "USAGE", "numbers:3", "LOGICAL"]));
    assert_eq!(read(&server), 0);
    server.run(client, &["COPY", "doc:19", "copy"]);
    server.run(client, &["RENAME", "copy", "renamed"]);
    server.run(client, &["EXPIRE", "renamed", "100"]);
    assert_eq!((compressed(&server), read(&server)), (20 * SHORTER + 1, 0), "none of these reads");
    server.run(client, &["DEL", "renamed"]);
    assert_eq!(server.store.digest(START_MS), digest);

    let (text, all) = (document(3), 20 * SHORTER);
    let expected = format!("${}\r\n{text}\r\n", text.len());
    assert_eq!(server.run(client, &["HGET", "doc:3", "body"]), expected);
    assert_eq!((compressed(&server), read(&server)), (all, 1), "used once in a long time");
    server.run(client, &["HGETALL", "doc:4"]);
    server.run(client, &["LRANGE", "long:4", "0", "-1"]);
    server.run(client, &["XRANGE", "stream:4", "-", "+"]);
    assert_eq!((compressed(&server), read(&server)), (all, 4), "once in a command, however long its reply");
    assert_eq!(server.run(client, &["HGET", "doc:3", "body"]), expected);
    assert_eq!((compressed(&server), read(&server)), (all - 1, 5), "used twice in a short time");
    server.run(client, &["HINCRBY", "doc:5", "id", "10"]);
    server.run(client, &["HINCRBY", "doc:5", "id", "-10"]);
    assert_eq!((compressed(&server), read(&server)), (all - 2, 6), "an edit stores it as it is");
    server.run(client, &["HEXPIRE", "doc:6", "100", "FIELDS", "1", "title"]);
    server.run(client, &["XADD", "stream:6", "6-1", "a", "b"]);
    server.run(client, &["XDEL", "stream:6", "6-1"]);
    assert_eq!(compressed(&server), all - 4);
    pass_time(&mut server);
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), all - 1, "but not where a field has a time");
    server.run(client, &["HPERSIST", "doc:6", "FIELDS", "1", "title"]);
    pass_time(&mut server);
    run_passes(&mut pass, &server.store);
    assert_eq!(compressed(&server), all);
    server.assert_replica_agrees();
    // The stream that had one more entry says so, and has no other elements.
    server.run(client, &["DEL", "stream:6"]);
    let digest = server.store.digest(server.clock.now_ms());
    server.store.compression.set(settings(Codec::Lz4, false));
    run_passes(&mut pass, &server.store);
    assert!(compressed(&server) > all / 2, "by another codec");
    assert_eq!(server.store.digest(server.clock.now_ms()), digest);
    server.store.compression.set(settings(Codec::Off, false));
    run_passes(&mut pass, &server.store);
    assert_eq!(server.store.memory.compressed(), engine_mem::CompressedUse::default());
    assert_eq!((server.store.digest(server.clock.now_ms()), told(&mut server)), (digest, forms));
    server.assert_replica_agrees();
}

/// Checkpoint and loading carry collections as they are stored, with their dictionaries, and nothing is decompressed
/// for it; what the log does to them afterwards finds them compressed.
#[test]
fn compressed_collections_are_carried_as_they_are() {
    let dir = DataDir::open(Arc::new(SimFs::new(1)), Path::new("/data")).expect("the directory opens");
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut pass = pass_of(&server);
    let mut rng = base::Rng::new(1);
    for n in 0..600 {
        let (id, at) = (rng.below(1 << 40).to_string(), (1_700_000_000 + rng.below(1 << 20)).to_string());
        let owner = format!("user{n}");
        server.run(
            client,
            &["HSET", &format!("item:{n}"), "id", &id, "owner", &owner, "state", "open", "updated_at", &at],
        );
    }
    server.store.compression.set(Settings { bytes_min: 16, ..settings(Codec::Zstd, false) });
    server.pass_ms(u64::from(IDLE_SECONDS) * 1000 + 1000);
    run_passes(&mut pass, &server.store);
    assert!(server.store.compression.train(|class, content| keep(&server, class, content)));
    run_passes(&mut pass, &server.store);
    let used = server.store.memory.compressed();
    assert!(used.values == 600 && used.stored_bytes * 3 < used.logical_bytes * 2, "{used:?}");
    (0..20).for_each(|n| make_collections(&mut server, client, n));
    server.pass_ms(u64::from(IDLE_SECONDS) * 1000 + 1000);
    run_passes(&mut pass, &server.store);
    assert_eq!(server.store.memory.values_by_dictionary().values().sum::<u64>(), 600);
    assert_eq!(compressed(&server), 600 + 20 * SHORTER);
    let read = |store: &Store| store.compression.figures.decompressed.load(Ordering::Relaxed);
    let set = checkpoint(&mut server, &dir, 1, 8 << 20, |_| ());
    assert_eq!(read(&server.store), 0, "a checkpoint decompresses nothing");
    let loaded = loaded(&server, &dir, &set);
    assert_eq!(read(&loaded), 0, "and loading nothing");
    assert_eq!(loaded.memory.compressed(), server.store.memory.compressed());
    let number = DictionaryNumber(NonZeroU32::MIN);
    assert_eq!(loaded.missing_dictionary(), Some(number), "it is told that they need one");
    let dictionary = server.store.compression.dictionaries.get(number).expect("it is in use");
    let file = DictionaryFile { number, class: dictionary.class().to_vec(), content: dictionary.content().to_vec() };
    let again = Dictionary::create(&SimFs::new(1), Path::new("/"), file).expect("the disk works");
    drop(loaded.compression.dictionaries.insert(again));
    assert_eq!(loaded.digest(START_MS), server.store.digest(START_MS));
    // The replica has none of them compressed; a store that has them all follows the same records.
    for n in 0..20 {
        server.run(client, &["HSET", &format!("item:{n}"), "state", "closed"]);
        server.run(client, &["LPOP", &format!("events:{n}")]);
        server.run(client, &["XADD", &format!("stream:{n}"), "9-1", "more", "of it"]);
        server.run(client, &["ZINCRBY", &format!("ranking:{n}"), "1", &n.to_string()]);
        server.run(client, &["SADD", &format!("tags:{n}"), "one more"]);
        server.run(client, &["HSET", &format!("doc:{n}"), "title", "another"]);
    }
    assert_eq!(compressed(&server), 600 + 20 * SHORTER - 6 * 20);
    server.assert_replica_agrees();
}
