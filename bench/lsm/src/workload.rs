//! The workload: every key once, in a scattered order, then nine updates per key, uniform or zipfian. Or every key
//! once, in order.

use base::random::splitmix64;

/// Updates per key in the second phase.
pub const UPDATES_PER_KEY: u64 = 9;

/// Bytes of key and value together.
pub const RECORD_BYTES: u64 = 210;

/// How updates choose their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All keys alike.
    Uniform,
    /// YCSB's, with constant 0.99.
    Zipfian,
    /// There are no updates, and keys come in order.
    Sequential,
}

impl Distribution {
    /// Number of writes of a workload with `keys` keys.
    pub fn writes(self, keys: u64) -> u64 {
        match self {
            Self::Sequential => keys,
            Self::Uniform | Self::Zipfian => keys * (1 + UPDATES_PER_KEY),
        }
    }
}

/// One write after the other.
pub struct Workload {
    keys: u64,
    distribution: Distribution,
    seq: u64,
    state: u64,
    zipf: Option<Zipfian>,
    key: [u8; 10],
    value: [u8; 200],
}

impl Workload {
    pub fn new(keys: u64, distribution: Distribution) -> Self {
        let zipf = (distribution == Distribution::Zipfian).then(|| Zipfian::new(keys));
        Self { keys, distribution, seq: 0, state: 42, zipf, key: [0; 10], value: [0; 200] }
    }

    /// Writes of both phases.
    pub fn len(&self) -> u64 {
        self.distribution.writes(self.keys)
    }

    /// The next key and value.
    pub fn next(&mut self) -> (&[u8], &[u8]) {
        let rank = if self.seq < self.keys {
            self.seq
        } else {
            let word = splitmix64(&mut self.state);
            match &self.zipf {
                Some(zipf) => zipf.rank(word),
                None => word % self.keys,
            }
        };
        let id = match self.distribution {
            Distribution::Sequential => rank,
            Distribution::Uniform | Distribution::Zipfian => scattered(rank, self.keys),
        };
        self.key = digits(2 * id);
        let mut words = self.seq.wrapping_mul(0x2545_F491_4F6C_DD1D).wrapping_add(99);
        self.value[..8].copy_from_slice(&id.to_le_bytes());
        self.value[8..16].copy_from_slice(&self.seq.to_le_bytes());
        for chunk in self.value[16..].chunks_exact_mut(8) {
            chunk.copy_from_slice(&splitmix64(&mut words).to_le_bytes());
        }
        self.seq += 1;
        (&self.key, &self.value)
    }
}

/// The place of a rank in the key space: neighbouring ranks are far apart.
pub fn scattered(rank: u64, keys: u64) -> u64 {
    (rank * 2_654_435_761 + 12_345) % keys
}

/// A key as it is stored. Even numbers below twice the number of keys exist, odd ones do not.
pub fn digits(mut number: u64) -> [u8; 10] {
    let mut key = [0; 10];
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    key
}

/// Ranks with probability proportional to 1 / (rank + 1)^0.99 (Gray et al., SIGMOD 1994, as in YCSB).
pub struct Zipfian {
    keys: f64,
    zeta: f64,
    eta: f64,
}

const THETA: f64 = 0.99;

impl Zipfian {
    pub fn new(keys: u64) -> Self {
        let zeta = |n: u64| (1..=n).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
        let (all, two) = (zeta(keys), zeta(2));
        let eta = (1.0 - (2.0 / keys as f64).powf(1.0 - THETA)) / (1.0 - two / all);
        Self { keys: keys as f64, zeta: all, eta }
    }

    pub fn rank(&self, word: u64) -> u64 {
        let u = (word >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(THETA) {
            1
        } else {
            let rank = self.keys * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
            (rank as u64).min(self.keys as u64 - 1)
        }
    }
}
