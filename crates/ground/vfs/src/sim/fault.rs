//! Faults that a test injects: the call that they affect, and how.

use std::path::{Path, PathBuf};

use crate::error::Op;

/// One injected fault. By default it affects the first call of its kind, on any path, once.
///
/// ```
/// use vfs::{Fault, Op, SimFs, errno};
///
/// let fs = SimFs::new(1);
/// // The third sync of the log fails.
/// fs.inject(Fault::fail(Op::SyncData, errno::EIO).on("log-0").skip(2));
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    meets: Meets,
    path: Option<PathBuf>,
    dir: Option<PathBuf>,
    skip: u64,
    /// Calls still to affect; `None`: forever.
    left: Option<u64>,
    effect: Effect,
}

#[derive(Clone, Debug)]
enum Meets {
    Op(Op),
    /// The operation with this number (see `SimFs::operations`).
    Operation(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The call fails with this error number. A failed sync loses what it should have covered.
    Fail { errno: i32, reads_show_old: bool },
    /// The transfer stops after this many bytes.
    Short(usize),
    /// The bytes go to another place, and the call succeeds.
    Misdirect { to: PathBuf, offset: u64 },
}

impl Fault {
    fn new(meets: Meets, effect: Effect) -> Self {
        Self { meets, path: None, dir: None, skip: 0, left: Some(1), effect }
    }

    /// The call fails with an error number of [`errno`](crate::errno), without effect, except for syncs. A failed sync
    /// writes some of the pending sectors (or names), drops the others and marks all clean, so that the next sync
    /// succeeds without saving them (Rebello et al., USENIX ATC 2020).
    pub fn fail(op: Op, errno: i32) -> Self {
        Self::new(Meets::Op(op), Effect::Fail { errno, reads_show_old: false })
    }

    /// As [`fail`](Self::fail), for the operation with this number, of any kind: a test that iterates over all numbers
    /// fails each call of a run once.
    pub fn fail_operation(number: u64, errno: i32) -> Self {
        Self::new(Meets::Operation(number), Effect::Fail { errno, reads_show_old: false })
    }

    /// A read or write that transfers at most `bytes` (at least 1).
    pub fn short(op: Op, bytes: usize) -> Self {
        Self::new(Meets::Op(op), Effect::Short(bytes.max(1)))
    }

    /// A write whose bytes go to the file `to` at `offset` (within its length) instead of their own place. The call
    /// succeeds, and the page cache shows the bytes in the right place until the machine restarts.
    pub fn misdirect(to: impl Into<PathBuf>, offset: u64) -> Self {
        Self::new(Meets::Op(Op::Write), Effect::Misdirect { to: to.into(), offset })
    }

    /// Only calls on a path that ends with these components.
    pub fn on(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Only calls on paths below this directory.
    pub fn below(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Lets the first `calls` matching calls pass.
    pub fn skip(mut self, calls: u64) -> Self {
        self.skip = calls;
        self
    }

    /// Affects this many calls.
    pub fn times(mut self, calls: u64) -> Self {
        self.left = Some(calls);
        self
    }

    /// Affects every call from then on.
    pub fn forever(mut self) -> Self {
        self.left = None;
        self
    }

    /// For a failed sync of a file: reads afterwards show the medium's contents, not the new bytes, as where the file
    /// system drops the pages.
    pub fn reads_show_old(mut self) -> Self {
        if let Effect::Fail { reads_show_old, .. } = &mut self.effect {
            *reads_show_old = true;
        }
        self
    }
}

/// The injected faults.
#[derive(Default)]
pub(super) struct Faults {
    planted: Vec<Fault>,
    fired: u64,
}

impl Faults {
    pub fn plant(&mut self, fault: Fault) {
        self.planted.push(fault);
    }

    pub fn clear(&mut self) {
        self.planted.clear();
    }

    pub fn fired(&self) -> u64 {
        self.fired
    }

    /// The effect on this call; `number` is `None` for calls that change nothing. The first matching fault wins, and
    /// only it counts the call.
    pub fn meet(&mut self, op: Op, path: &Path, number: Option<u64>) -> Option<Effect> {
        let fault = self.planted.iter_mut().filter(|fault| fault.left != Some(0)).find(|fault| {
            let call = match fault.meets {
                Meets::Op(wanted) => wanted == op,
                Meets::Operation(wanted) => number == Some(wanted),
            };
            call && fault.path.as_ref().is_none_or(|wanted| path.ends_with(wanted))
                && fault.dir.as_ref().is_none_or(|dir| path.starts_with(dir))
        })?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        fault.left = fault.left.map(|left| left - 1);
        self.fired += 1;
        Some(fault.effect.clone())
    }
}
