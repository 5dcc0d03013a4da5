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
    let Some(shown) = socket.client_certificate().filter(|_| field != TlsClientUser::Off) else { return };
    if let Some((name, user)) = user(field, &shown, session, host, now) {
        accept(session, host, user, Proof::Certificate(&name), now);
    }
}

/// The enabled user that a certificate names, and by which name. A common name of none goes to ACL LOG.
pub(crate) fn user(
    field: TlsClientUser,
    shown: &[u8],
    session: &Session,
    host: &Host,
    now: UnixMs,
) -> Option<(String, Arc<User>)> {
    let names = match field {
        TlsClientUser::Off => return None,
        TlsClientUser::CommonName => certificate::common_name(shown).into_iter().collect(),
        TlsClientUser::Uri => certificate::uris(shown),
    };
    let login = &host.login;
    let found = names.iter().find_map(|name| Some((name.clone(), login.enabled(name.as_bytes())?)));
    if found.is_none() && field == TlsClientUser::CommonName {
        names.iter().for_each(|name| note_certificate(session, host, name, now));
    }
    found
}
