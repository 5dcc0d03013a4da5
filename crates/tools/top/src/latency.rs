//! Calls by their duration, of the reply to LATENCY HISTOGRAM.

use proto::reply::Value;
use std::collections::BTreeMap;

/// Calls of all commands: the longest duration of each bucket in nanoseconds, and its calls.
///
/// The reply counts the calls of a bucket and of those before it, for each command; see
/// <https://valkey.io/commands/latency-histogram/>.
pub fn durations(reply: &Value) -> Vec<(u64, u64)> {
    let mut buckets = BTreeMap::new();
    for (_, command) in pairs(reply) {
        let Some((_, histogram)) = pairs(command).into_iter().find(|(name, _)| is(name, b"histogram_usec")) else {
            continue;
        };
        let mut before = 0;
        for (usec, calls) in pairs(histogram) {
            if let (Value::Integer(usec), Value::Integer(calls)) = (usec, calls) {
                let upper_ns = u64::try_from(*usec).unwrap_or(0).saturating_mul(1000);
                let calls = u64::try_from(*calls).unwrap_or(0);
                *buckets.entry(upper_ns).or_insert(0) += calls.saturating_sub(before);
                before = calls;
            }
        }
    }
    buckets.into_iter().collect()
}

/// Names and values of a map, which is a flat list in RESP2.
fn pairs(value: &Value) -> Vec<(&Value, &Value)> {
    match value {
        Value::Map(pairs) => pairs.iter().map(|(name, value)| (name, value)).collect(),
        Value::Array(all) => all.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
        _ => Vec::new(),
    }
}

fn is(value: &Value, name: &[u8]) -> bool {
    value.as_bytes() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(calls: &[(i64, i64)]) -> Value {
        let buckets = calls.iter().map(|(usec, calls)| (Value::Integer(*usec), Value::Integer(*calls))).collect();
        let total = calls.last().map_or(0, |(_, calls)| *calls);
        Value::Map(vec![
            (Value::Bulk(b"calls".to_vec()), Value::Integer(total)),
            (Value::Bulk(b"histogram_usec".to_vec()), Value::Map(buckets)),
        ])
    }

    #[test]
    fn counts_of_commands_are_added() {
        let reply = Value::Map(vec![
            (Value::Bulk(b"get".to_vec()), histogram(&[(1, 10), (2, 15), (8, 16)])),
            (Value::Bulk(b"set".to_vec()), histogram(&[(2, 3)])),
        ]);
        assert_eq!(durations(&reply), [(1000, 10), (2000, 8), (8000, 1)]);
    }

    #[test]
    fn what_is_no_histogram_has_no_calls() {
        assert_eq!(durations(&Value::Error(b"ERR unknown command".to_vec())), []);
        assert_eq!(durations(&Value::Array(vec![Value::Bulk(b"get".to_vec()), Value::Integer(1)])), []);
    }
}
