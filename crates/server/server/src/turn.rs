//! One worker's turn over a batch: the checks before a request, its locks, its call, and its entries in figures and
//! logs.
//!
//! ```text
//! row, arguments -> plain? else login, MULTI, pause, budget -> lock shards -> watchers -> call -> figures
//! ```

use crate::connection::Connection;
use crate::executor::{ClientLimits, Shared};
use crate::key_route::KeyRoute;
use base::{DbIndex, Lsn, UnixMs};
use command::blocking::WaitingCall;
use command::call::{call, fail};
use command::error;
use command::observer::Done;
use command::pause::Pause;
use command::reach;
use command::session::{Queued, Replies};
use command::spec::{Answer, Look};
use command::stats::WorkerStats;
use command::watchers::{self, Sender};
use command::{Args, Categories, Ctx, Flags, KeyFlags, Locks, Row, Run, Session, Stop};
use engine::{Fetch, Keyspace, Seen};
use proto::{ReplyBuffer, ReplyMark};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use store::pressure::FlushFailure;
use store::{Admission, At, Blocked, LockSet, RecordSink, Scratch, Txn, Way, WriteClass};
use value::absent::{self, Absent, Stops};

/// What requests need of their worker, apart from the connection.
pub struct Turn<'t> {
    worker: usize,
    shared: &'t Shared,
    stats: &'t WorkerStats,
    limits: &'t ClientLimits,
    now: UnixMs,
    pause: Option<&'t Pause>,
    /// Data is being loaded, writes are refused, or a script is busy.
    is_gated: bool,
    /// How far the log was durable when the batch began.
    durable: Lsn,
    /// A write of this turn waits for memory, so others that need any do not try.
    awaits_memory: Cell<bool>,
    /// When the request before this one was done: one reading of the counter serves as its end and the next one's
    /// begin.
    before: u64,
    _stops: Stops,
}

impl<'t> Turn<'t> {
    /// The turn of a worker at this time.
    pub fn new(
        worker: usize,
        shared: &'t Shared,
        stats: &'t WorkerStats,
        limits: &'t ClientLimits,
        scratch: &mut Scratch,
        now: UnixMs,
    ) -> Self {
        let pause = Some(&shared.host.pause).filter(|pause| pause.is_active(now));
        let is_gated = !shared.store.gate.is_open();
        let durable = shared.store.log_of(scratch).map_or(Lsn(0), RecordSink::durable);
        Self {
            worker,
            shared,
            stats,
            limits,
            now,
            pause,
            is_gated,
            durable,
            awaits_memory: Cell::new(false),
            before: stats.now(),
            _stops: Stops::new(),
        }
    }

    /// When the last request was done, or the turn began, by [`WorkerStats::now`].
    #[inline]
    pub fn so_far_ns(&self) -> u64 {
        self.before
    }

