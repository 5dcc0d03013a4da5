//! Startup and shutdown: from settings to running workers, and back.

mod apply;
mod control;
mod deal;
mod listeners;
mod mailboxes;
mod recovery;
mod rounds;
mod running;

pub use self::control::Control;
pub use self::listeners::listen;
pub use self::recovery::Recover;
pub use crate::serve_error::ServeError;

use self::deal::Dealer;
use self::recovery::{is_end, spawn_recovery};
use self::running::Server;
use crate::desk::Desk;
use crate::encryption;
use crate::ending::Ending;
use crate::http_tokens;
use crate::listen::{Acceptor, AcceptorHandle};
use crate::worker::Worker;
use base::{Clock, Entropy};
use config::Loaded;
use durability::{Tell, WriteRdb};
use std::io;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use vfs::FileSystem;

/// Where the data is kept.
pub enum Keeping {
    /// In memory only: for tests. It begins with what the function brings, if there is one.
    Memory(Option<Recover>),
    /// In the data directory of the settings.
    Directory {
        /// The file system it is on.
        fs: Arc<dyn FileSystem>,
        /// Receives reports of what happens.
        tell: Arc<dyn Tell>,
        /// Makes RDB files on request.
        rdb: Arc<dyn WriteRdb>,
    },
}

/// Runs a server until SHUTDOWN or `control` has ended it, or its acceptor is stopped, which saves nothing. Connections
/// are served from the beginning, data when it has been brought back.
///
/// # Errors
/// See [`ServeError`].
pub fn serve(
    loaded: Loaded,
    acceptor: Acceptor,
    entropy: Arc<dyn Entropy>,
    clock: Arc<dyn Clock>,
    keeping: Keeping,
    control: Control,
) -> Result<(), ServeError> {
    let contexts = Arc::new(tls::Contexts::default());
    contexts.put(encryption::load(&loaded.settings)?);
    let tokens = http_tokens::load(&loaded.settings)?;
    tokens.warn();
    let handle = acceptor.handle();
    let (mut server, recover) =
        Server::assemble(loaded, handle.clone(), (entropy, clock), keeping, &control, contexts)?;
    server.shared.host.login.tokens.put(tokens.tokens);
    let worker_count = server.workers.len() - 1;
    let queues = (0..=worker_count).map(|_| Worker::event_queue()).collect::<io::Result<Vec<_>>>()?;
    let _ = server.mailboxes.0.set(queues.iter().map(|(_, mailbox)| mailbox.clone()).collect());
    if recover.is_some() {
        // Before the first worker begins.
        server.shared.store.gate.begin_loading(server.shared.store.clock.now_ms());
    }
    let desk = Arc::new(Desk::new(server.mailboxes.all().to_vec()));
    let audit = server.spawn_audit()?;
    let served = thread::scope(|scope| {
        server.spawn_workers(scope, queues, &desk)?;
        let recovery =
            recover.map(|recover| spawn_recovery(scope, recover, &server.shared, worker_count, handle.clone()));
        let recovery = recovery.transpose()?;
        let background = server.spawn_background(scope)?;
        let ending = Ending {
            host: &server.shared.host,
            mailboxes: server.mailboxes.all(),
            kept: server.kept.as_ref().map(|kept| (&*kept.durability, kept.tell.clone())),
            acceptor: handle.clone(),
        };
        let ending = thread::Builder::new().name("ending".to_owned()).spawn_scoped(scope, move || ending.run())?;
        let mut dealer = Dealer::new(&server.shared, server.mailboxes.all(), &desk);
        let result = acceptor.run(|socket, kind| dealer.deal(socket, kind));
        control.shutdown.close();
        server.end();
        background.into_iter().for_each(join);
        let ended = join(ending);
        match recovery.map(join) {
            Some(Err(error)) if !is_end(&*error) => Err(ServeError::Recovery(error)),
            Some(_) | None => {
                result?;
                ended
            }
        }
    });
    if let Some(writer) = audit {
        server.shared.host.login.audit.end();
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    // All workers have ended, so nothing is appended any more. What the log has is made durable, whatever ended them.
    let closed = server.kept.map_or(Ok(()), |kept| kept.durability.close().map_err(ServeError::from));
    served.and(closed)
}

/// What a thread has found. A panic of it propagates to the caller.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Has no thread wait for the attendant any more when it ends, even by a panic.
struct EndAttendant(Option<Arc<Desk>>);

impl Drop for EndAttendant {
    fn drop(&mut self) {
        self.0.iter().for_each(|desk| desk.end_attendant());
    }
}

/// Stops the server when a worker ends, even by a panic: its connections would wait forever.
struct StopAtEnd(AcceptorHandle);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}
