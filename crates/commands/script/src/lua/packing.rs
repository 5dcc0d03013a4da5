//! The library `struct`: values as the bytes of C structures, as in Valkey.

use crate::lua::install::register;
use crate::lua::number::to_integer;
use crate::lua::stack::{Kind, Native, Raise, Stack};

const FUNCTIONS: &[(&str, Native)] = &[("pack", pack), ("unpack", unpack), ("size", size)];

/// Integers have at most this many bytes.
const INTEGER_BYTES_MAX: usize = 32;

/// Alignment of `!` without a number.
const ALIGNMENT: usize = 8;

/// Pushes the table.
pub fn push(stack: &mut Stack) {
    stack.push_table(0, FUNCTIONS.len());
    register(stack, FUNCTIONS);
}

/// How a format is read: the string at index 1.
struct Format {
    at: usize,
    is_big_endian: bool,
    alignment: usize,
}

impl Format {
    fn new() -> Self {
        Self { at: 0, is_big_endian: false, alignment: 1 }
    }

    /// The next option; a zero ends the format, as in C.
    fn next(&mut self, stack: &Stack) -> Option<u8> {
        let option = *stack.string(1)?.get(self.at)?;
        self.at += 1;
        (option != 0).then_some(option)
    }

    fn number(&mut self, stack: &Stack, default: usize) -> Result<usize, Raise> {
        let digits = stack.string(1).unwrap_or_default().get(self.at..).unwrap_or_default();
        let len = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if len == 0 {
            return Ok(default);
        }
        let number = digits
            .iter()
            .take(len)
            .try_fold(0_i32, |number, digit| number.checked_mul(10)?.checked_add(i32::from(digit - b'0')));
        self.at += len;
        let number = number.ok_or(Raise::Located(c"integral size overflow"))?;
        Ok(usize::try_from(number).unwrap_or(0))
    }

    fn size(&mut self, stack: &Stack, option: u8) -> Result<usize, Raise> {
        match option {
            b'B' | b'b' | b'x' => Ok(1),
            b'H' | b'h' => Ok(2),
            b'f' => Ok(4),
            b'L' | b'l' | b'T' | b'd' => Ok(8),
            b'c' => self.number(stack, 1),
            b'i' | b'I' => {
                let size = self.number(stack, 4)?;
                if size <= INTEGER_BYTES_MAX {
                    return Ok(size);
                }
                stack.clear_scratch();
                stack.write(b"integral size ");
                stack.write_integer(size as i64);
                stack.write(b" is larger than limit of ");
                stack.write_integer(INTEGER_BYTES_MAX as i64);
                Err(Raise::Written)
            }
            _ => Ok(0),
        }
    }

    /// The padding before an element at this place.
    fn padding(&self, place: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.alignment);
        size.wrapping_sub(place & size.wrapping_sub(1)) & size.wrapping_sub(1)
    }

    /// An option without an element.
    fn control(&mut self, stack: &Stack, option: u8) -> Result<(), Raise> {
        match option {
            b' ' => {}
            b'>' => self.is_big_endian = true,
            b'<' => self.is_big_endian = false,
            b'!' => {
                let alignment = self.number(stack, ALIGNMENT)?;
                if !alignment.is_power_of_two() {
                    stack.clear_scratch();
                    stack.write(b"alignment ");
                    stack.write_integer(alignment as i64);
                    stack.write(b" is not a power of 2");
                    return Err(Raise::Written);
                }
                self.alignment = alignment;
            }
            _ => {
                stack.clear_scratch();
                stack.write(b"invalid format option '");
                stack.write(&[option]);
                stack.write(b"'");
                return Err(Raise::WrittenArgument(1));
            }
        }
        Ok(())
    }

    /// Writes bytes that are least significant first.
    fn write(&self, stack: &Stack, bytes: &mut [u8]) {
        if self.is_big_endian {
            bytes.reverse();
        }
        stack.write(bytes);
    }
}

fn pack(stack: &mut Stack) -> Result<i32, Raise> {
    stack.check_text(1)?;
    // So that a missing argument is nil.
    stack.push_nil();
    stack.clear_scratch();
    let (mut format, mut argument) = (Format::new(), 2);
    while let Some(option) = format.next(stack) {
        stack.spend(4)?;
        let size = format.size(stack, option)?;
        for _ in 0..format.padding(stack.scratch_len(), option, size) {
            stack.write(&[0]);
        }
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                pack_integer(stack, &format, argument, size)?;
                argument += 1;
            }
            b'x' => stack.write(&[0]),
            b'f' => {
                let number = stack.check_number(argument)? as f32;
                format.write(stack, &mut number.to_le_bytes());
                argument += 1;
            }
            b'd' => {
                let number = stack.check_number(argument)?;
                format.write(stack, &mut number.to_le_bytes());
                argument += 1;
            }
            b'c' | b's' => {
                let len = stack.check_text(argument)?.len();
                let size = if size == 0 { len } else { size };
                argument += 1;
                if len < size {
                    return Err(Raise::Argument(argument, c"string too short"));
                }
                stack.write(stack.string(argument - 1).and_then(|text| text.get(..size)).unwrap_or_default());
                if option == b's' {
                    stack.write(&[0]);
                }
            }
            _ => format.control(stack, option)?,
        }
    }
    stack.push_scratch();
    Ok(1)
}

