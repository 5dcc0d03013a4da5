//! Reading a sorted set in either form.

use super::big::Run;
use super::entry::{self, Entries};
use super::{Big, Entry, packed};
use crate::Stored;
use crate::tree::Leaves;

/// A sorted set, for reading. Ranks are from 0, in the order of the set.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// Packed.
    Packed(&'a [u8]),
    /// Trees.
    Big(&'a Big),
}

impl<'a> View<'a> {
    /// What is stored.
    ///
    /// # Panics
    /// When it is another type's tree.
    pub fn of(stored: Stored<'a>) -> Self {
        match stored {
            Stored::Packed(bytes) => Self::Packed(bytes),
            Stored::Big(crate::Big::Zset(big)) => Self::Big(big),
            Stored::Big(_) => unreachable!("another type's tree"),
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Packed(bytes) => packed::count(bytes),
            Self::Big(big) => big.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The score of a member.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Packed(bytes) => packed::by_member(bytes, member).map(|(_, entry)| entry.score),
            Self::Big(big) => big.score(member),
        }
    }

    /// The rank of a member, and its score.
    pub fn rank(&self, member: &[u8]) -> Option<(u64, f64)> {
        match self {
            Self::Packed(bytes) => packed::by_member(bytes, member).map(|(rank, entry)| (rank, entry.score)),
            Self::Big(big) => {
                let score = big.score(member)?;
                Some((big.rank(&Entry { score, member })?, score))
            }
        }
    }

    /// How many entries at the front satisfy `is_before`: the rank of the first that does not. It must be true up to
    /// some point of the order by score and bytes, whether such an entry is in the set or not.
    pub fn count_before(&self, is_before: impl Fn(&Entry<'_>) -> bool) -> u64 {
        match self {
            Self::Packed(bytes) => entry::count_before(packed::entries(bytes), is_before) as u64,
            Self::Big(big) => big.count_before(is_before),
        }
    }

    /// The entry of a rank.
    pub fn at(&self, rank: u64) -> Option<Entry<'a>> {
        self.forward(rank).next()
    }

    /// The entries in order, from a rank on.
    pub fn forward(&self, rank: u64) -> Forward<'a> {
        match self {
            Self::Packed(bytes) => {
                let entries = Entries::new(packed::entries(bytes), 0);
                Forward { entries: entries.skip(rank.min(packed::count(bytes)) as usize), runs: None }
            }
            Self::Big(big) => match big.runs_at(rank) {
                None => Forward { entries: Entries::new(&[], 0), runs: None },
                Some(runs) => {
                    let entries = runs.leaf().entries().skip((rank - runs.before()) as usize);
                    Forward { entries, runs: Some(runs) }
                }
            },
        }
    }

    /// The entries in reverse order, from a rank downwards; from the last if the set is shorter.
    pub fn backward(&self, rank: u64) -> Backward<'a> {
        let rank = rank.min(self.len().saturating_sub(1));
        match self {
            Self::Packed(bytes) => Backward::new(packed::entries(bytes), rank as usize, None),
            Self::Big(big) => match big.runs_at(rank) {
                None => Backward::new(&[], 0, None),
                Some(runs) => Backward::new(runs.leaf().bytes(), (rank - runs.before()) as usize, Some(runs)),
            },
        }
    }

    /// A step of ZSCAN: hands out entries from `cursor` on, at least `count` of them if available, and returns the
    /// cursor to continue from; 0 at the end. A packed set comes whole. An entry that stays in the set is handed out at
    /// least once between the cursors 0.
    pub fn scan(&self, cursor: u64, count: u64, mut each: impl FnMut(Entry<'a>)) -> u64 {
        match self {
            Self::Packed(bytes) => {
                Entries::new(packed::entries(bytes), 0).for_each(each);
                0
            }
            Self::Big(big) => {
                let mut from = cursor << CURSOR_SHIFT;
                loop {
                    match big.scan(from, count, &mut each) {
                        None => return 0,
                        Some(next) if next >> CURSOR_SHIFT > cursor => return next >> CURSOR_SHIFT,
                        Some(next) => from = next,
                    }
                }
            }
        }
    }
}

/// A cursor is the upper bits of a hash, since some clients keep it in a float.
const CURSOR_SHIFT: u32 = 11;

/// See [`View::forward`].
#[derive(Clone, Debug)]
pub struct Forward<'a> {
    entries: Entries<'a>,
    runs: Option<Leaves<'a, Run>>,
}

impl<'a> Iterator for Forward<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        if let Some(entry) = self.entries.next() {
            return Some(entry);
        }
        let runs = self.runs?.next()?;
        self.entries = runs.leaf().entries();
        self.runs = Some(runs);
        self.entries.next()
    }
}

/// See [`View::backward`]. Entries can only be read forward, so it notes where those of a run begin.
#[derive(Clone, Debug)]
pub struct Backward<'a> {
    bytes: &'a [u8],
    starts: Vec<usize>,
    runs: Option<Leaves<'a, Run>>,
}

impl<'a> Backward<'a> {
    fn new(bytes: &'a [u8], last: usize, runs: Option<Leaves<'a, Run>>) -> Self {
        let mut backward = Self { bytes, starts: Vec::new(), runs };
        backward.note_starts(last);
        backward
    }

    /// Notes where the entries up to `last` begin.
    fn note_starts(&mut self, last: usize) {
        let mut entries = Entries::new(self.bytes, 0);
        for _ in 0..=last {
            let at = entries.at();
            if entries.next().is_none() {
                return;
            }
            self.starts.push(at);
        }
    }
}

impl<'a> Iterator for Backward<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        if self.starts.is_empty() {
            let runs = self.runs?.previous()?;
            self.bytes = runs.leaf().bytes();
            self.runs = Some(runs);
            self.note_starts(usize::MAX - 1);
        }
        Entries::new(self.bytes, self.starts.pop()?).next()
    }
}
