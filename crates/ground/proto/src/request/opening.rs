//! The first bytes of requests. Most requests begin like an earlier one, with the same count and name, so these need
//! not be parsed again.

use super::Span;

/// The beginning of a request, up to its second argument: `*2\r\n$3\r\nGET\r\n`.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    bytes: u128,
    /// Which of the bytes count.
    mask: u128,
    /// Where the second argument begins.
    pub(super) end: usize,
    /// The name.
    pub(super) name: Span,
    /// All arguments, the name included; at most 9.
    pub(super) count: u32,
}

impl Opening {
    /// The longest there is: of names of at most six bytes, which nearly all requests have.
    pub const LEN_MAX: usize = size_of::<u128>();

    /// No request begins like this.
    pub const NONE: Self = Self { bytes: 1, mask: 0, end: 0, name: Span::EMPTY, count: 0 };

    /// The opening of a request of `count` arguments that was parsed from the start of `input`; `None` if it is not
    /// short, or the request is inline.
    pub fn of(input: &[u8], name: Span, count: usize) -> Option<Self> {
        let end = name.range()?.end.checked_add(2)?;
        let count = u32::try_from(count).ok().filter(|count| (1..=9).contains(count))?;
        let mut bytes = [0; Self::LEN_MAX];
        bytes.get_mut(..end)?.copy_from_slice(input.get(..end)?);
        // With one digit of the count there is one way to write it.
        (bytes[0] == b'*' && u32::from(bytes[1]) == count.wrapping_add(u32::from(b'0')) && bytes[2] == b'\r')
            .then_some(Self { bytes: u128::from_le_bytes(bytes), mask: mask(end), end, name, count })
    }

    /// Whether the request that begins with these bytes begins so.
    #[inline]
    pub(super) fn begins(&self, input: &[u8; Self::LEN_MAX]) -> bool {
        u128::from_le_bytes(*input) & self.mask == self.bytes
    }
}

/// The first `len` bytes of a word, 1 to 16.
fn mask(len: usize) -> u128 {
    let others = (Opening::LEN_MAX.saturating_sub(len)).saturating_mul(8);
    u128::MAX.checked_shr(u32::try_from(others).unwrap_or(u32::MAX)).unwrap_or(0)
}
