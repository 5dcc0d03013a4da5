//! The results of a run: as JSON, and as Markdown for people.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::paper::Claim;
use crate::steps::{Reading, Replay, Writing};
use crate::workload::{Distribution, RECORD_BYTES};
use crate::ycsb::Ycsb;

/// One engine's figures.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub engine: String,
    pub writing: Writing,
    pub reading: Option<Reading>,
    pub ycsb: Option<Vec<Ycsb>>,
    pub replay: Option<Replay>,
}

/// The file `results.json`.
#[derive(Debug, Serialize)]
pub struct Report {
    format: u32,
    /// When it began, in seconds since 1970.
    started: u64,
    seconds: f64,
    command_line: String,
    machine: String,
    load_average: [String; 2],
    keys: u64,
    memtable_bytes: usize,
    distribution: Distribution,
    pub outcomes: Vec<Outcome>,
    /// Of a run for the paper.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    claims: Vec<Claim>,
}

/// A table row: a figure of every engine, and the target of the first one.
struct Row {
    title: &'static str,
    /// In the order of engines; `None` if an engine does not report it, or the run did not measure it.
    figures: Vec<Option<f64>>,
    target: Option<Target>,
}

/// The target of the first engine: a figure, or a factor of a peer's.
#[derive(Clone, Copy, Debug)]
struct Target {
    peer: Option<&'static str>,
    better: Better,
    must: f64,
    moonshot: Option<f64>,
}

/// Which way is good.
#[derive(Clone, Copy, Debug)]
enum Better {
    Lower,
    Higher,
}

impl Target {
    fn at_most(must: f64, moonshot: Option<f64>) -> Self {
        Self { peer: None, better: Better::Lower, must, moonshot }
    }

    fn at_most_times(peer: &'static str, must: f64, moonshot: f64) -> Self {
        Self { peer: Some(peer), better: Better::Lower, must, moonshot: Some(moonshot) }
    }

    fn at_least_times(peer: &'static str, must: f64) -> Self {
        Self { peer: Some(peer), better: Better::Higher, must, moonshot: None }
    }

    fn is_reached(&self, figure: f64, bound: f64) -> bool {
        match self.better {
            Better::Lower => figure <= bound,
            Better::Higher => figure >= bound,
        }
    }
}

/// Bounds of write amplification, mean and peak of space, each with the moonshot.
struct Bounds {
    write: (f64, f64),
    mean: Option<(f64, f64)>,
    peak: (f64, f64),
}

