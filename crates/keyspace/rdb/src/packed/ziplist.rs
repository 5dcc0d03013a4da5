//! Ziplists, up to Redis 6.2: each element begins with the length of the previous one.

use super::{Cursor, int24};
use crate::error::Flaw;
use crate::strings::Strings;

const PACKING: &str = "ziplist";

/// The end marker, in the place of an element.
const END: u8 = 0xff;

/// The length of the previous element follows in four bytes.
const LONG_BEFORE: u8 = 0xfe;

/// The count, if the real one does not fit.
const MANY: u16 = u16::MAX;

/// Appends all elements.
pub fn read(bytes: &[u8], out: &mut Strings) -> Result<(), Flaw> {
    let mut cursor = Cursor::new(PACKING, bytes);
    let total = u32::from_le_bytes(cursor.array("a header")?);
    let last_at = u32::from_le_bytes(cursor.array("a header")?);
    let count = u16::from_le_bytes(cursor.array("a header")?);
    cursor.check_total(total)?;

    let (mut before, mut last, mut seen) = (0, cursor.at, 0u64);
    while cursor.peek() != Some(END) {
        let start = cursor.at;
        if take_len_before(&mut cursor)? != before {
            return Err(cursor.flaw(start, "the length of the element before"));
        }
        take_element(&mut cursor, out)?;
        (before, last) = (cursor.at - start, start);
        seen += 1;
    }
    cursor.at += 1;
    cursor.check_end()?;
    if usize::try_from(last_at) != Ok(last) {
        return Err(cursor.flaw(4, "the place of the last element"));
    }
    if count != MANY && u64::from(count) != seen {
        return Err(cursor.flaw(8, "the number of its elements"));
    }
    Ok(())
}

fn take_len_before(cursor: &mut Cursor<'_>) -> Result<usize, Flaw> {
    const EXPECTED: &str = "the length of the element before";
    match cursor.byte(EXPECTED)? {
        LONG_BEFORE => Ok(usize::try_from(u32::from_le_bytes(cursor.array(EXPECTED)?)).unwrap_or(usize::MAX)),
        short => Ok(usize::from(short)),
    }
}

fn take_element(cursor: &mut Cursor<'_>, out: &mut Strings) -> Result<(), Flaw> {
    const STRING: &str = "a string";
    const INTEGER: &str = "an integer";
    let start = cursor.at;
    let first = cursor.byte("an element")?;
    let number = match first {
        0x00..=0xbf => {
            let len = match first >> 6 {
                0 => usize::from(first & 0x3f),
                1 => usize::from(u16::from_be_bytes([first & 0x3f, cursor.byte(STRING)?])),
                _ => usize::try_from(u32::from_be_bytes(cursor.array(STRING)?)).unwrap_or(usize::MAX),
            };
            out.push(cursor.take(len, STRING)?);
            return Ok(());
        }
        0xc0 => i64::from(i16::from_le_bytes(cursor.array(INTEGER)?)),
        0xd0 => i64::from(i32::from_le_bytes(cursor.array(INTEGER)?)),
        0xe0 => i64::from_le_bytes(cursor.array(INTEGER)?),
        0xf0 => int24(cursor.array(INTEGER)?),
        0xfe => i64::from(i8::from_le_bytes(cursor.array(INTEGER)?)),
        0xf1..=0xfd => i64::from(first & 0x0f) - 1,
        _ => return Err(cursor.flaw(start, "an element")),
    };
    out.push_integer(number);
    Ok(())
}
