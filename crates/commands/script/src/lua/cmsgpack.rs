//! The library `cmsgpack`: values as MessagePack, as the C library of that name in Valkey.

use crate::lua::install::register;
use crate::lua::number::to_integer;
use crate::lua::stack::{Kind, Native, Raise, Stack};

const FUNCTIONS: &[(&str, Native)] = &[
    ("pack", pack),
    ("unpack", |stack| unpack(stack, 0, 0)),
    ("unpack_one", |stack| {
        let offset = optional(stack, 2, 0)?;
        stack.set_top(1);
        unpack(stack, 1, offset)
    }),
    ("unpack_limit", |stack| {
        let limit = to_integer(stack.check_number(2)?);
        let offset = optional(stack, 3, 0)?;
        stack.set_top(1);
        unpack(stack, limit, offset)
    }),
];

const TEXTS: [(&str, &str); 4] = [
    ("_NAME", "cmsgpack"),
    ("_VERSION", "lua-cmsgpack 0.4.0"),
    ("_COPYRIGHT", "Copyright (C) 2012, Redis Ltd."),
    ("_DESCRIPTION", "MessagePack C implementation for Lua"),
];

/// Tables nested deeper than this are packed as nil.
const DEPTH_MAX: i32 = 16;

/// Pushes the table.
pub fn push(stack: &mut Stack) {
    stack.push_table(0, 8);
    register(stack, FUNCTIONS);
    for (name, text) in TEXTS {
        stack.push_str(text);
        stack.raw_set_field(-2, name);
    }
}

fn optional(stack: &Stack, index: i32, default: i64) -> Result<i64, Raise> {
    match stack.kind(index) {
        Kind::None | Kind::Nil => Ok(default),
        _ => Ok(to_integer(stack.check_number(index)?)),
    }
}

fn pack(stack: &mut Stack) -> Result<i32, Raise> {
    let count = stack.top();
    if count == 0 {
        return Err(Raise::Argument(0, c"MessagePack pack needs input."));
    }
    if !stack.has_room(count) {
        return Err(Raise::Argument(0, c"Too many arguments for MessagePack pack."));
    }
    stack.clear_scratch();
    for index in 1..=count {
        stack.push_value(index);
        append(stack, 0)?;
        stack.pop(1);
    }
    stack.push_scratch();
    Ok(1)
}

/// Appends the value on top.
fn append(stack: &mut Stack, depth: i32) -> Result<(), Raise> {
    stack.spend(4)?;
    match stack.kind(-1) {
        Kind::String => append_bytes(stack, -1),
        Kind::Boolean => stack.write(&[if stack.truth(-1) { 0xC3 } else { 0xC2 }]),
        Kind::Number => append_number(stack, stack.number(-1)),
        Kind::Table if depth < DEPTH_MAX => append_table(stack, depth)?,
        _ => stack.write(&[0xC0]),
    }
    Ok(())
}

fn append_bytes(stack: &Stack, index: i32) {
    let bytes = stack.string(index).unwrap_or_default();
    match bytes.len() {
        len @ ..=31 => stack.write(&[0xA0 | len as u8]),
        len @ ..=0xFF => stack.write(&[0xD9, len as u8]),
        len @ ..=0xFFFF => {
            stack.write(&[0xDA]);
            stack.write(&(len as u16).to_be_bytes());
        }
        len => {
            stack.write(&[0xDB]);
            stack.write(&(len as u32).to_be_bytes());
        }
    }
    stack.write(bytes);
}

fn append_number(stack: &Stack, number: f64) {
    let integer = to_integer(number);
    if integer as f64 == number && (number != -9_223_372_036_854_775_808.0 || integer == i64::MIN) && number.is_finite()
    {
        return append_integer(stack, integer);
    }
    let single = number as f32;
    if f64::from(single) == number {
        stack.write(&[0xCA]);
        stack.write(&single.to_be_bytes());
    } else {
        stack.write(&[0xCB]);
        stack.write(&number.to_be_bytes());
    }
}

