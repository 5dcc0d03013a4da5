//! Notifications to systemd over its socket: `Type=notify`, and `WatchdogSec=`.

use config::Supervision;
use durability::{Phase, Tell};
use sd_notify::NotifyState;
use server::serve::Control;
use std::io;
use std::thread;
use std::time::Duration;

/// Extra time, beyond systemd's own limit, for a start that makes progress. In microseconds.
const MORE_TIME_US: u32 = 60_000_000;

/// Messages in the time of the watchdog, so that one which is late does no harm.
const MESSAGES: u32 = 4;

/// Shortest time between two of them.
const SHORTEST: Duration = Duration::from_millis(10);

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

/// Begins to tell systemd that the server lives, as often as `WatchdogSec=` needs. Once a worker does not turn, systemd
/// hears nothing, and ends the process after that time. The thread ends with the process.
///
/// # Errors
/// The system refuses the thread.
pub fn watch(supervised: Supervision, control: Control, log: impl Tell + 'static) -> io::Result<()> {
    let Some(limit) = is_present(supervised).then(sd_notify::watchdog_enabled).flatten() else { return Ok(()) };
    let between = (limit / MESSAGES).max(SHORTEST);
    thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        let mut was_alive = true;
        loop {
            let alive = control.liveness();
            if alive.is_ok() {
                let _ = sd_notify::notify(&[NotifyState::Watchdog]);
            }
            if let (true, Err(why)) = (was_alive, &alive) {
                log.warn(&format!("{why}; systemd ends the process if that lasts for {} s", limit.as_secs()));
            }
            was_alive = alive.is_ok();
            thread::sleep(between);
        }
    })?;
    Ok(())
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
