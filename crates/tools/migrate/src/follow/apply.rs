//! Commands of a primary, applied to the copy together with the position after them.

use super::Follow;
use super::keep::Kept;
use super::spool::SpoolReader;
use crate::appendonly::record::{Bad, Next, Records};
use crate::error::MigrateError;
use crate::runner::{BEGINNING, Runner, is_timed};
use base::{Clock, DbIndex, UnixMs};
use command::Args;
use command::table::Row;
use engine::{Effect, Encoding, Fetch, Keyspace, SharedBytes, Value, WriteClass};
use inspect::text::escape;
use proto::Span;
use replication::Position;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use store::{At, Blocked, LockSet, Scratch, Store};

/// Commands that become one record at most, and their bytes.
const BATCH_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 256 << 10;

/// Time before a command is tried again that the log, or a checkpoint, has no room for.
const RETRY: Duration = Duration::from_micros(200);

/// The key, and the only one in its database.
const KEY: &[u8] = b"position";

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
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

/// Where the copy is, and what takes it on.
pub(super) struct Applier {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    /// The database of the position.
    system: DbIndex,
    runner: Runner,
    scratch: Scratch,
    records: Option<Records<SpoolReader>>,
    /// The position that the store has.
    position: Option<Position>,
    batch: Vec<Pending>,
    batch_bytes: usize,
    is_in_transaction: bool,
    /// Offset after the last command that was read.
    offset: u64,
    commands: u64,
    left_out: u64,
}

impl Applier {
    /// Begins where the store is.
    pub fn new(kept: &Kept, follow: &Follow<'_>, clock: Arc<dyn Clock>) -> Self {
        let mut applier = Self {
            store: Arc::clone(&kept.store),
            clock,
            system: DbIndex(follow.databases),
            runner: Runner::new(),
            scratch: Scratch::default(),
            records: None,
            position: None,
            batch: Vec::new(),
            batch_bytes: 0,
            is_in_transaction: false,
            offset: 0,
            commands: 0,
            left_out: 0,
        };
        applier.recall();
        applier
    }

    /// Reads the position that the store has.
    fn recall(&mut self) {
        let Some(space) = self.store.spaces.get(self.system) else { return };
        let at = self.at(BEGINNING, WriteClass::Nothing);
        let key = self.store.key(space, KEY);
        let mut found = Vec::new();
        let _read = self.store.commit(&mut self.scratch, &LockSet::All, &at, |txn| {
            let entry = txn.read(&key)?;
            if let Some(Value::Bytes(bytes)) = entry.map(|entry| entry.value) {
                found = bytes.to_vec();
            } else if let Some(Value::Shared(bytes)) = entry.map(|entry| entry.value) {
                found = bytes.to_vec();
            }
            Ok(())
        });
        let text = String::from_utf8_lossy(&found);
        let mut words = text.split(' ');
        if let (Some(id), Some(offset), Some(db)) = (words.next(), words.next(), words.next())
            && let (Some(position), Ok(db)) = (Position::parse(id, offset), db.parse())
        {
            self.runner.select(DbIndex(db));
            self.position = Some(position);
        }
    }

    /// Where the copy is; `None` while there is none.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// Offset up to which everything is applied.
    pub fn offset(&self) -> u64 {
        self.position.as_ref().map_or(0, |position| position.offset)
    }

    /// Commands applied.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// Commands left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// A copy has been loaded, past the log, that has everything up to a position. A primary selects a database before
    /// its first command after that.
    pub fn loaded(&mut self, position: &Position) {
        self.runner.select(DbIndex(0));
        let Some(space) = self.store.spaces.get(self.system) else { return };
        let text = SharedBytes::new(self.text(position));
        let key = self.store.key(space, KEY);
        self.store.load(&Effect::Set { key, value: Value::Shared(&text), encoding: Encoding::PLAIN, expire_at: None });
        self.position = Some(position.clone());
    }

