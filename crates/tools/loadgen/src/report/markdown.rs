//! Markdown: the same tables, for standard output and for the file next to the page.

use super::{figure, interval, picture, reached, score, title};
use crate::measure::Measurement;
use crate::results::{Better, ResultRow, Results, Section};
use crate::stats::Estimate;

/// The whole document.
pub fn render(results: &Results) -> String {
    let (met, judged) = score(results);
    let mut text = format!(
        "# {}\n\n{} UTC, {:.0} minutes, by {}. Machine: {}. Load average {} before, {} after.\n",
        title(results),
        results.started,
        (results.seconds / 60.0).ceil(),
        results.generator,
        results.machine,
        results.machine.load_average,
        results.load_average_end
    );
    if judged > 0 {
        text.push_str(&format!("\n**{met} of {judged} targets met.**\n"));
    }
    for (at, picture) in results.pictures.iter().enumerate() {
        let (title, file) = (&picture.title, picture::file_name(at));
        text.push_str(&format!("\n## {title}\n\n{} In {}.\n\n![{title}]({file})\n", picture.about, picture.unit));
    }
    text.push_str(&tables(results));
    text.push_str(&servers(results));
    text.push_str(&format!("\n## Again\n\n```\n{}\n```\n\n{}\n", results.command_line, load_line(results)));
    text
}

/// Each server's version, and how it was started.
pub fn servers(results: &Results) -> String {
    let mut text = "\n## Servers\n\n".to_owned();
    for server in &results.servers {
        let cores = server.cores.as_ref().map_or_else(String::new, |cores| format!(", on core {cores}"));
        text.push_str(&format!(
            "- **{}**: {}, allocator {}{cores}\n  `{}`\n",
            server.name, server.version, server.allocator, server.command
        ));
        for line in &server.settings {
            text.push_str(&format!("  - started with: {line}\n"));
        }
    }
    text
}

/// Only the tables, one for each section.
pub fn tables(results: &Results) -> String {
    results.sections.iter().map(|section| section_table(section, results)).collect()
}

/// The load in one sentence.
pub(crate) fn load_line(results: &Results) -> String {
    let settings = &results.settings;
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    // The suite has separate keys and values for each table.
    if results.suite == "cp-redis" {
        let connections = plural(settings.connections, "connection");
        return format!("{connections} from {}, seed {}.", plural(settings.threads, "thread"), settings.seed);
    }
    let values = match &settings.content {
        crate::payload::Content::Constant => "constant bytes".to_owned(),
        crate::payload::Content::Random => "random bytes".to_owned(),
        crate::payload::Content::Documents { path } => format!("documents of {}", path.display()),
    };
    let keys = serde_json::to_value(settings.distribution).ok();
    let distribution = keys.as_ref().and_then(|value| value["kind"].as_str()).unwrap_or_default();
    format!(
        "{} from {}, {} keys of {} B ({distribution}), values of {values}, seed {}, {} s before each window.",
        plural(settings.connections, "connection"),
        plural(settings.threads, "thread"),
        figure(settings.keys as f64),
        settings.key_format.size,
        settings.seed,
        settings.warmup_seconds
    )
}

fn section_table(section: &Section, results: &Results) -> String {
    let names = server_names(section);
    let mut table = vec![vec![section.unit.clone()]];
    table[0].extend(names.iter().cloned());
    let peers: Vec<_> = names.iter().filter(|&name| *name != results.subject).collect();
    let has_ratios = section.rows.iter().any(|row| !row.ratios.is_empty());
    if has_ratios {
        table[0].extend(peers.iter().map(|peer| ratio_name(section, &results.subject, peer)));
    }
    let has_verdicts = section.rows.iter().any(|row| row.verdict.is_some());
    if has_verdicts {
        table[0].push("target".to_owned());
    }
    for row in &section.rows {
        let mut line = vec![row.title.clone()];
        for name in &names {
            line.push(row.value_of(name).map_or_else(String::new, |value| figure(value.median)));
        }
        if has_ratios {
            line.extend(peers.iter().map(|peer| ratio_text(row, peer)));
        }
        if has_verdicts {
            line.push(verdict_text(row));
        }
        table.push(line);
    }
    let mut text = format!("\n## {}\n\n{}\n\n{}", section.title, section.about, aligned(&table));
    if let Some(peer) = peers.first().filter(|_| has_ratios) {
        let name = ratio_name(section, &results.subject, peer);
        text.push_str(&format!("\n`{name}` above 1: {} is better.\n", results.subject));
    }
    text.push_str(&speeds(section));
    text
}

