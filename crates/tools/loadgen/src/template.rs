//! Command templates: `HSET {key} {field:20} {value}`, compiled once into pieces that are copied into requests.
//!
//! An argument of known length is part of a request image, with its frame. So encoding copies the image and fills in
//! the digits of its numbers. Only `{value}` and `{int:MAX}` without a width vary in length. They must be whole
//! arguments: they end an image and begin another.

use crate::error::{BenchError, Result};
use crate::keys::KeyStream;
use crate::payload::Payload;
use crate::resp::{decimal, write_array_header, write_bulk};
use base::random::Rng;
use std::sync::atomic::{AtomicU64, Ordering};

/// The placeholders, for `--help` and error texts.
pub const PLACEHOLDERS: &str = "{key} a key by the key distribution; {newkey} the next key not yet written; \
    {id:W} a key number padded to W digits; {value} a value; {int:MAX} or {int:MAX:W} a random integer below MAX; \
    {field:N:W} one of N field numbers; {{ and }} literal braces";

/// The prefix of all keys of named tests and suites, which distinguishes them from other keys of a server.
pub const KEY_PREFIX: &str = "bench:";

/// How keys are spelled: the prefix, then the key number with leading zeros up to the size.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KeyFormat {
    /// What every key starts with.
    pub prefix: String,
    /// Length of every key in bytes.
    pub size: usize,
}

impl Default for KeyFormat {
    fn default() -> Self {
        Self { prefix: KEY_PREFIX.to_owned(), size: 16 }
    }
}

impl KeyFormat {
    fn digits(&self) -> usize {
        self.size.saturating_sub(self.prefix.len())
    }

    /// # Errors
    /// When `count` keys do not fit into the digits left by the prefix.
    pub fn check(&self, count: u64) -> Result<()> {
        let needed = count.saturating_sub(1).max(1).ilog10() as usize + 1;
        if self.digits() < needed {
            return Err(BenchError::Usage(format!(
                "{count} keys need {needed} digits, but a key of {} bytes leaves {} after the prefix `{}`",
                self.size,
                self.digits(),
                self.prefix
            )));
        }
        Ok(())
    }
}

/// A compiled command.
#[derive(Clone, Debug)]
pub struct Template {
    text: String,
    stretches: Vec<Stretch>,
}

/// A part of a request.
#[derive(Clone, Debug)]
enum Stretch {
    /// Wire bytes with frames, and the numbers to write into them, in order.
    Image { bytes: Vec<u8>, numbers: Vec<Number> },
    /// A random integer below `max`, framed as an argument of its own length.
    IntArgument { max: u64 },
    /// A value, framed in the pool.
    Value,
    /// The same without the `$` in front.
    MemcachedValue,
}

/// A number in an image, which has zeros in its place.
#[derive(Clone, Debug)]
struct Number {
    place: std::ops::Range<usize>,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Key,
    NewKey,
    Field { count: u64 },
    Int { max: u64 },
}

/// A part of a word during compilation.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// Bytes as they are.
    Literal(Vec<u8>),
    /// A key number, padded.
    Key { width: usize },
    /// The number of a key that does not exist yet, padded.
    NewKey { width: usize },
    /// A field number below `count`, padded.
    Field { count: u64, width: usize },
    /// A random integer below `max`, padded.
    Int { max: u64, width: usize },
    /// A random integer below `max`, framed as an argument of its own length.
    IntArgument { max: u64 },
    /// A value, framed in the pool.
    Value,
    /// The same without the leading `$`, as memcached has it at the end of `set`.
    MemcachedValue,
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP.
    #[default]
    Resp,
    /// The text protocol of memcached, as ARCUS speaks it: `SET {key} {value}` and `GET {key}` only.
    Memcached,
}

/// The sources of the placeholders' values for one request.
pub struct Draw<'a> {
    /// The connection's own generator.
    pub rng: &'a mut Rng,
    /// The keys of the run.
    pub keys: &'a KeyStream,
    /// Keys `0..count` existed at the beginning of the run.
    pub key_count: u64,
    /// Keys that exist now: `{newkey}` raises it. Shared by all threads of a run; a plain counter, so relaxed.
    pub newest: &'a AtomicU64,
    /// Values to send.
    pub payload: &'a Payload,
    /// Number of this request in the whole run.
    pub op: u64,
    /// Walk the fields in order, one round over all keys for each, instead of drawing them.
    pub ordered_fields: bool,
    /// Use this key instead of a drawn one: a cache is filled with the missed key.
    pub given_key: Option<u64>,
}

