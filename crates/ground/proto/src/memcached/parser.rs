//! From bytes to requests.

use super::arcus::grammar::are_keys;
use super::arcus::{Arcus, Family, Pipe};
use super::limits::{DATA_BYTES_MAX, Limits};
use super::line::{Words, next_word};
use super::{Command, Refusal, parse_signed, parse_unsigned};
use crate::request::{Arguments, Span};
use memchr::memchr;
use std::sync::Arc;

/// The longest key of memcached, and that of a parser by default.
const KEY_BYTES_MAX: usize = 250;

/// The most keys of one `mget`.
const MGET_KEYS_MAX: u64 = 10_000;

/// The longest beginning of a line, unless it names keys to get.
const LINE_BYTES_MAX: usize = 2048;

/// The same where longer keys are allowed, as in ARCUS.
const LONG_LINE_BYTES_MAX: usize = 24 * 1024;

/// The longest data of `sasl auth`: a name, another name and a password.
const SASL_BYTES_MAX: u64 = 2048;

/// The most spaces before a long line.
const LEADING_SPACES_MAX: usize = 100;

/// What stands at the start of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A request, whose arguments were added.
    Request {
        /// What it asks for.
        command: Command,
        /// Its length. Of a line with several keys, that of the part with this one. It is 0 where a pipe begins, and
        /// where one ends before another command ([`Arcus`]): the line of a request follows.
        consumed: usize,
    },
    /// Bytes that ask for nothing and get no reply.
    Nothing {
        /// How many.
        consumed: usize,
    },
    /// A part of a request. The caller keeps it and calls again with more bytes appended.
    Incomplete,
    /// Bytes of another protocol. The connection closes without a reply.
    Foreign {
        /// What they are, for the log.
        what: &'static str,
    },
}

/// Reads the requests of one connection.
///
/// ```
/// # use proto::memcached::{Command, Limits, Parser, Progress};
/// let (mut parser, mut arguments) = (Parser::default(), proto::Arguments::new());
/// let limits = Limits::of_items(1 << 20);
/// let input = b"delete k noreply\r\n";
/// let progress = parser.parse(input, &limits, &mut arguments);
/// assert_eq!(progress, Progress::Request { command: Command::Delete, consumed: 18 });
/// let words: Vec<_> = arguments.spans().iter().map(|span| arguments.bytes(input, *span)).collect();
/// assert_eq!(words, [&b"delete"[..], b"k", b"noreply"]);
/// ```
#[derive(Debug)]
pub struct Parser {
    /// The longest key.
    pub(super) key_bytes_max: usize,
    /// Bytes of refused data that are still to be skipped.
    pub(super) skipped_bytes: u64,
    /// The line whose keys are being read.
    keys: Option<Keys>,
    /// The pipe whose requests are being read.
    pub(super) pipe: Pipe,
}

/// A line of which some keys were given.
#[derive(Debug)]
struct Keys {
    verb: Verb,
    /// The word of the command, since the line's own may be gone.
    name: Arc<Vec<u8>>,
    /// The expiration that `gat` gives to each.
    exptime: Option<Arc<Vec<u8>>>,
}

/// The four commands that get items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Get,
    Gets,
    Gat,
    Gats,
}

impl Verb {
    fn of(word: &[u8]) -> Option<Self> {
        match word {
            b"get" | b"bget" => Some(Self::Get),
            b"gets" => Some(Self::Gets),
            b"gat" => Some(Self::Gat),
            b"gats" => Some(Self::Gats),
            _ => None,
        }
    }

    fn touches(self) -> bool {
        matches!(self, Self::Gat | Self::Gats)
    }

