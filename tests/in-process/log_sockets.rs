//! A whole server with sockets whose replies wait for a log: workers are woken when it has come far enough.

use crate::fake_log::FakeLog;
use crate::reply::Reply;
use crate::served::Served;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use store::Store;

/// A server of two workers with a log, its store, and nothing durable.
pub fn start(holds: bool) -> (Served, Arc<FakeLog>, Arc<Store>) {
    start_with(holds, &["--workers", "2"])
}

fn start_with(holds: bool, options: &[&str]) -> (Served, Arc<FakeLog>, Arc<Store>) {
    let (say, ready) = channel();
    let log = FakeLog::new(holds);
    let installed = log.clone();
    let server = Served::start_recovering(
        options,
        Box::new(move |shared| {
            while shared.store.try_lock_all().map(|mut all| all.set_log(Some(installed.clone()))).is_none() {
                std::thread::yield_now();
            }
            shared.store.gate.end_loading();
            say.send(shared.store.clone())?;
            Ok(())
        }),
    );
    let store = ready.recv().expect("it starts");
    (server, log, store)
}

fn ok() -> Reply {
    Reply::Simple("OK".into())
}

/// Waits until `count` records have been appended: by then unanswered requests have run.
pub fn appended(log: &FakeLog, count: usize) {
    while log.len() < count {
        std::thread::yield_now();
    }
}

#[test]
fn replies_come_when_the_log_has_come_far_enough() {
    let (server, log, store) = start(true);
    let (mut writer, mut reader) = (server.connect(), server.connect());
    for round in 0..50 {
        let value = round.to_string();
        writer.send(&[&["SET", "k", &value], &["INCR", "n"], &["GET", "k"]]);
        appended(&log, 2 * round + 2);
        reader.send(&[&["GET", "other"], &["GET", "k"], &["PING"]]);
        assert_eq!(reader.reply(), Some(Reply::Bulk(None)), "what is not pending is answered at once");
        log.sync_and_wake(&store);
        let written = [writer.reply(), writer.reply(), writer.reply()];
        assert_eq!(written, [Some(ok()), Some(Reply::Int(round as i64 + 1)), Some(Reply::Bulk(Some(value.clone())))]);
        assert_eq!(
            [reader.reply(), reader.reply()],
            [Some(Reply::Bulk(Some(value))), Some(Reply::Simple("PONG".into()))]
        );
    }
}

