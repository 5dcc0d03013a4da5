//! What workers and the log's threads share: the way in of each worker, and the numbers everybody reads.
//!
//! I1. LSNs are given by one atomic addition ([`Shared::end`]); each worker's records come in ascending order.
//! I2. A worker's record is in its ring or in its side queue before the worker appends the next.
//! I3. Whoever is about to sleep says so, then looks once more; whoever changes something looks for sleepers afterwards, a
//!     worker at the end of its turn. Both sides use `SeqCst`, so at least one sees the other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::*, fence};

use parking_lot::{Condvar, Mutex};

use crate::error::LogFailure;
use crate::frame;
use crate::options::{Admission, LogMode, LogOptions, LogWake};
use crate::ring::Ring;
use crate::sleeper::Sleeper;

/// Payloads above this go by reference, past the ring.
pub(crate) const INLINE_MAX: usize = 64 << 10;
/// What admission wants to see free in the ring: one record of the largest inline size.
const ROOM: usize = INLINE_MAX + 64;
/// Bytes by reference that may be outstanding when one more record is admitted.
const SIDE_BYTES_MAX: u64 = 64 << 20;
/// Waiting workers are woken when by-reference bytes are down to this.
const SIDE_BYTES_WAKE: u64 = SIDE_BYTES_MAX / 2;
/// Unwritten bytes at which the flush is woken before its time, unless a quarter of a ring is less.
const WRITE_EARLY_BYTES: u64 = 1 << 20;
/// The smallest ring: several of the largest inline records.
const RING_BYTES_MIN: usize = 4 * INLINE_MAX;

/// A record that went past the ring.
pub(crate) struct SideRecord {
    pub lsn: u64,
    pub payload: Arc<[u8]>,
}

/// Records by reference: those too big for the ring, and those that found it full.
#[derive(Default)]
pub(crate) struct Side {
    /// Records pushed since the beginning; written under the lock.
    pushed: AtomicU64,
    /// The records not released yet.
    records: Mutex<VecDeque<SideRecord>>,
}

impl Side {
    fn push(&self, record: SideRecord) {
        let mut records = self.records.lock();
        records.push_back(record);
        self.pushed.fetch_add(1, Release);
    }

    /// The record with this number, counted from the beginning; `None` if it is not pushed yet.
    pub fn get(&self, number: u64) -> Option<(u64, Arc<[u8]>)> {
        if number >= self.pushed.load(Acquire) {
            return None;
        }
        let records = self.records.lock();
        let first = self.pushed.load(Relaxed) - records.len() as u64;
        let record = records.get(number.checked_sub(first)? as usize)?;
        Some((record.lsn, Arc::clone(&record.payload)))
    }

    /// The number of the first record that is kept.
    pub fn released(&self) -> u64 {
        let records = self.records.lock();
        self.pushed.load(Relaxed) - records.len() as u64
    }

    /// Drops the records that begin before `lsn`; gives the bytes this frees.
    fn release(&self, lsn: u64) -> u64 {
        // Nothing was ever pushed: the usual case, without the lock.
        if self.pushed.load(Acquire) == 0 {
            return 0;
        }
        let mut freed = 0;
        let mut records = self.records.lock();
        while records.front().is_some_and(|record| record.lsn < lsn) {
            freed += records.pop_front().map_or(0, |record| record.payload.len() as u64);
        }
        freed
    }
}

/// One worker's way in.
pub(crate) struct Intake {
    pub ring: Ring,
    pub side: Side,
    /// The worker was told to wait for room.
    waits_for_room: AtomicBool,
    /// The worker wants to know when more is durable.
    waits_for_durable: AtomicBool,
    /// Counts where turns of the worker that append begin and end: odd within one. Written by the worker.
    turn: AtomicU64,
}

impl Intake {
    fn is_in_turn(&self) -> bool {
        !self.turn.load(Relaxed).is_multiple_of(2)
    }
}

/// Values of [`Shared::state`].
pub(crate) mod state {
    pub const HEALTHY: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const DISK_FULL: u8 = 2;
}

