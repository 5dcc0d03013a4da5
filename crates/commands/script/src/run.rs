//! Runs a script: its commands, its locks, its end.
//!
//! R1. A command that lacks a row before the first change ends the script, which has changed nothing: it runs again
//!     when the row has come.
//! R2. What a script has changed before it raised stays, as in Valkey: it is in the record of the commit.
//! R3. A script leaves the session as it was: its database is its own.

use crate::cache::{DigestHashes, NO_SCRIPT, Script, Scripts, Sha};
use crate::libraries::Compiled;
use crate::lua::{Called, Engine, Failure, Function, Host};
use crate::reach::{self, Reach};
use crate::running::{Kind, RunningFunction, Slot};
use crate::shebang::Flags as Permissions;
use base::DbIndex;
use command::acl::{self, Origin, denial};
use command::call::{call, call_at_once};
use command::error::{MASTER_DOWN, lacks_memory};
use command::observer::Observer;
use command::reach::admitting_database;
use command::watchers::{self, Sender, Watchers};
use command::{Args, CommandTable, Ctx, Flags, Locks, Row, Stop};
use engine::{Libraries, WriteClass};
use proto::{Protocol, ReplyBuffer};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{LockSet, Store};

/// The memory of a worker's Lua state.
pub const STATE_BYTES_MAX: usize = 128 << 20;

/// A state that uses more than this after a script is given up, with what scripts have left in it.
const STATE_BYTES_KEPT: usize = 32 << 20;

/// The size of states is counted in steps of this.
const COUNTED_BYTES: usize = 4096;

/// More compiled scripts than this are not kept by a worker.
const COMPILED_MAX: usize = 4096;

thread_local! {
    /// The state of this worker, made at its first script.
    static WORKER: RefCell<Option<Box<Worker>>> = const { RefCell::new(None) };
}

/// A worker's Lua state, and what it has compiled.
struct Worker {
    scripts: Arc<Scripts>,
    generation: u64,
    engine: Engine,
    compiled: HashMap<Sha, Ready, DigestHashes>,
    libraries: Compiled,
    /// The answers of commands.
    answer: ReplyBuffer,
    /// The same where they are in pieces.
    gathered: Vec<u8>,
    /// The size of the state, as the figures have it.
    counted_bytes: usize,
    /// What others see of the script that runs.
    slot: Arc<Slot>,
}

/// A script that was compiled.
struct Ready {
    script: Arc<Script>,
    function: Function,
    reach: Reach,
}

impl Worker {
    fn new(scripts: &Arc<Scripts>) -> Option<Box<Self>> {
        Some(Box::new(Self {
            scripts: scripts.clone(),
            generation: scripts.generation(),
            engine: Engine::new(STATE_BYTES_MAX)?,
            compiled: HashMap::default(),
            libraries: Compiled::default(),
            answer: ReplyBuffer::new(Protocol::Resp2),
            gathered: Vec::new(),
            counted_bytes: 0,
            slot: scripts.running.enter(),
        }))
    }

    /// Whether it is of this server, and has compiled nothing that was forgotten.
    fn is_of(&self, scripts: &Arc<Scripts>) -> bool {
        Arc::ptr_eq(&self.scripts, scripts) && self.generation == scripts.generation()
    }

    fn compile(&mut self, script: &Arc<Script>) -> Result<(Function, Reach), Failure> {
        if let Some(ready) = self.compiled.get_mut(&script.sha) {
            // It was forgotten, and has come again.
            if !Arc::ptr_eq(&ready.script, script) {
                ready.script = script.clone();
            }
            return Ok((ready.function, ready.reach));
        }
        if self.compiled.len() >= COMPILED_MAX {
            self.compiled.drain().for_each(|(_, ready)| self.engine.forget(ready.function));
        }
        let (function, reach) = (self.engine.compile(script.code())?, Reach::Unknown);
        self.compiled.insert(script.sha, Ready { script: script.clone(), function, reach });
        Ok((function, reach))
    }

