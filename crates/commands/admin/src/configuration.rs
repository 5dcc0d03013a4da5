//! How a change of the settings reaches the parts of the server.

use crate::access::user_lines;
use crate::{CommandLog, LatencyMonitor};
use command::Host;
use command::acl::Hashing;
use command::login::PasswordTooLong;
use config::{ChannelDefault, Directive, PasswordHash, RewriteError, SetError, Settings};
use std::sync::Arc;

/// CONFIG SET: all pairs or none. The new settings, when it succeeded. `in_transaction`: EXEC runs it, and holds the
/// locks of its keys.
///
/// # Errors
/// What [`Settings::change`] or the server refuses.
pub fn change_settings(host: &Host, pairs: &[(&[u8], &[u8])], in_transaction: bool) -> Result<Arc<Settings>, SetError> {
    let check = |row: &'static Directive, settings: &Settings| match row.name {
        "requirepass" => set_password(host, settings).map_err(|error| error.to_string()),
        _ => Ok(()),
    };
    host.configuration.set(pairs, in_transaction, check, |settings| follow(host, settings))
}

/// CONFIG REWRITE.
///
/// # Errors
/// See [`Apply::rewrite`](command::configuration::Apply::rewrite).
pub fn rewrite_settings(host: &Host) -> Result<(), RewriteError> {
    host.configuration.rewrite(|settings| user_lines(host, settings))
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
    host.part::<crate::Needed, Arc<CommandLog>>().follow(settings);
    host.part::<crate::Needed, Arc<LatencyMonitor>>().follow(settings);
    if let Some(scripts) = host.find::<Arc<script::Scripts>>() {
        scripts.set_busy_after_ms(settings.busy_reply_threshold_ms);
    }
    crate::adjust_role(host, settings);
}
