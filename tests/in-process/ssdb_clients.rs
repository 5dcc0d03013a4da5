//! Clients of SSDB's protocol, with Redis clients on the same data. Replies are those of SSDB 1.9.8's sources, but for
//! the differences that docs/protocol/ssdb.md names.

use crate::harness::{TestServer, fetching, memory};
use base::DbIndex;
use engine_mem::MemEngine;
use store::shard::ShardEngine;

/// A server with a client of each kind.
struct Both {
    server: TestServer,
    ssdb: usize,
    redis: usize,
}

impl Both {
    fn over(engine: fn(MemEngine) -> ShardEngine) -> Self {
        let mut server = TestServer::with_shards(engine, 4);
        let (ssdb, redis) = (server.connect_ssdb(), server.connect());
        Self { server, ssdb, redis }
    }

    fn new() -> Self {
        Self::over(memory)
    }

    /// Keys are in database 2, hashes, zsets and queues in those after it.
    fn with_types_apart(engine: fn(MemEngine) -> ShardEngine) -> Self {
        let mut both = Self::over(engine);
        both.server.executor.connection(both.ssdb).expect("connected").session.separate_types(Some(DbIndex(2)));
        both
    }

    /// What the client gets for a request of these words: the blocks of one reply with bars between them.
    fn say(&mut self, request: &str) -> String {
        let words: Vec<&str> = if request.is_empty() { vec![] } else { request.split(' ').collect() };
        self.say_words(&words)
    }

    fn say_words(&mut self, words: &[&str]) -> String {
        let reply = self.server.send(self.ssdb, &packet(words));
        let (shown, rest) = first_reply(&reply);
        assert!(rest.is_empty(), "{words:?} has one reply: {}", rest.escape_ascii());
        shown
    }

    /// What a Redis client gets.
    fn ask(&mut self, request: &str) -> String {
        String::from_utf8(self.server.send(self.redis, format!("{request}\r\n").as_bytes())).unwrap()
    }

    /// Says each request and expects its reply.
    fn transcript(&mut self, lines: &[(&str, &str)]) {
        for (request, expected) in lines {
            assert_eq!(self.say(request), *expected, "{request}");
        }
    }
}

/// A request; `''` is an empty block.
pub fn packet(words: &[&str]) -> Vec<u8> {
    let mut packet = Vec::new();
    for word in words {
        let word = if *word == "''" { "" } else { word };
        packet.extend_from_slice(format!("{}\n{word}\n", word.len()).as_bytes());
    }
    packet.push(b'\n');
    packet
}

/// The first reply, and what follows it.
pub fn first_reply(mut bytes: &[u8]) -> (String, &[u8]) {
    let mut blocks = Vec::new();
    loop {
        let end = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
        let line = std::str::from_utf8(&bytes[..end]).unwrap();
        bytes = &bytes[end + 1..];
        if line.is_empty() {
            return (blocks.join("|"), bytes);
        }
        let len: usize = line.parse().expect("a length");
        blocks.push(String::from_utf8_lossy(&bytes[..len]).into_owned());
        assert_eq!(bytes[len], b'\n');
        bytes = &bytes[len + 1..];
    }
}

const KEYS: &[(&str, &str)] = &[
    ("get a", "not_found"),
    ("set a 1", "ok|1"),
    ("get a", "ok|1"),
    ("setnx a 2", "ok|0"),
    ("setnx b 2", "ok|1"),
    ("getset b 3", "ok|2"),
    ("getset c 4", "not_found"),
    ("incr a", "ok|2"),
    ("incr a 10", "ok|12"),
    ("decr a 2", "ok|10"),
    ("decr new 5", "ok|-5"),
    ("set text abc", "ok|1"),
    ("incr text", "error|value is not an integer or out of range"),
    ("incr a x", "client_error|give an integer of 64 bits, and not 'x'"),
    ("set max 9223372036854775807", "ok|1"),
    ("incr max", "error|increment or decrement would overflow"),
    ("exists a", "ok|1"),
    ("exists none", "ok|0"),
    ("strlen text", "ok|3"),
    ("strlen none", "ok|0"),
    ("multi_get a none text", "ok|a|10|text|abc"),
    ("multi_exists a none", "ok|a|1|none|0"),
    ("multi_set x 1 y 2 x 3", "ok|3"),
    ("multi_get y x", "ok|y|2|x|3"),
    ("multi_set x", "client_error|wrong number of arguments"),
    ("multi_set x 1 y", "client_error|wrong number of arguments"),
    ("multi_del x y none", "ok|3"),
    ("multi_get x y", "ok"),
    ("del a", "ok|1"),
    ("del a", "ok|1"),
    ("get a", "not_found"),
    ("get", "client_error|wrong number of arguments"),
];