impl Report {
    pub fn begin(keys: u64, memtable_bytes: usize, distribution: Distribution) -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let command_line = command_line();
        let load_average = [load_average(), String::new()];
        let machine = machine();
        let (outcomes, claims, seconds) = (Vec::new(), Vec::new(), 0.0);
        Self {
            format: 1,
            started,
            seconds,
            command_line,
            machine,
            load_average,
            keys,
            memtable_bytes,
            distribution,
            outcomes,
            claims,
        }
    }

    pub fn end(&mut self, outcomes: Vec<Outcome>, claims: Vec<Claim>, took: Duration) {
        self.outcomes = outcomes;
        self.claims = claims;
        self.seconds = took.as_secs_f64();
        self.load_average[1] = load_average();
    }

    /// Whether no target is missed.
    pub fn is_met(&self) -> bool {
        let targets = self.tables().into_iter().flat_map(|(_, rows)| rows).filter_map(|row| Some(self.judge(&row)?.0));
        targets.chain(self.claims.iter().map(|claim| claim.holds)).all(|is_met| is_met)
    }

    fn live_bytes(&self) -> u64 {
        self.keys * RECORD_BYTES
    }

    /// What is asked of this proportion of live data to memtable; the bounds were set for 2, 8 and 20 GB.
    fn bounds(&self) -> Option<Bounds> {
        let memtables = self.live_bytes() as f64 / self.memtable_bytes as f64;
        let is_near = |count: f64| (memtables / count - 1.0).abs() < 0.05;
        let uniform = self.distribution == Distribution::Uniform;
        let usual = Some((1.6, 1.45));
        if is_near(47.7) && uniform {
            Some(Bounds { write: (4.5, 3.9), mean: usual, peak: (2.0, 1.6) })
        } else if is_near(47.7) && self.distribution == Distribution::Zipfian {
            Some(Bounds { write: (3.0, 2.6), mean: usual, peak: (2.0, 1.6) })
        } else if is_near(2.98) && uniform {
            Some(Bounds { write: (2.85, 2.7), mean: Some((1.9, 1.75)), peak: (2.3, 2.0) })
        } else if is_near(190.7) && uniform {
            Some(Bounds { write: (5.2, 4.4), mean: None, peak: (2.0, 1.6) })
        } else if is_near(476.8) && uniform {
            Some(Bounds { write: (5.5, 4.8), mean: Some((2.0, 1.45)), peak: (2.0, 1.6) })
        } else {
            None
        }
    }

    fn tables(&self) -> Vec<(&'static str, Vec<Row>)> {
        let bounds = self.bounds();
        let at_most = |bound: Option<(f64, f64)>| bound.map(|(must, moonshot)| Target::at_most(must, Some(moonshot)));
        let must = |must| Some(Target::at_most(must, None));
        // In order, tables are moved where others are merged.
        let write = match self.distribution {
            Distribution::Sequential => must(2.15),
            Distribution::Uniform | Distribution::Zipfian => at_most(bounds.as_ref().map(|b| b.write)),
        };
        let cost = Some(Target::at_most_times("leveldb", 1.2, 1.0));
        let memtables_are_large = self.memtable_bytes as u64 * 10 > self.live_bytes();
        let faster = Target::at_least_times("leveldb", if memtables_are_large { 2.0 } else { 1.33 });
        // Plex holds one memtable that is filled and two that are flushed.
        let memory_mib = 3.0 * self.memtable_bytes as f64 / f64::from(1 << 20) + 64.0 + 32.0;
        let mut tables = vec![
            (
                "Bytes written per byte of keys and values",
                vec![
                    self.row("all", write, |o| Some(o.writing.write_amplification)),
                    self.row("log and the rest", None, |o| o.writing.log()),
                    self.row("flushes", None, |o| o.writing.flush),
                    self.row("compactions", None, |o| o.writing.compaction),
                ],
            ),
            (
                "Bytes of files per live byte",
                vec![
                    self.row("mean while updating", at_most(bounds.as_ref().and_then(|b| b.mean)), |o| {
                        Some(o.writing.space_mean())
                    }),
                    self.row("peak while updating", at_most(bounds.as_ref().map(|b| b.peak)), |o| {
                        o.writing.space.iter().copied().reduce(f64::max)
                    }),
                    self.row("at the end", None, |o| Some(o.writing.space_end)),
                ],
            ),
            (
                "Cost of writing",
                vec![
                    self.row("us CPU per write", must(4.0), |o| Some(o.writing.cpu_us_per_write)),
                    self.row("thousand writes per second", Some(faster), |o| Some(o.writing.writes_per_second / 1e3)),
                    self.row("MiB resident at most", must(memory_mib), |o| {
                        Some(o.writing.resident_peak_bytes as f64 / f64::from(1 << 20))
                    }),
                ],
            ),
        ];
        if self.outcomes.iter().any(|outcome| outcome.reading.is_some()) {
            let reading = |title, target, figure: fn(&Reading) -> Option<f64>| {
                self.row(title, target, |outcome| outcome.reading.as_ref().and_then(figure))
            };
            let scans = Some(Target::at_most_times("leveldb", 2.0, 1.0));
            let no_slower = Some(Target::at_least_times("rocksdb", 1.0));
            let rows = vec![
                reading("us CPU per get, nothing in memory", cost, |r| Some(r.get_cold)),
                reading("us CPU per get, files in the page cache", cost, |r| Some(r.get_warm)),
                reading("us CPU per get of a missing key", must(1.0), |r| Some(r.miss)),
                reading("us CPU per scan of 100 pairs", scans, |r| r.scan),
                reading("thousand reads per second, beside writes", no_slower, |r| {
                    Some(r.mixed_reads_per_second / 1e3)
                }),
                reading("thousand writes per second, beside reads", no_slower, |r| {
                    Some(r.mixed_writes_per_second / 1e3)
                }),
            ];
            tables.push(("Cost of reading", rows));
            let ycsb = |title, name: &'static str, figure: fn(&Ycsb) -> Option<f64>| {
                self.row(title, None, move |outcome| {
                    outcome.ycsb.iter().flatten().find(|each| each.workload == name).and_then(figure)
                })
            };
            let rows = [
                ("A: reads and updates", "A"),
                ("B: reads, 5 % updates", "B"),
                ("C: reads", "C"),
                ("D: reads of the latest, 5 % inserts", "D"),
                ("E: scans, 5 % inserts", "E"),
                ("F: reads, half of them followed by an update", "F"),
            ];
            let cpu = rows.map(|(title, name)| ycsb(title, name, |each| each.cpu_us));
            let rate =
                rows.map(|(title, name)| ycsb(title, name, |each| each.operations_per_second.map(|rate| rate / 1e3)));
            tables.push(("YCSB, us CPU per operation", cpu.into()));
            tables.push(("YCSB, thousand operations per second", rate.into()));
            let replay = self.row("seconds", must(1.0), |o| o.replay.as_ref().map(|replay| replay.seconds));
            tables.push(("Opening after a crash, with 64 MiB in the log", vec![replay]));
        }
        tables
    }

    fn row(&self, title: &'static str, target: Option<Target>, figure: impl Fn(&Outcome) -> Option<f64>) -> Row {
        Row { title, figures: self.outcomes.iter().map(figure).collect(), target }
    }

    /// Whether the first engine meets its target, and a remark; `None` if there is nothing to judge.
    fn judge(&self, row: &Row) -> Option<(bool, String)> {
        // A run for the paper has its own sentences to hold.
        if !self.claims.is_empty() {
            return None;
        }
        let (own, target) = ((*row.figures.first()?)?, row.target?);
        let direction = match target.better {
            Better::Lower => "at most",
            Better::Higher => "at least",
        };
        let (reached, asked) = match target.peer {
            None => (own, format!("{direction} {}", target.must)),
            Some(peer) => {
                let at = self.outcomes.iter().position(|outcome| outcome.engine == peer)?;
                let ratio = own / row.figures[at]?;
                (ratio, format!("{direction} {} times {peer}'s, reached {ratio:.2}", target.must))
            }
        };
        let is_met = target.is_reached(reached, target.must);
        let word = match target.moonshot {
            Some(moonshot) if target.is_reached(reached, moonshot) => "met, and the moonshot",
            _ if is_met => "met",
            _ => "missed",
        };
        Some((is_met, format!("{word}: {asked}")))
    }

    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = self.write_markdown(&mut text);
        text
    }

    fn write_markdown(&self, text: &mut String) -> std::fmt::Result {
        let tables = self.tables();
        let verdicts: Vec<bool> =
            tables.iter().flat_map(|(_, rows)| rows).filter_map(|r| Some(self.judge(r)?.0)).collect();
        let met = verdicts.iter().filter(|is_met| **is_met).count();
        let distribution = match self.distribution {
            Distribution::Uniform => "uniform",
            Distribution::Zipfian => "zipfian",
            Distribution::Sequential => "no",
        };
        writeln!(text, "# LSM-trees side by side\n")?;
        writeln!(
            text,
            "{} keys, {:.2} GB written, {distribution} updates, memtables of {} KiB; {:.0} minutes. Machine: {}. \
             Load average {} before, {} after.\n",
            self.keys,
            (self.distribution.writes(self.keys) * RECORD_BYTES) as f64 / 1e9,
            self.memtable_bytes >> 10,
            self.seconds / 60.0,
            self.machine,
            self.load_average[0],
            self.load_average[1]
        )?;
        writeln!(text, "`{}`", self.command_line)?;
        if self.claims.is_empty() {
            writeln!(text, "\n**{met} of {} targets met.**", verdicts.len())?;
        } else {
            self.write_claims(text)?;
        }
        writeln!(text, "\n![Space of all engines over the updates](space.svg)")?;
        for (title, rows) in &tables {
            writeln!(text, "\n## {title}\n")?;
            write!(text, "| |")?;
            self.outcomes.iter().try_for_each(|outcome| write!(text, " {} |", outcome.engine))?;
            let has_targets = self.claims.is_empty();
            writeln!(text, "{}", if has_targets { " target |" } else { "" })?;
            write!(text, "|---|")?;
            self.outcomes.iter().try_for_each(|_| write!(text, "---:|"))?;
            writeln!(text, "{}", if has_targets { "---|" } else { "" })?;
            for row in rows {
                write!(text, "| {} |", row.title)?;
                for figure in &row.figures {
                    match figure {
                        Some(figure) if *figure >= 100.0 => write!(text, " {figure:.0} |")?,
                        Some(figure) => write!(text, " {figure:.2} |")?,
                        None => write!(text, " not told |")?,
                    }
                }
                match self.judge(row) {
                    Some((_, words)) => writeln!(text, " {words} |")?,
                    None => writeln!(text, "{}", if has_targets { "  |" } else { "" })?,
                }
            }
        }
        Ok(())
    }
}

impl Report {
    fn write_claims(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\n## What the paper says\n\n| | reached | |\n|---|---:|---|")?;
        for Claim { says, reached, holds } in &self.claims {
            writeln!(text, "| {says} | {reached:.2} | {} |", if *holds { "holds" } else { "does not hold" })?;
        }
        Ok(())
    }
}

impl Writing {
    /// What no table took.
    fn log(&self) -> Option<f64> {
        Some(self.write_amplification - self.flush? - self.compaction?)
    }
}

/// The settings of the run, without directories.
fn command_line() -> String {
    let mut line = "onggi-bench-lsm".to_owned();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        line += " ";
        line += &word;
        if ["--dir", "--out"].contains(&&*word) && words.next().is_some() {
            line += " DIR";
        }
    }
    line
}

/// Processor, cores and kernel.
fn machine() -> String {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = text("/proc/cpuinfo");
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = text("/proc/sys/kernel/osrelease");
    format!("{}, {cores} cores, Linux {}", name.map_or("", |(_, name)| name), kernel.trim())
}

/// Over the last minute.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
