//! What a request costs between the bytes that were read and the bytes to be sent: parser, batch, locks, engine, reply,
//! without sockets. Best of some rounds, in nanoseconds of this thread's CPU time; for counts of instructions, run it
//! under callgrind.
//!
//! HSET changes a field of one of many small hashes, ZADD the score of a member of one of many small sorted sets.
//!
//!     cargo run --release -p onggi-server --example hot_path -- [KEYS [VALUE_BYTES [ROUNDS [SHARDS [ONLY]]]]]
//!
//! ONLY names a command and a pipeline, as GET16, or is `all`. A word after it is an empty directory: the values are on
//! a mapped tier there.

mod in_process;

use base::Rng;
use config::Settings;
use in_process::{CONNECTIONS, best_of, buffers, executor_on, on_tier, settle, turn};
use std::path::PathBuf;

/// Elements of each hash and sorted set.
const ELEMENTS: u64 = 10;

fn main() {
    let only = std::env::args().nth(5).filter(|only| only != "all");
    let tier_dir = std::env::args().nth(6).map(PathBuf::from);
    let mut arguments = std::env::args().skip(1).take(4).map(|text| text.parse::<usize>().expect("a number"));
    let keys = arguments.next().unwrap_or(1_000_000);
    let value = "x".repeat(arguments.next().unwrap_or(64));
    let rounds = arguments.next().unwrap_or(7);
    let shards = arguments.next().unwrap_or(64);
    let mut tier = None;
    let mut executor = executor_on(shards, Settings::default(), |store| {
        tier = tier_dir.as_ref().map(|dir| (store.clone(), on_tier::attach(store, dir)));
    });
    let set = |bytes: &mut Vec<u8>, key: u64| {
        bytes.extend(format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:{key:012}\r\n${}\r\n{value}\r\n", value.len()).bytes());
    };
    let mut next = 0;
    while next < keys as u64 {
        let mut load = || {
            let mut bytes = Vec::new();
            for _ in 0..16 {
                set(&mut bytes, next);
                next += 1;
            }
            bytes
        };
        let all: Vec<Vec<u8>> = (0..CONNECTIONS).map(|_| load()).collect();
        turn(&mut executor, &all);
    }
    tier.iter().for_each(|(store, tier)| on_tier::settle(store, tier));
    settle(&mut executor, shards);
    let mut rng = Rng::new(1);
    for pipeline in [1, 16, 64] {
        for name in ["GET", "SET", "HSET", "ZADD"] {
            if only.as_ref().is_some_and(|only| *only != format!("{name}{pipeline}")) {
                continue;
            }
            let turns = buffers(pipeline, |bytes| {
                let key = rng.below(keys as u64);
                match name {
                    "GET" => bytes.extend(format!("*2\r\n$3\r\nGET\r\n$16\r\nkey:{key:012}\r\n").bytes()),
                    "SET" => set(bytes, key),
                    "HSET" => {
                        let (key, field) = (key / ELEMENTS, key % ELEMENTS);
                        let head = format!("*4\r\n$4\r\nHSET\r\n$17\r\nhash:{key:012}\r\n$2\r\n{field:02}\r\n");
                        bytes.extend(format!("{head}${}\r\n{value}\r\n", value.len()).bytes());
                    }
                    _ => {
                        let (key, member) = (key / ELEMENTS, key % ELEMENTS);
                        let score = rng.below(90) + 10;
                        let head = format!("*4\r\n$4\r\nZADD\r\n$17\r\nzset:{key:012}\r\n");
                        bytes.extend(format!("{head}$2\r\n{score}\r\n$2\r\n{member:02}\r\n").bytes());
                    }
                }
            });
            let best = best_of(&mut executor, rounds, &turns, pipeline);
            println!("{name} pipeline {pipeline:2}: {best:6.1} ns");
        }
    }
}