const BITS: &[(&str, &str)] = &[
    ("setbit b 1 1", "ok|0"),
    ("setbit b 1 1", "ok|1"),
    ("getbit b 1", "ok|1"),
    ("getbit b 2", "ok|0"),
    ("getbit b 100", "ok|0"),
    ("getbit b -1", "client_error|give an offset from 0, and not '-1'"),
    ("setbit b -1 1", "client_error|offset is out of range [0, 4294967295]"),
    ("setbit b 1 2", "client_error|bit is not an integer or out of range"),
    ("set t abcde", "ok|1"),
    ("bitcount t", "ok|17"),
    ("bitcount t 1 2", "ok|7"),
    ("bitcount t -1", "ok|4"),
    ("bitcount t 9 10", "ok|0"),
    ("countbit t 1 2", "ok|7"),
    ("countbit t 0", "ok|17"),
    ("countbit none", "ok|0"),
    ("substr t 1 2", "ok|bc"),
    ("substr t -2", "ok|de"),
    ("substr t 0 -1", "ok|abcd"),
    ("substr t 9 1", "ok|"),
    ("substr none", "ok|"),
    ("getrange t 1 2", "ok|bc"),
    ("getrange t -2 -1", "ok|de"),
    ("getrange t", "ok|abcde"),
];

const HASHES: &[(&str, &str)] = &[
    ("hset h b 1", "ok|1"),
    ("hset h b 2", "ok|0"),
    ("hget h b", "ok|2"),
    ("hget h none", "not_found"),
    ("hget none b", "not_found"),
    ("multi_hset h a 1 c 3 d 4", "ok|3"),
    ("multi_hset h a", "client_error|wrong number of arguments"),
    ("hsize h", "ok|4"),
    ("hfix h", "ok|4"),
    ("hexists h a", "ok|1"),
    ("hexists h none", "ok|0"),
    ("multi_hget h d none a", "ok|d|4|a|1"),
    ("multi_hexists h a none", "ok|a|1|none|0"),
    ("multi_hsize h none", "ok|h|4|none|0"),
    ("hgetall h", "ok|a|1|b|2|c|3|d|4"),
    ("hgetall none", "ok"),
    ("hscan h '' '' 2", "ok|a|1|b|2"),
    ("hscan h b '' 10", "ok|c|3|d|4"),
    ("hscan h a c 10", "ok|b|2|c|3"),
    ("hscan h '' '' -1", "ok|a|1|b|2|c|3|d|4"),
    ("hscan h '' '' 0", "ok"),
    ("hscan h '' '' x", "client_error|give a limit as an integer, and not 'x'"),
    ("hrscan h '' '' 2", "ok|d|4|c|3"),
    ("hrscan h c a 10", "ok|b|2|a|1"),
    ("hkeys h a d 10", "ok|b|c|d"),
    ("hvals h a d 10", "ok|2|3|4"),
    ("hincr h a", "ok|2"),
    ("hincr h a 10", "ok|12"),
    ("hdecr h a 2", "ok|10"),
    ("hset h t x", "ok|1"),
    ("hincr h t", "error|value is not an integer or out of range"),
    ("hdel h t", "ok|1"),
    ("hdel h t", "ok|0"),
    ("multi_hdel h a none", "ok|1"),
    ("hclear h", "ok|3"),
    ("hclear h", "ok|0"),
    ("hsize h", "ok|0"),
];

