//! `--pipe`: sends what standard input has as it is, and counts the replies, as redis-cli does.
//!
//! It writes and reads by turns without waiting for either, so that a server whose replies are not read cannot stop it.
//! The end is a reply to an ECHO with random words that follows all others.

use super::reply::{Form, shown};
use super::session::Session;
use base::random::{Entropy, OsEntropy};
use proto::reply::Value;
use std::error::Error;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Bytes of standard input that are held.
const HELD: usize = 64 << 10;

/// Sends all; false after an error reply. `patience` is the time without a reply after the last byte; `None` for ever.
pub fn run(session: &mut Session, patience: Option<Duration>) -> Result<bool, Box<dyn Error>> {
    let mut end = [0; 20];
    OsEntropy.fill(&mut end);
    let end: String = end.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    let mut input = io::stdin().lock().chain(io::Cursor::new(format!("*2\r\n$4\r\nECHO\r\n$20\r\n{end}\r\n")));
    let (mut errors, mut replies, mut is_over) = (0, 0, false);
    let mut buffer = vec![0; HELD];
    let mut fill = || -> io::Result<Vec<u8>> {
        let length = input.read(&mut buffer)?;
        if length == 0 {
            println!("All data transferred. Waiting for the last reply...");
        }
        Ok(buffer.get(..length).unwrap_or_default().to_vec())
    };
    session.pipe(&mut fill, patience, &mut |reply| {
        if reply.as_bytes() == Some(end.as_bytes()) {
            is_over = true;
        } else if reply.as_error().is_some() {
            (errors, replies) = (errors + 1, replies + 1);
            let text = shown(reply, Form::Plain);
            io::stderr().write_all(&[text.trim_ascii_end(), b"\n"].concat())?;
        } else if !matches!(reply, Value::Push(_)) {
            replies += 1;
        }
        Ok(is_over)
    })?;
    match is_over {
        true => println!("Last reply received from server."),
        false => println!("No replies for {} seconds: exiting.", patience.unwrap_or_default().as_secs()),
    }
    println!("errors: {errors}, replies: {replies}");
    Ok(is_over && errors == 0)
}
