//! What workers and the log's threads share: the stream in memory, the records outside it, and the common counters.
//!
//! I1. One atomic addition assigns an LSN ([`Stream::reserve`]). A record's bytes are in place before they count as
//!     published (S2 in `stream`).
//! I2. A record without a place in the stream's memory is in [`Side`] before it counts as published.
//! I3. A thread announces that it is about to sleep, then checks once more. A thread that changes something checks for
//!     sleepers afterwards; a worker does so at the end of its turn. Both use `SeqCst`, so at least one sees the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::*, fence};

use base::HistoryId;
use engine::SharedBytes;
use parking_lot::{Condvar, Mutex};

use crate::error::LogFailure;
use crate::frame::{self, HEAD_BYTES_MAX, Kind};
use crate::options::{Admission, LogOptions, LogWake};
use crate::record::Payload;
use crate::sleeper::Sleeper;
use crate::stream::{Room, Stream, StreamReader};
use crate::timing::{LogMode, LogTiming, TimingReader};

/// Payloads up to this size always go into the stream's memory; larger ones only if that memory is large.
const INLINE_MAX_LEAST: usize = 64 << 10;
/// Payloads above this size always go by reference: a worker copies and hashes an inline payload under locks.
const INLINE_MAX_MOST: usize = 1 << 20;
/// Limit of by-reference bytes that are not released. One more record is admitted below it.
const SIDE_BYTES_MAX: u64 = 64 << 20;
/// The log wakes waiting workers when by-reference bytes fall to this.
const SIDE_BYTES_WAKE: u64 = SIDE_BYTES_MAX / 2;
/// Unwritten bytes that wake the flush early, unless a quarter of the memory is less.
const WRITE_EARLY_BYTES: u64 = 2 << 20;
/// The least memory for each worker: several of the largest inline records.
const WORKER_BYTES_MIN: usize = 4 * INLINE_MAX_LEAST;

/// A record outside the stream's memory: a head, a shared part, and a tail. Usually the head holds everything.
pub(crate) struct SideRecord {
    head: Box<[u8]>,
    shared: Option<SharedBytes>,
    tail: Box<[u8]>,
    kind: Kind,
}

impl SideRecord {
    /// A copy of these bytes.
    fn of(kind: Kind, payload: &[u8]) -> Self {
        Self { head: payload.into(), shared: None, tail: Box::default(), kind }
    }

    /// The kind of its frame.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The parts of its payload, in order.
    pub fn parts(&self) -> [&[u8]; 3] {
        [&self.head, self.shared.as_ref().map_or(&[], |shared| shared.as_slice()), &self.tail]
    }

    /// Bytes of its payload.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// Bytes of its frame.
    pub fn frame_bytes(&self) -> u64 {
        frame::frame_bytes(self.len())
    }
}

/// Records by reference, by position: those too large for the ring, and those that found it full.
#[derive(Default)]
pub(crate) struct Side {
    /// Their number; written under the lock.
    count: AtomicU64,
    records: Mutex<BTreeMap<u64, Arc<SideRecord>>>,
}

impl Side {
    fn push(&self, lsn: u64, record: SideRecord) {
        let mut records = self.records.lock();
        records.insert(lsn, Arc::new(record));
        self.count.store(records.len() as u64, Release);
    }

    /// The first record that begins at or beyond a position, with its position. Records before the published position
    /// are included (I2).
    pub fn first_from(&self, lsn: u64) -> Option<(u64, Arc<SideRecord>)> {
        // The usual case, without taking the lock.
        if self.count.load(Acquire) == 0 {
            return None;
        }
        self.records.lock().range(lsn..).next().map(|(at, record)| (*at, Arc::clone(record)))
    }

    /// Drops the records that begin before `lsn` and returns the payload bytes freed.
    fn release(&self, lsn: u64) -> u64 {
        if self.count.load(Acquire) == 0 {
            return 0;
        }
        let mut records = self.records.lock();
        let kept = records.split_off(&lsn);
        let released = std::mem::replace(&mut *records, kept);
        self.count.store(records.len() as u64, Release);
        drop(records);
        released.values().map(|record| record.len() as u64).sum()
    }
}