/// The definition of a ratio: above 1 the subject is better.
fn ratio_name(section: &Section, subject: &str, peer: &str) -> String {
    match section.better {
        Better::Lower => format!("{peer} / {subject}"),
        Better::Higher => format!("{subject} / {peer}"),
    }
}

/// Operations per second and latencies of the windows from which the figures come; empty if there are none.
fn speeds(section: &Section) -> String {
    let heading = ["row", "server", "ops/s", "p50 us", "p99 us"].map(str::to_owned).to_vec();
    let mut table = vec![heading];
    for (row, cell) in section.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell))) {
        let median = |of: &dyn Fn(&Measurement) -> f64| {
            Estimate::of(&cell.windows.iter().map(of).collect::<Vec<_>>()).map(|found| figure(found.median))
        };
        let ops = median(&|window| window.operations_per_second);
        let (p50, p99) = (median(&|window| window.latency.p50_us), median(&|window| window.latency.p99_us));
        if let (Some(ops), Some(p50), Some(p99)) = (ops, p50, p99) {
            table.push(vec![row.title.clone(), cell.server.clone(), ops, p50, p99]);
        }
    }
    if table.len() == 1 { String::new() } else { format!("\nMedians over the rounds:\n\n{}", aligned(&table)) }
}

/// The servers of a section, in the order of its first row.
pub(crate) fn server_names(section: &Section) -> Vec<String> {
    section.rows.first().map_or_else(Vec::new, |row| row.cells.iter().map(|cell| cell.server.clone()).collect())
}

fn ratio_text(row: &ResultRow, peer: &str) -> String {
    let Some(ratio) = row.ratios.iter().find(|ratio| ratio.peer == peer) else { return String::new() };
    let spread = interval(ratio.value).map_or_else(String::new, |text| format!(" ({text})"));
    format!("{:.2}\u{d7}{spread}", ratio.value.median)
}

/// The verdict in words: the target and the result.
pub(crate) fn verdict_text(row: &ResultRow) -> String {
    let Some(verdict) = &row.verdict else { return String::new() };
    let state = match (verdict.met, verdict.moonshot_met) {
        (true, true) => "met, and the moonshot",
        (true, false) => "met",
        (false, _) => "NOT MET",
    };
    let caution = verdict.caution.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    format!("{state}: {}, reached {}{caution}", verdict.target, reached(verdict))
}

/// A table whose columns also line up as plain text: the first column to the left, figures to the right.
fn aligned(table: &[Vec<String>]) -> String {
    let columns = table[0].len();
    let widths: Vec<usize> =
        (0..columns).map(|at| table.iter().map(|line| line[at].chars().count()).max().unwrap_or(0).max(3)).collect();
    let is_text = |at: usize| at == 0 || ["target", "server"].contains(&&*table[0][at]);
    let mut text = String::new();
    for (number, line) in table.iter().enumerate() {
        for (at, cell) in line.iter().enumerate() {
            let width = widths[at];
            let cell = if is_text(at) { format!("| {cell:<width$} ") } else { format!("| {cell:>width$} ") };
            text.push_str(&cell);
        }
        text.push_str("|\n");
        if number == 0 {
            for (at, width) in widths.iter().enumerate() {
                let rule = "-".repeat(width + 1);
                text.push_str(&if is_text(at) { format!("|{rule}-") } else { format!("|{rule}:") });
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::report::tests::sample;

    #[test]
    fn every_figure_verdict_and_command_is_in_it() {
        let text = super::render(&sample());
        for part in [
            "# CPU time per string command",
            "**1 of 2 targets met.**",
            "| us CPU per operation   | onggi | valkey |",
            "valkey / onggi |",
            "`valkey / onggi` above 1: onggi is better.",
            "| get, pipeline 16, 64 B | 0.410 |  0.800 | 1.93\u{d7} (1.93 to 2.00) |",
            "met, and the moonshot: valkey / onggi at least 1.30\u{d7}, reached 1.93\u{d7}",
            "NOT MET: valkey / onggi at least 2.40\u{d7}",
            "`valkey --save '' < &`",
            "onggi bench compare --suite strings",
        ] {
            assert!(text.contains(part), "missing {part:?} in\n{text}");
        }
    }
}
