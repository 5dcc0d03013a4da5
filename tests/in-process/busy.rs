//! Scripts as other connections see them: past `busy-reply-threshold`, with one worker and with two, and by MONITOR.

use crate::ending::NoRdb;
use crate::reply::Reply;
use crate::served::{Client, Served};
use durability::Tell;
use server::serve::Keeping;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vfs::SimFs;

const BUSY: &str = "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
/// They end after a while in any case, so that a test that fails ends.
const ENDLESS: &[&str] = &["EVAL", "for i = 1, 5e9 do end", "0"];
const ENDLESS_WRITER: &[&str] = &["EVAL", "redis.call('SET', KEYS[1], 'half') for i = 1, 5e9 do end", "1", "written"];

fn options(workers: &'static str) -> [&'static str; 8] {
    ["--workers", workers, "--shards", "16", "--dir", "/data", "--busy-reply-threshold", "30"]
}

fn ok() -> Reply {
    Reply::Simple("OK".into())
}

fn busy() -> Reply {
    Reply::Error(BUSY.into())
}

/// Asks until the script is busy. A request that arrives together with the script waits for its end: then another
/// connection asks.
fn wait_until_busy(server: &Served) {
    let begun = Instant::now();
    loop {
        let mut client = server.connect();
        client.send(&[&["PING"]]);
        if client.has_reply_within(Duration::from_millis(300)) && client.reply() == Some(busy()) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the script never gets busy");
    }
}

/// Ends the script, which has not written.
fn kill(client: &mut Client, script: &mut Client) {
    assert_eq!(client.run(&["SCRIPT", "KILL"]), ok());
    let Some(Reply::Error(text)) = script.reply() else { panic!("the script has no result") };
    assert!(text.starts_with("ERR Script killed by user with SCRIPT KILL."), "{text}");
}

/// Connections of the script's own worker are answered, as they were before it began, and continue after it.
#[test]
fn clients_of_the_busy_worker_are_answered() {
    for workers in ["1", "2"] {
        let server = Served::start(&options(workers));
        let mut clients: Vec<Client> = (0..4).map(|_| server.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.run(&["SELECT", &number.to_string()]), ok());
            assert_eq!(client.run(&["CLIENT", "SETNAME", &format!("client{number}")]), ok());
        }
        let (mut silent, mut script) = (server.connect(), server.connect());
        script.send(&[ENDLESS]);
        wait_until_busy(&server);
        for client in &mut clients {
            client.send(&[&["SET", "key", "value"], &["GET", "key"], &["PING"]]);
            assert_eq!([client.reply(), client.reply(), client.reply()], [Some(busy()), Some(busy()), Some(busy())]);
        }
        // A request of which the other half comes after the script.
        clients[2].send_bytes(b"*1\r\n$4\r\nPI");
        clients[3].send(&[&["MULTI"], &["INCR", "counter"]]);
        assert_eq!([clients[3].reply(), clients[3].reply()], [Some(ok()), Some(busy())]);
        assert_eq!(silent.run(&["SHUTDOWN"]), busy());
        assert_eq!(clients[1].run(&["FUNCTION", "KILL"]), busy());
        kill(&mut clients[0], &mut script);
        for (number, client) in clients.iter_mut().enumerate() {
            if number == 2 {
                client.send_bytes(b"NG\r\n");
                assert_eq!(client.reply(), Some(Reply::Simple("PONG".into())));
            }
            if number == 3 {
                let aborted = "EXECABORT Transaction discarded because of previous errors.";
                assert_eq!(client.run(&["EXEC"]), Reply::Error(aborted.into()));
            }
            assert_eq!(client.run(&["SET", "key", &number.to_string()]), ok());
            assert_eq!(client.run(&["CLIENT", "GETNAME"]), Reply::Bulk(Some(format!("client{number}"))));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.run(&["GET", "key"]), Reply::Bulk(Some(number.to_string())), "databases stay apart");
        }
        assert_eq!(silent.run(&["PING"]), Reply::Simple("PONG".into()));
    }
}

/// A connection that was made meanwhile is served, and later by a worker like any other: messages reach it.
#[test]
fn connections_made_meanwhile_stay() {
    let server = Served::start(&options("1"));
    let mut script = server.connect();
    for round in 0..3 {
        script.send(&[ENDLESS]);
        wait_until_busy(&server);
        let (mut new, mut other) = (server.connect(), server.connect());
        assert_eq!(new.run(&["GET", "key"]), busy());
        assert_eq!(new.run(&["CLIENT", "SETNAME", "new"]), ok());
        kill(&mut other, &mut script);
        assert_eq!(new.run(&["CLIENT", "GETNAME"]), Reply::Bulk(Some("new".into())));
        assert!(matches!(new.run(&["SUBSCRIBE", "channel"]), Reply::List(_)));
        assert_eq!(other.run(&["PUBLISH", "channel", "text"]), Reply::Int(1), "round {round}");
        assert!(matches!(new.reply(), Some(Reply::List(_))));
    }
}

