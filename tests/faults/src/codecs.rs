//! Compression during a run. Each start has another setting, and a thread changes it under load, so that dictionaries
//! are constantly trained, used and retired. `onggi check` also reads the files left by a crash, and names strings
//! whose dictionary is missing.

use crate::report::Report;
use crate::resp::Connection;
use crate::server::{Kind, Running, Server};
use crate::writer::Ground;
use base::Rng;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What was seen of compression in a run.
#[derive(Debug, Default)]
pub struct Codecs {
    /// Strings compressed as they were written.
    by_writes: AtomicU64,
    /// Strings compressed in the background.
    in_background: AtomicU64,
    /// Changes of the setting under load.
    changes: AtomicU64,
    /// Starts that found strings which need a dictionary.
    starts: AtomicU64,
    /// Most of such strings that one start has found.
    values_max: AtomicU64,
    /// The highest number of dictionaries that any start has found.
    dictionaries_max: AtomicU64,
}

/// A setting: how, and when. zstd alone has dictionaries, so it comes most.
fn draw(rng: &mut Rng) -> [(&'static str, &'static str); 2] {
    let codec = ["off", "lzf", "lz4"].get(usize::try_from(rng.below(9)).unwrap_or(0)).copied().unwrap_or("zstd");
    [("compression", codec), ("compression-when", if rng.one_in(2) { "write" } else { "idle" })]
}

impl Codecs {
    /// The server with a setting of its own for its next start. Whatever is stored counts as cold at once.
    pub fn server(&self, plain: &Server, rng: &mut Rng) -> Server {
        let mut server = plain.clone();
        let always = [("compression-idle-time", "0"), ("compression-cpu-percent", "100")];
        server.options.extend(always.into_iter().chain(draw(rng)).map(|(name, value)| (name.into(), value.into())));
        server
    }

    /// Changes the setting until the load stops or the server is gone.
    pub fn change(&self, ground: &Ground, seed: u64) {
        let mut rng = Rng::new(seed);
        let Ok(mut connection) = Connection::open(ground.port, Duration::from_secs(60)) else { return };
        let (mut by_writes, mut in_background) = (0, 0);
        while !ground.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5 + rng.below(40)));
            // A change begins training anew, so there are longer times without one.
            if rng.one_in(8) {
                let [(codec, name), (when, time)] = draw(&mut rng);
                if connection.call(&["CONFIG", "SET", codec, name, when, time]).is_err() {
                    break;
                }
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
            let mut read = |field: &str| figure(&mut connection, field);
            match (read("compression_compressed_by_writes"), read("compression_compressed_in_background")) {
                (Some(writes), Some(background)) => (by_writes, in_background) = (writes, background),
                _ => break,
            }
        }
        self.by_writes.fetch_add(by_writes, Ordering::Relaxed);
        self.in_background.fetch_add(in_background, Ordering::Relaxed);
    }

    /// Whether what a crash has left is whole, judged by its files.
    ///
    /// # Errors
    /// What `onggi check` says is damaged.
    pub fn check(&self, server: &Server) -> Result<(), String> {
        if server.kind != Kind::Onggi {
            return Ok(());
        }
        let said = Command::new(&server.program).arg("check").arg(&server.dir).output().map_err(|e| e.to_string())?;
        match said.status.success() {
            true => Ok(()),
            false => Err(format!("onggi check ({}): {}", said.status, lines_of(&said.stdout, &said.stderr))),
        }
    }

    /// Notes what a start has found.
    pub fn found(&self, server: &Running) {
        let Ok(mut connection) = server.connect() else { return };
        let mut read = |field: &str| figure(&mut connection, field).unwrap_or(0);
        let values = read("compression_values_with_dictionary");
        self.starts.fetch_add(u64::from(values > 0), Ordering::Relaxed);
        self.values_max.fetch_max(values, Ordering::Relaxed);
        self.dictionaries_max.fetch_max(read("compression_dictionaries"), Ordering::Relaxed);
    }

    /// Whether strings were compressed in every way, and a start has found some with a dictionary.
    pub fn is_complete(&self) -> bool {
        [&self.by_writes, &self.in_background, &self.starts].into_iter().all(|seen| seen.load(Ordering::Relaxed) > 0)
    }

    /// Says what was seen; a run in which nothing was compressed, or nothing by a dictionary, has shown nothing.
    pub fn close(&self, report: &mut Report) {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let (by_writes, in_background, starts) = (read(&self.by_writes), read(&self.in_background), read(&self.starts));
        report.remark(&format!(
            "{by_writes} strings compressed by writes and {in_background} in the background, {} changes of the \
             setting; {starts} starts found strings that need dictionaries, at most {} with {}",
            read(&self.changes),
            read(&self.values_max),
            read(&self.dictionaries_max),
        ));
        if !self.is_complete() {
            report.fail("compression", "strings were not compressed in every way");
        }
    }
}

fn figure(connection: &mut Connection, field: &str) -> Option<u64> {
    connection.info("compression", field).ok()??.trim().parse().ok()
}

/// The lines that report damage.
fn lines_of(output: &[u8], errors: &[u8]) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(output), String::from_utf8_lossy(errors));
    let bad: Vec<&str> = text.lines().filter(|line| !line.starts_with("good") && !line.starts_with("note")).collect();
    bad.join(" | ")
}
