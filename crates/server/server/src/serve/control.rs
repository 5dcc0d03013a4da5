//! How the process reaches its server: metrics, health, certificates, and its end.

use crate::encryption;
use crate::executor::Shared;
use crate::http_tokens::{self, TokenFileError};
use crate::observe::{self, Access, Asked, Shown, Visitor};
use admin::ShutdownRequest;
use command::stats::bucket_upper_ns;
use config::Settings;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tls::{ServerConfig, TlsError};

/// How the process reaches its server. Clones are handles of the same.
#[derive(Clone, Default)]
pub struct Control {
    /// Ends it.
    pub shutdown: ShutdownRequest,
    pub(super) server: Arc<OnceLock<Weak<Shared>>>,
}

impl Control {
    /// The settings in force; `None` before the server has begun, and after its end.
    pub fn settings(&self) -> Option<Arc<Settings>> {
        let shared = self.server.get()?.upgrade()?;
        Some(shared.host.configuration.current())
    }

    /// Reads the files of TLS again, and says what has come of it; `None` when TLS is not used. A bad file leaves those
    /// in force.
    pub fn reload_certificates(&self) -> Option<Result<(), TlsError>> {
        let shared = self.server.get()?.upgrade()?;
        shared.host.configuration.hold(|settings| {
            encryption::is_used(settings).then(|| {
                shared.host.part::<crate::Needed, Arc<tls::Contexts>>().put(encryption::load(settings)?);
                Ok(())
            })
        })
    }

    /// The same if a file has changed since it was last read; `None` if none has, or TLS is not used.
    pub fn reload_changed_certificates(&self) -> Option<Result<(), TlsError>> {
        let shared = self.server.get()?.upgrade()?;
        let settings = shared.host.configuration.current();
        let current = shared.host.part::<crate::Needed, Arc<tls::Contexts>>().current();
        // Without the lock of the settings, which CONFIG SET waits for.
        let has_changed = encryption::is_used(&settings) && encryption::has_changed(&settings, &current);
        drop((shared, current));
        if has_changed { self.reload_certificates() } else { None }
    }

    /// Reads `http-token-file` again, and says whether its tokens are others; `None` when there is none. A bad file
    /// leaves the tokens in force. What is odd about it goes to the log.
    pub fn reload_tokens(&self) -> Option<Result<bool, TokenFileError>> {
        let shared = self.server.get()?.upgrade()?;
        shared.host.configuration.hold(|settings| {
            http_tokens::is_used(settings).then(|| {
                let found = http_tokens::load(settings)?;
                let has_changed = shared.host.login.tokens.put(found.tokens.clone());
                if has_changed {
                    found.warn();
                }
                Ok(has_changed)
            })
        })
    }

    /// Has the file of the audit log opened again. False when there is none.
    pub fn reopen_audit_log(&self) -> bool {
        let Some(shared) = self.server.get().and_then(Weak::upgrade) else { return false };
        let audit = &shared.host.login.audit;
        audit.reopen();
        audit.is_on()
    }

    /// The text of `INFO everything`; `None` before the server has begun, and after its end. Takes no lock of a shard.
    /// If a caller asks once a second, the keys were counted at most a second ago; the first text has none.
    pub fn info(&self) -> Option<String> {
        observe::info(&*self.server.get()?.upgrade()?)
    }

    /// Runs a command that takes no lock of a shard, for an operator; `None` as of [`Control::info`].
    pub fn ask(&self, words: &[&str]) -> Option<Asked> {
        observe::ask(&*self.server.get()?.upgrade()?, words)
    }

    /// Whether a client of the page may run a command, and how long the answer has to be kept back. There are no users
    /// before the server has begun, and after its end.
    pub fn access(&self, from: &Visitor, shown: Option<Shown<'_>>, words: &[&str]) -> (Access, Duration) {
        let shared = self.server.get().and_then(Weak::upgrade);
        shared.map_or((Access::NoLogin, Duration::ZERO), |shared| observe::access(&shared, from, shown, words))
    }

    /// What a new connection with TLS begins with; `None` without certificates, before the server has begun, and after
    /// its end.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.server.get()?.upgrade()?.host.part::<crate::Needed, Arc<tls::Contexts>>().server()
    }

    /// Calls of all commands since the start by their duration, and the longest duration of each bucket in nanoseconds.
    pub fn durations(&self) -> Option<Vec<(u64, u64)>> {
        let calls = observe::durations(&*self.server.get()?.upgrade()?);
        Some(calls.into_iter().enumerate().map(|(bucket, calls)| (bucket_upper_ns(bucket), calls)).collect())
    }

    /// Whether every worker turns. A server that has not begun or has ended is well.
    ///
    /// # Errors
    /// Which worker does not, in a sentence.
    pub fn health(&self) -> Result<(), String> {
        self.server.get().and_then(Weak::upgrade).map_or(Ok(()), |shared| observe::health(&shared))
    }

    /// The same, but a script may keep one worker.
    ///
    /// # Errors
    /// Which worker does not turn, in a sentence.
    pub fn liveness(&self) -> Result<(), String> {
        self.server.get().and_then(Weak::upgrade).map_or(Ok(()), |shared| observe::liveness(&shared))
    }

    /// Whether clients are served, and their changes taken.
    ///
    /// # Errors
    /// Why not, in a sentence.
    pub fn readiness(&self) -> Result<(), String> {
        let shared = self.server.get().and_then(Weak::upgrade).ok_or("the server has not begun, or has ended")?;
        observe::readiness(&shared)
    }
}
