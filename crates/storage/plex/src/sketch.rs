//! HyperLogLog: how many different keys a table has, in 4 KiB, and what a union of tables would have.
//!
//! Fed by the 64-bit hash that the filters use, so a key is hashed once. 2^12 registers give a standard error of 1.6 %.
//! The estimator is the one of O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017),
//! section "improved raw estimator": no tables of corrections, no jump between ranges.

/// Bits of the hash that choose a register.
const INDEX_BITS: u32 = 12;

/// Number of registers.
pub const REGISTER_COUNT: usize = 1 << INDEX_BITS;

/// The largest value of a register: all remaining bits of the hash are zero.
const RANK_MAX: u8 = (64 - INDEX_BITS + 1) as u8;

/// A sketch as a table keeps it in memory: 4 KiB at most, and no more than three bytes per key.
#[derive(Clone, Debug)]
pub struct KeptSketch(Kept);

#[derive(Clone, Debug)]
enum Kept {
    /// Numbers (two bytes, the smaller first) and values of the registers that are not zero.
    Sparse(Box<[[u8; 3]]>),
    Dense(Sketch),
}

impl KeptSketch {
    /// About how many different elements it has.
    pub fn estimate(&self) -> f64 {
        match &self.0 {
            Kept::Dense(sketch) => sketch.estimate(),
            Kept::Sparse(_) => {
                let mut sketch = Sketch::default();
                sketch.union(self);
                sketch.estimate()
            }
        }
    }

    /// Memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Kept::Dense(_) => REGISTER_COUNT,
            Kept::Sparse(registers) => size_of_val(&**registers),
        }
    }
}

/// A set of hashes, reduced to what counting needs. The union of two sets is the maximum of each register.
#[derive(Clone, PartialEq, Eq)]
pub struct Sketch {
    registers: Box<[u8]>,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { registers: vec![0; REGISTER_COUNT].into_boxed_slice() }
    }
}

impl std::fmt::Debug for Sketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sketch(about {:.0})", self.estimate())
    }
}

impl Sketch {
    /// Adds one element by its hash.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let index = (hash >> (64 - INDEX_BITS)) as usize;
        // The bit after the last one bounds the rank.
        let rank = ((hash << INDEX_BITS) | 1 << (INDEX_BITS - 1)).leading_zeros() as u8 + 1;
        let register = &mut self.registers[index];
        *register = (*register).max(rank);
    }

    /// Adds all elements of another set.
    pub fn union(&mut self, other: &KeptSketch) {
        match &other.0 {
            Kept::Dense(other) => {
                for (mine, theirs) in self.registers.iter_mut().zip(&other.registers) {
                    *mine = (*mine).max(*theirs);
                }
            }
            Kept::Sparse(registers) => {
                for [low, high, theirs] in registers {
                    let mine = &mut self.registers[usize::from(u16::from_le_bytes([*low, *high]))];
                    *mine = (*mine).max(*theirs);
                }
            }
        }
    }

    /// The same in as little memory as it needs.
    pub fn into_kept(self) -> KeptSketch {
        let used = self.registers.iter().filter(|register| **register > 0).count();
        if used * size_of::<[u8; 3]>() >= REGISTER_COUNT {
            return KeptSketch(Kept::Dense(self));
        }
        let numbered = self.registers.iter().zip(0u16..).filter(|(register, _)| **register > 0);
        let sparse = numbered.map(|(register, number)| {
            let [low, high] = number.to_le_bytes();
            [low, high, *register]
        });
        KeptSketch(Kept::Sparse(sparse.collect()))
    }

    /// About how many different elements were added.
    pub fn estimate(&self) -> f64 {
        let mut counts = [0u32; RANK_MAX as usize + 1];
        for &register in &self.registers {
            counts[usize::from(register)] += 1;
        }
        let m = REGISTER_COUNT as f64;
        let mut z = m * tau(1.0 - f64::from(counts[usize::from(RANK_MAX)]) / m);
        for &count in counts[1..usize::from(RANK_MAX)].iter().rev() {
            z = 0.5 * (z + f64::from(count));
        }
        z += m * sigma(f64::from(counts[0]) / m);
        m * m / (2.0 * std::f64::consts::LN_2 * z)
    }

    /// The smallest register, then each register's distance to it as that many zero bits and a one bit, low bits first.
    pub fn encode(&self) -> Vec<u8> {
        let base = self.registers.iter().copied().min().unwrap_or(0);
        let mut bytes = vec![base];
        // Bits not written yet, and how many they are: fewer than 32 between two registers.
        let (mut bits, mut len) = (0u64, 0u32);
        for &register in &self.registers {
            len += u32::from(register - base);
            while len >= 32 {
                bytes.extend_from_slice(&(bits as u32).to_le_bytes());
                bits >>= 32;
                len -= 32;
            }
            bits |= 1 << len;
            len += 1;
        }
        bytes.extend_from_slice(&bits.to_le_bytes()[..len.div_ceil(8) as usize]);
        bytes
    }

    /// Undoes [`encode`](Self::encode); `None` unless the bytes are exactly an encoding.
    pub fn decode(bytes: &[u8]) -> Option<Sketch> {
        let (&base, rest) = bytes.split_first()?;
        let mut chunks = rest.chunks(4);
        let (mut bits, mut len) = (0u64, 0u32);
        let mut registers = Vec::with_capacity(REGISTER_COUNT);
        while registers.len() < REGISTER_COUNT {
            let mut distance = 0;
            while bits == 0 {
                distance += len;
                let chunk = chunks.next().filter(|_| distance <= u32::from(RANK_MAX))?;
                let mut word = [0; 4];
                word[..chunk.len()].copy_from_slice(chunk);
                (bits, len) = (u64::from(u32::from_le_bytes(word)), 8 * chunk.len() as u32);
            }
            let zeros = bits.trailing_zeros();
            bits >>= zeros + 1;
            len -= zeros + 1;
            let rank = u8::try_from(distance + zeros).ok().and_then(|distance| base.checked_add(distance));
            registers.push(rank.filter(|rank| *rank <= RANK_MAX)?);
        }
        let sketch = Sketch { registers: registers.into_boxed_slice() };
        (sketch.encode() == bytes).then_some(sketch)
    }
}

