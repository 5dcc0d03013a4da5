//! Logins by HTTP Basic authentication, as a user of the server.
//!
//! L1. A client of another host is shown nothing without a login.
//! L2. Passwords are checked on threads of their own, [`CHECKS_MAX`] at once: a hash may be slow.
//! L3. An answer waits as long as the server says, which grows with the failures of the client's address.

use crate::shared::Shared;
use crate::visit::Visit;
use crate::{Access, Client};
use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::time::Duration;

/// Passwords that are checked at once.
pub const CHECKS_MAX: usize = 2;

/// What a wrong password costs at least.
const WRONG_LOGIN: Duration = Duration::from_millis(200);

/// Whether a request may see what a command answers: without a login, or with the one that it carries.
pub async fn access(shared: &Shared, visit: &Visit, headers: &HeaderMap, words: &[&str]) -> Access {
    let client = |is_new| Client { address: visit.address, is_near: visit.is_near, is_new };
    if visit.is_near && shared.facts.access(&client(false), None, words).0 == Access::Granted {
        return Access::Granted;
    }
    let Some((user, password)) = credentials(headers) else { return Access::NoLogin };
    let (facts, client) = (shared.facts.clone(), client(!visit.has_entered()));
    let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
    // Closed never, so there is a place at some time.
    let _place = shared.checks.acquire().await;
    let checked = tokio::task::spawn_blocking(move || {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        facts.access(&client, Some((&user, &password)), &words)
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

/// User and password of `Authorization: Basic dXNlcjpwYXNz`. No user is the default user.
fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let encoded = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    let user = if user.is_empty() { "default" } else { user };
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_the_header() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            credentials(&headers)
        };
        assert_eq!(of("Basic dXNlcjpwYTpzcw=="), Some(("user".to_owned(), "pa:ss".to_owned())));
        assert_eq!(of("Basic OnBhc3M="), Some(("default".to_owned(), "pass".to_owned())));
        assert_eq!(of("Bearer x"), None);
        assert_eq!(of("Basic %"), None);
    }
}
