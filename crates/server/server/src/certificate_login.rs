//! Login of clients by their certificate (`tls-auth-clients-user`).

use crate::socket::Socket;
use base::UnixMs;
use command::acl::User;
use command::audit::Proof;
use command::redis::connection::{accept, note_certificate};
use command::{Host, Session};
use config::TlsClientUser;
use std::sync::Arc;
use tls::certificate;

/// Logs the client in after its handshake, if its certificate names an enabled user. A common name of no such user goes
/// to ACL LOG, and the client may still log in with a password.
pub(crate) fn log_in(field: TlsClientUser, socket: &Socket, session: &mut Session, host: &Host, now: UnixMs) {
    let Some(shown) = socket.client_certificate() else { return };
    let names = match field {
        TlsClientUser::Off => return,
        TlsClientUser::CommonName => certificate::common_name(&shown).into_iter().collect(),
        TlsClientUser::Uri => certificate::uris(&shown),
    };
    match names.iter().find_map(|name| Some((name, enabled(host, name)?))) {
        Some((name, user)) => accept(session, host, user, Proof::Certificate(name), now),
        None if field == TlsClientUser::CommonName => {
            names.iter().for_each(|name| note_certificate(session, host, name, now));
        }
        None => {}
    }
}

fn enabled(host: &Host, name: &str) -> Option<Arc<User>> {
    host.login.users.find(name.as_bytes()).filter(|user| user.rules().is_enabled)
}
