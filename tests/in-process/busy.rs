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

/// Asks until the script is busy.
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

/// Reads and writes its key, and then takes its time.
const DECLARED: &str =
    "redis.call('INCR', KEYS[1]) for i = 1, tonumber(ARGV[1]) do end return redis.call('GET', KEYS[1])";

/// A script that uses only keys that it has declared locks their shards. Commands of another worker run meanwhile,
/// except on keys of these shards.
#[test]
fn other_shards_are_served_by_other_workers() {
    let server = Served::start(&options("2"));
    let (mut script, mut other) = (server.connect(), server.connect());
    // The first time it is not known yet which keys it uses.
    assert_eq!(script.run(&["EVAL", DECLARED, "1", "key", "1"]), Reply::Bulk(Some("1".into())));
    script.send(&[&["EVAL", DECLARED, "1", "key", "3e8"]]);
    wait_until_busy(&server);
    let mut counts = (0, 0);
    for number in 0..100 {
        match other.run(&["SET", &format!("key:{number}"), "value"]) {
            reply if reply == ok() => counts.0 += 1,
            reply if reply == busy() => counts.1 += 1,
            reply => panic!("{reply:?}"),
        }
    }
    assert!(counts.0 > 50 && counts.1 > 0, "{counts:?} keys are free and kept");
    assert_eq!(other.run(&["GET", "key"]), busy());
    assert_eq!(other.run(&["DBSIZE"]), busy());
    assert_eq!(other.run(&["EVAL", "return redis.call('DBSIZE')", "0"]), busy());
    assert!(matches!(other.run(&["SCRIPT", "KILL"]), Reply::Error(text) if text.starts_with("UNKILLABLE")));
    assert_eq!(script.reply(), Some(Reply::Bulk(Some("2".into()))));
    assert_eq!(other.run(&["GET", "key"]), Reply::Bulk(Some("2".into())));
}

