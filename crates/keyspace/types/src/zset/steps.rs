//! What big sorted sets make together, made step by step: a million members take longer than a command may.

use super::combine::{Aggregate, Operand, Sources};
use crate::Kept;
use value::zset::{Big, Entry, View};

/// Fewer members than this are not worth it.
const MEMBERS_MIN: u64 = 1024;

/// Members looked up in a step, all sets together.
const LOOKUPS: usize = 8;

/// What is made of several sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Every member of any of them.
    Union,
    /// Every member of all of them.
    Intersection,
    /// Every member of the first that no other has.
    Difference,
}

/// A result on its way.
pub struct Steps {
    operation: Operation,
    aggregate: Aggregate,
    /// Those whose members are looked at, one set after the other, and those in which they are looked up.
    operands: Sources,
    /// How many sets are looked at.
    walked: usize,
    /// The set and the place in it to continue from.
    at: (usize, usize),
    made: Big,
    /// Where the result is only counted: how many members were found, and how many are enough.
    counted: Option<(u64, u64)>,
}

impl Steps {
    /// Begins.
    ///
    /// # Errors
    /// The sets, if there is so little to do that it is better done at once.
    pub fn begin(mut sources: Sources, operation: Operation, aggregate: Aggregate) -> Result<Self, Sources> {
        put_in_order(&mut sources, operation);
        let walked = if operation == Operation::Union { sources.len() } else { 1 };
        let members = sources.iter().take(walked).fold(0u64, |sum, operand| sum.saturating_add(operand.len()));
        let alike = sources.iter().find_map(Operand::empty_alike).filter(|_| members >= MEMBERS_MIN);
        match alike {
            Some(made) => Ok(Self { operation, aggregate, operands: sources, walked, at: (0, 0), made, counted: None }),
            None => Err(sources),
        }
    }

    /// Only counts the result, up to `limit` unless that is 0; see [`Self::count`].
    pub fn counting(self, limit: u64) -> Self {
        let limit = if limit == 0 { u64::MAX } else { limit };
        Self { counted: Some((0, limit)), ..self }
    }

    /// How many members the result has, where they are counted.
    pub fn count(&self) -> u64 {
        self.counted.map_or(0, |(count, _)| count)
    }

    /// Whether it is made of these sets, and none of them was changed since. The given sets are put into its order.
    pub fn is_of(&self, sources: &mut Sources, operation: Operation, aggregate: Aggregate) -> bool {
        put_in_order(sources, operation);
        self.operation == operation
            && self.aggregate == aggregate
            && self.operands.len() == sources.len()
            && self.operands.iter().zip(&*sources).all(|(one, other)| one.is_same(other))
    }

    /// Runs for at most a tenth of a millisecond or so. True while there is more to do.
    pub fn step(&mut self) -> bool {
        let Self { operation, aggregate, made, counted, .. } = self;
        let (walked, others) = self.operands.split_at(self.walked);
        let (set, place) = self.at;
        let Some(walked) = walked.get(set) else { return false };
        let members = LOOKUPS.checked_div(others.len().saturating_add(1)).unwrap_or(1).max(1);
        walked.each(place..place.saturating_add(members), |score, member| {
            let joined = match operation {
                Operation::Union => match View::Big(made).score(member) {
                    Some(old) => Some(aggregate.join(old, score)),
                    None => Some(score),
                },
                Operation::Intersection => {
                    others.iter().try_fold(score, |sum, other| Some(aggregate.join(sum, other.score(member)?)))
                }
                Operation::Difference => others.iter().all(|other| other.score(member).is_none()).then_some(score),
            };
            match (joined, &mut *counted) {
                (None, _) => true,
                (Some(score), None) => {
                    made.add(&Entry { score, member });
                    true
                }
                (Some(_), Some((count, limit))) => {
                    *count = count.saturating_add(1);
                    count != limit
                }
            }
        });
        if counted.is_some_and(|(count, limit)| count == limit) {
            return false;
        }
        let place = place.saturating_add(members);
        self.at = if (place as u64) < walked.len() { (set, place) } else { (set.saturating_add(1), 0) };
        self.at.0 < self.walked
    }

    /// What was made so far; nothing is left.
    pub fn take(&mut self) -> Big {
        let empty = self.made.empty_alike();
        std::mem::replace(&mut self.made, empty)
    }

    /// Bytes of what was made so far.
    pub fn made_bytes(&self) -> usize {
        self.made.memory_bytes()
    }

    /// Bytes that nothing but this keeps: what was made, and the sets that were changed or removed since.
    pub fn held_bytes(&self) -> usize {
        let own = self.operands.iter().filter_map(|operand| match operand.kept() {
            Kept::Big(big) if engine::SharedBig::strong_count(big) == 1 => Some(big.memory_bytes()),
            _ => None,
        });
        own.fold(self.made_bytes(), usize::saturating_add)
    }
}

/// The order of the sums, as in `combine`.
fn put_in_order(sources: &mut Sources, operation: Operation) {
    if operation != Operation::Difference {
        sources.sort_by_key(Operand::len);
    }
}
