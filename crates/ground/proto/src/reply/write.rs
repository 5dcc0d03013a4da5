//! One method for each kind of reply, in the protocol of the connection.

use super::buffer::Words;
use super::{Protocol, ReplyBuffer};
use crate::request::ProtocolError;
use base::double::DoubleText;
use std::sync::Arc;

/// From this length on, [`ReplyBuffer::bulk_shared`] keeps a reference to the value and does not copy it: an entry of
/// the vectored write and a reference count cost about as much as copying this many bytes.
pub const SHARED_BYTES_MIN: usize = 16 * 1024;

/// Room for any header and the line end of its body: kind, twenty digits, two line ends.
const HEADER_BYTES_MAX: usize = 32;

/// An aggregate whose number of elements is not known yet. Between `begin_...` and [`ReplyBuffer::end`] only elements
/// are written, and nothing is sent.
#[derive(Debug)]
#[must_use = "the aggregate says how many elements it has when it is ended"]
pub struct OpenReply {
    at: usize,
    kind: Aggregate,
}

#[derive(Debug, Clone, Copy)]
enum Aggregate {
    Array,
    Map,
    Set,
    Push,
}

impl Aggregate {
    /// The first byte of the header, and its number for `count` elements.
    #[inline]
    fn header(self, protocol: Protocol, count: usize) -> (u8, usize) {
        match (self, protocol) {
            (Self::Map, Protocol::Resp2) => (b'*', count.saturating_mul(2)),
            (Self::Array, _) | (_, Protocol::Resp2) => (b'*', count),
            (Self::Map, _) => (b'%', count),
            (Self::Set, _) => (b'~', count),
            (Self::Push, _) => (b'>', count),
        }
    }
}

impl ReplyBuffer {
    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    /// A status: a short line. Cleansed like [`error`](Self::error).
    pub fn simple(&mut self, text: impl AsRef<[u8]>) {
        self.line(b'+', text.as_ref());
    }

