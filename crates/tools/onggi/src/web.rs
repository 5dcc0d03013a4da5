//! The HTTP listener of a server: metrics, health and the page.

use config::Settings;
use server::serve::Control;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use web::{Facts, Web};

/// The server's word about itself.
struct Server(Control);

impl Facts for Server {
    fn info(&self) -> Option<String> {
        self.0.info()
    }

    fn health(&self) -> Result<(), String> {
        self.0.health()
    }

    fn readiness(&self) -> Result<(), String> {
        self.0.readiness()
    }
}

/// Begins to answer on `http-port`, if it is set. Loopback alone: there is no login.
///
/// # Errors
/// The address cannot be listened on.
pub fn start(settings: &Settings, control: &Control) -> io::Result<Option<Web>> {
    if settings.http_port == 0 {
        return Ok(None);
    }
    let address = (Ipv4Addr::LOCALHOST, settings.http_port);
    let listener = TcpListener::bind(address).map_err(|error| {
        let port = settings.http_port;
        io::Error::new(error.kind(), format!(
            "cannot listen on 127.0.0.1:{port} (http-port): {error}; choose another with --http-port, or 0 for no page"
        ))
    })?;
    Web::start(listener, Arc::new(Server(control.clone()))).map(Some)
}
