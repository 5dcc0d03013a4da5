//! The settings in force, and how a change of them reaches the parts of the server.

use crate::access::user_lines;
use crate::{CommandLog, LatencyMonitor};
use command::Host;
use command::acl::Hashing;
use command::login::PasswordTooLong;
use config::{ChannelDefault, Directive, PasswordHash, PrimaryAddress, Refused, RewriteError, SetError, Settings};
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

    /// CONFIG SET: all pairs or none. The new settings, when it succeeded. `in_transaction`: EXEC runs it, and holds
    /// the locks of its keys.
    ///
    /// # Errors
    /// What [`Settings::change`] or the server refuses.
    pub fn set(&self, host: &Host, pairs: &[(&[u8], &[u8])], in_transaction: bool) -> Result<Arc<Settings>, SetError> {
        let _changing = self.changing.lock();
        let change = self.current().change(pairs)?;
        let apply = |row: &'static Directive, settings: &Settings| {
            if row.name == "requirepass" {
                set_password(host, settings).map_err(|error| error.to_string())?;
            }
            self.apply.apply(row, settings)
        };
        let changed = change.changed().to_vec();
        let next = Arc::new(change.apply(apply, |settings| self.apply.finish(settings, &changed, in_transaction))?);
        follow(host, &next);
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

    /// CONFIG REWRITE.
    ///
    /// # Errors
    /// See [`Apply::rewrite`].
    pub fn rewrite(&self, host: &Host) -> Result<(), RewriteError> {
        let _changing = self.changing.lock();
        let current = self.current();
        let users = if current.acl_file.is_some() { Vec::new() } else { user_lines(host, &current) };
        self.apply.rewrite(&Settings { users, ..Settings::clone(&current) })
    }
}

/// Takes over `requirepass`; at startup before the first connection.
///
/// # Errors
/// It is too long; the old one stays.
pub fn set_password(host: &Host, settings: &Settings) -> Result<(), PasswordTooLong> {
    host.login.set_password(Some(settings.requirepass.expose()))
}

/// Brings the parts of the server that keep copies of settings, but for the password, up to date: at startup, and after
/// every CONFIG SET.
pub fn follow(host: &Host, settings: &Settings) {
    host.string_limit.set(settings.proto_bulk_bytes_max);
    let sparse_bytes_max = usize::try_from(settings.hll_sparse_bytes_max).unwrap_or(usize::MAX);
    host.sparse_limit.set(sparse_bytes_max);
    host.stamp_meaning.set_frequency(settings.counts_uses());
    host.clients.set_limit(settings.maxclients as usize);
    let login = &host.login;
    login.log.set_max(usize::try_from(settings.acl_log_entries_max).unwrap_or(usize::MAX));
    login.users.set_database_count(settings.databases);
    login.users.set_hashing(match settings.acl_password_hash {
        PasswordHash::Sha256 => Hashing::Sha256,
        PasswordHash::Argon2id => Hashing::Argon2id,
    });
    login.users.set_default_channels(settings.acl_pubsub_default == ChannelDefault::All);
    host.part::<Arc<CommandLog>>().follow(settings);
    host.part::<Arc<LatencyMonitor>>().follow(settings);
    if let Some(scripts) = host.find::<Arc<script::Scripts>>() {
        scripts.set_busy_after_ms(settings.busy_reply_threshold_ms);
    }
    crate::adjust_role(host, settings);
}
