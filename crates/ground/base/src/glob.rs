//! Glob patterns as KEYS, SCAN MATCH, CONFIG GET and PSUBSCRIBE take them: `*`, `?`, `[a-z]`, `[^a]`, `\` escapes.
//!
//! G1. Iterative, with one place to go back to (the last `*`), so no stack and at most `pattern * text` steps: the
//!     recursive matchers of the field were crashed and stalled by patterns (CVE-2024-31228, CVE-2022-36021).
//! G2. Malformed patterns match as Redis matches them: an unclosed class ends with the pattern, a lone final `\` is
//!     itself.

/// Whether `text` as a whole matches `pattern`.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_with(pattern, text, |byte| byte)
}

/// [`matches()`] without regard to the case of ASCII letters.
pub fn matches_ignore_case(pattern: &[u8], text: &[u8]) -> bool {
    matches_with(pattern, text, |byte| byte.to_ascii_lowercase())
}

#[inline]
fn matches_with(pattern: &[u8], text: &[u8], fold: impl Fn(u8) -> u8) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to retry when a literal fails: the pattern after the last star, and the text position it was tried at.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            p += 1;
            if p == pattern.len() {
                return true;
            }
            star = Some((p, t));
            continue;
        }
        if t == text.len() {
            return p == pattern.len();
        }
        match step(&pattern[p..], fold(text[t]), &fold) {
            Some(length) => {
                p += length;
                t += 1;
            }
            None => {
                let Some((after, tried)) = star else { return false };
                p = after;
                t = tried + 1;
                star = Some((after, t));
            }
        }
    }
}

/// How many pattern bytes match this one text byte, or `None`.
#[inline]
fn step(pattern: &[u8], byte: u8, fold: &impl Fn(u8) -> u8) -> Option<usize> {
    match *pattern.first()? {
        b'?' => Some(1),
        b'[' => {
            let (found, length) = class(pattern, byte, fold);
            found.then_some(length)
        }
        b'\\' if pattern.len() > 1 => (fold(pattern[1]) == byte).then_some(2),
        literal => (fold(literal) == byte).then_some(1),
    }
}

/// Whether a class such as `[^a-z\]]` holds the byte, and how long the class is.
fn class(pattern: &[u8], byte: u8, fold: &impl Fn(u8) -> u8) -> (bool, usize) {
    let negated = pattern.get(1) == Some(&b'^');
    let mut at = if negated { 2 } else { 1 };
    let mut found = false;
    loop {
        match pattern.get(at..).unwrap_or_default() {
            [] => return (found != negated, pattern.len()),
            [b']', ..] => return (found != negated, at + 1),
            [b'\\', escaped, ..] => {
                found |= fold(*escaped) == byte;
                at += 2;
            }
            [from, b'-', to, ..] => {
                let (from, to) = (fold(*from.min(to)), fold(*from.max(to)));
                found |= (from..=to).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= fold(*literal) == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_patterns() {
        for (pattern, text, expected) in [
            ("h?llo", "hello", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[\\]]", "]", true),
            ("[abc", "c", true),
            ("[^", "x", true),
            ("a\\", "a\\", true),
            ("**a**", "bab", true),
            ("", "", true),
            ("*", "", true),
            ("?", "", false),
            ("a*b*c", "aXbXbc", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} on {text}");
        }
        assert!(matches_ignore_case(b"MAX*", b"maxmemory"));
    }

    /// The pattern of CVE-2022-36021 takes `pattern * text` steps here, not exponentially many.
    #[test]
    fn many_stars_stay_quadratic() {
        let pattern = b"a*".repeat(2_000);
        let mut text = vec![b'a'; 4_000];
        text.push(b'b');
        assert!(matches(&pattern, &text));
        assert!(!matches(&[&pattern[..], b"c"].concat(), &text));
    }
}
