//! One load on a server: writers until the crash, and somebody who changes modes and asks for checkpoints meanwhile.

use crate::judge::{Found, Promise, Verdict, judge};
use crate::resp::{Connection, Reply};
use crate::server::Running;
use crate::writer::{Ground, Writer};
use base::Rng;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How many connections write.
pub const WRITERS: usize = 8;

/// Who else acts during a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// Nobody.
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
    /// Wrong replies, in words.
    pub fn load(
        &mut self,
        ground: &Ground,
        company: Company,
        seed: u64,
        crash: impl FnOnce(),
    ) -> Result<(), Vec<String>> {
        let wrong = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for writer in &mut self.writers {
                scope.spawn(|| {
                    if let Err(text) = writer.run(ground) {
                        wrong.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(text);
                    }
                });
            }
            if company != Company::None {
                scope.spawn(move || accompany(ground, company, seed));
            }
            crash();
            ground.stop.store(true, Ordering::Relaxed);
        });
        let wrong = wrong.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Reads everything back from a server that has started again, and judges it. The next load goes on from there.
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
fn accompany(ground: &Ground, company: Company, seed: u64) {
    let mut rng = Rng::new(seed);
    let Ok(mut connection) = Connection::open(ground.port, Duration::from_secs(60)) else { return };
    while !ground.stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5 + rng.below(80)));
        let done = if company == Company::Checkpoints || rng.one_in(4) {
            // One that runs already is answered by an error.
            connection.call(&["BGREWRITEAOF"]).map(drop)
        } else {
            change_mode(ground, &mut connection, &mut rng)
        };
        if done.is_err() {
            return;
        }
    }
}

fn change_mode(ground: &Ground, connection: &mut Connection, rng: &mut Rng) -> std::io::Result<()> {
    let (name, value) = match rng.below(6) {
        0 => ("appendonly", "no"),
        1 | 2 => ("appendonly", "yes"),
        3 => ("appendfsync", "everysec"),
        4 => ("appendfsync", "always"),
        _ => ("appendfsync", if rng.one_in(2) { "no" } else { "always" }),
    };
    ground.mode.uncertain();
    connection.call(&["CONFIG", "SET", name, value])?;
    let is = |connection: &mut Connection, name: &str, wanted: &str| -> std::io::Result<bool> {
        let Reply::Array(pair) = connection.call(&["CONFIG", "GET", name])? else { return Ok(false) };
        Ok(matches!(pair.get(1), Some(Reply::Bulk(Some(bytes))) if bytes == wanted.as_bytes()))
    };
    // The log counts as on only when INFO says so and the checkpoint that it begins with is there.
    let mut certain = is(connection, "appendonly", "yes")? && is(connection, "appendfsync", "always")?;
    for (field, wanted) in [("aof_enabled", "1"), ("aof_rewrite_in_progress", "0"), ("aof_rewrite_scheduled", "0")] {
        certain = certain && connection.info("persistence", field)?.as_deref() == Some(wanted);
    }
    if certain {
        ground.mode.sync();
    }
    Ok(())
}
