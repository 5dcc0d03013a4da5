//! Clients of the ARCUS dialect: tables of requests and replies, each line by line, byte by byte, and over engines that
//! ask for fetches.

use crate::harness::{TestServer, fetching, memory, ticketed};
use server::executor::ClientLimits;

/// Requests and the replies to them. A `|` is a line end; every request and every reply ends with one more.
type Table = &'static [(&'static str, &'static str)];

pub fn wire(text: &str) -> String {
    format!("{}\r\n", text.replace('|', "\r\n"))
}

/// What a server over this engine replies to each request, sent in pieces of `piece` bytes.
fn check(engine: fn(engine_mem::MemEngine) -> store::shard::ShardEngine, table: Table, piece: usize) {
    let mut server = TestServer::with_shards(engine, 4);
    let client = server.connect_memcached();
    for (request, expected) in table {
        let pieces = wire(request).into_bytes();
        let sent: Vec<u8> = pieces.chunks(piece).flat_map(|piece| server.send(client, piece)).collect();
        let expected = if expected.is_empty() { String::new() } else { wire(expected) };
        assert_eq!(String::from_utf8_lossy(&sent), expected, "{request}");
    }
    server.assert_replica_agrees();
}

fn check_everywhere(table: Table) {
    check(memory, table, usize::MAX);
    check(memory, table, 1);
    check(fetching, table, usize::MAX);
    check(ticketed, table, usize::MAX);
}

/// What the Java client of ARCUS sends: counters with an initial value, and a question with its length twice.
#[test]
fn counters_with_an_initial_value_and_a_length_said_twice() {
    check_everywhere(&[
        ("incr n 5", "NOT_FOUND"),
        ("incr n 5 7 100 41", "41"),
        ("get n", "VALUE n 7 2|41|END"),
        ("getattr n expiretime", "ATTR expiretime=100|END"),
        ("incr n 5 0 0 100", "46"),
        ("decr n 50 0 0 100", "0"),
        ("decr m 5 0 0 18446744073709551615 noreply", ""),
        ("get m", "VALUE m 0 20|18446744073709551615|END"),
        ("incr m 2", "1"),
        ("incr gone 1 0 -1 3", "3"),
        ("get gone", "END"),
        ("set t 0 0 1|x", "STORED"),
        ("incr t 1 0 0 1", "CLIENT_ERROR cannot increment or decrement non-numeric value"),
        ("sop insert s 1 create 0 0 0|a", "CREATED_STORED"),
        ("incr s 1 0 0 1", "TYPE_MISMATCH"),
        ("sop exist s 1 1|a", "EXIST"),
        ("sop exist s 1 1|b", "NOT_EXIST"),
    ]);
}

#[test]
fn lists() {
    check_everywhere(&[
        ("lop insert l 0 6|datum0", "NOT_FOUND"),
        ("lop insert l 0 6 create 17 0 0|datum0", "CREATED_STORED"),
        ("lop insert l 1 6|datum1", "STORED"),
        ("lop insert l -1 6|datum2", "STORED"),
        ("lop insert l 3 6 create 99 0 0|datum3", "STORED"),
        ("lop insert l 4 6|datum4", "STORED"),
        ("getattr l count maxcount", "ATTR count=5|ATTR maxcount=4000|END"),
        ("lop get l 0", "VALUE 17 1|6 datum0|END"),
        ("lop get l -1..-2", "VALUE 17 2|6 datum4|6 datum3|END"),
        ("lop get l 6..-3", "VALUE 17 3|6 datum4|6 datum3|6 datum2|END"),
        ("lop get l 6..8", "NOT_FOUND_ELEMENT"),
        ("lop get l 5", "NOT_FOUND_ELEMENT"),
        ("lop insert l 6 1|x", "OUT_OF_RANGE"),
        ("lop insert l -7 1|x", "OUT_OF_RANGE"),
        ("lop insert l 0 1 noreply|x", ""),
        ("lop get l 0..1 delete", "VALUE 17 2|1 x|6 datum0|DELETED"),
        ("lop delete l 100", "NOT_FOUND_ELEMENT"),
        ("lop delete l -1..0 noreply", ""),
        ("lop get l 0..-1", "NOT_FOUND_ELEMENT"),
        ("getattr l count", "ATTR count=0|END"),
        ("lop insert l 0 1|y", "STORED"),
        ("lop delete l 0 drop", "DELETED_DROPPED"),
        ("getattr l", "NOT_FOUND"),
        ("lop get l 0", "NOT_FOUND"),
        ("lop delete l 0", "NOT_FOUND"),
        ("set kv 0 0 1|x", "STORED"),
        ("lop insert kv 0 1|x", "TYPE_MISMATCH"),
        ("lop get kv 0", "TYPE_MISMATCH"),
        ("lop insert kv 0 1 create 0 0 0|x", "TYPE_MISMATCH"),
    ]);
}

#[test]
fn full_lists_trim_or_refuse() {
    check_everywhere(&[
        ("lop create t 1 0 3", "CREATED"),
        ("lop create t 1 0 3", "EXISTS"),
        ("lop insert t 0 1|a", "STORED"),
        ("lop insert t 1 1|b", "STORED"),
        ("lop insert t 2 1|c", "STORED"),
        ("lop insert t 0 1|d", "STORED"),
        ("lop get t 0..-1", "VALUE 1 3|1 d|1 a|1 b|END"),
        ("lop insert t -1 1|e", "STORED"),
        ("lop get t 0..-1", "VALUE 1 3|1 a|1 b|1 e|END"),
        ("lop insert t 1 1|f", "STORED"),
        ("lop get t 0..-1", "VALUE 1 3|1 a|1 f|1 b|END"),
        ("setattr t overflowaction=head_trim", "OK"),
        ("lop insert t 2 1|g", "STORED"),
        ("lop get t 0..-1", "VALUE 1 3|1 f|1 g|1 b|END"),
        ("setattr t overflowaction=error", "OK"),
        ("lop insert t 0 1|h", "OVERFLOWED"),
        ("lop insert t 3 1|h", "OUT_OF_RANGE"),
        ("setattr t maxcount=2", "ATTR_ERROR bad value"),
        ("setattr t maxcount=4", "OK"),
        ("lop insert t 3 1|h", "STORED"),
        ("lop create bad 1 0", "CLIENT_ERROR bad command line format"),
        ("lop create bad 1 0 0 smallest_trim", "CLIENT_ERROR bad command line format"),
        ("lop create sticky 1 -1 0", "SERVER_ERROR out of memory"),
        ("lop create b!d:k 1 0 0", "CLIENT_ERROR invalid prefix name"),
        ("lop insert gone 0 1 create 0 -5 0|x", "CREATED_STORED"),
        ("lop get gone 0", "NOT_FOUND"),
    ]);
}

