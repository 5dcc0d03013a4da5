//! Part `load`: W1 to W15. A fresh server is filled by SETs. Then its memory, checkpoints and restarts are measured
//! while it is otherwise idle, and finally a checkpoint under the same SETs again.

use super::background::{self, Coded};
use super::{LENGTHS, Length, Payload, Scaled, Values};
use crate::persistence::checkpoint::{self, Checkpoint, MemoryWatch};
use crate::persistence::snapshot::{Restart, restart};
use crate::persistence::{Data, LOG_OFF, MIB, bytes_below, cells, push, section, settle_disk, start};
use loadgen::catalogue::TestSpec;
use loadgen::client::Client;
use loadgen::compare::Harness;
use loadgen::error::Result;
use loadgen::generator::{Pace, Progress};
use loadgen::keys::Distribution;
use loadgen::measure::{self, LOAD_PIPELINE, LoadPlan, Row, Settings};
use loadgen::payload::{Content, Size};
use loadgen::results::{Better, Cell, Section};
use loadgen::server::{Server, ServerSpec};
use loadgen::targets::{Kind, Target};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// SETs of the paper's rows; each with all lengths makes W1 to W15.
const COUNTS: [u64; 3] = [100_000, 500_000, 2_500_000];
/// W1 to W13 are run in full.
const WHOLE: usize = 13;
/// Checkpoints and restarts of each.
const ROUNDS: usize = 3;

/// A row.
struct Load {
    number: usize,
    length: Length,
    scaled: Scaled,
    content: Content,
}

impl Load {
    fn title(&self) -> String {
        self.scaled.title(&format!("W{}", self.number), "SETs", self.length)
    }

    /// Whether it has the largest count, for which the paper gives its percentages of checkpoints and restarts.
    fn is_large(&self) -> bool {
        self.number > COUNTS.len().saturating_sub(1) * LENGTHS.len()
    }
}

/// The results of one server in one row.
struct Outcome {
    server: String,
    set_cpu_us: f64,
    grown_mib: f64,
    saved: Vec<Checkpoint>,
    file_mib: f64,
    back: Vec<Restart>,
    /// What was compressed during the save, and decompressed during the start.
    coded: Option<Coded>,
    under: Under,
}

/// A checkpoint under SETs.
struct Under {
    seconds: f64,
    extra_mib: f64,
}

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec], values: &Values) -> Result<Vec<Section>> {
    let loads: Vec<Load> = loads(values, harness.plan.scale);
    harness.steps.expect(loads.len() * specs.len() * 3);
    let mut rows = Vec::new();
    for load in &loads {
        let outcomes = specs.iter().map(|spec| observe(harness, spec, load)).collect::<Result<Vec<_>>>()?;
        rows.push((load, outcomes));
    }
    Ok(sections(harness, values, &rows))
}

fn loads(values: &Values, scale: f64) -> Vec<Load> {
    let rows = COUNTS.into_iter().flat_map(|count| LENGTHS.into_iter().map(move |length| (count, length)));
    (1..)
        .zip(rows)
        .filter_map(|(number, (count, length))| {
            let content = values.content(length)?;
            Some(Load { number, length, scaled: Scaled::new(count, length, number <= WHOLE, scale), content })
        })
        .collect()
}

fn observe(harness: &mut Harness<'_>, spec: &ServerSpec, load: &Load) -> Result<Outcome> {
    let rounds = harness.plan.rounds.unwrap_or(ROUNDS).max(1);
    let data = Data::new(load.scaled.count, Size::exactly(load.length.bytes), load.content.clone());
    let mut server = start(harness, spec, LOG_OFF, false)?;
    warm(harness, &server)?;
    let empty = harness.settled_resident(&server)?;
    let window = data.load(harness, &server)?;
    background::finish(harness, &server)?;
    let full = harness.settled_resident(&server)?;

    let name = server.record.name.clone();
    harness.steps.say(&format!("{name}, {}: checkpoints and restarts", load.title()));
    let (mut saved, mut back, mut coded) = (Vec::new(), Vec::new(), Some(Coded { compressed: 0, decompressed: 0 }));
    for _ in 0..rounds {
        settle_disk(harness);
        let before = Coded::read(&server)?;
        saved.push(checkpoint::take(&server)?);
        let after = Coded::read(&server)?;
        back.push(restart(&mut server, load.scaled.count)?);
        // A new process counts from zero.
        let restarted = Coded::read(&server)?;
        coded = coded.zip(before.zip(after).zip(restarted)).map(|(all, ((before, after), restarted))| Coded {
            compressed: all.compressed + after.compressed - before.compressed,
            decompressed: all.decompressed + restarted.decompressed,
        });
    }
    let file_mib = server.directory().map_or(0, bytes_below) as f64 / MIB;
    harness.steps.say(&format!("{name}, {}: a checkpoint under SETs", load.title()));
    let under = under_sets(harness, &server, load, &data)?;
    Ok(Outcome {
        server: name,
        set_cpu_us: window.cpu_per_operation.map_or(0.0, |cpu| cpu.total_us),
        grown_mib: (full as f64 - empty as f64).max(0.0) / MIB,
        saved,
        file_mib,
        back,
        coded,
        under,
    })
}

