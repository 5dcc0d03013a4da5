//! Targets as data, and the rule that decides whether one is met.
//!
//! A target on CPU time per operation is a factor over a peer measured in the same rounds. If the margin is below 10 %,
//! the noise of a shared machine is as large as the margin. Such a row needs 15 rounds of 5 s, and is met if the better
//! end of the 90 % interval of the ratio reaches the factor. Counts, such as bytes, are repeatable and are compared
//! directly.

use crate::results::{Better, ResultRow, Verdict};
use crate::stats::Estimate;

/// The target of a suite's row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// What is compared.
    pub kind: Kind,
    /// The bound that decides.
    pub must: f64,
    /// A stricter goal that does not decide.
    pub moonshot: Option<f64>,
}

/// How a target is stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// The subject must be this many times better than the peer of this name; timed, so subject to noise.
    Factor(&'static str),
    /// As [`Kind::Factor`], for counts that repeat.
    CountFactor(&'static str),
    /// The subject's own figure must not be above the bound.
    AtMost,
    /// As [`Kind::AtMost`], for a factor between two timed figures of the subject.
    FactorAtMost,
    /// The subject's own figure must not be below the bound.
    AtLeast,
}

/// Margins below this need more rounds.
const SMALL_MARGIN: f64 = 0.10;
/// Rounds and seconds that a small margin needs.
pub const SMALL_MARGIN_ROUNDS: usize = 15;
/// See [`SMALL_MARGIN_ROUNDS`].
pub const SMALL_MARGIN_SECONDS: f64 = 5.0;

impl Target {
    /// A timed target over the figures of Valkey.
    pub const fn over_valkey(must: f64, moonshot: Option<f64>) -> Self {
        Self { kind: Kind::Factor("valkey"), must, moonshot }
    }

    /// A bound on a count.
    pub const fn at_most(must: f64, moonshot: Option<f64>) -> Self {
        Self { kind: Kind::AtMost, must, moonshot }
    }

    /// A bound on the ratio of two timed costs of the subject.
    pub const fn factor_at_most(must: f64) -> Self {
        Self { kind: Kind::FactorAtMost, must, moonshot: None }
    }

    /// A bound from below on a figure.
    pub const fn at_least(must: f64, moonshot: Option<f64>) -> Self {
        Self { kind: Kind::AtLeast, must, moonshot }
    }

    /// Judges a row. `None` if the peer or the subject is missing from it.
    pub fn judge(&self, row: &ResultRow, subject: &str, better: Better) -> Option<Verdict> {
        let (Kind::Factor(peer) | Kind::CountFactor(peer)) = self.kind else {
            return Some(self.judge_own(row, row.value_of(subject)?));
        };
        let ratio = row.ratios.iter().find(|ratio| ratio.peer == peer)?.value;
        let timed = matches!(self.kind, Kind::Factor(_));
        let small_margin = timed && self.must - 1.0 < SMALL_MARGIN;
        let reached = if small_margin { ratio.high } else { ratio.median };
        let target = match better {
            Better::Lower => format!("{peer} / {subject} at least {:.2}\u{d7}", self.must),
            Better::Higher => format!("{subject} / {peer} at least {:.2}\u{d7}", self.must),
        };
        let mut verdict = self.verdict(target, Some(peer), reached, |reached, bound| reached >= bound);
        verdict.caution = if small_margin { self.too_short(row) } else { None };
        Some(verdict)
    }

    /// Judges the subject's own figure.
    fn judge_own(&self, row: &ResultRow, own: Estimate) -> Verdict {
        if self.kind == Kind::AtLeast {
            let target = format!("at least {}", self.must);
            return self.verdict(target, None, own.median, |reached, bound| reached >= bound);
        }
        let small_margin = self.kind == Kind::FactorAtMost && self.must - 1.0 < SMALL_MARGIN;
        let reached = if small_margin { own.low } else { own.median };
        let target = format!("at most {}", self.must);
        let mut verdict = self.verdict(target, None, reached, |reached, bound| reached <= bound);
        verdict.caution = if small_margin { self.too_short(row) } else { None };
        verdict
    }

    fn verdict(&self, target: String, over: Option<&str>, reached: f64, reaches: impl Fn(f64, f64) -> bool) -> Verdict {
        let moonshot_met = self.moonshot.is_some_and(|bound| reaches(reached, bound));
        let (must, over) = (self.must, over.map(str::to_owned));
        Verdict { target, must, over, reached, met: reaches(reached, self.must), moonshot_met, caution: None }
    }

    fn too_short(&self, row: &ResultRow) -> Option<String> {
        let windows = row.cells.iter().map(|cell| cell.windows.len()).min().unwrap_or(0);
        let seconds = row.cells.iter().flat_map(|cell| &cell.windows).map(|window| window.seconds);
        let shortest = seconds.fold(f64::INFINITY, f64::min);
        let enough = windows >= SMALL_MARGIN_ROUNDS && shortest >= SMALL_MARGIN_SECONDS * 0.98;
        (!enough).then(|| {
            format!("a quick look: a margin this small needs {SMALL_MARGIN_ROUNDS} rounds of {SMALL_MARGIN_SECONDS} s")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Cell;

    fn row(own: &[f64], peer: &[f64]) -> ResultRow {
        let cells = vec![Cell::new("onggi", own.to_vec()), Cell::new("valkey", peer.to_vec())];
        ResultRow::new("row".into(), cells, "onggi", Better::Lower)
    }

    #[test]
    fn a_large_margin_is_judged_by_the_median() {
        let noisy = row(&[1.0, 1.0, 1.0], &[1.2, 1.25, 1.6]);
        let verdict = Target::over_valkey(1.3, None).judge(&noisy, "onggi", Better::Lower).unwrap();
        assert!(!verdict.met && verdict.reached == 1.25 && verdict.caution.is_none(), "{verdict:?}");
        let verdict = Target::over_valkey(1.25, Some(1.5)).judge(&noisy, "onggi", Better::Lower).unwrap();
        assert!(verdict.met && !verdict.moonshot_met);
    }

    #[test]
    fn a_small_margin_is_judged_by_the_better_end_and_wants_enough_rounds() {
        let close = row(&[1.0, 1.0, 1.0], &[1.02, 1.04, 1.06]);
        let verdict = Target::over_valkey(1.05, None).judge(&close, "onggi", Better::Lower).unwrap();
        assert!(verdict.met && verdict.reached == 1.06, "{verdict:?}");
        assert!(verdict.caution.unwrap().contains("15 rounds"));
    }

    #[test]
    fn counts_are_judged_as_they_are() {
        let bytes = row(&[17.0], &[33.0]);
        assert!(!Target::at_most(16.0, None).judge(&bytes, "onggi", Better::Lower).unwrap().met);
        assert!(Target::at_most(18.0, None).judge(&bytes, "onggi", Better::Lower).unwrap().met);
        let hits = Target { kind: Kind::CountFactor("valkey"), must: 1.0, moonshot: None };
        let ratio = ResultRow::new("hits".into(), bytes.cells, "onggi", Better::Higher);
        let verdict = hits.judge(&ratio, "onggi", Better::Higher).unwrap();
        assert!(!verdict.met && verdict.caution.is_none());
    }

    #[test]
    fn own_factors_are_judged_by_the_better_end_where_the_margin_is_small() {
        let cost = row(&[1.02, 1.06, 1.10], &[1.0, 1.0, 1.0]);
        let judge = |must| Target::factor_at_most(must).judge(&cost, "onggi", Better::Lower).unwrap();
        assert!(judge(1.05).met && judge(1.05).reached == 1.02 && judge(1.05).caution.is_some());
        assert!(!judge(1.01).met);
        assert!(judge(1.15).met && judge(1.15).reached == 1.06 && judge(1.15).caution.is_none());
    }

    #[test]
    fn a_bound_from_below_wants_more() {
        let share = row(&[0.9], &[0.5]);
        let judge = |must, moonshot| Target::at_least(must, Some(moonshot)).judge(&share, "onggi", Better::Higher);
        let verdict = judge(0.85, 0.95).unwrap();
        assert!(verdict.met && !verdict.moonshot_met && verdict.target == "at least 0.85", "{verdict:?}");
        assert!(!judge(0.91, 0.95).unwrap().met);
    }

    #[test]
    fn without_the_peer_there_is_no_verdict() {
        let alone = ResultRow::new("row".into(), vec![Cell::new("onggi", vec![1.0])], "onggi", Better::Lower);
        assert_eq!(Target::over_valkey(1.3, None).judge(&alone, "onggi", Better::Lower), None);
    }
}