/// The contents of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The last key number drawn.
    pub key: u64,
    /// Bytes of all values in it, frames not counted.
    pub value_bytes: u64,
}

impl Template {
    /// Compiles `text`: words split as in a shell, placeholders as in [`PLACEHOLDERS`].
    ///
    /// # Errors
    /// A text without a word, unbalanced quotes or braces, an unknown placeholder, or a variable one inside a word.
    pub fn new(text: &str, keys: &KeyFormat) -> Result<Self> {
        let bad = |why: String| BenchError::Usage(format!("command `{text}`: {why}"));
        let words = shell_words::split(text).map_err(|error| bad(error.to_string()))?;
        if words.is_empty() {
            return Err(bad("no command in it".to_owned()));
        }
        let mut wire = Vec::new();
        write_array_header(&mut wire, words.len());
        let mut pieces = vec![Piece::Literal(wire)];
        for word in &words {
            push_argument(&mut pieces, parse_word(word, keys).map_err(bad)?).map_err(bad)?;
        }
        Ok(Self { text: text.to_owned(), stretches: compile(pieces) })
    }

    /// Compiles `text` for what a server speaks.
    ///
    /// # Errors
    /// As [`Self::new`]; and for a command that has no form in memcached's protocol.
    pub fn for_protocol(text: &str, keys: &KeyFormat, protocol: Protocol) -> Result<Self> {
        if protocol == Protocol::Resp {
            return Self::new(text, keys);
        }
        let literal = |text: &str| Piece::Literal(text.as_bytes().to_vec());
        let key = Piece::Key { width: keys.digits() };
        let pieces = match text {
            "SET {key} {value}" => {
                vec![literal("set "), literal(&keys.prefix), key, literal(" 0 0 "), Piece::MemcachedValue]
            }
            "GET {key}" => vec![literal("get "), literal(&keys.prefix), key, literal("\r\n")],
            _ => return Err(BenchError::Usage(format!("command `{text}`: it has no form in memcached's protocol"))),
        };
        Ok(Self { text: text.to_owned(), stretches: compile(pieces) })
    }

    /// The text it was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Appends one request.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>, draw: &mut Draw<'_>) -> Encoded {
        let mut made = Encoded::default();
        for stretch in &self.stretches {
            match stretch {
                Stretch::Image { bytes, numbers } => {
                    let start = out.len();
                    out.extend_from_slice(bytes);
                    let image = &mut out[start..];
                    for Number { place, source } in numbers {
                        write_digits(&mut image[place.clone()], source.draw(draw, &mut made));
                    }
                }
                Stretch::IntArgument { max } => {
                    let mut digits = [0; 20];
                    let start = decimal(draw.rng.below(*max), &mut digits);
                    write_bulk(out, &digits[start..]);
                }
                Stretch::Value => {
                    let (framed, bytes) = draw.payload.draw(draw.rng);
                    out.extend_from_slice(framed);
                    made.value_bytes += bytes as u64;
                }
                Stretch::MemcachedValue => {
                    let (framed, bytes) = draw.payload.draw(draw.rng);
                    // `$5\r\nvalue\r\n`: what follows the sign is the length and the data block of `set`.
                    out.extend_from_slice(&framed[1..]);
                    made.value_bytes += bytes as u64;
                }
            }
        }
        made
    }
}

impl Source {
    #[inline]
    fn draw(self, draw: &mut Draw<'_>, made: &mut Encoded) -> u64 {
        match self {
            Self::Key => {
                // The newest key matters to one distribution only; the others must not share this cache line.
                let newest = draw.newest.load(Ordering::Relaxed);
                made.key = draw.given_key.unwrap_or_else(|| draw.keys.draw(draw.rng, draw.op, newest));
                made.key
            }
            Self::NewKey => {
                made.key = draw.newest.fetch_add(1, Ordering::Relaxed);
                made.key
            }
            Self::Field { count } if draw.ordered_fields => draw.op / draw.key_count % count,
            Self::Field { count } => draw.rng.below(count),
            Self::Int { max } => draw.rng.below(max),
        }
    }
}