const ZSETS: &[(&str, &str)] = &[
    ("zset z a 1", "ok|1"),
    ("zset z a 2", "ok|0"),
    ("zget z a", "ok|2"),
    ("zget z none", "not_found"),
    ("multi_zset z b 2 c 3 d -4", "ok|3"),
    ("zsize z", "ok|4"),
    ("zfix z", "ok|4"),
    ("zexists z a", "ok|1"),
    ("multi_zexists z a none", "ok|a|1|none|0"),
    ("multi_zget z c none a", "ok|c|3|a|2"),
    ("multi_zsize z none", "ok|z|4|none|0"),
    ("zrank z d", "ok|0"),
    ("zrank z c", "ok|3"),
    ("zrank z none", "not_found"),
    ("zrrank z c", "ok|0"),
    ("zrrank z none", "not_found"),
    ("zrange z 0 2", "ok|d|-4|a|2"),
    ("zrange z 3 10", "ok|c|3"),
    ("zrange z 9 10", "ok"),
    ("zrrange z 0 2", "ok|c|3|b|2"),
    ("zrrange z 2 1", "ok|a|2"),
    ("zscan z '' '' '' 10", "ok|d|-4|a|2|b|2|c|3"),
    ("zscan z '' 2 2 10", "ok|a|2|b|2"),
    ("zscan z a 2 '' 10", "ok|b|2|c|3"),
    ("zscan z a '' '' 10", "ok|b|2|c|3"),
    ("zscan z none '' '' 1", "ok|d|-4"),
    ("zscan z '' '' '' 1 2", "ok|a|2|b|2"),
    ("zscan z '' x '' 10", "client_error|give an integer of 64 bits, and not 'x'"),
    ("zrscan z '' '' '' 2", "ok|c|3|b|2"),
    ("zrscan z '' 2 '' 10", "ok|b|2|a|2|d|-4"),
    ("zrscan z b 2 2 10", "ok|a|2"),
    ("zkeys z '' '' 2 10", "ok|d|a|b"),
    ("zcount z 2 3", "ok|3"),
    ("zcount z '' ''", "ok|4"),
    ("zsum z '' ''", "ok|3"),
    ("zavg z 2 3", "ok|2.333333"),
    ("zavg z 9 9", "ok|nan"),
    ("zavg none 9 9", "ok|nan"),
    ("zincr z a", "ok|3"),
    ("zincr z a 10", "ok|13"),
    ("zdecr z a 3", "ok|10"),
    ("zincr z e", "ok|1"),
    ("zset z big 9007199254740992", "ok|1"),
    ("zget z big", "ok|9007199254740992"),
    ("zincr z big", "error|the score would be beyond 9007199254740992, the last exact one"),
    (
        "zset z big 9007199254740993",
        "client_error|give a score from -9007199254740992 to 9007199254740992, and not '9007199254740993'",
    ),
    ("zset z a 1.5", "client_error|give a score as an integer, and not '1.5'"),
    ("zdel z big", "ok|1"),
    ("zdel z big", "ok|0"),
    ("multi_zdel z e none", "ok|1"),
    ("zpop_front z 2", "ok|d|-4|b|2"),
    ("zpop_back z 1", "ok|a|10"),
    ("zpop_back none 1", "ok"),
    ("multi_zset z a 1 b 2 d 4 e 5", "ok|4"),
    ("zremrangebyrank z 0 1", "ok|2"),
    ("zremrangebyscore z 3 4", "ok|2"),
    ("zscan z '' '' '' 10", "ok|e|5"),
    ("zremrangebyrank z 5 9", "ok|0"),
    ("zclear z", "ok|1"),
    ("zclear z", "ok|0"),
];

const QUEUES: &[(&str, &str)] = &[
    ("qpush q 1 2", "ok|2"),
    ("qpush_back q 3", "ok|3"),
    ("qpush_front q 0 -1", "ok|5"),
    ("qsize q", "ok|5"),
    ("qfront q", "ok|-1"),
    ("qback q", "ok|3"),
    ("qfront none", "not_found"),
    ("qget q 0", "ok|-1"),
    ("qget q -1", "ok|3"),
    ("qget q 9", "not_found"),
    ("qset q 0 x", "ok"),
    ("qset q 9 x", "error|index out of range"),
    ("qset none 0 x", "error|index out of range"),
    ("qslice q 0 -1", "ok|x|0|1|2|3"),
    ("qslice q 1 2", "ok|0|1"),
    ("qslice q -2 -1", "ok|2|3"),
    ("qslice q -9 -1", "ok"),
    ("qslice q 3 1", "ok"),
    ("qrange q 1 2", "ok|0|1"),
    ("qrange q -2 9", "ok|2|3"),
    ("qrange q 0 0", "ok"),
    ("qrange none 0 9", "ok"),
    ("qpop q", "ok|x"),
    ("qpop_front q 2", "ok|0|1"),
    ("qpop_back q", "ok|3"),
    ("qpop_back q 9", "ok|2"),
    ("qpop q", "not_found"),
    ("qpop q 2", "ok"),
    ("qpush q 1 2 3 4", "ok|4"),
    ("qfix q", "ok"),
    ("qtrim_front q", "ok|1"),
    ("qtrim_back q 2", "ok|2"),
    ("qtrim_back q 9", "ok|1"),
    ("qpush q 1 2", "ok|2"),
    ("qclear q", "ok|2"),
    ("qclear q", "ok|0"),
];

