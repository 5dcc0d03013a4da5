//! The nearest known name to one that is not known.

/// The candidate with the fewest insertions, deletions, replacements and swaps of neighbours from `name`, if that is at
/// most a third of its length (and at least one is always allowed). The first one wins a tie.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Longer texts cannot be misspelt directives, and the cost is quadratic.
    const NAME_LENGTH_MAX: usize = 64;
    if name.len() > NAME_LENGTH_MAX {
        return None;
    }
    let limit = name.len().checked_div(3).unwrap_or_default().max(1);
    candidates
        // The distance is at least the difference in length.
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= limit)
        .map(|candidate| (distance(name.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance, by rows.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, byte_a) in a.iter().enumerate() {
        let mut current = Vec::with_capacity(above.len());
        current.push(row.saturating_add(1));
        for (column, byte_b) in b.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX);
            let replaced = at(&above, column).saturating_add(usize::from(byte_a != byte_b));
            let removed = at(&above, column.saturating_add(1)).saturating_add(1);
            let inserted = at(&current, column).saturating_add(1);
            let mut best = replaced.min(removed).min(inserted);
            let swapped = row
                .checked_sub(1)
                .zip(column.checked_sub(1))
                .is_some_and(|(row, column)| a.get(row) == Some(byte_b) && b.get(column) == Some(byte_a));
            if swapped {
                best = best.min(at(&before, column.saturating_sub(1)).saturating_add(1));
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("port", "prot", 1),
            ("kitten", "sitting", 3),
            ("abc", "abc", 0),
            ("ca", "ac", 1),
        ] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
            assert_eq!(distance(b.as_bytes(), a.as_bytes()), expected, "{b} {a}");
        }
    }

    #[test]
    fn suggestions() {
        let known = ["port", "maxmemory", "maxmemory-policy", "requirepass"];
        for (name, expected) in [
            ("maxmemroy", Some("maxmemory")),
            ("requirpass", Some("requirepass")),
            ("prot", Some("port")),
            ("xyz", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
        assert_eq!(nearest(&"p".repeat(100_000), known.into_iter()), None);
    }
}
