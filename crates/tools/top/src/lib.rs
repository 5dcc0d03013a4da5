//! `onggi top`: a server in a terminal, with the figures of the page.
//!
//! ```text
//!  INFO, LATENCY HISTOGRAM --> Reading --> State (an hour of samples) --> view --> the terminal
//!  CLIENT LIST, SLOWLOG, HOTKEYS --^ for the tab that shows them     '--> a line of JSON
//! ```
//!
//! T1. It sends commands that every user of the server may send, so it also works with Redis and Valkey. What a server
//!     does not know, or does not allow, is shown as such.
//! T2. A lost connection does not end it: it says why, and connects again.
//! T3. Arguments of the slow log are values of clients, and are not shown.
#![forbid(unsafe_code)]

mod commands;
mod format;
mod latency;
mod reading;
mod screen;
mod state;
mod view;

use loadgen::client::{Address, Login};
use reading::Source;
use state::State;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// What to show.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server.
    pub address: Address,
    /// The login.
    pub login: Login,
    /// Time between two readings.
    pub interval: Duration,
    /// Readings until the end; without a number, until it is ended.
    pub count: Option<u64>,
    /// Prints a line of JSON for each reading in place of the view.
    pub json: bool,
}

/// Why it ends.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// No connection at the start, or the server refuses the login or INFO.
    #[error(transparent)]
    Server(#[from] loadgen::error::BenchError),
    /// The terminal, or the output.
    #[error("the terminal: {0}")]
    Terminal(#[from] io::Error),
    /// The output is no terminal.
    #[error("standard output is not a terminal; use --json for lines of figures")]
    NoTerminal,
}

/// Shows the server until it is ended.
///
/// # Errors
/// [`TopError`].
pub fn run(options: Options) -> Result<(), TopError> {
    if !options.json && !io::stdout().is_terminal() {
        return Err(TopError::NoTerminal);
    }
    let mut source = Source::open(options.address.clone(), options.login.clone())?;
    let mut state = State::new(options.address.to_string());
    if options.json { lines(&options, &mut source, &mut state) } else { screen::run(&options, &mut source, &mut state) }
}

/// A line for each reading after the first, which has no rates.
fn lines(options: &Options, source: &mut Source, state: &mut State) -> Result<(), TopError> {
    let mut left = options.count;
    state.add(source.read(None)?);
    while left != Some(0) {
        std::thread::sleep(options.interval);
        state.add(source.read(None)?);
        let mut out = io::stdout().lock();
        writeln!(out, "{}", state.json())?;
        out.flush()?;
        left = left.map(|left| left - 1);
    }
    Ok(())
}