/// The state of one worker.
#[derive(Default)]
pub(crate) struct Intake {
    /// The worker waits for room.
    waits_for_room: AtomicBool,
    /// The worker waits until more is durable.
    waits_for_durable: AtomicBool,
    /// Counts the beginnings and ends of the worker's turns that append: odd within a turn. Written by the worker.
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
    pub stream: Arc<Stream>,
    pub side: Side,
    /// The history of the records.
    history: HistoryId,
    /// Payloads above this go by reference.
    inline_max: usize,
    /// Free bytes that admission requires: a record of the largest inline size for each worker, since all may be
    /// admitted at once.
    room_bytes: u64,
    /// A write into a file that has not failed since has taken everything before this position. Goes back after a
    /// failure. Written by the flush.
    pub written: AtomicU64,
    /// Everything before is durable. Written by the flush; never goes back.
    pub durable: AtomicU64,
    timing: Arc<LogTiming>,
    /// Healthy or failed; written under `failure`'s lock.
    pub state: AtomicU8,
    pub failure: Mutex<Option<LogFailure>>,
    /// Monotonic time (ns) at or before which the oldest record that is not durable was appended; 0 if there is none.
    /// Written by the flush.
    pub oldest_ns: AtomicU64,
    /// In `Async`: the oldest unsynced record is older than twice the window.
    pub late: AtomicBool,
    /// Everything before this position must be synced at once: a thread waits for it in `Log::sync`, or memory is
    /// filling up.
    pub wanted: AtomicU64,
    /// A sync is running. Written by the flush, before and after everything else that a sync changes here.
    pub syncing: AtomicBool,
    /// Unwritten bytes that wake the flush early.
    pub write_early_bytes: u64,
    /// Bytes that may be not durable before an early sync is requested. Half of the memory, so that a disk of usual
    /// speed ends the sync before the other half is used. A quarter caused twice as many syncs, at 4 % of the CPU time.
    sync_early_bytes: u64,
    /// Payload bytes by reference that are not released.
    side_bytes: AtomicU64,
    /// Times that writes began to wait because syncs were late.
    pub delayed: AtomicU64,
    pub write_sleeper: Sleeper,
    pub sync_sleeper: Sleeper,
    pub watch_sleeper: Sleeper,
    pub wake: Arc<dyn LogWake>,
    /// The threads must end.
    pub closing: AtomicBool,
    /// Threads in `Log::sync` that wait for `synced`.
    syncers: AtomicU64,
    syncers_lock: Mutex<()>,
    synced: Condvar,
}

impl Shared {
    /// Creates the shared state for a log of this history that begins at `first`, and the only reader of its stream.
    pub fn new(options: &LogOptions, history: HistoryId, first: u64, wake: Arc<dyn LogWake>) -> (Self, StreamReader) {
        let workers = options.workers.max(1);
        let memory = options.ring_bytes.max(workers * WORKER_BYTES_MIN);
        // Rounded down to stay within the setting, unless the minimum is larger.
        let memory = (1usize << memory.ilog2()).max(workers * WORKER_BYTES_MIN);
        let (stream, reader) = Stream::new(memory, workers + 1, first);
        let inline_max = (memory / workers / 8).clamp(INLINE_MAX_LEAST, INLINE_MAX_MOST);
        let shared = Self {
            intakes: (0..workers).map(|_| Intake::default()).collect(),
            inline_max,
            room_bytes: (workers * (inline_max + HEAD_BYTES_MAX)) as u64,
            write_early_bytes: WRITE_EARLY_BYTES.min(stream.capacity() / 4),
            sync_early_bytes: stream.capacity() / 2,
            stream,
            side: Side::default(),
            history,
            written: AtomicU64::new(first),
            durable: AtomicU64::new(first),
            timing: Arc::clone(&options.timing),
            state: AtomicU8::new(state::HEALTHY),
            failure: Mutex::new(None),
            oldest_ns: AtomicU64::new(0),
            late: AtomicBool::new(false),
            wanted: AtomicU64::new(0),
            syncing: AtomicBool::new(false),
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
        };
        (shared, reader)
    }

    pub fn mode(&self) -> LogMode {
        self.timing.mode()
    }

    /// The current mode and window.
    pub fn timing(&self) -> &LogTiming {
        &self.timing
    }

    pub fn window_ns(&self) -> u64 {
        self.timing.window_ms().saturating_mul(1_000_000)
    }

