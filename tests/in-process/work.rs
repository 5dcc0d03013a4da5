//! Commands that make something big do it in steps before they run: with the result of the moment at which they run,
//! whatever happens meanwhile, and with the record of it.

use crate::harness::{SHARDS, TestServer, memory};
use crate::reply::Reply;
use server::executor::Flow;

const MEMBERS: usize = 6000;

/// A server with two sets and two sorted sets that overlap by half, of which each is a tree, and two connections.
fn server() -> (TestServer, usize, usize) {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let (client, other) = (server.connect_listed(), server.connect_listed());
    for (key, first) in [("a", 0), ("b", MEMBERS / 2)] {
        for start in (first..first + MEMBERS).step_by(500) {
            let members: Vec<String> = (start..start + 500).map(|member| format!("member-{member}")).collect();
            let (set, sorted) = (format!("set-{key}"), format!("sorted-{key}"));
            let words = ["SADD", &set].into_iter().chain(members.iter().map(String::as_str)).collect::<Vec<_>>();
            assert_eq!(server.run(other, &words), ":500\r\n");
            let scores: Vec<String> = (start..start + 500).map(|member| (member % 1000).to_string()).collect();
            let pairs = scores.iter().zip(&members).flat_map(|(score, member)| [score.as_str(), member]);
            let words = ["ZADD", &sorted].into_iter().chain(pairs).collect::<Vec<_>>();
            assert_eq!(server.run(other, &words), ":500\r\n");
        }
    }
    (server, client, other)
}

/// Requests that store or remove something, and the key that shows what they did.
const CHANGES: &[(&[&str], &str)] = &[
    (&["SINTERSTORE", "to", "set-a", "set-b"], "to"),
    (&["SUNIONSTORE", "to", "set-a", "set-b", "none"], "to"),
    (&["SDIFFSTORE", "to", "set-a", "set-b"], "to"),
    (&["SUNIONSTORE", "set-a", "set-a", "set-b"], "set-a"),
    (&["ZINTERSTORE", "to", "2", "sorted-a", "sorted-b", "WEIGHTS", "2", "3"], "to"),
    (&["ZUNIONSTORE", "to", "3", "sorted-a", "set-b", "sorted-b", "AGGREGATE", "MAX"], "to"),
    (&["ZUNIONSTORE", "to", "2", "set-a", "set-b"], "to"),
    (&["ZDIFFSTORE", "sorted-a", "2", "sorted-a", "sorted-b"], "sorted-a"),
    (&["ZRANGESTORE", "to", "sorted-a", "100", "4099"], "to"),
    (&["ZRANGESTORE", "to", "sorted-a", "(900", "-inf", "BYSCORE", "REV", "LIMIT", "10", "3000"], "to"),
    (&["ZREMRANGEBYRANK", "sorted-a", "100", "1999"], "sorted-a"),
    (&["ZREMRANGEBYRANK", "sorted-a", "1", "-2"], "sorted-a"),
    (&["ZREMRANGEBYSCORE", "sorted-a", "(100", "800"], "sorted-a"),
    (&["ZPOPMIN", "sorted-a", "2000"], "sorted-a"),
    (&["ZPOPMAX", "sorted-a", "5000"], "sorted-a"),
    (&["ZPOPMAX", "sorted-a", "6000"], "sorted-a"),
];

/// A server with those of a list, a stream and an index of places that these words name, each long enough for another
/// thread, and two connections.
fn server_with_long(words: &[&str]) -> (TestServer, usize, usize) {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let (client, other) = (server.connect_listed(), server.connect_listed());
    let fill = |server: &mut TestServer, command: &str, key: &str, words_of: &dyn Fn(usize) -> Vec<String>| {
        for start in (0..LONG).step_by(1000) {
            let words: Vec<String> = (start..start + 1000).flat_map(words_of).collect();
            let words = [command, key].into_iter().chain(words.iter().map(String::as_str)).collect::<Vec<_>>();
            server.run(other, &words);
        }
    };
    if words.contains(&"list") {
        fill(&mut server, "RPUSH", "list", &|number| vec![(number * 7919 % LONG).to_string()]);
    }
    if words.contains(&"places") {
        let hundredth = |number: usize| (number as f64 / 100.0).to_string();
        let place = |number| vec![hundredth(number % 300), hundredth(number / 300), format!("place-{number}")];
        fill(&mut server, "GEOADD", "places", &place);
    }
    if words.contains(&"stream") {
        let adding: String = (1..=LONG).map(|number| format!("XADD stream {number}-1 field value\r\n")).collect();
        server.feed(other, adding.as_bytes());
        server.written(other);
    }
    (server, client, other)
}

