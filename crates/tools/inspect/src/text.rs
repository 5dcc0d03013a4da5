//! Bytes, times and sizes for people.

pub use base::size::size;
pub use calendar::utc as time;

use std::fmt::Write;

/// Bytes as printable ASCII: others as `\xNN`, and `\\` for a backslash, so that different strings look different.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' => out.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out
}

/// A count with its noun: `1 entry`, `2 entries`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_counts() {
        assert_eq!(escape(b"a b\\\n\xff\0"), "a b\\\\\\n\\xff\\x00");
        assert_eq!((count(1, "key", "keys"), count(0, "key", "keys")), ("1 key".into(), "0 keys".into()));
    }
}
