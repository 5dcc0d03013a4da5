//! What big sets make together, made step by step: a million members take longer than a command may.

use super::algebra::{Combination, Operation};
use super::view;
use crate::Kept;
use base::integer::IntegerText;
use engine::Encoding;
use value::set::{Big, View};

/// Fewer members than this are not worth it.
const MEMBERS_MIN: usize = 1024;

/// Members looked up in a step, all sets together.
const LOOKUPS: usize = 16;

/// A result on its way.
pub struct Steps {
    operation: Operation,
    /// Those whose members are looked at, one set after the other, and those in which they are looked up.
    sets: Vec<(Encoding, Kept)>,
    /// How many sets are looked at.
    walked: usize,
    /// The set and the place in it to continue from.
    at: (usize, usize),
    made: Big,
    /// Where the result is only counted: how many members were found, and how many are enough.
    counted: Option<(u64, u64)>,
}

impl Combination {
    /// The same in steps, if there is much to do; else what there was.
    ///
    /// # Errors
    /// There is little to do.
    pub fn in_steps(self) -> Result<Steps, Self> {
        Steps::begin(self)
    }
}

impl Steps {
    /// Begins, unless there is so little to do that it is better done at once.
    fn begin(combination: Combination) -> Result<Self, Combination> {
        let Combination { mut sets, operation } = combination;
        let is_empty = match operation {
            Operation::Intersection => sets.0.iter().any(Option::is_none),
            Operation::Difference => sets.0.first().is_none_or(Option::is_none),
            Operation::Union => false,
        };
        let walked = if operation == Operation::Union { usize::MAX } else { 1 };
        let smallest = sets.views().map(|set| set.len()).min().unwrap_or(0);
        let members = match operation {
            Operation::Intersection => smallest,
            Operation::Difference | Operation::Union => {
                sets.views().take(walked).fold(0usize, |sum, set| sum.saturating_add(set.len()))
            }
        };
        let alike = sets.views().find_map(|set| if let View::Big(big) = set { Some(big.empty_alike()) } else { None });
        let Some(made) = alike.filter(|_| !is_empty && members >= MEMBERS_MIN) else {
            return Err(Combination { sets, operation });
        };
        let sets = in_order(sets.0.drain(..), operation);
        let walked = walked.min(sets.len());
        Ok(Self { operation, sets, walked, at: (0, 0), made, counted: None })
    }

    /// Only counts the result, up to `limit`; see [`Self::count`].
    pub fn counting(self, limit: u64) -> Self {
        Self { counted: Some((0, limit)), ..self }
    }

    /// How many members the result has, where they are counted.
    pub fn count(&self) -> u64 {
        self.counted.map_or(0, |(count, _)| count)
    }

    /// What is made.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Whether it is made of these sets, and none of them was changed since.
    pub fn is_of(&self, combination: &Combination) -> bool {
        let Combination { sets, operation } = combination;
        let sets = in_order(sets.0.iter().cloned(), *operation);
        let is_same =
            |((one, kept), (other, also)): (&(Encoding, Kept), &(Encoding, Kept))| one == other && kept.is_same(also);
        self.operation == *operation && self.sets.len() == sets.len() && self.sets.iter().zip(&sets).all(is_same)
    }

    /// Runs for at most a tenth of a millisecond or so. True while there is more to do.
    pub fn step(&mut self) -> bool {
        let (walked, others) = self.sets.split_at(self.walked);
        let (set, place) = self.at;
        let Some(walked) = walked.get(set).map(of) else { return false };
        let others: Vec<View<'_>> = others.iter().map(of).collect();
        let members = LOOKUPS.checked_div(others.len().saturating_add(1)).unwrap_or(1).max(1);
        for member in walked.iter_from(place).take(members) {
            let is_wanted = match self.operation {
                Operation::Intersection => others.iter().all(|set| set.contains_member(member)),
                Operation::Difference => !others.iter().any(|set| set.contains_member(member)),
                Operation::Union => true,
            };
            match &mut self.counted {
                _ if !is_wanted => {}
                None => self.made.add(member.bytes(&mut IntegerText::default())),
                Some((count, limit)) => {
                    *count = count.saturating_add(1);
                    if count >= limit {
                        return false;
                    }
                }
            }
        }
        let place = place.saturating_add(members);
        self.at = if place < walked.len() { (set, place) } else { (set.saturating_add(1), 0) };
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
        let own = self.sets.iter().filter_map(|(_, kept)| match kept {
            Kept::Big(big) if engine::SharedBig::strong_count(big) == 1 => Some(big.memory_bytes()),
            _ => None,
        });
        own.fold(self.made_bytes(), usize::saturating_add)
    }
}

/// The sets that are there, in the order in which they are looked at.
fn in_order(sets: impl Iterator<Item = Option<(Encoding, Kept)>>, operation: Operation) -> Vec<(Encoding, Kept)> {
    let mut sets: Vec<(Encoding, Kept)> = sets.flatten().collect();
    if operation == Operation::Intersection {
        sets.sort_by_key(|set| of(set).len());
    }
    sets
}

fn of((encoding, kept): &(Encoding, Kept)) -> View<'_> {
    view((*encoding, kept.value().stored()))
}
