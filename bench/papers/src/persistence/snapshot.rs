//! Part `snapshot`: the cost of a checkpoint and a restart on an otherwise idle server. No server is pinned: with two
//! cores it may use both. A restart is measured warm, with its files in the page cache, and then cold, compared with
//! the time for reading the same files from the disk.

use super::checkpoint;
use super::{Data, KIB, LOG_OFF, cells, expect_keys, files_below, push, section, settle_disk, start};
use loadgen::compare::Harness;
use loadgen::error::{BenchError, Result};
use loadgen::payload::Content;
use loadgen::process;
use loadgen::results::{Better, Section};
use loadgen::server::{Server, ServerSpec};
use loadgen::targets::{Kind, Target};
use rustix::fs::Advice;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

const KEYS: u64 = 2_500_000;
const ROUNDS: usize = 3;

/// The data of a checkpoint, and the CPU time that it must save relative to a peer.
struct Case {
    name: &'static str,
    content: Content,
    /// Onggi compresses values on write; Redis and Valkey compress while they save in any case.
    is_compressed: bool,
    cpu: Option<Target>,
}

const CASES: [Case; 3] = [
    Case { name: "constant data", content: Content::Constant, is_compressed: false, cpu: None },
    Case {
        name: "constant data, kept compressed",
        content: Content::Constant,
        is_compressed: true,
        cpu: Some(Target { kind: Kind::Factor("valkey"), must: 2.0, moonshot: None }),
    },
    Case {
        name: "random data",
        content: Content::Random,
        is_compressed: false,
        cpu: Some(Target { kind: Kind::Factor("redis"), must: 4.0, moonshot: None }),
    },
];

impl Case {
    fn spec(&self, spec: &ServerSpec) -> ServerSpec {
        if !self.is_compressed || !spec.is_onggi() {
            return spec.clone();
        }
        let directives = [("compression", "zstd"), ("compression-when", "write")];
        spec.with_directives("", directives.map(|(name, value)| (name, value.to_owned())).into())
    }
}

/// On random data.
const RESTART: Target = Target { kind: Kind::Factor("redis"), must: 2.0, moonshot: None };

/// The cost of a restart.
pub(crate) struct Restart {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
}

/// Restarts a server on its saved data, and checks that all of it is present. Its files are read into the page cache
/// first, because a server may have written them with direct I/O.
///
/// # Errors
/// The server does not come back, or has fewer keys.
pub(crate) fn restart(server: &mut Server, keys: u64) -> Result<Restart> {
    read_all(&files_of(server))?;
    restart_as_is(server, keys)
}

/// The same, whatever the page cache holds.
fn restart_as_is(server: &mut Server, keys: u64) -> Result<Restart> {
    let seconds = server.restart()?.as_secs_f64();
    // Loading threads may have ended: the ticks of the whole process include them, to 10 ms.
    let cpu = process::cpu_time(server.target.pid.expect("the harness started this server"))?;
    expect_keys(server, keys)?;
    Ok(Restart { seconds, cpu_seconds: cpu.since(process::CpuTime::default()).total_us / 1e6 })
}

/// A restart without the page cache, relative to the time for reading its files.
struct Cold {
    seconds: f64,
    read_seconds: f64,
}

const COLD: Target = Target::factor_at_most(1.2);

/// Measures both: the disk's time and the server's.
fn restart_cold(server: &mut Server, keys: u64) -> Result<Cold> {
    let files = files_of(server);
    leave_page_cache(&files)?;
    let begun = Instant::now();
    read_all(&files)?;
    let read_seconds = begun.elapsed().as_secs_f64();
    leave_page_cache(&files)?;
    Ok(Cold { seconds: restart_as_is(server, keys)?.seconds, read_seconds })
}

fn files_of(server: &Server) -> Vec<PathBuf> {
    server.directory().map(files_below).unwrap_or_default()
}

fn read_all(files: &[PathBuf]) -> Result<()> {
    let mut buffer = vec![0; 1 << 20];
    for file in files {
        let mut file_bytes = open(file)?;
        while file_bytes.read(&mut buffer).map_err(file_error(file, "read a file of the server"))? > 0 {}
    }
    Ok(())
}

/// Drops these files from the page cache; they must be on the disk already.
fn leave_page_cache(files: &[PathBuf]) -> Result<()> {
    for file in files {
        let open = open(file)?;
        open.sync_all().map_err(file_error(file, "sync a file of the server"))?;
        rustix::fs::fadvise(&open, 0, None, Advice::DontNeed)
            .map_err(|error| BenchError::System { op: "take a file out of the page cache", source: error.into() })?;
    }
    Ok(())
}

fn open(file: &Path) -> Result<File> {
    File::open(file).map_err(file_error(file, "open a file of the server"))
}

