//! Commands of ARCUS that walk over a database in steps: they answer at the end of the walk, and change what they say.

use crate::harness::{SHARDS, TestServer, memory};
use memcached::{Busy, Purpose, Sweep, Sweeps};
use std::sync::Arc;

struct Walker {
    server: TestServer,
    client: usize,
}

impl Walker {
    fn new() -> Self {
        let mut server = TestServer::with_shards(memory, SHARDS);
        let client = server.connect_memcached();
        Self { server, client }
    }

    /// The reply to a request, after all walks that are due.
    fn say(&mut self, request: &str) -> String {
        let early = self.server.send(self.client, request.as_bytes());
        let late = self.walk();
        String::from_utf8_lossy(&[early, late].concat()).into_owned()
    }

    fn walk(&mut self) -> Vec<u8> {
        let sweeps = self.server.shared.host.part::<memcached::Needed, Arc<Sweeps>>().clone();
        self.server.executor.begin_turn();
        while self.server.executor.sweep(&sweeps) {}
        self.server.executor.begin_turn();
        self.server.executor.end_blocks();
        self.server.replies(self.client)
    }

    fn fill(&mut self) {
        for number in 0..3000 {
            let prefix = ["a:", "b:", "a:b:", ":", ""][number % 5];
            let request = format!("set {prefix}{number} 0 0 1\r\nx\r\n");
            assert_eq!(self.server.send(self.client, request.as_bytes()), b"STORED\r\n");
        }
    }

    fn keys(&mut self) -> usize {
        let reply = self.server.send(self.client, b"stats\r\n");
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let count = reply.lines().find_map(|line| line.strip_prefix("STAT curr_items "));
        count.and_then(|count| count.trim().parse().ok()).expect("curr_items is a number")
    }
}

/// The first colon that is not the first byte ends the prefix.
#[test]
fn a_prefix_is_flushed() {
    let mut walker = Walker::new();
    walker.fill();
    assert_eq!(walker.say("flush_prefix a\r\n"), "OK\r\n");
    assert_eq!(walker.keys(), 1800);
    assert_eq!(walker.say("flush_prefix a\r\n"), "NOT_FOUND\r\n");
    assert_eq!(walker.say("set a:1 0 0 1\r\nx\r\nflush_prefix a noreply\r\nget a:1\r\n"), "STORED\r\nEND\r\n");
    assert_eq!(walker.say("flush_prefix <null>\r\n"), "OK\r\n");
    assert_eq!(walker.keys(), 600);
    assert_eq!(walker.say("get b:1\r\n"), "VALUE b:1 0 1\r\nx\r\nEND\r\n");
    walker.server.assert_replica_agrees();
    for request in ["flush_prefix\r\n", "flush_prefix a b\r\n", "flush_prefix a -1\r\n", "flush_prefix a 1 2\r\n"] {
        assert!(walker.say(request).contains("ERROR"), "{request}");
    }
    let long = format!("flush_prefix {}\r\n", "p".repeat(251));
    assert_eq!(walker.say(&long), "CLIENT_ERROR too long prefix name\r\n");
}

#[test]
fn flushes_wait_for_their_time() {
    let mut walker = Walker::new();
    walker.fill();
    assert_eq!(walker.say("flush_prefix b 10\r\nflush_all 20\r\n"), "OK\r\nOK\r\n");
    assert_eq!(walker.keys(), 3000);
    walker.server.pass_ms(9_999);
    walker.walk();
    assert_eq!(walker.keys(), 3000);
    walker.server.pass_ms(1);
    walker.walk();
    assert_eq!(walker.keys(), 2400);
    walker.server.pass_ms(10_000);
    walker.walk();
    assert_eq!(walker.keys(), 0);
    walker.server.assert_replica_agrees();
}

#[test]
fn prefixes_are_counted() {
    let mut walker = Walker::new();
    assert_eq!(walker.say("stats prefixes\r\n"), "END\r\n");
    walker.say("set a:1 0 0 1\r\nx\r\nlop insert a:2 0 1 create 0 0 0\r\nx\r\nset n 0 0 1\r\nx\r\n");
    let reply = walker.say("stats prefixes\r\n");
    let lines: Vec<&str> = reply.lines().collect();
    assert_eq!(lines.len(), 3, "{reply}");
    assert!(lines[0].starts_with("PREFIX <null> itm 1 kitm 1 litm 0 sitm 0 mitm 0 bitm 0 tsz "), "{reply}");
    assert!(lines[1].starts_with("PREFIX a itm 2 kitm 1 litm 1 sitm 0 mitm 0 bitm 0 tsz "), "{reply}");
    assert_eq!(lines[2], "END");
}

