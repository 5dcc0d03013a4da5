//! Ranges of members, by rank, score or bytes, as ranges of ranks.

use super::{Entry, View};
use crate::encoding::is_called_big;
use engine::Encoding;
use std::ops;

/// Which members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range<'a> {
    /// By rank, both ends included; negative ones are counted from the end, -1 being the last.
    Rank {
        /// The first.
        start: i64,
        /// The last.
        end: i64,
    },
    /// By score.
    Score {
        /// The lower end.
        min: ScoreEnd,
        /// The upper end.
        max: ScoreEnd,
    },
    /// By bytes, of members that all have one score.
    Lex {
        /// The lower end.
        min: LexEnd<'a>,
        /// The upper end.
        max: LexEnd<'a>,
    },
}

/// An end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreEnd {
    /// Where it is.
    pub score: f64,
    /// Whether members with just this score are outside.
    pub is_excluded: bool,
}

/// An end of a range of members by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexEnd<'a> {
    /// Before all members.
    First,
    /// After all members.
    Last,
    /// At these bytes.
    At {
        /// Where it is.
        member: &'a [u8],
        /// Whether just this member is outside.
        is_excluded: bool,
    },
}

/// A part of a range, counted from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many members to skip. As in Valkey, a negative number skips all members of a set that OBJECT ENCODING calls
    /// packed. Of any other set it leaves that many members, or none if there are fewer.
    pub offset: i64,
    /// How many to take; a negative number takes all.
    pub count: i64,
}

impl Limit {
    /// The whole range.
    pub const NONE: Self = Self { offset: 0, count: -1 };
}

impl LexEnd<'_> {
    /// The end in the words of commands: `-`, `+`, `[member`, `(member`. `None` for anything else.
    pub fn parse(text: &[u8]) -> Option<LexEnd<'_>> {
        match text {
            b"-" => Some(LexEnd::First),
            b"+" => Some(LexEnd::Last),
            [b'[', member @ ..] => Some(LexEnd::At { member, is_excluded: false }),
            [b'(', member @ ..] => Some(LexEnd::At { member, is_excluded: true }),
            _ => None,
        }
    }

    /// Whether a member is before a range that begins here.
    fn is_after(&self, other: &[u8]) -> bool {
        match *self {
            Self::First => false,
            Self::Last => true,
            Self::At { member, is_excluded: false } => other < member,
            Self::At { member, is_excluded: true } => other <= member,
        }
    }

    /// Whether a member is before the end of a range that ends here.
    fn reaches(&self, other: &[u8]) -> bool {
        match *self {
            Self::First => false,
            Self::Last => true,
            Self::At { member, is_excluded: false } => other <= member,
            Self::At { member, is_excluded: true } => other < member,
        }
    }
}

impl ScoreEnd {
    fn is_after(&self, entry: &Entry<'_>) -> bool {
        entry.score < self.score || (self.is_excluded && entry.score == self.score)
    }

    fn reaches(&self, entry: &Entry<'_>) -> bool {
        entry.score < self.score || (!self.is_excluded && entry.score == self.score)
    }
}

impl Range<'_> {
    /// The event of its removal.
    pub fn event(&self) -> &'static str {
        match self {
            Self::Rank { .. } => "zremrangebyrank",
            Self::Score { .. } => "zremrangebyscore",
            Self::Lex { .. } => "zremrangebylex",
        }
    }

    /// The ranks of its members in the set. With `is_reversed`, the ranks in the request count from the highest score;
    /// the returned ones never do.
    pub fn ranks(&self, view: &View<'_>, is_reversed: bool) -> ops::Range<u64> {
        let ranks = match self {
            Self::Rank { start, end } => by_rank(*start, *end, view.len(), is_reversed),
            Self::Score { min, max } => {
                view.count_before(|entry| min.is_after(entry))..view.count_before(|entry| max.reaches(entry))
            }
            Self::Lex { min, max } => {
                let start = view.count_before(|entry| min.is_after(entry.member));
                start..view.count_before(|entry| max.reaches(entry.member))
            }
        };
        ranks.start.min(ranks.end)..ranks.end
    }
}

fn by_rank(start: i64, end: i64, len: u64, is_reversed: bool) -> ops::Range<u64> {
    let from_front = |at: i64| match u64::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => len.checked_sub(at.unsigned_abs()),
    };
    let start = from_front(start).unwrap_or(0).min(len);
    let end = from_front(end).map_or(0, |end| end.saturating_add(1)).min(len).max(start);
    if is_reversed { len.saturating_sub(end)..len.saturating_sub(start) } else { start..end }
}

impl Limit {
    /// The part of these ranks of a set that it leaves, counted from the highest when the range is reversed.
    pub fn of(&self, ranks: ops::Range<u64>, is_reversed: bool, encoding: Encoding) -> ops::Range<u64> {
        self.part(ranks, is_reversed, is_called_big(encoding.decompressed()))
    }

    fn part(&self, ranks: ops::Range<u64>, is_reversed: bool, is_big: bool) -> ops::Range<u64> {
        let len = ranks.end.saturating_sub(ranks.start);
        let passed = match u64::try_from(self.offset) {
            Ok(offset) => offset.min(len),
            Err(_) if is_big => len.checked_sub(self.offset.unsigned_abs()).unwrap_or(len),
            Err(_) => len,
        };
        let left = len.saturating_sub(passed);
        let taken = u64::try_from(self.count).map_or(left, |count| count.min(left));
        if is_reversed {
            let end = ranks.end.saturating_sub(passed);
            end.saturating_sub(taken)..end
        } else {
            let start = ranks.start.saturating_add(passed);
            start..start.saturating_add(taken)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_counted_from_either_end() {
        for (start, end, len, forward, reversed) in [
            (0, -1, 5, 0..5, 0..5),
            (1, 2, 5, 1..3, 2..4),
            (-2, -1, 5, 3..5, 0..2),
            (-100, 0, 5, 0..1, 4..5),
            (0, -100, 5, 0..0, 5..5),
            (3, 1, 5, 3..3, 2..2),
            (7, 9, 5, 5..5, 0..0),
            (i64::MIN, i64::MAX, 5, 0..5, 0..5),
            (0, -1, 0, 0..0, 0..0),
        ] {
            assert_eq!(by_rank(start, end, len, false), forward, "{start} {end} of {len}");
            assert_eq!(by_rank(start, end, len, true), reversed, "{start} {end} of {len}, reversed");
        }
    }

    #[test]
    fn limits_are_counted_from_the_beginning() {
        for (offset, count, forward, reversed) in [
            (0, -1, 10..20, 10..20),
            (2, 3, 12..15, 15..18),
            (2, -5, 12..20, 10..18),
            (0, 0, 10..10, 20..20),
            (15, 1, 20..20, 10..10),
            (-1, 5, 20..20, 10..10),
            (8, i64::MAX, 18..20, 10..12),
        ] {
            let limit = Limit { offset, count };
            assert_eq!(limit.part(10..20, false, false), forward, "{limit:?}");
            assert_eq!(limit.part(10..20, true, false), reversed, "{limit:?}, reversed");
        }
        let back = |offset| Limit { offset, count: 2 }.part(10..20, false, true);
        assert_eq!([back(-3), back(-10), back(-11)], [17..19, 10..12, 20..20]);
        // Packed here, but not in Valkey.
        for (encoding, part) in [(Encoding::PACKED, 20..20), (Encoding::PACKED_LONG, 17..19), (Encoding::BIG, 17..19)] {
            assert_eq!(Limit { offset: -3, count: 2 }.of(10..20, false, encoding), part, "{encoding:?}");
        }
    }
}
