//! The settings in force, and how a change of them reaches the server.

use config::{Directive, PrimaryAddress, Refused, RewriteError, SetError, Settings, UserLine};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;

/// What a server does about changed settings. Its methods run on a worker and must not wait for clients.
pub trait Apply: Send + Sync {
    /// Puts a changed setting into force; nothing for those that are read anew each time.
    ///
    /// # Errors
    /// Why it cannot be, in words for the client; everything is then as it was.
    fn apply(&self, row: &'static Directive, settings: &Settings) -> Result<(), String>;

    /// The last step of a change, once for all its rows, `changed`: what is never undone. With `in_transaction` the
    /// worker may hold shard locks.
    ///
    /// # Errors
    /// Why it cannot be. Nothing of this step has changed.
    fn finish(&self, settings: &Settings, changed: &[&'static Directive], in_transaction: bool) -> Result<(), Refused> {
        let _ = (settings, changed, in_transaction);
        Ok(())
    }

    /// Writes a sentence about a change that is in force to the server's log.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// Writes the settings to the file they came from.
    ///
    /// # Errors
    /// No file, or what went wrong with it.
    fn rewrite(&self, settings: &Settings) -> Result<(), RewriteError>;
}

/// Settings that no part of the server follows: for a server without threads.
impl Apply for () {
    fn apply(&self, _: &'static Directive, _: &Settings) -> Result<(), String> {
        Ok(())
    }

    fn rewrite(&self, _: &Settings) -> Result<(), RewriteError> {
        Err(RewriteError::NoFile)
    }
}

/// The settings in force.
pub struct Configuration {
    current: RwLock<Arc<Settings>>,
    apply: Box<dyn Apply>,
    /// Held for the whole of a change, so that two of them do not undo each other.
    changing: Mutex<()>,
}

impl Configuration {
    /// Starts with these settings, which are in force already.
    pub fn new(settings: Settings, apply: Box<dyn Apply>) -> Self {
        Self { current: RwLock::new(Arc::new(settings)), apply, changing: Mutex::new(()) }
    }

    /// The settings in force now.
    pub fn current(&self) -> Arc<Settings> {
        self.current.read().clone()
    }

    /// Runs `work` with the settings in force, and keeps them in force meanwhile.
    pub fn hold<R>(&self, work: impl FnOnce(&Settings) -> R) -> R {
        let _changing = self.changing.lock();
        let current = self.current();
        work(&current)
    }

    /// Changes settings: all pairs or none. The new settings, when it succeeded. `check` may refuse a row before the
    /// server applies it; `follow` brings what keeps copies of settings up to date. `in_transaction`: EXEC runs it, and
    /// holds the locks of its keys.
    ///
    /// # Errors
    /// What [`Settings::change`], `check` or the server refuses.
    pub fn set(
        &self,
        pairs: &[(&[u8], &[u8])],
        in_transaction: bool,
        check: impl Fn(&'static Directive, &Settings) -> Result<(), String>,
        follow: impl FnOnce(&Settings),
    ) -> Result<Arc<Settings>, SetError> {
        let _changing = self.changing.lock();
        let change = self.current().change(pairs)?;
        let apply = |row: &'static Directive, settings: &Settings| {
            check(row, settings)?;
            self.apply.apply(row, settings)
        };
        let changed = change.changed().to_vec();
        let next = Arc::new(change.apply(apply, |settings| self.apply.finish(settings, &changed, in_transaction))?);
        follow(&next);
        *self.current.write() = next.clone();
        changed.iter().filter_map(|row| row.without_effect(&next)).for_each(|text| self.apply.note(&text));
        Ok(next)
    }

    /// The primary that REPLICAOF has named, for CONFIG GET and CONFIG REWRITE.
    pub fn set_primary(&self, primary: Option<PrimaryAddress>) {
        let _changing = self.changing.lock();
        let next = Settings { replicaof: primary, ..Settings::clone(&self.current()) };
        *self.current.write() = Arc::new(next);
    }

    /// Writes the settings, with these users, to the file they came from.
    ///
    /// # Errors
    /// See [`Apply::rewrite`].
    pub fn rewrite(&self, users: impl FnOnce(&Settings) -> Vec<UserLine>) -> Result<(), RewriteError> {
        let _changing = self.changing.lock();
        let current = self.current();
        let users = if current.acl_file.is_some() { Vec::new() } else { users(&current) };
        self.apply.rewrite(&Settings { users, ..Settings::clone(&current) })
    }
}