/// While a worker has what to do, a sync is put off for what it appends next, but not for long; when it has not, the
/// sync begins.
#[test]
fn a_sync_is_not_put_off_for_long() {
    let (server, log, store) = start_with(true, &["--workers", "1"]);
    let (mut writer, mut others) = (server.connect(), [server.connect(), server.connect()]);
    let until = Instant::now() + Duration::from_secs(60);
    let until_turn_ends = || {
        while log.is_in_turn(0) {
            assert!(Instant::now() < until, "the sync is put off for ever");
            std::thread::yield_now();
        }
    };
    writer.send(&[&["SET", "k", "1"]]);
    appended(&log, 1);
    until_turn_ends();
    log.sync_and_wake(&store);
    assert_eq!(writer.reply(), Some(ok()));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in &mut others {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) && Instant::now() < until {
                    client.send(&[["PING"].as_slice(); 200]);
                    (0..200).for_each(|_| assert_eq!(client.reply(), Some(Reply::Simple("PONG".into()))));
                }
            });
        }
        for count in 2..50 {
            writer.send(&[&["SET", "k", "2"]]);
            appended(&log, count);
            until_turn_ends();
            log.sync_and_wake(&store);
            assert_eq!(writer.reply(), Some(ok()));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// QUIT closes when all before it is answered; a client that goes while it is held leaves nothing.
#[test]
fn connections_close_while_replies_are_held() {
    let (server, log, store) = start(true);
    let (mut quits, mut leaves) = (server.connect(), server.connect());
    leaves.send(&[&["SET", "a", "1"]]);
    quits.send(&[&["SET", "b", "1"], &["QUIT"], &["SET", "b", "2"]]);
    appended(&log, 2);
    drop(leaves);
    log.sync_and_wake(&store);
    assert_eq!([quits.reply(), quits.reply(), quits.reply()], [Some(ok()), Some(ok()), None]);
    assert_eq!(server.connect().run(&["GET", "b"]), Reply::Bulk(Some("1".into())));
}

/// A held connection runs on only until much of its output is unsent, and continues when the log does.
#[test]
fn a_held_connection_is_bounded_and_goes_on_when_the_log_does() {
    let (server, log, store) = start_with(true, &["--workers", "1", "--client-output-buffer-pause", "64kb"]);
    let (mut client, mut other) = (server.connect(), server.connect());
    let value = "v".repeat(1_000);
    client.send(&[&["SET", "k", &value]]);
    appended(&log, 1);
    let mut requests: Vec<&[&str]> = vec![&["GET", "k"]; 1_000];
    requests.push(&["SET", "last", "1"]);
    client.send(&requests);
    // Far more turns of the only worker than it needs to read all of this.
    for _ in 0..200 {
        assert_eq!(other.run(&["PING"]), Reply::Simple("PONG".into()));
    }
    assert_eq!(log.len(), 1, "the end of the pipeline is not reached");
    log.sync_and_wake(&store);
    assert_eq!(client.reply(), Some(ok()));
    for _ in 0..1_000 {
        assert_eq!(client.reply(), Some(Reply::Bulk(Some(value.clone()))));
    }
    appended(&log, 2);
    log.sync_and_wake(&store);
    assert_eq!(client.reply(), Some(ok()));
}

/// Turning the log off lets go of what it held.
#[test]
fn removing_the_log_lets_replies_go() {
    let (server, log, store) = start(true);
    let mut client = server.connect();
    client.send(&[&["SET", "k", "1"]]);
    appended(&log, 1);
    while store.try_lock_all().map(|mut all| all.set_log(None)).is_none() {
        std::thread::yield_now();
    }
    assert_eq!(client.reply(), Some(ok()));
}

#[test]
fn waitaof_is_woken_by_the_log_and_by_unblock() {
    let (server, log, store) = start(false);
    let (mut client, mut other) = (server.connect(), server.connect());
    assert_eq!(client.run(&["SET", "k", "1"]), ok());
    let id = client.run(&["CLIENT", "ID"]).int().to_string();
    client.send(&[&["WAITAOF", "1", "0", "0"]]);
    let is_blocked = |other: &mut crate::served::Client| {
        while !other.run(&["INFO", "clients"]).text().contains("blocked_clients:1\r\n") {}
    };
    is_blocked(&mut other);
    log.sync_and_wake(&store);
    assert_eq!(client.reply(), Some(Reply::List(vec![Reply::Int(1), Reply::Int(0)])));
    client.send(&[&["WAIT", "1", "0"]]);
    is_blocked(&mut other);
    assert_eq!(other.run(&["CLIENT", "UNBLOCK", &id, "ERROR"]), Reply::Int(1));
    assert_eq!(client.reply(), Some(Reply::Error("UNBLOCKED client unblocked via CLIENT UNBLOCK".into())));
    // By its time, which passes for the server when the test says so.
    client.send(&[&["WAIT", "1", "500"]]);
    is_blocked(&mut other);
    server.clock.advance_ms(500);
    assert_eq!(client.reply(), Some(Reply::Int(0)));
}

/// A client that disconnects while its command waits is detected, although its socket is not read.
#[test]
fn a_client_that_goes_while_it_waits_is_noticed() {
    let (server, _, _) = start(false);
    let (mut other, mut client) = (server.connect(), server.connect());
    client.send(&[&["WAIT", "1", "0"]]);
    while !other.run(&["INFO", "clients"]).text().contains("blocked_clients:1\r\n") {}
    drop(client);
    while !other.run(&["INFO", "clients"]).text().contains("connected_clients:1\r\n") {}
}
