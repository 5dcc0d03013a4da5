//! The operations of a run, for a person who examines a failed seed.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::error::Op;

/// One operation that could change the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Its number: 1 for the first since the boot.
    pub number: u64,
    /// The operation.
    pub op: Op,
    /// Its path.
    pub path: Arc<Path>,
    /// Its argument.
    pub argument: Argument,
    /// Its result.
    pub outcome: Outcome,
}

/// The argument of an operation, as far as it helps a reader of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// None worth naming.
    None,
    /// A length in bytes.
    Len(u64),
    /// A range of the file, in bytes.
    Range {
        /// Its beginning.
        offset: u64,
        /// Its length.
        len: u64,
    },
    /// The second path of a rename or hard link.
    To(Arc<Path>),
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success. (For transfers: at least in part.)
    Done,
    /// Failure with this error number.
    Failed(i32),
    /// The machine stopped during the operation.
    Crashed,
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} {}", self.number, self.op, self.path.display())?;
        match &self.argument {
            Argument::None => {}
            Argument::Len(len) => write!(f, " {len}")?,
            Argument::Range { offset, len } => write!(f, " {offset}+{len}")?,
            Argument::To(path) => write!(f, " -> {}", path.display())?,
        }
        match self.outcome {
            Outcome::Done => Ok(()),
            Outcome::Failed(errno) => write!(f, ": {}", std::io::Error::from_raw_os_error(errno)),
            Outcome::Crashed => f.write_str(": the machine stopped"),
        }
    }
}

/// The last operations of a run.
pub(super) struct Trace {
    entries: VecDeque<TraceEntry>,
    len_max: usize,
}

impl Trace {
    pub fn new(len_max: usize) -> Self {
        Self { entries: VecDeque::new(), len_max }
    }

    pub fn push(&mut self, entry: TraceEntry) {
        if self.entries.len() >= self.len_max {
            self.entries.pop_front();
        }
        if self.len_max > 0 {
            self.entries.push_back(entry);
        }
    }

    pub fn to_vec(&self) -> Vec<TraceEntry> {
        self.entries.iter().cloned().collect()
    }
}