#[test]
fn sets() {
    check_everywhere(&[
        ("sop insert s 6|datum1", "NOT_FOUND"),
        ("sop create s 13 0 3", "CREATED"),
        ("sop get s 0", "NOT_FOUND_ELEMENT"),
        ("sop insert s 6|datum1", "STORED"),
        ("sop insert s 6|datum1", "ELEMENT_EXISTS"),
        ("sop insert s 6|datum2", "STORED"),
        ("sop insert s 6|datum3", "STORED"),
        ("sop insert s 6|datum3", "OVERFLOWED"),
        ("sop exist s 6|datum1", "EXIST"),
        ("sop exist s 6|datum9", "NOT_EXIST"),
        ("sop exist no 6|datum9", "NOT_FOUND"),
        ("sop delete s 6|datum1", "DELETED"),
        ("sop delete s 6|datum1", "NOT_FOUND_ELEMENT"),
        ("sop delete s 6|datum2", "DELETED"),
        ("sop get s 0", "VALUE 13 1|6 datum3|END"),
        ("sop get s 1001", "CLIENT_ERROR invalid: too many count"),
        ("sop get s 5 delete", "VALUE 13 1|6 datum3|DELETED"),
        ("sop get s 0", "NOT_FOUND_ELEMENT"),
        (
            "getattr s",
            "ATTR type=set|ATTR flags=13|ATTR expiretime=0|ATTR count=0|ATTR maxcount=3|\
            ATTR overflowaction=error|ATTR readable=on|END",
        ),
        ("sop insert s 1|x", "STORED"),
        ("sop get s 1 drop", "VALUE 13 1|1 x|DELETED_DROPPED"),
        ("sop get s 0", "NOT_FOUND"),
        ("sop insert n 2 create 0 0 0|12", "CREATED_STORED"),
        ("sop delete n 2 drop|12", "DELETED_DROPPED"),
    ]);
}

#[test]
fn maps() {
    check_everywhere(&[
        ("mop insert m f1 6|datum1", "NOT_FOUND"),
        ("mop insert m f1 6 create 11 0 2|datum1", "CREATED_STORED"),
        ("mop insert m f1 6|datum9", "ELEMENT_EXISTS"),
        ("mop insert m f2 6|datum2", "STORED"),
        ("mop insert m f3 6|datum3", "OVERFLOWED"),
        ("mop insert m f2 6|datum3", "ELEMENT_EXISTS"),
        ("mop upsert m f2 6|datum4", "REPLACED"),
        ("mop upsert m f3 6|datum4", "OVERFLOWED"),
        ("mop update m f1 1|x", "UPDATED"),
        ("mop update m f9 1|x", "NOT_FOUND_ELEMENT"),
        ("mop update no f9 1|x", "NOT_FOUND"),
        ("mop get m 5 2|f1 f2", "VALUE 11 2|f1 1 x|f2 6 datum4|END"),
        ("mop get m 5 2|f9,f2", "VALUE 11 1|f2 6 datum4|END"),
        ("mop get m 2 1|f9", "NOT_FOUND_ELEMENT"),
        ("mop get m 5 1|f1 f2", "CLIENT_ERROR bad data chunk"),
        ("mop get m 2 9|f1", "CLIENT_ERROR bad value"),
        ("mop get m 0 1", "CLIENT_ERROR bad command line format"),
        ("mop delete m 2 1|f1", "DELETED"),
        ("mop delete m 2 1|f1", "NOT_FOUND_ELEMENT"),
        ("mop get m 0 0", "VALUE 11 1|f2 6 datum4|END"),
        ("mop get m 2 1 delete|f2", "VALUE 11 1|f2 6 datum4|DELETED"),
        ("mop get m 0 0", "NOT_FOUND_ELEMENT"),
        ("mop upsert m f 1|z", "STORED"),
        ("mop delete m 0 0 drop", "DELETED_DROPPED"),
        ("mop get m 0 0", "NOT_FOUND"),
    ]);
}

#[test]
fn attributes() {
    check_everywhere(&[
        ("getattr no", "NOT_FOUND"),
        ("setattr no expiretime=5", "NOT_FOUND"),
        ("set kv 5 100 1|x", "STORED"),
        ("getattr kv", "ATTR type=kv|ATTR flags=5|ATTR expiretime=100|END"),
        ("getattr kv count", "ATTR_ERROR not found"),
        ("getattr kv nonsense", "ATTR_ERROR not found"),
        ("setattr kv maxcount=5", "ATTR_ERROR not found"),
        ("setattr kv expiretime=0", "OK"),
        ("getattr kv expiretime flags", "ATTR expiretime=0|ATTR flags=5|END"),
        ("setattr kv expiretime=-1", "ATTR_ERROR bad value"),
        ("setattr kv expiretime=x", "ATTR_ERROR bad value"),
        ("lop create k 4 50 100 error unreadable", "CREATED"),
        (
            "getattr k",
            "ATTR type=list|ATTR flags=4|ATTR expiretime=50|ATTR count=0|ATTR maxcount=100|\
            ATTR overflowaction=error|ATTR readable=off|END",
        ),
        ("lop insert k 0 1|x", "STORED"),
        ("lop get k 0", "UNREADABLE"),
        ("setattr k readable=off", "ATTR_ERROR bad value"),
        ("setattr k maxcount=7 readable=off", "ATTR_ERROR bad value"),
        ("getattr k maxcount", "ATTR maxcount=100|END"),
        ("setattr k maxcount=-1 readable=on expiretime=0", "OK"),
        ("getattr k expiretime maxcount readable", "ATTR expiretime=0|ATTR maxcount=50000|ATTR readable=on|END"),
        ("lop get k 0", "VALUE 4 1|1 x|END"),
        ("setattr k overflowaction=smallest_trim", "ATTR_ERROR bad value"),
        ("setattr k", "CLIENT_ERROR bad command line format"),
        ("setattr k flags=5", "ATTR_ERROR not found"),
    ]);
}

