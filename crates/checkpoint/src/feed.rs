//! The way of entries from the shards to the writer threads: chunks in a queue of bounded memory.
//!
//! ```text
//! save (under a shard's lock) -> the sink's chunk -- full --> queue -> writer thread -> written, memory given back
//! ```
//!
//! F1. `save` neither waits nor fails. The bound works elsewhere: at the limit [`Feed::is_full`] is true and the
//!     [`Pressure`] is on; then nobody walks further, and writes wait before they take a lock, until three quarters are
//!     reached. What one command under its locks still hands over may go beyond the limit, and shows in the peak.
//! F2. Memory counts from the moment it is taken (a chunk, a value shared) until its block is written or dropped.
//! F3. After an abort the queue is empty and stays so: sinks drop what they are given.

use crate::chunk::Chunk;
use crate::format::BLOCK_LEN;
use base::KeyspaceId;
use engine::{Entry, EntrySink, SharedBytes, Type, Value};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Values of more bytes than this are shared with the store if it holds them in an allocation of their own; others are
/// copied. Copying 16 KiB takes about a microsecond.
pub(crate) const SHARE_LEN_MIN: usize = 16 << 10;

/// Room for the entry that fills a chunk, so that most chunks never grow.
const CHUNK_SLACK: usize = 2 << 10;

/// Tells the rest of the server that the checkpoint has no room, and that it has again.
pub struct Pressure {
    full: Arc<AtomicBool>,
    on_room: Box<dyn Fn() + Send + Sync>,
}

impl Pressure {
    /// `full` is set while writes are to wait. `on_room` is called after it is cleared, by a writer thread and outside all
    /// locks of this crate: it wakes who waits.
    pub fn new(full: Arc<AtomicBool>, on_room: impl Fn() + Send + Sync + 'static) -> Self {
        Self { full, on_room: Box::new(on_room) }
    }

    /// Nobody to tell.
    pub fn none() -> Self {
        Self::new(Arc::default(), || {})
    }
}

/// How a feed is made.
#[derive(Clone, Copy, Debug)]
pub struct FeedOptions {
    /// Bytes in chunks and shared values at which the walk stops and writes wait.
    pub limit_bytes: u64,
}

impl Default for FeedOptions {
    /// 64 MiB: a quarter of a second of a device that writes 256 MiB/s.
    fn default() -> Self {
        Self { limit_bytes: 64 << 20 }
    }
}

/// Extra memory of a checkpoint, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedMemory {
    /// Now.
    pub now: u64,
    /// The most it was.
    pub peak: u64,
    /// Where writes begin to wait.
    pub limit: u64,
}

/// The queue of one checkpoint. Clones are handles of the same.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Notified when there is a chunk, and when there will be no more.
    ready: Condvar,
    now: AtomicU64,
    peak: AtomicU64,
    limit: u64,
    aborted: AtomicBool,
    pressure: Pressure,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Chunk>,
    /// Sinks not yet dropped: their last chunk is still to come.
    sinks: usize,
    /// No further sink will be made.
    closed: bool,
}

impl Feed {
    /// An empty queue.
    pub fn new(options: FeedOptions, pressure: Pressure) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            ready: Condvar::new(),
            now: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            limit: options.limit_bytes.max(1),
            aborted: AtomicBool::new(false),
            pressure,
        }))
    }

    /// A sink for one shard. Dropping it sends its last chunk. Takes no memory before its first entry.
    pub fn sink(&self) -> Box<dyn EntrySink> {
        self.0.state.lock().sinks += 1;
        Box::new(FeedSink { shared: Arc::clone(&self.0), bytes: Vec::new(), entries: 0, charged: 0 })
    }

    /// Whether the walk is to stop for now.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.0.now.load(Ordering::Relaxed) >= self.0.limit
    }

    /// Whether the checkpoint was given up, by [`Feed::abort`] or by a writer thread that failed.
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Relaxed)
    }

    /// Extra memory of the checkpoint.
    pub fn memory(&self) -> FeedMemory {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        FeedMemory { now: read(&self.0.now), peak: read(&self.0.peak), limit: self.0.limit }
    }

    /// Gives the checkpoint up: the queue is emptied, writer threads end, who waits for room goes on.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Relaxed);
        let queue = std::mem::take(&mut self.0.state.lock().queue);
        self.0.ready.notify_all();
        queue.iter().for_each(|chunk| self.0.discharge(chunk.memory_bytes()));
    }

    /// After this, [`Feed::take`] ends when the last sink is dropped and the queue is empty.
    pub(crate) fn close(&self) {
        self.0.state.lock().closed = true;
        self.0.ready.notify_all();
    }

    /// The next chunk, waiting for one; `None` when there will be no more, or after an abort.
    pub(crate) fn take(&self) -> Option<Chunk> {
        let mut state = self.0.state.lock();
        loop {
            if self.is_aborted() {
                return None;
            }
            if let Some(chunk) = state.queue.pop_front() {
                return Some(chunk);
            }
            if state.closed && state.sinks == 0 {
                return None;
            }
            self.0.ready.wait(&mut state);
        }
    }

    /// Drops a chunk that is written.
    pub(crate) fn release(&self, chunk: Chunk) {
        let bytes = chunk.memory_bytes();
        drop(chunk);
        self.0.discharge(bytes);
    }
}

