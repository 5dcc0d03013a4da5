//! A disk that is full: writes are refused in clear words, reads and deletions work, a checkpoint fails and harms
//! nothing, and when there is space again writes work, without a restart. A server that is started on such a disk does
//! the same.

use crate::operation::{Cell, read_value, value};
use crate::report::Report;
use crate::resp::{Connection, Reply, request};
use crate::server::{Kind, Running, Server};
use crate::volume::Memory;
use base::Rng;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// A reply that takes longer than this waits for the disk to accept writes again.
const HELD: Duration = Duration::from_secs(1);
/// In sync mode every reply is held; this many are enough.
const HELD_MAX: usize = 4;
/// Longest time until a full disk shows, and until writes work when there is space.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that others keep from the disk, for as long as it is to be full. More than can be acknowledged in async mode
/// before the log finds that it is: on a busy machine the thread that writes is late by a tenth of a second and more,
/// and writes do not work before all of that is in the log.
const BALLAST: usize = 32 << 20;
/// Values that are read while the disk is full, and how many of these reads may be held back.
const READS: usize = 100;
const READS_HELD_MAX: usize = 3;
/// Bytes of a value.
const LEN: usize = 10_000;

/// What a write was answered.
enum Answer {
    Done,
    Refused(String),
    Held,
}

/// Keys by what is known of them: a number, none, or that it is one of two.
#[derive(Default)]
struct Filler {
    known: BTreeMap<String, Option<u64>>,
    unknown: Vec<String>,
    number: u64,
}

/// The disk becomes full `rounds` times.
pub fn full(server: &Server, memory: &Memory, rounds: u64, seed: u64, report: &mut Report) {
    let mut filler = Filler::default();
    let outcome = server.start().and_then(|(mut running, _)| {
        for round in 1..=rounds {
            filler
                .round(server, &mut running, memory, seed ^ round)
                .map_err(|text| format!("round {round}: {text}"))?;
            report.pass(&format!("round {round}: refused, read, deleted, and went on when there was space"));
        }
        running.kill();
        if server.kind == Kind::Onggi {
            filler.start_on_full(server, memory)?;
            report.pass("a start on the full disk: read, refused, and went on when there was space");
        }
        let (running, _) = server.start()?;
        filler.verify(&running)
    });
    match outcome {
        Ok(()) => report.pass("all of it is there after a kill"),
        Err(text) => report.fail("a full disk", &text),
    }
}

impl Filler {
    fn round(&mut self, server: &Server, running: &mut Running, memory: &Memory, seed: u64) -> Result<(), String> {
        let lost = |error: io::Error| format!("the connection is lost: {error}");
        let mut rng = Rng::new(seed);
        let ballast = memory.place().join("ballast");
        fs::write(&ballast, vec![1; BALLAST]).map_err(|error| format!("the ballast does not fit: {error}"))?;
        let mut held = Vec::new();
        let refusal = self.fill(server, &mut held)?;
        if !refusal.starts_with("MISCONF") || !refusal.contains("o space left") {
            return Err(format!("no clear error: {refusal}"));
        }
        if !running.alive() {
            return Err(format!("the server has ended: {}", running.printed()));
        }
        let mut connection = Connection::open(server.port, HELD).map_err(lost)?;
        let known: Vec<(String, Option<u64>)> = self.known.iter().map(|(key, number)| (key.clone(), *number)).collect();
        let mut waiting = 0;
        for _ in 0..READS {
            let (key, number) = &known[usize::try_from(rng.below(known.len() as u64)).unwrap_or(0)];
            match connection.call(&["GET", key]) {
                Ok(Reply::Bulk(bytes)) => check(key, bytes.as_deref(), *number)?,
                Ok(_) => return Err(format!("GET {key} is refused while the disk is full")),
                // What is in doubt is held back with its neighbour keys, one in some thousand.
                Err(error) if is_timeout(&error) && !held.is_empty() && waiting < READS_HELD_MAX => {
                    waiting += 1;
                    held.push(std::mem::replace(&mut connection, Connection::open(server.port, HELD).map_err(lost)?));
                }
                Err(error) => return Err(lost(error)),
            }
        }
        if server.kind == Kind::Onggi {
            for (key, _) in known.iter().filter(|(_, number)| number.is_some()).take(20) {
                if held.len() >= HELD_MAX {
                    break;
                }
                match self.delete(&mut connection, key)? {
                    Answer::Done => {}
                    Answer::Refused(text) => return Err(format!("DEL is refused while the disk is full: {text}")),
                    Answer::Held => {
                        held.push(std::mem::replace(
                            &mut connection,
                            Connection::open(server.port, HELD).map_err(lost)?,
                        ));
                    }
                }
            }
        }
        if server.kind == Kind::Onggi {
            fail_checkpoint(server)?;
        }
        fs::remove_file(&ballast).map_err(|error| error.to_string())?;
        self.go_on(server)?;
        for mut connection in held {
            // What was held is answered now; what it was is looked at after the last kill.
            connection
                .wait(PATIENCE)
                .and_then(|()| connection.reply())
                .map_err(|error| format!("a reply that was held never came: {error}"))?;
        }
        self.empty(server)
    }

