//! What configuration changes about commands on keys while they run.

#[expect(dead_code, reason = "transcripts and some settings are for the other tests")]
mod support;

use command::limits::PATTERN_BYTES_MAX;
use proto::Protocol;
use support::{Connection, Fetching};

fn connection() -> Connection {
    Connection::new(Protocol::Resp2, Fetching::Never)
}

/// Replies to a line of words without quotation marks.
fn run(connection: &mut Connection, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    String::from_utf8(connection.run(&words)).expect("text").trim_end().to_owned()
}

/// `proto-max-bulk-len` bounds what strings grow to, by bytes, by bits and by fields, and the memory LCS takes. Nothing
/// changes when it refuses.
#[test]
fn strings_grow_to_the_limit() {
    const TOO_LONG: &str = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    const TOO_FAR: &str = "-ERR bit offset is not an integer or out of range";
    let mut connection = connection();
    connection.host.string_limit.set(100);
    for (line, expected) in [
        ("SETRANGE k 100 a", TOO_LONG),
        ("EXISTS k", ":0"),
        ("SETRANGE k 99 a", ":100"),
        ("APPEND k a", TOO_LONG),
        ("SETRANGE k 99 ab", TOO_LONG),
        ("SETRANGE k 98 ab", ":100"),
        ("STRLEN k", ":100"),
        ("GETBIT k 799", ":0"),
        ("GETBIT k 800", TOO_FAR),
        ("SETBIT k 800 1", TOO_FAR),
        ("SETBIT b 799 1", ":0"),
        ("STRLEN b", ":100"),
        ("BITFIELD b GET u8 800", TOO_FAR),
        ("BITFIELD b SET u8 #100 1", TOO_FAR),
        // A field may begin before the limit and end after it, as in Valkey.
        ("BITFIELD b SET u8 796 255", "*1\r\n:16"),
        ("STRLEN b", ":101"),
        ("SET x abcd", "+OK"),
        ("LCS x x LEN", ":4"),
        ("SET y abcdefgh", "+OK"),
        ("LCS y y LEN", "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"),
    ] {
        assert_eq!(run(&mut connection, line), expected, "{line}");
    }
}

/// Under the LFU policies access stamps are counters, otherwise times; asking for the other is an error, unless there
/// is no such key.
#[test]
fn stamps_are_counters_or_times() {
    let mut connection = connection();
    run(&mut connection, "SET k v");
    assert_eq!(run(&mut connection, "OBJECT IDLETIME k"), ":0");
    assert!(run(&mut connection, "OBJECT FREQ k").starts_with("-ERR An LFU maxmemory policy is not selected"));
    connection.host.stamp_meaning.set_frequency(true);
    assert_eq!(run(&mut connection, "OBJECT FREQ k"), ":0");
    assert!(run(&mut connection, "OBJECT IDLETIME k").starts_with("-ERR An LFU maxmemory policy is selected"));
    assert_eq!(run(&mut connection, "OBJECT IDLETIME missing"), "$-1");
}

/// Matching takes time in proportion to the pattern, so its length is bounded.
#[test]
fn long_patterns_are_refused() {
    let mut connection = connection();
    run(&mut connection, "SET k v");
    let longest = "*".repeat(PATTERN_BYTES_MAX);
    assert_eq!(run(&mut connection, &format!("KEYS {longest}")), "*1\r\n$1\r\nk");
    for line in [format!("KEYS {longest}*"), format!("SCAN 0 MATCH {longest}*")] {
        assert_eq!(run(&mut connection, &line), "-ERR pattern is longer than 4096 bytes");
    }
}
