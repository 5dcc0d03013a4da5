//! Requests of the ARCUS dialect that take long: they run in steps, or on another thread, and are counted.

use crate::arcus_clients::wire;
use crate::harness::{TestServer, fetching, memory, ticketed};
use server::executor::Flow;

/// What looks at many elements is answered by another thread, as it would be in a turn.
#[test]
fn long_reads_are_answered_by_another_thread() {
    let mut server = TestServer::with_shards(memory, 4);
    let client = server.connect_memcached();
    let mut ask = |request: &str| String::from_utf8(server.send(client, wire(request).as_bytes())).unwrap();
    for number in 0..3000 {
        let eflag = number % 3;
        assert!(ask(&format!("bop insert t {number} 0x0{eflag} 4 create 7 0 0|{number:04}")).ends_with("STORED\r\n"));
    }
    for tree in 0..300 {
        for number in 0..3 {
            let bkey = number * 300 + tree;
            assert!(ask(&format!("bop insert s{tree:03} {bkey} 1 create {tree} 0 0|x")).ends_with("STORED\r\n"));
        }
    }
    assert_eq!(ask("bop count t 0..9999 0 EQ 0x01"), "COUNT=1000\r\n");
    assert_eq!(ask("bop get t 0..9999 0 EQ 0x02 2"), "VALUE 7 2\r\n2 0x02 4 0002\r\n5 0x02 4 0005\r\nEND\r\n");
    let all: String = (0..3000).rev().map(|n| format!("{n} 0x0{} 4 {n:04}\r\n", n % 3)).collect();
    assert_eq!(ask("bop get t 9999..0"), format!("VALUE 7 3000\r\n{all}END\r\n"));
    assert_eq!(ask("bop get t 0..9999 0 EQ 0x07"), "NOT_FOUND_ELEMENT\r\n");
    assert_eq!(
        ask("bop mget 3 2 0..9999 0 EQ 0x02 1|t,x"),
        "VALUE t OK 7 1\r\nELEMENT 2 0x02 4 0002\r\nVALUE x NOT_FOUND\r\nEND\r\n"
    );
    let names: Vec<String> = (0..300).map(|tree| format!("s{tree:03}")).collect();
    let merged: String = (0..500).map(|bkey| format!("s{:03} {} {bkey} 1 x\r\n", bkey % 300, bkey % 300)).collect();
    assert_eq!(
        ask(&format!("bop smget 1499 300 0..9999 500 unique|{}", names.join(" "))),
        format!("ELEMENTS 500\r\n{merged}MISSED_KEYS 0\r\nTRIMMED_KEYS 0\r\nEND\r\n"),
    );
    assert_eq!(ask("set kv 0 0 1|x"), "STORED\r\n");
    assert_eq!(ask(&format!("bop smget 1502 301 0..9999 500 unique|{} kv", names.join(" "))), "TYPE_MISMATCH\r\n");
    assert_eq!(ask(&format!("bop smget 1499 300 0x00..0xff 500 unique|{}", names.join(" "))), "BKEY_MISMATCH\r\n");
}

