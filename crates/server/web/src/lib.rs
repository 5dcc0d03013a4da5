//! What an operator sees over HTTP: `/metrics` for Prometheus, `/healthz` and `/readyz` for what watches the process,
//! and a page that shows the server live.
//!
//! ```text
//! Facts (the server) --INFO--> figures --> /metrics, /api/info --> the page
//! ```
//!
//! W1. One thread answers all requests, and no worker of the server takes part.
//! W2. What is shown is what INFO says, so that both agree.
//! W3. Values and keys of clients are never shown.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod figures;
mod json;
mod metrics;
mod routes;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

pub use metrics::{Metric, TABLE};

/// What the server says about itself. Called on the web thread; may block for milliseconds.
pub trait Facts: Send + Sync {
    /// The text of `INFO everything`; `None` before the server serves and after its end.
    fn info(&self) -> Option<String>;

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
                let served = tokio::spawn(async { axum::serve(listener, routes::routes(facts)).await });
                // Sent, or dropped: both are the end. Open connections end with the runtime.
                let _ = ended.await;
                served.abort();
            });
        })?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // A thread that has ended by itself no longer listens.
        let _ = self.end.take().map(|end| end.send(()));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
