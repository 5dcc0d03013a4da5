//! Making a failing sequence small enough to read: delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
//! Failure-Inducing Input", IEEE TSE 28(2), 2002) over the steps, then over the arguments of those that are left.

use std::time::{Duration, Instant};

use crate::generate;
use crate::step::{Action, Argument, Step};

/// Shrinking ends here, with the smallest sequence found so far.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The smallest sequence found for which `fails` still says true. It is true for `steps`.
pub fn shrink(steps: Vec<Step>, mut fails: impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    let deadline = Instant::now() + TIME_MAX;
    let mut fails = |steps: &[Step]| Instant::now() < deadline && fails(steps);
    let mut steps = fewer_steps(steps, &mut fails);
    loop {
        let before = steps.clone();
        steps = simpler_steps(steps, &mut fails);
        if steps == before {
            return steps;
        }
    }
}

/// Drops runs of steps, long ones first.
fn fewer_steps(mut steps: Vec<Step>, fails: &mut impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    let mut length = steps.len().div_ceil(2);
    while length > 0 {
        let mut start = 0;
        while start < steps.len() {
            let end = (start + length).min(steps.len());
            let rest: Vec<Step> = [&steps[..start], &steps[end..]].concat();
            if fails(&rest) {
                steps = rest;
            } else {
                start = end;
            }
        }
        length /= 2;
    }
    steps
}

/// Replaces steps by simpler ones, each by the first that still fails.
fn simpler_steps(mut steps: Vec<Step>, fails: &mut impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    for i in 0..steps.len() {
        let Some(arguments) = steps[i].arguments().map(<[Argument]>::to_vec) else { continue };
        let mut candidates: Vec<(usize, Vec<Argument>)> = Vec::new();
        for j in 1..arguments.len() {
            let mut shorter = arguments.clone();
            shorter.remove(j);
            candidates.push((steps[i].connection, shorter));
            for simpler in simpler_arguments(&arguments[j]) {
                let mut changed = arguments.clone();
                changed[j] = simpler;
                candidates.push((steps[i].connection, changed));
            }
        }
        candidates.insert(0, (1, arguments));
        for (connection, arguments) in candidates {
            let candidate = Step { connection, action: Action::Command(arguments), without: steps[i].without.clone() };
            // What does not repeat would be a failure of its own (G2).
            if candidate == steps[i] || !generate::is_tame(candidate.arguments().unwrap_or_default()) {
                continue;
            }
            let previous = std::mem::replace(&mut steps[i], candidate);
            if fails(&steps) {
                break;
            }
            steps[i] = previous;
        }
    }
    steps
}

/// Arguments that say less, the least first. Each is shorter, or as long and earlier in the alphabet, so that taking
/// one after the other ends.
fn simpler_arguments(argument: &Argument) -> Vec<Argument> {
    let Argument::Bytes(bytes) = argument else { return Vec::new() };
    let mut simpler: Vec<Vec<u8>> = vec![b"0".to_vec(), b"1".to_vec(), b"a".to_vec()];
    simpler.retain(|other| (other.len(), &other[..]) < (bytes.len(), &bytes[..]));
    if bytes.len() > 2 {
        simpler.push(bytes[..bytes.len() / 2].to_vec());
        simpler.push(bytes[..bytes.len() - 1].to_vec());
    }
    simpler.into_iter().map(Argument::Bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_failure_needs_is_left() {
        let mut steps: Vec<Step> = (0..200).map(|i| Step::words(2, &["SET", &format!("key{i}"), "value"])).collect();
        steps[50] = Step::words(2, &["APPEND", "needed", "some text", "KEEP"]);
        steps[150] = Step::words(2, &["GET", "needed"]);
        let has = |steps: &[Step], words: &[&str]| {
            steps.iter().position(|step| {
                let line = step.to_string();
                words.iter().all(|word| line.contains(word))
            })
        };
        let fails = |steps: &[Step]| match (has(steps, &["APPEND", "KEEP"]), has(steps, &["GET"])) {
            (Some(append), Some(get)) => append < get,
            _ => false,
        };
        let shrunk: Vec<String> = shrink(steps, fails).iter().map(Step::to_string).collect();
        assert_eq!(shrunk, ["APPEND KEEP", "GET"]);
    }
}
