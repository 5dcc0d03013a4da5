//! Walks over the entries of a database in steps, for commands that concern many of them: `scrub` and its relatives.
//!
//! ```text
//! command --> Sweeps, a queue --> a worker, in slices between turns: survey a stretch, remove what is concerned
//!    '---- waits for the Sweep, or not <------------- its end
//! ```
//!
//! S1. No request is as long as a database: a worker looks at one stretch, or removes one entry, and continues later.
//! S2. A removal is a change as any other: it is in the log, and a replica makes it.
//! S3. The queue is bounded, since each command adds to it.

use crate::dumps::{Dump, Next};
use crate::key_prefix::prefix_of;
use crate::listing::seconds_left;
use crate::prefixes::{Page, Prefixes};
use admin::{EndOrder, ShutdownRequest};
use arcus::Ring;
use base::{DbIndex, Lsn, UnixMs};
use command::blocking::Task;
use engine::{Effect, Engine as _, Key, Keyspace as _, NotifyClass, WriteClass};
use parking_lot::Mutex;
use proto::ReplyBuffer;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{At, Blocked, LockSet, Scratch, Store, Survey, SurveyStep};
use types::apply::Engines as _;

/// Sweeps that wait for their turn.
const QUEUE_MAX: usize = 64;

/// What a sweep is for.
pub enum Purpose {
    /// Looks at each entry. What has expired is removed by upkeep already.
    Expired,
    /// Removes keys that belong to other nodes.
    Stale(Arc<Ring>),
    /// Removes keys with this prefix; `None` for those that have none.
    Prefix(Option<Box<[u8]>>),
    /// Removes all entries, at once.
    All,
    /// Ends the server.
    End(ShutdownRequest),
    /// Counts entries by their prefixes.
    Count {
        /// The counts.
        prefixes: Mutex<Prefixes>,
        /// What is shown of them.
        shown: Shown,
    },
    /// Writes keys to a file.
    Dump(Dump),
}

/// What a client asks for of the counts.
pub enum Shown {
    /// Those of all prefixes, or of these.
    Counts(Option<Vec<Box<[u8]>>>),
    /// A part of the prefixes.
    Page(Page),
}

impl Purpose {
    /// Counts entries by their prefixes.
    pub fn count(shown: Shown) -> Self {
        Self::Count { prefixes: Mutex::default(), shown }
    }

    fn concerns(&self, key: &[u8]) -> bool {
        match self {
            Self::Expired => false,
            Self::Stale(ring) => ring.has_own() && !ring.is_own(key),
            Self::Prefix(prefix) => prefix_of(key) == prefix.as_deref(),
            Self::All | Self::End(_) | Self::Count { .. } | Self::Dump(_) => false,
        }
    }

    fn is_scrub(&self) -> bool {
        matches!(self, Self::Expired | Self::Stale(_))
    }
}

/// How a command answers when its sweep is over.
pub type Answer = fn(&Sweep, &mut ReplyBuffer);

/// One walk.
pub struct Sweep {
    db: DbIndex,
    pub(crate) purpose: Purpose,
    /// When it begins.
    due: UnixMs,
    store: Arc<Store>,
    answer: Answer,
    /// Up to where the log has to be durable before the answer.
    lsn: AtomicU64,
    is_over: AtomicBool,
    /// Whether the log took its changes.
    is_whole: AtomicBool,
    visited: AtomicU64,
    removed: AtomicU64,
}

impl Sweep {
    /// A walk over this database, which begins at this time.
    pub fn new(store: &Arc<Store>, db: DbIndex, purpose: Purpose, due: UnixMs, answer: Answer) -> Arc<Self> {
        let (visited, removed, lsn) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let (is_over, is_whole, store) = (AtomicBool::new(false), AtomicBool::new(true), store.clone());
        Arc::new(Self { db, purpose, due, store, answer, lsn, is_over, is_whole, visited, removed })
    }

    /// Whether it has removed all that it had to.
    pub fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Relaxed)
    }

    /// Entries that it has removed.
    pub fn removed(&self) -> u64 {
        self.removed.load(Ordering::Relaxed)
    }
}

/// Answers nothing.
pub fn silence(_: &Sweep, _: &mut ReplyBuffer) {}

impl fmt::Debug for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep").field("db", &self.db).finish_non_exhaustive()
    }
}

impl Task for Sweep {
    fn is_over(&self) -> bool {
        let lsn = Lsn(self.lsn.load(Ordering::Relaxed));
        let is_durable = || lsn == Lsn(0) || self.store.log().is_none_or(|log| log.durable() >= lsn);
        self.is_over.load(Ordering::Acquire) && is_durable()
    }

