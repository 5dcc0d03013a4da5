//! The command log: the last calls that took long, had a large request, or got a large reply. It sees every call, and
//! shows the chosen ones to [`HotKeys`].

use crate::hot_key_session::HotKeySession;
use crate::hot_keys::{HotKeys, LONG_CALL_NS};
use crate::latency::LatencyMonitor;
use command::login::redacted;
use command::observer::{Done, Observer};
use command::sampler;
use command::stats::WorkerStats;
use config::Settings;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// Arguments kept of a call, and bytes kept of each: as in Redis.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_BYTES_MAX: usize = 128;

/// Why a call is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It took long; [`Entry::amount`] is microseconds.
    Slow,
    /// Its request was large; bytes.
    LargeRequest,
    /// Its reply was large; bytes.
    LargeReply,
}

impl Reason {
    /// The word of COMMANDLOG.
    pub fn of_word(word: &[u8]) -> Option<Self> {
        [("slow", Self::Slow), ("large-request", Self::LargeRequest), ("large-reply", Self::LargeReply)]
            .into_iter()
            .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, reason)| reason)
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Counts up from 0.
    pub id: u64,
    /// Seconds since 1970.
    pub at_seconds: i64,
    /// What was too much; see [`Reason`].
    pub amount: u64,
    /// The arguments, shortened, without secrets.
    pub arguments: Vec<Vec<u8>>,
    /// The client's address.
    pub address: String,
    /// The client's name.
    pub name: Vec<u8>,
}

/// The calls kept for one reason, newest first.
#[derive(Default)]
struct Log {
    entries: Mutex<(VecDeque<Arc<Entry>>, u64)>,
    /// Calls with more than this are kept; negative keeps none.
    threshold: AtomicI64,
    length_max: AtomicUsize,
}

/// The calls kept. Workers write; SLOWLOG and COMMANDLOG read.
pub struct CommandLog {
    logs: [Log; 3],
    latency: Arc<LatencyMonitor>,
    /// The shortest call that anybody wants to see.
    slow_ns: AtomicU64,
    /// The least of all thresholds: a call with fewer nanoseconds and fewer bytes is of no interest for itself.
    least: AtomicU64,
    /// The keys that most is done with.
    pub hot_keys: HotKeys,
    /// A session of HOTKEYS in the grammar of Redis.
    pub hot_key_session: HotKeySession,
}

impl CommandLog {
    /// An empty log; the monitor receives slow calls too.
    pub fn new(settings: &Settings, latency: Arc<LatencyMonitor>) -> Self {
        let log = Self {
            logs: Default::default(),
            latency,
            slow_ns: AtomicU64::new(u64::MAX),
            least: AtomicU64::new(u64::MAX),
            hot_keys: HotKeys::default(),
            hot_key_session: HotKeySession::default(),
        };
        log.follow(settings);
        log
    }

    /// Takes over thresholds and lengths.
    pub fn follow(&self, settings: &Settings) {
        let limits = [
            (settings.slowlog_slower_than_us, settings.slowlog_length_max),
            (settings.commandlog_request_larger_than_bytes, settings.commandlog_request_length_max),
            (settings.commandlog_reply_larger_than_bytes, settings.commandlog_reply_length_max),
        ];
        for (log, (threshold, length_max)) in self.logs.iter().zip(limits) {
            log.threshold.store(threshold, Ordering::Relaxed);
            log.length_max.store(usize::try_from(length_max).unwrap_or(usize::MAX), Ordering::Relaxed);
        }
        let slow = u64::try_from(settings.slowlog_slower_than_us).map_or(u64::MAX, |us| us.saturating_mul(1000));
        let latency = match settings.latency_monitor_threshold_ms {
            0 => u64::MAX,
            ms => ms.saturating_mul(1_000_000),
        };
        let slow = slow.min(latency);
        self.slow_ns.store(slow, Ordering::Relaxed);
        // A negative threshold keeps nothing: without a sign it is above all lengths.
        let least = limits[1..]
            .iter()
            .fold(slow.min(LONG_CALL_NS), |least, (threshold, _)| least.min(threshold.cast_unsigned()));
        self.least.store(least, Ordering::Relaxed);
    }

