//! `tls-auto-reload-interval`: looks at the files of TLS from time to time, on a thread of its own.

use crate::log::ServerLog;
use durability::Tell;
use server::serve::Control;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at the setting.
const PERIOD: Duration = Duration::from_secs(1);

/// Takes changed files as the setting says, until the process ends.
///
/// # Errors
/// The operating system refuses the thread.
pub fn follow(control: Control, log: ServerLog) -> io::Result<()> {
    thread::Builder::new().name("renewal".to_owned()).spawn(move || {
        let (mut looked_at, mut said) = (Instant::now(), String::new());
        loop {
            thread::sleep(PERIOD);
            let interval = control.settings().map_or(0, |settings| settings.tls_auto_reload_interval_seconds);
            if interval == 0 || looked_at.elapsed() < Duration::from_secs(interval) {
                continue;
            }
            looked_at = Instant::now();
            match control.reload_changed_certificates() {
                None => {}
                Some(Ok(())) => {
                    log.say("the files of TLS have changed: certificates and keys are read anew");
                    said.clear();
                }
                // A bad file is named once, and not with each look.
                Some(Err(error)) => {
                    let text = format!("the files of TLS have changed: {error}; the certificates in force stay");
                    if text != said {
                        log.warn(&text);
                        said = text;
                    }
                }
            }
        }
    })?;
    Ok(())
}
