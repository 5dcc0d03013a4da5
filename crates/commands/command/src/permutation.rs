//! All numbers below a bound in a random order; each is computed separately, without memory.
//!
//! A Feistel network permutes the numbers of two halves of bits. From a number beyond the bound it takes the next of
//! its cycle, until one is below (J. Black, P. Rogaway: Ciphers with Arbitrary Finite Domains, CT-RSA 2002). Four
//! rounds give an order that is indistinguishable from a random one (M. Luby, C. Rackoff, SIAM J. Computing 17(2),
//! 1988) where halves are long. Short halves, and a walk along a cycle, need more rounds: with four, halves of two bits
//! and the bound 7, one number came a third more often.

use base::Rng;
use base::random::splitmix64;

const ROUNDS: usize = 8;

/// See the module.
pub struct Permutation {
    bound: u64,
    /// Bits of a half: but for small bounds there are fewer than four times as many numbers of two halves as there are
    /// below the bound.
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// One of the numbers below `bound`.
    pub fn new(bound: u64, rng: &mut Rng) -> Self {
        let bits = u64::BITS.saturating_sub(bound.saturating_sub(1).leading_zeros());
        Self { bound, half_bits: bits.div_ceil(2).max(4), keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    /// What stands at this place, which is below the bound.
    pub fn of(&self, place: u64) -> u64 {
        let mut number = self.next(place);
        while number >= self.bound {
            number = self.next(number);
        }
        number
    }

    fn next(&self, number: u64) -> u64 {
        let mask = 1u64.wrapping_shl(self.half_bits).wrapping_sub(1);
        let (mut left, mut right) = (number.wrapping_shr(self.half_bits), number & mask);
        for key in self.keys {
            let mixed = splitmix64(&mut (key ^ right)) & mask;
            (left, right) = (right, left ^ mixed);
        }
        left.wrapping_shl(self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number below the bound stands at one place.
    #[test]
    fn every_number_has_a_place() {
        let mut rng = Rng::new(1);
        for bound in (1..70).chain([255, 256, 257, 1000]) {
            let permutation = Permutation::new(bound, &mut rng);
            let mut numbers: Vec<u64> = (0..bound).map(|place| permutation.of(place)).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, Vec::from_iter(0..bound));
        }
    }

    /// Whatever the place, each number stands there about equally often.
    #[test]
    fn orders_are_even() {
        let (mut rng, rounds) = (Rng::new(2), if cfg!(miri) { 200 } else { 20_000 });
        for place in [0, 6] {
            let mut counts = [0u32; 7];
            for _ in 0..rounds {
                counts[Permutation::new(7, &mut rng).of(place) as usize] += 1;
            }
            let expected = f64::from(rounds) / 7.0;
            assert!(
                counts.iter().all(|count| (f64::from(*count) - expected).abs() < 6.0 * expected.sqrt()),
                "{counts:?}"
            );
        }
    }

    #[test]
    fn large_bounds() {
        let permutation = Permutation::new(i64::MAX as u64, &mut Rng::new(3));
        assert!((0..100).all(|place| permutation.of(place) < i64::MAX as u64));
    }
}
