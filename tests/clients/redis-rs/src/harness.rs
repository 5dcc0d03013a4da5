//! Connections to the server under test, and the reporting of checks.

use redis::{Client, ClientTlsConfig, Connection, ConnectionAddr, IntoConnectionInfo, RedisError, TlsCertificates};
use std::cell::Cell;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a check fails with.
pub type Problem = Box<dyn std::error::Error>;

/// The CA and the client's certificate, if ONGGI_TEST_TLS names their directory.
fn tls_certificates() -> Option<TlsCertificates> {
    let directory = PathBuf::from(std::env::var_os("ONGGI_TEST_TLS")?);
    let file = |name: &str| std::fs::read(directory.join(name)).expect("the certificates are there");
    let client_tls = Some(ClientTlsConfig { client_cert: file("client.pem"), client_key: file("client.key") });
    Some(TlsCertificates { client_tls, root_cert: Some(file("ca.pem")) })
}

/// Makes connections and reports checks as `ok - NAME` or `not ok - NAME: REASON`.
pub struct Harness {
    host: String,
    port: u16,
    password: String,
    unix: String,
    failed: Cell<bool>,
}

impl Harness {
    pub fn new(host: &str, port: u16, password: &str, unix: &str) -> Self {
        Self {
            host: host.to_string(),
            port,
            password: password.to_string(),
            unix: unix.to_string(),
            failed: Cell::new(false),
        }
    }

    pub fn failed(&self) -> bool {
        self.failed.get()
    }

    /// A client of database `db` with this password, in the protocol named by `protocol` (`resp2` or `resp3`).
    pub fn client(&self, db: i64, password: &str, protocol: &str) -> Client {
        let rest = format!(":{password}@{}:{}/{db}?protocol={protocol}", self.host, self.port);
        match tls_certificates() {
            Some(certificates) => Client::build_with_tls(format!("rediss://{rest}"), certificates),
            None => Client::open(format!("redis://{rest}")),
        }
        .expect("a valid address")
    }

    /// A connection in RESP3 to database `db`.
    pub fn connection_to(&self, db: i64) -> Connection {
        self.client(db, &self.password, "resp3").get_connection().expect("the server accepts a connection")
    }

    /// A connection in RESP3 to database 0.
    pub fn connection(&self) -> Connection {
        self.connection_to(0)
    }

    /// A connection in RESP2.
    pub fn connection_resp2(&self) -> Connection {
        self.client(0, &self.password, "resp2").get_connection().expect("the server accepts a connection")
    }

    /// A connection through the unix socket.
    pub fn local(&self) -> Result<Connection, RedisError> {
        let url = format!("unix://{}?pass={}", self.unix, self.password);
        let info = url.into_connection_info()?;
        assert!(matches!(info.addr(), ConnectionAddr::Unix(_)));
        Client::open(info)?.get_connection()
    }

    /// Runs the body; the error it returns is the failure.
    pub fn check(&self, name: &str, body: impl FnOnce() -> Result<(), Problem>) {
        match body() {
            Ok(()) => println!("ok - {name}"),
            Err(problem) => {
                self.failed.set(true);
                println!("not ok - {name}: {problem}");
            }
        }
    }
}

/// An error unless the two are equal.
pub fn equal<T: Debug + PartialEq>(got: T, expected: T) -> Result<(), Problem> {
    if got == expected {
        return Ok(());
    }
    let shortened = |value: &T| format!("{value:?}").chars().take(200).collect::<String>();
    Err(format!("got {}, expected {}", shortened(&got), shortened(&expected)).into())
}

/// An error unless `low <= got <= high`.
pub fn between(got: i64, low: i64, high: i64) -> Result<(), Problem> {
    if (low..=high).contains(&got) {
        return Ok(());
    }
    Err(format!("{got} is not between {low} and {high}").into())
}

/// An error unless the result is an error with `part` in its text.
pub fn fails<T: Debug>(result: Result<T, RedisError>, part: &str) -> Result<(), Problem> {
    match result {
        Err(problem) if problem.to_string().contains(part) => Ok(()),
        other => Err(format!("{other:?}, expected an error with {part:?}").into()),
    }
}

/// Waits for a condition until a deadline; the polls only shorten the wait.
pub fn eventually(within: Duration, mut condition: impl FnMut() -> Result<bool, RedisError>) -> Result<(), Problem> {
    let deadline = Instant::now() + within;
    while !condition()? {
        if Instant::now() > deadline {
            return Err(format!("did not happen within {within:?}").into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Runs `work` with each connection in a thread of its own; the first error is the result.
pub fn in_threads(
    connections: Vec<Connection>,
    work: impl Fn(Connection) -> Result<(), RedisError> + Copy + Send,
) -> Result<(), Problem> {
    std::thread::scope(|scope| {
        let running: Vec<_> = connections.into_iter().map(|one| scope.spawn(move || work(one))).collect();
        for thread in running {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}