    fn answer(&self, reply: &mut ReplyBuffer) -> Option<String> {
        (self.answer)(self, reply);
        None
    }
}

/// What `stats scrub` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// When the last one began; `None` before the first.
    pub began: Option<UnixMs>,
    /// When it ended; `None` while it runs.
    pub ended: Option<UnixMs>,
    /// Entries that it looked at.
    pub visited: u64,
    /// Entries that it removed.
    pub removed: u64,
}

/// A sweep cannot be added: too many wait, or another scrub does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// The sweeps of a server.
#[derive(Default)]
pub struct Sweeps {
    queue: Mutex<VecDeque<Arc<Sweep>>>,
    has_work: AtomicBool,
    /// The one under way. Only the worker that sweeps locks it for longer than a look.
    going: Mutex<Option<Going>>,
    scrubbed: Mutex<Scrubbed>,
    /// The counts that `scan prefix` shows part by part, until the last one.
    counted: Mutex<Option<Arc<Sweep>>>,
}

struct Going {
    sweep: Arc<Sweep>,
    survey: Survey,
    /// Keys that are to be removed.
    found: Vec<Vec<u8>>,
    is_surveyed: bool,
}

impl Sweeps {
    /// Adds a sweep.
    ///
    /// # Errors
    /// See [`Busy`]. Nothing is done then.
    pub fn add(&self, sweep: Arc<Sweep>) -> Result<(), Busy> {
        let mut queue = self.queue.lock();
        if queue.len() >= QUEUE_MAX {
            return Err(Busy);
        }
        queue.push_back(sweep);
        self.has_work.store(true, Ordering::Release);
        Ok(())
    }

    /// Adds a scrub, unless one waits or runs already.
    ///
    /// # Errors
    /// See [`Busy`]. Nothing is done then.
    pub fn scrub(&self, store: &Arc<Store>, db: DbIndex, purpose: Purpose) -> Result<(), Busy> {
        let mut scrubbed = self.scrubbed.lock();
        if scrubbed.began.is_some() && scrubbed.ended.is_none() {
            return Err(Busy);
        }
        self.add(Sweep::new(store, db, purpose, 0, silence))?;
        *scrubbed = Scrubbed { began: Some(store.clock.now_ms()), ..Scrubbed::default() };
        Ok(())
    }

    /// Counts of this database's prefixes that a `scan prefix` has begun with.
    pub fn counted(&self, db: DbIndex) -> Option<Arc<Sweep>> {
        self.counted.lock().clone().filter(|sweep| sweep.db == db)
    }

    /// Forgets them, after the last part.
    pub fn forget_counted(&self) {
        *self.counted.lock() = None;
    }

    /// What `stats scrub` shows.
    pub fn scrubbed(&self) -> Scrubbed {
        *self.scrubbed.lock()
    }

    /// Whether a worker has something to do.
    pub fn has_work(&self) -> bool {
        self.has_work.load(Ordering::Acquire)
    }

    /// One step; true when there is more to do at once.
    pub fn work(&self, store: &Store, worker: usize, scratch: &mut Scratch) -> bool {
        if store.gate.is_loading() {
            return false;
        }
        let Some(mut going) = self.going.try_lock() else { return false };
        if going.is_none() {
            *going = self.begin_next(store);
        }
        let Some(current) = &mut *going else { return false };
        let step = current.step(store, worker, scratch);
        if let Step::Done = step {
            self.end(&current.sweep, store);
            *going = None;
        }
        !matches!(step, Step::Later)
    }

    fn begin_next(&self, store: &Store) -> Option<Going> {
        let mut queue = self.queue.lock();
        let now = store.clock.now_ms();
        while let Some(at) = queue.iter().position(|sweep| sweep.due <= now) {
            let Some(sweep) = queue.remove(at) else { break };
            match store.spaces.get(sweep.db) {
                Some(space) => {
                    let survey = Survey::new(space);
                    return Some(Going { sweep, survey, found: Vec::new(), is_surveyed: false });
                }
                None => self.end(&sweep, store),
            }
        }
        // Under the lock of the queue: what is added from now on sets it again. What is not due yet waits.
        self.has_work.store(!queue.is_empty(), Ordering::Release);
        None
    }

    fn end(&self, sweep: &Arc<Sweep>, store: &Store) {
        if let Purpose::Count { shown: Shown::Page(_), .. } = sweep.purpose {
            *self.counted.lock() = Some(sweep.clone());
        }
        if sweep.purpose.is_scrub() {
            let mut scrubbed = self.scrubbed.lock();
            scrubbed.ended = Some(store.clock.now_ms());
            scrubbed.visited = sweep.visited.load(Ordering::Relaxed);
            scrubbed.removed = sweep.removed.load(Ordering::Relaxed);
        }
        if let Purpose::Dump(dump) = &sweep.purpose {
            dump.end();
        }
        sweep.is_over.store(true, Ordering::Release);
    }
}

