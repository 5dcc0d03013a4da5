//! Strings kept compressed: which, when, and what checkpoint, log and restart make of them.

use crate::checkpoint::{checkpoint, loaded};
use crate::harness::{START_MS, TestServer, memory};
use checkpoint::DataDir;
use codec::dictionary::DictionaryFile;
use codec::{Dictionary, DictionaryNumber, Lease};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Store;
use store::compression::{Codec, LongStrings, Pass, Settings};
use vfs::SimFs;

const IDLE_SECONDS: u32 = 10;

fn settings(codec: Codec, on_write: bool) -> Settings {
    Settings { codec, on_write, idle_seconds: IDLE_SECONDS, ..Settings::default() }
}

/// Runs passes as long as there is something to do.
fn run_passes(pass: &mut Pass, store: &Store) {
    while pass.has_work(store) {
        pass.slice(store, 100_000);
    }
}

fn document(n: u32) -> String {
    format!(
        "{{\"id\":{n},\"name\":\"somebody\",\"tags\":[\"one\",\"two\",\"three\"],\"text\":\"{}\"}}",
        "words and ".repeat(20)
    )
}

fn compressed(server: &TestServer) -> u64 {
    server.store.memory.compressed().values
}

/// What is cold is compressed, what is used stays as it is; what is used again and again is decompressed for good; and all
/// of it when compression is switched off. Nobody sees a difference.
#[test]
fn cold_strings_are_compressed_and_hot_ones_are_not() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut pass = Pass::new(server.store.shard_ids().collect());
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

/// Keeps a dictionary as the only one, on a disk that nobody looks at again; the replica has it, too.
fn keep(server: &TestServer, class: &[u8], content: Vec<u8>) -> Option<Lease> {
    let number = DictionaryNumber(NonZeroU32::MIN);
    let file = DictionaryFile { number, class: class.to_vec(), content };
    let create = || Dictionary::create(&SimFs::new(1), Path::new("/"), file.clone()).expect("the disk works");
    drop(server.replica.store.compression.dictionaries.insert(create()));
    Some(server.store.compression.dictionaries.insert(create()))
}

/// Short documents that are alike are compressed with a dictionary once there were samples enough, also those that were compressed
/// before; with compression off no value needs it any more. Nobody sees a difference.
#[test]
fn short_documents_get_a_dictionary() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rng = base::Rng::new(1);
    let mut pass = Pass::new(server.store.shard_ids().collect());
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

/// Strings that are too long for workers are compressed by a thread of its own, and decompressed again; one that has changed
/// meanwhile is left alone, and one that is beyond all bounds.
#[test]
fn long_strings_are_not_for_workers() {
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut pass = Pass::new(server.store.shard_ids().collect());
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
    let mut strings = LongStrings::default();
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

/// Log, checkpoint and loading carry the stored form: nothing is compressed for a checkpoint and nothing decompressed for a
/// restart, and the state is the same.
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
    let mut pass = Pass::new(server.store.shard_ids().collect());
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
