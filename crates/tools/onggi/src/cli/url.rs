//! Addresses such as `redis://user:password@host:6379/3`, or `rediss://...` with TLS.

use loadgen::client::Address;
use std::str::FromStr;

/// Port of an address that has none.
const PORT: u16 = 6379;

/// The parts of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host and port.
    pub address: Address,
    /// User, unless it is the default one.
    pub user: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Database.
    pub database: Option<u32>,
    /// Whether the connection uses TLS.
    pub is_tls: bool,
}

/// The beginnings of addresses, and whether they stand for TLS.
const SCHEMES: [(&str, bool); 4] =
    [("redis://", false), ("valkey://", false), ("rediss://", true), ("valkeys://", true)];

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = SCHEMES.iter().find_map(|(scheme, is_tls)| Some((text.strip_prefix(scheme)?, *is_tls)));
        let (rest, is_tls) = found
            .ok_or_else(|| format!("`{text}`: expected redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// for TLS"))?;
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = place.rsplit_once('@').unwrap_or(("", place));
        let database = match path {
            "" => None,
            number => Some(number.parse().map_err(|_| format!("`{number}` is not the number of a database"))?),
        };
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (decoded(user)?, Some(decoded(password)?)),
            // As in redis-cli, one word is the password.
            None => (String::new(), Some(decoded(login)?).filter(|password| !password.is_empty())),
        };
        let place = if place.is_empty() { "127.0.0.1" } else { place };
        let has_port = place.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let address = if has_port { place.to_owned() } else { format!("{place}:{PORT}") };
        let address = address.parse().map_err(|error: loadgen::error::BenchError| error.to_string())?;
        Ok(Self { address, user: Some(user).filter(|user| !user.is_empty()), password, database, is_tls })
    }
}

/// Text with `%40` as `@`.
fn decoded(text: &str) -> Result<String, String> {
    let bad = || format!("`{text}`: expected two hexadecimal digits after each %");
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or_else(bad)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad());
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_address() {
        let url = |text: &str| text.parse::<Url>().unwrap();
        let tcp = |text: &str| Address::Tcp(text.to_owned());
        let all = url("redis://user:p%40ss:word@db.example:7000/3");
        assert_eq!((all.address, all.database), (tcp("db.example:7000"), Some(3)));
        assert_eq!((all.user.as_deref(), all.password.as_deref()), (Some("user"), Some("p@ss:word")));
        let short = url("valkey://secret@[::1]");
        assert_eq!((short.address, short.user, short.password.as_deref()), (tcp("[::1]:6379"), None, Some("secret")));
        assert_eq!(url("redis://db/").address, tcp("db:6379"));
        assert!(!short.is_tls && url("rediss://db").is_tls && url("valkeys://db").is_tls);
        for bad in ["db:6379", "redis://db/x", "redis://a%zz@db", "redis://db:0", "redis://a%4@db"] {
            assert!(bad.parse::<Url>().is_err(), "{bad}");
        }
    }
}
