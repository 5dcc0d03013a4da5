//! One line: a JSON object that is built field by field.

use crate::clients::ClientInfo;
use base::UnixMs;
use std::fmt::Write as _;

/// Longer names and arguments are cut at this many bytes.
const TEXT_BYTES_MAX: usize = 256;

/// Arguments beyond these are left out.
const ARGUMENTS_MAX: usize = 32;

/// A JSON object without its closing brace.
pub(super) struct Line(String);

impl Line {
    /// The line of an event.
    pub(super) fn new(now: UnixMs, event: &str) -> Self {
        let mut line = Self(format!("{{\"time\":\"{}\"", calendar::utc(now)));
        line.text("event", event);
        line
    }

    /// Adds who it is.
    pub(super) fn client(&mut self, client: &ClientInfo, user: &[u8]) {
        self.bytes("user", user);
        self.text("client", &client.address.to_string());
        self.number("id", client.id);
    }

    /// Adds a field.
    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.bytes(name, value.as_bytes());
    }

    /// Adds a field. Bytes that are no UTF-8 become replacement characters.
    pub(super) fn bytes(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.string(value);
    }

    /// Adds a number.
    pub(super) fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        // Writing to a string does not fail.
        let _ = write!(self.0, "{value}");
    }

    /// Adds a list of strings.
    pub(super) fn list(&mut self, name: &str, values: &[Vec<u8>]) {
        self.name(name);
        self.0.push('[');
        for (index, value) in values.iter().take(ARGUMENTS_MAX).enumerate() {
            self.separate(index);
            self.string(value);
        }
        self.0.push(']');
        self.say_rest(values.len());
    }

    /// Adds an object of strings.
    pub(super) fn map(&mut self, name: &str, pairs: &[(Vec<u8>, Vec<u8>)]) {
        self.name(name);
        self.0.push('{');
        for (index, (key, value)) in pairs.iter().take(ARGUMENTS_MAX).enumerate() {
            self.separate(index);
            self.string(key);
            self.0.push(':');
            self.string(value);
        }
        self.0.push('}');
        self.say_rest(pairs.len());
    }

    /// Adds how many lines of its kind were left out before it.
    pub(super) fn left_out(mut self, lines: u64) -> Self {
        if lines > 0 {
            self.number("left_out", lines);
        }
        self
    }

    /// The text without its end.
    pub(super) fn open_end(self) -> String {
        self.0
    }

    fn say_rest(&mut self, count: usize) {
        if let Some(rest) = count.checked_sub(ARGUMENTS_MAX).filter(|rest| *rest > 0) {
            self.number("more", rest as u64);
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.0.push(',');
        }
    }

    fn name(&mut self, name: &str) {
        self.0.push(',');
        self.string(name.as_bytes());
        self.0.push(':');
    }

    fn string(&mut self, value: &[u8]) {
        let text = String::from_utf8_lossy(value.get(..TEXT_BYTES_MAX).unwrap_or(value));
        self.0.push('"');
        for char in text.chars() {
            match char {
                '"' | '\\' => self.0.extend(['\\', char]),
                _ if char.is_control() => _ = write!(self.0, "\\u{:04x}", u32::from(char)),
                _ => self.0.push(char),
            }
        }
        self.0.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_json_object_whatever_names_contain() {
        let mut line = Line::new(1_795_327_655_120, "login");
        line.bytes("user", b"a\"b\\\n\x00\xFF");
        line.number("id", 7);
        line.list("arguments", &[b"x".to_vec(), Vec::new()]);
        line.map("settings", &[(b"k".to_vec(), b"v".to_vec())]);
        let expected = concat!(
            r#"{"time":"2026-11-22T06:07:35.120Z","event":"login","user":"a\"b\\\u000a\u0000"#,
            "\u{FFFD}",
            r#"","id":7,"arguments":["x",""],"settings":{"k":"v"},"left_out":2"#
        );
        assert_eq!(line.left_out(2).open_end(), expected);
    }

    #[test]
    fn long_names_and_lists_are_cut() {
        let mut line = Line::new(0, "x");
        line.list("arguments", &vec![vec![b'y'; 1000]; 40]);
        let text = line.open_end();
        assert_eq!(text.matches('y').count(), ARGUMENTS_MAX * TEXT_BYTES_MAX);
        assert!(text.ends_with(r#"],"more":8"#), "{text}");
    }
}
