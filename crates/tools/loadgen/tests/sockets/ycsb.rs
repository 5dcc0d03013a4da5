//! YCSB's workloads on small servers that keep every command.

use crate::compare::{Busy, plan};
use crate::support::{Behaviour, FakeServer, State};
use loadgen::compare::{self, BuiltIn, YcsbPlan};
use loadgen::guest::Guest;
use loadgen::results::Section;
use loadgen::ycsb::workload::Workload;
use loadgen::ycsb::{Record, keys};
use std::collections::BTreeSet;

const RECORDS: u64 = 300;

/// Runs a workload with four clients, and returns the sections.
fn run(server: &FakeServer, workload: &str, rate: Option<f64>) -> Vec<Section> {
    let busy = Busy::start();
    let suite = BuiltIn::Ycsb(YcsbPlan {
        workloads: vec![Workload::named(workload).unwrap()],
        clients: vec![4],
        rate,
        record: Record { fields: 3, field_bytes: 20 },
        records: RECORDS,
        scan_max: 10,
    });
    let guest = Guest { flushed: Vec::new(), prefixes: ["user", "_indices"].map(String::from).into() };
    let plan = compare::Plan { guest, rounds: Some(1), ..plan(&[server], busy.0.id()) };
    compare::run(&plan, &suite).unwrap().sections
}

/// Commands of this name after the load, of those that the clients of the workload sent.
fn sent<'a>(state: &'a State, name: &str) -> Vec<&'a [Vec<u8>]> {
    let clients = state.commands.iter().filter(|commands| commands.iter().all(|words| words[0] != b"INFO"));
    let of_clients = clients.filter(|commands| commands.iter().filter(|words| words[0] == b"ZADD").count() < 200);
    of_clients.flatten().filter(|words| words[0] == name.as_bytes()).map(|words| &words[..]).collect()
}

#[test]
fn a_workload_has_its_mix_of_commands() {
    for (workload, reads, writes) in [("a", 0.5, 0.5), ("b", 0.95, 0.05), ("c", 1.0, 0.0), ("f", 2.0 / 3.0, 1.0 / 3.0)]
    {
        let server = FakeServer::start(Behaviour::default());
        let sections = run(&server, workload, None);
        let cell = &sections[0].rows[0].cells[0];
        assert!(cell.windows[0].operations > 300 && cell.windows[0].misses == 0, "{cell:?}");
        assert!(cell.windows[0].errors == 0 && cell.value.median > 0.0, "{cell:?}");
        let state = server.state.lock().unwrap();
        let (gets, sets) = (sent(&state, "HGETALL").len() as f64, sent(&state, "HMSET").len() as f64);
        let (read, written) = (gets / (gets + sets), sets / (gets + sets));
        assert!((read - reads).abs() < 0.06 && (written - writes).abs() < 0.06, "{workload}: {gets} and {sets}");
        // One field of an existing record.
        let names: BTreeSet<Vec<u8>> = (0..RECORDS).map(|number| keys::name(number).into_bytes()).collect();
        for update in sent(&state, "HMSET") {
            assert!(names.contains(&update[1]) && update.len() == 4 && update[3].len() == 20, "{update:?}");
        }
        assert!(state.map.is_empty(), "what was written is removed");
    }
}

#[test]
fn insertions_are_indexed_and_read() {
    let server = FakeServer::start(Behaviour::default());
    let sections = run(&server, "d", None);
    assert_eq!(sections[0].rows[0].cells[0].windows[0].misses, 0);
    let titles: Vec<_> = sections[2].rows.iter().map(|row| &row.title[..]).collect();
    assert_eq!(titles, ["D, 4 clients: read", "D, 4 clients: insert"]);
    let state = server.state.lock().unwrap();
    let (inserts, indexed) = (sent(&state, "HMSET"), sent(&state, "ZADD"));
    assert!(!inserts.is_empty() && inserts.len().abs_diff(indexed.len()) <= 4);
    for insert in &inserts {
        assert_eq!(insert.len(), 2 + 2 * 3);
    }
    for index in &indexed {
        let key = String::from_utf8(index[3].clone()).unwrap();
        assert_eq!((&index[1][..], index[2].clone()), (&b"_indices"[..], keys::score(&key).to_string().into_bytes()));
    }
    let new: BTreeSet<&Vec<u8>> = inserts.iter().map(|insert| &insert[1]).collect();
    assert!(sent(&state, "HGETALL").iter().any(|get| new.contains(&get[1])), "the latest are read");
}

#[test]
fn scans_read_what_the_index_names() {
    let server = FakeServer::start(Behaviour::default());
    let sections = run(&server, "e", None);
    assert!(sections[0].rows[0].cells[0].windows[0].operations > 50);
    let state = server.state.lock().unwrap();
    let (scans, gets) = (sent(&state, "ZRANGEBYSCORE"), sent(&state, "HGETALL"));
    let asked: u64 = scans.iter().map(|scan| String::from_utf8_lossy(&scan[6]).parse::<u64>().unwrap()).sum();
    assert!(scans.iter().all(|scan| (1..=10).contains(&String::from_utf8_lossy(&scan[6]).parse::<u64>().unwrap())));
    // Scans near the end of the index find fewer.
    assert!(gets.len() as u64 <= asked && gets.len() as u64 > asked / 2, "{} of {asked}", gets.len());
}

#[test]
fn a_rate_is_kept() {
    let server = FakeServer::start(Behaviour::default());
    let sections = run(&server, "c", Some(500.0));
    // 0.2 seconds of it.
    let operations = sections[0].rows[0].cells[0].windows[0].operations;
    assert!((80..=105).contains(&operations), "{operations}");
}
