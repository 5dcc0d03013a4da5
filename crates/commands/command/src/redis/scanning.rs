//! What SCAN, SSCAN, HSCAN and ZSCAN share: cursor, options, reply.

use crate::Ctx;
use crate::error::{self, Stop};
use crate::limits::PATTERN_BYTES_MAX;
use base::glob;
use proto::ReplyBuffer;

/// Types by their names, as options and replies have them, in any case.
const TYPE_NAMES: [&str; 7] = ["string", "list", "set", "zset", "hash", "stream", "btree"];

/// The most elements visited by a call, whatever COUNT asks for: it is a hint, and the cursor continues.
const COUNT_MAX: u64 = 4096;

/// What is walked over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    Keys,
    Set,
    Hash,
    Zset,
}

/// The options.
pub(super) struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
    /// COUNT: about how many elements to visit.
    pub(super) count: u64,
    /// NOVALUES or NOSCORES: fields or members alone.
    pub(super) is_bare: bool,
}

impl<'a> ScanOptions<'a> {
    /// Those in the arguments from `from` on.
    pub(super) fn parse(ctx: &Ctx<'a>, from: usize, scanned: Scanned) -> Result<Self, Stop> {
        let mut options = Self { pattern: None, kind: None, count: 10, is_bare: false };
        let mut at = from;
        while at < ctx.args.len() {
            let value = at.saturating_add(1);
            match ctx.args.bytes(value) {
                _ if ctx.is_word(at, "novalues") => {
                    if scanned != Scanned::Hash {
                        return Err(Stop::error("ERR NOVALUES option can only be used in HSCAN"));
                    }
                    options.is_bare = true;
                    at = value;
                    continue;
                }
                _ if ctx.is_word(at, "noscores") => {
                    if scanned != Scanned::Zset {
                        return Err(Stop::error("ERR NOSCORES option can only be used in ZSCAN"));
                    }
                    options.is_bare = true;
                    at = value;
                    continue;
                }
                Some(_) if ctx.is_word(at, "count") => {
                    let count = ctx.integer(value)?;
                    let count = u64::try_from(count).ok().filter(|count| *count > 0).ok_or(error::SYNTAX)?;
                    options.count = count.min(COUNT_MAX);
                }
                Some(pattern) if ctx.is_word(at, "match") => {
                    check_pattern(pattern)?;
                    options.pattern = Some(pattern);
                }
                Some(kind) if scanned == Scanned::Keys && ctx.is_word(at, "type") => {
                    if !TYPE_NAMES.iter().any(|name| kind.eq_ignore_ascii_case(name.as_bytes())) {
                        return Err(error::repeating("ERR unknown type name '", kind, "'"));
                    }
                    options.kind = Some(kind);
                }
                _ => return Err(error::SYNTAX),
            }
            at = value.saturating_add(1);
        }
        Ok(options)
    }

    /// Whether the options ask for this key, field or member.
    pub(super) fn wants(&self, element: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| matches(pattern, element))
    }

    /// What all elements begin with that the options ask for.
    pub(super) fn prefix(&self) -> &[u8] {
        let pattern = self.pattern.unwrap_or_default();
        let len = pattern.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(pattern.len());
        pattern.get(..len).unwrap_or_default()
    }

    /// Whether they ask for keys of the type with this name.
    pub(super) fn wants_type(&self, name: &str) -> bool {
        self.kind.is_none_or(|kind| kind.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// What a step has found. The cursor comes before it in the reply, so it is kept until that is known.
#[derive(Default)]
pub(super) struct Found {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Found {
    /// Adds an element; fields and their values, members and their scores, one after the other.
    pub(super) fn push(&mut self, element: &[u8]) {
        self.bytes.extend_from_slice(element);
        self.ends.push(self.bytes.len());
    }

    /// Writes the reply.
    pub(super) fn reply(&self, next: u64, reply: &mut ReplyBuffer) {
        reply.array(2);
        reply.bulk(next.to_string().as_bytes());
        reply.array(self.ends.len());
        let mut start = 0;
        for end in &self.ends {
            reply.bulk(self.bytes.get(start..*end).unwrap_or_default());
            start = *end;
        }
    }
}

/// The cursor in the argument at `index`.
///
/// It is read as C's `strtoull` does, which is what clients of Redis may send: blanks and a sign before the digits are
/// taken, and a minus counts from the top; only the canonical text of a negative number is refused. A zero byte ends
/// it.
pub(super) fn cursor(ctx: &Ctx<'_>, index: usize) -> Result<u64, Stop> {
    parse_cursor(&ctx.args[index]).ok_or(Stop::error("ERR invalid cursor"))
}

fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = error::up_to_zero(text);
    if let Some(number) = types::string::parse_integer(text) {
        return u64::try_from(number).ok();
    }
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let (negative, digits) = match text.get(blanks..)? {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative { number.wrapping_neg() } else { number })
}

/// Whether the element matches. Of patterns made of stars only `*` itself matches the empty one, as in Redis.
pub(super) fn matches(pattern: &[u8], element: &[u8]) -> bool {
    if element.is_empty() { matches!(pattern, b"" | b"*") } else { glob::matches(pattern, element) }
}

/// Refuses patterns that would take too long.
pub(super) fn check_pattern(pattern: &[u8]) -> Result<(), Stop> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(Stop::error_with(format!("ERR pattern is longer than {PATTERN_BYTES_MAX} bytes")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_like_strtoull() {
        for (text, expected) in [
            ("0", Some(0)),
            ("00", Some(0)),
            ("+0", Some(0)),
            (" 17", Some(17)),
            ("18446744073709551615", Some(u64::MAX)),
            (" -5", Some(u64::MAX - 4)),
            ("-00", Some(0)),
            ("1\x002", Some(1)),
            ("\x001", None),
            ("-5", None),
            ("-1", None),
            ("18446744073709551616", None),
            ("", None),
            (" ", None),
            ("+", None),
            ("+-1", None),
            ("0 ", None),
            ("0x10", None),
            ("abc", None),
        ] {
            assert_eq!(parse_cursor(text.as_bytes()), expected, "{text:?}");
        }
    }
}
