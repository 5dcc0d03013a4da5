//! What is a request and what is an error, with the replies of Valkey 9.1 as the reference; and that neither depends on
//! how the bytes were cut.

use super::*;
use proptest::prelude::*;

/// The connection of a server, reduced to the contract of the module: keeps `keep` bytes, appends what arrives.
struct Connection {
    parser: RequestParser,
    buffer: Vec<u8>,
    events: Vec<String>,
    /// Whether received bytes go straight into a large bulk while there is one.
    reads_into_large: bool,
    ended: bool,
    held_max: usize,
}

impl Connection {
    fn new(reads_into_large: bool) -> Self {
        Self {
            parser: RequestParser::new(),
            buffer: Vec::new(),
            events: Vec::new(),
            reads_into_large,
            ended: false,
            held_max: 0,
        }
    }

    fn receive(&mut self, mut bytes: &[u8], limits: &Limits) {
        if self.reads_into_large
            && let Some(mut large) = self.parser.large_bulk()
        {
            let taken = bytes.len().min(large.missing());
            if taken % 2 == 0 {
                large.buffer().extend_from_slice(&bytes[..taken]);
            } else {
                assert_eq!(large.append(&bytes[..taken]), taken);
            }
            bytes = &bytes[taken..];
        }
        self.buffer.extend_from_slice(bytes);
        let mut start = 0;
        while !self.ended {
            let mut out = Arguments::new();
            // An argument from elsewhere shows that positions in a shared list are relative to it.
            out.push_large(b"of another connection".to_vec()).unwrap();
            let input = &self.buffer[start..];
            match self.parser.parse(input, limits, &mut out) {
                Ok(Progress::Complete { consumed }) => {
                    let words = &out.spans()[1..];
                    assert!(!words.is_empty());
                    let words: Vec<_> =
                        words.iter().map(|span| out.bytes(input, *span).escape_ascii().to_string()).collect();
                    self.events.push(words.join("|"));
                    start += consumed;
                    assert!(!self.parser.is_partial());
                }
                Ok(Progress::Empty { consumed }) => {
                    assert!(consumed > 0 && out.len() == 1);
                    assert!(!self.parser.is_partial());
                    start += consumed;
                }
                Ok(Progress::Dropped { .. }) => panic!("nothing was dropped"),
                Ok(Progress::Incomplete { keep }) => {
                    assert_eq!(out.len(), 1);
                    self.buffer.truncate(start + keep);
                    break;
                }
                Err(error) => {
                    assert_eq!(out.len(), 1);
                    assert!(!self.parser.is_partial());
                    self.events.push(format!("error: {}", error.message().escape_ascii()));
                    self.ended = true;
                }
            }
        }
        self.buffer.drain(..start);
        self.held_max = self.held_max.max(self.parser.held_bytes() + self.buffer.len());
    }

    fn finish(mut self) -> Vec<String> {
        if !self.ended && (self.parser.is_partial() || !self.buffer.is_empty()) {
            self.events.push("waits".into());
        }
        self.events
    }
}

fn outcome<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limits: &Limits, reads_into_large: bool) -> Vec<String> {
    let mut connection = Connection::new(reads_into_large);
    for chunk in chunks {
        connection.receive(chunk, limits);
    }
    connection.finish()
}

/// The outcome of `input`, after checking that it is the same split in two at every byte, and byte by byte.
fn split_everywhere(input: &[u8], limits: &Limits) -> Vec<String> {
    let whole = outcome([input], limits, false);
    for reads_into_large in [false, true] {
        for at in 0..=input.len() {
            let split = outcome([&input[..at], &input[at..]], limits, reads_into_large);
            assert_eq!(split, whole, "{} at {at}", input.escape_ascii());
        }
        assert_eq!(outcome(input.chunks(1), limits, reads_into_large), whole, "{}", input.escape_ascii());
    }
    whole
}

fn check(vectors: &[(&[u8], &[&str])], limits: &Limits) {
    for (input, expected) in vectors {
        assert_eq!(split_everywhere(input, limits), *expected, "{}", input.escape_ascii());
    }
}

const BAD_COUNT: &str = "error: Protocol error: invalid multibulk length";
const BAD_LENGTH: &str = "error: Protocol error: invalid bulk length";
const BAD_LINE_END: &str = "error: Protocol error: invalid CRLF in request";
const UNBALANCED: &str = "error: Protocol error: unbalanced quotes in request";
const HTTP: &str = "error: HTTP request on a RESP connection";

