//! The fast way, for nearly all requests: an array of at most nine arguments, complete in the input, none longer than
//! 9999 bytes. From the first argument that is not so, the general rules of [`Cursor`](super::cursor::Cursor) take
//! over; nothing here is an error.

use super::{Arguments, Span};

/// The longest argument that [`arguments`] reads.
const LEN_MAX: usize = 9999;

/// The length of the line that [`count`] reads.
pub(super) const COUNT_LEN: usize = 4;

/// Reads `*<count>\r\n` with one digit, not zero, at the start of `input`.
#[inline]
pub(super) fn count(input: &[u8]) -> Option<u32> {
    match input.first_chunk() {
        Some([b'*', digit @ b'1'..=b'9', b'\r', b'\n']) => Some(u32::from(digit.wrapping_sub(b'0'))),
        _ => None,
    }
}

/// Appends up to `left` arguments from `offset` on, and returns where it stopped and how many are left.
///
/// What matters is the way from one argument to the next: load a length, add it, load the next.
#[inline(always)]
pub(super) fn arguments(
    input: &[u8],
    mut offset: usize,
    mut left: u32,
    bulk_bytes_max: usize,
    out: &mut Arguments,
) -> (usize, u32) {
    // With these, every span can be expressed, and no length is too much.
    if input.len() > Span::END_MAX || bulk_bytes_max < LEN_MAX {
        return (offset, left);
    }
    while left > 0 {
        let Some(line) = input.get(offset..).and_then(|rest| rest.first_chunk()) else { break };
        let Some((len, line_len)) = short_length(line) else { break };
        let start = offset.wrapping_add(line_len);
        let end = start.wrapping_add(len);
        let Some(b"\r\n") = input.get(end..).and_then(|tail| tail.first_chunk()) else { break };
        out.push(Span::below_end_max(start, len));
        offset = end.wrapping_add(2);
        left = left.wrapping_sub(1);
    }
    (offset, left)
}

/// Reads `$<length>\r\n` with one to four digits from the eight bytes at its start: the length, and that of the line.
/// `None` for any other line. Branches on the number of digits, since a branch is predicted, while whatever is computed
/// from the digits delays the next argument.
#[inline(always)]
fn short_length(line: &[u8; 8]) -> Option<(usize, usize)> {
    let word = u64::from_le_bytes(*line);
    let digit = |at: u32| (word >> at.wrapping_mul(8)) as u8 ^ b'0';
    if word & 0xff_ff00_00ff == 0x0a_0d00_0024 {
        let (tens, ones) = (digit(1), digit(2));
        let len = usize::from(tens).wrapping_mul(10).wrapping_add(usize::from(ones));
        return (tens.wrapping_sub(1) <= 8 && ones <= 9).then_some((len, 5));
    }
    if word & 0xffff_00ff == 0x0a0d_0024 {
        let ones = digit(1);
        return (ones <= 9).then_some((usize::from(ones), 4));
    }
    longer_length(word)
}

/// The same with three or four digits.
#[inline]
fn longer_length(word: u64) -> Option<(usize, usize)> {
    let digit = |at: u32| usize::from((word >> at.wrapping_mul(8)) as u8 ^ b'0');
    let [one, two, three, four] = [digit(1), digit(2), digit(3), digit(4)];
    let hundreds = one.wrapping_mul(100).wrapping_add(two.wrapping_mul(10)).wrapping_add(three);
    let digits = one.wrapping_sub(1) <= 8 && two <= 9 && three <= 9;
    if word & 0xffff_0000_00ff == 0x0a0d_0000_0024 {
        return digits.then_some((hundreds, 6));
    }
    if word & 0xff_ff00_0000_00ff == 0x0a_0d00_0000_0024 {
        return (digits && four <= 9).then_some((hundreds.wrapping_mul(10).wrapping_add(four), 7));
    }
    None
}
