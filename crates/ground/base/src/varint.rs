//! LEB128 variable-length integers, as the command log, the checkpoint and the LSM formats use them.

/// Longest encoding of a `u64`.
pub const MAX_LEN: usize = 10;

/// Appends the encoding of `value`: seven bits a byte, low bits first, the high bit says "more follow".
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Stores the encoding that [`put`] would append at the front of `out`, and gives its length.
///
/// # Panics
/// If `out` is shorter.
#[inline]
pub fn write(out: &mut [u8], mut value: u64) -> usize {
    // Nearly all are so short.
    if value < 0x80 {
        out[0] = value as u8;
        return 1;
    }
    if value < 0x4000 {
        out[..2].copy_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]);
        return 2;
    }
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Bytes that [`put`] would append.
#[inline]
pub fn len(value: u64) -> usize {
    if value < 0x4000 {
        return 1 + usize::from(value >= 0x80);
    }
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Takes one integer from the front of `bytes`. `None` when it is cut short, overflows 64 bits, or is not the shortest
/// encoding (so that equal values have equal bytes).
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    if let [byte @ 0..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*byte));
    }
    take_long(bytes)
}

/// The same, whatever its length: without a loop where eight bytes are there and the integer is no longer than that.
#[inline]
fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    if let Some(first) = bytes.first_chunk() {
        let word = u64::from_le_bytes(*first);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends != 0 {
            // Up to the bit that says no more follows.
            let bits = ends.trailing_zeros() + 1;
            let own = word << (64 - bits) >> (64 - bits);
            if own >> (bits - 8) == 0 && bits > 8 {
                return None;
            }
            *bytes = &bytes[bits as usize / 8..];
            return Some(packed(own));
        }
    }
    take_bytewise(bytes)
}

/// Seven bits of each byte, put together.
#[inline]
fn packed(word: u64) -> u64 {
    let pairs = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4
}

#[cold]
fn take_bytewise(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().enumerate().take(MAX_LEN) {
        let bits = u64::from(byte & 0x7f);
        if index == MAX_LEN - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            if byte == 0 && index > 0 {
                return None;
            }
            *bytes = bytes.get(index + 1..)?;
            return Some(value);
        }
    }
    None
}

/// Maps signed to unsigned so that small magnitudes stay short: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Undoes [`zigzag`].
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_round_trip() {
        for shift in 0..64 {
            for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1, u64::MAX] {
                let mut bytes = Vec::new();
                put(&mut bytes, value);
                assert_eq!(bytes.len(), len(value), "{value}");
                let mut written = [0; MAX_LEN];
                let length = write(&mut written, value);
                assert_eq!(written[..length], bytes);
                let mut rest = &bytes[..];
                assert_eq!(take(&mut rest), Some(value));
                assert!(rest.is_empty());
                assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
                // What follows is left, whatever it is.
                for behind in [[0; 8], [0x80; 8], [0xff; 8]] {
                    let longer = [&bytes[..], &behind].concat();
                    let mut rest = &longer[..];
                    assert_eq!((take(&mut rest), rest), (Some(value), &behind[..]));
                }
            }
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn overlong_and_overflowing_encodings_are_refused() {
        for extra in 1..MAX_LEN {
            let overlong = [&vec![0x80; extra][..], &[0; 9]].concat();
            assert_eq!(take(&mut &overlong[..extra + 1]), None);
            assert_eq!(take(&mut &overlong[..]), None);
        }
        assert_eq!(take(&mut &[0xff; 11][..]), None);
        assert_eq!(take(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02][..]), None);
    }
}
