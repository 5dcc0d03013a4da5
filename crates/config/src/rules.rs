//! What settings have to keep together.

use crate::{RuleError, Settings, Warning};

/// The directives that [`check_exposure`] depends on.
pub(crate) const EXPOSURE: [&str; 4] = ["bind", "protected-mode", "requirepass", "port"];

/// Whether a server may start with these, and what it should then say.
pub(crate) fn check(settings: &Settings) -> Result<Option<Warning>, RuleError> {
    let listens = settings.port != 0 && !settings.bind.is_empty();
    if !listens && settings.unixsocket.is_none() {
        return Err(RuleError::NowhereToListen);
    }
    check_exposure(settings)
}

/// Without a password, only this machine may reach the server, unless that was switched off.
pub(crate) fn check_exposure(settings: &Settings) -> Result<Option<Warning>, RuleError> {
    let beyond_loopback = settings.bind.iter().find(|address| !address.is_loopback());
    match beyond_loopback {
        Some(address) if settings.port != 0 && settings.requirepass.is_empty() => {
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
