//! What the connection group does beyond its replies: other connections closed, logins delayed, replies held back.

#[expect(dead_code, reason = "transcripts and some settings are for the other tests")]
mod support;

use command::Session;
use command::clients::{Activity, Address, ClientInfo, Clients, Closer, Unblock};
use command::{CommandTable, Flags};
use engine::WaitEnd;
use parking_lot::Mutex;
use proto::Protocol;
use std::sync::Arc;
use support::{Connection, Fetching};

/// Requests to close, as a worker's mailbox would get them.
#[derive(Default)]
struct Closed(Mutex<Vec<(usize, u64)>>);

impl Closer for Closed {
    fn close(&self, worker: usize, id: u64) {
        self.0.lock().push((worker, id));
    }

    fn end_wait(&self, worker: usize, id: u64) {
        self.0.lock().push((worker, id));
    }

    fn follow_users(&self) {}
}

fn connection() -> Connection {
    Connection::new(Protocol::Resp2, Fetching::Never)
}

fn clients(connection: &Connection) -> &Clients {
    &connection.host.clients
}

/// One more connection, from this port, served by the worker.
fn join(connection: &Connection, port: u16, worker: usize) -> Arc<ClientInfo> {
    let address = |port| Address::Tcp(([10, 0, 0, 1], port).into());
    clients(connection).connect(address(port), address(6379), 9, worker, 1_799_999_990_000).expect("room for a client")
}

fn run(connection: &mut Connection, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    String::from_utf8(connection.run(&words)).expect("a reply in ASCII")
}

/// The numbers of the connections that CLIENT LIST shows.
fn listed(connection: &mut Connection, filters: &str) -> Vec<u64> {
    let reply = run(connection, format!("CLIENT LIST {filters}").trim_end());
    let ids = reply.lines().filter_map(|line| line.strip_prefix("id="));
    ids.map(|line| line.split(' ').next().expect("a number").parse().expect("a number")).collect()
}

#[test]
fn kill_closes_others_through_their_workers_and_forgets_them_at_once() {
    let mut own = connection();
    let closed = Arc::new(Closed::default());
    clients(&own).set_closer(closed.clone());
    let others: Vec<_> = (0..4).map(|number| join(&own, 1000 + number, usize::from(number))).collect();
    assert_eq!(listed(&mut own, ""), [1, 2, 3, 4, 5]);

    assert_eq!(run(&mut own, "CLIENT KILL 10.0.0.1:1001"), "+OK\r\n");
    assert_eq!(run(&mut own, "CLIENT KILL ID 2 4 99"), ":2\r\n");
    assert_eq!(*closed.0.lock(), [(1, 3), (0, 2), (2, 4)]);
    assert_eq!(listed(&mut own, ""), [1, 5]);
    let killed: Vec<_> = others.iter().map(|info| info.is_killed()).collect();
    assert_eq!(killed, [true, true, true, false]);

    assert_eq!(run(&mut own, "CLIENT KILL TYPE normal"), ":1\r\n", "not itself, unless asked to");
    assert!(!own.session.close_after_replies);
    assert_eq!(run(&mut own, "CLIENT KILL SKIPME NO ID 1"), ":1\r\n");
    assert!(own.session.close_after_replies, "after the reply");
}

