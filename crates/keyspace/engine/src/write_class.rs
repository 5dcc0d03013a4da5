//! What a command may do to entries, known before it runs.

/// A command's class, as far as admission to the log is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteClass {
    /// It changes nothing and needs no admission.
    #[default]
    Nothing,
    /// It only removes entries: it may run while a full disk keeps others from writing.
    Frees,
    /// It may change anything.
    Any,
}

impl WriteClass {
    /// The class of a command that does what both do.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            (Self::Frees, _) | (_, Self::Frees) => Self::Frees,
            (Self::Nothing, Self::Nothing) => Self::Nothing,
        }
    }
}
