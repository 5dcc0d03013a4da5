//! Signals: SIGTERM and SIGINT end the server as SHUTDOWN does. SIGHUP reopens the log file and the audit log, reads
//! the files of TLS and of tokens again, and lists the settings that differ from the configuration. SIGUSR1 and SIGUSR2
//! have no effect.

use crate::log::ServerLog;
use admin::EndOrder;
use config::{CommandLine, FileArgument, LogLevel, load};
use durability::Tell;
use server::serve::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::io;
use std::thread;

/// Handles signals on a separate thread. `line` is the command line with which the server was started.
///
/// The operating system's error.
/// When the operating system refuses.
pub fn handle(control: Control, log: ServerLog, line: CommandLine) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGTERM | SIGINT => end(&control, &log, signal),
                SIGHUP => reload(&control, &log, &line),
                _ => log.line(LogLevel::Verbose, "SIGUSR1 or SIGUSR2: without effect"),
            }
        }
    })?;
    Ok(())
}

/// As in Valkey, a SIGINT during the shutdown ends the process at once.
fn end(control: &Control, log: &ServerLog, signal: i32) {
    match (control.shutdown.is_under_way(), signal) {
        (true, SIGINT) => {
            log.warn("SIGINT again: the process ends at once, without a save");
            std::process::exit(128 + signal);
        }
        (true, _) => log.say("SIGTERM: the server is ending already"),
        (false, SIGINT) => drop(control.shutdown.ask(EndOrder::Interrupt)),
        (false, _) => drop(control.shutdown.ask(EndOrder::Terminate)),
    }
}

fn reload(control: &Control, log: &ServerLog, line: &CommandLine) {
    match log.reopen() {
        Ok(()) => log.say("SIGHUP: the log file is open anew"),
        Err(error) => log.warn(&format!("SIGHUP: {error}; the file that was open is written on")),
    }
    if control.reopen_audit_log() {
        log.say("SIGHUP: the audit log is open anew");
    }
    match control.reload_certificates() {
        Some(Ok(())) => log.say("SIGHUP: the certificates and keys of TLS are read anew"),
        Some(Err(error)) => log.warn(&format!("SIGHUP: {error}; the certificates in force stay")),
        None => {}
    }
    match control.reload_tokens() {
        Some(Ok(_)) => log.say("SIGHUP: the tokens of http-token-file are read anew"),
        Some(Err(error)) => log.warn(&format!("SIGHUP: {error}; the tokens in force stay")),
        None => {}
    }
    let Some(settings) = control.settings() else { return };
    if line.file == Some(FileArgument::Stdin) {
        return log.say("SIGHUP: the configuration came from standard input and is not read again");
    }
    let configured = match load(line, &vfs::RealFs, &mut io::empty()) {
        Ok(loaded) => loaded.settings,
        Err(errors) => return log.warn(&format!("SIGHUP: the configuration cannot be read again: {errors}")),
    };
    let differences = settings.differences(&configured);
    differences.iter().for_each(|difference| log.say(&format!("SIGHUP: {difference}")));
    if !differences.is_empty() {
        log.say(
            "SIGHUP: no setting was changed: use CONFIG SET or a restart to apply them, CONFIG REWRITE to keep \
             those in force",
        );
    }
}