fn pack_integer(stack: &Stack, format: &Format, argument: i32, size: usize) -> Result<(), Raise> {
    let number = stack.check_number(argument)?;
    // As C converts: beyond the signed range by its low bits.
    let value = if number < 0.0 || number < 9_223_372_036_854_775_808.0 {
        to_integer(number) as u64
    } else {
        (to_integer(number - 9_223_372_036_854_775_808.0) as u64) ^ 1 << 63
    };
    let mut bytes = [0; INTEGER_BYTES_MAX];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    format.write(stack, &mut bytes[..size]);
    Ok(())
}

fn unpack(stack: &mut Stack) -> Result<i32, Raise> {
    stack.check_text(1)?;
    let len = stack.check_text(2)?.len();
    let first = match stack.kind(3) {
        Kind::None | Kind::Nil => 1,
        _ => to_integer(stack.check_number(3)?),
    };
    if first == 0 {
        return Err(Raise::Argument(3, c"offset must be 1 or greater"));
    }
    let mut at = usize::try_from(first.wrapping_sub(1)).unwrap_or(usize::MAX);
    let (mut format, mut count) = (Format::new(), 0);
    const SHORT: Raise = Raise::Argument(2, c"data string too short");
    while let Some(option) = format.next(stack) {
        stack.spend(4)?;
        let mut size = format.size(stack, option)?;
        at = at.saturating_add(format.padding(at, option, size));
        if size > len || at > len - size {
            return Err(SHORT);
        }
        if !stack.has_room(4) {
            return Err(Raise::Located(c"stack overflow (too many results)"));
        }
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = unpack_integer(stack, &format, at, size, option.is_ascii_lowercase());
                stack.push_number(number);
                count += 1;
            }
            b'f' => {
                let number = f32::from_le_bytes(bytes(stack, &format, at));
                stack.push_number(f64::from(number));
                count += 1;
            }
            b'd' => {
                let number = f64::from_le_bytes(bytes(stack, &format, at));
                stack.push_number(number);
                count += 1;
            }
            b'x' => {}
            b'c' => {
                if size == 0 {
                    if count == 0 || !stack.is_numeric(-1) {
                        return Err(Raise::Located(c"format 'c0' needs a previous size"));
                    }
                    size = usize::try_from(to_integer(stack.number(-1))).unwrap_or(usize::MAX);
                    stack.pop(1);
                    count -= 1;
                    if size > len || at > len - size {
                        return Err(SHORT);
                    }
                }
                stack.push_bytes(stack.string(2).and_then(|data| data.get(at..at + size)).unwrap_or_default());
                count += 1;
            }
            b's' => {
                let rest = stack.string(2).and_then(|data| data.get(at..)).unwrap_or_default();
                let Some(end) = rest.iter().position(|byte| *byte == 0) else {
                    return Err(Raise::Located(c"unfinished string in data"));
                };
                stack.push_bytes(&rest[..end]);
                size = end + 1;
                count += 1;
            }
            _ => format.control(stack, option)?,
        }
        at = at.saturating_add(size);
    }
    stack.push_number((at + 1) as f64);
    Ok(count + 1)
}

/// Bytes of the data, least significant first.
fn bytes<const N: usize>(stack: &Stack, format: &Format, at: usize) -> [u8; N] {
    let data = stack.string(2).and_then(|data| data.get(at..)).unwrap_or_default();
    let mut bytes = data.first_chunk().copied().unwrap_or([0; N]);
    if format.is_big_endian {
        bytes.reverse();
    }
    bytes
}

fn unpack_integer(stack: &Stack, format: &Format, at: usize, size: usize, is_signed: bool) -> f64 {
    let data = stack.string(2).and_then(|data| data.get(at..at + size)).unwrap_or_default();
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = match format.is_big_endian {
        true => data.iter().fold(0, add),
        false => data.iter().rev().fold(0, add),
    };
    if !is_signed {
        return value as f64;
    }
    // Shifts by 64 and more are those of the processor.
    let mask = u64::MAX.wrapping_shl((size as u32).wrapping_mul(8).wrapping_sub(1));
    (if value & mask == 0 { value } else { value | mask }) as i64 as f64
}

fn size(stack: &mut Stack) -> Result<i32, Raise> {
    stack.check_text(1)?;
    let (mut format, mut at) = (Format::new(), 0_usize);
    while let Some(option) = format.next(stack) {
        stack.spend(4)?;
        let size = format.size(stack, option)?;
        at = at.saturating_add(format.padding(at, option, size));
        match (option, size) {
            (b's', _) => return Err(Raise::Argument(1, c"option 's' has no fixed size")),
            (b'c', 0) => return Err(Raise::Argument(1, c"option 'c0' has no fixed size")),
            _ => {}
        }
        if !option.is_ascii_alphanumeric() {
            format.control(stack, option)?;
        }
        at = at.saturating_add(size);
    }
    stack.push_number(at as f64);
    Ok(1)
}
