//! Long replies come piece by piece: whole, of one moment, in their place among others, and never much at a time.

use crate::harness::{SHARDS, TestServer, memory};
use crate::reply::Reply;
use command::work::reply::PIECE_BYTES;
use server::executor::Flow;
use std::collections::HashSet;

const MEMBERS: usize = 20_000;

fn server() -> (TestServer, usize, usize) {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let (client, other) = (server.connect_listed(), server.connect_listed());
    let members: Vec<String> = (0..MEMBERS).map(|member| format!("member-{member}")).collect();
    for some in members.chunks(1000) {
        let words = ["SADD", "k"].into_iter().chain(some.iter().map(String::as_str)).collect::<Vec<_>>();
        assert_eq!(server.run(other, &words), ":1000\r\n");
    }
    (server, client, other)
}

/// The reply of the filled set, in pieces of limited size, and the bytes after it.
fn take(server: &mut TestServer, client: usize) -> Vec<u8> {
    let mut bytes = server.written(client);
    assert!((PIECE_BYTES..2 * PIECE_BYTES).contains(&bytes.len()), "{}", bytes.len());
    while server.executor.write_piece(client) {
        let piece = server.written(client);
        assert!(piece.len() < 2 * PIECE_BYTES, "{}", piece.len());
        bytes.extend(piece);
    }
    server.executor.resume(client);
    server.executor.run_batch();
    bytes.extend(server.replies(client));
    bytes
}

/// Checks that it is the filled set; returns the bytes after it.
fn check(bytes: &[u8]) -> &[u8] {
    // The reader knows arrays, and a set differs in nothing else.
    let array = [b"*", &bytes[1..]].concat();
    let mut rest = &array[..];
    let members = Reply::read(&mut rest).expect("a whole reply").texts();
    let distinct: HashSet<_> = members.iter().collect();
    assert_eq!((members.len(), distinct.len()), (MEMBERS, MEMBERS));
    &bytes[bytes.len() - rest.len()..]
}

/// The pipeline after a long reply runs when it has been taken, however it came: with the command, while it was
/// answered, in a transaction.
#[test]
fn what_stands_behind_it_comes_behind_it() {
    let (mut server, client, _) = server();
    server.feed(client, b"ECHO first\r\nSMEMBERS k\r\nECHO second\r\nMULTI\r\nSMEMBERS k\r\nEXEC\r\n");
    assert_eq!(server.executor.flow(client), Flow::Waiting);
    server.feed(client, b"ECHO last\r\n");
    let bytes = take(&mut server, client);
    let behind = check(bytes.strip_prefix(b"$5\r\nfirst\r\n").expect("in order"));
    let behind = behind.strip_prefix(b"$6\r\nsecond\r\n+OK\r\n+QUEUED\r\n*1\r\n").expect("in order");
    assert_eq!(check(behind), b"$4\r\nlast\r\n");
    assert_eq!(server.executor.flow(client), Flow::Open);
}

/// It shows one moment, whatever becomes of the key meanwhile, and keeps what is gone only as long as it is needed.
#[test]
fn it_shows_one_moment() {
    let (mut server, client, other) = server();
    server.feed(client, b"SMEMBERS k\r\n");
    assert_eq!(server.run(other, &["DEL", "k"]), ":1\r\n");
    let held = server.executor.connection(client).expect("open").held();
    assert!(held.reply_buffer_bytes > MEMBERS * 8, "the client is charged with what only it keeps");
    assert_eq!(check(&take(&mut server, client)), b"");
    assert!(server.executor.connection(client).expect("open").held().reply_buffer_bytes < 2 * PIECE_BYTES);
    assert_eq!(server.run(client, &["EXISTS", "k"]), ":0\r\n");
}

/// A client that asked for no reply gets none of it.
#[test]
fn unwanted_it_is_not_written() {
    let (mut server, client, _) = server();
    server.feed(client, b"CLIENT REPLY SKIP\r\nSMEMBERS k\r\nECHO next\r\n");
    assert_eq!(server.replies(client), b"$4\r\nnext\r\n");
}

