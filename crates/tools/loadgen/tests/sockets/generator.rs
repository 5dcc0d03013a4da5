//! The generator with a real socket: nothing is lost or counted twice, and no stall is hidden.

use crate::support::{self, Behaviour, FakeServer};
use loadgen::client::{Address, Login};
use loadgen::error::BenchError;
use loadgen::generator::{Extent, Pace, Progress, Run, Totals, run};
use loadgen::keys::{Distribution, KeyStream};
use loadgen::payload::{Content, Payload, Size};
use loadgen::template::{KeyFormat, Protocol, Template};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A run whose fields a test changes as needed.
struct Load {
    commands: Vec<(&'static str, u32)>,
    fill: Option<&'static str>,
    distribution: Distribution,
    keys: u64,
    extent: Extent,
    pace: Pace,
    connections: usize,
    threads: usize,
    pipeline: usize,
    size: Size,
    seed: u64,
    until: Option<AtomicBool>,
    protocol: Protocol,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            commands: vec![("SET {key} {value}", 1)],
            fill: None,
            distribution: Distribution::Sequential,
            keys: 1000,
            extent: Extent::Operations(1000),
            pace: Pace::Closed,
            connections: 5,
            threads: 2,
            pipeline: 7,
            size: Size { min: 0, max: 40 },
            seed: 1,
            until: None,
            protocol: Protocol::Resp,
        }
    }
}

impl Load {
    fn run(&self, server: &FakeServer) -> Result<Totals, BenchError> {
        self.run_watched(server, &mut |_| {})
    }

    fn run_watched(&self, server: &FakeServer, watch: &mut dyn FnMut(Progress)) -> Result<Totals, BenchError> {
        let format = KeyFormat::default();
        let template = |text| Template::for_protocol(text, &format, self.protocol).unwrap();
        let commands: Vec<_> = self.commands.iter().map(|&(text, weight)| (template(text), weight)).collect();
        let fill = self.fill.map(template);
        run(
            &Run {
                address: &server.address.parse::<Address>().unwrap(),
                login: &Login::default(),
                protocol: self.protocol,
                pid: None,
                connections: self.connections,
                threads: self.threads,
                pipeline: self.pipeline,
                pace: self.pace,
                extent: self.extent,
                commands: &commands,
                fill: fill.as_ref(),
                keys: &KeyStream::new(self.distribution, self.keys, 1),
                key_count: self.keys,
                newest: self.keys,
                payload: &Payload::new(&Content::Random, self.size, 1).unwrap(),
                ordered_fields: true,
                seed: self.seed,
                cores: None,
                drain: Duration::from_secs(1),
                until: self.until.as_ref(),
            },
            watch,
        )
    }
}

/// A load phase writes every key exactly once, though no number here divides another.
#[test]
fn a_load_phase_writes_every_key_once() {
    for distribution in [Distribution::Sequential, Distribution::Shuffled] {
        let server = FakeServer::start(Behaviour::default());
        let load = Load { keys: 1003, extent: Extent::Operations(1003), distribution, ..Load::default() };
        let totals = load.run(&server).unwrap();
        let state = server.state.lock().unwrap();
        assert_eq!((totals.operations, totals.latency.len(), state.map.len()), (1003, 1003, 1003));
        assert_eq!(state.commands.iter().flatten().count(), 1003);
        let value_bytes: usize = state.map.values().map(Vec::len).sum();
        assert_eq!(totals.value_bytes, value_bytes as u64);
        assert!(totals.own_cpu_us > 0.0);
    }
}

/// ARCUS speaks memcached's protocol: every key arrives once, and reads distinguish hits from misses.
#[test]
fn memcached_is_spoken_too() {
    let address = support::start_memcached();
    let server = FakeServer { address, state: Default::default() };
    let load = Load { protocol: Protocol::Memcached, ..Load::default() };
    let totals = load.run(&server).unwrap();
    assert_eq!((totals.operations, totals.misses, totals.errors), (1000, 0, 0));
    // Keys beyond the written ones are missed.
    let reads = Load { commands: vec![("GET {key}", 1)], keys: 1500, extent: Extent::Operations(1500), ..load };
    let totals = reads.run(&server).unwrap();
    assert_eq!((totals.operations, totals.misses), (1500, 500));
}

