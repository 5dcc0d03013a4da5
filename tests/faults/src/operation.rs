//! What a writer does, and what it leaves in the server.
//!
//! A writer has keys of its own, and so has an exact idea of them: values, counters, and groups of keys that a
//! transaction sets to one number. Each is a *cell*. All writers besides share some counters and groups.

use std::fmt::Write as _;

/// Values that a writer sets and deletes.
pub const VALUES: usize = 400;
/// Values from here on are fields of one hash of their writer, which is mostly too big to be compressed as a whole;
/// those before are keys.
pub const FIELDS_FROM: usize = 200;
/// Counters of a writer.
pub const COUNTERS: usize = 20;
/// Groups of a writer, each of [`MEMBERS`] keys.
pub const GROUPS: usize = 20;
/// Cells of a writer.
pub const CELLS: usize = VALUES + COUNTERS + GROUPS;
/// Keys of a group: a transaction sets all of them.
pub const MEMBERS: usize = 4;
/// Counters that every writer increments.
pub const SHARED_COUNTERS: usize = 4;
/// Groups that every writer sets.
pub const SHARED_GROUPS: usize = 4;

/// One request of a writer, or one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// SET of a value of this length, or HSET.
    Set { key: usize, len: usize },
    /// DEL of a value, or HDEL.
    Delete { key: usize },
    /// GET of a value, or HGET.
    Read { key: usize },
    /// INCR of a counter of its own.
    Increment { counter: usize },
    /// MULTI, SET of every key of a group of its own to the operation's number, EXEC.
    Group { group: usize },
    /// INCR of a shared counter.
    SharedIncrement { counter: usize },
    /// The transaction on a shared group.
    SharedGroup { group: usize },
}

/// What is known of an operation. Times are microseconds since the load began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Sent, and the server may have done it or not.
    Unanswered,
    /// Answered at this time as it should be.
    Done {
        /// When the reply was read.
        at_us: u64,
        /// Whether the log was in sync mode from the request to the reply: then it is kept for ever.
        kept: bool,
    },
    /// Answered by an error: the server has not done it.
    Refused,
}

/// An operation that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// A number no other operation of any writer has.
    pub number: u64,
    /// What was asked for.
    pub action: Action,
    /// When, before the request was handed to the system.
    pub sent_us: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What stands in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// No key.
    Absent,
    /// The value that the operation of this number set.
    Value { number: u64, len: usize },
    /// A counter.
    Count(i64),
    /// The number that every key of the group has.
    Group(u64),
    /// What no operation can leave: different keys in a group, or bytes that were never written.
    Broken,
}

/// Does what the operation does to the cells of its writer; which one that was.
pub fn apply(cells: &mut [Cell], operation: &Operation) -> Option<usize> {
    let (index, cell) = match operation.action {
        Action::Set { key, len } => (key, Cell::Value { number: operation.number, len }),
        Action::Delete { key } => (key, Cell::Absent),
        Action::Increment { counter } => {
            let index = VALUES + counter;
            let count = if let Cell::Count(count) = cells[index] { count } else { 0 };
            (index, Cell::Count(count + 1))
        }
        Action::Group { group } => (VALUES + COUNTERS + group, Cell::Group(operation.number)),
        Action::Read { .. } | Action::SharedIncrement { .. } | Action::SharedGroup { .. } => return None,
    };
    cells[index] = cell;
    Some(index)
}

/// A command on a value, up to the key or field: as a string's it is named, and a field's begins with an H.
pub fn on_value(name: &str, writer: usize, cell: usize) -> Vec<String> {
    match cell {
        0..FIELDS_FROM => vec![name.to_owned(), key_of(writer, cell, 0)],
        _ => vec![format!("H{name}"), format!("h{}:{writer}", writer % 4), format!("field:{cell}")],
    }
}

/// The name of a cell's key, if it is one; of a group, of one of its members.
pub fn key_of(writer: usize, cell: usize, member: usize) -> String {
    if cell < VALUES {
        // Two writers to a first part, which is a class to dictionaries.
        format!("v{}:{writer}:{cell}", writer % 4)
    } else if cell < VALUES + COUNTERS {
        format!("w{writer}:counter:{}", cell - VALUES)
    } else {
        format!("w{writer}:group:{}:{member}", cell - VALUES - COUNTERS)
    }
}

/// The name of a shared counter.
pub fn shared_counter(counter: usize) -> String {
    format!("shared:counter:{counter}")
}

/// The name of a member of a shared group.
pub fn shared_group(group: usize, member: usize) -> String {
    format!("shared:group:{group}:{member}")
}

/// Words that values have in common, so that a dictionary pays.
const WORDS: [&str; 8] = [
    "\"customer-name\"",
    "\"delivery-street\"",
    "\"last-modified-at\"",
    "\"number-of-items\"",
    "\"payment-reference\"",
    "\"preferred-language\"",
    "\"shipping-state\"",
    "\"total-amount\"",
];

/// The bytes that an operation sets: its number, and a text that follows from it.
pub fn value(number: u64, len: usize) -> Vec<u8> {
    let mut text = String::with_capacity(len + 20);
    let _ = write!(text, "{number}:");
    let mut piece = number;
    while text.len() < len {
        piece = piece.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
        let word = WORDS[(piece >> 61) as usize];
        let _ = write!(text, "{word}:{:06x},", (piece >> 30) & 0xFF_FFFF);
    }
    text.truncate(len.max(format!("{number}:").len()));
    text.into_bytes()
}

/// What a value's bytes say of where they come from.
pub fn read_value(bytes: &[u8]) -> Cell {
    let number = bytes.iter().position(|&byte| byte == b':').and_then(|at| read_number(&bytes[..at]));
    match number {
        Some(number) if value(number, bytes.len()) == bytes => Cell::Value { number, len: bytes.len() },
        _ => Cell::Broken,
    }
}

/// A decimal number.
pub fn read_number<N: std::str::FromStr>(bytes: &[u8]) -> Option<N> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_name_their_operation_and_nothing_else_passes() {
        for (number, len) in [(7, 8), (7, 100), (123_456, 8), (1, 70_000)] {
            let mut bytes = value(number, len);
            assert_eq!(read_value(&bytes), Cell::Value { number, len: bytes.len() });
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            assert_ne!(read_value(&bytes), Cell::Value { number, len: bytes.len() });
        }
        assert_eq!(read_value(b""), Cell::Broken);
        assert_eq!(read_value(b"7"), Cell::Broken);
    }
}
