//! What an edit of a collection gives, and why it may be refused.

use crate::entry::Left;

/// A collection before and after its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edited {
    /// How many elements there were; 0 with [`Known::Read`], whose caller may have counted them.
    pub before: u64,
    /// What is left.
    pub left: Left,
}

/// What the caller of an edit knows of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It was read before, or the log knows it: it is a collection of this type, or absent. Its elements are not
    /// counted again.
    Read,
    /// Nothing: the edit is also the read. Refused unless the entry is in memory and a live collection of this type,
    /// not compressed, and without times of elements, which are counted.
    Nothing,
}

/// Why an edit did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unedited {
    /// Nothing is stored under the key, or its row is not in memory.
    Absent,
    /// What is stored is of another type.
    OtherType,
    /// The collection is compressed.
    Compressed,
    /// The collection has expired, and is to be removed first.
    Expired,
    /// Elements have times, so that some may be due.
    Timed,
    /// Events are to be published, and have to know what was there.
    Watched,
    /// These changes are made after a read only.
    Unread,
}