fn file_error(path: &Path, op: &'static str) -> impl FnOnce(std::io::Error) -> BenchError {
    move |source| BenchError::File { path: path.to_owned(), op, source }
}

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<Vec<Section>> {
    let rounds = harness.plan.rounds.unwrap_or(ROUNDS).max(1);
    harness.steps.expect(specs.len() * (CASES.len() * (1 + 2 * rounds) + rounds));
    let keys = harness.scaled(KEYS);
    let size = format!("{keys} keys of 16 B with values of {KIB} B, log off");
    let mut cpu = section(
        "CPU time of a checkpoint",
        format!("Of the server and what it forks, nothing else going on; {size}."),
        "s of CPU time",
        Better::Lower,
    );
    let mut wall = section(
        "Time of a checkpoint",
        "The same: from BGSAVE until the server says that it is done; Redis and Valkey look every 100 ms.".to_owned(),
        "s",
        Better::Lower,
    );
    let mut back = section(
        "Time of a restart",
        format!("From the start of the program until it serves, its files in the page cache; {size}."),
        "s",
        Better::Lower,
    );
    let mut back_cpu =
        section("CPU time of a restart", "The same, all threads.".to_owned(), "s of CPU time", Better::Lower);
    let mut cold = section(
        "Restart from a cold disk",
        "Time of a restart without the page cache, over the time that reading the same files once takes.".to_owned(),
        "times the reading",
        Better::Lower,
    );
    for case in &CASES {
        let Case { name, content, .. } = case;
        let data = Data::new(keys, KIB, content.clone());
        let mut servers = Vec::new();
        for spec in specs {
            let server = start(harness, &case.spec(spec), LOG_OFF, false)?;
            data.load(harness, &server)?;
            servers.push(server);
        }
        let mut saved: Vec<Vec<checkpoint::Checkpoint>> = specs.iter().map(|_| Vec::new()).collect();
        let mut restarted: Vec<Vec<Restart>> = specs.iter().map(|_| Vec::new()).collect();
        let mut cold_restarts: Vec<Vec<Cold>> = specs.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            for turn in 0..servers.len() {
                let at = (round + turn) % servers.len();
                let server = &mut servers[at];
                settle_disk(harness);
                harness.steps.say(&format!("{}, {name}: checkpoint {}/{rounds}", server.record.name, round + 1));
                saved[at].push(checkpoint::take(server)?);
                harness.steps.say(&format!("{}, {name}: restart {}/{rounds}", server.record.name, round + 1));
                restarted[at].push(restart(server, keys)?);
                // Data that compresses to nothing is read in no time.
                if *content == Content::Random {
                    harness.steps.say(&format!("{}, {name}: cold restart {}/{rounds}", server.record.name, round + 1));
                    cold_restarts[at].push(restart_cold(server, keys)?);
                }
            }
        }
        let named = || specs.iter().map(|spec| spec.name.as_str());
        let of_saved = |figure: fn(&checkpoint::Checkpoint) -> f64| {
            cells(named().zip(saved.iter().map(|each| each.iter().map(figure).collect::<Vec<_>>())))
        };
        let of_restarted = |figure: fn(&Restart) -> f64| {
            cells(named().zip(restarted.iter().map(|each| each.iter().map(figure).collect::<Vec<_>>())))
        };
        let of_cold = cold_restarts
            .iter()
            .map(|each| each.iter().map(|cold| cold.seconds / cold.read_seconds.max(1e-9)).collect::<Vec<_>>());
        push(harness, &mut cold, (*name).to_owned(), cells(named().zip(of_cold)));
        push(harness, &mut cpu, (*name).to_owned(), of_saved(|each| each.cpu_seconds));
        push(harness, &mut wall, (*name).to_owned(), of_saved(|each| each.seconds));
        push(harness, &mut back, (*name).to_owned(), of_restarted(|each| each.seconds));
        push(harness, &mut back_cpu, (*name).to_owned(), of_restarted(|each| each.cpu_seconds));
    }
    let targets = CASES.map(|case| case.cpu);
    Ok(vec![
        harness.subject_section(cpu, &targets),
        wall,
        harness.subject_section(back, &[None, None, Some(RESTART)]),
        back_cpu,
        harness.subject_section(cold, &[Some(COLD)]),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dropping files from the page cache leaves them on the disk.
    #[test]
    fn files_that_leave_the_page_cache_keep_their_bytes() {
        let path = std::env::temp_dir().join(format!("onggi-bench-cold-{}", std::process::id()));
        std::fs::write(&path, [7; 10_000]).unwrap();
        let left = leave_page_cache(std::slice::from_ref(&path));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        left.unwrap();
        assert_eq!(bytes, [7; 10_000]);
        assert!(leave_page_cache(&[path]).is_err());
    }
}