    /// Runs one request: refuses it if it has no row, queues it inside MULTI, else takes its locks and calls it.
    /// `place` is that of its first key, and the way there.
    ///
    /// # Errors
    /// [`Blocked`]: it changed nothing and is to be run again.
    #[inline]
    pub fn run(
        &mut self,
        scratch: &mut Scratch,
        connection: &mut Connection,
        row: Option<&Row>,
        args: &Args<'_>,
        place: Option<(&KeyRoute, &Way)>,
    ) -> Result<(), Blocked> {
        let Some(row) = row else { return self.refuse(connection, args) };
        connection.last_command = row.index.into();
        let mark = connection.reply.mark();
        let session = &connection.session;
        let is_special = !session.is_plain()
            || self.pause.is_some()
            || self.is_gated
            || self.shared.outlets.is_congested()
            || self.shared.store.is_over_budget();
        if is_special && self.is_stopped(scratch, connection, row, args)? {
            if !connection.session.reply_wanted() {
                connection.reply.rewind(mark);
            }
            return Ok(());
        }
        if let (Run::Read(answer), Some(place), false) = (row.spec.run, place, is_special)
            && self.read(scratch, connection, (row, answer), args, place)
        {
            return Ok(());
        }
        scratch.client = connection.session.id;
        let Connection { session, reply, .. } = connection;
        let (touch, writes) = (!session.no_touch, row.writes);
        let mut at = At { now: self.now, db: session.db, touch, worker: self.worker, writes };
        let mut request = Request { row, args, hashed: None, session, reply, turn: &*self };
        // A bug that panics before the first change costs its request, not the worker; the store has opened the locks.
        // After a change the store has ended the process.
        let outcome = match place {
            Some((place, way)) if row.has_one_key => catch_unwind(AssertUnwindSafe(|| {
                request.hashed = Some(place);
                let key = place.key(args, row);
                self.shared.store.commit_one(scratch, (place.shard, &key, way), &at, |txn| request.call(txn))
            })),
            _ => catch_unwind(AssertUnwindSafe(|| {
                request.hashed = place.map(|(place, _)| place);
                // INFO among them: it is to see what its own batch has found so far.
                self.stats.keyspace_hits.add(std::mem::take(&mut scratch.hits));
                self.stats.keyspace_misses.add(std::mem::take(&mut scratch.misses));
                at.writes = request.session.writes_of(row);
                if at.writes == WriteClass::Any && self.shared.store.pressure.is_behind() {
                    let known = request.session.admitted_by;
                    let db = known.unwrap_or_else(|| self.admitting_database(request.session, row, args));
                    scratch.admitted_by = Some(db);
                }
                request.session.refused_writes = None;
                let is_refused = self.is_gated && self.shared.store.gate.refuses_writes();
                if is_refused
                    && at.writes != WriteClass::Nothing
                    && self.learns_from_commands(request.session, row, args)
                {
                    request.refuse_writes(error::CHECKPOINT_FAILED.to_owned(), &mut at);
                }
                let outcome = loop {
                    let had_all = request.session.locks_all;
                    let locks = self.locks(request.session, row, args);
                    let outcome = self.shared.store.commit(scratch, &locks, &at, |txn| request.call(txn));
                    // A script learns from its commands which of them may not run.
                    if matches!(outcome, Err(Blocked::Refused)) && self.learns_from_commands(request.session, row, args)
                    {
                        let db = scratch.admitted_by.unwrap_or(request.session.db);
                        request.refuse_writes(self.why_refused(scratch, db), &mut at);
                        continue;
                    }
                    // So does one that writes to another database on disk, if there is room for changes to that one.
                    if matches!(outcome, Err(Blocked::Fetch))
                        && let Some(db) = request.session.admitted_by
                        && scratch.admitted_by != Some(db)
                    {
                        scratch.admitted_by = Some(db);
                        continue;
                    }
                    // A script that uses keys which it has not declared runs again at once.
                    if had_all || !request.session.locks_all || !matches!(outcome, Err(Blocked::Fetch)) {
                        break outcome;
                    }
                };
                scratch.admitted_by = None;
                outcome
            })),
        };
        match outcome {
            Ok(Ok(before)) => {
                self.before = before;
                if scratch.is_logged() {
                    self.follow_log(scratch, connection, row, mark);
                }
            }
            Ok(Err(Blocked::Refused)) => self.refused_by_log(scratch, connection, row, args),
            Ok(Err(Blocked::Shard)) if self.is_kept_by_script(row) => {
                // The script most probably holds the locks that it needs.
                let text = self.scripts().running.kind().busy();
                (connection.session.locks_all, connection.session.admitted_by) = (false, None);
                command::gate::reject(&mut connection.session, self.stats, row, text.as_bytes(), &mut connection.reply);
            }
            Ok(Err(Blocked::Shard))
                if self.is_gated && self.shared.store.gate.is_busy() && row.spec.name == "watch" =>
            {
                // The script may change the keys: they count as changed, so that WATCH is answered meanwhile.
                connection.session.watch_in_vain();
                connection.reply.ok();
            }
            Ok(Err(blocked)) => return Err(blocked),
            Err(payload) => {
                if self.unwound(scratch, connection, (row, args, place), mark, payload)? {
                    return Ok(());
                }
            }
        }
        let Connection { session, reply, watching, .. } = connection;
        (session.locks_all, session.admitted_by) = (false, None);
        if let Some(caching) = &mut session.tracking {
            caching.is_called &= session.transaction.is_some() || row.spec.flags.contains(Flags::KEEPS_CACHING);
        }
        if session.monitor != *watching {
            *watching = session.monitor;
            match watching {
                true => self.shared.watchers.add(),
                false => self.shared.watchers.remove(),
            }
        }
        let is_wanted = session.reply_wanted() || row.confirms_subscriptions;
        if !is_wanted {
            reply.rewind(mark);
            session.rest = None;
        }
        if let Some(block) = &mut session.block {
            block.is_silent = !is_wanted;
        }
        Ok(())
    }