    /// The command for a key, which may be followed by more keys.
    fn command(self, has_more: bool) -> Command {
        match (self, has_more) {
            (Self::Get, false) => Command::Get,
            (Self::Get, true) => Command::GetMore,
            (Self::Gets, false) => Command::Gets,
            (Self::Gets, true) => Command::GetsMore,
            (Self::Gat, false) => Command::Gat,
            (Self::Gat, true) => Command::GatMore,
            (Self::Gats, false) => Command::Gats,
            (Self::Gats, true) => Command::GatsMore,
        }
    }
}

/// A line without its end.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Its bytes.
    pub(super) bytes: &'a [u8],
    /// Where the next line begins.
    pub(super) end: usize,
}

impl Default for Parser {
    fn default() -> Self {
        Self { key_bytes_max: KEY_BYTES_MAX, skipped_bytes: 0, keys: None, pipe: Pipe::default() }
    }
}

impl Parser {
    /// A parser of requests with keys up to this length. More than memcached's 250 bytes also allow longer lines.
    pub fn with_keys_up_to(bytes: usize) -> Self {
        Self { key_bytes_max: bytes, ..Self::default() }
    }

    /// Whether the input begins with a line: not with further keys of one, data that is skipped, or the end of a pipe.
    pub fn is_at_line(&self) -> bool {
        self.keys.is_none() && self.skipped_bytes == 0 && self.pipe != Pipe::Ending
    }

    /// Bytes that it holds.
    pub fn held_bytes(&self) -> usize {
        let exptime = self.keys.as_ref().and_then(|keys| keys.exptime.as_ref());
        size_of::<Self>().saturating_add(exptime.map_or(0, |exptime| exptime.len()))
    }

    /// The request at the start of `input`; its arguments are added to `out`. `input` is not empty.
    pub fn parse(&mut self, input: &[u8], limits: &Limits, out: &mut Arguments) -> Progress {
        if self.pipe == Pipe::Ending {
            return self.end_pipe(out);
        }
        if self.skipped_bytes > 0 {
            return self.skip(input);
        }
        if let Some(keys) = self.keys.take() {
            return self.next_key(keys, input, out);
        }
        let line = match self.line(input) {
            Ok(line) => line,
            Err(progress) => return progress,
        };
        let Some((start, end)) = next_word(line.bytes, 0) else { return refused(Refusal::Unknown, line) };
        let word = line.bytes.get(start..end).unwrap_or_default();
        if self.pipe == Pipe::Open {
            return self.piped(line, input, limits, out);
        }
        match Verb::of(word) {
            Some(verb) => self.get(verb, line, (start, end), out),
            None => self.command(word, line, input, limits, out),
        }
    }

    /// A line while the requests of a pipe are expected: unknown lines are a failure of the pipe, and other commands
    /// end it.
    fn piped(&mut self, line: Line<'_>, input: &[u8], limits: &Limits, out: &mut Arguments) -> Progress {
        let words = Words::of(line.bytes);
        let name = words.bytes(line.bytes, 0);
        if let Some(family) = Family::of(name).filter(|family| *family != Family::Any) {
            return self.collection(family, line, (input, limits), &words, out);
        }
        if Verb::of(name).is_some() {
            return self.break_pipe(&words, out);
        }
        let mark = out.mark();
        match self.command(name, line, input, limits, out) {
            Progress::Request { command, .. } if !matches!(command, Command::Refused(_)) => {
                out.rewind(mark);
                self.keys = None;
                self.break_pipe(&words, out)
            }
            progress => progress,
        }
    }

    /// Skips data that was refused.
    fn skip(&mut self, input: &[u8]) -> Progress {
        let skipped = self.skipped_bytes.min(input.len() as u64);
        self.skipped_bytes = self.skipped_bytes.wrapping_sub(skipped);
        Progress::Nothing { consumed: skipped as usize }
    }

