//! From registers to a cardinality: Ertl's improved raw estimator, which needs no correction by tables and looks only
//! at how many registers have each rank.

use super::{RANK_MAX, REGISTER_COUNT};

/// Ranks that a register of six bits can have, whether or not a hash can.
const RANKS: usize = 64;

/// Registers by their rank. Neighbours are counted in tables of their own: most have the same rank, and an addition
/// would wait for the one before it.
pub(super) struct Histogram([[u32; RANKS]; 4]);

impl Histogram {
    /// No registers.
    pub(super) fn new() -> Self {
        Self([[0; RANKS]; 4])
    }

    /// Registers of this rank.
    pub(super) fn add(&mut self, rank: u8, registers: usize) {
        self.0[0][usize::from(rank) % RANKS] += registers as u32;
    }

    /// Counts eight registers.
    #[inline]
    pub(super) fn count(&mut self, ranks: [u8; 8]) {
        for (at, rank) in ranks.into_iter().enumerate() {
            self.0[at % 4][usize::from(rank) % RANKS] += 1;
        }
    }

    fn of(&self, rank: u8) -> f64 {
        f64::from(self.0.iter().map(|table| table[usize::from(rank)]).sum::<u32>())
    }

    /// The cardinality. The sums are made in the order in which Valkey makes them, so that both round alike.
    pub(super) fn cardinality(&self) -> u64 {
        const ALPHA: f64 = 0.721_347_520_444_481_7; // 1 / (2 ln 2)
        let registers = REGISTER_COUNT as f64;
        let mut sum = registers * tau((registers - self.of(RANK_MAX)) / registers);
        for rank in (1..RANK_MAX).rev() {
            sum = (sum + self.of(rank)) * 0.5;
        }
        sum += registers * sigma(self.of(0) / registers);
        (ALPHA * registers * registers / sum).round() as u64
    }
}

/// Stands for registers without an element.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut weight, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

/// Stands for registers whose rank is the highest there is.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut weight, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}
