//! A whole comparison over two running servers, from the plan to the files.

use crate::support::{Behaviour, FakeServer, State};
use loadgen::catalogue::TestSpec;
use loadgen::client::{Address, Login};
use loadgen::compare::{self, BuiltIn, Plan};
use loadgen::error::BenchError;
use loadgen::generator::Pace;
use loadgen::guest::Guest;
use loadgen::keys::Distribution;
use loadgen::measure::{self, Row, Settings, Target};
use loadgen::payload::{Content, Size};
use loadgen::results::Results;
use loadgen::template::{KeyFormat, Protocol};
use std::collections::BTreeSet;
use std::process::{Child, Command};

pub fn settings() -> Settings {
    Settings {
        connections: 4,
        threads: 1,
        key_format: KeyFormat::default(),
        keys: 2000,
        distribution: Distribution::Uniform,
        content: Content::Constant,
        seed: 1,
        generator_cores: None,
        warmup_seconds: 0.05,
        seconds: 0.2,
    }
}

fn row(test: &str) -> Row {
    let test = TestSpec::parse(test).unwrap();
    Row { test, pipeline: 4, value_size: Size::exactly(10), pace: Pace::Closed }
}

/// A busy process with CPU time of its own: the fake servers share this process with the generator.
pub struct Busy(pub Child);

