//! A writer: a connection that sends operations in batches, checks every reply against what it knows of its keys, and
//! notes what was sent, when, and what was answered.

use crate::operation::{
    Action, CELLS, COUNTERS, Cell, FIELDS_FROM, GROUPS, MEMBERS, Operation, Outcome, SHARED_COUNTERS, SHARED_GROUPS,
    VALUES, apply, key_of, on_value, read_value, shared_counter, shared_group, value,
};
use crate::resp::{Connection, Reply, request};
use base::Rng;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest batch that is sent before its replies are read.
const DEPTH_MAX: u64 = 16;
/// Longest wait for a reply before the server counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// The mode of the log, as known to the thread that changes it: a token that is odd while the log is certainly in sync
/// mode, and differs after every change.
#[derive(Debug, Default)]
pub struct Mode(AtomicU64);

impl Mode {
    /// A change begins, or ends in a mode that promises less: nothing is certain.
    pub fn uncertain(&self) {
        let token = self.0.load(Ordering::SeqCst);
        self.0.store((token | 1) + 1, Ordering::SeqCst);
    }

    /// The log is in sync mode from now on, until the next change.
    pub fn sync(&self) {
        self.0.store(self.0.load(Ordering::SeqCst) | 1, Ordering::SeqCst);
    }

