//! The one table of normalisers: which replies may differ in bytes, and what of them must agree all the same.
//!
//! `data/normalisers.txt` has a row per kind of request, `COMMAND | arguments | normaliser`. The first row that matches
//! decides. A normaliser never accepts an error in place of a reply, nor two different errors.

mod commands;
mod server;
mod shapes;
mod streams;

use crate::pattern::{CommandLine, Pattern};
use crate::resp::Value;
use crate::scope::Scope;

/// What must agree between two replies that are not equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Normaliser {
    /// The elements, in any order.
    Unordered,
    /// The same at any depth, of aggregates in aggregates.
    UnorderedDeep,
    /// Fields with their values, in any order, flat or as a map.
    Pairs,
    /// Integers on the same side of zero, at most this far apart, alone or each of an array.
    Near(i64),
    /// What is said about streams, times at most this far apart.
    StreamTimes(i64),
    /// The kind of value, nulls and signs included.
    Kind,
    /// The same, and the number of elements.
    Number,
    /// An array of decimal numbers, of the same length.
    Decimals,
    /// The text with every run of digits and hexadecimal addresses taken out.
    Masked,
    /// Any text that is not empty.
    Text,
    /// A page of SCAN: a cursor and keys.
    Page,
    /// Payloads of DUMP that hold the same, but for times.
    Payload,
    /// HELP: the lines of syntax; explanations are each project's own words.
    Help,
    /// HELLO's fields, with equal protocol, mode and role.
    Hello,
    /// The fields of INFO that tools read, each of its type.
    Info,
    /// The parameters of CONFIG GET that every target has, in any order.
    Config,
    /// `name=value` lines of clients: the same names in the same order.
    ClientFields,
    /// `name=value` lines of clients: the same lines, but for times, sizes and addresses.
    Clients,
    /// MEMORY STATS: the figures that tools read.
    MemoryStats,
    /// Entries of SLOWLOG GET and COMMANDLOG GET, but for ids, times and addresses.
    LogEntries,
    /// Entries of ACL LOG, but for numbers, times and clients.
    AclLog,
    /// LATENCY HISTOGRAM: the same commands with the same number of calls.
    Histogram,
    /// COMMAND, COMMAND INFO: rows of commands in scope, flags in any order.
    CommandInfo,
    /// COMMAND DOCS: entries of commands in scope, but for prose.
    CommandDocs,
    /// COMMAND LIST: names in scope, in any order.
    CommandList,
}

impl Normaliser {
    fn from_words(words: &str) -> Option<Self> {
        let mut parts = words.split_whitespace();
        Some(match (parts.next()?, parts.next()) {
            ("unordered", None) => Self::Unordered,
            ("unordered-deep", None) => Self::UnorderedDeep,
            ("pairs", None) => Self::Pairs,
            ("near", Some(distance)) => Self::Near(distance.parse().ok()?),
            ("stream-times", Some(distance)) => Self::StreamTimes(distance.parse().ok()?),
            ("kind", None) => Self::Kind,
            ("number", None) => Self::Number,
            ("decimals", None) => Self::Decimals,
            ("masked", None) => Self::Masked,
            ("text", None) => Self::Text,
            ("page", None) => Self::Page,
            ("payload", None) => Self::Payload,
            ("help", None) => Self::Help,
            ("hello", None) => Self::Hello,
            ("info", None) => Self::Info,
            ("config", None) => Self::Config,
            ("client-fields", None) => Self::ClientFields,
            ("clients", None) => Self::Clients,
            ("memory-stats", None) => Self::MemoryStats,
            ("log-entries", None) => Self::LogEntries,
            ("acl-log", None) => Self::AclLog,
            ("histogram", None) => Self::Histogram,
            ("command-info", None) => Self::CommandInfo,
            ("command-docs", None) => Self::CommandDocs,
            ("command-list", None) => Self::CommandList,
            _ => return None,
        })
    }

