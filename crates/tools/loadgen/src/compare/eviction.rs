//! Suite `eviction`: the hit ratio of a cache too small for its keys. An application reads a key and writes it if it is
//! missing. Keys are zipfian. In the polluted load one read in five requests a new key that is never requested again,
//! as a scan over cold data does.

use super::Harness;
use crate::error::{BenchError, Result};
use crate::generator::{self, Extent, Pace, Run, Totals};
use crate::keys::{Distribution, KeyStream, THETA};
use crate::measure::DRAIN;
use crate::payload::{Payload, Size};
use crate::process::resident_bytes;
use crate::results::{Better, Cell, ResultRow, Section};
use crate::server::{Server, ServerSpec, StartOptions};
use crate::targets::{Kind, Target};
use crate::template::Template;

const KEYS: u64 = 1_000_000;
/// Reads per key before the hit ratio counts, and again while it does.
const READS_PER_KEY: u64 = 3;
const VALUE_BYTES: usize = 100;
/// Per key of the key range: about a third of the keys fit, by Valkey's own overhead.
const MEMORY_BYTES_PER_KEY: u64 = 50;
const PIPELINE: usize = 16;
const ROUNDS: usize = 3;
const POLICIES: [&str; 2] = ["allkeys-lru", "allkeys-lfu"];
const LOADS: [(&str, &[(&str, u32)]); 2] =
    [("zipfian", &[("GET {key}", 1)]), ("zipfian with scans", &[("GET {key}", 4), ("GET {newkey}", 1)])];
const HITS: Target = Target { kind: Kind::CountFactor("valkey"), must: 1.0, moonshot: None };

/// The result of one run on one server.
struct Outcome {
    hit_percent: f64,
    resident_mib: f64,
}

pub(super) fn run(harness: &mut Harness<'_>) -> Result<Vec<Section>> {
    let specs: Vec<ServerSpec> = harness.plan.servers.iter().filter(|spec| !spec.is_echo()).cloned().collect();
    if let Some(spec) = specs.iter().find(|spec| !spec.is_startable()) {
        let name = &spec.name;
        return Err(BenchError::Usage(format!(
            "server {name}: the eviction suite sets maxmemory at start; give a command"
        )));
    }
    let rounds = harness.plan.rounds.unwrap_or(ROUNDS).max(1);
    harness.steps.expect(POLICIES.len() * LOADS.len() * rounds * specs.len() * 2);
    let limit_mib = limit_bytes(harness) / f64::from(1 << 20);
    let resident_bound = (1.15 * limit_mib + 64.0).round();
    let about = format!(
        "{} keys of {VALUE_BYTES} B asked for by a zipfian 0.99 law under maxmemory of {limit_mib:.0} MiB; a miss is \
         filled at once. Measured after {READS_PER_KEY} reads a key have warmed the cache.",
        harness.scaled(KEYS)
    );
    let mut hits = Section {
        title: "Hit ratio under eviction".to_owned(),
        about,
        unit: "% of reads".to_owned(),
        better: Better::Higher,
        rows: Vec::new(),
    };
    let mut resident = Section {
        title: "Resident memory at the end".to_owned(),
        about: format!("Of the whole process; 1.15 times the limit and 64 MiB are allowed: {resident_bound} MiB."),
        unit: "MiB".to_owned(),
        better: Better::Lower,
        rows: Vec::new(),
    };
    for policy in POLICIES {
        for (load, commands) in LOADS {
            let mut outcomes: Vec<Vec<Outcome>> = specs.iter().map(|_| Vec::new()).collect();
            for round in 0..rounds {
                for turn in 0..specs.len() {
                    let at = (round + turn) % specs.len();
                    outcomes[at].push(measure_one(harness, &specs[at], policy, commands, round as u64)?);
                }
            }
            let cells = |figure: fn(&Outcome) -> f64| -> Vec<Cell> {
                let samples = outcomes.iter().map(|rounds| rounds.iter().map(figure).collect());
                specs.iter().zip(samples).map(|(spec, samples)| Cell::new(&spec.name, samples)).collect()
            };
            let (title, subject) = (format!("{policy}, {load}"), &harness.plan.subject);
            hits.rows.push(ResultRow::new(title.clone(), cells(|each| each.hit_percent), subject, hits.better));
            resident.rows.push(ResultRow::new(title, cells(|each| each.resident_mib), subject, resident.better));
        }
    }
    let bound = Target::at_most(resident_bound, None);
    Ok(vec![
        harness.subject_section(hits, &[Some(HITS); POLICIES.len() * LOADS.len()]),
        harness.subject_section(resident, &[Some(bound); POLICIES.len() * LOADS.len()]),
    ])
}