    fn token(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// What the writers of one load share.
#[derive(Debug)]
pub struct Ground {
    /// The server's port.
    pub port: u16,
    /// When the load began.
    pub began: Instant,
    /// Ends the load between two batches.
    pub stop: AtomicBool,
    /// The mode of the log.
    pub mode: Mode,
    /// Bytes of the largest value.
    pub len_max: usize,
}

impl Ground {
    /// A load that begins now; the log is in sync mode when `sync`.
    pub fn new(port: u16, sync: bool, len_max: usize) -> Self {
        let mode = Mode::default();
        if sync {
            mode.sync();
        }
        Self { port, began: Instant::now(), stop: AtomicBool::new(false), mode, len_max }
    }

    /// Microseconds since the load began.
    pub fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// A writer with what it knows. It lives over many loads.
#[derive(Debug)]
pub struct Writer {
    /// Which one.
    pub id: usize,
    /// What stood in its cells before the operations.
    pub cells: Vec<Cell>,
    /// What was sent since.
    pub operations: Vec<Operation>,
    /// The first error that refused an operation of the last load.
    pub refusal: Option<String>,
    /// The cells, as answered so far.
    seen: Vec<Cell>,
    rng: Rng,
    next_number: u64,
    step: u64,
}

impl Writer {
    /// One of `count` writers on an empty server.
    pub fn new(id: usize, count: usize, seed: u64) -> Self {
        let rng = Rng::new(seed ^ (id as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let cells = vec![Cell::Absent; CELLS];
        let (next_number, step) = (id as u64 + 1, count as u64);
        Self { id, seen: cells.clone(), cells, operations: Vec::new(), refusal: None, rng, next_number, step }
    }

    /// What was found after a crash is what the writer continues from.
    pub fn go_on_from(&mut self, found: Vec<Cell>) {
        self.seen.clone_from(&found);
        self.cells = found;
        self.operations.clear();
    }

    /// Sends operations until the connection is lost or the load stops.
    ///
    /// # Errors
    /// A reply that is wrong, and a server that neither answers nor closes.
    pub fn run(&mut self, ground: &Ground) -> Result<(), String> {
        self.refusal = None;
        let Ok(mut connection) = Connection::open(ground.port, PATIENCE) else { return Ok(()) };
        let mut bytes = Vec::new();
        while !ground.stop.load(Ordering::Relaxed) {
            let first = self.operations.len();
            let depth = if self.rng.one_in(4) { 1 } else { 1 + self.rng.below(DEPTH_MAX) };
            bytes.clear();
            let (token, sent_us) = (ground.mode.token(), ground.now_us());
            for _ in 0..depth {
                let operation = Operation {
                    number: self.next_number,
                    action: self.draw(ground.len_max),
                    sent_us,
                    outcome: Outcome::Unanswered,
                };
                self.next_number += self.step;
                encode(&mut bytes, self.id, &operation);
                self.operations.push(operation);
            }
            let id = self.id;
            let lost = |error: &io::Error| match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    Err(format!("writer {id}: no reply in {PATIENCE:?}"))
                }
                io::ErrorKind::InvalidData => Err(format!("writer {id}: {error}")),
                _ => Ok(()),
            };
            if let Err(error) = connection.send(&bytes) {
                return lost(&error);
            }
            for index in first..self.operations.len() {
                let reply = match read(&mut connection, self.operations[index].action) {
                    Ok(reply) => reply,
                    Err(error) => return lost(&error),
                };
                let at_us = ground.now_us();
                let kept = token % 2 == 1 && ground.mode.token() == token;
                self.answered(index, &reply, at_us, kept)?;
            }
        }
        Ok(())
    }

    fn draw(&mut self, len_max: usize) -> Action {
        let rng = &mut self.rng;
        let mut pick = |count: usize| usize::try_from(rng.below(count as u64)).unwrap_or(0);
        match pick(100) {
            0..40 => {
                let key = pick(VALUES);
                let len = match pick(100) {
                    0 => 100 + pick(len_max),
                    1..10 => 20 + pick(4000.min(len_max)),
                    _ => 20 + pick(200),
                };
                Action::Set { key, len }
            }
            40..52 => Action::Delete { key: pick(VALUES) },
            52..58 => Action::Read { key: pick(VALUES) },
            58..75 => Action::Increment { counter: pick(COUNTERS) },
            75..88 => Action::Group { group: pick(GROUPS) },
            88..95 => Action::SharedIncrement { counter: pick(SHARED_COUNTERS) },
            _ => Action::SharedGroup { group: pick(SHARED_GROUPS) },
        }
    }

    /// Checks a reply against the cells as they are now, and does the operation to them.
    fn answered(&mut self, index: usize, reply: &Reply, at_us: u64, kept: bool) -> Result<(), String> {
        let operation = self.operations[index];
        if let Reply::Error(text) = reply {
            if !["MISCONF", "TRYAGAIN", "OOM", "EXECABORT"].iter().any(|code| text.starts_with(code)) {
                return Err(format!("writer {}: {:?} answered {text}", self.id, operation.action));
            }
            self.refusal.get_or_insert_with(|| text.clone());
            self.operations[index].outcome = Outcome::Refused;
            return Ok(());
        }
        let before = match operation.action {
            Action::Set { key, .. } | Action::Delete { key } | Action::Read { key } => self.seen[key],
            Action::Increment { counter } => self.seen[VALUES + counter],
            _ => Cell::Absent,
        };
        apply(&mut self.seen, &operation);
        let right = match operation.action {
            Action::Set { key: 0..FIELDS_FROM, .. } => reply.is_ok(),
            Action::Set { .. } => *reply == Reply::Integer(i64::from(before == Cell::Absent)),
            Action::Delete { .. } => *reply == Reply::Integer(i64::from(before != Cell::Absent)),
            Action::Read { .. } => {
                matches!(reply, Reply::Bulk(bytes) if bytes.as_deref().map_or(Cell::Absent, read_value) == before)
            }
            Action::Increment { counter } => {
                let seen = self.seen[VALUES + counter];
                matches!((reply, seen), (Reply::Integer(got), Cell::Count(count)) if *got == count)
            }
            Action::SharedIncrement { .. } => matches!(reply, Reply::Integer(1..)),
            Action::Group { .. } | Action::SharedGroup { .. } => {
                matches!(reply, Reply::Array(all) if all.len() == MEMBERS && all.iter().all(Reply::is_ok))
            }
        };
        if !right {
            let shown: String = format!("{reply:?}").chars().take(200).collect();
            return Err(format!("writer {}: {:?} on {before:?} answered {shown}", self.id, operation.action));
        }
        self.operations[index].outcome = Outcome::Done { at_us, kept };
        Ok(())
    }
}

/// The request of an operation.
fn encode(out: &mut Vec<u8>, writer: usize, operation: &Operation) {
    let number = operation.number.to_string();
    let mut transaction = |keys: Vec<String>| {
        request(out, &["MULTI"]);
        for key in keys {
            request(out, &["SET", &key, &number]);
        }
        request(out, &["EXEC"]);
    };
    match operation.action {
        Action::Set { key, len } => {
            let mut words: Vec<Vec<u8>> = on_value("SET", writer, key).into_iter().map(String::into_bytes).collect();
            words.push(value(operation.number, len));
            request(out, &words);
        }
        Action::Delete { key } => request(out, &on_value("DEL", writer, key)),
        Action::Read { key } => request(out, &on_value("GET", writer, key)),
        Action::Increment { counter } => request(out, &["INCR", &key_of(writer, VALUES + counter, 0)]),
        Action::SharedIncrement { counter } => request(out, &["INCR", &shared_counter(counter)]),
        Action::Group { group } => {
            transaction((0..MEMBERS).map(|member| key_of(writer, VALUES + COUNTERS + group, member)).collect());
        }
        Action::SharedGroup { group } => transaction((0..MEMBERS).map(|member| shared_group(group, member)).collect()),
    }
}

/// The reply of an operation; of a transaction, that of its EXEC.
fn read(connection: &mut Connection, action: Action) -> io::Result<Reply> {
    if matches!(action, Action::Group { .. } | Action::SharedGroup { .. }) {
        for _ in 0..=MEMBERS {
            connection.reply()?;
        }
    }
    connection.reply()
}
