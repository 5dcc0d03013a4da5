//! Normalisers for what servers say about themselves.

use std::collections::BTreeMap;

use super::shapes;
use crate::resp::Value;
use crate::scope::{FieldType, Scope};

/// HELLO: protocol, mode and role as they are; of server, version, id and modules only that they are there.
pub fn hello(value: &Value) -> Option<Vec<(Value, Value)>> {
    let pairs = value.pairs()?.into_iter().map(|(name, value)| {
        let exact = matches!(name.text(), Some(b"proto" | b"mode" | b"role"));
        let shown = if exact { value } else { kind_only(&value) };
        (name, shown)
    });
    Some(pairs.collect())
}

/// An empty value of the same kind.
fn kind_only(value: &Value) -> Value {
    match value {
        Value::Bulk(_) => Value::Bulk(Vec::new()),
        Value::Int(_) => Value::Int(0),
        Value::Double(_) => Value::Double(Vec::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        other => other.clone(),
    }
}

/// INFO: where the reference shows a field that tools read, so does the other, with a value of its type.
pub fn info(scope: &Scope, reference: &Value, other: &Value) -> bool {
    let (Some(reference), Some(other)) = (info_fields(reference), info_fields(other)) else { return false };
    scope.info_fields().iter().all(|(section, field, kind)| {
        let place = (section.as_str(), field.as_str());
        match (find(&reference, place), find(&other, place)) {
            (Some(_), None) => false,
            (Some(a), Some(b)) if *kind == FieldType::Exact => a == b,
            (_, Some(b)) => kind.admits(b),
            (None, None) => true,
        }
    }) && keyspace(&reference) == keyspace(&other)
}

/// The fields of INFO as (section, name, value).
type InfoFields<'a> = Vec<(&'a str, &'a str, &'a str)>;

fn info_fields(value: &Value) -> Option<InfoFields<'_>> {
    let text = std::str::from_utf8(value.text()?).ok()?;
    let mut section = "";
    let mut fields = Vec::new();
    for line in text.split("\r\n") {
        if let Some(name) = line.strip_prefix("# ") {
            section = name;
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((section, name, value));
        }
    }
    Some(fields)
}

fn find<'a>(fields: &InfoFields<'a>, (section, name): (&str, &str)) -> Option<&'a str> {
    fields.iter().find(|(s, n, _)| *s == section && *n == name).map(|(_, _, value)| *value)
}

/// `dbN` with its numbers of keys and of expirations; the average time to live is an estimate.
fn keyspace<'a>(fields: &InfoFields<'a>) -> Vec<(&'a str, Vec<&'a str>)> {
    let databases = fields.iter().filter(|(section, _, _)| *section == "Keyspace");
    databases.map(|(_, name, value)| (*name, value.split(',').take(2).collect())).collect()
}

/// CONFIG GET: the parameters in scope, in any order; those marked so only by their presence.
pub fn config(scope: &Scope, reference: &Value, other: &Value) -> bool {
    let comparable = |value: &Value| -> Option<BTreeMap<Vec<u8>, Option<Value>>> {
        let in_scope = value.pairs()?.into_iter().filter_map(|(name, value)| {
            let name = name.text()?.to_vec();
            let exact = scope.config_parameter(&name)?;
            Some((name, exact.then_some(value)))
        });
        Some(in_scope.collect())
    };
    shapes::same_kind(reference, other)
        && comparable(reference).is_some_and(|parameters| Some(parameters) == comparable(other))
}

/// Lines of `name=value` words.
fn client_lines(value: &Value) -> Option<Vec<Vec<(&str, &str)>>> {
    let text = std::str::from_utf8(value.text()?).ok()?;
    text.lines().map(|line| line.split(' ').map(|word| word.split_once('=')).collect()).collect()
}

/// The names of each line's fields, every distinct line once: how many connections there are is not compared.
pub fn client_fields(value: &Value) -> Option<Vec<Vec<String>>> {
    let names = |line: Vec<(&str, &str)>| line.into_iter().map(|(name, _)| name.to_owned()).collect();
    let mut lines: Vec<Vec<String>> = client_lines(value)?.into_iter().map(names).collect();
    lines.sort();
    lines.dedup();
    Some(lines)
}

/// The fields of a client's line that a command sets, not the clock, the socket or an allocator.
const CLIENT_FIELDS: [&str; 15] = [
    "name", "flags", "capa", "db", "sub", "psub", "ssub", "multi", "watch", "cmd", "user", "redir", "resp", "lib-name",
    "lib-ver",
];

