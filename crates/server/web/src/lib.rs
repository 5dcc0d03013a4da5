//! What an operator sees over HTTP: `/metrics` for Prometheus, `/healthz` and `/readyz` for what watches the process,
//! and a page that shows the server live.
//!
//! ```text
//! Facts (the server) --INFO--> figures --+--> /metrics, /api/info
//!                    --replies--> JSON    +--> a sample a second --> history, /api/live --> the page
//! ```
//!
//! W1. One thread answers all requests, and no worker of the server takes part; MEMORY EXPLAIN alone is their work.
//! W2. What is shown is what INFO says, so that both agree.
//! W3. Values of clients are shown only when asked for. Keys, prefixes and clients need a login where the server does.
//! W4. To other hosts nothing is shown without a login as a user: by password, token or certificate.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod door;
mod figures;
mod history;
mod json;
mod live;
mod login;
mod metrics;
mod options;
#[cfg(feature = "otlp")]
pub mod otlp;
mod panels;
pub mod replies;
mod routes;
mod shared;
mod socket;
mod visit;
mod warnings;

use door::{Door, Strangers, Visitor};
use live::Live;
use rustls::ServerConfig;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::oneshot;

pub use door::Limits;
pub use figures::{Figures, List};
pub use history::{FIELDS, History, SAMPLES_MAX, Sample};
pub use warnings::{Warning, warnings};

/// What the server says about itself. Called on the web thread; may block for milliseconds.
pub trait Facts: Send + Sync {
    /// The text of `INFO everything`; `None` before the server serves and after its end.
    fn info(&self) -> Option<String>;

    /// Calls of all commands by their duration, since the start.
    ///
    /// Each bucket has its longest duration in nanoseconds and its calls.
    fn durations(&self) -> Vec<(u64, u64)>;

    /// The reply of a command that takes no lock, in RESP3; `None` as of [`Facts::info`].
    fn ask(&self, words: &[&str]) -> Option<Asked>;

    /// Whether a client may run a command with this login, and how long the answer has to be kept back. `None` is a
    /// client that has none. Slow with a slow hash, and then not called on the web thread.
    fn access(&self, client: &Client, login: Option<Login<'_>>, words: &[&str]) -> (Access, Duration);

    /// What a new connection with TLS begins with; `None` without certificates.
    fn tls(&self) -> Option<Arc<ServerConfig>>;

    /// Whether the process works.
    ///
    /// # Errors
    /// What does not, in a sentence.
    fn health(&self) -> Result<(), String>;

    /// Whether clients should be sent here: the data is loaded, and the log takes changes.
    ///
    /// # Errors
    /// Why not, in a sentence.
    fn readiness(&self) -> Result<(), String>;
}

/// Whether a client may run a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may.
    Granted,
    /// It needs to log in, or its login was wrong.
    NoLogin,
    /// It has logged in as a user that may not run the command.
    Forbidden,
}

/// What a client shows to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login<'a> {
    /// The name of a user and its password; or a token and no password, from a browser that asks for both.
    Password(&'a str, &'a str),
    /// A token, which is that of a user.
    Token(&'a str),
    /// The certificate of its connection, in DER. TLS has checked it.
    Certificate(&'a [u8]),
}

/// A client of the page.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it is on this host.
    pub is_near: bool,
    /// Whether its connection has not logged in before.
    pub is_new: bool,
}

/// What a command answers.
pub enum Asked {
    /// Its reply.
    Reply(Vec<u8>),
    /// Workers are at it: called until there is one.
    Later(Box<dyn Fn() -> Option<Vec<u8>> + Send + Sync>),
}

/// A running listener. It ends with this value.
pub struct Web {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Begins to answer requests on listeners, on a thread of its own.
    ///
    /// # Errors
    /// The operating system refuses the thread or its event queue.
    pub fn start(listeners: Vec<TcpListener>, limits: Limits, facts: Arc<dyn Facts>) -> io::Result<Self> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(login::CHECKS_MAX).build()?;
        let (end, ended) = oneshot::channel::<()>();
        let strangers = Arc::new(Mutex::new(Strangers::default()));
        let doors = {
            let _entered = runtime.enter();
            let door = |listener: TcpListener| {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                Ok(Door::new(listener, facts.clone(), limits, strangers.clone()))
            };
            listeners.into_iter().map(door).collect::<io::Result<Vec<_>>>()?
        };
        let thread = thread::Builder::new().name("web".to_owned()).spawn(move || {
            runtime.block_on(async {
                let live = Arc::new(Live::new());
                let (followed, followed_facts) = (live.clone(), facts.clone());
                let following = tokio::spawn(async move { followed.follow(&*followed_facts).await });
                let routes = routes::routes(facts, live).into_make_service_with_connect_info::<Visitor>();
                let served: Vec<_> = doors
                    .into_iter()
                    .map(|door| {
                        let routes = routes.clone();
                        tokio::spawn(async move { axum::serve(door, routes).await })
                    })
                    .collect();
                // Sent, or dropped: both are the end. Open connections end with the runtime.
                let _ = ended.await;
                served.iter().for_each(|served| served.abort());
                following.abort();
            });
        })?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // A thread that has ended no longer listens.
        let _ = self.end.take().map(|end| end.send(()));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