    /// Checks the keys of a line, and gives the first.
    fn get(&mut self, verb: Verb, line: Line<'_>, name: (usize, usize), out: &mut Arguments) -> Progress {
        let (mut at, mut exptime) = (name.1, None);
        if verb.touches() {
            let Some(word) = next_word(line.bytes, at) else { return refused(Refusal::Unknown, line) };
            if parse_signed(line.bytes.get(word.0..word.1).unwrap_or_default()).is_none() {
                return refused(Refusal::Expiration, line);
            }
            (exptime, at) = (Some(word), word.1);
        }
        let Some(key) = next_word(line.bytes, at) else {
            if !verb.touches() {
                return refused(Refusal::Unknown, line);
            }
            return request(Command::GetNothing, line.end, &[name], out);
        };
        let second = next_word(line.bytes, key.1);
        let mut word = Some(key);
        while let Some((start, end)) = word {
            if end.wrapping_sub(start) > self.key_bytes_max {
                return refused(Refusal::Format, line);
            }
            word = next_word(line.bytes, end);
        }
        if second.is_some() {
            let word = |(start, end)| Arc::new(line.bytes.get(start..end).unwrap_or_default().to_vec());
            self.keys = Some(Keys { verb, name: word(name), exptime: exptime.map(word) });
        }
        let consumed = second.map_or(line.end, |(start, _)| start);
        let command = verb.command(second.is_some());
        match exptime {
            Some(exptime) => request(command, consumed, &[name, key, exptime], out),
            None => request(command, consumed, &[name, key], out),
        }
    }

    /// Gives the key that `input` begins with; its line is complete, and was checked.
    fn next_key(&mut self, keys: Keys, input: &[u8], out: &mut Arguments) -> Progress {
        let line = complete_line(input).unwrap_or(Line { bytes: input, end: input.len() });
        let key = next_word(line.bytes, 0).unwrap_or_default();
        let next = next_word(line.bytes, key.1);
        let mark = out.mark();
        let is_pushed = out.push_shared(keys.name.clone()).is_some()
            && push(key, out)
            && keys.exptime.iter().all(|exptime| out.push_shared(exptime.clone()).is_some());
        if !is_pushed {
            out.rewind(mark);
            return Progress::Foreign { what: TOO_LONG };
        }
        let command = keys.verb.command(next.is_some());
        self.keys = next.is_some().then_some(keys);
        Progress::Request { command, consumed: next.map_or(line.end, |(start, _)| start) }
    }

    /// `mget lenkeys numkeys` of ARCUS: checks the line of keys after it, and returns the first.
    fn get_many(&mut self, verb: Verb, line: Line<'_>, input: &[u8], words: &Words, out: &mut Arguments) -> Progress {
        let number = |index| parse_unsigned(words.bytes(line.bytes, index)).filter(|number| *number <= DATA_BYTES_MAX);
        let (Some(bytes), Some(count @ 1..)) = (number(1), number(2)) else { return refused(Refusal::Format, line) };
        let bytes_max = count.saturating_mul(self.key_bytes_max as u64).saturating_add(count).saturating_sub(1);
        if count > MGET_KEYS_MAX || count > bytes.wrapping_div(2).wrapping_add(1) || bytes > bytes_max {
            self.skipped_bytes = bytes.wrapping_add(2);
            return refused(Refusal::BadValue, line);
        }
        let (start, block_end) = (line.end, line.end.wrapping_add(bytes as usize));
        let end = block_end.wrapping_add(2);
        let Some(behind) = input.get(block_end..end) else { return Progress::Incomplete };
        let block = input.get(start..block_end).unwrap_or_default();
        let is_wrong = |byte: &u8| matches!(byte, b',' | b'\n' | b'\r');
        if behind != b"\r\n" || block.iter().any(is_wrong) || !are_keys(block, count, self.key_bytes_max) {
            return refused(Refusal::Data, Line { end, ..line });
        }
        let key_end = start.wrapping_add(memchr(b' ', block).unwrap_or(block.len()));
        let has_more = count > 1;
        if has_more {
            let (name_start, name_end) = words.range(0);
            let name = Arc::new(line.bytes.get(name_start..name_end).unwrap_or_default().to_vec());
            self.keys = Some(Keys { verb, name, exptime: None });
        }
        let consumed = if has_more { key_end.wrapping_add(1) } else { end };
        request(verb.command(has_more), consumed, &[words.range(0), (start, key_end)], out)
    }

