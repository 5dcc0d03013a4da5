//! Ids of entries.

use base::varint;
use std::fmt;

/// The id of an entry: a time, and a number among the entries of that time. Ids order by time and then by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Milliseconds since 1970, or whatever the client counts.
    pub ms: u64,
    /// The number within `ms`.
    pub seq: u64,
}

impl Id {
    /// `0-0`, which no entry has.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The last one there is.
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// The id after this one; `None` after the last.
    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The id before this one; `None` before `0-0`.
    pub fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// Appends both numbers as varints.
    pub(super) fn put(self, out: &mut Vec<u8>) {
        varint::put(out, self.ms);
        varint::put(out, self.seq);
    }

    /// Takes what [`Id::put`] appended.
    pub(super) fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self { ms: varint::take(from)?, seq: varint::take(from)? })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_cross_milliseconds_and_end_at_the_borders() {
        let id = |ms, seq| Id { ms, seq };
        assert_eq!(id(1, u64::MAX).next(), Some(id(2, 0)));
        assert_eq!(id(2, 0).previous(), Some(id(1, u64::MAX)));
        assert_eq!(id(1, 1).next(), Some(id(1, 2)));
        assert_eq!(id(1, 1).previous(), Some(id(1, 0)));
        assert_eq!((Id::MAX.next(), Id::MIN.previous()), (None, None));
        assert!(id(1, 9) < id(2, 0) && id(2, 0) < id(2, 1));
    }
}
