//! The server under test: started, stopped, killed and read back.

use crate::judge::Found;
use crate::operation::{
    CELLS, COUNTERS, Cell, MEMBERS, SHARED_COUNTERS, SHARED_GROUPS, VALUES, key_of, on_value, read_number, read_value,
    shared_counter, shared_group,
};
use crate::resp::{Connection, Reply, request};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest start: a server that does not answer by then does not start at all.
const START_MAX: Duration = Duration::from_secs(60);

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The one this repository builds.
    Onggi,
    /// Redis or Valkey: a stand-in while the tests themselves are tested.
    Redis,
}

/// How a server is started; the same each time.
#[derive(Clone, Debug)]
pub struct Server {
    /// Which server.
    pub kind: Kind,
    /// Its program.
    pub program: PathBuf,
    /// Its port.
    pub port: u16,
    /// Its data.
    pub dir: PathBuf,
    /// Where what it prints is appended; not among the data.
    pub output: PathBuf,
    /// Further directives, by name and value.
    pub options: Vec<(String, String)>,
    /// A command that ends by becoming the server.
    pub wrap: Vec<String>,
}

impl Server {
    /// Starts it, without waiting for an answer.
    ///
    /// # Errors
    /// The program, or its directory, is not there.
    pub fn spawn(&self) -> io::Result<Running> {
        fs::create_dir_all(&self.dir)?;
        let mut words: Vec<String> = self.wrap.clone();
        words.push(self.program.display().to_string());
        if self.kind == Kind::Onggi {
            words.extend(["serve", "--http-port", "0"].map(str::to_owned));
        }
        let own = [
            ("port", self.port.to_string()),
            ("bind", "127.0.0.1".to_owned()),
            ("dir", self.dir.display().to_string()),
            ("save", String::new()),
        ];
        for (name, value) in
            own.into_iter().chain(self.options.iter().map(|(name, value)| (name.as_str(), value.clone())))
        {
            words.extend([format!("--{name}"), value]);
        }
        let output = OpenOptions::new().create(true).append(true).open(&self.output)?;
        let from = output.metadata()?.len();
        let child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        Ok(Running { child, server: self.clone(), began: Instant::now(), from, pid: None })
    }

    /// Starts it and waits until it answers; how long that took.
    ///
    /// # Errors
    /// It ended, or does not answer, with what it printed.
    pub fn start(&self) -> Result<(Running, Duration), String> {
        let mut running = self.spawn().map_err(|error| format!("{}: {error}", self.program.display()))?;
        let took = running.wait_ready()?;
        Ok((running, took))
    }
}

/// A server that was started. It is killed with this value.
#[derive(Debug)]
pub struct Running {
    child: Child,
    server: Server,
    began: Instant,
    from: u64,
    pid: Option<Pid>,
}

