//! The tables of differences in docs/protocol/memcached.md and arcus.md: each row stands here with requests and their
//! replies, or with the reason why it is shown elsewhere. A row that is only in one of the two places fails.

use crate::harness::{TestServer, memory};
use memcached::Sweeps;
use std::sync::Arc;

/// How a row is shown.
enum Shown {
    /// Requests and replies; `|` is a line end, and `...` stands for anything.
    By(&'static [(&'static str, &'static str)]),
    /// By another test, or by nothing that a single server can show.
    Elsewhere(&'static str),
}

use Shown::{By, Elsewhere};

const OF_MEMCACHED: &[(&str, Shown)] = &[
    ("`decr` to a shorter number", By(&[("set n 0 0 2|10|decr n 1|get n", "STORED|9|VALUE n 0 1|9|END|")])),
    ("An expiration beyond 2^31", By(&[("set a 0 4000000000 1|x|get a", "STORED|VALUE a 0 1|x|END|")])),
    (
        "A number with a tab, and data with a space or zero byte, and other characters after it",
        By(&[("set n 0 0 4|10 x|incr n 1", "STORED|CLIENT_ERROR cannot increment or decrement non-numeric value|")]),
    ),
    ("`get` of a key above 250 bytes", By(&[("mn|get LONG", "MN|CLIENT_ERROR bad command line format|")])),
    (
        "Several `flush_all` with delays",
        By(&[
            ("set a 0 0 1|x|flush_all 5|flush_all 50", "STORED|OK|OK|"),
            ("WAIT 5000|get a", "END|"),
            ("set a 0 0 1|x|WAIT 45000|get a", "STORED|END|"),
        ]),
    ),
    ("`mg` with the flag `h` (hit before)", By(&[("mg a h", "CLIENT_ERROR ...")])),
    ("`mg` with `b` and `k`", By(&[("set a 0 0 1|x|mg YQ== b k v", "STORED|VA 1 kYQ== b|x|")])),
    ("`ms` with `c` of an item that has expired already", By(&[("ms a 1 c T-1|x", "HD c0|")])),
    (
        "`append`, `prepend` and longer numbers",
        By(&[
            ("set a 0 0 1|x|md a I|mg a|append a 0 0 1|y|mg a", "STORED|HD|HD X W|STORED|HD|"),
            ("set n 0 0 1|9|md n I|incr n 1|mg n", "STORED|HD|10|HD X W|"),
        ]),
    ),
    ("`me`", By(&[("set a 0 0 1|x|me a", "STORED|ME a exp=-1 la=0 cas=...")])),
    ("`cache_memlimit`", By(&[("cache_memlimit 64|stats settings", "OK|STAT maxbytes 67108864|...")])),
    ("`verbosity`", By(&[("verbosity 2|stats settings", "OK|...STAT verbosity 2|...")])),
    (
        "A line of more than 2048 bytes but `get` and `gets`",
        Elsewhere("tests/memcached/hostile.py: the connection closes"),
    ),
    ("`shutdown`", Elsewhere("memcached_admin::administrators_end_the_server_where_that_is_allowed")),
    ("The key of a line", By(&[("set a\0b 0 0 1|x|get a|get a\0b", "STORED|END|VALUE a\0b 0 1|x|END|")])),
    ("`get_hits` and `get_misses` of `stats`", By(&[("REDIS GET none", "_"), ("stats", "...STAT get_misses 1|...")])),
    (
        "`-M`, slab classes",
        By(&[("set a 0 0 1|x|stats slabs", "STORED|STAT 1:chunk_size 1|...STAT active_slabs 1|...")]),
    ),
    (
        "`stats detail dump`",
        By(&[("stats detail on", "OK|"), ("get a", "END|"), ("stats detail dump", "PREFIX <null> get 1 hit 0 ...")]),
    ),
];

const OF_ARCUS: &[(&str, Shown)] = &[
    (
        "Items, their errors and unknown commands",
        By(&[("nonsense|set a 0 0 1|x|touch a 0|gat 0 a", "ERROR|STORED|TOUCHED|VALUE a 0 1|x|END|")]),
    ),
    (
        "`version`",
        By(&[
            ("version", "VERSION 1.6.18 ..."),
            ("bop insert a 1 1 create 0 0 0|x|bop mget 3 2 0..5 5|a,b", "CREATED_STORED|VALUE a OK 0 1|..."),
        ]),
    ),
    ("The longest key", Elsewhere("memcached_admin::keys_are_as_long_as_is_set")),
    (
        "SASL",
        By(&[("sasl mech|sasl auth CRAM-MD5 1|x|sasl auth 1|x", "SASL_MECH PLAIN|AUTH_ERROR ...|AUTH_ERROR ...")]),
    ),
    ("A request before the login", Elsewhere("memcached_admin::clients_log_in_by_sasl")),
    ("`shutdown SECONDS` twice", Elsewhere("the queue of sweeps takes both: sweeps::flushes_wait_for_their_time")),
    ("`reload auth`", By(&[("reload auth", "ERROR|")])),
    (
        "Expiration -1 (sticky) without `arcus-sticky-limit`",
        By(&[("lop create l 0 -1 0|set a 0 -1 1|x|get a", "SERVER_ERROR out of memory|STORED|END|")]),
    ),
    (
        "`sticky_limit` and the element that exceeds it",
        Elsewhere("engine-mem's test sticky_entries_stay_and_are_counted: the entry that changes is missing"),
    ),
    (
        "`max_list_size` and its relatives",
        By(&[
            ("config max_list_size", "max_list_size 50000|END|"),
            ("config max_list_size 60000|config max_list_size 60000", "END|CLIENT_ERROR bad value|"),
            ("REDIS CONFIG SET arcus-max-list-size 10000", "+OK..."),
            ("config max_list_size -1|config max_list_size", "END|max_list_size 1000000|END|"),
        ]),
    ),
    ("Prefixes", By(&[("set b!d:k 0 0 1|x|lop create b!d:l 0 0 0", "STORED|CLIENT_ERROR invalid prefix name|")])),
    (
        "A line with too few words, and a wrong collection command",
        By(&[("lop|lop get k", "CLIENT_ERROR bad command line format|CLIENT_ERROR bad command line format|")]),
    ),
    (
        "`getattr` and `setattr` with an attribute of another type",
        By(&[("set a 0 0 1|x|setattr a maxcount=5", "STORED|ATTR_ERROR not found|")]),
    ),
    (
        "Requests of a pipe after a bad data chunk, or a line that is refused",
        By(&[(
            "sop create s 0 0 0|sop insert s 1 pipe|xx|sop insert s 1|z|getattr s count",
            "CREATED|RESPONSE 1|CLIENT_ERROR bad data chunk|PIPE_ERROR bad error|ATTR count=0|END|",
        )]),
    ),
    (
        "`bop mget` without a count",
        By(&[("bop create b 0 0 0|bop mget 1 1 0..20|b", "CREATED|CLIENT_ERROR bad value|")]),
    ),
    (
        "`bop smget` of one bkey, the first of a tree that has dropped elements before it",
        By(&[
            ("bop insert b 1 1 create 0 0 1|x|bop insert b 2 1|y", "CREATED_STORED|STORED|"),
            ("bop smget 1 1 2 5 unique|b", "ELEMENTS 1|b 0 2 1 y|MISSED_KEYS 0|TRIMMED_KEYS 0|END|"),
        ]),
    ),
    (
        "`bop smget` with a key twice",
        By(&[("bop create b 0 0 0|bop smget 3 2 0..9 5 unique|b b", "CREATED|CLIENT_ERROR bad data chunk|")]),
    ),
    (
        "A field named twice in one `mop get`",
        By(&[("mop insert m f 1 create 0 0 0|x|mop get m 3 2|f f", "CREATED_STORED|VALUE 0 1|f 1 x|END|")]),
    ),
    (
        "Another command while a pipe is open",
        By(&[("lop insert l 0 1 create 0 0 0 pipe|x|get a", "RESPONSE 1|CREATED_STORED|END|END|")]),
    ),
    ("A node that belongs to no service", Elsewhere("tests/memcached/cluster.py")),
    ("An ephemeral node of an earlier session", Elsewhere("tests/memcached/cluster.py")),
    ("`cluster join begin` and `end`", Elsewhere("it needs ZooKeeper: tests/memcached/cluster.py joins")),
    (
        "Heartbeats to itself (`hbtimeout`, `hbfailstop`)",
        By(&[("config hbtimeout", "SERVER_ERROR hbtimeout is not supported...")]),
    ),
    ("Replicated clusters (`/arcus_repl`)", Elsewhere("nothing is there that could be shown")),
    ("`scrub`", Elsewhere("sweeps::a_scrub_is_for_administrators_and_looks_at_all_entries")),
    (
        "`config`",
        By(&[
            ("config maxconns|config scrub_count", "maxconns 10000|END|SERVER_ERROR scrub_count is not supported..."),
            ("config verbosity 2|config verbosity|config verbosity 3", "END|verbosity 2|END|CLIENT_ERROR bad value|"),
            ("config memlimit 100|config memlimit", "END|memlimit 100|END|"),
            (
                "config sticky_limit 3|config sticky_limit|config sticky_limit x",
                "END|sticky_limit 3|END|CLIENT_ERROR ...",
            ),
            (
                "config chkpt_interval_pct_snapshot 50|config chkpt_interval_pct_snapshot",
                "END|chkpt_interval_pct_snapshot 50|END|",
            ),
            (
                "config chkpt_interval_min_logsize 9|config chkpt_interval_min_logsize",
                "END|chkpt_interval_min_logsize 9|END|",
            ),
            ("config async_logging|config max_stats_prefixes", "async_logging on|END|max_stats_prefixes 10000|END|"),
            ("config nonsense|config", "CLIENT_ERROR bad command line format|CLIENT_ERROR bad command line format|"),
        ]),
    ),
    ("`flush_prefix`", By(&[("flush_prefix none", "NOT_FOUND|"), ("set p:a 0 0 1|x|flush_prefix p", "STORED|OK|")])),
    ("`stats prefixes`", By(&[("set p:a 0 0 1|x", "STORED|"), ("stats prefixes", "PREFIX p itm 1 ...")])),
    (
        "`scan prefix`",
        By(&[("set p:a 0 0 1|x", "STORED|"), ("scan prefix 0", "PREFIXES 1 0|p 1 ... 19700101000000|END|")]),
    ),
    ("`stats persistence`", Elsewhere("statistics::connections_and_persistence_are_shown")),
    ("`curr_prefixes` of `stats`", Elsewhere("nothing is there that could be shown")),
    (
        "`bop mget`, `bop smget`, `bop get` and `bop count` that look at many elements",
        Elsewhere("arcus_long::long_reads_are_answered_by_another_thread"),
    ),
    (
        "`bop get ... delete`, and `bop delete` with a filter, that look at many elements",
        Elsewhere("arcus_long::long_deletes_see_what_comes_meanwhile"),
    ),
    (
        "`lqdetect`",
        By(&[(
            "bop insert b 1 0x01 1 create 0 0 0|x|lqdetect start 1|bop get b 1..9 0 EQ 0x02 5|lqdetect show",
            "CREATED_STORED|...NOT_FOUND_ELEMENT|...<1> bop get b 1..9 0 EQ 0x02 5...",
        )]),
    ),
    (
        "`cmdlog start` and `dump start key`",
        By(&[("dump start key /tmp/x|cmdlog start a/b", "CLIENT_ERROR bad value: ...CLIENT_ERROR bad value: ...")]),
    ),
    ("`cmdlog`", Elsewhere("arcus_files::lines_of_clients_are_in_files: a short file is there at once")),
];

/// The first cells of the table under this title.
fn rows(page: &str, title: &str) -> Vec<String> {
    let section = page.split("\n## ").find(|section| section.starts_with(title)).expect("the section is there");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells.filter(|cell| !cell.is_empty() && !cell.starts_with("| ")).map(str::to_owned).collect()
}

/// Whether the text is what is expected, in which `...` stands for anything.
fn is_like(text: &str, expected: &str) -> bool {
    let mut pieces = expected.split("...");
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = first;
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        (rest, last) = (&rest[at + piece.len()..], piece);
    }
    rest.is_empty() || (last.is_empty() && expected.ends_with("..."))
}

/// The reply to lines that `|` separates, after the walks that they have begun. `WAIT` lets time pass, and `REDIS` is a
/// request of another client.
fn answer(server: &mut TestServer, clients: (usize, usize), request: &str) -> String {
    let sweeps = server.shared.host.part::<memcached::Needed, Arc<Sweeps>>().clone();
    if let Some(request) = request.strip_prefix("REDIS ") {
        return String::from_utf8(server.send(clients.1, format!("{request}\r\n").as_bytes())).unwrap();
    }
    let (mut lines, mut replies) = (String::new(), Vec::new());
    for line in request.replace("LONG", &"k".repeat(251)).split('|') {
        match line.strip_prefix("WAIT ") {
            Some(ms) => {
                replies.extend(server.send(clients.0, std::mem::take(&mut lines).as_bytes()));
                server.pass_ms(ms.parse().unwrap());
                while server.executor.sweep(&sweeps) {}
                server.executor.begin_turn();
            }
            None => lines += &format!("{line}\r\n"),
        }
    }
    replies.extend(server.send(clients.0, lines.as_bytes()));
    server.executor.begin_turn();
    while server.executor.sweep(&sweeps) {}
    server.executor.begin_turn();
    server.executor.end_blocks();
    replies.extend(server.replies(clients.0));
    String::from_utf8(replies).unwrap().replace("\r\n", "|")
}

fn check(page: &str, title: &str, shown: &[(&str, Shown)]) {
    let (named, found) = (rows(page, title), shown.iter().map(|(row, _)| (*row).to_owned()).collect::<Vec<_>>());
    assert_eq!(named, found, "the table and the rows here name the same differences in one order");
    for (row, shown) in shown {
        let requests = match shown {
            By(requests) => *requests,
            Elsewhere(where_else) => {
                assert!(!where_else.is_empty(), "{row}");
                continue;
            }
        };
        let mut server = TestServer::with_shards(memory, 4);
        let clients = (server.connect_memcached_as_default(), server.connect());
        for (request, expected) in requests {
            let reply = answer(&mut server, clients, request);
            assert!(is_like(&reply, expected) || *expected == "_", "{row}: {request}\n{reply}\n{expected}");
        }
    }
}

#[test]
fn differences_from_memcached_are_as_documented() {
    check(include_str!("../../docs/protocol/memcached.md"), "Differences from memcached", OF_MEMCACHED);
}

#[test]
fn differences_from_arcus_are_as_documented() {
    check(include_str!("../../docs/protocol/arcus.md"), "Differences from arcus-memcached", OF_ARCUS);
}
