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
