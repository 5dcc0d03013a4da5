//! The engine contract, by the suite that every engine must pass: few keys under much change, and many that make the
//! table grow, split, shrink and merge.

use base::Rng;
use engine::conformance::{Effort, check};
use engine_mem::{MemEngine, MemoryUse};
use std::sync::Arc;

/// How late the expiration index may notice: one tick, and a second one for what was due already when it was written.
const DUE_LATE_MS: i64 = 300;

fn run(seed: u64, effort: Effort) {
    check(seed, effort, |hasher| MemEngine::new(hasher, Rng::new(seed), Arc::new(MemoryUse::default())));
}

#[test]
fn few_keys() {
    let effort =
        Effort { steps: 20_000, keys: 100, value_len_max: 20_000, due_late_ms: DUE_LATE_MS, has_unlogged_fields: true };
    (0..20).for_each(|seed| run(seed, effort));
}

#[test]
fn many_keys() {
    let effort = Effort {
        steps: 40_000,
        keys: 20_000,
        value_len_max: 9_000,
        due_late_ms: DUE_LATE_MS,
        has_unlogged_fields: true,
    };
    (100..102).for_each(|seed| run(seed, effort));
}