    pub fn wake_threads(&self) {
        fence(SeqCst);
        self.write_sleeper.wake();
        self.sync_sleeper.wake();
        self.watch_sleeper.wake();
    }

    pub fn end(&self) -> u64 {
        self.stream.end()
    }

    pub fn side_bytes(&self) -> u64 {
        self.side_bytes.load(Relaxed)
    }

    // ---- By workers.

    pub fn admit(&self, worker: usize) -> Admission {
        if self.state.load(Relaxed) != state::HEALTHY {
            return Admission::Refused;
        }
        let Some(intake) = self.intakes.get(worker) else { return Admission::Refused };
        if self.has_room() { Admission::Go } else { self.enlist(intake) }
    }

    /// As `admit`, for a change that frees memory and disk. A full disk does not refuse it while memory has room.
    pub fn admit_delete(&self, worker: usize) -> Admission {
        if self.state.load(Relaxed) != state::DISK_FULL {
            return self.admit(worker);
        }
        // Ignores `late`: on a full disk it is always set.
        if self.stream.free() >= self.room_bytes { Admission::Go } else { Admission::Refused }
    }

    fn has_room(&self) -> bool {
        self.stream.free() >= self.room_bytes
            && self.side_bytes.load(Relaxed) <= SIDE_BYTES_MAX
            && !self.late.load(Relaxed)
    }

    fn enlist(&self, intake: &Intake) -> Admission {
        // Announced first, then checked once more (I3).
        intake.waits_for_room.store(true, SeqCst);
        fence(SeqCst);
        if self.state.load(SeqCst) != state::HEALTHY {
            return Admission::Refused;
        }
        if !self.has_room() {
            return Admission::Wait;
        }
        intake.waits_for_room.store(false, SeqCst);
        Admission::Go
    }

    /// Appends a record and returns the position after it.
    pub fn append(&self, worker: usize, payload: &[u8]) -> u64 {
        let end = self.append_in_turn(worker, payload);
        self.end_turn(worker);
        end
    }

    /// As `append`, for a worker that calls `end_turn` soon. A sync waits for that call, and so covers the whole turn.
    pub fn append_in_turn(&self, worker: usize, payload: &[u8]) -> u64 {
        self.begin_append(worker);
        let end = self.put(worker, Kind::Record, payload);
        // No fence here: it would wait until the whole record has left the processor. A thread that falls asleep at
        // this moment may miss this record, but not the next one, and the end of the turn checks again.
        self.hurry(end);
        end
    }

    /// As `append_in_turn`, without copying the shared part.
    pub fn append_shared_in_turn(&self, worker: usize, payload: &Payload<'_>) -> u64 {
        let (shared, tail) = payload.shared.map(|(shared, tail)| (shared.clone(), tail.into())).unzip();
        let record =
            SideRecord { head: payload.head.into(), shared, tail: tail.unwrap_or_default(), kind: Kind::Record };
        self.begin_append(worker);
        let bytes = record.frame_bytes();
        let room = self.stream.reserve(worker, bytes);
        let end = room.lsn() + bytes;
        self.put_aside(room, record);
        self.hurry(end);
        end
    }

    /// Begins a turn of the worker.
    #[inline]
    fn begin_append(&self, worker: usize) {
        let turn = &self.intakes[worker].turn;
        let number = turn.load(Relaxed);
        if number.is_multiple_of(2) {
            turn.store(number + 1, Relaxed);
        }
    }

    /// Puts a frame at the end of the stream and returns the position after it. The flush is the last producer.
    #[inline]
    fn put(&self, producer: usize, kind: Kind, payload: &[u8]) -> u64 {
        let bytes = frame::frame_bytes(payload.len());
        let mut room = self.stream.reserve(producer, bytes);
        let lsn = room.lsn();
        if room.fits() && payload.len() <= self.inline_max {
            let mut head = [0; HEAD_BYTES_MAX];
            let head_bytes = frame::begin(&mut head, kind, payload.len());
            frame::seal(&mut head[..head_bytes], &self.history, lsn, &[payload]);
            room.fill(0, &head[..head_bytes]);
            room.fill(head_bytes, payload);
        } else {
            self.put_aside(room, SideRecord::of(kind, payload));
        }
        lsn + bytes
    }

