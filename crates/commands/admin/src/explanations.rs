//! MEMORY EXPLAIN at work: walks over the keys that workers do in their turns, one after the other.
//!
//! ```text
//! MEMORY EXPLAIN --> queue --> a worker at a time: step, step, ... --> outcome --> the waiting connection is answered
//! ```
//!
//! E1. One walk is in progress at a time, for all clients together, so its counts take memory once.
//! E2. A walk is kept by the connection that waits for it, and ends with that.
//! E3. Everything in the answer was durable before, where replies wait for the log.
//! E4. What codecs would make of the samples is tried after the walk, a prefix in a step.

use crate::explain_reply::{self, Compression};
use crate::prefixes::{Cost, Explained, Group, Grouping, Prefixes};
use base::{KeyspaceId, Lsn};
use command::blocking::{Task, UNBLOCKED};
use command::clients::Closer;
use parking_lot::Mutex;
use proto::ReplyBuffer;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use store::compression::{Taken, compressed_lengths};
use store::{Store, Survey, SurveyStep};

/// Prefixes in a reply.
const ROWS_MAX: usize = 100;

/// An explanation that a client has asked for, and its outcome.
pub struct Explanation {
    space: KeyspaceId,
    grouping: Grouping,
    store: Arc<Store>,
    caller: Caller,
    outcome: OnceLock<Outcome>,
}

/// The waiting connection.
pub struct Caller {
    /// The worker of the connection.
    pub worker: usize,
    /// The connection's client.
    pub client: u64,
    /// Wakes that worker; `None` in a server without any.
    pub closer: Option<Arc<dyn Closer>>,
}

/// A walk that has come to its end.
#[derive(Debug)]
struct Outcome {
    explained: Explained,
    /// Of each prefix.
    compression: Vec<Compression>,
    duration_ms: u64,
    /// Up to where the log has to be durable before the answer is sent.
    seen: Lsn,
}

impl Explanation {
    /// Explains a keyspace.
    pub fn new(space: KeyspaceId, grouping: Grouping, store: Arc<Store>, caller: Caller) -> Self {
        Self { space, grouping, store, caller, outcome: OnceLock::new() }
    }
}

impl fmt::Debug for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explanation").field("grouping", &self.grouping).finish_non_exhaustive()
    }
}

impl Task for Explanation {
    fn is_over(&self) -> bool {
        let Some(outcome) = self.outcome.get() else { return false };
        // Without a log there is nothing to wait for.
        outcome.seen == Lsn(0) || self.store.log().is_none_or(|log| log.durable() >= outcome.seen)
    }

    fn answer(&self, reply: &mut ReplyBuffer) -> Option<String> {
        match self.outcome.get().filter(|_| self.is_over()) {
            Some(outcome) => {
                let Outcome { explained, compression, duration_ms, .. } = outcome;
                explain_reply::reply(explained, compression, *duration_ms, reply);
                None
            }
            None => {
                reply.error(UNBLOCKED);
                Some(UNBLOCKED.to_owned())
            }
        }
    }

    fn can_be_left(&self) -> bool {
        true
    }
}

/// The walk in progress.
struct Walk {
    explanation: Weak<Explanation>,
    survey: Survey,
    stage: Stage,
    began_ns: u64,
}

/// How far it has come.
enum Stage {
    /// Keys are counted.
    Counting(Prefixes),
    /// Samples of the prefixes, in order, are tried.
    Trying(Explained, Vec<Compression>),
}

/// All explanations that clients wait for: a part of the [`Host`](command::Host).
#[derive(Default)]
pub struct Explanations {
    /// Those that have not begun.
    queue: Mutex<VecDeque<Weak<Explanation>>>,
    walk: Mutex<Option<Walk>>,
    /// Whether there is a walk, or something in the queue.
    has_work: AtomicBool,
}

