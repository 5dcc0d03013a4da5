//! The write path: admit, log, memtable, sync, publish.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::live::{LogState, Writer};
use super::{Inner, State, wal_path};
use crate::batch::{Change, WriteBatch};
use crate::error::{Error, Result};
use crate::key::{Kind, SEQNO_MAX, Seqno};
use crate::log::{Portion, SpareWal, WalWriter};
use crate::memtable::Memtable;
use crate::options::{Background, Wal};
use crate::range_tombstone::RangeTombstone;
use crate::spans::span;
use crate::stats::Counters;

/// Writers slow down to this just before they have to wait.
const SLOWEST_BYTES_PER_SECOND: f64 = 8.0 * 1024.0 * 1024.0;

/// Shortest pause. An operating system's sleep is longer than asked for, often by half of this; that counts as well.
const PAUSE_NS_MIN: i64 = 100_000;

/// Longest pause; a batch of many megabytes is not held up for seconds.
const PAUSE_NS_MAX: i64 = 20_000_000;

impl Inner {
    pub(super) fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_if(batch, |_| Ok(()))
    }

    /// Writes the batch unless `check`, which is called under the write lock, finds a reason not to.
    pub(super) fn write_if(&self, batch: &WriteBatch, check: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        batch.check()?;
        if batch.is_empty() {
            return Ok(());
        }
        let has_times = self.check_key_spaces(batch)?;
        let user_bytes = batch.user_bytes();
        let batch = &*self.key_order.stored_batch(batch)?;
        let timed;
        let batch = match has_times {
            false => batch,
            true => {
                timed = batch.timed(|space| self.key_spaces.read().has_times(space), self.options.clock.now_ms());
                timed.check()?;
                &timed
            }
        };
        self.admit(user_bytes)?;
        self.wait_for_space()?;
        let mut writer = self.writer.lock();
        // Under the lock, otherwise a stopped log could still take this batch.
        self.check_writable()?;
        if !writer.dropping.is_empty()
            && let Some((space, _)) = batch.changes().find(|(space, _)| writer.dropping.contains(space))
        {
            return Err(no_key_space(space));
        }
        check(self)?;
        check_lsn(writer.last_lsn, batch.lsn())?;
        if self.state.read().memtable.bytes() >= self.options.memtable_bytes {
            // There was no room for the next log file, or another writer is about to make it.
            self.switch(&mut writer)?;
        }
        let closed;
        let batch = match batch.has_open_ranges() {
            false => batch,
            // The lock keeps other writers from adding a key beyond the end that is found here.
            true => {
                closed = self.closed(batch)?;
                &closed
            }
        };
        if batch.is_empty() {
            return Ok(());
        }
        let first = writer.next_seqno;
        let last = first + batch.len() as u64 - 1;
        if last > SEQNO_MAX {
            return Err(Error::InvalidArgument("the sequence numbers are used up".into()));
        }
        if let Some(wal) = &mut writer.wal {
            let appended = wal.append(batch, first);
            let bytes = appended.map_err(|error| if error.may_pass() { error } else { self.stop(error) })?;
            Counters::add(&self.counters.wal_bytes, bytes);
        }
        let memtable = self.state.read().memtable.clone();
        apply(&memtable, batch, first);
        writer.next_seqno = last + 1;
        writer.last_lsn = writer.last_lsn.max(batch.lsn());
        Counters::add(&self.counters.user_bytes, user_bytes);
        let is_full = memtable.bytes() >= self.options.memtable_bytes;
        if self.options.wal == Wal::Sync {
            drop(writer);
            self.sync_upto(last)?;
        } else {
            self.visible.store(last, Ordering::Release);
            drop(writer);
        }
        match if is_full { self.memtable_is_full(&memtable) } else { Ok(()) } {
            // The batch is written; the next one gets the error.
            Err(error) if error.may_pass() => Ok(()),
            other => other,
        }
    }

    fn closed(&self, batch: &WriteBatch) -> Result<WriteBatch> {
        let state = self.state();
        let closed = batch.closed(|space| state.largest(space));
        closed.check()?;
        Ok(closed)
    }

    /// Whether values of one of the batch's key spaces have times.
    fn check_key_spaces(&self, batch: &WriteBatch) -> Result<bool> {
        if batch.changes().all(|(space, _)| space == 0) {
            return Ok(false);
        }
        let spaces = self.key_spaces.read();
        match batch.changes().find(|(space, _)| !spaces.has(*space)) {
            Some((space, _)) => Err(no_key_space(space)),
            None => Ok(!spaces.options().is_empty() && batch.changes().any(|(space, _)| spaces.has_times(space))),
        }
    }

    /// Waits while flushes or compactions of the background threads lag too far behind.
    fn admit(&self, bytes: u64) -> Result<()> {
        if self.options.background != Background::Threads {
            return self.flush_left_behind();
        }
        let lag = self.lag(&self.state.read());
        if lag < 1.0 {
            if lag > 0.0 {
                self.delay(bytes, lag);
            }
            return Ok(());
        }
        span!("stall", lag = lag);
        let begin = Instant::now();
        Counters::add(&self.counters.stalls, 1);
        let waited = self.wait_for_background();
        Counters::add(&self.counters.stalled_us, begin.elapsed().as_micros() as u64);
        waited
    }

    /// How far flushes and compactions lag: not at all at 0, and so far from 1 on that writers must wait. Of flushes,
    /// it grows with the second half of the last memtable that there is room for.
    pub(super) fn lag(&self, state: &State) -> f64 {
        let room = self.options.immutable_memtables_max.saturating_sub(state.immutables.len());
        let of_flushes = match room {
            0 => 1.0,
            1 if !state.immutables.is_empty() => {
                (2.0 * state.memtable.bytes() as f64 / self.options.memtable_bytes as f64 - 1.0).clamp(0.0, 0.99)
            }
            _ => 0.0,
        };
        state.lag.most().max(of_flushes)
    }

    /// Slows a writer down. What all of them owe is paid by the one that makes it worth a pause, and what it sleeps
    /// beyond that is to the credit of those after it.
    fn delay(&self, bytes: u64, lag: f64) {
        let owes = (bytes as f64 * lag * 1e9 / SLOWEST_BYTES_PER_SECOND) as i64;
        if self.delay_owed_ns.fetch_add(owes, Ordering::Relaxed).saturating_add(owes) < PAUSE_NS_MIN {
            return;
        }
        let owed = self.delay_owed_ns.swap(0, Ordering::Relaxed);
        if owed < PAUSE_NS_MIN {
            // Another writer pays.
            self.delay_owed_ns.fetch_add(owed, Ordering::Relaxed);
            return;
        }
        let (begin, pause) = (Instant::now(), owed.min(PAUSE_NS_MAX));
        std::thread::sleep(Duration::from_nanos(pause.unsigned_abs()));
        let slept = begin.elapsed();
        let beyond = i64::try_from(slept.as_nanos()).unwrap_or(i64::MAX).saturating_sub(pause);
        self.delay_owed_ns.fetch_sub(beyond.clamp(0, PAUSE_NS_MAX), Ordering::Relaxed);
        Counters::add(&self.counters.delays, 1);
        Counters::add(&self.counters.delayed_us, slept.as_micros() as u64);
    }

    fn wait_for_background(&self) -> Result<()> {
        let mut seen = self.bell.count();
        while self.lag(&self.state()) >= 1.0 {
            self.check_writable()?;
            if let Some(error) = &*self.trouble.lock() {
                return Err(Error::Suspended { cause: error.clone() });
            }
            seen = self.bell.wait(seen);
        }
        Ok(())
    }

    /// Makes the change with this number durable, and publishes it with all before. One sync serves all that wait.
    fn sync_upto(&self, seqno: Seqno) -> Result<()> {
        let _syncing = self.syncing.lock();
        if self.visible.load(Ordering::Acquire) >= seqno {
            return Ok(());
        }
        self.sync_and_publish()
    }

    /// Makes everything in the log durable.
    pub(super) fn sync_log(&self) -> Result<()> {
        self.wait_for_space()?;
        let _syncing = self.syncing.lock();
        self.sync_and_publish()
    }

    /// The caller holds the lock of syncs.
    fn sync_and_publish(&self) -> Result<()> {
        let (plan, last) = {
            let writer = self.writer.lock();
            self.check_writable()?;
            let Some(wal) = &writer.wal else { return Ok(()) };
            (wal.sync_plan(), writer.next_seqno - 1)
        };
        let synced = plan.run(&*self.options.fs, &self.dir, &self.names, &self.next_number);
        let mut writer = self.writer.lock();
        if let Err(error) = synced {
            writer.log_state = LogState::InDoubt;
            return Err(self.fail(error));
        }
        if let Some(wal) = &mut writer.wal {
            wal.note_synced(&plan);
        }
        self.visible.fetch_max(last, Ordering::AcqRel);
        Ok(())
    }

    /// This memtable is full: set it aside, unless another writer has done so, and have it flushed.
    fn memtable_is_full(&self, full: &Arc<Memtable>) -> Result<()> {
        {
            let mut writer = self.writer.lock();
            if Arc::ptr_eq(&self.state.read().memtable, full) {
                self.switch(&mut writer)?;
            }
        }
        match self.options.background {
            Background::Threads => drop(self.bell.ring()),
            Background::Manual => {}
            Background::Inline => {
                while self.flush_oldest()? {}
                while self.compact_once()? {}
            }
        }
        Ok(())
    }

    /// Sets the memtable aside for a flush, unless it is empty.
    pub(super) fn switch_memtable(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        self.check_writable()?;
        if self.state.read().memtable.is_empty() { Ok(()) } else { self.switch(&mut writer) }
    }

    pub(super) fn switch(&self, writer: &mut Writer) -> Result<()> {
        if let Some(before) = writer.wal.as_ref().map(WalWriter::before).or_else(|| writer.before.clone()) {
            let spare = self.spare_wal.lock().take().filter(|spare| !self.names.may_be_lost(spare.number));
            let number = spare.as_ref().map_or_else(|| self.number(), |spare| spare.number);
            let (fs, path) = (&*self.options.fs, wal_path(&self.dir, number));
            let file = spare.map_or_else(|| SpareWal::create(fs, &path, number), Ok);
            match file.and_then(|file| WalWriter::begin(file, self.identity(number), before)) {
                Ok(new) => {
                    let old = writer.wal.replace(new);
                    writer.old_wals.extend(old.map(|wal| (wal.number, wal.len())));
                    writer.before = None;
                }
                Err(error) if error.may_pass() => {
                    // The log before stays in use, and no longer ends where this file may say it does (W4).
                    let _ = fs.remove_file(&path);
                    return Err(error);
                }
                // The log cannot continue without its file, and what the attempt left on disk is unknown.
                Err(error) => return Err(self.stop(error)),
            }
        }
        let wal_number = writer.wal.as_ref().map_or(0, |wal| wal.number);
        let mut state = self.state.write();
        let memtable = Arc::new(Memtable::after(&state.memtable, wal_number));
        let mut immutables = vec![state.memtable.clone()];
        immutables.extend(state.immutables.iter().cloned());
        let version = state.version.clone();
        let (lag, spaces) = (state.lag.clone(), state.spaces.clone());
        *state = Arc::new(State { memtable, immutables, version, lag, spaces });
        Ok(())
    }
}