#[test]
fn prefixes_are_scanned_in_parts() {
    let mut walker = Walker::new();
    assert_eq!(walker.say("scan prefix 0\r\n"), "PREFIXES 0 0\r\nEND\r\n");
    (0..45).for_each(|number| _ = walker.say(&format!("set p{}:{number} 0 0 1\r\nx\r\n", number % 9)));
    walker.say("set n 0 0 1\r\nx\r\n");
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    loop {
        let reply = walker.say(&format!("scan prefix {cursor} count 4\r\n"));
        let mut lines = reply.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        assert_eq!((head[0], lines.next_back()), ("PREFIXES", Some("END")), "{reply}");
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        assert_eq!(head[1], lines.len().to_string(), "{reply}");
        found.extend(lines);
        if head[2] == "0" {
            break;
        }
        cursor = head[2].to_owned();
        // What is stored meanwhile changes nothing of what was there.
        walker.say("set later:1 0 0 1\r\nx\r\n");
    }
    found.sort_unstable();
    assert_eq!(found.len(), 10, "{found:?}");
    assert!(found[0].starts_with("<null> 1 ") && found[0].ends_with(" 19700101000000"), "{found:?}");
    assert!(found[1].starts_with("p0 5 ") && found[9].starts_with("p8 5 "), "{found:?}");
    assert!(walker.say("scan prefix 0 match p?\r\n").starts_with("PREFIXES 9 0\r\n"));
    let listed = walker.say("stats prefixlist item p1 <null> none\r\n");
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.starts_with("PREFIX <null> itm 1 ") && listed.contains("\r\nPREFIX p1 itm 5 "), "{listed}");
    for (request, expected) in [
        ("scan prefix", "CLIENT_ERROR bad command line format\r\n"),
        ("scan prefix x", "CLIENT_ERROR bad cursor value\r\n"),
        ("scan prefix 0 type K", "CLIENT_ERROR bad command line format\r\n"),
        ("scan prefix 0 count 2001", "CLIENT_ERROR bad count value\r\n"),
    ] {
        assert_eq!(walker.say(&format!("{request}\r\n")), expected, "{request}");
    }
}

/// A client that asks for ever more walks is refused. Those that wait are made.
#[test]
fn the_queue_is_bounded() {
    let mut walker = Walker::new();
    let replies = walker.server.send(walker.client, "flush_all 5\r\n".repeat(65).as_bytes());
    let replies = String::from_utf8_lossy(&replies).into_owned();
    assert_eq!(replies.matches("OK").count(), 64);
    assert!(
        replies.ends_with("SERVER_ERROR too many walks over the database wait: send it again later\r\n"),
        "{replies}"
    );
    walker.server.pass_ms(5_000);
    walker.walk();
    assert_eq!(walker.say("flush_all 5\r\n"), "OK\r\n");
}

/// The client of these tests is on another host, and there is no password.
#[test]
fn a_scrub_is_for_administrators_and_looks_at_all_entries() {
    let mut walker = Walker::new();
    walker.fill();
    assert_eq!(walker.say("scrub\r\n"), "CLIENT_ERROR unauthorized\r\n");
    let (store, sweeps) =
        (walker.server.store.clone(), walker.server.shared.host.part::<memcached::Needed, Arc<Sweeps>>().clone());
    assert_eq!(sweeps.scrub(&store, base::DbIndex(0), Purpose::Expired), Ok(()));
    assert_eq!(sweeps.scrub(&store, base::DbIndex(0), Purpose::Expired), Err(Busy), "one at a time");
    assert_eq!(walker.say("stats scrub\r\n"), "STAT scrubber:status running\r\nEND\r\n");
    let reply = walker.say("stats scrub\r\n");
    assert!(reply.contains("STAT scrubber:visited 3000\r\nSTAT scrubber:cleaned 0\r\n"), "{reply}");
}

/// Keys of other nodes go, and no others.
#[test]
fn stale_keys_are_removed() {
    let mut walker = Walker::new();
    walker.fill();
    let ring = Arc::new(arcus::Ring::new(["a:1".to_owned(), "b:1".to_owned()], "a:1"));
    let (store, sweeps) =
        (walker.server.store.clone(), walker.server.shared.host.part::<memcached::Needed, Arc<Sweeps>>().clone());
    let purpose = Purpose::Stale(ring.clone());
    assert_eq!(sweeps.add(Sweep::new(&store, base::DbIndex(0), purpose, 0, memcached::silence)), Ok(()));
    walker.walk();
    let own = |number: usize| {
        let prefix = ["a:", "b:", "a:b:", ":", ""][number % 5];
        ring.is_own(format!("{prefix}{number}").as_bytes())
    };
    assert_eq!(walker.keys(), (0..3000).filter(|number| own(*number)).count());
    walker.server.assert_replica_agrees();
}

/// A walk over a database on disk visits rows that are not in memory, and removes them without reading them again.
#[test]
fn walks_over_a_database_on_disk_visit_its_rows() {
    let mut walker = Walker::new();
    let mut rows = walker.server.back();
    walker.fill();
    rows.flush_and_drop();
    rows.set_cold(true);
    let reply = walker.say("stats prefixes\r\n");
    assert!(reply.contains("PREFIX a itm 1200 ") && reply.contains("PREFIX <null> itm 1200 "), "{reply}");
    assert_eq!(walker.say("flush_prefix a\r\n"), "OK\r\n");
    assert_eq!(walker.keys(), 1800);
    assert_eq!(walker.say("flush_prefix a\r\n"), "NOT_FOUND\r\n");
    rows.flush_and_drop();
    assert_eq!(walker.say("flush_prefix a\r\n"), "NOT_FOUND\r\n");
    assert_eq!(walker.say("flush_prefix b\r\n"), "OK\r\n");
    assert_eq!(walker.keys(), 1200);
    walker.server.assert_replica_agrees();
}
