//! Access to keys: clients whose user may run the command that shows them, by HTTP Basic authentication.

use crate::{Access, Facts};
use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Whether a request may see what a command answers: without a login, or with the one that it carries.
pub fn access(facts: &dyn Facts, headers: &HeaderMap, words: &[&str]) -> Access {
    match (facts.access(None, words), credentials(headers)) {
        (Access::Granted, _) => Access::Granted,
        (_, Some((user, password))) => facts.access(Some((&user, &password)), words),
        (refused, None) => refused,
    }
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