    /// Runs a request that answers from one entry on the fast path, with the same figures. False, with nothing done,
    /// when it has to take the path of all requests.
    #[inline]
    fn read(
        &mut self,
        scratch: &mut Scratch,
        connection: &mut Connection,
        (row, answer): (&Row, Answer),
        args: &Args<'_>,
        (place, way): (&KeyRoute, &Way),
    ) -> bool {
        let Connection { session, reply, .. } = &mut *connection;
        let is_told = session.tracking.is_some() || self.shared.watchers.has_any();
        if is_told || session.replies != Replies::On {
            return false;
        }
        let (mark, start, first_key) = (reply.mark(), reply.len(), usize::from(row.first_key));
        let key = place.key(args, row);
        let at =
            At { now: self.now, db: session.db, touch: !session.no_touch, worker: self.worker, writes: row.writes };
        let answered = catch_unwind(AssertUnwindSafe(|| {
            self.shared.store.read_one(scratch, (place.shard, key, way), &at, |seen| match seen {
                Seen::Entry(entry) => Some(answer(&Look { entry, args: *args, now: self.now }, reply)),
                Seen::Away(away) => command::call::send_away(row, away, reply).then_some(Ok(())),
            })
        }));
        match answered {
            Ok(Some(Ok(()))) => {}
            Ok(Some(Err(Stop::Error(text)))) => fail(reply, mark, self.stats, row, text.as_bytes()),
            Ok(None | Some(Err(Stop::Fetch))) => {
                reply.rewind(mark);
                return false;
            }
            // The path of all requests asks for it.
            Err(payload) if payload.is::<Absent>() => {
                reply.rewind(mark);
                return false;
            }
            Err(_) => {
                self.panicked(connection, row, mark);
                return true;
            }
        }
        let after = self.stats.now();
        let duration_ns = after.saturating_sub(std::mem::replace(&mut self.before, after));
        if let Some(stats) = self.stats.command(row.index.into()) {
            stats.record(duration_ns);
        }
        let (request_bytes, reply_bytes) = (args.total_bytes(), reply.len().saturating_sub(start));
        if self.shared.slow_log.wants(self.stats, duration_ns, request_bytes, reply_bytes) {
            self.shared.slow_log.look(&Done {
                flags: row.spec.flags,
                keys: row.spec.keys,
                args: *args,
                client: &session.info,
                stats: self.stats,
                hashed: Some((first_key, key)),
                hash: &|bytes| self.shared.store.key(place.space, bytes),
                now: self.now,
                duration_ns,
                request_bytes,
                reply_bytes,
            });
        }
        if scratch.is_logged() {
            self.follow_log(scratch, connection, row, mark);
        }
        true
    }

    /// Remembers how far the log had come by the request just run, and has its reply wait for what it shows.
    #[inline(never)]
    fn follow_log(&self, scratch: &Scratch, connection: &mut Connection, row: &Row, mark: ReplyMark) {
        if let Some(lsn) = scratch.wrote() {
            connection.session.last_write = lsn;
        }
        if let Some(lsn) = scratch.hold() {
            connection.session.seen = connection.session.seen.max(lsn);
        }
        // INFO and its like report on the server and not on the data, and are needed most when the log has stopped.
        let is_of_server = row.spec.flags.contains(Flags::LOADING) && row.spec.locks != Locks::Queue;
        if let Some(lsn) = scratch.hold()
            && !is_of_server
            && lsn > self.durable
            && connection.session.replies == Replies::On
        {
            connection.held.hold(connection.reply.len_before(mark), lsn);
        }
    }

