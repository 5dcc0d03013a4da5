//! Results for people: Markdown tables, and one self-contained HTML page.

pub mod chart;
pub mod html;
pub mod markdown;
mod markup;
pub mod picture;
mod write;

pub use write::write;

use crate::results::{Results, Verdict};
use crate::stats::Estimate;

/// A figure with three significant digits, thousands set apart.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        let digits = format!("{:.0}", size);
        let mut text = String::from(if value < 0.0 { "-" } else { "" });
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return text;
    }
    let decimals = if size >= 100.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 1.0 || size == 0.0 {
        2
    } else {
        3
    };
    format!("{value:.decimals$}")
}

/// `low - high`, or nothing for a figure without an interval.
pub(crate) fn interval(estimate: Estimate) -> Option<String> {
    (estimate.low < estimate.high).then(|| format!("{} to {}", figure(estimate.low), figure(estimate.high)))
}

/// What a verdict reached, as a factor or a figure.
pub(crate) fn reached(verdict: &Verdict) -> String {
    if verdict.over.is_some() { format!("{:.2}\u{d7}", verdict.reached) } else { figure(verdict.reached) }
}

/// What the suite shows, as a title.
pub(crate) fn title(results: &Results) -> &'static str {
    match results.suite.as_str() {
        "strings" => "CPU time per string command",
        "memory" => "Memory per key",
        "two-workers" => "Two workers on two cores",
        "eviction" => "Hit ratio under eviction",
        "persistence" => "What keeping data costs",
        "cp-redis" => "The experiments of CP-Redis, again",
        _ => "Servers side by side",
    }
}

/// Targets met, and targets judged.
pub(crate) fn score(results: &Results) -> (usize, usize) {
    let verdicts: Vec<_> =
        results.sections.iter().flat_map(|section| &section.rows).filter_map(|row| row.verdict.as_ref()).collect();
    (verdicts.iter().filter(|verdict| verdict.met).count(), verdicts.len())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::generator::new_histogram;
    use crate::keys::Distribution;
    use crate::machine::Machine;
    use crate::measure::Settings;
    use crate::payload::Content;
    use crate::results::{Better, Cell, FORMAT, Picture, ResultRow, Section, Track, curve_of};
    use crate::server::ServerRecord;
    use crate::targets::Target;
    use crate::template::KeyFormat;

    /// Results as a comparison produces them, with text that must be escaped.
    pub fn sample() -> Results {
        let mut histogram = new_histogram();
        for us in 1..=2000u64 {
            histogram.record(us * 1000).expect("inside the bounds");
        }
        let cell =
            |server: &str, samples: &[f64]| Cell { curve: curve_of(&histogram), ..Cell::new(server, samples.to_vec()) };
        let cells = vec![cell("onggi", &[0.40, 0.41, 0.42]), cell("valkey", &[0.80, 0.79, 0.81])];
        let mut row = ResultRow::new("get, pipeline 16, 64 B".into(), cells, "onggi", Better::Lower);
        row.verdict = Target::over_valkey(1.3, Some(1.8)).judge(&row, "onggi", Better::Lower);
        let mut missed = row.clone();
        missed.title = "set, pipeline 16, 64 B".into();
        missed.verdict = Target::over_valkey(2.4, None).judge(&missed, "onggi", Better::Lower);
        let record = |name: &str| ServerRecord {
            name: name.into(),
            command: format!("{name} --save '' < &"),
            version: "1.0".into(),
            allocator: "jemalloc".into(),
            cores: None,
            settings: Vec::new(),
        };
        Results {
            format: FORMAT,
            suite: "strings".into(),
            started: "2025-11-21 04:05".into(),
            seconds: 125.0,
            command_line: "onggi bench compare --suite strings".into(),
            generator: "onggi bench 0.1.0".into(),
            machine: Machine {
                cpu: "CPU".into(),
                cores: 2,
                kernel: "6.1".into(),
                memory_bytes: 24 << 30,
                load_average: 0.5,
            },
            load_average_end: 1.5,
            settings: Settings {
                connections: 50,
                threads: 1,
                key_format: KeyFormat::default(),
                keys: 1_000_000,
                distribution: Distribution::Uniform,
                content: Content::Constant,
                seed: 1,
                generator_cores: None,
                warmup_seconds: 0.5,
                seconds: 5.0,
            },
            subject: "onggi".into(),
            servers: vec![record("onggi"), record("valkey")],
            sections: vec![Section {
                title: "CPU time per operation".into(),
                about: "How <it> was measured.".into(),
                unit: "us CPU per operation".into(),
                better: Better::Lower,
                rows: vec![row, missed],
            }],
            pictures: vec![Picture {
                title: "Throughput over time".into(),
                about: "How <it> went.".into(),
                unit: "operations per second".into(),
                tracks: ["onggi", "valkey"]
                    .map(|server| Track {
                        server: server.into(),
                        from_seconds: -1.0,
                        step_seconds: 0.1,
                        end_seconds: 0.5,
                        values: vec![1000.0; 20],
                    })
                    .into(),
            }],
        }
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        let texts: Vec<_> = [0.0, 0.1234, 1.234, 12.34, 123.4, 1234.5, 1_234_567.0, -2.5].map(figure).into();
        assert_eq!(texts, ["0.00", "0.123", "1.23", "12.3", "123", "1,234", "1,234,567", "-2.50"]);
    }

    #[test]
    fn pictures_are_files_of_their_own() {
        let files = picture::files(&sample());
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].0, "picture-1.svg");
        assert!(files[0].1.starts_with("<svg xmlns=") && files[0].1.contains("curve subject"));
        assert!(markdown::render(&sample()).contains("![Throughput over time](picture-1.svg)"));
        assert!(html::render(&sample()).contains("How &lt;it&gt; went."));
    }

    #[test]
    fn results_survive_their_file() {
        let text = serde_json::to_string(&sample()).unwrap();
        let read: Results = serde_json::from_str(&text).unwrap();
        assert_eq!(markdown::render(&read), markdown::render(&sample()));
        assert_eq!(html::render(&read), html::render(&sample()));
    }
}
