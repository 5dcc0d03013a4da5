//! Ranges of names, in the order of their bytes.

use crate::Type;
use base::{ShardId, UnixMs};
use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};

/// A range of names, in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    is_reversed: bool,
}

impl Names {
    /// Those from one end to the other; reversed, from the upper one to the lower one.
    pub fn new(lower: Bound<&[u8]>, upper: Bound<&[u8]>, is_reversed: bool) -> Self {
        Self { lower: lower.map(<[u8]>::to_vec), upper: upper.map(<[u8]>::to_vec), is_reversed }
    }

    /// Whether they go from the upper end to the lower one.
    pub fn is_reversed(&self) -> bool {
        self.is_reversed
    }

    /// The lower and the upper end.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.lower.as_ref().map(Vec::as_slice), self.upper.as_ref().map(Vec::as_slice))
    }

    /// Whether there can be none.
    pub fn is_empty(&self) -> bool {
        match self.bounds() {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (Bound::Included(lower) | Bound::Excluded(lower), Bound::Included(upper) | Bound::Excluded(upper)) => {
                lower >= upper
            }
        }
    }

    /// Whether the name is in the range.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.bounds().contains(name)
    }

    /// Those that come after a name.
    pub fn behind(self, name: Vec<u8>) -> Self {
        match self.is_reversed {
            false => Self { lower: Bound::Excluded(name), ..self },
            true => Self { upper: Bound::Excluded(name), ..self },
        }
    }

    /// Those up to a name.
    pub(crate) fn up_to(&self, name: &[u8]) -> Self {
        let end = Bound::Included(name.to_vec());
        match self.is_reversed {
            false => Self { upper: end, ..self.clone() },
            true => Self { lower: end, ..self.clone() },
        }
    }

    /// Whether the first name comes before the second in this direction.
    pub fn is_before(&self, first: &[u8], second: &[u8]) -> bool {
        if self.is_reversed { first > second } else { first < second }
    }

    /// Visits names of a set in this order until `visit` says false.
    pub fn visit(&self, set: &BTreeSet<Box<[u8]>>, mut visit: impl FnMut(&[u8]) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut range = set.range::<[u8], _>(self.bounds());
        let _ = match self.is_reversed {
            false => range.all(|name| visit(name)),
            true => range.rev().all(|name| visit(name)),
        };
    }
}

/// What is known of a row's name without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowName<'r> {
    /// The shard of the name.
    pub shard: ShardId,
    /// The name.
    pub name: &'r [u8],
    /// The type of what is stored there.
    pub kind: Type,
    /// When it expires.
    pub expire_at: Option<UnixMs>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Excluded, Included, Unbounded};

    #[test]
    fn ranges_have_ends_and_a_direction() {
        for (lower, upper, is_empty) in [
            (Unbounded, Unbounded, false),
            (Included(&b"b"[..]), Included(&b"b"[..]), false),
            (Excluded(b"b"), Included(b"b"), true),
            (Excluded(b"b"), Excluded(b"b"), true),
            (Included(b"c"), Included(b"b"), true),
            (Excluded(b"b"), Unbounded, false),
        ] {
            assert_eq!(Names::new(lower, upper, false).is_empty(), is_empty, "{lower:?} {upper:?}");
        }
        let set: BTreeSet<Box<[u8]>> = [b"a", b"b", b"c", b"d"].map(|name| Box::from(&name[..])).into();
        let visited = |range: Names, count: usize| {
            let mut visited = Vec::new();
            range.visit(&set, |name| {
                visited.extend_from_slice(name);
                visited.len() < count
            });
            visited
        };
        assert_eq!(visited(Names::new(Excluded(b"a"), Included(b"c"), false), 9), b"bc");
        assert_eq!(visited(Names::new(Excluded(b"a"), Included(b"c"), true), 9), b"cb");
        assert_eq!(visited(Names::new(Unbounded, Unbounded, true), 3), b"dcb");
        assert_eq!(visited(Names::new(Included(b"c"), Included(b"a"), false), 9), b"");
        let range = Names::new(Unbounded, Unbounded, true).behind(b"c".to_vec());
        assert!(range.contains(b"b") && !range.contains(b"c") && range.is_before(b"b", b"a"));
    }
}
