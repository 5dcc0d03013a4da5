//! Notifications to systemd over its socket: `Type=notify`.

use config::Supervision;
use durability::Phase;
use sd_notify::NotifyState;

/// Extra time, beyond systemd's own limit, for a start that makes progress. In microseconds.
const MORE_TIME_US: u32 = 60_000_000;

/// The environment variable with systemd's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Whether a supervisor expects notifications.
pub fn is_present(supervised: Supervision) -> bool {
    supervised != Supervision::No && std::env::var_os(SOCKET).is_some()
}

/// A warning about a setting that cannot be followed.
pub fn warning(supervised: Supervision) -> Option<&'static str> {
    (supervised == Supervision::Systemd && !is_present(supervised)).then_some(
        "supervised systemd: NOTIFY_SOCKET is not set, so nothing is notified; set Type=notify in the unit, or \
         supervised auto",
    )
}

/// Reports the server's phase. A supervisor that cannot be reached has no effect.
pub fn notify(phase: Phase) {
    let _ = match phase {
        Phase::Loading { percent } => {
            let status = format!("loading: {percent} %");
            sd_notify::notify(&[NotifyState::Status(&status), NotifyState::ExtendTimeoutUsec(MORE_TIME_US)])
        }
        Phase::Ready => sd_notify::notify(&[NotifyState::Status("ready to accept connections"), NotifyState::Ready]),
        Phase::Stopping => sd_notify::notify(&[NotifyState::Status("ending"), NotifyState::Stopping]),
    };
}
