//! Clients of memcached's port that log in by SASL, end the server, or have long keys.

use crate::harness::{TestServer, memory};
use admin::{EndOrder, ShutdownRequest};
use memcached::Sweeps;
use server::dialect::{Dialect, Language};
use std::sync::Arc;

fn say(server: &mut TestServer, client: usize, request: &[u8]) -> String {
    String::from_utf8(server.send(client, request)).unwrap()
}

fn sasl(data: &[u8]) -> Vec<u8> {
    [format!("sasl auth PLAIN {}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

#[test]
fn clients_log_in_by_sasl() {
    let mut server = TestServer::with_shards(memory, 4);
    let admin = server.connect_listed();
    server.run(admin, &["ACL", "SETUSER", "default", "resetpass", ">x"]);
    server.run(admin, &["ACL", "SETUSER", "alice", "on", ">pw", "~a:*", "+@read", "+@write", "-@dangerous"]);
    let client = server.connect_memcached_as_default();
    let mut send = |request: &[u8]| say(&mut server, client, request);
    assert_eq!(send(b"sasl mech\r\n"), "SASL_MECH PLAIN\r\n");
    assert_eq!(send(b"get a:1\r\n"), "CLIENT_ERROR unauthenticated\r\n");
    assert_eq!(send(&sasl(b"\0alice\0no")), "AUTH_ERROR authentication failure\r\n");
    assert_eq!(send(&sasl(b"\0nobody\0pw")), "AUTH_ERROR authentication failure\r\n");
    for wrong in [&b"alice"[..], b"\0alice", b"", b"other\0alice\0pw"] {
        assert!(send(&sasl(wrong)).starts_with("AUTH_ERROR PLAIN needs "), "{wrong:?}");
    }
    assert!(send(b"sasl auth SCRAM-SHA-256 3\r\nabc\r\n").starts_with("AUTH_ERROR no such mechanism"));
    assert!(send(b"sasl auth 0\r\n\r\n").starts_with("AUTH_ERROR no exchange"));
    let right = sasl(b"alice\0alice\0pw");
    let (first, second) = right.split_at(25);
    assert_eq!(send(first), "");
    assert_eq!(send(second), "SASL_OK\r\n");
    assert_eq!(send(b"set a:1 0 0 1\r\n1\r\nget a:1\r\n"), "STORED\r\nVALUE a:1 0 1\r\n1\r\nEND\r\n");
    assert_eq!(send(b"get b:1\r\n"), "SERVER_ERROR No permissions to access a key\r\n");
    assert_eq!(send(b"sasl auth PLAIN x\r\n"), "CLIENT_ERROR bad command line format\r\n");
    assert_eq!(send(b"sasl auth PLAIN 2\r\nabcd"), "CLIENT_ERROR bad data chunk\r\n");
    let long = [b"sasl auth PLAIN 5000\r\n", &[b'x'; 5000][..], b"\r\n"].concat();
    assert_eq!(send(&long), "CLIENT_ERROR bad value\r\n", "its data is skipped");
    // Again, as another user.
    assert_eq!(send(&sasl(b"\0default\0x")), "SASL_OK\r\n");
    let stats = send(b"stats\r\n");
    assert!(stats.contains("STAT auth_cmds 4\r\n") && stats.contains("STAT auth_errors 2\r\n"), "{stats}");
    let log = server.run(admin, &["ACL", "LOG"]);
    assert!(log.contains("cmd=memcached|sasl user=default") && !log.contains("pw"), "{log}");
}

#[test]
fn administrators_end_the_server_where_that_is_allowed() {
    let mut server = TestServer::with_shards(memory, 4);
    let (admin, far, near) = (server.connect(), server.connect_memcached(), server.connect_memcached_as_default());
    let sweeps = server.shared.host.part::<memcached::Needed, Arc<Sweeps>>().clone();
    let request = server.shared.host.part::<admin::Needed, ShutdownRequest>().clone();
    assert_eq!(say(&mut server, near, b"shutdown\r\n"), "ERROR: shutdown not enabled\r\n");
    server.run(admin, &["CONFIG", "SET", "memcached-enable-shutdown", "yes"]);
    assert_eq!(say(&mut server, far, b"shutdown\r\n"), "CLIENT_ERROR unauthorized\r\n", "it is on another host");
    for words in ["x", "-1", "601"] {
        let line = format!("shutdown {words}\r\n");
        assert_eq!(say(&mut server, near, line.as_bytes()), "CLIENT_ERROR invalid arguments\r\n", "{words}");
    }
    assert_eq!(say(&mut server, near, b"shutdown 1 2\r\n"), "CLIENT_ERROR bad command line format\r\n");
    assert_eq!(say(&mut server, near, b"shutdown 10\r\n"), "OK\r\n");
    server.pass_ms(9_999);
    while server.executor.sweep(&sweeps) {}
    assert!(!request.is_under_way());
    server.pass_ms(1);
    while server.executor.sweep(&sweeps) {}
    assert!(matches!(request.next(), Some((EndOrder::Terminate, _))));
}

/// ARCUS allows 16,000 bytes, and memcached 250.
#[test]
fn keys_are_as_long_as_is_set() {
    let mut server = TestServer::with_shards(memory, 4);
    let short = server.connect_memcached();
    let long = server.connect_memcached_with(Dialect::new(Language::Memcached).with_keys_up_to(16_000));
    let (fits, beyond) = ("k".repeat(16_000), "k".repeat(16_001));
    for key in ["k".repeat(250), fits.clone()] {
        for (request, expected) in [
            (format!("set {key} 0 0 1\r\nx\r\n"), "STORED\r\n".to_owned()),
            (format!("get {key} none\r\n"), format!("VALUE {key} 0 1\r\nx\r\nEND\r\n")),
            (format!("mget {} 2\r\n{key} n\r\n", key.len() + 2), format!("VALUE {key} 0 1\r\nx\r\nEND\r\n")),
            (format!("touch {key} 0\r\n"), "TOUCHED\r\n".to_owned()),
            (format!("incr {key} 1\r\n"), {
                "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n".to_owned()
            }),
            (format!("mg {key} v\r\n"), "VA 1\r\nx\r\n".to_owned()),
            (format!("delete {key}\r\n"), "DELETED\r\n".to_owned()),
            (format!("bop insert {key} 1 1 create 0 0 0\r\nx\r\n"), "CREATED_STORED\r\n".to_owned()),
            (format!("bop smget {} 1 0..5 5 unique\r\n{key}\r\n", key.len()), {
                format!("ELEMENTS 1\r\n{key} 0 1 1 x\r\nMISSED_KEYS 0\r\nTRIMMED_KEYS 0\r\nEND\r\n")
            }),
            (format!("getattr {key} type\r\n"), "ATTR type=b+tree\r\nEND\r\n".to_owned()),
            (format!("delete {key}\r\n"), "DELETED\r\n".to_owned()),
        ] {
            assert_eq!(say(&mut server, long, request.as_bytes()), expected);
        }
    }
    let refused = "CLIENT_ERROR bad command line format\r\n";
    for request in ["get K\r\n", "delete K\r\n", "touch K 0\r\n", "incr K 1\r\n", "mg K v\r\n", "getattr K\r\n"] {
        let at_limit = request.replace('K', &"k".repeat(251));
        assert_eq!(say(&mut server, short, at_limit.as_bytes()), refused, "{request}");
        assert_eq!(say(&mut server, long, request.replace('K', &beyond).as_bytes()), refused, "{request}");
    }
}