/// Uses connections and buffers, so that later growth is due to the keys.
fn warm(harness: &Harness<'_>, server: &Server) -> Result<()> {
    let plan = LoadPlan {
        command: "PING",
        keys: 20_000,
        rounds: 1,
        value_size: Size::exactly(1),
        distribution: Distribution::Sequential,
        pipeline: LOAD_PIPELINE,
        first_key: 0,
    };
    measure::load(&server.target, &harness.plan.settings, &plan, &mut |_| {}).map(|_| ())
}

/// A checkpoint while keys are overwritten as fast as replies come, and the memory it takes.
fn under_sets(harness: &Harness<'_>, server: &Server, load: &Load, data: &Data) -> Result<Under> {
    let row = Row {
        test: TestSpec::parse("set")?,
        pipeline: 1,
        value_size: Size::exactly(load.length.bytes),
        pace: Pace::Closed,
    };
    let settings = Settings { warmup_seconds: 0.0, ..data.settings(harness) };
    let (stop, is_loaded) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut client = Client::connect(&server.target.address, &server.target.login)?;
    std::thread::scope(|scope| {
        let generator = scope.spawn(|| {
            let watch = &mut |progress: Progress| is_loaded.store(progress.operations > 0, Ordering::Relaxed);
            measure::run_until(&server.target, &settings, &row, &stop, watch)
        });
        while !is_loaded.load(Ordering::Relaxed) && !generator.is_finished() {
            std::thread::sleep(POLL);
        }
        let seen = save_watched(server, &mut client);
        stop.store(true, Ordering::Relaxed);
        // If the generator failed, that is the cause of later failures.
        generator.join().expect("the generator does not panic")?;
        seen
    })
}

/// How often to check whether the load has begun.
const POLL: Duration = Duration::from_millis(10);

fn save_watched(server: &Server, client: &mut Client) -> Result<Under> {
    let watch = MemoryWatch::begin(server.target.pid.expect("the harness started this server"))?;
    let saved = checkpoint::save(server, client);
    let memory = watch.end()?;
    Ok(Under { seconds: saved?.as_secs_f64(), extra_mib: memory.extra() as f64 / MIB })
}

type Rows<'r> = [(&'r Load, Vec<Outcome>)];

