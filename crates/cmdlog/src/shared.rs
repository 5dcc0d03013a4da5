//! What workers and the log's threads share: the stream in memory, what lies beside it, and the numbers everybody reads.
//!
//! I1. LSNs are given by one atomic addition ([`Stream::reserve`]), a record's bytes are in place before they count as
//!     published (S2 in `stream`).
//! I2. A record that has no place in the stream's memory is in [`Side`] before it counts as published.
//! I3. Whoever is about to sleep says so, then looks once more; whoever changes something looks for sleepers afterwards, a
//!     worker at the end of its turn. Both sides use `SeqCst`, so at least one sees the other.

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

/// Payloads up to this size always go into the stream's memory, bigger ones if that is large.
const INLINE_MAX_LEAST: usize = 64 << 10;
/// Bigger payloads go by reference, whatever the memory: a worker copies, and computes a checksum, under locks.
const INLINE_MAX_MOST: usize = 1 << 20;
/// Bytes by reference that may be outstanding when one more record is admitted.
const SIDE_BYTES_MAX: u64 = 64 << 20;
/// Waiting workers are woken when by-reference bytes are down to this.
const SIDE_BYTES_WAKE: u64 = SIDE_BYTES_MAX / 2;
/// Unwritten bytes at which the flush is woken before its time, unless a quarter of the memory is less.
const WRITE_EARLY_BYTES: u64 = 2 << 20;
/// The least memory for each worker: several of the largest inline records.
const WORKER_BYTES_MIN: usize = 4 * INLINE_MAX_LEAST;

/// A record that has no place in the stream's memory: a head, a part that others share, and a tail. Mostly all is head.
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

    /// What kind of frame it is to be.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The parts of its payload, one after the other.
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

/// Records by reference, by position: those too big for the memory, and those that found it full.
#[derive(Default)]
pub(crate) struct Side {
    /// How many there are; written under the lock.
    count: AtomicU64,
    records: Mutex<BTreeMap<u64, Arc<SideRecord>>>,
}

impl Side {
    fn push(&self, lsn: u64, record: SideRecord) {
        let mut records = self.records.lock();
        records.insert(lsn, Arc::new(record));
        self.count.store(records.len() as u64, Release);
    }

    /// The first record that begins at or beyond a position, and where. Those before the published position are known (I2).
    pub fn first_from(&self, lsn: u64) -> Option<(u64, Arc<SideRecord>)> {
        // The usual case, without the lock.
        if self.count.load(Acquire) == 0 {
            return None;
        }
        self.records.lock().range(lsn..).next().map(|(at, record)| (*at, Arc::clone(record)))
    }

