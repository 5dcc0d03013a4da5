//! The script that runs, as other workers see it: whether it keeps them waiting, and that it is to end.

use command::Stop;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Serves others while a script keeps a worker.
pub trait Attend: Send + Sync {
    /// A script keeps this worker, which calls this. False when no other thread serves its connections.
    fn begin(&self, worker: usize) -> bool;

    /// Whether this worker is the one that serves others.
    fn is_attendant(&self, worker: usize) -> bool;

    /// It has ended, and its worker waits in this call until it has its connections back.
    fn end(&self, worker: usize);
}

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// EVAL or a relative.
    Script,
    /// FCALL or its relative.
    Function,
}

impl Kind {
    /// What requests are answered while it is busy.
    pub fn busy(self) -> &'static str {
        match self {
            Self::Script => "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            Self::Function => {
                "BUSY Valkey is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
            }
        }
    }

    /// What it answers when it was ended.
    pub fn killed(self) -> &'static str {
        match self {
            Self::Script => "ERR Script killed by user with SCRIPT KILL.",
            Self::Function => "ERR Script killed by user with FUNCTION KILL.",
        }
    }
}

/// A function that runs past its time.
#[derive(Clone, Debug)]
pub struct RunningFunction {
    /// Its name, as it was called.
    pub name: Vec<u8>,
    /// The request.
    pub command: Vec<Vec<u8>>,
    /// When it began.
    pub since: Instant,
}

/// The script that a worker runs. The worker writes it, except for the order to end.
#[derive(Default)]
pub struct Slot {
    is_running: AtomicBool,
    is_function: AtomicBool,
    has_written: AtomicBool,
    is_killed: AtomicBool,
    /// It runs past its time.
    is_busy: AtomicBool,
    /// It has all shards locked.
    has_all_locks: AtomicBool,
    /// The function, once it is busy.
    function: Mutex<Option<RunningFunction>>,
}

impl Slot {
    /// A script begins.
    pub fn begin(&self, kind: Kind, has_all_locks: bool) {
        self.is_function.store(kind == Kind::Function, Ordering::Relaxed);
        self.has_written.store(false, Ordering::Relaxed);
        self.is_killed.store(false, Ordering::Relaxed);
        self.has_all_locks.store(has_all_locks, Ordering::Relaxed);
        self.is_running.store(true, Ordering::Release);
    }

    /// It has ended.
    pub fn end(&self) {
        self.is_running.store(false, Ordering::Release);
    }

    /// It has run a command that may change entries.
    pub fn wrote(&self) {
        self.has_written.store(true, Ordering::Release);
    }

    /// It has locked all shards.
    pub fn locked_all(&self) {
        self.has_all_locks.store(true, Ordering::Release);
    }

    /// Whether it is to end.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }

    /// Whether it runs past its time.
    pub fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Acquire)
    }

    /// What runs, or ran last.
    pub fn kind(&self) -> Kind {
        if self.is_function.load(Ordering::Relaxed) { Kind::Function } else { Kind::Script }
    }
}

/// The scripts that run, one of each worker.
#[derive(Default)]
pub struct Running {
    slots: Mutex<Vec<Arc<Slot>>>,
    /// The server ends without saving: whatever runs is to end, and nothing of it is kept.
    is_abandoned: AtomicBool,
    attendant: OnceLock<Arc<dyn Attend>>,
}

/// Why a script cannot be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkillable {
    /// None runs.
    NotBusy,
    /// What runs is of the other kind.
    Other(Kind),
    /// It has changed entries, and half of its changes must not be the end.
    HasWritten,
}

impl Running {
    /// A place for the scripts of a worker, until it is [left](Running::leave).
    pub fn enter(&self) -> Arc<Slot> {
        let slot = Arc::<Slot>::default();
        self.slots.lock().push(slot.clone());
        slot
    }

