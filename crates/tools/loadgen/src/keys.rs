//! The next key: common key distributions, each a pure function of a seed.
//!
//! Zipfian is the generator of Gray et al. ("Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994) as
//! YCSB uses it (Cooper et al., SoCC 2010): rank r is drawn with weight 1 / r^theta. Where YCSB scatters the ranks by
//! a hash, so that some keys carry several ranks and others none, a [`Permutation`] gives every rank a key of its own.

use base::random::{Rng, splitmix64};

/// The skew of YCSB's zipfian workloads.
pub const THETA: f64 = 0.99;

/// The shape of the key sequence of a run.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Distribution {
    /// Every key equally likely.
    Uniform,
    /// Few keys hot, the hot ones spread over the whole key range.
    Zipfian {
        /// Skew in (0, 1); larger is hotter.
        theta: f64,
    },
    /// The newest keys are the hottest (YCSB workload D).
    Latest {
        /// Skew in (0, 1); larger is hotter.
        theta: f64,
    },
    /// Key numbers in order, shared out over the connections, then from the start again.
    Sequential,
    /// Every key once in a random order, then in the same order again.
    Shuffled,
}

/// Draws key numbers for one connection.
#[derive(Clone, Debug)]
pub struct KeyStream {
    count: u64,
    first: u64,
    shape: Shape,
    scatter: Permutation,
}

#[derive(Clone, Debug)]
enum Shape {
    Uniform,
    Zipfian(Zipfian),
    Latest(Zipfian),
    Sequential,
    Shuffled,
}

impl KeyStream {
    /// A stream over keys `0..count`. `seed` fixes which keys are hot and the shuffled order, and must be the same for
    /// all connections of a run; what differs between them is the generator given to [`Self::draw`].
    ///
    /// # Panics
    /// When `count` is 0.
    pub fn new(distribution: Distribution, count: u64, seed: u64) -> Self {
        assert!(count > 0, "a key stream needs at least one key");
        let shape = match distribution {
            Distribution::Uniform => Shape::Uniform,
            Distribution::Zipfian { theta } => Shape::Zipfian(Zipfian::new(count, theta)),
            Distribution::Latest { theta } => Shape::Latest(Zipfian::new(count, theta)),
            Distribution::Sequential => Shape::Sequential,
            Distribution::Shuffled => Shape::Shuffled,
        };
        Self { count, first: 0, shape, scatter: Permutation::new(count, seed) }
    }

    /// The same stream over keys `first..first + count`.
    pub fn starting_at(self, first: u64) -> Self {
        Self { first, ..self }
    }

    /// The key of operation number `op` (counted over all connections), where `newest` keys exist by now.
    #[inline]
    pub fn draw(&self, rng: &mut Rng, op: u64, newest: u64) -> u64 {
        let key = match &self.shape {
            Shape::Uniform => rng.below(self.count),
            Shape::Zipfian(zipfian) => self.scatter.apply(zipfian.rank(rng)),
            Shape::Latest(zipfian) => return newest.saturating_sub(1 + zipfian.rank(rng)),
            Shape::Sequential => op % self.count,
            Shape::Shuffled => self.scatter.apply(op % self.count),
        };
        self.first + key
    }
}

/// Ranks `0..count` with weight 1 / (rank + 1)^theta.
#[derive(Clone, Debug)]
pub struct Zipfian {
    count: f64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// Takes time proportional to `count`, once.
    ///
    /// # Panics
    /// When `theta` is not inside (0, 1), where the method holds.
    pub fn new(count: u64, theta: f64) -> Self {
        Self::with_zeta(count, theta, zeta(1..=count, theta))
    }

    /// The same where the sum of 1 / i^theta over `1..=count` is known.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn with_zeta(count: u64, theta: f64, total: f64) -> Self {
        assert!(theta > 0.0 && theta < 1.0, "zipfian skew must be inside (0, 1)");
        let (n, two) = (count as f64, zeta(1..=count.min(2), theta));
        let eta = if count > 2 { (1.0 - (2.0 / n).powf(1.0 - theta)) / (1.0 - two / total) } else { 0.0 };
        Self { count: n, theta, alpha: 1.0 / (1.0 - theta), zeta: total, eta }
    }

    /// Makes it one of more ranks, in time proportional to their number; of fewer it stays as it is.
    pub fn grow(&mut self, count: u64) {
        let before = self.count as u64;
        if count > before {
            let more = zeta(before + 1..=count, self.theta);
            *self = Self::with_zeta(count, self.theta, self.zeta + more);
        }
    }

    /// One rank; 0 is the hottest.
    #[inline]
    pub fn rank(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if self.count <= 2.0 || uz < 1.0 + 0.5f64.powf(self.theta) {
            return 1.min(self.count as u64 - 1);
        }
        let rank = (self.count * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64;
        rank.min(self.count as u64 - 1)
    }
}

/// The sum of 1 / i^theta.
fn zeta(ranks: std::ops::RangeInclusive<u64>, theta: f64) -> f64 {
    ranks.map(|i| (i as f64).powf(-theta)).sum()
}

