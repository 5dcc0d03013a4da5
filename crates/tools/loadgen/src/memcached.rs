//! The part of memcached's text protocol that a comparison with ARCUS needs: `set` and `get` as templates, parsing of
//! their replies, and requests for the version and the number of items.
//!
//! ```text
//! set <key> 0 0 <bytes>\r\n<value>\r\n    ->  STORED
//! get <key>\r\n                          ->  VALUE <key> 0 <bytes>\r\n<value>\r\nEND, or END alone
//! ```

use crate::client::{Address, Socket};
use crate::error::{BenchError, Result};
use crate::resp::{NotResp, Reply};
use std::io::{BufRead, BufReader, Write};

/// Walks over a stream of replies and reports each once, as [`crate::resp::ReplyWalker`] does.
#[derive(Debug, Default)]
pub struct Walker {
    /// Remaining bytes of a value, including its CRLF.
    value: u64,
    /// A value has arrived; the `END` of the same reply follows.
    in_values: bool,
    /// The beginning of a line that a read cut off.
    line: Vec<u8>,
    first_error: Option<String>,
}

/// Longer lines are skipped without being kept.
const LINE_BYTES_MAX: usize = 512;

impl Walker {
    /// Walks over `input` and calls `each` once for every reply that ends in it.
    ///
    /// # Errors
    /// [`NotResp`] for a line that answers neither `set` nor `get`.
    pub fn walk(&mut self, mut input: &[u8], mut each: impl FnMut(Reply)) -> std::result::Result<(), NotResp> {
        while !input.is_empty() {
            if self.value > 0 {
                let passed = (input.len() as u64).min(self.value);
                input = &input[passed as usize..];
                self.value -= passed;
                continue;
            }
            let (head, whole) = match input.iter().position(|&byte| byte == b'\n') {
                Some(end) => (&input[..=end], true),
                None => (input, false),
            };
            input = &input[head.len()..];
            let room = LINE_BYTES_MAX - self.line.len().min(LINE_BYTES_MAX);
            self.line.extend_from_slice(&head[..head.len().min(room)]);
            if whole {
                let line = std::mem::take(&mut self.line);
                self.line_done(&line, &mut each)?;
            }
        }
        Ok(())
    }

    fn line_done(&mut self, line: &[u8], each: &mut impl FnMut(Reply)) -> std::result::Result<(), NotResp> {
        let text = String::from_utf8_lossy(line);
        let mut words = text.split_ascii_whitespace();
        match words.next().unwrap_or_default() {
            "VALUE" => {
                let bytes = words.nth(2).and_then(|word| word.parse::<u64>().ok()).ok_or(NotResp(b'V'))?;
                (self.value, self.in_values) = (bytes + 2, true);
            }
            "END" => each(if std::mem::take(&mut self.in_values) { Reply::Value } else { Reply::Nil }),
            "STORED" => each(Reply::Value),
            "NOT_STORED" | "ERROR" | "CLIENT_ERROR" | "SERVER_ERROR" => {
                if self.first_error.is_none() {
                    self.first_error = Some(text.trim_end().to_owned());
                }
                each(Reply::Error);
            }
            _ => return Err(NotResp(line.first().copied().unwrap_or(0))),
        }
        Ok(())
    }

    /// The first error reply seen, if any.
    pub fn error(&self) -> Option<&str> {
        self.first_error.as_deref()
    }
}

/// The server's reply to `version`, such as `1.13.4`.
///
/// # Errors
/// The server cannot be reached, or replies something else.
pub fn version(address: &Address) -> Result<String> {
    let line = ask(address, "version", |line| !line.is_empty())?.pop().unwrap_or_default();
    match line.strip_prefix("VERSION ") {
        Some(version) => Ok(version.to_owned()),
        None => Err(refused(address, "version", line)),
    }
}

/// Keys that the server holds.
///
/// # Errors
/// As [`version`].
pub fn key_count(address: &Address) -> Result<u64> {
    let lines = ask(address, "stats", |line| line == "END" || line.ends_with("ERROR"))?;
    let count = lines.iter().find_map(|line| line.strip_prefix("STAT curr_items ")?.trim().parse().ok());
    count.ok_or_else(|| refused(address, "stats", lines.last().cloned().unwrap_or_default()))
}

fn refused(address: &Address, command: &str, reply: String) -> BenchError {
    BenchError::Refused { address: address.to_string(), command: command.to_owned(), reply }
}

/// Sends one command and reads lines up to the one that is the `last`.
fn ask(address: &Address, command: &str, last: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let broken = |source| BenchError::Connect { address: address.to_string(), source };
    let mut socket = Socket::connect(address).map_err(broken)?;
    socket.write_all(format!("{command}\r\n").as_bytes()).map_err(broken)?;
    let mut lines = Vec::new();
    for line in BufReader::new(socket).lines() {
        lines.push(line.map_err(broken)?);
        if lines.last().is_some_and(|line| last(line)) {
            return Ok(lines);
        }
    }
    Err(BenchError::Closed { address: address.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_found_however_they_are_cut() {
        let wire = b"STORED\r\nVALUE key:1 0 6\r\nEND\r\nx\r\nEND\r\nEND\r\nSERVER_ERROR out of memory\r\nSTORED\r\n";
        for size in 1..=wire.len() {
            let (mut walker, mut seen) = (Walker::default(), Vec::new());
            for piece in wire.chunks(size) {
                walker.walk(piece, |reply| seen.push(reply)).unwrap();
            }
            assert_eq!(seen, [Reply::Value, Reply::Value, Reply::Nil, Reply::Error, Reply::Value], "pieces of {size}");
            assert_eq!(walker.error(), Some("SERVER_ERROR out of memory"));
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for bad in ["+OK\r\n", "VALUE a\r\n", "\r\n"] {
            assert!(Walker::default().walk(bad.as_bytes(), |_| {}).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn versions_and_counts_are_asked_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        let server = std::thread::spawn(move || {
            for answer in ["VERSION 1.13\r\n", "STAT pid 1\r\nSTAT curr_items 42\r\nEND\r\n", "what\r\n"] {
                let (stream, _) = listener.accept().unwrap();
                let mut asked = String::new();
                BufReader::new(stream.try_clone().unwrap()).read_line(&mut asked).unwrap();
                (&stream).write_all(answer.as_bytes()).unwrap();
            }
        });
        assert_eq!(version(&address).unwrap(), "1.13");
        assert_eq!(key_count(&address).unwrap(), 42);
        assert!(version(&address).unwrap_err().to_string().contains("what"));
        server.join().unwrap();
    }
}
