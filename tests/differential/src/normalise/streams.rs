//! Normalisers for what is said about streams and their groups: everything agrees but times, which are near.

use super::shapes;
use crate::resp::Value;

/// Fields of XINFO whose values are times, or follow from one.
const TIMES: [&[u8]; 4] = [b"idle", b"inactive", b"seen-time", b"active-time"];
/// Inner nodes of the radix tree that holds the nodes of a stream: each project's own matter.
const STRUCTURE: &[u8] = b"radix-tree-nodes";

/// Whether the two are equal, but for times and inner nodes.
pub fn agree(reference: &Value, other: &Value, distance: i64) -> bool {
    let (a, b) = (flat(reference), flat(other));
    let (Some(a), Some(b)) = (&a, &b) else { return reference == other };
    let name = |index: usize| index.checked_sub(1).and_then(|before| a[before].text());
    let is_time = |index: usize| {
        // A row of what is pending: id, owner, time, deliveries; without the owner where that goes without saying.
        let in_row = index > 0 && index + 2 == a.len() && matches!(a[index + 1], Value::Int(_)) && a.len() <= 4;
        in_row || name(index).is_some_and(|name| TIMES.contains(&name))
    };
    let same = |index: usize| {
        let (a, b) = (&a[index], &b[index]);
        name(index) == Some(STRUCTURE) || (is_time(index) && shapes::near(a, b, distance)) || agree(a, b, distance)
    };
    a.len() == b.len() && std::mem::discriminant(reference) == std::mem::discriminant(other) && (0..a.len()).all(same)
}

/// The elements of an aggregate; names and values of a map in turn.
fn flat(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Map(pairs) => Some(pairs.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect()),
        _ => value.items().map(<[Value]>::to_vec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(delivered: i64, deliveries: i64) -> Value {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        Value::Array(vec![Value::Array(vec![
            bulk("1-1"),
            bulk("owner"),
            Value::Int(delivered),
            Value::Int(deliveries),
        ])])
    }

    #[test]
    fn times_are_near_and_all_else_is_equal() {
        assert!(agree(&row(100, 2), &row(105, 2), 10));
        assert!(!agree(&row(100, 2), &row(115, 2), 10));
        assert!(!agree(&row(100, 2), &row(100, 3), 10));
        let info = |name: &str, number| Value::Map(vec![(Value::Bulk(name.as_bytes().to_vec()), Value::Int(number))]);
        assert!(agree(&info("seen-time", 100), &info("seen-time", 105), 10));
        assert!(!agree(&info("lag", 100), &info("lag", 105), 10));
        assert!(agree(&info("radix-tree-nodes", 1), &info("radix-tree-nodes", 9), 0));
    }
}
