//! A server as a process of its own: started on a free port in a directory of its own, spoken to over TCP, ended with
//! the value.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Identity, Kind, Outcome, Target};
use crate::request;
use crate::resp::{self, FrameError, Value};

/// A program of one kind and where it lies.
#[derive(Clone, Debug)]
pub struct Program {
    /// Which server it is.
    pub kind: Kind,
    /// The binary.
    pub path: PathBuf,
    /// Directives besides, name before value.
    pub options: Vec<String>,
}

impl Program {
    /// The command line for an empty, memory-only server; the same directives for all kinds, but for the options.
    fn command(&self, port: u16, dir: &Path) -> Command {
        let mut command = Command::new(&self.path);
        if self.kind == Kind::Onggi {
            command.args(["serve", "--http-port", "0"]);
        }
        command.arg("--port").arg(port.to_string()).arg("--dir").arg(dir);
        command.args(["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"]);
        command.args(&self.options);
        command.current_dir(dir).stdin(Stdio::null());
        command
    }
}

/// A reply that takes longer than this is reported as missing.
const REPLY_TIME_MAX: Duration = Duration::from_secs(10);

/// A server that does not answer DBSIZE this long after its start did not start.
const START_TIME_MAX: Duration = Duration::from_secs(20);

/// A running process and its connections.
#[derive(Debug)]
pub struct ProcessTarget {
    program: Program,
    name: String,
    dir: PathBuf,
    port: u16,
    child: Child,
    connections: Vec<Option<Connection>>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    identity: Identity,
    /// Bytes received and not yet taken as replies.
    received: Vec<u8>,
}

impl ProcessTarget {
    /// Starts `program` on a free port; `name` is unique in the run.
    ///
    /// # Errors
    /// When the directory cannot be made, the program cannot be started, or it does not answer in time.
    pub fn start(program: Program, name: &str) -> io::Result<Self> {
        let port = free_port()?;
        let dir = std::env::temp_dir().join(format!("onggi-differential-{}-{name}-{port}", std::process::id()));
        fs::create_dir_all(&dir)?;
        let child = spawn(&program, port, &dir)?;
        let mut target = Self { program, name: name.to_owned(), dir, port, child, connections: Vec::new() };
        target.await_start()?;
        Ok(target)
    }

    /// Waits until the process tells of keys: one that is loading answers other commands before.
    fn await_start(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + START_TIME_MAX;
        loop {
            if let Some(status) = self.child.try_wait()? {
                let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                let last = log.lines().last().unwrap_or("no output");
                return Err(io::Error::other(format!("{} ended at its start with {status}: {last}", self.name)));
            }
            if self.tells_of_keys() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(io::Error::new(ErrorKind::TimedOut, format!("{} does not answer DBSIZE", self.name)));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn tells_of_keys(&self) -> bool {
        let ask = || -> io::Result<bool> {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.write_all(b"DBSIZE\r\n")?;
            let mut first = [0];
            stream.read_exact(&mut first)?;
            Ok(first == *b":")
        };
        ask().unwrap_or(false)
    }

    fn kill(&mut self) {
        // A process that has already ended cannot be killed, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn connection(&mut self, connection: usize) -> Option<&mut Connection> {
        self.connections.get_mut(connection)?.as_mut()
    }
}

impl Target for ProcessTarget {
    fn kind(&self) -> Kind {
        self.program.kind
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self, connection: usize) -> io::Result<()> {
        if self.connections.len() <= connection {
            self.connections.resize_with(connection + 1, || None);
        }
        // Closed before the new one opens, so that the server may see the two in this order.
        self.connections[connection] = None;
        let mut opened = Connection::open(self.port)?;
        opened.send(&request::encode(&["CLIENT", "INFO"]));
        if let Outcome::Reply(bytes) = opened.receive()
            && let Ok((Value::Bulk(line), _)) = resp::parse(&bytes)
        {
            opened.identity = Identity::from_client_info(&line);
        }
        self.connections[connection] = Some(opened);
        Ok(())
    }

    fn identity(&self, connection: usize) -> &Identity {
        static UNKNOWN: Identity = Identity { id: Vec::new(), address: Vec::new(), local_address: Vec::new() };
        self.connections.get(connection).and_then(Option::as_ref).map_or(&UNKNOWN, |open| &open.identity)
    }

    fn send(&mut self, connection: usize, bytes: &[u8]) {
        if let Some(open) = self.connection(connection) {
            open.send(bytes);
        }
    }

    fn receive(&mut self, connection: usize, replies: usize) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(replies);
        while outcomes.len() < replies {
            let outcome = self.connection(connection).map_or(Outcome::Closed, Connection::receive);
            let last = !matches!(outcome, Outcome::Reply(_));
            outcomes.push(outcome);
            if last {
                let missing = outcomes[outcomes.len() - 1].clone();
                outcomes.resize(replies, missing);
            }
        }
        outcomes
    }

    fn await_close(&mut self, connection: usize) -> Outcome {
        self.connection(connection).map_or(Outcome::Closed, Connection::await_close)
    }

    fn restart(&mut self) -> io::Result<()> {
        self.connections.clear();
        self.kill();
        self.port = free_port()?;
        self.child = spawn(&self.program, self.port, &self.dir)?;
        self.await_start()
    }
}

impl Drop for ProcessTarget {
    fn drop(&mut self) {
        self.kill();
        // What cannot be removed from the temporary directory harms no later run.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Connection {
    fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIME_MAX))?;
        stream.set_write_timeout(Some(REPLY_TIME_MAX))?;
        Ok(Self { stream, identity: Identity::default(), received: Vec::new() })
    }

    fn send(&mut self, bytes: &[u8]) {
        // A failed write means a closed connection, which the next receive reports with what was read before it.
        let _ = self.stream.write_all(bytes);
    }

    /// The next reply, together with the pushes before it.
    fn receive(&mut self) -> Outcome {
        // Where the frame under inspection starts: behind the pushes already seen.
        let mut start = 0;
        loop {
            match resp::parse(&self.received[start..]) {
                Ok((Value::Push(_), length)) => start += length,
                Ok((_, length)) => {
                    let rest = self.received.split_off(start + length);
                    return Outcome::Reply(std::mem::replace(&mut self.received, rest));
                }
                Err(FrameError::Malformed(_)) => return Outcome::Malformed(self.received.clone()),
                Err(FrameError::Partial) => {
                    if let Some(outcome) = self.read_more() {
                        return outcome;
                    }
                }
            }
        }
    }

    /// Reads once; the outcome if there was nothing to read.
    fn read_more(&mut self) -> Option<Outcome> {
        let mut chunk = [0; 64 << 10];
        match self.stream.read(&mut chunk) {
            Ok(0) => Some(Outcome::Closed),
            Ok(length) => {
                self.received.extend_from_slice(&chunk[..length]);
                None
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => None,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Some(Outcome::Silence(self.received.clone()))
            }
            Err(_) => Some(Outcome::Closed),
        }
    }

    fn await_close(&mut self) -> Outcome {
        loop {
            match self.read_more() {
                None => {}
                Some(Outcome::Closed) if !self.received.is_empty() => return Outcome::Malformed(self.received.clone()),
                Some(outcome) => return outcome,
            }
        }
    }
}

fn spawn(program: &Program, port: u16, dir: &Path) -> io::Result<Child> {
    let log = fs::File::create(dir.join("log"))?;
    let errors = log.try_clone()?;
    program.command(port, dir).stdout(log).stderr(errors).spawn()
}

/// A port that was free a moment ago.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
