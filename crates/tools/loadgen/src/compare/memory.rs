//! Suite `memory`: the cost of a key beyond its own bytes, the cost of a TTL, whether growth is linear, and whether
//! memory returns when values shrink. Every figure is the resident memory of the process, before and after real
//! commands.

use super::fresh::{plan, push, section, start_warm};
use super::{Harness, collections_memory};
use crate::error::{BenchError, Result};
use crate::keys::Distribution;
use crate::payload::Size;
use crate::results::{Cell, Section};
use crate::server::ServerSpec;
use crate::targets::Target;

const KEYS: u64 = 5_000_000;
const SET: &str = "SET {key} {value}";
/// Between one and two days, so that no key expires and no two servers profit from equal times.
const SET_WITH_TTL: &str = "SET {key} {value} EX 1{int:100000:5}";

/// Value size, and the target for bytes per key beyond key and value.
const OVERHEADS: [(usize, Target); 5] = [
    (2, Target::at_most(18.0, Some(12.0))),
    (16, Target::at_most(16.0, Some(12.0))),
    (64, Target::at_most(18.0, Some(12.0))),
    (512, Target::at_most(40.0, Some(20.0))),
    (1024, Target::at_most(60.0, Some(24.0))),
];
/// Value sizes that are measured with a TTL too.
const TTL_SIZES: [usize; 2] = [16, 64];
const TTL: Target = Target::at_most(14.0, Some(10.0));
/// Key counts at which growth is measured, in millions.
const GROWTH_MILLIONS: [u64; 4] = [1, 2, 5, 10];
const GROWTH_VALUE_BYTES: usize = 16;
const FLATNESS: Target = Target::at_most(1.10, None);
const SHRINK_KEYS: u64 = 2_000_000;
const SHRINK_FROM: Size = Size { min: 300, max: 500 };
const SHRINK_TO: Size = Size { min: 20, max: 60 };
const SHRINK: Target = Target::at_most(1.6, None);

pub(super) fn run(harness: &mut Harness<'_>) -> Result<Vec<Section>> {
    let specs: Vec<ServerSpec> = harness.plan.servers.iter().filter(|spec| !spec.is_echo()).cloned().collect();
    if let Some(spec) = specs.iter().find(|spec| !spec.is_startable()) {
        return Err(BenchError::Usage(format!(
            "server {}: the memory suite starts every server afresh for each figure; give a command",
            spec.name
        )));
    }
    let collections = collections_memory::COUNT;
    harness.steps.expect(specs.len() * (OVERHEADS.len() + TTL_SIZES.len() + GROWTH_MILLIONS.len() + 3 + collections));
    let (overhead, ttl) = overhead_sections(harness, &specs)?;
    let (growth, flatness) = growth_sections(harness, &specs)?;
    let shrink = shrink_section(harness, &specs)?;
    let collections = collections_memory::run(harness, &specs)?;
    Ok([vec![overhead, ttl, growth, flatness, shrink], collections].concat())
}