/// Over the memory engine, and over one that asks for rows at random.
fn in_both_engines(lines: &[(&str, &str)]) {
    for engine in [memory as fn(MemEngine) -> ShardEngine, fetching] {
        Both::over(engine).transcript(lines);
    }
}

#[test]
fn keys_answer_as_in_ssdb() {
    in_both_engines(KEYS);
}

#[test]
fn parts_and_bits_answer_as_in_ssdb() {
    in_both_engines(BITS);
}

#[test]
fn hashes_answer_as_in_ssdb() {
    in_both_engines(HASHES);
}

#[test]
fn zsets_answer_as_in_ssdb() {
    in_both_engines(ZSETS);
}

#[test]
fn queues_answer_as_in_ssdb() {
    in_both_engines(QUEUES);
}

/// Every command of the table is in a transcript or below.
#[test]
fn every_command_is_tried() {
    let elsewhere = [
        "setx", "expire", "ttl", "scan", "rscan", "keys", "rkeys", "hlist", "hrlist", "zlist", "zrlist", "qlist",
        "qrlist", "ping", "version", "quit", "auth", "dbsize", "info", "flushdb",
    ];
    let both = Both::new();
    let tried = [KEYS, BITS, HASHES, ZSETS, QUEUES].concat();
    for name in both.server.shared.ssdb.names().filter(|name| !elsewhere.contains(name)) {
        assert!(tried.iter().any(|(request, _)| request.split(' ').next() == Some(name)), "{name}");
    }
}

#[test]
fn the_server_answers_about_itself() {
    let mut both = Both::new();
    both.transcript(&[("ping", "ok"), ("nothing", "client_error|Unknown Command: nothing"), ("set a 1", "ok|1")]);
    assert!(both.say("version").starts_with("ok|1.9.8 (Onggi "));
    assert!(both.say("info").starts_with("ok|ssdb-server|version|1.9.8|"));
    assert!(both.say("info").contains("|keys|1|"));
    assert!(both.say("dbsize").starts_with("ok|"));
    assert!(both.say("sync140").starts_with("client_error|sync140 is absent here: "));
    both.transcript(&[("flushdb", "ok"), ("get a", "not_found"), ("auth any", "ok|1"), ("quit", "ok")]);
    assert!(both.server.executor.connection(both.ssdb).is_none_or(|it| it.session.close_after_replies));
}

#[test]
fn keys_expire_and_keep_their_time() {
    let mut both = Both::new();
    both.transcript(&[
        ("setx a 1 10", "ok|1"),
        ("ttl a", "ok|10"),
        ("set a 2", "ok|1"),
        ("ttl a", "ok|10"),
        ("set b 1", "ok|1"),
        ("ttl b", "ok|-1"),
        ("ttl none", "ok|-1"),
        ("expire b 5", "ok|1"),
        ("expire none 5", "ok|0"),
        ("setx gone 1 0", "ok|1"),
        ("get gone", "not_found"),
        ("setx a 1 x", "client_error|give an integer of 64 bits, and not 'x'"),
        ("hset h f 1", "ok|1"),
        ("expire h 5", "ok|1"),
    ]);
    both.server.clock.advance_ms(6_000);
    both.server.executor.begin_turn();
    both.transcript(&[("get b", "not_found"), ("hget h f", "not_found"), ("get a", "ok|2"), ("ttl a", "ok|4")]);
}

