//! Kinds of collections.

/// A kind of collection, by the first word of its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `lop`
    List,
    /// `sop`
    Set,
    /// `mop`
    Map,
    /// `bop`
    Tree,
    /// `getattr` and `setattr`
    Any,
}

impl Family {
    /// The family that the first word of a line names.
    pub fn of(word: &[u8]) -> Option<Self> {
        match word {
            b"lop" => Some(Self::List),
            b"sop" => Some(Self::Set),
            b"mop" => Some(Self::Map),
            b"bop" => Some(Self::Tree),
            b"getattr" | b"setattr" => Some(Self::Any),
            _ => None,
        }
    }
}
