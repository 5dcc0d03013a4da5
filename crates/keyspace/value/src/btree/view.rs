//! Reading a b+tree in either form.

use super::big::Run;
use super::entry::{Entries, find};
use super::{Big, Bkey, Element, packed};
use crate::Stored;
use crate::tree::Leaves;

/// A b+tree, for reading. Positions are from 0, in the order of the keys.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// Packed.
    Packed(&'a [u8]),
    /// A tree.
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
            Stored::Big(crate::Big::Btree(big)) => Self::Big(big),
            Stored::Big(_) => unreachable!("another type's tree"),
        }
    }

    /// How many elements there are.
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

    /// How many elements precede this key, and whether one has it.
    pub fn position(&self, bkey: &Bkey) -> (u64, bool) {
        match self {
            Self::Packed(bytes) => {
                let place = find(packed::entries(bytes), bkey);
                (place.index as u64, place.length > 0)
            }
            Self::Big(big) => big.position(bkey),
        }
    }

    /// The element with this key.
    pub fn get(&self, bkey: &Bkey) -> Option<Element<'a>> {
        match self {
            Self::Packed(bytes) => {
                let place = find(packed::entries(bytes), bkey);
                Entries::new(packed::entries(bytes), place.at).next().filter(|_| place.length > 0)
            }
            Self::Big(big) => big.get(bkey),
        }
    }

    /// The element at a position.
    pub fn at(&self, position: u64) -> Option<Element<'a>> {
        self.forward(position).next()
    }

    /// The smallest key.
    pub fn min(&self) -> Option<Bkey> {
        self.at(0).map(|element| element.bkey)
    }

    /// The largest key.
    pub fn max(&self) -> Option<Bkey> {
        self.backward(u64::MAX).next().map(|element| element.bkey)
    }

    /// The elements in order, from a position on.
    pub fn forward(&self, position: u64) -> Forward<'a> {
        match self {
            Self::Packed(bytes) => {
                let entries = Entries::new(packed::entries(bytes), 0);
                Forward { entries: entries.skip(position.min(packed::count(bytes)) as usize), runs: None }
            }
            Self::Big(big) => match big.runs_at(position) {
                None => Forward { entries: Entries::new(&[], 0), runs: None },
                Some(runs) => {
                    let entries = runs.leaf().entries().skip((position - runs.before()) as usize);
                    Forward { entries, runs: Some(runs) }
                }
            },
        }
    }

    /// The elements in order, from the first one whose key is not below this one: it is looked up once.
    pub fn forward_from(&self, bkey: &Bkey) -> Forward<'a> {
        let (bytes, runs) = match self {
            Self::Packed(bytes) => (packed::entries(bytes), None),
            Self::Big(big) => {
                let runs = big.runs_of(bkey);
                (runs.map_or(&[][..], |runs| runs.leaf().bytes()), runs)
            }
        };
        Forward { entries: Entries::new(bytes, find(bytes, bkey).at), runs }
    }

    /// The elements in reverse order, from a position downwards; from the last if there are fewer.
    pub fn backward(&self, position: u64) -> Backward<'a> {
        let Some(last) = self.len().checked_sub(1) else { return Backward::new(&[], 0, None) };
        let position = position.min(last);
        match self {
            Self::Packed(bytes) => Backward::new(packed::entries(bytes), position as usize, None),
            Self::Big(big) => match big.runs_at(position) {
                None => Backward::new(&[], 0, None),
                Some(runs) => Backward::new(runs.leaf().bytes(), (position - runs.before()) as usize, Some(runs)),
            },
        }
    }
}

/// See [`View::forward`].
#[derive(Clone, Debug)]
pub struct Forward<'a> {
    entries: Entries<'a>,
    runs: Option<Leaves<'a, Run>>,
}

impl<'a> Forward<'a> {
    /// Shows the elements until `show` says that it wants no more.
    #[inline]
    pub fn each_while(mut self, mut show: impl FnMut(&Element<'a>) -> bool) {
        loop {
            for element in &mut self.entries {
                if !show(&element) {
                    return;
                }
            }
            let Some(runs) = self.runs.and_then(|runs| runs.next()) else { return };
            self.entries = runs.leaf().entries();
            self.runs = Some(runs);
        }
    }
}

impl<'a> Iterator for Forward<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        if let Some(element) = self.entries.next() {
            return Some(element);
        }
        let runs = self.runs?.next()?;
        self.entries = runs.leaf().entries();
        self.runs = Some(runs);
        self.entries.next()
    }
}

/// See [`View::backward`]. Elements can only be read forward, so it notes where those of a run begin.
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

    /// Notes where the elements up to `last` begin.
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
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        loop {
            if let Some(at) = self.starts.pop() {
                return Entries::new(self.bytes, at).next();
            }
            let runs = self.runs?.previous()?;
            self.bytes = runs.leaf().bytes();
            self.note_starts(usize::MAX - 1);
            self.runs = Some(runs);
        }
    }
}
