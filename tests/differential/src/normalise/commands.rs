//! Normalisers for COMMAND and its subcommands: only commands in scope are compared, sets in any order, and prose (each
//! project's own words) only by its presence.

use super::shapes;
use crate::resp::Value;
use crate::scope::Scope;

/// COMMAND and COMMAND INFO: rows in scope by name. `None` for an unknown command stays in its place.
pub fn info(scope: &Scope, value: &Value) -> Option<Vec<Value>> {
    let mut rows: Vec<Value> = Vec::new();
    for row in value.items()? {
        match row.items() {
            None => rows.push(row.clone()),
            Some(columns) => {
                if columns.first().and_then(Value::text).is_some_and(|name| scope.has_command(name)) {
                    rows.push(info_row(scope, columns));
                }
            }
        }
    }
    rows.sort();
    Some(rows)
}

/// Name, arity, flags, first key, last key, step, categories, tips, key specifications, subcommands.
fn info_row(scope: &Scope, columns: &[Value]) -> Value {
    let column = |(i, column): (usize, &Value)| match i {
        2 | 6 | 7 => shapes::sorted(column),
        8 => Value::Array(column.items().unwrap_or_default().iter().map(key_specification).collect()),
        9 => Value::Array(info(scope, column).unwrap_or_default()),
        _ => column.clone(),
    };
    Value::Array(columns.iter().enumerate().map(column).collect())
}

/// Notes are prose, flags a set.
fn key_specification(value: &Value) -> Value {
    let pairs = value.pairs().unwrap_or_default().into_iter().map(|(name, value)| {
        let value = match name.text() {
            Some(b"notes") => Value::Null,
            Some(b"flags") => shapes::sorted(&value),
            _ => value,
        };
        (name, value)
    });
    Value::Map(pairs.collect())
}

/// COMMAND DOCS: entries in scope by name.
pub fn docs(scope: &Scope, value: &Value) -> Option<Value> {
    let entries =
        value.pairs()?.into_iter().filter(|(name, _)| name.text().is_some_and(|name| scope.has_command(name)));
    let mut entries: Vec<_> = entries.map(|(name, entry)| (name, docs_entry(scope, &entry))).collect();
    entries.sort();
    Some(Value::Map(entries))
}

fn docs_entry(scope: &Scope, value: &Value) -> Value {
    let pairs = value.pairs().unwrap_or_default().into_iter().map(|(name, value)| {
        let value = match name.text() {
            Some(b"summary" | b"complexity" | b"replaced_by") => {
                Value::Bool(value.text().is_some_and(|t| !t.is_empty()))
            }
            Some(b"history") => Value::Array(value.items().unwrap_or_default().iter().map(version).collect()),
            Some(b"doc_flags") => shapes::sorted(&value),
            Some(b"arguments") => arguments(&value),
            Some(b"subcommands") => docs(scope, &value).unwrap_or(value),
            _ => value,
        };
        (name, value)
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort();
    Value::Map(pairs)
}

/// Arguments that Onggi alone has, of commands that are compared.
const OWN_ARGUMENTS: [&[u8]; 1] = [b"logical"];

/// Arguments in their order, but for [`OWN_ARGUMENTS`], each with its own, if it has some; of a summary only that it is
/// there.
fn arguments(value: &Value) -> Value {
    let argument = |argument: &Value| {
        let pairs = argument.pairs().unwrap_or_default().into_iter().map(|(name, value)| {
            let value = match name.text() {
                Some(b"summary") => Value::Bool(value.text().is_some_and(|t| !t.is_empty())),
                Some(b"flags") => shapes::sorted(&value),
                Some(b"arguments") => arguments(&value),
                _ => value,
            };
            (name, value)
        });
        Value::Map(pairs.collect())
    };
    let is_own = |argument: &&Value| {
        let pairs = argument.pairs().unwrap_or_default();
        let mut names = pairs.iter().filter(|(field, _)| field.text() == Some(b"name"));
        names.any(|(_, name)| name.text().is_some_and(|name| OWN_ARGUMENTS.contains(&name)))
    };
    Value::Array(value.items().unwrap_or_default().iter().filter(|argument| !is_own(argument)).map(argument).collect())
}

/// Of a line of history, the version it names.
fn version(value: &Value) -> Value {
    value.items().and_then(|items| items.first()).cloned().unwrap_or(Value::Null)
}

/// COMMAND LIST: the names in scope.
pub fn list(scope: &Scope, value: &Value) -> Option<Vec<Value>> {
    let names = value.items()?.iter().filter(|name| name.text().is_some_and(|name| scope.has_command(name)));
    let mut names: Vec<Value> = names.cloned().collect();
    names.sort();
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn only_commands_in_scope_are_compared() {
        let scope = Scope::load();
        let names = |names: &[&str]| Value::Array(names.iter().map(|name| bulk(name)).collect());
        assert_eq!(list(&scope, &names(&["get", "nosuch", "set"])), list(&scope, &names(&["set", "get"])));
        assert_ne!(list(&scope, &names(&["get", "set"])), list(&scope, &names(&["get"])));
    }

    #[test]
    fn summaries_may_differ_and_arguments_may_not() {
        let scope = Scope::load();
        let docs_of = |summary: &str, since: &str| {
            let entry = vec![bulk("summary"), bulk(summary), bulk("since"), bulk(since)];
            docs(&scope, &Value::Array(vec![bulk("get"), Value::Array(entry)]))
        };
        assert_eq!(docs_of("Reads.", "1.0.0"), docs_of("Returns.", "1.0.0"));
        assert_ne!(docs_of("Reads.", "1.0.0"), docs_of("Reads.", "2.0.0"));
        assert_ne!(docs_of("Reads.", "1.0.0"), docs_of("", "1.0.0"));
        let argument = |summary: &str, token: &str| {
            let pairs = vec![bulk("token"), bulk(token), bulk("summary"), bulk(summary)];
            arguments(&Value::Array(vec![Value::Array(pairs)]))
        };
        assert_eq!(argument("Compares.", "IFEQ"), argument("Looks.", "IFEQ"));
        assert_ne!(argument("Compares.", "IFEQ"), argument("Compares.", "IFNE"));
    }
}