/// Scripts of two workers that use keys which they have not declared, before and after their first change, while other
/// scripts use some of them: nothing is lost, and nothing waits for ever.
#[test]
fn scripts_of_two_workers_lock_further_keys() {
    let server = Served::start(&options("2"));
    let transfer = "if ARGV[1] == 'late' then redis.call('DECR', KEYS[1]) return redis.call('INCR', ARGV[2]) end
        if ARGV[1] == 'early' then redis.call('INCR', ARGV[2]) return redis.call('DECR', KEYS[1]) end
        redis.call('DECR', KEYS[1]) return redis.call('INCR', KEYS[1])";
    std::thread::scope(|scope| {
        for number in 0..4_usize {
            let mut client = server.connect();
            scope.spawn(move || {
                let text = format!("{transfer} -- {number}");
                let mut refused = 0;
                for round in 0..400_usize {
                    // A new text each time has no history; the same one begins with its declared keys alone.
                    let text = if round % 5 == 0 { format!("{text} {round}") } else { text.clone() };
                    let how = ["none", "none", "late", "early"][(round / 7 + number) % 4];
                    let (from, to) =
                        (format!("account:{}", round % 13), format!("account:{}", (round * 7 + number) % 13));
                    match client.run(&["EVAL", &text, "1", &from, how, &to]) {
                        Reply::Int(_) => {}
                        Reply::Error(text) if text.starts_with("TRYAGAIN") => {
                            // It has changed its own key.
                            assert!(matches!(client.run(&["INCR", &from]), Reply::Int(_)));
                            refused += 1;
                        }
                        reply => panic!("{reply:?}"),
                    }
                }
                assert!(refused < 10, "{refused} scripts of 400 were refused");
            });
        }
    });
    let mut client = server.connect();
    let sum: i64 = (0..13)
        .map(|account| match client.run(&["GET", &format!("account:{account}")]) {
            Reply::Bulk(value) => value.map_or(0, |value| value.parse::<i64>().unwrap()),
            reply => panic!("{reply:?}"),
        })
        .sum();
    assert_eq!(sum, 0);
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

fn aborted() -> Reply {
    Reply::Error(format!("EXECABORT Transaction discarded because of: {BUSY}"))
}

/// Inside MULTI, with watched keys, with subscriptions, and with a command that waits: as Valkey answers each.
#[test]
fn clients_in_any_state_are_answered() {
    let server = Served::start(&options("1"));
    let [mut queues, mut watches, mut listens, mut hears, mut waits] = [(); 5].map(|()| server.connect());
    assert_eq!([queues.run(&["MULTI"]), queues.run(&["SET", "a", "1"])], [ok(), Reply::Simple("QUEUED".into())]);
    assert_eq!(watches.run(&["WATCH", "watched"]), ok());
    assert!(matches!(listens.run(&["SUBSCRIBE", "channel"]), Reply::List(_)));
    assert!(matches!(hears.run(&["HELLO", "3"]), Reply::List(_)));
    assert!(matches!(hears.run(&["SUBSCRIBE", "channel"]), Reply::List(_)));
    waits.send(&[&["BLPOP", "list", "0"], &["PING"]]);
    let (mut script, mut killer) = (server.connect(), server.connect());
    script.send(&[ENDLESS, &["SET", "after", "1"]]);
    wait_until_busy(&server);
    assert_eq!(queues.run(&["EXEC"]), aborted());
    assert_eq!(queues.run(&["GET", "a"]), busy());
    assert_eq!([watches.run(&["MULTI"]), watches.run(&["INCR", "b"]), watches.run(&["DISCARD"])], [ok(), busy(), ok()]);
    assert_eq!([watches.run(&["UNWATCH"]), watches.run(&["WATCH", "a"])], [ok(), ok()]);
    assert_eq!([listens.run(&["PING"]), listens.run(&["UNSUBSCRIBE"])], [busy(), busy()]);
    assert!(matches!(listens.run(&["GET", "a"]), Reply::Error(text) if text.starts_with("ERR Can't execute 'get'")));
    assert_eq!([hears.run(&["PING"]), hears.run(&["RESET"])], [busy(), Reply::Simple("RESET".into())]);
    let mut asks = server.connect();
    for words in [&["CLIENT", "LIST"][..], &["FUNCTION", "STATS"], &["FUNCTION", "KILL"], &["SHUTDOWN"], &["INFO"]] {
        assert_eq!(asks.run(words), busy(), "{words:?}");
    }
    assert!(!waits.has_reply_within(Duration::from_millis(50)), "a client whose command waits is not read");
    kill(&mut killer, &mut script);
    assert_eq!(script.reply(), Some(ok()), "the request after the script runs");
    assert_eq!(killer.run(&["RPUSH", "list", "x"]), Reply::Int(1));
    assert!(matches!(waits.reply(), Some(Reply::List(_))));
    assert_eq!(waits.reply(), Some(Reply::Simple("PONG".into())));
    assert_eq!(killer.run(&["SET", "a", "changed"]), ok());
    assert_eq!([watches.run(&["MULTI"]), watches.run(&["EXEC"])], [ok(), Reply::List(vec![])], "`a` is watched");
    assert_eq!(killer.run(&["PUBLISH", "channel", "text"]), Reply::Int(1), "to the one that was not reset");
    assert!(matches!(listens.reply(), Some(Reply::List(_))));
    assert_eq!(queues.run(&["GET", "a"]), Reply::Bulk(Some("changed".into())));
}

/// A client that has not logged in learns that, and may log in.
#[test]
fn strangers_may_log_in() {
    let options: Vec<&str> = options("1").into_iter().chain(["--requirepass", "secret"]).collect();
    let server = Served::start(&options);
    let [mut stranger, mut other, mut script] = [(); 3].map(|()| server.connect());
    assert_eq!(script.run(&["AUTH", "secret"]), ok());
    script.send(&[ENDLESS]);
    let begun = Instant::now();
    while script.has_reply_within(Duration::from_millis(1)) || {
        let mut client = server.connect();
        client.send(&[&["AUTH", "secret"], &["PING"]]);
        !client.has_reply_within(Duration::from_millis(300)) || [client.reply(), client.reply()][1] != Some(busy())
    } {
        assert!(begun.elapsed() < Duration::from_secs(60), "the script never gets busy");
    }
    let refused = Reply::Error("NOAUTH Authentication required.".into());
    assert_eq!([stranger.run(&["GET", "a"]), stranger.run(&["SCRIPT", "KILL"])], [refused.clone(), refused]);
    assert_eq!([stranger.run(&["AUTH", "secret"]), stranger.run(&["GET", "a"])], [ok(), busy()]);
    assert!(matches!(other.run(&["HELLO", "2", "AUTH", "default", "secret"]), Reply::List(_)));
    kill(&mut other, &mut script);
    assert_eq!([stranger.run(&["GET", "a"]), other.run(&["GET", "a"])], [Reply::Bulk(None), Reply::Bulk(None)]);
}

/// Requests that the worker receives together with the script: those of other clients are answered, however many, and
/// a second script among them. Those of the script's client wait.
#[test]
fn requests_of_the_same_turn_are_answered() {
    let server = Served::start(&["--workers", "1", "--busy-reply-threshold", "1500"]);
    let [mut first, mut one, mut few, mut many, mut two] = [(); 5].map(|()| server.connect());
    for client in [&mut one, &mut few, &mut many, &mut two] {
        assert_eq!(client.run(&["PING"]), Reply::Simple("PONG".into()));
    }
    // While this one runs, the others send.
    first.send(&[&["EVAL", "for i = 1, 5e6 do end", "0"]]);
    one.send(&[&["SET", "key", "1"], ENDLESS, &["GET", "key"]]);
    few.send(&[&["MULTI"], &["SET", "key", "2"], &["EXEC"], &["PING"]]);
    few.send_bytes(b"*1\r\n$4\r\nPI");
    many.send(&[["PING"].as_slice(); 100]);
    two.send(&[ENDLESS]);
    let mut killer = server.connect();
    // They may have run before the script, or are refused; but none waits for its end.
    for _ in 0..100 {
        let reply = many.reply();
        assert!(reply == Some(busy()) || reply == Some(Reply::Simple("PONG".into())), "{reply:?}");
    }
    let replies: Vec<_> = (0..4).map(|_| few.reply().expect("it is open")).collect();
    let has_run = replies[3] == Reply::Simple("PONG".into());
    assert!(has_run || replies[2..] == [aborted(), busy()], "{replies:?}");
    // One of the two scripts runs, and the other one is refused.
    while !one.has_reply_within(Duration::from_millis(1)) && !two.has_reply_within(Duration::from_millis(1)) {}
    let is_first_refused = !two.has_reply_within(Duration::from_millis(1));
    assert_eq!(killer.run(&["SCRIPT", "KILL"]), ok());
    let is_killed =
        |reply: Option<Reply>| matches!(reply, Some(Reply::Error(text)) if text.starts_with("ERR Script killed"));
    if is_first_refused {
        assert_eq!([one.reply(), one.reply(), one.reply()], [Some(busy()), Some(busy()), Some(busy())]);
        assert!(is_killed(two.reply()));
    } else {
        assert_eq!(two.reply(), Some(busy()));
        assert_eq!(one.reply(), Some(ok()));
        assert!(is_killed(one.reply()));
        assert!(matches!(one.reply(), Some(Reply::Bulk(Some(_)))));
    }
    few.send_bytes(b"NG\r\n");
    assert_eq!(few.reply(), Some(Reply::Simple("PONG".into())));
}

/// Scripts keep both workers: clients of both are answered, and both scripts are ended.
#[test]
fn scripts_may_keep_all_workers() {
    let server = Served::start(&options("2"));
    let text = "redis.call('GET', KEYS[1]) for i = 1, tonumber(ARGV[1]) do end return 'done'";
    let done = Reply::Bulk(Some("done".into()));
    let [mut one, mut two] = [(); 2].map(|()| server.connect());
    let mut others: Vec<Client> = (0..6).map(|_| server.connect()).collect();
    for client in [&mut one, &mut two] {
        // The first time it is not known yet which keys it uses.
        assert_eq!(client.run(&["EVAL", text, "1", "key", "1"]), done);
    }
    one.send(&[&["EVAL", text, "1", "key", "5e9"]]);
    wait_until_busy(&server);
    let free = (0..100).map(|number| format!("key:{number}"));
    let free = free.into_iter().find(|key| two.run(&["EVAL", text, "1", key, "1"]) == done).expect("a free shard");
    two.send(&[&["EVAL", text, "1", &free, "5e9"]]);
    let begun = Instant::now();
    while others.iter_mut().any(|other| other.run(&["DBSIZE"]) != busy() || other.run(&["PING"]) != busy()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "one of the workers never gets busy");
    }
    assert_eq!(server.connect().run(&["PING"]), busy());
    assert_eq!(others[0].run(&["SCRIPT", "KILL"]), ok());
    for client in [&mut one, &mut two] {
        assert!(matches!(client.reply(), Some(Reply::Error(text)) if text.starts_with("ERR Script killed by user")));
    }
    for client in others.iter_mut().chain([&mut one, &mut two]) {
        assert_eq!(client.run(&["PING"]), Reply::Simple("PONG".into()));
    }
}