    /// An error. Its first word is the code, by which clients distinguish errors: `ERR`, `WRONGTYPE`, ...
    ///
    /// Whatever the text was made of, it stays one line: carriage returns, line feeds and zero bytes become blanks,
    /// those at the end go (CVE-2025-67733 was an error text that ended the reply and began another).
    /// A client of memcached or SSDB reads it in the words of its protocol.
    #[cold]
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        match self.words {
            Words::Memcached => self.memcached_error(text.as_ref()),
            Words::Ssdb => self.ssdb_error(text.as_ref()),
            Words::Resp => self.line(b'-', text.as_ref()),
        }
    }

    /// The reply to input that is not a request, after which the connection ends.
    #[cold]
    pub fn protocol_error(&mut self, error: &ProtocolError) {
        self.error([b"ERR ", error.message().as_slice()].concat());
    }

    /// A signed 64-bit integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        if let digit @ 0..=9 = value {
            return self.bytes.extend_from_slice(&[b':', digit as u8 | b'0', b'\r', b'\n']);
        }
        self.long_integer(value);
    }

    #[inline(never)]
    fn long_integer(&mut self, value: i64) {
        match usize::try_from(value) {
            Ok(number) => put_header(&mut self.bytes, b':', number),
            Err(_) => {
                let mut digits = itoa::Buffer::new();
                self.bytes.push(b':');
                self.bytes.extend_from_slice(digits.format(value).as_bytes());
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    /// A string of any bytes.
    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        self.bytes.reserve(value.len().saturating_add(HEADER_BYTES_MAX));
        self.header(b'$', value.len());
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A string of that length, which `append` appends. False, with nothing written, when it did not.
    pub fn bulk_with(&mut self, len: usize, append: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let before = self.bytes.len();
        self.bytes.reserve(len.saturating_add(HEADER_BYTES_MAX));
        self.header(b'$', len);
        let end = self.bytes.len().saturating_add(len);
        let is_there = append(&mut self.bytes) && self.bytes.len() == end;
        match is_there {
            true => self.bytes.extend_from_slice(b"\r\n"),
            false => self.bytes.truncate(before),
        }
        is_there
    }

    /// Begins a string of that length, whose bytes are then written in parts; the last part says that it is the last.
    pub fn begin_bulk(&mut self, len: usize) {
        self.header(b'$', len);
    }

    /// Writes the next part of a string that was begun.
    pub fn bulk_part(&mut self, part: &[u8], is_last: bool) {
        self.bytes.extend_from_slice(part);
        if is_last {
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    /// A string of any bytes, sent from where it is if it has at least [`SHARED_BYTES_MIN`].
    pub fn bulk_shared(&mut self, value: Arc<Vec<u8>>) {
        if value.len() < SHARED_BYTES_MIN {
            return self.bulk(&value);
        }
        self.header(b'$', value.len());
        self.push_shared(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A string that is the decimal text of an integer.
    #[inline]
    pub fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Nothing, in the place of a string.
    #[inline]
    pub fn null(&mut self) {
        match self.protocol() {
            Protocol::Resp2 => self.bytes.extend_from_slice(b"$-1\r\n"),
            Protocol::Resp3 => self.bytes.extend_from_slice(b"_\r\n"),
        }
    }

    /// Nothing, in the place of an array.
    #[inline]
    pub fn null_array(&mut self) {
        match self.protocol() {
            Protocol::Resp2 => self.bytes.extend_from_slice(b"*-1\r\n"),
            Protocol::Resp3 => self.bytes.extend_from_slice(b"_\r\n"),
        }
    }

    /// An array; `count` replies follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.aggregate(Aggregate::Array, count);
    }

    /// A map; `count` pairs of replies follow, key and value. In RESP2 an array of both.
    #[inline]
    pub fn map(&mut self, count: usize) {
        self.aggregate(Aggregate::Map, count);
    }

    /// A set; `count` replies follow. In RESP2 an array.
    #[inline]
    pub fn set(&mut self, count: usize) {
        self.aggregate(Aggregate::Set, count);
    }

    /// A message that is no reply to a request; `count` replies follow. In RESP2 an array.
    #[inline]
    pub fn push(&mut self, count: usize) {
        self.aggregate(Aggregate::Push, count);
    }

    /// An array whose number of elements is given at its [`end`](Self::end).
    pub fn begin_array(&mut self) -> OpenReply {
        self.begin(Aggregate::Array)
    }

    /// A map whose number of pairs is given at its [`end`](Self::end).
    pub fn begin_map(&mut self) -> OpenReply {
        self.begin(Aggregate::Map)
    }

    /// A set whose number of elements is given at its [`end`](Self::end).
    pub fn begin_set(&mut self) -> OpenReply {
        self.begin(Aggregate::Set)
    }

    /// Ends `open`, of which `count` elements (of a map, pairs) have been written. Costs a move of these if they are
    /// more than nine.
    pub fn end(&mut self, open: OpenReply, count: usize) {
        let (kind, count) = open.kind.header(self.protocol(), count);
        let mut header = Vec::with_capacity(HEADER_BYTES_MAX);
        put_header(&mut header, kind, count);
        self.replace(open.at, PLACEHOLDER.len(), &header);
    }

    /// A double. In RESP2 a string.
    pub fn double(&mut self, value: f64) {
        let text = DoubleText::new(value);
        match self.protocol() {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// A double that has its text already. In RESP2 a string.
    pub fn double_text(&mut self, text: &str) {
        match self.protocol() {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// A truth value. In RESP2 the integer 1 or 0.
    pub fn boolean(&mut self, value: bool) {
        match (self.protocol(), value) {
            (Protocol::Resp2, _) => self.integer(i64::from(value)),
            (Protocol::Resp3, true) => self.bytes.extend_from_slice(b"#t\r\n"),
            (Protocol::Resp3, false) => self.bytes.extend_from_slice(b"#f\r\n"),
        }
    }

    /// An integer of any size, as decimal text. In RESP2 a string.
    pub fn big_number(&mut self, text: impl AsRef<[u8]>) {
        match self.protocol() {
            Protocol::Resp2 => self.bulk(text.as_ref()),
            Protocol::Resp3 => self.line(b'(', text.as_ref()),
        }
    }

    /// A text to be shown as it is, with the three letters of its format: `txt` or `mkd`. In RESP2 a string without
    /// format.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        debug_assert_eq!(format.len(), 3);
        if self.protocol() == Protocol::Resp2 {
            return self.bulk(text);
        }
        self.header(b'=', text.len().saturating_add(format.len()).saturating_add(1));
        self.bytes.extend_from_slice(format.as_bytes());
        self.bytes.push(b':');
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn aggregate(&mut self, kind: Aggregate, count: usize) {
        let (kind, count) = kind.header(self.protocol(), count);
        self.header(kind, count);
    }

    fn begin(&mut self, kind: Aggregate) -> OpenReply {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(PLACEHOLDER);
        OpenReply { at, kind }
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.plain_line(text);
    }

    /// The only place where text of a single line is written.
    pub(super) fn plain_line(&mut self, text: &[u8]) {
        let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last.wrapping_add(1));
        let text = text.get(..end).unwrap_or_default();
        self.bytes.reserve(text.len().saturating_add(HEADER_BYTES_MAX));
        self.bytes.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { *byte }));
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn header(&mut self, kind: u8, number: usize) {
        put_header(&mut self.bytes, kind, number);
    }
}

/// A header of the least length, which [`ReplyBuffer::end`] replaces.
const PLACEHOLDER: &[u8] = b"*0\r\n";

/// Writes `<kind><number>\r\n`. Up to three digits are one store of a known length.
#[inline]
pub(super) fn put_header(bytes: &mut Vec<u8>, kind: u8, number: usize) {
    let digit = |number: usize| (number % 10) as u8 | b'0';
    match number {
        0..=9 => bytes.extend_from_slice(&[kind, digit(number), b'\r', b'\n']),
        10..=99 => bytes.extend_from_slice(&[kind, digit(number / 10), digit(number), b'\r', b'\n']),
        100..=999 => {
            let header = [kind, digit(number / 100), digit(number / 10), digit(number), b'\r', b'\n'];
            bytes.extend_from_slice(&header);
        }
        _ => put_long_header(bytes, kind, number),
    }
}

#[inline(never)]
fn put_long_header(bytes: &mut Vec<u8>, kind: u8, number: usize) {
    bytes.push(kind);
    bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    bytes.extend_from_slice(b"\r\n");
}