    /// The stream begins, or goes on, here. Its id may be another one than before.
    pub fn begin(&mut self, position: Position) {
        self.offset = position.offset;
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
    /// Something that is no command, or a command that cannot be run, unless such are left out.
    pub fn step(&mut self, follow: &Follow<'_>, left_out: &mut dyn FnMut(&str, &str)) -> Result<Outcome, MigrateError> {
        let Some(records) = &mut self.records else { return Ok(Outcome::Ended) };
        let offset = records.offset();
        let next = records.next().map_err(|bad| refuse(follow, bad, offset))?;
        match next {
            Next::Command => {}
            Next::End | Next::Cut => {
                // Of a transaction that was cut, nothing is applied.
                if !self.is_in_transaction {
                    self.commit(follow, left_out)?;
                }
                return Ok(Outcome::Ended);
            }
            Next::Time(_) | Next::Annotation => {
                let bad = Bad::Form { offset, expected: "a command, which begins with *" };
                return Err(refuse(follow, bad, offset));
            }
        }
        self.offset = records.offset();
        let has_more = records.has_more();
        self.commands += 1;
        let outcome = self.take(follow, offset, left_out)?;
        let is_full = self.batch.len() >= BATCH_MAX || self.batch_bytes >= BATCH_BYTES_MAX;
        if !self.is_in_transaction && (is_full || !has_more || outcome == Outcome::Asked) {
            self.commit(follow, left_out)?;
        }
        Ok(outcome)
    }

    /// Puts the command that was read into the batch, if it changes something.
    fn take(
        &mut self,
        follow: &Follow<'_>,
        offset: u64,
        left_out: &mut dyn FnMut(&str, &str),
    ) -> Result<Outcome, MigrateError> {
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
        let foreign = foreign_database(&args, follow.databases);
        let row = match (self.runner.row(&args), foreign) {
            (_, Some(db)) => Err(format!("the primary has a database {db}; give --databases")),
            (row, None) => row,
        };
        let row = match row {
            Ok(None) => return Ok(Outcome::Applied),
            Ok(Some(row)) => row,
            Err(why) => {
                let name = args.bytes(0).unwrap_or_default().to_vec();
                self.cannot(follow, &name, offset, why, left_out)?;
                return Ok(Outcome::Applied);
            }
        };
        let pending = Pending { words: words.to_vec(), spans: spans.to_vec(), row, offset };
        self.batch_bytes += pending.words.len();
        self.batch.push(pending);
        Ok(Outcome::Applied)
    }

    /// Runs the batch, and stores the position after it, as one record.
    fn commit(&mut self, follow: &Follow<'_>, left_out: &mut dyn FnMut(&str, &str)) -> Result<(), MigrateError> {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        let Some(position) = &mut self.position else { return Ok(()) };
        position.offset = self.offset;
        if batch.is_empty() {
            return Ok(());
        }
        let position = position.clone();
        let Some(space) = self.store.spaces.get(self.system) else { return Ok(()) };
        let time = self.clock.now_ms();
        let mut refused = Vec::new();
        loop {
            refused.clear();
            let at = self.at(BEGINNING, WriteClass::Any);
            let Self { store, scratch, runner, .. } = self;
            let selected = runner.db();
            let ran = store.commit(scratch, &LockSet::All, &at, |txn| {
                for (number, pending) in batch.iter().enumerate() {
                    let args = Args::new(&pending.words, &pending.spans, &[]);
                    let now = time_of(txn, &pending.row, &args, time)?;
                    txn.set_time(now);
                    if let Err(why) = runner.run(txn, &pending.row, args)? {
                        refused.push((number, why));
                    }
                }
                let text = format!("{position} {}", runner.db().0);
                set(txn, store.key(space, KEY), text.as_bytes());
                Ok(())
            });
            self.runner.select(if ran.is_ok() { self.runner.db() } else { selected });
            match ran {
                Ok(()) => break,
                Err(blocked) => self.wait(follow, blocked)?,
            }
        }
        if let Some(log) = self.store.log_of(&mut self.scratch) {
            log.end_turn(0);
        }
        for (number, why) in refused {
            let Some(pending) = batch.get(number) else { continue };
            let args = Args::new(&pending.words, &pending.spans, &[]);
            self.cannot(follow, args.bytes(0).unwrap_or_default(), pending.offset, why, left_out)?;
        }
        Ok(())
    }

    fn at(&self, now: UnixMs, writes: WriteClass) -> At {
        At { now, db: self.runner.db(), touch: false, worker: 0, writes }
    }

    fn text(&self, position: &Position) -> Vec<u8> {
        format!("{position} {}", self.runner.db().0).into_bytes()
    }

    /// Waits for a lock, or for room in the log or the checkpoint.
    ///
    /// # Errors
    /// The log takes nothing: the disk is full, or has failed.
    fn wait(&mut self, follow: &Follow<'_>, blocked: Blocked) -> Result<(), MigrateError> {
        if blocked != Blocked::Refused {
            thread::sleep(RETRY);
            return Ok(());
        }
        let log = self.store.log_of(&mut self.scratch);
        let why = log.map_or_else(|| "the log takes no changes".to_owned(), |log| log.refusal());
        Err(MigrateError::NotKept { path: follow.dir.to_owned(), why })
    }

    /// The copy is complete: a server has no use for the position.
    ///
    /// # Errors
    /// The log takes nothing.
    pub fn finish(&mut self, follow: &Follow<'_>) -> Result<(), MigrateError> {
        let Some(space) = self.store.spaces.get(self.system) else { return Ok(()) };
        loop {
            let at = self.at(BEGINNING, WriteClass::Any);
            let cleared = self.store.commit(&mut self.scratch, &LockSet::All, &at, |txn| {
                txn.apply(&Effect::Clear { space });
                Ok(())
            });
            match cleared {
                Ok(()) => return Ok(()),
                Err(blocked) => self.wait(follow, blocked)?,
            }
        }
    }

    /// Leaves a command out, or fails.
    fn cannot(
        &mut self,
        follow: &Follow<'_>,
        name: &[u8],
        offset: u64,
        why: String,
        left_out: &mut dyn FnMut(&str, &str),
    ) -> Result<(), MigrateError> {
        let command = escape(name);
        if follow.is_partial {
            self.left_out += 1;
            left_out(&command, &why);
            return Ok(());
        }
        Err(MigrateError::Command { primary: follow.primary.to_string(), offset, command, why })
    }
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
    let expire_at = txn.read(&key)?.and_then(|entry| entry.expire_at);
    Ok(expire_at.map_or(time, |at| time.min(at.saturating_sub(1))))
}

fn set(txn: &mut store::Txn<'_>, key: engine::Key<'_>, text: &[u8]) {
    txn.apply(&Effect::Set { key, value: Value::Bytes(text), encoding: Encoding::PLAIN, expire_at: None });
}

/// The first database beyond the copy's that a command names. SELECT, SWAPDB, MOVE and COPY do.
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

fn refuse(follow: &Follow<'_>, bad: Bad, offset: u64) -> MigrateError {
    let primary = follow.primary.to_string();
    match bad {
        Bad::Form { offset, expected } => MigrateError::Stream { primary, offset, expected },
        Bad::Io(source) => {
            let path = super::beside(follow.dir, ".copy.stream");
            MigrateError::File { path, keys: 0, error: rdb::RdbError::Io { offset, source } }
        }
    }
}