pub(crate) struct Shared {
    pub intakes: Vec<Intake>,
    /// The position after everything appended (I1).
    end: AtomicU64,
    /// Everything before was taken by a write that succeeded, into a file that has not failed since. Goes back after
    /// a failure. Written by the flush.
    pub written: AtomicU64,
    /// Everything before is durable. Written by the flush; never goes back.
    pub durable: AtomicU64,
    mode: AtomicU8,
    window_ms: AtomicU64,
    /// Healthy or not; written under `failure`'s lock.
    pub state: AtomicU8,
    pub failure: Mutex<Option<LogFailure>>,
    /// Monotonic time (ns) at or before which the oldest record not durable was appended; 0 if there is none. Written by
    /// the flush.
    pub oldest_ns: AtomicU64,
    /// In `Async`: the oldest unsynced record is older than twice the window.
    pub late: AtomicBool,
    /// Everything before this position is to be synced at once: somebody waits for it in `Log::sync`, or rings fill.
    pub wanted: AtomicU64,
    /// A sync runs. Written by the flush, before and after everything else that a sync changes here.
    pub syncing: AtomicBool,
    /// Unwritten bytes at which the flush is woken before its time.
    pub write_early_bytes: u64,
    /// Bytes not durable at which that is asked for: half a ring, so that the sync is done, on a disk of the usual speed, before
    /// the rest of it is used up. With a quarter there were twice as many syncs, which took a 25th of the processor's time.
    sync_early_bytes: u64,
    /// Payload bytes by reference that are not released.
    side_bytes: AtomicU64,
    /// Times that writes began to wait because syncs were late.
    pub delayed: AtomicU64,
    pub write_sleeper: Sleeper,
    pub sync_sleeper: Sleeper,
    pub watch_sleeper: Sleeper,
    pub wake: Arc<dyn LogWake>,
    /// Threads are to end.
    pub closing: AtomicBool,
    /// Threads in `Log::sync`, who wait for `synced`.
    syncers: AtomicU64,
    syncers_lock: Mutex<()>,
    synced: Condvar,
}

impl Shared {
    pub fn new(options: &LogOptions, first: u64, wake: Arc<dyn LogWake>) -> Self {
        let ring_bytes = (options.ring_bytes / options.workers.max(1)).max(RING_BYTES_MIN);
        // Rounded down, so that all rings together stay within the setting.
        let ring_bytes = 1usize << ring_bytes.ilog2();
        let intakes = (0..options.workers.max(1)).map(|_| Intake {
            ring: Ring::new(ring_bytes),
            side: Side::default(),
            waits_for_room: AtomicBool::new(false),
            waits_for_durable: AtomicBool::new(false),
            turn: AtomicU64::new(0),
        });
        Self {
            intakes: intakes.collect(),
            end: AtomicU64::new(first),
            written: AtomicU64::new(first),
            durable: AtomicU64::new(first),
            mode: AtomicU8::new(options.mode as u8),
            window_ms: AtomicU64::new(options.window_ms.max(1)),
            state: AtomicU8::new(state::HEALTHY),
            failure: Mutex::new(None),
            oldest_ns: AtomicU64::new(0),
            late: AtomicBool::new(false),
            wanted: AtomicU64::new(0),
            syncing: AtomicBool::new(false),
            write_early_bytes: WRITE_EARLY_BYTES.min((ring_bytes / 4) as u64),
            sync_early_bytes: (ring_bytes / 2) as u64,
            side_bytes: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            write_sleeper: Sleeper::default(),
            sync_sleeper: Sleeper::default(),
            watch_sleeper: Sleeper::default(),
            wake,
            closing: AtomicBool::new(false),
            syncers: AtomicU64::new(0),
            syncers_lock: Mutex::new(()),
            synced: Condvar::new(),
        }
    }

    pub fn mode(&self) -> LogMode {
        match self.mode.load(Relaxed) {
            0 => LogMode::Async,
            1 => LogMode::Sync,
            _ => LogMode::WrittenOnly,
        }
    }

    pub fn set_mode(&self, mode: LogMode) {
        self.mode.store(mode as u8, SeqCst);
        self.wake_threads();
    }

    pub fn window_ns(&self) -> u64 {
        self.window_ms.load(Relaxed).saturating_mul(1_000_000)
    }

    pub fn set_window_ms(&self, window_ms: u64) {
        self.window_ms.store(window_ms.max(1), SeqCst);
        self.wake_threads();
    }

    pub fn wake_threads(&self) {
        fence(SeqCst);
        self.write_sleeper.wake();
        self.sync_sleeper.wake();
        self.watch_sleeper.wake();
    }

    pub fn end(&self) -> u64 {
        self.end.load(SeqCst)
    }

    pub fn side_bytes(&self) -> u64 {
        self.side_bytes.load(Relaxed)
    }

    /// Gives out the next so many bytes of the stream (I1).
    pub fn reserve(&self, bytes: u64) -> u64 {
        self.end.fetch_add(bytes, SeqCst)
    }

