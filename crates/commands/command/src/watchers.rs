//! The connections that MONITOR shows everything, and what they are shown.

use crate::Args;
use crate::clients::ClientInfo;
use crate::login::redacted;
use crate::spec::Flags;
use base::{DbIndex, UnixMs};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shows a line to all watchers.
pub type Show = Box<dyn Fn(&[u8]) + Send + Sync>;

/// All watchers: a part of the [`Host`](crate::Host).
pub struct Watchers {
    count: AtomicUsize,
    show: Show,
}

impl Watchers {
    /// No watchers yet.
    pub fn new(show: Show) -> Self {
        Self { count: AtomicUsize::new(0), show }
    }

    /// One more.
    pub fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// One less.
    pub fn remove(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether there are any.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Shows them a request or a command of a script.
    #[cold]
    pub fn show(&self, args: &Args<'_>, from: (Sender<'_>, DbIndex), now: UnixMs) {
        (self.show)(&line(args, from, now));
    }
}

/// Where a command comes from.
#[derive(Clone, Copy)]
pub enum Sender<'c> {
    /// A client.
    Client(&'c ClientInfo),
    /// A script.
    Script,
}

/// Whether watchers are shown a command with these flags when it runs.
pub fn is_shown(flags: Flags) -> bool {
    !flags.intersects(Flags::SKIP_MONITOR | Flags::ADMIN)
}

/// The line that is shown about a command, to be sent as a simple string: time, database, client, arguments in quotes,
/// secrets replaced.
fn line(args: &Args<'_>, (sender, db): (Sender<'_>, DbIndex), now: UnixMs) -> Vec<u8> {
    let (seconds, ms) = (now.div_euclid(1000), now.rem_euclid(1000));
    let sender = match sender {
        Sender::Client(client) => client.address.to_string(),
        Sender::Script => "lua".to_owned(),
    };
    let mut line = format!("{seconds}.{:06} [{} {sender}]", ms.saturating_mul(1000), db.0).into_bytes();
    for arg in redacted(args) {
        line.extend_from_slice(b" \"");
        arg.iter().for_each(|byte| escape(*byte, &mut line));
        line.push(b'"');
    }
    line
}

/// Writes a byte so that it can stand in a quoted word of one line.
fn escape(byte: u8, line: &mut Vec<u8>) {
    match byte {
        b'\\' | b'"' => line.extend_from_slice(&[b'\\', byte]),
        b'\n' => line.extend_from_slice(b"\\n"),
        b'\r' => line.extend_from_slice(b"\\r"),
        b'\t' => line.extend_from_slice(b"\\t"),
        7 => line.extend_from_slice(b"\\a"),
        8 => line.extend_from_slice(b"\\b"),
        b' '..=b'~' => line.push(byte),
        _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Address;
    use proto::Span;
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn lines_are_quoted() {
        let input = b"set\x00\"\r\xff a";
        let spans = [Span::new(0, 3).unwrap(), Span::new(3, 6).unwrap()];
        let args = Args::new(input, &spans, &[]);
        let nowhere = Address::Tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
        let client = ClientInfo::new(1, nowhere.clone(), nowhere, 0);
        for (sender, name) in [(Sender::Client(&client), "0.0.0.0:0"), (Sender::Script, "lua")] {
            let shown = line(&args, (sender, DbIndex(3)), 1_500_000_000_042);
            let expected = format!(r#"1500000000.042000 [3 {name}] "set" "\x00\"\r\xff a""#);
            assert_eq!(String::from_utf8(shown).unwrap(), expected);
        }
    }
}