    /// A server that was killed starts on a disk without a free byte. It is killed again at the end.
    fn start_on_full(&mut self, server: &Server, memory: &Memory) -> Result<(), String> {
        let ballast = memory.place().join("ballast");
        use_up(&ballast).map_err(|error| format!("the ballast: {error}"))?;
        let (mut running, _) = server.start()?;
        let began = Instant::now();
        // It answers before it has loaded.
        while let Err(text) = self.verify(&running) {
            if began.elapsed() > PATIENCE || !running.alive() {
                return Err(format!("after a start on a full disk: {text}; it printed: {}", running.printed()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut connection = running.connect().map_err(|error| error.to_string())?;
        match self.put(&mut connection)? {
            Answer::Refused(text) if text.starts_with("MISCONF") && text.contains("full disk") => {}
            Answer::Refused(text) => return Err(format!("no clear error after a start on a full disk: {text}")),
            Answer::Done | Answer::Held => return Err("a write is taken after a start on a full disk".to_owned()),
        }
        fs::remove_file(&ballast).map_err(|error| error.to_string())?;
        self.go_on(server)?;
        self.verify(&running)?;
        running.kill();
        Ok(())
    }

    /// Writes until the disk is full; the error that says so.
    fn fill(&mut self, server: &Server, held: &mut Vec<Connection>) -> Result<String, String> {
        let began = Instant::now();
        let open =
            || Connection::open(server.port, HELD).map_err(|error| format!("the server does not accept: {error}"));
        let mut connection = open()?;
        while began.elapsed() < PATIENCE {
            match self.put(&mut connection)? {
                Answer::Done => {}
                Answer::Refused(text) => return Ok(text),
                Answer::Held => held.push(std::mem::replace(&mut connection, open()?)),
            }
        }
        Err("no write is refused, though the disk is full".to_owned())
    }

    /// Waits until a write is taken again.
    fn go_on(&mut self, server: &Server) -> Result<(), String> {
        let began = Instant::now();
        let mut last = String::new();
        while began.elapsed() < PATIENCE {
            let mut connection = Connection::open(server.port, PATIENCE).map_err(|error| error.to_string())?;
            match self.put(&mut connection)? {
                Answer::Done => return Ok(()),
                Answer::Refused(text) => last = text,
                Answer::Held => last = "held".to_owned(),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("writes do not go on, though there is space: {last}"))
    }

    /// Deletes everything, and has the server write a small checkpoint in place of its log, twice.
    fn empty(&mut self, server: &Server) -> Result<(), String> {
        let lost = |error: io::Error| format!("the connection is lost: {error}");
        let mut connection = Connection::open(server.port, PATIENCE).map_err(lost)?;
        let keys: Vec<String> = self.known.keys().chain(&self.unknown).cloned().collect();
        for key in &keys {
            if let Answer::Refused(text) = self.delete(&mut connection, key)? {
                return Err(format!("DEL is refused: {text}"));
            }
        }
        for _ in 0..2 {
            let began = Instant::now();
            while let Reply::Error(text) = connection.call(&["BGREWRITEAOF"]).map_err(lost)? {
                if began.elapsed() > PATIENCE {
                    return Err(format!("no checkpoint: {text}"));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            for field in ["aof_rewrite_scheduled", "aof_rewrite_in_progress", "rdb_bgsave_in_progress"] {
                while connection.info("persistence", field).map_err(lost)?.is_some_and(|text| text.trim() != "0") {
                    if began.elapsed() > PATIENCE {
                        return Err(format!("{field} stays"));
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, connection: &mut Connection) -> Result<Answer, String> {
        self.number += 1;
        let (key, number) = (format!("fill:{}", self.number), self.number);
        let mut bytes = Vec::new();
        request(&mut bytes, &[&b"SET"[..], key.as_bytes(), &value(number, LEN)]);
        self.ask(connection, &bytes, key, Some(number))
    }

    fn delete(&mut self, connection: &mut Connection, key: &str) -> Result<Answer, String> {
        let mut bytes = Vec::new();
        request(&mut bytes, &["DEL", key]);
        self.ask(connection, &bytes, key.to_owned(), None)
    }

    fn ask(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
        key: String,
        number: Option<u64>,
    ) -> Result<Answer, String> {
        match connection.send(bytes).and_then(|()| connection.reply()) {
            Ok(Reply::Error(text)) => Ok(Answer::Refused(text)),
            Ok(_) => {
                self.unknown.retain(|other| *other != key);
                self.known.insert(key, number);
                Ok(Answer::Done)
            }
            Err(error) if is_timeout(&error) => {
                self.known.remove(&key);
                self.unknown.push(key);
                Ok(Answer::Held)
            }
            Err(error) => Err(format!("the connection is lost: {error}")),
        }
    }

    fn verify(&self, running: &Running) -> Result<(), String> {
        let mut connection = running.connect().map_err(|error| error.to_string())?;
        for (key, number) in &self.known {
            let Ok(Reply::Bulk(bytes)) = connection.call(&["GET", key]) else { return Err(format!("GET {key} fails")) };
            check(key, bytes.as_deref(), *number)?;
        }
        Ok(())
    }
}

/// A checkpoint on a full disk: it fails within the time that others have, and says so.
fn fail_checkpoint(server: &Server) -> Result<(), String> {
    let lost = |error: io::Error| format!("the connection is lost: {error}");
    let mut connection = Connection::open(server.port, PATIENCE).map_err(lost)?;
    let began = Instant::now();
    // An error is an answer as well.
    connection.call(&["BGREWRITEAOF"]).map_err(lost)?;
    for field in ["aof_rewrite_scheduled", "aof_rewrite_in_progress", "rdb_bgsave_in_progress"] {
        while connection.info("persistence", field).map_err(lost)?.is_some_and(|text| text.trim() != "0") {
            if began.elapsed() > PATIENCE {
                return Err(format!("a checkpoint on a full disk hangs: {field} stays"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    match connection.info("persistence", "aof_last_bgrewrite_status").map_err(lost)? {
        Some(text) if text.trim() == "err" => Ok(()),
        other => Err(format!("a checkpoint on a full disk is said to have ended with {other:?}")),
    }
}

/// Whether nothing has come in time.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Writes a file as big as the disk has room for.
fn use_up(path: &std::path::Path) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    for piece in [1 << 20, 1 << 12, 1] {
        loop {
            match io::Write::write_all(&mut file, &vec![1; piece]) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn check(key: &str, got: Option<&[u8]>, number: Option<u64>) -> Result<(), String> {
    let expected = number.map_or(Cell::Absent, |number| Cell::Value { number, len: LEN });
    let got = got.map_or(Cell::Absent, read_value);
    if got == expected { Ok(()) } else { Err(format!("{key} holds {got:?} and not {expected:?}")) }
}
