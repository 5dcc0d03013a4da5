//! What a round of random commands may begin with (`ONGGI_DIFF_BIG`): collections so big that Onggi compresses them
//! leaf by leaf, under the keys that the commands draw, which also draw some of their elements. Then it is given the
//! time to do so.

use crate::resp::Value;
use crate::session::Session;
use crate::step::{Argument, Step};
use crate::target::Kind;
use crate::values::Class;
use base::Rng;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Collections of each type, as far as their keys differ.
const COLLECTIONS: usize = 2;
/// Commands that fill one, and elements of each: some 50 KB.
const COMMANDS: usize = 12;
const ELEMENTS: usize = 25;
/// A command of random ones is shorter.
const WORDS_MIN: usize = ELEMENTS;

/// Enough of all leaves for a round.
const VALUES_MIN: u64 = 40;
const REST_MAX: Duration = Duration::from_secs(5);

/// The commands that fill the collections.
pub fn steps(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    for name in ["HSET", "RPUSH", "SADD", "ZADD", "XADD"] {
        for _ in 0..COLLECTIONS {
            let key = Class::Key.draw(rng);
            for number in 1..=COMMANDS {
                let mut words = vec![name.as_bytes().to_vec(), key.clone()];
                if name == "XADD" {
                    words.push(format!("{number}-1").into_bytes());
                }
                for _ in 0..ELEMENTS {
                    match name {
                        "HSET" | "XADD" => words.extend([Class::Field.draw(rng), element(rng)]),
                        "ZADD" => words.extend([rng.below(20).to_string().into_bytes(), element(rng)]),
                        _ => words.push(element(rng)),
                    }
                    if name == "HSET" {
                        words.extend([element(rng), element(rng)]);
                    }
                }
                steps.push(Step::command(1, words.into_iter().map(Argument::Bytes).collect()));
            }
        }
    }
    steps
}

/// Of those that commands draw, or a long one that has much in common with others.
fn element(rng: &mut Rng) -> Vec<u8> {
    if rng.one_in(4) {
        return Class::Member.draw(rng);
    }
    let (number, other) = (rng.below(100_000), rng.below(1 << 40));
    format!(
        "{{\"number\": {number}, \"kind\": \"an element of a big collection\", \"other\": \"{other:x}\", \
             \"padding\": \"{}\"}}",
        "-".repeat(80)
    )
    .into_bytes()
}

/// How many steps at the beginning fill collections.
pub fn filling(steps: &[Step]) -> usize {
    let is_filling = |step: &&Step| step.arguments().is_some_and(|arguments| arguments.len() > WORDS_MIN);
    steps.iter().take_while(is_filling).count()
}

/// Waits until Onggi has compressed what was filled, or for a while.
pub fn rest(session: &mut Session) {
    let end = Instant::now() + REST_MAX;
    while Instant::now() < end {
        let Some(Value::Bulk(text)) = session.ask_one(Kind::Onggi, &["INFO", "compression"]) else { return };
        let text = String::from_utf8_lossy(&text).into_owned();
        let values = text.lines().find_map(|line| line.strip_prefix("compression_values:")?.trim().parse::<u64>().ok());
        if values.is_none_or(|values| values >= VALUES_MIN) {
            return;
        }
        sleep(Duration::from_millis(50));
    }
}
