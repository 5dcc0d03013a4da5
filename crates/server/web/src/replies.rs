//! Replies of commands as JSON.
//!
//! R1. Arguments of the slow log are values of clients: [`slow_log`] leaves them out unless they are asked for.

use proto::reply::{Parser, Value as Reply};
use serde_json::{Map, Value, json};

/// Reads one reply.
pub fn parse(bytes: &[u8]) -> Option<Reply> {
    let mut parser = Parser::new();
    parser.feed(bytes);
    parser.next_value().ok().flatten()
}

/// Any reply: maps become objects, and other aggregates lists.
pub fn json(reply: &Reply) -> Value {
    match reply {
        Reply::Integer(number) => Value::from(*number),
        Reply::Double(number) => Value::from(*number),
        Reply::Boolean(yes) => Value::from(*yes),
        Reply::Array(all) | Reply::Set(all) | Reply::Push(all) => all.iter().map(json).collect(),
        Reply::Map(pairs) => {
            Value::Object(pairs.iter().map(|(name, value)| (text(name).replace('.', "_"), json(value))).collect())
        }
        Reply::Attributed { value, .. } => json(value),
        Reply::Error(text) => json!({"error": String::from_utf8_lossy(text)}),
        reply => reply.as_bytes().map_or(Value::Null, |bytes| Value::from(String::from_utf8_lossy(bytes))),
    }
}

fn text(reply: &Reply) -> String {
    reply.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

/// MEMORY EXPLAIN without the names of whole keys.
pub fn explained(reply: &Reply) -> Value {
    let mut value = json(reply);
    if let Some(prefixes) = value.get_mut("prefixes").and_then(Value::as_array_mut) {
        prefixes.iter_mut().filter_map(Value::as_object_mut).for_each(|prefix| drop(prefix.remove("largest")));
    }
    value
}

/// HOTKEYS: key, estimate, error bound, database.
pub fn hot_keys(reply: &Reply) -> Value {
    rows(reply).map(|row| json!({"key": field(row, 0), "calls": field(row, 1), "db": field(row, 3)})).collect()
}

/// SLOWLOG GET: id, time, duration, arguments, client.
pub fn slow_log(reply: &Reply, shows_values: bool) -> Value {
    let entry = |row: &[Reply]| {
        let arguments = row.get(3).and_then(elements).unwrap_or_default();
        let command = arguments.first().map(text).unwrap_or_default();
        let mut entry = json!({
            "at": field(row, 1), "usec": field(row, 2), "command": command,
            "arguments": arguments.len().saturating_sub(1), "client": field(row, 4),
        });
        if shows_values && let Some(entry) = entry.as_object_mut() {
            entry.insert("words".to_owned(), arguments.iter().map(text).collect());
        }
        entry
    };
    rows(reply).map(entry).collect()
}

/// CLIENT LIST: a line of `name=value` for each client.
pub fn clients(reply: &Reply) -> Value {
    let object = |line: &str| {
        let parts = line.split(' ').filter_map(|part| part.split_once('='));
        Value::Object(parts.map(|(name, value)| (name.to_owned(), Value::from(value))).collect::<Map<_, _>>())
    };
    text(reply).lines().map(object).collect()
}

/// A command, its calls, and its buckets: most microseconds, and the calls that took no more.
pub type Durations = (String, i64, Vec<(i64, i64)>);

/// LATENCY HISTOGRAM in RESP3.
pub fn histograms(reply: &Reply) -> Vec<Durations> {
    let commands = pairs(reply).iter().map(|(name, about)| {
        let part = |wanted: &str| pairs(about).iter().find(|(part, _)| text(part) == wanted).map(|(_, value)| value);
        let buckets = part("histogram_usec").map(pairs).unwrap_or_default();
        let buckets = buckets.iter().filter_map(|(upper, calls)| Some((integer(upper)?, integer(calls)?)));
        (text(name), part("calls").and_then(integer).unwrap_or_default(), buckets.collect())
    });
    commands.collect()
}

fn pairs(reply: &Reply) -> &[(Reply, Reply)] {
    match reply {
        Reply::Map(pairs) => pairs,
        _ => &[],
    }
}

fn integer(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Integer(number) => Some(*number),
        _ => None,
    }
}

fn elements(reply: &Reply) -> Option<&[Reply]> {
    match reply {
        Reply::Array(all) => Some(all),
        _ => None,
    }
}

fn rows(reply: &Reply) -> impl Iterator<Item = &[Reply]> {
    elements(reply).unwrap_or_default().iter().filter_map(elements)
}

fn field(row: &[Reply], index: usize) -> Value {
    row.get(index).map_or(Value::Null, json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_slow_log_are_shown_when_asked_for() {
        let reply = parse(
            b"*1\r\n*6\r\n:3\r\n:1700000000\r\n:12\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\nsecret\r\n\
            $3\r\nc:1\r\n$0\r\n\r\n",
        )
        .unwrap();
        assert_eq!(
            slow_log(&reply, false),
            json!([{"at": 1_700_000_000, "usec": 12, "command": "SET", "arguments": 2, "client": "c:1"}])
        );
        assert_eq!(slow_log(&reply, true)[0]["words"], json!(["SET", "k", "secret"]));
    }

    #[test]
    fn names_of_whole_keys_are_no_prefixes() {
        let reply = b"%2\r\n$4\r\nkeys\r\n:1\r\n$8\r\nprefixes\r\n*1\r\n%3\r\n$6\r\nprefix\r\n$2\r\na:\r\n\
            $12\r\nstored.bytes\r\n:9\r\n$7\r\nlargest\r\n*1\r\n*2\r\n$3\r\na:1\r\n:9\r\n";
        assert_eq!(
            explained(&parse(reply).unwrap()),
            json!({"keys": 1, "prefixes": [{"prefix": "a:", "stored_bytes": 9}]})
        );
    }

    #[test]
    fn lists_of_keys_and_clients() {
        let hot = parse(b"*1\r\n*4\r\n$1\r\nk\r\n:7\r\n:0\r\n:3\r\n").unwrap();
        assert_eq!(hot_keys(&hot), json!([{"key": "k", "calls": 7, "db": 3}]));
        let list = parse(b"=26\r\ntxt:id=1 cmd=get\nid=2 cmd=\r\n").unwrap();
        assert_eq!(clients(&list), json!([{"id": "1", "cmd": "get"}, {"id": "2", "cmd": ""}]));
    }
}
