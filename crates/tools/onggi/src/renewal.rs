//! `tls-auto-reload-interval`: looks at the files of TLS and of tokens from time to time, on a thread of its own.

use crate::log::ServerLog;
use durability::Tell;
use server::serve::Control;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at the setting.
const PERIOD: Duration = Duration::from_secs(1);

/// What the log was told of one kind of file last: a bad file is named once, and not with each look.
#[derive(Default)]
struct Said(String);

impl Said {
    /// Tells what came of a look.
    fn tell(&mut self, log: &ServerLog, result: Result<&str, String>) {
        match result {
            Ok(text) => {
                log.say(text);
                self.0.clear();
            }
            Err(text) if text != self.0 => {
                log.warn(&text);
                self.0 = text;
            }
            Err(_) => {}
        }
    }
}

/// Takes changed files as the setting says, until the process ends.
///
/// # Errors
/// The operating system refuses the thread.
pub fn follow(control: Control, log: ServerLog) -> io::Result<()> {
    thread::Builder::new().name("renewal".to_owned()).spawn(move || {
        let (mut of_tls, mut of_tokens) = (Said::default(), Said::default());
        let mut looked_at = Instant::now();
        loop {
            thread::sleep(PERIOD);
            let interval = control.settings().map_or(0, |settings| settings.tls_auto_reload_interval_seconds);
            if interval == 0 || looked_at.elapsed() < Duration::from_secs(interval) {
                continue;
            }
            looked_at = Instant::now();
            if let Some(result) = control.reload_changed_certificates() {
                let result = result.map(|()| "the files of TLS have changed: certificates and keys are read anew");
                let bad = |error| format!("the files of TLS have changed: {error}; the certificates in force stay");
                of_tls.tell(&log, result.map_err(bad));
            }
            match control.reload_tokens() {
                None | Some(Ok(false)) => {}
                Some(Ok(true)) => of_tokens.tell(&log, Ok("http-token-file has changed: its tokens are read anew")),
                Some(Err(error)) => of_tokens.tell(&log, Err(format!("{error}; the tokens in force stay"))),
            }
        }
    })?;
    Ok(())
}
