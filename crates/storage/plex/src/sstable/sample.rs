//! Which of a table's keys take much: a sample by hash, for tables whose entries differ in length.
//!
//! Filters of newer tables say which keys of the sample they replace. The estimate of garbage then counts what these
//! keys take, not a mean over all keys: a counter of 10 bytes that is often updated is no garbage of its neighbour of
//! 10 KB.
//!
//! A key is in the sample if some bits of its hash are zero, as many as keep it short. Tables of entries of about one
//! length have none.

use base::varint;

/// Keys in a sample at most.
const LEN_MAX: usize = 256;

/// First bit of the hash that decides. The sketch uses the top bits; a filter uses all of them.
const FIRST_BIT: u32 = 20;

/// Square of the coefficient of variation of lengths from which a table has a sample.
const VARIATION_MIN: f64 = 0.25;

/// Hash and length of some keys with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample(Vec<(u64, u64)>);

impl Sample {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }

    /// The share of the bytes whose keys are alive.
    pub fn share(&self, is_alive: impl Fn(u64) -> bool) -> f64 {
        let (mut alive, mut all) = (0, 0);
        for (hash, bytes) in &self.0 {
            all += bytes;
            alive += if is_alive(*hash) { *bytes } else { 0 };
        }
        alive as f64 / all.max(1) as f64
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.0.len() as u64);
        for (hash, bytes) in &self.0 {
            out.extend_from_slice(&hash.to_le_bytes());
            varint::put(out, *bytes);
        }
    }

    pub fn take(rest: &mut &[u8]) -> Option<Self> {
        let count = varint::take(rest).filter(|count| *count <= LEN_MAX as u64)?;
        let mut entries = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (hash, behind) = rest.split_first_chunk()?;
            *rest = behind;
            entries.push((u64::from_le_bytes(*hash), varint::take(rest)?));
        }
        Some(Self(entries))
    }
}

/// Gathers a sample while a table is written.
#[derive(Debug, Default)]
pub(super) struct SampleBuilder {
    entries: Vec<(u64, u64)>,
    /// How many bits of a hash are zero.
    bits: u32,
    count: f64,
    sum: f64,
    sum_of_squares: f64,
}

impl SampleBuilder {
    /// The newest version of a key, if it is a value, with its length.
    pub fn add(&mut self, hash: u64, bytes: u64) {
        self.count += 1.0;
        self.sum += bytes as f64;
        self.sum_of_squares += bytes as f64 * bytes as f64;
        if is_sampled(hash, self.bits) {
            self.entries.push((hash, bytes));
            if self.entries.len() > LEN_MAX {
                self.bits += 1;
                self.entries.retain(|(hash, _)| is_sampled(*hash, self.bits));
            }
        }
    }

    pub fn finish(self) -> Sample {
        let mean = self.sum / self.count.max(1.0);
        let variance = self.sum_of_squares / self.count.max(1.0) - mean * mean;
        let is_mixed = variance > VARIATION_MIN * mean * mean;
        Sample(if is_mixed { self.entries } else { Vec::new() })
    }
}

fn is_sampled(hash: u64, bits: u32) -> bool {
    (hash >> FIRST_BIT).trailing_zeros() >= bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// A sample is short, distinguishes large keys from small ones, and survives encoding; entries of one length have
    /// none.
    #[test]
    fn a_sample_tells_what_is_alive() {
        let mut rng = Rng::new(3);
        let (mut mixed, mut even) = (SampleBuilder::default(), SampleBuilder::default());
        let hashes: Vec<u64> = (0..20_000).map(|_| rng.next_u64()).collect();
        let bytes = |hash: u64| if hash & 1 == 0 { 10_000 } else { 30 };
        hashes.iter().for_each(|hash| mixed.add(*hash, bytes(*hash)));
        hashes.iter().for_each(|hash| even.add(*hash, 200));
        assert!(even.finish().is_empty());
        let sample = mixed.finish();
        assert!((LEN_MAX / 4..=LEN_MAX).contains(&sample.0.len()));
        assert!(sample.share(|hash| hash & 1 == 0) > 0.99 && sample.share(|hash| hash & 1 == 1) < 0.01);
        let mut encoded = Vec::new();
        sample.encode(&mut encoded);
        let mut rest = &encoded[..];
        assert_eq!(Sample::take(&mut rest), Some(sample));
        assert!(rest.is_empty());
        assert_eq!(Sample::take(&mut &encoded[..encoded.len() - 1]), None);
    }
}