#[test]
fn arrays_of_bulk_strings_are_requests() {
    check(
        &[
            (b"", &[]),
            (b"*1\r\n$4\r\nPING\r\n", &["PING"]),
            (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123456789\r\n*1\r\n$4\r\nPING\r\n", &["SET|k|0123456789", "PING"]),
            (b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", &["ECHO|"]),
            (b"*1\r\n$0\r\n\r\n", &[""]),
            (b"*2\r\n$4\r\nECHO\r\n$6\r\n\r\n*1\r\n\r\n", &["ECHO|\\r\\n*1\\r\\n"]),
            (b"*2\r\n$4\r\nECHO\r\n$2\r\n\x00\xff\r\n", &["ECHO|\\x00\\xff"]),
            (
                b"*11\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n\
               $1\r\ng\r\n$1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n$1\r\nk\r\n",
                &["a|b|c|d|e|f|g|h|i|j|k"],
            ),
            (b"*1\r\n$4\r\nPIN", &["waits"]),
            (b"*1\r\n$4\r\nPING\r\n*", &["PING", "waits"]),
            (b"*1048576\r\n", &["waits"]),
            (b"*1\r\n$536870912\r\n", &["waits"]),
        ],
        &Limits::DEFAULT,
    );
}

/// Each number of digits that the short form of a length has, and the first beyond it.
#[test]
fn lengths_of_every_number_of_digits_are_read() {
    for len in [0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 1001, 9999, 10_000, 12_345, 32_767, 32_768, 100_000] {
        let body = vec![b'v'; len];
        let mut input = format!("*2\r\n$3\r\nGET\r\n${len}\r\n").into_bytes();
        input.extend_from_slice(&body);
        input.extend_from_slice(b"\r\n*1\r\n$4\r\nPING\r\n");
        let whole = outcome([&input[..]], &Limits::DEFAULT, false);
        assert_eq!(whole, [format!("GET|{}", "v".repeat(len)), "PING".into()]);
        for reads_into_large in [false, true] {
            for size in [1, 2, 7, 1000, 16_384, 40_000] {
                if size < 7 && len > 1001 {
                    continue;
                }
                assert_eq!(outcome(input.chunks(size), &Limits::DEFAULT, reads_into_large), whole, "{len} by {size}");
            }
        }
    }
}

/// CVE-2026-27623: what comes after an empty request is read as if nothing had been before.
#[test]
fn empty_requests_are_ignored_and_leave_the_parser_as_new() {
    check(
        &[
            (b"*0\r\n", &[]),
            (b"*-1\r\n", &[]),
            (b"\r\n\n\r\r\n  \t\x0b\x0c \r\n", &[]),
            (b"*0\r\n*0\r\n*1\r\n$4\r\nPING\r\n", &["PING"]),
            (b"*-1\r\nPING\r\n", &["PING"]),
            (b"*-5\r\n\r\n*-9223372036854775808\r\nPING\r\n*0\r\n", &["PING"]),
            (b"*1\r\n$4\r\nPING\r\n*0\r\n*2\r\n$4\r\nECHO\r\n$1\r\na\r\n", &["PING", "ECHO|a"]),
            (b"\r\n*1\r\n$4\r\nPING\r\n", &["PING"]),
        ],
        &Limits::DEFAULT,
    );
}

#[test]
fn malformed_arrays_are_errors() {
    check(
        &[
            (b"*abc\r\n", &[BAD_COUNT]),
            (b"*\r\nPING\r\n", &[BAD_COUNT]),
            (b"*+1\r\n$4\r\nPING\r\n", &[BAD_COUNT]),
            (b"*01\r\n$4\r\nPING\r\n", &[BAD_COUNT]),
            (b"* 1\r\n", &[BAD_COUNT]),
            (b"*1 \r\n", &[BAD_COUNT]),
            (b"*-0\r\n", &[BAD_COUNT]),
            (b"*1\x00\r\n", &[BAD_COUNT]),
            (b"*2147483648\r\n", &[BAD_COUNT]),
            (b"*99999999999999999999\r\n", &[BAD_COUNT]),
            (b"*-99999999999999999999\r\n", &[BAD_COUNT]),
            (b"*1\n$4\r\nPING\r\n", &[BAD_COUNT]),
            (b"*1\n$4\nPING\n", &["waits"]),
            (b"*1\rx$4\r\nPING\r\n", &[BAD_LINE_END]),
            (b"*abc\rX", &[BAD_LINE_END]),
            (b"*-1\rXPING\r\n", &[BAD_LINE_END]),
            (b"*abc\r", &["waits"]),
            (b"*1\r\n+PING\r\n", &["error: Protocol error: expected \\'$\\', got \\'+\\'"]),
            (b"*1\r\n\x00PING\r\n", &["error: Protocol error: expected \\'$\\', got \\'\\x00\\'"]),
            (b"*1\r\n\r\nPING\r\n", &["error: Protocol error: expected \\'$\\', got \\'\\r\\'"]),
            (b"*1\r\n\rXPING\r\n", &["error: Protocol error: expected \\'$\\', got \\'\\r\\'"]),
            (b"*1\r\n\xffPING\r\n", &["error: Protocol error: expected \\'$\\', got \\'\\xff\\'"]),
            (b"*1\r\n+1\rX", &["error: Protocol error: expected \\'$\\', got \\'+\\'"]),
            (b"*1\r\n+PING", &["waits"]),
            (b"*1\r\n*1\r\n$4\r\nPING\r\n", &["error: Protocol error: expected \\'$\\', got \\'*\\'"]),
            (b"*1\r\n$-1\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$-0\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$abc\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$+4\r\nPING\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$04\r\nPING\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$004\r\nPING\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$0004\r\nPING\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$4a\r\nPING\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$4a1\r\nPING\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$4\x00\r\nPING\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$536870913\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$9223372036854775807\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$99999999999999999999999\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$4\rXPING\r\n", &[BAD_LINE_END]),
            (b"*1\r\n$abc\rX", &[BAD_LINE_END]),
            (b"*1\r\n$4\r\nPINGxx", &[BAD_LINE_END]),
            (b"*1\r\n$4\r\nPING\rx", &[BAD_LINE_END]),
            (b"*1\r\n$4\r\nPINGx", &["waits"]),
            (b"*2\r\n$4\r\nECHO\r\n$2\r\nabcd\r\n", &[BAD_LINE_END]),
            // The second line is shorter than what was searched of the first when it arrives in two parts.
            (b"*2\r\n$4\r\nECHO\r\n$\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$4\r\nPING\r\n*1\r\n$-5\r\n*1\r\n$4\r\nPING\r\n", &["PING", BAD_LENGTH]),
            (b"$4\r\nPING\r\n", &["$4", "PING"]),
        ],
        &Limits::DEFAULT,
    );
}

#[test]
fn inline_lines_are_requests() {
    check(
        &[
            (b"PING\r\n", &["PING"]),
            (b"PING\nPING\r\n", &["PING", "PING"]),
            (b"  PING  \r\n", &["PING"]),
            (b"ECHO\tabc\r\n", &["ECHO|abc"]),
            (b"PING\r\r\n", &["PING"]),
            (b"PING\rfoo\r\n", &["PING|foo"]),
            (b"ECHO\x0babc\r\n", &["ECHO\\x0babc"]),
            (b"ECHO \x0c\x0babc \x0c\r\n", &["ECHO|abc"]),
            (b"GET k", &["waits"]),
            (b"ECHO a\x00b\r\n", &["ECHO|a\\x00b"]),
            (br#"ECHO a\nb"#, &["waits"]),
            (b"ECHO a\\nb\r\n", &["ECHO|a\\\\nb"]),
        ],
        &Limits::DEFAULT,
    );
}

#[test]
fn quotes_in_inline_lines_are_undone() {
    let long = format!("ECHO \"{}\"\r\n", "x".repeat(300));
    check(
        &[
            (b"ECHO \"a\\n\\r\\t\\b\\a\\x41\\xzz\\q\\\"b\"\r\n", &["ECHO|a\\n\\r\\t\\x08\\x07Axzzq\\\"b"]),
            (b"ECHO \"\\xFf\\X41\\x4G\"\r\n", &["ECHO|\\xffX41x4G"]),
            (b"ECHO \"\\x4\"\r\n", &["ECHO|x4"]),
            (b"ECHO 'a\\'b\\nc'\r\n", &["ECHO|a\\'b\\\\nc"]),
            (b"ECHO 'a\\\\b'\r\n", &["ECHO|a\\\\\\\\b"]),
            (b"ECHO ''\r\n", &["ECHO|"]),
            (b"\"\"\r\n", &[""]),
            (b"ECHO a\"b c\"\r\n", &["ECHO|ab c"]),
            (b"ECHO \"a\"'b'c d\r\n", &["ECHO|abc|d"]),
            (b"ECHO \"a\"\x0b\r\n", &["ECHO|a\\x0b"]),
            (b"ECHO \\\"a b\\\"\r\n", &["ECHO|\\\\a b\\\\"]),
            (b"ECHO \"a\\\"\r\n", &["ECHO|a\\\\"]),
            (b"ECHO \"a\\\\\\\"\r\n", &["ECHO|a\\\\\\\\"]),
            (b"ECHO 'a\\'\r\n", &["ECHO|a\\\\"]),
            (b"ECHO \"a b\r\n", &[UNBALANCED]),
            (b"ECHO \"a\\\" b\r\n", &[UNBALANCED]),
            (b"ECHO 'a\r\nb'\r\n", &[UNBALANCED]),
            (b"ECHO a\"b\r\n", &[UNBALANCED]),
            (b"ECHO \"abc\\\r\n", &[UNBALANCED]),
            (b"SET \"a b\" c 'd'\r\nPING\r\n", &["SET|a b|c|d", "PING"]),
            (long.as_bytes(), &[&format!("ECHO|{}", "x".repeat(300))]),
        ],
        &Limits::DEFAULT,
    );
}

/// Words that `testdata/inline_words.txt` holds as Valkey 9.1 split them: a line, and after a tab each its words.
#[test]
fn inline_words_are_those_of_valkey() {
    let mut seen = 0;
    for case in include_str!("../../testdata/inline_words.txt").lines().filter(|line| !line.starts_with('#')) {
        let (line, expected) = case.split_once('\t').unwrap();
        let line = [line.as_bytes(), b"\r\n"].concat();
        let words = outcome([&line[..]], &Limits::DEFAULT, false);
        let expected = match expected {
            "unbalanced" => vec![UNBALANCED.to_string()],
            words => vec![words.to_string()],
        };
        assert_eq!(words, expected, "{case}");
        seen += 1;
    }
    assert!(seen > 500);
}

/// Nearly all requests are parsed by their opening. Those that are cut off, longer, or different go the general way.
#[test]
fn a_request_like_the_last_is_known_by_its_beginning() {
    let get = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
    let (parser, mut out) = (RequestParser::new(), Arguments::new());
    assert_eq!(
        RequestParser::new().parse(get, &Limits::DEFAULT, &mut out),
        Ok(Progress::Complete { consumed: get.len() })
    );
    let opening = Opening::of(get, out.spans()[0], out.len()).expect("a short name");
    let mut consumed = |input: &[u8]| {
        out.clear();
        let consumed = parser.parse_like(&opening, input, &Limits::DEFAULT, &mut out);
        (consumed, out.spans().iter().map(|span| out.bytes(input, *span).to_vec()).collect::<Vec<_>>())
    };
    assert_eq!(consumed(b"*2\r\n$3\r\nGET\r\n$5\r\nother\r\n*1"), (Some(24), vec![b"GET".to_vec(), b"other".to_vec()]));
    for other in [
        &b"*2\r\n$3\r\nGET\r\n$5\r\nothe"[..],
        b"*3\r\n$3\r\nGET\r\n$3\r\nkey\r\n",
        b"*2\r\n$3\r\nget\r\n$3\r\nkey\r\n",
    ] {
        assert_eq!(consumed(other), (None, Vec::new()));
    }
    // What no request may begin with was never parsed; a long name and an inline request are not remembered.
    let name = |start, len| Span::new(start, len).unwrap();
    assert!(Opening::of(b"*1\r\n$7\r\nFLUSHDB\r\n", name(8, 7), 1).is_none());
    assert!(Opening::of(b"GET key\r\n", name(0, 3), 2).is_none());
}

/// An HTTP client's request is never run, in whatever form its first word comes.
#[test]
fn http_requests_are_told_apart() {
    check(
        &[
            (b"POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n", &[HTTP]),
            (b"host: abc\r\nPING\r\n", &[HTTP]),
            (b"PING\r\n\"POST\"\r\nPING\r\n", &["PING", HTTP]),
            (b"*1\r\n$4\r\npOsT\r\nPING\r\n", &[HTTP]),
            (b"*2\r\n$5\r\nHost:\r\n$1\r\na\r\n", &[HTTP]),
            (b"POSTX\r\nHost:x\r\nGET POST\r\n", &["POSTX", "Host:x", "GET|POST"]),
        ],
        &Limits::DEFAULT,
    );
}

#[test]
fn a_client_not_logged_in_is_held_short() {
    let early = "error: Protocol error: unauthenticated multibulk length";
    let long = "error: Protocol error: unauthenticated bulk length";
    check(
        &[
            (b"*10\r\n$4\r\nPING\r\n", &["waits"]),
            (b"*11\r\n", &[early]),
            (b"*11\rX", &[BAD_LINE_END]),
            (b"*3000000000\r\n", &[BAD_COUNT]),
            (b"*1\r\n$16384\r\n", &["waits"]),
            (b"*1\r\n$16385\r\n", &[long]),
            (b"*1\r\n$600000000\r\n", &[BAD_LENGTH]),
            (b"*1\r\n$-1\r\n", &[BAD_LENGTH]),
            (b"a b c d e f g h i j\r\n", &["a|b|c|d|e|f|g|h|i|j"]),
            (b"a b c d e f g h i j k\r\n", &[early]),
        ],
        &Limits::BEFORE_LOGIN,
    );
    let line = format!("AUTH {}\r\n", "x".repeat(16_385));
    assert_eq!(outcome([line.as_bytes()], &Limits::BEFORE_LOGIN, false), [long]);
    let line = format!("AUTH '{}'\r\n", "x".repeat(16_385));
    assert_eq!(outcome([line.as_bytes()], &Limits::BEFORE_LOGIN, false), [long]);
}

/// Limits may change between two calls, as a login does.
#[test]
fn limits_count_at_the_time_of_the_announcement() {
    let mut connection = Connection::new(false);
    connection.receive(b"*11\r\n", &Limits::DEFAULT);
    connection.receive(b"$4\r\nPING\r\n", &Limits::BEFORE_LOGIN);
    connection.receive(b"$16385\r\n", &Limits::BEFORE_LOGIN);
    assert_eq!(connection.finish(), ["error: Protocol error: unauthenticated bulk length"]);
}

#[test]
fn lines_have_an_end() {
    let limits = Limits { inline_bytes_max: 20, argument_count_max: 100, bulk_bytes_max: 100, ..Limits::DEFAULT };
    let count = "error: Protocol error: too big mbulk count string";
    let length = "error: Protocol error: too big bulk count string";
    let inline = "error: Protocol error: too big inline request";
    let long = format!("*1\r\n$101\r\n{}\r\n", "x".repeat(101));
    check(
        &[
            (long.as_bytes(), &[BAD_LENGTH]),
            (b"*1111111111111111111", &["waits"]),
            (b"*1111111111111111111\r\n", &[BAD_COUNT]),
            (b"*11111111111111111111", &[count]),
            (b"*11111111111111111111\r\n", &[count]),
            (b"*1\r\n$111111111111111111", &["waits"]),
            (b"*1\r\n$11111111111111111111", &[length]),
            (b"*1\r\nxxxxxxxxxxxxxxxxxxxxx", &[length]),
            (b"*101\r\n", &[BAD_COUNT]),
            (b"*1\r\n$101\r\n", &[BAD_LENGTH]),
            (b"ECHO xxxxxxxxxxxxxx\r\n", &["ECHO|xxxxxxxxxxxxxx"]),
            (b"ECHO xxxxxxxxxxxxxxx\n", &["ECHO|xxxxxxxxxxxxxxx"]),
            (b"ECHO xxxxxxxxxxxxxxxx\n", &[inline]),
            (b"ECHO xxxxxxxxxxxxxxxx", &[inline]),
        ],
        &limits,
    );
}

/// A size that is only announced costs nothing, at any place of a request.
#[test]
fn memory_follows_bytes_received() {
    for (announcement, held_max) in [
        (&b"*1048576\r\n"[..], 300),
        (b"*1\r\n$536870912\r\n", 300),
        (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n", 400),
    ] {
        let mut connection = Connection::new(true);
        connection.receive(announcement, &Limits::DEFAULT);
        assert!(connection.held_max <= held_max, "{} bytes", connection.held_max);
    }
    let mut connection = Connection::new(true);
    connection.receive(b"*1\r\n$536870912\r\n", &Limits::DEFAULT);
    let mut received = 0;
    for size in [1, 1000, 16_384, 100_000, 1, 1_000_000, 3_000_000] {
        connection.receive(&vec![b'x'; size], &Limits::DEFAULT);
        received += size;
        assert!(connection.held_max <= received * 2 + 17_000, "{} for {received}", connection.held_max);
    }
}

/// The buffer of a large bulk ends with no more room than its bytes need.
#[test]
fn a_large_bulk_is_handed_over_without_a_copy() {
    const LEN: usize = 1_000_000;
    let mut parser = RequestParser::new();
    let mut out = Arguments::new();
    let limits = Limits::DEFAULT;
    let head = b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n";
    let first = [&head[..], &[b'v'; 1000]].concat();
    assert_eq!(parser.parse(&first, &limits, &mut out), Ok(Progress::Incomplete { keep: head.len() }));
    let mut kept = first[..head.len()].to_vec();
    let mut left = LEN + 2 - 1000;
    while let Some(mut large) = parser.large_bulk().filter(|large| large.missing() > 0) {
        assert_eq!(large.missing(), left);
        let buffer = large.buffer();
        let room = buffer.capacity() - buffer.len();
        assert!(room > 0 && room <= left);
        left -= room;
        buffer.resize(buffer.len() + room, b'v');
        if left == 0 {
            let end = buffer.len() - 2;
            buffer[end..].copy_from_slice(b"\r\n");
        }
    }
    assert_eq!(parser.parse(&kept, &limits, &mut out), Ok(Progress::Incomplete { keep: kept.len() }));
    assert!(out.is_empty());
    kept.extend_from_slice(b"$2\r\nNX\r\n*1\r\n");
    assert_eq!(parser.parse(&kept, &limits, &mut out), Ok(Progress::Complete { consumed: kept.len() - 4 }));
    let spans = out.spans().to_vec();
    assert_eq!(spans.iter().map(|span| span.len()).collect::<Vec<_>>(), [3, 1, LEN, 2]);
    assert_eq!((spans[2].large_index(), spans[2].range(), spans[3].large_index()), (Some(0), None, None));
    let address = out.bytes(&kept, spans[2]).as_ptr();
    let value = out.large()[0].clone();
    assert_eq!(value.as_ptr(), address);
    assert!(value.len() == LEN && value.iter().all(|byte| *byte == b'v') && value.capacity() <= LEN + 2);
    assert_eq!((out.bytes(&kept, spans[0]), out.bytes(&kept, spans[3])), (&b"SET"[..], &b"NX"[..]));
    out.clear();
    assert_eq!(out.bytes(&kept, spans[2]), b"");
    assert_eq!(parser.held_bytes(), 0);
}

/// Received through the caller's buffer, it has no more room either.
#[test]
fn a_large_bulk_received_in_pieces_has_no_spare_room() {
    let input = format!("*1\r\n$100000\r\n{}\r\n", "v".repeat(100_000)).into_bytes();
    let mut parser = RequestParser::new();
    let mut out = Arguments::new();
    let mut kept = Vec::new();
    for piece in input.chunks(1000) {
        kept.extend_from_slice(piece);
        if let Progress::Incomplete { keep } = parser.parse(&kept, &Limits::DEFAULT, &mut out).unwrap() {
            kept.truncate(keep);
        }
    }
    assert_eq!((out.large()[0].len(), out.large()[0].capacity()), (100_000, 100_002));
}

/// The worker's list does not stay at the size of the largest request it has seen.
#[test]
fn cleared_arguments_hold_what_a_usual_batch_needs() {
    let input = format!("*1000000\r\n{}", "$1\r\nx\r\n".repeat(1_000_000));
    let mut out = Arguments::new();
    RequestParser::new().parse(input.as_bytes(), &Limits::DEFAULT, &mut out).unwrap();
    assert!(out.held_bytes() >= 8_000_000);
    out.clear();
    assert!(out.is_empty() && out.held_bytes() <= 600_000);
}

#[test]
fn a_bulk_is_large_from_its_least_length_on() {
    for (len, is_large) in [(LARGE_BULK_BYTES - 1, false), (LARGE_BULK_BYTES, true)] {
        let mut parser = RequestParser::new();
        let input = format!("*1\r\n${len}\r\nxyz");
        let keep = if is_large { input.len() - 3 } else { input.len() };
        let progress = parser.parse(input.as_bytes(), &Limits::DEFAULT, &mut Arguments::new());
        assert_eq!(progress, Ok(Progress::Incomplete { keep }));
        assert_eq!(parser.large_bulk().map(|large| large.missing()), is_large.then_some(len - 1));
    }
}

#[test]
fn a_large_bulk_with_a_wrong_line_end_is_an_error() {
    let mut input = b"*1\r\n$40000\r\n".to_vec();
    input.resize(input.len() + 40_000, b'x');
    input.extend_from_slice(b"\rx");
    for reads_into_large in [false, true] {
        assert_eq!(outcome(input.chunks(1000), &Limits::DEFAULT, reads_into_large), [BAD_LINE_END]);
    }
}

/// A large argument, a small one, and a large one, cut at all places around the lines between them.
#[test]
fn several_large_bulks_in_one_request_keep_their_order() {
    let body = |byte: u8| vec![byte; LARGE_BULK_BYTES];
    let mut input = b"*4\r\n$3\r\nSET\r\n$32768\r\n".to_vec();
    input.extend(body(b'a'));
    input.extend_from_slice(b"\r\n$1\r\nk\r\n$32768\r\n");
    input.extend(body(b'b'));
    input.extend_from_slice(b"\r\nPING\r\n");
    let whole = outcome([&input[..]], &Limits::DEFAULT, false);
    assert_eq!(whole.len(), 2);
    let cuts: Vec<usize> = (0..40).chain(32_700..32_900).chain(input.len() - 60..input.len()).collect();
    for reads_into_large in [false, true] {
        for pair in cuts.iter().flat_map(|a| [(*a, a + 1), (*a, a + 50), (*a, input.len() - 20)]) {
            let (a, b) = (pair.0, pair.1.clamp(pair.0, input.len()));
            assert!(outcome([&input[..a], &input[a..b], &input[b..]], &Limits::DEFAULT, reads_into_large) == whole);
        }
    }
}

/// Linear work: a quarter of a million arguments and a long line, each received byte by byte. Quadratic parsing would
/// take hours.
#[test]
fn byte_by_byte_costs_linear_time() {
    let mut input = b"*250000\r\n".to_vec();
    for _ in 0..250_000 {
        input.extend_from_slice(b"$1\r\na\r\n");
    }
    let mut parser = RequestParser::new();
    let mut out = Arguments::new();
    for end in 1..input.len() {
        assert_eq!(parser.parse(&input[..end], &Limits::DEFAULT, &mut out), Ok(Progress::Incomplete { keep: end }));
    }
    let all = parser.parse(&input, &Limits::DEFAULT, &mut out);
    assert_eq!(all, Ok(Progress::Complete { consumed: input.len() }));
    assert_eq!(out.len(), 250_000);
}

/// What a client library writes for `arguments`.
fn encode(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn chunked<'a>(input: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
    at.extend([0, input.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect()
}

fn argument() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..20),
        4 => prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'$'), Just(b'*'), Just(b'1')], 0..20),
        2 => prop::collection::vec(any::<u8>(), 90..1100),
        1 => (any::<u8>(), 30_000usize..70_000).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

proptest! {
    /// Whatever is encoded comes back, in whatever pieces it arrives.
    #[test]
    fn encoded_requests_parse_back(
        requests in prop::collection::vec(prop::collection::vec(argument(), 1..6), 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        reads_into_large: bool,
    ) {
        let input: Vec<u8> = requests.iter().flat_map(|request| encode(request)).collect();
        let expected: Vec<String> = requests
            .iter()
            .map(|request| request.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join("|"))
            .collect();
        prop_assert_eq!(outcome(chunked(&input, &cuts), &Limits::DEFAULT, reads_into_large), expected);
    }

    /// A request that begins like another is parsed as if it did not, or not at all; also when it is cut off or
    /// damaged.
    #[test]
    fn requests_that_begin_alike_are_parsed_alike(
        words in prop::collection::vec(argument(), 1..5),
        others in prop::collection::vec(argument(), 0..5),
        same_name in any::<bool>(),
        end in any::<prop::sample::Index>(),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        before_login in any::<bool>(),
    ) {
        let limits = if before_login { Limits::BEFORE_LOGIN } else { Limits::DEFAULT };
        let first = encode(&words);
        let mut parsed = Arguments::new();
        let parsing = RequestParser::new().parse(&first, &limits, &mut parsed);
        let Ok(Progress::Complete { .. }) = parsing else { return Ok(()) };
        let Some(opening) = Opening::of(&first, parsed.spans()[0], parsed.len()) else { return Ok(()) };
        let name = if same_name { words[0].clone() } else { b"GET".to_vec() };
        let mut next = encode(&[vec![name], others].concat());
        next.extend_from_slice(&first);
        if let Some((at, byte)) = damage {
            let at = at.index(next.len());
            next[at] = byte;
        }
        let input = &next[..end.index(next.len()) + 1];
        let (mut alike, mut plain) = (Arguments::new(), Arguments::new());
        let parser = RequestParser::new();
        match parser.parse_like(&opening, input, &limits, &mut alike) {
            None => prop_assert!(alike.is_empty()),
            Some(consumed) => {
                prop_assert_eq!(
                    RequestParser::new().parse(input, &limits, &mut plain),
                    Ok(Progress::Complete { consumed })
                );
                prop_assert_eq!(alike.spans(), plain.spans());
            }
        }
    }

    /// Bytes that look like requests, and often are not: the outcome does not depend on the cuts.
    #[test]
    fn cuts_do_not_change_the_outcome_of_bad_input(
        pieces in prop::collection::vec(prop::sample::select(vec![
            &b"*"[..], b"$", b"\r\n", b"\r", b"\n", b"0", b"1", b"2", b"3", b"-", b"9", b"a", b"PING",
            b"\"", b"'", b"\\",
            b" ", b"*1\r\n", b"*2\r\n", b"$1\r\n", b"$4\r\n", b"$4\r\nPING\r\n", b"*0\r\n", b"POST", b"x41", b"\0",
        ]), 0..24),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let input = pieces.concat();
        let limits = Limits { inline_bytes_max: 30, argument_count_max: 20, bulk_bytes_max: 30, before_login: false };
        let whole = outcome([&input[..]], &limits, false);
        prop_assert_eq!(outcome(chunked(&input, &cuts), &limits, false), whole.clone());
        prop_assert_eq!(outcome(input.chunks(1), &limits, true), whole);
    }
}

/// An argument may be dropped at any point: the request ends as dropped, and the next one is whole.
#[test]
fn a_dropped_argument_keeps_the_framing() {
    const LEN: usize = 3 * LARGE_BULK_BYTES;
    let mut request = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${LEN}\r\n").into_bytes();
    let head_len = request.len();
    request.extend(vec![b'v'; LEN]);
    request.extend(b"\r\n*1\r\n$4\r\nPING\r\n");
    for (first, step) in
        [(head_len, 1000), (head_len + LARGE_BULK_BYTES, 7919), (head_len + LEN, 1), (head_len + LEN + 1, 64)]
    {
        let (mut parser, mut out) = (RequestParser::new(), Arguments::new());
        let mut kept = request[..first].to_vec();
        let Ok(Progress::Incomplete { keep }) = parser.parse(&kept, &Limits::DEFAULT, &mut out) else {
            panic!("it is whole")
        };
        kept.truncate(keep);
        assert_eq!(parser.drop_large_bulk().len(), first - head_len);
        assert!(parser.large_bulk().is_none() && parser.held_bytes() < LARGE_BULK_BYTES);
        let mut rest = &request[first..];
        let consumed = loop {
            let (part, others) = rest.split_at(step.min(rest.len()));
            (rest, _) = (others, kept.extend_from_slice(part));
            match parser.parse(&kept, &Limits::DEFAULT, &mut out).expect("the framing is whole") {
                Progress::Incomplete { keep } => kept.truncate(keep),
                Progress::Dropped { consumed, bytes } => {
                    assert_eq!(bytes, LEN);
                    break consumed;
                }
                other => panic!("{other:?}"),
            }
        };
        assert!(out.is_empty());
        let next = [&kept[consumed..], rest].concat();
        assert_eq!(parser.parse(&next, &Limits::DEFAULT, &mut out), Ok(Progress::Complete { consumed: 14 }));
        assert_eq!(out.bytes(&next, out.spans()[0]), b"PING");
    }
}
