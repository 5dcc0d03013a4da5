//! Over all keys of a database.

use crate::error::{self, Stop};
use crate::limits::PATTERN_BYTES_MAX;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, Locks, Run};
use base::glob;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&SCAN, &KEYS, &RANDOMKEY];

/// Types by their names, as options and replies have them, in any case.
const TYPE_NAMES: [&str; 6] = ["string", "list", "set", "zset", "hash", "stream"];

static SCAN: CommandSpec = CommandSpec {
    name: "scan",
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[],
    locks: Locks::Cursor(1),
    docs: &Docs {
        summary: "Walks over the keys of the database, a part at each call.",
        since: "2.8.0",
        group: "generic",
        complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
        history: &[("6.0.0", "Takes `TYPE`.")],
        tips: &["nondeterministic_output", "request_policy:special", "response_policy:special"],
        arguments: &[
            Argument::integer("cursor"),
            Argument::pattern("pattern").after("MATCH").optional(),
            Argument::integer("count").after("COUNT").optional(),
            Argument::string("type").after("TYPE").since("6.0.0").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(scan),
};

/// SCAN's options.
struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    entries: u64,
    kind: Option<&'a [u8]>,
}

fn scan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let cursor = parse_cursor(&ctx.args[1]).ok_or(Stop::error("ERR invalid cursor"))?;
    let options = ScanOptions::parse(ctx)?;
    // The cursor comes before the keys, so they are kept until it is known.
    let mut keys = Vec::new();
    let mut ends = Vec::new();
    let next = types::walk::scan(ctx.ks, cursor, options.entries, &mut |entry| {
        if options.pattern.is_none_or(|pattern| matches(pattern, entry.key))
            && options.kind.is_none_or(|kind| kind.eq_ignore_ascii_case(entry.kind.name().as_bytes()))
        {
            keys.extend_from_slice(entry.key);
            ends.push(keys.len());
        }
    });
    ctx.reply.array(2);
    ctx.reply.bulk(next.to_string().as_bytes());
    ctx.reply.array(ends.len());
    let mut start = 0;
    for end in ends {
        ctx.reply.bulk(keys.get(start..end).unwrap_or_default());
        start = end;
    }
    Ok(())
}

impl<'a> ScanOptions<'a> {
    fn parse(ctx: &Ctx<'a>) -> Result<Self, Stop> {
        let mut options = Self { pattern: None, entries: 10, kind: None };
        let mut at = 2;
        while at < ctx.args.len() {
            let value = at.saturating_add(1);
            match ctx.args.bytes(value) {
                _ if ctx.is_word(at, "novalues") => {
                    return Err(Stop::error("ERR NOVALUES option can only be used in HSCAN"));
                }
                _ if ctx.is_word(at, "noscores") => {
                    return Err(Stop::error("ERR NOSCORES option can only be used in ZSCAN"));
                }
                Some(_) if ctx.is_word(at, "count") => {
                    let count = ctx.integer(value)?;
                    options.entries = u64::try_from(count).ok().filter(|count| *count > 0).ok_or(error::SYNTAX)?;
                }
                Some(pattern) if ctx.is_word(at, "match") => {
                    check_pattern(pattern)?;
                    options.pattern = Some(pattern);
                }
                Some(kind) if ctx.is_word(at, "type") => {
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
}

/// A cursor as C's `strtoull` reads it, which is what clients of Redis may send: blanks and a sign before the digits are
/// taken, and a minus counts from the top; only the canonical text of a negative number is refused. A zero byte ends it.
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

/// Whether the key matches. Of patterns made of stars only `*` itself matches the empty key, as in Redis.
fn matches(pattern: &[u8], key: &[u8]) -> bool {
    if key.is_empty() { matches!(pattern, b"" | b"*") } else { glob::matches(pattern, key) }
}

fn check_pattern(pattern: &[u8]) -> Result<(), Stop> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(Stop::error_with(format!("ERR pattern is longer than {PATTERN_BYTES_MAX} bytes")));
    }
    Ok(())
}

static KEYS: CommandSpec = CommandSpec {
    name: "keys",
    arity: 2,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
    keys: &[],
    locks: Locks::Each,
    docs: &Docs {
        summary: "Lists every key that matches a pattern.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(N) with N being the number of keys in the database, under the assumption that the key names in the database and the given pattern have limited length.",
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        arguments: &[Argument::pattern("pattern")],
        ..Docs::NONE
    },
    run: Run::Call(keys),
};

fn keys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let pattern = &ctx.args[1];
    check_pattern(pattern)?;
    let reply = &mut *ctx.reply;
    let (open, mut found, mut fits) = (reply.begin_array(), 0usize, Ok(()));
    types::walk::all(ctx.ks, &mut |entry| {
        if fits.is_ok() && matches(pattern, entry.key) {
            reply.bulk(entry.key);
            found = found.saturating_add(1);
            fits = error::check_reply(reply);
        }
    });
    reply.end(open, found);
    fits
}

static RANDOMKEY: CommandSpec = CommandSpec {
    name: "randomkey",
    arity: 1,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[],
    locks: Locks::All,
    docs: &Docs {
        summary: "Gives some key of the database.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"],
        ..Docs::NONE
    },
    run: Run::Call(randomkey),
};

fn randomkey(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let reply = &mut *ctx.reply;
    if !types::walk::random_key(ctx.ks, &mut |key| reply.bulk(key)) {
        reply.null();
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