#[test]
fn pipes() {
    check_everywhere(&[
        (
            "lop insert l 0 6 create 11 0 0 pipe|datum0|lop insert l 1 6 pipe|datum1|lop insert l 9 6 pipe|datum2|\
             lop delete l 0 pipe|sop exist l 1 pipe|x|lop insert l -1 6|datum3",
            "RESPONSE 6|CREATED_STORED|STORED|OUT_OF_RANGE|DELETED|TYPE_MISMATCH|STORED|END",
        ),
        ("lop get l 0..-1", "VALUE 11 2|6 datum1|6 datum3|END"),
        // One byte too much: what follows is no request.
        (
            "lop insert b 0 6 create 11 0 0 pipe|datum0|lop insert b 1 6 pipe|datum1x|lop insert b 1 6 pipe|datum2|\
             lop insert b 1 6|datum3",
            "RESPONSE 2|CREATED_STORED|CLIENT_ERROR bad data chunk|PIPE_ERROR bad error",
        ),
        ("lop get b 0..-1", "VALUE 11 1|6 datum0|END"),
        (
            "mop upsert m a 1 create 1 0 0 pipe|1|mop upsert m b 16383 pipe",
            "RESPONSE 2|CREATED_STORED|CLIENT_ERROR too large value|PIPE_ERROR bad error",
        ),
    ]);
}

#[test]
fn other_commands_end_a_pipe() {
    check_everywhere(&[
        ("lop insert l 0 1 create 0 0 0 pipe|x|get l", "RESPONSE 1|CREATED_STORED|END|END"),
        (
            "lop insert l 0 1 pipe|x|nonsense|lop insert l 0 1|y|lop get l 0..-1",
            "RESPONSE 2|STORED|ERROR|PIPE_ERROR bad error|VALUE 0 2|1 x|1 x|END",
        ),
        ("lop get l 0 pipe|lop get l 0", "RESPONSE 1|CLIENT_ERROR bad command line format|PIPE_ERROR bad error"),
    ]);
}

#[test]
fn several_items_are_read_at_once() {
    check_everywhere(&[
        ("set a 1 0 1|x", "STORED"),
        ("set c 2 0 2|yz", "STORED"),
        ("sop create s 0 0 0", "CREATED"),
        ("mget 9 5|a b c s a", "VALUE a 1 1|x|VALUE c 2 2|yz|VALUE a 1 1|x|END"),
        ("mget 1 1|b", "END"),
        ("mget 3 2|a,c", "CLIENT_ERROR bad data chunk"),
        ("mget 3 2|a c d|mn", "CLIENT_ERROR bad data chunk|ERROR|MN"),
        ("mget 3 0|abc|mn", "CLIENT_ERROR bad command line format|ERROR|MN"),
        ("lop insert l 0 1 create 0 0 0 pipe|x|mget 1 1|a", "RESPONSE 1|CREATED_STORED|END|VALUE a 1 1|x|END"),
    ]);
}