    /// The line that `input` begins with.
    ///
    /// # Errors
    /// It is not complete, or not of this protocol.
    fn line<'i>(&self, input: &'i [u8]) -> Result<Line<'i>, Progress> {
        if input.first() == Some(&0x80) {
            return Err(Progress::Foreign { what: "the binary protocol of memcached" });
        }
        let line = complete_line(input);
        let is_long = line.map_or(input.len(), |line| line.end.wrapping_sub(1)) > self.line_bytes_max();
        if is_long && !may_be_long(input) {
            return Err(Progress::Foreign { what: "a line that is too long" });
        }
        line.ok_or(Progress::Incomplete)
    }

    /// The longest beginning of a line, unless it names keys to get.
    fn line_bytes_max(&self) -> usize {
        if self.key_bytes_max > KEY_BYTES_MAX { LONG_LINE_BYTES_MAX } else { LINE_BYTES_MAX }
    }

    /// Any command but those that get items.
    fn command(&mut self, name: &[u8], line: Line<'_>, input: &[u8], limits: &Limits, out: &mut Arguments) -> Progress {
        let words = Words::of(line.bytes);
        let count = words.len();
        match name {
            b"set" => self.store(Command::Set, line, input, &words, limits, out),
            b"add" => self.store(Command::Add, line, input, &words, limits, out),
            b"replace" => self.store(Command::Replace, line, input, &words, limits, out),
            b"append" => self.store(Command::Append, line, input, &words, limits, out),
            b"prepend" => self.store(Command::Prepend, line, input, &words, limits, out),
            b"cas" => self.store(Command::Cas, line, input, &words, limits, out),
            b"incr" | b"decr" if matches!(count, 3 | 4) => {
                let is_number = |word: &[u8]| parse_unsigned(word).is_some();
                let command = if name == b"incr" { Command::Incr } else { Command::Decr };
                self.with_number(command, line, &words, (is_number, Refusal::Delta), out)
            }
            b"incr" if matches!(count, 6 | 7) => self.with_initial(Command::Incr, line, &words, out),
            b"decr" if matches!(count, 6 | 7) => self.with_initial(Command::Decr, line, &words, out),
            b"touch" if matches!(count, 3 | 4) => {
                let is_number = |word: &[u8]| parse_signed(word).is_some();
                self.with_number(Command::Touch, line, &words, (is_number, Refusal::Expiration), out)
            }
            b"delete" if matches!(count, 2..=4) => self.delete(line, &words, out),
            b"flush_all" if count <= 3 => {
                let is_silent = words.ends_with_noreply(line.bytes);
                let has_delay = count == if is_silent { 3 } else { 2 };
                if has_delay && parse_signed(words.bytes(line.bytes, 1)).is_none() {
                    return refused_unless(is_silent, Refusal::Expiration, line);
                }
                all(Command::FlushAll, line, &words, out)
            }
            b"verbosity" if matches!(count, 2 | 3) => {
                if parse_unsigned(words.bytes(line.bytes, 1)).is_none() {
                    return refused_unless(words.ends_with_noreply(line.bytes), Refusal::Format, line);
                }
                all(Command::Verbosity, line, &words, out)
            }
            b"cache_memlimit" if matches!(count, 2 | 3) => {
                if parse_unsigned(words.bytes(line.bytes, 1)).is_none() {
                    return refused_unless(words.ends_with_noreply(line.bytes), Refusal::Unknown, line);
                }
                all(Command::MemoryLimit, line, &words, out)
            }
            b"mg" => self.meta(Command::MetaGet, line, input, &words, limits, out),
            b"ms" => self.meta(Command::MetaSet, line, input, &words, limits, out),
            b"md" => self.meta(Command::MetaDelete, line, input, &words, limits, out),
            b"ma" => self.meta(Command::MetaArithmetic, line, input, &words, limits, out),
            b"me" => self.meta(Command::MetaDebug, line, input, &words, limits, out),
            b"mget" if count == 3 => self.get_many(Verb::Get, line, input, &words, out),
            b"mgets" if count == 3 => self.get_many(Verb::Gets, line, input, &words, out),
            b"scan" if words.bytes(line.bytes, 1) == b"key" => all(Command::Arcus(Arcus::ScanKey), line, &words, out),
            b"scan" if words.bytes(line.bytes, 1) == b"prefix" => {
                all(Command::Arcus(Arcus::ScanPrefix), line, &words, out)
            }
            b"sasl" => self.sasl(line, input, &words, limits, out),
            b"shutdown" => all(Command::Arcus(Arcus::Shutdown), line, &words, out),
            b"help" => all(Command::Arcus(Arcus::Help), line, &words, out),
            b"version" => all(Command::Version, line, &words, out),
            b"flush_prefix" if count > 1 => all(Command::Arcus(Arcus::FlushPrefix), line, &words, out),
            b"ready" => all(Command::Arcus(Arcus::Ready), line, &words, out),
            b"zkensemble" => all(Command::Arcus(Arcus::Ensemble), line, &words, out),
            b"cluster" => all(Command::Arcus(Arcus::Cluster), line, &words, out),
            b"scrub" => all(Command::Arcus(Arcus::Scrub), line, &words, out),
            b"config" => all(Command::Arcus(Arcus::Config), line, &words, out),
            b"dump" => all(Command::Arcus(Arcus::Dump), line, &words, out),
            b"cmdlog" => all(Command::Arcus(Arcus::CommandLog), line, &words, out),
            b"lqdetect" => all(Command::Arcus(Arcus::LongQueries), line, &words, out),
            b"stats" => all(Command::Stats, line, &words, out),
            b"mn" => all(Command::MetaNoop, line, &words, out),
            b"quit" => all(Command::Quit, line, &words, out),
            b"lop" | b"sop" | b"mop" | b"bop" | b"getattr" | b"setattr" => match Family::of(name) {
                Some(family) => self.collection(family, line, (input, limits), &words, out),
                None => refused(Refusal::Unknown, line),
            },
            _ if words.bytes(line.bytes, count.wrapping_sub(1)).starts_with(b"HTTP/") => {
                Progress::Foreign { what: "an HTTP request" }
            }
            _ => refused(Refusal::Unknown, line),
        }
    }

    /// `sasl mech`, or `sasl auth [mechanism] bytes` with the data after the line.
    fn sasl(&mut self, line: Line<'_>, input: &[u8], words: &Words, limits: &Limits, out: &mut Arguments) -> Progress {
        let word = |index| words.bytes(line.bytes, index);
        match (word(1), words.len()) {
            (b"mech", 2) => return request(Command::Arcus(Arcus::SaslMech), line.end, &[words.range(0)], out),
            (b"auth", 3 | 4) => {}
            _ => return refused(Refusal::Format, line),
        }
        let last = words.len().wrapping_sub(1);
        let bytes = parse_unsigned(word(last)).filter(|bytes| *bytes <= DATA_BYTES_MAX);
        let Some(bytes) = bytes else { return refused(Refusal::Format, line) };
        if bytes > SASL_BYTES_MAX.min(limits.item_bytes_max as u64) {
            self.skipped_bytes = bytes.wrapping_add(2);
            return refused(Refusal::BadValue, line);
        }
        let data = (line.end, line.end.wrapping_add(bytes as usize));
        let end = data.1.wrapping_add(2);
        match input.get(data.1..end) {
            None => return Progress::Incomplete,
            Some(b"\r\n") => {}
            Some(_) => return refused(Refusal::Data, Line { end, ..line }),
        }
        // Without a mechanism it continues an exchange.
        let mechanism = if last == 3 { words.range(2) } else { (0, 0) };
        request(Command::Arcus(Arcus::SaslAuth), end, &[words.range(0), mechanism, data], out)
    }

    /// `set key flags exptime bytes [noreply]` and its relatives, with the data after the line.
    fn store(
        &mut self,
        command: Command,
        line: Line<'_>,
        input: &[u8],
        words: &Words,
        limits: &Limits,
        out: &mut Arguments,
    ) -> Progress {
        let last = if command == Command::Cas { 5 } else { 4 };
        let count = words.len().wrapping_sub(1);
        if count != last && count != last.wrapping_add(1) {
            return refused(Refusal::Unknown, line);
        }
        let is_silent = count > last && words.ends_with_noreply(line.bytes);
        let word = |index| words.bytes(line.bytes, index);
        let data_bytes = parse_unsigned(word(4)).filter(|bytes| *bytes <= DATA_BYTES_MAX);
        let is_right = word(1).len() <= self.key_bytes_max
            && parse_unsigned(word(2)).is_some_and(|flags| flags <= u64::from(u32::MAX))
            && parse_signed(word(3)).is_some()
            && (command != Command::Cas || parse_unsigned(word(5)).is_some());
        let Some(data_bytes) = data_bytes.filter(|_| is_right) else {
            return refused_unless(is_silent, Refusal::Format, line);
        };
        let place = |index| words.range(index);
        let noreply = if is_silent { &[place(last.wrapping_add(1))][..] } else { &[] };
        if data_bytes > limits.item_bytes_max as u64 {
            self.skipped_bytes = data_bytes.wrapping_add(2);
            if command != Command::Set {
                return refused_unless(is_silent, Refusal::TooLarge, line);
            }
            return request(Command::SetTooLarge, line.end, &[&[place(0), place(1)], noreply].concat(), out);
        }
        let data = (line.end, line.end.wrapping_add(data_bytes as usize));
        let end = data.1.wrapping_add(2);
        match input.get(data.1..end) {
            None => return Progress::Incomplete,
            Some(b"\r\n") => {}
            Some(_) => return refused_unless(is_silent, Refusal::Data, Line { end, ..line }),
        }
        let mark = out.mark();
        let mut words = [place(0), place(1), data, place(2), place(3)].into_iter();
        let are_pushed = words.all(|word| push(word, out))
            && (command != Command::Cas || push(place(5), out))
            && noreply.iter().all(|word| push(*word, out));
        if !are_pushed {
            out.rewind(mark);
            return Progress::Foreign { what: TOO_LONG };
        }
        Progress::Request { command, consumed: end }
    }

    /// `name key number [noreply]`. A fourth word that is another is left out, as memcached does.
    fn with_number(
        &self,
        command: Command,
        line: Line<'_>,
        words: &Words,
        (is_number, refusal): (fn(&[u8]) -> bool, Refusal),
        out: &mut Arguments,
    ) -> Progress {
        let is_silent = words.ends_with_noreply(line.bytes);
        if words.bytes(line.bytes, 1).len() > self.key_bytes_max {
            return refused_unless(is_silent, Refusal::Format, line);
        }
        if !is_number(words.bytes(line.bytes, 2)) {
            return refused_unless(is_silent, refusal, line);
        }
        let count = if is_silent { words.len() } else { 3 };
        let places = [0, 1, 2, 3].map(|index| words.range(index));
        request(command, line.end, places.get(..count).unwrap_or_default(), out)
    }

    /// `incr key delta flags exptime initial [noreply]` of ARCUS.
    fn with_initial(&self, command: Command, line: Line<'_>, words: &Words, out: &mut Arguments) -> Progress {
        let is_silent = words.ends_with_noreply(line.bytes);
        let number = |index| parse_unsigned(words.bytes(line.bytes, index));
        let is_right = words.bytes(line.bytes, 1).len() <= self.key_bytes_max
            && number(3).is_some_and(|flags| flags <= u64::from(u32::MAX))
            && parse_signed(words.bytes(line.bytes, 4)).is_some()
            && number(5).is_some()
            && (words.len() == 6 || is_silent);
        if !is_right {
            return refused_unless(is_silent, Refusal::Format, line);
        }
        if number(2).is_none() {
            return refused_unless(is_silent, Refusal::Delta, line);
        }
        all(command, line, words, out)
    }

    /// `delete key [0] [noreply]`
    fn delete(&self, line: Line<'_>, words: &Words, out: &mut Arguments) -> Progress {
        let count = words.len();
        let is_silent = count > 2 && words.ends_with_noreply(line.bytes);
        let is_zero = words.bytes(line.bytes, 2) == b"0";
        let is_right = match count {
            2 => true,
            3 => is_zero || is_silent,
            _ => is_zero && is_silent,
        };
        if !is_right {
            return refused_unless(is_silent, Refusal::DeleteFormat, line);
        }
        if words.bytes(line.bytes, 1).len() > self.key_bytes_max {
            return refused_unless(is_silent, Refusal::Format, line);
        }
        let places = [words.range(0), words.range(1), words.range(count.wrapping_sub(1))];
        request(Command::Delete, line.end, places.get(..if is_silent { 3 } else { 2 }).unwrap_or_default(), out)
    }
}