/// Each line, with the values that do not repeat taken out. How many keys a broken watch still counts is left out, too:
/// in Valkey that depends on whether a write or FLUSHALL broke it.
pub fn clients(value: &Value) -> Option<Vec<Vec<(String, String)>>> {
    let shown = |line: Vec<(&str, &str)>| {
        let is_broken = line.iter().any(|(name, value)| *name == "flags" && value.contains('d'));
        let fields = line.into_iter().map(|(name, value)| {
            let compared = CLIENT_FIELDS.contains(&name) && !(is_broken && name == "watch");
            (name.to_owned(), if compared { value.to_owned() } else { String::new() })
        });
        fields.collect()
    };
    let mut lines: Vec<Vec<_>> = client_lines(value)?.into_iter().map(shown).collect();
    lines.sort();
    Some(lines)
}

/// MEMORY STATS: where the reference shows a figure that tools read, so does the other, as the same kind of number.
pub fn memory_stats(scope: &Scope, reference: &Value, other: &Value) -> bool {
    let (Some(reference), Some(other)) = (reference.pairs(), other.pairs()) else { return false };
    let find = |pairs: &[(Value, Value)], name: &str| {
        pairs.iter().find(|(key, _)| key.text() == Some(name.as_bytes())).map(|(_, value)| value.clone())
    };
    scope.memory_stats().iter().all(|name| match (find(&reference, name), find(&other, name)) {
        (Some(a), Some(b)) => shapes::same_kind(&a, &b),
        (a, b) => a.is_none() && b.is_none(),
    })
}

/// Entries of a command log: the arguments and the client's name; id, time, measure and address by kind.
pub fn log_entries(value: &Value) -> Option<Vec<Value>> {
    let entries = value.items()?.iter().map(|entry| match entry.items() {
        Some([id, time, measure, arguments, address, name]) => Some(Value::Array(vec![
            kind_only(id),
            kind_only(time),
            kind_only(measure),
            arguments.clone(),
            kind_only(address),
            name.clone(),
        ])),
        _ => None,
    });
    entries.collect()
}

/// ACL LOG: its entries, of which numbers, times and clients count by their kind.
pub fn acl_log(value: &Value) -> Option<Vec<Vec<(Value, Value)>>> {
    let entries = value.items()?.iter().map(|entry| {
        let fields = entry.pairs()?.into_iter().map(|(name, field)| {
            let is_exact = !matches!(
                name.text(),
                Some(b"age-seconds" | b"client-info" | b"entry-id" | b"timestamp-created" | b"timestamp-last-updated")
            );
            let field = if is_exact { field } else { kind_only(&field) };
            (name, field)
        });
        Some(fields.collect())
    });
    entries.collect()
}

/// LATENCY HISTOGRAM: commands with their calls, in any order; the buckets by kind.
pub fn histogram(value: &Value) -> Option<BTreeMap<Value, Vec<(Value, Value)>>> {
    let commands = value.pairs()?.into_iter().map(|(command, figures)| {
        let figures = figures.pairs()?.into_iter().map(|(name, figure)| {
            let exact = name.text() == Some(b"calls");
            (name, if exact { figure } else { Value::Bool(figure.pairs().is_some()) })
        });
        Some((command, figures.collect()))
    });
    commands.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn info_wants_the_fields_of_the_reference_with_their_types() {
        let scope = Scope::load();
        let reference = bulk("# Clients\r\nconnected_clients:1\r\nblocked_clients:0\r\n");
        assert!(info(&scope, &reference, &bulk("# Clients\r\nconnected_clients:9\r\nblocked_clients:0\r\nown:x\r\n")));
        assert!(!info(&scope, &reference, &bulk("# Clients\r\nconnected_clients:9\r\n")));
        assert!(!info(&scope, &reference, &bulk("# Clients\r\nconnected_clients:many\r\nblocked_clients:0\r\n")));
        let one = bulk("# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=5\r\n");
        assert!(info(&scope, &one, &bulk("# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=7\r\n")));
        assert!(!info(&scope, &one, &bulk("# Keyspace\r\ndb0:keys=2,expires=0,avg_ttl=5\r\n")));
    }

    #[test]
    fn clients_compare_what_commands_set() {
        let line = |id: u32, name: &str| bulk(&format!("id={id} addr=a:{id} name={name} db=0\n"));
        assert_eq!(clients(&line(1, "x")), clients(&line(2, "x")));
        assert_ne!(clients(&line(1, "x")), clients(&line(2, "y")));
        let watching = |flags: &str, watch: u32| bulk(&format!("flags={flags} watch={watch}\n"));
        assert_ne!(clients(&watching("N", 0)), clients(&watching("N", 1)));
        assert_eq!(clients(&watching("d", 0)), clients(&watching("d", 1)));
        assert_eq!(client_fields(&line(1, "x")), client_fields(&line(2, "y")));
        assert_ne!(client_fields(&line(1, "x")), client_fields(&bulk("id=1 name=x db=0\n")));
    }
}