const LONG: usize = 30_000;

/// Requests that change something long, and the key that shows what they did.
const LONG_CHANGES: &[(&[&str], &str)] = &[
    (&["LREM", "list", "0", "29999"], "list"),
    (&["LREM", "list", "-1", "0"], "list"),
    (&["LREM", "list", "5", "none"], "list"),
    (&["LINSERT", "list", "BEFORE", "17", "new"], "list"),
    (&["LINSERT", "list", "AFTER", "none", "new"], "list"),
    (&["SORT", "list", "STORE", "to"], "to"),
    (&["SORT", "list", "ALPHA", "DESC", "LIMIT", "10", "20000", "GET", "#", "GET", "#", "STORE", "list"], "list"),
    (&["SORT", "places", "BY", "nothing", "STORE", "to"], "to"),
    (&["XTRIM", "stream", "MAXLEN", "1000"], "stream"),
    (&["XTRIM", "stream", "MAXLEN", "~", "1010", "LIMIT", "0"], "stream"),
    (&["XTRIM", "stream", "MINID", "25000"], "stream"),
    (&["XTRIM", "stream", "MAXLEN", "0"], "stream"),
    (&["XADD", "stream", "MAXLEN", "1000", "40000-1", "field", "value"], "stream"),
    (&["XADD", "stream", "MAXLEN", "~", "1010", "LIMIT", "0", "40000-1", "field", "value"], "stream"),
    (&["XADD", "stream", "MINID", "50000", "40000-1", "field", "value"], "stream"),
    (&["XADD", "stream", "MAXLEN", "1000", "1-1", "field", "value"], "stream"),
    (&["GEOSEARCHSTORE", "to", "places", "FROMLONLAT", "1", "1", "BYRADIUS", "100", "km", "ASC"], "to"),
    (&["GEOSEARCHSTORE", "to", "places", "FROMMEMBER", "place-7", "BYBOX", "300", "300", "km", "STOREDIST"], "to"),
];

/// What another thread makes is what the command itself makes, and its record leads a replica there.
#[test]
fn elsewhere_or_at_once_it_is_the_same() {
    for (words, key) in LONG_CHANGES {
        assert_same_elsewhere(words, key);
    }
}

fn assert_same_elsewhere(words: &[&str], key: &str) {
    let shown = &words[..words.len().min(10)];
    let (mut one, client, _) = server_with_long(words);
    one.feed(client, &crate::harness::request(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()));
    assert!(one.executor.has_work(), "{shown:?} is done at once");
    let mut replied = &one.replies(client)[..];
    let reply = Reply::read(&mut replied).expect("a whole reply");
    one.assert_replica_agrees();
    let (mut other, client_of_other, _) = server_with_long(words);
    assert_eq!(reply, at_once(&mut other, client_of_other, words), "{shown:?}");
    assert!(content(&mut one, client, key) == content(&mut other, client_of_other, key), "{shown:?}");
    let encoding = ["OBJECT", "ENCODING", key];
    assert_eq!(one.run(client, &encoding), other.run(client_of_other, &encoding), "{shown:?}");
}

/// Many entries of a stream go, or all of them; some are named twice, and some are not there.
#[test]
fn many_entries_are_deleted() {
    for step in [1, 7, LONG] {
        let numbers = (0..LONG + 10).step_by(step).chain(LONG - 500..LONG + 500);
        let ids: Vec<String> = numbers.map(|number| format!("{number}-1")).collect();
        let words: Vec<&str> = ["XDEL", "stream"].into_iter().chain(ids.iter().map(String::as_str)).collect();
        assert_same_elsewhere(&words, "stream");
    }
}

