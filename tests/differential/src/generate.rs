//! Random sequences from a grammar: mostly well-formed requests, some of them bent.
//!
//! G1. The same seed, rules and length give the same steps.
//! G2. A step is safe to repeat on every server at the same time: see `tame`.

use base::Rng;

use crate::grammar::{Part, Rule};
use crate::step::{Action, Argument, Step};
use crate::values::{self, Class};

/// Connections of a random sequence, from 1; the last of them speak RESP3.
pub const CONNECTIONS: usize = 4;

/// The first connection that speaks RESP3.
const RESP3_FROM: usize = 3;

/// What a generator draws from.
#[derive(Debug)]
pub struct Generator {
    rules: Vec<Rule>,
    weight: u64,
    /// Whether Redis 7.0 takes part, which answers a nested MULTI but does not abort for it.
    with_redis: bool,
}

impl Generator {
    /// A generator of the rules; without those that Redis 7.0 lacks when it takes part.
    ///
    /// # Panics
    /// Without any rule.
    pub fn new(rules: &[Rule], with_redis: bool) -> Self {
        let rules: Vec<Rule> = rules.iter().filter(|rule| rule.redis || !with_redis).cloned().collect();
        let weight = rules.iter().map(|rule| rule.weight).sum();
        assert!(weight > 0, "a generator needs rules");
        Self { rules, weight, with_redis }
    }

    /// A sequence of about `length` requests.
    pub fn sequence(&self, rng: &mut Rng, length: usize) -> Vec<Step> {
        let mut steps: Vec<Step> =
            (RESP3_FROM..=CONNECTIONS).map(|connection| Step::words(connection, &["HELLO", "3"])).collect();
        let mut in_transaction = [false; CONNECTIONS + 1];
        let mut connection = 1;
        while steps.len() < length {
            if rng.one_in(12) {
                connection = 1 + rng.below(CONNECTIONS as u64) as usize;
            }
            if in_transaction[connection] && rng.one_in(6) {
                steps.push(Step::words(connection, &[if rng.one_in(6) { "DISCARD" } else { "EXEC" }]));
                in_transaction[connection] = false;
                continue;
            }
            let words = self.request(rng);
            let name = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
            match (&name[..], words.len()) {
                (b"MULTI", 1) | (b"WATCH", 2..) if in_transaction[connection] && self.with_redis => continue,
                (b"MULTI", 1) => in_transaction[connection] = true,
                (b"EXEC" | b"DISCARD" | b"RESET", 1) => in_transaction[connection] = false,
                _ => {}
            }
            let closes = name == b"QUIT";
            let inline = rng.one_in(100) && words.iter().all(|word| word.len() < 1000) && !words.is_empty();
            let arguments: Vec<Argument> = words.into_iter().map(Argument::Bytes).collect();
            let action = if inline { Action::Inline(arguments) } else { Action::Command(arguments) };
            steps.push(Step { connection, action, without: Vec::new() });
            if closes {
                steps.push(Step { connection, action: Action::Reopen, without: Vec::new() });
                in_transaction[connection] = false;
            }
        }
        steps
    }

    /// One request.
    fn request(&self, rng: &mut Rng) -> Vec<Vec<u8>> {
        let mut at = rng.below(self.weight);
        let drawn = self.rules.iter().find(|rule| {
            let here = at < rule.weight;
            at = at.wrapping_sub(rule.weight);
            here
        });
        let rule = drawn.unwrap_or(&self.rules[0]);
        let mut words = Vec::new();
        expand(&rule.part, rng, &mut words);
        // Ranges by member are not defined where scores differ, as they would after a bent ZADD.
        if rng.one_in(8) && !words.iter().any(|word| word.starts_with(b"lex:")) {
            self.bend(rng, rule.command(), &mut words);
        }
        tame(rng, &mut words);
        words
    }

