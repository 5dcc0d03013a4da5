//! Glob patterns: the pattern up to the first zero byte, then the text. The matcher agrees with a model that fills a
//! table, and takes no more steps than the table has cells.
#![no_main]

use base::glob;
use libfuzzer_sys::fuzz_target;
use std::time::{Duration, Instant};

/// A step takes a few nanoseconds; this is a hundred times as much, because other processes run too.
const STEP_MAX: Duration = Duration::from_nanos(500);

fuzz_target!(|input: &[u8]| {
    let Some(end) = input.iter().position(|byte| *byte == 0) else { return };
    let (pattern, text) = (&input[..end], &input[end + 1..]);
    let start = Instant::now();
    let matched = glob::matches(pattern, text);
    let took = start.elapsed();
    let steps = (pattern.len() + 1) * (text.len() + 1);
    assert!(took < Duration::from_millis(100) + STEP_MAX * steps as u32, "{took:?} for {steps} steps");
    assert_eq!(matched, model(pattern, text, |byte| byte));
    assert_eq!(glob::matches_ignore_case(pattern, text), model(pattern, text, |byte| byte.to_ascii_lowercase()));
});

enum Token {
    /// `*`
    Any,
    /// One byte of this set.
    One(Box<[bool; 256]>),
}

/// Whether `pattern` matches, by a table over all tokens and all positions of the text.
fn model(pattern: &[u8], text: &[u8], fold: impl Fn(u8) -> u8) -> bool {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for token in tokens(pattern, &fold) {
        let mut next = vec![false; text.len() + 1];
        match token {
            Token::Any => {
                let first = reached.iter().position(|here| *here).unwrap_or(reached.len());
                next.iter_mut().skip(first).for_each(|here| *here = true);
            }
            Token::One(set) => {
                for (at, byte) in text.iter().enumerate() {
                    next[at + 1] = reached[at] && set[usize::from(fold(*byte))];
                }
            }
        }
        reached = next;
    }
    reached[text.len()]
}

/// The pattern as Redis reads it.
fn tokens(pattern: &[u8], fold: &impl Fn(u8) -> u8) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some((first, tail)) = rest.split_first() {
        let mut set = Box::new([false; 256]);
        rest = tail;
        match (*first, tail) {
            (b'*', _) => {
                tokens.push(Token::Any);
                continue;
            }
            (b'?', _) => set.fill(true),
            (b'[', _) => {
                let inverted = rest.first() == Some(&b'^');
                rest = &rest[usize::from(inverted)..];
                rest = class(rest, &mut set, fold);
                if inverted {
                    set.iter_mut().for_each(|member| *member = !*member);
                }
            }
            (b'\\', [escaped, tail @ ..]) => {
                set[usize::from(fold(*escaped))] = true;
                rest = tail;
            }
            (byte, _) => set[usize::from(fold(byte))] = true,
        }
        tokens.push(Token::One(set));
    }
    tokens
}

/// Reads the members of a class and returns what follows its end.
fn class<'a>(mut rest: &'a [u8], set: &mut [bool; 256], fold: &impl Fn(u8) -> u8) -> &'a [u8] {
    loop {
        match rest {
            [] => return rest,
            [b'\\', escaped, tail @ ..] => {
                set[usize::from(fold(*escaped))] = true;
                rest = tail;
            }
            [b']', tail @ ..] => return tail,
            [from, b'-', to, tail @ ..] => {
                // // Order the bounds before case is folded, so that `[a-Z]` is empty when case is ignored.
                let (from, to) = (fold(*from.min(to)), fold(*from.max(to)));
                (from..=to).for_each(|byte| set[usize::from(byte)] = true);
                rest = tail;
            }
            [byte, tail @ ..] => {
                set[usize::from(fold(*byte))] = true;
                rest = tail;
            }
        }
    }
}
