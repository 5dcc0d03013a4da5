//! Union, intersection and difference of sorted sets and sets.

use super::{NewSet, View};
use crate::{Kept, TypeError};
use base::integer::IntegerText;
use engine::{Encoding, Key, Keyspace, Type};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use value::set;
use value::zset::Big;

/// How the scores of a member in several sets become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum; of opposite infinities zero.
    #[default]
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl Aggregate {
    pub(super) fn join(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Sum => number(one + other),
            Self::Min if other < one => other,
            Self::Max if other > one => other,
            Self::Min | Self::Max => one,
        }
    }
}

/// What is no number counts as zero.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// One of the sets: kept, so that others can be read as well. Big ones are shared, small ones copied.
#[derive(Debug)]
pub struct Operand {
    kind: Type,
    encoding: Encoding,
    value: Kept,
    weight: f64,
}

/// The sets of a command in their order; absent ones are empty.
pub type Sources = Vec<Operand>;

/// All places of an operand.
const ALL: Range<usize> = 0..usize::MAX;

/// How an operand is read.
enum Elements<'a> {
    Zset(View<'a>),
    Set(set::View<'a>),
}

impl Operand {
    /// What is under the key; scores count once.
    ///
    /// # Errors
    /// [`TypeError::WrongType`] when it is neither a sorted set nor a set, [`TypeError::Fetch`].
    pub fn read(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<Self, TypeError> {
        let weight = 1.0;
        match ks.read(key)? {
            None => Ok(Self { kind: Type::Zset, encoding: Encoding::PACKED, value: Kept::empty(), weight }),
            Some(entry) if matches!(entry.kind, Type::Zset | Type::Set) => {
                Ok(Self { kind: entry.kind, encoding: entry.encoding, value: Kept::new(entry.value), weight })
            }
            Some(_) => Err(TypeError::WrongType),
        }
    }

    /// Has its scores multiplied. A product that is no number counts as zero.
    pub fn set_weight(&mut self, weight: f64) {
        self.weight = weight;
    }

    fn elements(&self) -> Elements<'_> {
        let stored = self.value.value().stored();
        match self.kind {
            Type::Set => Elements::Set(set::View::of(self.encoding, stored)),
            _ => Elements::Zset(View::of(stored)),
        }
    }

    /// What it keeps.
    pub(super) fn kept(&self) -> &Kept {
        &self.value
    }

    /// Whether it is the same version of the same set, with the same weight.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.encoding == other.encoding
            && self.weight.to_bits() == other.weight.to_bits()
            && self.value.is_same(&other.value)
    }

    /// A big sorted set without entries, if it is big itself.
    pub(super) fn empty_alike(&self) -> Option<Big> {
        match self.elements() {
            Elements::Zset(View::Big(big)) => Some(big.empty_alike()),
            Elements::Set(set::View::Big(big)) => Some(Big::empty_like_set(big)),
            _ => None,
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self.elements() {
            Elements::Zset(view) => view.len(),
            Elements::Set(view) => view.len() as u64,
        }
    }

    /// The weighted score of a member, which may be NaN: in an intersection this does not matter until scores have been
    /// joined.
    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        let score = match self.elements() {
            Elements::Zset(view) => view.score(member)?,
            Elements::Set(view) => view.contains(member).then_some(1.0)?,
        };
        Some(self.weight * score)
    }

    /// Visits members at these places with their weighted scores until the visitor stops.
    pub(super) fn each(&self, places: Range<usize>, mut visit: impl FnMut(f64, &[u8]) -> bool) {
        match self.elements() {
            Elements::Zset(view) => {
                view.forward(places.start as u64)
                    .take(places.len())
                    .all(|entry| visit(number(self.weight * entry.score), entry.member));
            }
            Elements::Set(view) => {
                let mut room = IntegerText::default();
                view.iter_from(places.start)
                    .take(places.len())
                    .all(|member| visit(number(self.weight), member.bytes(&mut room)));
            }
        }
    }
}

/// The smallest first, since its members are few, and since sums are rounded in this order.
fn by_size(sources: &Sources) -> Vec<&Operand> {
    let mut sorted: Vec<&Operand> = sources.iter().collect();
    sorted.sort_by_key(|operand| operand.len());
    sorted
}

/// Every member of any of the sets, in the order of a sorted set.
pub fn union(sources: &Sources, aggregate: Aggregate) -> NewSet {
    let mut scores: HashMap<Vec<u8>, f64> = HashMap::new();
    for operand in by_size(sources) {
        operand.each(ALL, |score, member| {
            match scores.get_mut(member) {
                Some(old) => *old = aggregate.join(*old, score),
                None => {
                    scores.insert(member.to_vec(), score);
                }
            }
            true
        });
    }
    in_order(scores.into_iter().map(|(member, score)| (score, member)).collect())
}

/// Every member of all of the sets, in the order of a sorted set.
pub fn intersection(sources: &Sources, aggregate: Aggregate) -> NewSet {
    let mut result = NewSet::new();
    if let Some((smallest, others)) = by_size(sources).split_first() {
        smallest.each(ALL, |score, member| {
            let joined = others.iter().try_fold(score, |sum, other| Some(aggregate.join(sum, other.score(member)?)));
            result.extend(joined.map(|score| (score, member.to_vec())));
            true
        });
    }
    in_order(result)
}

/// How many members all of the sets have; counts up to `limit` only, unless that is 0.
pub fn intersection_len(sources: &Sources, limit: u64) -> u64 {
    let mut count = 0u64;
    if let Some((smallest, others)) = by_size(sources).split_first() {
        smallest.each(ALL, |_, member| {
            if others.iter().all(|other| other.score(member).is_some()) {
                count = count.saturating_add(1);
            }
            count != limit || limit == 0
        });
    }
    count
}

/// Every member of the first set that no other has, in the order of a sorted set.
pub fn difference(sources: &Sources) -> NewSet {
    let mut result = NewSet::new();
    if let Some((first, others)) = sources.split_first() {
        first.each(ALL, |score, member| {
            if others.iter().all(|other| other.score(member).is_none()) {
                result.push((score, member.to_vec()));
            }
            true
        });
    }
    in_order(result)
}

fn in_order(mut entries: NewSet) -> NewSet {
    // Zero with a sign is no less than zero: it only reads otherwise, and only until it is stored.
    let order = |one: f64, other: f64| one.partial_cmp(&other).unwrap_or(Ordering::Equal);
    entries.sort_unstable_by(|one, other| order(one.0, other.0).then_with(|| one.1.cmp(&other.1)));
    entries
}
