//! A sync that fails: by injection, each thread's n-th call; and for real, on a disk whose own storage is full.

use crate::judge::Promise;
use crate::load::{Company, Crowd};
use crate::power::cut;
use crate::report::Report;
use crate::resp::{Connection, Reply};
use crate::server::{Kind, Server};
use crate::volume::{Memory, Volume};
use crate::writer::Ground;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Enough load for a failed sync and the server's reaction.
const LOAD: Duration = Duration::from_millis(1500);
/// Timeout for the required number of syncs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Reads while the disk fails, and how long one may take before it counts as held.
const READS: usize = 10;
const READ_MAX: Duration = Duration::from_secs(1);

/// The n-th sync of every thread fails, for each of the numbers, and the n-th write that syncs itself; then the power
/// goes, so that what was not synced is gone.
pub fn injected(server: &Server, volume: &Volume, numbers: &[u64], seed: u64, report: &mut Report) {
    for &number in numbers {
        let dir = volume.place().join(format!("data-{number}"));
        let trace = server.output.with_file_name(format!("trace-{number}"));
        let plain = Server { dir, ..server.clone() };
        let inject = format!("inject=fdatasync,fsync,pwritev2:error=EIO:when={number}");
        let words = [
            "strace",
            "-f",
            "--seccomp-bpf",
            "-o",
            &trace.display().to_string(),
            "-e",
            "trace=fdatasync,fsync,pwritev2,close",
            "-e",
            &inject,
        ];
        let wrapped = Server { wrap: words.map(str::to_owned).to_vec(), ..plain.clone() };
        match one(&plain, &wrapped, &trace, volume, seed ^ number).and_then(|text| {
            if plain.kind == Kind::Onggi {
                never_again(&trace).map(|count| format!("{count} failed; {text}"))
            } else {
                Ok(text)
            }
        }) {
            Ok(text) => report.pass(&format!("sync {number} of every thread fails ({text})")),
            Err(text) => report.fail(&format!("sync {number} of every thread fails"), &text),
        }
    }
}

fn one(plain: &Server, wrapped: &Server, trace: &Path, volume: &Volume, seed: u64) -> Result<String, String> {
    let mut crowd = Crowd::new(seed);
    let started = wrapped.start();
    let text = match started {
        Err(text) if text.contains("ended at its start") => {
            volume.cut()?;
            volume.remount()?;
            "the start was refused".to_owned()
        }
        Err(text) => return Err(text),
        Ok((mut running, _)) => {
            let ground = Ground::new(plain.port, true, 4000);
            let mut done = Ok(());
            let mut ended = false;
            crowd
                .load(&ground, Company::Checkpoints, seed, || {
                    let began = Instant::now();
                    std::thread::sleep(LOAD);
                    while !has_failed(trace) && running.alive() && began.elapsed() < PATIENCE {
                        std::thread::sleep(LOAD / 4);
                    }
                    ended = !running.alive();
                    done = cut(&mut running, volume);
                })
                .map_err(|wrong| wrong.join("; "))?;
            done?;
            if ended { "the server ended".to_owned() } else { refusal(&crowd) }
        }
    };
    let (running, _) = plain.start()?;
    let verdict = crowd.verify(&running, Promise::Sync).map_err(|wrong| wrong.join("; "))?;
    Ok(format!("{text}; {} answered, none lost", verdict.answered))
}

/// The code word of the first error that a write was answered.
fn refusal(crowd: &Crowd) -> String {
    let word = |text: &str| format!("writes were refused: {}", text.split(' ').next().unwrap_or_default());
    crowd.refusal().map_or("no write was refused".to_owned(), word)
}

/// Whether a sync has failed by now.
fn has_failed(trace: &Path) -> bool {
    fs::read_to_string(trace).is_ok_and(|text| text.contains("(INJECTED)"))
}

