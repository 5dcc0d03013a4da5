//! Strings and numbers inside changes and packed buffers.

use base::varint;

/// Appends a length and the bytes.
#[inline]
pub fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes what [`put_string`] appended; `None` when the bytes are cut short or malformed.
#[inline]
pub fn take_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint::take(rest)?).ok()?;
    let (string, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(string)
}

/// Takes one byte.
#[inline]
pub fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (&byte, tail) = rest.split_first()?;
    *rest = tail;
    Some(byte)
}

/// Takes a varint from the end, where another varint or nothing stands before it: only the last byte of each has its
/// high bit clear. `None` when the bytes are no varint in its shortest form.
#[inline]
pub fn take_varint_back(rest: &mut &[u8]) -> Option<u64> {
    let (&last, before) = rest.split_last()?;
    if last < 0x80 && before.last().is_none_or(|byte| *byte < 0x80) {
        *rest = before;
        return Some(u64::from(last));
    }
    if let [before @ .., low @ 0x80..=0xFF, high @ 1..0x80] = *rest
        && before.last().is_none_or(|byte| *byte < 0x80)
    {
        *rest = before;
        return Some(u64::from(*low & 0x7F) | u64::from(*high) << 7);
    }
    take_long_varint_back(rest)
}

fn take_long_varint_back(rest: &mut &[u8]) -> Option<u64> {
    let before = rest.split_last()?.1;
    let longer = before.iter().rev().take(varint::MAX_LEN).take_while(|byte| **byte >= 0x80).count();
    let (before, mut varint) = rest.split_at_checked(rest.len().checked_sub(longer)?.checked_sub(1)?)?;
    let value = varint::take(&mut varint).filter(|_| varint.is_empty())?;
    *rest = before;
    Some(value)
}
