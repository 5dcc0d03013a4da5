//! Progress on standard error: one bar over all steps of a run, with the current activity next to it.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::{Cell, RefCell};

/// A bar that counts steps, each from 0 to 1. Hidden if standard error is not a terminal.
#[derive(Debug)]
pub struct Steps {
    bar: ProgressBar,
    /// Steps begun.
    begun: Cell<u64>,
    /// Lines and warnings that are not printed, of quiet steps.
    kept: Option<RefCell<Vec<String>>>,
}

/// Positions within one step.
const STEP: u64 = 1000;

impl Default for Steps {
    fn default() -> Self {
        Self::new()
    }
}

impl Steps {
    /// A bar with an unknown number of steps.
    pub fn new() -> Self {
        let bar = ProgressBar::new(STEP);
        let style =
            ProgressStyle::with_template("[{bar:24}] {percent:>3} % {elapsed_precise} left {eta:<5} {wide_msg}");
        bar.set_style(style.expect("a constant template is valid").progress_chars("=> "));
        Self { bar, begun: Cell::new(0), kept: None }
    }

    /// Steps that show nothing, and keep their lines: see [`Steps::kept`].
    pub fn quiet() -> Self {
        Self { bar: ProgressBar::hidden(), begun: Cell::new(0), kept: Some(RefCell::default()) }
    }

    /// The lines and warnings of quiet steps, in their order.
    pub fn kept(self) -> Vec<String> {
        self.kept.map(RefCell::into_inner).unwrap_or_default()
    }

    /// Announces the number of further steps.
    pub fn expect(&self, steps: usize) {
        self.bar.set_length((steps as u64 * STEP).max(1));
        self.bar.set_position(0);
        self.begun.set(0);
    }

    /// Begins the next step.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.set_position(self.begun.get() * STEP);
        self.begun.set(self.begun.get() + 1);
    }

    /// Says what the current step waits for.
    pub fn wait(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    /// How far the current step is, from 0 to 1.
    pub fn advance(&self, fraction: f64) {
        let before = self.begun.get().saturating_sub(1) * STEP;
        self.bar.set_position(before + (fraction.clamp(0.0, 1.0) * STEP as f64) as u64);
    }

    /// Prints a line of results to standard output, without the bar in it.
    pub fn print(&self, line: &str) {
        match &self.kept {
            Some(kept) => kept.borrow_mut().push(line.to_owned()),
            None => self.bar.suspend(|| println!("{line}")),
        }
    }

    /// Prints a warning to standard error.
    pub fn warn(&self, line: &str) {
        match &self.kept {
            Some(kept) => kept.borrow_mut().push(format!("warning: {line}")),
            None => self.bar.suspend(|| eprintln!("warning: {line}")),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
