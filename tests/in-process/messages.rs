//! Messages that are no replies, over several workers: what subscribers and clients that cache are promised holds
//! whichever worker publishes, changes or serves. Run under ThreadSanitizer too.

use crate::log_sockets::{appended, start as start_logged};
use crate::reply::Reply;
use crate::served::{Client, Served};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const WORKERS: &str = "3";

/// Connections are dealt to the workers in turn, so that each has some of every kind.
const CLIENTS: usize = 6;

fn subscribe(server: &Served, words: &[&str]) -> Client {
    let mut client = server.connect();
    client.run(words);
    client
}

/// All subscribers see one order of a channel's messages, which keeps that of each publisher.
#[test]
fn all_subscribers_see_one_order() {
    const MESSAGES: usize = 400;
    let server = Served::start(&["--workers", WORKERS]);
    let subscribers: Vec<Client> = (0..CLIENTS).map(|_| subscribe(&server, &["SUBSCRIBE", "c"])).collect();
    let seen: Vec<Vec<String>> = thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut publisher = server.connect();
            scope.spawn(move || {
                let texts: Vec<String> = (0..MESSAGES).map(|message| format!("{number} {message}")).collect();
                for batch in texts.chunks(40) {
                    let requests: Vec<[&str; 3]> = batch.iter().map(|text| ["PUBLISH", "c", text]).collect();
                    publisher.send(&requests.iter().map(|words| &words[..]).collect::<Vec<_>>());
                    batch.iter().for_each(|_| assert_eq!(publisher.reply(), Some(Reply::Int(CLIENTS as i64))));
                }
            });
        }
        let readers = subscribers.into_iter().map(|mut subscriber| {
            scope.spawn(move || {
                let next = |_| subscriber.reply().expect("an open connection").texts().remove(2);
                (0..CLIENTS * MESSAGES).map(next).collect::<Vec<_>>()
            })
        });
        let readers: Vec<_> = readers.collect();
        readers.into_iter().map(|reader| reader.join().expect("readers do not fail")).collect()
    });
    assert!(seen.iter().all(|texts| *texts == seen[0]), "subscribers saw different orders");
    for number in 0..CLIENTS {
        let own = seen[0].iter().filter_map(|text| text.strip_prefix(&format!("{number} ")));
        assert!(own.map(|message| message.parse::<usize>().expect("a number")).eq(0..MESSAGES));
    }
}

/// Events of a key have the order of its changes: it is created and removed in turn.
#[test]
fn events_have_the_order_of_the_changes() {
    const ROUNDS: usize = 300;
    let server = Served::start(&["--workers", WORKERS, "--notify-keyspace-events", "Egn"]);
    let mut listener = subscribe(&server, &["PSUBSCRIBE", "__keyevent@0__:*"]);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let mut client = server.connect();
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    client.run(&["INCR", "k"]);
                    client.run(&["DEL", "k"]);
                }
            });
        }
    });
    server.connect().run(&["RENAME", "k", "end"]);
    server.connect().run(&["SET", "end", "1"]);
    server.connect().run(&["DEL", "end"]);
    let (mut is_there, mut count) = (false, 0);
    loop {
        let message = listener.reply().expect("an open connection").texts();
        if message[3] == "end" && message[2].ends_with(":del") {
            break;
        }
        if message[3] == "k" {
            assert_eq!(message[2].ends_with(":del"), is_there, "after {count} events: {message:?}");
            is_there = !is_there;
            count += 1;
        }
    }
    assert!(count > 0);
}

/// A client that caches what it reads, and drops invalidated keys, never keeps a stale value.
#[test]
fn a_cache_that_forgets_what_it_is_told_is_never_stale() {
    const KEYS: [&str; 3] = ["a", "b", "c"];
    let server = Served::start(&["--workers", WORKERS, "--tracking-table-max-keys", "2"]);
    let is_over = AtomicBool::new(false);
    let caches: Vec<HashMap<String, i64>> = thread::scope(|scope| {
        let (server, is_over) = (&server, &is_over);
        let readers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn(move || {
                    let mut client = server.connect();
                    client.send(&[&["HELLO", "3"], &["CLIENT", "TRACKING", "ON"], &["PING"]]);
                    while client.reply() != Some(Reply::Simple("PONG".into())) {}
                    let mut cache = HashMap::new();
                    let mut turn = number;
                    while !is_over.load(Ordering::Acquire) {
                        let key = KEYS[turn % KEYS.len()];
                        turn += 1;
                        client.send(&[&["GET", key]]);
                        read(&mut client, key, &mut cache);
                    }
                    // What changed before the end has been announced by now.
                    client.send(&[&["PING"]]);
                    read(&mut client, "", &mut cache);
                    cache
                })
            })
            .collect();
        let writers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn(move || {
                    let mut client = server.connect();
                    for round in 0..500 {
                        client.run(&["INCR", KEYS[(number + round) % KEYS.len()]]);
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("writers do not fail"));
        is_over.store(true, Ordering::Release);
        readers.into_iter().map(|reader| reader.join().expect("readers do not fail")).collect()
    });
    let mut client = server.connect();
    for key in KEYS {
        let value: i64 = client.run(&["GET", key]).text().parse().expect("a number");
        for cache in &caches {
            assert!(cache.get(key).is_none_or(|cached| *cached == value), "{key} is {value}: {cache:?}");
        }
    }
}