impl Explanations {
    /// Has an explanation worked out when its turn comes.
    pub fn add(&self, explanation: &Arc<Explanation>) {
        let mut queue = self.queue.lock();
        queue.retain(|other| other.strong_count() > 0);
        queue.push_back(Arc::downgrade(explanation));
        self.has_work.store(true, Ordering::Release);
    }

    /// Whether there is anything to do, by whichever worker.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.has_work.load(Ordering::Acquire)
    }

    /// Does a step; true when there is more to do at once. False also while another worker is at it.
    pub fn work(&self) -> bool {
        if !self.has_work() {
            return false;
        }
        let Some(mut walk) = self.walk.try_lock() else { return false };
        if walk.is_none() {
            *walk = self.begin_next();
        }
        let explanation = walk.as_ref().and_then(|walk| walk.explanation.upgrade());
        if let (Some(going), Some(explanation)) = (&mut *walk, explanation) {
            match going.step(&explanation) {
                SurveyStep::Done => {}
                SurveyStep::More | SurveyStep::Locked => return true,
            }
        }
        if let Some(ended) = walk.take() {
            ended.end();
        }
        true
    }

    fn begin_next(&self) -> Option<Walk> {
        let mut queue = self.queue.lock();
        while let Some(next) = queue.pop_front() {
            if let Some(explanation) = next.upgrade() {
                return Some(Walk {
                    explanation: next,
                    survey: Survey::new(explanation.space),
                    stage: Stage::Counting(Prefixes::new(explanation.grouping.clone())),
                    began_ns: explanation.store.clock.monotonic_ns(),
                });
            }
        }
        // Under the lock of the queue: what is added from now on sets it again.
        self.has_work.store(false, Ordering::Release);
        None
    }
}

impl Walk {
    fn step(&mut self, explanation: &Explanation) -> SurveyStep {
        let store = &explanation.store;
        match &mut self.stage {
            Stage::Counting(prefixes) => {
                let step = store.survey(&mut self.survey, &mut |entry, stored_bytes| {
                    let saved_bytes = compressed_lengths(entry).map(|(stored, plain)| plain.saturating_sub(stored));
                    // Of a tree, the content is what its elements are, compressed or not.
                    let left_out = if entry.is_compressed() { saved_bytes.unwrap_or(0) } else { 0 };
                    let logical_bytes = (entry.content_bytes() as u64).saturating_add(left_out);
                    let cost = Cost { logical_bytes, stored_bytes, saved_bytes };
                    prefixes.add(entry.key, &cost, |bytes_max| Taken::of(entry, bytes_max));
                });
                // Outside the shard's lock.
                prefixes.shrink();
                if step == SurveyStep::Done {
                    let empty = Prefixes::new(explanation.grouping.clone());
                    let explained = std::mem::replace(prefixes, empty).finish(ROWS_MAX);
                    self.stage = Stage::Trying(explained, Vec::new());
                    return SurveyStep::More;
                }
                step
            }
            Stage::Trying(explained, tried) => {
                let Some((name, group)) = explained.groups.get_mut(tried.len()) else { return SurveyStep::Done };
                let Group { sample, .. } = group;
                let sample = std::mem::take(sample);
                let space = explanation.space;
                let spent_ns = store.compression.spent_ns(space, name);
                tried.push(Compression { spent_ns, tried: store.compression.try_codecs(space, &sample) });
                SurveyStep::More
            }
        }
    }

    /// Notifies the waiting connection, unless it is gone.
    fn end(self) {
        let Some(explanation) = self.explanation.upgrade() else { return };
        let duration_ns = explanation.store.clock.monotonic_ns().saturating_sub(self.began_ns);
        let Stage::Trying(explained, compression) = self.stage else { return };
        let outcome =
            Outcome { explained, compression, duration_ms: duration_ns / 1_000_000, seen: self.survey.seen() };
        if explanation.outcome.set(outcome).is_ok()
            && let Caller { worker, client, closer: Some(closer) } = &explanation.caller
        {
            closer.end_wait(*worker, *client);
        }
    }
}
