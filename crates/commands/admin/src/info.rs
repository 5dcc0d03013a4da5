//! INFO: the figures of the server, by section.

mod commands;
mod encryption;
mod sections;

use base::figures::Figure;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&INFO];

static INFO: CommandSpec = CommandSpec {
    name: "info",
    arity: -1,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::DANGEROUS,
    keys: &[],
    locks: Locks::Each,
    docs: &Docs {
        summary: "Tells figures and facts about the server.",
        since: "1.0.0",
        group: "server",
        complexity: "O(1)",
        history: &[("7.0.0", "Takes several sections.")],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        arguments: &[Argument::string("section").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(info),
};

/// Writes one section.
type Write = fn(&mut Ctx<'_>, &mut String);

/// A section: its name, its heading, whether `INFO` alone and `INFO all` show it, and what writes it.
struct Section {
    name: &'static str,
    heading: &'static str,
    by_default: bool,
    in_all: bool,
    write: Write,
}

const fn section(name: &'static str, heading: &'static str, write: Write) -> Section {
    Section { name, heading, by_default: true, in_all: true, write }
}

/// In the order they are shown.
static SECTIONS: &[Section] = &[
    section("server", "Server", sections::server),
    section("tls", "TLS", encryption::section),
    section("clients", "Clients", sections::clients),
    section("memory", "Memory", sections::memory),
    section("compression", "Compression", sections::compression),
    section("persistence", "Persistence", sections::persistence),
    Section { by_default: false, ..section("disk", "Disk", sections::disk) },
    Section { by_default: false, ..section("tier", "Tier", sections::tier) },
    section("stats", "Stats", sections::stats),
    section("replication", "Replication", sections::replication),
    section("cpu", "CPU", sections::cpu),
    Section { in_all: false, ..section("modules", "Modules", |_, _| {}) },
    Section { by_default: false, ..section("commandstats", "Commandstats", commands::statistics) },
    section("errorstats", "Errorstats", commands::errors),
    Section { by_default: false, ..section("latencystats", "Latencystats", commands::latencies) },
    section("cluster", "Cluster", sections::cluster),
    section("keyspace", "Keyspace", sections::keyspace),
];

/// The names of all sections, in the order they are shown.
pub fn section_names() -> impl Iterator<Item = &'static str> {
    SECTIONS.iter().map(|section| section.name)
}

fn info(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let asked = ctx.args;
    let has = |word: &str| asked.from(1).any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    let (everything, all) = (has("everything"), has("all"));
    let default = asked.len() == 1 || has("default");
    let mut text = String::new();
    for section in SECTIONS {
        let general = everything || all && section.in_all || default && section.by_default;
        if !general && !has(section.name) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        text.push_str(&format!("# {}\r\n", section.heading));
        (section.write)(ctx, &mut text);
    }
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// Adds the line of a figure.
fn line(text: &mut String, figure: &Figure, value: impl std::fmt::Display) {
    line_of_family(text, figure.field, value);
}

/// Adds a line that is one of several: `db0`, `cmdstat_get`, `listener0`, or a figure for people.
fn line_of_family(text: &mut String, name: &str, value: impl std::fmt::Display) {
    use std::fmt::Write;
    // Writing to a string cannot fail.
    let _ = write!(text, "{name}:{value}\r\n");
}

/// Bytes for people: `1.91M`.
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let power = (bytes.ilog2() / 10) as usize;
    format!("{:.2}{}", bytes as f64 / 1024f64.powi(power as i32), UNITS[power - 1])
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn bytes_for_people() {
        let all = [0, 1023, 1024, 2_007_288, 25_276_514_304, u64::MAX].map(human);
        assert_eq!(all, ["0B", "1023B", "1.00K", "1.91M", "23.54G", "16.00E"]);
    }
}