    /// The digest, flags, function and reach of the script that a request names by its digest.
    fn ready(&mut self, digest: &[u8]) -> Result<(Sha, Permissions, Function, Reach), Stop> {
        let mut sha = Sha::try_from(digest).map_err(|_| NO_SCRIPT)?;
        sha.make_ascii_lowercase();
        if let Some(ready) = self.compiled.get(&sha).filter(|ready| !ready.script.is_forgotten()) {
            return Ok((sha, ready.script.flags, ready.function, ready.reach));
        }
        let script = self.scripts.find(&sha).ok_or(NO_SCRIPT)?;
        let (function, reach) = self.compile(&script).map_err(compile_error)?;
        Ok((sha, script.flags, function, reach))
    }

    fn count_bytes(&mut self) {
        let bytes = self.engine.used_bytes();
        // Rounded, so that most scripts change nothing that workers share.
        let bytes = bytes.next_multiple_of(COUNTED_BYTES);
        if bytes != self.counted_bytes {
            self.scripts.state_changed(std::mem::replace(&mut self.counted_bytes, bytes), bytes);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.scripts.state_changed(self.counted_bytes, 0);
        self.scripts.running.leave(&self.slot);
    }
}

/// Uses the state of this worker. It is taken out meanwhile, so that a panic leaves none.
fn with_worker<R>(ctx_scripts: &Arc<Scripts>, body: impl FnOnce(&mut Worker) -> R) -> Result<R, Stop> {
    let kept = WORKER.with_borrow_mut(Option::take).filter(|worker| worker.is_of(ctx_scripts));
    let mut worker = kept.or_else(|| Worker::new(ctx_scripts)).ok_or(NO_MEMORY)?;
    let result = body(&mut worker);
    worker.count_bytes();
    if worker.counted_bytes <= STATE_BYTES_KEPT {
        WORKER.set(Some(worker));
    }
    Ok(result)
}

const NO_MEMORY: Stop =
    Stop::error("ERR the script needs more than the 128 MB of memory that scripts of a worker have");

fn compile_error(failure: Failure) -> Stop {
    match failure {
        Failure::Raised(text) | Failure::Answered(text) => {
            Stop::error_with([&b"ERR Error compiling script (new function): "[..], &text].concat())
        }
        Failure::Memory | Failure::Over => NO_MEMORY,
    }
}

/// Compiles a script that is new.
///
/// # Errors
/// It does not compile.
pub fn check(ctx: &Ctx<'_>, script: &Arc<Script>) -> Result<(), Stop> {
    let compiled =
        with_worker(ctx.host.part::<crate::Needed, Arc<Scripts>>(), |worker| worker.compile(script).map(|_| ()))?;
    compiled.map_err(compile_error)
}

/// What runs: a script, or a function of a library.
#[derive(Clone, Copy)]
enum Code {
    Script(Function),
    Function(Function),
}

impl Code {
    fn kind(self) -> Kind {
        match self {
            Self::Script(_) => Kind::Script,
            Self::Function(_) => Kind::Function,
        }
    }
}

/// Runs a script with the first arguments from the fourth on as its keys.
///
/// # Errors
/// What it has raised; or [`Stop::Fetch`], and it has changed nothing.
pub fn run(ctx: &mut Ctx<'_>, script: &Arc<Script>, key_count: usize, is_read_only: bool) -> Result<(), Stop> {
    let host = ctx.host;
    with_worker(host.part(), |worker| {
        let (function, reach) = worker.compile(script).map_err(compile_error)?;
        worker.run_ready(ctx, (script.sha, script.flags, function, reach), key_count, is_read_only)
    })?
}

/// [`run`] of the script whose digest is the request's first argument.
///
/// # Errors
/// There is none; or as [`run`].
pub fn run_digest(ctx: &mut Ctx<'_>, key_count: usize, is_read_only: bool) -> Result<(), Stop> {
    let host = ctx.host;
    with_worker(host.part(), |worker| {
        let ready = worker.ready(&ctx.args[1])?;
        worker.run_ready(ctx, ready, key_count, is_read_only)
    })?
}

/// Runs the function that the request names, as [`run`].
///
/// # Errors
/// There is none; or as [`run`].
pub fn run_function(
    ctx: &mut Ctx<'_>,
    key_count: impl FnOnce(&Ctx<'_>) -> Result<usize, Stop>,
    is_read_only: bool,
) -> Result<(), Stop> {
    let scripts = ctx.host.part::<crate::Needed, Arc<Scripts>>().clone();
    with_worker(&scripts, |worker| {
        worker.follow_libraries(ctx);
        let Some(found) = worker.libraries.function(&ctx.args[1]) else {
            return Err(Stop::error("ERR Function not found"));
        };
        let (function, flags, reach) = (found.function, found.flags, found.reach.get());
        let key_count = key_count(ctx)?;
        check_flags(ctx, flags, is_read_only)?;
        let mut now = reach;
        let result = worker.run(ctx, Code::Function(function), flags, key_count, is_read_only, &mut now);
        if now != reach
            && let Some(found) = worker.libraries.function(&ctx.args[1])
        {
            found.reach.set(now);
        }
        result
    })?
}

/// What a function of these libraries, those of the store, may do; `None` if there is none of this name.
#[cold]
pub fn flags_of_function(scripts: &Arc<Scripts>, libraries: &Arc<Libraries>, name: &[u8]) -> Option<Permissions> {
    let found = with_worker(scripts, |worker| {
        worker.libraries.follow(&mut worker.engine, libraries);
        worker.libraries.function(name).map(|found| found.flags)
    });
    found.ok().flatten()
}

/// Uses the libraries of this worker, which are those of the store.
///
/// # Errors
/// There is no memory for a state; or those of `body`.
pub fn with_libraries<R>(
    ctx: &mut Ctx<'_>,
    body: impl FnOnce(&mut Ctx<'_>, &mut Engine, &mut Compiled) -> Result<R, Stop>,
) -> Result<R, Stop> {
    let scripts = ctx.host.part::<crate::Needed, Arc<Scripts>>().clone();
    with_worker(&scripts, |worker| {
        worker.follow_libraries(ctx);
        let result = body(ctx, &mut worker.engine, &mut worker.libraries);
        scripts.count_functions(worker.libraries.source(), worker.libraries.function_count());
        result
    })?
}

/// How many functions the libraries of the store have registered.
pub fn function_count(ctx: &mut Ctx<'_>, scripts: &Scripts, libraries: &Arc<engine::Libraries>) -> usize {
    let count = |_: &mut Ctx<'_>, _: &mut Engine, compiled: &mut Compiled| Ok(compiled.function_count());
    scripts.functions_of(libraries).unwrap_or_else(|| with_libraries(ctx, count).unwrap_or(0))
}

/// Refuses a script that may not run now, whatever its commands are.
fn check_flags(ctx: &Ctx<'_>, flags: Permissions, is_read_only: bool) -> Result<(), Stop> {
    if !flags.is_declared {
        return Ok(());
    }
    if let Some(why) = &ctx.session.refused_writes
        && !flags.no_writes
        && !is_read_only
    {
        return Err(Stop::error_with(why.clone()));
    }
    if !flags.no_writes && is_read_only {
        return Err(Stop::error("ERR Can not execute a script with write flag using *_ro command."));
    }
    let is_over_budget = || ctx.host.find::<Arc<Store>>().is_some_and(|store| store.is_over_budget());
    if !flags.no_writes && !flags.allow_oom && is_over_budget() {
        return Err(Stop::error(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
        ));
    }
    Ok(())
}

impl Worker {
    fn run_ready(
        &mut self,
        ctx: &mut Ctx<'_>,
        (sha, flags, function, reach): (Sha, Permissions, Function, Reach),
        key_count: usize,
        is_read_only: bool,
    ) -> Result<(), Stop> {
        check_flags(ctx, flags, is_read_only)?;
        let mut now = reach;
        let result = self.run(ctx, Code::Script(function), flags, key_count, is_read_only, &mut now);
        if now != reach
            && let Some(ready) = self.compiled.get_mut(&sha)
        {
            ready.reach = now;
        }
        result
    }

    /// Has the libraries of the store.
    fn follow_libraries(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(libraries) = ctx.ks.libraries()
            && self.libraries.follow(&mut self.engine, &libraries)
        {
            self.scripts.count_functions(&libraries, self.libraries.function_count());
        }
    }

    /// Runs code with the arguments of the request.
    fn run(
        &mut self,
        ctx: &mut Ctx<'_>,
        code: Code,
        flags: Permissions,
        key_count: usize,
        is_read_only: bool,
        reach: &mut Reach,
    ) -> Result<(), Stop> {
        let Worker { engine, answer, gathered, scripts, slot, .. } = self;
        let has_all_locks = ctx.ks.has_all_locks();
        if *reach != Reach::Declared && !has_all_locks {
            ctx.session.locks_all = true;
            return Err(Stop::Fetch);
        }
        let (mut keys, mut args) = (ctx.args.from(3).take(key_count), ctx.args.from(3 + key_count));
        answer.set_protocol(Protocol::Resp2);
        let mark = ctx.reply.mark();
        let (db, running) = (ctx.session.db, ctx.session.running);
        // Commands that would wait or continue later do neither, as in a transaction.
        ctx.session.running.get_or_insert(0);
        let store = ctx.host.find::<Arc<Store>>();
        let is_stale = store.is_some_and(|store| store.gate.is_stale());
        if is_stale && !flags.allow_stale {
            return Err(Stop::error(MASTER_DOWN));
        }
        let kind = code.kind();
        let watchers = ctx.host.watchers.as_ref();
        if let Some(watchers) = watchers.filter(|watchers| watchers.has_any()) {
            // Before its commands.
            watchers.show(&ctx.args, (Sender::Client(&ctx.session.info), ctx.session.db), ctx.now());
        }
        slot.begin(kind, has_all_locks);
        let declared = declared(ctx, store, *reach);
        let mut running_script = Running {
            scripts: &*scripts,
            slot: &*slot,
            declared: declared.as_ref(),
            has_all_locks,
            since_ns: ctx.stats.now(),
            end: None,
            begun_in: db,
            is_read_only: is_read_only || flags.is_declared && flags.no_writes,
            has_written: false,
            lacks_rows: false,
            is_attended: false,
            is_in_transaction: running.is_some(),
            may_fetch: ctx.ks.may_fetch(),
            is_stale,
            lacks_memory: store
                .filter(|store| !flags.allow_oom && store.is_over_budget())
                .map(|store| lacks_memory(store.why_no_flush(ctx.session.db).as_deref())),
            store,
            table: &ctx.host.table,
            observer: ctx.host.observer.as_ref(),
            watchers,
            ctx: &mut *ctx,
            answer,
            gathered,
        };
        let result = match code {
            Code::Script(function) => engine.run(function, &mut keys, &mut args, &mut running_script),
            Code::Function(function) => engine.call(function, &mut keys, &mut args, &mut running_script),
        };
        let Running { lacks_rows, end, is_attended, .. } = running_script;
        let is_within = running_script.declared.is_some();
        if *reach != Reach::Beyond && !(lacks_rows && is_within) {
            *reach = if is_within { Reach::Declared } else { Reach::Beyond };
        }
        if is_attended && let Some(attendant) = scripts.running.attendant() {
            // While requests of others are still refused: those that come later are for this worker.
            attendant.end(ctx.session.info.worker());
        }
        slot.end();
        if let Some(store) = store.filter(|_| slot.is_busy()) {
            scripts.running.set_busy(slot, false, None, |is_any| store.gate.set_busy(is_any));
        }
        ctx.session.running = running;
        ctx.session.db = db;
        ctx.ks.select(db);
        match result {
            Ok(()) => Ok(()),
            Err(Failure::Over) if lacks_rows => Err(Stop::Fetch),
            Err(Failure::Over) => Err(Stop::error(end.unwrap_or(kind.killed()))),
            Err(Failure::Memory) => Err(NO_MEMORY),
            Err(Failure::Raised(text)) => Err(Stop::error_with(text)),
            Err(Failure::Answered(text)) => {
                ctx.reply.rewind(mark);
                ctx.reply.error(&text);
                Ok(())
            }
        }
    }
}

/// Why a script cannot use a key that it has not declared.
enum LacksLocks {
    /// It runs again with all shards locked, since it has changed nothing.
    RunAgain,
    /// Another script locks all shards in its middle.
    Taken,
}

/// What a command answers for [`LacksLocks::Taken`].
const UNDECLARED: &str = "TRYAGAIN the script uses a key that it has not declared, and another one does so, too; declare \
                          the keys of scripts";

/// The shards of the declared keys, of a script of which it is to be seen whether it uses others.
fn declared(ctx: &Ctx<'_>, store: Option<&Arc<Store>>, reach: Reach) -> Option<LockSet> {
    let store = store.filter(|_| reach != Reach::Beyond)?;
    let mut shards = LockSet::None;
    ctx.spec.visit_keys(&ctx.args, |index, _| {
        shards.insert(store.shard_of_bytes(ctx.args.bytes(index).unwrap_or_default()));
    });
    Some(shards)
}

/// What a script answers that was ended by the end of the server.
const ABANDONED: &str = "ERR the server ends without saving, and has ended the script";

/// A script that runs.
struct Running<'r, 'c> {
    scripts: &'r Scripts,
    slot: &'r Slot,
    /// The shards of the keys that it has declared; `None` once it has used others.
    declared: Option<&'r LockSet>,
    /// It has all shards locked.
    has_all_locks: bool,
    store: Option<&'r Arc<Store>>,
    /// When it began, by [`command::stats::WorkerStats::now`].
    since_ns: u64,
    /// Why it was ended.
    end: Option<&'static str>,
    /// The database of its client.
    begun_in: DbIndex,
    ctx: &'r mut Ctx<'c>,
    table: &'r CommandTable,
    observer: Option<&'r Arc<dyn Observer>>,
    watchers: Option<&'r Arc<Watchers>>,
    answer: &'r mut ReplyBuffer,
    gathered: &'r mut Vec<u8>,
    is_read_only: bool,
    /// A command that may change entries has run.
    has_written: bool,
    lacks_rows: bool,
    /// Others serve the connections of this worker.
    is_attended: bool,
    /// Some rows may not be in memory.
    may_fetch: bool,
    /// The link to the primary is down: commands on data are refused.
    is_stale: bool,
    /// Commands before it may have changed entries.
    is_in_transaction: bool,
    /// Memory was over its budget when the script began: what its commands are answered.
    lacks_memory: Option<Cow<'static, str>>,
}

impl Running<'_, '_> {
    /// How long it has run.
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.ctx.stats.now().saturating_sub(self.since_ns))
    }

    /// Why a command may not run.
    fn refusal(&self, row: &Row) -> Option<Cow<'static, str>> {
        let flags = row.spec.flags;
        if flags.contains(Flags::NOSCRIPT) {
            return Some("ERR This Valkey command is not allowed from script".into());
        }
        if self.is_stale && !flags.contains(Flags::STALE) {
            return Some("ERR Can not execute the command on a stale replica".into());
        }
        if self.is_read_only && flags.intersects(Flags::WRITE | Flags::MAY_REPLICATE) {
            return Some("ERR Write commands are not allowed from read-only scripts.".into());
        }
        if row.writes != WriteClass::Nothing
            && let Some(why) = &self.ctx.session.refused_writes
        {
            return Some(why.clone().into());
        }
        if flags.contains(Flags::WRITE) && self.store.is_some_and(|store| store.gate.is_read_only()) {
            return Some("READONLY You can't write against a read only replica.".into());
        }
        // Once it has written, it is not stopped halfway.
        let is_stopped = !self.has_written && flags.contains(Flags::DENYOOM);
        self.lacks_memory.clone().filter(|_| is_stopped)
    }

