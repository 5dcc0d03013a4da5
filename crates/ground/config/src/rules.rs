//! What settings have to keep together.

use crate::{RuleError, Settings, Warning};

/// The directives that [`check_exposure`] depends on.
pub(crate) const EXPOSURE: [&str; 5] = ["bind", "protected-mode", "requirepass", "port", "memcached-port"];

/// Whether a server may start with these, and what it should then say.
pub(crate) fn check(settings: &Settings) -> Result<Option<Warning>, RuleError> {
    let listens = has_port(settings) && !settings.bind.is_empty();
    if settings.memcached_database >= settings.databases {
        return Err(RuleError::NoSuchDatabase { number: settings.memcached_database, count: settings.databases });
    }
    check_databases(settings)?;
    if !listens && settings.unixsocket.is_none() {
        return Err(RuleError::NowhereToListen);
    }
    check_exposure(settings)
}

/// The directives that [`check_databases`] depends on.
pub(crate) const DATABASES: [&str; 2] = ["database", "appendonly"];

/// Databases on disk are there, and have the log.
pub(crate) fn check_databases(settings: &Settings) -> Result<(), RuleError> {
    let Some(last) = settings.database_engines.on_disk().last() else { return Ok(()) };
    if last >= settings.databases {
        return Err(RuleError::NoSuchDiskDatabase { number: last, count: settings.databases });
    }
    if settings.appendonly { Ok(()) } else { Err(RuleError::DiskWithoutLog { number: last }) }
}

fn has_port(settings: &Settings) -> bool {
    settings.port != 0 || settings.memcached_port != 0
}

/// Without a password, only this machine may reach the server, unless that was switched off.
pub(crate) fn check_exposure(settings: &Settings) -> Result<Option<Warning>, RuleError> {
    let beyond_loopback = settings.bind.iter().find(|address| !address.is_loopback());
    match beyond_loopback {
        Some(address) if has_port(settings) && settings.requirepass.is_empty() => {
            let address = address.to_string();
            if settings.protected_mode {
                Err(RuleError::Exposed { address })
            } else {
                Ok(Some(Warning::Exposed { address }))
            }
        }
        _ => Ok(None),
    }
}