/// Ertl's sigma: x + sum of x^(2^k) * 2^(k-1).
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// Ertl's tau: (1 - x - sum of (1 - x^(2^-k))^2 * 2^-k) / 3.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash;

    fn of(range: std::ops::Range<u64>) -> Sketch {
        let mut sketch = Sketch::default();
        range.for_each(|i| sketch.add(hash(&i.to_be_bytes())));
        sketch
    }

    /// Within four standard errors from nothing to a million, without a jump between ranges.
    #[test]
    fn estimates() {
        assert!(of(0..0).estimate().abs() < 1e-9);
        for n in [1, 10, 300, 2000, 5000, 10_000, 12_000, 20_000, 100_000, 1_000_000] {
            let error = of(0..n).estimate() / n as f64 - 1.0;
            assert!(error.abs() < 0.065, "{n}: {error}");
        }
    }

    /// The union of overlapping sets counts common elements once.
    #[test]
    fn unions() {
        let mut union = of(0..20_000);
        union.union(&of(10_000..30_000).into_kept());
        assert_eq!(union, of(0..30_000));
    }

    /// What is kept in memory is the same set, in at most three bytes per key and 4 KiB. It used to take 4 KiB always.
    #[test]
    fn few_keys_take_little_memory() {
        for n in [0, 1, 80, 1000, 1500, 30_000] {
            let (sketch, mut back) = (of(0..n), Sketch::default());
            let kept = sketch.clone().into_kept();
            back.union(&kept);
            assert_eq!(back, sketch);
            assert_eq!(kept.estimate(), sketch.estimate());
            assert!(kept.bytes() <= (3 * n as usize).min(REGISTER_COUNT), "{n}: {}", kept.bytes());
        }
    }

    /// The encoding is small and exact; a damaged one is refused or is another valid one, never a panic.
    #[test]
    fn encoding() {
        for (n, at_most) in [(0, 600), (1200, 1000), (30_000, 2800), (1_000_000, 2800)] {
            let sketch = of(0..n);
            let bytes = sketch.encode();
            assert!(bytes.len() < at_most, "{n}: {}", bytes.len());
            assert!(Sketch::decode(&bytes).is_some_and(|s| s == sketch));
            assert!(Sketch::decode(&bytes[..bytes.len() - 1]).is_none());
            assert!(Sketch::decode(&[&bytes[..], &[0]].concat()).is_none());
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x10;
                let _ = Sketch::decode(&damaged);
            }
        }
        assert!(Sketch::decode(&[]).is_none());
    }
}