/// One word of a command: literal text and placeholders, not framed yet.
fn parse_word(word: &str, keys: &KeyFormat) -> std::result::Result<Vec<Piece>, String> {
    let mut parts = Vec::new();
    let mut literal = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        literal.extend_from_slice(&rest.as_bytes()[..at]);
        let brace = &rest[at..];
        if brace.starts_with("{{") || brace.starts_with("}}") {
            literal.push(brace.as_bytes()[0]);
            rest = &brace[2..];
            continue;
        }
        let end = brace.find('}').filter(|&end| end > 0).ok_or("a brace without its other half")?;
        let (prefix, piece) = parse_placeholder(&brace[1..end], keys)?;
        literal.extend_from_slice(prefix.as_bytes());
        if !literal.is_empty() {
            parts.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        parts.push(piece);
        rest = &brace[end + 1..];
    }
    literal.extend_from_slice(rest.as_bytes());
    if !literal.is_empty() || parts.is_empty() {
        parts.push(Piece::Literal(literal));
    }
    Ok(parts)
}

/// The text between braces, as the literal in front and the piece itself.
fn parse_placeholder<'k>(text: &str, keys: &'k KeyFormat) -> std::result::Result<(&'k str, Piece), String> {
    let mut fields = text.split(':');
    let name = fields.next().unwrap_or_default();
    let mut number = |what: &str| -> std::result::Result<Option<u64>, String> {
        let Some(field) = fields.next() else { return Ok(None) };
        let n = field.parse::<u64>().ok().filter(|&n| n > 0);
        n.map(Some).ok_or_else(|| format!("{{{text}}}: {what} must be a positive integer"))
    };
    let width_of = |max: u64| max.saturating_sub(1).max(1).ilog10() as usize + 1;
    let (prefix, piece) = match name {
        "key" => (keys.prefix.as_str(), Piece::Key { width: keys.digits() }),
        "newkey" => (keys.prefix.as_str(), Piece::NewKey { width: keys.digits() }),
        "id" => ("", Piece::Key { width: number("width")?.unwrap_or(12).min(20) as usize }),
        "value" => ("", Piece::Value),
        "field" => {
            let count = number("count")?.unwrap_or(20);
            let width = number("width")?.map_or(width_of(count), |width| width.min(20) as usize);
            ("", Piece::Field { count, width })
        }
        "int" => {
            let max = number("bound")?.unwrap_or(1 << 31);
            match number("width")? {
                Some(width) => ("", Piece::Int { max, width: width.min(20) as usize }),
                None => ("", Piece::IntArgument { max }),
            }
        }
        _ => return Err(format!("unknown placeholder {{{text}}}; known: {PLACEHOLDERS}")),
    };
    match number("field")? {
        None => Ok((prefix, piece)),
        Some(_) => Err(format!("{{{text}}}: too many fields")),
    }
}

/// Frames one argument and appends its pieces.
fn push_argument(pieces: &mut Vec<Piece>, parts: Vec<Piece>) -> std::result::Result<(), String> {
    if let [Piece::Value | Piece::IntArgument { .. }] = parts[..] {
        pieces.extend(parts);
        return Ok(());
    }
    let mut length = 0;
    for part in &parts {
        length += match part {
            Piece::Literal(bytes) => bytes.len(),
            Piece::Key { width } | Piece::NewKey { width } => *width,
            Piece::Field { width, .. } | Piece::Int { width, .. } => *width,
            Piece::Value | Piece::MemcachedValue => return Err("{value} must be an argument of its own".to_owned()),
            Piece::IntArgument { .. } => {
                return Err("{int:MAX} inside an argument needs a width: {int:MAX:W}".to_owned());
            }
        };
    }
    pieces.push(Piece::Literal(format!("${length}\r\n").into_bytes()));
    pieces.extend(parts);
    pieces.push(Piece::Literal(b"\r\n".to_vec()));
    Ok(())
}

/// Joins neighbours of fixed length to images.
fn compile(pieces: Vec<Piece>) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
    for piece in pieces {
        let (source, width) = match piece {
            Piece::Literal(literal) => {
                bytes.extend_from_slice(&literal);
                continue;
            }
            Piece::Key { width } => (Source::Key, width),
            Piece::NewKey { width } => (Source::NewKey, width),
            Piece::Field { count, width } => (Source::Field { count }, width),
            Piece::Int { max, width } => (Source::Int { max }, width),
            Piece::IntArgument { .. } | Piece::Value | Piece::MemcachedValue => {
                let (bytes, numbers) = (std::mem::take(&mut bytes), std::mem::take(&mut numbers));
                stretches.push(Stretch::Image { bytes, numbers });
                stretches.push(match piece {
                    Piece::IntArgument { max } => Stretch::IntArgument { max },
                    Piece::MemcachedValue => Stretch::MemcachedValue,
                    _ => Stretch::Value,
                });
                continue;
            }
        };
        numbers.push(Number { place: bytes.len()..bytes.len() + width, source });
        bytes.resize(bytes.len() + width, b'0');
    }
    if !bytes.is_empty() {
        stretches.push(Stretch::Image { bytes, numbers });
    }
    stretches
}

