//! The addresses of both servers.

use replication::{Primary, host_and_port};
use std::fmt;
use std::str::FromStr;

const SCHEME: &str = "ssdb://";
const PORT: u16 = 8888;

/// Where an SSDB listens: `ssdb://[:PASSWORD@]HOST[:PORT]`. Printed without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Ssdb {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The password; `None` for no login.
    pub password: Option<String>,
}

impl Ssdb {
    /// Whether a text is meant as an address of an SSDB.
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(SCHEME)
    }
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SsdbAddressError {
    /// Of an SSDB.
    #[error("expected ssdb://[:PASSWORD@]HOST[:PORT], with a port from 1 to 65535 and percent signs written as %25")]
    Ssdb,
    /// Of a server that receives a copy.
    #[error(transparent)]
    Server(#[from] replication::PrimaryError),
    /// Of its database.
    #[error("database {0:?}: expected a number from 0 to 65535 after the port, as in redis://HOST:PORT/2")]
    Database(String),
}

impl FromStr for Ssdb {
    type Err = SsdbAddressError;

    fn from_str(text: &str) -> Result<Self, SsdbAddressError> {
        let place = text.strip_prefix(SCHEME).ok_or(SsdbAddressError::Ssdb)?.trim_end_matches('/');
        // Login and percent signs are as in Redis' addresses.
        let bare = place.rsplit_once('@').map_or(place, |(_, bare)| bare);
        let (host, port) = host_and_port(bare, PORT).map_err(|_| SsdbAddressError::Ssdb)?;
        let primary = format!("redis://{place}").parse::<Primary>().map_err(|_| SsdbAddressError::Ssdb)?;
        match primary.user {
            Some(_) => Err(SsdbAddressError::Ssdb),
            None => Ok(Self { host, port, password: primary.password }),
        }
    }
}

impl fmt::Display for Ssdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for Ssdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ssdb({self})")
    }
}

/// A database of a running server: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The server.
    pub server: Primary,
    /// Its database.
    pub database: u32,
}

impl FromStr for Target {
    type Err = SsdbAddressError;

    fn from_str(text: &str) -> Result<Self, SsdbAddressError> {
        let after_scheme = text.find("://").map_or(0, |at| at + 3);
        let login = text.rfind('@').map_or(after_scheme, |at| at.max(after_scheme));
        let slash = text.get(login..).and_then(|rest| rest.find('/')).map(|at| at + login);
        let (server, database) = match slash.and_then(|at| text.split_at_checked(at)) {
            Some((server, path)) => (server, path.trim_start_matches('/')),
            None => (text, ""),
        };
        let server = server.parse::<Primary>()?;
        let database = match database {
            "" => 0,
            number => number
                .parse::<u32>()
                .ok()
                .filter(|number| *number < crate::DATABASES_MAX)
                .ok_or_else(|| SsdbAddressError::Database(number.to_owned()))?,
        };
        Ok(Self { server, database })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} database {}", self.server, self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let ssdb = |text: &str| text.parse::<Ssdb>().map(|ssdb| (ssdb.to_string(), ssdb.password));
        assert_eq!(ssdb("ssdb://10.0.0.7"), Ok(("10.0.0.7:8888".to_owned(), None)));
        assert_eq!(ssdb("ssdb://:a%40b@db.local:88/"), Ok(("db.local:88".to_owned(), Some("a@b".to_owned()))));
        for text in ["ssdb://", "ssdb://h:0", "ssdb://user:p@h", "ssdb://:%4@h", "redis://h"] {
            assert_eq!(ssdb(text), Err(SsdbAddressError::Ssdb), "{text}");
        }
        let target = |text: &str| text.parse::<Target>().map(|target| target.to_string());
        assert_eq!(target("redis://h:7/3").unwrap(), "h:7 database 3");
        assert_eq!(target("rediss://:p%2Fq@h").unwrap(), "h:6379 database 0");
        assert!(target("redis://:p/q@h/2").is_ok());
        for text in ["h:6379", "redis://h/x", "redis://h/65536", "redis://h/1/2"] {
            assert!(target(text).is_err(), "{text}");
        }
    }
}