/// Reads up to a reply: the value of `key` is cached, and what pushes name is forgotten.
fn read(client: &mut Client, key: &str, cache: &mut HashMap<String, i64>) {
    loop {
        match client.reply().expect("an open connection") {
            Reply::List(push) => push[1].texts().iter().for_each(|key| {
                cache.remove(key);
            }),
            Reply::Bulk(Some(value)) => {
                cache.insert(key.to_owned(), value.parse().expect("a number"));
                return;
            }
            _ => return,
        }
    }
}

/// A message of a transaction, and events of its changes, reach no client before the transaction is durable.
#[test]
fn messages_of_a_transaction_wait_for_the_log() {
    let (server, log, store) = start_logged(true);
    let mut admin = server.connect();
    admin.run(&["CONFIG", "SET", "notify-keyspace-events", "E$"]);
    let mut listener = subscribe(&server, &["PSUBSCRIBE", "*"]);
    let mut writer = server.connect();
    writer.send(&[&["MULTI"], &["SET", "k", "v"], &["PUBLISH", "c", "k is set"], &["EXEC"]]);
    appended(&log, 1);
    // In the listener's output, and kept there.
    while admin.run(&["CLIENT", "LIST", "TYPE", "pubsub"]).text().contains(" obl=0 ") {
        thread::yield_now();
    }
    log.sync_and_wake(&store);
    let texts = |listener: &mut Client| listener.reply().expect("an open connection").texts()[2..].to_vec();
    assert_eq!(texts(&mut listener), ["__keyevent@0__:set", "k"]);
    assert_eq!(texts(&mut listener), ["c", "k is set"]);
}

/// A subscriber that does not read is closed when more is unsent than its class may have, and costs others nothing.
#[test]
fn a_subscriber_that_does_not_read_is_closed() {
    let limit = "client-output-buffer-limit";
    let server = Served::start(&["--workers", WORKERS, &format!("--{limit}"), "pubsub 1mb 0 0"]);
    let mut reads = subscribe(&server, &["SUBSCRIBE", "c"]);
    let _silent = subscribe(&server, &["SUBSCRIBE", "c"]);
    let mut publisher = server.connect();
    let text = "x".repeat(50_000);
    loop {
        let receivers = publisher.run(&["PUBLISH", "c", &text]).int();
        assert_eq!(reads.reply().expect("an open connection").texts()[2], text);
        if receivers == 1 {
            break;
        }
    }
    let info = publisher.run(&["INFO", "stats"]);
    assert!(info.text().contains("client_output_buffer_limit_disconnections:1\r\n"));
}

/// BLMOVE, served: its reply was written when its worker came to it, after the invalidation of what it had changed.
/// Caches then hold what the reply says, which the client believes to be newer. NOLOOP took the change for that of the
/// client that pushed.
#[test]
fn a_served_client_is_notified_of_its_changes_after_its_reply() {
    let invalidation =
        Reply::List(vec![Reply::Bulk(Some("invalidate".into())), Reply::List(vec![Reply::Bulk(Some("to".into()))])]);
    for workers in ["1", "2"] {
        let server = Served::start(&["--workers", workers]);
        let mut pusher = server.connect();
        for (number, mode) in [None, Some("NOLOOP")].into_iter().enumerate() {
            let (mut client, from) = (server.connect(), format!("from:{number}"));
            let track: Vec<&str> = ["CLIENT", "TRACKING", "ON"].into_iter().chain(mode).collect();
            client.send(&[&["HELLO", "3"], &track, &["LRANGE", "to", "0", "0"], &["PING"]]);
            while client.reply() != Some(Reply::Simple("PONG".into())) {}
            client.send(&[&["BLMOVE", &from, "to", "LEFT", "LEFT", "0"]]);
            while pusher.run(&["INFO", "clients"]).text().contains("blocked_clients:0") {}
            pusher.run(&["RPUSH", &from, "moved"]);
            assert_eq!(client.reply(), Some(Reply::Bulk(Some("moved".into()))), "{workers} workers, {mode:?}");
            if mode.is_none() {
                assert_eq!(client.reply().as_ref(), Some(&invalidation), "{workers} workers");
            }
            client.send(&[&["PING"]]);
            assert_eq!(client.reply(), Some(Reply::Simple("PONG".into())), "{workers} workers, {mode:?}");
        }
    }
}

/// Listed in differences.md: in Valkey the invalidation of the push comes before the reply that the push leads to.
#[test]
fn a_served_client_is_notified_of_the_push_after_its_reply() {
    let server = Served::start(&["--workers", "1"]);
    let (mut client, mut pusher) = (server.connect(), server.connect());
    client.send(&[&["HELLO", "3"], &["CLIENT", "TRACKING", "ON"], &["LLEN", "from"], &["PING"]]);
    while client.reply() != Some(Reply::Simple("PONG".into())) {}
    client.send(&[&["BLPOP", "from", "0"]]);
    while pusher.run(&["INFO", "clients"]).text().contains("blocked_clients:0") {}
    pusher.run(&["RPUSH", "from", "v"]);
    let words = |reply: Option<Reply>| format!("{reply:?}");
    assert!(words(client.reply()).contains("\"v\""));
    assert!(words(client.reply()).contains("\"invalidate\""));
}