fn append_integer(stack: &Stack, integer: i64) {
    let bytes = integer.to_be_bytes();
    match integer {
        0..=127 => stack.write(&bytes[7..]),
        128..=0xFF => stack.write(&[0xCC, bytes[7]]),
        0x100..=0xFFFF => {
            stack.write(&[0xCD]);
            stack.write(&bytes[6..]);
        }
        0x1_0000..=0xFFFF_FFFF => {
            stack.write(&[0xCE]);
            stack.write(&bytes[4..]);
        }
        0x1_0000_0000.. => {
            stack.write(&[0xCF]);
            stack.write(&bytes);
        }
        -32..=-1 => stack.write(&bytes[7..]),
        -128..=-33 => stack.write(&[0xD0, bytes[7]]),
        -32_768..=-129 => {
            stack.write(&[0xD1]);
            stack.write(&bytes[6..]);
        }
        -2_147_483_648..=-32_769 => {
            stack.write(&[0xD2]);
            stack.write(&bytes[4..]);
        }
        _ => {
            stack.write(&[0xD3]);
            stack.write(&bytes);
        }
    }
}

/// Appends a header: in one byte up to 15, else after one of two marks.
fn append_count(stack: &Stack, count: usize, small: u8, middle: u8, large: u8) {
    match count {
        ..=15 => stack.write(&[small | count as u8]),
        16..=0xFFFF => {
            stack.write(&[middle]);
            stack.write(&(count as u16).to_be_bytes());
        }
        _ => {
            stack.write(&[large]);
            stack.write(&(count as u32).to_be_bytes());
        }
    }
}

fn append_table(stack: &mut Stack, depth: i32) -> Result<(), Raise> {
    if !stack.has_room(6) {
        return Err(Raise::Located(c"stack overflow (in function mp_encode_lua_table_as_map)"));
    }
    let (count, is_array) = survey(stack)?;
    if is_array {
        append_count(stack, count, 0x90, 0xDC, 0xDD);
        for index in 1..=i32::try_from(count).unwrap_or(i32::MAX) {
            stack.raw_get_index(-1, index);
            append(stack, depth + 1)?;
            stack.pop(1);
        }
        return Ok(());
    }
    append_count(stack, count, 0x80, 0xDE, 0xDF);
    stack.push_nil();
    while stack.next(-2) {
        stack.push_value(-2);
        append(stack, depth + 1)?;
        stack.pop(1);
        append(stack, depth + 1)?;
        stack.pop(1);
    }
    Ok(())
}

/// How many keys the table on top has, and whether they are those of an array without holes.
fn survey(stack: &mut Stack) -> Result<(usize, bool), Raise> {
    let (mut count, mut max, mut is_array) = (0_usize, 0_i64, true);
    stack.push_nil();
    while stack.next(-2) {
        stack.spend(2)?;
        stack.pop(1);
        let key = stack.number(-1);
        let is_index = stack.kind(-1) == Kind::Number && key > 0.0 && key.floor() == key && key <= f64::from(i32::MAX);
        is_array &= is_index;
        max = max.max(if is_index { key as i64 } else { 0 });
        count += 1;
    }
    Ok((count, is_array && i64::try_from(count) == Ok(max)))
}

/// Why input cannot be unpacked.
enum Bad {
    Missing,
    Format,
    Stack,
    /// Raised by something else.
    Other(Raise),
}

impl From<Raise> for Bad {
    fn from(raise: Raise) -> Self {
        Self::Other(raise)
    }
}

struct Cursor {
    at: usize,
}

/// Unpacks at most `limit` values from `offset` on, all of them when both are 0.
fn unpack(stack: &mut Stack, limit: i64, offset: i64) -> Result<i32, Raise> {
    let len = stack.check_text(1)?.len();
    let takes_all = limit == 0 && offset == 0;
    if offset < 0 || limit < 0 {
        stack.clear_scratch();
        stack.write(b"Invalid request to unpack with offset of ");
        stack.write_integer(offset);
        stack.write(b" and limit of ");
        stack.write_integer(len as i64);
        stack.write(b".");
        return Err(Raise::Written);
    }
    if offset as usize > len {
        stack.clear_scratch();
        stack.write(b"Start offset ");
        stack.write_integer(offset);
        stack.write(b" greater than input length ");
        stack.write_integer(len as i64);
        stack.write(b".");
        return Err(Raise::Written);
    }
    let mut cursor = Cursor { at: offset as usize };
    let mut count = 0;
    while cursor.at < len && (takes_all || i64::from(count) < limit) {
        cursor.push(stack).map_err(|bad| match bad {
            Bad::Other(raise) => raise,
            Bad::Missing => Raise::Located(c"Missing bytes in input."),
            Bad::Format => Raise::Located(c"Bad data format in input."),
            Bad::Stack => Raise::Located(
                c"stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)",
            ),
        })?;
        count += 1;
    }
    if takes_all {
        return Ok(count);
    }
    stack.push_number(if cursor.at >= len { -1.0 } else { cursor.at as f64 });
    stack.insert(2);
    Ok(count + 1)
}

