//! INFO tls: the certificates in force, as Valkey shows them.

use super::line;
use base::figures::{self as fields, Figure};
use command::Ctx;
use std::sync::Arc;
use tls::Contexts;
use tls::certificate::Facts;

pub(super) fn section(ctx: &mut Ctx<'_>, text: &mut String) {
    let loaded = ctx.host.find::<Arc<Contexts>>().map(|contexts| contexts.current());
    // Certificates are valid by the machine's time; the server's clock may be slow.
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let mut show = |serial: &Figure, expires: &Figure, facts: Option<&Facts>| {
        line(text, serial, facts.map_or("none", |facts| &facts.serial));
        let seconds = facts.map_or(0, |facts| facts.expires_at.saturating_sub_unsigned(now).max(0));
        line(text, expires, seconds);
    };
    let loaded = loaded.as_deref();
    show(
        &fields::TLS_SERVER_CERT_SERIAL,
        &fields::TLS_SERVER_CERT_EXPIRES_IN_SECONDS,
        loaded.and_then(|loaded| loaded.server_certificate.as_ref()),
    );
    show(
        &fields::TLS_CLIENT_CERT_SERIAL,
        &fields::TLS_CLIENT_CERT_EXPIRES_IN_SECONDS,
        loaded.and_then(|loaded| loaded.client_certificate.as_ref()),
    );
    show(
        &fields::TLS_CA_CERT_SERIAL,
        &fields::TLS_CA_CERT_EXPIRES_IN_SECONDS,
        loaded.and_then(|loaded| loaded.ca_certificate.as_ref()),
    );
}
