//! What other threads of the process learn about a server.

use crate::harness::{TestServer, memory};
use server::observe::{self, Observed};

const SHARDS: usize = 4;

/// A scrape takes no lock of a shard: it is answered under each of them, where a second lock would wait for ever.
#[test]
fn info_takes_no_lock_of_a_shard() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    server.run(client, &["SET", "key", "value"]);
    let all: Vec<_> = server.store.each_shard(|_| observe::info(&server.shared)).collect();
    assert_eq!(all.len(), SHARDS);
    for text in all {
        assert!(text.is_some_and(|text| text.contains("\r\nused_memory:") && text.contains("cmdstat_set:calls=1,")));
    }
}

/// A scrape shows every section of INFO; the keys come from the worker.
#[test]
fn a_scrape_has_every_section() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let headings =
        |text: &str| text.lines().filter(|line| line.starts_with("# ")).map(str::to_owned).collect::<Vec<_>>();
    let wanted = headings(&server.run(client, &["INFO", "everything"]));
    let found = headings(&observe::info(&server.shared).unwrap());
    assert!(wanted.len() > 10);
    assert_eq!(found, wanted);
}

/// Keys are counted by a worker, and only after a scrape.
#[test]
fn keys_are_counted_after_a_scrape() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    server.run(client, &["SET", "key", "value"]);
    let observed = server.shared.host.part::<server::Needed, Observed>();
    let keyspace = || observe::info(&server.shared).and_then(|text| Some(text.split_once("# Keyspace")?.1.to_owned()));
    observed.count(&server.shared);
    assert_eq!(keyspace().as_deref(), Some(""), "not counted before it was asked for");
    observed.count(&server.shared);
    assert_eq!(keyspace().as_deref(), Some("\r\ndb0:keys=1,expires=0,avg_ttl=0,keys_with_volatile_items=0"));
}

/// Calls of other threads are in no statistics.
#[test]
fn calls_of_the_page_are_not_counted() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    for _ in 0..3 {
        assert!(observe::ask(&server.shared, &["SLOWLOG", "GET"]).is_some());
        assert!(observe::ask(&server.shared, &["NO-SUCH-COMMAND"]).is_none());
    }
    assert!(!server.run(client, &["INFO", "commandstats"]).contains("slowlog"));
}