fn sections(harness: &Harness<'_>, values: &Values, rows: &Rows<'_>) -> Vec<Section> {
    type Figure = fn(&Outcome) -> Vec<f64>;
    let tables: [(&str, &str, &str, Figure, Option<Judge>); 9] = [
        (
            "Memory",
            "Growth of resident memory over the SETs, what is done in the background done.",
            "MiB",
            |each| vec![each.grown_mib],
            None,
        ),
        (
            "CPU time per SET",
            "While it is filled, at pipeline 16, all threads of the server.",
            "us CPU per operation",
            |each| vec![each.set_cpu_us],
            None,
        ),
        (
            "CPU time of a checkpoint",
            "Of the server and what it forks, nothing else going on.",
            "s of CPU time",
            |each| each.saved.iter().map(|saved| saved.cpu_seconds).collect(),
            Some(checkpoint_target),
        ),
        (
            "Time of a checkpoint",
            "From BGSAVE until the server says that it is done; Redis and Valkey look every 100 ms.",
            "s",
            |each| each.saved.iter().map(|saved| saved.seconds).collect(),
            None,
        ),
        (
            "Files of a checkpoint",
            "All that is in the server's directory then.",
            "MiB",
            |each| vec![each.file_mib],
            None,
        ),
        (
            "Time of a restart",
            "From the start of the program until it serves, its files in the page cache.",
            "s",
            |each| each.back.iter().map(|back| back.seconds).collect(),
            Some(restart_target),
        ),
        (
            "CPU time of a restart",
            "The same, all threads.",
            "s of CPU time",
            |each| each.back.iter().map(|back| back.cpu_seconds).collect(),
            None,
        ),
        (
            "Time of a checkpoint under SETs",
            "While keys are overwritten at pipeline 1 as fast as replies come.",
            "s",
            |each| vec![each.under.seconds],
            None,
        ),
        (
            "Extra memory of a checkpoint under SETs",
            "The same: at most, of the server and what it forks, pages that they share counted once.",
            "MiB",
            |each| vec![each.under.extra_mib],
            None,
        ),
    ];
    let mut sections = Vec::new();
    for (title, about, unit, figure, judge) in tables {
        let (title, about) = (titled(title, values), format!("{about} {}", values.about()));
        let mut table = section(&title, about, unit, Better::Lower);
        let mut targets = Vec::new();
        for (load, outcomes) in rows {
            let row = cells(outcomes.iter().map(|each| (each.server.as_str(), figure(each))));
            push(harness, &mut table, load.title(), row);
            targets.push(judge.and_then(|judge| judge(values.payload, load)));
        }
        sections.push(harness.subject_section(table, &targets));
    }
    sections.insert(1, saved_section(harness, values, rows));
    sections.push(coded_section(harness, values, rows));
    sections.retain(|section| !section.rows.is_empty());
    sections
}

fn titled(title: &str, values: &Values) -> String {
    format!("{title}, {}", values.payload.title())
}

type Judge = fn(Payload, &Load) -> Option<Target>;

/// A factor over Redis.
const fn over_redis(must: f64) -> Target {
    Target { kind: Kind::Factor("redis"), must, moonshot: None }
}

fn checkpoint_target(payload: Payload, load: &Load) -> Option<Target> {
    match (payload, load.length.name) {
        _ if !load.is_large() => None,
        (Payload::Constant, "10 KB") => Some(over_redis(10.0)),
        (Payload::Documents, "0.5 KB" | "1 KB" | "10 KB") => Some(over_redis(4.0)),
        _ => None,
    }
}

/// The paper's percentages for its payload; for the others, no slower than Redis.
fn restart_target(payload: Payload, load: &Load) -> Option<Target> {
    let saved = match load.length.name {
        _ if !load.is_large() => return None,
        "0.5 KB" => 0.556,
        "1 KB" => 0.677,
        "10 KB" => 0.931,
        _ => return None,
    };
    Some(over_redis(if payload == Payload::Constant { 1.0 / (1.0 - saved) } else { 1.0 }))
}

/// Memory saved relative to Valkey, in percent, over the rows of each length.
fn saved_section(harness: &Harness<'_>, values: &Values, rows: &Rows<'_>) -> Section {
    let about = "What is saved of Valkey's growth: the mean over the rows of each length.";
    let mut table = section(&titled("Memory saved", values), about.to_owned(), "% of Valkey's", Better::Higher);
    let mut targets = Vec::new();
    for length in LENGTHS {
        let of_length: Vec<_> = rows.iter().filter(|(load, _)| load.length == length).map(|(_, each)| each).collect();
        let servers = of_length.first().map_or(&[][..], |outcomes| outcomes.as_slice());
        let saved = |server: &str| -> Option<f64> {
            let of_row = |outcomes: &&Vec<Outcome>| {
                let grown = |name: &str| outcomes.iter().find(|each| each.server == name).map(|each| each.grown_mib);
                grown(VALKEY)
                    .filter(|&peer| peer > 0.0)
                    .zip(grown(server))
                    .map(|(peer, own)| 100.0 * (1.0 - own / peer))
            };
            mean(&of_length.iter().filter_map(of_row).collect::<Vec<_>>())
        };
        let others = servers.iter().filter(|each| each.server != VALKEY);
        let row: Vec<Cell> =
            others.filter_map(|each| Some(Cell::new(&each.server, vec![saved(&each.server)?]))).collect();
        if !row.is_empty() {
            let documents = if values.payload == Payload::Documents { " documents" } else { "" };
            push(harness, &mut table, format!("{}{documents}", length.name), row);
            targets.push(saved_target(values.payload, length));
        }
    }
    harness.subject_section(table, &targets)
}

