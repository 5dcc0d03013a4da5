//! The prompt: one command a line, until Ctrl-D, `exit` or `quit`.

use super::docs::{Docs, Entry};
use super::editor::Lines;
use super::reply::{self, Form};
use super::session::{Sent, Session};
use super::words;
use proto::reply::Value;
use rustyline::error::ReadlineError;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Reads commands and prints replies until the user ends.
pub fn run(mut session: Session, form: Form) -> Result<(), Box<dyn Error>> {
    session.catch_interrupts()?;
    let mut lines = Lines::new()?;
    learn(&mut session, &mut lines);
    loop {
        session.forget_interrupt();
        let line = match lines.next(&session.prompt()) {
            Ok(line) => line,
            // Ctrl-C drops the line.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let Some(words) = words::split(line.as_bytes()) else {
            println!("Quotes do not match.");
            continue;
        };
        if words.is_empty() {
            continue;
        }
        lines.remember(&line, &words);
        let text: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        match text.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default().as_str() {
            "exit" | "quit" => return Ok(()),
            "clear" => lines.clear()?,
            "help" | "?" => print!("{}", help(lines.docs(), text.get(1..).unwrap_or_default())),
            _ => send(&mut session, &words, form),
        }
        if lines.docs().is_empty() {
            // After a login the server answers.
            learn(&mut session, &mut lines);
        }
    }
}

/// Asks the server about its commands. One that says nothing leaves the prompt without hints.
fn learn(session: &mut Session, lines: &mut Lines) {
    let mut reply = Value::Null;
    let asked = session.send(&[b"COMMAND".to_vec(), b"DOCS".to_vec()], &mut |value| {
        reply = value.clone();
        Ok(())
    });
    if asked.is_ok() {
        *lines.docs() = Docs::read(&reply);
    }
}

/// Sends a command, or one that follows a number as often as that.
fn send(session: &mut Session, words: &[Vec<u8>], form: Form) {
    let number = words.first().and_then(|word| std::str::from_utf8(word).ok()?.parse::<u64>().ok());
    let (times, command) = match (number, words.get(1..)) {
        (Some(times), Some(command)) if !command.is_empty() => (times, command),
        _ => (1, words),
    };
    let form = reply::form_of(command, form);
    for _ in 0..times {
        match session.send(command, &mut |value| io::stdout().write_all(&reply::shown(value, form))) {
            Ok(Sent::Answered | Sent::Closed) => {}
            Ok(Sent::Interrupted) => {
                println!("interrupted; the next command connects again");
                session.reconnect_next_time();
                return;
            }
            Err(error) => {
                println!("{error}");
                vfs::further_causes(&*error).iter().for_each(|cause| println!("  because: {cause}"));
                return;
            }
        }
    }
}

/// The text of `help`, of a command, of names that begin so, or of a group.
fn help(docs: &Docs, words: &[String]) -> String {
    let wanted = words.join(" ");
    let mut text = String::new();
    let found: Vec<&Entry> = match wanted.strip_prefix('@') {
        _ if wanted.is_empty() => return overview(docs),
        Some(group) => docs.group(group).collect(),
        None => {
            let exact: Vec<_> = docs.beginning(&wanted).filter(|e| e.name.eq_ignore_ascii_case(&wanted)).collect();
            if exact.is_empty() { docs.beginning(&wanted).collect() } else { exact }
        }
    };
    for entry in found {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n  \x1b[1m{}\x1b[0m\n  summary: {}\n  since: {}\n  group: {}\n",
            entry.syntax(),
            entry.summary,
            entry.since,
            entry.group
        );
    }
    if text.is_empty() {
        return format!("No help for {wanted}. Try: help\n");
    }
    text.push('\n');
    text
}

fn overview(docs: &Docs) -> String {
    let groups: Vec<_> = docs.groups().into_iter().map(|group| format!("@{group}")).collect();
    format!(
        "help COMMAND   a command, or all whose names begin so\nhelp @GROUP    the commands of a group: {}\nNUMBER \
         COMMAND sends a command that often\nTab completes, Ctrl-R searches the history, Ctrl-C drops the line or ends \
         a wait\nclear, exit, quit (or Ctrl-D)\n",
        groups.join(" ")
    )
}
