//! The names of commands and statistics in docs/protocol/memcached.md and arcus.md are those that the port knows.

use crate::harness::{TestServer, memory};
use std::collections::BTreeSet;

const MEMCACHED: &str = include_str!("../../docs/protocol/memcached.md");
const ARCUS: &str = include_str!("../../docs/protocol/arcus.md");

/// Rows that are no commands: what is refused, and a login by `set`.
const NO_COMMANDS: [&str; 2] = ["login", "refused"];

/// Commands that the rows of `get` and `gets` answer.
const OF_OTHER_ROWS: [&str; 2] = ["mget", "mgets"];

fn section<'p>(page: &'p str, title: &str) -> &'p str {
    page.split("\n## ").find_map(|section| section.strip_prefix(title)).expect("the section is there")
}

/// The code words of a text.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The commands that the pages list, by the names of their rows.
fn on_pages() -> BTreeSet<String> {
    let lists = section(MEMCACHED, "Commands").split("\n\n").nth(1).expect("a paragraph");
    // What follows "Flags, ..." says what is not there.
    let listed = lists.split("\nFlags").next().unwrap_or_default();
    let mut names: BTreeSet<String> = code(listed).map(str::to_owned).collect();
    for line in section(ARCUS, "Commands").lines().filter_map(|line| line.strip_prefix("| ")) {
        // `lop create`, `insert`: the second is `lop insert`.
        let mut family = None;
        for words in code(line.split(" | ").nth(1).unwrap_or_default()) {
            let mut words = words.split(' ');
            let (first, second) = (words.next().unwrap_or_default(), words.next());
            names.insert(match (family, second) {
                (_, Some(second)) if ["lop", "sop", "mop", "bop"].contains(&first) => {
                    family = Some(first);
                    format!("{first}_{second}")
                }
                (_, Some(second)) if first == "scan" => format!("{first}_{second}"),
                (Some(family), None) => format!("{family}_{first}"),
                _ => first.to_owned(),
            });
        }
    }
    names
}

#[test]
fn commands_on_the_pages_are_those_of_the_port() {
    let server = TestServer::with_shards(memory, 1);
    let rows = server.shared.table.rows().iter().filter_map(|(name, _)| name.strip_prefix("memcached|"));
    let known: BTreeSet<String> =
        rows.filter(|name| !NO_COMMANDS.contains(name)).map(|name| name.replace("sasl_mech", "sasl")).collect();
    let named = on_pages();
    let missing: Vec<_> = known.difference(&named).collect();
    assert!(missing.is_empty(), "no page names {missing:?}");
    let unknown: Vec<_> = named.difference(&known).filter(|name| !OF_OTHER_ROWS.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "no rows are there for {unknown:?}");
    assert!(known.len() > 60, "{known:?}");
}

/// The words after `stats` in the table of statistics.
fn statistics() -> Vec<String> {
    let rows = section(MEMCACHED, "Statistics").lines().filter_map(|line| line.strip_prefix("| `"));
    let mut found = Vec::new();
    for cell in rows.filter_map(|row| row.split(" | ").next()).filter(|cell| !cell.starts_with("stats`")) {
        let cell = format!("`{cell}");
        let words = code(&cell).map(|word| word.split(' ').next().unwrap_or_default().to_owned());
        // `detail on`, `off`: the first word only.
        found.extend(words.take(if cell.starts_with("`detail") { 1 } else { usize::MAX }));
    }
    found.retain(|word| word != "operation");
    found
}

/// Each kind of statistics on the page is answered, `help stats` names the same, and others are not answered.
#[test]
fn statistics_on_the_page_are_answered() {
    let mut server = TestServer::with_shards(memory, 1);
    let client = server.connect_memcached_as_default();
    let named: BTreeSet<String> = statistics().into_iter().collect();
    let help = String::from_utf8(server.send(client, b"help stats\r\n")).unwrap();
    let in_help: BTreeSet<String> = help
        .split("\\r\\n")
        .filter_map(|line| line.trim().strip_prefix("stats "))
        .flat_map(|words| words.split(' ').next().unwrap_or_default().split('|'))
        .map(str::to_owned)
        .collect();
    assert_eq!(named, in_help, "the page and `help stats` name the same");
    for name in &named {
        let reply = String::from_utf8(server.send(client, format!("stats {name}\r\n").as_bytes())).unwrap();
        assert!(!reply.starts_with("ERROR\r\n"), "{name}: {reply}");
        if reply.is_empty() {
            // A walk answers it, and keeps the connection until then.
            server.executor.begin_turn();
            let sweeps = server.shared.host.part::<memcached::Needed, std::sync::Arc<memcached::Sweeps>>().clone();
            while server.executor.sweep(&sweeps) {}
            server.executor.begin_turn();
            server.executor.end_blocks();
            assert!(server.replies(client).ends_with(b"END\r\n"), "{name}");
        }
    }
    assert_eq!(server.send(client, b"stats nonsense\r\n"), b"ERROR\r\n");
    assert!(named.len() > 10, "{named:?}");
}
