//! Normalisers that look only at the shape of a reply.

use crate::payload;
use crate::resp::Value;

/// The value with the elements of its outermost aggregate sorted; a map's pairs stay pairs.
pub fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    match &mut value {
        Value::Array(items) | Value::Set(items) => items.sort(),
        Value::Map(pairs) => pairs.sort(),
        _ => {}
    }
    value
}

/// The value with the elements of each aggregate of aggregates sorted, at any depth.
pub fn sorted_deep(value: &Value) -> Value {
    let mut value = value.clone();
    match &mut value {
        Value::Array(items) | Value::Set(items) => {
            items.iter_mut().for_each(|item| *item = sorted_deep(item));
            if items.iter().all(|item| matches!(item, Value::Array(_) | Value::Set(_) | Value::Map(_))) {
                items.sort();
            }
        }
        Value::Map(pairs) => pairs.iter_mut().for_each(|(_, item)| *item = sorted_deep(item)),
        _ => {}
    }
    value
}

/// The value with the pairs of its outermost aggregate sorted, which in RESP2 are flat.
pub fn paired(value: &Value) -> Value {
    match value {
        Value::Array(items) if items.len().is_multiple_of(2) => {
            let mut pairs: Vec<_> = items.chunks_exact(2).collect();
            pairs.sort();
            Value::Array(pairs.concat())
        }
        _ => sorted(value),
    }
}

/// Integers from zero on, at most `distance` apart. Negative ones are answers, not measures: they are equal.
pub fn near(reference: &Value, other: &Value, distance: i64) -> bool {
    match (reference, other) {
        (Value::Int(a), Value::Int(b)) if *a >= 0 && *b >= 0 => a.abs_diff(*b) <= distance.unsigned_abs(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b, distance)),
        _ => reference == other,
    }
}

/// Payloads of DUMP that can be read and hold the same, but for times.
pub fn payloads(reference: &Value, other: &Value) -> bool {
    let held = |value: &Value| match value {
        Value::Bulk(bytes) => rdb::dump::read(bytes).ok().map(|(_, value)| payload::without_times(value)),
        _ => None,
    };
    held(reference).is_some_and(|value| held(other) == Some(value))
}

/// The same kind; nulls only with the same null, integers with the same sign.
pub fn same_kind(reference: &Value, other: &Value) -> bool {
    match (reference, other) {
        (Value::Int(a), Value::Int(b)) => (*a < 0) == (*b < 0),
        _ => std::mem::discriminant(reference) == std::mem::discriminant(other),
    }
}

/// The same kind, with as many elements.
pub fn same_number(reference: &Value, other: &Value) -> bool {
    same_kind(reference, other) && reference.items().map(<[_]>::len) == other.items().map(<[_]>::len)
}

/// Arrays of the same length that hold decimal numbers.
pub fn decimals(reference: &Value, other: &Value) -> bool {
    let decimal = |value: &Value| matches!(value, Value::Bulk(text) if text.iter().all(u8::is_ascii_digit));
    match (reference, other) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().chain(b).all(decimal),
        _ => false,
    }
}

/// The text with numbers and addresses replaced by `#`. Words stay, so that names of encodings are compared.
pub fn masked(value: &Value) -> Option<Vec<u8>> {
    let text = value.text()?;
    let mut shown = Vec::with_capacity(text.len());
    for word in text.split_inclusive(|byte| !byte.is_ascii_alphanumeric()) {
        let (word, end) = match word.split_last() {
            Some((last, word)) if !last.is_ascii_alphanumeric() => (word, Some(*last)),
            _ => (word, None),
        };
        let number = word.strip_prefix(b"0x").unwrap_or(word);
        let numeric = word.first().is_some_and(u8::is_ascii_digit) && number.iter().all(u8::is_ascii_hexdigit);
        shown.extend_from_slice(if numeric { b"#" } else { word });
        shown.extend(end);
    }
    Some(shown)
}

/// Two texts with something in them, of the same kind of string.
pub fn texts(reference: &Value, other: &Value) -> bool {
    let filled = |value: &Value| value.text().is_some_and(|text| !text.is_empty());
    filled(reference) && filled(other) && same_kind(reference, other)
}

/// Two pages of a scan: a cursor and an array of keys. Which keys are on a page is each table's own matter.
pub fn pages(reference: &Value, other: &Value) -> bool {
    let page = |value: &Value| match value.items() {
        Some([Value::Bulk(cursor), Value::Array(keys)]) => {
            cursor.iter().all(u8::is_ascii_digit) && keys.iter().all(|key| matches!(key, Value::Bulk(_)))
        }
        _ => false,
    };
    page(reference) && page(other)
}

/// The lines of syntax of a HELP reply: those that are not indented, after the first sentence.
pub fn help(value: &Value) -> Option<Vec<Vec<u8>>> {
    let lines = value.items()?;
    let texts = lines.iter().map(|line| match line {
        Value::Simple(text) => Some(text.clone()),
        _ => None,
    });
    let texts: Vec<Vec<u8>> = texts.collect::<Option<_>>()?;
    let opening = texts.first()?;
    let command = opening.split(|&byte| byte == b' ').next()?.to_vec();
    let syntax = texts[1..].iter().filter(|text| !text.starts_with(b"    ")).cloned();
    let mut lines: Vec<Vec<u8>> = syntax.collect();
    lines.sort();
    lines.insert(0, command);
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn masks_hide_numbers_and_addresses_but_no_words() {
        let a = masked(&bulk("Value at:0x7f00ab refcount:1 encoding:embstr lru:123"));
        assert_eq!(a, masked(&bulk("Value at:0x1 refcount:7 encoding:embstr lru:9")));
        assert_ne!(a, masked(&bulk("Value at:0x1 refcount:7 encoding:raw lru:9")));
        assert_eq!(masked(&Value::Int(1)), None);
    }

    #[test]
    fn nearness_keeps_the_answers_below_zero_apart() {
        assert!(near(&Value::Int(10), &Value::Int(12), 2));
        assert!(!near(&Value::Int(10), &Value::Int(13), 2));
        assert!(!near(&Value::Int(-1), &Value::Int(-2), 2));
        assert!(!near(&Value::Int(1), &Value::Int(-1), 5));
    }

    #[test]
    fn help_compares_syntax_without_prose() {
        let lines = |texts: &[&str]| Value::Array(texts.iter().map(|t| Value::Simple(t.as_bytes().to_vec())).collect());
        let a = help(&lines(&["OBJECT <subcommand>", "FREQ <key>", "    Words."]));
        assert_eq!(a, help(&lines(&["OBJECT takes:", "FREQ <key>", "    Other", "    words."])));
        assert_ne!(a, help(&lines(&["OBJECT takes:", "FREQ", "    Words."])));
        assert_eq!(help(&Value::Array(vec![bulk("OBJECT")])), None);
    }
}
