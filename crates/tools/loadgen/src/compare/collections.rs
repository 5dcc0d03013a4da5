//! Suite `collections`: CPU time per command on hashes, lists, sets, sorted sets and streams, with many small keys and
//! with one large one.

use super::Harness;
use super::rounds::{Effort, Figure, Moment};
use crate::catalogue::TestSpec;
use crate::error::{BenchError, Result};
use crate::generator::Pace;
use crate::keys::Distribution;
use crate::measure::{LOAD_PIPELINE, LoadPlan, Row, Settings};
use crate::payload::Size;
use crate::results::{ResultRow, Section};
use crate::server::Server;
use crate::targets::Target;

const KEYS: u64 = 100_000;
/// Elements of each collection, as in the catalogue's tests.
const ELEMENTS: u64 = 20;
/// Elements of the one large key.
const LARGE_ELEMENTS: u64 = 1_000_000;
const VALUE_BYTES: usize = 16;
const PIPELINE: usize = 16;
const TARGET: Target = Target::over_valkey(1.3, Some(2.0));
/// Short, so that a list is not emptied within a window.
const EFFORT: Effort = Effort { rounds: 9, seconds: 1.0 };

/// A command, and the one that writes its data.
struct Work {
    name: &'static str,
    command: &'static str,
    load: Option<&'static str>,
    /// The command changes the size of the data: it is written again after each window.
    resizes: bool,
}

const fn work(name: &'static str, command: &'static str, load: &'static str) -> Work {
    Work { name, command, load: Some(load), resizes: false }
}

const fn resizing(name: &'static str, command: &'static str, load: &'static str) -> Work {
    Work { name, command, load: Some(load), resizes: true }
}

const HSET: &str = "HSET bench:h{id:9} field:{field:20:10} {value}";
const RPUSH: &str = "RPUSH bench:l{id:9} {value}";
const SADD: &str = "SADD bench:s{id:9} member:{field:20:9}";
const ZADD: &str = "ZADD bench:z{id:9} {int:1000000} member:{field:20:9}";
const XADD: &str = "XADD bench:x{id:9} MAXLEN ~ 1000 * first {value} second {value}";

/// Many keys; fields and members are of 16 bytes.
const SMALL: &[Work] = &[
    work("HSET", HSET, HSET),
    work("HGET", "HGET bench:h{id:9} field:{field:20:10}", HSET),
    resizing("LPUSH", "LPUSH bench:l{id:9} {value}", RPUSH),
    resizing("RPOP", "RPOP bench:l{id:9}", RPUSH),
    work("SADD", SADD, SADD),
    work("SISMEMBER", "SISMEMBER bench:s{id:9} member:{field:20:9}", SADD),
    work("ZADD", ZADD, ZADD),
    work("ZRANGE of 10", "ZRANGE bench:z{id:9} 5 14", ZADD),
    work("ZRANK", "ZRANK bench:z{id:9} member:{field:20:9}", ZADD),
    Work { name: "XADD MAXLEN ~ 1000", command: XADD, load: None, resizes: false },
];

const LARGE_HSET: &str = "HSET hash field:{id:10} {value}";
const LARGE_RPUSH: &str = "RPUSH list {value}";
const LARGE_SADD: &str = "SADD set member:{id:9}";
const LARGE_ZADD: &str = "ZADD zset {int:1000000} member:{id:9}";
const LARGE_XADD: &str = "XADD stream MAXLEN ~ 1000 * first {value} second {value}";

/// One key.
const LARGE: &[Work] = &[
    work("HSET", LARGE_HSET, LARGE_HSET),
    work("HGET", "HGET hash field:{id:10}", LARGE_HSET),
    resizing("LPUSH", "LPUSH list {value}", LARGE_RPUSH),
    resizing("RPOP", "RPOP list", LARGE_RPUSH),
    work("SADD", LARGE_SADD, LARGE_SADD),
    work("SISMEMBER", "SISMEMBER set member:{id:9}", LARGE_SADD),
    work("ZADD", LARGE_ZADD, LARGE_ZADD),
    // Exists at any scale.
    work("ZRANGE of 10", "ZRANGE zset 500 509", LARGE_ZADD),
    work("ZRANK", "ZRANK zset member:{id:9}", LARGE_ZADD),
    Work { name: "XADD MAXLEN ~ 1000", command: LARGE_XADD, load: None, resizes: false },
];

/// Runs the named rows, or all of them if none is named.
pub(super) fn run(harness: &mut Harness<'_>, only: &[String]) -> Result<Vec<Section>> {
    if let Some(unknown) = only.iter().find(|name| !TABLES.iter().any(|table| table.names(name).next().is_some())) {
        return Err(BenchError::Usage(format!("--only {unknown}: no such row")));
    }
    let small = Data { keys: harness.scaled(KEYS), rounds: ELEMENTS };
    let large = Data { keys: harness.scaled(LARGE_ELEMENTS), rounds: 1 };
    let about = [format!("{} keys of {ELEMENTS} elements", small.keys), format!("one key of {} elements", large.keys)];
    let chosen = TABLES.map(|table| table.chosen(only));
    let servers = harness.start_all(&harness.options())?;
    let effort = harness.effort(EFFORT);
    let windows = |work: &&Work| {
        effort.rounds + usize::from(work.load.is_some()) * if work.resizes { effort.rounds + 1 } else { 1 }
    };
    harness.steps.expect(chosen.iter().flatten().map(windows).sum::<usize>() * servers.len());
    let tables = [small, large].into_iter().zip(chosen).zip(about).filter(|((_, works), _)| !works.is_empty());
    tables.map(|((data, works), what)| section(harness, &servers, &data, &works, what)).collect()
}

