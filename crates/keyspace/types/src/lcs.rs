//! The longest common subsequence of two strings.
//!
//! The table of the textbook is never built. Row after row, one bit per byte of the second string says whether the
//! length grows there, and 64 of them are computed by a handful of word operations; the way back needs these bits and
//! no lengths.
//!
//! L1. Bit `j` of row `i` is *clear* where `length(i, j + 1)` is `length(i, j) + 1`, lengths being those of the
//!     textbook.
//! L2. Where the bytes differ, the neighbour above is the longer one exactly if that bit is clear.
//! L3. Memory is at most two bits per cell of the textbook's table, whose size the caller bounds.
//!
//! Crochemore, Iliopoulos, Pinzon and Reid, "A fast and practical bit-vector algorithm for the longest common
//! subsequence problem", 2001; the form of the recurrence is Hyyrö's, "Bit-parallel LCS-length computation revisited",
//! 2004.

use crate::TypeError;

/// Bytes a cell of the textbook's table takes in Redis; `proto-max-bulk-len` bounds that table.
const TABLE_CELL_BYTES: u64 = 4;

/// Two equal stretches, one in each string, each as first and last index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// In the first string.
    pub a: (usize, usize),
    /// In the second.
    pub b: (usize, usize),
}

impl Match {
    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.a.1.saturating_sub(self.a.0).saturating_add(1)
    }

    /// Never: a match has a byte at least.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// A longest common subsequence: its bytes, and the stretches it is made of, from the end of the strings to the front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subsequence {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where they are.
    pub matches: Vec<Match>,
}

/// How long it is.
///
/// # Errors
/// [`TypeError::LcsTooBig`] when the table would exceed `limit` bytes.
pub fn length(a: &[u8], b: &[u8], limit: u64) -> Result<usize, TypeError> {
    check(a, b, limit)?;
    let mut row = first_row(b);
    let mut symbols = Symbols::new(b);
    a.iter().for_each(|byte| advance(&mut row, symbols.places(*byte)));
    Ok(clear_bits(&row))
}

/// One of them: the one that Redis finds.
///
/// # Errors
/// [`TypeError::LcsTooBig`] when the table would exceed `limit` bytes.
pub fn subsequence(a: &[u8], b: &[u8], limit: u64) -> Result<Subsequence, TypeError> {
    check(a, b, limit)?;
    let mut rows = Vec::with_capacity(a.len());
    let mut row = first_row(b);
    let mut symbols = Symbols::new(b);
    for byte in a {
        advance(&mut row, symbols.places(*byte));
        rows.push(row.clone());
    }
    let mut found = Subsequence { bytes: Vec::with_capacity(clear_bits(&row)), matches: Vec::new() };
    let (mut i, mut j) = (a.len(), b.len());
    let mut open: Option<Match> = None;
    while let (Some(above), Some(left)) = (i.checked_sub(1), j.checked_sub(1)) {
        let byte = a.get(above);
        if byte == b.get(left) {
            found.bytes.extend(byte);
            let end = open.map_or((above, left), |open| (open.a.1, open.b.1));
            open = Some(Match { a: (above, end.0), b: (left, end.1) });
            (i, j) = (above, left);
            continue;
        }
        found.matches.extend(open.take());
        if rows.get(above).is_some_and(|row| !bit(row, left)) {
            i = above;
        } else {
            j = left;
        }
    }
    found.matches.extend(open);
    found.bytes.reverse();
    Ok(found)
}

fn check(a: &[u8], b: &[u8], limit: u64) -> Result<(), TypeError> {
    let side = |text: &[u8]| (text.len() as u64).saturating_add(1);
    let table = side(a).saturating_mul(side(b)).saturating_mul(TABLE_CELL_BYTES);
    if table > limit { Err(TypeError::LcsTooBig) } else { Ok(()) }
}

/// The row before the first byte: no length grows anywhere. Bits after the end stay set.
fn first_row(b: &[u8]) -> Vec<u64> {
    vec![u64::MAX; b.len().div_ceil(64)]
}

/// The next row: from the last one and the places of the next byte of the first string in the second.
fn advance(row: &mut [u64], places: &[u64]) {
    let mut carry = false;
    for (word, places) in row.iter_mut().zip(places) {
        let hits = *word & places;
        let (sum, first) = word.overflowing_add(hits);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        carry = first || second;
        *word = sum | (*word & !hits);
    }
}

fn clear_bits(row: &[u64]) -> usize {
    row.iter().fold(0usize, |sum, word| sum.saturating_add(word.count_zeros() as usize))
}

fn bit(row: &[u64], at: usize) -> bool {
    row.get(at / 64).is_none_or(|word| word >> (at % 64) & 1 == 1)
}

/// For each byte, where it stands in a string; found out when first asked for.
struct Symbols<'b> {
    text: &'b [u8],
    places: [Option<Box<[u64]>>; 256],
}

impl<'b> Symbols<'b> {
    fn new(text: &'b [u8]) -> Self {
        Self { text, places: [const { None }; 256] }
    }

    fn places(&mut self, byte: u8) -> &[u64] {
        let text = self.text;
        self.places.get_mut(usize::from(byte)).map_or(&[], |places| {
            places.get_or_insert_with(|| {
                let word =
                    |chunk: &[u8]| chunk.iter().rev().fold(0u64, |word, other| word << 1 | u64::from(*other == byte));
                text.chunks(64).map(word).collect()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    const LIMIT: u64 = 1 << 30;

    /// The textbook, with the choices Redis makes on the way back.
    fn textbook(a: &[u8], b: &[u8]) -> (usize, Vec<u8>) {
        let mut table = vec![vec![0usize; b.len() + 1]; a.len() + 1];
        for i in 1..=a.len() {
            for j in 1..=b.len() {
                table[i][j] =
                    if a[i - 1] == b[j - 1] { table[i - 1][j - 1] + 1 } else { table[i - 1][j].max(table[i][j - 1]) };
            }
        }
        let (mut i, mut j, mut bytes) = (a.len(), b.len(), Vec::new());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                bytes.push(a[i - 1]);
                (i, j) = (i - 1, j - 1);
            } else if table[i - 1][j] > table[i][j - 1] {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        bytes.reverse();
        (table[a.len()][b.len()], bytes)
    }

    /// Random strings over few letters, longer than a word: length, bytes and stretches are those of the textbook.
    #[test]
    fn agrees_with_the_textbook() {
        let mut rng = Rng::new(5);
        for round in 0..300 {
            let letters = 1 + round % 5;
            let mut text =
                |most: u64| (0..rng.below(most)).map(|_| b'a' + rng.below(letters) as u8).collect::<Vec<_>>();
            let (a, b) = (text(150), text(200));
            let (len, bytes) = textbook(&a, &b);
            let found = subsequence(&a, &b, LIMIT).expect("small");
            assert_eq!((length(&a, &b, LIMIT), &found.bytes), (Ok(len), &bytes));
            let parts = found.matches.iter().rev().flat_map(|part| a[part.a.0..=part.a.1].iter().copied());
            assert_eq!(parts.collect::<Vec<_>>(), bytes);
            for part in &found.matches {
                assert_eq!(a[part.a.0..=part.a.1], b[part.b.0..=part.b.1]);
            }
        }
    }

    #[test]
    fn the_table_is_bounded() {
        let text = vec![b'x'; 11_584];
        assert_eq!(length(&text, &text, 512 << 20), Ok(11_584));
        assert_eq!(length(&text, &vec![b'x'; 11_586], 512 << 20), Err(TypeError::LcsTooBig));
    }
}
