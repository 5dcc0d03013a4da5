//! Errors that name the operation and the path, and keep the operating system's error number: whether a failure is
//! ENOSPC, EIO or something else decides the caller's next step.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Error numbers that callers decide on and tests inject.
pub mod errno {
    use rustix::io::Errno;

    /// Input/output error: the medium failed.
    pub const EIO: i32 = Errno::IO.raw_os_error();
    /// No space left on the device.
    pub const ENOSPC: i32 = Errno::NOSPC.raw_os_error();
    /// The user's disk quota is used up.
    pub const EDQUOT: i32 = Errno::DQUOT.raw_os_error();
    /// Interrupted by a signal before anything was done.
    pub const EINTR: i32 = Errno::INTR.raw_os_error();
    /// The file would grow beyond the process' limit.
    pub const EFBIG: i32 = Errno::FBIG.raw_os_error();
    /// The process has no free descriptor.
    pub const EMFILE: i32 = Errno::MFILE.raw_os_error();
    /// The system has no free descriptor.
    pub const ENFILE: i32 = Errno::NFILE.raw_os_error();
    /// Permission denied.
    pub const EACCES: i32 = Errno::ACCESS.raw_os_error();
    /// The file system is mounted for reading only.
    pub const EROFS: i32 = Errno::ROFS.raw_os_error();
    /// The system has no free memory, or the process has too many mappings.
    pub const ENOMEM: i32 = Errno::NOMEM.raw_os_error();
    /// Invalid argument, such as an unaligned transfer on a file opened for direct I/O.
    pub const EINVAL: i32 = Errno::INVAL.raw_os_error();
}

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each variant is named after the trait method or the kind of access it stands for")]
pub enum Op {
    Open,
    CreateDir,
    Rename,
    RemoveFile,
    RemoveDir,
    HardLink,
    ReadDir,
    Metadata,
    SyncDir,
    Lock,
    Space,
    Read,
    Write,
    SyncData,
    SyncAll,
    SetLen,
    Allocate,
    PunchHole,
    Len,
    Map,
    Load,
    Store,
    Fence,
}

impl Op {
    /// Its name in messages and traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Op::Open => "open",
            Op::CreateDir => "create directory",
            Op::Rename => "rename",
            Op::RemoveFile => "remove file",
            Op::RemoveDir => "remove directory",
            Op::HardLink => "hard link",
            Op::ReadDir => "read directory",
            Op::Metadata => "metadata",
            Op::SyncDir => "sync directory",
            Op::Lock => "lock",
            Op::Space => "free space",
            Op::Read => "read",
            Op::Write => "write",
            Op::SyncData => "sync data",
            Op::SyncAll => "sync all",
            Op::SetLen => "set length",
            Op::Allocate => "allocate",
            Op::PunchHole => "punch hole",
            Op::Len => "length",
            Op::Map => "map",
            Op::Load => "load",
            Op::Store => "store",
            Op::Fence => "fence",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The result of every operation of this crate.
pub type Result<T> = std::result::Result<T, FsError>;

/// Why an operation on a file or a directory failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FsError {
    /// The operating system (or a simulated one) returned an error; `source` has its number. The message includes the
    /// reason, so it is complete without the chain of causes.
    #[error("{}: {op}: {}", path.display(), reason(source))]
    Io {
        /// The operation.
        op: Op,
        /// The file or directory.
        path: Arc<Path>,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file ended before the requested range.
    #[error("{}: read of {wanted} bytes at offset {offset}: the file ends after {got} of them", path.display())]
    EndOfFile {
        /// The file.
        path: Arc<Path>,
        /// Where the read began, in bytes.
        offset: u64,
        /// Bytes requested.
        wanted: usize,
        /// Bytes available.
        got: usize,
    },
    /// The lock file is already locked.
    #[error("{}: locked by {}", path.display(), owner(*pid))]
    Locked {
        /// The lock file.
        path: Arc<Path>,
        /// The holder's process id; `None` if it has not been written yet.
        pid: Option<u32>,
    },
    /// The simulated machine has stopped; the call did nothing. Only `SimFs` returns it.
    #[error("{}: {op}: the machine has stopped", path.display())]
    Crashed {
        /// The operation.
        op: Op,
        /// The file or directory.
        path: Arc<Path>,
    },
}

/// The operating system's message without the number, which only programs need.
pub fn reason(error: &io::Error) -> String {
    without_number(&error.to_string()).to_owned()
}

fn without_number(text: &str) -> &str {
    text.rsplit_once(" (os error ").map_or(text, |(words, _)| words)
}

/// The causes of an error, without those that its message, or an earlier cause, already ends with.
pub fn further_causes(error: &dyn std::error::Error) -> Vec<String> {
    let (mut last, mut causes) = (error.to_string(), Vec::new());
    let mut source = error.source();
    while let Some(cause) = source {
        let text = without_number(&cause.to_string()).to_owned();
        if !last.ends_with(&text) {
            causes.push(text.clone());
            last = text;
        }
        source = cause.source();
    }
    causes
}

fn owner(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl FsError {
    /// An [`FsError::Io`].
    pub fn io(op: Op, path: impl Into<Arc<Path>>, source: impl Into<io::Error>) -> Self {
        Self::Io { op, path: path.into(), source: source.into() }
    }

    /// The file or directory.
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::EndOfFile { path, .. }
            | Self::Locked { path, .. }
            | Self::Crashed { path, .. } => path,
        }
    }

