//! What a command on a collection costs between the bytes that were read and the bytes to be sent, without sockets.
//! Best of some rounds, in nanoseconds of this thread's CPU time; for counts of instructions, run it under callgrind
//! with `--collect-atstart=no --toggle-collect='*::measured'`, for one command at a time and one round.
//!
//!     cargo run --release -p onggi-server --example collections_path -- [KEYS [ROUNDS [ONLY]]]
//!
//! Over KEYS keys of 20 elements, then over one key of ten times as many. ONLY is part of a name, like `SMALL.LPUSH`.

mod in_process;

use base::Rng;
use in_process::{CONNECTIONS, best_of, buffers, executor, settle, turn};

const SHARDS: usize = 64;
const PIPELINE: usize = 16;
/// Elements of a small collection.
const ELEMENTS: u64 = 20;
/// Elements of the large one for each small key.
const LARGE_PER_KEY: u64 = 10;

/// A command, and the one that makes what it works on. `{id}` is the key or element, `{field}` a number below
/// [`ELEMENTS`] and `{int}` one below a million.
struct Work {
    name: &'static str,
    command: &'static str,
    load: Option<&'static str>,
    elements: u64,
}

const fn small(name: &'static str, command: &'static str, load: &'static str) -> Work {
    Work { name, command, load: Some(load), elements: ELEMENTS }
}

const fn large(name: &'static str, command: &'static str, load: &'static str) -> Work {
    Work { name, command, load: Some(load), elements: 1 }
}

const HSET: &str = "HSET hash:{id} field:{field} xxxxxxxxxxxxxxxx";
const RPUSH: &str = "RPUSH list:{id} xxxxxxxxxxxxxxxx";
const SADD: &str = "SADD set:{id} member{field}";
const ZADD: &str = "ZADD zset:{id} {int} member{field}";
const XADD: &str = "XADD stream:{id} MAXLEN ~ 1000 * first xxxxxxxxxxxxxxxx second xxxxxxxxxxxxxxxx";
const LARGE_HSET: &str = "HSET hash field:{id} xxxxxxxxxxxxxxxx";
const LARGE_RPUSH: &str = "RPUSH list xxxxxxxxxxxxxxxx";
const LARGE_SADD: &str = "SADD set member{id}";
const LARGE_ZADD: &str = "ZADD zset {int} member{id}";
const LARGE_XADD: &str = "XADD stream MAXLEN ~ 1000 * first xxxxxxxxxxxxxxxx second xxxxxxxxxxxxxxxx";

const WORKS: &[Work] = &[
    small("SMALL.HSET", HSET, HSET),
    small("SMALL.HGET", "HGET hash:{id} field:{field}", HSET),
    small("SMALL.LPUSH", "LPUSH list:{id} xxxxxxxxxxxxxxxx", RPUSH),
    small("SMALL.RPUSH", RPUSH, RPUSH),
    small("SMALL.RPOP", "RPOP list:{id}", RPUSH),
    small("SMALL.SADD", SADD, SADD),
    small("SMALL.SISMEMBER", "SISMEMBER set:{id} member{field}", SADD),
    small("SMALL.ZADD", ZADD, ZADD),
    small("SMALL.ZRANGE", "ZRANGE zset:{id} 5 14", ZADD),
    small("SMALL.ZRANK", "ZRANK zset:{id} member{field}", ZADD),
    Work { name: "SMALL.XADD", command: XADD, load: None, elements: 0 },
    large("LARGE.HSET", LARGE_HSET, LARGE_HSET),
    large("LARGE.HGET", "HGET hash field:{id}", LARGE_HSET),
    large("LARGE.LPUSH", "LPUSH list xxxxxxxxxxxxxxxx", LARGE_RPUSH),
    large("LARGE.RPOP", "RPOP list", LARGE_RPUSH),
    large("LARGE.SADD", LARGE_SADD, LARGE_SADD),
    large("LARGE.SISMEMBER", "SISMEMBER set member{id}", LARGE_SADD),
    large("LARGE.ZADD", LARGE_ZADD, LARGE_ZADD),
    large("LARGE.ZRANGE", "ZRANGE zset 500 509", LARGE_ZADD),
    large("LARGE.ZRANK", "ZRANK zset member{id}", LARGE_ZADD),
    Work { name: "LARGE.XADD", command: LARGE_XADD, load: None, elements: 0 },
];

fn put(bytes: &mut Vec<u8>, command: &str, id: u64, field: u64, rng: &mut Rng) {
    let words: Vec<&str> = command.split(' ').collect();
    bytes.extend(format!("*{}\r\n", words.len()).bytes());
    for word in words {
        let word = word.replace("{id}", &format!("{id:010}")).replace("{field}", &format!("{field:010}"));
        let word = word.replace("{int}", &rng.below(1_000_000).to_string());
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
}

/// What is counted under callgrind.
#[inline(never)]
fn measured(executor: &mut server::executor::Executor, rounds: usize, turns: &[Vec<Vec<u8>>]) -> f64 {
    best_of(executor, rounds, turns, PIPELINE)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(default, |text| text.parse::<u64>().expect("a number"));
    let (keys, rounds) = (number(100_000), number(5) as usize);
    let only = std::env::args().nth(3).unwrap_or_default();
    for work in WORKS.iter().filter(|work| work.name.contains(&only)) {
        let mut rng = Rng::new(1);
        let mut executor = executor(SHARDS);
        let ids = if work.elements == 1 { keys * LARGE_PER_KEY } else { keys };
        let total = ids * work.elements;
        let mut next = 0;
        while let Some(load) = work.load.filter(|_| next < total) {
            let mut some = || {
                let mut bytes = Vec::new();
                for number in (next..total).take(PIPELINE) {
                    put(&mut bytes, load, number % ids, number / ids, &mut rng);
                    next += 1;
                }
                bytes
            };
            let all: Vec<Vec<u8>> = (0..CONNECTIONS).map(|_| some()).collect();
            turn(&mut executor, &all);
        }
        settle(&mut executor, SHARDS);
        let turns = buffers(PIPELINE, |bytes| {
            let (id, field) = (rng.below(ids), rng.below(ELEMENTS));
            put(bytes, work.command, id, field, &mut rng);
        });
        println!("{:16} {:7.1} ns", work.name, measured(&mut executor, rounds, &turns));
    }
}
