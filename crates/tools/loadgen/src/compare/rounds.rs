//! The interleaved rounds themselves.

use super::Harness;
use crate::error::{BenchError, Result};
use crate::generator::new_histogram;
use crate::measure::{Measurement, Row, Settings, measure};
use crate::results::{Better, Cell, curve_of};
use crate::server::Server;

/// The figure of a window that fills the cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// The server's CPU time per operation, in microseconds.
    CpuPerOperation,
    /// Operations per second.
    OperationsPerSecond,
}

impl Figure {
    /// The unit of its cells.
    pub fn unit(self) -> &'static str {
        match self {
            Self::CpuPerOperation => "us CPU per operation",
            Self::OperationsPerSecond => "operations per second",
        }
    }

    /// Which direction is better.
    pub fn better(self) -> Better {
        match self {
            Self::CpuPerOperation => Better::Lower,
            Self::OperationsPerSecond => Better::Higher,
        }
    }

    /// The figure of a window.
    ///
    /// # Errors
    /// The process of the server is unknown.
    pub fn of(self, window: &Measurement, server: &Server) -> Result<f64> {
        match self {
            Self::OperationsPerSecond => Ok(window.operations_per_second),
            Self::CpuPerOperation => window.cpu_per_operation.map(|cpu| cpu.total_us).ok_or_else(|| {
                BenchError::Usage(format!("server {0}: its process is unknown: {0}@ADDRESS,pid=N", server.record.name))
            }),
        }
    }
}

/// The position of a call relative to a server's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The window is about to begin.
    Before,
    /// The window has ended.
    Behind,
}

/// The number and length of a row's measurements.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Windows of each server.
    pub rounds: usize,
    /// Length of a window.
    pub seconds: f64,
}

impl Harness<'_> {
    /// The plan's own rounds and seconds, where given, instead of the suite's.
    pub fn effort(&self, suite: Effort) -> Effort {
        Effort {
            rounds: self.plan.rounds.unwrap_or(suite.rounds).max(1),
            seconds: self.plan.seconds.unwrap_or(suite.seconds),
        }
    }

    /// Measures one row on all servers, one at a time; the first server changes with each round.
    ///
    /// # Errors
    /// A server refuses the load, ends, or its CPU time cannot be read.
    pub fn interleave(&self, servers: &[Server], row: &Row, effort: Effort, figure: Figure) -> Result<Vec<Cell>> {
        let servers: Vec<&Server> = servers.iter().collect();
        self.interleave_around(&self.plan.settings, &servers, row, effort, figure, &mut |_, _| Ok(()))
    }

    /// As [`Self::interleave`] with the suite's own settings. Calls `around` with the index in `servers` before and
    /// after each window. A server may occur several times.
    ///
    /// # Errors
    /// As for [`Self::interleave`], and those of `around`.
    pub fn interleave_around(
        &self,
        settings: &Settings,
        servers: &[&Server],
        row: &Row,
        effort: Effort,
        figure: Figure,
        around: &mut dyn FnMut(usize, Moment) -> Result<()>,
    ) -> Result<Vec<Cell>> {
        let mut windows: Vec<Vec<Measurement>> = servers.iter().map(|_| Vec::new()).collect();
        let mut latencies: Vec<_> = servers.iter().map(|_| new_histogram()).collect();
        for round in 0..effort.rounds {
            // Another seed each round, the same for all servers in it.
            let seed = settings.seed.wrapping_add(round as u64);
            let settings = Settings { seconds: effort.seconds, seed, ..settings.clone() };
            for turn in 0..servers.len() {
                let at = (round + turn) % servers.len();
                let name = &servers[at].record.name;
                self.steps.say(&format!("{}: round {}/{}, {name}", row.title(), round + 1, effort.rounds));
                around(at, Moment::Before)?;
                let (window, latency) = measure(&servers[at].target, &settings, row, &mut |progress| {
                    self.steps.advance(progress.fraction);
                })?;
                windows[at].push(window);
                latencies[at].add(latency).expect("all histograms have the same bounds");
                around(at, Moment::Behind)?;
            }
        }
        servers
            .iter()
            .zip(windows.into_iter().zip(latencies))
            .map(|(server, (windows, latency))| {
                let samples = windows.iter().map(|window| figure.of(window, server)).collect::<Result<_>>()?;
                Ok(Cell { windows, curve: curve_of(&latency), ..Cell::new(&server.record.name, samples) })
            })
            .collect()
    }
}
