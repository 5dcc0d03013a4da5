//! The queue of chunks from the shards to the writer threads, with bounded memory.
//!
//! ```text
//! save (under a shard's lock) -> the sink's chunk -- full --> queue -> writer thread -> written, memory given back
//! ```
//!
//! F1. `save` neither waits nor fails. The limit acts elsewhere: see [`engine::Backlog`]. What one command still saves
//!     under its locks may exceed the limit, and shows in the peak.
//! F2. Memory counts from the moment it is taken (a chunk, a shared value) until its block is written or dropped.
//! F3. After an abort the queue stays empty: sinks drop what they receive.
//! F4. The set is complete when every sink was finished. A sink dropped before that aborts the feed, so that an aborted
//!     walk or a closed store never looks like a complete set.

use crate::chunk::{Chunk, Tree};
use crate::format::BLOCK_LEN;
use base::KeyspaceId;
use cmdlog::record::StoreHead;
use engine::{Backlog, Encoding, Entry, EntrySink, SharedBig, SharedBytes, Value};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Values above this size are shared with the store if they have their own allocation; others are copied. Copying 16
/// KiB takes about a microsecond.
pub(crate) const SHARE_LEN_MIN: usize = 16 << 10;

/// Room for the entry that fills a chunk, so that most chunks never grow.
const CHUNK_SLACK: usize = 2 << 10;

/// Settings of a feed.
#[derive(Clone, Copy, Debug)]
pub struct FeedOptions {
    /// Bytes of chunks and shared values at which writes wait; the walk stops at half of them. At least four times what
    /// the chunks being filled take (66 KiB per shard), whatever this says.
    pub limit_bytes: u64,
}

impl Default for FeedOptions {
    /// 64 MiB: a quarter of a second of a device that writes 256 MiB/s.
    fn default() -> Self {
        Self { limit_bytes: 64 << 20 }
    }
}

/// The queue of one checkpoint. Clones are handles of the same queue.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Notified when a chunk arrives, and when no more will.
    ready: Condvar,
    backlog: Arc<Backlog>,
    limit: u64,
    aborted: AtomicBool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Chunk>,
    /// Sinks not dropped yet: their last chunk is still to come.
    sinks: usize,
    /// Sinks created so far.
    sinks_made: u64,
    /// No further sink will be created.
    closed: bool,
}

impl Feed {
    /// An empty queue whose memory counts in `backlog`.
    pub fn new(options: FeedOptions, backlog: Arc<Backlog>) -> Self {
        backlog.begin(options.limit_bytes);
        Self(Arc::new(Shared {
            state: Mutex::default(),
            ready: Condvar::new(),
            backlog,
            limit: options.limit_bytes,
            aborted: AtomicBool::new(false),
        }))
    }

    /// Sets the memory of the files' buffers, which is reported together with the queue's.
    pub(crate) fn set_buffers(&self, bytes: u64) {
        self.0.backlog.set_buffers(bytes);
    }

    /// A sink for one shard. The shard finishes it, and dropping it sends the last chunk. Takes no memory before its
    /// first entry.
    pub fn sink(&self) -> Box<dyn EntrySink> {
        let mut state = self.0.state.lock();
        state.sinks += 1;
        state.sinks_made += 1;
        // A chunk is written only when it is full, so the limit must leave room for one chunk per shard.
        self.0.backlog.set_limit(self.0.limit.max(4 * state.sinks_made * (BLOCK_LEN + CHUNK_SLACK) as u64));
        drop(state);
        Box::new(FeedSink {
            shared: Arc::clone(&self.0),
            bytes: Vec::new(),
            entries: 0,
            charged: 0,
            is_walking: false,
            is_finished: false,
        })
    }

    /// Whether the checkpoint was aborted, by [`Feed::abort`] or by a failed writer thread.
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Relaxed)
    }

    /// Aborts the checkpoint: empties the queue, ends the writer threads, and lets threads that wait for room continue.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// After this, [`Feed::take`] ends when the last sink is dropped and the queue is empty.
    pub(crate) fn close(&self) {
        self.0.state.lock().closed = true;
        self.0.ready.notify_all();
    }

    /// Waits for the next chunk and returns it; `None` when there will be no more, or after an abort.
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

    /// Drops a written chunk.
    pub(crate) fn release(&self, chunk: Chunk) {
        let (bytes, walked) = (chunk.memory_bytes(), chunk.walked_bytes());
        drop(chunk);
        self.0.backlog.discharge(bytes, walked);
    }
}