    /// A request has unwound, with nothing changed: it lacks a leaf of a tree, or has met a bug. True when it has run
    /// once more, to its end.
    ///
    /// # Errors
    /// [`Blocked::Fetch`] for an absent leaf.
    #[cold]
    #[inline(never)]
    fn unwound(
        &mut self,
        scratch: &mut Scratch,
        connection: &mut Connection,
        (row, args, place): (&Row, &Args<'_>, Option<(&KeyRoute, &Way)>),
        mark: ReplyMark,
        payload: Box<dyn Any + Send>,
    ) -> Result<bool, Blocked> {
        scratch.admitted_by = None;
        let Ok(Absent { leaf, error }) = absent::of_payload(payload) else {
            self.panicked(connection, row, mark);
            return Ok(false);
        };
        connection.reply.rewind(mark);
        connection.session.rest = None;
        // A request that needs many leaves would read the first ones again and again.
        if error.is_none() && connection.stops_too_often() {
            return absent::waiting(|| self.run(scratch, connection, Some(row), args, place)).map(|()| true);
        }
        let Connection { session, reply, .. } = connection;
        let Some(error) = error else {
            scratch.want_leaf(leaf);
            return Err(Blocked::Fetch);
        };
        let why = store::unreadable_leaf(&error);
        tracing::error!("{why}");
        command::gate::refuse_unreadable(session, self.stats, row, &why, reply);
        self.before = self.stats.now();
        Ok(false)
    }

    #[cold]
    fn panicked(&mut self, connection: &mut Connection, row: &Row, mark: ReplyMark) {
        let name = row.spec.name;
        let text = error::internal(name);
        self.stats.count_error(text.as_bytes());
        connection.session.rest = None;
        connection.reply.rewind(mark);
        connection.reply.error(text);
        self.before = self.stats.now();
    }

    /// A write that the log cannot take, or that needs a flush of rows.
    #[cold]
    fn refused_by_log(&self, scratch: &mut Scratch, connection: &mut Connection, row: &Row, args: &Args<'_>) {
        let Connection { session, reply, .. } = connection;
        let text = self.why_refused(scratch, self.admitting_database(session, row, args));
        command::gate::reject(session, self.stats, row, text.as_bytes(), reply);
    }

    /// See [`reach::admitting_database`].
    #[cold]
    fn admitting_database(&self, session: &Session, row: &Row, args: &Args<'_>) -> DbIndex {
        let store = &self.shared.store;
        let is_on_disk = |db| store.spaces.get(db).map(|space| store.pressure.is_on_disk(space));
        reach::admitting_database(session, (row, args), is_on_disk)
    }

    /// Why the log, or a flush of rows, refuses writes.
    #[cold]
    fn why_refused(&self, scratch: &mut Scratch, db: DbIndex) -> String {
        let store = &self.shared.store;
        match store.refusal_by_flush(db) {
            Some(why) => error::flush_failed(&why),
            // A log that was removed meanwhile refuses nothing.
            None => error::log_failed(store.log_of(scratch).and_then(|log| log.refusal()).as_deref()),
        }
    }

    /// A request that cannot run at all: wrong name or arity.
    #[cold]
    fn refuse(&self, connection: &mut Connection, args: &Args<'_>) -> Result<(), Blocked> {
        let mark = connection.reply.mark();
        if connection.session.is_held(self.now) {
            return Err(Blocked::Shard);
        }
        let row = self.shared.table.named(args);
        connection.last_command = row.map_or(u32::MAX, |row| row.index.into());
        if let Err(Stop::Error(text)) = self.shared.table.resolve(args) {
            let Connection { session, reply, .. } = connection;
            command::gate::refuse(session, &self.shared.host, self.stats, row.as_ref(), text.as_ref(), reply);
        }
        if !connection.session.reply_wanted() {
            connection.reply.rewind(mark);
        }
        Ok(())
    }

    /// Checks for what may stop a request when anything might: the delay after a wrong password, a pause, login, MULTI,
    /// the memory budget. True when the request has been answered.
    ///
    /// # Errors
    /// [`Blocked`] while it has to wait.
    #[cold]
    fn is_stopped(
        &self,
        scratch: &mut Scratch,
        connection: &mut Connection,
        row: &Row,
        args: &Args<'_>,
    ) -> Result<bool, Blocked> {
        let Connection { session, reply, .. } = connection;
        if session.types_from().is_some() {
            session.choose_type(self.shared.ssdb.type_of(row));
        }
        if self.is_held_back(scratch, session, row, args, reply)? {
            return Ok(true);
        }
        if self.shared.store.is_over_budget() && !self.has_room(scratch, session, row, args)? {
            let db = self.admitting_database(session, row, args);
            let text = error::lacks_memory(self.shared.store.why_no_flush(db).as_deref());
            command::gate::reject(session, self.stats, row, text.as_bytes(), reply);
            return Ok(true);
        }
        Ok(false)
    }

    /// Checks for what may stop a connection that is not in its plain state: the delay after a wrong password, a pause,
    /// login, MULTI. True when the request has been answered.
    ///
    /// # Errors
    /// [`Blocked`] while it has to wait.
    fn is_held_back(
        &self,
        scratch: &mut Scratch,
        session: &mut Session,
        row: &Row,
        args: &Args<'_>,
        reply: &mut ReplyBuffer,
    ) -> Result<bool, Blocked> {
        if session.is_held(self.now) {
            return Err(Blocked::Shard);
        }
        session.held_until = None;
        let all_flags = || {
            let queued = session.queue_of(row).map(|queued| self.flags_of(&queued.row, &queued.args.as_args()));
            queued.fold(self.flags_of(row, args), |all, flags| all | flags)
        };
        if (session.transaction.is_none() || row.spec.locks == Locks::Queue)
            && self.pause.is_some_and(|pause| pause.is_paused(self.now, all_flags()))
        {
            session.info.set_postponed(true);
            return Err(Blocked::Shard);
        }
        if self.shared.outlets.is_congested() && may_publish(session, row, self.shared.store.notices.any()) {
            return Err(Blocked::Shard);
        }
        if command::gate::stop_stranger(session, &self.shared.host, self.stats, row, reply) {
            return Ok(true);
        }
        if command::gate::stop_forbidden(session, &self.shared.host, self.stats, (row, args), self.now, reply) {
            return Ok(true);
        }
        if session.subscriptions.is_some() {
            // A container's first subcommand may have been asked for by the container's name alone.
            let shown = if args.len() == 1 { self.shared.table.named(args).unwrap_or(*row) } else { *row };
            let name = self.shared.table.rows().get(shown.index as usize).map_or(shown.spec.name, |(name, _)| name);
            if command::gate::stop_subscriber(session, self.stats, row, name, reply) {
                return Ok(true);
            }
        }
        if let Some(text) = self.refusal(scratch, session, row, args) {
            command::gate::reject(session, self.stats, row, text.as_bytes(), reply);
            return Ok(true);
        }
        // What needs no memory is queued in any case, as in Valkey.
        if command::gate::is_queued(session, row)
            && self.flags_of(row, args).contains(Flags::DENYOOM)
            && !self.has_room_for(scratch, session.db, args.total_bytes())?
        {
            let text = error::lacks_memory(self.shared.store.why_no_flush(session.db).as_deref());
            command::gate::reject(session, self.stats, row, text.as_bytes(), reply);
            return Ok(true);
        }
        let stopped = command::gate::queue(session, self.stats, row, args, reply);
        if session.transaction.as_ref().is_some_and(|queue| queue.bytes > self.limits.transaction_bytes_max) {
            let text = error::queue_too_long(self.limits.transaction_bytes_max);
            self.stats.count_error(text.as_bytes());
            reply.error(text);
            session.transaction = None;
            session.close_after_replies = true;
        }
        Ok(stopped)
    }

    /// Why a request is refused for the state of the server, if it is: it is loading, or cannot save what is written.
    #[cold]
    fn refusal(&self, scratch: &mut Scratch, session: &Session, row: &Row, args: &Args<'_>) -> Option<String> {
        let store = &self.shared.store;
        if self.is_kept_by_script(row) && (row.spec.locks == Locks::Each || self.scripts().running.keeps(self.worker)) {
            return Some(self.scripts().running.kind().busy().to_owned());
        }
        if self.is_gated && store.gate.is_loading() {
            let may_run = |row: &Row| row.spec.flags.contains(Flags::LOADING);
            if !may_run(row) || !session.queue_of(row).all(|queued| may_run(&queued.row)) {
                return Some(error::LOADING.to_owned());
            }
        }
        if self.is_gated && store.gate.loads_aside() {
            let is_meant = |row: &Row| row.spec.flags.contains(Flags::NO_ASYNC_LOADING);
            if is_meant(row) || session.queue_of(row).any(|queued| is_meant(&queued.row)) {
                return Some(error::LOADING.to_owned());
            }
        }
        if self.is_gated
            && let Some(text) = self.refusal_of_replica(session, row, args)
        {
            return Some(text.to_owned());
        }
        let class = session.writes_of(row);
        // What is only queued is not admitted later, so that it is refused now.
        let is_queued = session.transaction.is_some() && row.spec.locks != Locks::Queue;
        let is_refused = self.is_gated && store.gate.refuses_writes();
        if class == WriteClass::Nothing || !is_refused && !is_queued || self.learns_from_commands(session, row, args) {
            return None;
        }
        if is_refused {
            return Some(error::CHECKPOINT_FAILED.to_owned());
        }
        let log = store.log_of(scratch)?;
        (log.admit(self.worker, class) == Admission::Refused).then(|| error::log_failed(log.refusal().as_deref()))
    }

    /// Why a replica does not run a request, if it does not.
    fn refusal_of_replica(&self, session: &Session, row: &Row, args: &Args<'_>) -> Option<&'static str> {
        let gate = &self.shared.store.gate;
        let any = |is_meant: fn(Flags) -> bool| {
            let is_queued_meant = |queued: &Queued<Run>| is_meant(self.flags_of(&queued.row, &queued.args.as_args()));
            is_meant(self.flags_of(row, args)) || session.queue_of(row).any(is_queued_meant)
        };
        if gate.is_read_only() && any(|flags| flags.contains(Flags::WRITE)) {
            return Some(replication::role::READ_ONLY);
        }
        (gate.is_stale() && any(|flags| !flags.contains(Flags::STALE))).then_some(error::MASTER_DOWN)
    }

    /// What a request may do, without its queue: of scripts and functions, what they declare.
    fn flags_of(&self, row: &Row, args: &Args<'_>) -> Flags {
        match row.spec.locks {
            Locks::Declared => {
                let scripts = self.shared.host.part::<script::Needed, Arc<script::Scripts>>();
                script::flags_of(scripts, || self.shared.store.libraries.get(), row.spec, args)
            }
            _ => row.spec.flags,
        }
    }

    /// Whether only scripts that do not declare what they do may change entries here. Each command of theirs learns
    /// whether it may; other requests are refused as a whole.
    #[cold]
    fn learns_from_commands(&self, session: &Session, row: &Row, args: &Args<'_>) -> bool {
        let learns = |row: &Row, args: &Args<'_>| {
            let is_script = row.spec.locks == Locks::Declared;
            row.writes == WriteClass::Nothing || is_script && !self.flags_of(row, args).contains(Flags::WRITE)
        };
        learns(row, args) && session.queue_of(row).all(|queued| learns(&queued.row, &queued.args.as_args()))
    }

    /// Whether a script that runs past its time may keep a request from running.
    fn is_kept_by_script(&self, row: &Row) -> bool {
        self.is_gated && self.shared.store.gate.is_busy() && !row.spec.flags.contains(Flags::ALLOW_BUSY)
    }

    fn scripts(&self) -> &script::Scripts {
        self.shared.host.part::<script::Needed, Arc<script::Scripts>>()
    }

    /// Whether a request may run while over the memory budget: it needs no memory, or something could be evicted.
    #[cold]
    fn has_room(&self, scratch: &mut Scratch, session: &Session, row: &Row, args: &Args<'_>) -> Result<bool, Blocked> {
        let mut needs_memory = self.flags_of(row, args).contains(Flags::DENYOOM);
        let mut bytes = args.total_bytes();
        for queued in session.queue_of(row) {
            needs_memory |= self.flags_of(&queued.row, &queued.args.as_args()).contains(Flags::DENYOOM);
            bytes += queued.args.held_bytes();
        }
        // A script runs in any case, and learns which of its commands may not.
        let is_script = row.spec.categories.contains(Categories::SCRIPTING) && row.writes != WriteClass::Nothing;
        match needs_memory || is_script {
            true => {
                let db = self.admitting_database(session, row, args);
                Ok(self.has_room_for(scratch, db, bytes)? || !needs_memory)
            }
            false => Ok(true),
        }
    }

    /// Whether there is room for `bytes` bytes within the memory budget, or could be made.
    fn has_room_for(&self, scratch: &mut Scratch, db: DbIndex, bytes: usize) -> Result<bool, Blocked> {
        if !self.shared.store.is_over_budget() {
            return Ok(true);
        }
        if self.awaits_memory.get() {
            return Err(Blocked::Memory);
        }
        let room = self.shared.store.evict(bytes, self.worker, scratch);
        self.awaits_memory.set(room == Err(Blocked::Memory));
        if room == Ok(false) && self.shared.store.flush_failure(db) == Some(FlushFailure::Wait) {
            return Err(Blocked::Log);
        }
        room
    }

    /// Shows a request to clients that MONITOR; EXEC comes after the requests that it runs.
    #[cold]
    fn show(&self, session: &Session, row: &Row, args: &Args<'_>) {
        if row.spec.locks == Locks::Queue
            && let Some(transaction) = &session.transaction
            && !transaction.poisoned
            && !session.watch.is_broken()
        {
            transaction.queue.iter().for_each(|queued| self.show(session, &queued.row, &queued.args.as_args()));
        }
        if watchers::is_shown(row.spec.flags) {
            self.shared.watchers.show(args, (Sender::Client(&session.info), session.db), self.now);
        }
    }

    /// The locks of a request with any keys.
    #[cold]
    fn locks(&self, session: &Session, row: &Row, args: &Args<'_>) -> LockSet {
        let store = &self.shared.store;
        let mut set = LockSet::None;
        match row.spec.locks_in(args) {
            Locks::None | Locks::Each => {}
            Locks::All => set = LockSet::All,
            Locks::Declared if session.locks_all || session.transaction.is_some() => set = LockSet::All,
            Locks::Keys | Locks::Declared => {
                row.spec.visit_keys(args, |index, _| {
                    let key = args.bytes(index).unwrap_or_default();
                    set.insert(store.shard_of_bytes(key));
                });
            }
            Locks::Cursor(index) => {
                // The command refuses a malformed cursor, and any shard does for that.
                let text = args.bytes(index).and_then(|text| std::str::from_utf8(text).ok());
                set.insert(store.shard_of_cursor(text.and_then(|text| text.parse().ok()).unwrap_or(0)));
            }
            Locks::Queue => {
                for watched in &session.watch.keys {
                    set.insert(store.shard_of_bytes(&watched.key));
                }
                for queued in session.transaction.iter().flat_map(|transaction| &transaction.queue) {
                    match self.locks(session, &queued.row, &queued.args.as_args()) {
                        LockSet::None => {}
                        LockSet::One(shard) => set.insert(shard),
                        LockSet::Several(shards) => shards.into_iter().for_each(|shard| set.insert(shard)),
                        LockSet::All => set = LockSet::All,
                    }
                    if matches!(queued.row.spec.locks, Locks::All | Locks::Each | Locks::Cursor(_)) {
                        set = LockSet::All;
                    }
                }
            }
        }
        set
    }
}

/// Whether the request may publish: it waits while workers have too much to deliver.
fn may_publish(session: &Session, row: &Row, tells_changes: bool) -> bool {
    let publishes = |row: &Row| {
        let flags = row.spec.flags;
        flags.contains(Flags::PUBSUB) && !row.confirms_subscriptions || tells_changes && flags.contains(Flags::WRITE)
    };
    publishes(row) || session.queue_of(row).any(|queued| publishes(&queued.row))
}

/// Asks for the rows of all keys of a request that lacks one, so that one round of reads brings all of them.
#[cold]
fn ask_for_all_keys(ctx: &mut Ctx<'_>) {
    // What is being prepared has its rows.
    if ctx.session.has_work() || !ctx.ks.may_fetch() {
        return;
    }
    if !matches!(ctx.spec.locks_in(&ctx.args), Locks::Keys | Locks::Declared | Locks::All) {
        return;
    }
    ctx.spec.visit_keys(&ctx.args, |index, spec| {
        // A channel is no row.
        if !spec.flags.contains(KeyFlags::NOT_KEY) {
            let key = ctx.ks.key(ctx.args.bytes(index).unwrap_or_default());
            // Whether it is there does not matter here: the missing ones are noted.
            let _ = ctx.ks.peek(&key);
        }
    });
}

/// One request on its way through [`call`].
struct Request<'r, 't> {
    row: &'r Row,
    args: &'r Args<'r>,
    hashed: Option<&'r KeyRoute>,
    session: &'r mut Session,
    reply: &'r mut ReplyBuffer,
    turn: &'r Turn<'t>,
}

impl Request<'_, '_> {
    /// Has a script run that may not change entries, for this reason.
    #[cold]
    fn refuse_writes(&mut self, why: String, at: &mut At) {
        self.session.refused_writes = Some(why);
        at.writes = WriteClass::Nothing;
    }