    /// Makes a request wrong in one or two ways: arity, order, values, options that do not belong together.
    fn bend(&self, rng: &mut Rng, command: &str, words: &mut Vec<Vec<u8>>) {
        for _ in 0..=rng.below(2) {
            let length = words.len() as u64;
            // The name of the command itself is seldom touched: every such request ends the same way.
            let at = if length > 1 { 1 + rng.below(length - 1) as usize } else { 0 };
            match rng.below(9) {
                0 if length > 1 => {
                    words.remove(at);
                }
                1 => words.push(values::odd(rng)),
                2 if length > 1 => words.insert(at, words[at].clone()),
                3 if length > 2 => {
                    let other = 1 + rng.below(length - 1) as usize;
                    words.swap(at, other);
                }
                4 | 5 if length > 1 => words[at] = values::odd(rng),
                6 => {
                    if let Some(option) = self.option_of(rng, command) {
                        words.insert((at + 1).min(words.len()), option);
                    }
                }
                7 => words.truncate(1 + rng.below(length) as usize),
                8 if rng.one_in(4) => words[0] = values::odd(rng),
                _ => {
                    let key = Class::Key.draw(rng);
                    words.push(key);
                }
            }
        }
    }

    /// Any word that any rule of the command knows.
    fn option_of(&self, rng: &mut Rng, command: &str) -> Option<Vec<u8>> {
        let mut options = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.command() == command) {
            collect_words(&rule.part, &mut options);
        }
        options.retain(|option| *option != command);
        if options.is_empty() {
            return None;
        }
        Some(options[rng.below(options.len() as u64) as usize].as_bytes().to_vec())
    }
}

fn collect_words<'a>(part: &'a Part, into: &mut Vec<&'a str>) {
    match part {
        Part::Word(word) => into.push(word),
        Part::Exact(_) | Part::Value(_) => {}
        Part::Sequence(parts) | Part::OneOf(parts) | Part::AnyOrder(parts) => {
            parts.iter().for_each(|part| collect_words(part, into));
        }
        Part::Optional(part) | Part::Repeated { part, .. } => collect_words(part, into),
    }
}

/// Appends what a part of a rule stands for this time.
fn expand(part: &Part, rng: &mut Rng, into: &mut Vec<Vec<u8>>) {
    match part {
        Part::Word(word) => into.push(in_some_case(rng, word)),
        Part::Exact(word) => into.push(word.as_bytes().to_vec()),
        Part::Value(class) => into.push(class.draw(rng)),
        Part::Sequence(parts) => parts.iter().for_each(|part| expand(part, rng, into)),
        Part::OneOf(parts) => expand(&parts[rng.below(parts.len() as u64) as usize], rng, into),
        Part::Optional(part) => {
            if rng.one_in(3) {
                expand(part, rng, into);
            }
        }
        Part::AnyOrder(parts) => {
            let mut order: Vec<&Part> = parts.iter().collect();
            for last in (1..order.len()).rev() {
                order.swap(last, rng.below(last as u64 + 1) as usize);
            }
            order.iter().for_each(|part| expand(part, rng, into));
        }
        Part::Repeated { part, counted } => {
            let count = 1 + rng.below(4).min(rng.below(5));
            if *counted {
                let said = if rng.one_in(12) { Class::Int.draw(rng) } else { count.to_string().into_bytes() };
                into.push(said);
            }
            (0..count).for_each(|_| expand(part, rng, into));
        }
    }
}

fn in_some_case(rng: &mut Rng, word: &str) -> Vec<u8> {
    match rng.below(8) {
        0 => word.to_ascii_lowercase().into_bytes(),
        1 => word.bytes().map(|byte| if rng.one_in(2) { byte.to_ascii_lowercase() } else { byte }).collect(),
        _ => word.as_bytes().to_vec(),
    }
}

/// An offset from here up to the limit of strings would make every server allocate up to 512 MB.
const OFFSET_HARMLESS_MAX: u64 = 1 << 18;

/// The first offset, of bytes or of bits, that every server refuses.
const OFFSET_REFUSED: u64 = 1 << 32;

