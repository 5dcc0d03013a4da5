//! `stats` of memcached clients: the names that exporters and tools read, and what they count.

use crate::harness::{TestServer, memory};
use std::collections::BTreeMap;

struct Asker {
    server: TestServer,
    client: usize,
}

impl Asker {
    fn new() -> Self {
        let mut server = TestServer::with_shards(memory, 4);
        let client = server.connect_memcached();
        Self { server, client }
    }

    /// The reply to lines that `|` separates.
    fn say(&mut self, request: &str) -> String {
        let request = format!("{}\r\n", request.replace('|', "\r\n"));
        let reply = self.server.send(self.client, request.as_bytes());
        String::from_utf8(reply).unwrap().replace("\r\n", "|")
    }

    /// What `stats` of this kind shows. No name comes twice.
    fn stats(&mut self, kind: &str) -> BTreeMap<String, String> {
        let reply = self.say(&format!("stats{kind}"));
        let lines = reply.strip_suffix("END|").unwrap_or_else(|| panic!("no END: {reply}"));
        let mut shown = BTreeMap::new();
        for line in lines.split_terminator('|') {
            let (name, value) = line.strip_prefix("STAT ").and_then(|line| line.split_once(' ')).unwrap();
            assert_eq!(shown.insert(name.to_owned(), value.to_owned()), None, "{name} comes twice");
        }
        shown
    }

    fn counts(&mut self, expected: &[(&str, u64)]) {
        let stats = self.stats("");
        for (name, count) in expected {
            assert_eq!(stats.get(*name).map(String::as_str), Some(count.to_string().as_str()), "{name}");
        }
    }
}

/// What the exporter of Prometheus asks for, and stops at when it is missing.
#[test]
fn exporters_find_their_names() {
    let mut asker = Asker::new();
    asker.say("set a 0 0 1|x");
    let general = asker.stats("");
    for name in [
        "version",
        "uptime",
        "time",
        "rusage_user",
        "rusage_system",
        "bytes",
        "limit_maxbytes",
        "curr_items",
        "total_items",
        "bytes_read",
        "bytes_written",
        "curr_connections",
        "total_connections",
        "rejected_connections",
        "conn_yields",
        "listen_disabled_num",
        "threads",
        "evictions",
        "reclaimed",
        "cmd_flush",
        "cmd_get",
        "cmd_set",
        "cas_badval",
        "accepting_conns",
        "auth_cmds",
        "auth_errors",
        "get_hits",
        "get_misses",
        "delete_hits",
        "delete_misses",
        "incr_hits",
        "incr_misses",
        "decr_hits",
        "decr_misses",
        "cas_hits",
        "cas_misses",
        "touch_hits",
        "touch_misses",
        "direct_reclaims",
        "malloc_fails",
    ] {
        assert!(general.contains_key(name), "stats lacks {name}");
    }
    let items = asker.stats(" items");
    for name in [
        "number",
        "age",
        "evicted",
        "evicted_nonzero",
        "evicted_time",
        "outofmemory",
        "tailrepairs",
        "reclaimed",
        "expired_unfetched",
        "evicted_unfetched",
        "mem_requested",
    ] {
        assert!(items.contains_key(&format!("items:1:{name}")), "stats items lacks {name}");
    }
    assert_eq!(items["items:1:number"], "1");
    let slabs = asker.stats(" slabs");
    for name in [
        "chunk_size",
        "chunks_per_page",
        "total_pages",
        "total_chunks",
        "used_chunks",
        "free_chunks",
        "free_chunks_end",
        "mem_requested",
        "get_hits",
        "cmd_set",
        "delete_hits",
        "incr_hits",
        "decr_hits",
        "cas_hits",
        "cas_badval",
        "touch_hits",
    ] {
        assert!(slabs.contains_key(&format!("1:{name}")), "stats slabs lacks {name}");
    }
    assert_eq!((slabs["active_slabs"].as_str(), slabs["1:used_chunks"].as_str()), ("1", general["bytes"].as_str()));
    let settings = asker.stats(" settings");
    for (name, value) in [("lru_crawler", "no"), ("detail_enabled", "no"), ("max_list_size", "50000")] {
        assert_eq!(settings[name], value, "{name}");
    }
    assert!(settings.contains_key("maxconns") && settings.contains_key("verbosity"));
    assert_eq!(asker.stats(" sizes")["sizes_status"], "disabled");
}

