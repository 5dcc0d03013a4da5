//! Commands of a primary, applied to a store together with the position after them.
//!
//! A1. What a command changes and the position after it are one record of the log, so a process that is killed
//!     continues exactly where its store is.
//! A2. Nothing expires by the clock: a primary sends what expired as deletions. Commands run at a time before every
//!     expiration, but for those that store or compare with the present time.
//! A3. What MULTI and EXEC enclose is one record. Of a transaction that is cut, nothing is applied.

use crate::position::Position;
use crate::record::{Bad, Next, Records};
use crate::runner::{BEGINNING, Runner, is_timed};
use crate::spool::SpoolReader;
use base::{Clock, DbIndex, UnixMs};
use command::{Args, Host, Row};
use engine::{Fetch, Keyspace, WriteClass};
use proto::Span;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use store::{At, Blocked, LockSet, Scratch, Store, Want};

/// Commands that become one record at most, and their bytes.
const BATCH_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 256 << 10;

/// A position is stored without changes when the stream has moved this far: a primary that sends only PINGs has the
/// rest in its backlog.
const KEEP_EVERY_BYTES: u64 = 64 << 10;

/// Time before a command is tried again that the log, or a checkpoint, has no room for.
const RETRY: Duration = Duration::from_micros(200);

/// What an applier needs of the program that it works for.
pub trait Surroundings {
    /// The parts that commands ask for.
    fn host(&self) -> &Host;

    /// Adds the position to the record of the changes before it; see [`Applier::recall`].
    fn keep(&self, txn: &mut store::Txn<'_>, position: &str);

    /// A command cannot be run. Returns whether to leave it out; otherwise it ends the stream.
    fn leave_out(&mut self, command: &[u8], why: &str) -> bool;

    /// Whether the store may still be changed. Asked under all locks.
    fn may_apply(&self) -> bool {
        true
    }

    /// The log takes no changes. Returns whether to try again.
    fn wait_for_log(&mut self, why: &str) -> bool;
}

/// Why the stream is not applied any further.
#[derive(Debug)]
pub enum ApplyError {
    /// Bytes that are no command.
    Form {
        /// Where.
        offset: u64,
        /// What should be there.
        expected: &'static str,
    },
    /// What was received cannot be read back.
    Spool {
        /// Where.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// A command that cannot be run here.
    Command {
        /// Where it begins.
        offset: u64,
        /// Its name.
        command: Vec<u8>,
        /// Why.
        why: String,
    },
    /// The store may no longer be changed ([`Surroundings::may_apply`]). Nothing after the position was applied.
    Over,
    /// The log takes nothing.
    NotKept {
        /// Why, in a sentence.
        why: String,
    },
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something was applied, or is about to be.
    Applied,
    /// The primary asks for an acknowledgement of everything before.
    Asked,
    /// The stream has ended. What was whole is applied.
    Ended,
}

/// One command that waits to be applied.
struct Pending {
    words: Vec<u8>,
    spans: Vec<Span>,
    row: Row,
    offset: u64,
}

/// Where a store is in the stream of its primary, and what takes it on.
pub struct Applier {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    /// The number by which locks and log know this thread.
    worker: usize,
    /// How many databases the primary may have.
    databases: u32,
    runner: Runner,
    scratch: Scratch,
    /// Values that were read for the batch, to be released after it.
    wants: Vec<Want>,
    records: Option<Records<SpoolReader>>,
    /// The position that the store has.
    position: Option<Position>,
    batch: Vec<Pending>,
    batch_bytes: usize,
    is_in_transaction: bool,
    /// Offset after the last command that was read.
    offset: u64,
    /// Offset of the position that was stored last; `None` when the next one is to be stored in any case.
    kept: Option<u64>,
    commands: u64,
}

impl Applier {
    /// Applies to a store, as the thread with this number. The store has no position yet.
    pub fn new(
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        (runner, scratch): (Runner, Scratch),
        worker: usize,
        databases: u32,
    ) -> Self {
        Self {
            store,
            clock,
            worker,
            databases,
            runner,
            scratch,
            wants: Vec::new(),
            records: None,
            position: None,
            batch: Vec::new(),
            batch_bytes: 0,
            is_in_transaction: false,
            offset: 0,
            kept: None,
            commands: 0,
        }
    }

    /// The store has everything before this position: text of [`Surroundings::keep`], or of [`Applier::loaded`]. Text
    /// of another form means no position.
    pub fn recall(&mut self, text: &str) {
        let mut words = text.split(' ');
        if let (Some(id), Some(offset), Some(db)) = (words.next(), words.next(), words.next())
            && let (Some(position), Ok(db)) = (Position::parse(id, offset), db.parse())
        {
            self.runner.select(DbIndex(db));
            self.kept = Some(position.offset);
            self.position = Some(position);
        }
    }