/// Writes a number over zeros; the highest digits are dropped where it has more.
#[inline]
fn write_digits(zeros: &mut [u8], mut n: u64) {
    for digit in zeros.iter_mut().rev() {
        if n == 0 {
            return;
        }
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Distribution;
    use crate::payload::{Content, Size};

    fn encode(text: &str, ops: std::ops::Range<u64>) -> Vec<String> {
        encode_for(Protocol::Resp, text, ops)
    }

    fn encode_for(protocol: Protocol, text: &str, ops: std::ops::Range<u64>) -> Vec<String> {
        let keys = KeyStream::new(Distribution::Sequential, 10, 1);
        let payload = Payload::new(&Content::Constant, Size::exactly(3), 1).unwrap();
        let (newest, mut rng) = (AtomicU64::new(10), Rng::new(1));
        let template = Template::for_protocol(text, &KeyFormat::default(), protocol).unwrap();
        ops.map(|op| {
            let mut out = Vec::new();
            let draw = &mut Draw {
                rng: &mut rng,
                keys: &keys,
                key_count: 10,
                newest: &newest,
                payload: &payload,
                op,
                ordered_fields: true,
                given_key: None,
            };
            template.encode(&mut out, draw);
            String::from_utf8(out).unwrap().replace("\r\n", " ")
        })
        .collect()
    }

    #[test]
    fn commands_are_framed_with_their_placeholders() {
        assert_eq!(encode("SET {key} {value} EX 10", 7..8), ["*5 $3 SET $16 bench:0000000007 $3 xxx $2 EX $2 10 "],);
        assert_eq!(encode("HSET h:{id:4} f{field:20:3} {value}", 37..38), ["*4 $4 HSET $6 h:0007 $4 f003 $3 xxx "]);
        assert_eq!(encode("SET {newkey} ''", 0..2)[1], "*3 $3 SET $16 bench:0000000011 $0  ");
        assert_eq!(encode("ECHO {{\"a b\"}}", 0..1), ["*2 $4 ECHO $5 {a b} "]);
        assert_eq!(encode("EXPIRE {key} {int:1}", 1..2), ["*3 $6 EXPIRE $16 bench:0000000001 $1 0 "]);
    }

    #[test]
    fn memcached_has_its_own_form() {
        let one = |text| encode_for(Protocol::Memcached, text, 7..8).remove(0);
        assert_eq!(one("SET {key} {value}"), "set bench:0000000007 0 0 3 xxx ");
        assert_eq!(one("GET {key}"), "get bench:0000000007 ");
        let keys = KeyFormat::default();
        assert!(Template::for_protocol("INCR {key}", &keys, Protocol::Memcached).is_err());
    }

    #[test]
    fn values_are_counted_without_their_frames() {
        let keys = KeyStream::new(Distribution::Sequential, 10, 1);
        let payload = Payload::new(&Content::Constant, Size::exactly(3), 1).unwrap();
        let template = Template::new("MSET {key} {value} {key} {value}", &KeyFormat::default()).unwrap();
        let draw = &mut Draw {
            rng: &mut Rng::new(1),
            keys: &keys,
            key_count: 10,
            newest: &AtomicU64::new(10),
            payload: &payload,
            op: 4,
            ordered_fields: false,
            given_key: None,
        };
        assert_eq!(template.encode(&mut Vec::new(), draw), Encoded { key: 4, value_bytes: 6 });
        let mut out = Vec::new();
        draw.given_key = Some(9);
        Template::new("SET {key} {value}", &KeyFormat::default()).unwrap().encode(&mut out, draw);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$16\r\nbench:0000000009\r\n$3\r\nxxx\r\n");
    }

    #[test]
    fn bad_templates_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "no command"),
            ("GET {key", "other half"),
            ("GET key}", "other half"),
            ("GET {nope}", "unknown placeholder"),
            ("SET {key} a{value}", "argument of its own"),
            ("SET {key} a{int:9}", "needs a width"),
            ("GET {id:x}", "positive integer"),
            ("GET {field:1:2:3}", "too many fields"),
            ("GET 'a", "quote"),
        ] {
            let error = Template::new(text, &KeyFormat::default()).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn keys_must_hold_their_numbers() {
        let format = KeyFormat { prefix: "key:".to_owned(), size: 8 };
        format.check(10_000).unwrap();
        assert!(format.check(10_001).is_err());
    }
}
