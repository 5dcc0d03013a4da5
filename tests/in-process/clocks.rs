//! Clocks that jump: forwards by years, backwards by hours, or not at all for a while.
//!
//! Commands take whatever time they are given: over 100 seeds of raw jumps a key is there exactly while its time has
//! not come. The whole server takes the slewed clock of the product: a jump of the machine's wall clock expires nothing
//! early, and whatever waits continues.

use crate::harness::{START_MS, TestServer, memory};
use crate::reply::Reply;
use crate::served::{Client, Served};
use base::{Clock, Rng, UnixMs};

const HOUR_MS: i64 = 3_600_000;
const YEAR_MS: i64 = 365 * 24 * HOUR_MS;
const KEYS: u64 = 40;

/// 100 of them, or as many as the environment says, from the first that it says.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, usual| std::env::var(name).map_or(usual, |value| value.parse().expect("a number"));
    let first = number("ONGGI_CLOCK_SEED", 0);
    first..first + number("ONGGI_CLOCK_SEEDS", 100)
}

/// What is known of a key.
#[derive(Clone, Copy, Default)]
struct Known {
    exists: bool,
    /// When it expires; `None` for never.
    expires_at: Option<UnixMs>,
    /// Its time had come once. If the clock then went back, it may be there again or not: it is unless upkeep was
    /// first.
    was_due: bool,
}

