//! CLIENT PAUSE: what waits, how it is shown, and that entries stay as they are.

use crate::harness::{SHARDS, TestServer, memory};

/// The reply to a request that does not wait, while another does.
fn ask(server: &mut TestServer, client: usize, request: &str) -> String {
    server.feed(client, format!("{request}\r\n").as_bytes());
    String::from_utf8(server.written(client)).expect("text")
}

fn blocked_clients(server: &mut TestServer, client: usize) -> String {
    let info = ask(server, client, "INFO clients");
    info.lines().find(|line| line.starts_with("blocked_clients:")).expect("INFO counts them").to_owned()
}

/// What changes what others see waits for the end of a WRITE pause, PUBLISH and SPUBLISH among them; it is shown as
/// blocked.
#[test]
fn messages_wait_for_the_end_of_a_write_pause() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let (client, other) = (server.connect_listed(), server.connect_listed());
    for request in ["PUBLISH c m", "SPUBLISH c m", "SET k v", "PFCOUNT k"] {
        assert_eq!(server.run(other, &["CLIENT", "PAUSE", "1000", "WRITE"]), "+OK\r\n");
        server.feed(client, format!("{request}\r\n").as_bytes());
        assert_eq!(server.written(client), b"", "{request} passes a pause");
        server.executor.run_waiting(true);
        assert_eq!(blocked_clients(&mut server, other), "blocked_clients:1", "{request}");
        let line = ask(&mut server, other, "CLIENT LIST ID 1");
        let flags = line.split(' ').find_map(|field| field.strip_prefix("flags=")).expect("it has flags");
        assert!(flags.contains('b'), "{request}: {line}");
        assert_eq!(ask(&mut server, other, "GET absent"), "$-1\r\n", "reads go on");
        server.clock.advance_ms(1_000);
        server.executor.begin_turn();
        server.executor.run_waiting(true);
        assert!(!server.written(client).is_empty(), "{request} goes on");
        assert_eq!(blocked_clients(&mut server, other), "blocked_clients:0", "{request}");
        server.run(other, &["DEL", "k"]);
    }
}

/// Keys do not expire during a pause: they stay in DBSIZE, though no read finds them, and go after it.
#[test]
fn nothing_expires_during_a_pause() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    server.run(client, &["SET", "stays", "1"]);
    server.run(client, &["SET", "a", "1", "PX", "100"]);
    server.run(client, &["SET", "b", "1", "PX", "100"]);
    server.run(client, &["CLIENT", "PAUSE", "10000", "WRITE"]);
    server.pass_ms(1_000);
    assert_eq!(server.run(client, &["GET", "a"]), "$-1\r\n");
    assert_eq!(server.run(client, &["DBSIZE"]), ":3\r\n");
    server.run(client, &["CLIENT", "UNPAUSE"]);
    server.pass_ms(1_000);
    assert_eq!(server.run(client, &["DBSIZE"]), ":1\r\n");
}