/// Puts changes of a log into its memtable.
pub(super) fn apply_all(memtable: &Memtable, portion: &Portion<'_>) {
    portion.changes.iter().for_each(|(space, seqno, change)| apply_one(memtable, *space, *seqno, *change));
    memtable.note_lsn(portion.lsn);
}

/// Puts a batch into a memtable; its operations get the numbers from `first` on.
pub(super) fn apply(memtable: &Memtable, batch: &WriteBatch, first: Seqno) {
    batch.changes().zip(first..).for_each(|((space, change), seqno)| apply_one(memtable, space, seqno, change));
    memtable.note_lsn(batch.lsn());
}

fn apply_one(memtable: &Memtable, space: u32, seqno: Seqno, change: Change<'_>) {
    match change {
        Change::Put { key, value } => memtable.insert(space, key, seqno, Kind::Put, value),
        Change::Delete { key } => memtable.insert(space, key, seqno, Kind::Delete, b""),
        Change::DeleteRange { start, end } => {
            memtable.delete_range(space, RangeTombstone { start: start.into(), end: end.into(), seqno });
        }
    }
}

/// Positions of the external log must not decrease: a replay from the largest would pass over what came after it.
fn check_lsn(last: u64, lsn: u64) -> Result<()> {
    if lsn == 0 || lsn >= last {
        return Ok(());
    }
    let what = format!("set_lsn of {lsn} after {last}: positions of the external log must not decrease");
    Err(Error::InvalidArgument(what))
}

pub(super) fn no_key_space(space: u32) -> Error {
    Error::InvalidArgument(format!("there is no key space {space} in this database"))
}
