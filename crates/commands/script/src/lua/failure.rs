//! How a script fails.

/// Why a script gave no reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The script does not compile, or has raised: the text.
    Raised(Vec<u8>),
    /// It raised what a command had answered, which is counted already.
    Answered(Vec<u8>),
    /// There was not enough memory within the limit.
    Memory,
    /// It ended for the host.
    Over,
}