/// After a sync of a descriptor has failed, or a write that syncs itself, that descriptor is closed and never synced
/// again: the system has marked its pages clean, and would say that all is well. How many have failed.
fn never_again(trace: &Path) -> Result<usize, String> {
    let text = fs::read_to_string(trace).map_err(|error| format!("{}: {error}", trace.display()))?;
    let mut failed: BTreeMap<String, String> = BTreeMap::new();
    let mut unfinished: BTreeMap<&str, String> = BTreeMap::new();
    let mut count = 0;
    for line in text.lines() {
        // `PID call(7) = -1 EIO (Input/output error) (INJECTED)`, or in two parts: `PID call(7 <unfinished ...>` and
        // `PID <... call resumed>) = -1 EIO (Input/output error) (INJECTED)`.
        let Some((thread, told)) = line.split_once(' ') else { continue };
        let told = told.trim_start();
        let (call, descriptor) = match told.strip_prefix("<... ") {
            Some(resumed) => {
                let Some(descriptor) = unfinished.remove(thread) else { continue };
                (resumed.split(' ').next().unwrap_or(""), descriptor)
            }
            None => {
                let Some((call, rest)) = told.split_once('(') else { continue };
                let descriptor = rest.split([')', ' ', ',']).next().unwrap_or("").to_owned();
                if told.contains("<unfinished") {
                    unfinished.insert(thread, descriptor);
                    continue;
                }
                (call, descriptor)
            }
        };
        match call {
            "close" => drop(failed.remove(&descriptor)),
            "fsync" | "fdatasync" | "pwritev2" if line.contains("(INJECTED)") => {
                count += 1;
                failed.insert(descriptor, line.to_owned());
            }
            "fsync" | "fdatasync" | "pwritev2" => {
                if let Some(before) = failed.get(&descriptor) {
                    return Err(format!("a descriptor is synced again after a failure: {before} ... {line}"));
                }
            }
            _ => {}
        }
    }
    if count == 0 { Err("no sync has failed: the number is too high".to_owned()) } else { Ok(count) }
}

/// The storage of the disk itself is full: write-back fails, and so does a sync after it. `volume` lies in `memory`.
///
/// Such a disk also lies. When memory takes a part of a write, the loop device of Linux reports all of it as done, and
/// the sync as good; only the next fails. So what was answered just before may be gone, and no server can know. What
/// must hold: the server keeps running, refuses writes and reads; afterwards what is found is a beginning, or the start
/// is refused with the file's name.
pub fn real(server: &Server, memory: &Memory, volume: &Volume, seed: u64, report: &mut Report) {
    match failing(server, memory, volume, seed) {
        Ok(text) => report.pass(&format!("a disk whose storage is full ({text})")),
        Err(text) => report.fail("a disk whose storage is full", &text),
    }
}

/// Whatever the disk does, reads are answered: all but those that would show what is not on disk, which wait in sync
/// mode, and a few that share a place in the server's table with them.
fn reads(server: &Server) -> String {
    let answered = (0..READS)
        .filter(|number| {
            let key = format!("nobody:writes:{number}");
            let reply =
                Connection::open(server.port, READ_MAX).and_then(|mut connection| connection.call(&["GET", &key]));
            matches!(reply, Ok(Reply::Bulk(None)))
        })
        .count();
    if answered == 0 { "reads failed".to_owned() } else { format!("{answered} of {READS} reads answered") }
}

fn failing(server: &Server, memory: &Memory, volume: &Volume, seed: u64) -> Result<String, String> {
    let mut crowd = Crowd::new(seed);
    let (mut running, _) = server.start()?;
    let ground = Ground::new(server.port, false, 100_000);
    let mut state = String::new();
    let mut mended = Ok(());
    crowd
        .load(&ground, Company::None, seed, || {
            std::thread::sleep(2 * LOAD);
            state = if !running.alive() { "the server ended".to_owned() } else { reads(server) };
            running.kill();
            mended = memory.resize(600).and_then(|()| volume.mend());
        })
        .map_err(|wrong| wrong.join("; "))?;
    mended?;
    if state.contains("failed") {
        return Err(state);
    }
    let refusal = refusal(&crowd);
    match server.start() {
        Ok((running, _)) => {
            let verdict = crowd.verify(&running, Promise::Changing).map_err(|wrong| wrong.join("; "))?;
            Ok(format!("{state}; {refusal}; {} answered, {} lost to the disk's lie", verdict.answered, verdict.lost))
        }
        Err(text) if text.contains("ended at its start") && text.contains("log-") => {
            Ok(format!("{state}; {refusal}; damage was found and named"))
        }
        Err(text) => Err(text),
    }
}
