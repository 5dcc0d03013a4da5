//! A part of suite `memory`: what an element of a collection costs, its own bytes and its share of the key included.

use super::Harness;
use super::memory::{push, section, settled_resident, start_warm};
use crate::error::Result;
use crate::keys::Distribution;
use crate::measure::{LOAD_PIPELINE, LoadPlan};
use crate::payload::Size;
use crate::results::{Cell, Section};
use crate::server::ServerSpec;
use crate::targets::Target;

/// Values of hashes and lists.
const VALUE_BYTES: usize = 8;

/// A kind of collection.
struct Kind {
    title: &'static str,
    /// Called once for each element of each key; fields and members have 7 bytes and are distinct within a key.
    command: &'static str,
    keys: u64,
    elements: u64,
    /// Bytes per element at most.
    must: f64,
}

const MANY: u64 = 10_000;
const FEW: u64 = 2_000;

const KINDS: [Kind; 7] = [
    kind("hash of 100 (7 B field, 8 B value)", "HSET hash:{id:11} f{field:100:6} {value}", MANY, 100, 19.0),
    kind("hash of 600", "HSET hash:{id:11} f{field:600:6} {value}", FEW, 600, 30.0),
    kind("list of 100 (8 B)", "RPUSH list:{id:11} {value}", MANY, 100, 10.5),
    kind("set of 100 (7 B)", "SADD set:{id:12} m{field:100:6}", MANY, 100, 10.0),
    kind("set of 600", "SADD set:{id:12} m{field:600:6}", FEW, 600, 16.0),
    kind("sorted set of 100 (7 B)", "ZADD zset:{id:11} {int:1000000} m{field:100:6}", MANY, 100, 16.0),
    kind("sorted set of 600", "ZADD zset:{id:11} {int:1000000} m{field:600:6}", FEW, 600, 36.0),
];

const fn kind(title: &'static str, command: &'static str, keys: u64, elements: u64, must: f64) -> Kind {
    Kind { title, command, keys, elements, must }
}

/// Loads per server.
pub(super) const COUNT: usize = KINDS.len();

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<Section> {
    let mut collections = section(
        "Memory per element of a collection",
        format!(
            "Growth of resident memory divided by the elements, data and key included: {MANY} keys of 100 elements, {FEW} of \
             600, times the scale; scores are integers below a million."
        ),
        "bytes per element",
    );
    for kind in &KINDS {
        let cells = specs.iter().map(|spec| Ok(Cell::new(&spec.name, vec![bytes_per_element(harness, spec, kind)?])));
        let cells = cells.collect::<Result<_>>()?;
        push(harness, &mut collections, kind.title.to_owned(), cells);
    }
    let targets = KINDS.each_ref().map(|kind| Some(Target::at_most(kind.must, None)));
    Ok(harness.subject_section(collections, &targets))
}

fn bytes_per_element(harness: &mut Harness<'_>, spec: &ServerSpec, kind: &Kind) -> Result<f64> {
    let (server, empty) = start_warm(harness, spec)?;
    let keys = harness.scaled(kind.keys);
    let load = LoadPlan {
        command: kind.command,
        keys,
        rounds: kind.elements,
        value_size: Size::exactly(VALUE_BYTES),
        distribution: Distribution::Sequential,
        pipeline: LOAD_PIPELINE,
        first_key: 0,
    };
    harness.load(&server, &format!("{}: {}", spec.name, kind.title), &load)?;
    let full = settled_resident(harness, &server)?;
    Ok((full as f64 - empty as f64) / (keys * kind.elements) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{KeyFormat, Template};

    #[test]
    fn every_command_compiles() {
        KINDS
            .iter()
            .for_each(|kind| assert!(Template::new(kind.command, &KeyFormat::default()).is_ok(), "{}", kind.title));
    }
}