enum Step {
    More,
    /// A lock is taken, or the log has no room.
    Later,
    Done,
}

impl Going {
    fn step(&mut self, store: &Store, worker: usize, scratch: &mut Scratch) -> Step {
        if let Some(key) = self.found.last() {
            return match self.remove(store, key, worker, scratch) {
                Ok(is_removed) => {
                    self.sweep.removed.fetch_add(u64::from(is_removed), Ordering::Relaxed);
                    self.found.pop();
                    Step::More
                }
                Err(Blocked::Refused) => self.give_up(),
                Err(_) => Step::Later,
            };
        }
        if let Purpose::Dump(dump) = &self.sweep.purpose {
            match dump.next(self.is_surveyed, store.clock.now_ms()) {
                Next::Step => {}
                Next::Wait => return Step::Later,
                Next::End => return Step::Done,
            }
        }
        if self.is_surveyed {
            return Step::Done;
        }
        if let Purpose::End(request) = &self.sweep.purpose {
            drop(request.ask(EndOrder::Terminate));
            return Step::Done;
        }
        if let Purpose::All = self.sweep.purpose {
            return match self.clear(store, worker, scratch) {
                Ok(()) => Step::Done,
                Err(Blocked::Refused) => self.give_up(),
                Err(_) => Step::Later,
            };
        }
        let Self { sweep, survey, found, .. } = self;
        let mut visited = 0u64;
        let mut counting = match &sweep.purpose {
            Purpose::Count { prefixes, .. } => Some(prefixes.lock()),
            _ => None,
        };
        let now = store.clock.now_ms();
        let step = store.survey(survey, &mut |entry, bytes| {
            visited = visited.saturating_add(1);
            if let Purpose::Dump(dump) = &sweep.purpose {
                dump.take(entry.key, entry.kind, seconds_left(entry, now));
            }
            if let Some(prefixes) = &mut counting {
                // A row that is not in memory takes about this on disk.
                let bytes =
                    if bytes > 0 { bytes } else { entry.key.len().saturating_add(entry.content_bytes()) as u64 };
                prefixes.add(prefix_of(entry.key), entry.kind, bytes);
            }
            if sweep.purpose.concerns(entry.key) {
                found.push(entry.key.to_vec());
            }
        });
        sweep.visited.fetch_add(visited, Ordering::Relaxed);
        match step {
            SurveyStep::More => Step::More,
            SurveyStep::Locked => Step::Later,
            SurveyStep::Done => {
                self.is_surveyed = true;
                Step::More
            }
        }
    }

    fn remove(&self, store: &Store, bytes: &[u8], worker: usize, scratch: &mut Scratch) -> Result<bool, Blocked> {
        // A replica follows its primary.
        if store.gate.is_replica() {
            return Ok(false);
        }
        let Some(space) = store.spaces.get(self.sweep.db) else { return Ok(false) };
        let at = At { now: store.clock.now_ms(), db: self.sweep.db, touch: false, worker, writes: WriteClass::Frees };
        let key: Key<'_> = store.key(space, bytes);
        let is_removed = store.commit(scratch, &LockSet::One(store.shard_of(&key)), &at, |txn| {
            // A row that is not in memory need not be read.
            let is_there = txn.engine(&key).may_hold(&key);
            if is_there {
                txn.apply(&Effect::Delete { key });
                txn.notify(NotifyClass::GENERIC, "del", &key);
            }
            Ok(is_there)
        })?;
        self.note(scratch);
        Ok(is_removed)
    }

    /// Removes all entries of the database.
    fn clear(&self, store: &Store, worker: usize, scratch: &mut Scratch) -> Result<(), Blocked> {
        if store.gate.is_replica() {
            return Ok(());
        }
        let at = At { now: store.clock.now_ms(), db: self.sweep.db, touch: false, worker, writes: WriteClass::Frees };
        store.commit(scratch, &LockSet::All, &at, |txn| {
            let space = txn.space();
            admin::keyspaces::clear(txn, space);
            Ok(())
        })?;
        self.note(scratch);
        Ok(())
    }

    /// The log takes no changes: what is left stays.
    fn give_up(&self) -> Step {
        self.sweep.is_whole.store(false, Ordering::Relaxed);
        Step::Done
    }

    /// Notes up to where the log has to be durable.
    fn note(&self, scratch: &Scratch) {
        if let Some(lsn) = scratch.wrote().filter(|_| scratch.is_logged()) {
            self.sweep.lsn.fetch_max(lsn.0, Ordering::Relaxed);
        }
    }
}