/// Takes out of a request what would not repeat: a time to live that passes, or ties with another, within the run; a
/// deadline in the past that a server notices when it pleases; an offset that is allocated for; a wait; a key that
/// Valkey takes for an option, an index that it cuts off. Adds to a BITFIELD a step that cannot be refused.
fn tame(rng: &mut Rng, words: &mut Vec<Vec<u8>>) {
    let name = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let unit_ms = match &name[..] {
        b"EXPIRE" | b"SETEX" => Some(1000),
        b"PEXPIRE" | b"PSETEX" => Some(1),
        _ => None,
    };
    let allocates = matches!(&name[..], b"SETRANGE" | b"SETBIT" | b"BITFIELD");
    let draws = matches!(&name[..], b"HRANDFIELD" | b"SRANDMEMBER" | b"ZRANDMEMBER");
    let fails = words.iter().any(|word| word.eq_ignore_ascii_case(b"FAIL"));
    if name == b"BITFIELD" && fails && !words.ends_with(&step_that_succeeds()) {
        words.extend(step_that_succeeds());
    }
    if name == b"WAIT" || name == b"WAITAOF" {
        // A positive number of replicas is waited for; there are none.
        let positive = |word: &&mut Vec<u8>| word.first().is_some_and(|digit| (b'1'..=b'9').contains(digit));
        words[1..].iter_mut().filter(positive).for_each(|word| *word = b"0".to_vec());
    }
    if matches!(&name[..], b"HGETEX" | b"HSETEX") && words.get(1).is_some_and(|key| key.eq_ignore_ascii_case(b"fields"))
    {
        // Valkey takes such a key for the word before the fields.
        words[1] = b"h".to_vec();
    }
    if name == b"LSET"
        && let Some(index) = words.get_mut(2)
        && std::str::from_utf8(index)
            .ok()
            .and_then(|text| text.parse::<i64>().ok())
            .is_some_and(|at| i32::try_from(at).is_err())
    {
        // Valkey takes the lower 32 bits.
        *index = b"-1".to_vec();
    }
    if matches!(&name[..], b"ZUNIONSTORE" | b"ZINTERSTORE")
        && let Some(at) = words.iter().position(|word| word.eq_ignore_ascii_case(b"weights"))
    {
        // A score of zero becomes -0, which a sorted set that is not packed keeps as 0.
        for word in words[at..].iter_mut().filter(|word| word.starts_with(b"-")) {
            *word = word[1..].to_vec();
        }
    }
    let timeout = match &name[..] {
        b"BLPOP" | b"BRPOP" | b"BLMOVE" | b"BRPOPLPUSH" | b"BZPOPMIN" | b"BZPOPMAX" => words.len().checked_sub(1),
        b"BLMPOP" | b"BZMPOP" => Some(1),
        _ => None,
    };
    // Zero waits for ever, and most numbers for longer than a reply is waited for.
    let is_zero = |word: &[u8]| std::str::from_utf8(word).ok().and_then(|text| text.parse().ok()) == Some(0.0_f64);
    if let Some(word) = timeout.filter(|at| *at > 0).and_then(|at| words.get_mut(at))
        && (is_zero(word)
            || word.first().is_some_and(|first| matches!(first, b'0'..=b'9' | b'.' | b'+' | b'i' | b'I' | b' ')))
    {
        *word = b"0.001".to_vec();
    }
    for i in 1..words.len() {
        let after_option = match &words[i - 1].to_ascii_uppercase()[..] {
            b"EX" => Some(1000),
            b"PX" => Some(1),
            _ => None,
        };
        if let Some(unit_ms) = unit_ms.filter(|_| i == 2).or(after_option)
            && values::passes_soon(&words[i], unit_ms)
        {
            words[i] = if unit_ms == 1 { Class::Pttl.draw(rng) } else { Class::Ttl.draw(rng) };
            if values::passes_soon(&words[i], unit_ms) {
                words[i] = b"-1".to_vec();
            }
        }
        // Valkey stores what MSETEX gives a deadline in the past, and counts it until it is noticed.
        let deadline_unit_ms = match &words[i - 1].to_ascii_uppercase()[..] {
            b"EXAT" => Some(1000),
            b"PXAT" => Some(1),
            _ => None,
        };
        if let Some(unit_ms) = deadline_unit_ms.filter(|_| name == b"MSETEX")
            && values::lies_past(&words[i], unit_ms)
        {
            words[i] = (values::YEAR_2100_MS / unit_ms).to_string().into_bytes();
        }
        if allocates && allocating(&words[i]) {
            words[i] = b"100".to_vec();
        }
        if draws && drawing_for_long(&words[i]) {
            words[i] = b"-20".to_vec();
        }
    }
}