impl Shared {
    fn charge(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
        if now >= self.limit && !self.aborted.load(Ordering::Relaxed) {
            self.pressure.full.store(true, Ordering::Release);
            // The queue may have drained, or the checkpoint ended, between the two lines above; nobody would clear it.
            self.relieve(self.now.load(Ordering::Acquire));
        }
    }

    fn discharge(&self, bytes: u64) {
        let now = self.now.fetch_sub(bytes, Ordering::AcqRel) - bytes;
        self.relieve(now);
    }

    /// Takes the pressure off when there is room again.
    fn relieve(&self, now: u64) {
        let has_room = now <= self.limit / 4 * 3 || self.aborted.load(Ordering::Relaxed);
        if has_room && self.pressure.full.swap(false, Ordering::AcqRel) {
            (self.pressure.on_room)();
        }
    }

    fn push(&self, chunk: Chunk) {
        let mut state = self.state.lock();
        if self.aborted.load(Ordering::Relaxed) {
            drop(state);
            return self.discharge(chunk.memory_bytes());
        }
        state.queue.push_back(chunk);
        drop(state);
        self.ready.notify_one();
    }
}

/// Collects the entries of one shard.
struct FeedSink {
    shared: Arc<Shared>,
    bytes: Vec<u8>,
    entries: u32,
    /// Bytes counted for the chunk so far.
    charged: u64,
}

impl FeedSink {
    fn save_shared(&mut self, space: KeyspaceId, entry: &Entry<'_>, value: &SharedBytes) {
        let mut bytes = Vec::with_capacity(entry.key.len() + 48);
        cmdlog::record::put_set_head(&mut bytes, space, entry.key, entry.encoding, entry.expire_at, value.len());
        let chunk = Chunk { bytes, tail: Some(SharedBytes::clone(value)), entries: 1 };
        self.shared.charge(chunk.memory_bytes());
        self.shared.push(chunk);
    }

    fn send(&mut self) {
        let (bytes, entries) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.entries));
        let chunk = Chunk { bytes, tail: None, entries };
        self.recharge(chunk.memory_bytes());
        self.charged = 0;
        if entries > 0 {
            self.shared.push(chunk);
        } else {
            self.shared.discharge(chunk.memory_bytes());
        }
    }

    /// Counts what the chunk has grown by.
    fn recharge(&mut self, bytes: u64) {
        if bytes > self.charged {
            self.shared.charge(bytes - self.charged);
            self.charged = bytes;
        }
    }
}

impl EntrySink for FeedSink {
    fn save(&mut self, space: KeyspaceId, entry: &Entry<'_>) {
        if self.shared.aborted.load(Ordering::Relaxed) {
            return;
        }
        // A further type needs a form of its own here and in the loader.
        let Type::String = entry.kind;
        if let Value::Shared(value) = entry.value
            && value.len() > SHARE_LEN_MIN
        {
            return self.save_shared(space, entry, value);
        }
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(BLOCK_LEN + CHUNK_SLACK);
        }
        let out = &mut self.bytes;
        cmdlog::record::put_set_head(out, space, entry.key, entry.encoding, entry.expire_at, entry.value.len());
        out.extend_from_slice(entry.value.bytes());
        self.entries += 1;
        self.recharge(self.bytes.capacity() as u64);
        if self.bytes.len() >= BLOCK_LEN {
            self.send();
        }
    }
}

impl Drop for FeedSink {
    fn drop(&mut self) {
        self.send();
        self.shared.state.lock().sinks -= 1;
        self.shared.ready.notify_all();
    }
}
