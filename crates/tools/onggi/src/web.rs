//! The HTTP listener of a server: metrics, health and the page.

use config::Loaded;
use server::observe;
use server::serve::Control;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use web::{Access, Asked, Facts, Web};

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

    fn access(&self, login: Option<(&str, &str)>, words: &[&str]) -> Access {
        match self.0.access(login, words) {
            observe::Access::Granted => Access::Granted,
            observe::Access::NoLogin => Access::NoLogin,
            observe::Access::Forbidden => Access::Forbidden,
        }
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
    /// It is at this port. It ends with this value.
    Open(u16, #[expect(dead_code, reason = "kept for its end")] Web),
    /// `http-port` is 0.
    Off,
    /// Another program uses the port that no setting asks for.
    Taken(u16),
}

/// Begins to answer on `http-port`. Loopback alone: there is no login.
///
/// # Errors
/// The address cannot be listened on. A port in use is an error only if a setting asks for it.
pub fn start(loaded: &Loaded, control: &Control) -> io::Result<Page> {
    let port = loaded.settings.http_port;
    if port == 0 {
        return Ok(Page::Off);
    }
    let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(listener) => listener,
        Err(_) if !loaded.given.contains("http-port") => return Ok(Page::Taken(port)),
        Err(error) => {
            let text = format!(
                "cannot listen on 127.0.0.1:{port} (http-port): {error}; choose another with --http-port, or 0 for no \
                 page"
            );
            return Err(io::Error::new(error.kind(), text));
        }
    };
    Ok(Page::Open(port, Web::start(listener, Arc::new(Server(control.clone())))?))
}

impl Page {
    /// Where the page is, for the first lines of the log.
    pub fn place(&self) -> String {
        match self {
            Self::Open(port, _) => format!("http://127.0.0.1:{port}/, http://127.0.0.1:{port}/metrics"),
            Self::Off => "none (http-port 0)".to_owned(),
            Self::Taken(_) => "none".to_owned(),
        }
    }

    /// What the operator should know.
    pub fn warning(&self) -> Option<String> {
        let Self::Taken(port) = self else { return None };
        Some(format!(
            "no page and no metrics: another program uses 127.0.0.1:{port}; choose another port with --http-port, or 0 \
             for no page"
        ))
    }
}