/// Connections go to and fro while their pipelines run: each request has one reply, in its place, and what was not
/// refused has happened.
#[test]
fn nothing_is_lost_on_the_way() {
    let server = Served::start(&["--workers", "2", "--busy-reply-threshold", "2"]);
    let ends = Instant::now() + Duration::from_secs(2);
    let count = |number: usize| {
        let (mut client, key) = (server.connect(), format!("counter:{number}"));
        let (mut done, mut round) = (0, 0_u64);
        while Instant::now() < ends {
            round += 1;
            let mark = round.to_string();
            let queued: &[&[&str]] = &[&["MULTI"], &["INCR", &key], &["EXEC"], &["ECHO", &mark]];
            let plain: &[&[&str]] = &[&["INCR", &key], &["ECHO", &mark], &["INCR", &key]];
            let requests = if round.is_multiple_of(3) { queued } else { plain };
            client.send(requests);
            for words in requests {
                match (words[0], client.reply().expect("it is open")) {
                    ("INCR", Reply::Int(value)) => {
                        done += 1;
                        assert_eq!(value, done);
                    }
                    ("EXEC", Reply::List(all)) => done += i64::try_from(all.len()).expect("it is one"),
                    ("EXEC", Reply::Error(text)) => assert!(text.starts_with("EXECABORT"), "{text}"),
                    ("MULTI", reply) => assert_eq!(reply, ok()),
                    (_, Reply::Simple(text)) => assert_eq!(text, "QUEUED"),
                    ("ECHO", Reply::Bulk(text)) => assert_eq!(text.as_deref(), Some(&*mark)),
                    (_, reply) => assert_eq!(reply, busy()),
                }
            }
        }
        (key, done)
    };
    let counts: Vec<(String, i64)> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..6).map(|number| scope.spawn(move || count(number))).collect();
        for number in 0..2 {
            let mut client = server.connect();
            scope.spawn(move || {
                let loops =
                    ["EVAL", "for i = 1, 1e6 do end return 'done'", "1", &format!("{number}")].map(str::to_owned);
                let words: Vec<&str> = loops.iter().map(String::as_str).collect();
                while Instant::now() < ends {
                    client.send(&[&words, &["PING"]]);
                    for _ in 0..2 {
                        let reply = client.reply().expect("it is open");
                        let is_known = matches!(&reply, Reply::Bulk(Some(_)) | Reply::Simple(_)) || reply == busy();
                        assert!(is_known, "{reply:?}");
                    }
                }
            });
        }
        clients.into_iter().map(|client| client.join().expect("its replies are right")).collect()
    });
    let mut client = server.connect();
    for (key, done) in counts {
        assert!(done > 0);
        assert_eq!(client.run(&["GET", &key]), Reply::Bulk(Some(done.to_string())));
    }
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