    /// Shows other clients that it runs past its time, and which function it is.
    #[cold]
    fn show(&self, store: &Store) {
        let is_function = self.slot.kind() == Kind::Function;
        let command = || self.ctx.args.from(0).map(<[u8]>::to_vec).collect();
        let function = is_function.then(|| RunningFunction {
            name: self.ctx.args[1].to_vec(),
            command: command(),
            since: Instant::now().checked_sub(self.elapsed()).unwrap_or_else(Instant::now),
        });
        self.scripts.running.set_busy(self.slot, true, function, |is_any| store.gate.set_busy(is_any));
    }

    /// The database on disk that the command writes to, if the script was admitted for another one, flushes are behind,
    /// and it can still run again from its start.
    fn waits_for(&self, row: &Row, args: &Args<'_>) -> Option<DbIndex> {
        let store = self.store.filter(|store| row.writes == WriteClass::Any && store.pressure.is_behind())?;
        if self.has_written || self.is_in_transaction || self.ctx.session.admitted_by.is_some() {
            return None;
        }
        let is_on_disk = |db| store.spaces.get(db).map(|_| store.is_on_disk(db));
        let db = admitting_database(self.ctx.session, (row, args), is_on_disk);
        (!store.is_on_disk(self.begun_in) && store.is_on_disk(db)).then_some(db)
    }