/// The rows over one kind of data, with a name that distinguishes them from the same rows over the other.
struct Table {
    name: &'static str,
    works: &'static [Work],
}

const TABLES: [Table; 2] = [Table { name: "small", works: SMALL }, Table { name: "large", works: LARGE }];

impl Table {
    /// The rows that a name means: `HSET`, or `large:HSET`.
    fn names(&self, name: &str) -> impl Iterator<Item = &'static Work> {
        let row = match name.split_once(':') {
            Some((table, row)) if table == self.name => Some(row.to_owned()),
            Some(_) => None,
            None => Some(name.to_owned()),
        };
        self.works.iter().filter(move |work| row.as_deref() == Some(work.name))
    }

    /// The rows that any of the names means; all of them without names.
    fn chosen(&self, only: &[String]) -> Vec<&'static Work> {
        let is_chosen = |work: &&Work| only.iter().any(|name| self.names(name).any(|named| named.name == work.name));
        self.works.iter().filter(|work| only.is_empty() || is_chosen(work)).collect()
    }
}

/// How many numbers `{id}` has, and how often each is written.
struct Data {
    keys: u64,
    rounds: u64,
}

impl Data {
    fn settings(&self, harness: &Harness<'_>) -> Settings {
        Settings { keys: self.keys, ..harness.plan.settings.clone() }
    }

    /// Empties the server and writes the data of the work.
    fn load(&self, harness: &Harness<'_>, server: &Server, work: &Work) -> Result<()> {
        if server.is_echo {
            return Ok(());
        }
        harness.plan.guest.empty(server)?;
        let Some(command) = work.load else { return Ok(()) };
        let plan = LoadPlan {
            command,
            keys: self.keys,
            rounds: self.rounds,
            value_size: Size::exactly(VALUE_BYTES),
            distribution: Distribution::Sequential,
            pipeline: LOAD_PIPELINE,
            first_key: 0,
        };
        harness.steps.say(&format!("{}: loading for {}", server.record.name, work.name));
        let watch = &mut |progress: crate::generator::Progress| harness.steps.advance(progress.fraction);
        crate::measure::load(&server.target, &self.settings(harness), &plan, watch)?;
        Ok(())
    }
}

fn section(harness: &Harness<'_>, servers: &[Server], data: &Data, works: &[&Work], what: String) -> Result<Section> {
    let figure = Figure::CpuPerOperation;
    let mut section = Section {
        title: format!("CPU time per operation, {what}"),
        about: format!(
            "User and system time of the server's process over the operations it answered, at pipeline {PIPELINE}; \
             fields, members and values of {VALUE_BYTES} bytes. Only one server is under load at a time; all hold the \
             same data."
        ),
        unit: figure.unit().to_owned(),
        better: figure.better(),
        rows: Vec::new(),
    };
    let settings = data.settings(harness);
    for work in works {
        for server in servers {
            data.load(harness, server, work)?;
        }
        let restore = &mut |at: usize, moment| match moment {
            Moment::Behind if work.resizes => data.load(harness, &servers[at], work),
            _ => Ok(()),
        };
        let places: Vec<&Server> = servers.iter().collect();
        let cells =
            harness.interleave_around(&settings, &places, &work.row(), harness.effort(EFFORT), figure, restore)?;
        section.rows.push(ResultRow::new(work.name.to_owned(), cells, &harness.plan.subject, section.better));
    }
    let targets: Vec<_> = works.iter().map(|_| Some(TARGET)).collect();
    Ok(harness.subject_section(section, &targets))
}

impl Work {
    fn row(&self) -> Row {
        let test =
            TestSpec { name: self.name.to_owned(), commands: vec![(self.command.to_owned(), 1)], loads: Vec::new() };
        Row { test, pipeline: PIPELINE, value_size: Size::exactly(VALUE_BYTES), pace: Pace::Closed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{KeyFormat, Template};

    #[test]
    fn rows_are_chosen_by_name() {
        let chosen = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            TABLES.map(|table| table.chosen(&only).iter().map(|work| work.name).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&["RPOP", "large:HSET"]), [vec!["RPOP"], vec!["HSET", "RPOP"]]);
        assert_eq!(chosen(&["small:nothing"]), [vec![], Vec::<&str>::new()]);
        assert_eq!(chosen(&[]).map(|rows| rows.len()), [SMALL.len(), LARGE.len()]);
    }

    #[test]
    fn every_command_compiles() {
        for work in SMALL.iter().chain(LARGE) {
            for command in [Some(work.command), work.load].into_iter().flatten() {
                assert!(Template::new(command, &KeyFormat::default()).is_ok(), "{command}");
            }
        }
        assert!(SMALL.iter().map(|work| work.name).eq(LARGE.iter().map(|work| work.name)));
    }
}
