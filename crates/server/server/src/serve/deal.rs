//! New connections: which of them are accepted, and by which worker.

use crate::desk::Desk;
use crate::dialect::Language;
use crate::executor::Shared;
use crate::listen::Kind;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::protection::{is_near, refuses};
use crate::socket::{Socket, TlsHandle};
use crate::strangers::Strangers;
use crate::tls_socket::TlsSocket;
use base::DbIndex;
use base::rate::OncePerSecond;
use command::Session;
use command::clients::{Address, TOO_MANY};
use command::error;
use config::{Settings, SsdbNamespaces};
use memcached::refusal;
use proto::ReplyBuffer;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Gives new connections to the workers in turn.
pub(super) struct Dealer<'s> {
    shared: &'s Shared,
    mailboxes: &'s [Arc<Mailbox<Message>>],
    desk: &'s Desk,
    strangers: Strangers,
    refusals: OncePerSecond,
    denials: OncePerSecond,
}

impl<'s> Dealer<'s> {
    /// Gives connections to the workers of these mailboxes.
    pub(super) fn new(shared: &'s Shared, mailboxes: &'s [Arc<Mailbox<Message>>], desk: &'s Desk) -> Self {
        Self {
            shared,
            mailboxes,
            desk,
            strangers: Strangers::default(),
            refusals: OncePerSecond::default(),
            denials: OncePerSecond::default(),
        }
    }
    /// Gives a connection to the next worker, unless there are too many.
    pub(super) fn deal(&mut self, socket: Socket, kind: Kind) {
        let Some(mut socket) = self.with_tls(socket, kind) else { return };
        let language = kind.language;
        let host = &self.shared.host;
        let (settings, clients) = (host.configuration.current(), &host.clients);
        socket.set_keepalive(settings.tcp_keepalive_seconds);
        let unix = || Address::Unix(settings.unixsocket.as_deref().unwrap_or("".as_ref()).to_string_lossy().into());
        let (peer, local) = match socket.addresses() {
            Some((peer, local)) => (Address::Tcp(peer), Address::Tcp(local)),
            None => (unix(), unix()),
        };
        let user = host.login.users.default_user();
        let authenticated = user.rules().is_open();
        if refuses(&settings, &peer, !authenticated) {
            clients.count_rejected();
            if let Some(others) = self.denials.pass(self.shared.store.clock.now_ms()) {
                tracing::warn!(
                    "client {peer} refused: it is on another host, and no password is set; set requirepass, or \
                     protected-mode no ({others} others refused since the last such line)"
                );
            }
            return refuse(&mut socket, kind, error::DENIED, refusal::DENIED);
        }
        let worker = if self.desk.is_attending() { self.desk.attendant() } else { self.desk.next_worker() };
        let info = if clients.count() < connections_max(&settings, is_near(&peer)) {
            clients.connect(peer, local, socket.as_raw_fd(), worker, self.shared.store.clock.now_ms())
        } else {
            clients.count_rejected();
            if let Some(others) = self.refusals.pass(self.shared.store.clock.now_ms()) {
                tracing::warn!(
                    "client {peer} refused: maxclients {} is reached ({others} others refused since the last such line)",
                    settings.maxclients
                );
            }
            None
        };
        let Some(info) = info else {
            return refuse(&mut socket, kind, TOO_MANY, refusal::TOO_MANY);
        };
        let mut stranger = None;
        // A client of TLS counts until its handshake is over.
        if !authenticated || kind.tls {
            let (new, oldest) = self.strangers.enter(info.id, settings.login_clients_max as usize);
            stranger = Some(new);
            if let Some(oldest) = oldest {
                clients.kill(oldest);
            }
        }
        let mut session = Box::new(Session::with_user(info, authenticated, user.clone()));
        match language {
            Language::Resp => {}
            Language::Memcached => session.db = DbIndex(settings.memcached_database),
            Language::Ssdb => {
                session.db = DbIndex(settings.database_of_ssdb());
                if settings.ssdb_namespaces == SsdbNamespaces::Separate {
                    session.separate_types(Some(session.db));
                }
            }
        }
        self.mailboxes[worker].send(Message::Accept { socket, session, language, stranger });
    }

    /// The socket with TLS, where its listener asks for that; `None` when there is no configuration for it.
    fn with_tls(&self, socket: Socket, kind: Kind) -> Option<Socket> {
        match socket {
            Socket::Tcp(tcp) if kind.tls => {
                let config = self.shared.host.part::<crate::Needed, Arc<tls::Contexts>>().server()?;
                TlsSocket::new(tcp, config).ok().map(|socket| Socket::Tls(TlsHandle::new(socket)))
            }
            socket => Some(socket),
        }
    }
}

/// Sends a connection that is not served the reason, if its socket takes it at once. Over TLS the client could read
/// nothing before the handshake, which is not made for it.
fn refuse(socket: &mut Socket, kind: Kind, resp: &str, memcached: &str) {
    if kind.tls {
        return;
    }
    if kind.language == Language::Ssdb {
        let mut reply = ReplyBuffer::for_ssdb();
        reply.error(resp);
        let _ = socket.write_all(reply.as_contiguous().unwrap_or_default());
        return;
    }
    let text = match kind.language {
        Language::Memcached => format!("{memcached}\r\n"),
        Language::Resp | Language::Ssdb => format!("-{resp}\r\n"),
    };
    let _ = socket.write_all(text.as_bytes());
}

/// How many connections there may be for one more to be taken. A part is kept for those of this host.
fn connections_max(settings: &Settings, is_near: bool) -> usize {
    let all = settings.maxclients;
    // A reserve as large as a small `maxclients` would shut every other host out.
    let kept = if is_near { 0 } else { settings.maxclients_reserve.min(all / 2) };
    (all - kept) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_connections_are_kept_for_this_host() {
        for (maxclients, reserve, others) in [(100, 32, 68), (100, 0, 100), (10, 32, 5), (1, 32, 1)] {
            let settings = Settings { maxclients, maxclients_reserve: reserve, ..Settings::default() };
            assert_eq!(connections_max(&settings, true), maxclients as usize);
            assert_eq!(connections_max(&settings, false), others, "{maxclients} {reserve}");
        }
    }
}
