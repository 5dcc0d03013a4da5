//! A request of a user, checked and noted in ACL LOG.

use super::check::{Denied, Reason, check};
use super::log::Origin;
use crate::redis::client_line;
use crate::{Args, Host, Row, Session};
use base::UnixMs;

/// A request that is denied, in words.
#[derive(Debug)]
pub struct Denial {
    /// Why.
    pub reason: Reason,
    /// The words, without a code word before them.
    pub text: Vec<u8>,
}

/// Whether the session's user may not run a request. A denial is noted in ACL LOG.
#[cold]
pub fn denial(
    session: &Session,
    host: &Host,
    (row, args): (&Row, &Args<'_>),
    origin: Origin,
    now: UnixMs,
) -> Option<Denial> {
    let user = &session.user;
    let scope = host.login.users.scope(session.db);
    let denied = check(&user.rules(), row, args, scope).err()?;
    Some(note(session, host, (row, args), denied, origin, now))
}

fn note(
    session: &Session,
    host: &Host,
    (row, args): (&Row, &Args<'_>),
    denied: Denied,
    origin: Origin,
    now: UnixMs,
) -> Denial {
    let clients = &host.clients;
    let name = clients.command_name(row.index.into()).unwrap_or(row.spec.name);
    let object = denied.object(name, args);
    let user = session.user.name();
    let client = client_line::shown(clients, &session.info, name, now);
    let login = &host.login;
    login.log.note(denied.reason, origin, object, user, client, now);
    login.audit.denied((&session.info, user), (name, origin), (denied.reason, object), now);
    Denial { reason: denied.reason, text: denied.text(user, object, false) }
}
