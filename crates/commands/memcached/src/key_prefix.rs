//! Prefixes of keys, as ARCUS has them.

/// The prefix of a key: what precedes the first colon that is not its first byte.
pub fn prefix_of(key: &[u8]) -> Option<&[u8]> {
    let at = key.iter().skip(1).position(|byte| *byte == b':')?;
    key.get(..at.saturating_add(1))
}

/// Whether the prefix of a key, if it has one, has only characters that ARCUS allows.
pub fn has_good_prefix(key: &[u8]) -> bool {
    let is_good = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-+.".contains(byte);
    prefix_of(key).is_none_or(|prefix| prefix.first() != Some(&b'-') && prefix.iter().all(is_good))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_at_the_first_colon_behind_the_first_byte() {
        for (key, prefix, is_good) in [
            ("a:b:c", Some("a"), true),
            (":a:b", Some(":a"), false),
            ("a", None, true),
            (":a", None, true),
            ("a b:c", Some("a b"), false),
            ("-a:b", Some("-a"), false),
            ("a-:b", Some("a-"), true),
        ] {
            assert_eq!(prefix_of(key.as_bytes()), prefix.map(str::as_bytes), "{key}");
            assert_eq!(has_good_prefix(key.as_bytes()), is_good, "{key}");
        }
    }
}
