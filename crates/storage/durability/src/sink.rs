//! The store's way into the log, and the log's way to workers and people.

use base::Lsn;
use cmdlog::{Log, Payload};
use engine::WriteClass;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Admission, RecordSink, Store, WorkerSet};

/// Records go to the log.
pub(crate) struct LogSink {
    pub log: Arc<Log>,
    /// Whether the log counts as on: its first checkpoint is durable.
    pub counts: AtomicBool,
}

impl RecordSink for LogSink {
    #[inline]
    fn admit(&self, worker: usize, class: WriteClass) -> Admission {
        let admission = match class {
            WriteClass::Frees => self.log.admit_delete(worker),
            _ => self.log.admit(worker),
        };
        match admission {
            cmdlog::Admission::Go => Admission::Go,
            cmdlog::Admission::Wait => Admission::Wait,
            cmdlog::Admission::Refused => Admission::Refused,
        }
    }

    fn refusal(&self) -> Option<String> {
        self.log.health().map(|failure| refusal(&failure))
    }

    fn append(&self, worker: usize, payload: &[u8]) -> Lsn {
        self.log.append_in_turn(worker, payload)
    }

    fn append_shared(&self, worker: usize, payload: &Payload<'_>) -> Lsn {
        self.log.append_shared_in_turn(worker, payload)
    }

    #[inline]
    fn puts_off_sync(&self, worker: usize) -> bool {
        self.log.puts_off_sync(worker)
    }

    #[inline]
    fn end_turn(&self, worker: usize) {
        self.log.end_turn(worker);
    }

    fn durable(&self) -> Lsn {
        self.log.durable_lsn()
    }

    fn end(&self) -> Lsn {
        self.log.end_lsn()
    }

    fn holds_replies(&self) -> bool {
        self.log.holds_replies()
    }

    #[inline]
    fn look(&self) {
        self.log.watch_step();
    }

    fn wait_for(&self, worker: usize) {
        self.log.wait_for(worker);
    }

    fn counts(&self) -> bool {
        self.counts.load(Ordering::Acquire)
    }
}

/// Why a write is refused.
fn refusal(failure: &cmdlog::LogFailure) -> String {
    let errno = failure.errno.map(|errno| format!(" (errno {errno})")).unwrap_or_default();
    let remedy = match failure.disk_full {
        true => "free space on the device; deletes work, and writes will as soon as there is space",
        false => "see the server's log; writes resume as soon as a new file of the log holds everything",
    };
    format!("{}{errno}. Nothing was changed; {remedy}", failure.message)
}

/// Wakes the workers of a store.
pub(crate) struct StoreWaker {
    pub store: Arc<Store>,
    pub tell: Arc<dyn crate::Tell>,
}

impl cmdlog::LogWake for StoreWaker {
    fn wake(&self, worker: usize) {
        self.store.wake(WorkerSet::one(worker));
    }

    fn failed(&self, failure: &cmdlog::LogFailure) {
        self.tell.say(&format!("the command log has failed, writes are refused: {}", failure.message));
    }

    fn healthy(&self) {
        self.tell.say("the command log works again; nothing that was acknowledged is lost");
    }

    fn stop(&self, failure: &cmdlog::LogFailure) {
        self.tell.stop(&format!("the command log has failed, and log-on-error is stop: {}", failure.message));
    }
}
