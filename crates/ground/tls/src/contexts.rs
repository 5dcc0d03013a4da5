//! The configurations in force. New connections take them from here.

use crate::Loaded;
use parking_lot::RwLock;
use rustls::{ClientConfig, ServerConfig};
use std::sync::Arc;

/// What new connections use. Replaced as a whole by a reload; connections keep what they began with.
#[derive(Default)]
pub struct Contexts(RwLock<Arc<Loaded>>);

impl Contexts {
    /// Puts a configuration into force.
    pub fn put(&self, loaded: Loaded) {
        *self.0.write() = Arc::new(loaded);
    }

    /// All that is in force.
    pub fn current(&self) -> Arc<Loaded> {
        self.0.read().clone()
    }

    /// For a connection that a TLS listener accepts; `None` without TLS.
    pub fn server(&self) -> Option<Arc<ServerConfig>> {
        self.0.read().server.clone()
    }

    /// For a connection to another server; `None` when such connections are plain.
    pub fn client(&self) -> Option<Arc<ClientConfig>> {
        self.0.read().client.clone()
    }
}
