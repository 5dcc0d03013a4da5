//! The audit log: logins, denied requests, and commands of administrators, one JSON object a line.
//!
//! ```text
//! worker: login, denial, command --> line --> bounded queue --> thread of the server --> file
//!                                             full: counted, and the next line says how many are lost
//! ```
//!
//! U1. A worker never waits for the file.
//! U2. No line contains a password, the hash of one, a value, or an argument of a command that failed.
//!
//! Format: docs/guides/security.md.

mod line;
mod shown;

use crate::Args;
use crate::acl::{Origin, Reason};
use crate::clients::ClientInfo;
use crate::spec::Flags;
use base::UnixMs;
use line::Line;
use parking_lot::Mutex;
use shown::Shown;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Lines that wait for the file. Beyond that they are lost and counted.
const QUEUE_LINES_MAX: usize = 4096;

/// Lines per second about refusals of one kind. A client that guesses passwords must not push everything else out of
/// the files that are kept.
const REFUSALS_PER_SECOND: u32 = 10;

/// What the server's thread receives.
#[derive(Debug)]
pub enum Message {
    /// A line without its closing brace and end.
    Line(String),
    /// Open the file again.
    Reopen,
    /// No line follows.
    End,
}

/// The proof of a client's identity.
#[derive(Clone, Copy, Debug)]
pub enum Proof<'a> {
    /// A password.
    Password,
    /// A token over HTTP.
    Token,
    /// A certificate of TLS with this common name or URI.
    Certificate(&'a str),
}

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its reply is an error.
    Failed,
    /// Its reply is written when what it began is over.
    Begun,
    /// With its reply.
    Done,
}

impl Ended {
    fn word(self) -> &'static str {
        match self {
            Self::Failed => "error",
            Self::Begun => "begun",
            Self::Done => "ok",
        }
    }
}

/// The queue of lines. Without a receiver it is off and costs a test for each event.
#[derive(Default)]
pub struct Audit {
    queue: OnceLock<SyncSender<Message>>,
    lost: AtomicU64,
    logins: Mutex<Share>,
    denials: Mutex<Share>,
}

/// How many lines of one kind this second has had.
#[derive(Default)]
struct Share {
    second: i64,
    lines: u32,
    left_out: u64,
}

impl Share {
    /// Takes a line of this second: how many were left out before it, or `None` if this one is left out as well.
    fn take(&mut self, now: UnixMs) -> Option<u64> {
        let second = now.div_euclid(1000);
        if second != self.second {
            (self.second, self.lines) = (second, 0);
        }
        if self.lines >= REFUSALS_PER_SECOND {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        self.lines = self.lines.saturating_add(1);
        Some(std::mem::take(&mut self.left_out))
    }
}

impl Audit {
    /// Switches the log on: its lines come to this receiver. `None` if it is on already.
    pub fn open(&self) -> Option<Receiver<Message>> {
        let (sender, receiver) = sync_channel(QUEUE_LINES_MAX);
        self.queue.set(sender).ok().map(|()| receiver)
    }

    /// Whether anything is written.
    pub fn is_on(&self) -> bool {
        self.queue.get().is_some()
    }

