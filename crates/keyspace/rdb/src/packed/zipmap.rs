//! Zipmaps: the small hashes of Redis before 2.6, which later servers still read.

use super::Cursor;
use crate::error::Flaw;
use crate::strings::Strings;

const PACKING: &str = "zipmap";

/// The end marker, in the place of a length.
const END: u8 = 0xff;

/// The length follows in four bytes.
const LONG: u8 = 0xfe;

/// Appends fields and values, in turn.
pub fn read(bytes: &[u8], out: &mut Strings) -> Result<(), Flaw> {
    let mut cursor = Cursor::new(PACKING, bytes);
    let count = cursor.byte("a header")?;
    let mut seen = 0u64;
    while cursor.peek() != Some(END) {
        let len = take_len(&mut cursor)?;
        out.push(cursor.take(len, "a field")?);
        let len = take_len(&mut cursor)?;
        let unused = cursor.byte("how many bytes are unused")?;
        out.push(cursor.take(len, "a value")?);
        cursor.take(usize::from(unused), "unused bytes")?;
        seen += 1;
    }
    cursor.at += 1;
    cursor.check_end()?;
    if count < LONG && u64::from(count) != seen {
        return Err(cursor.flaw(0, "the number of its fields"));
    }
    Ok(())
}

fn take_len(cursor: &mut Cursor<'_>) -> Result<usize, Flaw> {
    const EXPECTED: &str = "a length";
    let start = cursor.at;
    match cursor.byte(EXPECTED)? {
        END => Err(cursor.flaw(start, EXPECTED)),
        LONG => Ok(usize::try_from(u32::from_le_bytes(cursor.array(EXPECTED)?)).unwrap_or(usize::MAX)),
        short => Ok(usize::from(short)),
    }
}
