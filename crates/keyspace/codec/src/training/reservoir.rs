//! A fair choice of samples from a stream of unknown length, within a number and bytes.

use base::Rng;

/// Samples, each value of the stream with the same chance (Vitter, Algorithm R, ACM TOMS 1985). When bytes run out,
/// samples are dropped at random.
#[derive(Default)]
pub(super) struct Reservoir {
    samples: Vec<Vec<u8>>,
    bytes: usize,
    /// Values offered.
    seen: u64,
}

impl Reservoir {
    /// Takes the value or not; afterwards there are at most `count_max` samples of `bytes_max` bytes.
    pub(super) fn offer(&mut self, value: &[u8], count_max: usize, bytes_max: usize, rng: &mut Rng) {
        self.seen += 1;
        if self.samples.len() < count_max && self.bytes + value.len() <= bytes_max {
            self.bytes += value.len();
            self.samples.push(value.to_vec());
            return;
        }
        let place = rng.below(self.seen) as usize;
        if let Some(sample) = self.samples.get_mut(place) {
            self.bytes = self.bytes - sample.len() + value.len();
            sample.clear();
            sample.extend_from_slice(value);
            // A short value's room would else stay with it.
            sample.shrink_to(2 * value.len());
        }
        while self.bytes > bytes_max && !self.samples.is_empty() {
            let victim = rng.below(self.samples.len() as u64) as usize;
            self.bytes -= self.samples.swap_remove(victim).len();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All samples; then it is as new.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(self).samples
    }
}

/// Any order with the same chance (Fisher and Yates).
pub(super) fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for end in (1..items.len()).rev() {
        items.swap(end, rng.below(end as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Early and late values have the same chance to be kept.
    #[test]
    fn the_choice_is_fair() {
        let mut kept = [0u32; 10];
        for seed in 0..400 {
            let (mut reservoir, mut rng) = (Reservoir::default(), Rng::new(seed));
            for n in 0..1000u32 {
                reservoir.offer(&n.to_le_bytes(), 50, 1 << 20, &mut rng);
            }
            for sample in reservoir.take() {
                kept[u32::from_le_bytes(sample.try_into().expect("four bytes")) as usize / 100] += 1;
            }
        }
        // 2000 expected in each tenth; the deviation is about 42.
        assert!(kept.iter().all(|count| (1800..2200).contains(count)), "{kept:?}");
    }

    /// Values of all sizes never take more than the bounds.
    #[test]
    fn bounds_hold() {
        let (mut reservoir, mut rng) = (Reservoir::default(), Rng::new(1));
        for _ in 0..5000 {
            let value = vec![0; rng.below(3000) as usize];
            let bytes_max = 10_000 + rng.below(10_000) as usize;
            reservoir.offer(&value, 20, bytes_max, &mut rng);
            assert!(reservoir.len() <= 20 && reservoir.bytes() <= bytes_max);
            assert_eq!(reservoir.bytes(), reservoir.samples.iter().map(Vec::len).sum());
        }
        assert!(reservoir.len() > 3);
    }
}
