//! Replies as text, in the forms of redis-cli: for people with types, quotes and numbers of elements, plain, and JSON.

use proto::reply::Value;

/// How replies are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Types, quotes, and a number before each element.
    People,
    /// Strings as they are, elements on lines of their own.
    Plain,
    /// Text for people that the server has laid out: as it is, without the blank line that [`Form::Plain`] adds.
    Text,
    /// One line of JSON.
    Json,
    /// One line of values between commas, strings in quotes.
    Csv,
}

/// The form of the reply of a command: text that is laid out for people has no quotes.
pub fn form_of(command: &[Vec<u8>], form: Form) -> Form {
    let word = |at: usize| command.get(at).map(Vec::as_slice);
    let is_text = word(0).is_some_and(|name| is_text(name, word(1)));
    if is_text && !matches!(form, Form::Json | Form::Csv) { Form::Text } else { form }
}

/// A reply in a form, with the end of its line.
pub fn shown(reply: &Value, form: Form) -> Vec<u8> {
    let mut text = Vec::new();
    match form {
        Form::People => show(reply, b"", &mut text),
        Form::Plain => {
            write_plain(reply, &mut text);
            text.push(b'\n');
        }
        Form::Text => {
            write_plain(reply, &mut text);
            if !text.ends_with(b"\n") {
                text.push(b'\n');
            }
        }
        Form::Json => line_of(&mut text, json(reply).to_string().as_bytes()),
        Form::Csv => {
            write_csv(reply, &mut text);
            text.push(b'\n');
        }
    }
    text
}

/// A reply between commas. Lists in lists are one list, as in redis-cli.
fn write_csv(reply: &Value, text: &mut Vec<u8>) {
    let mut join = |all: &mut dyn Iterator<Item = &Value>| {
        for (number, value) in all.enumerate() {
            if number > 0 {
                text.push(b',');
            }
            write_csv(value, text);
        }
    };
    match reply {
        Value::Array(all) | Value::Set(all) | Value::Push(all) => join(&mut all.iter()),
        Value::Map(pairs) => join(&mut pairs.iter().flat_map(|(key, value)| [key, value])),
        Value::Attributed { value, .. } => write_csv(value, text),
        Value::Error(line) => {
            text.extend_from_slice(b"ERROR,");
            text.extend_from_slice(&quoted(line));
        }
        Value::Integer(number) => text.extend(number.to_string().bytes()),
        Value::Double(number) => text.extend(double(*number).bytes()),
        Value::Boolean(yes) => text.extend(if *yes { "true" } else { "false" }.bytes()),
        Value::BigNumber(digits) => text.extend_from_slice(digits),
        Value::NullBulk | Value::NullArray | Value::Null => text.extend_from_slice(b"NULL"),
        reply => text.extend_from_slice(&quoted(reply.as_bytes().unwrap_or_default())),
    }
}

/// A reply as JSON: maps are objects, and errors have a field `error`.
fn json(reply: &Value) -> serde_json::Value {
    match reply {
        Value::Integer(number) => (*number).into(),
        Value::Double(number) => (*number).into(),
        Value::Boolean(yes) => (*yes).into(),
        Value::Array(all) | Value::Set(all) | Value::Push(all) => all.iter().map(json).collect(),
        Value::Map(pairs) => pairs.iter().map(|(key, value)| (json_key(key), json(value))).collect(),
        Value::Attributed { value, .. } => json(value),
        Value::Error(text) => serde_json::json!({"error": String::from_utf8_lossy(text)}),
        reply => reply.as_bytes().map_or(serde_json::Value::Null, |bytes| String::from_utf8_lossy(bytes).into()),
    }
}