impl Running {
    /// Waits until it answers PING; how long it took since the start.
    ///
    /// # Errors
    /// It ended, or does not answer, with what it printed.
    pub fn wait_ready(&mut self) -> Result<Duration, String> {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("the server ended at its start ({status}); it printed: {}", self.printed()));
            }
            if let Ok(mut connection) = Connection::open(self.server.port, Duration::from_secs(5))
                && let Ok(Reply::Line(line)) = connection.call(&["PING"])
                && line == "PONG"
            {
                let pid =
                    connection.info("server", "process_id").ok().flatten().and_then(|text| text.trim().parse().ok());
                self.pid = pid.and_then(Pid::from_raw);
                return Ok(self.began.elapsed());
            }
            if self.began.elapsed() > START_MAX {
                return Err(format!("the server does not answer after {START_MAX:?}; it printed: {}", self.printed()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A new connection.
    ///
    /// # Errors
    /// The server does not accept.
    pub fn connect(&self) -> io::Result<Connection> {
        Connection::open(self.server.port, Duration::from_secs(60))
    }

    /// Whether the process runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Stops it where it is.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Kills it and waits for its end.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        // What wraps it ends with it; without one it is the same process.
        if self.server.wrap.is_empty() {
            let _ = self.child.kill();
        }
        let began = Instant::now();
        while self.alive() {
            if began.elapsed() > Duration::from_secs(20) {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The process of the server itself.
    pub fn pid(&self) -> u32 {
        self.pid.map_or(self.child.id(), |pid| pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// What it has printed since it started: the end of it.
    pub fn printed(&self) -> String {
        let text = fs::read(&self.server.output).unwrap_or_default();
        let from = usize::try_from(self.from).unwrap_or(0).min(text.len());
        let text = String::from_utf8_lossy(&text[from..]).into_owned();
        let start = text.char_indices().rev().nth(1500).map_or(0, |(at, _)| at);
        text[start..].trim().replace('\n', " | ")
    }

    /// Reads all that the writers and the shared keys hold.
    ///
    /// # Errors
    /// The connection is lost, or a key answers with an error.
    pub fn read_all(&self, writers: usize) -> Result<Found, String> {
        let lost = |error: io::Error| format!("reading back: {error}");
        let mut connection = self.connect().map_err(lost)?;
        let mut found = Found::default();
        for writer in 0..writers {
            let members = |cell: usize| if cell < VALUES + COUNTERS { 1 } else { MEMBERS };
            let reads: Vec<Vec<String>> = (0..CELLS)
                .flat_map(|cell| {
                    (0..members(cell)).map(move |member| match cell {
                        0..VALUES => on_value("GET", writer, cell),
                        _ => vec!["GET".to_owned(), key_of(writer, cell, member)],
                    })
                })
                .collect();
            let mut bytes = read_all(&mut connection, &reads).map_err(lost)?.into_iter();
            let cells = (0..CELLS).map(|cell| {
                let all: Vec<Option<Vec<u8>>> = bytes.by_ref().take(members(cell)).collect();
                read_cell(cell, &all)
            });
            found.cells.push(cells.collect());
        }
        let keys: Vec<String> = (0..SHARED_COUNTERS).map(shared_counter).collect();
        let counters = read_many(&mut connection, &keys).map_err(lost)?;
        found.counters =
            counters.iter().map(|bytes| bytes.as_deref().map_or(0, |b| read_number(b).unwrap_or(-1))).collect();
        for group in 0..SHARED_GROUPS {
            let keys: Vec<String> = (0..MEMBERS).map(|member| shared_group(group, member)).collect();
            let numbers = read_many(&mut connection, &keys).map_err(lost)?;
            let mut members = [None; MEMBERS];
            for (member, bytes) in members.iter_mut().zip(numbers) {
                *member = bytes.map(|bytes| read_number(&bytes).unwrap_or(u64::MAX));
            }
            found.groups.push(members);
        }
        Ok(found)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.alive() {
            self.kill();
        }
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        let pid = self.pid.or_else(|| Pid::from_raw(i32::try_from(self.child.id()).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }
}

/// GET of keys, in one go.
fn read_many(connection: &mut Connection, keys: &[String]) -> io::Result<Vec<Option<Vec<u8>>>> {
    read_all(connection, &keys.iter().map(|key| vec!["GET".to_owned(), key.clone()]).collect::<Vec<_>>())
}

/// Requests that read a string each, in one go.
fn read_all(connection: &mut Connection, reads: &[Vec<String>]) -> io::Result<Vec<Option<Vec<u8>>>> {
    let mut bytes = Vec::new();
    reads.iter().for_each(|words| request(&mut bytes, words));
    connection.send(&bytes)?;
    let one = |reply| match reply {
        Reply::Bulk(bytes) => Ok(bytes),
        other => Err(io::Error::other(format!("a read answered {other:?}"))),
    };
    reads.iter().map(|_| connection.reply().and_then(one)).collect()
}

/// What stands in a cell, from the values of its keys.
fn read_cell(cell: usize, values: &[Option<Vec<u8>>]) -> Cell {
    match values {
        all if all.iter().all(Option::is_none) => Cell::Absent,
        [Some(bytes)] if cell < VALUES => read_value(bytes),
        [Some(bytes)] => read_number(bytes).map_or(Cell::Broken, Cell::Count),
        [first, ..] if values.iter().all(|value| value == first) => {
            first.as_deref().and_then(read_number).map_or(Cell::Broken, Cell::Group)
        }
        _ => Cell::Broken,
    }
}

/// A port without a listener, below those that the kernel gives to outgoing connections.
///
/// # Errors
/// None is free.
pub fn free_port() -> io::Result<u16> {
    let from = 20_000 + u16::try_from(std::process::id() % 5000).unwrap_or(0);
    (from..30_000)
        .find(|&port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok())
        .ok_or_else(|| io::Error::other("no free port"))
}
