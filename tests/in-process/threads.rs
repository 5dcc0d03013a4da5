//! Several workers over one store, clients on threads of their own: what they were promised holds while tables grow,
//! split and shrink, and while other connections list, change and close them. Run under ThreadSanitizer too, which sees
//! the locks, the mailboxes and the hints that are read without a lock.

use crate::reply::Reply;
use crate::served::{Client, Served};
use base::Rng;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

const WORKERS: usize = 3;
const CLIENTS: usize = 6;
const ROUNDS: usize = 200;

/// Requests of one pipeline: more than the executor's batch.
const PIPELINE: usize = 48;

/// Keys that each client adds and removes, so that the tables of the shards grow, split and shrink.
const OWN_KEYS: u64 = 600;

/// Whether a reply is right.
type Judge = Box<dyn Fn(&Reply) -> bool>;

/// What one client does: pipelines of requests whose replies it can judge. Gives its additions to the shared counter.
fn client(server: &Served, number: usize) -> i64 {
    let mut connection = server.connect();
    let mut rng = Rng::new(number as u64);
    let mut own: Vec<Option<String>> = vec![None; OWN_KEYS as usize];
    let (mut added, mut seen) = (0, 0);
    for round in 0..ROUNDS {
        let mut requests: Vec<Vec<String>> = Vec::new();
        let mut judges: Vec<Judge> = Vec::new();
        for _ in 0..PIPELINE {
            let key = rng.below(OWN_KEYS);
            let name = format!("own:{number}:{key}");
            let (words, judge): (Vec<String>, Judge) = match rng.below(8) {
                0..=2 => {
                    let length = if rng.one_in(50) { 20_000 } else { rng.below(100) as usize };
                    let value = format!("{round}:{}", "v".repeat(length));
                    own[key as usize] = Some(value.clone());
                    (vec!["SET".into(), name, value], Box::new(|reply| *reply == Reply::Simple("OK".into())))
                }
                3 => {
                    let was = i64::from(own[key as usize].take().is_some());
                    (vec!["DEL".into(), name], Box::new(move |reply| *reply == Reply::Int(was)))
                }
                4 => {
                    let expected = Reply::Bulk(own[key as usize].clone());
                    (vec!["GET".into(), name], Box::new(move |reply| *reply == expected))
                }
                5 => {
                    added += 1;
                    (vec!["INCR".into(), "counter".into()], Box::new(|reply| matches!(reply, Reply::Int(1..))))
                }
                // Two keys of two shards, always written together.
                6 => {
                    let value = format!("{number}:{round}");
                    let words = ["MSET", "left", &value, "right", &value].map(String::from).to_vec();
                    (words, Box::new(|reply| *reply == Reply::Simple("OK".into())))
                }
                _ => {
                    let both = |reply: &Reply| matches!(reply.list(), [left, right] if left == right);
                    (["MGET", "left", "right"].map(String::from).to_vec(), Box::new(both))
                }
            };
            requests.push(words);
            judges.push(judge);
        }
        let words: Vec<Vec<&str>> = requests.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
        connection.send(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for (words, judge) in words.iter().zip(judges) {
            let reply = connection.reply().expect("an open connection");
            assert!(judge(&reply), "client {number}, round {round}: {words:?} was answered {reply:?}");
            if words[0] == "INCR" {
                assert!(reply.int() > seen, "the counter went back");
                seen = reply.int();
            }
        }
    }
    let kept = own.iter().flatten().count() as i64;
    let mut scanned = 0;
    let mut cursor = "0".to_owned();
    loop {
        let pattern = format!("own:{number}:*");
        let reply = connection.run(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", "100"]);
        scanned += reply.list()[1].list().len() as i64;
        cursor = reply.list()[0].text().to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert!(scanned >= kept, "client {number}: SCAN gave {scanned} of {kept} keys");
    added
}

/// What an administrator does meanwhile: commands over all shards, all connections and the settings.
fn administrator(server: &Served, done: &AtomicBool) {
    let mut connection = server.connect();
    let mut watcher = server.connect();
    while !done.load(Ordering::Acquire) {
        assert_eq!(watcher.run(&["MONITOR"]), Reply::Simple("OK".into()));
        for words in [
            &["INFO"][..],
            &["CLIENT", "LIST"],
            &["DBSIZE"],
            &["KEYS", "nothing*"],
            &["RANDOMKEY"],
            &["CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "noeviction"],
            &["SLOWLOG", "GET"],
            &["MEMORY", "STATS"],
            &["COMMAND", "COUNT"],
            &["MULTI"],
            &["INCRBY", "counter", "0"],
            &["EXEC"],
            &["SET", "short", "1", "PX", "50"],
        ] {
            let reply = connection.run(words);
            assert!(!matches!(reply, Reply::Error(_)), "{words:?}: {reply:?}");
        }
        // Time passes for the expirations, and for the inspection of connections.
        server.clock.advance_ms(100);
        // Closed by another worker, or by the same, in the middle of what it is shown.
        connection.run(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", "MAXAGE", "1000000"]);
        connection.run(&["CLIENT", "NO-EVICT", "on"]);
        let mut victim = server.connect();
        let id = victim.run(&["CLIENT", "ID"]).int().to_string();
        assert_eq!(connection.run(&["CLIENT", "KILL", "ID", &id]), Reply::Int(1));
        assert_eq!(victim.reply(), None, "a killed connection is closed");
        watcher = server.connect();
    }
}

/// Read-your-writes on each connection, no lost increment, no partially visible MSET, no key lost by SCAN; and no
/// client waits forever.
#[test]
fn promises_hold_among_threads() {
    let workers = WORKERS.to_string();
    let server = Served::start(&["--workers", &workers, "--shards", "8", "--timeout", "0"]);
    let (done, added) = (AtomicBool::new(false), AtomicI64::new(0));
    let mut last: Client = server.connect();
    last.run(&["MSET", "left", "", "right", ""]);
    std::thread::scope(|scope| {
        scope.spawn(|| administrator(&server, &done));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn({
                    let server = &server;
                    move || client(server, number)
                })
            })
            .collect();
        for client in clients {
            match client.join() {
                Ok(count) => drop(added.fetch_add(count, Ordering::Relaxed)),
                Err(panic) => {
                    done.store(true, Ordering::Release);
                    std::panic::resume_unwind(panic);
                }
            }
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(last.run(&["GET", "counter"]).text(), added.load(Ordering::Relaxed).to_string());
}