#[test]
fn filters_choose_by_what_connections_are_and_do() {
    let mut own = connection();
    let (busy, idle) = (join(&own, 1000, 0), join(&own, 1001, 1));
    busy.rename(|names| names.name = "worker".to_owned());
    idle.rename(|names| names.library_name = "library".to_owned());
    let mut session = Session::of(busy.clone(), true);
    session.db = base::DbIndex(3);
    session.no_touch = true;
    session.can_redirect = true;
    let activity = Activity {
        now: 1_800_000_000_000,
        command: 0,
        protocol: Protocol::Resp3,
        input_bytes: 10,
        unsent_bytes: 20,
        reply_buffer_bytes: 30,
    };
    session.publish(&activity);
    for (filters, expected) in [
        ("NAME worker", &[2][..]),
        ("NOT-NAME worker", &[1, 3]),
        ("LIB-NAME library", &[3]),
        ("DB 3", &[2]),
        ("NOT-DB 3", &[1, 3]),
        ("FLAGS T", &[2]),
        ("NOT-FLAGS T", &[1, 3]),
        ("CAPA r", &[2]),
        ("NOT-CAPA r", &[1, 3]),
        ("IP 10.0.0.1", &[2, 3]),
        ("ADDR 10.0.0.1:1001", &[3]),
        ("NOT-ADDR 10.0.0.1:1001", &[1, 2]),
        ("LADDR 10.0.0.1:6379", &[2, 3]),
        ("MAXAGE 10", &[2, 3]),
        ("IDLE 10", &[3]),
        ("SKIPME YES", &[2, 3]),
        ("ID 3 1", &[1, 3]),
        ("ID 3 ID 2", &[2, 3]),
        ("NOT-ID 3 1", &[2]),
        ("IP 10.0.0.1 NOT-DB 3 MAXAGE 5", &[3]),
        ("NAME worker NAME other", &[]),
    ] {
        assert_eq!(listed(&mut own, filters), expected, "{filters}");
    }
    let line = run(&mut own, "CLIENT LIST ID 2");
    let first = CommandTable::new(command::redis::FAMILIES).rows()[0].0.clone();
    for field in ["age=10 idle=0 ", "flags=T capa=r db=3 ", "qbuf=10 ", "rbs=30 ", "obl=20 ", "events=rw ", " resp=3 "]
    {
        assert!(line.contains(field), "{field} in {line}");
    }
    assert!(line.contains(&format!(" cmd={first} ")), "{line}");
}

#[test]
fn connections_beyond_maxclients_are_turned_away() {
    let own = connection();
    clients(&own).set_limit(2);
    let second = join(&own, 1000, 0);
    let address = || Address::Unix("/run/socket".into());
    assert!(clients(&own).connect(address(), address(), 9, 0, 0).is_none());
    assert_eq!((clients(&own).accepted(), clients(&own).rejected(), clients(&own).count()), (2, 1, 2));
    clients(&own).disconnect(second.id);
    let third = clients(&own).connect(address(), address(), 9, 0, 0).expect("room again");
    assert_eq!(third.id, 3, "numbers are not used twice");
    assert_eq!(third.address.to_string(), "/run/socket:0");
}