    /// Drops the records that begin before `lsn`; gives the payload bytes this frees.
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

/// What is known of one worker.
#[derive(Default)]
pub(crate) struct Intake {
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
    pub stream: Arc<Stream>,
    pub side: Side,
    /// Which history the records are of.
    history: HistoryId,
    /// Payloads above this go by reference.
    inline_max: usize,
    /// What admission wants to see free: a record of the largest inline size for each worker, since all may be admitted at once.
    room_bytes: u64,
    /// Everything before was taken by a write that succeeded, into a file that has not failed since. Goes back after
    /// a failure. Written by the flush.
    pub written: AtomicU64,
    /// Everything before is durable. Written by the flush; never goes back.
    pub durable: AtomicU64,
    timing: Arc<LogTiming>,
    /// Healthy or not; written under `failure`'s lock.
    pub state: AtomicU8,
    pub failure: Mutex<Option<LogFailure>>,
    /// Monotonic time (ns) at or before which the oldest record not durable was appended; 0 if there is none. Written by
    /// the flush.
    pub oldest_ns: AtomicU64,
    /// In `Async`: the oldest unsynced record is older than twice the window.
    pub late: AtomicBool,
    /// Everything before this position is to be synced at once: somebody waits for it in `Log::sync`, or the memory fills.
    pub wanted: AtomicU64,
    /// A sync runs. Written by the flush, before and after everything else that a sync changes here.
    pub syncing: AtomicBool,
    /// Unwritten bytes at which the flush is woken before its time.
    pub write_early_bytes: u64,
    /// Bytes not durable at which that is asked for: half of the memory, so that the sync is done, on a disk of the usual speed, before
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
    /// What a log of this history, that begins at `first`, shares; and the one reader of its stream.
    pub fn new(options: &LogOptions, history: HistoryId, first: u64, wake: Arc<dyn LogWake>) -> (Self, StreamReader) {
        let workers = options.workers.max(1);
        let memory = options.ring_bytes.max(workers * WORKER_BYTES_MIN);
        // Rounded down, to stay within the setting, unless that is the least.
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

    /// The mode and the window in force.
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

    /// As `admit`, for a change that frees memory and disk: a full disk does not refuse it while there is room.
    pub fn admit_delete(&self, worker: usize) -> Admission {
        if self.state.load(Relaxed) != state::DISK_FULL {
            return self.admit(worker);
        }
        // Not `late`: with a full disk everything is.
        if self.stream.free() >= self.room_bytes { Admission::Go } else { Admission::Refused }
    }

    fn has_room(&self) -> bool {
        self.stream.free() >= self.room_bytes
            && self.side_bytes.load(Relaxed) <= SIDE_BYTES_MAX
            && !self.late.load(Relaxed)
    }

    fn enlist(&self, intake: &Intake) -> Admission {
        // Said first, then looked at once more (I3).
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

    /// Appends a record; gives the position after it.
    pub fn append(&self, worker: usize, payload: &[u8]) -> u64 {
        let end = self.append_in_turn(worker, payload);
        self.end_turn(worker);
        end
    }

    /// As `append`, by a worker that calls `end_turn` soon: a sync waits for that, and so serves all of the turn.
    pub fn append_in_turn(&self, worker: usize, payload: &[u8]) -> u64 {
        self.begin_append(worker);
        let end = self.put(worker, Kind::Record, payload);
        // Without a fence, which would wait until all of the record has left the processor: who falls asleep in this moment may not
        // see it, but sees the next one, and the end of the turn looks again.
        self.hurry(end);
        end
    }

    /// As `append_in_turn`, without a copy of the part that is shared.
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

    /// A turn of the worker has begun.
    #[inline]
    fn begin_append(&self, worker: usize) {
        let turn = &self.intakes[worker].turn;
        let number = turn.load(Relaxed);
        if number.is_multiple_of(2) {
            turn.store(number + 1, Relaxed);
        }
    }

    /// Puts a frame at the end of the stream; gives the position after it. The last producer is the flush.
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

    /// Keeps a record beside the stream's memory, from before it counts as published (I2). Its checksum is left to the flush,
    /// since it may be long, and shards are locked.
    fn put_aside(&self, room: Room<'_>, record: SideRecord) {
        self.side_bytes.fetch_add(record.len() as u64, Relaxed);
        self.side.push(room.lsn(), record);
    }

    /// Puts one of the log's own frames at the end of the stream; gives where it begins.
    pub fn put_mark(&self, kind: Kind, payload: &[u8]) -> u64 {
        self.put(self.intakes.len(), kind, payload) - frame::frame_bytes(payload.len())
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

    /// Has the log synced before its time, since memory is given back only when its records are durable: who waited for
    /// half a window with all of it used would write that much in that time and no more.
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

    /// The reader has released everything before `lsn`: what lies beside goes too, and those who wait for room are woken.
    pub fn released(&self, lsn: u64) {
        let freed = self.side.release(lsn);
        if freed > 0 {
            self.side_bytes.fetch_sub(freed, Relaxed);
        }
        self.wake_for_room();
        if self.intakes.iter().any(|intake| intake.waits_for_room.load(Relaxed)) {
            // It was not enough, and who waits appends nothing that would ask for the next sync.
            self.sync_early(self.end());
        }
    }

    /// Wakes the workers that wait for room when there is plenty of it: half of the memory, so that a worker does not sleep
    /// and wake for every record while the disk is the slower one.
    pub fn wake_for_room(&self) {
        fence(SeqCst);
        let healthy = self.state.load(Relaxed) == state::HEALTHY;
        let plenty = !self.late.load(Relaxed)
            && self.side_bytes() <= SIDE_BYTES_WAKE
            && self.stream.free() >= self.stream.capacity() / 2;
        for (worker, intake) in self.intakes.iter().enumerate() {
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

impl TimingReader for Shared {
    fn timing_changed(&self) {
        self.wake_threads();
    }
}
