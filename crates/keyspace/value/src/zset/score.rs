//! Scores as bytes, in as few as they need: whole numbers below 224 in one, below 2^56 in two to eight, others as
//! floats.
//!
//! ```text
//! 00..df           this whole number
//! e0..e6 | n bytes a whole number of n = 1 to 7 bytes, low ones first; e8..ee: negative
//! f0 | 8 bytes     a float of eight bytes, low ones first; f1 | 4 bytes: one that four bytes hold exactly
//! ```
//!
//! Of several ways to write a score, the first in this order and the shortest is the only one that is read.

/// Most bytes of a score.
pub(super) const MAX_LEN: usize = 9;

const ONE_BYTE_END: u64 = 0xe0;
const WHOLE: u8 = 0xe0;
const NEGATIVE: u8 = 0x08;
const DOUBLE: u8 = 0xf0;
const SINGLE: u8 = 0xf1;
const WHOLE_END: f64 = (1u64 << 56) as f64;

/// Zero has no sign here (Z1).
pub(super) fn normal(score: f64) -> f64 {
    score + 0.0
}

/// Writes the score to the front of `out` and returns its length in bytes.
#[inline]
pub(super) fn write(score: f64, out: &mut [u8; MAX_LEN]) -> usize {
    if score.trunc() == score && score.abs() < WHOLE_END {
        let magnitude = score.abs() as u64;
        if magnitude < ONE_BYTE_END && score >= 0.0 {
            out[0] = magnitude as u8;
            return 1;
        }
        let length = (8 - magnitude.leading_zeros() as usize / 8).max(1);
        out[0] = WHOLE | (length as u8 - 1) | if score < 0.0 { NEGATIVE } else { 0 };
        out[1..9].copy_from_slice(&magnitude.to_le_bytes());
        return 1 + length;
    }
    let single = score as f32;
    if f64::from(single) == score {
        out[0] = SINGLE;
        out[1..5].copy_from_slice(&single.to_le_bytes());
        5
    } else {
        out[0] = DOUBLE;
        out[1..9].copy_from_slice(&score.to_le_bytes());
        9
    }
}

/// Reads a score from the front and returns its length; `None` when it is cut short or no score. Does not check that it
/// is in its only valid form: see [`take`].
#[inline]
pub(super) fn read(from: &[u8]) -> Option<(f64, usize)> {
    let tag = *from.first()?;
    if u64::from(tag) < ONE_BYTE_END {
        return Some((f64::from(tag), 1));
    }
    match tag {
        DOUBLE => Some((f64::from_le_bytes(*from.get(1..)?.first_chunk()?), 9)),
        SINGLE => Some((f64::from(f32::from_le_bytes(*from.get(1..)?.first_chunk()?)), 5)),
        _ => {
            let length = usize::from(tag & 7) + 1;
            let magnitude = match from.get(1..9).and_then(<[u8]>::first_chunk) {
                Some(bytes) => u64::from_le_bytes(*bytes) & (u64::MAX >> (64 - 8 * length)),
                None => from.get(1..=length)?.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
            };
            let value = magnitude as f64;
            Some((if tag & NEGATIVE == 0 { value } else { -value }, 1 + length))
        }
    }
}

/// Takes a score in its only form from the front; `None` when there is none.
pub(super) fn take(rest: &mut &[u8]) -> Option<f64> {
    let (score, length) = read(rest)?;
    let (bytes, tail) = rest.split_at_checked(length)?;
    let mut again = [0; MAX_LEN];
    let again_length = write(normal(score), &mut again);
    if score.is_nan() || again[..again_length] != *bytes {
        return None;
    }
    *rest = tail;
    Some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(score: f64) -> Vec<u8> {
        let mut out = [0; MAX_LEN];
        let length = write(score, &mut out);
        out[..length].to_vec()
    }

    /// The bytes of the format's description, and both ways at every border.
    #[test]
    fn scores_round_trip_in_few_bytes() {
        let cases: [(f64, &[u8]); 9] = [
            (0.0, &[0]),
            (223.0, &[0xdf]),
            (224.0, &[0xe0, 0xe0]),
            (999_999.0, &[0xe2, 0x3f, 0x42, 0x0f]),
            (-1.0, &[0xe8, 1]),
            (-256.0, &[0xe9, 0, 1]),
            (0.5, &[0xf1, 0, 0, 0, 0x3f]),
            (f64::NEG_INFINITY, &[0xf1, 0, 0, 0x80, 0xff]),
            (0.1, &[0xf0, 0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f]),
        ];
        for (score, expected) in cases {
            assert_eq!(bytes(score), expected, "{score}");
        }
        for shift in 0..64 {
            for score in [(1u64 << shift) as f64, -((1u64 << shift) as f64), (1u64 << shift) as f64 - 1.0, f64::MAX] {
                let encoded = bytes(score);
                assert_eq!(take(&mut &encoded[..]), Some(score));
                assert_eq!(read(&[&encoded[..], &[0xff; 9]].concat()), Some((score, encoded.len())));
                assert_eq!(take(&mut &encoded[..encoded.len() - 1]), None);
            }
        }
    }

    #[test]
    fn other_forms_are_refused() {
        let nan = [&[DOUBLE][..], &f64::NAN.to_le_bytes()].concat();
        let negative_zero = [&[DOUBLE][..], &(-0.0f64).to_le_bytes()].concat();
        let one = [&[DOUBLE][..], &1f64.to_le_bytes()].concat();
        for form in [
            &nan[..],
            &negative_zero,
            &one,
            &[0xe0, 7],
            &[0xe1, 0xff, 0],
            &[0xe8, 0],
            &[0xe7, 1, 1, 1, 1, 1, 1, 1, 1],
            &[0xf2, 0],
            &[],
        ] {
            assert_eq!(take(&mut &form[..]), None, "{form:?}");
        }
    }
}