    fn log(&self, reason: Reason) -> &Log {
        &self.logs[reason as usize]
    }

    /// Keeps the call if it is over the threshold.
    fn offer(&self, reason: Reason, done: &Done<'_>, amount: u64) {
        let log = self.log(reason);
        let over = u64::try_from(log.threshold.load(Ordering::Relaxed)).is_ok_and(|threshold| amount >= threshold);
        if !over || done.flags.contains(command::Flags::SKIP_COMMANDLOG) {
            return;
        }
        let entry = Entry {
            id: 0,
            at_seconds: done.now / 1000,
            amount,
            arguments: shortened(done),
            address: done.client.address.to_string(),
            name: done.client.names().name.into(),
        };
        let (entries, next_id) = &mut *log.entries.lock();
        entries.push_front(Arc::new(Entry { id: *next_id, ..entry }));
        *next_id += 1;
        entries.truncate(log.length_max.load(Ordering::Relaxed));
    }

    /// The newest calls kept for a reason, newest first.
    pub fn newest(&self, reason: Reason, count: usize) -> Vec<Arc<Entry>> {
        self.log(reason).entries.lock().0.iter().take(count).cloned().collect()
    }

    /// How many calls are kept for a reason.
    pub fn len(&self, reason: Reason) -> usize {
        self.log(reason).entries.lock().0.len()
    }

    /// Forgets the calls kept for a reason.
    pub fn reset(&self, reason: Reason) {
        self.log(reason).entries.lock().0.clear();
    }
}

impl Observer for CommandLog {
    fn done(&self, done: &Done<'_>) {
        if self.wants(done.stats, done.duration_ns, done.request_bytes, done.reply_bytes) {
            self.look(done);
        }
    }
}

impl CommandLog {
    /// Takes account of a call. True when it is to be looked at: it took long, was large, or was chosen.
    #[inline]
    pub fn wants(&self, stats: &WorkerStats, duration_ns: u64, request_bytes: usize, reply_bytes: usize) -> bool {
        let bytes = (request_bytes as u64).saturating_add(reply_bytes as u64);
        let was_passed = stats.sampler.passes(sampler::cost(bytes));
        // Read for every call, so that a CONFIG SET holds for the next one of its batch.
        was_passed || duration_ns.max(bytes) >= self.least.load(Ordering::Relaxed)
    }

    /// Keeps the call for each reason it gives, and takes account of its keys if it was chosen.
    #[cold]
    #[inline(never)]
    pub fn look(&self, done: &Done<'_>) {
        if done.duration_ns >= self.slow_ns.load(Ordering::Relaxed) {
            self.slow_call(done);
        }
        self.offer(Reason::LargeRequest, done, done.request_bytes as u64);
        self.offer(Reason::LargeReply, done, done.reply_bytes as u64);
        self.hot_keys.look(done);
    }

    fn slow_call(&self, done: &Done<'_>) {
        self.offer(Reason::Slow, done, done.duration_ns / 1000);
        let event = if done.flags.contains(command::Flags::FAST) { "fast-command" } else { "command" };
        self.latency.record(event, done.now / 1000, done.duration_ns / 1_000_000);
    }
}

/// The arguments as they are kept: no secrets, and what is too much is said in its place.
fn shortened(done: &Done<'_>) -> Vec<Vec<u8>> {
    let all: Vec<&[u8]> = redacted(&done.args).collect();
    let kept = if all.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { all.len() };
    let mut shown: Vec<Vec<u8>> = all
        .iter()
        .take(kept)
        .map(|arg| match arg.get(..ARGUMENT_BYTES_MAX) {
            Some(start) if arg.len() > ARGUMENT_BYTES_MAX => {
                let more = arg.len() - ARGUMENT_BYTES_MAX;
                [start, format!("... ({more} more bytes)").as_bytes()].concat()
            }
            _ => arg.to_vec(),
        })
        .collect();
    if all.len() > kept {
        shown.push(format!("... ({} more arguments)", all.len() - kept).into_bytes());
    }
    shown
}