    // ---- By workers.

    pub fn admit(&self, worker: usize) -> Admission {
        if self.state.load(Relaxed) != state::HEALTHY {
            return Admission::Refused;
        }
        let Some(intake) = self.intakes.get(worker) else { return Admission::Refused };
        if self.has_room(intake) { Admission::Go } else { self.enlist(intake) }
    }

    /// As `admit`, for a change that frees memory and disk: a full disk does not refuse it while there is room.
    pub fn admit_delete(&self, worker: usize) -> Admission {
        if self.state.load(Relaxed) != state::DISK_FULL {
            return self.admit(worker);
        }
        let Some(intake) = self.intakes.get(worker) else { return Admission::Refused };
        // Not `late`: with a full disk everything is.
        if intake.ring.free() >= ROOM { Admission::Go } else { Admission::Refused }
    }

    fn has_room(&self, intake: &Intake) -> bool {
        intake.ring.free() >= ROOM && self.side_bytes.load(Relaxed) <= SIDE_BYTES_MAX && !self.late.load(Relaxed)
    }

    fn enlist(&self, intake: &Intake) -> Admission {
        // Said first, then looked at once more (I3).
        intake.waits_for_room.store(true, SeqCst);
        fence(SeqCst);
        if self.state.load(SeqCst) != state::HEALTHY {
            return Admission::Refused;
        }
        if !self.has_room(intake) {
            return Admission::Wait;
        }
        intake.waits_for_room.store(false, SeqCst);
        Admission::Go
    }

    /// Appends a record; gives the position after it.
    pub fn append(&self, worker: usize, payload: &[u8]) -> u64 {
        let end = self.append_in_turn(worker, payload);
        self.end_turn(worker);
        end
    }

    /// As `append`, by a worker that calls `end_turn` soon: a sync waits for that, and so serves all of the turn.
    pub fn append_in_turn(&self, worker: usize, payload: &[u8]) -> u64 {
        let intake = &self.intakes[worker];
        let turn = intake.turn.load(Relaxed);
        if turn.is_multiple_of(2) {
            intake.turn.store(turn + 1, Relaxed);
        }
        let bytes = frame::frame_bytes(payload.len());
        let lsn = self.reserve(bytes);
        if payload.len() > INLINE_MAX || !intake.ring.push(lsn, payload) {
            self.side_bytes.fetch_add(payload.len() as u64, Relaxed);
            intake.side.push(SideRecord { lsn, payload: payload.into() });
        }
        let end = lsn + bytes;
        // Without a fence, which would wait until all of the record has left the processor: who falls asleep in this moment may not
        // see it, but sees the next one, and the end of the turn looks again.
        self.hurry(end);
        end
    }

    /// Wakes those who write and sync before their time if too much waits for them, as of this position.
    fn hurry(&self, end: u64) {
        if end.saturating_sub(self.written.load(Relaxed)) >= self.write_early_bytes {
            self.write_sleeper.wake();
        }
        let durable = self.durable.load(Relaxed);
        if end.saturating_sub(durable) >= self.sync_early_bytes && self.wanted.load(Relaxed) <= durable {
            self.sync_early(end);
        }
    }

    /// Whether a sync waits for the end of the worker's turn.
    pub fn puts_off_sync(&self, worker: usize) -> bool {
        self.mode() == LogMode::Sync && self.intakes.get(worker).is_some_and(Intake::is_in_turn)
    }

    /// What the worker has appended in its turn is complete: a write may begin, and in `Sync` mode a sync.
    pub fn end_turn(&self, worker: usize) {
        let Some(intake) = self.intakes.get(worker) else { return };
        let turn = intake.turn.load(Relaxed);
        if !turn.is_multiple_of(2) {
            intake.turn.store(turn + 1, SeqCst);
            // All records of the turn are published; now look for sleepers (I3).
            fence(SeqCst);
            match self.mode() {
                LogMode::Sync => self.sync_sleeper.wake_if_idle(),
                LogMode::Async | LogMode::WrittenOnly => self.write_sleeper.wake_if_idle(),
            }
            self.hurry(self.end.load(Relaxed));
        }
    }

    /// The workers in the middle of a turn that has appended, each with the number of its turn.
    pub fn open_turns(&self) -> Vec<(usize, u64)> {
        let turns = self.intakes.iter().map(|intake| intake.turn.load(SeqCst)).enumerate();
        turns.filter(|(_, turn)| !turn.is_multiple_of(2)).collect()
    }

