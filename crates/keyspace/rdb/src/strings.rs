//! Many byte strings in one buffer.

use base::integer::IntegerText;
use std::collections::HashSet;
use std::fmt;

/// A sequence of byte strings, concatenated in one allocation, with their ends in another. A small element takes 8
/// bytes beyond its content instead of 40.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at this index.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*self.ends.get(at)?)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at).unwrap_or_default())
    }

    /// Appends one.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// Appends a number as text.
    pub fn push_integer(&mut self, number: i64) {
        self.push(IntegerText::default().format(number));
    }

    /// Appends as one string what `write` adds to the buffer.
    pub(crate) fn push_with<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        write(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Keeps the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Whether every `step`th string, beginning with the first, is distinct.
    pub(crate) fn are_distinct(&self, step: usize) -> bool {
        let mut seen = HashSet::new();
        self.iter().step_by(step).all(|string| seen.insert(string))
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Strings {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut strings = Self::default();
        all.into_iter().for_each(|string| strings.push(string.as_ref()));
        strings
    }
}

impl fmt::Debug for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|string| string.escape_ascii().to_string())).finish()
    }
}