/// A random-looking bijection of `0..count`: a Feistel network over the next even power of two, walked until the
/// result falls inside (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). Needs no memory.
#[derive(Clone, Debug)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// The same count and seed give the same bijection.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        let mut state = seed;
        Self { count, half_bits: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| splitmix64(&mut state)) }
    }

    /// Where `index` goes.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.count);
        let mut at = index;
        loop {
            at = self.round_trip(at);
            if at < self.count {
                return at;
            }
        }
    }

    #[inline]
    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (left, right) = (right, left ^ ((mixed >> 29) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square of observed counts against expected ones.
    fn chi_square(observed: &[u64], expected: impl Fn(usize) -> f64) -> f64 {
        observed.iter().enumerate().map(|(i, &o)| (o as f64 - expected(i)).powi(2) / expected(i)).sum()
    }

    /// 99 degrees of freedom: a right generator stays below 148 in 999 of 1000 seeds; the seed is fixed.
    #[test]
    fn uniform_keys_are_uniform() {
        let (stream, mut rng) = (KeyStream::new(Distribution::Uniform, 100, 1), Rng::new(11));
        let mut counts = [0; 100];
        for op in 0..100_000 {
            counts[stream.draw(&mut rng, op, 100) as usize] += 1;
        }
        assert!(chi_square(&counts, |_| 1000.0) < 148.0);
    }

    /// Gray's method is exact for the two hottest ranks and close for the rest: shares within 6 % of 1 / r^theta where
    /// the method is exact or the bucket is wide.
    #[test]
    fn zipfian_ranks_follow_the_power_law() {
        const N: u64 = 1000;
        const DRAWS: u64 = 2_000_000;
        let (zipfian, mut rng) = (Zipfian::new(N, THETA), Rng::new(5));
        let mut counts = vec![0u64; N as usize];
        for _ in 0..DRAWS {
            counts[zipfian.rank(&mut rng) as usize] += 1;
        }
        let zeta: f64 = (1..=N).map(|i| (i as f64).powf(-THETA)).sum();
        let share = |ranks: std::ops::Range<usize>| -> (f64, f64) {
            let want: f64 = ranks.clone().map(|r| ((r + 1) as f64).powf(-THETA)).sum::<f64>() / zeta;
            (counts[ranks].iter().sum::<u64>() as f64 / DRAWS as f64, want)
        };
        for (ranks, tolerance) in [(0..1, 0.01), (1..2, 0.01), (0..10, 0.06), (10..100, 0.06), (100..1000, 0.06)] {
            let (got, want) = share(ranks.clone());
            assert!((got / want - 1.0).abs() < tolerance, "ranks {ranks:?}: {got} against {want}");
        }
    }

    #[test]
    fn the_hottest_zipfian_keys_are_scattered() {
        let (stream, mut rng) = (KeyStream::new(Distribution::Zipfian { theta: THETA }, 1_000_000, 3), Rng::new(9));
        let mut counts = std::collections::HashMap::new();
        for op in 0..100_000 {
            *counts.entry(stream.draw(&mut rng, op, 1_000_000)).or_insert(0u32) += 1;
        }
        let mut hottest: Vec<_> = counts.into_iter().collect();
        hottest.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let halves = hottest[..50].iter().filter(|&&(key, _)| key < 500_000).count();
        assert!((10..40).contains(&halves), "{halves} of the 50 hottest keys are in the lower half");
    }

    #[test]
    fn latest_prefers_the_newest_and_stays_in_range() {
        let (stream, mut rng) = (KeyStream::new(Distribution::Latest { theta: THETA }, 1000, 3), Rng::new(9));
        let newest = 5000;
        let drawn: Vec<u64> = (0..20_000).map(|op| stream.draw(&mut rng, op, newest)).collect();
        assert!(drawn.iter().all(|&key| key < newest && key >= newest - 1000));
        let top_ten = drawn.iter().filter(|&&key| key >= newest - 10).count();
        assert!(top_ten > drawn.len() * 3 / 10, "{top_ten}");
    }

    #[test]
    fn sequential_and_shuffled_visit_every_key_once() {
        for distribution in [Distribution::Sequential, Distribution::Shuffled] {
            for count in [1, 2, 3, 1000, 4097] {
                let (stream, mut rng) = (KeyStream::new(distribution, count, 77), Rng::new(1));
                let mut seen = vec![false; count as usize];
                for op in 0..count {
                    let key = stream.draw(&mut rng, op, count) as usize;
                    assert!(!std::mem::replace(&mut seen[key], true), "{distribution:?}: key {key} twice");
                }
            }
        }
    }

    /// A shuffle that keeps neighbours together would hide the effect of random overwrites on an allocator.
    #[test]
    fn shuffled_neighbours_land_far_apart() {
        let order = Permutation::new(1_000_000, 5);
        let mean = (0..10_000).map(|i| order.apply(i).abs_diff(order.apply(i + 1))).sum::<u64>() / 10_000;
        assert!((300_000..370_000).contains(&mean), "mean distance {mean}, expected a third of the range");
    }
}
