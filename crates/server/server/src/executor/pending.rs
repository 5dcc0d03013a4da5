//! Requests that are parsed and have not run.

use command::Args;
use command::Row;
use proto::Arguments;
use std::cell::Cell;

/// The connection of requests whose connection was closed.
pub(crate) const CLOSED: usize = usize::MAX;

/// A parsed request that has not run.
pub(crate) struct Pending {
    /// [`CLOSED`] when it is not to run any more.
    pub(crate) connection: Cell<usize>,
    pub(crate) input: Source,
    /// Where the request begins in its input.
    pub(crate) start: usize,
    /// Its arguments.
    pub(crate) first_span: usize,
    pub(crate) span_count: u32,
    /// What it asks for; `None` when something is wrong with it.
    pub(crate) row: Option<Row>,
}

impl Pending {
    /// Its arguments, where they lie.
    #[inline]
    pub(crate) fn args<'a>(&self, area: &'a [u8], own_inputs: &'a [Vec<u8>], arguments: &'a Arguments) -> Args<'a> {
        let input = match self.input {
            Source::Area => &area[self.start..],
            Source::Own(index) => &own_inputs[index as usize][self.start..],
        };
        let spans = self.first_span..self.first_span + self.span_count as usize;
        Args::new(input, &arguments.spans()[spans], arguments.large())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The worker's input area.
    Area,
    /// One of `own_inputs`.
    Own(u32),
}

/// What of a connection is being parsed while the batch runs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Parsing {
    /// All that has come is in the batch, or kept by its connection.
    #[default]
    Nothing,
    /// This rest of its input is not.
    Rest {
        /// The connection.
        id: usize,
        /// Where its input lies.
        source: Source,
        /// Where the rest begins.
        at: usize,
        /// The end of the input.
        end: usize,
    },
    /// What is known of the rest is not in one place: the connection stays.
    Pinned(usize),
}