/// A run of a day ends on request, and reports what it did until then.
#[test]
fn a_run_ends_when_it_is_told_to() {
    let server = FakeServer::start(Behaviour::default());
    let extent = Extent::Time { warmup: Duration::ZERO, measured: Duration::from_secs(86_400) };
    let load = Load { extent, until: Some(AtomicBool::new(false)), ..Load::default() };
    let mut seen = 0;
    let totals = load
        .run_watched(&server, &mut |progress| {
            seen = progress.operations;
            load.until.as_ref().unwrap().store(seen > 1000, Ordering::Relaxed);
        })
        .unwrap();
    assert!(seen > 1000 && totals.operations >= seen, "{seen} {}", totals.operations);
    assert!(totals.elapsed < Duration::from_secs(80_000));
}

/// Connections that asked for the same keys in step would be a load no application makes; the same seed must still
/// give the same run.
#[test]
fn every_connection_has_a_sequence_of_its_own_and_a_seed_repeats_it() {
    let sequences = |seed| {
        let server = FakeServer::start(Behaviour::default());
        let load = Load {
            commands: vec![("GET {key}", 9), ("SET {key} {value}", 1)],
            distribution: Distribution::Uniform,
            keys: 1_000_000,
            threads: 1,
            seed,
            ..Load::default()
        };
        load.run(&server).unwrap();
        let commands = server.state.lock().unwrap().commands.clone();
        commands.into_iter().collect::<HashSet<_>>()
    };
    let first = sequences(1);
    assert_eq!(first.len(), 5, "two connections sent the same commands");
    assert_eq!(first, sequences(1));
    assert!(first.is_disjoint(&sequences(2)));
    let gets = first.iter().flatten().filter(|command| command[0] == b"GET").count();
    assert!((860..940).contains(&gets), "{gets} GETs of 1000, asked for 9 in 10");
}

/// Coordinated omission: the server answers nothing for 300 ms out of 1200. At a fixed rate a quarter of the requests
/// were due in that time, so the slowest tenth waited about 180 ms and more; a closed loop sends next to nothing
/// meanwhile, and its percentiles look innocent.
#[test]
fn a_stall_shows_at_a_fixed_rate_and_hides_in_a_closed_loop() {
    let stall = Some((Duration::from_millis(400), Duration::from_millis(300)));
    let extent = Extent::Time { warmup: Duration::from_millis(100), measured: Duration::from_millis(1200) };
    let measure = |pace| {
        let server = FakeServer::start(Behaviour { stall, ..Behaviour::default() });
        Load { pace, extent, pipeline: 1, connections: 4, ..Load::default() }.run(&server).unwrap()
    };
    let fixed = measure(Pace::Rate(1000.0));
    let p90_ms = fixed.latency.value_at_quantile(0.9) as f64 / 1e6;
    assert!(p90_ms > 100.0, "p90 {p90_ms} ms at a fixed rate");
    assert!(fixed.latency.max() as f64 / 1e6 > 250.0);
    // Every request due in the window is in the histogram, including those that waited here.
    assert!((1199..=1201).contains(&fixed.latency.len()), "{} requests", fixed.latency.len());
    let closed = measure(Pace::Closed);
    let closed_p90_ms = closed.latency.value_at_quantile(0.9) as f64 / 1e6;
    assert!(closed_p90_ms < p90_ms / 2.0, "p90 {closed_p90_ms} ms in a closed loop");
}

/// Requests that are never answered count with the time they have waited.
#[test]
fn requests_without_an_answer_are_recorded_at_the_end() {
    let stall = Some((Duration::from_millis(300), Duration::from_secs(3600)));
    let server = FakeServer::start(Behaviour { stall, ..Behaviour::default() });
    let extent = Extent::Time { warmup: Duration::ZERO, measured: Duration::from_millis(600) };
    let load = Load { pace: Pace::Rate(500.0), extent, pipeline: 2, connections: 4, ..Load::default() };
    let totals = load.run(&server).unwrap();
    assert!((298..=302).contains(&totals.latency.len()), "{} requests", totals.latency.len());
    assert!(totals.latency.value_at_quantile(0.9) > 900_000_000, "{}", totals.latency.value_at_quantile(0.9));
}

