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
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod figures;
mod history;
mod json;
mod live;
mod login;
mod metrics;
mod panels;
pub mod replies;
mod routes;
mod warnings;

use live::Live;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

pub use figures::{Figures, List};
pub use history::{FIELDS, History, SAMPLES_MAX, Sample};
pub use metrics::{Metric, TABLE};
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

    /// Whether this user with this password may run a command. `None` is a client that has not logged in.
    fn access(&self, login: Option<(&str, &str)>, words: &[&str]) -> Access;

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
    /// Begins to answer requests on a listener, on a thread of its own.
    ///
    /// # Errors
    /// The operating system refuses the thread or its event queue.
    pub fn start(listener: TcpListener, facts: Arc<dyn Facts>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel::<()>();
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let thread = thread::Builder::new().name("web".to_owned()).spawn(move || {
            runtime.block_on(async {
                let live = Arc::new(Live::new());
                let (followed, followed_facts) = (live.clone(), facts.clone());
                let following = tokio::spawn(async move { followed.follow(&*followed_facts).await });
                let served = tokio::spawn(async { axum::serve(listener, routes::routes(facts, live)).await });
                // Sent, or dropped: both are the end. Open connections end with the runtime.
                let _ = ended.await;
                served.abort();
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
