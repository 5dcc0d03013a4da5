//! `scan key` and `scan prefix`: the keys of the database, or their prefixes, a part with each call.

use super::prefix;
use crate::listing::{TYPES, letter_of, seconds_left};
use crate::prefixes::Page;
use base::glob;
use command::{Ctx, Stop};
use engine::Type;
use proto::memcached::parse_unsigned;

const BAD_FORMAT: Stop = Stop::error("CLIENT_ERROR bad command line format");
const BAD_CURSOR: Stop = Stop::error("CLIENT_ERROR bad cursor value");
const INVALID_CURSOR: Stop = Stop::error("CLIENT_ERROR invalid cursor.");
const BAD_COUNT: Stop = Stop::error("CLIENT_ERROR bad count value");
const BAD_PATTERN: Stop = Stop::error("CLIENT_ERROR bad pattern string");
const BAD_TYPE: Stop = Stop::error("CLIENT_ERROR bad item type");

const COUNT_DEFAULT: u64 = 20;
const COUNT_MAX: u64 = 2000;
const CURSOR_BYTES_MAX: usize = 31;
const PATTERN_BYTES_MAX: usize = 64;
const STARS_MAX: usize = 4;

/// What is asked for.
#[derive(Debug, PartialEq)]
struct Options {
    count: u64,
    /// As a glob of Redis.
    pattern: Option<Vec<u8>>,
    kind: Option<Type>,
}

impl Options {
    fn parse(words: &[&[u8]]) -> Result<Self, Stop> {
        let mut options = Self { count: COUNT_DEFAULT, pattern: None, kind: None };
        for pair in words.chunks(2) {
            match *pair {
                [b"count", count] => {
                    let count = parse_unsigned(count).filter(|count| (1..=COUNT_MAX).contains(count));
                    options.count = count.ok_or(BAD_COUNT)?;
                }
                [b"match", pattern] => options.pattern = Some(glob_of(pattern).ok_or(BAD_PATTERN)?),
                [b"type", b"A"] => options.kind = None,
                [b"type", &[letter]] => {
                    let found = TYPES.iter().find(|(of, _)| *of == letter);
                    options.kind = Some(found.ok_or(BAD_TYPE)?.1);
                }
                [b"type", _] => return Err(BAD_TYPE),
                _ => return Err(BAD_FORMAT),
            }
        }
        Ok(options)
    }
}

/// The glob that matches as this pattern does, in which brackets are nothing special. `None` when it is none.
fn glob_of(pattern: &[u8]) -> Option<Vec<u8>> {
    let (mut glob, mut stars, mut bytes) = (Vec::new(), 0usize, pattern.iter().copied());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => glob.extend([b'\\', bytes.next().filter(|escaped| b"*?\\".contains(escaped))?]),
            b'[' => glob.extend(*b"\\["),
            _ => glob.push(byte),
        }
        stars = stars.saturating_add(usize::from(byte == b'*'));
    }
    (pattern.len() <= PATTERN_BYTES_MAX && stars <= STARS_MAX).then_some(glob)
}

fn cursor(ctx: &Ctx<'_>) -> Result<u64, Stop> {
    let cursor = ctx.args.bytes(2).ok_or(BAD_FORMAT)?;
    if cursor.len() > CURSOR_BYTES_MAX || !cursor.iter().all(u8::is_ascii_digit) {
        return Err(BAD_CURSOR);
    }
    parse_unsigned(cursor).ok_or(INVALID_CURSOR)
}

/// `scan prefix cursor [count n] [match pattern]`
pub fn prefixes(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let cursor = cursor(ctx)?;
    let words: Vec<&[u8]> = ctx.args.from(3).collect();
    let options = Options::parse(&words)?;
    if words.iter().step_by(2).any(|word| *word == b"type") {
        return Err(BAD_FORMAT);
    }
    // At most 2000.
    let count = options.count as usize;
    prefix::scan(ctx, Page { cursor, count, pattern: options.pattern })
}

/// `scan key cursor [count n] [match pattern] [type letter]`
pub fn keys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let cursor = cursor(ctx)?;
    let words: Vec<&[u8]> = ctx.args.from(3).collect();
    let options = Options::parse(&words)?;
    let (now, mut lines) = (ctx.now(), Vec::new());
    let next = types::walk::scan(ctx.ks, cursor, options.count, &mut |entry| {
        let Some(letter) = letter_of(entry.kind) else { return };
        let is_wanted = options.kind.is_none_or(|kind| kind == entry.kind)
            && options.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, entry.key));
        if is_wanted {
            let left = seconds_left(entry, now).to_string();
            lines.push([entry.key, &[b' ', letter, b' '], left.as_bytes()].concat());
        }
    });
    ctx.reply.text_line(&format!("KEYS {} {next}", lines.len()));
    lines.iter().for_each(|line| ctx.reply.raw_line(line));
    ctx.reply.text_line("END");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_stars_and_question_marks() {
        assert_eq!(glob_of(b"a*b?[c\\*"), Some(b"a*b?\\[c\\*".to_vec()));
        for pattern in [&b"\\"[..], b"\\a", b"*****", &[b'a'; 65]] {
            assert_eq!(glob_of(pattern), None, "{pattern:?}");
        }
        assert_eq!(glob_of(b"\\*****"), Some(b"\\*****".to_vec()));
    }

    #[test]
    fn options_come_in_any_order() {
        let words: [&[u8]; 6] = [b"type", b"B", b"count", b"7", b"match", b"x"];
        let expected = Options { count: 7, pattern: Some(b"x".to_vec()), kind: Some(Type::Btree) };
        assert_eq!(Options::parse(&words).ok(), Some(expected));
        for words in [&[&b"count"[..], b"0"][..], &[b"count", b"2001"], &[b"type", b"X"], &[b"type"], &[b"other", b"1"]]
        {
            assert!(Options::parse(words).is_err(), "{words:?}");
        }
    }
}
