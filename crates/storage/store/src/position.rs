//! Where a replica's data is in the stream of its primary. Kept as data: each change is in the record of the effects
//! that lead to the position, so that a log or a checkpoint has the two from one moment.
//!
//! It changes under all locks. A server that is no replica has none: its clients may write what no primary has.

use crate::store::Store;
use crate::{At, LockSet, Scratch};
use base::DbIndex;
use engine::{Effect, Keyspace, WriteClass};
use std::thread;
use std::time::Duration;

/// Time between two attempts while the locks are taken.
const RETRY: Duration = Duration::from_micros(200);

impl Store {
    /// Removes the position if there is one: the server starts without a primary, and its clients may write. Blocks
    /// until the removal is in the log. A log that takes nothing takes no write of a client either.
    pub fn forget_position(&self, worker: usize) {
        if self.position.is_empty() {
            return;
        }
        let at = At { now: self.clock.now_ms(), db: DbIndex(0), touch: false, worker, writes: WriteClass::Nothing };
        let mut scratch = Scratch::default();
        let mut forget = || {
            self.commit(&mut scratch, &LockSet::All, &at, |txn| {
                txn.apply(&Effect::Position { text: b"" });
                Ok(())
            })
        };
        while forget().is_err() {
            thread::sleep(RETRY);
        }
        if let Some(log) = self.log_of(&mut scratch) {
            log.end_turn(worker);
        }
    }
}