    /// How many lines were lost since the last call, since the queue was full or the file refused them.
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    /// Counts lines that the file has refused.
    pub fn lose(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// Has the file opened again, as log rotation asks for.
    pub fn reopen(&self) {
        if let Some(queue) = self.queue.get() {
            // A full queue has lines after which the writer looks at the file anyway.
            let _ = queue.try_send(Message::Reopen);
        }
    }

    /// Ends the log, after the lines so far.
    pub fn end(&self) {
        if let Some(queue) = self.queue.get() {
            // A writer that is gone has ended already.
            let _ = queue.send(Message::End);
        }
    }

    /// A client has logged in, or was refused.
    pub fn login(&self, client: &ClientInfo, (user, proof): (&[u8], Proof<'_>), is_accepted: bool, now: UnixMs) {
        if !self.is_on() {
            return;
        }
        let left_out = if is_accepted { Some(0) } else { self.logins.lock().take(now) };
        let Some(left_out) = left_out else { return };
        let mut line = Line::new(now, "login");
        line.text("result", if is_accepted { "ok" } else { "refused" });
        line.client(client, user);
        match proof {
            Proof::Password => line.text("by", "password"),
            Proof::Token => line.text("by", "token"),
            Proof::Certificate(name) => {
                line.text("by", "certificate");
                line.text("certificate", name);
            }
        }
        self.send(line.left_out(left_out));
    }

    /// A request or a subscription was denied.
    pub(crate) fn denied(
        &self,
        (client, user): (&ClientInfo, &[u8]),
        (command, origin): (&str, Origin),
        (reason, object): (Reason, &[u8]),
        now: UnixMs,
    ) {
        if !self.is_on() {
            return;
        }
        let Some(left_out) = self.denials.lock().take(now) else { return };
        let mut line = Line::new(now, "denied");
        line.client(client, user);
        line.text("command", command);
        line.text("from", origin.word());
        line.text("reason", reason.word());
        line.bytes("object", object);
        self.send(line.left_out(left_out));
    }

    /// A command of an administrator has run, or has failed.
    pub(crate) fn ran(
        &self,
        (client, user): (&ClientInfo, &[u8]),
        (name, args): (&str, &Args<'_>),
        ended: Ended,
        now: UnixMs,
    ) {
        if !self.is_on() || shown::is_quiet(name, args) {
            return;
        }
        let mut line = Line::new(now, shown::event(name));
        line.text("command", name);
        line.text("result", ended.word());
        line.client(client, user);
        match if ended == Ended::Failed { Shown::Nothing } else { shown::arguments(name, args) } {
            Shown::Nothing => {}
            Shown::Words(words) => line.list("arguments", &words),
            Shown::Settings(pairs) => line.map("settings", &pairs),
        }
        self.send(line);
    }

    fn send(&self, line: Line) {
        let Some(queue) = self.queue.get() else { return };
        if queue.try_send(Message::Line(line.open_end())).is_err() {
            self.lose(1);
        }
    }
}

/// The end of a line, with the number of those that were lost before it.
pub fn line_end(lost: u64) -> String {
    if lost == 0 { "}\n".to_owned() } else { format!(",\"lost\":{lost}}}\n") }
}

/// The line about the audit log itself: that it begins or ends.
pub fn line_about_log(event: &str, now: UnixMs) -> String {
    let mut line = Line::new(now, event);
    line.number("pid", std::process::id().into());
    line.open_end()
}

/// Whether the audit log has calls of the command with this full name and these flags, with these arguments.
pub fn notes(name: &str, flags: Flags, args: &Args<'_>) -> bool {
    flags.intersects(Flags::ADMIN | Flags::AUDITED) && !shown::is_quiet(name, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_a_share_of_each_second() {
        let mut share = Share::default();
        let taken: Vec<_> = (0..12).map(|_| share.take(5_000)).collect();
        assert_eq!(taken[..10], [Some(0); 10]);
        assert_eq!(taken[10..], [None, None]);
        assert_eq!((share.take(6_000), share.take(6_001)), (Some(2), Some(0)));
    }

    #[test]
    fn a_full_queue_loses_lines_and_counts_them() {
        let audit = Audit::default();
        audit.send(Line::new(0, "before"));
        assert_eq!(audit.take_lost(), 0, "it is off");
        let lines = audit.open().unwrap();
        assert!(audit.open().is_none());
        (0..QUEUE_LINES_MAX + 3).for_each(|_| audit.send(Line::new(0, "x")));
        assert_eq!((audit.take_lost(), audit.take_lost()), (3, 0));
        assert_eq!(lines.try_iter().count(), QUEUE_LINES_MAX);
        assert_eq!((line_end(0), line_end(3)), ("}\n".to_owned(), ",\"lost\":3}\n".to_owned()));
    }
}
