//! The results of a comparison, complete enough to draw every table and page again from the file alone.

use crate::error::{BenchError, Result};
use crate::machine::Machine;
use crate::measure::{Measurement, Settings};
use crate::server::ServerRecord;
use crate::stats::Estimate;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Raised when a reader of older files would misunderstand newer ones.
pub const FORMAT: u32 = 1;

/// The file `results.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// Name of the suite.
    pub suite: String,
    /// When it began, in UTC.
    pub started: String,
    /// How long it took.
    pub seconds: f64,
    /// The command line that made it.
    pub command_line: String,
    /// Version of this program.
    pub generator: String,
    /// Where it ran.
    pub machine: Machine,
    /// Load average over a minute at the end: generator and server alone make about 2.
    pub load_average_end: f64,
    /// The load.
    pub settings: Settings,
    /// The server whose targets are judged.
    pub subject: String,
    /// All servers.
    pub servers: Vec<ServerRecord>,
    /// The tables.
    pub sections: Vec<Section>,
    /// Figures over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

/// A figure over time around an event, one track per server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Picture {
    /// Heading.
    pub title: String,
    /// What is seen, in a sentence or two.
    pub about: String,
    /// Unit of all values.
    pub unit: String,
    /// One per server, in the servers' order.
    pub tracks: Vec<Track>,
}

/// The figure of one server, in steps of equal length. Time is in seconds from the beginning of the event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Track {
    /// The server.
    pub server: String,
    /// Where the first step begins: before the event, so below 0.
    pub from_seconds: f64,
    /// Length of a step.
    pub step_seconds: f64,
    /// When the event ended.
    pub end_seconds: f64,
    /// One value a step.
    pub values: Vec<f64>,
}

/// The good direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Cost, memory.
    Lower,
    /// Throughput, hit ratio.
    Higher,
}

/// One table: rows of the same unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What is measured and how, in a sentence or two.
    pub about: String,
    /// Unit of all cells.
    pub unit: String,
    /// The good direction.
    pub better: Better,
    /// The rows.
    pub rows: Vec<ResultRow>,
}

/// One row: every server's figure for the same thing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResultRow {
    /// What was measured.
    pub title: String,
    /// One per server, in the servers' order.
    pub cells: Vec<Cell>,
    /// The subject's advantage over each other server: above 1 is better, whatever the unit.
    pub ratios: Vec<Ratio>,
    /// How the subject compares with its target, if the row has one.
    pub verdict: Option<Verdict>,
}

/// One server's figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The server.
    pub server: String,
    /// Its median over the rounds.
    pub value: Estimate,
    /// The figure of each round.
    pub samples: Vec<f64>,
    /// All that was measured in each round, where the figure comes from a timed window.
    pub windows: Vec<Measurement>,
    /// Latency over all rounds, where it was taken.
    pub curve: Vec<CurvePoint>,
}

/// A point of a latency curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// In [0, 1]: this share of the operations was at least this fast.
    pub quantile: f64,
    /// Microseconds.
    pub us: f64,
}

/// The subject against one other server, paired by round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ratio {
    /// The other server.
    pub peer: String,
    /// Median over the rounds.
    pub value: Estimate,
}

/// How the subject compares with a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The target in words.
    pub target: String,
    /// The bound.
    pub must: f64,
    /// The peer the bound is a factor over; `None` for a bound on the subject's own figure.
    pub over: Option<String>,
    /// The subject's figure: the median, or the better end of the interval if that decides.
    pub reached: f64,
    /// True when the target is met.
    pub met: bool,
    /// True when the moonshot is met too.
    pub moonshot_met: bool,
    /// Why the rounds were too few or too short for a valid verdict, if they were.
    pub caution: Option<String>,
}

impl Cell {
    /// A cell from its samples.
    ///
    /// # Panics
    /// Without samples: every server is measured at least once.
    pub fn new(server: &str, samples: Vec<f64>) -> Self {
        let value = Estimate::of(&samples).expect("a cell has at least one sample");
        Self { server: server.to_owned(), value, samples, windows: Vec::new(), curve: Vec::new() }
    }
}

impl ResultRow {
    /// A row from its cells; ratios of `subject` to the others are taken round by round.
    pub fn new(title: String, cells: Vec<Cell>, subject: &str, better: Better) -> Self {
        let own = cells.iter().find(|cell| cell.server == subject).map_or(&[][..], |cell| &cell.samples);
        let ratios = cells
            .iter()
            .filter(|cell| cell.server != subject)
            .filter_map(|cell| {
                let samples: Vec<f64> = own
                    .iter()
                    .zip(&cell.samples)
                    .filter(|&(&own, &other)| own > 0.0 && other > 0.0)
                    .map(|(&own, &other)| if better == Better::Lower { other / own } else { own / other })
                    .collect();
                Some(Ratio { peer: cell.server.clone(), value: Estimate::of(&samples)? })
            })
            .collect();
        Self { title, cells, ratios, verdict: None }
    }

    /// The figure of one server.
    pub fn value_of(&self, server: &str) -> Option<Estimate> {
        self.cells.iter().find(|cell| cell.server == server).map(|cell| cell.value)
    }
}

/// A latency curve with 20 points for each factor of ten, toward rarer latencies.
pub fn curve_of(histogram: &Histogram<u64>) -> Vec<CurvePoint> {
    if histogram.is_empty() {
        return Vec::new();
    }
    let decades = (histogram.len() as f64).log10().min(5.0);
    let points = (decades * 20.0) as usize;
    (0..=points)
        .map(|at| 1.0 - 10f64.powf(-(at as f64) / 20.0))
        .map(|quantile| CurvePoint { quantile, us: histogram.value_at_quantile(quantile) as f64 / 1e3 })
        .collect()
}

impl Results {
    /// True when no row misses its target.
    pub fn all_met(&self) -> bool {
        self.sections.iter().flat_map(|section| &section.rows).filter_map(|row| row.verdict.as_ref()).all(|v| v.met)
    }

    /// Reads a results file.
    ///
    /// # Errors
    /// When it cannot be read, or is not one of this format.
    pub fn read(path: &Path) -> Result<Self> {
        let file_error = |source| BenchError::File { path: path.to_owned(), op: "read results", source };
        let text = std::fs::read_to_string(path).map_err(file_error)?;
        serde_json::from_str(&text).map_err(|source| BenchError::Results { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_paired_by_round_and_above_one_is_better() {
        let cells = || vec![Cell::new("own", vec![1.0, 2.0, 4.0]), Cell::new("peer", vec![2.0, 4.0, 8.0])];
        let cost = ResultRow::new("cost".into(), cells(), "own", Better::Lower);
        assert_eq!(cost.ratios[0].value, Estimate::exact(2.0));
        let speed = ResultRow::new("speed".into(), cells(), "own", Better::Higher);
        assert_eq!(speed.ratios[0].value, Estimate::exact(0.5));
    }

    #[test]
    fn curves_end_where_the_samples_do() {
        let mut histogram = crate::generator::new_histogram();
        for us in 1..=1000u64 {
            histogram.record(us * 1000).unwrap();
        }
        let curve = curve_of(&histogram);
        assert_eq!(curve.len(), 61);
        assert!(curve.windows(2).all(|pair| pair[0].us <= pair[1].us));
        assert!((curve[60].us - 999.0).abs() < 2.0, "{:?}", curve[60]);
    }
}
