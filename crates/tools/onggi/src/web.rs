//! The HTTP listener of a server: metrics, health and the page.

use crate::log::ServerLog;
use config::{Loaded, Settings};
#[cfg(feature = "otlp")]
use durability::Tell;
use server::observe;
use server::serve::Control;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tls::ServerConfig;
use web::{Access, Asked, Client, Facts, Limits, Login, Web};

/// Connections that the kernel completes before they are accepted.
const BACKLOG: i32 = 128;

/// The server's word about itself.
struct Server(Control);

impl Facts for Server {
    fn info(&self) -> Option<String> {
        self.0.info()
    }

    fn durations(&self) -> Vec<(u64, u64)> {
        self.0.durations().unwrap_or_default()
    }

    fn ask(&self, words: &[&str]) -> Option<Asked> {
        Some(match self.0.ask(words)? {
            observe::Asked::Reply(reply) => Asked::Reply(reply),
            observe::Asked::Task(task) => Asked::Later(Box::new(move || observe::answer(&*task))),
        })
    }

    fn access(&self, client: &Client, login: Option<Login<'_>>, words: &[&str]) -> (Access, Duration) {
        let visitor = observe::Visitor { address: client.address, is_near: client.is_near, is_new: client.is_new };
        let shown = login.map(|login| match login {
            Login::Password(user, password) => observe::Shown::Password(user, password),
            Login::Token(token) => observe::Shown::Token(token),
            Login::Certificate(certificate) => observe::Shown::Certificate(certificate),
        });
        let (access, delay) = self.0.access(&visitor, shown, words);
        let access = match access {
            observe::Access::Granted => Access::Granted,
            observe::Access::NoLogin => Access::NoLogin,
            observe::Access::Forbidden => Access::Forbidden,
        };
        (access, delay)
    }

    fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.0.tls()
    }

    fn health(&self) -> Result<(), String> {
        self.0.health()
    }

    fn readiness(&self) -> Result<(), String> {
        self.0.readiness()
    }
}

/// What became of the page.
pub enum Page {
    /// It is at these addresses. It ends with this value.
    Open(Vec<String>, #[expect(dead_code, reason = "kept for its end")] Web),
    /// `http-port` is 0, or `http-bind` is empty.
    Off,
    /// Another program uses this address, that no setting asks for.
    Taken(SocketAddr),
}

/// Begins to answer on `http-port`. Clients of other hosts log in, over TLS: the settings have neither, or both.
///
/// # Errors
/// An address cannot be listened on. A port in use is an error only if a setting asks for it.
pub fn start(loaded: &Loaded, control: &Control) -> io::Result<Page> {
    let settings = &loaded.settings;
    if settings.http_port == 0 || settings.http_bind.is_empty() {
        return Ok(Page::Off);
    }
    let (mut listeners, mut places) = (Vec::new(), Vec::new());
    let is_asked_for = loaded.given.contains("http-port") || loaded.given.contains("http-bind");
    for bind in &settings.http_bind {
        let address = SocketAddr::new(bind.ip(), settings.http_port);
        match listen(address) {
            Ok(listener) => listeners.push(listener),
            Err(error) if bind.optional && error.kind() != ErrorKind::AddrInUse => continue,
            Err(_) if !is_asked_for => return Ok(Page::Taken(address)),
            Err(error) => {
                let text = format!(
                    "cannot listen on {address} (http-port): {error}; choose another with --http-port, or 0 for no page"
                );
                return Err(io::Error::new(error.kind(), text));
            }
        }
        let scheme = if settings.http_tls { "https" } else { "http" };
        places.push(format!("{scheme}://{address}/, {scheme}://{address}/metrics"));
    }
    let limits = Limits {
        is_tls: settings.http_tls,
        login_within: Duration::from_secs(match settings.login_timeout_seconds {
            0 => 3600,
            seconds => seconds.into(),
        }),
        is_near: |address| address.ip().to_canonical().is_loopback(),
    };
    Ok(Page::Open(places, Web::start(listeners, limits, Arc::new(Server(control.clone())))?))
}

/// Sends figures to `otlp-endpoint`, until what this gives is dropped.
///
/// # Errors
/// The endpoint or its CAs cannot be used.
#[cfg(feature = "otlp")]
pub fn push(settings: &Settings, control: &Control, log: &ServerLog) -> io::Result<Option<web::otlp::Push>> {
    if settings.otlp_endpoint.is_empty() {
        return Ok(None);
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let port = if settings.port == 0 { settings.tls_port } else { settings.port };
    let options = web::otlp::PushOptions {
        endpoint: settings.otlp_endpoint.clone(),
        interval: Duration::from_secs(settings.otlp_interval_seconds.into()),
        headers: settings.otlp_headers().into_iter().flatten().collect(),
        ca_file: settings.otlp_ca_cert_file.clone(),
        instance: format!("{}:{port}", host.trim()),
    };
    let log = log.clone();
    web::otlp::Push::start(options, Arc::new(Server(control.clone())), move |line| log.warn(line)).map(Some)
}

/// Settings of a program without OTLP have no endpoint.
#[cfg(not(feature = "otlp"))]
pub fn push(_: &Settings, _: &Control, _: &ServerLog) -> io::Result<Option<std::convert::Infallible>> {
    Ok(None)
}

/// Listens on an address. IPv6 sockets take IPv6 only, so that both families can be bound side by side.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match server::listen::listen_tcp(address, BACKLOG)? {
        server::listen::Listener::Tcp(listener) => Ok(TcpListener::from(OwnedFd::from(listener))),
        server::listen::Listener::Unix(_) => Err(ErrorKind::Unsupported.into()),
    }
}

impl Page {
    /// Where the page is, for the first lines of the log.
    pub fn place(&self) -> String {
        match self {
            Self::Open(places, _) => places.join(", "),
            Self::Off => "none (http-port 0)".to_owned(),
            Self::Taken(_) => "none".to_owned(),
        }
    }

    /// What the operator should know.
    pub fn warning(&self) -> Option<String> {
        let Self::Taken(address) = self else { return None };
        Some(format!(
            "no page and no metrics: another program uses {address}; choose another port with --http-port, or 0 for no \
             page"
        ))
    }
}
