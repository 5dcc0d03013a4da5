//! The address of a primary, as `redis://user:password@host:port`, or `rediss://...` with TLS.

use std::fmt;
use std::str::FromStr;

const PORT: u16 = 6379;
/// The schemes, and whether they use TLS.
const SCHEMES: [(&str, bool); 4] =
    [("redis://", false), ("valkey://", false), ("rediss://", true), ("valkeys://", true)];

/// Where a primary is, and the user that logs in there. Printed without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Primary {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The user; `None` for the default user.
    pub user: Option<String>,
    /// The password; `None` for no login.
    pub password: Option<String>,
    /// Whether the connection uses TLS.
    pub is_tls: bool,
}

/// Why a text is no address of a primary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrimaryError {
    /// Another scheme.
    #[error("expected redis://[[USER]:PASSWORD@]HOST[:PORT], or rediss:// with TLS")]
    Scheme,
    /// No host.
    #[error("no host is named; expected redis://[[USER]:PASSWORD@]HOST[:PORT]")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("port {0:?}: expected a number from 1 to 65535")]
    Port(String),
    /// A percent sign without two hexadecimal digits.
    #[error("a % of user or password is not followed by two hexadecimal digits; write %25 for a percent sign")]
    Percent,
    /// A database is named, but all are copied.
    #[error("{0:?} follows the port: a primary sends all its databases, so none can be named")]
    Path(String),
}

impl Primary {
    /// Whether a text is meant as an address, and not as a path.
    pub fn is_meant_by(text: &str) -> bool {
        SCHEMES.iter().any(|(scheme, _)| text.starts_with(scheme))
    }
}

impl FromStr for Primary {
    type Err = PrimaryError;

    fn from_str(text: &str) -> Result<Self, PrimaryError> {
        let rest = SCHEMES.iter().find_map(|(scheme, is_tls)| Some((text.strip_prefix(scheme)?, *is_tls)));
        let (rest, is_tls) = rest.ok_or(PrimaryError::Scheme)?;
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let (place, path) = place.split_once('/').unwrap_or((place, ""));
        if !path.is_empty() {
            return Err(PrimaryError::Path(format!("/{path}")));
        }
        let (host, port) = host_and_port(place, PORT)?;
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            None => (None, None),
            Some((user, password)) => (some(decode(user)?), Some(decode(password)?)),
        };
        Ok(Self { host, port, user, password, is_tls })
    }
}

/// Splits at the last colon, outside of the brackets of an IPv6 address. Without one, the port is the usual one.
///
/// # Errors
/// No host, or no port.
pub fn host_and_port(place: &str, usual: u16) -> Result<(String, u16), PrimaryError> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => {
            (host, rest.strip_prefix(':').or(rest.is_empty().then_some("")).ok_or(PrimaryError::Host)?)
        }
        None => place.rsplit_once(':').unwrap_or((place, "")),
    };
    if host.is_empty() {
        return Err(PrimaryError::Host);
    }
    let port = match port {
        "" => usual,
        text => text.parse().ok().filter(|port| *port > 0).ok_or_else(|| PrimaryError::Port(text.to_owned()))?,
    };
    Ok((host.to_owned(), port))
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Percent-encoded text, as in any URL.
fn decode(text: &str) -> Result<String, PrimaryError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte.unwrap_or_default()).to_digit(16);
        bytes.push(match byte {
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => (high * 16 + low) as u8,
                _ => return Err(PrimaryError::Percent),
            },
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| PrimaryError::Percent)
}

impl fmt::Display for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Primary({self}, user {:?})", self.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, Option<String>, Option<String>) {
        let primary: Primary = text.parse().unwrap();
        (primary.to_string(), primary.user, primary.password)
    }

    #[test]
    fn addresses() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parse("redis://db.local"), ("db.local:6379".into(), None, None));
        assert_eq!(parse("valkey://127.0.0.1:7000/"), ("127.0.0.1:7000".into(), None, None));
        assert_eq!(parse("redis://[::1]:7000"), ("[::1]:7000".into(), None, None));
        assert_eq!(parse("redis://[::1]"), ("[::1]:6379".into(), None, None));
        assert_eq!(parse("redis://:p%40ss@h"), ("h:6379".into(), None, some("p@ss")));
        assert_eq!(parse("redis://ann:a:b@h:1"), ("h:1".into(), some("ann"), some("a:b")));
        for (text, is_tls) in [("redis://h", false), ("valkey://h", false), ("rediss://h", true), ("valkeys://h", true)]
        {
            assert!(Primary::is_meant_by(text));
            assert_eq!(text.parse::<Primary>().unwrap().is_tls, is_tls, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, error) in [
            ("db.local:6379", PrimaryError::Scheme),
            ("rediss://h:0", PrimaryError::Port("0".into())),
            ("redis://", PrimaryError::Host),
            ("redis://:7000", PrimaryError::Host),
            ("redis://[::1]7", PrimaryError::Host),
            ("redis://h:0", PrimaryError::Port("0".into())),
            ("redis://h:65536", PrimaryError::Port("65536".into())),
            ("redis://h/3", PrimaryError::Path("/3".into())),
            ("redis://a:%4@h", PrimaryError::Percent),
            ("redis://a:%zz@h", PrimaryError::Percent),
        ] {
            assert_eq!(text.parse::<Primary>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_password_is_not_printed() {
        let primary: Primary = "redis://ann:secret@h".parse().unwrap();
        assert!(!format!("{primary} {primary:?}").contains("secret"));
    }
}
