//! LZF, the format of Marc Lehmann's liblzf, as RDB files hold long strings in it.
//!
//! ```text
//!  000lllll  bytes                    l + 1 bytes follow as they are            1..=32
//!  lllooooo  oooooooo                 copy l + 2 bytes from o + 1 bytes back    3..=8
//!  111ooooo  llllllll  oooooooo       copy l + 9 bytes from o + 1 bytes back    9..=264
//! ```
//!
//! A copy may reach into its own output: one byte back repeats that byte. There is no header and no end mark, so the
//! caller stores both lengths.
//!
//! L1. What [`decompress`] appends has exactly the length that the caller names, or nothing is appended.
//! L2. It reserves no more than the input can stand for ([`EXPANSION_MAX`]), whatever length a damaged file claims.
//! L3. The output of [`Compressor`] depends on the input alone, not on earlier inputs.

use std::mem;

/// Longest run of bytes that one control byte takes over as they are.
const LITERALS_MAX: usize = 32;

/// Shortest and longest copy.
const COPY_MIN: usize = 3;
const COPY_MAX: usize = 264;

/// Lengths from this one on have a byte of their own.
const COPY_LONG: usize = 9;

/// Farthest reach of a copy: 13 bits, where 0 stands for one byte back.
const DISTANCE_MAX: usize = 1 << 13;

/// No input stands for more bytes than this many times its length: three bytes give at most one longest copy.
pub const EXPANSION_MAX: usize = COPY_MAX / 3;

/// Why bytes are not LZF of the length that was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LzfError {
    /// The input ends inside an item.
    #[error("LZF: the input ends inside an item")]
    Truncated,
    /// A copy starts before the first byte.
    #[error("LZF: after {position} bytes a copy reaches {distance} bytes back")]
    BeforeStart {
        /// Bytes written until then.
        position: usize,
        /// How far back the copy reaches, in bytes.
        distance: usize,
    },
    /// The input stands for another number of bytes than promised.
    #[error("LZF: the input stands for {} than the {expected} bytes promised", if *more { "more" } else { "fewer" })]
    Length {
        /// What the caller named.
        expected: usize,
        /// Whether the input stands for more.
        more: bool,
    },
}

/// Appends the `len` bytes that `input` stands for to `out`.
///
/// # Errors
/// When `input` is damaged or stands for another number of bytes; `out` is as it was then.
pub fn decompress(input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), LzfError> {
    let start = out.len();
    let done = expand(input, start, len, out);
    if done.is_err() {
        out.truncate(start);
    }
    done
}

fn expand(mut input: &[u8], start: usize, len: usize, out: &mut Vec<u8>) -> Result<(), LzfError> {
    if len > input.len().saturating_mul(EXPANSION_MAX) {
        return Err(LzfError::Length { expected: len, more: false });
    }
    out.reserve(len);
    let end = start + len;
    while let Some((&control, rest)) = input.split_first() {
        let control = usize::from(control);
        if control < LITERALS_MAX {
            let (literals, rest) = rest.split_at_checked(control + 1).ok_or(LzfError::Truncated)?;
            if literals.len() > end - out.len() {
                return Err(LzfError::Length { expected: len, more: true });
            }
            out.extend_from_slice(literals);
            input = rest;
            continue;
        }
        let (copied, low, rest) = match (control >> 5, rest) {
            (7, [long, low, rest @ ..]) => (COPY_LONG + usize::from(*long), low, rest),
            (short @ ..7, [low, rest @ ..]) => (short + 2, low, rest),
            _ => return Err(LzfError::Truncated),
        };
        let distance = ((control & 0x1f) << 8 | usize::from(*low)) + 1;
        let position = out.len() - start;
        if distance > position {
            return Err(LzfError::BeforeStart { position, distance });
        }
        if copied > end - out.len() {
            return Err(LzfError::Length { expected: len, more: true });
        }
        copy_within(out, distance, copied);
        input = rest;
    }
    if out.len() < end { Err(LzfError::Length { expected: len, more: false }) } else { Ok(()) }
}

/// Appends `len` bytes from `distance` bytes before the end, which is at most the length of `out`. The bytes may
/// overlap: then they repeat, and each round copies twice as much as the one before.
fn copy_within(out: &mut Vec<u8>, distance: usize, mut len: usize) {
    let from = out.len() - distance;
    while len > 0 {
        let piece = len.min(out.len() - from);
        out.extend_from_within(from..from + piece);
        len -= piece;
    }
}

/// Bits of the hash of three bytes. The table takes 32 KiB and stays in the L1 cache; it has as many cells as a copy
/// can reach bytes back.
const HASH_BITS: u32 = 13;

/// After this many bytes without a copy, attempts are one byte further apart: random bytes cost a fraction of text.
const PATIENCE_BITS: u32 = 6;

/// Compresses to LZF; its table of positions is reused from input to input and never cleared in between.
pub struct Compressor {
    /// By hash of three bytes: `base` of the input in which they stood last, plus their place in it.
    seen: Box<[u32; 1 << HASH_BITS]>,
    /// The base of the positions of the next input. Above all positions of earlier inputs, so that these are no
    /// candidates.
    base: u32,
}