#[test]
fn items_that_are_too_long_are_counted() {
    let mut asker = Asker::new();
    let data = "x".repeat((1 << 20) + 1);
    for (request, reply) in [("set a 0 0", ""), ("set a 0 0", " noreply"), ("add b 0 0", ""), ("ms c", "")] {
        asker.say(&format!("{request} {}{reply}|{data}", data.len()));
    }
    asker.say(&format!("set d 0 0 1048570|{}", &data[..1_048_570]));
    asker.say("append d 0 0 10|0123456789");
    asker.counts(&[("store_too_large", 5), ("store_no_memory", 0), ("curr_items", 1)]);
}

#[test]
fn hits_and_misses_are_counted_by_command() {
    let mut asker = Asker::new();
    asker.say("set a 0 0 1|1|delete a|delete a|set a 0 0 1|1|incr a 1|incr no 1|decr a 1|decr no 1 noreply");
    asker.say("cas a 0 0 1 999999|2|cas no 0 0 1 1|2|touch a 0|touch no 0|gat 0 a no|md no|ma a|ma no");
    asker.counts(&[
        ("delete_hits", 1),
        ("delete_misses", 2),
        ("incr_hits", 2),
        ("incr_misses", 2),
        ("decr_hits", 1),
        ("decr_misses", 1),
        ("cas_misses", 1),
        ("cas_badval", 1),
        ("cas_hits", 0),
        ("touch_hits", 2),
        ("touch_misses", 2),
        ("cmd_set", 4),
        ("cmd_meta", 3),
    ]);
    asker
        .say("lop insert l 0 1 create 0 0 0|x|lop insert no 0 1|x|lop get l 0|lop get l 9|lop get no 0|lop delete l 0");
    asker.say("sop insert s 1 create 0 0 0 noreply|x|sop exist s 1|x|sop exist s 1|y|sop exist no 1|y");
    asker.say("bop insert b 1 1 create 0 0 0 pipe|x|bop insert b 1 1|x|bop mget 1 1 0..5 5|b|bop smget 1 1 0..5 5|b");
    asker.say("mop create m 0 0 0|mop upsert m f 1|x|mop update m g 1|x|getattr m|getattr no|setattr m maxcount=10");
    asker.counts(&[
        ("cmd_lop_insert", 2),
        ("lop_insert_hits", 1),
        ("lop_insert_misses", 1),
        ("lop_get_elem_hits", 1),
        ("lop_get_none_hits", 1),
        ("lop_get_misses", 1),
        ("lop_delete_elem_hits", 1),
        ("sop_insert_hits", 1),
        ("sop_exist_hits", 2),
        ("sop_exist_misses", 1),
        ("bop_insert_hits", 1),
        ("bop_mget_oks", 1),
        ("bop_smget_oks", 1),
        ("mop_create_oks", 1),
        ("mop_insert_hits", 1),
        ("mop_update_none_hits", 1),
        ("getattr_hits", 1),
        ("getattr_misses", 1),
        ("setattr_hits", 1),
    ]);
    assert_eq!(asker.say("stats reset"), "RESET|");
    asker.counts(&[("delete_hits", 0), ("lop_insert_hits", 0), ("cmd_lop_insert", 0)]);
}

