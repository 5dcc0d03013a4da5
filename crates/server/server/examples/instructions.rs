//! Runs one round of one command under callgrind: the instructions that a request takes from the bytes read to the
//! bytes to send, without sockets. The stage `instructions` compares the count with its budget.
//!
//!     valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*::measured' \
//!         target/release/examples/instructions GET 16
//!
//! A third word `users` defines users with rules, and logs each connection in as one that has every right. GET-1K and
//! SET-1K have values of 1 KB, GET-TIER and SET-TIER have them on a mapped tier. Prints the number of measured
//! requests.

mod in_process;

use base::Rng;
use config::Settings;
use in_process::{CONNECTIONS, executor_on, on_tier, settle, turn};
use server::executor::Executor;

const SHARDS: usize = 16;
/// Number of keys that the round uses.
const KEYS: u64 = 20_000;
/// Fields of each hash, and members of each sorted set.
const ELEMENTS: u64 = 20;
/// Number of measured requests.
const REQUESTS: usize = 48_000;
/// Number of other users, each with rules of its own.
const USERS: usize = 50;

/// Appends a request with these words.
fn put(bytes: &mut Vec<u8>, words: &[&str]) {
    bytes.extend(format!("*{}\r\n", words.len()).bytes());
    words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
}

/// What each kind of script does: a script that does nothing, and others that call commands.
const SCRIPTS: [(&str, &str); 3] = [
    ("EVALSHA", "return"),
    ("EVALSHA-GET", "return redis.call('GET', KEYS[1])"),
    ("EVALSHA-INCR", "redis.call('INCR', KEYS[1]) redis.call('EXPIRE', KEYS[1], 60) return 1"),
];

/// The text of the script of this name.
fn script(name: &str) -> Option<&'static str> {
    SCRIPTS.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
}

/// Appends a request that runs a cached script with a key, or with none if it does nothing.
fn put_script(bytes: &mut Vec<u8>, text: &str, key: &str) {
    let sha = script::cache::sha1_hex(text.as_bytes());
    let sha = std::str::from_utf8(&sha).expect("digits");
    match text {
        "return" => put(bytes, &["EVALSHA", sha, "0"]),
        _ => put(bytes, &["EVALSHA", sha, "1", key]),
    }
}

/// Appends a request of `command` for a key and an element.
fn request(bytes: &mut Vec<u8>, command: &str, key: u64, element: u64, score: u64) {
    let (key, element) = (format!("key:{key:012}"), format!("element:{element:08}"));
    match command {
        "GET" | "GET-1K" | "GET-TIER" => put(bytes, &["GET", &key]),
        "SET" => put(bytes, &["SET", &key, &"x".repeat(64)]),
        "SET-1K" | "SET-TIER" => put(bytes, &["SET", &key, &"x".repeat(1024)]),
        "HSET" => put(bytes, &["HSET", &key, &element, "xxxxxxxxxxxxxxxx"]),
        "ZADD" => put(bytes, &["ZADD", &key, &score.to_string(), &element]),
        "NUMBER" => put(bytes, &["SET", &key, "1000"]),
        other => match script(other) {
            Some(text) => put_script(bytes, text, &key),
            None => panic!("unknown command {other}; choose GET, SET, HSET, ZADD or EVALSHA"),
        },
    }
}

/// The function whose instructions callgrind counts.
#[inline(never)]
fn measured(executor: &mut Executor, turns: &[Vec<Vec<u8>>]) {
    turns.iter().for_each(|buffers| turn(executor, buffers));
}

/// Splits at least `requests` requests into turns of `pipeline` requests per connection.
fn turns(requests: usize, pipeline: usize, mut next: impl FnMut(&mut Vec<u8>)) -> Vec<Vec<Vec<u8>>> {
    let mut buffer = || {
        let mut bytes = Vec::new();
        (0..pipeline).for_each(|_| next(&mut bytes));
        bytes
    };
    let count = requests.div_ceil(pipeline * CONNECTIONS);
    (0..count).map(|_| (0..CONNECTIONS).map(|_| buffer()).collect()).collect()
}

/// Logs every connection in as a user with every right, among others that have few, and takes the rights of `default`.
/// A login that failed shows in the count.
fn log_in(executor: &mut Executor) {
    let mut first = Vec::new();
    put(&mut first, &["ACL", "SETUSER", "app", "on", ">password", "~*", "&*", "+@all"]);
    for number in 0..USERS {
        let (name, keys) = (format!("user:{number}"), format!("~user:{number}:*"));
        put(&mut first, &["ACL", "SETUSER", &name, "on", ">password", &keys, "+@all", "-@dangerous", "(%R~* +get)"]);
    }
    let mut login = Vec::new();
    put(&mut login, &["AUTH", "app", "password"]);
    let mut last = Vec::new();
    put(&mut last, &["ACL", "SETUSER", "default", "resetkeys", "-@all"]);
    turn(executor, &[first]);
    turn(executor, &vec![login; CONNECTIONS]);
    turn(executor, &[last]);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().expect("the name of a command");
    let pipeline: usize = arguments.next().map_or(16, |text| text.parse().expect("a number of requests"));
    // The slow log would count requests that a busy machine has slowed down.
    let settings = Settings { slowlog_slower_than_us: -1, ..Settings::default() };
    let (mut tier, tier_dir) = (None, tempfile::tempdir().expect("a directory for the tier"));
    let mut executor = executor_on(SHARDS, settings, |store| {
        if command.ends_with("-TIER") {
            tier = Some((store.clone(), on_tier::attach(store, tier_dir.path())));
        }
    });
    if arguments.next().is_some_and(|word| word == "users") {
        log_in(&mut executor);
    }
    let (load, elements) = match command.as_str() {
        "GET" | "SET" => ("SET", 1),
        "GET-1K" | "SET-1K" | "GET-TIER" | "SET-TIER" => ("SET-1K", 1),
        other if script(other).is_some() => ("NUMBER", 1),
        other => (other, ELEMENTS),
    };
    let (mut number, total) = (0, KEYS * elements);
    let filling = turns(total as usize, 16, |bytes| {
        let element = number % elements;
        request(bytes, load, number / elements % KEYS, element, element * 7);
        number += 1;
    });
    filling.iter().for_each(|buffers| turn(&mut executor, buffers));
    tier.iter().for_each(|(store, tier)| on_tier::settle(store, tier));
    settle(&mut executor, SHARDS);
    if let Some(text) = script(&command) {
        let mut load = Vec::new();
        put(&mut load, &["SCRIPT", "LOAD", text]);
        turn(&mut executor, &[load]);
        // Once for what follows from a first run: its compiled form, and which keys it uses.
        let mut first = Vec::new();
        request(&mut first, &command, 0, 0, 0);
        turn(&mut executor, &[first]);
    }
    let mut rng = Rng::new(1);
    let round = turns(REQUESTS, pipeline, |bytes| {
        request(bytes, &command, rng.below(KEYS), rng.below(elements), rng.below(1_000_000));
    });
    measured(&mut executor, &round);
    println!("{} requests", round.len() * CONNECTIONS * pipeline);
}