    /// The position up to which everything is applied; `None` without one.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// Forgets the position: the store has other data now.
    pub fn forget(&mut self) {
        self.position = None;
    }

    /// Offset up to which everything is applied.
    pub fn offset(&self) -> u64 {
        self.position.as_ref().map_or(0, |position| position.offset)
    }

    /// Changes applied since the last call, as INFO counts them.
    pub fn take_changes(&mut self) -> u64 {
        std::mem::take(&mut self.scratch.changes)
    }

    /// Commands read.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// A copy has been loaded that has everything up to a position. A primary selects a database before its first
    /// command after that. Returns the text to be stored with the copy.
    pub fn loaded(&mut self, position: &Position) -> String {
        self.runner.select(DbIndex(0));
        self.kept = Some(position.offset);
        self.position = Some(position.clone());
        self.text(position)
    }

    /// The stream begins, or continues, here. Its id may have changed.
    pub fn begin(&mut self, position: Position) {
        self.offset = position.offset;
        if self.position.as_ref().is_none_or(|before| before.id != position.id) {
            self.kept = None;
        }
        self.position = Some(position);
    }

    /// Reads the stream from here.
    pub fn read(&mut self, spool: SpoolReader) {
        self.batch.clear();
        self.batch_bytes = 0;
        self.is_in_transaction = false;
        self.records = Some(Records::new(spool, self.offset));
    }

    /// Whether bytes of the stream were read and are no command yet.
    pub fn has_more(&self) -> bool {
        self.records.as_ref().is_some_and(Records::has_more)
    }

    /// Takes the stream a command further.
    ///
    /// # Errors
    /// Every [`ApplyError`].
    pub fn step(&mut self, around: &mut dyn Surroundings) -> Result<Outcome, ApplyError> {
        let Some(records) = &mut self.records else { return Ok(Outcome::Ended) };
        let offset = records.offset();
        let next = records.next().map_err(|bad| match bad {
            Bad::Form { offset, expected } => ApplyError::Form { offset, expected },
            Bad::Io(source) => ApplyError::Spool { offset, source },
        })?;
        match next {
            Next::Command => {}
            Next::End | Next::Cut => {
                if !self.is_in_transaction {
                    self.commit(around)?;
                }
                return Ok(Outcome::Ended);
            }
            Next::Time(_) | Next::Annotation => {
                return Err(ApplyError::Form { offset, expected: "a command, which begins with *" });
            }
        }
        self.offset = records.offset();
        let has_more = records.has_more();
        self.commands += 1;
        let outcome = self.take(around, offset)?;
        let is_full = self.batch.len() >= BATCH_MAX || self.batch_bytes >= BATCH_BYTES_MAX;
        if !self.is_in_transaction && (is_full || !has_more || outcome == Outcome::Asked) {
            self.commit(around)?;
        }
        Ok(outcome)
    }

    /// Puts the command that was read into the batch, if it changes something.
    fn take(&mut self, around: &mut dyn Surroundings, offset: u64) -> Result<Outcome, ApplyError> {
        let Some(records) = &self.records else { return Ok(Outcome::Ended) };
        let (words, spans) = records.command();
        let args = Args::new(words, spans, &[]);
        let is =
            |at: usize, word: &str| args.bytes(at).is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()));
        if is(0, "multi") || is(0, "exec") {
            self.is_in_transaction = is(0, "multi");
            return Ok(Outcome::Applied);
        }
        if is(0, "replconf") {
            return Ok(if is(1, "getack") { Outcome::Asked } else { Outcome::Applied });
        }
        let foreign = foreign_database(&args, self.databases);
        let row = match (self.runner.row(&args), foreign) {
            (_, Some(db)) => Err(format!("the primary has a database {db}; give --databases")),
            (row, None) => row,
        };
        match row {
            Ok(None) => {}
            Ok(Some(row)) => {
                let pending = Pending { words: words.to_vec(), spans: spans.to_vec(), row, offset };
                self.batch_bytes += pending.words.len();
                self.batch.push(pending);
            }
            Err(why) => cannot(around, args.bytes(0).unwrap_or_default(), offset, why)?,
        }
        Ok(Outcome::Applied)
    }

