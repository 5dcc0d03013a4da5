//! The reference of commands is that of the rows.
//! `ONGGI_REGENERATE=1 cargo test -p onggi-admin --test reference` writes it.

use command::CommandSpec;
use command::CommandTable;
use command::Run;
use command::acl;
use command::spec::{Argument, ArgumentFlags, ArgumentKind};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Longest line.
const COLUMNS_MAX: usize = 120;
/// Longest argument that is written once more to show that it may be repeated.
const AGAIN_MAX: usize = 30;

const HEAD: &str = "# Commands

This page is generated from the rows of the command table; a test keeps it up to date. COMMAND DOCS answers the same,
and `onggi cli` shows it while one types.

What differs from Valkey on purpose stands in [differences](protocol/differences.md), and commands of Onggi alone have a
[page of their own](protocol/own-commands.md). Some are [not available](protocol/absent-commands.md). \"Since\" is the
first version of Redis or Valkey that had a command, and of Onggi for those that neither has. \"Rights\" are the
categories of users' rules ([security](guides/security.md#users)).
";

/// An argument as a manual writes it.
fn written(argument: &Argument) -> String {
    let has = |flag| argument.flags.contains(flag);
    let join = |parts: &[Argument], between: &str| parts.iter().map(written).collect::<Vec<_>>().join(between);
    let value = match argument.kind {
        // The brackets of an optional choice hold it together.
        ArgumentKind::OneOf(parts) if has(ArgumentFlags::OPTIONAL) && argument.token.is_none() => join(parts, " | "),
        ArgumentKind::OneOf(parts) => format!("<{}>", join(parts, " | ")),
        ArgumentKind::Block(parts) => join(parts, " "),
        ArgumentKind::PureToken => String::new(),
        _ => argument.display.unwrap_or(argument.name).to_owned(),
    };
    let with_token = match argument.token {
        Some(token) if value.is_empty() => token.to_owned(),
        Some(token) => format!("{token} {value}"),
        None => value.clone(),
    };
    let shown = match (has(ArgumentFlags::MULTIPLE), has(ArgumentFlags::MULTIPLE_TOKEN)) {
        (false, _) => with_token,
        // What is long is not written twice.
        (true, _) if value.len() > AGAIN_MAX => format!("{with_token} [...]"),
        (true, false) => format!("{with_token} [{value} ...]"),
        (true, true) => format!("{with_token} [{with_token} ...]"),
    };
    if has(ArgumentFlags::OPTIONAL) { format!("[{shown}]") } else { shown }
}

/// Words in lines, the first of which begins with `first` and each other with `other`.
fn lines(text: &str, first: &str, other: &str) -> String {
    let mut lines = vec![first.to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("one at least");
        if line.len() + 1 + word.len() > COLUMNS_MAX {
            lines.push(format!("{other}{word}"));
        } else {
            if !line.ends_with(' ') && !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// Name and arguments, in lines.
fn syntax(name: &str, spec: &CommandSpec) -> String {
    let words: Vec<String> = std::iter::once(name.to_owned()).chain(spec.docs.arguments.iter().map(written)).collect();
    lines(&words.join(" "), "    ", "        ")
}

/// A command's part of the page.
fn section(text: &mut String, full: &str, spec: &CommandSpec) {
    let name = full.replace('|', " ").to_ascii_uppercase();
    let docs = spec.docs;
    let _ = write!(text, "\n### {name}\n\n{}\n\n{}\n", lines(docs.summary, "", ""), syntax(&name, spec));
    if let Some(old) = &docs.deprecated {
        let _ = write!(text, "\nDeprecated since {}: use {}.\n", old.since, old.replaced_by);
    }
    let rights: Vec<String> = acl::categories(spec).map(|category| format!("`@{}`", category.name())).collect();
    let _ = write!(text, "\n| Cost | Since | Rights |\n|---|---|---|\n");
    let _ = writeln!(text, "| {} | {} | {} |", docs.complexity, docs.since, rights.join(" "));
    if !docs.history.is_empty() {
        text.push('\n');
    }
    for (version, change) in docs.history {
        text.push_str(&lines(&format!("{version}: {change}"), "- ", "  "));
        text.push('\n');
    }
}

fn reference() -> String {
    let table = CommandTable::new(&[command::redis::FAMILIES, script::FAMILIES, admin::FAMILIES].concat());
    let mut groups: BTreeMap<&str, BTreeMap<&str, &CommandSpec>> = BTreeMap::new();
    for (name, spec) in table.resp_rows() {
        groups.entry(spec.docs.group).or_default().insert(name, spec);
    }
    let mut text = HEAD.to_owned();
    for (group, rows) in groups {
        let _ = write!(text, "\n## {group}\n");
        for (name, spec) in rows {
            // Of a container its subcommands are shown.
            if !matches!(spec.run, Run::Container(_)) {
                section(&mut text, name, spec);
            }
        }
    }
    text
}

#[test]
fn the_reference_is_that_of_the_rows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/commands.md");
    let expected = reference();
    if std::env::var_os("ONGGI_REGENERATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/commands.md is out of date: run this test again with ONGGI_REGENERATE=1 and look at the change"
    );
}