    /// The worker runs no more scripts from this place.
    pub fn leave(&self, slot: &Arc<Slot>) {
        self.slots.lock().retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// How many scripts run, each on a worker of its own.
    pub fn count(&self) -> usize {
        self.slots.lock().iter().filter(|slot| slot.is_running.load(Ordering::Acquire)).count()
    }

    /// Says whether the script of a slot runs past its time, and which function it is. `note` learns whether any does,
    /// before others can change that.
    pub fn set_busy(&self, slot: &Slot, is_busy: bool, function: Option<RunningFunction>, note: impl FnOnce(bool)) {
        let slots = self.slots.lock();
        *slot.function.lock() = function;
        slot.is_busy.store(is_busy, Ordering::Release);
        note(slots.iter().any(|slot| slot.is_busy()));
    }

    /// Whether a script that runs past its time has all shards locked: no request of others can run.
    fn has_all_locks(&self) -> bool {
        self.slots.lock().iter().any(|slot| slot.is_busy() && slot.has_all_locks.load(Ordering::Acquire))
    }

    /// Whether this worker refuses requests while a script runs past its time, without a look at their locks.
    pub fn keeps(&self, worker: usize) -> bool {
        self.has_all_locks() || self.attendant().is_some_and(|attendant| attendant.is_attendant(worker))
    }

    /// The server ends without saving: whatever runs, or will run, ends soon and leaves nothing in the log.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }

    /// Whether [`Running::abandon`] was called.
    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Acquire)
    }

    /// Sets who serves others while a script keeps a worker; once.
    pub fn set_attendant(&self, attendant: Arc<dyn Attend>) {
        // A second one would mean two sets of workers; the first stays.
        let _ = self.attendant.set(attendant);
    }

    /// Who does, if anybody.
    pub fn attendant(&self) -> Option<&dyn Attend> {
        self.attendant.get().map(|attendant| &**attendant)
    }

    /// What runs past its time.
    pub fn kind(&self) -> Kind {
        self.slots.lock().iter().find(|slot| slot.is_busy()).map_or(Kind::Script, |slot| slot.kind())
    }

    /// The function that is busy.
    ///
    /// # Errors
    /// A script is.
    pub fn running_function(&self) -> Result<Option<RunningFunction>, Stop> {
        let slots = self.slots.lock();
        let mut busy = slots.iter().filter(|slot| slot.is_busy());
        match busy.clone().find_map(|slot| slot.function.lock().clone()) {
            None if busy.any(|slot| slot.kind() == Kind::Script) => Err(Stop::error(Kind::Script.busy())),
            function => Ok(function),
        }
    }

    /// Has what runs end, if it is of this kind: what runs past its time, or else all.
    ///
    /// # Errors
    /// See [`Unkillable`].
    pub fn kill(&self, kind: Kind) -> Result<(), Unkillable> {
        let slots = self.slots.lock();
        let mut meant: Vec<&Arc<Slot>> = slots.iter().filter(|slot| slot.is_running.load(Ordering::Acquire)).collect();
        if meant.iter().any(|slot| slot.is_busy()) {
            meant.retain(|slot| slot.is_busy());
        }
        let other = meant.first().ok_or(Unkillable::NotBusy)?.kind();
        meant.retain(|slot| slot.kind() == kind);
        if meant.is_empty() {
            return Err(Unkillable::Other(other));
        }
        meant.retain(|slot| !slot.has_written.load(Ordering::Acquire));
        if meant.is_empty() {
            return Err(Unkillable::HasWritten);
        }
        meant.iter().for_each(|slot| slot.is_killed.store(true, Ordering::Release));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_has_written_is_not_ended() {
        let running = Running::default();
        let slot = running.enter();
        assert_eq!(running.kill(Kind::Script), Err(Unkillable::NotBusy));
        slot.begin(Kind::Script, true);
        slot.wrote();
        assert_eq!(running.kill(Kind::Script), Err(Unkillable::HasWritten));
        slot.end();
        slot.begin(Kind::Script, true);
        assert_eq!(running.kill(Kind::Script), Ok(()));
        assert!(slot.is_killed());
        slot.end();
        slot.begin(Kind::Script, true);
        assert!(!slot.is_killed(), "an order to end is for one script");
    }

    #[test]
    fn each_kind_has_its_own_end() {
        let running = Running::default();
        let slot = running.enter();
        slot.begin(Kind::Function, true);
        assert_eq!(running.kill(Kind::Script), Err(Unkillable::Other(Kind::Function)));
        assert!(running.running_function().is_ok_and(|function| function.is_none()));
        assert_eq!(running.kill(Kind::Function), Ok(()));
        slot.end();
        slot.begin(Kind::Script, true);
        running.set_busy(&slot, true, None, |is_any| assert!(is_any));
        assert_eq!(running.kill(Kind::Function), Err(Unkillable::Other(Kind::Script)));
        assert!(running.running_function().is_err());
    }

    #[test]
    fn of_two_scripts_the_one_past_its_time_is_ended() {
        let running = Running::default();
        let [late, quick] = [(); 2].map(|()| running.enter());
        late.begin(Kind::Script, false);
        quick.begin(Kind::Script, false);
        running.set_busy(&late, true, None, |is_any| assert!(is_any));
        assert!(!running.has_all_locks());
        assert_eq!(running.kill(Kind::Script), Ok(()));
        assert!(late.is_killed() && !quick.is_killed());
        late.locked_all();
        assert!(running.has_all_locks());
        running.set_busy(&late, false, None, |is_any| assert!(!is_any));
        running.leave(&late);
        assert!(!running.has_all_locks());
    }
}
