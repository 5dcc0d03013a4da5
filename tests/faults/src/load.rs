//! One load on a server: writers until the crash, and a thread that changes modes and requests checkpoints meanwhile.

use crate::judge::{Found, Promise, Verdict, judge};
use crate::resp::Connection;
use crate::server::Running;
use crate::writer::{Ground, Writer};
use base::Rng;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How many connections write.
pub const WRITERS: usize = 8;

/// What else acts during a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// No such thread.
    None,
    /// Asks for a checkpoint now and then.
    Checkpoints,
    /// Asks for checkpoints, and changes the mode of the log in every way.
    Modes,
}

/// The writers, and what was last found of them.
#[derive(Debug)]
pub struct Crowd {
    /// The writers.
    pub writers: Vec<Writer>,
    /// What was found after the last crash.
    pub found: Found,
}

impl Crowd {
    /// Writers on an empty server.
    pub fn new(seed: u64) -> Self {
        let writers = (0..WRITERS).map(|id| Writer::new(id, WRITERS, seed)).collect();
        Self { writers, found: Found::nothing(WRITERS) }
    }

    /// Writes while `crash` runs in this thread: it waits as long as it likes and ends the server, or sets the ground's
    /// stop.
    ///
    /// # Errors
    /// Wrong replies, and a mode in force that differs from the settings, in words.
    pub fn load(
        &mut self,
        ground: &Ground,
        company: Company,
        seed: u64,
        crash: impl FnOnce(),
    ) -> Result<(), Vec<String>> {
        let wrong = Mutex::new(Vec::new());
        let note = |outcome: Result<(), String>| {
            if let Err(text) = outcome {
                wrong.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(text);
            }
        };
        std::thread::scope(|scope| {
            for writer in &mut self.writers {
                scope.spawn(|| note(writer.run(ground)));
            }
            if company != Company::None {
                scope.spawn(|| note(accompany(ground, company, seed)));
            }
            crash();
            ground.stop.store(true, Ordering::Relaxed);
        });
        let wrong = wrong.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Reads everything back from a server that has started again, and judges it. The next load continues from there.
    ///
    /// # Errors
    /// Every promise that was broken, in words.
    pub fn verify(&mut self, server: &Running, promise: Promise) -> Result<Verdict, Vec<String>> {
        let found = server.read_all(self.writers.len()).map_err(|text| vec![text])?;
        let verdict = judge(&self.writers, &self.found, &found, promise);
        for (writer, cells) in self.writers.iter_mut().zip(&found.cells) {
            writer.go_on_from(cells.clone());
        }
        self.found = found;
        verdict
    }

    /// How many operations of the load were refused, and the first refusal.
    pub fn refusal(&self) -> Option<&str> {
        self.writers.iter().find_map(|writer| writer.refusal.as_deref())
    }
}

/// Asks for checkpoints and changes modes until the load stops or the server is gone.
///
/// # Errors
/// A mode in force that is not the one of the settings.
fn accompany(ground: &Ground, company: Company, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let Ok(mut connection) = Connection::open(ground.port, Duration::from_secs(60)) else { return Ok(()) };
    // A server that was killed with its log off takes a checkpoint first when it starts with it on again.
    let mut alive = company != Company::Modes || look(ground, &mut connection)?;
    while alive && !ground.stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5 + rng.below(80)));
        alive = if company == Company::Checkpoints || rng.one_in(4) {
            // One that runs already is answered by an error.
            connection.call(&["BGREWRITEAOF"]).is_ok()
        } else {
            change_mode(ground, &mut connection, &mut rng).is_ok() && look(ground, &mut connection)?
        };
    }
    Ok(())
}

/// Changes one setting. An error reply means that it stays as it was, which [`look`] finds.
fn change_mode(ground: &Ground, connection: &mut Connection, rng: &mut Rng) -> std::io::Result<()> {
    let (name, value) = match rng.below(7) {
        0 => ("appendonly", "no"),
        1 | 2 => ("appendonly", "yes"),
        3 => ("appendfsync", "everysec"),
        4 => ("appendfsync", "always"),
        5 => ("log-window", if rng.one_in(2) { "20" } else { "300" }),
        _ => ("appendfsync", if rng.one_in(2) { "no" } else { "always" }),
    };
    ground.mode.uncertain();
    connection.call(&["CONFIG", "SET", name, value]).map(drop)
}

/// Looks whether the log is certainly on and in sync mode; false when the server is gone.
///
/// # Errors
/// The log has another mode or window than the settings.
fn look(ground: &Ground, connection: &mut Connection) -> Result<bool, String> {
    // No other client changes settings, so both calls show the same moment.
    let Ok(set) = connection.settings(&["appendonly", "appendfsync", "log-window"]) else { return Ok(false) };
    let Ok(in_force) = connection.info_section("persistence") else { return Ok(false) };
    if is_certainly_sync(&set, &in_force)? {
        ground.mode.sync();
    }
    Ok(true)
}

/// Names and their values.
type Fields = BTreeMap<String, String>;

fn is_certainly_sync(set: &Fields, in_force: &Fields) -> Result<bool, String> {
    // Other servers, and a log that is off, report nothing.
    for (setting, field) in [("appendfsync", "log_mode"), ("log-window", "log_window_ms")] {
        if let (Some(set), Some(found)) = (set.get(setting), in_force.get(field))
            && set != found
        {
            return Err(format!("INFO says {field} {found} while CONFIG GET says {setting} {set}"));
        }
    }
    let is = |fields: &Fields, name: &str, wanted: &str| fields.get(name).is_some_and(|value| value == wanted);
    // The log counts as on only when INFO says so and the checkpoint that it begins with is there.
    Ok(is(set, "appendonly", "yes")
        && is(set, "appendfsync", "always")
        && is(in_force, "aof_enabled", "1")
        && is(in_force, "aof_rewrite_in_progress", "0")
        && is(in_force, "aof_rewrite_scheduled", "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        text.split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn a_mode_in_force_that_is_not_that_of_the_settings_is_a_failure() {
        let quiet = "aof_enabled=1 aof_rewrite_in_progress=0 aof_rewrite_scheduled=0";
        let set = fields("appendonly=yes appendfsync=always log-window=250");
        let look = |more: &str| is_certainly_sync(&set, &fields(&format!("{quiet} {more}")));
        assert_eq!(look("log_mode=always log_window_ms=250"), Ok(true));
        assert_eq!(look(""), Ok(true), "another server");
        assert_eq!(look("aof_enabled=0"), Ok(false));
        assert_eq!(look("aof_rewrite_in_progress=1 log_mode=always"), Ok(false));
        assert_eq!(
            look("log_mode=everysec"),
            Err("INFO says log_mode everysec while CONFIG GET says appendfsync always".to_owned())
        );
        assert!(look("aof_enabled=0 log_mode=everysec").is_err(), "while it is being switched on too");
        assert!(look("log_mode=always log_window_ms=1000").is_err());
    }
}