    /// Whether a command uses nothing but keys that the script has declared.
    fn is_within(&self, row: &Row, args: &Args<'_>) -> bool {
        let (Some(declared), Some(store)) = (self.declared, self.store) else { return false };
        match row.spec.locks_in(args) {
            Locks::None => true,
            Locks::Keys => {
                let mut is_within = true;
                row.spec.visit_keys(args, |index, _| {
                    is_within &= declared.has(store.shard_of_bytes(args.bytes(index).unwrap_or_default()));
                });
                is_within
            }
            _ => false,
        }
    }

    /// Has the locks for a command that uses more than what the script has declared, or says why it cannot run.
    #[cold]
    fn leave_declared(&mut self) -> Result<(), LacksLocks> {
        self.declared = None;
        if self.has_all_locks {
            return Ok(());
        }
        if !self.has_written {
            return Err(LacksLocks::RunAgain);
        }
        if !self.ctx.ks.lock_all() {
            return Err(LacksLocks::Taken);
        }
        self.has_all_locks = true;
        self.slot.locked_all();
        self.may_fetch = self.ctx.ks.may_fetch();
        Ok(())
    }

    /// Why the user of the script may not run a command.
    fn denial(&self, row: &Row, args: &Args<'_>) -> Option<Vec<u8>> {
        let session = &*self.ctx.session;
        if session.is_unrestricted() {
            return None;
        }
        let denial = denial(session, self.ctx.host, (row, args), Origin::Script, self.ctx.now())?;
        Some([b"ERR ACL failure in script: ", &*denial.text].concat())
    }

