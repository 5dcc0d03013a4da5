//! What the server says about its commands (COMMAND DOCS): names for completion, syntax for hints, and texts of help.

use proto::reply::Value;

/// A command or a subcommand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its words in capitals: `CLIENT KILL`.
    pub name: String,
    /// Its arguments, one text each: `[EX seconds|PX milliseconds]`.
    pub arguments: Vec<String>,
    /// What it does.
    pub summary: String,
    /// Its group: `string`.
    pub group: String,
    /// The version of Redis that has it first.
    pub since: String,
}

/// All commands of a server, by name.
#[derive(Clone, Debug, Default)]
pub struct Docs {
    entries: Vec<Entry>,
}

impl Docs {
    /// Reads the reply of COMMAND DOCS. Empty if the reply is none, such as an error.
    pub fn read(reply: &Value) -> Self {
        let mut entries = Vec::new();
        for (name, about) in pairs(reply) {
            add(&text(name), about, &mut entries);
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Self { entries }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The command that a line begins with: the longest name wins, so that `client kill` is not `client`.
    pub fn of_line(&self, words: &[&str]) -> Option<&Entry> {
        let begins = |entry: &&Entry| {
            let name: Vec<_> = entry.name.split(' ').collect();
            name.len() <= words.len() && name.iter().zip(words).all(|(part, word)| part.eq_ignore_ascii_case(word))
        };
        self.entries.iter().filter(begins).max_by_key(|entry| entry.name.len())
    }

    /// Commands whose names begin with this text.
    pub fn beginning(&self, text: &str) -> impl Iterator<Item = &Entry> {
        let wanted = text.to_ascii_uppercase();
        self.entries.iter().filter(move |entry| entry.name.starts_with(&wanted))
    }

    /// Commands of a group.
    pub fn group(&self, name: &str) -> impl Iterator<Item = &Entry> {
        let wanted = name.to_ascii_lowercase();
        self.entries.iter().filter(move |entry| entry.group == wanted)
    }

    /// The names of all groups.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<_> = self.entries.iter().map(|entry| entry.group.as_str()).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

impl Entry {
    /// Name and arguments.
    pub fn syntax(&self) -> String {
        std::iter::once(&self.name).chain(&self.arguments).map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The arguments after the first `typed` ones.
    pub fn rest(&self, typed: usize) -> String {
        self.arguments.get(typed..).unwrap_or_default().join(" ")
    }
}

fn add(name: &str, about: &Value, entries: &mut Vec<Entry>) {
    let mut entry = Entry { name: name.to_ascii_uppercase().replace('|', " "), ..Entry::default() };
    for (field, value) in pairs(about) {
        match text(field).as_str() {
            "summary" => entry.summary = text(value),
            "since" => entry.since = text(value),
            "group" => entry.group = text(value),
            "arguments" => entry.arguments = elements(value).iter().map(argument).collect(),
            "subcommands" => pairs(value).into_iter().for_each(|(name, about)| add(&text(name), about, entries)),
            _ => {}
        }
    }
    entries.push(entry);
}

/// An argument as a manual writes it.
fn argument(described: &Value) -> String {
    let fields = pairs(described);
    let field = |name: &str| fields.iter().find(|(field, _)| text(field) == name).map(|(_, value)| *value);
    let has_flag = |name: &str| elements(field("flags").unwrap_or(&Value::Null)).iter().any(|flag| text(flag) == name);
    let word = |name: &str| field(name).map(text);
    let parts = |between: &str| {
        let parts: Vec<_> = elements(field("arguments").unwrap_or(&Value::Null)).iter().map(argument).collect();
        parts.join(between)
    };
    let token = word("token").filter(|token| !token.is_empty());
    let is_optional = has_flag("optional");
    let value = match word("type").unwrap_or_default().as_str() {
        // The brackets of an optional choice hold it together.
        "oneof" if is_optional && token.is_none() => parts("|"),
        "oneof" => format!("<{}>", parts("|")),
        "block" => parts(" "),
        "pure-token" => String::new(),
        _ => word("display_text").or_else(|| word("name")).unwrap_or_default(),
    };
    let with_token = |value: &str| match &token {
        Some(token) if value.is_empty() => token.clone(),
        Some(token) => format!("{token} {value}"),
        None => value.to_owned(),
    };
    let mut shown = with_token(&value);
    if has_flag("multiple") {
        let again = if has_flag("multiple_token") { with_token(&value) } else { value };
        shown = format!("{shown} [{again} ...]");
    }
    if is_optional { format!("[{shown}]") } else { shown }
}

/// Names and values, of a map or of a list as RESP2 has it.
fn pairs(value: &Value) -> Vec<(&Value, &Value)> {
    match value {
        Value::Map(pairs) => pairs.iter().map(|(name, value)| (name, value)).collect(),
        _ => elements(value).chunks_exact(2).filter_map(|pair| Some((pair.first()?, pair.get(1)?))).collect(),
    }
}

fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(all) | Value::Set(all) => all,
        _ => &[],
    }
}

fn text(value: &Value) -> String {
    value.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Value {
        Value::Array(words.iter().map(|word| Value::Bulk((*word).into())).collect())
    }

    fn map(fields: Vec<(&str, Value)>) -> Value {
        Value::Array(fields.into_iter().flat_map(|(name, value)| [Value::Bulk(name.into()), value]).collect())
    }

    fn word(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    #[test]
    fn arguments_are_written_as_in_a_manual() {
        let plain = |name: &str| map(vec![("name", word(name)), ("type", word("string"))]);
        assert_eq!(argument(&plain("key")), "key");
        let many = map(vec![
            ("name", word("id")),
            ("type", word("integer")),
            ("token", word("ID")),
            ("flags", list(&["optional", "multiple"])),
        ]);
        assert_eq!(argument(&many), "[ID id [id ...]]");
        let choice = |flags: &[&str]| {
            map(vec![
                ("name", word("condition")),
                ("type", word("oneof")),
                ("flags", list(flags)),
                (
                    "arguments",
                    Value::Array(vec![
                        map(vec![("name", word("nx")), ("type", word("pure-token")), ("token", word("NX"))]),
                        map(vec![("name", word("seconds")), ("type", word("integer")), ("token", word("EX"))]),
                    ]),
                ),
            ])
        };
        assert_eq!(argument(&choice(&["optional"])), "[NX|EX seconds]");
        assert_eq!(argument(&choice(&[])), "<NX|EX seconds>");
    }

    #[test]
    fn the_longest_name_is_the_command() {
        let kill = map(vec![("summary", word("Closes clients."))]);
        let client = map(vec![("group", word("connection")), ("subcommands", map(vec![("client|kill", kill)]))]);
        let docs = Docs::read(&map(vec![("client", client)]));
        assert_eq!(docs.of_line(&["client", "kill", "x"]).unwrap().summary, "Closes clients.");
        assert_eq!(docs.of_line(&["Client", "list"]).unwrap().name, "CLIENT");
        assert_eq!(docs.of_line(&["clien"]), None);
        assert_eq!(docs.beginning("client k").count(), 1);
        assert_eq!(docs.groups(), ["", "connection"]);
    }
}
