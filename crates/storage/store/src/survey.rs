//! A walk over the entries of a database in steps, each of one shard under its lock: for what needs all entries and has
//! time.
//!
//! S1. An entry that is there throughout the walk is visited once; one that comes or goes meanwhile at most once.
//! S2. A step looks at one stretch of a shard's table: up to 1,200 entries, mostly far fewer.

use crate::store::Store;
use base::{KeyspaceId, Lsn, ShardId};
use engine::{Engine, Entry};

/// How far a walk has come.
#[derive(Debug)]
pub struct Survey {
    space: KeyspaceId,
    shard: ShardId,
    /// The hash to continue from in this shard.
    from: u64,
    seen: Lsn,
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
        Self { space, shard: ShardId(0), from: 0, seen: Lsn(0) }
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
        let step = shard.engine.survey(survey.space, survey.from, &mut |entry, cost| {
            if !entry.is_expired(now) {
                visit(entry, cost);
            }
        });
        // Read under the lock that the changes were made under.
        let newest = shard.holds.as_ref().map_or(Lsn(0), |holds| holds.newest());
        self.unlock_one(shard);
        survey.seen = survey.seen.max(newest);
        match step.next {
            Some(next) => survey.from = next,
            None => (survey.shard, survey.from) = (ShardId(survey.shard.0 + 1), 0),
        }
        SurveyStep::More
    }
}
