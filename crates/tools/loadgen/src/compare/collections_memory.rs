//! A part of suite `memory`: the cost of a collection's element, including its own bytes and its share of the key.

use super::Harness;
use super::fresh::{push, section, start_warm};
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
    /// Name and key of the command that adds elements.
    start: &'static str,
    /// The arguments of one element. `{field}` is replaced by its number in six digits: fields and members have 7 bytes
    /// and are distinct within a key.
    element: &'static str,
    keys: u64,
    elements: u64,
    /// Bytes per element at most, when each collection is written by one command.
    must: f64,
}

const MANY: u64 = 10_000;
const FEW: u64 = 2_000;

const KINDS: [Kind; 7] = [
    kind("hash of 100 (7 B field, 8 B value)", "HSET bench:h{id:9}", "f{field} {value}", MANY, 100, 19.0),
    kind("hash of 600", "HSET bench:h{id:9}", "f{field} {value}", FEW, 600, 30.0),
    kind("list of 100 (8 B)", "RPUSH bench:l{id:9}", "{value}", MANY, 100, 10.5),
    kind("set of 100 (7 B)", "SADD bench:s{id:9}", "m{field}", MANY, 100, 10.0),
    kind("set of 600", "SADD bench:s{id:9}", "m{field}", FEW, 600, 16.0),
    kind("sorted set of 100 (7 B)", "ZADD bench:z{id:9}", "{int:1000000} m{field}", MANY, 100, 16.0),
    kind("sorted set of 600", "ZADD bench:z{id:9}", "{int:1000000} m{field}", FEW, 600, 36.0),
];

const fn kind(
    title: &'static str,
    start: &'static str,
    element: &'static str,
    keys: u64,
    elements: u64,
    must: f64,
) -> Kind {
    Kind { title, start, element, keys, elements, must }
}

/// Ways to fill the collections.
#[derive(Clone, Copy)]
enum Way {
    /// Each by one command, as in the figures to beat.
    Whole,
    /// One element of each after the other, so that all grow at the same time.
    Growing,
}

impl Kind {
    fn command(&self, way: Way) -> String {
        match way {
            Way::Whole => (0..self.elements).fold(self.start.to_owned(), |command, number| {
                command + " " + &self.element.replace("{field}", &format!("{number:06}"))
            }),
            Way::Growing => {
                let element = self.element.replace("{field}", &format!("{{field:{}:6}}", self.elements));
                format!("{} {element}", self.start)
            }
        }
    }
}

/// Loads per server.
pub(super) const COUNT: usize = 2 * KINDS.len();

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<Vec<Section>> {
    let about = |how: &str| {
        format!(
            "Growth of resident memory divided by the elements, data and key included: {MANY} keys of 100 elements, \
             {FEW} of 600, times the scale, {how}; scores are integers below a million."
        )
    };
    let targets = KINDS.each_ref().map(|kind| Some(Target::at_most(kind.must, None)));
    let whole =
        section("Memory per element of a collection", about("each written by one command"), "bytes per element");
    let whole = fill(harness, specs, Way::Whole, whole)?;
    let whole = harness.subject_section(whole, &targets);
    let growing = section(
        "Memory per element of collections that grow",
        about("written by one command for each element, to all keys in turn"),
        "bytes per element",
    );
    Ok(vec![whole, fill(harness, specs, Way::Growing, growing)?])
}

fn fill(harness: &mut Harness<'_>, specs: &[ServerSpec], way: Way, mut section: Section) -> Result<Section> {
    for kind in &KINDS {
        let cells =
            specs.iter().map(|spec| Ok(Cell::new(&spec.name, vec![bytes_per_element(harness, spec, kind, way)?])));
        let cells = cells.collect::<Result<_>>()?;
        push(harness, &mut section, kind.title.to_owned(), cells);
    }
    Ok(section)
}

fn bytes_per_element(harness: &mut Harness<'_>, spec: &ServerSpec, kind: &Kind, way: Way) -> Result<f64> {
    let (server, empty) = start_warm(harness, spec)?;
    let keys = harness.scaled(kind.keys);
    let (rounds, pipeline) = match way {
        Way::Whole => (1, 1),
        Way::Growing => (kind.elements, LOAD_PIPELINE),
    };
    let load = LoadPlan {
        command: &kind.command(way),
        keys,
        rounds,
        value_size: Size::exactly(VALUE_BYTES),
        distribution: Distribution::Sequential,
        pipeline,
        first_key: 0,
    };
    harness.load(&server, &format!("{}: {}", spec.name, kind.title), &load)?;
    let full = harness.settled_resident(&server)?;
    Ok((full as f64 - empty as f64) / (keys * kind.elements) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{KeyFormat, Template};

    #[test]
    fn every_command_compiles() {
        for kind in &KINDS {
            for way in [Way::Whole, Way::Growing] {
                let command = kind.command(way);
                assert!(Template::new(&command, &KeyFormat::default()).is_ok(), "{}: {command}", kind.title);
            }
        }
        let sorted_set = Kind { elements: 2, ..KINDS[6] };
        assert_eq!(sorted_set.command(Way::Whole), "ZADD bench:z{id:9} {int:1000000} m000000 {int:1000000} m000001");
        assert_eq!(sorted_set.command(Way::Growing), "ZADD bench:z{id:9} {int:1000000} m{field:2:6}");
    }
}
