//! The name of a dictionary in what is stored.

use std::fmt;
use std::num::NonZeroU32;

/// How values name their dictionary: unique in a data directory, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DictionaryNumber(pub NonZeroU32);

impl fmt::Display for DictionaryNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