    fn refuse(&mut self, row: Option<&Row>, text: &[u8]) -> Called {
        self.ctx.stats.count_refusal(row.map(|row| row.index.into()), text);
        self.answer.error(text);
        Called::Answered
    }

    fn run(&mut self, row: &Row, args: Args<'_>) -> Called {
        // INFO among them is to see what those before it have found.
        let (hits, misses) = self.ctx.ks.take_read_counts();
        self.ctx.stats.keyspace_hits.add(hits);
        self.ctx.stats.keyspace_misses.add(misses);
        let mut inner = Ctx {
            spec: row.spec,
            args,
            reply: self.answer,
            ks: &mut *self.ctx.ks,
            session: &mut *self.ctx.session,
            host: self.ctx.host,
            stats: self.ctx.stats,
            hashed: None,
        };
        let started = inner.stats.now();
        if self.may_fetch {
            inner.ks.next_command();
        }
        // Rows are read under the locks once the script cannot run again from its start (R1).
        if self.has_written || self.is_in_transaction {
            call_at_once(&mut inner, row);
        } else if call(&mut inner, row).is_err() {
            self.lacks_rows = true;
            return Called::Over;
        }
        if let Some(watchers) =
            self.watchers.filter(|watchers| watchers.has_any() && watchers::is_shown(row.spec.flags))
        {
            watchers.show(&inner.args, (Sender::Script, inner.session.db), inner.now());
        }
        let duration = inner.stats.now().saturating_sub(started);
        if let Some(stats) = inner.stats.command(row.index.into()) {
            stats.record(duration);
        }
        if let Some(observer) = self.observer {
            let (request_bytes, reply_bytes) = (inner.args.total_bytes(), inner.reply.len());
            inner.show_done(duration, request_bytes, reply_bytes, |done| observer.done(done));
        }
        if row.writes != WriteClass::Nothing && !std::mem::replace(&mut self.has_written, true) {
            self.slot.wrote();
        }
        Called::Answered
    }
}

