//! One connection as CLIENT LIST and CLIENT INFO show it.

use crate::clients::{ClientFlags, ClientInfo, Clients};
use base::UnixMs;
use std::fmt;

/// A line of fields, its end included.
pub(super) struct Line<'a> {
    pub(super) clients: &'a Clients,
    pub(super) info: &'a ClientInfo,
    /// Shown in place of the last command published: the connection that asks is running another.
    pub(super) command: Option<&'a str>,
    pub(super) now: UnixMs,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, info, now, .. } = *self;
        let (names, held) = (info.names(), info.held());
        write!(f, "id={} addr={} laddr={} fd={} ", info.id, info.address, info.local_address, info.descriptor)?;
        write!(f, "name={} age={} idle={} ", names.name, info.age_seconds(now), info.idle_seconds(now))?;
        write!(f, "flags={} capa={} ", flag_letters(info), capability_letters(info))?;
        let [channels, patterns, shard_channels] = info.subscribed();
        write!(f, "db={} sub={channels} psub={patterns} ssub={shard_channels} ", info.db().0)?;
        write!(f, "multi={} watch={} ", info.queued(), info.watched())?;
        write!(f, "qbuf={} qbuf-free=0 argv-mem=0 multi-mem={} ", held.input_bytes, held.queued_bytes)?;
        write!(f, "rbs={0} rbp={0} obl={1} oll=0 omem={1} ", held.reply_buffer_bytes, held.unsent_bytes)?;
        let events = if held.unsent_bytes == 0 { "r" } else { "rw" };
        let command = self.command.or_else(|| clients.command_name(info.last_command())).unwrap_or("NULL");
        write!(f, "tot-mem={} events={events} cmd={command} ", info.held_bytes())?;
        let user = info.user_name();
        write!(f, "user={} redir={} ", String::from_utf8_lossy(&user), info.redirect())?;
        write!(f, "resp={} lib-name={} ", info.protocol_version(), names.library_name)?;
        write!(f, "lib-ver={} tot-net-in={} ", names.library_version, info.received_bytes.get())?;
        writeln!(f, "tot-net-out={} tot-cmds={}", info.sent_bytes.get(), info.commands_done())
    }
}

/// The line of a connection that runs this command, without its end.
pub(crate) fn shown(clients: &Clients, info: &ClientInfo, command: &str, now: UnixMs) -> String {
    let line = Line { clients, info, command: Some(command), now }.to_string();
    line.trim_end().to_owned()
}

/// The letters of `flags`, in Valkey's order; `N` when there are no others.
pub(super) fn flag_letters(info: &ClientInfo) -> String {
    const BEFORE_LOCAL: [(ClientFlags, char); 9] = [
        (ClientFlags::MONITOR, 'O'),
        (ClientFlags::SUBSCRIBER, 'P'),
        (ClientFlags::TRANSACTION, 'x'),
        (ClientFlags::BLOCKED, 'b'),
        (ClientFlags::TRACKING, 't'),
        (ClientFlags::REDIRECTION_BROKEN, 'R'),
        (ClientFlags::BROADCAST, 'B'),
        (ClientFlags::WATCH_BROKEN, 'd'),
        (ClientFlags::CLOSING, 'c'),
    ];
    const AFTER_LOCAL: [(ClientFlags, char); 3] =
        [(ClientFlags::READ_ONLY, 'r'), (ClientFlags::NO_EVICT, 'e'), (ClientFlags::NO_TOUCH, 'T')];
    let flags = info.flags();
    let set = |letters: &[(ClientFlags, char)]| -> String {
        letters.iter().filter(|(flag, _)| flags.contains(*flag)).map(|it| it.1).collect()
    };
    let local = if info.is_local() { "U" } else { "" };
    let mut letters = set(&BEFORE_LOCAL) + local + &set(&AFTER_LOCAL);
    if letters.is_empty() {
        letters.push('N');
    }
    letters
}

/// The letters of `capa`.
fn capability_letters(info: &ClientInfo) -> &'static str {
    if info.flags().contains(ClientFlags::CAN_REDIRECT) { "r" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Address;

    #[test]
    fn a_socket_file_is_shown_as_address_and_flag() {
        let address = || Address::Unix("/run/socket".into());
        let info = ClientInfo::new(7, address(), address(), 1000);
        let clients = Clients::new(std::iter::empty());
        let line = Line { clients: &clients, info: &info, command: None, now: 4999 }.to_string();
        assert!(
            line.starts_with("id=7 addr=/run/socket:0 laddr=/run/socket:0 fd=-1 name= age=3 idle=3 flags=U capa= ")
        );
        assert!(line.contains(" cmd=NULL "), "no command yet: {line}");
        assert!(line.ends_with(" tot-cmds=0\n"));
    }
}
