//! Members chosen at random.

use super::{Entry, read};
use crate::TypeError;
use base::Rng;
use engine::{Key, Keyspace};
use std::collections::HashSet;

/// How many members are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// This many different members, or all.
    Distinct(u64),
    /// This many draws, each from all members.
    Repeated(u64),
}

/// Chooses members, each equally likely, and shows them after their number. False, with nothing shown, when the key is
/// absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn random(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    draw: Draw,
    show: impl FnOnce(u64, &mut dyn Iterator<Item = Entry<'_>>),
) -> Result<bool, TypeError> {
    let mut rng = Rng::new(ks.random_below(u64::MAX));
    let Some(view) = read(ks, key)? else { return Ok(false) };
    let len = view.len();
    match draw {
        Draw::Repeated(count) => show(count, &mut (0..count).filter_map(|_| view.at(rng.below(len)))),
        Draw::Distinct(count) if count >= len => show(len, &mut view.forward(0)),
        Draw::Distinct(count) => {
            show(count, &mut distinct(&mut rng, len, count).into_iter().filter_map(|rank| view.at(rank)));
        }
    }
    Ok(true)
}

/// `count` different ranks of `len`, after Floyd: as many draws as ranks, whatever their share.
fn distinct(rng: &mut Rng, len: u64, count: u64) -> Vec<u64> {
    let mut taken = HashSet::new();
    let mut ranks = Vec::new();
    for last in len.saturating_sub(count)..len {
        let drawn = rng.below(last.saturating_add(1));
        let rank = if taken.insert(drawn) { drawn } else { last };
        taken.insert(rank);
        ranks.push(rank);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rank is drawn about equally often, and none twice at once.
    #[test]
    fn ranks_are_distinct_and_even() {
        let mut rng = Rng::new(1);
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            let ranks = distinct(&mut rng, 10, 4);
            assert_eq!(ranks.iter().collect::<HashSet<_>>().len(), 4);
            ranks.iter().for_each(|rank| counts[*rank as usize] += 1);
        }
        assert!(counts.iter().all(|count| (3800..4200).contains(count)), "{counts:?}");
    }
}
