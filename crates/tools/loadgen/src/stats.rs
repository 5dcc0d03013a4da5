//! Medians and their confidence intervals.

use base::random::Rng;
use serde::{Deserialize, Serialize};

/// A median with its 90 % bootstrap interval; both ends equal the median if there was one sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Median of the samples.
    pub median: f64,
    /// 5 % of resampled medians lie below.
    pub low: f64,
    /// 5 % of resampled medians lie above.
    pub high: f64,
}

const RESAMPLES: usize = 4000;
const TAIL: f64 = 0.05;

impl Estimate {
    /// The percentile bootstrap (Efron, 1979): medians of samples drawn with replacement. The same samples give the
    /// same interval. `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let median_of_all = median(&mut samples.to_vec())?;
        let mut rng = Rng::new(0xB007);
        let mut drawn = vec![0.0; samples.len()];
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                drawn.fill_with(|| samples[rng.below(samples.len() as u64) as usize]);
                median(&mut drawn)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let tail = (RESAMPLES as f64 * TAIL) as usize;
        Some(Self { median: median_of_all, low: medians[tail], high: medians[RESAMPLES - 1 - tail] })
    }

    /// A figure that is not sampled.
    pub fn exact(value: f64) -> Self {
        Self { median: value, low: value, high: value }
    }
}

/// The middle value, or the mean of both; `None` without values. Reorders them.
pub fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    Some(if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_none() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate::exact(7.0)));
    }

    /// The guarantee of a 90 % interval: over many experiments it contains the true median in about 90 % of them. For
    /// 15 samples the percentile bootstrap of the median is close to that; the seeds are fixed.
    #[test]
    fn the_interval_covers_the_true_median_as_often_as_it_says() {
        let mut rng = Rng::new(4);
        let experiments = 300;
        let covered = (0..experiments)
            .filter(|_| {
                let samples: Vec<f64> = (0..15).map(|_| rng.unit() + rng.unit() + rng.unit()).collect();
                let estimate = Estimate::of(&samples).unwrap();
                estimate.low <= 1.5 && 1.5 <= estimate.high
            })
            .count();
        assert!((255..=292).contains(&covered), "{covered} of {experiments}");
    }

    #[test]
    fn an_outlier_moves_neither_the_median_nor_the_near_end() {
        let mut samples = vec![1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06];
        samples.push(9.0);
        let estimate = Estimate::of(&samples).unwrap();
        assert!((estimate.median - 1.035).abs() < 1e-9 && estimate.low >= 1.0 && estimate.high < 9.0, "{estimate:?}");
    }
}
