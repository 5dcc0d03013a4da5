//! Clients of memcached's protocol, with Redis clients on the same data.

use crate::harness::{TestServer, memory};

/// A server with a client of each kind.
struct Both {
    server: TestServer,
    memcached: usize,
    redis: usize,
}

impl Both {
    fn new() -> Self {
        let mut server = TestServer::with_shards(memory, 4);
        let (memcached, redis) = (server.connect_memcached(), server.connect());
        Self { server, memcached, redis }
    }

    fn advance_ms(&mut self, ms: u64) {
        self.server.clock.advance_ms(ms);
        self.server.executor.begin_turn();
    }

    /// What a memcached client gets.
    fn say(&mut self, request: &str) -> String {
        text(self.server.send(self.memcached, request.as_bytes()))
    }

    /// What a Redis client gets.
    fn ask(&mut self, request: &str) -> String {
        text(self.server.send(self.redis, format!("{request}\r\n").as_bytes()))
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn both_see_one_data_set() {
    let mut both = Both::new();
    assert_eq!(both.say("set a 5 0 3\r\nabc\r\n"), "STORED\r\n");
    assert_eq!(both.ask("GET a"), "$3\r\nabc\r\n");
    assert_eq!(both.ask("SET b 12"), "+OK\r\n");
    assert_eq!(both.say("get b\r\nincr b 1\r\n"), "VALUE b 0 2\r\n12\r\nEND\r\n13\r\n");
    assert_eq!(both.ask("APPEND a d"), ":4\r\n");
    assert_eq!(both.say("get a\r\n"), "VALUE a 5 4\r\nabcd\r\nEND\r\n", "an edit keeps the flags");
    both.ask("SET a new");
    assert_eq!(both.say("get a\r\n"), "VALUE a 0 3\r\nnew\r\nEND\r\n", "another value does not");
}

#[test]
fn other_types_are_no_items() {
    let mut both = Both::new();
    both.ask("RPUSH l 1");
    assert_eq!(both.say("get l\r\ngets l\r\ngat 0 l\r\n"), "END\r\nEND\r\nEND\r\n");
    for request in [
        "set l 0 0 1\r\nx\r\n",
        "add l 0 0 1\r\nx\r\n",
        "append l 0 0 1\r\nx\r\n",
        "cas l 0 0 1 5\r\nx\r\n",
        "incr l 1\r\n",
    ] {
        assert_eq!(both.say(request), "TYPE_MISMATCH\r\n", "{request}");
    }
    assert_eq!(both.say("set l 0 0 1 noreply\r\nx\r\n"), "");
    assert_eq!(both.ask("LRANGE l 0 -1"), "*1\r\n$1\r\n1\r\n");
    assert_eq!(both.say("touch l 100\r\ndelete l\r\n"), "TOUCHED\r\nDELETED\r\n");
}

#[test]
fn ids_change_with_the_data_alone() {
    let mut both = Both::new();
    both.say("set a 7 0 1\r\n1\r\n");
    let id = |both: &mut Both| both.say("gets a\r\n").split_whitespace().nth(4).unwrap().to_owned();
    let first = id(&mut both);
    assert_eq!(id(&mut both), first);
    both.say("touch a 100\r\n");
    assert_eq!(id(&mut both), first, "time is no data");
    for edit in ["incr a 1\r\n", "append a 0 0 1\r\n0\r\n", "set a 7 0 1\r\n1\r\n"] {
        let before = id(&mut both);
        both.say(edit);
        assert_eq!(both.say(&format!("cas a 0 0 1 {before}\r\nx\r\n")), "EXISTS\r\n", "{edit}");
        assert_ne!(id(&mut both), before, "{edit}");
    }
    let before = id(&mut both);
    both.ask("APPEND a 5");
    assert_eq!(both.say(&format!("cas a 0 0 1 {before}\r\nx\r\n")), "EXISTS\r\n", "an edit of a Redis client");
    let now = id(&mut both);
    assert_eq!(both.say(&format!("cas a 3 0 1 {now}\r\ny\r\nget a\r\n")), "STORED\r\nVALUE a 3 1\r\ny\r\nEND\r\n");
    assert_eq!(both.say("cas absent 0 0 1 1\r\nx\r\n"), "NOT_FOUND\r\n");
}

#[test]
fn items_expire() {
    let mut both = Both::new();
    assert_eq!(
        both.say("set a 1 10 1\r\nx\r\nset b 0 -1 1\r\nx\r\nset c 1 -1 1\r\nx\r\n"),
        "STORED\r\nSTORED\r\nSTORED\r\n"
    );
    assert_eq!(both.say("get a b c\r\n"), "VALUE a 1 1\r\nx\r\nEND\r\n");
    assert_eq!(both.say("append a 0 0 1\r\ny\r\n"), "STORED\r\n");
    both.advance_ms(9_999);
    assert_eq!(both.say("get a\r\n"), "VALUE a 1 2\r\nxy\r\nEND\r\n");
    both.advance_ms(2);
    assert_eq!(both.say("get a\r\nadd a 0 0 1\r\nz\r\n"), "END\r\nSTORED\r\n");
    assert_eq!(both.say("gat 5 a\r\n"), "VALUE a 0 1\r\nz\r\nEND\r\n");
    both.advance_ms(5_001);
    assert_eq!(both.say("get a\r\n"), "END\r\n");
}

/// More keys than a batch holds, and a line in many pieces.
#[test]
fn lines_of_many_keys_are_one_reply() {
    let mut both = Both::new();
    let keys: Vec<String> = (0..200).map(|number| format!("key{number}")).collect();
    for (number, key) in keys.iter().enumerate().filter(|(number, _)| number % 3 == 0) {
        both.say(&format!("set {key} {number} 0 1\r\nv\r\n"));
    }
    let items = keys.iter().enumerate().filter(|(number, _)| number % 3 == 0);
    let expected: String = items.map(|(number, key)| format!("VALUE {key} {number} 1\r\nv\r\n")).collect();
    let line = format!("get {}\r\n", keys.join(" "));
    assert_eq!(both.say(&line), format!("{expected}END\r\n"));
    let (first, second) = line.split_at(500);
    assert_eq!(both.say(first), "");
    assert_eq!(both.say(second), format!("{expected}END\r\n"));
}

#[test]
fn long_items_are_shared_and_limited() {
    let mut both = Both::new();
    let data = "x".repeat(1 << 20);
    assert_eq!(both.say(&format!("set a 9 0 {}\r\n{data}\r\n", data.len())), "STORED\r\n");
    assert_eq!(both.say("get a\r\n"), format!("VALUE a 9 {}\r\n{data}\r\nEND\r\n", data.len()));
    let too_long = "SERVER_ERROR object too large for cache\r\n";
    assert_eq!(both.say("append a 0 0 1\r\nx\r\n"), too_long);
    assert_eq!(
        both.say(&format!("set a 9 0 {}\r\n{data}x\r\nget a\r\n", data.len() + 1)),
        format!("{too_long}END\r\n")
    );
}

#[test]
fn errors_are_in_the_words_of_memcached() {
    let mut both = Both::new();
    both.say("set z 0 0 1\r\nx\r\n");
    both.server.store.set_budget(1, None, engine_mem::StampMode::Recency);
    assert_eq!(both.say("set a 0 0 1\r\nx\r\n"), "SERVER_ERROR out of memory storing object\r\n");
    assert_eq!(both.say("set a 0 0 1 noreply\r\nx\r\n"), "SERVER_ERROR out of memory storing object\r\n");
    assert_eq!(both.say("delete a\r\n"), "NOT_FOUND\r\n", "what frees memory is let through");
}

#[test]
fn commands_have_statistics_of_their_own() {
    let mut both = Both::new();
    both.say("set a 0 0 1\r\nx\r\nget a b\r\nnonsense\r\n");
    let info = both.ask("INFO commandstats");
    assert!(
        info.contains("cmdstat_memcached|get:calls=2,") && info.contains("cmdstat_memcached|set:calls=1,"),
        "{info}"
    );
    assert!(info.contains("cmdstat_memcached|refused:calls=1,"), "{info}");
    assert_eq!(both.ask("COMMAND INFO memcached|get"), "*1\r\n$-1\r\n");
    assert!(both.ask("memcached|get a").starts_with("-ERR unknown command"));
    assert!(both.say("stats\r\n").contains("STAT cmd_get 2\r\n"));
}

#[test]
fn flush_all_takes_its_database() {
    let mut both = Both::new();
    both.ask("MSET a 1 b 2");
    assert_eq!(both.say("flush_all noreply\r\nget a b\r\nflush_all 0\r\n"), "END\r\nOK\r\n");
}

#[test]
fn a_limit_of_memory_is_that_of_the_server() {
    let mut both = Both::new();
    let far = both.say("cache_memlimit 96\r\n");
    assert_eq!(far, "CLIENT_ERROR unauthorized\r\n", "of another host, without login");
    both.memcached = both.server.connect_memcached_as_default();
    let settings = |both: &mut Both| both.say("stats settings\r\n");
    assert_eq!(both.say("cache_memlimit 96\r\n"), "OK\r\n");
    assert!(settings(&mut both).contains("STAT maxbytes 100663296\r\n"));
    assert_eq!(both.say("cache_memlimit 64 noreply\r\n"), "");
    assert!(settings(&mut both).contains("STAT maxbytes 67108864\r\n"));
    for (words, reply) in [
        ("", "ERROR"),
        (" x", "ERROR"),
        (" -1", "ERROR"),
        (" 7", "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"),
        (" 1000000001", "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes"),
    ] {
        assert_eq!(both.say(&format!("cache_memlimit{words}\r\n")), format!("{reply}\r\n"), "{words}");
    }
    assert!(settings(&mut both).contains("STAT maxbytes 67108864\r\n"), "what is refused changes nothing");
}

#[test]
fn verbosity_sets_what_is_logged() {
    let mut both = Both::new();
    for (level, name) in [(2, "debug"), (1, "verbose"), (99, "debug"), (0, "notice")] {
        assert_eq!(both.say(&format!("verbosity {level}\r\n")), "OK\r\n");
        let length = name.len();
        assert_eq!(both.ask("CONFIG GET loglevel"), format!("*2\r\n$8\r\nloglevel\r\n${length}\r\n{name}\r\n"));
    }
    assert_eq!(both.say("verbosity 1 noreply\r\n"), "");
}

#[test]
fn figures_are_those_of_the_server_and_begin_anew_together() {
    let mut both = Both::new();
    both.say("ms a 1\r\nx\r\nmg a v\r\nget a\r\n");
    let stats = both.say("stats\r\n");
    assert!(stats.contains("STAT cmd_set 1\r\n") && stats.contains("STAT cmd_get 2\r\n"), "{stats}");
    assert_eq!(both.say("stats reset\r\n"), "RESET\r\n");
    assert!(both.say("stats\r\n").contains("STAT cmd_get 0\r\n"));
    assert!(!both.ask("INFO commandstats").contains("memcached|get"));
}
