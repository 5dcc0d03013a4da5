//! A walk over the entries of a database in steps, each of one shard under its lock: for what needs all entries and has
//! time.
//!
//! S1. An entry that is there throughout the walk is visited; once, unless its row comes into memory meanwhile. One
//!     that comes or goes meanwhile may be visited.
//! S2. A step looks at one stretch of a shard's table: up to 1,200 entries, mostly far fewer; or at some rows of a
//!     database on disk whose entries are not in memory.

use crate::shard::ShardEngine;
use crate::store::Store;
use base::{KeyspaceId, Lsn, ShardId};
use engine::{Engine, Entry};

/// How far a walk has come.
#[derive(Debug)]
pub struct Survey {
    space: KeyspaceId,
    shard: ShardId,
    at: Place,
    seen: Lsn,
}

/// Where a walk over a shard continues.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// In the table from this hash on; or in the rows from this position on.
    from: u64,
    is_in_rows: bool,
    /// What [`Engine::loads`] gave when the walk over the shard began.
    loads: u64,
}

impl Place {
    /// One step over a shard; `None` after the last one. An entry that only a row holds costs no memory.
    fn step(self, engine: &mut ShardEngine, space: KeyspaceId, visit: &mut dyn FnMut(&Entry<'_>, u64)) -> Option<Self> {
        if self.is_in_rows {
            let next = engine.scan_rows(space, self.from, Some(self.loads), &mut |entry| visit(entry, 0));
            return next.map(|from| Self { from, ..self });
        }
        let loads = if self.from == 0 { engine.loads(space) } else { self.loads };
        match engine.survey(space, self.from, visit).next {
            Some(from) => Some(Self { from, loads, is_in_rows: false }),
            None => (engine.loads(space) > 0).then_some(Self { from: 0, loads, is_in_rows: true }),
        }
    }
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurveyStep {
    /// There is more to visit.
    More,
    /// The shard's lock is taken: nothing was visited.
    Locked,
    /// All shards are done.
    Done,
}

impl Survey {
    /// A walk over this keyspace that has visited nothing yet.
    pub fn new(space: KeyspaceId) -> Self {
        Self { space, shard: ShardId(0), at: Place::default(), seen: Lsn(0) }
    }

    /// Up to where the log must be durable before a reply may show what was visited; 0 while replies do not wait for
    /// it.
    pub fn seen(&self) -> Lsn {
        self.seen
    }
}

impl Store {
    /// One step: visits live entries, each with the bytes it costs. Called by workers; the pace is theirs.
    pub fn survey(&self, survey: &mut Survey, visit: &mut dyn FnMut(&Entry<'_>, u64)) -> SurveyStep {
        if survey.shard.index() >= self.shard_ids().len() {
            return SurveyStep::Done;
        }
        let Some(mut shard) = self.shard(survey.shard).lock.spin_lock() else { return SurveyStep::Locked };
        let now = self.clock.now_ms();
        shard.engine.set_time(now);
        let next = survey.at.step(&mut shard.engine, survey.space, &mut |entry, cost| {
            if !entry.is_expired(now) {
                visit(entry, cost);
            }
        });
        // Read under the lock that the changes were made under.
        let newest = shard.holds.as_ref().map_or(Lsn(0), |holds| holds.newest());
        self.unlock_one(shard);
        survey.seen = survey.seen.max(newest);
        match next {
            Some(next) => survey.at = next,
            None => (survey.shard, survey.at) = (ShardId(survey.shard.0 + 1), Place::default()),
        }
        SurveyStep::More
    }

    /// Visits every entry of a database, those that only rows hold among them and expired ones as well, until `visit`
    /// says false. For tools: it waits for locks and, with them, for devices.
    pub fn visit_entries(&self, space: KeyspaceId, visit: &mut dyn FnMut(&Entry<'_>) -> bool) {
        let mut goes_on = true;
        let walk = self.each_shard(|shard| {
            let mut next = Some(Place::default()).filter(|_| goes_on);
            while let Some(place) = next.filter(|_| goes_on) {
                next = place.step(&mut shard.engine, space, &mut |entry, _| goes_on = goes_on && visit(entry));
            }
        });
        walk.for_each(drop);
    }
}
