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

fn take_long(bytes: &mut &[u8]) -> Option<u64> {
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
            }
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn overlong_and_overflowing_encodings_are_refused() {
        assert_eq!(take(&mut &[0x80, 0x00][..]), None);
        assert_eq!(take(&mut &[0xff; 11][..]), None);
        assert_eq!(take(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02][..]), None);
    }
}
