//! Reading a list in either form.

use super::big::Big;
use super::leaf::Leaf;
use super::packed::{self, Elements};
use crate::tree::Leaves;
use crate::{Encoding, Stored};

/// A list, for reading.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Packed(Elements<'a>),
    Big(&'a Big),
}

impl<'a> View<'a> {
    /// A stored list. There is one packed encoding.
    ///
    /// # Panics
    /// When the tree is that of another type.
    #[inline]
    pub fn of(_encoding: Encoding, stored: Stored<'a>) -> Self {
        match stored {
            Stored::Packed(bytes) => Self(Form::Packed(packed::elements(bytes))),
            Stored::Big(crate::Big::List(big)) => Self::big(big),
            Stored::Big(other) => panic!("a {} is stored as a list", other.kind().name()),
        }
    }

    pub(super) fn big(big: &'a Big) -> Self {
        Self(Form::Big(big))
    }

    /// How many elements it has.
    #[inline]
    pub fn len(&self) -> u64 {
        match self.0 {
            Form::Packed(elements) => elements.len() as u64,
            Form::Big(big) => big.len(),
        }
    }

    /// Whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self.0 {
            Form::Packed(elements) => elements.is_empty(),
            Form::Big(big) => big.is_empty(),
        }
    }

    /// The element at an index from the head.
    #[inline]
    pub fn get(&self, index: u64) -> Option<&'a [u8]> {
        match self.0 {
            Form::Packed(elements) => elements.get(usize::try_from(index).ok()?),
            Form::Big(big) => big.get(index),
        }
    }

    /// The first element.
    #[inline]
    pub fn first(&self) -> Option<&'a [u8]> {
        self.get(0)
    }

    /// The last element.
    #[inline]
    pub fn last(&self) -> Option<&'a [u8]> {
        match self.0 {
            Form::Packed(mut elements) => elements.next_back(),
            Form::Big(big) => big.get(big.len().checked_sub(1)?),
        }
    }

    /// The elements from `index` to the tail.
    pub fn forward(&self, index: u64) -> Forward<'a> {
        match self.0 {
            Form::Packed(mut elements) => {
                elements.drop_front(usize::try_from(index).unwrap_or(usize::MAX));
                Forward { elements, place: None }
            }
            Form::Big(big) => {
                let place = big.tree().leaves_at(index);
                let mut elements = place.map_or(Elements::NONE, |place| place.leaf().elements());
                elements.drop_front(place.map_or(0, |place| (index - place.before()) as usize));
                Forward { elements, place }
            }
        }
    }

    /// The elements from `index` to the head; from the tail when the list is shorter.
    pub fn backward(&self, index: u64) -> Backward<'a> {
        match self.0 {
            Form::Packed(elements) => {
                let count = usize::try_from(index.saturating_add(1)).unwrap_or(usize::MAX);
                Backward { elements: elements.first(count), place: None }
            }
            Form::Big(big) => {
                let place = big.tree().leaves_at(index.min(big.len().saturating_sub(1)));
                let within = |place: Leaves<'a, Leaf>| {
                    let count = usize::try_from((index - place.before()).saturating_add(1)).unwrap_or(usize::MAX);
                    place.leaf().elements().first(count)
                };
                Backward { elements: place.map_or(Elements::NONE, within), place }
            }
        }
    }
}

/// See [`View::forward`].
#[derive(Clone, Debug)]
pub struct Forward<'a> {
    elements: Elements<'a>,
    place: Option<Leaves<'a, Leaf>>,
}

impl<'a> Iterator for Forward<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(element) = self.elements.next() {
                return Some(element);
            }
            self.place = self.place?.next();
            self.elements = self.place?.leaf().elements();
        }
    }
}

/// See [`View::backward`].
#[derive(Clone, Debug)]
pub struct Backward<'a> {
    elements: Elements<'a>,
    place: Option<Leaves<'a, Leaf>>,
}

impl<'a> Iterator for Backward<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(element) = self.elements.next_back() {
                return Some(element);
            }
            self.place = self.place?.previous();
            self.elements = self.place?.leaf().elements();
        }
    }
}