/// What input is that reaches beyond what a span can say.
pub(super) const TOO_LONG: &str = "a request of more than 2 GiB";

/// Whether the line names keys to get, of which there may be any number.
fn may_be_long(input: &[u8]) -> bool {
    let spaces = input.iter().take_while(|byte| **byte == b' ').count();
    let word = input.get(spaces..).unwrap_or_default();
    spaces <= LEADING_SPACES_MAX && (word.starts_with(b"get ") || word.starts_with(b"gets "))
}

/// The line that `input` begins with, if its end is there. A line of one carriage return holds that, as in memcached.
fn complete_line(input: &[u8]) -> Option<Line<'_>> {
    let end = memchr(b'\n', input)?;
    let bytes = input.get(..end)?;
    let bytes = if end > 1 { bytes.strip_suffix(b"\r").unwrap_or(bytes) } else { bytes };
    Some(Line { bytes, end: end.wrapping_add(1) })
}

/// A request of these words.
fn request(command: Command, consumed: usize, words: &[(usize, usize)], out: &mut Arguments) -> Progress {
    let mark = out.mark();
    match words.iter().all(|word| push(*word, out)) {
        true => Progress::Request { command, consumed },
        false => {
            out.rewind(mark);
            Progress::Foreign { what: TOO_LONG }
        }
    }
}

/// A request of all words of its line.
fn all(command: Command, line: Line<'_>, words: &Words, out: &mut Arguments) -> Progress {
    let mark = out.mark();
    match (0..words.len()).all(|index| push(words.range(index), out)) {
        true => Progress::Request { command, consumed: line.end },
        false => {
            out.rewind(mark);
            Progress::Foreign { what: TOO_LONG }
        }
    }
}

pub(super) fn push((start, end): (usize, usize), out: &mut Arguments) -> bool {
    Span::new(start, end.wrapping_sub(start)).map(|span| out.push(span)).is_some()
}

pub(super) fn refused(refusal: Refusal, line: Line<'_>) -> Progress {
    Progress::Request { command: Command::Refused(refusal), consumed: line.end }
}

/// A refusal of a client that may have asked for no reply.
pub(super) fn refused_unless(is_silent: bool, refusal: Refusal, line: Line<'_>) -> Progress {
    match is_silent {
        true => Progress::Nothing { consumed: line.end },
        false => refused(refusal, line),
    }
}
