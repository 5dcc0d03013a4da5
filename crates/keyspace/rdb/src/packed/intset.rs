//! Sets of integers: ascending, all of one width.

use super::Cursor;
use crate::error::Flaw;
use crate::strings::Strings;

/// Appends all members.
pub fn read(bytes: &[u8], out: &mut Strings) -> Result<(), Flaw> {
    let mut cursor = Cursor::new("intset", bytes);
    let width = u32::from_le_bytes(cursor.array("the width of its integers")?);
    let count = u32::from_le_bytes(cursor.array("the number of its integers")?);
    if !matches!(width, 2 | 4 | 8) {
        return Err(cursor.flaw(0, "a width of 2, 4 or 8 bytes"));
    }
    let mut before = None;
    for _ in 0..count {
        let at = cursor.at;
        const EXPECTED: &str = "an integer";
        let number = match width {
            2 => i64::from(i16::from_le_bytes(cursor.array(EXPECTED)?)),
            4 => i64::from(i32::from_le_bytes(cursor.array(EXPECTED)?)),
            _ => i64::from_le_bytes(cursor.array(EXPECTED)?),
        };
        if before.is_some_and(|before| before >= number) {
            return Err(cursor.flaw(at, "an integer above the one before"));
        }
        before = Some(number);
        out.push_integer(number);
    }
    cursor.check_end()
}
