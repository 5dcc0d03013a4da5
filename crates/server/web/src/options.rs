//! The options of a path: `?prefix=user%3A&depth=1`.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::convert::Infallible;

/// Names and values, decoded.
#[derive(Debug, Default)]
pub struct Options(Vec<(String, String)>);

impl Options {
    fn parse(query: &str) -> Self {
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (decoded(name), decoded(value))
        };
        Self(query.split('&').filter(|text| !text.is_empty()).map(pair).collect())
    }

    /// The value of a name: of several the last.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Options {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.uri.query().map(Self::parse).unwrap_or_default())
    }
}

/// `+` is a space, and `%` begins two hexadecimal digits of a byte. What is neither stays.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = after.first_chunk::<2>().and_then(|digits| str::from_utf8(digits).ok());
        let is_number = |digits: &&str| *first == b'%' && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = digits.filter(is_number).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
        bytes.push(byte.unwrap_or(if *first == b'+' { b' ' } else { *first }));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_decoded() {
        let options = Options::parse("prefix=a%3A%20b+c&depth=2&values&depth=3&=x&%zz=%4");
        assert_eq!(options.get("prefix"), Some("a: b c"));
        assert_eq!(options.get("depth"), Some("3"));
        assert_eq!((options.get("values"), options.get("none")), (Some(""), None));
        assert_eq!((options.get(""), options.get("%zz")), (Some("x"), Some("%4")));
        assert_eq!(Options::parse("k=%+4%-1").get("k"), Some("% 4%-1"));
        assert_eq!(Options::parse("k=%ff%C3%A9%").get("k"), Some("\u{fffd}\u{e9}%"));
    }
}