    fn agree(self, scope: &Scope, reference: &Value, other: &Value) -> bool {
        if matches!(reference, Value::Error(_)) || matches!(other, Value::Error(_)) {
            return reference == other;
        }
        match self {
            Self::Unordered => shapes::sorted(reference) == shapes::sorted(other),
            Self::UnorderedDeep => shapes::sorted_deep(reference) == shapes::sorted_deep(other),
            Self::Pairs => shapes::paired(reference) == shapes::paired(other),
            Self::Near(distance) => shapes::near(reference, other, distance),
            Self::StreamTimes(distance) => streams::agree(reference, other, distance),
            Self::Kind => shapes::same_kind(reference, other),
            Self::Number => shapes::same_number(reference, other),
            Self::Decimals => shapes::decimals(reference, other),
            Self::Masked => shapes::masked(reference) == shapes::masked(other),
            Self::Text => shapes::texts(reference, other),
            Self::Page => shapes::pages(reference, other),
            Self::Payload => shapes::payloads(reference, other),
            Self::Help => shapes::help(reference).is_some_and(|syntax| Some(syntax) == shapes::help(other)),
            Self::Hello => server::hello(reference) == server::hello(other),
            Self::Info => server::info(scope, reference, other),
            Self::Config => server::config(scope, reference, other),
            Self::ClientFields => server::client_fields(reference) == server::client_fields(other),
            Self::Clients => server::clients(reference) == server::clients(other),
            Self::MemoryStats => server::memory_stats(scope, reference, other),
            Self::AclLog => server::acl_log(reference) == server::acl_log(other),
            Self::LogEntries => server::log_entries(reference) == server::log_entries(other),
            Self::Histogram => server::histogram(reference) == server::histogram(other),
            Self::CommandInfo => commands::info(scope, reference) == commands::info(scope, other),
            Self::CommandDocs => commands::docs(scope, reference) == commands::docs(scope, other),
            Self::CommandList => commands::list(scope, reference) == commands::list(scope, other),
        }
    }
}

/// The table.
#[derive(Debug)]
pub struct Table {
    rows: Vec<(Pattern, Normaliser)>,
    scope: Scope,
}

impl Table {
    /// Reads the table that belongs to this crate.
    ///
    /// # Panics
    /// When the table has a row that is no row: the data is part of the program.
    pub fn load() -> Self {
        Self::parse(include_str!("../data/normalisers.txt"), Scope::load())
            .expect("data/normalisers.txt is well formed")
    }

    fn parse(text: &str, scope: Scope) -> Result<Self, String> {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let row = |line: &str| {
            let mut columns = line.split('|').map(str::trim);
            let (command, arguments, words) = (columns.next()?, columns.next()?, columns.next()?);
            Some((Pattern::new(command, arguments), Normaliser::from_words(words)?))
        };
        let rows = lines.map(|line| row(line).ok_or_else(|| format!("not a row: {line}")));
        Ok(Self { rows: rows.collect::<Result<_, _>>()?, scope })
    }

    /// Whether two unequal replies to `line` say the same.
    pub fn agree(&self, line: &CommandLine, reference: &Value, other: &Value) -> bool {
        let row = self.rows.iter().find(|(pattern, _)| pattern.matches(line));
        row.is_some_and(|(_, normaliser)| normaliser.agree(&self.scope, reference, other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_matches_decides_and_errors_stay_exact() {
        let table = Table::load();
        let line = |text: &str| CommandLine::new(text.split(' ').map(|word| word.as_bytes().to_vec()).collect());
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let keys = |names: &[&str]| Value::Array(names.iter().map(|name| bulk(name)).collect());
        assert!(table.agree(&line("KEYS *"), &keys(&["a", "b"]), &keys(&["b", "a"])));
        assert!(!table.agree(&line("KEYS *"), &keys(&["a", "b"]), &keys(&["a", "c"])));
        assert!(!table.agree(&line("MGET a b"), &keys(&["a", "b"]), &keys(&["b", "a"])));
        let error = Value::Error(b"ERR a".to_vec());
        assert!(!table.agree(&line("KEYS *"), &error, &keys(&[])));
        assert!(!table.agree(&line("LOLWUT"), &error, &Value::Error(b"ERR b".to_vec())));
        assert!(table.agree(&line("PTTL k"), &Value::Int(100_000), &Value::Int(99_000)));
        assert!(!table.agree(&line("PTTL k"), &Value::Int(-1), &Value::Int(-2)));
    }

    #[test]
    fn a_row_with_an_unknown_normaliser_is_refused() {
        assert!(Table::parse("GET | * | roughly", Scope::load()).is_err());
    }
}