impl Host for Running<'_, '_> {
    fn call(&mut self, args: Args<'_>) -> Called {
        let len = self.answer.len();
        self.answer.advance(len);
        let Some(row) = self.table.lookup(&args) else {
            let named = self.table.named(&args);
            return match (named, self.table.find(&args[0]), self.table.resolve(&args)) {
                (None, Some(_), Err(Stop::Error(text))) => self.refuse(None, text.as_bytes()),
                (None, ..) => self.refuse(None, b"ERR Unknown command called from script"),
                (named, ..) => self.refuse(named.as_ref(), b"ERR Wrong number of args calling command from script"),
            };
        };
        if let Some(text) = self.refusal(&row) {
            return self.refuse(Some(&row), text.as_bytes());
        }
        if let Some(text) = self.denial(&row, &args) {
            return self.refuse(Some(&row), &text);
        }
        if let Some(db) = self.waits_for(&row, &args) {
            self.ctx.session.admitted_by = Some(db);
            self.lacks_rows = true;
            return Called::Over;
        }
        if self.declared.is_some() && !self.is_within(&row, &args) {
            match self.leave_declared() {
                Ok(()) => {}
                Err(LacksLocks::Taken) => return self.refuse(Some(&row), UNDECLARED.as_bytes()),
                Err(LacksLocks::RunAgain) => {
                    self.ctx.session.locks_all = true;
                    self.lacks_rows = true;
                    return Called::Over;
                }
            }
        }
        self.run(&row, args)
    }

