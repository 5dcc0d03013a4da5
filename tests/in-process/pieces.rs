//! Long replies come piece by piece: whole, of one moment, in their place among others, and never much at a time.

use crate::harness::{SHARDS, TestServer, memory};
use crate::reply::Reply;
use command::pieces::PIECE_BYTES;
use server::executor::Flow;
use std::collections::HashSet;

const MEMBERS: usize = 20_000;

fn server() -> (TestServer, usize, usize) {
    let mut server = TestServer::complete(memory, SHARDS);
    let (client, other) = (server.connect_listed(), server.connect_listed());
    let members: Vec<String> = (0..MEMBERS).map(|member| format!("member-{member}")).collect();
    for some in members.chunks(1000) {
        let words = ["SADD", "k"].into_iter().chain(some.iter().map(String::as_str)).collect::<Vec<_>>();
        assert_eq!(server.run(other, &words), ":1000\r\n");
    }
    (server, client, other)
}

/// The reply of the filled set, in pieces that are not large, and what stands behind it.
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

/// Checks that it is the filled set; gives what stands behind it.
fn check(bytes: &[u8]) -> &[u8] {
    // The reader knows arrays, and a set differs in nothing else.
    let array = [b"*", &bytes[1..]].concat();
    let mut rest = &array[..];
    let members = Reply::read(&mut rest).expect("a whole reply").texts();
    let distinct: HashSet<_> = members.iter().collect();
    assert_eq!((members.len(), distinct.len()), (MEMBERS, MEMBERS));
    &bytes[bytes.len() - rest.len()..]
}

/// The pipeline behind a long reply runs when it has been taken, however it came: with the command, while it was answered,
/// in a transaction.
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

/// A message that comes meanwhile stands behind it, not within.
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