/// Random expirations, random jumps, upkeep between. No key is removed early or stays after its time, TTLs and access
/// times do not overflow, memory is returned, and a replica that replays the records agrees.
#[test]
fn keys_are_there_while_their_time_has_not_come() {
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let mut server = TestServer::with_shards(memory, 4);
        let client = server.connect_listed();
        if rng.one_in(2) {
            assert_eq!(server.run(client, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"]), "+OK\r\n");
        }
        let mut known = [Known::default(); KEYS as usize];
        for step in 0..120 {
            match rng.below(8) {
                0 => jump(&server, &mut rng),
                1 => server.clock.advance_ms(rng.below(2_000)),
                2 => {
                    server.clock.advance_ms(1);
                    server.keep_up();
                }
                _ => {}
            }
            server.executor.begin_turn();
            let now = server.clock.now_ms();
            for key in &mut known {
                key.was_due |= key.expires_at.is_some_and(|at| at <= now);
            }
            let number = rng.below(KEYS) as usize;
            let (name, key) = (format!("key:{number}"), &mut known[number]);
            match rng.below(5) {
                0 => {
                    let ms = 1 + rng.below(5_000) as i64;
                    assert_eq!(server.run(client, &["SET", &name, "v", "PX", &ms.to_string()]), "+OK\r\n");
                    *key = Known { exists: true, expires_at: Some(now + ms), was_due: false };
                }
                1 => {
                    let at = now + 1 + rng.below(2 * YEAR_MS as u64) as i64;
                    assert_eq!(server.run(client, &["SET", &name, "v", "PXAT", &at.to_string()]), "+OK\r\n");
                    *key = Known { exists: true, expires_at: Some(at), was_due: false };
                }
                2 => {
                    assert_eq!(server.run(client, &["SET", &name, "v"]), "+OK\r\n");
                    *key = Known { exists: true, expires_at: None, was_due: false };
                }
                _ => check(&mut server, client, &name, key, &format!("seed {seed}, step {step}")),
            }
        }
        server.keep_up();
        server.assert_replica_agrees();
        // Far in the future nothing is left but what never expires, and upkeep alone has removed the rest.
        server.clock.set_ms(START_MS + 10 * YEAR_MS);
        server.keep_up();
        let left = known.iter().filter(|key| key.exists && key.expires_at.is_none()).count();
        assert_eq!(server.store.len(base::DbIndex(0)), (left as u64, 0), "seed {seed}");
        server.assert_replica_agrees();
    }
}

/// Upkeep looks at each shard every 50 ms. A round that comes 50 ms after the end of a key's time must therefore remove
/// it, at whichever millisecond that was. DBSIZE counts the key until then.
#[test]
fn a_key_is_removed_within_a_tenth_of_a_second() {
    let mut server = TestServer::with_shards(memory, 2);
    let client = server.connect_listed();
    for left_ms in 1..=150 {
        server.keep_up();
        assert_eq!(server.run(client, &["SET", "k", "v", "PX", &left_ms.to_string()]), "+OK\r\n");
        server.clock.advance_ms(left_ms);
        server.executor.begin_turn();
        assert_eq!(server.run(client, &["GET", "k"]), "$-1\r\n", "{left_ms} ms");
        server.pass_ms(50);
        assert_eq!(server.run(client, &["DBSIZE"]), ":0\r\n", "a key of {left_ms} ms");
    }
}

/// HLEN and HKEYS leave out a field whose time is over, before upkeep removes it.
#[test]
fn expired_fields_are_not_counted() {
    let mut server = TestServer::with_shards(memory, 1);
    let client = server.connect_listed();
    assert_eq!(server.run(client, &["HSET", "h", "stays", "1", "goes", "2"]), ":2\r\n");
    assert_eq!(server.run(client, &["HPEXPIRE", "h", "10", "FIELDS", "1", "goes"]), "*1\r\n:1\r\n");
    assert_eq!(server.run(client, &["HLEN", "h"]), ":2\r\n");
    server.clock.advance_ms(10);
    server.executor.begin_turn();
    assert_eq!(server.run(client, &["HLEN", "h"]), ":1\r\n");
    assert_eq!(server.run(client, &["HKEYS", "h"]), "*1\r\n$5\r\nstays\r\n");
}

/// A key has expired, and upkeep has not removed it yet: what is added to a collection under it makes a new one, of
/// whatever type, that does not expire; the records say the same.
#[test]
fn what_is_added_after_the_time_is_new() {
    let mut server = TestServer::with_shards(memory, 4);
    let client = server.connect_listed();
    let olds: [&[&str]; 4] =
        [&["SET", "k", "v"], &["SADD", "k", "old"], &["RPUSH", "k", "old"], &["HSET", "k", "old", "v"]];
    let news: [&[&str]; 5] = [
        &["SADD", "k", "new"],
        &["RPUSH", "k", "new"],
        &["HSET", "k", "new", "v"],
        &["ZADD", "k", "1", "new"],
        &["XADD", "k", "1-1", "new", "v"],
    ];
    for old in olds {
        for new in news {
            server.executor.begin_turn();
            server.run(client, old);
            assert_eq!(server.run(client, &["PEXPIRE", "k", "5"]), ":1\r\n");
            server.clock.advance_ms(10);
            server.executor.begin_turn();
            let place = format!("{old:?}, then {new:?}");
            server.run(client, new);
            let size = ["SCARD", "LLEN", "HLEN", "ZCARD", "XLEN"]
                .map(|command| server.run(client, &[command, "k"]))
                .into_iter()
                .filter(|reply| reply == ":1\r\n");
            assert_eq!(size.count(), 1, "{place}");
            assert_eq!(server.run(client, &["PTTL", "k"]), ":-1\r\n", "{place}");
            server.assert_replica_agrees();
            assert_eq!(server.run(client, &["DEL", "k"]), ":1\r\n", "{place}");
        }
    }
}

/// Sets the wall clock to somewhere else, or back to where it belongs.
fn jump(server: &TestServer, rng: &mut Rng) {
    let now = server.clock.now_ms();
    let target = match rng.below(6) {
        0 => now + YEAR_MS,
        1 => now - HOUR_MS,
        2 => now - 30_000,
        3 => now + rng.below(HOUR_MS as u64) as i64,
        4 => now - rng.below(YEAR_MS as u64) as i64,
        _ => START_MS,
    };
    server.clock.set_ms(target);
}

/// What commands say of a key against what is known of it.
fn check(server: &mut TestServer, client: usize, name: &str, key: &mut Known, place: &str) {
    let now = server.clock.now_ms();
    let is_due = key.expires_at.is_some_and(|at| at <= now);
    let there = server.ask(client, &["GET", name]) == Reply::Bulk(Some("v".into()));
    assert!(!(there && (is_due || !key.exists)), "{place}: {name} is there after its time");
    assert!(there || key.was_due || !key.exists, "{place}: {name} expired early");
    let ttl = server.ask(client, &["PTTL", name]).int();
    let expected = match (there, key.expires_at) {
        (false, _) => -2,
        (true, None) => -1,
        (true, Some(at)) => at - now,
    };
    assert_eq!(ttl, expected, "{place}: {name}");
    for about in ["IDLETIME", "FREQ"] {
        let reply = server.ask(client, &["OBJECT", about, name]);
        assert!(matches!(reply, Reply::Int(0..) | Reply::Error(_) | Reply::Bulk(None)), "{place}: {reply:?}");
    }
}

/// Lets time pass in steps that readings of a busy server have between them. `PING` has every worker look at its clock.
fn pass_ms(server: &Served, clients: &mut [Client], ms: u64) {
    for _ in 0..ms / 100 {
        server.clock.advance_ms(100);
        clients.iter_mut().for_each(|client| assert_eq!(client.run(&["PING"]), Reply::Simple("PONG".into())));
    }
}

/// The jumps a machine's wall clock makes in the tests of the whole server.
const JUMPS_MS: [i64; 5] = [YEAR_MS, HOUR_MS, -HOUR_MS, -YEAR_MS, 30_000];

/// A jump of the wall clock expires no key that has more than a minute left, and a time to live afterwards lasts as
/// long as it was asked for, within the tenth by which the clock is slewed.
#[test]
fn a_jump_expires_nothing_early() {
    for jump_ms in JUMPS_MS {
        let server = Served::start_slewed(&["--workers", "2"]);
        let mut clients = [server.connect(), server.connect()];
        let names: Vec<String> = (0..200).map(|number| format!("key:{number}")).collect();
        names.iter().for_each(|name| drop(clients[0].run(&["SET", name, "v", "EX", "100"])));
        let exist: Vec<&str> = std::iter::once("EXISTS").chain(names.iter().map(String::as_str)).collect();
        pass_ms(&server, &mut clients, 1_000);
        server.clock.set_ms(server.clock.now_ms() + jump_ms);
        pass_ms(&server, &mut clients, 1_000);
        assert_eq!(clients[0].run(&exist), Reply::Int(200), "jump of {jump_ms} ms");
        clients[0].run(&["SET", "after", "v", "PX", "10000"]);
        pass_ms(&server, &mut clients, 8_900);
        assert_eq!(clients[1].run(&["EXISTS", "after"]), Reply::Int(1), "jump of {jump_ms} ms: expired early");
        pass_ms(&server, &mut clients, 2_400);
        assert_eq!(clients[1].run(&["EXISTS", "after"]), Reply::Int(0), "jump of {jump_ms} ms: did not expire");
        // TIME is the machine's, not slewed.
        let seconds: i64 = clients[0].run(&["TIME"]).list()[0].text().parse().expect("a number");
        assert_eq!(seconds, server.clock.now_ms() / 1000);
    }
}

/// A wait for a moment continues after a jump as without one: CLIENT PAUSE ends, a wrong password's answer comes,
/// silent connections are closed when their time is over and not before, and the log of slow calls continues.
#[test]
fn what_waits_goes_on_after_a_jump() {
    for jump_ms in [YEAR_MS, -HOUR_MS, -YEAR_MS] {
        let options = ["--workers", "2", "--requirepass", "secret", "--timeout", "60", "--login-timeout", "0"];
        let server = Served::start_slewed(&options);
        let mut clients = [server.connect(), server.connect()];
        let accepted = Reply::Simple("OK".into());
        clients.iter_mut().for_each(|client| assert_eq!(client.run(&["AUTH", "secret"]), accepted));
        let (mut silent, mut paused, mut guesser) = (server.connect(), server.connect(), server.connect());
        assert_eq!(silent.run(&["AUTH", "secret"]), accepted);
        assert_eq!(paused.run(&["AUTH", "secret"]), accepted);
        assert_eq!(clients[0].run(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]), accepted);
        assert_eq!(clients[0].run(&["CLIENT", "PAUSE", "1000", "WRITE"]), accepted);
        paused.send(&[&["SET", "k", "v"]]);
        let wrong = &["AUTH", "wrong"][..];
        guesser.send(&[wrong; 8]);
        pass_ms(&server, &mut clients, 500);
        server.clock.set_ms(server.clock.now_ms() + jump_ms);
        // The pause and the delays are over after their time, a tenth more at most. The last of them are read when they
        // come.
        pass_ms(&server, &mut clients, 2_500);
        assert_eq!(paused.reply(), Some(accepted), "jump of {jump_ms} ms: the pause did not end");
        for _ in 0..8 {
            let reply = guesser.reply();
            assert!(matches!(&reply, Some(Reply::Error(text)) if text.starts_with("WRONGPASS")), "{reply:?}");
        }
        let entries = clients[0].run(&["SLOWLOG", "GET", "5"]);
        assert_eq!(entries.list().len(), 5);
        assert!(entries.list().iter().all(|entry| entry.list()[1].int() > 0 && entry.list()[2].int() >= 0));
        // 50 seconds of silence are no reason to close, 70 are.
        pass_ms(&server, &mut clients, 47_000);
        assert_eq!(silent.run(&["PING"]), Reply::Simple("PONG".into()), "jump of {jump_ms} ms: closed early");
        pass_ms(&server, &mut clients, 70_000);
        assert_eq!(silent.reply(), None, "jump of {jump_ms} ms: a silent connection stays open");
    }
}

/// A wall clock that stands still stops nothing: time follows the monotonic clock.
#[test]
fn a_frozen_wall_clock_stops_nothing() {
    let server = Served::start_slewed(&["--workers", "2"]);
    let mut clients = [server.connect(), server.connect()];
    let frozen = server.clock.now_ms() + 120_000;
    clients[0].run(&["SET", "k", "v", "EX", "100"]);
    for _ in 0..1_150 {
        server.clock.advance_ms(100);
        server.clock.set_ms(frozen);
        clients.iter_mut().for_each(|client| drop(client.run(&["PING"])));
    }
    assert_eq!(clients[1].run(&["EXISTS", "k"]), Reply::Int(0));
}