    fn answer(&mut self) -> &[u8] {
        if self.answer.as_contiguous().is_none() {
            self.gathered.clear();
            self.answer.io_slices().for_each(|slice| self.gathered.extend_from_slice(&slice));
            return self.gathered;
        }
        self.answer.as_contiguous().unwrap_or_default()
    }

    fn set_protocol(&mut self, protocol: Protocol) {
        self.answer.set_protocol(protocol);
    }

    fn protocol(&self) -> Protocol {
        self.answer.protocol()
    }

    fn reply(&mut self) -> &mut ReplyBuffer {
        self.ctx.reply
    }

    fn may_run(&mut self, args: Args<'_>) -> Option<bool> {
        let row = self.table.named(&args)?;
        let session = &*self.ctx.session;
        let scope = || self.ctx.host.login.users.scope(session.db);
        Some(session.is_unrestricted() || acl::check(&session.user.rules(), &row, &args, scope()).is_ok())
    }

    fn log(&mut self, level: u8, text: &[u8]) {
        reach::log(level, text);
    }

    fn tick(&mut self) -> Result<(), &'static str> {
        let is_late = self.elapsed() >= self.scripts.busy_after();
        if let Some(store) = self.store.filter(|_| is_late && !self.slot.is_busy()) {
            self.show(store);
        }
        if is_late && !self.is_attended && self.store.is_some() {
            let worker = self.ctx.session.info.worker();
            self.is_attended = self.scripts.running.attendant().is_some_and(|attendant| attendant.begin(worker));
        }
        let running = &self.scripts.running;
        if running.is_abandoned() {
            self.ctx.ks.abandon();
            self.ctx.session.close_after_replies = true;
            self.end = Some(ABANDONED);
        } else if self.slot.is_killed() && !self.has_written {
            // One that has written continues: half of its changes must not be the end.
            self.end = Some(self.slot.kind().killed());
        }
        self.end.map_or(Ok(()), Err)
    }
}
