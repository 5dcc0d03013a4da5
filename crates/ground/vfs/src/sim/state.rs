//! The machine of a simulated disk: counts operations, applies faults, stops on request, records.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use base::Rng;
use parking_lot::Mutex;

use super::disk::Disk;
use super::draw::Draw;
use super::fault::{Effect, Faults};
use super::image::PAGE;
use super::names::NodeId;
use super::trace::{Argument, Outcome, Trace, TraceEntry};
use super::{CrashPoint, SimOptions};
use crate::error::{FsError, Op, Result, errno};

/// A sync, as the hook of [`SimFs::on_sync`](super::SimFs::on_sync) sees it.
#[derive(Clone, Copy, Debug)]
pub struct SyncCall<'a> {
    /// Its operation number.
    pub number: u64,
    /// The kind of sync.
    pub op: Op,
    /// The file or directory.
    pub path: &'a Path,
}

type SyncHook = Arc<dyn Fn(&SyncCall<'_>) + Send + Sync>;

/// One call by a program.
#[derive(Clone)]
pub(super) struct Call {
    pub op: Op,
    pub path: Arc<Path>,
    pub argument: Argument,
}

impl Call {
    pub fn new(op: Op, path: &Arc<Path>) -> Self {
        Self { op, path: Arc::clone(path), argument: Argument::None }
    }

    fn crashed(&self) -> FsError {
        FsError::Crashed { op: self.op, path: Arc::clone(&self.path) }
    }
}

/// What the faults do to a call that does not fail.
#[derive(Default)]
pub(super) enum Plan {
    #[default]
    AsAsked,
    /// Transfer at most this many bytes.
    Short(usize),
    Misdirect {
        to: std::path::PathBuf,
        offset: u64,
    },
}

pub(super) struct State {
    pub disk: Disk,
    pub options: SimOptions,
    pub locks: BTreeSet<NodeId>,
    pub faults: Faults,
    pub operations: u64,
    pub crash_at: Option<u64>,
    pub crashed: bool,
    pub recorded: Option<Vec<CrashPoint>>,
    pub trace: Trace,
    pub sync_hook: Option<SyncHook>,
    rng: Rng,
}

pub(super) struct Core {
    pub state: Mutex<State>,
}

/// An injected failure.
struct Injected {
    errno: i32,
    reads_show_old: bool,
}

impl Core {
    pub fn boot(disk: Disk, options: SimOptions) -> Self {
        let state = State {
            disk,
            locks: BTreeSet::new(),
            faults: Faults::default(),
            operations: 0,
            crash_at: None,
            crashed: false,
            recorded: None,
            trace: Trace::new(options.trace_len_max),
            sync_hook: None,
            rng: Rng::new(options.seed),
            options,
        };
        Self { state: Mutex::new(state) }
    }

    /// A call that changes nothing: not counted.
    pub fn look<R>(&self, call: Call, act: impl FnOnce(&mut State) -> io::Result<R>) -> Result<R> {
        self.read(call, |state, _| act(state))
    }

    /// A call that changes nothing and transfers bytes.
    pub fn read<R>(&self, call: Call, act: impl FnOnce(&mut State, Plan) -> io::Result<R>) -> Result<R> {
        let mut state = self.state.lock();
        if state.crashed {
            return Err(call.crashed());
        }
        let result = match state.plan(&call, None) {
            Ok(plan) => act(&mut state, plan),
            Err(injected) => Err(io::Error::from_raw_os_error(injected.errno)),
        };
        result.map_err(|e| FsError::io(call.op, call.path, e))
    }

    /// A call that changes the disk: counted, and a crash point.
    pub fn run<R>(&self, call: Call, act: impl FnOnce(&mut State, Plan) -> io::Result<R>) -> Result<R> {
        self.state.lock().run(call, act)
    }

    /// A call for which `look` decides whether it changes the disk (`true` in its answer) before `act` does the rest.
    pub fn run_if_changing<F, R>(
        &self,
        call: Call,
        look: impl FnOnce(&State) -> io::Result<(F, bool)>,
        act: impl FnOnce(&mut State, F) -> io::Result<R>,
    ) -> Result<R> {
        let mut state = self.state.lock();
        if state.crashed {
            return Err(call.crashed());
        }
        match look(&state) {
            Ok((found, true)) => state.run(call, |state, _| act(state, found)),
            Ok((found, false)) => {
                let planned = state.plan(&call, None).map_err(|i| io::Error::from_raw_os_error(i.errno));
                let result = planned.and_then(|_| act(&mut state, found));
                result.map_err(|e| FsError::io(call.op, call.path, e))
            }
            Err(e) => Err(FsError::io(call.op, call.path, e)),
        }
    }

    /// A sync in two steps, since the hook between them runs without the lock. `begin` determines what is covered.
    pub fn sync<C: Copy>(
        &self,
        call: Call,
        begin: impl FnOnce(&mut Disk) -> io::Result<C>,
        finish: impl FnOnce(&mut Disk, C),
        fail: impl FnOnce(&mut Disk, C, &mut Draw, bool),
    ) -> Result<()> {
        let mut state = self.state.lock();
        let number = state.begin(&call)?;
        // The crash point is before the effect: a sync hit by the crash has promised nothing.
        state.pass_crash_point(&call, number)?;
        let planned = state.plan(&call, Some(number));
        let begun = begin(&mut state.disk);
        if let Some(hook) = state.sync_hook.clone() {
            drop(state);
            hook(&SyncCall { number, op: call.op, path: &call.path });
            state = self.state.lock();
            if state.crashed {
                return Err(call.crashed());
            }
        }
        let result = match (begun, planned) {
            (Ok(covered), Ok(_)) => {
                finish(&mut state.disk, covered);
                Ok(())
            }
            (Ok(covered), Err(injected)) => {
                let mut draw = Draw::new(Rng::new(state.rng.next_u64()), state.options.crash);
                fail(&mut state.disk, covered, &mut draw, injected.reads_show_old);
                Err(io::Error::from_raw_os_error(injected.errno))
            }
            (Err(e), _) => Err(e),
        };
        state.end(call, number, result)
    }
}

impl State {
    /// Pages that can still be allocated.
    pub fn free_pages(&self) -> u64 {
        let all = self.options.capacity_bytes.map_or(u64::MAX / PAGE, |bytes| bytes / PAGE);
        all.saturating_sub(self.disk.used())
    }

    fn run<R>(&mut self, call: Call, act: impl FnOnce(&mut State, Plan) -> io::Result<R>) -> Result<R> {
        let number = self.begin(&call)?;
        let result = match self.plan(&call, Some(number)) {
            Ok(plan) => act(self, plan),
            Err(injected) => Err(io::Error::from_raw_os_error(injected.errno)),
        };
        // The crash point is after the effect, which is pending: the draw decides whether it arrived.
        self.pass_crash_point(&call, number)?;
        self.end(call, number, result)
    }

    fn begin(&mut self, call: &Call) -> Result<u64> {
        if self.crashed {
            return Err(call.crashed());
        }
        self.operations += 1;
        Ok(self.operations)
    }

    fn pass_crash_point(&mut self, call: &Call, number: u64) -> Result<()> {
        if let Some(recorded) = &mut self.recorded {
            let (disk, options) = (self.disk.clone(), self.options.clone());
            recorded.push(CrashPoint { operation: number, disk, options });
        }
        if self.crash_at == Some(number) {
            self.crashed = true;
            self.note(call.clone(), number, Outcome::Crashed);
            return Err(call.crashed());
        }
        Ok(())
    }

    fn end<R>(&mut self, call: Call, number: u64, result: io::Result<R>) -> Result<R> {
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(e) => Outcome::Failed(e.raw_os_error().unwrap_or(errno::EIO)),
        };
        self.note(call.clone(), number, outcome);
        result.map_err(|e| FsError::io(call.op, call.path, e))
    }

    fn note(&mut self, call: Call, number: u64, outcome: Outcome) {
        let Call { op, path, argument } = call;
        self.trace.push(TraceEntry { number, op, path, argument, outcome });
    }

    /// Applies injected faults first, then the random ones of the options.
    fn plan(&mut self, call: &Call, number: Option<u64>) -> std::result::Result<Plan, Injected> {
        match self.faults.meet(call.op, &call.path, number) {
            Some(Effect::Fail { errno, reads_show_old }) => return Err(Injected { errno, reads_show_old }),
            Some(Effect::Short(bytes)) => return Ok(Plan::Short(bytes)),
            Some(Effect::Misdirect { to, offset }) => return Ok(Plan::Misdirect { to, offset }),
            None => {}
        }
        let Argument::Range { len, .. } = call.argument else { return Ok(Plan::AsAsked) };
        if !matches!(call.op, Op::Read | Op::Write) {
            return Ok(Plan::AsAsked);
        }
        let mut comes_up = |one_in: u32| one_in > 0 && self.rng.one_in(one_in.into());
        if comes_up(self.options.interrupt_one_in) {
            return Err(Injected { errno: errno::EINTR, reads_show_old: false });
        }
        if comes_up(self.options.short_transfer_one_in) && len > 1 {
            return Ok(Plan::Short(1 + self.rng.below(len - 1) as usize));
        }
        Ok(Plan::AsAsked)
    }
}
