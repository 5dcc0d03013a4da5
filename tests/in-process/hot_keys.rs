//! HOTKEYS through a whole worker: its figures for a zipfian load, compared with the real ones.

use crate::harness::{SHARDS, TestServer, memory, request};
use crate::reply::Reply;
use base::Rng;

const KEYS: usize = 20_000;
const CALLS: u32 = 2_000_000;
const PIPELINE: u32 = 64;

/// The estimates of the first ten keys are within a tenth, by calls and by bytes, and each is within its stated
/// error, except for one in twenty.
#[test]
fn the_first_keys_of_a_zipfian_load_are_within_a_tenth() {
    let mut server = TestServer::with_shards(memory, SHARDS);
    let client = server.connect_listed();
    let name = |number: usize| format!("key:{number:06}");
    let value = "x".repeat(64);
    let sets: Vec<u8> = (0..KEYS).flat_map(|n| request(&[b"SET", name(n).as_bytes(), value.as_bytes()])).collect();
    server.send(client, &sets);
    server.run(client, &["HOTKEYS", "RESET"]);
    // Key `n` comes with a probability in proportion to 1 / (n + 1).
    let sums: Vec<f64> = (1..=KEYS)
        .scan(0.0, |sum, n| {
            Some({
                *sum += 1.0 / n as f64;
                *sum
            })
        })
        .collect();
    let gets: Vec<Vec<u8>> = (0..KEYS).map(|number| request(&[b"GET", name(number).as_bytes()])).collect();
    let (mut calls, mut rng, mut pipeline) = (vec![0u32; KEYS], Rng::new(7), Vec::new());
    for _ in 0..CALLS / PIPELINE {
        pipeline.clear();
        for _ in 0..PIPELINE {
            let point = rng.unit() * sums[KEYS - 1];
            let number = sums.partition_point(|sum| *sum <= point).min(KEYS - 1);
            calls[number] += 1;
            pipeline.extend_from_slice(&gets[number]);
        }
        server.send(client, &pipeline);
    }
    // Requests and replies of one length, so that bytes are in proportion to calls.
    let bytes_of_call = ("GET".len() + name(0).len() + value.len() + "$64\r\n\r\n".len()) as f64;
    for (measure, amount_of_call) in [("ops", 1.0), ("bytes", bytes_of_call)] {
        let Reply::List(rows) = server.ask(client, &["HOTKEYS", "COUNT", "10", "BY", measure]) else {
            panic!("HOTKEYS is answered by a list");
        };
        assert_eq!(rows.len(), 10);
        let mut kept = 0;
        for row in &rows {
            let Reply::List(row) = row else { panic!("{row:?} is no row") };
            let [Reply::Bulk(Some(key)), Reply::Int(estimate), Reply::Int(error), Reply::Int(0)] = &row[..] else {
                panic!("{row:?} is no row");
            };
            let number: usize = key.strip_prefix("key:").expect("a key of the load").parse().expect("its number");
            let real = f64::from(calls[number]) * amount_of_call;
            let off = *estimate as f64 - real;
            assert!(off.abs() < 0.1 * real, "{measure}: {key} had {real}, and is said to have {estimate}");
            kept += u32::from(off.abs() <= *error as f64);
        }
        assert!(kept >= 8, "{measure}: only {kept} of 10 are within their error");
    }
}