/// Connections that cannot be moved wait for the script: a subscriber, and one with a request before it.
#[test]
fn the_others_wait() {
    let server = Served::start(&options("1"));
    let (mut subscriber, mut script, mut killer) = (server.connect(), server.connect(), server.connect());
    assert!(matches!(subscriber.run(&["SUBSCRIBE", "channel"]), Reply::List(_)));
    script.send(&[ENDLESS, &["SET", "after", "1"]]);
    wait_until_busy(&server);
    subscriber.send(&[&["PING"]]);
    kill(&mut killer, &mut script);
    assert!(matches!(subscriber.reply(), Some(Reply::List(_))));
    assert_eq!(script.reply(), Some(ok()), "the request after the script runs");
    assert_eq!(killer.run(&["PUBLISH", "channel", "text"]), Reply::Int(1));
}

/// Clients leave while the script runs. The others continue after its end.
#[test]
fn clients_may_leave_meanwhile() {
    let server = Served::start(&options("1"));
    let (mut quits, mut leaves, mut stays) = (server.connect(), server.connect(), server.connect());
    for client in [&mut quits, &mut leaves, &mut stays] {
        assert_eq!(client.run(&["PING"]), Reply::Simple("PONG".into()));
    }
    let (mut script, mut killer) = (server.connect(), server.connect());
    script.send(&[ENDLESS]);
    wait_until_busy(&server);
    drop(leaves);
    assert_eq!(quits.run(&["QUIT"]), ok());
    assert_eq!(quits.reply(), None, "at once, not when the script has ended");
    kill(&mut killer, &mut script);
    for client in [&mut killer, &mut stays] {
        assert_eq!(client.run(&["PING"]), Reply::Simple("PONG".into()));
    }
    let Reply::Bulk(Some(list)) = killer.run(&["CLIENT", "LIST"]) else { panic!("there are clients") };
    assert_eq!(list.lines().count(), 3, "{list}");
}

/// MONITOR shows a script, then its commands with the database they run in, and none that is refused.
#[test]
fn commands_of_scripts_are_shown() {
    let server = Served::start(&options("1"));
    let (mut watcher, mut client) = (server.connect(), server.connect());
    assert_eq!(watcher.run(&["MONITOR"]), ok());
    let text =
        "redis.call('SET', KEYS[1], 1) redis.call('SELECT', 3) redis.pcall('nothing') return redis.call('GET', 'x')";
    assert_eq!(client.run(&["EVAL", text, "1", "key"]), Reply::Bulk(None));
    assert_eq!(client.run(&["PING"]), Reply::Simple("PONG".into()));
    let eval = format!(r#""EVAL" "{text}" "1" "key""#);
    let expected = [eval.as_str(), r#"[0 lua] "SET" "key" "1""#, r#"[3 lua] "SELECT" "3""#, r#"[3 lua] "GET" "x""#];
    for expected in expected.into_iter().chain([r#""PING""#]) {
        let Some(Reply::Simple(line)) = watcher.reply() else { panic!("no line") };
        assert!(line.ends_with(expected), "{line} is not {expected}");
    }
}

struct Silent;

impl Tell for Silent {
    fn say(&self, _: &str) {}

    fn stop(&self, text: &str) {
        panic!("the server is to stop: {text}");
    }
}

fn start_logging(fs: &SimFs, workers: &'static str) -> Served {
    let options: Vec<&str> = options(workers).into_iter().chain(["--appendonly", "yes"]).collect();
    let keeping = Keeping::Directory { fs: Arc::new(fs.clone()), tell: Arc::new(Silent), rdb: Arc::new(NoRdb) };
    Served::start_keeping(&options, keeping)
}

/// A script that has written is not ended; SHUTDOWN NOSAVE ends the server meanwhile, and the log has nothing of the
/// script, in a transaction either.
#[test]
fn a_script_that_has_written_ends_with_the_server() {
    let queued: &[&[&str]] = &[&["MULTI"], &["SET", "first", "1"], ENDLESS_WRITER, &["SET", "last", "1"], &["EXEC"]];
    for (workers, requests) in [("1", &[ENDLESS_WRITER][..]), ("2", &[ENDLESS_WRITER]), ("1", queued)] {
        let fs = SimFs::new(1);
        let server = start_logging(&fs, workers);
        let (mut script, mut client) = (server.connect(), server.connect());
        assert_eq!(client.run(&["SET", "before", "1"]), ok());
        script.send(requests);
        wait_until_busy(&server);
        let Reply::Error(text) = client.run(&["SCRIPT", "KILL"]) else { panic!("a writer was killed") };
        assert!(text.starts_with("UNKILLABLE "), "{text}");
        assert_eq!(client.run(&["SHUTDOWN"]), busy());
        client.send(&[&["SHUTDOWN", "NOSAVE"]]);
        assert_eq!(client.reply(), None);
        server.ended().expect("it ends in order");
        let server = start_logging(&fs, workers);
        let found = server.connect().run(&["MGET", "before", "written", "first", "last"]);
        let none = Reply::Bulk(None);
        assert_eq!(found, Reply::List(vec![Reply::Bulk(Some("1".into())), none.clone(), none.clone(), none]));
    }
}