/// Deletes that look at many elements run in steps, and do what they would do at once, as in EXEC or in a smaller tree.
#[test]
fn long_deletes_run_in_steps() {
    let eflag = |number: u32| number * 7 % 3;
    for (word, from_to, filter, offset, count) in [
        ("get", "0..9999", "0 EQ 0x01", 0, 0),
        ("get", "9999..0", "0 EQ 0x01", 3, 400),
        ("get", "9999..100", "", 5, 1200),
        ("get", "100..2000", "", 0, 0),
        ("get", "2900..100", "0 NE 0x02", 0, 0),
        ("get", "0..9999", "0 EQ 0x07", 0, 0),
        ("get", "0..9999", "", 0, 0),
        ("get", "0..9999", "0 LT 0x07", 0, 2995),
        ("delete", "0..9999", "0 EQ 0x01", 0, 0),
        ("delete", "9999..0", "0 NE 0x01", 0, 900),
        ("delete", "9999..20", "", 0, 1500),
        ("delete", "20..9999", "", 0, 1500),
        ("delete", "20..2500", "", 0, 0),
        ("delete", "0..9999", "", 0, 0),
        ("delete", "0..9999", "0 LE 0x02", 0, 0),
    ] {
        for engine in [memory, ticketed] {
            let mut server = TestServer::with_shards(engine, 4);
            let client = server.connect_memcached();
            let mut ask = |request: &str| String::from_utf8(server.send(client, wire(request).as_bytes())).unwrap();
            for number in 0..3000 {
                let eflag = eflag(number);
                let reply = ask(&format!("bop insert t {number} 0x0{eflag} 4 create 7 0 0|{number:04}"));
                assert!(reply.ends_with("STORED\r\n"), "{reply}");
            }
            let (from, to) = from_to.split_once("..").unwrap();
            let (from, to): (u32, u32) = (from.parse().unwrap(), to.parse().unwrap());
            let holds = |eflag: u32| match filter {
                "0 EQ 0x01" => eflag == 1,
                "0 NE 0x01" => eflag != 1,
                "0 NE 0x02" => eflag != 2,
                "0 EQ 0x07" => false,
                _ => true,
            };
            let mut order: Vec<u32> = (from.min(to)..=from.max(to).min(2999)).collect();
            if from > to {
                order.reverse();
            }
            let most = if count == 0 { usize::MAX } else { count };
            let gone: Vec<u32> = order.into_iter().filter(|n| holds(eflag(*n))).skip(offset).take(most).collect();
            let line = |n: &u32| format!("{n} 0x0{} 4 {n:04}\r\n", eflag(*n));
            let limit = match (word, offset, count) {
                (_, 0, 0) => String::new(),
                ("get", offset, count) => format!(" {offset} {count}"),
                (_, _, count) => format!(" {count}"),
            };
            let end = if word == "get" { " delete" } else { "" };
            let request = [&format!("bop {word} t {from_to}"), filter].join(" ").trim_end().to_owned() + &limit + end;
            let shown = match word {
                "get" => format!("VALUE 7 {}\r\n{}", gone.len(), gone.iter().map(line).collect::<String>()),
                _ => String::new(),
            };
            let expected = if gone.is_empty() { "NOT_FOUND_ELEMENT\r\n".to_owned() } else { shown + "DELETED\r\n" };
            let made = ask(&request);
            assert!(made == expected, "{request}: {} bytes for {}", made.len(), expected.len());
            let gone: std::collections::BTreeSet<u32> = gone.into_iter().collect();
            let left: Vec<u32> = (0..3000).filter(|n| !gone.contains(n)).collect();
            let shown = match left.len() {
                0 => "NOT_FOUND_ELEMENT\r\n".to_owned(),
                len => format!("VALUE 7 {len}\r\n{}END\r\n", left.iter().map(line).collect::<String>()),
            };
            assert!(ask("bop get t 0..9999") == shown, "what {request} leaves");
            let dropped = ask("bop get t 0..9999 drop");
            assert!(dropped.ends_with("DELETED_DROPPED\r\n") != left.is_empty(), "{request}: {dropped}");
            server.assert_replica_agrees();
        }
    }
}

/// Trees under many keys are copied in several turns, between which other clients are served.
#[test]
fn many_trees_are_copied_in_several_turns() {
    for engine in [memory, fetching, ticketed] {
        let mut server = TestServer::with_shards(engine, 4);
        let (client, other) = (server.connect_memcached(), server.connect_memcached());
        let names: Vec<String> = (0..2300).map(|tree| format!("s{tree:04}")).collect();
        for (tree, name) in names.iter().enumerate() {
            let reply = server.send(client, wire(&format!("bop insert {name} {tree} 1 create 5 0 0|x")).as_bytes());
            assert_eq!(reply, b"CREATED_STORED\r\n");
        }
        let line = names.join(" ");
        let request = wire(&format!("bop smget {} 2301 9999..0 3 unique|{line} none", line.len() + 5));
        server.feed(client, request.as_bytes());
        assert_eq!(server.executor.flow(client), Flow::Waiting);
        assert_eq!(server.send(other, wire("bop insert s0000 9000 1|x").as_bytes()), b"STORED\r\n");
        let merged: String = [2299, 2298, 2297].map(|bkey| format!("s{bkey} 5 {bkey} 1 x\r\n")).concat();
        let end = "MISSED_KEYS 1\r\nnone NOT_FOUND\r\nTRIMMED_KEYS 0\r\nEND\r\n";
        let shown = server.send(client, wire("version").as_bytes());
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains(&format!("{merged}MISSED")) || shown.contains("s0000 5 9000 1 x"), "{shown}");
        let expected = format!("ELEMENTS 3\r\ns0000 5 9000 1 x\r\ns2299 5 2299 1 x\r\ns2298 5 2298 1 x\r\n{end}");
        assert_eq!(String::from_utf8(server.send(client, request.as_bytes())).unwrap(), expected);
    }
}

