//! Where a stream of commands is.

use std::fmt;

/// Length of a replication id.
const ID_LEN: usize = 40;

/// How far the stream of a primary has been processed. As text: the id, a space, the offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The history that the offset counts in: 40 hexadecimal digits.
    pub id: String,
    /// Bytes of the stream that have been processed.
    pub offset: u64,
}

impl Position {
    /// The position that an id and an offset, both as text, make; `None` if they make none.
    pub fn parse(id: &str, offset: &str) -> Option<Self> {
        let is_id = id.len() == ID_LEN && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(Self { id: is_id.then(|| id.to_owned())?, offset: offset.parse().ok()? })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let position = Position::parse(id, "77").unwrap();
        assert_eq!(position.to_string(), format!("{id} 77"));
        for (id, offset) in
            [("", "1"), (&id[1..], "1"), (id, "-1"), (id, ""), ("x123456789abcdef0123456789abcdef01234567", "1")]
        {
            assert_eq!(Position::parse(id, offset), None, "{id} {offset}");
        }
    }
}