/// The end of a BITFIELD that may refuse steps: when it refuses all of them, a string that it has made longer counts as
/// changed for WATCH in Onggi, and not in Valkey.
fn step_that_succeeds() -> [Vec<u8>; 4] {
    ["INCRBY", "i64", "0", "0"].map(|word| word.as_bytes().to_vec())
}

/// Whether a request is safe to repeat on every server at the same time.
pub fn is_tame(arguments: &[Argument]) -> bool {
    let bytes = |argument: &Argument| match argument {
        Argument::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    };
    let words: Vec<Vec<u8>> = arguments.iter().filter_map(bytes).collect();
    let mut tamed = words.clone();
    // What is drawn in place of a word does not matter here.
    tame(&mut Rng::new(0), &mut tamed);
    words == tamed
}

fn allocating(argument: &[u8]) -> bool {
    let text = std::str::from_utf8(argument).ok().map(|text| text.trim_start_matches('#'));
    let number = text.and_then(|text| text.parse::<u64>().ok());
    number.is_some_and(|number| {
        let field_limit = if argument.starts_with(b"#") { number.saturating_mul(64) } else { number };
        field_limit > OFFSET_HARMLESS_MAX && number < OFFSET_REFUSED
    })
}

/// Elements drawn with repetition at most: Valkey draws as many as it is asked for before it looks at anything else.
const DRAWN_MAX: i64 = 1000;

/// Whether it is a count of this many elements drawn with repetition; the least integer is refused.
fn drawing_for_long(argument: &[u8]) -> bool {
    let number = std::str::from_utf8(argument).ok().and_then(|text| text.parse::<i64>().ok());
    number.is_some_and(|number| number < -DRAWN_MAX && number != i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar;

    fn lines(seed: u64, length: usize) -> Vec<String> {
        let generator = Generator::new(&grammar::load(&[]).expect("the grammars parse"), false);
        generator.sequence(&mut Rng::new(seed), length).iter().map(Step::to_string).collect()
    }

    #[test]
    fn a_seed_repeats_and_another_differs() {
        assert_eq!(lines(1, 500), lines(1, 500));
        assert_ne!(lines(1, 500), lines(2, 500));
    }

    /// G2 over many bent requests.
    #[test]
    fn nothing_passes_or_allocates() {
        let generator = Generator::new(&grammar::load(&[]).expect("the grammars parse"), false);
        let mut rng = Rng::new(3);
        for _ in 0..50_000 {
            let words = generator.request(&mut rng);
            let name = words[0].to_ascii_uppercase();
            if name == b"PSETEX" && words.len() > 2 {
                assert!(!values::passes_soon(&words[2], 1), "{words:?}");
            }
            if name == b"MSETEX" {
                let past = |pair: &[Vec<u8>]| pair[0].eq_ignore_ascii_case(b"PXAT") && values::lies_past(&pair[1], 1);
                assert!(!words.windows(2).any(past), "{words:?}");
            }
            if name == b"SETBIT" {
                assert!(words.iter().all(|word| !allocating(word)), "{words:?}");
            }
            if name == b"HRANDFIELD" {
                assert!(words.iter().all(|word| !drawing_for_long(word)), "{words:?}");
            }
        }
    }

    #[test]
    fn rules_that_redis_lacks_are_left_out_for_it() {
        let rules = grammar::load(&[]).expect("the grammars parse");
        let generator = Generator::new(&rules, true);
        let mut rng = Rng::new(4);
        assert!((0..20_000).all(|_| !generator.request(&mut rng)[0].eq_ignore_ascii_case(b"DELIFEQ")));
    }
}
