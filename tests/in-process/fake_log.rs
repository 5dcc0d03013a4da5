//! A command log without a disk: what is durable, and what is admitted, is what the test says.

use base::Lsn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use store::{Admission, RecordSink, Store, WorkerSet, WriteClass};

/// Why writes are refused, when they are.
const REASON: &str = "log-0000000000000000: write: Input/output error";

/// What a client reads then.
pub const REFUSAL: &str = "MISCONF Errors writing to the AOF file: log-0000000000000000: write: Input/output error";

/// The number of workers.
const WORKERS: usize = 8;

/// The log. Everything appended is an LSN further, whatever its length.
pub struct FakeLog {
    end: AtomicU64,
    durable: AtomicU64,
    holds: AtomicBool,
    /// For commands that only remove, and for others.
    admission: Mutex<(Admission, Admission)>,
    records: Mutex<Vec<Vec<u8>>>,
    /// Workers to be woken when `durable` advances.
    waiting: Mutex<[bool; WORKERS]>,
    /// Workers that have appended and neither ended their turn nor waited.
    in_turn: [AtomicBool; WORKERS],
}

impl FakeLog {
    /// A log that admits everything. Nothing is durable before the test says so.
    pub fn new(holds: bool) -> Arc<Self> {
        Arc::new(Self {
            end: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            holds: AtomicBool::new(holds),
            admission: Mutex::new((Admission::Go, Admission::Go)),
            records: Mutex::default(),
            waiting: Mutex::default(),
            in_turn: Default::default(),
        })
    }

    /// Puts it into force.
    pub fn install(self: &Arc<Self>, store: &Store) {
        store.try_lock_all().expect("nobody holds a lock").set_log(Some(self.clone()));
    }

    /// What follows is held, or no longer, once it is installed again.
    pub fn set_holds(&self, holds: bool) {
        self.holds.store(holds, Ordering::SeqCst);
    }

    /// Admits commands that only remove, and others, like this.
    pub fn admit(&self, frees: Admission, any: Admission) {
        *self.admission.lock().expect("no test panics while holding it") = (frees, any);
    }

    /// Everything up to this position is durable.
    pub fn sync_to(&self, lsn: u64) {
        self.durable.store(lsn, Ordering::SeqCst);
    }

    /// Everything is durable.
    pub fn sync(&self) {
        self.sync_to(self.end().0);
    }

    /// The same, and wakes the workers that wait for it.
    pub fn sync_and_wake(&self, store: &Store) {
        self.sync();
        let waiting = std::mem::take(&mut *self.waiting.lock().expect("no test panics while holding it"));
        (0..WORKERS).filter(|worker| waiting[*worker]).for_each(|worker| store.wake(WorkerSet::one(worker)));
    }

    /// Whether a sync would wait for the end of the worker's turn.
    pub fn is_in_turn(&self, worker: usize) -> bool {
        self.in_turn[worker].load(Ordering::SeqCst)
    }

    /// Records appended so far.
    pub fn len(&self) -> usize {
        self.records.lock().expect("no test panics while holding it").len()
    }
}

impl RecordSink for FakeLog {
    fn admit(&self, _: usize, class: WriteClass) -> Admission {
        let (frees, any) = *self.admission.lock().expect("no test panics while holding it");
        match class {
            WriteClass::Nothing => panic!("what writes nothing needs no admission"),
            WriteClass::Frees => frees,
            WriteClass::Any => any,
        }
    }

    fn refusal(&self) -> Option<String> {
        Some(REASON.to_owned())
    }

    fn append(&self, worker: usize, payload: &[u8]) -> Lsn {
        self.in_turn[worker].store(true, Ordering::SeqCst);
        self.records.lock().expect("no test panics while holding it").push(payload.to_vec());
        Lsn(self.end.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn puts_off_sync(&self, worker: usize) -> bool {
        self.holds_replies() && self.is_in_turn(worker)
    }

    fn end_turn(&self, worker: usize) {
        self.in_turn[worker].store(false, Ordering::SeqCst);
    }

    fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    fn end(&self) -> Lsn {
        Lsn(self.end.load(Ordering::SeqCst))
    }

    fn holds_replies(&self) -> bool {
        self.holds.load(Ordering::SeqCst)
    }

    fn wait_for(&self, worker: usize) {
        self.waiting.lock().expect("no test panics while holding it")[worker] = true;
        self.end_turn(worker);
    }
}