    /// The operation.
    pub fn op(&self) -> Op {
        match self {
            Self::Io { op, .. } | Self::Crashed { op, .. } => *op,
            Self::EndOfFile { .. } => Op::Read,
            Self::Locked { .. } => Op::Lock,
        }
    }

    /// The error's kind in the standard library.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Io { source, .. } => source.kind(),
            Self::EndOfFile { .. } => io::ErrorKind::UnexpectedEof,
            Self::Locked { .. } => io::ErrorKind::WouldBlock,
            Self::Crashed { .. } => io::ErrorKind::Other,
        }
    }

    /// The operating system's error number (see [`errno`]); `None` for errors that have none.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// The reason, in the operating system's words, without operation and path: for a message that names both itself.
    pub fn reason(&self) -> String {
        match self {
            Self::Io { source, .. } => reason(source),
            other => other.to_string(),
        }
    }

    /// No such file or directory.
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }

    /// The name is taken already.
    pub fn is_already_exists(&self) -> bool {
        self.kind() == io::ErrorKind::AlreadyExists
    }

    /// The device or the quota is full: the operation may succeed once space is free.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self.raw_os_error(), Some(errno::ENOSPC | errno::EDQUOT))
    }

    /// No descriptor or memory is free: the operation may succeed later.
    pub fn is_out_of_resources(&self) -> bool {
        matches!(self.raw_os_error(), Some(errno::EMFILE | errno::ENFILE | errno::ENOMEM))
    }

    /// The file system is mounted for reading only.
    pub fn is_read_only(&self) -> bool {
        self.kind() == io::ErrorKind::ReadOnlyFilesystem
    }

    /// A signal interrupted the call before it did anything; the caller may repeat it.
    pub fn is_interrupted(&self) -> bool {
        self.kind() == io::ErrorKind::Interrupted
    }

    /// The simulated machine has stopped.
    pub fn is_crash(&self) -> bool {
        matches!(self, Self::Crashed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message names path, operation and reason, and the error number remains available.
    #[test]
    fn errors_say_what_where_and_why() {
        let error = FsError::io(Op::SyncData, Path::new("data/log-0"), io::Error::from_raw_os_error(errno::ENOSPC));
        assert_eq!(error.to_string(), "data/log-0: sync data: No space left on device");
        assert_eq!(error.reason(), "No space left on device");
        assert!(error.is_out_of_space() && !error.is_not_found());
        assert_eq!((error.op(), error.path()), (Op::SyncData, Path::new("data/log-0")));
        let source = std::error::Error::source(&error).expect("an I/O error has a cause");
        assert!(source.to_string().contains("No space left"), "{source}");
        assert_eq!(further_causes(&error), [""; 0], "the message is complete");
        let wrapped = io::Error::other(FsError::io(Op::Read, Path::new("f"), io::Error::from_raw_os_error(errno::EIO)));
        assert_eq!(wrapped.to_string(), "f: read: Input/output error");
        assert_eq!(further_causes(&wrapped), [""; 0]);

        let locked = FsError::Locked { path: Path::new("lock").into(), pid: Some(7) };
        assert_eq!(locked.to_string(), "lock: locked by process 7");
        assert!(std::mem::size_of::<FsError>() <= 64, "errors travel by value on the hot path");
    }
}