/// An application with a cache: the first pass misses each key and fills it, the second finds all.
#[test]
fn misses_are_filled_with_the_missed_key() {
    let server = FakeServer::start(Behaviour::default());
    let load =
        Load { commands: vec![("GET {key}", 1)], fill: Some("SET {key} {value}"), pipeline: 3, ..Load::default() };
    let first = load.run(&server).unwrap();
    assert_eq!((first.operations - first.fills, first.misses, first.fills), (1000, 1000, 1000));
    assert_eq!(server.state.lock().unwrap().map.len(), 1000);
    let second = load.run(&server).unwrap();
    assert_eq!((second.operations, second.misses, second.fills), (1000, 0, 0));
}

/// New keys are new over all threads.
#[test]
fn new_keys_are_never_written_twice() {
    let server = FakeServer::start(Behaviour::default());
    let load = Load { commands: vec![("SET {newkey} {value}", 1)], ..Load::default() };
    load.run(&server).unwrap();
    let state = server.state.lock().unwrap();
    assert_eq!(state.map.len(), 1000);
    assert!(state.map.contains_key(b"bench:0000001000".as_slice()));
    assert!(state.map.contains_key(b"bench:0000001999".as_slice()));
}

/// Values and replies larger than every buffer: partial sends and partial reads in both directions at once.
#[test]
fn large_values_pass_in_pieces() {
    let server = FakeServer::start(Behaviour::default());
    for command in ["SET {key} {value}", "GET {key}"] {
        let load = Load {
            commands: vec![(command, 1)],
            size: Size::exactly(3_000_000),
            keys: 8,
            extent: Extent::Operations(16),
            ..Load::default()
        };
        let totals = load.run(&server).unwrap();
        assert_eq!((totals.operations, totals.misses, totals.errors), (16, 0, 0));
    }
}

/// A request is a reply too, so the echo server can be loaded; its replies of 3 MB exceed every buffer on the way.
#[test]
fn the_echo_server_sends_everything_back() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || loadgen::echo::serve(listener, 2));
    let server = FakeServer { address, state: Default::default() };
    let small = Load { connections: 7, ..Load::default() }.run(&server).unwrap();
    assert_eq!((small.operations, small.misses, small.errors), (1000, 0, 0));
    let large = Load { size: Size::exactly(3_000_000), extent: Extent::Operations(30), ..Load::default() };
    assert_eq!(large.run(&server).unwrap().operations, 30);
}

#[test]
fn a_unix_socket_is_loaded_like_any_other() {
    let path = std::env::temp_dir().join(format!("onggi-bench-test-{}", std::process::id()));
    let server = FakeServer::start_unix(&path);
    let totals = Load::default().run(&server).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((totals.operations, server.state.lock().unwrap().map.len()), (1000, 1000));
}

#[test]
fn a_server_that_closes_or_speaks_something_else_is_an_error() {
    let closing = FakeServer::start(Behaviour { close_after: Some(20), ..Behaviour::default() });
    assert!(matches!(Load::default().run(&closing), Err(BenchError::Closed { .. })));
    let foreign = FakeServer::start(Behaviour { foreign: Some("HTTP/1.1 400\r\n"), ..Behaviour::default() });
    assert!(matches!(Load::default().run(&foreign), Err(BenchError::NotResp { byte: b'H', .. })));
    let gone = FakeServer { address: "127.0.0.1:1".to_owned(), state: foreign.state };
    let error = Load::default().run(&gone).err().unwrap();
    assert!(matches!(&error, BenchError::Connect { address, .. } if address == "127.0.0.1:1"), "{error}");
}

#[test]
fn error_replies_are_counted_and_the_first_is_kept() {
    let server = FakeServer::start(Behaviour::default());
    let load = Load { commands: vec![("GET {key}", 1), ("NOPE", 1)], ..Load::default() };
    let totals = load.run(&server).unwrap();
    assert!(totals.errors > 300 && totals.errors < 700, "{}", totals.errors);
    assert_eq!(totals.first_error.as_deref(), Some("ERR unknown command"));
    assert_eq!(totals.misses, 1000 - totals.errors);
}