impl Busy {
    pub fn start() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Two rows, GET and SET.
fn rows() -> BuiltIn {
    BuiltIn::Custom(vec![row("get"), row("set")])
}

pub fn plan(servers: &[&FakeServer], pid: u32) -> Plan {
    let spec = |(at, server): (usize, &&FakeServer)| format!("s{at}@{},pid={pid}", server.address).parse().unwrap();
    let specs = servers.iter().enumerate().map(spec);
    Plan {
        servers: specs.collect(),
        guest: Guest::new(Vec::new(), &settings().key_format.prefix),
        subject: "s0".to_owned(),
        settings: settings(),
        rounds: Some(3),
        seconds: Some(0.2),
        scale: 1.0,
        directory: None,
        server_cores: None,
        unix_socket: false,
        command_line: "onggi bench compare".to_owned(),
    }
}

#[test]
fn two_servers_are_compared_and_the_files_tell_it_all() {
    let servers = [FakeServer::start(Behaviour::default()), FakeServer::start(Behaviour::default())];
    let busy = Busy::start();
    let results = compare::run(&plan(&[&servers[0], &servers[1]], busy.0.id()), &rows()).unwrap();
    assert_eq!(results.servers.len(), 2);
    assert_eq!(results.servers[0].version, "Redis 0.0.1");
    for row in &results.sections[0].rows {
        assert_eq!((row.cells.len(), row.ratios.len()), (2, 1));
        for cell in &row.cells {
            assert_eq!(cell.samples.len(), 3);
            assert!(cell.windows.iter().all(|window| window.operations > 0 && window.misses == 0), "{cell:?}");
            assert!(cell.value.median > 0.0 && !cell.curve.is_empty());
        }
    }
    for server in &servers {
        let state = server.state.lock().unwrap();
        assert!(state.map.is_empty(), "{} keys are left", state.map.len());
        assert!(!names(&state).contains("FLUSHALL"), "a server that was not started here is never flushed");
        let keys: BTreeSet<_> =
            state.commands.iter().flatten().filter(|words| words[0] == b"SET").map(|words| &words[1]).collect();
        assert_eq!(keys.len(), 2000, "both servers held the same keys");
        assert!(keys.iter().all(|key| key.starts_with(b"bench:")));
    }
    let directory = std::env::temp_dir().join(format!("onggi-bench-compare-{}", std::process::id()));
    loadgen::report::write(&results, &directory).unwrap();
    let read = Results::read(&directory.join("results.json")).unwrap();
    let page = std::fs::read_to_string(directory.join("index.html")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(loadgen::report::html::render(&read), page);
    assert!(page.contains("Latency by percentile"));
}

/// The names of all commands that a server has received.
fn names(state: &State) -> BTreeSet<String> {
    state.commands.iter().flatten().map(|words| String::from_utf8_lossy(&words[0]).to_uppercase()).collect()
}

/// A server with data is refused before any command changes it, and loses its data only if the user names its address
/// for that.
#[test]
fn a_server_that_holds_keys_is_not_touched() {
    let servers = [FakeServer::start(Behaviour::default()), FakeServer::start(Behaviour::default())];
    servers[1].state.lock().unwrap().map.insert(b"mykey".to_vec(), b"value".to_vec());
    let busy = Busy::start();
    let mut plan = plan(&[&servers[0], &servers[1]], busy.0.id());
    let error = compare::run(&plan, &rows()).unwrap_err().to_string();
    let address = &servers[1].address;
    assert!(error.contains("holds 1 key, ") && error.contains(&format!("--flush-the-data-of {address}")), "{error}");
    for server in &servers {
        let state = server.state.lock().unwrap();
        let changing = ["SET", "FLUSHALL", "FLUSHDB", "DEL", "UNLINK"];
        assert!(names(&state).iter().all(|name| !changing.contains(&&**name)), "{:?}", names(&state));
    }
    assert_eq!(servers[1].state.lock().unwrap().map[b"mykey".as_slice()], b"value");

    plan.guest.flushed = vec!["127.0.0.1:1".parse().unwrap()];
    let error = compare::run(&plan, &rows()).unwrap_err().to_string();
    assert!(error.contains("no --server NAME@127.0.0.1:1"), "{error}");

    plan.guest.flushed = vec![address.parse().unwrap()];
    compare::run(&plan, &rows()).unwrap();
    assert!(servers[1].state.lock().unwrap().map.is_empty());
    assert!(!names(&servers[0].state.lock().unwrap()).contains("FLUSHALL"), "the other one was not named");
}

/// Keys that other clients write meanwhile stay.
#[test]
fn keys_of_others_stay() {
    let server = FakeServer::start(Behaviour::default());
    let guest = Guest::new(Vec::new(), "bench:");
    let mut state = server.state.lock().unwrap();
    for key in ["bench:1", "bench", "other:bench:", "mykey"] {
        state.map.insert(key.into(), b"v".to_vec());
    }
    drop(state);
    guest.clean(&server.address.parse().unwrap()).unwrap();
    let state = server.state.lock().unwrap();
    let left: BTreeSet<_> = state.map.keys().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
    assert_eq!(left, ["bench", "mykey", "other:bench:"].map(str::to_owned).into());
}

#[test]
fn plans_that_cannot_work_are_refused() {
    let server = FakeServer::start(Behaviour::default());
    let refused = |plan: &Plan, suite: BuiltIn, part: &str| {
        let error = compare::run(plan, &suite).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let good = plan(&[&server, &server], std::process::id());
    refused(&Plan { subject: "other".to_owned(), ..good.clone() }, rows(), "no server of that name");
    let twin = vec![good.servers[0].clone(), good.servers[0].clone()];
    refused(&Plan { servers: twin, ..good.clone() }, rows(), "two servers are named `s0`");
    refused(&good, BuiltIn::Memory, "give a command");
    refused(&good, BuiltIn::Eviction, "give a command");
}

/// Only errors are no measurement, and a missing login is named as such.
#[test]
fn a_server_that_answers_only_errors_is_not_measured() {
    let measure = |error| {
        let server = FakeServer::start(Behaviour { error: Some(error), ..Behaviour::default() });
        let address: Address = server.address.parse().unwrap();
        let target = Target { address, login: Login::default(), pid: None, protocol: Protocol::Resp };
        measure::measure(&target, &settings(), &row("get"), &mut |_| {}).map(|(window, _)| window).unwrap_err()
    };
    assert!(matches!(measure("ERR broken"), BenchError::Refused { reply, .. } if reply == "ERR broken"));
    assert!(matches!(measure("NOAUTH Authentication required."), BenchError::Login { .. }));
}

#[test]
fn a_server_that_never_answers_is_named() {
    let stall = Some((std::time::Duration::ZERO, std::time::Duration::from_secs(3600)));
    let server = FakeServer::start(Behaviour { stall, ..Behaviour::default() });
    let target = Target {
        address: server.address.parse().unwrap(),
        login: Login::default(),
        pid: None,
        protocol: Protocol::Resp,
    };
    let outcome = measure::measure(&target, &settings(), &row("get"), &mut |_| {}).map(|(window, _)| window);
    assert!(matches!(outcome, Err(BenchError::Silent { .. })), "{outcome:?}");
}

#[test]
fn a_wrong_password_is_named() {
    let server = FakeServer::start(Behaviour { error: Some("WRONGPASS invalid"), ..Behaviour::default() });
    let login = Login { password: Some("x".to_owned()), ..Login::default() };
    let error = measure::find_pid(&server.address.parse().unwrap(), &login).unwrap_err();
    assert!(matches!(error, BenchError::Login { reply, .. } if reply == "WRONGPASS invalid"));
}
