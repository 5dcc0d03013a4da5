//! Randomness, as a trait: the machine's entropy in production, a seed in tests and simulation.

/// Where seeds come from.
pub trait Entropy: Send + Sync {
    /// Fills the slice with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]);

    /// A generator seeded from this source.
    fn rng(&self) -> Rng {
        let mut seed = [0; 8];
        self.fill(&mut seed);
        Rng::new(u64::from_le_bytes(seed))
    }
}

/// The operating system's random number generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    /// # Panics
    /// When the operating system has no entropy to give: nothing that needs a secret may continue then.
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system's random number generator answers");
    }
}

/// Entropy that repeats exactly, for simulation.
#[derive(Debug)]
pub struct SeededEntropy(std::sync::Mutex<Rng>);

impl SeededEntropy {
    /// The same seed gives the same bytes in the same order.
    pub fn new(seed: u64) -> Self {
        Self(std::sync::Mutex::new(Rng::new(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).fill(bytes);
    }
}

/// A small fast generator (xoshiro256++ by Blackman and Vigna, seeded by splitmix64). Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The same seed gives the same sequence, for ever.
    pub fn new(seed: u64) -> Self {
        let mut seeder = seed;
        Self { state: std::array::from_fn(|_| splitmix64(&mut seeder)) }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound`; 0 when `bound` is 0. Bias below 2^-32 for bounds below 2^32 (Lemire's multiplication).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True once in `n` draws.
    #[inline]
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Uniform in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fills the slice.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// One step of splitmix64 (Steele, Lea and Flood, 2014).
pub fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_bounds_hold() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        for _ in 0..1000 {
            assert_eq!(a.next_u64(), b.next_u64());
            assert!(a.below(10) < 10);
            assert_eq!(b.below(10) / 10, 0);
            let unit = a.unit();
            assert!((0.0..1.0).contains(&unit));
            b.unit();
        }
    }
}
