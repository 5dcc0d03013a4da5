//! Chooses calls to be looked at closely, each with a probability in proportion to its cost: a constant and its bytes.
//!
//! All calls lie end to end, each as long as its cost, with marks at random distances of [`STRIDE`] on average; a call
//! is chosen when a mark falls on it. So none that is longer than two strides is missed, and a chosen one stands for
//! `STRIDE / cost` calls like it (D. Horvitz, D. Thompson: A Generalization of Sampling Without Replacement From a
//! Finite Universe, JASA 1952). Time is no part of the cost: what is looked at then would follow from how fast the
//! machine is.

use base::random::splitmix64;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Mean distance of marks: one in about eighteen calls of small values is looked at, which takes about a hundred
/// instructions.
pub const STRIDE: u64 = 4096;

/// The cost of a call without its bytes.
const CALL_COST: u64 = 128;

/// What a call costs whose request and reply have `bytes` bytes.
#[inline]
pub fn cost(bytes: u64) -> u64 {
    bytes.saturating_add(CALL_COST)
}

/// One worker's place between two marks. Only the worker writes.
#[derive(Debug, Default)]
pub struct Sampler {
    /// Cost up to the next mark; negative once it was passed.
    left: AtomicI64,
    state: AtomicU64,
}

impl Sampler {
    /// Advances by the cost of a call. True when a mark was passed: the caller then asks for the [`Sampler::choice`].
    #[inline]
    pub fn passes(&self, cost: u64) -> bool {
        // Load and store instead of a locked subtraction: there is one writer.
        let left = self.left.load(Ordering::Relaxed).wrapping_sub(cost.cast_signed());
        self.left.store(left, Ordering::Relaxed);
        left < 0
    }

    /// Sets the next mark if one was passed, and returns the weight of the call; `None` if none was.
    pub fn choice(&self, cost: u64) -> Option<Choice> {
        let left = self.left.load(Ordering::Relaxed);
        if left >= 0 {
            return None;
        }
        let mut state = self.state.load(Ordering::Relaxed);
        let draw = splitmix64(&mut state);
        self.state.store(state, Ordering::Relaxed);
        let distance = (STRIDE / 2).saturating_add(draw % STRIDE).cast_signed();
        // Distances go from mark to mark and not from call to call, so that a call's probability is its length's.
        let next = left.saturating_add(distance);
        self.left.store(if next < 0 { distance } else { next }, Ordering::Relaxed);
        Some(Choice { weight: (STRIDE as f64 / cost as f64).max(1.0), draw: draw.rotate_left(32) })
    }
}

/// A call was chosen.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Calls like this one that it stands for, itself included; 1 when it had to be chosen.
    pub weight: f64,
    /// A random number.
    pub draw: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the calls cost, sums over chosen ones come to those over all.
    #[test]
    fn chosen_calls_stand_for_all() {
        let mut rng = base::Rng::new(2);
        for spread in [1, 300, 2_000, 100_000] {
            let sampler = Sampler::default();
            let (mut calls, mut cost, mut calls_estimated, mut cost_estimated) = (0.0, 0.0, 0.0, 0.0);
            for _ in 0..300_000 {
                let this = 1 + rng.below(spread);
                calls += 1.0;
                cost += this as f64;
                let passed = sampler.passes(this);
                let choice = sampler.choice(this);
                assert_eq!(choice.is_some(), passed);
                if let Some(choice) = choice {
                    calls_estimated += choice.weight;
                    cost_estimated += choice.weight * this as f64;
                }
            }
            let close = |a: f64, b: f64| (a / b - 1.0).abs() < 0.1;
            assert!(close(calls, calls_estimated), "{spread}: {calls} {calls_estimated}");
            assert!(close(cost, cost_estimated), "{spread}: {cost} {cost_estimated}");
        }
    }
}