/// Every key of a type that ARCUS knows comes once, over all calls.
#[test]
fn keys_are_scanned() {
    let mut server = TestServer::with_shards(memory, 4);
    let (client, redis) = (server.connect_memcached(), server.connect());
    for number in 0..300 {
        let expiration = number % 2 * 100;
        let request = match number % 3 {
            0 => format!("set kv:{number} 0 {expiration} 1|x"),
            1 => format!("sop create set:{number} 0 {expiration} 0"),
            _ => format!("bop create tree:{number} 0 {expiration} 0"),
        };
        server.send(client, wire(&request).as_bytes());
    }
    server.run(redis, &["ZADD", "unknown", "1", "a"]);
    for (options, expected) in [("", 300), (" type B", 100), (" match *:1?", 10), (" type K match set*", 0)] {
        let (mut cursor, mut found) = ("0".to_owned(), std::collections::BTreeSet::new());
        loop {
            let request = wire(&format!("scan key {cursor} count 7{options}"));
            let reply = String::from_utf8(server.send(client, request.as_bytes())).unwrap();
            let mut lines = reply.lines();
            let head: Vec<&str> = lines.next().unwrap().split(' ').collect();
            let keys: Vec<&str> = lines.take_while(|line| *line != "END").collect();
            assert_eq!((head[0], head[1]), ("KEYS", &*keys.len().to_string()), "{reply}");
            found.extend(keys.iter().map(|line| (*line).to_owned()));
            cursor = head[2].to_owned();
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(found.len(), expected, "{options}: {found:?}");
        let is_right = |line: &String| {
            let words: Vec<&str> = line.split(' ').collect();
            let (kind, number) = words[0].split_once(':').unwrap();
            let left = if number.parse::<u32>().unwrap() % 2 == 0 { "0" } else { "100" };
            let letter = match kind {
                "kv" => "K",
                "set" => "S",
                _ => "B",
            };
            words[1..] == [letter, left]
        };
        assert!(found.iter().all(is_right), "{found:?}");
    }
    for (request, expected) in [
        ("scan key", "CLIENT_ERROR bad command line format"),
        ("scan key x", "CLIENT_ERROR bad cursor value"),
        ("scan key 99999999999999999999", "CLIENT_ERROR invalid cursor."),
        ("scan key 0 count 0", "CLIENT_ERROR bad count value"),
        ("scan key 0 match \\x", "CLIENT_ERROR bad pattern string"),
        ("scan key 0 type X", "CLIENT_ERROR bad item type"),
        ("scan other 0", "ERROR"),
    ] {
        assert_eq!(server.send(client, wire(request).as_bytes()), wire(expected).as_bytes(), "{request}");
    }
}

#[test]
fn wrong_lines_are_refused() {
    check_everywhere(&[
        ("lop", "CLIENT_ERROR bad command line format"),
        ("lop get k", "CLIENT_ERROR bad command line format"),
        ("lop get k 1 other", "CLIENT_ERROR bad command line format"),
        ("lop other k 1", "CLIENT_ERROR bad command line format"),
        ("lop insert k x 1|mn", "CLIENT_ERROR bad command line format|MN"),
        ("lop insert k 0 -1", "CLIENT_ERROR bad command line format"),
        ("lop insert k 0 1 other|mn", "CLIENT_ERROR bad command line format|MN"),
        ("lop insert k 0 1 noreply|xx", "ERROR"),
        ("mn", "MN"),
        ("setattr k noequals", "CLIENT_ERROR bad command line format"),
    ]);
}

/// The tree of the protocol's own examples: at most five elements, of which the smallest are trimmed.
#[test]
fn trees_trim() {
    check_everywhere(&[
        ("bop insert b 10 6|datum1", "NOT_FOUND"),
        ("bop insert b 10 6 create 11 0 5|datum1", "CREATED_STORED"),
        ("bop insert b 30 6|datum3", "STORED"),
        ("bop insert b 50 6|datum5", "STORED"),
        ("bop insert b 70 6|datum7", "STORED"),
        ("bop insert b 90 6|datum9", "STORED"),
        ("bop insert b 90 6|datumX", "ELEMENT_EXISTS"),
        ("bop upsert b 90 6|datum9", "REPLACED"),
        ("getattr b trimmed minbkey maxbkey", "ATTR trimmed=0|ATTR minbkey=10|ATTR maxbkey=90|END"),
        ("bop insert b 110 7|datum11", "STORED"),
        ("getattr b trimmed minbkey maxbkey", "ATTR trimmed=1|ATTR minbkey=30|ATTR maxbkey=110|END"),
        ("bop get b 0..1000", "VALUE 11 5|30 6 datum3|50 6 datum5|70 6 datum7|90 6 datum9|110 7 datum11|TRIMMED"),
        ("bop get b 30..1000", "VALUE 11 5|30 6 datum3|50 6 datum5|70 6 datum7|90 6 datum9|110 7 datum11|END"),
        ("bop get b 1000..30", "VALUE 11 5|110 7 datum11|90 6 datum9|70 6 datum7|50 6 datum5|30 6 datum3|END"),
        ("bop get b 0..20", "OUT_OF_RANGE"),
        // Elements may be missing only before the first that is there: at an end that such an answer does not reach.
        ("bop get b 1000..0 2", "VALUE 11 2|110 7 datum11|90 6 datum9|END"),
        ("bop get b 1000..0 3 2", "VALUE 11 2|50 6 datum5|30 6 datum3|END"),
        ("bop get b 1000..0 4 2", "VALUE 11 1|30 6 datum3|TRIMMED"),
        ("bop get b 0..1000 1", "VALUE 11 1|30 6 datum3|TRIMMED"),
        ("bop mget 1 1 1000..0 1|b", "VALUE b OK 11 1|ELEMENT 110 7 datum11|END"),
        ("bop mget 1 1 1000..0 4 1|b", "VALUE b OK 11 1|ELEMENT 30 6 datum3|END"),
        ("bop mget 1 1 1000..0 4 2|b", "VALUE b TRIMMED 11 1|ELEMENT 30 6 datum3|END"),
        ("bop get b 0..20 5 1", "NOT_FOUND_ELEMENT"),
        ("bop get b 0x01 5 1", "NOT_FOUND_ELEMENT"),
        ("bop mget 1 1 0x01 5 1|b", "VALUE b NOT_FOUND_ELEMENT|END"),
        ("bop get b 120..200", "NOT_FOUND_ELEMENT"),
        ("bop get b 31", "NOT_FOUND_ELEMENT"),
        ("bop get b 50..90 1 1", "VALUE 11 1|70 6 datum7|END"),
        ("bop get b 50..90 9 1", "NOT_FOUND_ELEMENT"),
        ("bop insert b 20 1|x", "OUT_OF_RANGE"),
        ("bop insert b 120 1 getrim|x", "VALUE 11 1|30 6 datum3|TRIMMED"),
        ("bop insert b 120 1 getrim|x", "ELEMENT_EXISTS"),
        ("bop count b 0..1000", "COUNT=5"),
        ("bop count b 60..100", "COUNT=2"),
        ("bop count b 100..60", "COUNT=2"),
        ("bop count b 1", "COUNT=0"),
        ("bop count no 1", "NOT_FOUND"),
        ("bop get b 0x01", "BKEY_MISMATCH"),
        ("bop insert b 0x01 1|x", "BKEY_MISMATCH"),
        ("setattr b overflowaction=error", "OK"),
        ("getattr b trimmed", "ATTR trimmed=0|END"),
        ("bop insert b 200 1|x", "OVERFLOWED"),
        ("setattr b overflowaction=largest_silent_trim", "OK"),
        ("bop insert b 200 1|x", "OUT_OF_RANGE"),
        ("bop insert b 10 1|x", "STORED"),
        ("getattr b trimmed maxbkey", "ATTR trimmed=0|ATTR maxbkey=110|END"),
        ("setattr b overflowaction=head_trim", "ATTR_ERROR bad value"),
        ("bop delete b 60..100 1", "DELETED"),
        ("bop get b 0..1000 delete", "VALUE 11 4|10 1 x|50 6 datum5|90 6 datum9|110 7 datum11|DELETED"),
        ("bop get b 0..1000", "NOT_FOUND_ELEMENT"),
        ("bop insert b 0x0aFf 1|x", "STORED"),
        ("bop get b 0x00..0xff drop", "VALUE 11 1|0x0AFF 1 x|DELETED_DROPPED"),
        ("bop get b 0x00..0xff", "NOT_FOUND"),
    ]);
}

#[test]
fn trees_have_a_range() {
    check_everywhere(&[
        ("bop create r 3 0 0", "CREATED"),
        (
            "getattr r",
            "ATTR type=b+tree|ATTR flags=3|ATTR expiretime=0|ATTR count=0|ATTR maxcount=4000|\
             ATTR overflowaction=smallest_trim|ATTR readable=on|ATTR maxbkeyrange=0|ATTR minbkey=-1|ATTR maxbkey=-1|\
             ATTR trimmed=0|END",
        ),
        ("setattr r maxbkeyrange=50", "OK"),
        ("bop insert r 0x01 1|x", "BKEY_MISMATCH"),
        ("bop insert r 100 1|a", "STORED"),
        ("bop insert r 120 1|b", "STORED"),
        ("bop insert r 150 1|c", "STORED"),
        ("bop insert r 99 1|x", "OUT_OF_RANGE"),
        ("bop insert r 160 1|d", "STORED"),
        ("bop get r 0..1000", "VALUE 3 3|120 1 b|150 1 c|160 1 d|END"),
        ("bop insert r 500 1|e", "STORED"),
        ("bop get r 0..1000", "VALUE 3 1|500 1 e|END"),
        ("setattr r maxbkeyrange=0x0a", "ATTR_ERROR bad value"),
        ("bop insert r 540 1|f", "STORED"),
        ("setattr r maxbkeyrange=39", "ATTR_ERROR bad value"),
        ("setattr r maxbkeyrange=40 overflowaction=largest_trim", "OK"),
        ("bop insert r 470 1|g", "STORED"),
        ("bop get r 0..1000", "VALUE 3 2|470 1 g|500 1 e|END"),
        ("bop insert r 511 1|h", "OUT_OF_RANGE"),
        ("setattr r maxbkeyrange=0", "OK"),
        ("bop insert r 1 1|i", "STORED"),
    ]);
}

#[test]
fn trees_filter_and_update_eflags() {
    check_everywhere(&[
        ("bop insert b 1 0x0101 1 create 7 0 0|a", "CREATED_STORED"),
        ("bop insert b 2 0x0202 1|b", "STORED"),
        ("bop insert b 3 1|c", "STORED"),
        ("bop insert b 4 0xff 1|d", "STORED"),
        ("bop get b 0..9", "VALUE 7 4|1 0x0101 1 a|2 0x0202 1 b|3 1 c|4 0xFF 1 d|END"),
        ("bop get b 0..9 0 EQ 0x0101", "VALUE 7 1|1 0x0101 1 a|END"),
        ("bop get b 0..9 0 NE 0x0101", "VALUE 7 3|2 0x0202 1 b|3 1 c|4 0xFF 1 d|END"),
        ("bop get b 0..9 1 EQ 0x01,0x02", "VALUE 7 2|1 0x0101 1 a|2 0x0202 1 b|END"),
        ("bop get b 0..9 0 & 0x03 GE 0x02", "VALUE 7 2|2 0x0202 1 b|4 0xFF 1 d|END"),
        ("bop count b 0..9 0 GT 0x01", "COUNT=2"),
        ("bop get b 0..9 0 LT 0x01", "NOT_FOUND_ELEMENT"),
        ("bop update b 1 1 ^ 0xf0 1|x", "UPDATED"),
        ("bop update b 3 1 ^ 0xf0 -1", "EFLAG_MISMATCH"),
        ("bop update b 3 0x05 -1", "UPDATED"),
        ("bop update b 4 0 1|y", "UPDATED"),
        ("bop update b 2 -1", "NOTHING_TO_UPDATE"),
        ("bop update b 2 1|z", "UPDATED"),
        ("bop update b 9 1|z", "NOT_FOUND_ELEMENT"),
        ("bop update no 9 1|z", "NOT_FOUND"),
        ("bop get b 9..0", "VALUE 7 4|4 1 y|3 0x05 1 c|2 0x0202 1 z|1 0x01F1 1 x|END"),
        ("bop delete b 0..9 0 EQ 0x05", "DELETED"),
        ("bop delete b 0..9 0 EQ 0x05", "NOT_FOUND_ELEMENT"),
        ("bop get b 0..9 0 EQ 0x0", "CLIENT_ERROR bad command line format"),
        ("bop insert b 7 0xg 1|mn", "CLIENT_ERROR bad command line format|MN"),
    ]);
}

#[test]
fn trees_count_positions_and_numbers() {
    check_everywhere(&[
        ("bop create b 5 0 0", "CREATED"),
        ("bop gbp b asc 0", "NOT_FOUND_ELEMENT"),
        (
            "bop insert b 10 1 pipe|a|bop insert b 20 1 pipe|b|bop insert b 30 1 pipe|c|bop insert b 40 1|d",
            "RESPONSE 4|STORED|STORED|STORED|STORED|END",
        ),
        ("bop position b 10 asc", "POSITION=0"),
        ("bop position b 10 desc", "POSITION=3"),
        ("bop position b 11 asc", "NOT_FOUND_ELEMENT"),
        ("bop position no 11 asc", "NOT_FOUND"),
        ("bop position b 0x01 asc", "BKEY_MISMATCH"),
        ("bop gbp b asc 1", "VALUE 5 1|20 1 b|END"),
        ("bop gbp b asc 2..9", "VALUE 5 2|30 1 c|40 1 d|END"),
        ("bop gbp b asc 2..0", "VALUE 5 3|30 1 c|20 1 b|10 1 a|END"),
        ("bop gbp b desc 0..1", "VALUE 5 2|40 1 d|30 1 c|END"),
        ("bop gbp b asc 4..9", "NOT_FOUND_ELEMENT"),
        ("bop pwg b 20 asc", "VALUE 1 5 1 0|20 1 b|END"),
        ("bop pwg b 20 asc 2", "VALUE 1 5 4 1|10 1 a|20 1 b|30 1 c|40 1 d|END"),
        ("bop pwg b 20 desc 1", "VALUE 2 5 3 1|30 1 c|20 1 b|10 1 a|END"),
        ("bop pwg b 20 asc 101", "CLIENT_ERROR too large count value"),
        ("bop incr b 50 5", "NOT_FOUND_ELEMENT"),
        ("bop incr b 50 5 100 0x01", "100"),
        ("bop incr b 50 5", "105"),
        ("bop decr b 50 200", "0"),
        ("bop incr b 50 18446744073709551615", "18446744073709551615"),
        ("bop incr b 50 2", "1"),
        ("bop get b 50", "VALUE 5 1|50 0x01 1 1|END"),
        ("bop incr b 10 1", "CLIENT_ERROR cannot increment or decrement non-numeric value"),
        ("bop incr b 10 0", "CLIENT_ERROR bad command line format"),
        ("bop incr no 10 1", "NOT_FOUND"),
    ]);
}

#[test]
fn several_trees_are_read_at_once() {
    check_everywhere(&[
        (
            "bop insert b1 10 3 create 11 0 5 pipe|b10|bop insert b1 30 3 pipe|b30|bop insert b1 50 3 pipe|b50|\
          bop insert b1 70 3 pipe|b70|bop insert b1 90 3 pipe|b90|bop insert b1 40 3|b40",
            "RESPONSE 6|CREATED_STORED|STORED|STORED|STORED|STORED|STORED|END",
        ),
        (
            "bop insert b2 20 3 create 12 0 0 pipe|b20|bop insert b2 40 3 pipe|b40|bop insert b2 60 3 pipe|b60|\
          bop insert b2 80 3 pipe|b80|bop insert b2 100 4|b100",
            "RESPONSE 5|CREATED_STORED|STORED|STORED|STORED|STORED|END",
        ),
        ("set kv 0 0 1|x", "STORED"),
        ("bop create e 1 0 0", "CREATED"),
        ("bop create u 1 0 0 unreadable", "CREATED"),
        (
            "bop mget 18 7 30..60 2|b1 b2 no kv e u b1",
            "VALUE b1 OK 11 2|ELEMENT 30 3 b30|ELEMENT 40 3 b40|VALUE b2 OK 12 2|ELEMENT 40 3 b40|ELEMENT 60 3 b60|\
             VALUE no NOT_FOUND|VALUE kv TYPE_MISMATCH|VALUE e NOT_FOUND_ELEMENT|VALUE u UNREADABLE|\
             VALUE b1 OK 11 2|ELEMENT 30 3 b30|ELEMENT 40 3 b40|END",
        ),
        ("bop mget 5 2 0..30 2|b1,b2", "VALUE b1 TRIMMED 11 1|ELEMENT 30 3 b30|VALUE b2 OK 12 1|ELEMENT 20 3 b20|END"),
        ("bop mget 2 1 0..20 2|b1", "VALUE b1 OUT_OF_RANGE|END"),
        ("bop mget 2 1 0x01 2|b1", "VALUE b1 BKEY_MISMATCH|END"),
        ("bop mget 2 1 0..20 51|b1", "CLIENT_ERROR bad value"),
        ("bop mget 2 1 0..20|b1", "CLIENT_ERROR bad value"),
        (
            "bop smget 5 2 0..100 5 duplicate|b1 b2",
            "ELEMENTS 5|b2 12 20 3 b20|b2 12 40 3 b40|b2 12 60 3 b60|b2 12 80 3 b80|b2 12 100 4 b100|\
             MISSED_KEYS 1|b1 OUT_OF_RANGE|TRIMMED_KEYS 0|END",
        ),
        (
            "bop smget 5 2 100..0 10 duplicate|b1 b2",
            "ELEMENTS 10|b2 12 100 4 b100|b1 11 90 3 b90|b2 12 80 3 b80|b1 11 70 3 b70|b2 12 60 3 b60|b1 11 50 3 b50|\
             b2 12 40 3 b40|b1 11 40 3 b40|b1 11 30 3 b30|b2 12 20 3 b20|MISSED_KEYS 0|TRIMMED_KEYS 1|b1 30|DUPLICATED",
        ),
        (
            "bop smget 5 2 100..0 10 unique|b1 b2",
            "ELEMENTS 9|b2 12 100 4 b100|b1 11 90 3 b90|b2 12 80 3 b80|b1 11 70 3 b70|b2 12 60 3 b60|b1 11 50 3 b50|\
             b2 12 40 3 b40|b1 11 30 3 b30|b2 12 20 3 b20|MISSED_KEYS 0|TRIMMED_KEYS 1|b1 30|END",
        ),
        (
            "bop smget 5 2 100..0 2 unique|b1 b2",
            "ELEMENTS 2|b2 12 100 4 b100|b1 11 90 3 b90|MISSED_KEYS 0|TRIMMED_KEYS 0|END",
        ),
        ("bop smget 8 3 30..40 1 2|b1 b2 no", "VALUE 2|b1 11 40 3 b40|b2 12 40 3 b40|MISSED_KEYS 1|no|DUPLICATED"),
        ("bop smget 5 2 0..100 5|b1 b2", "OUT_OF_RANGE"),
        ("bop smget 5 2 0x00..0xff 5 unique|b1 b2", "BKEY_MISMATCH"),
        ("bop smget 5 2 0..100 5 unique|b1 b1", "CLIENT_ERROR bad data chunk"),
        ("bop smget 5 2 0..100 5 unique|b1 kv", "TYPE_MISMATCH"),
        ("bop smget 5 2 0..100 5 other|b1 b2|mn", "CLIENT_ERROR bad command line format|ERROR|MN"),
    ]);
}

/// What Redis clients see of a b+tree.
#[test]
fn redis_clients_see_trees() {
    let mut server = TestServer::with_shards(memory, 4);
    let (arcus, redis) = (server.connect_memcached(), server.connect());
    let mut ask = |is_redis: bool, request: &str, expected: &str| {
        let client = if is_redis { redis } else { arcus };
        let reply = String::from_utf8(server.send(client, wire(request).as_bytes())).unwrap();
        assert!(reply.starts_with(expected), "{request}: {reply}");
    };
    ask(false, "bop insert b 1 2 create 0 0 0|xy", "CREATED_STORED");
    ask(true, "TYPE b", "+btree");
    ask(true, "OBJECT ENCODING b", "$6\r\npacked");
    ask(true, "MEMORY USAGE b", ":");
    ask(true, "SCAN 0 TYPE btree COUNT 1000", "*2");
    ask(true, "GET b", "-WRONGTYPE");
    ask(true, "ZCARD b", "-WRONGTYPE");
    ask(true, "DUMP b", "-ERR a btree has no form");
    ask(true, "EXPIRE b 100", ":1");
    ask(false, "getattr b expiretime", "ATTR expiretime=100");
    ask(true, "COPY b c", ":1");
    ask(true, "RENAME b d", "+OK");
    ask(false, "bop get c 1", "VALUE 0 1|1 2 xy|END".replace('|', "\r\n").as_str());
    ask(true, "DEL c d", ":2");
    (0..400).for_each(|number| ask(false, &format!("bop insert t {number} 30 create 0 0 0|{number:030}"), ""));
    ask(true, "OBJECT ENCODING t", "$5\r\nbtree");
    ask(true, "DUMP t", "-ERR a btree has no form");
}

/// The longest element, and one byte more, whose data is skipped.
#[test]
fn elements_have_a_longest_length() {
    let mut server = TestServer::with_shards(memory, 4);
    let client = server.connect_memcached();
    let insert = |len: usize| format!("lop insert l 0 {len} create 0 0 0\r\n{}\r\nmn\r\n", "x".repeat(len));
    assert_eq!(server.send(client, insert(16_382).as_bytes()), b"CREATED_STORED\r\nMN\r\n");
    assert_eq!(server.send(client, insert(16_383).as_bytes()), b"CLIENT_ERROR too large value\r\nMN\r\n");
    let field = "f".repeat(251);
    let reply = server.send(client, format!("mop insert m {field} 1\r\nmn\r\n").as_bytes());
    assert_eq!(reply, b"CLIENT_ERROR too long field name\r\nMN\r\n");
}

/// The words of an insert after its key, by its number.
type Insert = fn(u32) -> String;

/// What a full collection does that asks for as many elements as the server allows, and what raises that.
#[test]
fn collections_hold_as_many_as_is_set() {
    let mut server = TestServer::with_shards(memory, 4);
    let (arcus, redis) = (server.connect_memcached_as_default(), server.connect());
    server.run(redis, &["CONFIG", "SET", "arcus-max-btree-size", "10000"]);
    let inserts: [(&str, &str, Insert); 4] = [
        ("list", "lop", |number| format!("-1 5{}|{number:05}", if number == 0 { " create 0 0 -1 error" } else { "" })),
        ("set", "sop", |number| format!("5{}|{number:05}", if number == 0 { " create 0 0 -1" } else { "" })),
        ("map", "mop", |number| format!("{number} 1{}|x", if number == 0 { " create 0 0 -1" } else { "" })),
        ("btree", "bop", |number| format!("{number} 1{}|x", if number == 0 { " create 0 0 -1 error" } else { "" })),
    ];
    for (name, command, insert) in inserts {
        let setting = format!("max_{name}_size");
        server.run(redis, &["CONFIG", "SET", &format!("arcus-max-{name}-size"), "10000"]);
        let requests: String =
            (0..10_001).map(|number| wire(&format!("{command} insert {name} {}", insert(number)))).collect();
        let replies = String::from_utf8(server.send(arcus, requests.as_bytes())).unwrap();
        let expected = format!("CREATED_STORED\r\n{}OVERFLOWED\r\n", "STORED\r\n".repeat(9999));
        assert!(replies == expected, "{name}: {}", &replies[replies.len() - 60..]);
        let mut ask = |request: &str, expected: &str| {
            let reply = String::from_utf8(server.send(arcus, wire(request).as_bytes())).unwrap();
            assert_eq!(reply, wire(expected), "{request}");
        };
        ask(&format!("getattr {name} count maxcount"), "ATTR count=10000|ATTR maxcount=10000|END");
        ask(&format!("{command} create clipped 0 0 60000|getattr clipped maxcount"), "CREATED|ATTR maxcount=10000|END");
        ask("setattr clipped maxcount=20000|getattr clipped maxcount", "OK|ATTR maxcount=10000|END");
        for wrong in ["0", "9999", "10000"] {
            ask(&format!("config {setting} {wrong}"), "CLIENT_ERROR bad value");
        }
        for wrong in ["x", "1x", "9999999999", "20000 1"] {
            ask(&format!("config {setting} {wrong}"), "CLIENT_ERROR bad command line format");
        }
        ask(&format!("config {setting} 20000|config {setting}"), &format!("END|{setting} 20000|END"));
        ask(&format!("{command} insert {name} {}", insert(10_001)), "STORED");
        ask(&format!("getattr {name} count maxcount"), "ATTR count=10001|ATTR maxcount=20000|END");
        ask(&format!("config {setting} -1|config {setting}"), &format!("END|{setting} 1000000|END"));
        ask(&format!("config {setting} 1000001"), "CLIENT_ERROR bad value");
        ask("getattr clipped maxcount|delete clipped", "ATTR maxcount=10000|END|DELETED");
    }
    let reply = server.run(redis, &["CONFIG", "SET", "arcus-max-set-size", "9999"]);
    assert!(reply.starts_with("-ERR"), "{reply}");
    server.assert_replica_agrees();
}

/// The parsers of a server follow its settings from the next turn on.
fn follow_settings(server: &mut TestServer) {
    let limits = ClientLimits::of(&server.shared.host.configuration.current());
    *server.shared.limits.write() = limits;
    server.executor.begin_turn();
}

/// The longest element of each type, by `config max_element_bytes`.
#[test]
fn elements_are_as_long_as_is_set() {
    let mut server = TestServer::with_shards(memory, 4);
    let client = server.connect_memcached_as_default();
    let mut ask = |request: &str, expected: &str| {
        let reply = String::from_utf8(server.send(client, wire(request).as_bytes())).unwrap();
        follow_settings(&mut server);
        assert!(reply == wire(expected), "{}: {}", &request[..request.len().min(60)], &reply[..reply.len().min(60)]);
    };
    for (bytes, answer) in [("1023", "CLIENT_ERROR bad value"), ("32769", "CLIENT_ERROR bad value"), ("32768", "END")] {
        ask(&format!("config max_element_bytes {bytes}"), answer);
    }
    let (most, more) = ("x".repeat(32_766), "y".repeat(32_767));
    for insert in ["lop insert l 0", "sop insert s", "mop insert m f", "bop insert b 1"] {
        ask(&format!("{insert} 32766 create 0 0 0|{most}"), "CREATED_STORED");
        ask(&format!("{insert} 32767|{more}|mn"), "CLIENT_ERROR too large value|MN");
    }
    ask("lop get l 0", &format!("VALUE 0 1|32766 {most}|END"));
    ask("mop get m 1 1|f", &format!("VALUE 0 1|f 32766 {most}|END"));
    ask("bop get b 0..9", &format!("VALUE 0 1|1 32766 {most}|END"));
    ask("config max_element_bytes 1024", "END");
    ask("lop get l 0", &format!("VALUE 0 1|32766 {most}|END"));
    ask(&format!("lop insert l 0 1023|{}|mn", "x".repeat(1023)), "CLIENT_ERROR too large value|MN");
    ask(&format!("lop insert l 0 1022|{}|mn", "x".repeat(1022)), "STORED|MN");
    server.assert_replica_agrees();
}

/// A request names as many fields of a map as a map may have.
#[test]
fn requests_name_as_many_fields_as_is_set() {
    let mut server = TestServer::with_shards(memory, 4);
    let (client, redis) = (server.connect_memcached_as_default(), server.connect());
    server.run(redis, &["CONFIG", "SET", "arcus-max-map-size", "10000"]);
    follow_settings(&mut server);
    let names = |count: usize| {
        let block = vec!["f"; count].join(" ");
        format!("mop get m {} {count}|{block}|mn", block.len())
    };
    let mut ask = |request: String| {
        let reply = String::from_utf8(server.send(client, wire(&request).as_bytes())).unwrap();
        follow_settings(&mut server);
        reply
    };
    assert_eq!(ask("mop insert m f 1 create 0 0 0|x".to_owned()), wire("CREATED_STORED"));
    assert_eq!(ask(names(10_000)), wire("VALUE 0 1|f 1 x|END|MN"));
    assert_eq!(ask(names(10_001)), wire("CLIENT_ERROR bad value|MN"));
    assert_eq!(ask("config max_map_size 10001".to_owned()), wire("END"));
    assert_eq!(ask(names(10_001)), wire("VALUE 0 1|f 1 x|END|MN"));
}

#[test]
fn pipes_have_a_largest_number_of_requests() {
    for (count, expected_end) in [(500, "END\r\n"), (501, "PIPE_ERROR command overflow\r\n")] {
        let mut server = TestServer::with_shards(memory, 4);
        let client = server.connect_memcached();
        let mut requests = String::from("sop create s 0 0 0\r\n");
        (1..count).for_each(|number| requests += &format!("sop insert s 3 pipe\r\n{number:03}\r\n"));
        requests += "sop insert s 3\r\nend\r\n";
        let replies = String::from_utf8(server.send(client, requests.as_bytes())).unwrap();
        assert_eq!(replies, format!("CREATED\r\nRESPONSE 500\r\n{}{expected_end}", "STORED\r\n".repeat(500)));
        assert_eq!(server.send(client, b"getattr s count\r\n"), b"ATTR count=500\r\nEND\r\n");
    }
}

/// Redis clients see the same collections, and the other way round.
#[test]
fn both_see_one_data_set() {
    let mut server = TestServer::with_shards(memory, 4);
    let (arcus, redis) = (server.connect_memcached(), server.connect());
    let mut ask = |is_redis: bool, request: &str, expected: &str| {
        let client = if is_redis { redis } else { arcus };
        let reply = server.send(client, wire(request).as_bytes());
        assert_eq!(String::from_utf8(reply).unwrap(), wire(expected), "{request}");
    };
    ask(true, "RPUSH l a b", ":2");
    ask(false, "lop get l 0..-1", "VALUE 0 2|1 a|1 b|END");
    ask(false, "getattr l maxcount overflowaction", "ATTR maxcount=4000|ATTR overflowaction=tail_trim|END");
    ask(false, "lop delete l 0..1", "DELETED");
    ask(true, "EXISTS l", ":0");
    ask(false, "mop insert h f 1 create 0 0 1|v", "CREATED_STORED");
    ask(true, "HGET h f", "$1|v");
    ask(true, "HSET h g w", ":1");
    ask(false, "mop insert h i 1|x", "OVERFLOWED");
    ask(true, "HDEL h f g", ":2");
    ask(true, "EXISTS h", ":1");
    ask(true, "TYPE h", "+hash");
    ask(true, "HGETALL h", "*0");
    ask(false, "mop get h 0 0", "NOT_FOUND_ELEMENT");
    ask(true, "HSET h f v", ":1");
    ask(true, "RENAME h h2", "+OK");
    ask(false, "getattr h2 maxcount", "ATTR maxcount=1|END");
    ask(false, "sop create s 3 0 0", "CREATED");
    ask(true, "SPOP s", "$-1");
    ask(true, "SRANDMEMBER s", "$-1");
    ask(true, "SADD s 5", ":1");
    ask(false, "sop get s 0", "VALUE 3 1|1 5|END");
    ask(true, "SPOP s", "$1|5");
    ask(true, "SCARD s", ":0");
    ask(false, "getattr s count", "ATTR count=0|END");
    ask(false, "lop create e 0 0 0", "CREATED");
    ask(true, "LPOP e", "$-1");
    ask(true, "RPOPLPUSH e other", "$-1");
    ask(true, "LPUSH e 1", ":1");
    ask(true, "DEL e", ":1");
    ask(false, "lop get e 0", "NOT_FOUND");
}

/// With a limit, an expiration of -1 makes items sticky, of every type; without one it is that of memcached.
#[test]
fn items_are_sticky_within_a_limit() {
    let mut server = TestServer::with_shards(memory, 4);
    let (arcus, redis) = (server.connect_memcached(), server.connect());
    server.run(redis, &["CONFIG", "SET", "arcus-sticky-limit", "1000"]);
    let mut ask = |request: &str, expected: &str| {
        let reply = String::from_utf8(server.send(arcus, wire(request).as_bytes())).unwrap();
        assert_eq!(reply, wire(expected), "{request}");
    };
    ask("set a 1 -1 1|x", "STORED");
    ask("getattr a", "ATTR type=kv|ATTR flags=1|ATTR expiretime=-1|END");
    ask("touch a -1|touch a 10|gat 10 a", "TOUCHED|CLIENT_ERROR bad value|CLIENT_ERROR bad value");
    ask("setattr a expiretime=5|setattr a expiretime=-1", "ATTR_ERROR bad value|OK");
    ask("append a 0 0 1|y|incr n 1 0 -1 5|incr n 1|get a n", "STORED|5|6|VALUE a 1 2|xy|VALUE n 0 1|6|END");
    ask("getattr n expiretime", "ATTR expiretime=-1|END");
    ask("set b 0 0 1|x|touch b -1|setattr b expiretime=-1", "STORED|CLIENT_ERROR bad value|ATTR_ERROR bad value");
    ask("set b 0 -2 1|x|get b", "STORED|END");
    ask(
        "sop insert s 1 create 1 -1 0|m|getattr s expiretime count",
        "CREATED_STORED|ATTR expiretime=-1|ATTR count=1|END",
    );
    ask("setattr s maxcount=7|getattr s expiretime maxcount", "OK|ATTR expiretime=-1|ATTR maxcount=7|END");
    ask(&format!("set c 0 -1 2000|{}", "x".repeat(2000)), "SERVER_ERROR out of memory storing object");
    ask("get c", "END");
    for number in 0..100 {
        let reply = server.send(arcus, wire(&format!("lop insert l -1 50 create 0 -1 0|{number:050}")).as_bytes());
        if reply != b"STORED\r\n" && reply != b"CREATED_STORED\r\n" {
            assert_eq!(reply, b"SERVER_ERROR out of memory\r\n");
            assert!(number > 5, "{number} elements fit");
            return;
        }
    }
    panic!("the limit does not hold");
}