impl Default for Compressor {
    fn default() -> Self {
        Self::new()
    }
}

impl Compressor {
    /// Allocates the table.
    pub fn new() -> Self {
        Self { seen: Box::new([0; 1 << HASH_BITS]), base: 1 }
    }

    /// Appends `input` in LZF if that takes at most `len_max` bytes. Otherwise, and for an input of 4 GiB or more, it
    /// answers false and `out` is as it was. Allocates only what `out` grows by.
    pub fn compress(&mut self, input: &[u8], len_max: usize, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let Some(next_base) = self.make_room(input.len()) else { return false };
        let fitted = self.write(input, start.saturating_add(len_max), out);
        if !fitted {
            out.truncate(start);
        }
        // Of an input that was given up, too: its positions are in the table.
        self.base = next_base;
        fitted
    }

    /// Makes room for the positions of an input of this length after `base`, and returns the base after them. `None` if
    /// they never fit.
    fn make_room(&mut self, len: usize) -> Option<u32> {
        let len = u32::try_from(len).ok()?;
        if self.base.checked_add(len).is_none() {
            self.seen.fill(0);
            self.base = 1;
        }
        self.base.checked_add(len)
    }

    /// Writes all of `input`, while `out` stays within `end`.
    fn write(&mut self, input: &[u8], end: usize, out: &mut Vec<u8>) -> bool {
        let mut at = 0;
        let mut literals_from = 0;
        while let Some(three) = three_at(input, at) {
            match self.exchange(three, at) {
                Some(candidate) if at - candidate <= DISTANCE_MAX && three_at(input, candidate) == Some(three) => {
                    let len = COPY_MIN + common(input, candidate + COPY_MIN, at + COPY_MIN, COPY_MAX - COPY_MIN);
                    if !put_literals(input.get(literals_from..at).unwrap_or_default(), end, out) {
                        return false;
                    }
                    put_copy(at - candidate, len, out);
                    at += len;
                    literals_from = at;
                    // The end of a copy is a likely start of the next; the bytes before are covered by the source of
                    // the copy.
                    for back in [2, 1] {
                        if let Some(three) = three_at(input, at - back) {
                            self.exchange(three, at - back);
                        }
                    }
                }
                _ => at += 1 + ((at - literals_from) >> PATIENCE_BITS),
            }
        }
        put_literals(input.get(literals_from..).unwrap_or_default(), end, out) && out.len() <= end
    }

    /// Remembers that these bytes stand at `at`, and returns where they, or others of the same hash, stood before.
    #[inline]
    fn exchange(&mut self, three: u32, at: usize) -> Option<usize> {
        let hash = three.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS);
        let cell = self.seen.get_mut(hash as usize)?;
        let before = mem::replace(cell, self.base + at as u32);
        before.checked_sub(self.base).map(|place| place as usize)
    }
}

/// The three bytes from `at` on as one number, if there are three.
#[inline]
fn three_at(input: &[u8], at: usize) -> Option<u32> {
    let [a, b, c] = *input.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes([a, b, c, 0]))
}

/// How many bytes from `left` on equal those from `right` on, up to `max`. `left` is before `right`.
fn common(input: &[u8], left: usize, right: usize, max: usize) -> usize {
    let (Some(left), Some(right)) = (input.get(left..), input.get(right..)) else { return 0 };
    let right = right.get(..max).unwrap_or(right);
    let (left_words, right_words) = (left.as_chunks::<8>().0, right.as_chunks::<8>().0);
    let mut equal = 0;
    for (left, right) in left_words.iter().zip(right_words) {
        let differs = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if differs != 0 {
            return equal + (differs.trailing_zeros() / 8) as usize;
        }
        equal += 8;
    }
    let (left, right) = (left.get(equal..).unwrap_or_default(), right.get(equal..).unwrap_or_default());
    equal + left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// Appends runs of bytes as they are. False when they would pass `end`.
fn put_literals(bytes: &[u8], end: usize, out: &mut Vec<u8>) -> bool {
    let controls = bytes.len().div_ceil(LITERALS_MAX);
    if out.len().saturating_add(bytes.len() + controls) > end {
        return false;
    }
    for run in bytes.chunks(LITERALS_MAX) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
    true
}

/// Appends a copy of `len` bytes from `distance` bytes back, both within the limits of the format.
fn put_copy(distance: usize, len: usize, out: &mut Vec<u8>) {
    debug_assert!((1..=DISTANCE_MAX).contains(&distance) && (COPY_MIN..=COPY_MAX).contains(&len));
    let offset = distance - 1;
    let high = (offset >> 8) as u8;
    if len < COPY_LONG {
        out.extend_from_slice(&[((len - 2) as u8) << 5 | high, offset as u8]);
    } else {
        out.extend_from_slice(&[7 << 5 | high, (len - COPY_LONG) as u8, offset as u8]);
    }
}

#[cfg(test)]
mod tests;
