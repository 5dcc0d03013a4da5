//! Counts of a run, and its lines: `ok - NAME`, `not ok - NAME: REASON`.

use crate::judge::Verdict;
use std::time::Duration;

/// What a run has found so far.
#[derive(Debug, Default)]
pub struct Report {
    /// The run's name.
    pub name: String,
    /// Crashes that were survived.
    pub cycles: u64,
    /// Starts that were killed before they ended.
    pub rekills: u64,
    /// Operations that were answered.
    pub answered: u64,
    /// Answered operations that were gone afterwards; none but in async mode.
    pub lost: u64,
    /// The longest span of answers that was gone, in microseconds.
    pub lost_us: u64,
    /// The longest start.
    pub start_max: Duration,
    /// Checks that failed.
    pub failed: u64,
}

impl Report {
    /// Of a run with a name.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// A crash that was survived.
    pub fn cycle(&mut self, verdict: &Verdict, start: Duration) {
        self.cycles += 1;
        self.answered += verdict.answered;
        self.lost += verdict.lost;
        self.lost_us = self.lost_us.max(verdict.lost_us);
        self.start_max = self.start_max.max(start);
    }

    /// A check that held.
    pub fn pass(&self, what: &str) {
        println!("ok - {}: {what}", self.name);
    }

    /// A figure besides.
    pub fn remark(&self, text: &str) {
        println!("   {}: {text}", self.name);
    }

    /// A check that failed.
    pub fn fail(&mut self, what: &str, reason: &str) {
        self.failed += 1;
        println!("not ok - {}: {what}: {reason}", self.name);
    }

    /// A wait or resident memory that is beyond its bound, where nothing else is wrong: other work on the machine can
    /// spoil it, so the runner may repeat the stage.
    pub fn measured(&mut self, what: &str, reason: &str) {
        self.failed += 1;
        println!("not ok - {}: {what}: {reason} # MEASURED", self.name);
    }

    /// A crash after which a promise was broken.
    pub fn broken(&mut self, cycle: u64, wrong: &[String]) {
        self.fail(&format!("crash {cycle}"), &wrong.join("; "));
    }

    /// The closing lines.
    pub fn close(&self) {
        if self.cycles > 0 {
            println!("   {}", self.summary());
        }
        if self.failed == 0 && self.cycles > 0 {
            self.pass("nothing that was promised is lost, torn, doubled or back");
        }
    }

    /// The figures, on one line.
    pub fn summary(&self) -> String {
        format!(
            "{}: {} crashes, {} starts killed, {} answered, {} of them gone ({} ms at most), slowest start {} ms",
            self.name,
            self.cycles,
            self.rekills,
            self.answered,
            self.lost,
            self.lost_us / 1000,
            self.start_max.as_millis()
        )
    }
}
