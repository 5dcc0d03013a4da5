//! What a run did, for the person who looks at a failed seed.

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
    /// What was called.
    pub op: Op,
    /// On what.
    pub path: Arc<Path>,
    /// With which argument.
    pub argument: Argument,
    /// With which result.
    pub outcome: Outcome,
}

/// The argument of an operation, as far as a reader of a trace needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// None worth naming.
    None,
    /// A length in bytes.
    Len(u64),
    /// A range of the file, in bytes.
    Range {
        /// Where it begins.
        offset: u64,
        /// How long it is.
        len: u64,
    },
    /// The second path of a rename or hard link.
    To(Arc<Path>),
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As asked. (For transfers: at least in part.)
    Done,
    /// With this error number.
    Failed(i32),
    /// The machine stopped during it.
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