impl Shared {
    fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
        let queue = std::mem::take(&mut self.state.lock().queue);
        self.ready.notify_all();
        queue.iter().for_each(|chunk| self.discharge(chunk));
    }

    fn discharge(&self, chunk: &Chunk) {
        self.backlog.discharge(chunk.memory_bytes(), chunk.walked_bytes());
    }

    fn push(&self, chunk: Chunk) {
        let mut state = self.state.lock();
        if self.aborted.load(Ordering::Relaxed) {
            drop(state);
            return self.discharge(&chunk);
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
    /// Bytes counted for the current chunk.
    charged: u64,
    is_walking: bool,
    is_finished: bool,
}

impl FeedSink {
    fn save_shared(&mut self, space: KeyspaceId, entry: &Entry<'_>, value: &SharedBytes) {
        let mut bytes = Vec::with_capacity(entry.key.len() + 48);
        put_head(&mut bytes, space, entry);
        let tail = Some(SharedBytes::clone(value));
        self.send_now(Chunk::Entries { bytes, tail, entries: 1, is_walked: self.is_walking });
    }

    fn save_tree(&mut self, space: KeyspaceId, entry: &Entry<'_>, big: &SharedBig) {
        let (key, big) = (entry.key.to_vec(), SharedBig::clone(big));
        let (expire_at, fields) = (entry.expire_at, entry.fields.to_owned());
        self.send_now(Chunk::Tree(Box::new(Tree { space, key, big, expire_at, fields })));
    }

    /// Sends a chunk of its own, apart from the collected entries.
    fn send_now(&mut self, chunk: Chunk) {
        self.shared.backlog.charge(chunk.memory_bytes(), chunk.walked_bytes());
        self.shared.push(chunk);
    }

    fn send(&mut self) {
        let (bytes, entries) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.entries));
        let chunk = Chunk::Entries { bytes, tail: None, entries, is_walked: false };
        self.recharge(chunk.memory_bytes());
        self.charged = 0;
        if entries > 0 {
            self.shared.push(chunk);
        } else {
            self.shared.discharge(&chunk);
        }
    }

    /// Counts the growth of the chunk.
    fn recharge(&mut self, bytes: u64) {
        if bytes > self.charged {
            self.shared.backlog.charge(bytes - self.charged, 0);
            self.charged = bytes;
        }
    }
}

/// All of an entry except its value.
fn put_head(out: &mut Vec<u8>, space: KeyspaceId, entry: &Entry<'_>) {
    let Entry { key, kind, encoding, value, expire_at, fields, .. } = *entry;
    let mut buffer = Vec::new();
    let fields = fields.saved(&mut buffer);
    StoreHead { kind, encoding, expire_at, fields, value_len: value.len() }.put(out, space, key);
}

impl EntrySink for FeedSink {
    fn save(&mut self, space: KeyspaceId, entry: &Entry<'_>) {
        if self.shared.aborted.load(Ordering::Relaxed) {
            return;
        }
        // Of a value that lies on a tier, the address is saved.
        let on_tier =
            entry.fields.tier().map(|_| Entry { encoding: Encoding::PLAIN, value: Value::Bytes(&[]), ..*entry });
        let entry = on_tier.as_ref().unwrap_or(entry);
        match entry.value {
            Value::Shared(value) if value.len() > SHARE_LEN_MIN => return self.save_shared(space, entry, value),
            Value::Big(big) => return self.save_tree(space, entry, big),
            Value::Shared(_) | Value::Bytes(_) => {}
        }
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(BLOCK_LEN + CHUNK_SLACK);
        }
        let out = &mut self.bytes;
        put_head(out, space, entry);
        out.extend_from_slice(entry.value.bytes());
        self.entries += 1;
        self.recharge(self.bytes.capacity() as u64);
        if self.bytes.len() >= BLOCK_LEN {
            self.send();
        }
    }

    fn set_walking(&mut self, walking: bool) {
        self.is_walking = walking;
    }

    fn finish(&mut self) {
        self.is_finished = true;
    }
}

impl Drop for FeedSink {
    fn drop(&mut self) {
        if !self.is_finished {
            self.shared.abort();
        }
        self.send();
        self.shared.state.lock().sinks -= 1;
        self.shared.ready.notify_all();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.state.get_mut().queue.iter().for_each(|chunk| {
            self.backlog.discharge(chunk.memory_bytes(), chunk.walked_bytes());
        });
        self.backlog.set_limit(u64::MAX);
    }
}