impl Cursor {
    /// The next bytes.
    fn take<const N: usize>(&mut self, stack: &Stack) -> Result<[u8; N], Bad> {
        let text = stack.string(1).unwrap_or_default();
        let bytes = text.get(self.at..).and_then(<[u8]>::first_chunk).ok_or(Bad::Missing)?;
        self.at += N;
        Ok(*bytes)
    }

    fn push_bytes(&mut self, stack: &Stack, len: usize) -> Result<(), Bad> {
        let text = stack.string(1).unwrap_or_default();
        let bytes = text.get(self.at..).and_then(|rest| rest.get(..len)).ok_or(Bad::Missing)?;
        stack.push_bytes(bytes);
        self.at += len;
        Ok(())
    }

    /// Pushes the next value.
    fn push(&mut self, stack: &mut Stack) -> Result<(), Bad> {
        if !stack.has_room(6) {
            return Err(Bad::Stack);
        }
        stack.spend(4)?;
        let [first] = self.take(stack)?;
        match first {
            0x00..=0x7F => stack.push_number(f64::from(first)),
            0x80..=0x8F => return self.push_map(stack, usize::from(first & 15)),
            0x90..=0x9F => return self.push_array(stack, usize::from(first & 15)),
            0xA0..=0xBF => return self.push_bytes(stack, usize::from(first & 31)),
            0xC0 => stack.push_nil(),
            0xC2 => stack.push_boolean(false),
            0xC3 => stack.push_boolean(true),
            0xCA => stack.push_number(f64::from(f32::from_be_bytes(self.take(stack)?))),
            0xCB => stack.push_number(f64::from_be_bytes(self.take(stack)?)),
            0xCC => stack.push_number(f64::from(u8::from_be_bytes(self.take(stack)?))),
            0xCD => stack.push_number(f64::from(u16::from_be_bytes(self.take(stack)?))),
            0xCE => stack.push_number(f64::from(u32::from_be_bytes(self.take(stack)?))),
            // As the C library: what does not fit a signed integer is negative.
            0xCF => stack.push_number(i64::from_be_bytes(self.take(stack)?) as f64),
            0xD0 => stack.push_number(f64::from(i8::from_be_bytes(self.take(stack)?))),
            0xD1 => stack.push_number(f64::from(i16::from_be_bytes(self.take(stack)?))),
            0xD2 => stack.push_number(f64::from(i32::from_be_bytes(self.take(stack)?))),
            0xD3 => stack.push_number(i64::from_be_bytes(self.take(stack)?) as f64),
            0xD9 => {
                let len = u8::from_be_bytes(self.take(stack)?);
                return self.push_bytes(stack, usize::from(len));
            }
            0xDA => {
                let len = u16::from_be_bytes(self.take(stack)?);
                return self.push_bytes(stack, usize::from(len));
            }
            0xDB => {
                let len = u32::from_be_bytes(self.take(stack)?);
                return self.push_bytes(stack, len as usize);
            }
            0xDC => {
                let count = u16::from_be_bytes(self.take(stack)?);
                return self.push_array(stack, usize::from(count));
            }
            0xDD => {
                let count = u32::from_be_bytes(self.take(stack)?);
                return self.push_array(stack, count as usize);
            }
            0xDE => {
                let count = u16::from_be_bytes(self.take(stack)?);
                return self.push_map(stack, usize::from(count));
            }
            0xDF => {
                let count = u32::from_be_bytes(self.take(stack)?);
                return self.push_map(stack, count as usize);
            }
            0xE0..=0xFF => stack.push_number(f64::from(first as i8)),
            _ => return Err(Bad::Format),
        }
        Ok(())
    }

    fn push_array(&mut self, stack: &mut Stack, count: usize) -> Result<(), Bad> {
        stack.push_table(0, 0);
        for index in 1..=i32::try_from(count).unwrap_or(i32::MAX) {
            self.push(stack)?;
            stack.raw_set_index(-2, index);
        }
        Ok(())
    }

    fn push_map(&mut self, stack: &mut Stack, count: usize) -> Result<(), Bad> {
        stack.push_table(0, 0);
        for _ in 0..count {
            self.push(stack)?;
            self.push(stack)?;
            stack.raw_set(-3);
        }
        Ok(())
    }
}
