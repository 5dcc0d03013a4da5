//! The library `bit`: operations on 32-bit integers, after LuaBitOp.

use crate::lua::install::register;
use crate::lua::stack::{Native, Raise, Stack};

const FUNCTIONS: &[(&str, Native)] = &[
    ("tobit", |stack| unary(stack, |bits| bits)),
    ("bnot", |stack| unary(stack, |bits| !bits)),
    ("bswap", |stack| unary(stack, u32::swap_bytes)),
    ("band", |stack| fold(stack, |one, other| one & other)),
    ("bor", |stack| fold(stack, |one, other| one | other)),
    ("bxor", |stack| fold(stack, |one, other| one ^ other)),
    ("lshift", |stack| shift(stack, |bits, count| bits << count)),
    ("rshift", |stack| shift(stack, |bits, count| bits >> count)),
    ("arshift", |stack| shift(stack, |bits, count| ((bits as i32) >> count) as u32)),
    ("rol", |stack| shift(stack, u32::rotate_left)),
    ("ror", |stack| shift(stack, u32::rotate_right)),
    ("tohex", to_hex),
];

/// Pushes the table.
pub fn push(stack: &mut Stack) {
    stack.push_table(0, FUNCTIONS.len());
    register(stack, FUNCTIONS);
}

/// An argument modulo 2^32: the low bits of the number after 2^52 + 2^51 is added, which rounds it to an integer.
fn bits(stack: &Stack, index: i32) -> Result<u32, Raise> {
    Ok((stack.check_number(index)? + 6_755_399_441_055_744.0).to_bits() as u32)
}

fn push_bits(stack: &Stack, bits: u32) -> Result<i32, Raise> {
    stack.push_number(f64::from(bits as i32));
    Ok(1)
}

fn unary(stack: &Stack, apply: fn(u32) -> u32) -> Result<i32, Raise> {
    push_bits(stack, apply(bits(stack, 1)?))
}

fn fold(stack: &Stack, apply: fn(u32, u32) -> u32) -> Result<i32, Raise> {
    let mut all = bits(stack, 1)?;
    for index in 2..=stack.top() {
        all = apply(all, bits(stack, index)?);
    }
    push_bits(stack, all)
}

fn shift(stack: &Stack, apply: fn(u32, u32) -> u32) -> Result<i32, Raise> {
    push_bits(stack, apply(bits(stack, 1)?, bits(stack, 2)? & 31))
}

/// Hexadecimal digits: eight, or as many as asked for, in capitals for a negative count.
fn to_hex(stack: &mut Stack) -> Result<i32, Raise> {
    let value = bits(stack, 1)?;
    let asked = if stack.top() < 2 { 8 } else { bits(stack, 2)? as i32 };
    let digits: &[u8; 16] = if asked < 0 { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let count = asked.unsigned_abs().min(8) as usize;
    let mut text = [0; 8];
    for (place, digit) in text.iter_mut().rev().take(count).enumerate() {
        *digit = digits[(value >> (4 * place) & 15) as usize];
    }
    stack.push_bytes(&text[8 - count..]);
    Ok(1)
}