#[test]
fn a_password_is_asked_for_and_found_out_slowly() {
    let mut own = connection();
    own.host.login.set_password(Some(b"secret")).expect("a short password");
    assert_eq!(run(&mut own, "RESET"), "+RESET\r\n");
    assert!(!own.session.authenticated);
    assert!(run(&mut own, "HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    for request in ["AUTH wrong", "AUTH default wrong", "AUTH other secret", "HELLO 3 AUTH default wrong", "AUTH wrong"]
    {
        let reply = run(&mut own, request);
        assert_eq!(reply, "-WRONGPASS invalid username-password pair or user is disabled.\r\n", "{request}");
        assert!(!own.session.authenticated);
        assert_eq!(own.session.held_until, None, "the first failures cost nothing");
    }
    let now = 1_800_000_000_000;
    run(&mut own, "AUTH wrong");
    assert_eq!(own.session.held_until, Some(now + 20));
    run(&mut own, "AUTH wrong");
    assert_eq!(own.session.held_until, Some(now + 20 + 40), "pipelined attempts do not share a delay");
    assert!(own.session.is_held(now));

    assert!(run(&mut own, "HELLO 3 AUTH default secret SETNAME a%b").starts_with("%7\r\n"));
    assert!(own.session.authenticated);
    assert_eq!(run(&mut own, "AUTH wrong"), "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    assert!(own.session.authenticated, "a failure does not log out");
    assert_eq!(run(&mut own, "RESET"), "+RESET\r\n");
    assert_eq!(run(&mut own, "AUTH secret"), "+OK\r\n");
    assert!(own.session.authenticated);
}

#[test]
fn a_wrong_name_in_hello_logs_nobody_in() {
    let mut own = connection();
    own.host.login.set_password(Some(b"secret")).expect("a short password");
    let default = own.host.login.users.default_user().clone();
    own.session.log_out(&default);
    let reply = own.run(&["HELLO", "3", "AUTH", "default", "secret", "SETNAME", "a b"]);
    assert!(reply.starts_with(b"-ERR Client names"));
    assert!(!own.session.authenticated);
}

#[test]
fn replies_are_turned_off_on_and_skipped() {
    let mut own = connection();
    for (request, reply) in [
        ("CLIENT REPLY SKIP", ""),
        ("PING", ""),
        ("PING", "+PONG\r\n"),
        ("CLIENT REPLY SKIP", ""),
        ("CLIENT REPLY SKIP", ""),
        ("PING", ""),
        ("PING", "+PONG\r\n"),
        ("CLIENT REPLY SKIP", ""),
        ("CLIENT REPLY ON", "+OK\r\n"),
        ("PING", "+PONG\r\n"),
        ("CLIENT REPLY OFF", ""),
        ("PING", ""),
        ("CLIENT REPLY SKIP", ""),
        ("NOSUCHCOMMAND", ""),
        ("PING", ""),
        ("CLIENT REPLY ON", "+OK\r\n"),
        ("CLIENT REPLY OFF", ""),
        ("RESET", "+RESET\r\n"),
        ("PING", "+PONG\r\n"),
    ] {
        assert_eq!(run(&mut own, request), reply, "{request}");
    }
}

#[test]
fn pause_and_unpause_set_what_the_executor_asks() {
    let mut own = connection();
    let now = 1_800_000_000_000;
    run(&mut own, "CLIENT PAUSE 100 WRITE");
    assert!(own.host.pause.is_paused(now + 99, Flags::WRITE));
    assert!(!own.host.pause.is_paused(now + 99, Flags::READONLY));
    run(&mut own, "CLIENT PAUSE 50");
    assert!(own.host.pause.is_paused(now + 99, Flags::READONLY));
    assert_eq!(own.host.pause.until(now), Some(now + 100));
    run(&mut own, "CLIENT UNPAUSE");
    assert_eq!(own.host.pause.until(now), None);
}

/// UNBLOCK ends the wait of a client once, passes the kind of end on, and wakes the worker.
#[test]
fn unblock_ends_a_wait_once() {
    let mut own = connection();
    let woken = Arc::new(Closed::default());
    clients(&own).set_closer(woken.clone());
    let other = join(&own, 1000, 3);
    let unblock = |own: &mut Connection, how: &str| run(own, format!("CLIENT UNBLOCK {} {how}", other.id).trim_end());
    assert_eq!(unblock(&mut own, ""), ":0\r\n");
    for (word, how) in [("", Unblock::Timeout), ("TIMEOUT", Unblock::Timeout), ("error", Unblock::Error)] {
        let wait = other.wait.begin();
        assert_eq!(listed(&mut own, "FLAGS b"), [other.id]);
        assert_eq!(unblock(&mut own, word), ":1\r\n");

        assert_eq!(unblock(&mut own, word), ":0\r\n", "its wait is about to end already");
        assert_eq!(other.wait.end(wait, false), Some(WaitEnd::Unblocked(how)));
    }
    assert_eq!(*woken.0.lock(), [(3, other.id); 3]);
    assert_eq!(run(&mut own, "CLIENT UNBLOCK 99"), ":0\r\n");
    assert_eq!(run(&mut own, "CLIENT UNBLOCK -1"), ":0\r\n");
}