#[test]
fn a_name_has_one_type() {
    let mut both = Both::new();
    both.transcript(&[("hset h f 1", "ok|1"), ("zset z m 1", "ok|1"), ("qpush q 1", "ok|1"), ("set k 1", "ok|1")]);
    let wrong = "error|WRONGTYPE Operation against a key holding the wrong kind of value";
    for request in [
        "get h",
        "set h 1",
        "del z",
        "multi_set x 1 q 2",
        "multi_del k h",
        "incr h",
        "hset k f 1",
        "zset h m 1",
        "qpush z 1",
    ] {
        assert_eq!(both.say(request), wrong, "{request}");
    }
    both.transcript(&[
        ("exists h", "ok|0"),
        ("multi_get h k", "ok|k|1"),
        ("get x", "not_found"),
        ("get k", "ok|1"),
        ("hclear h", "ok|1"),
        ("set h 1", "ok|1"),
    ]);
}

/// With `ssdb-namespaces separate`, also for requests that arrive at once, and for walks.
#[test]
fn a_name_may_have_each_type() {
    let mut both = Both::with_types_apart(memory);
    both.transcript(TYPES_APART);
    assert!(
        both.say("info").contains("|database|2|namespaces|separate|keys|5|expiring_keys|1"),
        "{}",
        both.say("info")
    );
    let requests: Vec<u8> = ["get a", "hget a f", "zget a m", "qfront a", "exists a", "hlist '' '' 9", "get b"]
        .iter()
        .flat_map(|request| packet(&request.split(' ').collect::<Vec<_>>()))
        .collect();
    let replies = both.server.send(both.ssdb, &requests);
    let (mut rest, mut shown) = (replies.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (reply, behind) = first_reply(rest);
        shown.push(reply);
        rest = behind;
    }
    assert_eq!(shown, ["ok|key", "ok|field", "ok|7", "ok|item", "ok|1", "ok|a", "ok|2"]);
    // A Redis client finds each type in a database of its own.
    for (db, reply) in [(2, "string"), (3, "hash"), (4, "zset"), (5, "list"), (0, "none")] {
        both.ask(&format!("SELECT {db}"));
        assert_eq!(both.ask("TYPE a"), format!("+{reply}\r\n"));
    }
    both.transcript(&[
        ("flushdb", "ok"),
        ("get a", "not_found"),
        ("hsize a", "ok|0"),
        ("zsize a", "ok|0"),
        ("qsize a", "ok|0"),
    ]);
    // A client that changes to Redis' protocol is in the database of keys.
    both.transcript(&[("set a 1", "ok|1"), ("hset a f 1", "ok|1")]);
    let reply = both.server.send(both.ssdb, b"*2\r\n$4\r\nTYPE\r\n$1\r\na\r\n");
    assert_eq!(reply, b"+string\r\n");
}

/// Rows that have to be fetched are those of the type's database, and each request waits for its own.
#[test]
fn types_apart_are_fetched_apart() {
    Both::with_types_apart(fetching).transcript(TYPES_APART);
}

const TYPES_APART: &[(&str, &str)] = &[
    ("set a key", "ok|1"),
    ("hset a f field", "ok|1"),
    ("zset a m 7", "ok|1"),
    ("qpush a item", "ok|1"),
    ("setx b 2 100", "ok|1"),
    ("get a", "ok|key"),
    ("hgetall a", "ok|f|field"),
    ("zrange a 0 9", "ok|m|7"),
    ("qslice a 0 -1", "ok|item"),
    ("multi_get a b", "ok|a|key|b|2"),
    ("multi_hsize a b", "ok|a|1|b|0"),
    ("keys '' '' 9", "ok|a|b"),
    ("hlist '' '' 9", "ok|a"),
    ("zlist '' '' 9", "ok|a"),
    ("qlist '' '' 9", "ok|a"),
    ("del b", "ok|1"),
    ("hset b f 1", "ok|1"),
    ("hclear b", "ok|1"),
    ("setx b 2 100", "ok|1"),
    ("ttl a", "ok|-1"),
];

