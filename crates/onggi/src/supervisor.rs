//! Word to systemd, over the socket that it names: `Type=notify`.

use config::Supervision;
use durability::Phase;
use sd_notify::NotifyState;

/// Time that a start which makes progress may take beyond systemd's own limit, in microseconds.
const MORE_TIME_US: u32 = 60_000_000;

/// Where systemd is, if it has started this process.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Whether anything waits for word.
pub fn is_present(supervised: Supervision) -> bool {
    supervised != Supervision::No && std::env::var_os(SOCKET).is_some()
}

/// A remark about settings that cannot be followed.
pub fn warning(supervised: Supervision) -> Option<&'static str> {
    (supervised == Supervision::Systemd && !is_present(supervised)).then_some(
        "supervised systemd: NOTIFY_SOCKET is not set, so nothing is notified; set Type=notify in the unit, or supervised auto",
    )
}

/// Says in which part of its life the server is. A supervisor that cannot be reached changes nothing.
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