fn limit_bytes(harness: &Harness<'_>) -> f64 {
    // Valkey counts its own start-up memory, about 1 MiB, in the limit.
    (harness.scaled(KEYS) * MEMORY_BYTES_PER_KEY + (1 << 20)) as f64
}

fn measure_one(
    harness: &mut Harness<'_>,
    spec: &ServerSpec,
    policy: &str,
    commands: &[(&str, u32)],
    round: u64,
) -> Result<Outcome> {
    let directives =
        vec![("maxmemory", format!("{:.0}", limit_bytes(harness))), ("maxmemory-policy", policy.to_owned())];
    let server = harness.start(spec, &StartOptions { directives, ..harness.options() })?;
    let title = format!("{policy}: {}", spec.name);
    let seed = harness.plan.settings.seed.wrapping_add(round);
    let warm = read_through(harness, &server, &format!("{title}, warming"), commands, seed, 0)?;
    // The scan continues where it stopped, so its keys stay new.
    let totals = read_through(harness, &server, &title, commands, seed ^ 0x5CA7, warm.operations)?;
    let reads = totals.operations - totals.fills;
    let pid = server.target.pid.expect("the harness started this server");
    Ok(Outcome {
        hit_percent: 100.0 * (reads - totals.misses) as f64 / reads.max(1) as f64,
        resident_mib: resident_bytes(pid)? as f64 / f64::from(1 << 20),
    })
}

fn read_through(
    harness: &Harness<'_>,
    server: &Server,
    title: &str,
    commands: &[(&str, u32)],
    seed: u64,
    scanned: u64,
) -> Result<Totals> {
    let settings = &harness.plan.settings;
    let commands = commands
        .iter()
        .map(|&(text, weight)| Ok((Template::new(text, &settings.key_format)?, weight)))
        .collect::<Result<Vec<_>>>()?;
    let fill = Template::new("SET {key} {value}", &settings.key_format)?;
    let key_count = harness.scaled(KEYS);
    // The hot keys are the same in every round and phase; the drawn sequence differs.
    let keys = KeyStream::new(Distribution::Zipfian { theta: THETA }, key_count, settings.seed);
    let payload = Payload::new(&settings.content, Size::exactly(VALUE_BYTES), seed)?;
    harness.steps.say(title);
    let totals = generator::run(
        &Run {
            address: &server.target.address,
            login: &server.target.login,
            protocol: server.target.protocol,
            pid: server.target.pid,
            connections: settings.connections,
            threads: settings.threads,
            pipeline: PIPELINE,
            pace: Pace::Closed,
            extent: Extent::Operations(key_count * READS_PER_KEY),
            commands: &commands,
            fill: Some(&fill),
            keys: &keys,
            key_count,
            newest: key_count + scanned,
            payload: &payload,
            ordered_fields: false,
            seed,
            cores: settings.generator_cores.as_ref(),
            drain: DRAIN,
            until: None,
        },
        &mut |progress| harness.steps.advance(progress.fraction),
    )?;
    match &totals.first_error {
        None => Ok(totals),
        Some(reply) => Err(BenchError::Refused {
            address: server.target.address.to_string(),
            command: "GET or SET under maxmemory".to_owned(),
            reply: reply.clone(),
        }),
    }
}
