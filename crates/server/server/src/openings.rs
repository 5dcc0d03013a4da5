//! How requests have begun, and the rows they asked for: of a request that begins alike, neither its count nor its name
//! is read again.

use command::{Args, CommandTable, Row};
use proto::{Opening, Span};

/// Openings kept, each in the place its bytes say: a program uses a handful.
const PLACES: usize = 16;

/// The openings of a worker.
pub struct Openings([Known; PLACES]);

/// An opening, and what it asks for.
#[derive(Clone, Copy)]
pub struct Known {
    /// The beginning of a request.
    pub opening: Opening,
    /// Its command's row, for this number of arguments.
    pub row: Option<Row>,
}

impl Default for Openings {
    fn default() -> Self {
        Self([Known { opening: Opening::NONE, row: None }; PLACES])
    }
}

impl Openings {
    /// What a request that begins like `input` most likely asks for.
    #[inline]
    pub fn like(&self, input: &[u8]) -> &Known {
        &self.0[place_of(input)]
    }

    /// Remembers a request at the start of `input`, unless its row follows from more than its name and the number of
    /// its arguments.
    #[inline(never)]
    pub fn remember(&mut self, table: &CommandTable, input: &[u8], spans: &[Span], args: &Args<'_>, row: &Row) {
        let is_by_name = table.find(&args[0]).is_some_and(|found| found.index == row.index);
        if is_by_name
            && let Some(name) = spans.first()
            && let Some(opening) = Opening::of(input, *name, spans.len())
        {
            self.0[place_of(input)] = Known { opening, row: Some(*row) };
        }
    }
}

/// By the number of arguments and the first letter of the name: `*2\r\n$3\r\nGET`.
#[inline]
fn place_of(input: &[u8]) -> usize {
    match input {
        [_, count, _, _, _, _, _, _, letter, ..] => usize::from(count.wrapping_mul(5) ^ letter) % PLACES,
        _ => 0,
    }
}