    /// Runs the batch, and stores the position after it, as one record.
    fn commit(&mut self, around: &mut dyn Surroundings) -> Result<(), ApplyError> {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        let Some(position) = &mut self.position else { return Ok(()) };
        let is_near = self.kept.is_some_and(|kept| self.offset.saturating_sub(kept) < KEEP_EVERY_BYTES);
        if batch.is_empty() && is_near {
            position.offset = self.offset;
            return Ok(());
        }
        let position = Position { id: position.id.clone(), offset: self.offset };
        let time = self.clock.now_ms();
        let mut refused = Vec::new();
        loop {
            refused.clear();
            let at =
                At { now: BEGINNING, db: self.runner.db(), touch: false, worker: self.worker, writes: WriteClass::Any };
            let Self { store, scratch, runner, .. } = self;
            let selected = runner.db();
            let ran = store.commit(scratch, &LockSet::All, &at, |txn| {
                if !around.may_apply() {
                    return Ok(false);
                }
                for (number, pending) in batch.iter().enumerate() {
                    let args = Args::new(&pending.words, &pending.spans, &[]);
                    let now = time_of(txn, &pending.row, &args, time)?;
                    txn.set_time(now);
                    if let Err(why) = runner.run(around.host(), txn, &pending.row, args) {
                        refused.push((number, why));
                    }
                }
                around.keep(txn, &format!("{position} {}", runner.db().0));
                Ok(true)
            });
            match ran {
                Ok(true) => break,
                Ok(false) => return Err(ApplyError::Over),
                Err(blocked) => {
                    self.runner.select(selected);
                    self.wait(around, blocked)?;
                }
            }
        }
        self.store.release(&std::mem::take(&mut self.wants));
        self.kept = Some(position.offset);
        self.position = Some(position);
        if let Some(log) = self.store.log_of(&mut self.scratch) {
            log.end_turn(self.worker);
        }
        for (number, why) in refused {
            let Some(pending) = batch.get(number) else { continue };
            let args = Args::new(&pending.words, &pending.spans, &[]);
            cannot(around, args.bytes(0).unwrap_or_default(), pending.offset, why)?;
        }
        Ok(())
    }

    fn text(&self, position: &Position) -> String {
        format!("{position} {}", self.runner.db().0)
    }

    /// Waits for a lock, for values that waiting clients need, or for room in the log or the checkpoint.
    fn wait(&mut self, around: &mut dyn Surroundings, blocked: Blocked) -> Result<(), ApplyError> {
        let why = match blocked {
            Blocked::Fetch => {
                let wants = self.scratch.take_wants();
                let read = wants.iter().try_for_each(|want| self.store.read_in(want));
                if wants.iter().any(|want| want.rows.is_none()) {
                    thread::sleep(RETRY);
                }
                self.wants.extend(wants);
                let Err(error) = read else { return Ok(()) };
                error.to_string()
            }
            Blocked::Refused => {
                let by_flush = self.store.refusal_by_flush(self.runner.db());
                let log = self.store.log_of(&mut self.scratch);
                let by_log =
                    || log.and_then(|log| log.refusal()).unwrap_or_else(|| "the log takes no changes".to_owned());
                by_flush.map_or_else(by_log, |why| why.to_string())
            }
            Blocked::Shard | Blocked::Log | Blocked::Memory => {
                thread::sleep(RETRY);
                return Ok(());
            }
        };
        if around.wait_for_log(&why) { Ok(()) } else { Err(ApplyError::NotKept { why }) }
    }
}

/// Leaves a command out, or fails.
fn cannot(around: &mut dyn Surroundings, name: &[u8], offset: u64, why: String) -> Result<(), ApplyError> {
    if around.leave_out(name, &why) {
        return Ok(());
    }
    Err(ApplyError::Command { offset, command: name.to_vec(), why })
}

/// When a command runs: before every expiration; or now, if it stores or compares with the time, but before its key
/// expires, since the primary has it still.
fn time_of(txn: &mut store::Txn<'_>, row: &Row, args: &Args<'_>, time: UnixMs) -> Result<UnixMs, Fetch> {
    if !is_timed(row.spec.name, args) {
        return Ok(BEGINNING);
    }
    let first = usize::from(row.first_key);
    let Some(key) = args.bytes(first).filter(|_| first > 0) else { return Ok(time) };
    txn.set_time(BEGINNING);
    let key = txn.key(key);
    let expire_at = txn.peek_head(&key)?.and_then(|entry| entry.expire_at);
    Ok(expire_at.map_or(time, |at| time.min(at.saturating_sub(1))))
}

/// The first database that there is not and that a command names. SELECT, SWAPDB, MOVE and COPY do.
fn foreign_database(args: &Args<'_>, databases: u32) -> Option<u32> {
    let name = args.bytes(0)?.to_ascii_lowercase();
    let places: &[usize] = match name.as_slice() {
        b"select" => &[1],
        b"swapdb" => &[1, 2],
        b"move" => &[2],
        b"copy" => &[4],
        _ => return None,
    };
    let numbers = places.iter().filter_map(|at| std::str::from_utf8(args.bytes(*at)?).ok()?.parse::<u32>().ok());
    numbers.into_iter().find(|db| *db >= databases)
}

#[cfg(test)]
mod tests;