    /// Keeps a record outside the stream's memory, before it counts as published (I2). The flush computes its checksum:
    /// the record may be long, and the caller holds shard locks.
    fn put_aside(&self, room: Room<'_>, record: SideRecord) {
        self.side_bytes.fetch_add(record.len() as u64, Relaxed);
        self.side.push(room.lsn(), record);
    }

    /// Puts one of the log's own frames at the end of the stream and returns its position.
    pub fn put_mark(&self, kind: Kind, payload: &[u8]) -> u64 {
        self.put(self.intakes.len(), kind, payload) - frame::frame_bytes(payload.len())
    }

    /// Wakes the write and sync threads early if too much waits for them, as of this position.
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

    /// Completes the worker's turn: a write may begin and, in `Sync` mode, a sync.
    pub fn end_turn(&self, worker: usize) {
        let Some(intake) = self.intakes.get(worker) else { return };
        let turn = intake.turn.load(Relaxed);
        if !turn.is_multiple_of(2) {
            intake.turn.store(turn + 1, SeqCst);
            // All records of the turn are published: now check for sleepers (I3).
            fence(SeqCst);
            match self.mode() {
                LogMode::Sync => self.sync_sleeper.wake_if_idle(),
                LogMode::Async | LogMode::WrittenOnly => self.write_sleeper.wake_if_idle(),
            }
            self.hurry(self.end());
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

    /// Requests an early sync, because only durable records release their memory. Without it, a worker that finds the
    /// memory full would wait for half a window, and no more than one memory's worth could be written in that time.
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
        // A waiting worker has nothing more to append. But the end of a running sync wakes it, because the worker
        // announced its wait before this check. It then sends replies, and clients write again.
        if !self.syncing.load(SeqCst) {
            self.end_turn(worker);
        }
    }

    // ---- By the flush.

    /// The reader has released everything before `lsn`. Drops the records outside the ring up to there, and wakes
    /// workers that wait for room.
    pub fn released(&self, lsn: u64) {
        let freed = self.side.release(lsn);
        if freed > 0 {
            self.side_bytes.fetch_sub(freed, Relaxed);
        }
        self.wake_for_room();
        if self.intakes.iter().any(|intake| intake.waits_for_room.load(Relaxed)) {
            // The release was not enough, and a waiting worker appends nothing that would request the next sync.
            self.sync_early(self.end());
        }
    }

    /// Wakes the workers that wait for room once half of the memory is free. A lower threshold would make a worker
    /// sleep and wake for every record while the disk is slower.
    pub fn wake_for_room(&self) {
        fence(SeqCst);
        let healthy = self.state.load(Relaxed) == state::HEALTHY;
        let plenty = !self.late.load(Relaxed)
            && self.side_bytes() <= SIDE_BYTES_WAKE
            && self.stream.free() >= self.stream.capacity() / 2;
        for (worker, intake) in self.intakes.iter().enumerate() {
            // After a failure no worker waits for room: admission answers `Refused`.
            if (plenty || !healthy) && intake.waits_for_room.load(Relaxed) && intake.waits_for_room.swap(false, SeqCst)
            {
                self.wake.wake(worker);
            }
        }
    }

    /// Publishes a new durable position and wakes the workers and threads that wait for it.
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

    /// Wakes the threads in [`wait_until`](Self::wait_until), whose condition may now hold.
    pub fn wake_syncers(&self) {
        fence(SeqCst);
        if self.syncers.load(SeqCst) > 0 {
            drop(self.syncers_lock.lock());
            self.synced.notify_all();
        }
    }

    /// Blocks the thread until `over` returns true; checked again after each sync and each failure.
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

    /// Updates whether the oldest unsynced record is too old.
    pub fn watch(&self, now_ns: u64) {
        let oldest = self.oldest_ns.load(SeqCst);
        let bound = self.window_ns().saturating_mul(2);
        let late = self.mode() == LogMode::Async && oldest != 0 && now_ns.saturating_sub(oldest) > bound;
        // Nearly always unchanged: a load, without taking the cache line from other threads.
        if late != self.late.load(SeqCst) && late != self.late.swap(late, SeqCst) {
            if late {
                self.delayed.fetch_add(1, Relaxed);
            } else {
                self.wake_for_room();
            }
        }
    }
}

impl TimingReader for Shared {
    fn timing_changed(&self) {
        self.wake_threads();
    }
}
