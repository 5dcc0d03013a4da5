//! The script that runs, as other workers see it: whether it keeps them waiting, and that it is to end.

use crate::cache::Scripts;
use command::{Ctx, Stop};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Serves others while a script keeps a worker.
pub trait Attend: Send + Sync {
    /// A script keeps this worker. False when no other thread serves its connections.
    fn begin(&self, worker: usize) -> bool;

    /// It has ended, and its worker waits in this call until it has its connections back.
    fn end(&self);
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

/// The state of the script that runs. The worker that runs it writes it, except for the order to end.
#[derive(Default)]
pub struct Running {
    is_running: AtomicBool,
    is_function: AtomicBool,
    has_written: AtomicBool,
    is_killed: AtomicBool,
    /// The server ends without saving: whatever runs is to end, and nothing of it is kept.
    is_abandoned: AtomicBool,
    attendant: OnceLock<Arc<dyn Attend>>,
    /// The function, once it is busy.
    function: Mutex<Option<RunningFunction>>,
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
    /// A script begins.
    pub fn begin(&self, kind: Kind) {
        self.is_function.store(kind == Kind::Function, Ordering::Relaxed);
        self.has_written.store(false, Ordering::Relaxed);
        self.is_killed.store(false, Ordering::Relaxed);
        self.is_running.store(true, Ordering::Release);
    }

    /// It has ended.
    pub fn end(&self) {
        self.is_running.store(false, Ordering::Release);
    }

    /// Whether a script runs.
    pub fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    /// It has run a command that may change entries.
    pub fn wrote(&self) {
        self.has_written.store(true, Ordering::Release);
    }

    /// Whether it is to end.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
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

    /// What runs, or ran last.
    pub fn kind(&self) -> Kind {
        if self.is_function.load(Ordering::Relaxed) { Kind::Function } else { Kind::Script }
    }

    /// It is busy now: others may ask which function it is. `None` for a script, and at the end.
    pub fn show(&self, function: Option<RunningFunction>) {
        *self.function.lock() = function;
    }

    /// The function that is busy.
    ///
    /// # Errors
    /// A script is.
    pub fn running_function(&self) -> Result<Option<RunningFunction>, Stop> {
        let function = self.function.lock().clone();
        let is_running = self.is_running.load(Ordering::Acquire);
        match self.kind() {
            Kind::Script if is_running => Err(Stop::error(Kind::Script.busy())),
            _ => Ok(function.filter(|_| is_running)),
        }
    }

    /// Has what runs end, if it is of this kind.
    ///
    /// # Errors
    /// See [`Unkillable`].
    pub fn kill(&self, kind: Kind) -> Result<(), Unkillable> {
        if !self.is_running.load(Ordering::Acquire) {
            return Err(Unkillable::NotBusy);
        }
        if self.kind() != kind {
            return Err(Unkillable::Other(self.kind()));
        }
        if self.has_written.load(Ordering::Acquire) {
            return Err(Unkillable::HasWritten);
        }
        self.is_killed.store(true, Ordering::Release);
        Ok(())
    }
}

/// SCRIPT KILL and FUNCTION KILL.
///
/// # Errors
/// What runs cannot be ended.
pub fn kill(ctx: &mut Ctx<'_>, kind: Kind) -> Result<(), Stop> {
    match ctx.host.part::<Arc<Scripts>>().running.kill(kind) {
        Ok(()) => {
            ctx.reply.ok();
            Ok(())
        }
        Err(Unkillable::NotBusy) => Err(Stop::error("NOTBUSY No scripts in execution right now.")),
        Err(Unkillable::Other(kind)) => Err(Stop::error(kind.busy())),
        Err(Unkillable::HasWritten) => Err(Stop::error(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
             script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_has_written_is_not_ended() {
        let running = Running::default();
        assert_eq!(running.kill(Kind::Script), Err(Unkillable::NotBusy));
        running.begin(Kind::Script);
        running.wrote();
        assert_eq!(running.kill(Kind::Script), Err(Unkillable::HasWritten));
        running.end();
        running.begin(Kind::Script);
        assert_eq!(running.kill(Kind::Script), Ok(()));
        assert!(running.is_killed());
        running.end();
        running.begin(Kind::Script);
        assert!(!running.is_killed(), "an order to end is for one script");
    }

    #[test]
    fn each_kind_has_its_own_end() {
        let running = Running::default();
        running.begin(Kind::Function);
        assert_eq!(running.kill(Kind::Script), Err(Unkillable::Other(Kind::Function)));
        assert!(running.running_function().is_ok_and(|function| function.is_none()));
        assert_eq!(running.kill(Kind::Function), Ok(()));
        running.end();
        running.begin(Kind::Script);
        assert_eq!(running.kill(Kind::Function), Err(Unkillable::Other(Kind::Script)));
        assert!(running.running_function().is_err());
    }
}