/// A message that arrives meanwhile follows the reply and is not inside it.
#[test]
fn messages_do_not_stand_within_it() {
    let (mut server, client, other) = server();
    server.run(client, &["HELLO", "3"]);
    server.run(client, &["SUBSCRIBE", "news"]);
    server.feed(client, b"SMEMBERS k\r\n");
    server.run(other, &["PUBLISH", "news", "hello"]);
    server.executor.deliver();
    let bytes = take(&mut server, client);
    assert_eq!(check(&bytes), b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
}

/// Hashes come as sets do, without the fields that are due.
#[test]
fn hashes_come_in_pieces_too() {
    let (mut server, client, other) = server();
    for field in 0..MEMBERS {
        server.run(other, &["HSET", "h", &format!("field-{field}"), &format!("value-{field}")]);
    }
    server.run(other, &["HPEXPIRE", "h", "10", "FIELDS", "1", "field-7"]);
    server.clock.advance_ms(11);
    server.executor.begin_turn();
    for (command, count) in [("HGETALL", 2 * (MEMBERS - 1)), ("HKEYS", MEMBERS - 1), ("HVALS", MEMBERS - 1)] {
        server.feed(client, format!("{command} h\r\n").as_bytes());
        assert_eq!(server.executor.flow(client), Flow::Waiting);
        let bytes = server.replies(client);
        let texts = Reply::read(&mut &bytes[..]).expect("a whole reply").texts();
        let distinct: HashSet<_> = texts.iter().collect();
        assert_eq!((texts.len(), distinct.len()), (count, count), "{command}");
        assert!(!distinct.contains(&"field-7".to_owned()) && !distinct.contains(&"value-7".to_owned()));
    }
}

/// Ranges of sorted sets come so too, from either end, with scores and without.
#[test]
fn ranges_of_sorted_sets_come_in_pieces_too() {
    let (mut server, client, other) = server();
    let members: Vec<String> = (0..MEMBERS).map(|number| format!("member-{number}")).collect();
    for (number, member) in members.iter().enumerate() {
        server.run(other, &["ZADD", "z", &number.to_string(), member]);
    }
    let (first, last) = (100, MEMBERS - 200);
    let forward: Vec<&str> = members[first..=last].iter().map(String::as_str).collect();
    let backward: Vec<&str> = forward.iter().rev().copied().collect();
    for (request, wanted) in [
        (format!("ZRANGE z {first} {last}"), &forward),
        (format!("ZREVRANGE z {} {}", MEMBERS - 1 - last, MEMBERS - 1 - first), &backward),
        (format!("ZRANGEBYSCORE z {first} {last}"), &forward),
        (format!("ZREVRANGEBYSCORE z {last} ({}", first - 1), &backward),
        (format!("ZRANGE z +inf {first} BYSCORE REV LIMIT 199 {MEMBERS}"), &backward),
    ] {
        server.feed(client, format!("{request}\r\n").as_bytes());
        assert_eq!(server.executor.flow(client), Flow::Waiting, "{request}");
        assert_eq!(server.run(other, &["ZREM", "z", forward[0]]), ":1\r\n");
        let bytes = server.replies(client);
        assert_eq!(&Reply::read(&mut &bytes[..]).expect("a whole reply").texts(), wanted, "{request}");
        server.run(other, &["ZADD", "z", &first.to_string(), forward[0]]);
    }
    let scored: Vec<String> = (first..=last).flat_map(|number| [members[number].clone(), number.to_string()]).collect();
    server.feed(client, format!("ZRANGE z {first} {last} WITHSCORES\r\n").as_bytes());
    let bytes = server.replies(client);
    assert_eq!(Reply::read(&mut &bytes[..]).expect("a whole reply").texts(), scored);
    server.run(client, &["HELLO", "3"]);
    server.feed(client, format!("ZRANGE z {first} {last} WITHSCORES\r\n").as_bytes());
    let bytes = server.replies(client);
    let pairs: Vec<String> = (first..=last)
        .map(|number| format!("*2\r\n${}\r\n{}\r\n,{number}\r\n", members[number].len(), members[number]))
        .collect();
    let head = format!("*{}\r\n", last - first + 1);
    assert!(bytes == format!("{head}{}", pairs.concat()).as_bytes());
}

/// Entries of streams come so too, in both directions, of several streams and up to a count, as they were.
#[test]
fn entries_of_streams_come_in_pieces_too() {
    let (mut server, client, other) = server();
    for (stream, entries) in [("s", MEMBERS), ("t", 3), ("u", MEMBERS / 2)] {
        for number in 1..=entries {
            server.run(other, &["XADD", stream, &format!("{number}-0"), "field", &format!("value-{number}")]);
        }
    }
    let wanted = |numbers: &mut dyn Iterator<Item = usize>| -> Vec<u8> {
        let mut entries = Vec::new();
        let mut count = 0;
        for number in numbers {
            let (id, value) = (format!("{number}-0"), format!("value-{number}"));
            let (ids, values) = (id.len(), value.len());
            entries.extend(format!("*2\r\n${ids}\r\n{id}\r\n*2\r\n$5\r\nfield\r\n${values}\r\n{value}\r\n").bytes());
            count += 1;
        }
        [format!("*{count}\r\n").as_bytes(), &entries].concat()
    };
    let named = |name: &str, entries: Vec<u8>| [format!("$1\r\n{name}\r\n").as_bytes(), &entries].concat();
    let (most, all) = (MEMBERS - 100, MEMBERS);
    for (request, wanted) in [
        ("XRANGE s - +".to_owned(), wanted(&mut (1..=all))),
        (format!("XRANGE s 101 {}", all - 7), wanted(&mut (101..=all - 7))),
        (format!("XRANGE s (100 + COUNT {most}"), wanted(&mut (101..=all))),
        (format!("XREVRANGE s + 2 COUNT {}", most - 50), wanted(&mut (151..=all).rev())),
        ("XREVRANGE s (19990-0 -".to_owned(), wanted(&mut (1..19_990).rev())),
    ] {
        server.feed(client, format!("{request}\r\n").as_bytes());
        assert_eq!(server.executor.flow(client), Flow::Waiting, "{request}");
        assert_eq!(server.run(other, &["XDEL", "s", "5000-0"]), ":1\r\n");
        assert!(server.replies(client) == wanted, "{request}");
        server.run(other, &["DEL", "s"]);
        for number in 1..=MEMBERS {
            server.run(other, &["XADD", "s", &format!("{number}-0"), "field", &format!("value-{number}")]);
        }
    }
    let read = b"XREAD COUNT 15000 STREAMS t s none u 1 10 0 5000\r\nECHO next\r\n";
    let streams = [
        named("t", wanted(&mut (2..=3))),
        named("s", wanted(&mut (11..=15_010))),
        named("u", wanted(&mut (5001..=MEMBERS / 2))),
    ];
    server.feed(client, read);
    assert_eq!(server.executor.flow(client), Flow::Waiting);
    let pairs: Vec<u8> = streams.iter().flat_map(|stream| [b"*2\r\n", &stream[..]].concat()).collect();
    assert!(server.replies(client) == [b"*3\r\n", &pairs[..], b"$4\r\nnext\r\n"].concat());
    server.run(client, &["HELLO", "3"]);
    server.feed(client, read);
    assert!(server.replies(client) == [b"%3\r\n", &streams.concat()[..], b"$4\r\nnext\r\n"].concat());
}

/// What big sets make together is made in steps, of the sets as they were, and comes in pieces.
#[test]
fn what_sets_make_together_is_made_in_steps() {
    let (mut server, client, other) = server();
    let member = |number: usize| format!("member-{number}");
    let others: Vec<String> = (MEMBERS / 2..MEMBERS + 5000).map(member).collect();
    for some in others.chunks(1000) {
        let words = ["SADD", "j"].into_iter().chain(some.iter().map(String::as_str)).collect::<Vec<_>>();
        server.run(other, &words);
    }
    server.run(other, &["SADD", "few", "member-1", "member-2"]);
    let half = MEMBERS / 2;
    for (request, wanted) in [
        ("SUNION k j", Vec::from_iter(0..MEMBERS + 5000)),
        ("SUNION absent k few", Vec::from_iter(0..MEMBERS)),
        ("SINTER k j", Vec::from_iter(half..MEMBERS)),
        ("SINTER j k k", Vec::from_iter(half..MEMBERS)),
        ("SDIFF k j few", [0].into_iter().chain(3..half).collect()),
        ("SDIFF k k", Vec::new()),
    ] {
        let wanted: HashSet<String> = wanted.into_iter().map(member).collect();
        server.feed(client, format!("{request}\r\n").as_bytes());
        assert_eq!(server.executor.flow(client), Flow::Waiting, "{request}");
        assert_eq!(server.run(other, &["SREM", "k", "member-0", "member-15000"]), ":2\r\n");
        let bytes = server.replies(client);
        assert_eq!(members(&bytes), wanted, "{request}");
        server.run(other, &["SADD", "k", "member-0", "member-15000"]);
        server.feed(client, format!("MULTI\r\n{request}\r\nEXEC\r\n").as_bytes());
        let bytes = server.replies(client);
        let bytes = bytes.strip_prefix(b"+OK\r\n+QUEUED\r\n*1\r\n").expect("a transaction");
        assert_eq!(members(bytes), wanted, "{request}");
    }
    for request in ["SINTER k absent", "SINTER k few", "SDIFF few k", "SDIFF absent k"] {
        server.feed(client, format!("{request}\r\n").as_bytes());
        assert_eq!(server.executor.flow(client), Flow::Open, "{request} is little to do");
        server.replies(client);
    }
}

/// The members of the set that is the reply, each there once.
fn members(bytes: &[u8]) -> HashSet<String> {
    let array = [b"*", &bytes[1..]].concat();
    let members = Reply::read(&mut &array[..]).expect("a whole reply").texts();
    let distinct: HashSet<String> = members.iter().cloned().collect();
    assert_eq!(members.len(), distinct.len());
    distinct
}

/// What big sorted sets make together is made in steps too, with joined scores and in order.
#[test]
fn what_sorted_sets_make_together_is_made_in_steps() {
    const MEMBERS: usize = 4000;
    let mut server = TestServer::with_shards(memory, SHARDS);
    let (client, other) = (server.connect_listed(), server.connect_listed());
    let member = |number: usize| format!("member-{number:05}");
    for number in 0..MEMBERS {
        server.run(other, &["ZADD", "y", &number.to_string(), &member(number)]);
        server.run(other, &["ZADD", "z", &number.to_string(), &member(number + MEMBERS / 2)]);
    }
    server.run(other, &["SADD", "plain", &member(1), &member(3000), "none"]);
    let half = MEMBERS / 2;
    // Each: member and score, by score and then by member.
    let scored = |entries: Vec<(usize, usize)>| {
        let mut entries: Vec<_> = entries.into_iter().map(|(score, number)| (score, member(number))).collect();
        entries.sort();
        entries.into_iter().flat_map(|(score, member)| [member, score.to_string()]).collect::<Vec<_>>()
    };
    let both = |score: &dyn Fn(usize, usize) -> usize| {
        (half..MEMBERS).map(|number| (score(number, number - half), number)).collect::<Vec<_>>()
    };
    let alone = || (0..half).map(|number| (number, number)).collect::<Vec<_>>();
    let behind = || (MEMBERS..MEMBERS + half).map(|number| (number - half, number)).collect::<Vec<_>>();
    for (request, wanted) in [
        ("ZUNION 2 y z WITHSCORES", scored([alone(), both(&|y, z| y + z), behind()].concat())),
        ("ZUNION 2 z y AGGREGATE MAX WITHSCORES", scored([alone(), both(&|y, _| y), behind()].concat())),
        ("ZINTER 2 y z WEIGHTS 1 3 WITHSCORES", scored(both(&|y, z| y + 3 * z))),
        ("ZDIFF 2 y z WITHSCORES", scored(alone())),
        ("ZDIFF 3 y z plain WITHSCORES", scored(alone().into_iter().filter(|(_, number)| *number != 1).collect())),
    ] {
        server.feed(client, format!("{request}\r\n").as_bytes());
        assert_eq!(server.executor.flow(client), Flow::Waiting, "{request}");
        assert_eq!(server.run(other, &["ZINCRBY", "y", "0.5", &member(7)]), "$3\r\n7.5\r\n");
        let bytes = server.replies(client);
        assert_eq!(Reply::read(&mut &bytes[..]).expect("a whole reply").texts(), wanted, "{request}");
        server.run(other, &["ZADD", "y", "7", &member(7)]);
    }
    server.feed(client, b"ZINTER 2 y plain WITHSCORES\r\n");
    assert_eq!(server.executor.flow(client), Flow::Open, "little to do");
    let wanted = "*4\r\n$12\r\nmember-00001\r\n$1\r\n2\r\n$12\r\nmember-03000\r\n$4\r\n3001\r\n";
    assert_eq!(server.replies(client), wanted.as_bytes());
}

/// A count alone can make a reply too long: it is refused before anything is drawn. What is allowed of a small
/// collection comes in pieces, too.
#[test]
fn huge_counts_of_small_collections_take_no_memory() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    server.run(client, &["SADD", "ints", "1", "2", "3"]);
    server.run(client, &["SADD", "set", "a", "b"]);
    server.run(client, &["HSET", "hash", "f", "v", "g", "w"]);
    server.run(client, &["ZADD", "zset", "1", "m", "2", "n"]);
    for request in ["SRANDMEMBER ints", "SRANDMEMBER set", "HRANDFIELD hash", "ZRANDMEMBER zset"] {
        let refused = server.run(client, &Vec::from_iter(format!("{request} -1000000000").split(' ')));
        assert!(refused.starts_with("-ERR the reply "), "{request}: {refused:?}");
        let absent = request.split_once(' ').expect("a key").0;
        assert_eq!(server.run(client, &[absent, "absent", "-1000000000"]), "*0\r\n");
        server.feed(client, format!("{request} -30000000\r\n").as_bytes());
        let unsent = server.executor.connection(client).expect("it is open").reply.len();
        assert!(unsent < 200_000, "{request}: {unsent} bytes are written at once");
        // The rest is not what this is about.
        server.executor.connection(client).expect("it is open").session.rest = None;
        server.written(client);
        let few = server.run(client, &Vec::from_iter(format!("{request} -1000").split(' ')));
        assert!(few.starts_with("*1000\r\n"), "{request}");
        assert_eq!(few.matches('$').count(), 1000, "{request}");
    }
    server.run(client, &["HPEXPIRE", "hash", "1", "FIELDS", "1", "f"]);
    server.clock.advance_ms(10);
    server.executor.begin_turn();
    assert!(server.run(client, &["HRANDFIELD", "hash", "-1000000000"]).starts_with("-ERR the reply "));
}
