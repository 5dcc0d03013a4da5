//! Logins as a user of the server: by HTTP Basic authentication, by a bearer token, or by the certificate of the
//! connection.
//!
//! L1. A client of another host is shown nothing without a login.
//! L2. Passwords are checked on threads of their own, [`CHECKS_MAX`] at once: a hash may be slow.
//! L3. An answer waits as long as the server says, which grows with the failures of the client's address.

use crate::shared::Shared;
use crate::visit::Visit;
use crate::{Access, Client, Login};
use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::time::Duration;

/// Passwords that are checked at once.
pub const CHECKS_MAX: usize = 2;

/// What a wrong login costs at least.
const WRONG_LOGIN: Duration = Duration::from_millis(200);

/// Whether a request may see what a command answers: without a login, or with the one that it carries.
pub async fn access(shared: &Shared, visit: &Visit, headers: &HeaderMap, words: &[&str]) -> Access {
    let client = |is_new| Client { address: visit.address, is_near: visit.is_near, is_new };
    if visit.is_near && shared.facts.access(&client(false), None, words).0 == Access::Granted {
        return Access::Granted;
    }
    let Some(shown) = shown(headers, visit.certificate()) else { return Access::NoLogin };
    let (facts, client) = (shared.facts.clone(), client(!visit.has_entered()));
    let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
    // Closed never, so there is a place at some time.
    let _place = shared.checks.acquire().await;
    let checked = tokio::task::spawn_blocking(move || {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        facts.access(&client, Some(shown.login()), &words)
    });
    // A panic of the thread shows nothing.
    let (access, delay) = checked.await.unwrap_or((Access::NoLogin, Duration::ZERO));
    drop(_place);
    if access != Access::NoLogin {
        visit.enter();
    }
    let delay = if access == Access::NoLogin { delay.max(WRONG_LOGIN) } else { delay };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    access
}

/// A login of its own memory.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Password(String, String),
    Token(String),
    Certificate(Vec<u8>),
}

impl Shown {
    fn login(&self) -> Login<'_> {
        match self {
            Self::Password(user, password) => Login::Password(user, password),
            Self::Token(token) => Login::Token(token),
            Self::Certificate(certificate) => Login::Certificate(certificate),
        }
    }
}

/// The login of a request: what its header says, or without one the certificate of the connection.
fn shown(headers: &HeaderMap, certificate: Option<&[u8]>) -> Option<Shown> {
    let Some(header) = headers.get(header::AUTHORIZATION) else {
        return certificate.map(|certificate| Shown::Certificate(certificate.to_vec()));
    };
    let (scheme, rest) = header.to_str().ok()?.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Shown::Token(rest.to_owned()));
    }
    let encoded = Some(rest).filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    let user = if user.is_empty() { "default" } else { user };
    Some(Shown::Password(user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_that_of_the_header_or_of_the_certificate() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            shown(&headers, Some(b"certificate"))
        };
        let password = |user: &str, password: &str| Some(Shown::Password(user.to_owned(), password.to_owned()));
        let token = |token: &str| Some(Shown::Token(token.to_owned()));
        assert_eq!(of("Basic dXNlcjpwYTpzcw=="), password("user", "pa:ss"));
        assert_eq!(of("basic OnBhc3M="), password("default", "pass"));
        assert_eq!(of("Basic dG9rZW46"), password("token", ""));
        assert_eq!(of("Bearer  mF_9.B5f "), token("mF_9.B5f"));
        assert_eq!(of("BEARER x"), token("x"));
        // What is shown and cannot be read is no reason to take something else.
        for wrong in ["Basic %", "Basic", "Bearer", "Digest username=x", "Basic dXNlcg=="] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let without = HeaderMap::new();
        assert_eq!(shown(&without, Some(b"certificate")), Some(Shown::Certificate(b"certificate".to_vec())));
        assert_eq!(shown(&without, None), None);
    }
}
