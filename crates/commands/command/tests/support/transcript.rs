//! Conversations with a server as text, in `testdata/`: read them as a specification.
//!
//! ```text
//! # A comment.
//! == What this part is about; it begins with an empty store
//! > SET key "two words\x00"
//! +OK
//! > GET missing
//! 2: nil
//! 3: null
//! @clock 1500       lets milliseconds pass
//! @db 1             switches to another database
//! ```
//!
//! A reply is one line: `+status`, `-error`, `:1`, `"string"`, `nil` (of RESP2, in the place of a string), `nil*` (of
//! an array), `null` (of RESP3), `txt"verbatim"`, `[array, of]`, `~[set, of]`, `{map: of}`. Where RESP2 and RESP3
//! differ there are two lines.

use super::{Connection, Fetching};
use proto::Protocol;
use proto::reply::{Parser, Value};
use std::fmt::Write;
use std::path::Path;

/// Plays the transcript in both protocols, with all rows in memory and with rows that have to be fetched.
///
/// With `ONGGI_REWRITE_TESTDATA` set, the file gets the replies of now instead, to be read and committed.
///
/// # Panics
/// When replies differ from those in the file: with all of them.
pub fn play(path: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(path);
    let text = std::fs::read_to_string(&path).expect("the transcript");
    if std::env::var_os("ONGGI_REWRITE_TESTDATA").is_some() {
        std::fs::write(&path, replay(&text, Fetching::Never)).expect("the transcript can be written");
        return;
    }
    for fetching in [Fetching::Never, Fetching::AtRandom] {
        let played = replay(&text, fetching);
        if played != text {
            panic!("{} with fetching {fetching:?}:\n{}", path.display(), differences(&text, &played));
        }
    }
}

/// The same conversation with the replies of now.
fn replay(text: &str, fetching: Fetching) -> String {
    let mut two = Connection::new(Protocol::Resp2, fetching);
    let mut three = Connection::new(Protocol::Resp3, fetching);
    let mut played = String::new();
    for line in text.lines() {
        if let Some(request) = line.strip_prefix("> ") {
            let words = words(request);
            let replies = [&mut two, &mut three].map(|connection| show_reply(&connection.run(&words)));
            writeln!(played, "{line}").expect("text");
            match replies {
                [two, three] if two == three => writeln!(played, "{two}").expect("text"),
                [two, three] => writeln!(played, "2: {two}\n3: {three}").expect("text"),
            }
            continue;
        }
        let number = |text: &str| text.split_whitespace().next().and_then(|word| word.parse::<i64>().ok());
        if line.starts_with("==") {
            [&two, &three].into_iter().for_each(Connection::check_replay);
            (two, three) = (Connection::new(Protocol::Resp2, fetching), Connection::new(Protocol::Resp3, fetching));
        } else if let Some(ms) = line.strip_prefix("@clock ").and_then(number) {
            [&mut two, &mut three].into_iter().for_each(|connection| connection.advance_ms(ms));
        } else if let Some(db) = line.strip_prefix("@db ").and_then(number) {
            [&mut two, &mut three].into_iter().for_each(|connection| connection.select(db as u32));
        } else if !line.is_empty() && !line.starts_with('#') {
            continue;
        }
        writeln!(played, "{line}").expect("text");
    }
    [&two, &three].into_iter().for_each(Connection::check_replay);
    played
}

/// Requests whose replies differ, each with both.
fn differences(expected: &str, played: &str) -> String {
    let exchanges =
        |text: &str| -> Vec<String> { text.split("\n> ").map(|exchange| exchange.trim_end().to_owned()).collect() };
    exchanges(expected)
        .iter()
        .zip(exchanges(played))
        .filter(|(expected, played)| expected.as_str() != played)
        .map(|(expected, played)| format!("expected > {expected}\nplayed   > {played}\n"))
        .collect()
}

/// The arguments of a request line: words between blanks, or between quotation marks with `\xNN`, `\"` and `\\`.
fn words(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut bytes = line.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte == b' ' {
            continue;
        }
        let mut word = Vec::new();
        if byte != b'"' {
            word.push(byte);
            while let Some(byte) = bytes.next_if(|byte| *byte != b' ') {
                word.push(byte);
            }
            words.push(word);
            continue;
        }
        loop {
            match bytes.next().expect("a closing quotation mark") {
                b'"' => break,
                b'\\' => match bytes.next().expect("an escaped character") {
                    b'x' => {
                        let digits = [bytes.next(), bytes.next()].map(|digit| char::from(digit.expect("a digit")));
                        let digits: String = digits.into_iter().collect();
                        word.push(u8::from_str_radix(&digits, 16).expect("two hexadecimal digits"));
                    }
                    escaped => word.push(escaped),
                },
                byte => word.push(byte),
            }
        }
        words.push(word);
    }
    words
}

/// A whole reply as one line.
fn show_reply(bytes: &[u8]) -> String {
    let mut parser = Parser::new();
    parser.feed(bytes);
    let value = parser.next_value().expect("a reply").expect("a whole reply");
    assert!(parser.is_idle(), "bytes after the reply: {}", bytes.escape_ascii());
    show(&value)
}

fn show(value: &Value) -> String {
    let list = |values: &[Value]| values.iter().map(show).collect::<Vec<_>>().join(", ");
    match value {
        Value::Simple(text) => format!("+{}", text.escape_ascii()),
        Value::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
        Value::Integer(number) => format!(":{number}"),
        Value::Bulk(text) => format!("\"{}\"", quoted(text)),
        Value::Verbatim { format, text } => format!("{}\"{}\"", format.escape_ascii(), quoted(text)),
        Value::NullBulk => "nil".to_owned(),
        Value::NullArray => "nil*".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Array(values) => format!("[{}]", list(values)),
        Value::Set(values) => format!("~[{}]", list(values)),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{}: {}", show(key), show(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => format!("{other:?}"),
    }
}

fn quoted(text: &[u8]) -> String {
    let quote = |byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    text.iter().map(quote).collect()
}
