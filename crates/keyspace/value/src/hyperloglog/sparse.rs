//! Registers as runs of equal ones, for HyperLogLogs of few elements.
//!
//! ```text
//! 00llllll            zeros: l + 1 of them, up to 64
//! 01llllll llllllll   zeros: l + 1 of them, up to 16,384
//! 1rrrrrll            registers of rank r + 1 (up to 32): l + 1 of them, up to 4
//! ```

use super::{Corrupt, HEADER_BYTES, Observation, REGISTER_COUNT};

const SHORT_ZEROS_MAX: usize = 64;
/// The highest rank a run can have; one element in 2^32 has a higher one.
const RANK_MAX: u8 = 32;
const RANKED_MAX: usize = 4;

/// After a change, this many runs are checked for equal neighbours to join.
const JOINED_RUNS: usize = 5;

/// Registers that are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Their rank.
    pub(super) rank: u8,
    /// How many.
    pub(super) length: usize,
    /// Bytes that say so.
    size: usize,
}

/// The run encoded at this place, if there is one. In a truncated run, the missing byte is a zero.
fn run_at(bytes: &[u8], at: usize) -> Option<Run> {
    let byte = *bytes.get(at)?;
    let low = usize::from(byte & 0x3F);
    Some(match byte >> 6 {
        0 => Run { rank: 0, length: low + 1, size: 1 },
        1 => {
            let next = bytes.get(at + 1).copied().unwrap_or(0);
            Run { rank: 0, length: (low << 8 | usize::from(next)) + 1, size: 2 }
        }
        _ => Run { rank: (byte >> 2 & 0x1F) + 1, length: usize::from(byte & 3) + 1, size: 1 },
    })
}

/// The byte of a run with a rank.
fn ranked(rank: u8, length: usize) -> u8 {
    0x80 | (rank - 1) << 2 | (length - 1) as u8
}

/// Appends a run of zeros.
pub(super) fn push_zeros(out: &mut impl Extend<u8>, length: usize) {
    let stored = length - 1;
    if length > SHORT_ZEROS_MAX {
        out.extend([0x40 | (stored >> 8) as u8, stored as u8]);
    } else {
        out.extend([stored as u8]);
    }
}

/// Gives all runs, in order.
///
/// # Errors
/// [`Corrupt`] when they are not as many registers as there are, after the runs that fit.
pub(super) fn runs(bytes: &[u8], mut each: impl FnMut(Run)) -> Result<(), Corrupt> {
    let (mut at, mut registers) = (HEADER_BYTES, 0);
    while let Some(run) = run_at(bytes, at) {
        registers += run.length;
        if registers > REGISTER_COUNT {
            return Err(Corrupt);
        }
        each(run);
        at += run.size;
    }
    if registers == REGISTER_COUNT { Ok(()) } else { Err(Corrupt) }
}

/// What became of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raise {
    /// It was as high already.
    Kept,
    /// It is raised.
    Raised,
    /// The sparse form cannot express it, or not in the bytes it may have.
    Outgrown,
}

/// A run to begin at when looking for registers in ascending order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    at: usize,
    register: usize,
}

impl Default for Hint {
    /// The first run.
    fn default() -> Self {
        Self { at: HEADER_BYTES, register: 0 }
    }
}

/// Raises a register at or after the hint, which moves along.
///
/// # Errors
/// [`Corrupt`] when no run holds the register.
pub(super) fn raise(
    bytes: &mut Vec<u8>,
    hint: &mut Hint,
    seen: Observation,
    bytes_max: usize,
) -> Result<Raise, Corrupt> {
    if seen.rank > RANK_MAX {
        return Ok(Raise::Outgrown);
    }
    let (mut at, mut first) = (hint.at, hint.register);
    let mut before = at;
    let run = loop {
        let run = run_at(bytes, at).ok_or(Corrupt)?;
        let end = first + run.length;
        if seen.register < end {
            break run;
        }
        if end + RANKED_MAX <= seen.register {
            // Too far back to be joined with what changes here, or to be the one that a later change is joined with.
            *hint = Hint { at, register: first };
        }
        before = at;
        (at, first) = (at + run.size, end);
    };
    if run.rank >= seen.rank {
        return Ok(Raise::Kept);
    }
    let (ahead, behind) = (seen.register - first, first + run.length - 1 - seen.register);
    let mut told = Told::default();
    told.push(run.rank, ahead);
    told.push(seen.rank, 1);
    told.push(run.rank, behind);
    let told = &told.bytes[..told.length];
    if told.len() > run.size && bytes.len() + (told.len() - run.size) > bytes_max {
        return Ok(Raise::Outgrown);
    }
    let end = bytes.len().min(at + run.size);
    bytes.splice(at..end, told.iter().copied());
    join(bytes, before);
    Ok(Raise::Raised)
}

/// At most three runs in bytes.
#[derive(Default)]
struct Told {
    bytes: [u8; 5],
    length: usize,
}

impl Told {
    fn push(&mut self, rank: u8, length: usize) {
        match (rank, length) {
            (_, 0) => {}
            (0, _) => push_zeros(self, length),
            _ => self.extend([ranked(rank, length)]),
        }
    }
}

impl Extend<u8> for Told {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        for byte in bytes {
            self.bytes[self.length] = byte;
            self.length += 1;
        }
    }
}

/// Joins neighbours of one rank, where one run can express them, in the next runs from `at` on.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOINED_RUNS {
        let Some(run) = run_at(bytes, at) else { return };
        let next = run_at(bytes, at + run.size).filter(|next| run.rank > 0 && next.rank == run.rank);
        match next.map(|next| run.length + next.length).filter(|length| *length <= RANKED_MAX) {
            Some(length) => {
                bytes[at + 1] = ranked(run.rank, length);
                bytes.remove(at);
            }
            None => at += run.size,
        }
    }
}
