//! A disk that takes nothing for a while, and then works again: reads are answered, replies that promise something
//! wait, and nothing that was promised is lost.

use crate::judge::Promise;
use crate::load::{Company, Crowd};
use crate::power::cut;
use crate::report::Report;
use crate::server::Server;
use crate::volume::{Frozen, Volume};
use crate::writer::Ground;
use std::time::{Duration, Instant};

/// A read is not held up by the disk. Far above what it takes on a loaded machine.
const READ_MAX: Duration = Duration::from_secs(5);
/// Longest time until a reply that waited for the disk comes, once the disk works again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the load runs before the disk stops, and after it works again.
const AROUND: Duration = Duration::from_millis(500);

/// Loads the server, stalls its disk for `seconds`, releases it, then cuts the power.
pub fn frozen(server: &Server, volume: &Volume, seconds: u64, promise: Promise, seed: u64, report: &mut Report) {
    match run(server, volume, seconds, promise, seed) {
        Ok(text) => report.pass(&format!("a frozen disk ({text})")),
        Err(text) => report.fail("a frozen disk", &text),
    }
}

fn run(server: &Server, volume: &Volume, seconds: u64, promise: Promise, seed: u64) -> Result<String, String> {
    let (mut running, _) = server.start()?;
    let mut crowd = Crowd::new(seed);
    let ground = Ground::new(server.port, promise == Promise::Sync, 200_000);
    let (mut outcome, mut done) = (Ok(Duration::ZERO), Ok(()));
    crowd
        .load(&ground, Company::None, seed, || {
            std::thread::sleep(AROUND);
            outcome = freeze(server, volume, seconds, promise);
            std::thread::sleep(AROUND);
            done = cut(&mut running, volume);
        })
        .map_err(|wrong| wrong.join("; "))?;
    let read_max = outcome?;
    done?;
    let (running, _) = server.start()?;
    let verdict = crowd.verify(&running, promise).map_err(|wrong| wrong.join("; "))?;
    Ok(format!(
        "{seconds} s: {} answered, {} ms lost, a read took at most {} ms",
        verdict.answered,
        verdict.lost_us / 1000,
        read_max.as_millis()
    ))
}

/// Stalls the disk for `seconds`; returns the longest read meanwhile. In sync mode no write is answered before the disk
/// continues, and then the waiting one is.
fn freeze(server: &Server, volume: &Volume, seconds: u64, promise: Promise) -> Result<Duration, String> {
    let lost = |error: std::io::Error| format!("the connection is lost: {error}");
    let open = |patience| crate::resp::Connection::open(server.port, patience).map_err(lost);
    let mut waiting = open(PATIENCE)?;
    let disk = Frozen::new(volume)?;
    let began = Instant::now();
    let mut bytes = Vec::new();
    crate::resp::request(&mut bytes, &["SET", "frozen", "yes"]);
    waiting.send(&bytes).map_err(lost)?;
    let mut read_max = Duration::ZERO;
    while began.elapsed() < Duration::from_secs(seconds) {
        let asked = Instant::now();
        open(READ_MAX)?
            .call(&["GET", "nobody:writes:this"])
            .map_err(|error| format!("a read while the disk is frozen: {error}"))?;
        read_max = read_max.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    if promise == Promise::Sync && waiting.has_reply().map_err(lost)? {
        return Err("a write was answered while nothing could be made durable".to_owned());
    }
    drop(disk);
    waiting.reply().map_err(|error| format!("the reply that waited for the disk never came: {error}"))?;
    Ok(read_max)
}
