//! Names of the files in a tier's directory.

/// The lock of the directory.
pub const LOCK: &str = "LOCK";

/// A file that stands in the directory until the data directory names the tier.
pub const NEW: &str = "NEW";

/// A file that is made and removed at an opening, to learn what the file system grants.
pub const PROBE: &str = "PROBE";

const PREFIX: &str = "seg-";

/// The name of a segment's file.
pub fn segment(number: u32) -> String {
    format!("{PREFIX}{number:010}")
}

/// The number of the segment in a file of this name; `None` when it is another file.
pub fn segment_number(name: &str) -> Option<u32> {
    let number: u32 = name.strip_prefix(PREFIX)?.parse().ok()?;
    (segment(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        assert_eq!(segment(7), "seg-0000000007");
        assert_eq!(segment_number("seg-0000000007"), Some(7));
        assert_eq!(segment_number(&segment(u32::MAX)), Some(u32::MAX));
        for name in ["seg-7", "seg-00000000070", "seg-+000000007", "TIER", "LOCK", "seg-"] {
            assert_eq!(segment_number(name), None, "{name}");
        }
    }
}