    /// Calls the command under its locks and keeps its figures. Gives the time when it was done.
    #[inline]
    fn call(&mut self, txn: &mut Txn<'_>) -> Result<u64, Fetch> {
        let (row, args, turn) = (self.row, self.args, self.turn);
        if turn.shared.watchers.has_any() && self.session.pending.is_none() {
            // Under the locks: a request that has to wait for them is shown once, when it runs. One that prepares
            // something was shown when it began.
            turn.show(self.session, row, args);
        }
        let start = self.reply.len();
        let hashed = self.hashed.map(|place| {
            // The database may have changed since the key was hashed: by a SELECT earlier in the batch, or by a SWAPDB.
            (row.first_key.into(), place.key(args, row).in_space(txn.space()))
        });
        let mut ctx = Ctx {
            spec: row.spec,
            args: *args,
            reply: self.reply,
            ks: txn,
            session: self.session,
            host: &turn.shared.host,
            stats: turn.stats,
            hashed,
        };
        if let Err(fetch) = call(&mut ctx, row) {
            ask_for_all_keys(&mut ctx);
            return Err(fetch);
        }
        let after = ctx.stats.now();
        let duration = after.saturating_sub(turn.before);
        if let Some(block) = &mut ctx.session.block {
            block.call = Some(Arc::new(WaitingCall {
                name: row.spec.name,
                flags: row.spec.flags,
                keys: row.spec.keys,
                index: row.index.into(),
                args: args.to_owned(),
                duration_ns: duration,
            }));
            return Ok(after);
        }
        if let Some(stats) = ctx.stats.command(row.index.into()) {
            stats.record(duration);
        }
        let (request_bytes, reply_bytes) = (args.total_bytes(), ctx.reply.len().saturating_sub(start));
        if turn.shared.slow_log.wants(ctx.stats, duration, request_bytes, reply_bytes) {
            ctx.show_done(duration, request_bytes, reply_bytes, |done| turn.shared.slow_log.look(done));
        }
        Ok(after)
    }
}