/// Elements that go leave a list packed, or nothing.
#[test]
fn most_of_a_list_goes() {
    for left in [0, 10] {
        let (mut server, client, _) = server_with_long(&[]);
        let words: Vec<String> =
            ["RPUSH".to_owned(), "same".to_owned()].into_iter().chain((0..900).map(|_| "x".repeat(40))).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        (0..20).for_each(|_| drop(server.run(client, &words)));
        (0..left).for_each(|number| drop(server.run(client, &["RPUSH", "same", &number.to_string()])));
        server.feed(client, format!("LREM same 0 {}\r\n", "x".repeat(40)).as_bytes());
        assert!(server.executor.has_work());
        assert_eq!(server.replies(client), b":18000\r\n");
        assert_eq!(server.run(client, &["LLEN", "same"]), format!(":{left}\r\n"));
        if left > 0 {
            assert!(server.run(client, &["OBJECT", "ENCODING", "same"]).contains("listpack"));
        }
        server.assert_replica_agrees();
    }
}

/// Reads of what is long give what they give at once, in whatever pieces; and what pops many gives what was there.
#[test]
fn long_reads_are_the_same() {
    for words in [
        &["LPOS", "list", "29999"][..],
        &["LPOS", "list", "17", "RANK", "-1", "COUNT", "0"],
        &["LPOS", "list", "none", "COUNT", "0"],
        &["SORT", "list", "DESC"],
        &["SORT_RO", "list", "ALPHA", "LIMIT", "5", "12000"],
        &["SORT", "places"],
        &["SORT", "places", "ALPHA", "GET", "#", "GET", "none"],
        &["GEOSEARCH", "places", "FROMLONLAT", "1", "1", "BYRADIUS", "100", "km", "ASC", "WITHDIST", "WITHCOORD"],
        &["GEOSEARCH", "places", "FROMLONLAT", "1", "1", "BYRADIUS", "100", "km", "COUNT", "700"],
        &["LPOP", "list", "2000"],
        &["RPOP", "list", "29999"],
        &["LPOP", "list", "30000"],
        &["LMPOP", "2", "none", "list", "RIGHT", "COUNT", "2000"],
        &["ZMPOP", "2", "none", "places", "MAX", "COUNT", "2000"],
        &["ZMPOP", "1", "places", "MIN", "COUNT", "100000"],
    ] {
        let (mut server, client, other) = server_with_long(words);
        let command = crate::harness::request(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        let mut copy = server_with_long(words);
        server.feed(client, &command);
        let bytes = server.replies(client);
        let reply = Reply::read(&mut &bytes[..]).expect("a whole reply");
        assert_eq!(reply, at_once(&mut copy.0, copy.1, words), "{words:?}");
        for key in ["list", "places", "stream"] {
            assert!(content(&mut server, other, key) == content(&mut copy.0, copy.1, key), "{words:?}");
        }
        server.assert_replica_agrees();
    }
}

/// What DUMP gives comes back by RESTORE, long or not, and a key that is taken meanwhile stays.
#[test]
fn restored_is_what_was_dumped() {
    for key in ["list", "places", "stream"] {
        let (mut server, client, other) = server_with_long(&[key]);
        server.feed(client, format!("DUMP {key}\r\n").as_bytes());
        let bytes = server.replies(client);
        let at = bytes.windows(2).position(|pair| pair == b"\r\n").expect("a length") + 2;
        let payload = &bytes[at..bytes.len() - 2];
        server.feed(client, &crate::harness::request(&[b"RESTORE", b"to", b"0", payload]));
        assert_eq!(server.replies(client), b"+OK\r\n");
        assert!(content(&mut server, client, "to") == content(&mut server, client, key));
        assert_eq!(server.run(client, &["OBJECT", "ENCODING", "to"]), server.run(client, &["OBJECT", "ENCODING", key]));
        server.assert_replica_agrees();
        server.feed(client, &crate::harness::request(&[b"RESTORE", b"other", b"0", payload]));
        if server.executor.has_work() {
            server.run(other, &["SET", "other", "taken"]);
            assert!(server.replies(client).starts_with(b"-BUSYKEY"));
        }
    }
}

/// What is under the key, in an order that says nothing of how it came there.
fn content(server: &mut TestServer, client: usize, key: &str) -> Vec<String> {
    let kind = server.run(client, &["TYPE", key]);
    match kind.as_str() {
        "+set\r\n" => {
            let mut members = server.ask(client, &["SMEMBERS", key]).texts();
            members.sort();
            members
        }
        "+list\r\n" => server.ask(client, &["LRANGE", key, "0", "-1"]).texts(),
        "+stream\r\n" => {
            vec![server.run(client, &["XRANGE", key, "-", "+"]), server.run(client, &["XINFO", "STREAM", key])]
        }
        "+zset\r\n" => server.ask(client, &["ZRANGE", key, "0", "-1", "WITHSCORES"]).texts(),
        _ => vec![kind],
    }
}

/// The same inside a transaction, where it is done at once.
fn at_once(server: &mut TestServer, client: usize, words: &[&str]) -> Reply {
    server.run(client, &["MULTI"]);
    server.run(client, words);
    server.ask(client, &["EXEC"]).list()[0].clone()
}

/// What comes out is what the same command does in one go, and its record leads a replica there.
#[test]
fn prepared_or_at_once_it_is_the_same() {
    for (words, key) in CHANGES {
        let (mut one, client, _) = server();
        one.feed(client, &crate::harness::request(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()));
        let is_prepared = one.executor.has_work();
        assert!(is_prepared || words[0] == "ZPOPMAX" && words[2] == "6000", "{words:?} is done at once");
        let mut replied = &one.replies(client)[..];
        let reply = Reply::read(&mut replied).expect("a whole reply");
        one.assert_replica_agrees();
        let (mut other, client_of_other, _) = server();
        assert_eq!(reply, at_once(&mut other, client_of_other, words), "{words:?}");
        assert_eq!(content(&mut one, client, key), content(&mut other, client_of_other, key), "{words:?}");
        let encoding = ["OBJECT", "ENCODING", key];
        assert_eq!(one.run(client, &encoding), other.run(client_of_other, &encoding), "{words:?}");
    }
}

/// A change of an operand restarts the work: the result belongs to the moment at which it is stored. However often that
/// happens, the command ends.
#[test]
fn a_change_meanwhile_is_seen() {
    for changes in [1, 30, 1000] {
        let (mut server, client, other) = server();
        server.feed(client, b"SINTERSTORE to set-a set-b\r\nECHO behind\r\n");
        assert_eq!(server.executor.flow(client), Flow::Waiting);
        let mut made = 0;
        while server.executor.has_work() {
            if made < changes {
                made += 1;
                server.feed(other, format!("SADD set-a new-{made}\r\nSADD set-b new-{made}\r\n").as_bytes());
                server.written(other);
            }
            server.executor.step_work();
        }
        assert!(made < 1000, "it has come to an end by itself");
        assert_eq!(server.replies(client), format!(":{}\r\n$6\r\nbehind\r\n", MEMBERS / 2 + made).as_bytes());
        assert_eq!(server.run(client, &["SISMEMBER", "to", &format!("new-{made}")]), ":1\r\n");
        server.assert_replica_agrees();
    }
}

/// Members popped at random and those left are the set, in any share, with a log and without.
#[test]
fn popped_members_are_gone() {
    let counts = [1000, 3000, 5000, 5990, 6000, 7000];
    for (count, is_logged) in counts.into_iter().flat_map(|count| [(count, true), (count, false)]) {
        let (mut server, client, _) = server();
        if !is_logged {
            server.store.try_lock_all().expect("nobody has a lock").set_log(None);
        }
        let before = content(&mut server, client, "set-a");
        let bytes = server.send(client, format!("SPOP set-a {count}\r\n").as_bytes());
        let array = [b"*", &bytes[1..]].concat();
        let popped = Reply::read(&mut &array[..]).expect("a whole reply").texts();
        assert_eq!(popped.len(), count.min(MEMBERS));
        let left = if count < MEMBERS { content(&mut server, client, "set-a") } else { Vec::new() };
        let mut all = [popped, left].concat();
        all.sort();
        assert_eq!(all, before, "SPOP of {count}");
        if is_logged {
            server.assert_replica_agrees();
        }
    }
}

/// A waiting client is served from the stored result.
#[test]
fn a_waiting_client_is_served() {
    let (mut server, client, other) = server();
    server.feed(other, b"BZPOPMIN to 0\r\n");
    assert_eq!(server.run(client, &["ZUNIONSTORE", "to", "1", "sorted-a"]), format!(":{MEMBERS}\r\n"));
    server.executor.end_blocks();
    let words: Vec<String> = server.ask(client, &["ZRANGE", "to", "0", "0"]).texts();
    assert_eq!(words, ["member-1000"]);
    server.assert_replica_agrees();
}

/// What is not wanted any more is given up: the connection closes, or the operand has become something else.
#[test]
fn work_ends_with_its_cause() {
    let (mut server, client, other) = server();
    server.feed(client, b"SINTERSTORE to set-a set-b\r\n");
    server.executor.step_work();
    let held = server.executor.connection(client).expect("open").held();
    assert!(held.reply_buffer_bytes > 0, "the client is charged with what is made for it");
    server.run(other, &["SET", "set-b", "text"]);
    assert!(server.replies(client).starts_with(b"-WRONGTYPE"));
    server.feed(client, b"ZUNIONSTORE to 2 sorted-a sorted-b\r\n");
    server.executor.close(client);
    server.finish_work();
    assert_eq!(server.run(other, &["EXISTS", "to"]), ":0\r\n");
}

/// Without a limit the count of an intersection was 0 where the first step found no common member.
#[test]
fn an_intersection_whose_members_come_late_is_counted() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    for (key, first, step) in [("one", 0, 1), ("two", 2000, -1)] {
        for number in 0..2000 {
            let member = (first + step * number).to_string();
            assert_eq!(server.run(client, &["ZADD", key, &number.to_string(), &member]), ":1\r\n");
        }
    }
    // 1 to 1,999, the first of which are the last of the other.
    assert_eq!(server.run(client, &["ZADD", "two", "-1", "0"]), ":1\r\n");
    for number in 0..1000 {
        server.run(client, &["ZREM", "two", &number.to_string()]);
    }
    assert_eq!(server.run(client, &["ZINTERCARD", "2", "one", "two"]), ":1000\r\n");
    assert_eq!(server.run(client, &["ZINTERCARD", "2", "one", "two", "LIMIT", "7"]), ":7\r\n");
}