/// A delete in steps is begun again when another client changes the tree meanwhile.
#[test]
fn long_deletes_see_what_comes_meanwhile() {
    let mut server = TestServer::with_shards(memory, 4);
    let (client, other) = (server.connect_memcached(), server.connect_memcached());
    for number in 0..3000 {
        server.send(client, wire(&format!("bop insert t {number} 0x0{} 1 create 0 0 0|x", number % 3)).as_bytes());
    }
    server.feed(client, wire("bop get t 0..9999 0 EQ 0x01 delete").as_bytes());
    assert_eq!(server.executor.flow(client), Flow::Waiting);
    assert_eq!(server.send(other, wire("bop insert t 5000 0x01 1|y").as_bytes()), b"STORED\r\n");
    let shown = server.replies(client);
    assert!(shown.starts_with(b"VALUE 0 1001\r\n") && shown.ends_with(b"5000 0x01 1 y\r\nDELETED\r\n"));
    assert_eq!(server.send(other, wire("bop count t 0..9999").as_bytes()), b"COUNT=2000\r\n");
    server.assert_replica_agrees();
}

/// Requests that look at many elements are counted once each, with samples, also where another thread answers them.
#[test]
fn long_queries_are_counted_and_shown() {
    for engine in [memory, fetching] {
        let mut server = TestServer::with_shards(engine, 4);
        let client = server.connect_memcached_as_default();
        let mut ask = |request: &str| String::from_utf8(server.send(client, wire(request).as_bytes())).unwrap();
        let stats = ask("lqdetect stats");
        assert!(stats.starts_with("\tLong query detection stats : stopped by explicit request\n"), "{stats}");
        assert_eq!(ask("lqdetect stop"), "\tlong query detection already stopped.\n\r\n");
        assert_eq!(ask("lqdetect start x"), "CLIENT_ERROR bad command line format\r\n");
        assert!(ask("lqdetect").starts_with("\t* Usage: lqdetect [start "));
        for number in 0..1500 {
            assert!(ask(&format!("bop insert t {number} 0x01 1 create 0 0 0|x")).ends_with("STORED\r\n"));
        }
        for number in 0..3 {
            assert!(ask(&format!("lop insert l 0 1 create 0 0 0|{number}")).ends_with("STORED\r\n"));
            assert!(ask(&format!("sop insert s 1 create 0 0 0|{number}")).ends_with("STORED\r\n"));
            assert!(ask(&format!("mop insert m f{number} 1 create 0 0 0|{number}")).ends_with("STORED\r\n"));
        }
        assert_eq!(ask("lqdetect start 3"), "\tlong query detection started.\n\r\n");
        assert_eq!(ask("lqdetect start 9"), "\tlong query detection already started.\n\r\n");
        for request in [
            "bop get t 0..1",
            "bop get t 0..9999 0 EQ 0x07",
            "bop get t 9..0 3",
            "bop count t 0..9999",
            "bop count t 0..9999 0 EQ 0x01",
            "bop gbp t asc 0..2",
            "bop delete t 10..12",
            "lop get l 0..1",
            "lop insert l -3 1|x",
            "lop delete l 2..3",
            "sop get s 2",
            "sop get s 0",
            "sop get s 0",
            "mop get m 0 0",
            "mop delete m 8 3|f0 f1 f2",
        ] {
            assert!(!ask(request).contains("ERROR"), "{request}");
        }
        let shown = ask("lqdetect show");
        let lines: Vec<String> = shown.trim_end().lines().map(without_time).collect();
        assert_eq!(
            lines,
            [
                "sop get : 2",
                "<3> sop get s 0",
                "mop delete : 1",
                "<3> mop delete m 8 3",
                "mop get : 1",
                "<3> mop get m 0 0",
                "lop insert : 1",
                "<3> lop insert l -3",
                "lop delete : 1",
                "<5> lop delete l 2..3",
                "lop get : 1",
                "<3> lop get l 0..1",
                "bop delete : 1",
                "<3> bop delete t 10..12",
                "bop get : 2",
                "<1500> bop get t 0..9999 0 EQ 0x07",
                "<3> bop get t 9..0 3",
                "bop count : 1",
                "<1500> bop count t 0..9999 0 EQ 0x01",
                "bop gbp : 1",
                "<3> bop gbp t asc 0..2",
            ],
        );
        assert!(ask("lqdetect stats").contains("commands : 12\n\tThe detection threshold : 3\n"));
        assert_eq!(ask("lqdetect stop"), "\tlong query detection stopped.\n\r\n");
        assert!(!ask("bop get t 0..99").contains("ERROR"));
        assert!(ask("lqdetect stats").contains("stopped by explicit request") && ask("lqdetect show") == shown);
    }
}

/// A line of `lqdetect show` from the cost on.
fn without_time(line: &str) -> String {
    line.find('<').map_or(line, |at| &line[at..]).to_owned()
}