/// The name of a field: JSON has only strings there.
fn json_key(key: &Value) -> String {
    match json(key) {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Whether a command answers text for people, which is shown without quotes in both forms.
fn is_text(command: &[u8], subcommand: Option<&[u8]>) -> bool {
    let is = |word: Option<&[u8]>, name: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let has = |name: &str, of: &[&str]| is(Some(command), name) && of.iter().any(|sub| is(subcommand, sub));
    is(Some(command), "info")
        || is(Some(command), "lolwut")
        || has("memory", &["malloc-stats", "doctor"])
        || has("latency", &["graph", "doctor"])
        || has("client", &["list", "info"])
        || has("cluster", &["nodes", "info"])
        || has("debug", &["htstats"])
}

fn show(reply: &Value, prefix: &[u8], text: &mut Vec<u8>) {
    match reply {
        Value::Simple(line) => line_of(text, line),
        Value::Error(line) => line_of(text, &[b"(error) ", &line[..]].concat()),
        Value::Integer(number) => line_of(text, format!("(integer) {number}").as_bytes()),
        Value::Double(number) => line_of(text, format!("(double) {}", double(*number)).as_bytes()),
        Value::Boolean(yes) => line_of(text, if *yes { b"(true)" } else { b"(false)" }),
        Value::BigNumber(digits) => line_of(text, digits),
        Value::Bulk(bytes) => line_of(text, &quoted(bytes)),
        Value::Verbatim { text: bytes, .. } => line_of(text, bytes),
        Value::NullBulk | Value::NullArray | Value::Null => line_of(text, b"(nil)"),
        Value::Array(all) => list(all.iter().map(Item::One), all.len(), ")", "(empty array)", prefix, text),
        Value::Set(all) => list(all.iter().map(Item::One), all.len(), "~", "(empty set)", prefix, text),
        Value::Push(all) => list(all.iter().map(Item::One), all.len(), ")", "(empty push)", prefix, text),
        Value::Map(pairs) => {
            list(
                pairs.iter().map(|(key, value)| Item::Pair(key, value)),
                pairs.len(),
                "#",
                "(empty hash)",
                prefix,
                text,
            );
        }
        Value::Attributed { value, .. } => show(value, prefix, text),
    }
}

/// An element of a list.
enum Item<'v> {
    One(&'v Value),
    Pair(&'v Value, &'v Value),
}

fn list<'v>(
    items: impl Iterator<Item = Item<'v>>,
    count: usize,
    mark: &str,
    empty: &str,
    prefix: &[u8],
    text: &mut Vec<u8>,
) {
    if count == 0 {
        return line_of(text, empty.as_bytes());
    }
    let width = count.to_string().len();
    let inner = [prefix, " ".repeat(width + mark.len() + 1).as_bytes()].concat();
    for (number, item) in items.enumerate() {
        // The first element continues the line of its list.
        if number > 0 {
            text.extend_from_slice(prefix);
        }
        text.extend_from_slice(format!("{:>width$}{mark} ", number + 1).as_bytes());
        match item {
            Item::One(value) => show(value, &inner, text),
            Item::Pair(key, value) => {
                show(key, &inner, text);
                text.pop();
                text.extend_from_slice(b" => ");
                let mut shown = Vec::new();
                show(value, &inner, &mut shown);
                // A value of several lines begins on a line of its own.
                if shown.trim_ascii_end().contains(&b'\n') {
                    text.push(b'\n');
                    text.extend_from_slice(&inner);
                }
                text.extend_from_slice(&shown);
            }
        }
    }
}

fn line_of(text: &mut Vec<u8>, line: &[u8]) {
    text.extend_from_slice(line);
    text.push(b'\n');
}

/// A string in quotes, with escapes for bytes that do not print.
pub fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b'\n' => text.extend(b"\\n"),
            b'\r' => text.extend(b"\\r"),
            b'\t' => text.extend(b"\\t"),
            7 => text.extend(b"\\a"),
            8 => text.extend(b"\\b"),
            b' '..=b'~' => text.push(*byte),
            other => text.extend(format!("\\x{other:02x}").bytes()),
        }
    }
    text.push(b'"');
    text
}

fn double(number: f64) -> String {
    match number {
        _ if number == f64::INFINITY => "inf".to_owned(),
        _ if number == f64::NEG_INFINITY => "-inf".to_owned(),
        _ => number.to_string(),
    }
}

fn write_plain(reply: &Value, text: &mut Vec<u8>) {
    match reply {
        Value::Integer(number) => text.extend(number.to_string().bytes()),
        Value::Double(number) => text.extend(double(*number).bytes()),
        Value::Boolean(yes) => text.extend(if *yes { "(true)" } else { "(false)" }.bytes()),
        Value::Error(line) => line_of(text, line),
        Value::NullBulk | Value::NullArray | Value::Null => {}
        Value::Array(all) | Value::Set(all) | Value::Push(all) => {
            for (number, value) in all.iter().enumerate() {
                if number > 0 {
                    text.push(b'\n');
                }
                write_plain(value, text);
            }
        }
        Value::Map(pairs) => {
            for (number, (key, value)) in pairs.iter().enumerate() {
                if number > 0 {
                    text.push(b'\n');
                }
                write_plain(key, text);
                text.push(b' ');
                write_plain(value, text);
            }
        }
        Value::Attributed { value, .. } => write_plain(value, text),
        reply => text.extend_from_slice(reply.as_bytes().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(reply: &Value) -> String {
        String::from_utf8(super::shown(reply, Form::People)).unwrap()
    }

    #[test]
    fn lists_in_lists_are_indented() {
        let bulk = |text: &str| Value::Bulk(text.into());
        let inner = Value::Array(vec![bulk("a"), Value::Integer(1)]);
        let ten = Value::Array((0..10).map(Value::Integer).collect());
        assert_eq!(
            shown(&Value::Array(vec![inner, Value::Array(vec![]), Value::NullBulk])),
            "1) 1) \"a\"\n   2) (integer) 1\n2) (empty array)\n3) (nil)\n"
        );
        assert!(shown(&ten).starts_with(" 1) (integer) 0\n 2) (integer) 1\n"), "{}", shown(&ten));
        assert_eq!(shown(&Value::Map(vec![(bulk("k"), bulk("\x01\""))])), "1# \"k\" => \"\\x01\\\"\"\n");
        assert_eq!(shown(&Value::Error(b"ERR no".to_vec())), "(error) ERR no\n");
    }

    #[test]
    fn values_between_commas() {
        let bulk = |text: &str| Value::Bulk(text.into());
        let list = Value::Array(vec![bulk("a\"b"), Value::NullBulk, Value::Array(vec![Value::Integer(1), bulk("")])]);
        assert_eq!(super::shown(&list, Form::Csv), b"\"a\\\"b\",NULL,1,\"\"\n");
        assert_eq!(super::shown(&Value::Error(b"ERR no".to_vec()), Form::Csv), b"ERROR,\"ERR no\"\n");
    }

    #[test]
    fn maps_are_objects_of_json() {
        let bulk = |text: &str| Value::Bulk(text.into());
        let map = Value::Map(vec![(bulk("k"), Value::Null), (Value::Integer(1), Value::Double(0.5))]);
        assert_eq!(super::shown(&map, Form::Json), b"{\"1\":0.5,\"k\":null}\n");
        assert_eq!(super::shown(&Value::Error(b"ERR no".to_vec()), Form::Json), b"{\"error\":\"ERR no\"}\n");
    }
}