    /// Whether all of these turns have ended.
    pub fn have_ended(&self, turns: &[(usize, u64)]) -> bool {
        turns.iter().all(|(worker, turn)| self.intakes[*worker].turn.load(SeqCst) != *turn)
    }

    /// Has the log synced before its time, since rings are given back only when their records are durable: who waited for
    /// half a window with a full ring would write one ring in that time and no more.
    #[cold]
    fn sync_early(&self, end: u64) {
        if self.mode() == LogMode::Async {
            self.wanted.fetch_max(end, SeqCst);
            fence(SeqCst);
            self.sync_sleeper.wake();
        }
    }

    pub fn wait_for(&self, worker: usize) {
        if let Some(intake) = self.intakes.get(worker) {
            intake.waits_for_durable.store(true, SeqCst);
            fence(SeqCst);
        }
        // Whoever waits has nothing more to append; but the end of a sync wakes the worker (it has said that it waits before it
        // looks here), which then has replies to send, and clients who write again.
        if !self.syncing.load(SeqCst) {
            self.end_turn(worker);
        }
    }

    // ---- By the flush.

    /// Releases everything before these positions of the rings and before `lsn` of the side queues.
    pub fn release(&self, rings: &[u64], lsn: u64) {
        let mut freed = 0;
        for (intake, at) in self.intakes.iter().zip(rings) {
            intake.ring.release(*at);
            freed += intake.side.release(lsn);
        }
        if freed > 0 {
            self.side_bytes.fetch_sub(freed, Relaxed);
        }
        self.wake_for_room();
        if self.intakes.iter().any(|intake| intake.waits_for_room.load(Relaxed)) {
            // It was not enough, and who waits appends nothing that would ask for the next sync.
            self.sync_early(self.end());
        }
    }

    /// Wakes the workers that wait for room and have plenty of it now: half the ring, so that a worker does not sleep
    /// and wake for every record while the disk is the slower one.
    pub fn wake_for_room(&self) {
        fence(SeqCst);
        let healthy = self.state.load(Relaxed) == state::HEALTHY;
        let general = !self.late.load(Relaxed) && self.side_bytes() <= SIDE_BYTES_WAKE;
        for (worker, intake) in self.intakes.iter().enumerate() {
            let plenty = general && intake.ring.free_seen_by_flush() >= intake.ring.capacity() / 2;
            // While the log has failed nobody waits for room: the answer is another.
            if (plenty || !healthy) && intake.waits_for_room.load(Relaxed) && intake.waits_for_room.swap(false, SeqCst)
            {
                self.wake.wake(worker);
            }
        }
    }

    /// More is durable: says so, and wakes those who wait for it.
    pub fn set_durable(&self, lsn: u64) {
        self.durable.fetch_max(lsn, SeqCst);
        fence(SeqCst);
        for (worker, intake) in self.intakes.iter().enumerate() {
            if intake.waits_for_durable.load(Relaxed) && intake.waits_for_durable.swap(false, SeqCst) {
                self.wake.wake(worker);
            }
        }
        self.wake_syncers();
    }

    /// Something happened that may end a [`wait_until`](Self::wait_until).
    pub fn wake_syncers(&self) {
        fence(SeqCst);
        if self.syncers.load(SeqCst) > 0 {
            drop(self.syncers_lock.lock());
            self.synced.notify_all();
        }
    }

    /// Blocks the thread until `over` says so; it is asked again after each sync and each failure.
    pub fn wait_until(&self, over: impl Fn() -> bool) {
        self.syncers.fetch_add(1, SeqCst);
        fence(SeqCst);
        let mut lock = self.syncers_lock.lock();
        while !over() {
            self.synced.wait(&mut lock);
        }
        drop(lock);
        self.syncers.fetch_sub(1, SeqCst);
    }

    /// Whether the oldest unsynced record is too old, as of now.
    pub fn watch(&self, now_ns: u64) {
        let oldest = self.oldest_ns.load(SeqCst);
        let bound = self.window_ns().saturating_mul(2);
        let late = self.mode() == LogMode::Async && oldest != 0 && now_ns.saturating_sub(oldest) > bound;
        // Nearly always the same: a load, and no line taken from others.
        if late != self.late.load(SeqCst) && late != self.late.swap(late, SeqCst) {
            if late {
                self.delayed.fetch_add(1, Relaxed);
            } else {
                self.wake_for_room();
            }
        }
    }
}
