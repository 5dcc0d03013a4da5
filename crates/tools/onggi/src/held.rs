//! The files of a running server, which keeps them in place while a tool reads them.

use clap::Args;
use inspect::Source;
use loadgen::client::{Address, Client, Login};
use proto::reply::Value;
use std::convert::Infallible;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Duration of the hold: enough to link a few files and to copy the log.
const HOLD_SECONDS: &str = "3600";

/// How long a server that is removing files is asked again.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

pub type Error = Box<dyn std::error::Error>;

/// How to log in to the server.
#[derive(Args)]
pub struct LoginArgs {
    /// User name; the default user if missing.
    #[arg(long)]
    user: Option<String>,
    /// Password.
    #[arg(long, env = "ONGGI_PASSWORD", hide_env_values = true)]
    password: Option<String>,
}

impl LoginArgs {
    /// The login of a connection.
    pub fn login(&self) -> Login {
        Login { user: self.user.clone(), password: self.password.clone(), ..Login::default() }
    }
}

/// The source of a tool: the directory of a stopped server, or a running server on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A data directory.
    Directory(PathBuf),
    /// A server's address.
    Server(Address),
}

impl FromStr for Place {
    type Err = Infallible;

    /// A directory that exists wins, whatever its name looks like.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let path = Path::new(text);
        let is_socket = path.metadata().is_ok_and(|found| found.file_type().is_socket());
        let may_be_address = is_socket || text.starts_with("unix:") || !text.contains('/');
        Ok(match text.parse() {
            Ok(address) if may_be_address && !path.is_dir() => Self::Server(address),
            _ => Self::Directory(path.to_owned()),
        })
    }
}

impl Place {
    /// Runs `work` on the data, and keeps the files of a running server in place meanwhile.
    pub fn with<R>(&self, login: &LoginArgs, work: impl FnOnce(&Source<'_>) -> Result<R, Error>) -> Result<R, Error> {
        match self {
            Self::Directory(dir) => work(&Source::Stopped(dir)),
            Self::Server(address) => {
                let mut held = Held::take(address, login)?;
                let done = work(&held.source());
                // If this fails, the hold expires.
                let released = held.release();
                let done = done?;
                released?;
                Ok(done)
            }
        }
    }
}

/// A hold: the directory of the files, and the durable position of the log when it began.
pub struct Held {
    client: Client,
    /// The server's data directory.
    pub directory: PathBuf,
    /// `None` if the log is off.
    pub durable: Option<base::Lsn>,
}

impl Held {
    /// Asks the server to keep its files.
    pub fn take(address: &Address, login: &LoginArgs) -> Result<Self, Error> {
        let mut client = Client::connect(address, &login.login())?;
        let reply = ask(&mut client, &["BACKUP", "HOLD", HOLD_SECONDS])?;
        let unknown = || format!("the server's answer to BACKUP HOLD is not understood: {reply:?}");
        let Value::Array(fields) = &reply else { return Err(unknown().into()) };
        let [_, Value::Bulk(directory), _, durable] = &fields[..] else { return Err(unknown().into()) };
        let durable = match durable {
            Value::NullBulk => None,
            Value::Bulk(lsn) => Some(base::Lsn(String::from_utf8_lossy(lsn).parse().map_err(|_| unknown())?)),
            _ => return Err(unknown().into()),
        };
        let directory = String::from_utf8_lossy(directory).into_owned().into();
        Ok(Self { client, directory, durable })
    }

    fn source(&self) -> Source<'_> {
        Source::Running { dir: &self.directory, durable: self.durable }
    }

    /// Ends the hold.
    pub fn release(&mut self) -> Result<(), Error> {
        ask(&mut self.client, &["BACKUP", "RELEASE"]).map(drop)
    }
}

/// The server's reply. An error reply is an error, except that a busy server is asked again.
fn ask(client: &mut Client, command: &[&str]) -> Result<Value, Error> {
    let began = Instant::now();
    loop {
        match client.ask(command)? {
            Value::Error(text) if text.starts_with(b"BUSY") && began.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Value::Error(text) => return Err(String::from_utf8_lossy(&text).into_owned().into()),
            reply => return Ok(reply),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_addresses() {
        let place = |text: &str| text.parse::<Place>().expect("everything is a place");
        let tcp = |text: &str| Place::Server(Address::Tcp(text.to_owned()));
        assert_eq!(place("127.0.0.1:7000"), tcp("127.0.0.1:7000"));
        assert_eq!(place(":7000"), tcp("127.0.0.1:7000"));
        assert_eq!(place("unix:/run/onggi.sock"), Place::Server(Address::Unix("/run/onggi.sock".into())));
        for text in ["/var/lib/onggi", "data", "./7000", "host:99999", "src"] {
            assert_eq!(place(text), Place::Directory(text.into()));
        }
    }
}
