//! What people read about the configuration, made from the table: the sample file and the manual page.

use crate::directive::{Changes, Directive, Kind, Section, Setting};
use crate::field::Field;
use crate::{Settings, TABLE, directives};
use std::fmt::Write;

/// Lines of the sample file end before this column.
const WIDTH: usize = 100;

const SAMPLE_INTRO: &str = "Every directive this server knows, commented out at its default. A line of one # and a space \
                            is a directive: remove both to set it. Sizes take the units k, kb, m, mb, g and gb, where kb \
                            is 1024 and k is 1000. Options on the command line are in force over this file: --port 7000. A \
                            line `include PATH` reads other files in its place. \
                            The manual page is docs/configuration.md; `onggi config check FILE` checks a file.";

const MANUAL_INTRO: &str = include_str!("document_intro.txt");

/// The commented sample file. A server that is given it behaves as one that is given none.
pub fn sample() -> String {
    let mut text = String::new();
    push_comment(&mut text, "Onggi's configuration");
    text.push_str("##\n");
    push_comment(&mut text, SAMPLE_INTRO);
    for section in TABLE {
        let supported: Vec<_> = rows_with_settings(section).collect();
        if supported.is_empty() {
            continue;
        }
        let _ = write!(text, "\n\n## ---- {} ", section.title);
        text.push_str(&"-".repeat(WIDTH.saturating_sub(section.title.len()).saturating_sub(9)));
        text.push('\n');
        for (row, setting) in supported {
            text.push('\n');
            push_comment(
                &mut text,
                &format!("{} {}", setting.meaning.replace('`', ""), facts(row, setting).replace('`', "")),
            );
            for line in setting.default_lines() {
                let _ = writeln!(text, "# {} {line}", row.name);
            }
        }
    }
    text
}

/// The manual page, in Markdown.
pub fn manual() -> String {
    let mut text = String::from(MANUAL_INTRO);
    for section in TABLE {
        let mut supported = rows_with_settings(section).peekable();
        if supported.peek().is_none() {
            continue;
        }
        let _ = write!(text, "\n### {}\n\n| Directive | Default | Meaning |\n|---|---|---|\n", section.title);
        for (row, setting) in supported {
            let aliases: String = row.aliases.iter().map(|alias| format!("<br>also `{alias}`")).collect();
            let default = match setting.default {
                "" => "(none)".to_owned(),
                default => format!("`{default}`"),
            };
            let meaning = format!("{} {}", setting.meaning, facts(row, setting));
            let _ = writeln!(text, "| `{}`{aliases} | {default} | {meaning} |", row.name);
        }
    }
    push_refused(&mut text);
    push_not_needed(&mut text);
    text
}

fn rows_with_settings(section: &Section) -> impl Iterator<Item = (&'static Directive, &'static Setting)> {
    section.rows.iter().filter_map(|row| row.setting().map(|setting| (row, setting)))
}

/// Type, unit and changeability, in one sentence each.
fn facts(row: &Directive, setting: &Setting) -> String {
    let unit = if setting.unit.is_empty() { String::new() } else { format!(" ({})", setting.unit) };
    let changes = match row.changes {
        Changes::AtRunTime => "",
        Changes::AtStart | Changes::AtStartProtected => " Cannot change while the server runs.",
    };
    format!("Value: {}{unit}.{changes}", setting.syntax())
}

fn push_refused(text: &mut String) {
    text.push_str(
        "\n## Refused\n\nTo ignore these would break what they promise, so the start ends with the reason. The values in the \
         second column\nask for nothing and are accepted.\n\n| Directive | Accepted | Reason |\n|---|---|---|\n",
    );
    for row in directives() {
        let Kind::Refused(refusal) = &row.kind else { continue };
        let accepted: Vec<_> = refusal
            .accepted
            .iter()
            .map(|value| if value.is_empty() { "`\"\"`".to_owned() } else { format!("`{value}`") })
            .collect();
        let accepted = if accepted.is_empty() { "nothing".to_owned() } else { accepted.join(", ") };
        let _ = writeln!(text, "| {} | {accepted} | {} |", names(row), refusal.reason);
    }
}

fn push_not_needed(text: &mut String) {
    text.push_str(
        "\n## Not needed here\n\nThese are accepted in a file and on the command line, so that files of Redis and Valkey can be \
         used as they are.\nThey have no effect; the start warns once for each reason. CONFIG SET checks and accepts a value as \
         Valkey does, and the\nlog says that it is without effect. CONFIG GET answers the value, and CONFIG REWRITE keeps it.\n\n| Reason | Directives |\n|---|---|\n",
    );
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for row in directives() {
        let Kind::NotNeeded { reason, .. } = row.kind else { continue };
        match reasons.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, rows)) => rows.push(names(row)),
            None => reasons.push((reason, vec![names(row)])),
        }
    }
    for (reason, rows) in reasons {
        let _ = writeln!(text, "| {reason} | {} |", rows.join(", "));
    }
}

fn names(row: &Directive) -> String {
    row.names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Adds text as comment lines of at most [`WIDTH`] columns.
fn push_comment(text: &mut String, comment: &str) {
    let mut column: usize = 0;
    for word in comment.split_whitespace() {
        let after = column.saturating_add(word.len()).saturating_add(1);
        if column == 0 || after > WIDTH {
            text.push_str(if column == 0 { "##" } else { "\n##" });
            column = 2;
        }
        text.push(' ');
        text.push_str(word);
        column = column.saturating_add(word.len()).saturating_add(1);
    }
    text.push('\n');
}

impl Setting {
    /// The default as lines of the file.
    fn default_lines(&self) -> Vec<String> {
        let mut lines = self.field.lines(&Settings::default());
        // One of the databases stands for all: a line for each of its properties.
        lines.truncate(if matches!(self.field, Field::Databases { .. }) { 3 } else { usize::MAX });
        lines
    }
}
