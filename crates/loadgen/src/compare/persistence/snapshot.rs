//! Part `snapshot`: what a checkpoint and a restart cost on a server that does nothing else. Nobody is pinned: with two
//! cores a server may use both.

use super::checkpoint;
use super::{Data, KIB, LOG_OFF, cells, expect_keys, push, section, settle_disk, start};
use crate::compare::Harness;
use crate::error::Result;
use crate::payload::Content;
use crate::process;
use crate::results::{Better, Section};
use crate::server::{Server, ServerSpec};
use crate::targets::{Kind, Target};

const KEYS: u64 = 2_500_000;
const ROUNDS: usize = 3;

/// A content, and what a checkpoint of it must save of a peer's CPU time.
const CONTENTS: [(&str, Content, Target); 2] = [
    ("constant data", Content::Constant, Target { kind: Kind::Factor("valkey"), must: 2.0, moonshot: None }),
    ("random data", Content::Random, Target { kind: Kind::Factor("redis"), must: 4.0, moonshot: None }),
];
const RESTART: Target = Target { kind: Kind::Factor("redis"), must: 2.0, moonshot: None };

/// What restarting took.
pub(super) struct Restart {
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
}

/// Stops a server and starts it again on what it has saved, and checks that all of it is there. What it read was just
/// written, so it comes from the page cache.
///
/// # Errors
/// When the server does not come back or has fewer keys.
pub(super) fn restart(server: &mut Server, keys: u64) -> Result<Restart> {
    let seconds = server.restart()?.as_secs_f64();
    // Threads that loaded may have ended: the ticks of the whole process count them, to 10 ms.
    let cpu = process::cpu_time(server.target.pid.expect("the harness started this server"))?;
    expect_keys(server, keys)?;
    Ok(Restart { seconds, cpu_seconds: cpu.since(process::CpuTime::default()).total_us / 1e6 })
}

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<Vec<Section>> {
    let rounds = harness.plan.rounds.unwrap_or(ROUNDS).max(1);
    harness.steps.expect(CONTENTS.len() * specs.len() * (1 + 2 * rounds));
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
    for (name, content, _) in &CONTENTS {
        let data = Data::new(keys, KIB, content.clone());
        let mut servers = Vec::new();
        for spec in specs {
            let server = start(harness, spec, LOG_OFF, false)?;
            data.load(harness, &server)?;
            servers.push(server);
        }
        let mut saved: Vec<Vec<checkpoint::Checkpoint>> = specs.iter().map(|_| Vec::new()).collect();
        let mut restarted: Vec<Vec<Restart>> = specs.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            for turn in 0..servers.len() {
                let at = (round + turn) % servers.len();
                let server = &mut servers[at];
                settle_disk(harness);
                harness.steps.say(&format!("{}, {name}: checkpoint {}/{rounds}", server.record.name, round + 1));
                saved[at].push(checkpoint::take(server)?);
                harness.steps.say(&format!("{}, {name}: restart {}/{rounds}", server.record.name, round + 1));
                restarted[at].push(restart(server, keys)?);
            }
        }
        let named = || specs.iter().map(|spec| spec.name.as_str());
        let of_saved = |figure: fn(&checkpoint::Checkpoint) -> f64| {
            cells(named().zip(saved.iter().map(|each| each.iter().map(figure).collect::<Vec<_>>())))
        };
        let of_restarted = |figure: fn(&Restart) -> f64| {
            cells(named().zip(restarted.iter().map(|each| each.iter().map(figure).collect::<Vec<_>>())))
        };
        push(harness, &mut cpu, (*name).to_owned(), of_saved(|each| each.cpu_seconds));
        push(harness, &mut wall, (*name).to_owned(), of_saved(|each| each.seconds));
        push(harness, &mut back, (*name).to_owned(), of_restarted(|each| each.seconds));
        push(harness, &mut back_cpu, (*name).to_owned(), of_restarted(|each| each.cpu_seconds));
    }
    let targets = CONTENTS.map(|(_, _, target)| Some(target));
    Ok(vec![
        harness.subject_section(cpu, &targets),
        wall,
        harness.subject_section(back, &[None, Some(RESTART)]),
        back_cpu,
    ])
}
