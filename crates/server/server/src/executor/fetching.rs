//! Connections whose request lacks rows. They leave the executor's other lists, and run again when the last row has
//! arrived.
//!
//! ```text
//! Blocked::Fetch -> rows at hand without I/O? -> run again in this turn
//!                            | no
//!                            '-> read what is missing, and rows of the connection's next requests (read-ahead)
//!                                    -> fetched: install -> nothing missing: run again
//! ```
//!
//! G1. What a request wants stays in memory until it has run. What was read ahead stays until the connection's requests
//!     have run, or one of them waits for something else than rows.
//! G2. A row that arrives for a request that has gone is installed all the same. No request has its number.

use super::Executor;
use crate::fetching::Fetched;
use base::ShardId;
use command::{KeyFlags, KeySpec, Locks};
use engine::Keyspace;
use std::collections::HashMap;
use std::sync::Arc;
use store::{At, LockSet, Want, WriteClass};

/// Requests after the waiting one whose rows are read with it.
const READ_AHEAD_MAX: usize = 32;

/// The number of reads for which no request waits.
const NOBODY: u64 = 0;

/// The connections that wait for rows.
#[derive(Default)]
pub(super) struct Fetching {
    parked: HashMap<usize, Parked>,
    /// Which connection waits under which number.
    numbers: HashMap<u64, usize>,
    last_number: u64,
    /// Connections whose rows have come, to run again.
    ready: Vec<usize>,
    /// Connections whose request has just been found to lack rows, and those rows.
    lacking: Vec<(usize, Vec<Want>)>,
    /// Rows whose request has run.
    run: Vec<Want>,
    /// Rows that upkeep of a shard lacks.
    for_upkeep: HashMap<ShardId, Vec<Want>>,
    buffer: Vec<u8>,
}

/// A connection that waits, or has just waited, for rows.
#[derive(Default)]
struct Parked {
    /// The number of this round of reads.
    number: u64,
    /// Reads of this round that have not ended.
    missing: usize,
    /// Why one has failed.
    failed: Option<Arc<str>>,
    /// What the request wants.
    wants: Vec<Want>,
    /// What was read ahead.
    ahead: Vec<Want>,
}

impl Fetching {
    /// Notes that the first request of a connection that waits lacks rows, until it is parked.
    pub(super) fn lack(&mut self, id: usize, wants: Vec<Want>) {
        self.lacking.push((id, wants));
    }

    /// Whether there are connections to park.
    #[inline]
    pub(super) fn has_lacking(&self) -> bool {
        !self.lacking.is_empty()
    }

    /// A request of the connection has run: what it wanted may leave memory.
    #[inline]
    pub(super) fn has_run(&mut self, id: usize) {
        if !self.parked.is_empty()
            && let Some(parked) = self.parked.get_mut(&id)
        {
            self.run.append(&mut parked.wants);
        }
    }
}

impl Executor {
    /// Parks the connections whose requests lack rows, and has those rows read and the next ones of each connection.
    pub(super) fn park_for_rows(&mut self) {
        for (id, wants) in std::mem::take(&mut self.fetching.lacking) {
            if !wants.iter().any(Want::is_read) {
                // They arrive without a read.
                self.shared.store.release(&wants);
                self.waiting.push(id);
            } else if self.park(id, wants) {
                self.read_ahead(id);
            }
        }
    }

    /// Parks a connection. False when its rows are there already.
    fn park(&mut self, id: usize, wants: Vec<Want>) -> bool {
        let Fetching { parked, numbers, last_number, ready, buffer, .. } = &mut self.fetching;
        let missing: Vec<&Want> =
            wants.iter().filter(|want| !self.shared.store.install_at_once(want, buffer)).collect();
        let (parked, is_waiting) = (parked.entry(id).or_default(), !missing.is_empty());
        if is_waiting {
            *last_number += 1;
            (parked.number, parked.missing) = (*last_number, missing.len());
            numbers.insert(*last_number, id);
            missing.iter().for_each(|want| self.shared.fetches.fetch(want, self.worker, *last_number));
        } else {
            ready.push(id);
        }
        parked.wants.extend(wants);
        is_waiting
    }

    /// Has the rows read that the requests after the waiting one will need.
    fn read_ahead(&mut self, id: usize) {
        let wants = self.missing_rows_behind(id);
        for want in &wants {
            if !self.shared.store.install_at_once(want, &mut self.fetching.buffer) {
                self.shared.fetches.fetch(want, self.worker, NOBODY);
            }
        }
        match self.fetching.parked.get_mut(&id) {
            Some(parked) => parked.ahead.extend(wants),
            None => self.shared.store.release(&wants),
        }
    }