/// Counts of an intersection, and elements drawn at random, come in pieces too.
#[test]
fn reads_come_in_steps() {
    let (mut server, client, _) = server();
    for (words, expected) in [
        ("SINTERCARD 2 set-a set-b", MEMBERS / 2),
        ("SINTERCARD 2 set-a set-b LIMIT 1500", 1500),
        ("ZINTERCARD 3 sorted-a set-a sorted-b", MEMBERS / 2),
        ("ZINTERCARD 2 sorted-a sorted-b LIMIT 1500", 1500),
    ] {
        server.feed(client, format!("{words}\r\n").as_bytes());
        assert_eq!(server.executor.flow(client), Flow::Waiting, "{words}");
        assert_eq!(server.replies(client), format!(":{expected}\r\n").as_bytes(), "{words}");
    }
    for words in
        ["SRANDMEMBER set-a 5000", "SRANDMEMBER set-a 600", "ZRANDMEMBER sorted-a 5000", "SRANDMEMBER set-a -9000"]
    {
        server.feed(client, format!("{words}\r\n").as_bytes());
        assert_eq!(server.executor.flow(client), Flow::Waiting, "{words}");
        let drawn = Reply::read(&mut &server.replies(client)[..]).expect("a whole reply").texts();
        let count: i64 = words.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a count");
        assert_eq!(drawn.len() as u64, count.unsigned_abs(), "{words}");
        let mut distinct = drawn.clone();
        distinct.sort();
        distinct.dedup();
        assert!(count < 0 || distinct.len() == drawn.len(), "{words}");
    }
}