fn overhead_sections(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<(Section, Section)> {
    let keys = harness.scaled(KEYS);
    let mut overhead = section(
        "Memory per key beyond key and value",
        format!(
            "Growth of resident memory after {keys} SETs of different 16-byte keys, divided by the keys, less the \
             bytes of key and value."
        ),
        "bytes per key",
    );
    let mut ttl = section(
        "What a time to live adds",
        format!("The same with an expiration on every key, less the figure without; {keys} keys."),
        "bytes per key",
    );
    for (bytes, _) in OVERHEADS {
        let (mut plain, mut extra) = (Vec::new(), Vec::new());
        for spec in specs {
            let without = bytes_per_key(harness, spec, SET, bytes, keys)?;
            let payload = (harness.plan.settings.key_format.size + bytes) as f64;
            plain.push(Cell::new(&spec.name, vec![without - payload]));
            if TTL_SIZES.contains(&bytes) {
                let with = bytes_per_key(harness, spec, SET_WITH_TTL, bytes, keys)?;
                extra.push(Cell::new(&spec.name, vec![with - without]));
            }
        }
        push(harness, &mut overhead, format!("{bytes} B values"), plain);
        if !extra.is_empty() {
            push(harness, &mut ttl, format!("{bytes} B values"), extra);
        }
    }
    let targets = OVERHEADS.map(|(_, target)| Some(target));
    let ttl_targets = TTL_SIZES.map(|_| Some(TTL));
    Ok((harness.subject_section(overhead, &targets), harness.subject_section(ttl, &ttl_targets)))
}

/// Starts a server, fills it, and returns its growth per key.
fn bytes_per_key(
    harness: &mut Harness<'_>,
    spec: &ServerSpec,
    command: &str,
    value_bytes: usize,
    keys: u64,
) -> Result<f64> {
    let (server, empty) = start_warm(harness, spec)?;
    let load = plan(command, keys, 0, Size::exactly(value_bytes), Distribution::Sequential);
    harness.load(&server, &format!("{}: {keys} keys of {value_bytes} B", spec.name), &load)?;
    let full = harness.settled_resident(&server)?;
    Ok((full as f64 - empty as f64) / keys as f64)
}

fn growth_sections(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<(Section, Section)> {
    let counts = GROWTH_MILLIONS.map(|millions| harness.scaled(millions * 1_000_000));
    let mut growth = section(
        "Bytes per key while growing",
        format!(
            "Growth of resident memory per key, key and a {GROWTH_VALUE_BYTES}-byte value included, as one server \
             fills up."
        ),
        "bytes per key",
    );
    let mut series: Vec<Vec<f64>> = Vec::new();
    for spec in specs {
        let (server, empty) = start_warm(harness, spec)?;
        let (mut held, mut figures) = (0, Vec::new());
        for count in counts {
            let size = Size::exactly(GROWTH_VALUE_BYTES);
            let load = plan(SET, count - held, held, size, Distribution::Sequential);
            harness.load(&server, &format!("{}: growing to {count} keys", spec.name), &load)?;
            held = count;
            figures.push((harness.settled_resident(&server)? as f64 - empty as f64) / count as f64);
        }
        series.push(figures);
    }
    for (at, count) in counts.into_iter().enumerate() {
        let cells = specs.iter().zip(&series).map(|(spec, figures)| Cell::new(&spec.name, vec![figures[at]])).collect();
        push(harness, &mut growth, format!("{:.3} M keys", count as f64 / 1e6), cells);
    }
    let mut flatness = section(
        "Flatness of growth",
        "The largest of the figures above divided by the smallest: 1 is perfectly flat.".to_owned(),
        "largest / smallest",
    );
    let cells = specs
        .iter()
        .zip(&series)
        .map(|(spec, figures)| {
            let largest = figures.iter().copied().fold(f64::MIN, f64::max);
            let smallest = figures.iter().copied().fold(f64::MAX, f64::min);
            Cell::new(&spec.name, vec![largest / smallest])
        })
        .collect();
    push(harness, &mut flatness, "bytes per key".to_owned(), cells);
    Ok((growth, harness.subject_section(flatness, &[Some(FLATNESS)])))
}

fn shrink_section(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<Section> {
    let keys = harness.scaled(SHRINK_KEYS);
    let mut shrink = section(
        "After values shrink",
        format!(
            "Resident memory of the whole process divided by the bytes of all keys and values, after {keys} values of \
             {SHRINK_FROM} B were each overwritten by one of {SHRINK_TO} B, in random order."
        ),
        "resident / live payload",
    );
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for spec in specs {
        let (server, _) = start_warm(harness, spec)?;
        for (size, order, cells) in
            [(SHRINK_FROM, Distribution::Sequential, &mut before), (SHRINK_TO, Distribution::Shuffled, &mut after)]
        {
            let load = plan(SET, keys, 0, size, order);
            let (_, value_bytes) =
                harness.load(&server, &format!("{}: {keys} values of {size} B", spec.name), &load)?;
            let live = value_bytes + keys * harness.plan.settings.key_format.size as u64;
            cells.push(Cell::new(&spec.name, vec![harness.settled_resident(&server)? as f64 / live as f64]));
        }
    }
    push(harness, &mut shrink, format!("before, {SHRINK_FROM} B"), before);
    push(harness, &mut shrink, format!("after, {SHRINK_TO} B"), after);
    Ok(harness.subject_section(shrink, &[None, Some(SHRINK)]))
}
