//! The command log as the store sees it: a sink that takes records, says whether it has room, and how far it is
//! durable. `log` says when it changes, and where G1 and G2 stand.

use base::Lsn;
use cmdlog::Payload;
use engine::WriteClass;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether a command may append to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may, one record of any length.
    Go,
    /// Not now: there is no room. The worker will be woken when there may be some.
    Wait,
    /// Not until the log works again.
    Refused,
}

/// Takes the records of commands, in commit order per shard.
pub trait RecordSink: Send + Sync {
    /// Asked by a worker before it takes any lock. After [`Admission::Go`] the worker appends one record or none before
    /// it asks again.
    fn admit(&self, worker: usize, class: WriteClass) -> Admission {
        let _ = (worker, class);
        Admission::Go
    }

    /// Why writes are refused, and what to do: a sentence that an error reply can end with. `None` when they are not
    /// any more.
    fn refusal(&self) -> Option<String> {
        Some("the command log has failed".to_owned())
    }

    /// Adds a record and gives the position after it. Called while the record's shards are locked, on the worker's
    /// thread: does not wait and cannot fail.
    fn append(&self, worker: usize, payload: &[u8]) -> Lsn;

    /// [`RecordSink::append`] of a payload of which a part is shared: that may be kept in place of a copy.
    fn append_shared(&self, worker: usize, payload: &Payload<'_>) -> Lsn {
        self.append(worker, &payload.to_vec())
    }

    /// Whether what the worker has appended is made durable only after its next [`end_turn`](RecordSink::end_turn), or
    /// when that is long in coming.
    fn puts_off_sync(&self, worker: usize) -> bool {
        let _ = worker;
        false
    }

    /// The worker has run what it had, and will append nothing more for a while: what it has appended is to become
    /// durable.
    fn end_turn(&self, worker: usize) {
        let _ = worker;
    }

    /// Everything before this position survives a crash.
    fn durable(&self) -> Lsn;

    /// The position after the last record appended.
    fn end(&self) -> Lsn;

    /// Whether replies wait for [`RecordSink::durable`]. Read when the sink is installed: a change of the answer
    /// requires installing the sink again.
    fn holds_replies(&self) -> bool {
        false
    }

    /// Whether the log counts as on: clients see it as on, and may rely on it. False while it is being switched on.
    fn counts(&self) -> bool {
        true
    }

    /// Looks at the clock, once a turn of a worker: whether what is not durable has become so old that writes are to
    /// wait.
    fn look(&self) {}

    /// Has the worker woken when [`RecordSink::durable`] next advances. The worker looks at `durable` once more after
    /// this.
    fn wait_for(&self, worker: usize) {
        let _ = worker;
    }
}

/// The sink in force.
#[derive(Default)]
pub(crate) struct LogSlot {
    /// Counts changes of the sink. Written under all shard locks.
    generation: AtomicU64,
    sink: Mutex<Option<Arc<dyn RecordSink>>>,
}

/// A worker's copy of the slot.
#[derive(Default)]
pub(crate) struct LogView {
    generation: u64,
    pub(crate) sink: Option<Arc<dyn RecordSink>>,
    /// Whether replies wait for the sink.
    pub(crate) holds: bool,
}

impl LogSlot {
    /// Brings a worker's copy up to date.
    #[inline]
    pub(crate) fn refresh(&self, view: &mut LogView) {
        // Relaxed: under a shard lock its acquisition orders this load after any change (G1); without one an old sink
        // does for now.
        if self.generation.load(Ordering::Relaxed) != view.generation {
            self.copy_to(view);
        }
    }

    #[cold]
    fn copy_to(&self, view: &mut LogView) {
        let sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        view.generation = self.generation.load(Ordering::Relaxed);
        view.sink = sink.clone();
        view.holds = sink.as_ref().is_some_and(|sink| sink.holds_replies());
    }

    pub(crate) fn get(&self) -> Option<Arc<dyn RecordSink>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Under all shard locks (G1).
    pub(crate) fn set(&self, new: Option<Arc<dyn RecordSink>>) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        *sink = new;
        self.generation.fetch_add(1, Ordering::Relaxed);
    }
}
