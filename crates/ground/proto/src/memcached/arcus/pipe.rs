//! Where in a pipe a parser is.

/// Where in a pipe a parser is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pipe {
    /// In none.
    #[default]
    Closed,
    /// Its requests follow.
    Open,
    /// Its last request was given; the last byte of that is not consumed yet.
    Ending,
}