const VALKEY: &str = "valkey";

fn mean(figures: &[f64]) -> Option<f64> {
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

fn saved_target(payload: Payload, length: Length) -> Option<Target> {
    match (payload, length.name) {
        (Payload::Constant, "0.5 KB") => Some(Target::at_least(83.5, None)),
        (Payload::Constant, "1 KB") => Some(Target::at_least(90.1, None)),
        (Payload::Constant, "10 KB") => Some(Target::at_least(97.2, None)),
        (Payload::Constant, "20 KB") => Some(Target::at_least(98.0, None)),
        (Payload::Documents, "0.5 KB" | "1 KB") => Some(Target::at_least(60.0, Some(70.0))),
        _ => None,
    }
}

/// What the servers report about their own work while they save and start.
fn coded_section(harness: &Harness<'_>, values: &Values, rows: &Rows<'_>) -> Section {
    let about = "By the counters of INFO compression, over all rows; servers that have no such counters are left out.";
    let title = titled("Values coded anew for checkpoints and restarts", values);
    let mut table = section(&title, about.to_owned(), "values", Better::Lower);
    type Count = fn(Coded) -> u64;
    let counts: [(&str, Count); 2] = [
        ("compressed while it saves", |coded| coded.compressed),
        ("decompressed while it starts", |coded| coded.decompressed),
    ];
    let servers = rows.first().map_or(&[][..], |(_, outcomes)| outcomes.as_slice());
    for (title, count) in counts {
        let total = |server: &str| -> Option<u64> {
            let own = rows.iter().flat_map(|(_, outcomes)| outcomes).filter(|each| each.server == server);
            own.map(|each| Some(count(each.coded?))).sum()
        };
        let row = servers.iter().filter_map(|each| Some(Cell::new(&each.server, vec![total(&each.server)? as f64])));
        push(harness, &mut table, title.to_owned(), row.collect());
    }
    harness.subject_section(table, &[Some(Target::at_most(0.0, None)); 2])
}

#[cfg(test)]
mod tests {
    use super::super::KEY_BYTES;
    use super::*;

    fn values(payload: Payload) -> Values {
        Values { payload, pools: Vec::new() }
    }

    #[test]
    fn the_rows_are_those_of_the_paper() {
        let all = loads(&values(Payload::Constant), 1.0);
        let whole = |row: &Load| row.scaled.count * (KEY_BYTES + row.length.bytes as u64);
        let mib: Vec<f64> = all.iter().map(|row| (whole(row) as f64 / MIB * 100.0).round() / 100.0).collect();
        // Table 2, without W14 and W15.
        let told = [1.72, 50.35, 99.18, 979.0, 1954.65, 8.58, 251.77, 495.91, 4894.0, 9773.0, 42.92, 1258.85, 2479.55];
        for (row, (own, told)) in all.iter().zip(mib.iter().zip(told)) {
            assert!((own - told).abs() < told * 0.005, "{}: {own} MiB", row.title());
        }
        let cut: Vec<&Load> = all.iter().filter(|row| row.scaled.factor < 1.0).collect();
        assert_eq!(cut.iter().map(|row| row.number).collect::<Vec<_>>(), [14, 15]);
        assert!(cut.iter().all(|row| (whole(row) as f64 - 6e9).abs() < 1e6));
        assert!(loads(&values(Payload::Documents), 1.0).is_empty(), "without documents there is nothing to load");
    }

    #[test]
    fn the_papers_percentages_are_asked_for_on_its_payload() {
        let all = loads(&values(Payload::Constant), 1.0);
        let judged = |payload, judge: Judge| -> Vec<usize> {
            all.iter().filter(|load| judge(payload, load).is_some()).map(|load| load.number).collect()
        };
        assert_eq!(judged(Payload::Constant, checkpoint_target), [14]);
        assert_eq!(judged(Payload::Documents, checkpoint_target), [12, 13, 14]);
        assert_eq!(judged(Payload::Random, restart_target), [12, 13, 14]);
        assert!(restart_target(Payload::Constant, &all[13]).unwrap().must > 14.0);
    }
}
