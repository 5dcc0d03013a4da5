//! Part `extremes`: data of extreme shapes. One string of the largest size that a client may send, which exceeds any
//! chunk; and very many tiny keys, where every per-key cost shows.

use super::checkpoint::{self, Memory, MemoryWatch};
use super::snapshot::{Restart, restart};
use super::{Data, LOG_OFF, MIB, cells, expect_keys, push, section, settle_disk, start};
use loadgen::client::Client;
use loadgen::compare::Harness;
use loadgen::error::Result;
use loadgen::payload::{Content, Size};
use loadgen::process::peak_resident_bytes;
use loadgen::results::{Better, Section};
use loadgen::server::{Server, ServerSpec};

const HUGE_BYTES: u64 = 512 << 20;
const TINY_KEYS: u64 = 20_000_000;

/// The results of one server with one shape.
struct Outcome {
    server: String,
    held: u64,
    saved: checkpoint::Checkpoint,
    memory: Memory,
    back: Restart,
    back_peak: u64,
}

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<Vec<Section>> {
    harness.steps.expect(specs.len() * 6);
    let huge = ((HUGE_BYTES as f64 * harness.plan.scale) as u64).clamp(1 << 20, HUGE_BYTES);
    let tiny = Data::new(harness.scaled(TINY_KEYS), Size::exactly(16), Content::Random);
    let mut shapes = Vec::new();
    let mut outcomes = Vec::new();
    for spec in specs {
        let server = start(harness, spec, LOG_OFF, false)?;
        harness.steps.say(&format!("{}: one string of {:.0} MiB", spec.name, huge as f64 / MIB));
        let mut client = Client::connect(&server.target.address, &server.target.login)?;
        client.set_random("huge", huge, harness.plan.settings.seed)?;
        drop(client);
        outcomes.push(measure(harness, server, 1)?);
    }
    shapes.push((format!("one string of {:.0} MiB", huge as f64 / MIB), outcomes));
    let mut outcomes = Vec::new();
    for spec in specs {
        let server = start(harness, spec, LOG_OFF, false)?;
        tiny.load(harness, &server)?;
        outcomes.push(measure(harness, server, tiny.keys)?);
    }
    shapes.push((format!("{:.2} M keys of 16 B and values of 16 B", tiny.keys as f64 / 1e6), outcomes));
    Ok(sections(harness, &shapes))
}

fn measure(harness: &Harness<'_>, mut server: Server, keys: u64) -> Result<Outcome> {
    expect_keys(&server, keys)?;
    settle_disk(harness);
    let name = server.record.name.clone();
    let pid = |server: &Server| server.target.pid.expect("the harness started this server");
    harness.steps.say(&format!("{name}: checkpoint"));
    let watch = MemoryWatch::begin(pid(&server))?;
    let saved = checkpoint::take(&server);
    let memory = watch.end()?;
    let saved = saved?;
    harness.steps.say(&format!("{name}: restart"));
    let back = restart(&mut server, keys)?;
    let back_peak = peak_resident_bytes(pid(&server))?;
    Ok(Outcome { server: name, held: memory.before, saved, memory, back, back_peak })
}

fn sections(harness: &Harness<'_>, shapes: &[(String, Vec<Outcome>)]) -> Vec<Section> {
    let mib = |bytes: u64| bytes as f64 / MIB;
    type Figure<'f> = &'f dyn Fn(&Outcome) -> f64;
    let tables: [(&str, &str, &str, Figure<'_>); 7] = [
        ("Extremes: time of a checkpoint", "Nothing else going on, log off, no core fixed.", "s", &|each| {
            each.saved.seconds
        }),
        ("Extremes: CPU time of a checkpoint", "Of the server and what it forks.", "s of CPU time", &|each| {
            each.saved.cpu_seconds
        }),
        ("Extremes: memory before", "Resident, all data held.", "MiB", &|each| mib(each.held)),
        (
            "Extremes: peak memory of a checkpoint",
            "Of the server and what it forks, pages that they share counted once.",
            "MiB",
            &|each| mib(each.memory.peak),
        ),
        ("Extremes: time of a restart", "Until it serves, files in the page cache.", "s", &|each| each.back.seconds),
        ("Extremes: CPU time of a restart", "All threads.", "s of CPU time", &|each| each.back.cpu_seconds),
        ("Extremes: peak memory of a restart", "The kernel's own mark of the process.", "MiB", &|each| {
            mib(each.back_peak)
        }),
    ];
    tables
        .into_iter()
        .map(|(title, about, unit, figure)| {
            let mut table = section(title, about.to_owned(), unit, Better::Lower);
            for (shape, outcomes) in shapes {
                let row = cells(outcomes.iter().map(|each| (each.server.as_str(), vec![figure(each)])));
                push(harness, &mut table, shape.clone(), row);
            }
            table
        })
        .collect()
}