#[test]
fn both_see_one_data_set() {
    let mut both = Both::new();
    both.transcript(&[("set k v", "ok|1"), ("hset h f v", "ok|1"), ("zset z m 5", "ok|1"), ("qpush q a b", "ok|2")]);
    assert_eq!(both.ask("GET k"), "$1\r\nv\r\n");
    assert_eq!(both.ask("HGET h f"), "$1\r\nv\r\n");
    assert_eq!(both.ask("ZSCORE z m"), "$1\r\n5\r\n");
    assert_eq!(both.ask("LRANGE q 0 -1"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    both.ask("ZADD z 1.5 half inf top");
    both.transcript(&[
        ("zscan z '' '' '' 10", "ok|half|1.5|m|5|top|inf"),
        ("zincr z half", "error|the score is not an integer: a client of Redis has set it, and it has to change it"),
    ]);
    assert!(both.say("zsum z '' ''").starts_with("error|a score in the range is not an integer"));
}

/// Names of one type in order, whatever else is in the database.
#[test]
fn ranges_of_names_are_in_order() {
    for engine in [memory as fn(MemEngine) -> ShardEngine, fetching] {
        let mut both = Both::over(engine);
        for number in 0..300 {
            both.ask(&format!("SET k{number:03} v{number}"));
            both.ask(&format!("HSET h{number:03} f v"));
        }
        both.ask("ZADD z 1 m");
        both.ask("RPUSH q1 1");
        both.ask("RPUSH q2 1");
        both.ask("SADD s 1");
        both.transcript(&[
            ("keys '' '' 3", "ok|k000|k001|k002"),
            ("keys k001 k003 10", "ok|k002|k003"),
            ("keys k1 k1} 2", "ok|k100|k101"),
            ("keys '' '' 0", "ok"),
            ("keys l '' 10", "ok"),
            ("rkeys '' '' 2", "ok|k299|k298"),
            ("rkeys k002 k000 10", "ok|k001|k000"),
            ("scan k001 k003 10", "ok|k002|v2|k003|v3"),
            ("scan '' '' 1", "ok|k000|v0"),
            ("rscan k002 '' 10", "ok|k001|v1|k000|v0"),
            ("scan '' ''", "client_error|wrong number of arguments"),
            ("hlist h297 '' 10", "ok|h298|h299"),
            ("hrlist '' '' 1", "ok|h299"),
            ("zlist '' '' 10", "ok|z"),
            ("zrlist '' '' 10", "ok|z"),
            ("qlist '' '' 10", "ok|q1|q2"),
            ("qrlist q2 '' 10", "ok|q1"),
        ]);
        let all = both.say("scan '' '' -1");
        assert_eq!(all.split('|').count(), 1 + 600);
        assert_eq!(all, format!("ok|{}", (0..300).map(|n| format!("k{n:03}|v{n}")).collect::<Vec<_>>().join("|")));
    }
}

/// A walk over many keys takes many turns, in which others are served.
#[test]
fn a_walk_leaves_turns_to_others() {
    let mut both = Both::new();
    for number in 0..20_000 {
        both.server.feed(both.redis, format!("SET key:{number:05} 1\r\n").as_bytes());
    }
    both.server.replies(both.redis);
    both.server.feed(both.ssdb, &packet(&["keys", "''", "''", "2"]));
    let mut turns = 0;
    while both.server.executor.has_work() {
        turns += 1;
        both.server.executor.step_work();
        assert_eq!(both.ask("GET key:00001"), "$1\r\n1\r\n");
    }
    let reply = both.server.replies(both.ssdb);
    assert_eq!(first_reply(&reply).0, "ok|key:00000|key:00001");
    assert!(turns >= 1, "it is one slice, and then others");
}

/// Collections that are trees, whose replies are in pieces.
/// Of many names, and of one more than are looked at in one turn: the same reply, with steps in between.
#[test]
fn many_names_are_looked_at_in_steps() {
    for engine in [memory, fetching] {
        let mut both = Both::over(engine);
        let names: Vec<String> = (0..1000).map(|number| format!("k{number}")).collect();
        for name in &names {
            both.say(&format!("set {name} v"));
            both.say(&format!("hset h{name} f v"));
            both.say(&format!("zset z{name} m 1"));
        }
        for count in [1, 256, 257, 1000] {
            let keys = &names[..count];
            let request = |word: &str, prefix: &str, last: &str| {
                let names = keys.iter().map(|name| format!(" {prefix}{name}")).collect::<String>();
                format!("{word}{names} {last}")
            };
            let expected = |prefix: &str, value: &str, last: &str| {
                let pairs = keys.iter().map(|name| format!("|{prefix}{name}|{value}")).collect::<String>();
                format!("ok{pairs}{last}")
            };
            assert_eq!(both.say(&request("multi_get", "", "none")), expected("", "v", ""), "{count}");
            assert_eq!(both.say(&request("multi_exists", "", "none")), expected("", "1", "|none|0"), "{count}");
            assert_eq!(both.say(&request("multi_hsize", "h", "none")), expected("h", "1", "|none|0"), "{count}");
            assert_eq!(both.say(&request("multi_zsize", "z", "none")), expected("z", "1", "|none|0"), "{count}");
        }
        let wrong = format!(
            "multi_hsize {} k0",
            names[1..400].iter().map(|name| format!("h{name} ")).collect::<String>().trim()
        );
        assert_eq!(both.say(&wrong), "error|WRONGTYPE Operation against a key holding the wrong kind of value");
        assert_eq!(both.say("get k1"), "ok|v", "the connection goes on");
    }
}

/// Others are served while a request looks at many names.
#[test]
fn many_names_leave_turns_to_others() {
    let mut both = Both::new();
    both.say("set k 1");
    both.server.feed(both.ssdb, &packet(&[&["multi_get"][..], &["k"; 20_000]].concat()));
    let mut turns = 0;
    while both.server.executor.has_work() {
        turns += 1;
        both.server.executor.step_work();
        assert_eq!(both.ask("GET k"), "$1\r\n1\r\n");
    }
    let reply = both.server.replies(both.ssdb);
    assert_eq!(first_reply(&reply).0, format!("ok{}", "|k|1".repeat(20_000)));
    assert!(turns >= 1, "some names are looked at at once, and then others");
}

#[test]
fn big_collections_answer_in_pieces() {
    let mut both = Both::new();
    let count = 20_000;
    for number in 0..count {
        let (client, server) = (both.redis, &mut both.server);
        server.feed(client, format!("HSET h f{number:05} v{number}\r\n").as_bytes());
        server.feed(client, format!("ZADD z {number} m{number:05}\r\n").as_bytes());
        server.feed(client, format!("RPUSH q e{number:05}\r\n").as_bytes());
    }
    both.server.replies(both.redis);
    let list = |each: &dyn Fn(usize) -> String, numbers: &mut dyn Iterator<Item = usize>| {
        format!("ok|{}", numbers.map(each).collect::<Vec<_>>().join("|"))
    };
    let fields = |n: usize| format!("f{n:05}|v{n}");
    let entries = |n: usize| format!("m{n:05}|{n}");
    let elements = |n: usize| format!("e{n:05}");
    assert_eq!(both.say("hgetall h"), list(&fields, &mut (0..count)));
    assert_eq!(both.say("hrscan h '' f10000 -1"), list(&fields, &mut (10_000..count).rev()));
    assert_eq!(both.say("hscan h f00009 '' 3"), list(&fields, &mut (10..13)));
    assert_eq!(both.say("zscan z '' '' '' -1"), list(&entries, &mut (0..count)));
    assert_eq!(both.say("zrrange z 0 5000"), list(&entries, &mut (count - 5000..count).rev()));
    assert_eq!(both.say("zsum z 1 100"), "ok|5050");
    assert_eq!(both.say("zpop_front z 5000"), list(&entries, &mut (0..5000)));
    assert_eq!(both.say("zpop_back z 5000"), list(&entries, &mut (15_000..count).rev()));
    assert_eq!(both.say("zremrangebyrank z 0 4999"), "ok|5000");
    assert_eq!(both.say("zsize z"), "ok|5000");
    assert_eq!(both.say("zrange z 0 1"), "ok|m10000|10000");
    assert_eq!(both.say("zremrangebyscore z '' ''"), "ok|5000");
    assert_eq!(both.say("qslice q 0 -1"), list(&elements, &mut (0..count)));
    assert_eq!(both.say("qpop_back q 5000"), list(&elements, &mut (15_000..count).rev()));
    assert_eq!(both.say("qpop_front q 5000"), list(&elements, &mut (0..5000)));
    assert_eq!(both.say("qtrim_front q 9999"), "ok|9999");
    assert_eq!(both.say("qrange q 0 10"), "ok|e14999");
    assert_eq!(both.say("hclear h"), "ok|20000");
}

/// Requests in any pieces, and many at once.
#[test]
fn packets_come_in_any_pieces() {
    let mut both = Both::new();
    let requests =
        [packet(&["set", "a", "x\ny"]), packet(&["get", "a"]), b"\r\n\n".to_vec(), packet(&["ping"])].concat();
    let expected = "2\nok\n1\n1\n\n2\nok\n3\nx\ny\n\n2\nok\n\n";
    for at in 0..requests.len() {
        let (first, second) = requests.split_at(at);
        let mut reply = both.server.send(both.ssdb, first);
        reply.extend(both.server.send(both.ssdb, second));
        assert_eq!(String::from_utf8(reply).unwrap(), expected, "{at}");
    }
    let many = both.server.send(both.ssdb, &requests.repeat(100));
    assert_eq!(String::from_utf8(many).unwrap(), expected.repeat(100));
    let long = "v".repeat(300_000);
    assert_eq!(both.say_words(&["set", "long", &long]), "ok|1");
    assert_eq!(both.say("get long"), format!("ok|{long}"));
}

/// As SSDB does, the port takes a client of Redis' protocol.
#[test]
fn a_client_may_change_to_the_protocol_of_redis() {
    let mut both = Both::new();
    let requests = [&packet(&["set", "a", "1"])[..], b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nNONE\r\n"].concat();
    let reply = String::from_utf8(both.server.send(both.ssdb, &requests)).unwrap();
    assert!(reply.starts_with("2\nok\n1\n1\n\n$1\r\n1\r\n-ERR unknown command 'NONE'"), "{reply}");
}

/// Framing that is lost ends the connection, after the replies to what came before.
#[test]
fn what_is_no_packet_is_refused() {
    let over = format!("{}\n", 600u64 << 20);
    for (bytes, why) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "this is no length"),
        (b"3\nping\n\n", "does not end with a line feed"),
        (b"-1\n", "this is no length"),
        (over.as_bytes(), "(proto-max-bulk-len)"),
    ] {
        let mut both = Both::new();
        let requests = [&packet(&["ping"])[..], bytes].concat();
        let reply = both.server.send(both.ssdb, &requests);
        let (first, rest) = first_reply(&reply);
        assert_eq!(first, "ok");
        let (second, rest) = first_reply(rest);
        assert!(second.starts_with("client_error|Protocol error: ") && second.contains(why), "{second}");
        assert!(rest.is_empty());
        assert!(both.server.executor.connection(both.ssdb).is_none_or(|it| it.session.close_after_replies));
    }
}

#[test]
fn errors_are_in_the_words_of_ssdb() {
    let mut both = Both::new();
    both.say("set z 1");
    both.server.store.set_budget(1, None, engine_mem::StampMode::Recency);
    assert!(both.say("set a 1").starts_with("error|OOM "));
    assert_eq!(both.say("del z"), "ok|1", "what frees memory is let through");
}

/// A client is the user `default` until it logs in, and its rights are those of commands, keys and categories.
#[test]
fn clients_are_users() {
    let mut server = TestServer::with_shards(memory, 4);
    let admin = server.connect_listed();
    server.run(
        admin,
        &["ACL", "SETUSER", "default", "resetpass", ">x", "resetkeys", "~a:*", "-@all", "+@read", "+@write"],
    );
    server.run(admin, &["SET", "b:1", "secret"]);
    let client = server.connect_ssdb_as_default();
    let mut say = |request: &str| {
        let words: Vec<&str> = request.split(' ').collect();
        first_reply(&server.send(client, &packet(&words))).0
    };
    assert_eq!(say("get a:1"), "noauth|authentication required.");
    assert_eq!(say("nothing"), "noauth|authentication required.");
    assert_eq!(say("auth wrong"), "error|invalid password");
    assert_eq!(say("auth"), "noauth|authentication required.");
    assert_eq!(say("auth x"), "ok|1");
    assert_eq!(say("set a:1 1"), "ok|1");
    let no_key = "error|NOPERM No permissions to access a key";
    for request in
        ["get b:1", "set b:1 1", "multi_get a:1 b:1", "hgetall b:1", "zset b:1 m 1", "qpop b:1", "multi_hsize b:1"]
    {
        assert_eq!(say(request), no_key, "{request}");
    }
    assert!(say("scan '' '' 10").starts_with("error|NOPERM a range of keys with their values"));
    assert_eq!(say("keys a: a:z 10"), "ok|a:1");
    assert!(say("info").starts_with("error|NOPERM User default has no permissions to run the 'ssdb|info'"));
}

/// The page names every command.
#[test]
fn the_page_names_every_command() {
    let page = include_str!("../../docs/protocol/ssdb.md");
    let both = Both::new();
    for name in both.server.shared.ssdb.names() {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
