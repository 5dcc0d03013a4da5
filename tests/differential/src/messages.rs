//! Rounds of random publishing, subscribing, tracking and writing, over connections that all receive what the
//! others do.
//!
//! Every connection speaks RESP3, in which messages and replies are distinct. After each step every connection sends a
//! request whose reply arrives after all earlier messages. So the messages of each step, their receivers and their
//! order are compared.

use std::io;

use base::Rng;
use base::random::splitmix64;

use crate::random::{Failure, check};
use crate::session::Session;
use crate::step::{Action, Argument, Step};
use crate::target::Kind;

/// Connections of a round.
const CONNECTIONS: usize = 3;

/// Steps of a round, each with a question to every connection.
const ROUND_LENGTH: usize = 120;

/// Each channel matches one pattern at most, since servers differ in the order of patterns.
const CHANNELS: [&str; 3] = ["news", "nuts", "sport"];
const PATTERNS: [&str; 3] = ["n*", "s?ort", "__key*"];
const KEYS: [&str; 4] = ["a", "b", "u:1", "u:2"];
const EVENTS: [&str; 6] = ["", "KEA", "KEAmn", "E$gx", "Kgn", "KEm"];

/// One round: the same for the same seed and number.
fn steps(seed: u64, round: u64) -> Vec<Step> {
    let mut state = seed.wrapping_add(round);
    let mut rng = Rng::new(splitmix64(&mut state));
    let mut steps: Vec<Step> = (1..=CONNECTIONS).map(|connection| Step::words(connection, &["HELLO", "3"])).collect();
    for _ in 0..ROUND_LENGTH {
        let drawn = 1 + rng.below(CONNECTIONS as u64) as usize;
        let (words, is_pushed) = request(&mut rng);
        // Events go to one connection and invalidations to the others: in which order a client hears of both, when it
        // removes a key itself, is a named difference.
        let connection = match words[1].as_str() {
            "__key*" => CONNECTIONS,
            "TRACKING" | "CACHING" => drawn.min(CONNECTIONS - 1),
            _ => drawn,
        };
        let arguments = words.iter().map(|word| Argument::Bytes(word.as_bytes().to_vec())).collect();
        let action = if is_pushed { Action::Silent(arguments) } else { Action::Command(arguments) };
        steps.push(Step { connection, action, without: Vec::new() });
        // The connection itself comes last, in a separate write: messages about its own changes may come before or
        // after the reply.
        let asked = (connection..connection + CONNECTIONS).map(|before| 1 + before % CONNECTIONS);
        steps.extend(asked.map(|connection| Step::words(connection, &["PING"])));
    }
    // What it lacks, and what it does in another order, is tested against Valkey alone.
    steps.iter_mut().for_each(|step| step.without = vec![Kind::Redis]);
    steps
}

/// A request, and whether a push answers it in place of a reply.
fn request(rng: &mut Rng) -> (Vec<String>, bool) {
    let mut pick = |words: &[&'static str]| words[rng.below(words.len() as u64) as usize];
    let (channel, pattern, key, other) = (pick(&CHANNELS), pick(&PATTERNS), pick(&KEYS), pick(&KEYS));
    let words: Vec<&str> = match rng.below(40) {
        0..=2 => vec!["SUBSCRIBE", channel],
        3 => vec!["UNSUBSCRIBE", channel],
        4 | 5 => vec!["PSUBSCRIBE", pattern],
        6 => vec!["PUNSUBSCRIBE", pattern],
        7 => vec!["SSUBSCRIBE", channel],
        8 => vec!["SUNSUBSCRIBE", channel],
        9..=12 => vec!["PUBLISH", channel, "text"],
        13 => vec!["SPUBLISH", channel, "text"],
        14 => vec!["PUBSUB", "NUMSUB", channel],
        15 => vec!["PUBSUB", "NUMPAT"],
        16 => vec!["CONFIG", "SET", "notify-keyspace-events", EVENTS[rng.below(EVENTS.len() as u64) as usize]],
        17 => vec!["CLIENT", "TRACKING", "ON"],
        18 => vec!["CLIENT", "TRACKING", "ON", "NOLOOP"],
        19 => vec!["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "u:"],
        20 => vec!["CLIENT", "TRACKING", "ON", "OPTIN"],
        21 => vec!["CLIENT", "TRACKING", "OFF"],
        22 => vec!["CLIENT", "CACHING", "YES"],
        23..=25 => vec!["GET", key],
        26 => vec!["MGET", key, other],
        27..=29 => vec!["SET", key, "1"],
        30 => vec!["SET", key, "1", "EX", "100000"],
        31 => vec!["MSET", key, "1", other, "2"],
        32 => vec!["INCR", key],
        33 => vec!["DEL", key, other],
        34 => vec!["EXPIRE", key, "100000"],
        35 => vec!["PERSIST", key],
        36 => vec!["RENAME", key, other],
        37 => vec!["COPY", key, other],
        38 => vec!["GETDEL", key],
        _ => vec!["APPEND", key, "2"],
    };
    let is_pushed = words[0].ends_with("SUBSCRIBE");
    (words.into_iter().map(str::to_owned).collect(), is_pushed)
}

/// Runs one round of a seed; the failure it ended with, shrunk.
///
/// # Errors
/// When a target cannot be brought back to life.
pub fn run(session: &mut Session, seed: u64, round: u64) -> io::Result<Option<Failure>> {
    check(session, &steps(seed, round), seed, round)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_repeats_and_another_differs() {
        assert_eq!(steps(1, 2), steps(1, 2));
        assert_ne!(steps(1, 2), steps(1, 3));
    }
}