    /// The missing rows of the requests after the first waiting one.
    fn missing_rows_behind(&mut self, id: usize) -> Vec<Want> {
        let Some(connection) = self.connections.get(id) else { return Vec::new() };
        let (mut keys, mut locks) = (Vec::new(), LockSet::None);
        for request in connection.waiting.iter().skip(1).take(READ_AHEAD_MAX) {
            let args = request.args.as_args();
            let Some(row) = request.row else { break };
            let is_elsewhere = connection.session.types_from().is_some()
                && connection.session.database_of_type(self.shared.ssdb.type_of(&row)) != connection.session.db;
            if is_elsewhere || row.spec.locks_in(&args) != Locks::Keys {
                continue;
            }
            row.spec.visit_keys(&args, |index, spec| {
                if reads_row(spec) {
                    let key = args.bytes(index).unwrap_or_default();
                    locks.insert(self.shared.store.shard_of_bytes(key));
                    keys.push(key);
                }
            });
        }
        let (db, worker) = (connection.session.db, self.worker);
        let at = At { now: self.now, db, touch: false, worker, writes: WriteClass::Nothing };
        // A shard that is locked is not waited for: this is only to save time.
        let _ = self.shared.store.commit(&mut self.scratch, &locks, &at, |txn| {
            // All are asked for, so that they come together.
            let mut all = Ok(());
            for bytes in &keys {
                let key = txn.key(bytes);
                all = txn.peek(&key).map(|_| ()).and(all);
            }
            all
        });
        self.scratch.take_wants()
    }

    /// A row has come. Its connection runs again if that was the last that it waited for.
    pub fn fetched(&mut self, fetched: Fetched) {
        let Fetched { number, want, found, took } = fetched;
        self.shared.note_latency("disk-row-read", took);
        match &found {
            Ok(row) => self.shared.store.install(&want, row.as_deref()),
            Err(_) => self.shared.store.withdraw(&want),
        }
        let Some(&id) = self.fetching.numbers.get(&number) else { return };
        let Some(parked) = self.fetching.parked.get_mut(&id).filter(|parked| parked.number == number) else {
            // It was tried again meanwhile, since there is room for it, and waits for other rows.
            self.fetching.numbers.remove(&number);
            return;
        };
        parked.failed = parked.failed.take().or(found.err());
        parked.missing -= 1;
        if parked.missing == 0 {
            self.fetching.numbers.remove(&number);
            self.fetching.ready.push(id);
        }
    }

    /// Runs the requests again whose rows have come.
    pub fn run_fetched(&mut self) {
        for id in std::mem::take(&mut self.fetching.ready) {
            self.answer_unreadable(id);
            self.run_waiting_of(id);
        }
    }

    /// Whether a request can run again since its rows have come.
    pub fn has_fetched(&self) -> bool {
        !self.fetching.ready.is_empty()
    }

    /// Answers the first request that waits when a row of it could not be read. It has changed nothing.
    fn answer_unreadable(&mut self, id: usize) {
        let failed = self.fetching.parked.get_mut(&id).and_then(|parked| parked.failed.take());
        let (Some(why), Some(connection)) = (failed, self.connections.get_mut(id)) else { return };
        let Some(request) = connection.waiting.pop_front() else { return };
        let Some(row) = request.row else { return };
        let mark = connection.reply.mark();
        command::gate::refuse_unreadable(&mut connection.session, &self.stats, &row, &why, &mut connection.reply);
        if !connection.session.reply_wanted() {
            connection.reply.rewind(mark);
        }
        self.fetching.has_run(id);
    }

    /// Releases what requests that have run wanted; when no request of the connection waits, what was read ahead as
    /// well.
    pub(super) fn release_rows(&mut self, id: usize) {
        if self.fetching.parked.is_empty() {
            return;
        }
        self.shared.store.release(&std::mem::take(&mut self.fetching.run));
        if self.connections.get(id).is_none_or(|connection| connection.waiting.is_empty()) {
            self.forget_rows(id);
        }
    }

    /// The connection waits for no rows any more.
    pub(super) fn forget_rows(&mut self, id: usize) {
        let Fetching { parked, numbers, ready, .. } = &mut self.fetching;
        if let Some(parked) = parked.remove(&id) {
            numbers.remove(&parked.number);
            ready.retain(|other| *other != id);
            self.shared.store.release(&parked.wants);
            self.shared.store.release(&parked.ahead);
        }
    }

    /// After a step of upkeep of a shard: has the rows read that it lacks, for its next step.
    pub(super) fn fetch_for_upkeep(&mut self, shard: ShardId) {
        let wants = self.scratch.take_wants();
        for want in &wants {
            self.shared.fetches.fetch(want, self.worker, NOBODY);
        }
        let before = match wants.is_empty() {
            true => self.fetching.for_upkeep.remove(&shard),
            false => self.fetching.for_upkeep.insert(shard, wants),
        };
        if let Some(before) = before {
            self.shared.store.release(&before);
        }
    }
}

/// Whether a request needs the row of such a key: it is a key, and not only overwritten.
fn reads_row(spec: &KeySpec) -> bool {
    let is_overwritten = spec.flags.contains(KeyFlags::OW) && !spec.flags.contains(KeyFlags::ACCESS);
    !spec.flags.contains(KeyFlags::NOT_KEY) && !is_overwritten
}
