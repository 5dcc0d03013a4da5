//! Errors around a benchmark, with the context needed to fix them.

use std::io;
use std::path::PathBuf;

/// An operating error of the load generator. Bugs are assertions; a missed target is a value, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The address does not answer: nothing listens, it is filtered, or the name does not resolve.
    #[error("{address}: cannot connect")]
    Connect {
        /// The address that should be reached.
        address: String,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// This process may not open enough sockets for the connections.
    #[error(
        "{address}: out of file descriptors after {opened} connections (limit {limit}): raise it with `ulimit -n` or \
         use fewer connections"
    )]
    Descriptors {
        /// The address that should be reached.
        address: String,
        /// Connections already open.
        opened: usize,
        /// The process's limit after raising it as far as allowed.
        limit: u64,
    },
    /// The server requires a login and received none, or a wrong one.
    #[error("{address}: login refused: {reply} (give --user and --password, or ONGGI_BENCH_PASSWORD)")]
    Login {
        /// The server.
        address: String,
        /// Its error text.
        reply: String,
    },
    /// The server answered a control command, or every command of a test, with an error.
    #[error("{address}: {command}: the server answered: {reply}")]
    Refused {
        /// The server.
        address: String,
        /// The command.
        command: String,
        /// Its error text.
        reply: String,
    },
    /// The server closed a connection in the middle of a run.
    #[error("{address}: the server closed a connection during the run")]
    Closed {
        /// The server.
        address: String,
    },
    /// No reply arrived in the measured window.
    #[error("{address}: {command}: no reply in {seconds:.1} s")]
    Silent {
        /// The server.
        address: String,
        /// The command.
        command: String,
        /// Length of the window.
        seconds: f64,
    },
    /// The server sent more replies than it received requests.
    #[error("{address}: more replies than requests: the replies cannot be matched")]
    Unasked {
        /// The server.
        address: String,
    },
    /// Bytes that are not RESP.
    #[error("{address}: reply is not RESP: type byte {byte:#04x}")]
    NotResp {
        /// The server.
        address: String,
        /// The byte where a reply type was expected.
        byte: u8,
    },
    /// A server that the harness should start did not come up.
    #[error("server {name}: {reason}\n  command: {command}\n{log}")]
    Start {
        /// Name given to the server in this comparison.
        name: String,
        /// What happened.
        reason: String,
        /// The full command line.
        command: String,
        /// The last lines of its output.
        log: String,
    },
    /// A signal requested the end.
    #[error("interrupted; servers that were started are stopped, no results are written")]
    Interrupted,
    /// An invalid argument; the text names it and a valid form.
    #[error("{0}")]
    Usage(String),
    /// A setting or a file of TLS; the text names the option.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    /// Reading or writing a file, or asking the kernel about a process.
    #[error("{path}: {op}")]
    File {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        op: &'static str,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// A system call of the event loop or of pinning failed.
    #[error("{op}")]
    System {
        /// The operation that failed.
        op: &'static str,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// A results file that this version cannot read.
    #[error("{path}: not a results file of this version")]
    Results {
        /// The file.
        path: PathBuf,
        /// Where the JSON departs from what is expected.
        #[source]
        source: serde_json::Error,
    },
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, BenchError>;