/// Requests are noted while it is on, whatever they answer, and replies are the same.
#[test]
fn details_are_by_prefix() {
    let mut asker = Asker::new();
    assert_eq!(asker.say("stats detail dump"), "END|");
    asker.say("set p:a 0 0 1|x");
    assert_eq!(asker.say("stats detail on"), "OK|");
    assert_eq!(asker.say("get p:a p:b q:a"), "VALUE p:a 0 1|x|END|");
    assert_eq!(asker.say("set p:b 0 0 1 noreply|y|get p:b|delete p:b|incr n 1|mg p:a v"), {
        "VALUE p:b 0 1|y|END|DELETED|NOT_FOUND|VA 1|x|"
    });
    assert_eq!(asker.say("lop insert p:l 0 1 create 0 0 0 noreply|x|lop get p:l 7"), "NOT_FOUND_ELEMENT|");
    assert_eq!(asker.stats(" settings")["detail_enabled"], "yes");
    assert_eq!(asker.say("stats detail off"), "OK|");
    assert_eq!(asker.say("get p:a"), "VALUE p:a 0 1|x|END|");
    let reply = asker.say("stats detail dump");
    let lines: Vec<&str> = reply.split_terminator('|').collect();
    assert_eq!(lines.len(), 4, "{reply}");
    assert!(lines[0].starts_with("PREFIX <null> get 0 hit 0 set 0 del 0 inc 1 dec 0 lcs 0 "), "{reply}");
    assert!(lines[1].starts_with("PREFIX p get 4 hit 3 set 1 del 1 inc 0 dec 0 lcs 0 lis 1 lih 1 "), "{reply}");
    assert!(lines[1].contains(" lgs 1 lgh 0 ") && lines[1].ends_with(" gas 0 sas 0"), "{reply}");
    assert!(lines[2].starts_with("PREFIX q get 1 hit 0 "), "{reply}");
    let listed = asker.say("stats prefixlist operation q");
    assert!(listed.starts_with("PREFIX q get 1 ") && listed.ends_with("|END|"), "{listed}");
    asker.counts(&[("stat_prefixes", 3)]);
    assert_eq!(asker.say("stats reset|stats detail dump"), "RESET|END|");
    for request in ["stats detail", "stats detail maybe", "stats detail on off"] {
        assert_eq!(asker.say(request), "CLIENT_ERROR usage: stats detail on|off|dump|", "{request}");
    }
    assert!(asker.say("stats prefixlist").starts_with("CLIENT_ERROR usage: stats prefixlist "));
    asker.server.assert_replica_agrees();
}

#[test]
fn connections_and_persistence_are_shown() {
    let mut asker = Asker::new();
    let persistence = asker.stats(" persistence");
    assert_eq!(persistence["use_persistence"], "off", "this server has no log");
    assert_eq!(persistence["async_logging"], "true");
    assert!(persistence.contains_key("chkpt_interval_pct_snapshot") && persistence.contains_key("data_path"));
    let listed = asker.server.connect_memcached_as_default();
    let reply = asker.server.send(listed, b"stats conns\r\n");
    let reply = String::from_utf8(reply).unwrap();
    assert!(reply.contains(":addr tcp:") && reply.contains(":state conn_parse_cmd"), "{reply}");
    assert!(reply.contains(":secs_since_last_cmd 0") && reply.ends_with("END\r\n"), "{reply}");
}

#[test]
fn help_names_families_and_their_requests() {
    let mut asker = Asker::new();
    assert_eq!(asker.say("help"), "help [kv|list|set|map|btree|attr|scan|stats|admin]|");
    for family in ["kv", "list", "set", "map", "btree", "attr", "scan", "stats", "admin"] {
        assert!(asker.say(&format!("help {family}")).contains("\\r\\n"), "{family}");
    }
    assert_eq!(asker.say("help other"), "CLIENT_ERROR bad command line format|");
    assert_eq!(asker.say("stats cachedump 1 1"), "CLIENT_ERROR stats cachedump not allowed|");
    assert_eq!(asker.say("stats other"), "ERROR|");
}
