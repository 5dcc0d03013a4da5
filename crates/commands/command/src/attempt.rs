//! Which run of a command this is.

/// Whether a command runs for the first time, or again because keys that it waits for have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// As a client has sent it.
    First,
    /// For a connection that waits; this session only stands in for that connection's.
    Again,
    /// Again, and there was nothing for it.
    InVain,
}
