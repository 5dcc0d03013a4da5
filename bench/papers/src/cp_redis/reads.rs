//! Part `read`: R1 to R15. A fresh server is filled with 1.5 million keys of one length. Then a third, two thirds and
//! all of them are read, each key once, in random order.

use super::{LENGTHS, Length, Scaled, Values, background};
use crate::persistence::{Data, LOG_OFF, cells, push, section, start};
use loadgen::compare::Harness;
use loadgen::error::{BenchError, Result};
use loadgen::keys::Distribution;
use loadgen::measure::{self, LoadPlan, Measurement};
use loadgen::payload::Size;
use loadgen::results::{Better, Section};
use loadgen::server::{Server, ServerSpec};

const PAIRS: u64 = 1_500_000;
/// GETs of the three rows of each length.
const GETS: [u64; 3] = [500_000, 1_000_000, 1_500_000];
/// R1 to R9 are run in full.
const WHOLE: usize = 9;
const GET: &str = "GET {key}";

/// The results of one server in one row, for each round.
struct Outcome {
    server: String,
    windows: Vec<Measurement>,
}

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec], values: &Values) -> Result<Vec<Section>> {
    let rounds = harness.plan.rounds.unwrap_or(1).max(1);
    harness.steps.expect(LENGTHS.len() * rounds * specs.len() * (1 + GETS.len()));
    let mut rows = Vec::new();
    for (at, length) in LENGTHS.into_iter().enumerate() {
        let first = at * GETS.len() + 1;
        let scaled = |count| Scaled::new(count, length, true, cut(first, length) * harness.plan.scale);
        let gets = GETS.map(scaled);
        let titles = (first..).zip(&gets).map(|(number, gets)| gets.title(&format!("R{number}"), "GETs", length));
        let titles: Vec<String> = titles.collect();
        let Some(content) = values.content(length) else { continue };
        let data = Data::new(scaled(PAIRS).count, Size::exactly(length.bytes), content);
        let unread = |spec: &ServerSpec| Outcome { server: spec.name.clone(), windows: Vec::new() };
        let mut outcomes = GETS.map(|_| specs.iter().map(unread).collect::<Vec<_>>());
        // Each round has new processes: processes of one program differ, and the machine changes from minute to minute.
        for (at, spec) in (0..rounds).flat_map(|_| specs.iter().enumerate()) {
            let server = start(harness, spec, LOG_OFF, true)?;
            data.load(harness, &server)?;
            background::finish(harness, &server)?;
            for ((title, gets), row) in titles.iter().zip(&gets).zip(&mut outcomes) {
                harness.steps.say(&format!("{}, {title}", spec.name));
                row[at].windows.push(read(harness, &server, &data, gets.count)?);
            }
        }
        rows.extend(titles.into_iter().zip(outcomes));
    }
    Ok(sections(harness, values, &rows))
}

/// The share of the pairs that fits into memory, for rows that may be cut.
fn cut(first: usize, length: Length) -> f64 {
    Scaled::new(PAIRS, length, first <= WHOLE, 1.0).factor
}

/// `gets` GETs, each of a different key.
fn read(harness: &Harness<'_>, server: &Server, data: &Data, gets: u64) -> Result<Measurement> {
    let plan = LoadPlan {
        command: GET,
        keys: gets,
        rounds: 1,
        value_size: Size::exactly(1),
        distribution: Distribution::Shuffled,
        pipeline: 1,
        first_key: 0,
    };
    let watch = &mut |progress: loadgen::generator::Progress| harness.steps.advance(progress.fraction);
    let (window, _) = measure::load(&server.target, &data.settings(harness), &plan, watch)?;
    if window.misses == 0 {
        return Ok(window);
    }
    let (address, command) = (server.target.address.to_string(), GET.to_owned());
    Err(BenchError::Refused { address, command, reply: format!("{} of {gets} keys are missing", window.misses) })
}

fn sections(harness: &Harness<'_>, values: &Values, rows: &[(String, Vec<Outcome>)]) -> Vec<Section> {
    type Figure = fn(&Measurement) -> Option<f64>;
    let tables: [(&str, &str, &str, Better, Figure); 2] = [
        (
            "CPU time per GET",
            "Each key once in a random order, at pipeline 1, all threads of the server.",
            "us CPU per operation",
            Better::Lower,
            |window| Some(window.cpu_per_operation?.total_us),
        ),
        (
            "GETs per second",
            "The same windows. Server and generator share the machine: a figure for orientation.",
            "operations per second",
            Better::Higher,
            |window| Some(window.operations_per_second),
        ),
    ];
    let table = |(title, about, unit, better, figure): (&str, &str, &str, Better, Figure)| {
        let about = format!("{about} {}", values.about());
        let mut table = section(&format!("{title}, {}", values.payload.title()), about, unit, better);
        for (title, outcomes) in rows {
            let row =
                outcomes.iter().map(|each| (each.server.as_str(), each.windows.iter().filter_map(figure).collect()));
            push(harness, &mut table, title.clone(), cells(row));
        }
        table
    };
    tables.into_iter().map(table).filter(|table| !table.rows.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_fit_is_cut() {
        let factors: Vec<f64> =
            LENGTHS.iter().enumerate().map(|(at, length)| cut(at * GETS.len() + 1, *length)).collect();
        assert_eq!(factors[..3], [1.0, 1.0, 1.0]);
        assert!((factors[3] - 6e9 / (1.5e6 * 10_256.0)).abs() < 1e-5 && factors[4] < factors[3], "{factors:?}");
    }
}
